//! Errors on the wire: one constructor a reason of `ErrorReason`, each with its status and details.

use std::collections::HashMap;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, PreconditionViolation, StatusExt as _};

use super::decode::Malformed;
use super::encode;
use super::proto::ErrorReason;
use crate::game::{Game, Refusal};
use crate::runtime::feed::WatchFault;
use crate::runtime::slot::WAITING_LIMIT;
use crate::runtime::{Cut, Fault, GameId};

const DOMAIN: &str = "jungle.v1";

/// How long a caller that met a limit, or a server on its way, does well to wait.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// An error on its way to the wire.
struct Draft {
    code: Code,
    reason: ErrorReason,
    message: String,
    metadata: HashMap<String, String>,
}

impl Draft {
    fn new(code: Code, reason: ErrorReason, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), metadata: HashMap::new() }
    }

    fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.metadata.insert(name.to_owned(), value.to_string());
        self
    }

    /// The state that a caller at the wrong moment needs to find its way.
    fn with_game(self, game: &Game) -> Self {
        self.with("ply", game.line().ply()).with("sequence", game.sequence())
    }

    fn details(&self) -> ErrorDetails {
        ErrorDetails::with_error_info(name(self.reason), DOMAIN, self.metadata.clone())
    }

    fn build(self) -> Status {
        let mut details = self.details();
        match self.code {
            Code::FailedPrecondition => {
                let violation = PreconditionViolation::new(name(self.reason), "game", self.message.clone());
                details.set_precondition_failure(vec![violation]);
            }
            Code::ResourceExhausted | Code::Unavailable => {
                details.set_retry_info(Some(RETRY_AFTER));
            }
            Code::Ok
            | Code::Cancelled
            | Code::Unknown
            | Code::InvalidArgument
            | Code::DeadlineExceeded
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::Aborted
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::Internal
            | Code::DataLoss
            | Code::Unauthenticated => {}
        }
        Status::with_error_details(self.code, self.message, details)
    }
}

/// The reason as an ErrorInfo carries it: without the prefix of the enum.
pub(super) fn name(reason: ErrorReason) -> &'static str {
    let name = reason.as_str_name();
    name.strip_prefix("ERROR_REASON_").unwrap_or(name)
}

/// A field cannot be read.
pub(super) fn malformed(malformed: &Malformed) -> Status {
    let Malformed { field, problem, facts } = malformed;
    let draft = Draft::new(Code::InvalidArgument, ErrorReason::InvalidField, malformed.to_string())
        .with("field", field)
        .with("problem", problem);
    let draft = facts.iter().fold(draft, |draft, (name, fact)| draft.with(name, fact));
    let mut details = draft.details();
    details.add_bad_request_violation(field, problem);
    Status::with_error_details(draft.code, draft.message, details)
}

fn request_id_reused() -> Status {
    let problem = "this request_id has already changed the game with another body; use a new one";
    let draft = Draft::new(Code::InvalidArgument, ErrorReason::RequestIdReused, format!("request_id: {problem}"))
        .with("field", "request_id")
        .with("problem", problem);
    let mut details = draft.details();
    details.add_bad_request_violation("request_id", problem);
    Status::with_error_details(draft.code, draft.message, details)
}

/// There is no such game, as far as the caller may know.
pub(super) fn no_such_game(id: GameId) -> Status {
    let message = format!("there is no game {id}, or it is private and not yours to see");
    Draft::new(Code::NotFound, ErrorReason::NoSuchGame, message).with("game_id", id).build()
}

/// The call needs a token or key, and none came.
pub(super) fn token_missing() -> Status {
    let message = "this call needs a token or key: send the metadata \"authorization: Bearer TOKEN\"";
    Draft::new(Code::Unauthenticated, ErrorReason::TokenMissing, message).build()
}

/// The token or key is not of this server.
pub(super) fn token_invalid() -> Status {
    let message = "the token or key in the metadata \"authorization\" was not issued by this server";
    Draft::new(Code::Unauthenticated, ErrorReason::TokenInvalid, message).build()
}

/// The token is of another game.
pub(super) fn token_of_other_game(id: GameId) -> Status {
    let message = format!("the token belongs to another game than {id}");
    Draft::new(Code::PermissionDenied, ErrorReason::TokenOfOtherGame, message).with("game_id", id).build()
}

/// The caller may not make this call.
pub(super) fn not_allowed(caller: &str, needed: &str) -> Status {
    let message = format!("{caller} may not make this call: it needs {needed}");
    Draft::new(Code::PermissionDenied, ErrorReason::NotAllowed, message)
        .with("caller", caller)
        .with("needed", needed)
        .build()
}

