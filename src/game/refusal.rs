//! Why a command changes nothing.

use std::fmt;

use super::event::Ending;
use crate::rules::{Side, Violation};

/// Why a command changes nothing: the wrong moment, or a move that the rules forbid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The game has ended.
    GameOver(Ending),
    /// The game has not started.
    NotStarted,
    /// It is the other side's turn.
    NotYourTurn {
        /// Whose turn it is.
        to_move: Side,
    },
    /// The stated ply is not the current one.
    StalePly {
        /// What was stated.
        expected: u32,
        /// What is.
        ply: u32,
    },
    /// The rules forbid the move.
    Forbidden(Violation),
    /// The ruleset has no agreed draws.
    DrawsOff,
    /// There is no offer to answer or to take back.
    NoOffer,
    /// An offer is open.
    OfferOpen {
        /// Who made it.
        by: Side,
    },
    /// The side has already made its one offer of this ply.
    AlreadyOffered {
        /// The ply.
        ply: u32,
    },
    /// Nothing is due, or nothing new: nobody is told.
    Nothing,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GameOver(ending) => match ending.outcome.winner {
                Some(side) => write!(f, "the game is over: {side} won ({})", ending.outcome.reason.id()),
                None => write!(f, "the game is over: {}", ending.outcome.reason.id()),
            },
            Self::NotStarted => f.write_str("the game has not started"),
            Self::NotYourTurn { to_move } => write!(f, "it is {to_move}'s turn"),
            Self::StalePly { expected, ply } => {
                write!(f, "the move is meant for ply {expected}, but the game is at ply {ply}")
            }
            Self::Forbidden(violation) => violation.fmt(f),
            Self::DrawsOff => f.write_str("the ruleset of this game has no agreed draws"),
            Self::NoOffer => f.write_str("there is no open draw offer of that side"),
            Self::OfferOpen { by } => write!(f, "{by}'s draw offer is open"),
            Self::AlreadyOffered { ply } => {
                write!(f, "the side has already made its one draw offer of ply {ply}")
            }
            Self::Nothing => f.write_str("nothing has changed"),
        }
    }
}
