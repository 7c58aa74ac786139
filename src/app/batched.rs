//! Answers leave together: what a connection writes is gathered until the calls that came together have been
//! answered, and goes to the socket in one piece.
//!
//! HTTP/2 by itself writes as soon as the first answer is there, one system call for each that follows. Here
//! a flush first lets all other tasks have their turn that are ready to run, once; where none is, it goes on at once.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;

/// How much is gathered at most before it is written, in bytes.
const MOST: usize = 16 * 1024;

/// A connection whose writes leave together.
pub(super) struct Batched<C> {
    inner: C,
    /// What is to be written. Takes no room while there is nothing.
    waiting: Vec<u8>,
    /// How much of it the socket has taken.
    gone: usize,
    /// Whether the others have had their turn since something began to wait.
    others_had_theirs: bool,
}

impl<C> Batched<C> {
    /// This connection, with its writes gathered.
    pub(super) fn new(inner: C) -> Self {
        Self { inner, waiting: Vec::new(), gone: 0, others_had_theirs: false }
    }
}

impl<C: AsyncWrite + Unpin> Batched<C> {
    /// Writes all that waits.
    fn poll_out(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.gone < self.waiting.len() {
            let written = ready!(Pin::new(&mut self.inner).poll_write(context, &self.waiting[self.gone..]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.gone += written;
        }
        (self.waiting, self.gone, self.others_had_theirs) = (Vec::new(), 0, false);
        Poll::Ready(Ok(()))
    }

    /// Makes room, and takes what fits.
    fn poll_take(&mut self, context: &mut Context<'_>, pieces: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if self.waiting.len() >= MOST {
            ready!(self.poll_out(context))?;
        }
        if self.waiting.is_empty() {
            self.waiting.reserve_exact(MOST);
        }
        let before = self.waiting.len();
        for piece in pieces {
            let room = MOST.saturating_sub(self.waiting.len());
            self.waiting.extend_from_slice(&piece[..room.min(piece.len())]);
        }
        Poll::Ready(Ok(self.waiting.len() - before))
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for Batched<C> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, piece: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_take(context, &[io::IoSlice::new(piece)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_take(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.waiting.is_empty() {
            if !self.others_had_theirs {
                self.others_had_theirs = true;
                // Who is woken while it runs comes last.
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            ready!(self.poll_out(context))?;
        }
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_out(context))?;
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for Batched<C> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buf)
    }
}

impl<C: Connected> Connected for Batched<C> {
    type ConnectInfo = C::ConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.inner.connect_info()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use futures_util::FutureExt as _;
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    /// A socket that takes so much at a time, each piece only when it is asked a second time.
    struct Socket {
        pieces: Vec<Vec<u8>>,
        at_once: usize,
        asked: bool,
    }

    impl Socket {
        fn batched(at_once: usize) -> Batched<Self> {
            Batched::new(Self { pieces: Vec::new(), at_once, asked: true })
        }
    }

    impl AsyncWrite for Socket {
        fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, piece: &[u8]) -> Poll<io::Result<usize>> {
            self.asked = !self.asked;
            if self.asked {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let taken = piece.len().min(self.at_once);
            self.pieces.push(piece[..taken].to_vec());
            Poll::Ready(Ok(taken))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn an_answer_waits_for_those_that_are_ready_with_it_and_all_leave_in_one_piece() {
        let mut connection = Socket::batched(MOST);
        connection.write_all(b"first").await.expect("room");
        let flushed = poll_fn(|context| Pin::new(&mut connection).poll_flush(context)).now_or_never();
        assert!(flushed.is_none() && connection.inner.pieces.is_empty(), "the others have their turn");
        connection.write_all(b", second").await.expect("room");
        connection.flush().await.expect("a socket");
        assert_eq!(connection.inner.pieces, [b"first, second"]);
    }

    #[tokio::test]
    async fn an_answer_that_is_alone_leaves_without_waiting_for_another() {
        let mut connection = Socket::batched(MOST);
        for answer in [b"one", b"two"] {
            connection.write_all(answer).await.expect("room");
            connection.flush().await.expect("a socket");
        }
        assert_eq!(connection.inner.pieces, [b"one", b"two"]);
    }

    #[tokio::test]
    async fn much_that_a_slow_socket_takes_bit_by_bit_comes_whole_and_in_order() {
        let sent: Vec<u8> = (0..=250).cycle().take(5 * MOST).collect();
        let mut connection = Socket::batched(1_000);
        for piece in sent.chunks(7_001) {
            connection.write_all(piece).await.expect("room");
        }
        assert!(connection.waiting.len() <= MOST, "what waits is bounded");
        connection.shutdown().await.expect("a socket");
        assert_eq!(connection.inner.pieces.concat(), sent);
    }
}
