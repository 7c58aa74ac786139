//! Why a move is refused: the ids of section 7, each with the facts that show it.
//!
//! Here live the closed list and its sentences. Which of them holds is decided
//! in `movement`, `capture` and `repetition`, in the order that `judge` keeps.

use std::fmt;

use super::animal::{Animal, Piece, Side};
use super::square::{Square, SquareSet};

/// The id of a rule that a move can break, in the order of judgement (section 7).
///
/// # Examples
/// ```
/// use jungle_referee::rules::Rule;
/// assert_eq!(Rule::JumpBlocked.id(), "JUMP_BLOCKED");
/// assert_eq!(Rule::from_id("BANK"), Some(Rule::Bank));
/// assert!(Rule::ALL.is_sorted());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rule {
    /// The from-square is empty.
    NoAnimal,
    /// The animal on the from-square is the opponent's.
    NotYourAnimal,
    /// Neither one square along a file or a rank nor a jump line.
    Step,
    /// Only the rat enters the river.
    River,
    /// This animal may not jump along this line.
    Jump,
    /// A rat on a square jumped over forbids the jump.
    JumpBlocked,
    /// No animal enters its own den.
    OwnDen,
    /// No animal enters a square that its own side holds.
    OwnPiece,
    /// An animal standing in an enemy trap takes nothing, in this ruleset.
    Trapped,
    /// Nothing takes across the water's edge.
    Bank,
    /// The elephant never takes the rat.
    RatElephant,
    /// An animal takes its own strength or less.
    Strength,
    /// The 7-3 bar.
    SevenThree,
    /// The 17-5 bar.
    SeventeenFive,
}

impl Rule {
    /// Every rule, in the order of judgement.
    pub const ALL: [Rule; 14] = [
        Rule::NoAnimal,
        Rule::NotYourAnimal,
        Rule::Step,
        Rule::River,
        Rule::Jump,
        Rule::JumpBlocked,
        Rule::OwnDen,
        Rule::OwnPiece,
        Rule::Trapped,
        Rule::Bank,
        Rule::RatElephant,
        Rule::Strength,
        Rule::SevenThree,
        Rule::SeventeenFive,
    ];

