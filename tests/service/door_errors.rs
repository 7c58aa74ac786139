//! Every reason that the contract lists, over the wire; and what the transport refuses by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use crate::door::{a_move, bearer, promises, taken_apart, uuid};
use crate::server::{Client, EPOCH, Table, TestServer, by, config, within};
use bytes::Bytes;
use jungle_referee::app::Ports;
use jungle_referee::game::{Event, Record, Time};
use jungle_referee::runtime::log::Later;
use jungle_referee::runtime::{Append, Appended, Clock, GameId, Ids, Log, LogFault, ManualClock};
use jungle_referee::service::proto::legal_moves_request::Subject;
use jungle_referee::service::proto::{self as pb, clock_start};
use prost::Message;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

/// What a log of a test does with an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Writes,
    Fails,
    Forgets,
    Waits,
}

/// A log whose mood the test sets.
struct MoodyLog {
    clock: Arc<dyn Clock>,
    mood: watch::Sender<Mood>,
}

impl Log for MoodyLog {
    fn append(&self, _game: GameId, _sequence: u64, _event: &Event) -> Append {
        let mood = *self.mood.borrow();
        match mood {
            Mood::Writes => Append::Done(Appended::Written(self.clock.now())),
            Mood::Fails => Append::Done(Appended::Failed),
            Mood::Forgets => Append::Done(Appended::Unknown),
            Mood::Waits => {
                let (mut mood, now) = (self.mood.subscribe(), self.clock.now());
                Append::Pending(Box::pin(async move {
                    match mood.wait_for(|mood| *mood == Mood::Writes).await {
                        Ok(_) => Appended::Written(now),
                        Err(_) => Appended::Failed,
                    }
                }))
            }
        }
    }

    fn tail(&self, _game: GameId, _sequence: u64) -> Later<Result<Vec<Record>, LogFault>> {
        let tail = if *self.mood.borrow() == Mood::Forgets { Err(LogFault) } else { Ok(Vec::new()) };
        Box::pin(std::future::ready(tail))
    }
}

/// Ids of which the second is a fault of ours.
struct FaultyIds(Mutex<u128>);

impl Ids for FaultyIds {
    fn next(&self, now: Time) -> GameId {
        let mut made = self.0.lock().expect("unpoisoned: a panic comes after the lock is gone");
        *made += 1;
        let number = *made;
        drop(made);
        assert!(number != 2, "a fault that a test makes");
        let millis = u128::from(now.micros() / 1_000);
        GameId::from_u128(millis << 80 | 7 << 76 | 2 << 62 | number)
    }
}

/// A server with a log whose mood the test sets.
async fn moody(flags: &[&str]) -> (TestServer, Arc<MoodyLog>) {
    let clock = Arc::new(ManualClock::at(EPOCH));
    let log = Arc::new(MoodyLog { clock: Arc::clone(&clock) as _, mood: watch::Sender::new(Mood::Writes) });
    let ports = Ports { log: Arc::clone(&log) as _, ..Ports::with_clock(Arc::clone(&clock) as _) };
    (TestServer::start_with(config(flags), ports, Some(clock)).await, log)
}

