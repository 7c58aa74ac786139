//! Moves, and the rules of movement: section 2.
//!
//! Here lives how an animal gets from one square to another: `STEP`, `RIVER`,
//! `JUMP`, `JUMP_BLOCKED`, `OWN_DEN`, `OWN_PIECE`, in that order. What it may
//! take there lives in `capture`, repetition in `repetition`.

use std::fmt;
use std::str::FromStr;

use super::animal::{Animal, Piece, Side};
use super::position::Position;
use super::ruleset::{JumpBlockers, Ruleset, TigerJump};
use super::square::Square;
use super::terrain::{Axis, JumpLine, Way, way};
use super::violation::Violation;

/// One move as it is written: from a square to a square. Any two squares make one.
///
/// # Examples
/// ```
/// use jungle_referee::rules::Move;
/// let jump: Move = "b3b7".parse()?;
/// assert_eq!((jump.from.to_string(), jump.to.to_string()), ("b3".into(), "b7".into()));
/// assert_eq!(jump.to_string(), "b3b7");
/// # Ok::<(), jungle_referee::rules::MoveError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Move {
    /// Where the animal stands.
    pub from: Square,
    /// Where it is to go.
    pub to: Square,
}

impl Move {
    /// The same move seen from the other side of the board.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::Move;
    /// assert_eq!("a3a4".parse::<Move>()?.turned().to_string(), "g7g6");
    /// # Ok::<(), jungle_referee::rules::MoveError>(())
    /// ```
    #[must_use]
    pub const fn turned(self) -> Move {
        Move { from: self.from.turned(), to: self.to.turned() }
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.from, self.to)
    }
}

impl fmt::Debug for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no move: a move is two squares, four bytes in all.
///
/// # Examples
/// ```
/// use jungle_referee::rules::Move;
/// let error = "g3--".parse::<Move>().unwrap_err();
/// assert_eq!(error.to_string(), "a move is two squares from a1 to g9, such as a3a4");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct MoveError;

impl fmt::Display for MoveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a move is two squares from a1 to g9, such as a3a4")
    }
}

impl std::error::Error for MoveError {}

impl FromStr for Move {
    type Err = MoveError;

    fn from_str(text: &str) -> Result<Move, MoveError> {
        let (from, to) = text.split_at_checked(2).ok_or(MoveError)?;
        Ok(Move { from: from.parse().map_err(|_| MoveError)?, to: to.parse().map_err(|_| MoveError)? })
    }
}

/// Judges how `piece`, standing on the move's from-square, gets to its to-square (section 2).
#[inline]
pub(super) fn check(position: &Position, ruleset: &Ruleset, piece: Piece, mv: Move) -> Result<(), Violation> {
    let Move { from, to } = mv;
    match way(from, to) {
        Way::Nowhere => return Err(Violation::Step { piece, from, to }),
        Way::Step if to.is_river() && piece.animal != Animal::Rat => {
            return Err(Violation::River { piece, from, to });
        }
        Way::Step => {}
        Way::Jump(line) => check_jump(position, ruleset, piece, line)?,
    }
    if to == piece.side.den() {
        return Err(Violation::OwnDen { piece, from, to });
    }
    match position.at(to) {
        Some(other) if other.side == piece.side => {
            let standing = other.animal;
            Err(Violation::OwnPiece { piece, from, to, standing })
        }
        Some(_) | None => Ok(()),
    }
}

/// `JUMP`: may it jump along this line; `JUMP_BLOCKED`: is a rat in the way.
#[inline]
fn check_jump(position: &Position, ruleset: &Ruleset, piece: Piece, line: &JumpLine) -> Result<(), Violation> {
    let &JumpLine { from, to, .. } = line;
    if !jumps(ruleset, piece.animal, line.axis) {
        return Err(Violation::Jump { piece, from, to });
    }
    let rats = [
        blocker(position, ruleset, piece.side, Side::Red, line),
        blocker(position, ruleset, piece.side, Side::Blue, line),
    ];
    if rats == [None, None] { Ok(()) } else { Err(Violation::JumpBlocked { piece, from, to, rats }) }
}

/// Whether this animal jumps at all, and along this axis (`JUMP`, switch `tiger_jump`).
#[inline]
fn jumps(ruleset: &Ruleset, animal: Animal, axis: Axis) -> bool {
    match animal {
        Animal::Lion => true,
        Animal::Tiger => match ruleset.tiger_jump {
            TigerJump::Both => true,
            TigerJump::AcrossOnly => axis == Axis::Rank,
        },
        Animal::Elephant | Animal::Leopard | Animal::Wolf | Animal::Fox | Animal::Dog | Animal::Cat | Animal::Rat => {
            false
        }
    }
}

/// Where the rat of `owner` forbids `jumper` this jump, if it does (switch `jump_blockers`).
#[inline]
fn blocker(position: &Position, ruleset: &Ruleset, jumper: Side, owner: Side, line: &JumpLine) -> Option<Square> {
    let blocks = match ruleset.jump_blockers {
        JumpBlockers::AnyRat => true,
        JumpBlockers::EnemyRat => owner != jumper,
    };
    position.square_of(owner, Animal::Rat).filter(|rat| blocks && line.over.contains(*rat))
}
