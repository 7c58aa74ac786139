//! Clients' connections: how they are taken, how many there may be, and how they end when the server does.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{self, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tonic::transport::server::Connected;
use tracing::warn;

use crate::service::ConnectionInfo;

/// How many bytes an HTTP/2 client greets with, before which nothing can be told it.
const GREETING: usize = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len();

/// How long after an error the next connection is taken.
const AFTER_ERROR: Duration = Duration::from_millis(10);

/// How connections are kept.
pub(super) struct Rules {
    /// How many may be open.
    pub(super) most: usize,
    /// How long one may stay without its client's greeting.
    pub(super) greeting_within: Duration,
    /// Turns true when the server begins to stop. Once its sender is gone, all connections end.
    pub(super) stopping: watch::Receiver<bool>,
}

/// The connections as they come, each with its place among the most that may be open.
pub(super) fn connections(listener: TcpListener, rules: Rules) -> impl Stream<Item = io::Result<Connection>> {
    let places = Arc::new(Semaphore::new(rules.most.min(Semaphore::MAX_PERMITS)));
    stream::unfold((listener, places, rules), |(listener, places, rules)| async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                        warn!("a connection was closed: the most that may be open are");
                        continue;
                    };
                    let connection = Connection::new(stream, place, &rules);
                    return Some((Ok(connection), (listener, places, rules)));
                }
                // Out of file descriptors, or a client gone before it was taken: the listener lives on.
                Err(error) => {
                    warn!(%error, "a connection could not be taken");
                    tokio::time::sleep(AFTER_ERROR).await;
                }
            }
        }
    })
}

/// A client's connection.
pub(super) struct Connection {
    stream: TcpStream,
    info: ConnectionInfo,
    greeting: Option<Greeting>,
    over: Moment,
    _place: OwnedSemaphorePermit,
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
        Self {
            stream,
            info: ConnectionInfo::default(),
            greeting: Some(Greeting { missing: GREETING, given_up }),
            over,
            _place: place,
        }
    }

    /// What there is to say about a wait for the client, which only the end of all may cut short.
    fn unless_over<T>(&mut self, context: &mut Context<'_>, io: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if io.is_pending() && self.over.has_come(context) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        io
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
        let read = Pin::new(&mut self.stream).poll_read(context, buf);
        if let Some(greeting) = &mut self.greeting {
            greeting.missing = greeting.missing.saturating_sub(buf.filled().len() - before);
            if greeting.missing == 0 {
                self.greeting = None;
            } else if read.is_pending() && greeting.given_up.has_come(context) {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        self.unless_over(context, read)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, buf);
        self.unless_over(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bufs);
        self.unless_over(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