/// The errors that were seen, by the reason they were meant to show.
#[derive(Default)]
struct Seen(BTreeMap<&'static str, Status>);

impl Seen {
    fn add<T: std::fmt::Debug>(&mut self, reason: &'static str, answer: Result<T, Status>) {
        self.0.insert(reason, answer.expect_err(reason));
    }
}

fn offer(table: &Table) -> pb::OfferDrawRequest {
    pb::OfferDrawRequest { game_id: table.id.clone(), ..pb::OfferDrawRequest::default() }
}

async fn about_requests_and_callers(seen: &mut Seen) {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let plain = pb::NewGameRequest::default;
    let (table, other) = (Table::new(&mut client, plain()).await, Table::new(&mut client, plain()).await);
    seen.add("INVALID_FIELD", client.get_game(pb::GetGameRequest::default()).await);
    let made = pb::NewGameRequest { request_id: uuid(1), ..plain() };
    client.new_game(made.clone()).await.expect("a game");
    seen.add("REQUEST_ID_REUSED", client.new_game(pb::NewGameRequest { is_match: true, ..made }).await);
    let nowhere = pb::GetGameRequest { game_id: uuid(2) };
    seen.add("NO_SUCH_GAME", client.get_game(nowhere).await);
    let mv = table.submit("a3a4");
    seen.add("TOKEN_MISSING", client.submit_move(Request::new(mv.clone())).await);
    seen.add("TOKEN_INVALID", client.submit_move(by("nonsense", mv.clone())).await);
    seen.add("TOKEN_OF_OTHER_GAME", client.submit_move(by(&other.red, mv.clone())).await);
    seen.add("NOT_ALLOWED", client.submit_move(by(&table.arbiter, mv)).await);
    server.stop().await;
}

async fn about_moments(seen: &mut Seen) {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let plain = pb::NewGameRequest::default;
    let table = Table::new(&mut client, plain()).await;
    seen.add("NOT_YOUR_TURN", client.submit_move(by(&table.blue, table.submit("a7a6"))).await);
    let stale = pb::SubmitMoveRequest { expected_ply: Some(3), ..table.submit("a3a4") };
    seen.add("STALE_PLY", client.submit_move(by(&table.red, stale)).await);
    seen.add("BEYOND_HEAD", table.watch(&mut client, None, Some(9)).await.map(drop));
    let answer = pb::AnswerDrawRequest { game_id: table.id.clone(), answer: 1, request_id: String::new() };
    seen.add("NO_OFFER", client.answer_draw(by(&table.red, answer)).await);
    client.offer_draw(by(&table.red, offer(&table))).await.expect("an offer");
    seen.add("OFFER_OPEN", client.offer_draw(by(&table.blue, offer(&table))).await);
    let back = pb::OfferDrawRequest { action: 2, ..offer(&table) };
    client.offer_draw(by(&table.red, back)).await.expect("taken back");
    seen.add("ALREADY_OFFERED", client.offer_draw(by(&table.red, offer(&table))).await);
    let leave = pb::LeaveGameRequest { game_id: table.id.clone(), request_id: String::new() };
    client.leave_game(by(&table.red, leave.clone())).await.expect("Red leaves");
    seen.add("GAME_OVER", client.leave_game(by(&table.blue, leave)).await);

    let datou = Some(pb::RulesetSpec { preset: "datou".to_owned(), ..pb::RulesetSpec::default() });
    let table = Table::new(&mut client, pb::NewGameRequest { ruleset: datou, ..plain() }).await;
    seen.add("DRAWS_OFF", client.offer_draw(by(&table.red, offer(&table))).await);
    let window = clock_start::Kind::JoinWindow(crate::door::millis(1_000));
    let clock_start = Some(pb::ClockStart { kind: Some(window) });
    let table = Table::new(&mut client, pb::NewGameRequest { clock_start, ..plain() }).await;
    seen.add("NOT_STARTED", client.submit_move(by(&table.red, table.submit("a3a4"))).await);
    server.stop().await;
}

async fn about_limits(seen: &mut Seen) {
    let flags = ["--max-open-games=2", "--max-watchers=1", "--max-watches-per-connection=7"];
    let server = TestServer::start_manual(&flags).await;
    let mut client = server.client().await;
    let plain = pb::NewGameRequest::default;
    let (table, _) = (Table::new(&mut client, plain()).await, Table::new(&mut client, plain()).await);
    seen.add("TOO_MANY_GAMES", client.new_game(plain()).await);
    let mut streams = vec![table.watch(&mut client, None, None).await.expect("the one watcher")];
    seen.add("TOO_MANY_WATCHERS", table.watch(&mut client, None, None).await.map(drop));
    let mut oldest = table.watch(&mut client, Some(&table.red), Some(1)).await.expect("a seat's stream");
    for _ in 0..4 {
        streams.push(table.watch(&mut client, Some(&table.red), Some(1)).await.expect("a seat's stream"));
    }
    seen.add("STREAM_REPLACED", crate::server::next_event(&mut oldest).await);
    drop(oldest);
    for token in [&table.blue, &table.blue, &table.blue, &table.blue] {
        match table.watch(&mut client, Some(token), None).await {
            Ok(stream) => streams.push(stream),
            Err(status) => seen.add("TOO_MANY_WATCHES", Err::<(), _>(status)),
        }
    }
    assert!(streams.len() <= 7, "{} streams", streams.len());
    let one_at_most = TestServer::start_manual(&["--max-watches=1"]).await;
    let mut of_others = one_at_most.client().await;
    let elsewhere = Table::new(&mut of_others, plain()).await;
    let watched = elsewhere.watch(&mut of_others, None, None).await.expect("the one watch");
    seen.add("SERVER_BUSY", elsewhere.watch(&mut of_others, None, None).await.map(drop));
    drop(watched);
    one_at_most.stop().await;
    // Another connection has watches of its own.
    let mut elsewhere = server.client().await;
    table.watch(&mut elsewhere, Some(&table.blue), None).await.expect("a stream");
    drop(streams);
    server.stop().await;
}

async fn about_the_log(seen: &mut Seen) {
    let (server, log) = moody(&[]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, pb::NewGameRequest::default()).await;
    log.mood.send_replace(Mood::Fails);
    seen.add("LOG_FAILED", client.submit_move(by(&table.red, table.submit("a3a4"))).await);
    log.mood.send_replace(Mood::Forgets);
    seen.add("FATE_UNKNOWN", client.submit_move(by(&table.red, table.submit("a3a4"))).await);

    log.mood.send_replace(Mood::Waits);
    let mut calls = JoinSet::new();
    for _ in 0..65 {
        let (mut client, request) = (client.clone(), by(&table.blue, offer(&table)));
        calls.spawn(async move { client.offer_draw(request).await });
    }
    // The others wait for the log; the one too many is answered at once.
    let first = within(calls.join_next()).await.expect("a call").expect("no panic");
    seen.add("TOO_MANY_WAITING", first);
    log.mood.send_replace(Mood::Writes);
    let mut made = 0;
    while let Some(answer) = within(calls.join_next()).await {
        made += u32::from(answer.expect("no panic").is_ok());
    }
    assert_eq!(made, 1, "one offer was made, the others found it open");
    client.submit_move(by(&table.red, table.submit("a3a4"))).await.expect("the game goes on");
    server.stop().await;
}

async fn about_the_server(seen: &mut Seen) {
    let mut server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, pb::NewGameRequest::default()).await;
    let mut stream = table.watch(&mut client, None, Some(1)).await.expect("a stream");
    server.begin_stop();
    seen.add("SERVER_STOPPING", crate::server::next_event(&mut stream).await);
    server.stop().await;

    let clock = Arc::new(ManualClock::at(EPOCH));
    let ports = Ports { ids: Arc::new(FaultyIds(Mutex::new(0))), ..Ports::with_clock(Arc::clone(&clock) as _) };
    let server = TestServer::start_with(config(&[]), ports, Some(clock)).await;
    let mut client = server.client().await;
    let before = Table::new(&mut client, pb::NewGameRequest::default()).await;
    let request = pb::NewGameRequest { request_id: uuid(1), ..pb::NewGameRequest::default() };
    seen.add("INTERNAL_FAULT", client.new_game(request.clone()).await);
    // It ended no game, and the same request succeeds when it is made again.
    client.submit_move(by(&before.red, before.submit("a3a4"))).await.expect("a verdict");
    let again = client.new_game(request).await.expect("a game").into_inner();
    assert!(!again.replayed);
    server.stop().await;
}