    /// The id that refusals and documents name.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Rule::NoAnimal => "NO_ANIMAL",
            Rule::NotYourAnimal => "NOT_YOUR_ANIMAL",
            Rule::Step => "STEP",
            Rule::River => "RIVER",
            Rule::Jump => "JUMP",
            Rule::JumpBlocked => "JUMP_BLOCKED",
            Rule::OwnDen => "OWN_DEN",
            Rule::OwnPiece => "OWN_PIECE",
            Rule::Trapped => "TRAPPED",
            Rule::Bank => "BANK",
            Rule::RatElephant => "RAT_ELEPHANT",
            Rule::Strength => "STRENGTH",
            Rule::SevenThree => "SEVEN_THREE",
            Rule::SeventeenFive => "SEVENTEEN_FIVE",
        }
    }

    /// The rule with this id.
    #[must_use]
    pub fn from_id(id: &str) -> Option<Rule> {
        Rule::ALL.into_iter().find(|rule| rule.id() == id)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// The rule that a move breaks first, with the animal, the squares and what else shows it.
///
/// In every case `piece` is the animal that was to move, `from` and `to` are the
/// move's squares, and `standing` is the animal on the to-square.
///
/// # Examples
/// ```
/// use jungle_referee::rules::{Line, Position, Rule, Ruleset};
/// let position = Position::read("7/7/6t/7/7/1r1L3/7/7/7 r 0 1")?;
/// let refused = Line::new(position, Ruleset::YESHOU).judge("d4a4".parse()?).unwrap_err();
/// assert_eq!(refused.rule(), Rule::JumpBlocked);
/// assert_eq!(refused.squares(), ["b4".parse()?]);
/// assert_eq!(
///     refused.to_string(),
///     "the lion on d4 cannot jump to a4: the rat on b4 is in the way"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the fields are explained once, above")]
pub enum Violation {
    /// `NO_ANIMAL`: the from-square is empty.
    NoAnimal { from: Square },
    /// `NOT_YOUR_ANIMAL`: the animal on the from-square is the opponent's.
    NotYourAnimal { piece: Piece, from: Square },
    /// `STEP`: nothing leads from one square to the other.
    Step { piece: Piece, from: Square, to: Square },
    /// `RIVER`: a land animal would step into the river.
    River { piece: Piece, from: Square, to: Square },
    /// `JUMP`: the animal may not jump along this line.
    Jump { piece: Piece, from: Square, to: Square },
    /// `JUMP_BLOCKED`: `rats` are those in the way, Red's and Blue's.
    JumpBlocked { piece: Piece, from: Square, to: Square, rats: [Option<Square>; 2] },
    /// `OWN_DEN`: the to-square is the animal's own den.
    OwnDen { piece: Piece, from: Square, to: Square },
    /// `OWN_PIECE`: `standing` is of the mover's own side.
    OwnPiece { piece: Piece, from: Square, to: Square, standing: Animal },
    /// `TRAPPED`: the from-square is an enemy trap, and the move would take `standing`.
    Trapped { piece: Piece, from: Square, to: Square, standing: Animal },
    /// `BANK`: the water's edge lies between the two.
    Bank { piece: Piece, from: Square, to: Square, standing: Animal },
    /// `RAT_ELEPHANT`: an elephant would take a rat.
    RatElephant { piece: Piece, from: Square, to: Square },
    /// `STRENGTH`: `standing` is the stronger.
    Strength { piece: Piece, from: Square, to: Square, standing: Animal },
    /// `SEVEN_THREE`: `entries` are the moves of the window that ended on the to-square.
    SevenThree { piece: Piece, from: Square, to: Square, entries: Entries },
    /// `SEVENTEEN_FIVE`: `window` are the squares that the latest 17 moves ended on.
    SeventeenFive { piece: Piece, from: Square, to: Square, window: SquareSet },
}

impl Violation {
    /// Which rule it is.
    #[must_use]
    pub const fn rule(&self) -> Rule {
        match self {
            Violation::NoAnimal { .. } => Rule::NoAnimal,
            Violation::NotYourAnimal { .. } => Rule::NotYourAnimal,
            Violation::Step { .. } => Rule::Step,
            Violation::River { .. } => Rule::River,
            Violation::Jump { .. } => Rule::Jump,
            Violation::JumpBlocked { .. } => Rule::JumpBlocked,
            Violation::OwnDen { .. } => Rule::OwnDen,
            Violation::OwnPiece { .. } => Rule::OwnPiece,
            Violation::Trapped { .. } => Rule::Trapped,
            Violation::Bank { .. } => Rule::Bank,
            Violation::RatElephant { .. } => Rule::RatElephant,
            Violation::Strength { .. } => Rule::Strength,
            Violation::SevenThree { .. } => Rule::SevenThree,
            Violation::SeventeenFive { .. } => Rule::SeventeenFive,
        }
    }

    /// The squares that show it, as section 7 says, from a1 to g9, each once.
    #[must_use]
    pub fn squares(&self) -> Vec<Square> {
        match self {
            Violation::NoAnimal { from } | Violation::NotYourAnimal { from, .. } | Violation::Trapped { from, .. } => {
                vec![*from]
            }
            Violation::Step { to, .. }
            | Violation::River { to, .. }
            | Violation::Jump { to, .. }
            | Violation::OwnDen { to, .. }
            | Violation::OwnPiece { to, .. }
            | Violation::RatElephant { to, .. }
            | Violation::Strength { to, .. }
            | Violation::SevenThree { to, .. } => vec![*to],
            Violation::JumpBlocked { rats, .. } => sorted(rats.iter().flatten().copied()),
            Violation::Bank { from, to, .. } => sorted([*from, *to]),
            Violation::SeventeenFive { window, .. } => window.iter().collect(),
        }
    }

    /// The animals standing on the squares shown, from a1 to g9, where they have a part in it.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::{Line, Position, Ruleset};
    /// let position = Position::read("7/7/7/7/3e3/3C3/7/7/7 r 0 1")?;
    /// let refused = Line::new(position, Ruleset::FOLK).judge("d4d5".parse()?).unwrap_err();
    /// let shown: Vec<_> = refused.animals().iter().map(|(s, p)| format!("{p} {s}")).collect();
    /// assert_eq!(shown, ["Blue's elephant d5"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn animals(&self) -> Vec<(Square, Piece)> {
        match *self {
            Violation::NoAnimal { .. }
            | Violation::Step { .. }
            | Violation::River { .. }
            | Violation::Jump { .. }
            | Violation::OwnDen { .. }
            | Violation::SevenThree { .. } => Vec::new(),
            Violation::NotYourAnimal { piece, from } | Violation::Trapped { piece, from, .. } => {
                vec![(from, piece)]
            }
            Violation::JumpBlocked { rats, .. } => blocking(rats),
            Violation::OwnPiece { piece, to, standing, .. } => vec![(to, of(piece.side, standing))],
            Violation::RatElephant { piece, to, .. } => {
                vec![(to, of(piece.side.opponent(), Animal::Rat))]
            }
            Violation::Strength { piece, to, standing, .. } => vec![(to, of(piece.side.opponent(), standing))],
            Violation::Bank { piece, from, to, standing } => {
                let mut both = vec![(from, piece), (to, of(piece.side.opponent(), standing))];
                both.sort_unstable();
                both
            }
            Violation::SeventeenFive { piece, from, window, .. } => {
                if window.contains(from) {
                    vec![(from, piece)]
                } else {
                    Vec::new()
                }
            }
        }
    }

    /// `SEVEN_THREE`: the plies of this game, counted from 0 and ascending, that ended on
    /// the to-square; empty for every other rule.
    #[must_use]
    pub fn plies(&self) -> Vec<u32> {
        match self {
            Violation::SevenThree { entries, .. } => entries.plies().collect(),
            Violation::NoAnimal { .. }
            | Violation::NotYourAnimal { .. }
            | Violation::Step { .. }
            | Violation::River { .. }
            | Violation::Jump { .. }
            | Violation::JumpBlocked { .. }
            | Violation::OwnDen { .. }
            | Violation::OwnPiece { .. }
            | Violation::Trapped { .. }
            | Violation::Bank { .. }
            | Violation::RatElephant { .. }
            | Violation::Strength { .. }
            | Violation::SeventeenFive { .. } => Vec::new(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Violation::NoAnimal { from } => write!(f, "there is no animal on {from}"),
            Violation::NotYourAnimal { piece, from } => {
                let (animal, side) = (piece.animal, piece.side);
                let mover = side.opponent();
                write!(f, "the {animal} on {from} is {side}'s, and {mover} is to move")
            }
            Violation::Step { piece, from, to } => write_step(f, piece.animal, from, to),
            Violation::River { piece, from, to } => {
                let animal = piece.animal;
                write!(f, "the {animal} on {from} cannot enter the river on {to}: ")?;
                f.write_str("only the rat swims")
            }
            Violation::Jump { piece, from, to } => write_jump(f, piece.animal, from, to),
            Violation::JumpBlocked { piece, from, to, rats } => write_blocked(f, piece.animal, from, to, rats),
            Violation::OwnDen { piece, from, to } => {
                let animal = piece.animal;
                write!(f, "the {animal} on {from} cannot enter its own den on {to}")
            }
            Violation::OwnPiece { piece, from, to, standing } => {
                let (animal, side) = (piece.animal, piece.side);
                write!(f, "the {animal} on {from} cannot enter {to}: ")?;
                write!(f, "{side}'s own {standing} stands there")
            }
            Violation::Trapped { piece, from, to, standing } => {
                let animal = piece.animal;
                write!(f, "the {animal} on {from} cannot take the {standing} on {to}: ")?;
                f.write_str("it stands in an enemy trap")
            }
            Violation::Bank { piece, from, to, standing } => {
                let animal = piece.animal;
                write!(f, "the {animal} on {from} cannot take the {standing} on {to}: ")?;
                f.write_str("the water's edge lies between them")
            }
            Violation::RatElephant { from, to, .. } => {
                write!(f, "the elephant on {from} cannot take the rat on {to}: an elephant never takes a rat")
            }
            Violation::Strength { piece, from, to, standing } => {
                let animal = piece.animal;
                write!(f, "the {animal} on {from} cannot take the {standing} on {to}: ")?;
                write!(f, "the {standing} is stronger")
            }
            Violation::SevenThree { piece, from, to, entries } => {
                let (animal, count) = (piece.animal, entries.len());
                write!(f, "the {animal} on {from} cannot go to {to} this turn: ")?;
                write!(f, "{count} of its latest 7 moves ended there")
            }
            Violation::SeventeenFive { piece, from, to, window } => write_seventeen(f, piece.animal, from, to, window),
        }
    }
}

/// Those of a run's latest 7 moves that ended on one square (`SEVEN_THREE`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Entries {
    /// The ply about to be made; the side's latest move was two plies before.
    ply: u32,
    /// Bit n: the move n turns back ended on the square, 0 being the latest.
    turns_back: u8,
}

