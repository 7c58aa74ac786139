//! Streams: what an event costs for each who watches, beside a bare tonic stream of messages of the same size.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use jungle_referee::service::proto as pb;
use prost::Message as _;

use crate::cpu::{Led, SERVER_CORE, now};
use crate::drive::{Came, Connection};
use crate::echo;
use crate::fill::{Tokens, game_id};
use crate::lines::{Lines, PLIES};
use crate::table::{Middle, as_figure, micros, percentile};

/// The method that is watched by.
const WATCH: &str = "/jungle.v1.RefereeService/WatchGame";

/// Among how many connections the watchers are divided.
const CONNECTIONS: usize = 16;

/// How many streams a connection opens at once: a server that opens all of them together takes room for what it
/// then has to say, and keeps it.
const OPENED_AT_ONCE: usize = 16;

/// How many events a measurement takes.
const EVENTS: usize = 20;

/// How often each side is measured, in turn.
const ROUNDS: usize = 9;

/// The head of the table.
pub(crate) const HEAD: &str = "\
| games | watchers of each | server | CPU µs a message | of the bare stream's | until the last has it, ms | of the bare stream's | bytes a watcher |
|---|---|---|---|---|---|---|---|";

/// Streams that are open, and the server that feeds them.
pub(crate) struct Streams {
    server: Led,
    is_echo: bool,
    watching: Vec<Watching>,
    games: usize,
    lines: Rc<Lines>,
    /// The next ply, if it is the referee.
    ply: usize,
    /// The memory that each stream takes while nothing happens, in bytes.
    pub(crate) bytes_each: f64,
}

/// The streams of one connection.
struct Watching {
    on: Connection,
    streams: HashMap<u32, Stream>,
}

/// One stream.
struct Stream {
    game: u64,
    came: Vec<u8>,
    messages: usize,
}

/// What one side has shown in one measurement.
struct Told {
    cpu: Duration,
    last: Duration,
    size: usize,
}

impl Streams {
    /// Opens the streams: so many for each of so many games, on a server of its own.
    pub(crate) async fn open(is_echo: bool, games: usize, watchers: usize, lines: &Rc<Lines>) -> Self {
        let role = if is_echo { "serve-echo" } else { "serve-referee" };
        let mut server = Led::start(SERVER_CORE, &[role]);
        if !is_echo {
            server.ask(&format!("fill 0 {games} 0"));
        }
        let before = server.resident();
        let streams = games * watchers;
        let mut watching = Vec::new();
        for number in 0..CONNECTIONS.min(streams) {
            let method = if is_echo { echo::WATCH } else { WATCH };
            let on = Connection::open(&server.address, method).await;
            let mine = (number..streams).step_by(CONNECTIONS).map(|stream| stream % games);
            watching.push(Watching::begin(on, mine).await);
        }
        let bytes_each = (as_figure64(server.resident()) - as_figure64(before)) / as_figure(streams);
        Self { server, is_echo, watching, games, lines: Rc::clone(lines), ply: 0, bytes_each }
    }

    /// Has events happen one after the other, each once all have been told of the one before.
    async fn measure(&mut self, size: usize) -> Told {
        let before = self.server.spent();
        let mut lasts = Vec::new();
        let mut bytes = 0;
        for _ in 0..EVENTS {
            let began = now();
            self.happen(size);
            let ply = (!self.is_echo).then_some(self.ply);
            let lines = &self.lines;
            let told = self.watching.iter_mut().map(|watching| watching.told(lines, ply, size));
            let told: Vec<(Instant, usize)> = join_all(told).await;
            let last = told.iter().map(|(at, _)| *at).max().expect("watchers");
            lasts.push(last - began);
            bytes = told[0].1;
            self.server.answer();
            self.ply += 1;
        }
        lasts.sort_unstable();
        let messages = EVENTS * self.watching.iter().map(|watching| watching.streams.len()).sum::<usize>();
        let cpu = (self.server.spent() - before) / u32::try_from(messages).expect("some");
        Told { cpu, last: percentile(&lasts, 0.5), size: bytes }
    }

    fn happen(&mut self, size: usize) {
        let (games, ply) = (self.games, self.ply);
        let what = if self.is_echo { format!("publish {size}") } else { format!("play 0 {games} {ply}") };
        self.server.tell(&what);
    }
}

