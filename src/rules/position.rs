//! A position: who stands where, whose turn it is, and the two counts.
//!
//! Here live the board and the two doors to it: `set_up`, which checks that a
//! game can start, and `read`, which takes any written position. Reading and
//! writing the text itself lives in `notation`; what has happened before
//! (runs, plies of this game) lives in `judge`.

use std::fmt;
use std::str::FromStr;

use super::animal::{Animal, Piece, Side};
use super::judge;
use super::movement::Move;
use super::notation::{self, NotationError, Written};
use super::ruleset::{Ladder, Ruleset};
use super::square::{Square, SquareSet};

/// Who stands where, whose turn it is, the quiet plies and the round.
///
/// A side has at most one of each animal: that much every position keeps. Small
/// and `Copy`, so that a snapshot costs eighty bytes.
///
/// # Examples
/// ```
/// use jungle_referee::rules::{Animal, Position, Ruleset, Side};
/// let start = Position::start(&Ruleset::YESHOU);
/// assert_eq!(
///     start.to_string(),
///     "l5t/1d3c1/r1p1w1e/7/7/7/E1W1P1R/1C3D1/T5L r 0 1"
/// );
/// assert_eq!(start.side_to_move(), Side::Red);
/// let lion = start.square_of(Side::Red, Animal::Lion).map(|s| s.to_string());
/// assert_eq!(lion.as_deref(), Some("g1"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// By square, two to a byte: the animal's place from 1, or 0; the 64th is never used.
    cells: [u8; 32],
    /// By side and animal: the square's byte, or [`ABSENT`].
    squares: [[u8; 9]; 2],
    /// By side: the squares it holds.
    held: [SquareSet; 2],
    quiet_plies: u32,
    round: u16,
    side_to_move: Side,
}

const ABSENT: u8 = u8::MAX;
const LAST_ROUND: u16 = 9999;

const START: &str = "l5t/1d3c1/r1p1w1e/7/7/7/E1W1P1R/1C3D1/T5L r 0 1";
const START_WITH_FOX: &str = "l5t/1d3c1/r1p1f1e/7/7/7/E1F1P1R/1C3D1/T5L r 0 1";

impl Position {
    /// The usual start (section 1), with foxes for wolves under `DOG_OVER_FOX`.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::{Position, Ruleset};
    /// assert_eq!(
    ///     Position::start(&Ruleset::FOLK_FOX).to_string(),
    ///     "l5t/1d3c1/r1p1f1e/7/7/7/E1F1P1R/1C3D1/T5L r 0 1"
    /// );
    /// ```
    #[must_use]
    pub fn start(ruleset: &Ruleset) -> Position {
        let text = match ruleset.ladder {
            Ladder::WolfOverDog | Ladder::DogOverWolf => START,
            Ladder::DogOverFox => START_WITH_FOX,
        };
        Position::read(text).unwrap_or(Position::EMPTY)
    }

    /// The position of a text that a game may start from: the checked door (section 1).
    ///
    /// A text carries no history: the game starts with empty runs, its quiet plies
    /// count on, and its round number only names rounds.
    ///
    /// # Errors
    /// The first reason of section 1 that holds, in its order: see [`SetupError`].
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::{Position, Ruleset};
    /// let set_up = |text| Position::set_up(text, &Ruleset::YESHOU);
    /// assert!(set_up("e6/7/7/7/7/7/7/7/6E r 0 9999").is_ok());
    /// let error = set_up("e6/7/7/7/7/7/7/7/E2d3 r 0 1").unwrap_err();
    /// assert_eq!(error.to_string(), "Blue's dog stands in the den on d1");
    /// ```
    pub fn set_up(text: &str, ruleset: &Ruleset) -> Result<Position, SetupError> {
        let written = notation::parse(text).map_err(SetupError::Form)?;
        let foreign = written.pieces().find(|(_, piece)| ruleset.ladder.strength(piece.animal).is_none());
        if let Some((square, piece)) = foreign {
            return Err(SetupError::ForeignLetter { square, piece, ladder: ruleset.ladder });
        }
        let position = Position::place(&written).map_err(|piece| SetupError::Twice { piece })?;
        position.check_start(ruleset)?;
        Ok(position)
    }

