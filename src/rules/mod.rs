//! The rules of Dou Shou Qi: pure functions over small values, std only.
//!
//! Here lives everything that can be said of a board without a clock, a player or
//! a network. Games, time and offers live elsewhere and name this module; it
//! names nobody. Nothing in here panics, whatever it is given.
//!
//! Reading order: `square`, `animal`, `terrain` (what there is); `ruleset` (what
//! can differ); `position`, `notation` (a board, and its text); `movement`,
//! `capture`, `repetition` (the rules, sections 2–4); `judge` (who puts them in
//! order); `violation`, `outcome` (what it says). "Section" is a section of the
//! rules, and upper-case ids such as `JUMP_BLOCKED` name single rules of them.
//!
//! # Examples
//! A game in six lines:
//! ```
//! use jungle_referee::rules::{Line, Position, Preset, Side};
//! let ruleset = Preset::find("yeshou").expect("the default preset").ruleset;
//! let mut line = Line::new(Position::start(&ruleset), ruleset);
//! let mv = line.legal_moves().moves[0].mv;
//! line.judge(mv).expect("a move of the list");
//! line.advance(mv);
//! assert_eq!(line.ending(Side::Red), None);
//! ```

mod animal;
mod capture;
mod judge;
mod movement;
mod notation;
mod outcome;
mod position;
mod repetition;
mod ruleset;
mod square;
mod terrain;
mod violation;

pub use animal::{Animal, Piece, Side};
pub use judge::{Allowed, Candidate, LegalMove, LegalMoves, Line, perft};
pub use movement::{Move, MoveError};
pub use notation::NotationError;
pub use outcome::{Outcome, Reason};
pub use position::{Position, SetupError};
pub use ruleset::{JumpBlockers, Ladder, PRESETS, Preset, Ruleset, SwitchError, TigerJump};
pub use square::{FILES, RANKS, Square, SquareError, SquareSet, Squares};
pub use terrain::{Axis, JumpLine, Terrain};
pub use violation::{Entries, Rule, Violation};
