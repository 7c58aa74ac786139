//! What may be asked of a game, and by whom.

use std::fmt;
use std::sync::Arc;

use crate::rules::{Move, Side};

/// Who asks. A request id belongs to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Caller {
    /// Whoever created the game, known by the creator's key.
    Creator,
    /// The player of a side.
    Seat(Side),
    /// The game's arbiter.
    Arbiter,
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Creator => "the creator",
            Self::Seat(Side::Red) => "red's seat",
            Self::Seat(Side::Blue) => "blue's seat",
            Self::Arbiter => "the arbiter",
        })
    }
}

/// A request id with a digest of the request it came with. Kept in the event that it caused, so that
/// a repeat is recognised for as long as the game is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// Who sent it.
    pub caller: Caller,
    /// The UUID.
    pub id: u128,
    /// A digest of the method and the body without the id.
    pub digest: u64,
}

/// What may be asked of a game. Creation is apart: see [`super::create`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A seat shows itself by any call with its token.
    Show(Side),
    /// A seat makes a move, perhaps with a draw offer.
    Move {
        /// Which seat.
        side: Side,
        /// The move.
        mv: Move,
        /// The ply it is meant for, if stated.
        expected_ply: Option<u32>,
        /// Whether to offer a draw with it.
        offer_draw: bool,
    },
    /// A seat offers a draw.
    OfferDraw(Side),
    /// A seat takes its draw offer back.
    TakeBackDraw(Side),
    /// A seat accepts the other's draw offer.
    AcceptDraw(Side),
    /// A seat declines the other's draw offer.
    DeclineDraw(Side),
    /// A seat leaves the game.
    Leave(Side),
    /// The arbiter or the creator calls the game off.
    Abort {
        /// True for the creator, false for the arbiter.
        by_creator: bool,
        /// Why, for the players to read.
        reason: Arc<str>,
    },
    /// A seat's first stream has opened.
    Arrive(Side),
    /// A seat's last stream has closed.
    Depart(Side),
    /// Time alone: whatever is due at `now` or before shall happen.
    Tick,
}
