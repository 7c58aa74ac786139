//! Connections in great number: opened and closed in a storm, and held open all at once by a process of
//! their own.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use futures_util::stream::{self, StreamExt as _};
use jungle_referee::runtime::{Clock as _, SystemClock};
use jungle_referee::service::proto as pb;
use prost::Message as _;
use tokio::sync::{mpsc, watch};

use crate::attacker::Attacker;
use crate::house::{House, check_plateau, many, rounds};
use crate::server::{Table, within};
use crate::wire::frames::{call, flag, frame, kind, message};

/// How many connections come or go at once.
const AT_ONCE: usize = 100;

/// Where the crowd's process finds what it is to do: the server's address, the game, and how many they are.
const ORDER: &str = "HOSTILE_CROWD_ORDER";

/// File descriptors that a process needs besides its connections.
const BESIDES: u64 = 200;

/// "Ten thousand came and went, some without a word, some in the middle of one. I played on."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_connections_leaves_nothing() {
    let each = many("HOSTILE_STORM", 1_800);
    let house = House::open(&[]);
    let whole = [call(1, "ListRulesets"), message(1, &pb::ListRulesetsRequest {})].concat();
    house
        .withstands("a storm of connections", async |_| {
            let (house, whole) = (&house, &whole);
            let coming = stream::iter(0..each).map(async |number| match number % 4 {
                0 => Attacker::connect(house.addr).await.vanish(),
                1 => Attacker::greeted(house.addr, &[]).await.vanish(),
                2 => Attacker::greeted(house.addr, &whole[..usize::try_from(number).expect("small") % whole.len()])
                    .await
                    .vanish(),
                _ => {
                    let mut attacker = Attacker::greeted(house.addr, whole).await;
                    within(attacker.frame()).await.expect("the server's settings");
                    attacker.vanish();
                }
            });
            coming.buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
        })
        .await;
}

/// How many file descriptors a process may be allowed here.
fn most_descriptors() -> u64 {
    let limits = std::fs::read_to_string("/proc/self/limits").expect("a readable file");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a line");
    let hard = line.split_whitespace().nth(4).expect("soft and hard");
    hard.parse().unwrap_or(u64::MAX)
}

/// A command that begins with as many file descriptors as it may have.
fn with_descriptors(program: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n \"$(ulimit -Hn)\" && exec \"$0\" \"$@\"", program]);
    command
}

/// A crowd: a process of its own that holds connections. Killed when dropped.
struct Crowd {
    child: Child,
    says: BufReader<std::process::ChildStdout>,
}

