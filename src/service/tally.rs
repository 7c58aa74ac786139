//! What the service counts of its connections and calls: plain numbers, bumped without a lock.

use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::proto::ErrorReason;
use crate::runtime::gauges::{Count, Level};

/// Names the calls of the contract once: by themselves, and as paths.
macro_rules! calls {
    ($($name:literal),*) => {
        /// The calls of the contract, in its order.
        pub const CALLS: [&str; 11] = [$($name),*];
        /// Their paths.
        const METHODS: [&str; CALLS.len()] = [$(concat!("/jungle.v1.RefereeService/", $name)),*];
    };
}

calls!(
    "NewGame",
    "GetGame",
    "ListGames",
    "ListRulesets",
    "LegalMoves",
    "SubmitMove",
    "OfferDraw",
    "AnswerDraw",
    "LeaveGame",
    "AbortGame",
    "WatchGame"
);

/// The place of a path among [`CALLS`]; their number if it is none of them.
#[must_use]
pub fn call_of(path: &str) -> usize {
    // Most differ in length: no need to compare what all begin with.
    METHODS.iter().position(|method| method.len() == path.len() && *method == path).unwrap_or(CALLS.len())
}

/// The path of a call of the contract; all others are named alike.
#[must_use]
pub fn method(path: &str) -> &'static str {
    METHODS.get(call_of(path)).copied().unwrap_or("another service's")
}

/// How many status codes there are.
const CODES: usize = 17;

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// One of its ends closed it, or it broke.
    Ended,
    /// The client did not greet in time.
    NoGreeting,
    /// The two ends could not agree on TLS.
    NoHandshake,
    /// The server left.
    ServerLeft,
}

impl Closed {
    /// Every reason.
    pub const ALL: [Self; 4] = [Self::Ended, Self::NoGreeting, Self::NoHandshake, Self::ServerLeft];

    /// The reason in a word.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::NoGreeting => "no_greeting",
            Self::NoHandshake => "no_handshake",
            Self::ServerLeft => "server_left",
        }
    }
}

/// What the service counts. All counts begin at zero with the server's start.
#[derive(Debug)]
pub struct Tally {
    /// Connections that are open now.
    pub open: Level,
    /// Connections that were taken.
    pub opened: Count,
    /// Connections that were closed at once, because the most that may be open were.
    pub surplus: Count,
    /// Connections that could not be taken, for want of file descriptors for example.
    pub untaken: Count,
    /// Connections that ended, by [`Closed`].
    pub closed: [Count; Closed::ALL.len()],
    /// Calls by name, in the order of [`CALLS`]; at the end all others.
    pub calls: [Count; CALLS.len() + 1],
    /// Calls that ended before their answer: the caller left, or time was up.
    pub abandoned: Count,
    /// Errors by code, and in each code by reason.
    errors: Vec<Vec<Count>>,
}

impl Default for Tally {
    fn default() -> Self {
        let reasons = (0..).take_while(|number| ErrorReason::is_valid(*number)).count();
        let of_a_code = || (0..reasons).map(|_| Count::default()).collect();
        Self {
            open: Level::default(),
            opened: Count::default(),
            surplus: Count::default(),
            untaken: Count::default(),
            closed: Default::default(),
            calls: Default::default(),
            abandoned: Count::default(),
            errors: (0..CODES).map(|_| of_a_code()).collect(),
        }
    }
}

impl Tally {
    /// A call was answered with an error.
    pub fn failed(&self, status: &Status) {
        let reason = reason(status).map_or(0, |reason| reason as usize);
        let of_code = self.errors.get(status.code() as usize);
        if let Some(count) = of_code.and_then(|reasons| reasons.get(reason)) {
            count.bump();
        }
    }

    /// The errors that there were: code, reason (empty if the library made it), how many.
    pub fn errors(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        let codes = self.errors.iter().zip(0..);
        let all = codes.flat_map(|(reasons, code)| reasons.iter().zip(0..).map(move |(count, r)| (code, r, count)));
        all.filter(|(.., count)| count.read() > 0).map(|(code, reason, count)| {
            let reason = ErrorReason::try_from(reason).ok().filter(|reason| *reason != ErrorReason::Unspecified);
            (code_name(Code::from_i32(code)), reason.map_or("", super::status::name), count.read())
        })
    }
}

/// The reason that the service itself gave for an error.
pub(super) fn reason(status: &Status) -> Option<ErrorReason> {
    let info = status.get_details_error_info()?;
    ErrorReason::from_str_name(&format!("ERROR_REASON_{}", info.reason))
}

/// The code as the documents of gRPC name it.
pub(super) const fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
