//! The load: gRPC over HTTP/2, written by hand, so that a call costs the load far less than it costs the server.
//!
//! Headers that come are left in their coded form and compared so; the table that they refer to is kept,
//! and asked to be large enough that nothing is ever taken out of it.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::{Buf as _, BytesMut};
use futures_util::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::cpu::now;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// What the server may know of headers by number, in bytes.
const HEADER_TABLE: u32 = 1 << 16;
/// The largest window there is.
const WIDEST: u32 = (1 << 31) - 1;
/// The window that a connection begins with.
const FIRST_WINDOW: u32 = 65_535;
/// After how many bytes the server is told that they were read.
const GIVE_BACK: u32 = 1 << 20;
/// No request of ours is larger.
const LARGEST_REQUEST: i64 = 512;

/// `grpc-status` and `0` as the server's side codes them.
const GRPC_STATUS: &[u8] = &[0x88, 0x9a, 0xca, 0xc8, 0xb2, 0x12, 0x34, 0xda, 0x8f];
const OK: &[u8] = &[0x81, 0x07];

/// A client's connection, for calls of one method.
pub(crate) struct Connection {
    stream: TcpStream,
    out: Vec<u8>,
    came: BytesMut,
    headers: Headers,
    method: String,
    /// Whether a call was made, so that the headers that all have in common are known by number.
    greeted: bool,
    next: u32,
    window: i64,
    unthanked: u32,
}

/// Something that came for a call.
pub(crate) enum Came<'a> {
    /// A part of its answer, or of several.
    Data(&'a [u8]),
    /// The end; whether its status was OK.
    End(bool),
}

