//! The judge: the one place where legality is decided, and it says why.
//!
//! Here live the order of judgement, the waiver, the lists that derive from the
//! verdicts, and the ends of section 5. What each rule says lives in `movement`,
//! `capture` and `repetition`. There is no second generator: a list of moves is
//! the candidates that the judge allowed, so list and verdict cannot disagree.

use super::animal::{Animal, Piece, Side};
use super::capture;
use super::movement::{self, Move};
use super::outcome::Reason;
use super::position::Position;
use super::repetition::{Bars, Run};
use super::ruleset::Ruleset;
use super::terrain;
use super::violation::Violation;

/// A position on its way: with its ruleset, what the bars need to know, and the ply.
///
/// Small and `Copy`. It does not ask whether the game is over: after each move
/// ask [`ending`](Line::ending), and play no further once there is one.
///
/// # Examples
/// ```
/// use jungle_referee::rules::{Line, Position, Reason, Ruleset, Side};
/// let position = Position::set_up("2T3e/7/7/7/7/7/7/7/7 r 0 1", &Ruleset::YESHOU)?;
/// let mut line = Line::new(position, Ruleset::YESHOU);
/// let mv = "c9d9".parse()?;
/// assert!(line.judge(mv).is_ok());
/// assert_eq!(line.advance(mv), None);
/// assert_eq!(line.ending(Side::Red), Some((Some(Side::Red), Reason::Den)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Line {
    position: Position,
    ruleset: Ruleset,
    ply: u32,
    runs: [Run; 2],
}

/// A move that the judge allows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Allowed {
    /// What it takes.
    pub captured: Option<Animal>,
    /// Whether it stands only because the bars are waived this turn (section 4).
    pub waived: bool,
}

/// A move of the list, and what it takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LegalMove {
    /// The move.
    pub mv: Move,
    /// What it takes.
    pub captured: Option<Animal>,
}

/// Every move that is allowed this turn.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LegalMoves {
    /// The moves, from a1 to g9 by from-square, then by to-square.
    pub moves: Vec<LegalMove>,
    /// Whether the bars are waived this turn (section 4).
    pub waived: bool,
}

/// A move that the side to move might think of, with its verdict.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Candidate {
    /// The move.
    pub mv: Move,
    /// What the judge says of it.
    pub verdict: Result<Allowed, Violation>,
}

impl Line {
    /// A line that starts here: empty runs, ply 0.
    #[must_use]
    pub const fn new(position: Position, ruleset: Ruleset) -> Line {
        Line { position, ruleset, ply: 0, runs: [Run::EMPTY; 2] }
    }

    /// Where it stands now.
    #[must_use]
    pub const fn position(&self) -> &Position {
        &self.position
    }

    /// What it is judged by.
    #[must_use]
    pub const fn ruleset(&self) -> &Ruleset {
        &self.ruleset
    }

    /// The number of the ply about to be made: how many were played, from 0.
    #[must_use]
    pub const fn ply(&self) -> u32 {
        self.ply
    }

    /// Judges a move of the side to move: sections 2–4, in the order of section 7.
    ///
    /// # Errors
    /// The first rule that the move breaks, with what shows it.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::{Line, Position, Rule, Ruleset};
    /// let line = Line::new(Position::start(&Ruleset::YESHOU), Ruleset::YESHOU);
    /// assert!(line.judge("a3a4".parse()?).is_ok());
    /// let refused = line.judge("b2b2".parse()?).unwrap_err();
    /// assert_eq!(refused.rule(), Rule::Step);
    /// # Ok::<(), jungle_referee::rules::MoveError>(())
    /// ```
    pub fn judge(&self, mv: Move) -> Result<Allowed, Violation> {
        self.judge_with(&self.bars(), mv)
    }

