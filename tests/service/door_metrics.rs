//! The metrics page: that it tells what happened, to whoever asks, and nothing that is secret.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::door::{millis, uuid};
use crate::door_limits::numbers;
use crate::log_double::{Fate, LogDouble};
use crate::server::{EPOCH, Table, TestServer, by, config, next_event, within};
use jungle_referee::game::Span;
use jungle_referee::runtime::ManualClock;
use jungle_referee::service::proto as pb;

/// A server with a page, and a log that the test holds.
async fn served() -> (TestServer, LogDouble, SocketAddr) {
    let clock = Arc::new(ManualClock::at(EPOCH));
    let log = LogDouble::new(Arc::clone(&clock) as _);
    let config = config(&["--metrics-listen=127.0.0.1:0"]);
    let server = TestServer::start_with(config, log.ports(), Some(clock)).await;
    let page = server.metrics.expect("a page");
    (server, log, page)
}

/// Asks over HTTP/1.1: the status and the text.
async fn get(address: SocketAddr, what: &str) -> (u16, String) {
    let mut stream = within(TcpStream::connect(address)).await.expect("it listens");
    let request = format!("{what} HTTP/1.1\r\nHost: here\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it is taken");
    let mut answer = String::new();
    within(stream.read_to_string(&mut answer)).await.expect("an answer to its end");
    let (head, text) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    assert!(status != 200 || head.contains("text/plain; version=0.0.4"), "{head}");
    (status, text.to_owned())
}

async fn page(address: SocketAddr) -> BTreeMap<String, f64> {
    let (status, text) = get(address, "GET /metrics").await;
    assert_eq!(status, 200);
    numbers(&text)
}

#[track_caller]
fn says(page: &BTreeMap<String, f64>, expected: &[(&str, f64)]) {
    for (name, value) in expected {
        let told = page.get(&format!("jungle_{name}")).copied();
        assert!(told.is_some_and(|told| (told - value).abs() < 1e-9), "jungle_{name} is {told:?}, not {value}");
    }
}

/// "What my referee did today, I see at a glance."
#[tokio::test]
async fn the_page_tells_games_verdicts_endings_replays_watches_calls_and_errors() {
    let (server, _, address) = served().await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, pb::NewGameRequest::default()).await;
    let idle = Table::new(&mut client, pb::NewGameRequest::default()).await;
    let mut stream = table.watch(&mut client, None, Some(0)).await.expect("a stream");
    let first = pb::SubmitMoveRequest { request_id: uuid(1), expected_ply: Some(0), ..table.submit("a3a4") };
    for _ in 0..3 {
        client.submit_move(by(&table.red, first.clone())).await.expect("a verdict");
    }
    client.submit_move(by(&table.blue, table.submit("a7a5"))).await.expect("a verdict");
    client.submit_move(by(&table.red, table.submit("a4a5"))).await.expect_err("not its turn");
    client.get_game(pb::GetGameRequest::default()).await.expect_err("no id");
    let told = page(address).await;
    says(
        &told,
        &[
            ("games{status=\"running\"}", 2.0),
            ("games{status=\"ended\"}", 0.0),
            ("games_created_total", 2.0),
            ("verdicts_total{rule=\"ACCEPTED\"}", 1.0),
            ("verdicts_total{rule=\"STEP\"}", 1.0),
        ],
    );
    says(
        &told,
        &[
            ("replays_total", 2.0),
            ("watches", 1.0),
            ("calls_total{call=\"SubmitMove\"}", 5.0),
            ("calls_total{call=\"WatchGame\"}", 1.0),
            ("calls_under_way", 0.0),
            ("errors_total{code=\"FAILED_PRECONDITION\",reason=\"NOT_YOUR_TURN\"}", 1.0),
            ("errors_total{code=\"INVALID_ARGUMENT\",reason=\"INVALID_FIELD\"}", 1.0),
            ("connections", 1.0),
            ("connections_opened_total", 1.0),
            ("append_latency_seconds_count", 3.0),
        ],
    );
    let leave = pb::LeaveGameRequest { game_id: table.id.clone(), request_id: String::new() };
    client.leave_game(by(&table.red, leave)).await.expect("Red leaves");
    let mut events = 0;
    while next_event(&mut stream).await.expect("no error").is_some() {
        events += 1;
    }
    assert_eq!(events, 3);
    let told = page(address).await;
    says(
        &told,
        &[
            ("games{status=\"running\"}", 1.0),
            ("games{status=\"ended\"}", 1.0),
            ("games_ended_total{reason=\"LEFT\"}", 1.0),
            ("games_ended_total{reason=\"DEN\"}", 0.0),
            ("watch_lag_events_count", 3.0),
        ],
    );
    drop((client, idle));
    server.stop().await;
}