impl Connection {
    /// Connects.
    pub(crate) async fn open(address: &str, method: &str) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server listens");
        stream.set_nodelay(true).expect("a socket");
        let mut connection = Self {
            stream,
            out: PREFACE.to_vec(),
            came: BytesMut::with_capacity(1 << 18),
            headers: Headers::default(),
            method: method.to_owned(),
            greeted: false,
            next: 1,
            window: FIRST_WINDOW.into(),
            unthanked: 0,
        };
        let mut settings = Vec::new();
        for (name, value) in [(1_u16, HEADER_TABLE), (2, 0), (4, WIDEST)] {
            settings.extend_from_slice(&name.to_be_bytes());
            settings.extend_from_slice(&value.to_be_bytes());
        }
        connection.frame(SETTINGS, 0, 0, &settings);
        connection.frame(WINDOW_UPDATE, 0, 0, &(WIDEST - FIRST_WINDOW).to_be_bytes());
        connection
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
        self.out.extend_from_slice(&length[1..]);
        self.out.extend_from_slice(&[kind, flags]);
        self.out.extend_from_slice(&stream.to_be_bytes());
        self.out.extend_from_slice(payload);
    }

    /// Whether there is room to ask something.
    fn has_room(&self) -> bool {
        self.window >= LARGEST_REQUEST
    }

    /// Asks something with a bearer token; the number that the answer comes under.
    pub(crate) fn ask(&mut self, token: &str, message: &[u8]) -> u32 {
        let stream = self.next;
        self.next += 2;
        let block = self.header_block(token);
        self.frame(HEADERS, END_HEADERS, stream, &block);
        let mut body = Vec::with_capacity(5 + message.len());
        body.push(0);
        body.extend_from_slice(&u32::try_from(message.len()).expect("a short message").to_be_bytes());
        body.extend_from_slice(message);
        self.window -= i64::try_from(body.len()).expect("a short message");
        assert!(self.window >= 0, "more was asked than the server has room for");
        self.frame(DATA, END_STREAM, stream, &body);
        stream
    }

    /// The headers of a call: what all have in common is written out once and then named by number.
    fn header_block(&mut self, token: &str) -> Vec<u8> {
        let mut block = Vec::with_capacity(256);
        block.extend_from_slice(&[0x83, 0x86]); // :method POST, :scheme http
        if self.greeted {
            block.extend_from_slice(&[0xc2, 0xc1, 0xc0, 0xbf, 0xbe]);
        } else {
            self.greeted = true;
            block.push(0x44);
            text(&mut block, &self.method);
            block.push(0x41);
            text(&mut block, "localhost"); // :authority
            block.push(0x5f);
            text(&mut block, "application/grpc"); // content-type
            block.push(0x40);
            text(&mut block, "te");
            text(&mut block, "trailers");
            block.push(0x7a);
            text(&mut block, "load"); // user-agent
        }
        block.extend_from_slice(&[0x0f, 0x08]); // authorization, which no table keeps
        text(&mut block, &format!("Bearer {token}"));
        block
    }

    /// Sends what was asked.
    pub(crate) async fn send(&mut self) {
        self.stream.write_all(&self.out).await.expect("the server reads");
        self.out.clear();
    }

    /// Waits until something comes.
    pub(crate) async fn wait(&mut self) {
        let read = self.stream.read_buf(&mut self.came).await.expect("the server writes");
        assert!(read > 0, "the server has closed the connection");
    }

    /// Hands on what has come for each call.
    pub(crate) fn hand_on(&mut self, mut to: impl FnMut(u32, Came<'_>)) {
        while let [high, mid, low, kind, flags, stream @ ..] = &self.came[..]
            && let Some((stream, rest)) = stream.split_first_chunk::<4>()
        {
            let length = usize::try_from(u32::from_be_bytes([0, *high, *mid, *low])).expect("24 bits");
            if rest.len() < length {
                return;
            }
            let (kind, flags, stream) = (*kind, *flags, u32::from_be_bytes(*stream));
            self.came.advance(9);
            let payload = self.came.split_to(length);
            self.take(kind, flags, stream, &payload, &mut to);
        }
    }

    fn take(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8], to: &mut impl FnMut(u32, Came<'_>)) {
        match kind {
            DATA => {
                self.unthanked += u32::try_from(payload.len()).expect("a frame");
                if self.unthanked >= GIVE_BACK {
                    self.frame(WINDOW_UPDATE, 0, 0, &self.unthanked.to_be_bytes());
                    self.unthanked = 0;
                }
                to(stream, Came::Data(payload));
                assert_eq!(flags & END_STREAM, 0, "gRPC ends with trailers");
            }
            HEADERS => {
                assert_eq!(flags & !END_STREAM, END_HEADERS, "whole, and without padding");
                let fine = self.headers.read(payload);
                if flags & END_STREAM != 0 {
                    to(stream, Came::End(fine));
                }
            }
            SETTINGS if flags & ACK == 0 => self.frame(SETTINGS, ACK, 0, &[]),
            PING if flags & ACK == 0 => self.frame(PING, ACK, 0, payload),
            WINDOW_UPDATE if stream == 0 => self.window += i64::from(number(payload)),
            RST_STREAM => panic!("the server has reset a call: {}", number(payload)),
            GOAWAY => panic!("the server has said goodbye: {payload:?}"),
            _ => {}
        }
    }
}

/// The number in a payload of four bytes.
fn number(payload: &[u8]) -> u32 {
    u32::from_be_bytes(payload.try_into().expect("four bytes"))
}

/// A text of a header, as it is.
fn text(block: &mut Vec<u8>, text: &str) {
    let length = u8::try_from(text.len()).expect("a short text");
    assert!(length < 127, "a short text");
    block.push(length);
    block.extend_from_slice(text.as_bytes());
}

/// The headers that the server refers to by number, newest first.
#[derive(Default)]
struct Headers {
    known: VecDeque<(Vec<u8>, Vec<u8>)>,
}

impl Headers {
    /// Reads a block; whether it says that the call went well.
    fn read(&mut self, mut block: &[u8]) -> bool {
        let mut fine = false;
        while let Some(first) = block.first().copied() {
            let (name, value);
            if first & 0x80 != 0 {
                let known = integer(&mut block, 7);
                // What the standard numbers below 62 says nothing of gRPC's status.
                let Some(known) = known.checked_sub(62) else { continue };
                (name, value) = self.known[known].clone();
            } else if first & 0xe0 == 0x20 {
                integer(&mut block, 5);
                continue;
            } else {
                let kept = first & 0x40 != 0;
                let named = integer(&mut block, if kept { 6 } else { 4 });
                name = match named.checked_sub(62) {
                    Some(known) => self.known[known].0.clone(),
                    None if named > 0 => Vec::new(),
                    None => string(&mut block),
                };
                value = string(&mut block);
                if kept {
                    self.known.push_front((name.clone(), value.clone()));
                }
            }
            fine |= name == GRPC_STATUS && value == OK;
        }
        fine
    }
}

