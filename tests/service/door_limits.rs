//! The limits of the whole server, each driven to its edge: calls under way, watches, connections, headers.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::door::{bearer, told, with};
use crate::door_binary::binary;
use crate::log_double::LogDouble;
use crate::server::{Client, EPOCH, Table, TestServer, by, config, next_event, within};
use jungle_referee::runtime::{Clock as _, ManualClock, SystemClock};
use jungle_referee::service::proto as pb;

/// A server whose log the test holds.
async fn held(flags: &[&str]) -> (TestServer, LogDouble) {
    let clock = std::sync::Arc::new(ManualClock::at(EPOCH));
    let log = LogDouble::new(std::sync::Arc::clone(&clock) as _);
    (TestServer::start_with(config(flags), log.ports(), Some(clock)).await, log)
}

fn offer(table: &Table) -> pb::OfferDrawRequest {
    pb::OfferDrawRequest { game_id: table.id.clone(), ..pb::OfferDrawRequest::default() }
}

#[track_caller]
fn is_busy<T: std::fmt::Debug>(answer: Result<T, Status>, limit: &str) {
    let busy = told(answer);
    assert_eq!((busy.reason.as_str(), busy.value("limit")), ("SERVER_BUSY", limit));
}

/// "The server was overrun. Others were told to wait; my move was judged."
#[tokio::test]
async fn while_too_many_calls_are_under_way_what_can_wait_is_shed_and_a_first_move_of_a_ply_never() {
    let (server, log) = held(&["--max-calls=3"]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, pb::NewGameRequest::default()).await;
    let other = Table::new(&mut client, pb::NewGameRequest::default()).await;
    log.hold();
    let asked = log.asked();
    // Two that wait for the log; the third place is still there for a look.
    let mut waiting = tokio::task::JoinSet::new();
    for table in [&table, &other] {
        let (mut client, request) = (client.clone(), by(&table.blue, offer(table)));
        waiting.spawn(async move { client.offer_draw(request).await.map(drop) });
    }
    until(|| log.asked() == asked + 2).await;
    let look = pb::GetGameRequest { game_id: table.id.clone() };
    within(client.get_game(look.clone())).await.expect("the last place");
    // A move takes that place, and then everything else is shed but moves.
    let submit = |table: &Table, token: &str| {
        let (mut client, request) = (client.clone(), by(token, table.submit("a3a4")));
        async move { client.submit_move(request).await.map(drop) }
    };
    waiting.spawn(submit(&table, &table.red));
    until(|| server.registry.load().calls() == 3).await;
    let mut client_of_others = server.client().await;
    is_busy(within(client_of_others.get_game(look)).await, "3");
    is_busy(within(client_of_others.new_game(pb::NewGameRequest::default())).await, "3");
    is_busy(within(client_of_others.offer_draw(by(&table.blue, offer(&table)))).await, "3");
    // The first move of a ply is let in however many there are; a second of the same ply is not.
    waiting.spawn(submit(&other, &other.red));
    until(|| server.registry.load().calls() == 4).await;
    is_busy(within(submit(&other, &other.red)).await, "3");
    let mut health = HealthClient::new(server.channel().await);
    within(health.check(HealthCheckRequest::default())).await.expect("health is never shed");
    let stream = within(table.watch(&mut client, Some(&table.red), None)).await;
    stream.expect("a watch has limits of its own");
    log.release();
    while let Some(answer) = within(waiting.join_next()).await {
        answer.expect("no panic").expect("what was let in is answered");
    }
    until(|| server.registry.load().calls() == 0).await;
    client.new_game(pb::NewGameRequest::default()).await.expect("a place again");
    assert_eq!((table.get(&mut client).await.ply, other.get(&mut client).await.ply), (Some(1), Some(1)));
    server.stop().await;
}