    /// Every move allowed this turn, from a1 to g9.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::{Line, Position, Ruleset};
    /// let line = Line::new(Position::start(&Ruleset::FOLK), Ruleset::FOLK);
    /// let legal = line.legal_moves();
    /// assert_eq!(legal.moves.len(), 24);
    /// assert_eq!(legal.moves[0].mv.to_string(), "a1a2");
    /// assert!(!legal.waived);
    /// ```
    #[must_use]
    pub fn legal_moves(&self) -> LegalMoves {
        let mut legal = LegalMoves { moves: Vec::new(), waived: false };
        for Candidate { mv, verdict } in self.candidates() {
            if let Ok(Allowed { captured, waived }) = verdict {
                legal.moves.push(LegalMove { mv, captured });
                legal.waived |= waived;
            }
        }
        legal
    }

    /// Each own animal in the four directions, with its verdict: the step, and for lion
    /// and tiger facing the river the jump too. At most 36, from a1 to g9.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::{Line, Position, Ruleset};
    /// let position = Position::read("6e/7/7/7/7/7/1T5/7/7 r 0 1")?;
    /// let line = Line::new(position, Ruleset::DATOU);
    /// let verdicts: Vec<String> = line
    ///     .candidates()
    ///     .iter()
    ///     .map(|c| match c.verdict {
    ///         Ok(_) => c.mv.to_string(),
    ///         Err(violation) => format!("{} {}", c.mv, violation.rule()),
    ///     })
    ///     .collect();
    /// assert_eq!(verdicts, ["b3a3", "b3b2", "b3b4 RIVER", "b3b7 JUMP", "b3c3"]);
    /// # Ok::<(), jungle_referee::rules::NotationError>(())
    /// ```
    #[must_use]
    pub fn candidates(&self) -> Vec<Candidate> {
        let bars = self.bars();
        thinkable(&self.position, self.position.side_to_move())
            .map(|(_, mv)| Candidate { mv, verdict: self.judge_with(&bars, mv) })
            .collect()
    }

    /// The moves that sections 2–3 allow and section 4 refuses, each with its bar.
    #[must_use]
    pub fn barred(&self) -> Vec<(Move, Violation)> {
        self.candidates()
            .into_iter()
            .filter_map(|Candidate { mv, verdict }| match verdict {
                Err(bar @ (Violation::SevenThree { .. } | Violation::SeventeenFive { .. })) => Some((mv, bar)),
                Ok(_) | Err(_) => None,
            })
            .collect()
    }

    /// Plays a move that was judged, without judging it again; returns what it took.
    ///
    /// A move that was never judged does no harm: from an empty square, or to the
    /// square it starts on, only the turn passes.
    pub fn advance(&mut self, mv: Move) -> Option<Animal> {
        let side = self.position.side_to_move();
        let own = self.position.at(mv.from).filter(|piece| piece.side == side);
        self.runs[side.index()].record(own.map(|piece| piece.animal), mv.to);
        self.ply = self.ply.saturating_add(1);
        self.position.make(mv).map(|taken| taken.animal)
    }

    /// How the game ended with the move that `mover` has just made, if it did: who won,
    /// and why. The ends of section 5 that stand on the board, in their order.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::{Line, Position, Reason, Ruleset, Side};
    /// let position = Position::read("6e/7/7/7/7/7/7/7/T5P r 199 100")?;
    /// let mut line = Line::new(position, Ruleset::YESHOU);
    /// assert_eq!(line.ending(Side::Blue), None);
    /// line.advance("a1a2".parse()?);
    /// assert_eq!(line.ending(Side::Red), Some((None, Reason::NoCapture)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn ending(&self, mover: Side) -> Option<(Option<Side>, Reason)> {
        let position = &self.position;
        let opponent = mover.opponent();
        if position.held_by(mover).contains(opponent.den()) {
            Some((Some(mover), Reason::Den))
        } else if position.held_by(opponent).is_empty() {
            Some((Some(mover), Reason::AllCaptured))
        } else if !can_move(position, &self.ruleset, opponent) {
            Some((Some(mover), Reason::NoMoves))
        } else if position.quiet_plies() >= self.ruleset.no_capture_plies() {
            Some((None, Reason::NoCapture))
        } else {
            None
        }
    }

    /// The run of the side to move.
    fn run(&self) -> &Run {
        &self.runs[self.position.side_to_move().index()]
    }

    fn bars(&self) -> Bars {
        Bars::of(&self.position, &self.ruleset, self.run())
    }

    fn judge_with(&self, bars: &Bars, mv: Move) -> Result<Allowed, Violation> {
        let side = self.position.side_to_move();
        let (piece, taken) = check(&self.position, &self.ruleset, side, mv)?;
        let captured = taken.map(|taken| taken.animal);
        match bars.violation(self.run(), self.ply, piece, mv) {
            None => Ok(Allowed { captured, waived: false }),
            Some(_) if self.waives(bars) => Ok(Allowed { captured, waived: true }),
            Some(bar) => Err(bar),
        }
    }

    /// *Waiver*: whether the bars would take away every move that sections 2–3 allow.
    fn waives(&self, bars: &Bars) -> bool {
        !bars.is_empty()
            && allowed(&self.position, &self.ruleset, self.position.side_to_move())
                .all(|(piece, mv)| bars.closes(piece.animal, mv.to))
    }
}

