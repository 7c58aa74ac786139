//! What is promised where the server goes down and comes back on a log that outlasts it.

mod log_double;
mod server;

use std::sync::Arc;

use jungle_referee::app::Ports;
use jungle_referee::game::{Span, Time};
use jungle_referee::runtime::{Clock as _, ManualClock};
use jungle_referee::service::proto::game_event::Kind;
use jungle_referee::service::proto::watch_game_response::Message;
use jungle_referee::service::proto::{self as pb, GameStatus, NewGameRequest, OutcomeReason, Side};
use log_double::{Fate, LogDouble};
use prost_types::{Duration, Timestamp};
use server::{Client, EPOCH, Table, TestServer, by, config, next_event, reason, within};
use tonic::Code;

const S: fn(u64) -> Span = Span::from_secs;
const KEY: &[&str] = &["--token-key", "of-the-restarted-server"];

/// A log on a hand-moved clock, and the servers that come and go on it.
struct House {
    clock: Arc<ManualClock>,
    log: LogDouble,
}

impl House {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::at(EPOCH));
        Self { log: LogDouble::new(Arc::clone(&clock) as _), clock }
    }

    async fn start(&self) -> (TestServer, Client) {
        let ports: Ports = self.log.ports();
        let server = TestServer::start_with(config(KEY), ports, Some(Arc::clone(&self.clock))).await;
        let client = server.client().await;
        (server, client)
    }

    /// The server is gone after its last sign of life; nothing happens for `down`; another one starts.
    async fn restart(&self, server: TestServer, silent: Span, down: Span) -> (TestServer, Client) {
        self.log.go_down(self.clock.now());
        self.clock.advance_to(self.clock.now() + silent);
        server.stop().await;
        self.clock.advance_to(self.clock.now() + down);
        self.start().await
    }
}

fn seconds(seconds: i64) -> Option<Duration> {
    Some(Duration { seconds, nanos: 0 })
}

fn stamp(time: Time) -> Option<Timestamp> {
    let micros = i64::try_from(time.micros()).expect("a time of our days");
    Some(Timestamp { seconds: micros / 1_000_000, nanos: i32::try_from(micros % 1_000_000 * 1_000).expect("nanos") })
}

fn per_move(limit: i64) -> Option<pb::TimeControl> {
    use pb::time_control::{Kind, PerMove};
    Some(pb::TimeControl { kind: Some(Kind::PerMove(PerMove { limit: seconds(limit) })) })
}

fn with_id(table: &Table, mv: &str, ply: u32, id: &str) -> pb::SubmitMoveRequest {
    pb::SubmitMoveRequest { request_id: id.to_owned(), expected_ply: Some(ply), ..table.submit(mv) }
}

const ID: &str = "0190a000-0000-7000-8000-000000000001";
const OTHER_ID: &str = "0190a000-0000-7000-8000-000000000002";

/// What a restart may change: the sequence by one, the clock's deadline, the server's time, who is there.
fn lasting(game: pb::Game) -> pb::Game {
    pb::Game { sequence: 0, server_time: None, clock: None, presence: None, ..game }
}

/// "They restarted the server in the middle of our game: nothing was lost, my token was good, and my clock
/// showed what it had shown."
#[tokio::test]
async fn an_open_game_comes_back_as_it_was_and_its_clock_stood_still() {
    let house = House::new();
    let (server, mut client) = house.start().await;
    let request = NewGameRequest { time_control: per_move(60), request_id: ID.into(), ..NewGameRequest::default() };
    let made = client.new_game(request.clone()).await.expect("a game").into_inner();
    let table = Table::of(&made);
    let moved = client.submit_move(by(&table.red, with_id(&table, "a3a4", 0, ID))).await.expect("a verdict");
    client.offer_draw(by(&table.red, offer(&table))).await.expect("an offer");
    server.advance(S(20));
    let before = table.get(&mut client).await;
    assert_eq!(before.clock.expect("clocks").blue_remaining, seconds(40));

    let (server, mut client) = house.restart(server, S(1), S(7_200)).await;
    let after = table.get(&mut client).await;
    assert_eq!(lasting(after.clone()), lasting(before.clone()));
    assert_eq!(after.sequence, before.sequence + 1);
    assert_eq!(after.clock.expect("clocks").blue_remaining, seconds(40));

    let mut stream = table.watch(&mut client, Some(&table.red), Some(before.sequence)).await.expect("a stream");
    let told = within(next_event(&mut stream)).await.expect("no error").expect("an event");
    let down_since = stamp(EPOCH + S(20));
    assert_eq!(told.kind, Some(Kind::Resumed(pb::game_event::Resumed { down_since, credited: seconds(7_201) })));
    assert_eq!(told.clock.expect("clocks").blue_remaining, seconds(40));

    // The same requests get their first answers.
    let again = client.new_game(request).await.expect("the same game").into_inner();
    assert!(again.replayed);
    assert_eq!((again.red_token, again.blue_token), (made.red_token, made.blue_token));
    let replay = client.submit_move(by(&table.red, with_id(&table, "a3a4", 0, ID))).await.expect("a verdict");
    let first = pb::SubmitMoveResponse { replayed: true, ..moved.into_inner() };
    assert_eq!(replay.into_inner(), first);
    let other = client.submit_move(by(&table.red, with_id(&table, "a3a4", 2, ID))).await.expect_err("another body");
    assert_eq!((other.code(), reason(&other).as_str()), (Code::InvalidArgument, "REQUEST_ID_REUSED"));

    // And the game goes on: 40 s are left, to the microsecond.
    server.advance(Span::from_micros(39_999_999));
    let answer = client.submit_move(by(&table.blue, with_id(&table, "g7g6", 1, OTHER_ID))).await.expect("in time");
    let Some(pb::submit_move_response::Verdict::Accepted(accepted)) = answer.into_inner().verdict else {
        panic!("refused");
    };
    assert_eq!(accepted.charged, Some(Duration { seconds: 59, nanos: 999_999_000 }));
    server.stop().await;
}

