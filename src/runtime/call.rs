//! The call that is being answered, so that the lines of the log that it causes carry its number.
//!
//! A span for each call would cost more than judging a move. So the call is noted beside its task, and its
//! span is made for the few lines that are written.

use std::future::Future;

use tokio::task::futures::TaskLocalFuture;
use tracing::{Span, info_span};

tokio::task_local! {
    static CALL: Call;
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Which of this run of the server it is, from 1.
    pub number: u64,
    /// Its method.
    pub method: &'static str,
}

impl Call {
    /// The work that answers this call.
    pub fn answered_by<F: Future>(self, work: F) -> TaskLocalFuture<Self, F> {
        CALL.scope(self, work)
    }

    /// The call that is being answered here, if it is one.
    #[must_use]
    pub fn here() -> Option<Self> {
        CALL.try_with(|call| *call).ok()
    }

    /// The span of its lines.
    #[must_use]
    pub fn span(self) -> Span {
        let Self { number, method } = self;
        info_span!("call", number, method)
    }
}

/// Writes a line of the log as one of a call, unless the call's span is about it already.
pub fn of_call(call: Option<Call>, line: impl FnOnce()) {
    match call {
        Some(call) if Span::current().is_none() => call.span().in_scope(line),
        Some(_) | None => line(),
    }
}
