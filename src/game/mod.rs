//! One game from creation to outcome: pure, with `now` as an argument.
//!
//! [`decide()`] judges a [`Command`] against a [`Game`] and answers with an [`Event`] or a [`Refusal`];
//! [`Game::apply`] writes an event's facts down and cannot fail; [`Game::deadline`] says when time alone
//! will change the game. What a move may do is asked of [`crate::rules`]; who calls, where events are
//! kept and who is told lives in `runtime`.

mod clock;
mod code;
mod command;
mod decide;
mod event;
mod journal;
mod refusal;
mod settings;
mod state;

pub use clock::{ClockStart, Span, Time, TimeControl};
pub use code::{CodeError, decode_event, encode_event, move_digest};
pub use command::{Caller, Command, Request};
pub use decide::{ABSENCE_NOTICE, create, decide, resume};
pub use event::{AbortedBy, Ending, Event, Kind, Moved, OfferResult, Record};
pub use journal::{Cursor, Journal};
pub use refusal::Refusal;
pub use settings::{Creation, Marks, Settings, ruleset_hash};
pub use state::{Due, DueKind, Game, Offer, Status};