impl Watching {
    /// Begins to watch these games, and waits for the first message of each stream.
    async fn begin(on: Connection, games: impl Iterator<Item = usize>) -> Self {
        let mut watching = Self { on, streams: HashMap::new() };
        let tokens = Tokens::new();
        for (opened, game) in games.map(|game| u64::try_from(game).expect("64 bits")).enumerate() {
            if opened % OPENED_AT_ONCE == 0 {
                watching.until_all_have(1, |_, _| {}).await;
            }
            let heartbeat = Some(prost_types::Duration { seconds: 30, nanos: 0 });
            let request = pb::WatchGameRequest { game_id: game_id(game).to_string(), after_sequence: None, heartbeat };
            let stream = watching.on.ask(&tokens.arbiter(game), &request.encode_to_vec());
            watching.streams.insert(stream, Stream { game, came: Vec::new(), messages: 0 });
        }
        watching.until_all_have(1, |_, _| {}).await;
        for stream in watching.streams.values_mut() {
            stream.messages = 0;
        }
        watching
    }

    /// Waits until each stream has brought one message more, and looks at it. When the last came, and its size.
    async fn told(&mut self, lines: &Lines, ply: Option<usize>, size: usize) -> (Instant, usize) {
        let mut seen = 0;
        self.until_all_have(1, |game, message| {
            seen = message.len();
            match ply {
                Some(ply) => check(lines, game, ply, message),
                None => assert!(message.len().abs_diff(size) <= 1, "what was published"),
            }
        })
        .await;
        for stream in self.streams.values_mut() {
            stream.messages = 0;
        }
        (now(), seen)
    }

    async fn until_all_have(&mut self, messages: usize, mut look: impl FnMut(u64, &[u8])) {
        let mut missing = self.streams.values().filter(|stream| stream.messages < messages).count();
        self.on.send().await;
        while missing > 0 {
            self.on.wait().await;
            let streams = &mut self.streams;
            self.on.hand_on(|stream, came| {
                let stream = streams.get_mut(&stream).expect("a stream of ours");
                let Came::Data(data) = came else { panic!("a stream has ended") };
                stream.came.extend_from_slice(data);
                while let Some(message) = stream.next_message() {
                    look(stream.game, &message);
                    stream.messages += 1;
                    assert!(stream.messages <= messages, "more than happened");
                    missing -= usize::from(stream.messages == messages);
                }
            });
            self.on.send().await;
        }
    }
}

impl Stream {
    /// The next whole message that has come.
    fn next_message(&mut self) -> Option<Vec<u8>> {
        let ([0, length @ ..], rest) = self.came.split_first_chunk::<5>()? else { panic!("a compressed message") };
        let length = usize::try_from(u32::from_be_bytes(*length)).expect("32 bits");
        let message = rest.get(..length)?.to_vec();
        self.came.drain(..5 + length);
        Some(message)
    }
}

/// Panics unless the message is the event of this ply's move.
fn check(lines: &Lines, game: u64, ply: usize, message: &[u8]) {
    use pb::watch_game_response::Message;
    let told = pb::WatchGameResponse::decode(message).expect("a message").message;
    let Some(Message::Event(event)) = told else { panic!("{told:?}") };
    assert_eq!(event.sequence, u64::try_from(ply).expect("small") + 2);
    assert_eq!(event.position, lines.of(game)[ply + 1].position);
    assert!(matches!(event.kind, Some(pb::game_event::Kind::MoveMade(_))));
}

/// Measures the referee and the bare stream in turn, and prints their rows.
pub(crate) async fn compare(games: usize, watchers: usize, lines: &Rc<Lines>) {
    const { assert!(EVENTS * ROUNDS < PLIES) };
    let mut own = Streams::open(false, games, watchers, lines).await;
    let mut bare = Streams::open(true, games, watchers, lines).await;
    let (mut owns, mut bares) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        owns.push(own.measure(0).await);
        let size = owns.last().map_or(0, |told| told.size);
        bares.push(bare.measure(size).await);
    }
    for (name, streams, told) in [("bare stream", &bare, &bares), ("referee", &own, &owns)] {
        let cpu = Middle::of(told.iter().map(|told| micros(told.cpu))).expect("rounds");
        let last = Middle::of(told.iter().map(|told| micros(told.last) / 1e3)).expect("rounds");
        let ratio = |figure: fn(&Told) -> f64| {
            Middle::of(told.iter().zip(&bares).map(|(own, bare)| figure(own) / figure(bare)))
                .expect("rounds")
                .with_range()
        };
        println!(
            "| {games} | {watchers} | {name} | {:.2} | {} | {:.2} | {} | {:.0} |",
            cpu.middle(),
            ratio(|told| micros(told.cpu)),
            last.middle(),
            ratio(|told| micros(told.last)),
            streams.bytes_each
        );
    }
}

#[expect(clippy::cast_precision_loss, reason = "no memory here comes near 2^52 bytes")]
fn as_figure64(bytes: u64) -> f64 {
    bytes as f64
}