/// Waits for what other tasks are about to do.
async fn until(holds: impl Fn() -> bool) {
    within(async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// "The hall was full of onlookers; I still saw my own game."
#[tokio::test]
async fn the_server_has_so_many_watches_and_the_seats_have_theirs_besides() {
    let server = TestServer::start_manual(&["--max-watches=3"]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, pb::NewGameRequest::default()).await;
    let other = Table::new(&mut client, pb::NewGameRequest::default()).await;
    let mut elsewhere = server.client().await;
    let mut streams = Vec::new();
    streams.push(table.watch(&mut client, None, Some(0)).await.expect("one of three"));
    for table in [&table, &other] {
        streams.push(table.watch(&mut elsewhere, None, Some(0)).await.expect("one of three"));
    }
    is_busy(other.watch(&mut client, None, None).await.map(drop), "3");
    is_busy(other.watch(&mut client, Some(&other.arbiter), None).await.map(drop), "3");
    let mut own = other.watch(&mut client, Some(&other.blue), Some(0)).await.expect("a seat's stream");
    assert!(next_event(&mut own).await.expect("no error").is_some());
    // A failed watch takes no place for good, and one that goes gives its place back.
    assert_eq!(told(table.watch(&mut client, None, Some(99)).await.map(drop)).reason, "SERVER_BUSY");
    streams.pop();
    within(async {
        while other.watch(&mut client, None, None).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    for _ in 0..5 {
        until_watches(&server, 3).await;
        assert_eq!(told(table.watch(&mut client, None, Some(99)).await.map(drop)).reason, "BEYOND_HEAD");
    }
    server.stop().await;
}

/// Waits until so many watches are open, those of seats included.
async fn until_watches(server: &TestServer, many: u64) {
    until(|| server.registry.gauges().watches.read() == many).await;
}

/// "My proxy adds headers; I know how many are too many."
#[tokio::test]
async fn headers_up_to_16_kib_are_read_and_beyond_it_the_call_is_refused() {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let ask = async |client: &mut Client, bytes: usize| {
        let request = with(&bearer(&"A".repeat(bytes)), pb::ListRulesetsRequest {});
        within(client.list_rulesets(request)).await.expect_err("not a token of ours").code()
    };
    // HTTP/2 counts names, values, and 32 bytes for each: some 500 bytes go to the others.
    let (mut read, mut refused) = (15_000, 16 * 1024);
    assert_eq!(ask(&mut client, read).await, Code::Unauthenticated);
    assert_ne!(ask(&mut client, refused).await, Code::Unauthenticated);
    while refused - read > 1 {
        let between = usize::midpoint(read, refused);
        let is_read = ask(&mut client, between).await == Code::Unauthenticated;
        *(if is_read { &mut read } else { &mut refused }) = between;
    }
    assert!((15_500..16 * 1024).contains(&read), "the edge lies at {read} bytes");
    client.list_rulesets(pb::ListRulesetsRequest {}).await.expect("the connection lives");
    server.stop().await;
}

/// "Five hundred strangers were turned away, and my log has a line or two of it."
#[tokio::test]
async fn surplus_connections_are_closed_and_told_at_most_once_a_second_with_their_number() {
    const SURPLUS: u64 = 500;
    let clock = SystemClock::start();
    let began = clock.now();
    let arguments = ["serve", "--listen=127.0.0.1:0", "--max-connections=1", "--log-format=json"];
    let mut child = Killed(binary(&arguments, &[]).stderr(Stdio::piped()).spawn().expect("the binary runs"));
    let (out, err) = (child.0.stdout.take().expect("piped"), child.0.stderr.take().expect("piped"));
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line).expect("a line");
    let address = line.trim_end().rsplit(' ').next().expect("an address").to_owned();
    let client = Client::connect(format!("http://{address}")).await.expect("the one place");
    for _ in 0..SURPLUS {
        let mut stream = within(TcpStream::connect(&address)).await.expect("it listens");
        // It is closed at once: nothing but the end is read.
        let read = within(stream.read_to_end(&mut Vec::new())).await;
        assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    }
    let reading = tokio::task::spawn_blocking(move || {
        let (mut told, mut lines) = (0, 0);
        for line in BufReader::new(err).lines() {
            let line: serde_json::Value = serde_json::from_str(&line.expect("a line")).expect("one object a line");
            told += line["fields"]["many"].as_u64().unwrap_or_default();
            lines += u64::from(line["fields"]["many"].is_u64());
            if told == SURPLUS {
                break;
            }
        }
        (told, lines)
    });
    let (told, lines) = within(reading).await.expect("the thread ends");
    assert_eq!(told, SURPLUS);
    let seconds = clock.now().since(began).micros() / 1_000_000;
    assert!(lines <= seconds + 2, "{lines} lines in {seconds} s");
    drop(client);
}

/// A child that does not outlive its test, so that whoever reads what it says comes to an end.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The numbers of a page by their names with labels.
pub(crate) fn numbers(page: &str) -> BTreeMap<String, f64> {
    let lines = page.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let number = |line: &str| {
        let (name, value) = line.rsplit_once(' ').expect("a name and a value");
        (name.to_owned(), value.parse().expect("a number"))
    };
    lines.map(number).collect()
}