/// Why a command did not change the game.
pub(super) fn fault(id: GameId, fault: &Fault) -> Status {
    match fault {
        Fault::Refused { refusal, game, .. } => refused(refusal, game),
        Fault::RequestIdReused => request_id_reused(),
        Fault::NoSuchGame => no_such_game(id),
        Fault::StartOutOfRange => {
            malformed(&Malformed::new("clock_start.at", "must lie in the future, at most 366 days ahead"))
        }
        Fault::TooManyGames { limit } => {
            let message = format!("the server has its {limit} open games; try again later");
            Draft::new(Code::ResourceExhausted, ErrorReason::TooManyGames, message).with("limit", limit).build()
        }
        Fault::Busy { limit } => busy(*limit),
        Fault::TooManyWaiting => {
            let message = format!("{WAITING_LIMIT} calls of this seat wait to be judged already");
            Draft::new(Code::ResourceExhausted, ErrorReason::TooManyWaiting, message)
                .with("limit", WAITING_LIMIT)
                .build()
        }
        Fault::Stopping => stopping(),
        Fault::LogFailed => {
            let message = "the log could not be written; nothing was changed";
            Draft::new(Code::Unavailable, ErrorReason::LogFailed, message).build()
        }
        Fault::FateUnknown => {
            let message = "it is not known whether this was written; repeat with the same request_id";
            Draft::new(Code::Unavailable, ErrorReason::FateUnknown, message).build()
        }
        Fault::Internal => internal(),
    }
}

/// More calls are under way than the server takes upon itself.
pub(super) fn busy(limit: usize) -> Status {
    let message = format!("the server has more than {limit} calls under way; try again later");
    Draft::new(Code::ResourceExhausted, ErrorReason::ServerBusy, message).with("limit", limit).build()
}

fn stopping() -> Status {
    let message = "the server is stopping; come back";
    Draft::new(Code::Unavailable, ErrorReason::ServerStopping, message).build()
}

/// A fault of ours.
pub(super) fn internal() -> Status {
    Draft::new(Code::Internal, ErrorReason::InternalFault, "a fault of the server's own").build()
}

fn refused(refusal: &Refusal, game: &Game) -> Status {
    let precondition = |reason| Draft::new(Code::FailedPrecondition, reason, refusal.to_string()).with_game(game);
    match refusal {
        Refusal::GameOver(ending) => precondition(ErrorReason::GameOver)
            .with("outcome_reason", ending.outcome.reason.id())
            .with("winner", encode::winner_name(ending.outcome.winner))
            .build(),
        Refusal::NotStarted => precondition(ErrorReason::NotStarted).build(),
        Refusal::NotYourTurn { to_move } => {
            precondition(ErrorReason::NotYourTurn).with("side_to_move", encode::winner_name(Some(*to_move))).build()
        }
        Refusal::StalePly { expected, .. } => Draft::new(Code::Aborted, ErrorReason::StalePly, refusal.to_string())
            .with_game(game)
            .with("expected_ply", expected)
            .build(),
        Refusal::DrawsOff => precondition(ErrorReason::DrawsOff).build(),
        Refusal::NoOffer => precondition(ErrorReason::NoOffer).build(),
        Refusal::OfferOpen { by } => {
            precondition(ErrorReason::OfferOpen).with("offered_by", encode::winner_name(Some(*by))).build()
        }
        Refusal::AlreadyOffered { .. } => precondition(ErrorReason::AlreadyOffered).build(),
        // A verdict is an answer, and an unnoticed nothing is nobody's call.
        Refusal::Forbidden(_) | Refusal::Nothing => internal(),
    }
}

/// Why a watch cannot begin.
pub(super) fn watch_fault(id: GameId, after: u64, fault: &WatchFault) -> Status {
    match fault {
        WatchFault::NoSuchGame => no_such_game(id),
        WatchFault::BeyondHead { head } => {
            let message = format!("after_sequence {after} is beyond the last event, {head}");
            Draft::new(Code::OutOfRange, ErrorReason::BeyondHead, message)
                .with("after_sequence", after)
                .with("sequence", head)
                .build()
        }
        WatchFault::TooManyWatchers { limit } => {
            let message = format!("the game has its {limit} watchers; try again later");
            Draft::new(Code::ResourceExhausted, ErrorReason::TooManyWatchers, message).with("limit", limit).build()
        }
        WatchFault::Stopping => stopping(),
    }
}

/// The connection has its number of watches.
pub(super) fn too_many_watches(limit: usize) -> Status {
    let message = format!("this connection has its {limit} watches; open another connection");
    Draft::new(Code::ResourceExhausted, ErrorReason::TooManyWatches, message).with("limit", limit).build()
}

/// The server has its number of watches.
pub(super) fn too_many_watches_in_all(limit: usize) -> Status {
    let message = format!("the server has its {limit} watches; try again later");
    Draft::new(Code::ResourceExhausted, ErrorReason::ServerBusy, message).with("limit", limit).build()
}

/// Why a watch ends without an outcome.
pub(super) fn cut(cut: Cut) -> Status {
    match cut {
        Cut::Stopping { sequence } => {
            let message = format!("the server is stopping; come back after sequence {sequence}");
            Draft::new(Code::Unavailable, ErrorReason::ServerStopping, message).with("sequence", sequence).build()
        }
        Cut::Replaced { sequence } => {
            let limit = crate::runtime::feed::STREAMS_PER_SEAT;
            let message =
                format!("the seat opened more than {limit} streams; this, its oldest, ended after sequence {sequence}");
            Draft::new(Code::ResourceExhausted, ErrorReason::StreamReplaced, message)
                .with("limit", limit)
                .with("sequence", sequence)
                .build()
        }
    }
}