    /// The position of any text of the form, finished ones too: an animal in a den,
    /// a side without animals.
    ///
    /// Quiet plies beyond `u32` are read as `u32::MAX`.
    ///
    /// # Errors
    /// [`NotationError`] if the text is not of the form, or a side has an animal twice.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::Position;
    /// let text = "3R2l/7/7/7/7/7/7/7/7 b 3 40";
    /// assert_eq!(Position::read(text)?.to_string(), text);
    /// # Ok::<(), jungle_referee::rules::NotationError>(())
    /// ```
    pub fn read(text: &str) -> Result<Position, NotationError> {
        let written = notation::parse(text)?;
        Position::place(&written).map_err(|piece| NotationError::Twice { piece })
    }

    /// The animal on a square, if there is one.
    #[must_use]
    #[inline]
    pub fn at(&self, square: Square) -> Option<Piece> {
        let cell = self.cells[byte_of(square)] >> nibble(square) & 15;
        let blue = u8::from(self.held[1].contains(square)) << 4;
        PIECES[usize::from((cell | blue) & 31)]
    }

    /// Where a side's animal stands, if it is on the board.
    #[must_use]
    #[inline]
    pub fn square_of(&self, side: Side, animal: Animal) -> Option<Square> {
        Square::from_index(self.squares[side.index()][animal.index()])
    }

    /// The squares that a side holds.
    #[must_use]
    #[inline]
    pub fn held_by(&self, side: Side) -> SquareSet {
        self.held[side.index()]
    }

    /// Whose turn it is.
    #[must_use]
    #[inline]
    pub fn side_to_move(&self) -> Side {
        self.side_to_move
    }

    /// Plies since the last capture, from 0.
    #[must_use]
    pub fn quiet_plies(&self) -> u32 {
        self.quiet_plies
    }

    /// The round, 1–9999: grows after Blue's move and stays at 9999.
    #[must_use]
    pub fn round(&self) -> u16 {
        self.round
    }