/// "Whatever goes wrong, I can tell by the reason what to do; and the list of reasons is complete."
#[tokio::test]
async fn every_reason_of_the_contract_is_met_over_the_wire_with_all_that_it_promises() {
    let mut seen = Seen::default();
    about_requests_and_callers(&mut seen).await;
    about_moments(&mut seen).await;
    about_limits(&mut seen).await;
    about_the_log(&mut seen).await;
    about_the_server(&mut seen).await;
    for (reason, status) in &seen.0 {
        let told = taken_apart(status).unwrap_or_else(|complaint| panic!("{reason}: {complaint}"));
        assert_eq!(&told.reason, reason);
    }
    let listed: BTreeSet<String> = promises().into_keys().collect();
    let met: BTreeSet<String> = seen.0.keys().map(|reason| (*reason).to_owned()).collect();
    assert_eq!(listed, met);
    println!("{} reasons", met.len());
}

#[test]
fn the_reasons_that_the_service_can_make_are_those_that_the_contract_lists() {
    let source = include_str!("../../src/service/status.rs");
    let made: BTreeSet<&str> = source
        .split("ErrorReason::")
        .skip(1)
        .map(|rest| rest.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default())
        .collect();
    let listed: BTreeSet<String> = promises().into_keys().collect();
    let camel = |name: &str| {
        let words = name.split('_').map(|word| word[..1].to_owned() + &word[1..].to_lowercase());
        words.collect::<String>()
    };
    assert_eq!(made, listed.iter().map(|name| camel(name)).collect::<Vec<_>>().iter().map(String::as_str).collect());
}

