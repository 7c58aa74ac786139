//! A tower layer that gives each call a number and a span, so that its log lines belong together.
//!
//! Nothing of a call's metadata goes into the span: tokens are never logged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tower::{Layer, Service};
use tracing::instrument::Instrumented;
use tracing::{Instrument as _, info_span};

/// Gives each call a number and a span.
#[derive(Clone, Debug, Default)]
pub struct CallSpans {
    calls: Arc<AtomicU64>,
}

impl<S> Layer<S> for CallSpans {
    type Service = CallSpan<S>;

    fn layer(&self, inner: S) -> CallSpan<S> {
        CallSpan { inner, calls: Arc::clone(&self.calls) }
    }
}

/// A service whose calls have spans.
#[derive(Clone, Debug)]
pub struct CallSpan<S> {
    inner: S,
    calls: Arc<AtomicU64>,
}

impl<S, B> Service<http::Request<B>> for CallSpan<S>
where
    S: Service<http::Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Instrumented<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let span = info_span!("call", number, method = request.uri().path());
        self.inner.call(request).instrument(span)
    }
}