impl Entries {
    pub(super) fn new(ply: u32, newest_first: &[Square], to: Square) -> Entries {
        let bits = [1, 2, 4, 8, 16, 32, 64];
        let hits = newest_first.iter().zip(bits).filter(|(end, _)| **end == to);
        Entries { ply, turns_back: hits.map(|(_, bit)| bit).sum() }
    }

    /// What it is made of, to be kept: the ply about to be made, and for each of the 7 moves a bit,
    /// the latest move's the lowest.
    #[must_use]
    pub const fn parts(self) -> (u32, u8) {
        (self.ply, self.turns_back)
    }

    /// The entries of these [`parts`](Entries::parts); `None` if there are more than 7 moves or fewer than 3 entries.
    #[must_use]
    pub const fn from_parts(ply: u32, turns_back: u8) -> Option<Entries> {
        if turns_back < 0x80 && turns_back.count_ones() >= 3 { Some(Entries { ply, turns_back }) } else { None }
    }

    /// How many there are, 3–7.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "there are never none")]
    pub const fn len(self) -> u32 {
        self.turns_back.count_ones()
    }

    /// Their ply numbers, counted from 0 in this game, ascending.
    pub fn plies(self) -> impl Iterator<Item = u32> {
        (0..7)
            .rev()
            .filter(move |turns| self.turns_back >> turns & 1 == 1)
            .map(move |turns| self.ply.saturating_sub(2 * (turns + 1)))
    }
}