/// Makes a call of any name with any message.
async fn raw<T: Message + Default + 'static>(channel: &Channel, path: &'static str, message: T) -> Result<(), Status> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.expect("the channel is ready");
    let codec = ProstCodec::<T, pb::GetGameResponse>::default();
    grpc.unary(Request::new(message), http::uri::PathAndQuery::from_static(path), codec).await.map(drop)
}

fn line_of(moves: usize) -> pb::LegalMovesRequest {
    let line = pb::MoveLine { moves: vec![a_move("a3a4"); moves], ..pb::MoveLine::default() };
    pb::LegalMovesRequest { subject: Some(Subject::Line(line)), ..pb::LegalMovesRequest::default() }
}

/// "I sent rubbish, and the next call on the same connection was answered as ever."
#[tokio::test]
async fn what_the_transport_refuses_keeps_the_librarys_status_and_the_connection_lives() {
    const GET: &str = "/jungle.v1.RefereeService/GetGame";
    let server = TestServer::start_manual(&[]).await;
    let channel = server.channel().await;
    let mut client = Client::new(channel.clone());
    let table = Table::new(&mut client, pb::NewGameRequest::default()).await;
    let mut stream = table.watch(&mut client, Some(&table.red), Some(1)).await.expect("a stream");

    let huge = |bytes: usize| pb::GetGameRequest { game_id: "x".repeat(bytes) };
    let wrong_type = pb::PlayedMove { ply: Some(5), ..pb::PlayedMove::default() };
    let not_utf8 = Bytes::from_static(b"\xff\xfe\xfd");
    let answers = [
        ("over 64 KiB", Code::OutOfRange, raw(&channel, GET, huge(65_536)).await),
        ("1 MB", Code::OutOfRange, raw(&channel, GET, huge(1_000_000)).await),
        ("7,000 moves", Code::OutOfRange, client.legal_moves(line_of(7_000)).await.map(drop)),
        ("another type in the field", Code::Internal, raw(&channel, GET, wrong_type).await),
        ("a text that is no UTF-8", Code::Internal, raw(&channel, GET, not_utf8).await),
        ("no such call", Code::Unimplemented, raw(&channel, "/jungle.v1.RefereeService/PlayForMe", huge(1)).await),
        ("no such service", Code::Unimplemented, raw(&channel, "/jungle.v9.Umpire/GetGame", huge(1)).await),
    ];
    for (what, code, answer) in answers {
        let status = answer.expect_err(what);
        assert_eq!(status.code(), code, "{what}: {status:?}");
        assert!(status.details().is_empty(), "{what}: the details are the service's own");
    }
    client.submit_move(by(&table.red, table.submit("a3a4"))).await.expect("the connection lives");
    let event = crate::server::next_event(&mut stream).await.expect("no error").expect("an event");
    assert_eq!(event.sequence, 2, "and so does the stream on it");
    server.stop().await;
}

