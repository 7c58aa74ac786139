//! A tower layer that bounds what waits to be sent on each stream.
//!
//! HTTP/2 takes what a stream's window admits into a buffer of its own, before the socket takes it: with a
//! client that opens its windows wide and reads nothing, hundreds of kilobytes a stream. Here a stream's
//! next message is asked for only once enough of the earlier ones has gone to the socket, so that a
//! watcher that does not read waits in its game's log, where waiting costs nothing.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower::{Layer, Service};

use super::tally::{CALLS, call_of};

/// How much of a stream may wait to be sent when more is asked for, in bytes. What is then asked for may
/// come on top of it: one buffer of messages, of 32 KiB and a message at most.
pub const MOST_WAITING: usize = 16 * 1024;

/// Bounds what waits to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace;

impl<S> Layer<S> for Pace {
    type Service = Paced<S>;

    fn layer(&self, inner: S) -> Paced<S> {
        Paced { inner }
    }
}

/// A service whose responses are paced.
#[derive(Clone, Debug)]
pub struct Paced<S> {
    inner: S,
}

impl<S, A, B> Service<http::Request<A>> for Paced<S>
where
    S: Service<http::Request<A>, Response = http::Response<B>>,
{
    type Response = http::Response<PacedBody<B>>;
    type Error = S::Error;
    type Future = PacedResponse<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<A>) -> Self::Future {
        // Only streams are long enough to wait; other answers are one message.
        let is_stream = CALLS.get(call_of(request.uri().path())).is_none_or(|call| *call == "WatchGame");
        PacedResponse { response: self.inner.call(request), is_stream }
    }
}

pin_project! {
    /// A response whose body will be paced, if it is a stream.
    #[derive(Debug)]
    pub struct PacedResponse<F> {
        #[pin]
        response: F,
        is_stream: bool,
    }
}

impl<F, B, E> Future for PacedResponse<F>
where
    F: Future<Output = Result<http::Response<B>, E>>,
{
    type Output = Result<http::Response<PacedBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let paced = self.project();
        let response = ready!(paced.response.poll(context))?;
        let waiting = paced.is_stream.then(Arc::default);
        Poll::Ready(Ok(response.map(|inner| PacedBody { inner, waiting })))
    }
}

/// A body that gives no more while too much of it waits to be sent.
#[derive(Debug)]
pub struct PacedBody<B> {
    inner: B,
    /// `None` where there is nothing to pace.
    waiting: Option<Arc<Waiting>>,
}

impl<B: Body<Data = Bytes> + Unpin> Body for PacedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(waiting) = self.waiting.clone() else {
            return Pin::new(&mut self.inner).poll_frame(context);
        };
        if waiting.is_too_much() {
            waiting.sent.register(context.waker());
            // What was sent before the registration woke nobody.
            if waiting.is_too_much() {
                return Poll::Pending;
            }
        }
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(|bytes| waiting.add(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// How much of a stream waits to be sent.
#[derive(Debug, Default)]
struct Waiting {
    bytes: AtomicUsize,
    sent: AtomicWaker,
}

impl Waiting {
    fn is_too_much(&self) -> bool {
        self.bytes.load(Ordering::Acquire) >= MOST_WAITING
    }

    /// Counts these bytes until the connection has sent them, or dropped them.
    fn add(self: &Arc<Self>, bytes: Bytes) -> Bytes {
        self.bytes.fetch_add(bytes.len(), Ordering::AcqRel);
        Bytes::from_owner(Piece { bytes, of: Arc::clone(self) })
    }
}

/// Bytes that wait to be sent.
struct Piece {
    bytes: Bytes,
    of: Arc<Waiting>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let before = self.of.bytes.fetch_sub(self.bytes.len(), Ordering::AcqRel);
        if before >= MOST_WAITING {
            self.of.sent.wake();
        }
    }
}
