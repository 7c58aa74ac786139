//! What the tests of the wire share: proxies on loopback that cut or hold back, a raw HTTP/2 watcher, and
//! a game that goes on for a thousand plies.
#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod frames;

use std::io::{self, BufRead as _, BufReader};
use std::net::SocketAddr;
use std::pin::Pin;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use h2::SendStream;
use h2::client::ResponseFuture;
use jungle_referee::service::proto::watch_game_response::Message;
use jungle_referee::service::proto::{self as pb, NewGameRequest};
use prost::Message as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use super::server::{Client, Table, by, within};

/// A game of two animals that shuffle to and fro for up to 999 plies, with no bars against it.
pub(crate) fn long_game() -> NewGameRequest {
    let ruleset = pb::RulesetSpec {
        no_capture_rounds: Some(500),
        seven_three: Some(false),
        seventeen_five: Some(false),
        ..pb::RulesetSpec::default()
    };
    let start_position = "6e/7/7/7/7/7/7/7/P6 r 0 1".to_owned();
    NewGameRequest { ruleset: Some(ruleset), start_position, refusal_limit: Some(1_000), ..NewGameRequest::default() }
}

/// The move of a long game at a ply.
pub(crate) fn shuffle(ply: u32) -> &'static str {
    ["a1a2", "g9g8", "a2a1", "g8g9"][usize::try_from(ply % 4).expect("below four")]
}

/// Makes the move of a long game at a ply, which must be accepted.
pub(crate) async fn make_move(client: &mut Client, table: &Table, ply: u32) {
    let request = by(table.token_at(ply), table.submit(shuffle(ply)));
    let reply = within(client.submit_move(request)).await.expect("a verdict").into_inner();
    let accepted = matches!(reply.verdict, Some(pb::submit_move_response::Verdict::Accepted(_)));
    assert!(accepted, "ply {ply}: {reply:?}");
}

/// The binary, to serve on a free port of loopback.
pub(crate) fn binary(flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jungle-referee"));
    command.args(["serve", "--listen", "127.0.0.1:0"]).args(flags).stdout(Stdio::piped());
    command
}

/// A server in a process of its own. Killed when dropped.
pub(crate) struct Process {
    child: Child,
    pub(crate) addr: SocketAddr,
}

impl Process {
    /// Starts the binary on a free port of loopback.
    pub(crate) fn start(flags: &[&str]) -> Self {
        Self::listening(binary(&[&["--log", "off"], flags].concat()).spawn().expect("the binary starts"))
    }

    /// Waits until it says where it listens.
    pub(crate) fn listening(mut child: Child) -> Self {
        let mut line = String::new();
        let said = BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line);
        assert!(said.is_ok_and(|bytes| bytes > 0), "it says where it listens");
        let addr = line.trim().rsplit(' ').next().expect("an address").parse().expect("an address");
        Self { child, addr }
    }

    /// How long it kept processors busy so far, in ticks of the system: a hundredth of a second, as a rule.
    pub(crate) fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("a readable file");
        // After the name, which may hold anything: the state, ten numbers, then the times in user and in system.
        let (_, numbers) = stat.rsplit_once(')').expect("a name");
        numbers.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
    }

    /// Ends it with SIGKILL, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("a child of ours");
        self.child.wait().expect("a child of ours");
    }

    /// Its anonymous resident memory, in bytes.
    pub(crate) fn memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("a readable file");
        let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("a line");
        let kilobytes: usize = line.split_whitespace().nth(1).expect("a number").parse().expect("a number");
        kilobytes * 1024
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        let sent = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "the signal is sent");
    }

    /// Waits for its end, for so long at most.
    pub(crate) async fn left_within(&mut self, patience: Duration) -> Option<ExitStatus> {
        let left = async {
            loop {
                match self.child.try_wait().expect("a child of ours") {
                    Some(status) => return status,
                    None => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        };
        tokio::time::timeout(patience, left).await.ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have left already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where a connection through a proxy is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// After so many bytes from the client.
    pub(crate) up: usize,
    /// After so many bytes from the server.
    pub(crate) down: usize,
    /// With a reset, which throws away what is under way; else in order.
    pub(crate) reset: bool,
}

impl Cut {
    /// Nowhere.
    pub(crate) const NEVER: Self = Self { up: usize::MAX, down: usize::MAX, reset: false };
}

/// How many bytes a proxy carried, and whether it cut the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried {
    pub(crate) up: usize,
    pub(crate) down: usize,
    pub(crate) cut: bool,
}

/// A proxy for one connection to the server, which it cuts as told. Done once the server has let go of
/// a connection that was ended in order.
pub(crate) async fn cutting_proxy(server: SocketAddr, cut: Cut) -> (SocketAddr, JoinHandle<Carried>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let addr = listener.local_addr().expect("an address");
    let carried = tokio::spawn(async move {
        let (client, _) = within(listener.accept()).await.expect("the client comes");
        drop(listener);
        let server = TcpStream::connect(server).await.expect("the server listens");
        for side in [&client, &server] {
            side.set_nodelay(true).expect("an open socket");
        }
        carry(client, server, cut).await
    });
    (addr, carried)
}

async fn carry(mut client: TcpStream, mut server: TcpStream, cut: Cut) -> Carried {
    let mut carried = Carried { up: 0, down: 0, cut: false };
    let (mut from_client, mut from_server) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        if carried.up >= cut.up || carried.down >= cut.down {
            carried.cut = true;
            break;
        }
        let (reads, left);
        tokio::select! {
            read = client.read(&mut from_client) => {
                (reads, left) = (read.unwrap_or(0), cut.up - carried.up);
                let some = reads.min(left);
                carried.up += some;
                if server.write_all(&from_client[..some]).await.is_err() { break }
            }
            read = server.read(&mut from_server) => {
                (reads, left) = (read.unwrap_or(0), cut.down - carried.down);
                let some = reads.min(left);
                carried.down += some;
                if client.write_all(&from_server[..some]).await.is_err() { break }
            }
        }
        if reads == 0 {
            break;
        }
    }
    if carried.cut && cut.reset {
        for side in [&client, &server] {
            side.set_zero_linger().expect("an open socket");
        }
        return carried;
    }
    drop(client);
    // The server sees the end of the stream, does what it must, and closes.
    let _ = server.shutdown().await;
    while within(server.read(&mut from_server)).await.is_ok_and(|read| read > 0) {}
    carried
}