    /// Every animal with its square, from a1 to g9.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::Position;
    /// let position = Position::read("e6/7/7/7/7/7/7/7/6E r 0 1")?;
    /// let all: Vec<String> = position.pieces().map(|(s, p)| format!("{p} {s}")).collect();
    /// assert_eq!(all, ["Blue's elephant a9", "Red's elephant g1"]);
    /// # Ok::<(), jungle_referee::rules::NotationError>(())
    /// ```
    pub fn pieces(&self) -> impl Iterator<Item = (Square, Piece)> + '_ {
        let held = self.held[0].union(self.held[1]);
        held.iter().filter_map(|square| self.at(square).map(|piece| (square, piece)))
    }

    /// The same position seen from the other side: turned half round, the sides swapped.
    ///
    /// The counts stay. What a move is worth here, the turned move is worth there.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::Position;
    /// let position = Position::read("e6/7/7/7/7/7/7/7/5CE r 4 7")?;
    /// assert_eq!(position.turned().to_string(), "ec5/7/7/7/7/7/7/7/6E b 4 7");
    /// # Ok::<(), jungle_referee::rules::NotationError>(())
    /// ```
    #[must_use]
    pub fn turned(&self) -> Position {
        let mut turned = Position {
            quiet_plies: self.quiet_plies,
            round: self.round,
            side_to_move: self.side_to_move.opponent(),
            ..Position::EMPTY
        };
        for (square, piece) in self.pieces() {
            let side = piece.side.opponent();
            turned.put(square.turned(), Piece { side, ..piece });
        }
        turned
    }

    /// Whether the board shows a finished game: an animal in a den, or a side without animals.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::Position;
    /// assert!(Position::read("3R2l/7/7/7/7/7/7/7/7 b 0 1")?.is_finished());
    /// assert!(Position::read("2R3l/7/7/7/7/7/7/7/7 r 0 1").is_ok_and(|p| !p.is_finished()));
    /// # Ok::<(), jungle_referee::rules::NotationError>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn is_finished(&self) -> bool {
        Side::ALL
            .into_iter()
            .any(|side| self.held_by(side).is_empty() || self.held[0].union(self.held[1]).contains(side.den()))
    }

    /// Plays a move without judging it; returns what it took.
    ///
    /// From an empty square, or to the square it starts on, only the turn passes.
    #[inline]
    pub(super) fn make(&mut self, mv: Move) -> Option<Piece> {
        let mut taken = None;
        if let Some(piece) = self.at(mv.from)
            && mv.from != mv.to
        {
            taken = self.remove(mv.to);
            self.remove(mv.from);
            self.put(mv.to, piece);
        }
        self.quiet_plies = match taken {
            Some(_) => 0,
            None => self.quiet_plies.saturating_add(1),
        };
        if self.side_to_move == Side::Blue {
            self.round = self.round.saturating_add(1).min(LAST_ROUND);
        }
        self.side_to_move = self.side_to_move.opponent();
        taken
    }

    const EMPTY: Position = Position {
        cells: [0; 32],
        squares: [[ABSENT; 9]; 2],
        held: [SquareSet::EMPTY; 2],
        quiet_plies: 0,
        round: 1,
        side_to_move: Side::Red,
    };

    /// Sets up what was written; an animal that a side has twice is the error.
    fn place(written: &Written) -> Result<Position, Piece> {
        let mut position = Position {
            quiet_plies: written.quiet_plies,
            round: written.round,
            side_to_move: written.side_to_move,
            ..Position::EMPTY
        };
        for (square, piece) in written.pieces() {
            if position.square_of(piece.side, piece.animal).is_some() {
                return Err(piece);
            }
            position.put(square, piece);
        }
        Ok(position)
    }

    /// The reasons of section 1 that the text's form does not show, in their order.
    fn check_start(&self, ruleset: &Ruleset) -> Result<(), SetupError> {
        if let Some(side) = Side::ALL.into_iter().find(|s| self.held_by(*s).is_empty()) {
            return Err(SetupError::NoAnimals { side });
        }
        let swimmer = |(square, piece): &(Square, Piece)| square.is_river() && piece.animal != Animal::Rat;
        if let Some((square, piece)) = self.pieces().find(swimmer) {
            return Err(SetupError::InRiver { square, piece });
        }
        if let Some((square, piece)) = self.pieces().find(|(s, _)| s.den_of().is_some()) {
            return Err(SetupError::InDen { square, piece });
        }
        let limit = ruleset.no_capture_plies();
        if self.quiet_plies >= limit {
            let found = self.quiet_plies;
            return Err(SetupError::QuietPlies { found, limit });
        }
        if !judge::can_move(self, ruleset, self.side_to_move) {
            let side = self.side_to_move;
            return Err(SetupError::NoMove { side });
        }
        Ok(())
    }

    #[inline]
    fn put(&mut self, square: Square, piece: Piece) {
        let side = piece.side.index();
        self.cells[byte_of(square)] |= (piece.animal as u8 + 1) << nibble(square);
        self.squares[side][piece.animal.index()] = square.byte();
        self.held[side] = self.held[side].with(square);
    }

    #[inline]
    fn remove(&mut self, square: Square) -> Option<Piece> {
        let piece = self.at(square)?;
        let side = piece.side.index();
        self.cells[byte_of(square)] &= 0xf0 >> nibble(square);
        self.squares[side][piece.animal.index()] = ABSENT;
        self.held[side] = self.held[side].without(square);
        Some(piece)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&notation::write(self))
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Position(\"{self}\")")
    }
}

impl FromStr for Position {
    type Err = NotationError;