/// Reads a number whose first byte has a prefix of `bits` for it.
fn integer(block: &mut &[u8], bits: u32) -> usize {
    let most = (1_usize << bits) - 1;
    let mut value = usize::from(block.get_u8()) & most;
    if value == most {
        for shift in (0..).step_by(7) {
            let byte = usize::from(block.get_u8());
            value += (byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
    }
    value
}

/// Reads a text, with its length, in its coded form.
fn string(block: &mut &[u8]) -> Vec<u8> {
    let whole = *block;
    let length = integer(block, 7);
    let head = whole.len() - block.len();
    block.advance(length);
    whole[..head + length].to_vec()
}

/// What is asked, and what the answers must be.
pub(crate) trait Script {
    /// The next question: fills in the token and the message. The number is handed back with the answer.
    fn ask(&mut self, token: &mut String, message: &mut Vec<u8>) -> usize;

    /// An answer has come. Panics unless it is right.
    fn answered(&mut self, question: usize, message: &[u8]);
}

/// What a run has shown.
#[derive(Default)]
pub(crate) struct Run {
    /// How long it took.
    pub(crate) took: Duration,
    /// How long each call took.
    pub(crate) each: Vec<Duration>,
    /// The bytes of all answers.
    pub(crate) bytes: usize,
}

/// A call under way.
struct Flight {
    question: usize,
    asked: Instant,
    message: Vec<u8>,
}

/// Makes so many calls, with so many in flight on the connections together.
pub(crate) async fn run(
    connections: &mut [Connection],
    scripts: &mut [impl Script],
    in_flight: usize,
    calls: usize,
) -> Run {
    let began = now();
    let share = connections.len();
    let each =
        connections.iter_mut().zip(scripts).map(|(on, script)| run_on(on, script, in_flight / share, calls / share));
    let parts = join_all(each).await;
    let mut all = Run { took: began.elapsed(), ..Run::default() };
    for part in parts {
        all.each.extend(part.each);
        all.bytes += part.bytes;
    }
    all
}

async fn run_on(on: &mut Connection, script: &mut impl Script, in_flight: usize, calls: usize) -> Run {
    let mut run = Run { each: Vec::with_capacity(calls), ..Run::default() };
    let mut flights: HashMap<u32, Flight> = HashMap::with_capacity(in_flight);
    let (mut token, mut message) = (String::new(), Vec::new());
    let mut asked = 0;
    while run.each.len() < calls {
        let moment = now();
        while asked < calls && flights.len() < in_flight && on.has_room() {
            let question = script.ask(&mut token, &mut message);
            let stream = on.ask(&token, &message);
            flights.insert(stream, Flight { question, asked: moment, message: Vec::new() });
            asked += 1;
        }
        on.send().await;
        on.wait().await;
        let moment = now();
        on.hand_on(|stream, came| match came {
            Came::Data(data) => flights.get_mut(&stream).expect("a call of ours").message.extend_from_slice(data),
            Came::End(fine) => {
                let flight = flights.remove(&stream).expect("a call of ours");
                assert!(fine, "a call failed");
                let message = only_message(&flight.message);
                run.bytes += message.len();
                run.each.push(moment - flight.asked);
                script.answered(flight.question, message);
            }
        });
    }
    run
}

/// The one message of an answer.
fn only_message(data: &[u8]) -> &[u8] {
    let Some(([0, length @ ..], message)) = data.split_first_chunk::<5>() else { panic!("no message: {data:?}") };
    assert_eq!(number(length), u32::try_from(message.len()).expect("a short message"), "one message");
    message
}