/// A proxy that keeps the server's GOAWAY and PING frames from the client: as long as these are under way,
/// a client does not know that the server stops.
pub(crate) async fn unknowing_proxy(server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let addr = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let (client, _) = listener.accept().await.expect("the client comes");
        let server = TcpStream::connect(server).await.expect("the server listens");
        let (mut client_reads, mut client_writes) = client.into_split();
        let (mut server_reads, mut server_writes) = server.into_split();
        let up = tokio::io::copy(&mut client_reads, &mut server_writes);
        let down = async {
            const PING: u8 = 6;
            const GOAWAY: u8 = 7;
            let mut frame = vec![0; 9];
            while server_reads.read_exact(&mut frame[..9]).await.is_ok() {
                let length = usize::try_from(u32::from_be_bytes([0, frame[0], frame[1], frame[2]])).expect("small");
                frame.resize(9 + length, 0);
                server_reads.read_exact(&mut frame[9..]).await.expect("the rest of a frame");
                if ![PING, GOAWAY].contains(&frame[3]) && client_writes.write_all(&frame).await.is_err() {
                    break;
                }
            }
        };
        tokio::select! { _ = up => {}, () = down => {} }
    });
    addr
}

/// How a raw watcher's connection takes what it is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    /// The window of each stream.
    pub(crate) stream: u32,
    /// The window of the connection.
    pub(crate) connection: u32,
    /// The socket's buffer; `None` for the system's own.
    pub(crate) socket: Option<u32>,
}

impl Windows {
    /// As wide as HTTP/2 knows, with little room in the socket.
    pub(crate) const WIDE: Self = Self { stream: (1 << 31) - 1, connection: (1 << 31) - 1, socket: Some(4_096) };
    /// Closed.
    pub(crate) const CLOSED: Self = Self { stream: 0, connection: 65_535, socket: None };
}