fn offer(table: &Table) -> pb::OfferDrawRequest {
    pb::OfferDrawRequest { game_id: table.id.clone(), ..pb::OfferDrawRequest::default() }
}

/// "My time had run out before the server died, and I know it: the flag falls, dated when it was due."
/// "His had not, and so it did not."
#[tokio::test]
async fn a_flag_that_was_due_before_the_last_sign_of_life_falls_and_no_other() {
    for (left, falls) in [(1, true), (0, true), (-1, false)] {
        let house = House::new();
        let (server, mut client) = house.start().await;
        let request = NewGameRequest { time_control: per_move(60), ..NewGameRequest::default() };
        let table = Table::new(&mut client, request).await;
        // The server lived until then, and could write nothing down.
        house.log.next(Fate::Failed);
        house.log.next(Fate::Failed);
        house.clock.advance_to(EPOCH + Span::from_micros(60_000_000));
        let down_since = EPOCH + Span::from_micros(if left >= 0 { 60_000_000 + left as u64 } else { 59_999_999 });
        house.log.go_down(down_since);
        server.stop().await;
        house.clock.advance_to(EPOCH + S(600));
        let (server, mut client) = house.start().await;
        let game = table.get(&mut client).await;
        if falls {
            assert_eq!(game.outcome.expect("an outcome").reason(), OutcomeReason::Timeout);
            assert_eq!(game.ended_at, stamp(EPOCH + S(60)));
        } else {
            assert_eq!((game.status(), game.outcome), (GameStatus::Running, None));
            server.advance(Span::from_micros(1));
            let game = table.get(&mut client).await;
            assert_eq!(game.outcome.expect("an outcome").reason(), OutcomeReason::Timeout);
            assert_eq!(game.ended_at, stamp(EPOCH + S(600) + Span::from_micros(1)));
        }
        server.stop().await;
    }
}

/// "We had ten seconds to show ourselves, and the server was down for an hour: we still had them."
#[tokio::test]
async fn a_window_to_join_is_longer_by_the_time_that_the_server_was_down() {
    let house = House::new();
    let (server, mut client) = house.start().await;
    let kind = Some(pb::clock_start::Kind::JoinWindow(Duration { seconds: 10, nanos: 0 }));
    let clock_start = Some(pb::ClockStart { kind });
    let table = Table::new(&mut client, NewGameRequest { clock_start, ..NewGameRequest::default() }).await;
    server.advance(S(4));
    let (server, mut client) = house.restart(server, S(1), S(3_600)).await;
    server.advance(Span::from_micros(5_999_999));
    assert_eq!(table.get(&mut client).await.status(), GameStatus::Waiting);
    server.advance(Span::from_micros(1));
    let game = table.get(&mut client).await;
    assert_eq!(game.outcome.expect("an outcome").reason(), OutcomeReason::Aborted);
    server.stop().await;
}

/// "The start time came while the server was down: our game began when it was back, not before."
#[tokio::test]
async fn a_start_that_fell_due_in_between_happens_when_the_server_is_back() {
    let house = House::new();
    let (server, mut client) = house.start().await;
    let clock_start =
        Some(pb::ClockStart { kind: Some(pb::clock_start::Kind::At(stamp(EPOCH + S(30)).expect("a time"))) });
    let request = NewGameRequest { clock_start, time_control: per_move(60), ..NewGameRequest::default() };
    let table = Table::new(&mut client, request).await;
    let (server, mut client) = house.restart(server, S(1), S(600)).await;
    let game = table.get(&mut client).await;
    assert_eq!((game.status(), game.started_at), (GameStatus::Running, stamp(EPOCH + S(601))));
    assert_eq!(game.clock.expect("clocks").red_remaining, seconds(60));
    server.stop().await;
}