impl Crowd {
    /// Sends so many to a server, to look at a game.
    fn send(server: SocketAddr, table: &Table, number: u64) -> Self {
        let program = std::env::current_exe().expect("a path");
        let mut command = with_descriptors(program.to_str().expect("a path of text"));
        command.args(["--ignored", "--exact", "crowds::the_crowd", "--nocapture", "--test-threads=1"]);
        command.env(ORDER, format!("{server} {} {number}", table.id));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let says = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, says }
    }

    /// Waits for it to say a word, and tells the number that comes with it.
    fn says(&mut self, word: &str) -> u64 {
        loop {
            let mut line = String::new();
            assert!(self.says.read_line(&mut line).is_ok_and(|bytes| bytes > 0), "the crowd left before it was {word}");
            // The test harness may have begun the line.
            if let Some((_, number)) = line.trim_end().split_once(word) {
                return number.trim().parse().expect("a number");
            }
        }
    }

    /// Lets all of them call once.
    fn call(&mut self) {
        self.child.stdin.as_mut().expect("piped").write_all(b"call\n").expect("it listens");
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        // It may have left already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// "Ten thousand were connected at once. Each was answered, and I played as if I were alone."
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crowd_is_held_at_once_and_each_of_it_is_answered() {
    let wanted = u64::from(many("HOSTILE_CROWD", 1_000));
    let number = wanted.min(most_descriptors().saturating_sub(BESIDES));
    if number < wanted {
        println!(
            "only {number} connections of {wanted}: a process may have {} file descriptors here",
            most_descriptors()
        );
    }
    let places = format!("--max-connections={}", number + 16);
    let house = House::open_with(with_descriptors(env!("CARGO_BIN_EXE_jungle-referee")), &[&places]);
    let table = Table::new(&mut house.client().await, pb::NewGameRequest::default()).await;
    house.serves().await;
    house.comes_to_rest().await;
    let clock = SystemClock::start();
    let mut memory = Vec::new();
    for _ in 0..rounds() {
        let (began, before) = (clock.now(), house.process.memory());
        let mut crowd = Crowd::send(house.addr, &table, number);
        assert_eq!(tokio::task::block_in_place(|| crowd.says("held")), number);
        let (came, held) = (clock.now(), house.process.memory());
        house.serves().await;
        crowd.call();
        let (answered, ()) = tokio::join!(
            async { tokio::task::spawn_blocking(move || (crowd.says("answered"), crowd)).await.expect("no panic") },
            house.serves()
        );
        let (answered, crowd) = answered;
        assert_eq!(answered, number);
        let (done, called) = (clock.now(), house.process.memory());
        drop(crowd);
        house.serves().await;
        house.comes_to_rest().await;
        let after = house.process.memory();
        let (kib, ms) = (1024, 1_000);
        println!(
            "{number} connections: before {} KiB, held {} KiB after {} ms, all answered {} KiB after {} ms more, gone {} KiB",
            before / kib,
            held / kib,
            came.since(began).micros() / ms,
            called / kib,
            done.since(came).micros() / ms,
            after / kib
        );
        memory.push(called);
    }
    check_plateau("a crowd", &memory);
    house.did_not_complain();
}

/// The crowd itself, in the process that a test starts for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by a_crowd_is_held_at_once_and_each_of_it_is_answered"]
async fn the_crowd() {
    let Ok(order) = std::env::var(ORDER) else { return };
    let [server, game, number] = order.split(' ').collect::<Vec<_>>().try_into().expect("three words");
    let (server, number): (SocketAddr, usize) =
        (server.parse().expect("an address"), number.parse().expect("a number"));
    let held: Vec<Attacker> = stream::iter(0..number)
        .map(async |_| {
            let mut one = Attacker::greeted(server, &[]).await;
            let first = within(one.frame()).await.expect("a place among the connections");
            assert_eq!(first.kind, kind::SETTINGS);
            one
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let (calls, called) = watch::channel(false);
    let (answers, mut answered) = mpsc::unbounded_channel();
    for one in held {
        tokio::spawn(stay(one, game.to_owned(), called.clone(), answers.clone()));
    }
    println!("held {number}");
    let heard = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    let _ = within(heard).await.expect("no panic");
    calls.send_replace(true);
    for _ in 0..number {
        within(answered.recv()).await.expect("an answer");
    }
    println!("answered {number}");
    // The test ends them; and if it is gone itself, so are they, after a while.
    within(std::future::pending::<()>()).await;
}

/// One of the crowd: answers pings, and once it may, asks for the game and tells that it was shown it.
async fn stay(
    mut one: Attacker,
    game_id: String,
    mut called: watch::Receiver<bool>,
    answers: mpsc::UnboundedSender<()>,
) {
    let (mut waits, mut ahead) = (true, [0]);
    loop {
        let waiting = async { waits && called.wait_for(|called| *called).await.is_ok() };
        let frame = tokio::select! {
            true = waiting => {
                waits = false;
                let asked = pb::GetGameRequest { game_id: game_id.clone() };
                one.send(&[call(1, "GetGame"), message(1, &asked)].concat()).await;
                continue;
            }
            // Looks without taking, so that nothing of a frame is lost when the other comes first.
            ready = one.stream.peek(&mut ahead) => {
                ready.expect("an open socket");
                one.frame().await.expect("the connection lives")
            }
        };
        match frame.kind {
            kind::PING if frame.flags & flag::ACK == 0 => {
                one.send(&self::frame(kind::PING, flag::ACK, 0, &frame.payload)).await;
            }
            kind::DATA => {
                let shown = pb::GetGameResponse::decode(&frame.payload[5..]).expect("an answer");
                assert_eq!(shown.game.expect("a game").game_id, game_id);
                answers.send(()).expect("somebody counts");
            }
            kind::GOAWAY | kind::RST_STREAM => panic!("a connection of the crowd was ended"),
            _ => {}
        }
    }
}
