//! A tower layer that gives each call a number, so that its log lines belong together.
//!
//! Nothing of a call's metadata goes into the log: tokens are never told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::task::futures::TaskLocalFuture;
use tower::{Layer, Service};
use tracing::instrument::Instrumented;
use tracing::{Instrument as _, Level, Span, enabled};

use super::tally::method;
use crate::runtime::call::Call;

/// Gives each call a number.
#[derive(Clone, Debug, Default)]
pub struct CallNumbers {
    calls: Arc<AtomicU64>,
}

impl<S> Layer<S> for CallNumbers {
    type Service = Numbered<S>;

    fn layer(&self, inner: S) -> Numbered<S> {
        Numbered { inner, calls: Arc::clone(&self.calls) }
    }
}

/// A service whose calls have numbers.
#[derive(Clone, Debug)]
pub struct Numbered<S> {
    inner: S,
    calls: Arc<AtomicU64>,
}

impl<S, B> Service<http::Request<B>> for Numbered<S>
where
    S: Service<http::Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Instrumented<TaskLocalFuture<Call, S::Future>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let call = Call { number, method: method(request.uri().path()) };
        // Who asks for the libraries' lines too gets a span about them all.
        let span = if enabled!(Level::DEBUG) { call.span() } else { Span::none() };
        call.answered_by(self.inner.call(request)).instrument(span)
    }
}