/// How many games of so many plies there are: the leaves of the move tree (section 8).
///
/// Sections 2–3 only: no bars, the quiet count plays no part, and a finished game has
/// no children. Time grows about 22-fold a ply from the start, and the stack by one
/// frame a ply: for counting to small depths.
///
/// # Examples
/// ```
/// use jungle_referee::rules::{Position, Ruleset, perft};
/// let start = Position::start(&Ruleset::FOLK);
/// assert_eq!(perft(&start, &Ruleset::FOLK, 0), 1);
/// assert_eq!(perft(&start, &Ruleset::FOLK, 3), 12_240);
/// ```
#[must_use]
pub fn perft(position: &Position, ruleset: &Ruleset, depth: u32) -> u64 {
    if depth == 0 {
        return 1;
    }
    if position.is_finished() {
        return 0;
    }
    let moves = allowed(position, ruleset, position.side_to_move());
    if depth == 1 {
        return moves.fold(0, |leaves, _| leaves + 1);
    }
    moves.fold(0, |leaves, (_, mv)| {
        let mut next = *position;
        next.make(mv);
        leaves + perft(&next, ruleset, depth - 1)
    })
}

/// Whether a side has a move that sections 2–3 allow, were it its turn.
pub(super) fn can_move(position: &Position, ruleset: &Ruleset, side: Side) -> bool {
    allowed(position, ruleset, side).next().is_some()
}

/// Whether the animal on the from-square could make this move by sections 2–3, were it its turn.
pub(super) fn reaches(position: &Position, ruleset: &Ruleset, mv: Move) -> bool {
    position.at(mv.from).is_some_and(|piece| check(position, ruleset, piece.side, mv).is_ok())
}

/// Judges a move of `side` by sections 2–3, first failure first: every road leads through here.
#[inline]
fn check(position: &Position, ruleset: &Ruleset, side: Side, mv: Move) -> Result<(Piece, Option<Piece>), Violation> {
    let from = mv.from;
    let Some(piece) = position.at(from) else {
        return Err(Violation::NoAnimal { from });
    };
    if piece.side != side {
        return Err(Violation::NotYourAnimal { piece, from });
    }
    movement::check(position, ruleset, piece, mv)?;
    let target = position.at(mv.to);
    if let Some(target) = target {
        capture::check(ruleset, piece, target, mv)?;
    }
    Ok((piece, target))
}

/// The moves of a side that geometry suggests, from a1 to g9; the judge decides on each.
#[inline]
fn thinkable(position: &Position, side: Side) -> impl Iterator<Item = (Piece, Move)> + '_ {
    position.held_by(side).iter().filter_map(|from| position.at(from).map(|piece| (from, piece))).flat_map(
        |(from, piece)| {
            let jumps = matches!(piece.animal, Animal::Lion | Animal::Tiger);
            terrain::targets(from, jumps).iter().map(move |&to| (piece, Move { from, to }))
        },
    )
}

/// The moves of a side that sections 2–3 allow, from a1 to g9.
#[inline]
fn allowed<'a>(position: &'a Position, ruleset: &'a Ruleset, side: Side) -> impl Iterator<Item = (Piece, Move)> + 'a {
    thinkable(position, side).filter(move |(_, mv)| check(position, ruleset, side, *mv).is_ok())
}
