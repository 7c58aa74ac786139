//! What happened: the facts that a later reader needs to retell the game without asking the rules again.

use std::sync::Arc;

use super::clock::{ClockStart, Span, Time};
use super::command::Request;
use super::settings::{Creation, Marks};
use crate::rules::{Animal, Move, Outcome, Side, Violation};

/// One change of a game.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it happened: a command's arrival, or the moment that the clock says.
    pub at: Time,
    /// What happened.
    pub kind: Kind,
    /// How the game ended, in the last event and no other.
    pub ending: Option<Ending>,
    /// The request that caused it, if it carried an id.
    pub request: Option<Request>,
}

impl Event {
    /// What the game is found by, if this is its creation.
    #[must_use]
    pub fn marks(&self) -> Option<&Marks> {
        let Kind::Created(creation) = &self.kind else { return None };
        Some(&creation.marks)
    }
}

/// An event as the log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// 1, 2, 3 … without gaps.
    pub sequence: u64,
    /// When the log had it: from here on the next clock runs.
    pub written: Time,
    /// The event.
    pub event: Event,
}

impl Record {
    /// Since when a clock has been running after it, if one had been running since `since` before it. In a
    /// game that is `timed` there is one from the start on, the side to move's.
    pub(super) fn clock_after(&self, timed: bool, since: Option<Time>) -> Option<Time> {
        let starts = timed.then_some(self.written);
        match &self.event.kind {
            Kind::Created(creation) if creation.settings.clock_start == ClockStart::AtCreation => starts,
            Kind::SeatShown { starts: true, .. } | Kind::Started | Kind::Moved(_) => starts,
            // A fresh allowance runs from the expiry itself, whenever it was noticed.
            Kind::TimeExpired(_) => Some(self.event.at),
            Kind::Resumed { down_since } => {
                let down = self.written.since(*down_since);
                // A clock that was started later than the last sign of life has lost less.
                since.map(|since| (since + down).min(self.written.max(since)))
            }
            Kind::Created(_)
            | Kind::SeatShown { starts: false, .. }
            | Kind::Refused { .. }
            | Kind::DrawOffered(_)
            | Kind::DrawTakenBack(_)
            | Kind::DrawDeclined(_)
            | Kind::DrawAccepted(_)
            | Kind::SeatLeft(_)
            | Kind::SeatAway(_)
            | Kind::SeatReturned(_)
            | Kind::AwayExpired(_)
            | Kind::Aborted(_) => since,
        }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The game was created.
    Created(Arc<Creation>),
    /// A seat has shown itself; the second to do so starts the game.
    SeatShown {
        /// Which seat.
        side: Side,
        /// Whether it was the second.
        starts: bool,
    },
    /// The given start time has come.
    Started,
    /// A move was accepted.
    Moved(Moved),
    /// A move was refused, in a game that counts refusals.
    Refused {
        /// Who tried.
        side: Side,
        /// What was tried.
        mv: Move,
        /// Why it was refused.
        violation: Box<Violation>,
    },
    /// The side ran out of time; if the game goes on, it has a fresh allowance from the event's time.
    TimeExpired(Side),
    /// A draw was offered apart from a move.
    DrawOffered(Side),
    /// The open offer was taken back by its maker.
    DrawTakenBack(Side),
    /// The open offer was declined.
    DrawDeclined(Side),
    /// The open offer was accepted.
    DrawAccepted(Side),
    /// A seat left.
    SeatLeft(Side),
    /// A seat has been absent long enough for its countdown to start.
    SeatAway(Side),
    /// A seat whose countdown ran is back.
    SeatReturned(Side),
    /// A seat's countdown has run out.
    AwayExpired(Side),
    /// The game was called off; the reason is in the ending.
    Aborted(AbortedBy),
    /// The server is back after it was down: the time between is charged to nobody.
    Resumed {
        /// Its last sign of life. Clocks stood still from here until this event was written.
        down_since: Time,
    },
}

/// A move that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Who moved.
    pub side: Side,
    /// The move.
    pub mv: Move,
    /// What it took.
    pub captured: Option<Animal>,
    /// Whether the bars were waived.
    pub waived: bool,
    /// What the mover's clock is charged, grace apart.
    pub charged: Span,
    /// How much of the grace was used.
    pub grace_used: Span,
    /// What became of a draw offer with it.
    pub offer: OfferResult,
}

/// What became of a draw offer that came with a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferResult {
    /// None was asked for.
    NotAsked,
    /// It stands.
    Made,
    /// The ruleset has no agreed draws.
    DrawsOff,
    /// An offer was already open.
    OfferOpen,
    /// The side had already made its one offer of this ply.
    AlreadyOffered,
    /// The move ended the game.
    GameOver,
}

/// Who called a game off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbortedBy {
    /// The arbiter.
    Arbiter,
    /// The creator.
    Creator,
    /// The service, because a window or limit passed.
    Service,
}

/// How a game ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Winner, reason, and whether it scores.
    pub outcome: Outcome,
    /// For an aborted game: why.
    pub abort_reason: Option<Arc<str>>,
}
