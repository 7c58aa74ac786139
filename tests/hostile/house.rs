//! The server under attack: what it must still do, and what must be left of an attack.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jungle_referee::service::proto::submit_move_response::Verdict;
use jungle_referee::service::proto::{self as pb, NewGameRequest, OutcomeReason, Rule, Side};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::server::{Client, Table, by, next_event, within};
use crate::wire::Process;

/// A game that Red wins by entering the den: where it starts, its moves, and what Red may not do before the
/// first of them.
const START: &str = "D6/1LE4/Wl5/1R5/7/7/7/7/7 r 0 299";
const MOVES: [&str; 25] = [
    "b6b5", "b7c7", "a9a8", "c7b7", "b8b9", "b7a7", "a8b8", "a7b7", "b5c5", "b7b3", "c5c4", "b3b2", "b9c9", "b2a2",
    "c4c5", "a2b2", "b8b7", "b2b3", "b7c7", "b3a3", "c9b9", "a3a2", "c8c9", "a2b2", "c9d9",
];
const FORBIDDEN: [(&str, Rule); 5] = [
    ("d5d6", Rule::NoAnimal),
    ("b7b6", Rule::NotYourAnimal),
    ("a9a7", Rule::Step),
    ("b8c8", Rule::OwnPiece),
    ("a7b7", Rule::Strength),
];

/// How often an attack is repeated, unless the environment says otherwise.
const ROUNDS: u32 = 6;
/// By how much memory may rise in the second half of the rounds, in bytes, and by a quarter besides: what an
/// allocator keeps differs from round to round by less, and a leak of some kilobytes an item makes more.
const PLATEAU: usize = 2 * 1024 * 1024;

/// A number of items that the environment may raise.
pub(crate) fn many(variable: &str, default: u32) -> u32 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number"))
}

/// How often an attack is repeated.
pub(crate) fn rounds() -> u32 {
    many("HOSTILE_ROUNDS", ROUNDS)
}

/// From some repeat on, an attack costs no more memory.
#[track_caller]
#[allow(clippy::print_stdout, reason = "figures for whoever asks for them with --nocapture")]
pub(crate) fn check_plateau(name: &str, memory: &[usize]) {
    let kilobytes: Vec<usize> = memory.iter().map(|bytes| bytes / 1024).collect();
    println!("{name}: memory after each repeat, in KiB: {kilobytes:?}");
    let plateau = memory.iter().take(memory.len() / 2).max().expect("some");
    let grown = memory.last().expect("some").saturating_sub(*plateau);
    assert!(grown < PLATEAU + plateau / 4, "{name}: {kilobytes:?} KiB is no plateau");
}

/// A server in a process of its own, with its metrics page, and what it says of errors.
pub(crate) struct House {
    pub(crate) process: Process,
    pub(crate) addr: SocketAddr,
    metrics: SocketAddr,
    said: Arc<Mutex<String>>,
}

impl House {
    /// Starts one.
    pub(crate) fn open(flags: &[&str]) -> Self {
        Self::open_with(Command::new(env!("CARGO_BIN_EXE_jungle-referee")), flags)
    }

    /// Starts one by a command that takes the arguments of the binary.
    pub(crate) fn open_with(mut command: Command, flags: &[&str]) -> Self {
        // The page's port is told nowhere, so it is chosen here: free a moment ago.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let metrics = free.expect("a free port");
        let page = format!("--metrics-listen={metrics}");
        // Finished games are of the players, not of the attack.
        command.args(["serve", "--listen=127.0.0.1:0", "--log=error", "--keep-finished=1", &page]).args(flags);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("the binary starts");
        let (said, lines) = (Arc::new(Mutex::new(String::new())), child.stderr.take().expect("piped"));
        let heard = Arc::clone(&said);
        std::thread::spawn(move || {
            for line in BufReader::new(lines).lines().map_while(Result::ok) {
                heard.lock().expect("no panic").push_str(&(line + "\n"));
            }
        });
        let process = Process::listening(child);
        Self { addr: process.addr, process, metrics, said }
    }