/// "A clock ran out while the disk was slow; the page says how late the flag was, and why."
#[tokio::test]
async fn the_page_tells_how_late_flags_were_written_how_long_commands_waited_and_the_log_took() {
    let (server, log, address) = served().await;
    let mut client = server.client().await;
    let kind = pb::time_control::Kind::PerMove(pb::time_control::PerMove { limit: Some(millis(1_000)) });
    let time_control = Some(pb::TimeControl { kind: Some(kind) });
    let table = Table::new(&mut client, pb::NewGameRequest { time_control, ..Default::default() }).await;
    log.next(Fate::Failed);
    client.submit_move(by(&table.red, table.submit("a3a4"))).await.expect_err("the log failed");
    log.delay_by_clock(Span::from_millis(250));
    let asked = log.asked();
    server.advance(Span::from_millis(1_000));
    within(async {
        while log.asked() == asked {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // A call that comes while the flag is being written waits for it.
    let (mut other, request) = (client.clone(), by(&table.red, table.submit("a3a4")));
    let late = tokio::spawn(async move { other.submit_move(request).await });
    within(async {
        while server.registry.load().calls() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    server.advance(Span::from_millis(250));
    within(late).await.expect("no panic").expect_err("the game is over");
    let told = page(address).await;
    says(
        &told,
        &[
            ("flag_lateness_seconds_count", 1.0),
            ("flag_lateness_seconds_sum", 0.25),
            ("flag_lateness_seconds_bucket{le=\"0.1\"}", 0.0),
            ("flag_lateness_seconds_bucket{le=\"0.5\"}", 1.0),
            ("append_latency_seconds_sum", 0.25),
            ("append_faults_total{fault=\"failed\"}", 1.0),
            ("games_ended_total{reason=\"TIMEOUT\"}", 1.0),
            ("errors_total{code=\"UNAVAILABLE\",reason=\"LOG_FAILED\"}", 1.0),
        ],
    );
    server.stop().await;
}

/// "The page is on my dashboard for all to see: nobody finds a game or a token on it."
#[tokio::test]
async fn the_page_holds_no_id_and_no_token_and_there_is_no_other_page() {
    let (server, _, address) = served().await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, pb::NewGameRequest { request_id: uuid(7), ..Default::default() }).await;
    client.submit_move(by(&table.red, table.submit("a3a4"))).await.expect("a verdict");
    let (_, text) = get(address, "GET /metrics").await;
    for secret in [&table.id, &table.red, &table.blue, &table.arbiter, &uuid(7)] {
        assert!(!text.contains(secret.as_str()), "{secret} is on the page");
    }
    assert_eq!(get(address, "GET /").await.0, 404);
    assert_eq!(get(address, "POST /metrics").await.0, 405);
    server.stop().await;
}

/// "Somebody held the page's door open with eight hands; the games went on."
#[tokio::test]
async fn readers_of_the_page_are_so_many_and_delay_no_game() {
    let (server, _, address) = served().await;
    let mut silent = Vec::new();
    for _ in 0..8 {
        silent.push(TcpStream::connect(address).await.expect("it listens"));
    }
    let waits = tokio::spawn(get(address, "GET /metrics"));
    let mut client = server.client().await;
    for _ in 0..20 {
        Table::new(&mut client, pb::NewGameRequest::default()).await;
    }
    assert!(!waits.is_finished(), "a ninth reader waits for its turn");
    silent.pop();
    assert_eq!(within(waits).await.expect("no panic").0, 200);
    server.stop().await;
}
