//! A tower layer that counts calls and their errors, and sheds calls while too many are under way.
//!
//! Shed is what can wait: never a move, because only its game's queue knows whether it is its seat's first
//! of a ply (see [`Load`]); never a watch, which has limits of its own, and whose absence could cost a
//! seat its game; never health, nor reflection.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tonic::Status;
use tower::{Layer, Service};
use tracing::debug;

use super::status;
use super::tally::{CALLS, Tally, call_of, code_name, reason};
use crate::runtime::Load;
use crate::runtime::load::Place;

/// Counts calls, and sheds them.
#[derive(Clone, Debug)]
pub struct Calls {
    tally: Arc<Tally>,
    load: Arc<Load>,
}

impl Calls {
    /// Counts here, and sheds by this load.
    #[must_use]
    pub fn new(tally: Arc<Tally>, load: Arc<Load>) -> Self {
        Self { tally, load }
    }

    /// The call's place among those under way, if it needs one; or why it must wait.
    fn place(&self, call: usize) -> Result<Option<Place>, Status> {
        match CALLS.get(call) {
            None | Some(&"WatchGame") => Ok(None),
            Some(&"SubmitMove") => Ok(Some(self.load.take())),
            Some(_) => self.load.try_take().map(Some).ok_or_else(|| status::busy(self.load.most())),
        }
    }
}

impl<S> Layer<S> for Calls {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, calls: self.clone() }
    }
}

/// A service whose calls are counted.
#[derive(Clone, Debug)]
pub struct Counted<S> {
    inner: S,
    calls: Calls,
}

impl<S, A, B> Service<http::Request<A>> for Counted<S>
where
    S: Service<http::Request<A>, Response = http::Response<B>>,
    B: Default,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Call<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<A>) -> Self::Future {
        let call = call_of(request.uri().path());
        let tally = Arc::clone(&self.calls.tally);
        tally.calls[call].bump();
        let (turn, place) = match self.calls.place(call) {
            Ok(place) => (Turn::Answering { answer: self.inner.call(request) }, place),
            Err(busy) => (Turn::Shed { busy: Box::new(busy) }, None),
        };
        Call { turn, under_way: UnderWay { tally, answered: false, _place: place } }
    }
}

pin_project! {
    /// A call under way.
    #[derive(Debug)]
    pub struct Call<F> {
        #[pin]
        turn: Turn<F>,
        under_way: UnderWay,
    }
}

pin_project! {
    #[project = TurnPinned]
    #[derive(Debug)]
    enum Turn<F> {
        Answering { #[pin] answer: F },
        Shed { busy: Box<Status> },
    }
}

/// Counts a call that ends without an answer, and holds its place until it ends.
#[derive(Debug)]
struct UnderWay {
    tally: Arc<Tally>,
    answered: bool,
    _place: Option<Place>,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if !self.answered {
            self.tally.abandoned.bump();
        }
    }
}

impl<F, B, E> Future for Call<F>
where
    F: Future<Output = Result<http::Response<B>, E>>,
    B: Default,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let call = self.project();
        let answer = match call.turn.project() {
            TurnPinned::Answering { answer } => ready!(answer.poll(context)),
            TurnPinned::Shed { busy } => Ok(Status::clone(busy).into_http()),
        };
        call.under_way.answered = true;
        if let Ok(response) = &answer {
            call.under_way.tally.note(response.headers());
        }
        Poll::Ready(answer)
    }
}

impl Tally {
    /// Counts the error that an answer is, if it is one. The status of a good answer comes at its end.
    fn note(&self, headers: &http::HeaderMap) {
        let Some(status) = Status::from_header_map(headers) else { return };
        self.failed(&status);
        let reason = reason(&status).map_or("", status::name);
        debug!(code = code_name(status.code()), reason, "call refused");
    }
}