/// A socket that can be made deaf: then it writes, and reads nothing.
pub(crate) struct Socket {
    stream: TcpStream,
    deaf: Arc<AtomicBool>,
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.deaf.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_read(context, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A watcher on bare HTTP/2. Its connection does something only while `drive` is awaited.
pub(crate) struct RawWatcher {
    pub(crate) connection: h2::client::Connection<Socket, Bytes>,
    sender: h2::client::SendRequest<Bytes>,
    deaf: Arc<AtomicBool>,
}

/// One stream of a raw watcher, once it is opened.
pub(crate) struct RawStream {
    body: h2::RecvStream,
    buffer: BytesMut,
}

impl RawWatcher {
    /// Connects.
    pub(crate) async fn connect(server: SocketAddr, windows: Windows) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        if let Some(size) = windows.socket {
            socket.set_recv_buffer_size(size).expect("a size");
        }
        let stream = within(socket.connect(server)).await.expect("the server listens");
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(windows.stream).initial_connection_window_size(windows.connection);
        let deaf = Arc::new(AtomicBool::new(false));
        let socket = Socket { stream, deaf: Arc::clone(&deaf) };
        let (sender, connection) = within(builder.handshake(socket)).await.expect("a greeting");
        Self { connection, sender, deaf }
    }

    /// Waits for something while the connection works.
    pub(crate) async fn drive<T>(&mut self, what: impl Future<Output = T>) -> T {
        let driven = async {
            tokio::select! {
                biased;
                what = what => what,
                end = &mut self.connection => panic!("the connection ended: {end:?}"),
            }
        };
        within(driven).await
    }

    /// How many streams the server admits.
    pub(crate) fn most_streams(&self) -> usize {
        self.sender.current_max_send_streams()
    }

    /// Opens the stream of a watch and waits for the answer's head.
    pub(crate) async fn watch(&mut self, table: &Table, after_sequence: Option<u64>) -> RawStream {
        let response = self.ask_to_watch(table, after_sequence).await;
        let response = self.drive(response).await.expect("a response");
        assert_eq!(response.status(), 200);
        assert!(!response.headers().contains_key("grpc-status"), "refused: {:?}", response.headers());
        RawStream { body: response.into_body(), buffer: BytesMut::new() }
    }

    /// Opens so many streams without reading anything, not even the answers' heads.
    pub(crate) async fn watch_deaf(&mut self, table: &Table, number: usize) -> Vec<ResponseFuture> {
        self.deaf.store(true, Ordering::Release);
        let mut responses = Vec::new();
        for _ in 0..number {
            responses.push(self.ask_to_watch(table, Some(0)).await);
        }
        self.work_for(Duration::from_millis(500)).await;
        responses
    }

    async fn ask_to_watch(&mut self, table: &Table, after_sequence: Option<u64>) -> ResponseFuture {
        let message = pb::WatchGameRequest { game_id: table.id.clone(), after_sequence, heartbeat: None };
        let mut framed = vec![0];
        framed.extend_from_slice(&u32::try_from(message.encoded_len()).expect("small").to_be_bytes());
        message.encode(&mut framed).expect("room");
        let (response, mut body) = self.open("WatchGame").await;
        body.send_data(framed.into(), true).expect("an open stream");
        response
    }

    /// Lets the connection work for a while, through which it must last.
    async fn work_for(&mut self, long: Duration) {
        let ended = tokio::time::timeout(long, &mut self.connection).await;
        assert!(ended.is_err(), "the connection ended: {ended:?}");
    }

    /// Begins a call, which goes on for as long as what is returned lives.
    pub(crate) async fn begin(&mut self, method: &str, part: Vec<u8>) -> (ResponseFuture, SendStream<Bytes>) {
        let (response, mut body) = self.open(method).await;
        body.send_data(part.into(), false).expect("an open stream");
        self.work_for(Duration::from_millis(50)).await;
        (response, body)
    }

    async fn open(&mut self, method: &str) -> (ResponseFuture, SendStream<Bytes>) {
        let request = http::Request::post(format!("http://referee/jungle.v1.RefereeService/{method}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())
            .expect("a request");
        let ready = self.sender.clone().ready();
        let mut sender = self.drive(ready).await.expect("a place for a stream");
        sender.send_request(request, false).expect("a stream")
    }
}

impl RawStream {
    /// The next message; at the end, the status.
    pub(crate) async fn next(&mut self) -> Result<Message, i32> {
        loop {
            if let Some(message) = self.take_message() {
                return Ok(message);
            }
            match self.body.data().await {
                Some(data) => {
                    let data = data.expect("no reset");
                    self.body.flow_control().release_capacity(data.len()).expect("what was taken");
                    self.buffer.extend_from_slice(&data);
                }
                None => {
                    let trailers = self.body.trailers().await.expect("no reset").expect("trailers");
                    let status = trailers["grpc-status"].to_str().expect("a number");
                    return Err(status.parse().expect("a number"));
                }
            }
        }
    }

    fn take_message(&mut self) -> Option<Message> {
        let head = self.buffer.get(1..5)?.try_into().expect("four bytes");
        let length = usize::try_from(u32::from_be_bytes(head)).expect("small");
        if self.buffer.len() < 5 + length {
            return None;
        }
        self.buffer.advance(5);
        let message = pb::WatchGameResponse::decode(self.buffer.split_to(length)).expect("a message");
        message.message
    }

    /// All events to the end of the stream, and the status.
    pub(crate) async fn events(&mut self) -> (Vec<u64>, i32) {
        let mut sequences = Vec::new();
        loop {
            match self.next().await {
                Ok(Message::Event(event)) => sequences.push(event.sequence),
                Ok(Message::Snapshot(_) | Message::Heartbeat(_)) => {}
                Err(status) => return (sequences, status),
            }
        }
    }
}
