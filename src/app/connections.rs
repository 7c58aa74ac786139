//! Clients' connections: how they are taken, how many there may be, and how they end when the server does.
//!
//! Nothing is waited for between two connections: where they are encrypted, each makes its handshake by
//! itself, within the time that its client has to greet.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::stream::{self, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, TlsAcceptor};
use tonic::transport::server::Connected;
use tracing::{debug, warn};

use super::batched::Batched;
use super::seldom::Seldom;
use crate::runtime::Clock;
use crate::service::ConnectionInfo;
use crate::service::tally::{Closed, Tally};

/// How many bytes an HTTP/2 client greets with, before which nothing can be told it.
const GREETING: usize = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len();

/// How long after an error the next connection is taken.
const AFTER_ERROR: Duration = Duration::from_millis(10);

/// How connections are kept.
pub(super) struct Rules {
    /// How many may be open.
    pub(super) most: usize,
    /// How long one may stay without its client's greeting, the handshake of its encryption included.
    pub(super) greeting_within: Duration,
    /// How they are encrypted; `None` if they are not.
    pub(super) tls: Option<TlsAcceptor>,
    /// Turns true when the server begins to stop. Once its sender is gone, all connections end.
    pub(super) stopping: watch::Receiver<bool>,
    /// Where they are counted.
    pub(super) tally: Arc<Tally>,
    /// What dates the log's few lines.
    pub(super) clock: Arc<dyn Clock>,
}

/// What takes connections.
struct Door {
    listener: TcpListener,
    places: Arc<Semaphore>,
    rules: Rules,
    surplus: Seldom,
    untaken: Seldom,
}

/// The connections as they come, each with its place among the most that may be open.
pub(super) fn connections(listener: TcpListener, rules: Rules) -> impl Stream<Item = io::Result<Batched<Connection>>> {
    let places = Arc::new(Semaphore::new(rules.most.min(Semaphore::MAX_PERMITS)));
    let (surplus, untaken) = (Seldom::new(Arc::clone(&rules.clock)), Seldom::new(Arc::clone(&rules.clock)));
    let door = Door { listener, places, rules, surplus, untaken };
    stream::unfold(door, |mut door| async move { Some((Ok(Batched::new(door.next().await)), door)) })
}

impl Door {
    async fn next(&mut self) -> Connection {
        loop {
            tokio::select! {
                taken = self.listener.accept() => match taken {
                    Ok((stream, _)) => match Arc::clone(&self.places).try_acquire_owned() {
                        Ok(place) => return Connection::new(stream, place, &self.rules),
                        Err(_) => {
                            self.rules.tally.surplus.bump();
                            self.surplus.note(tell_surplus);
                        }
                    },
                    // Out of file descriptors, or a client gone before it was taken: the listener lives on.
                    Err(error) => {
                        self.rules.tally.untaken.bump();
                        self.untaken.note(|many| tell_untaken(many, &error));
                        tokio::time::sleep(AFTER_ERROR).await;
                    }
                },
                () = self.surplus.untold() => self.surplus.tell(tell_surplus),
            }
        }
    }
}

fn tell_surplus(many: u64) {
    warn!(many, "connections were closed: the most that may be open are");
}

fn tell_untaken(many: u64, error: &io::Error) {
    warn!(many, %error, "connections could not be taken");
}

/// A client's connection.
pub(super) struct Connection {
    wire: Wire,
    info: ConnectionInfo,
    greeting: Option<Greeting>,
    over: Moment,
    closed: Closed,
    tally: Arc<Tally>,
    _place: OwnedSemaphorePermit,
}