fn sorted(squares: impl IntoIterator<Item = Square>) -> Vec<Square> {
    SquareSet::from_iter(squares).iter().collect()
}

const fn of(side: Side, animal: Animal) -> Piece {
    Piece { side, animal }
}

fn blocking(rats: [Option<Square>; 2]) -> Vec<(Square, Piece)> {
    let mut blocking: Vec<(Square, Piece)> = Side::ALL
        .into_iter()
        .zip(rats)
        .filter_map(|(side, rat)| rat.map(|square| (square, of(side, Animal::Rat))))
        .collect();
    blocking.sort_unstable();
    blocking
}

fn write_step(f: &mut fmt::Formatter<'_>, animal: Animal, from: Square, to: Square) -> fmt::Result {
    if from == to {
        return write!(f, "the {animal} on {from} cannot stay where it is");
    }
    write!(f, "the {animal} on {from} cannot go to {to}: an animal moves one square along a file or a rank")
}

fn write_jump(f: &mut fmt::Formatter<'_>, animal: Animal, from: Square, to: Square) -> fmt::Result {
    write!(f, "the {animal} on {from} cannot jump to {to}: ")?;
    f.write_str(if animal == Animal::Tiger {
        "in this ruleset the tiger jumps along a rank only"
    } else {
        "only the lion and the tiger jump over the river"
    })
}

fn write_blocked(
    f: &mut fmt::Formatter<'_>,
    animal: Animal,
    from: Square,
    to: Square,
    rats: [Option<Square>; 2],
) -> fmt::Result {
    write!(f, "the {animal} on {from} cannot jump to {to}: ")?;
    match sorted(rats.into_iter().flatten()).as_slice() {
        [one, other] => write!(f, "the rats on {one} and {other} are in the way"),
        [rat] => write!(f, "the rat on {rat} is in the way"),
        _ => f.write_str("a rat is in the way"),
    }
}

fn write_seventeen(
    f: &mut fmt::Formatter<'_>,
    animal: Animal,
    from: Square,
    to: Square,
    window: SquareSet,
) -> fmt::Result {
    write!(f, "the {animal} on {from} cannot go to {to} this turn: ")?;
    f.write_str("its latest 17 moves ended on")?;
    let last = window.len().saturating_sub(1);
    for (index, square) in (0..).zip(window) {
        let link = match index {
            0 => "",
            _ if index == last => " and",
            _ => ",",
        };
        write!(f, "{link} {square}")?;
    }
    f.write_str(" only")
}