/// "A token of 20 KB is nobody's, and only that call hears of it."
#[tokio::test]
async fn a_header_beyond_the_transports_limit_fails_that_call_only() {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, pb::NewGameRequest::default()).await;
    let mut stream = table.watch(&mut client, None, Some(1)).await.expect("a stream");
    let request = pb::GetGameRequest { game_id: table.id.clone() };
    let refused =
        client.get_game(crate::door::with(&bearer(&"A".repeat(20_000)), request)).await.expect_err("too large");
    assert!(refused.details().is_empty(), "{refused:?}");
    client.submit_move(by(&table.red, table.submit("a3a4"))).await.expect("the connection lives");
    assert!(crate::server::next_event(&mut stream).await.expect("no error").is_some());
    server.stop().await;
}

/// "Too long a list is refused by its field's name, and not by the size of the message."
#[tokio::test]
async fn the_limits_of_the_fields_lie_below_the_transports() {
    const TRANSPORT: usize = 64 * 1024;
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    for moves in [3_001, 6_000, 6_540] {
        let request = line_of(moves);
        assert!(request.encoded_len() < TRANSPORT, "{moves} moves");
        let told = crate::door::told(client.legal_moves(request).await);
        assert_eq!((told.code, told.value("field")), (Code::InvalidArgument, "line.moves"), "{moves} moves");
    }
    // All that a game may be given, at its largest.
    let labels = (0..16).map(|number| format!("{number:064}")).collect();
    let largest = pb::NewGameRequest { labels, external_reference: "r".repeat(128), ..pb::NewGameRequest::default() };
    assert!(largest.encoded_len() < TRANSPORT / 16);
    client.new_game(largest).await.expect("a game");
    let line = pb::MoveLine {
        start_position: crate::door::LONG_START.to_owned(),
        moves: crate::door::long_line(3_000),
        ruleset: Some(crate::door::long_ruleset()),
    };
    let longest =
        pb::LegalMovesRequest { subject: Some(Subject::Line(line)), explain: true, ..pb::LegalMovesRequest::default() };
    assert!(longest.encoded_len() < TRANSPORT / 2 + 2_000);
    client.legal_moves(longest).await.expect("an answer");
    server.stop().await;
}

/// "The disk hung; my call came back in time, and asking again told me what had become of the move."
#[tokio::test]
async fn a_call_that_takes_too_long_ends_with_the_librarys_status_and_a_repeat_tells_its_fate() {
    let (server, log) = moody(&["--call-timeout=50ms"]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, pb::NewGameRequest::default()).await;
    log.mood.send_replace(Mood::Waits);
    let mv = pb::SubmitMoveRequest { request_id: uuid(1), expected_ply: Some(0), ..table.submit("a3a4") };
    let late = within(client.submit_move(by(&table.red, mv.clone()))).await.expect_err("it takes too long");
    assert!(matches!(late.code(), Code::DeadlineExceeded | Code::Cancelled), "{late:?}");
    assert!(late.details().is_empty(), "{late:?}");
    let mut stream = table.watch(&mut client, None, Some(1)).await.expect("a stream");
    log.mood.send_replace(Mood::Writes);
    assert_eq!(crate::server::next_event(&mut stream).await.expect("no error").map(|event| event.sequence), Some(2));
    let again = client.submit_move(by(&table.red, mv)).await.expect("a verdict").into_inner();
    assert!(again.replayed, "{again:?}");
    server.stop().await;
}
