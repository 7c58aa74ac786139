//! A client that keeps to no rule: it writes any bytes, and tells what becomes of its connection.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::server::within;
use crate::wire::frames::{GREETING, flag, frame, kind};

/// What a ping of this client carries.
const MARK: [u8; 8] = *b"are you?";

/// After how long a server that takes no more bytes is taken to have stopped reading.
const STALLED: Duration = Duration::from_millis(250);

/// What became of a connection that bytes were sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was ended, with this reason if one was told.
    Ended(Option<u32>),
    /// A stream was reset, with this reason, and the connection goes on.
    Reset(u32),
    /// It goes on.
    Lives,
}

/// A frame as it came.
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) payload: Vec<u8>,
}

/// A connection of this client.
pub(crate) struct Attacker {
    pub(crate) stream: TcpStream,
}

impl Attacker {
    /// Connects, and says nothing.
    pub(crate) async fn connect(server: SocketAddr) -> Self {
        let stream = within(TcpStream::connect(server)).await.expect("it listens");
        Self { stream }
    }

    /// Connects, and sends these bytes after a greeting.
    pub(crate) async fn greeted(server: SocketAddr, then: &[u8]) -> Self {
        let mut attacker = Self::connect(server).await;
        attacker.send(&[GREETING, then].concat()).await;
        attacker
    }

    /// Sends, whether anybody still takes it or not.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        let _ = within(self.stream.write_all(bytes)).await;
    }

    /// The next frame; `None` at the end.
    pub(crate) async fn frame(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).await.ok()?;
        let [top, high, low, kind, flags, ..] = head;
        let length = u32::from_be_bytes([0, top, high, low]);
        let mut payload = vec![0; usize::try_from(length).expect("small")];
        self.stream.read_exact(&mut payload).await.ok()?;
        Some(Frame { kind, flags, payload })
    }

    /// What has become of the connection: whether it still answers a ping, and another one: by then it has
    /// told what became of its streams.
    pub(crate) async fn fate(mut self) -> Fate {
        self.send(&frame(kind::PING, 0, 0, &MARK)).await;
        let (mut fate, mut answers) = (Fate::Lives, 0);
        while let Some(frame) = within(self.frame()).await {
            match frame.kind {
                kind::GOAWAY => return self.ended(Some(reason(&frame.payload[4..]))).await,
                kind::RST_STREAM => fate = Fate::Reset(reason(&frame.payload)),
                kind::PING if frame.flags & flag::ACK != 0 && frame.payload == MARK => {
                    answers += 1;
                    if answers == 2 {
                        return fate;
                    }
                    self.send(&self::frame(kind::PING, 0, 0, &MARK)).await;
                }
                _ => {}
            }
        }
        Fate::Ended(None)
    }

    async fn ended(mut self, reason: Option<u32>) -> Fate {
        while within(self.frame()).await.is_some() {}
        Fate::Ended(reason)
    }

    /// Whether the server has not closed it when this time is over.
    pub(crate) async fn goes_on_for(&mut self, long: Duration) -> bool {
        let closed = async { while self.stream.read(&mut [0; 4096]).await.is_ok_and(|bytes| bytes > 0) {} };
        tokio::time::timeout(long, closed).await.is_err()
    }

    /// Waits until the server has closed it, whatever it still says.
    pub(crate) async fn until_closed(mut self) {
        let mut taken = [0; 4096];
        while within(self.stream.read(&mut taken)).await.is_ok_and(|bytes| bytes > 0) {}
    }

    /// Leaves without a word: with a reset instead of an end in order.
    pub(crate) fn vanish(self) {
        self.stream.set_zero_linger().expect("an open socket");
    }

    /// Sends the same bytes so many times, or until the server has ended the connection or stopped to read.
    /// Nothing is read meanwhile, unless `reads`.
    pub(crate) async fn pour(&mut self, bytes: &[u8], times: u32, reads: bool) {
        let (mut read, mut write) = self.stream.split();
        let writes = async {
            for _ in 0..times {
                let taken = tokio::time::timeout(STALLED, write.write_all(bytes)).await;
                if !taken.is_ok_and(|taken| taken.is_ok()) {
                    break;
                }
            }
        };
        let hears = async {
            let mut taken = [0; 16 * 1024];
            while reads && read.read(&mut taken).await.is_ok_and(|bytes| bytes > 0) {}
            std::future::pending::<()>().await;
        };
        tokio::select! { () = writes => {}, () = hears => {} }
    }
}

fn reason(payload: &[u8]) -> u32 {
    u32::from_be_bytes(payload[..4].try_into().expect("four bytes"))
}

/// Chance with a seed: SplitMix64.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    /// The next number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % u64::try_from(end).expect("64 bits")).expect("below")
    }

    /// So many bytes.
    pub(crate) fn bytes(&mut self, many: usize) -> Vec<u8> {
        (0..many).map(|_| u8::try_from(self.below(256)).expect("a byte")).collect()
    }
}