/// What goes over a connection: as it is, encrypted, or encrypted soon.
enum Wire {
    Plain(TcpStream),
    Shaking(Box<Accept<TcpStream>>),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Both directions of an open wire.
trait Duplex: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

impl Wire {
    /// The wire once it is open.
    fn poll_open(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Pin<&mut dyn Duplex>>> {
        if let Self::Shaking(shaking) = self {
            let open = ready!(Pin::new(&mut **shaking).poll(context))?;
            *self = Self::Tls(Box::new(open));
        }
        match self {
            Self::Plain(stream) => Poll::Ready(Ok(Pin::new(stream))),
            Self::Tls(stream) => Poll::Ready(Ok(Pin::new(&mut **stream))),
            Self::Shaking(_) => Poll::Pending,
        }
    }
}

/// A greeting that has not come whole yet.
struct Greeting {
    missing: usize,
    given_up: Moment,
}

/// Something that will have happened, and then has.
struct Moment(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl Moment {
    fn of(coming: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Some(Box::pin(coming)))
    }

    fn has_come(&mut self, context: &mut Context<'_>) -> bool {
        if self.0.as_mut().is_some_and(|coming| coming.as_mut().poll(context).is_ready()) {
            self.0 = None;
        }
        self.0.is_none()
    }
}

impl Connection {
    fn new(stream: TcpStream, place: OwnedSemaphorePermit, rules: &Rules) -> Self {
        // Small messages must not wait for one another; a socket that is gone shows at its first read.
        let _ = stream.set_nodelay(true);
        let (mut stopping, mut over, patience) =
            (rules.stopping.clone(), rules.stopping.clone(), rules.greeting_within);
        // Who has not greeted cannot be told to leave, so its connection must not outlast the stop.
        let given_up = Moment::of(async move {
            // Silence for too long, the stop, and the end of all are one and the same here.
            let _ = tokio::time::timeout(patience, stopping.wait_for(|stopping| *stopping)).await;
        });
        let over = Moment::of(async move { while over.changed().await.is_ok() {} });
        rules.tally.opened.bump();
        rules.tally.open.up();
        Self {
            wire: match &rules.tls {
                None => Wire::Plain(stream),
                Some(tls) => Wire::Shaking(Box::new(tls.accept(stream))),
            },
            info: ConnectionInfo::default(),
            greeting: Some(Greeting { missing: GREETING, given_up }),
            over,
            closed: Closed::Ended,
            tally: Arc::clone(&rules.tally),
            _place: place,
        }
    }

    /// Does something on the wire once it is open. A wait for the client is cut short by the end of all,
    /// and before its greeting by the end of patience.
    fn poll_wire<T>(
        &mut self,
        context: &mut Context<'_>,
        what: impl FnOnce(Pin<&mut dyn Duplex>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let done = match self.wire.poll_open(context) {
            Poll::Ready(Ok(wire)) => what(wire, context),
            Poll::Ready(Err(error)) => {
                debug!(%error, "no handshake");
                return self.close(Closed::NoHandshake, error.kind());
            }
            Poll::Pending => Poll::Pending,
        };
        if done.is_pending() {
            let given_up = self.greeting.as_mut().is_some_and(|greeting| greeting.given_up.has_come(context));
            if given_up {
                return self.close(Closed::NoGreeting, io::ErrorKind::TimedOut);
            }
            if self.over.has_come(context) {
                return self.close(Closed::ServerLeft, io::ErrorKind::ConnectionAborted);
            }
        }
        done
    }

    fn close<T>(&mut self, closed: Closed, error: io::ErrorKind) -> Poll<io::Result<T>> {
        self.closed = closed;
        Poll::Ready(Err(error.into()))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.tally.open.down();
        self.tally.closed[self.closed as usize].bump();
    }
}

impl Connected for Connection {
    type ConnectInfo = ConnectionInfo;

    fn connect_info(&self) -> ConnectionInfo {
        self.info.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = self.poll_wire(context, |wire, context| wire.poll_read(context, buf));
        if let Some(greeting) = &mut self.greeting {
            greeting.missing = greeting.missing.saturating_sub(buf.filled().len() - before);
            if greeting.missing == 0 {
                self.greeting = None;
            }
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_wire(context, |wire, context| wire.poll_write(context, buf))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_wire(context, |wire, context| wire.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_wire(context, |wire, context| wire.poll_shutdown(context))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_wire(context, |wire, context| wire.poll_write_vectored(context, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        // Both a socket and an encrypted stream are.
        true
    }
}