/// "My opponent was away when the server went down; he gets the whole of his absence again, and so do I."
#[tokio::test]
async fn away_countdowns_begin_anew() {
    let house = House::new();
    let (server, mut client) = house.start().await;
    let request = NewGameRequest { away_limit: seconds(30), ..NewGameRequest::default() };
    let table = Table::new(&mut client, request).await;
    let mut red = table.watch(&mut client, Some(&table.red), Some(1)).await.expect("a stream");
    server.advance(S(5));
    let away = within(next_event(&mut red)).await.expect("no error").expect("an event");
    assert_eq!(away.kind, Some(Kind::SeatAway(pb::game_event::SeatAway { side: Side::Blue.into() })));
    server.advance(S(20));
    drop(red);
    let (server, mut client) = house.restart(server, S(1), S(600)).await;
    let mut red = table.watch(&mut client, Some(&table.red), Some(2)).await.expect("a stream");
    let resumed = within(next_event(&mut red)).await.expect("no error").expect("an event");
    assert!(matches!(resumed.kind, Some(Kind::Resumed(_))));
    server.advance(S(5));
    let away = within(next_event(&mut red)).await.expect("no error").expect("an event");
    assert_eq!(away.kind, Some(Kind::SeatAway(pb::game_event::SeatAway { side: Side::Blue.into() })));
    server.advance(Span::from_micros(29_999_999));
    assert_eq!(table.get(&mut client).await.status(), GameStatus::Running);
    server.advance(Span::from_micros(1));
    let end = within(next_event(&mut red)).await.expect("no error").expect("an event");
    assert_eq!(end.outcome.expect("an outcome").reason(), OutcomeReason::Left);
    server.stop().await;
}

/// "The disk failed again just as the server came back: what could not be written then was written later,
/// before my move, and I was charged for nothing."
#[tokio::test]
async fn the_credit_comes_before_every_move_even_if_it_cannot_be_written_at_once() {
    let house = House::new();
    let (server, mut client) = house.start().await;
    let request = NewGameRequest { time_control: per_move(60), ..NewGameRequest::default() };
    let table = Table::new(&mut client, request).await;
    house.log.next(Fate::Failed);
    let (server, mut client) = house.restart(server, S(1), S(600)).await;
    let moved = client.submit_move(by(&table.red, table.submit("a3a4"))).await.expect("a verdict").into_inner();
    let Some(pb::submit_move_response::Verdict::Accepted(accepted)) = moved.verdict else { panic!("refused") };
    assert_eq!((accepted.sequence, accepted.charged), (3, seconds(0)));
    server.stop().await;
}

/// "The result of yesterday's game is still there, every event of it; and it is listed once."
#[tokio::test]
async fn a_finished_game_is_kept_and_gets_no_event_more() {
    let house = House::new();
    let (server, mut client) = house.start().await;
    let table = Table::new(&mut client, NewGameRequest::default()).await;
    let leave = pb::LeaveGameRequest { game_id: table.id.clone(), request_id: ID.into() };
    client.leave_game(by(&table.blue, leave.clone())).await.expect("left");
    let before = table.get(&mut client).await;
    let events = table.whole_log(&mut client).await;
    let (server, mut client) = house.restart(server, S(1), S(60)).await;
    assert_eq!(lasting(table.get(&mut client).await), lasting(before));
    assert_eq!(table.whole_log(&mut client).await, events);
    let listed = client.list_games(pb::ListGamesRequest::default()).await.expect("a list").into_inner();
    assert_eq!(listed.games.len(), 1);
    let again = client.leave_game(by(&table.blue, leave)).await.expect("as before").into_inner();
    assert!(again.replayed);
    server.stop().await;
}

/// "I watched through the restart: my stream broke, I came back with my last number, and saw each event once."
#[tokio::test]
async fn a_watcher_resumes_across_a_restart() {
    let house = House::new();
    let (server, mut client) = house.start().await;
    let table =
        Table::new(&mut client, NewGameRequest { time_control: per_move(60), ..NewGameRequest::default() }).await;
    let mut stream = table.watch(&mut client, None, None).await.expect("a stream");
    let first = within(stream.message()).await.expect("no error").expect("a message").message;
    let Some(Message::Snapshot(snapshot)) = first else { panic!("a snapshot comes first") };
    client.submit_move(by(&table.red, table.submit("a3a4"))).await.expect("a verdict");
    let seen = within(next_event(&mut stream)).await.expect("no error").expect("an event").sequence;
    assert_eq!((snapshot.sequence, seen), (1, 2));
    house.log.go_down(house.clock.now());
    server.stop().await;
    let cut = within(next_event(&mut stream)).await.expect_err("the server stops");
    assert_eq!(cut.code(), Code::Unavailable);
    let (server, mut client) = house.start().await;
    let mut stream = table.watch(&mut client, None, Some(seen)).await.expect("a stream");
    let resumed = within(next_event(&mut stream)).await.expect("no error").expect("an event");
    assert_eq!(resumed.sequence, 3);
    client.submit_move(by(&table.blue, table.submit("g7g6"))).await.expect("a verdict");
    assert_eq!(within(next_event(&mut stream)).await.expect("no error").expect("an event").sequence, 4);
    server.stop().await;
}