    /// The same as [`Position::read`].
    fn from_str(text: &str) -> Result<Position, NotationError> {
        Position::read(text)
    }
}

/// Where in its byte a square's cell begins.
#[inline]
const fn nibble(square: Square) -> u32 {
    if square.index().is_multiple_of(2) { 0 } else { 4 }
}

/// The byte of a square's cell.
#[inline]
const fn byte_of(square: Square) -> usize {
    (square.index() / 2) & 31
}

/// The piece of each cell, 16 more for Blue's.
static PIECES: [Option<Piece>; 32] = {
    let mut pieces = [None; 32];
    let mut index = 0;
    while index < 9 {
        let animal = Animal::ALL[index];
        let (red, blue) = (Side::Red, Side::Blue);
        pieces[index + 1] = Some(Piece { side: red, animal });
        pieces[index + 17] = Some(Piece { side: blue, animal });
        index += 1;
    }
    pieces
};

/// Why no game can be set up from a text: the first reason of section 1 that holds.
///
/// # Examples
/// ```
/// use jungle_referee::rules::{Position, Ruleset, SetupError, Side};
/// let error = Position::set_up("7/7/7/7/7/7/7/7/6E r 0 1", &Ruleset::YESHOU);
/// assert_eq!(error, Err(SetupError::NoAnimals { side: Side::Blue }));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetupError {
    /// The text is not of the form.
    Form(NotationError),
    /// A letter stands for an animal that the ruleset's ladder does not have.
    ForeignLetter {
        /// Where it is written.
        square: Square,
        /// What the letter stands for.
        piece: Piece,
        /// The ladder that does not have it.
        ladder: Ladder,
    },
    /// A side has an animal twice.
    Twice {
        /// The animal, and whose.
        piece: Piece,
    },
    /// A side has no animal at all.
    NoAnimals {
        /// The side.
        side: Side,
    },
    /// A land animal stands in the river.
    InRiver {
        /// The river square.
        square: Square,
        /// The animal.
        piece: Piece,
    },
    /// An animal stands in a den: the game would be over.
    InDen {
        /// The den.
        square: Square,
        /// The animal.
        piece: Piece,
    },
    /// The quiet plies have reached the draw.
    QuietPlies {
        /// The plies written.
        found: u32,
        /// The plies that draw.
        limit: u32,
    },
    /// The side to move has no move that sections 2–3 allow.
    NoMove {
        /// The side to move.
        side: Side,
    },
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetupError::Form(error) => write!(f, "{error}"),
            SetupError::ForeignLetter { square, piece, ladder } => write!(
                f,
                "the letter {} on {square} is a {}, which the ladder {} does not have",
                piece.letter(),
                piece.animal,
                ladder.name()
            ),
            SetupError::Twice { piece } => write!(f, "{piece} is on the board twice"),
            SetupError::NoAnimals { side } => write!(f, "{side} has no animal"),
            SetupError::InRiver { square, piece } => {
                write!(f, "{piece} stands in the river on {square}")
            }
            SetupError::InDen { square, piece } => {
                write!(f, "{piece} stands in the den on {square}")
            }
            // A count that is larger than any is read as the largest.
            SetupError::QuietPlies { found: u32::MAX, limit } => {
                write!(f, "{} or more plies without a capture have reached the draw at {limit}", u32::MAX)
            }
            SetupError::QuietPlies { found, limit } => {
                write!(f, "{found} plies without a capture have reached the draw at {limit}")
            }
            SetupError::NoMove { side } => write!(f, "{side} is to move and has no move"),
        }
    }
}

impl std::error::Error for SetupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SetupError::Form(error) => Some(error),
            SetupError::ForeignLetter { .. }
            | SetupError::Twice { .. }
            | SetupError::NoAnimals { .. }
            | SetupError::InRiver { .. }
            | SetupError::InDen { .. }
            | SetupError::QuietPlies { .. }
            | SetupError::NoMove { .. } => None,
        }
    }
}