    /// A new connection.
    pub(crate) async fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.addr)).expect("an address");
        within(endpoint.connect()).await.expect("it listens")
    }

    /// A client on a new connection.
    pub(crate) async fn client(&self) -> Client {
        Client::new(self.channel().await)
    }

    /// The numbers of the metrics page, those with labels left out.
    async fn numbers(&self) -> BTreeMap<String, f64> {
        let mut stream = TcpStream::connect(self.metrics).await.expect("the page is there");
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n")
            .await
            .expect("it is taken");
        let mut page = String::new();
        within(stream.read_to_string(&mut page)).await.expect("a page");
        let number = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        page.lines().filter_map(number).collect()
    }

    /// Waits until nobody is connected, nothing is under way, and the processor rests.
    pub(crate) async fn comes_to_rest(&self) {
        const LEFT: [&str; 3] = ["jungle_connections", "jungle_calls_under_way", "jungle_watches"];
        const A_WHILE: Duration = Duration::from_millis(150);
        // Less than a busy loop would use, were it given half a processor.
        const AT_MOST: u64 = 5;
        let mut last = None;
        let rests = async {
            loop {
                let numbers = self.numbers().await;
                let left = LEFT.map(|name| numbers.get(name).copied().expect("a known number"));
                let before = self.process.ticks();
                tokio::time::sleep(A_WHILE).await;
                let ticks = self.process.ticks() - before;
                if left == [0.0; 3] && ticks <= AT_MOST {
                    return;
                }
                last = Some((left, ticks));
            }
        };
        let rested = tokio::time::timeout(3 * crate::server::PATIENCE, rests).await;
        assert!(rested.is_ok(), "{LEFT:?} and ticks of the processor: still {last:?}");
    }

    /// Plays a whole game from three connections: every verdict, the clock, the stream and the end are as
    /// they should be, and health says that all is well.
    pub(crate) async fn serves(&self) {
        let (mut red, mut blue, mut watcher) = (self.client().await, self.client().await, self.client().await);
        let ruleset = pb::RulesetSpec { preset: "folk".to_owned(), ..pb::RulesetSpec::default() };
        let request = NewGameRequest {
            ruleset: Some(ruleset),
            start_position: START.to_owned(),
            time_control: Some(ten_minutes()),
            ..NewGameRequest::default()
        };
        let table = Table::new(&mut red, request).await;
        let mut stream = within(table.watch(&mut watcher, None, Some(0))).await.expect("a stream");
        for (mv, rule) in FORBIDDEN {
            let reply = within(red.submit_move(by(&table.red, table.submit(mv)))).await.expect("a verdict");
            let Some(Verdict::Refused(refused)) = reply.into_inner().verdict else { panic!("{mv} was accepted") };
            let told = refused.violation.as_ref().map(pb::Violation::rule);
            assert_eq!((told, refused.ply, refused.sequence), (Some(rule), Some(0), 1), "{mv}");
        }
        for (ply, mv) in (0..).zip(MOVES) {
            let client = if ply % 2 == 0 { &mut red } else { &mut blue };
            let reply = within(client.submit_move(by(table.token_at(ply), table.submit(mv)))).await.expect("a verdict");
            let Some(Verdict::Accepted(accepted)) = reply.into_inner().verdict else { panic!("{mv} was refused") };
            assert_eq!(accepted.sequence, u64::from(ply) + 2, "{mv}");
            assert_eq!(accepted.outcome.is_some(), mv == "c9d9", "{mv}");
            check_clock(accepted.clock.as_ref().expect("a clock"), ply);
        }
        let mut events = Vec::new();
        while let Some(event) = next_event(&mut stream).await.expect("no error") {
            events.push(event);
        }
        let told: Vec<u64> = events.iter().map(|event| event.sequence).collect();
        assert_eq!(told, (1..=26).collect::<Vec<_>>(), "each event once");
        let outcome = events.last().and_then(|event| event.outcome.as_ref()).expect("an outcome");
        assert_eq!((outcome.reason(), outcome.winner()), (OutcomeReason::Den, Side::Red));
        let health = within(HealthClient::new(self.channel().await).check(HealthCheckRequest::default())).await;
        assert_eq!(health.expect("an answer").into_inner().status(), ServingStatus::Serving);
    }

    /// Repeats an attack: others play meanwhile and afterwards, then nothing of it is left, and from some
    /// repeat on it costs no more memory.
    pub(crate) async fn withstands(&self, name: &str, attack: impl AsyncFn(u32)) {
        let mut memory = Vec::new();
        for round in 0..rounds() {
            tokio::join!(attack(round), self.serves());
            self.serves().await;
            self.comes_to_rest().await;
            memory.push(self.process.memory());
        }
        check_plateau(name, &memory);
        self.did_not_complain();
    }

    /// Nothing panicked in the server, not even where nobody would have noticed.
    pub(crate) fn did_not_complain(&self) {
        let said = self.said.lock().expect("no panic");
        assert!(said.is_empty(), "the server said: {said}");
    }
}

fn ten_minutes() -> pb::TimeControl {
    use pb::time_control::{Increment, Kind};
    let (initial, increment) = (seconds(600), seconds(2));
    pb::TimeControl { kind: Some(Kind::Increment(Increment { initial, increment })) }
}

fn seconds(seconds: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos: 0 })
}

/// Nobody has lost more than the game can have lasted, or won more than the increments.
#[track_caller]
fn check_clock(clock: &pb::Clock, ply: u32) {
    for remaining in [&clock.red_remaining, &clock.blue_remaining] {
        let seconds = remaining.as_ref().expect("a timed game").seconds;
        assert!((400..=602 + i64::from(ply)).contains(&seconds), "{seconds} s at ply {ply}");
    }
}
