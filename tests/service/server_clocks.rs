//! Clocks, starts, presence, offers, repeats and endings over the wire, on a clock that the test moves.

use crate::server::{Client, EPOCH, Table, TestServer, by, next_event, reason, within};
use jungle_referee::game::Span;
use jungle_referee::service::proto::game_event::Kind;
use jungle_referee::service::proto::submit_move_response::Verdict;
use jungle_referee::service::proto::watch_game_response::Message;
use jungle_referee::service::proto::{
    self as pb, GameStatus, NewGameRequest, OfferResult, OutcomeReason, Side, clock_start, time_control,
};
use prost_types::{Duration, Timestamp};
use tonic::{Code, Request, Status, Streaming};
use tonic_types::StatusExt as _;

type Watching = Streaming<pb::WatchGameResponse>;

/// The point so many milliseconds after the server's start.
fn at(millis: u64) -> Option<Timestamp> {
    let micros = EPOCH.micros() + millis * 1_000;
    let seconds = i64::try_from(micros / 1_000_000).expect("fits");
    Some(Timestamp { seconds, nanos: i32::try_from(micros % 1_000_000 * 1_000).expect("fits") })
}

fn span(millis: u64) -> Option<Duration> {
    let seconds = i64::try_from(millis / 1_000).expect("fits");
    Some(Duration { seconds, nanos: i32::try_from(millis % 1_000 * 1_000_000).expect("fits") })
}

fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

/// Ten seconds a move, so much grace.
fn ten_seconds(grace: u64) -> NewGameRequest {
    let limit = time_control::PerMove { limit: span(10_000) };
    let time_control = Some(pb::TimeControl { kind: Some(time_control::Kind::PerMove(limit)) });
    NewGameRequest { time_control, grace: span(grace), ..NewGameRequest::default() }
}

fn preset(name: &str) -> Option<pb::RulesetSpec> {
    Some(pb::RulesetSpec { preset: name.to_owned(), ..pb::RulesetSpec::default() })
}

fn starts(kind: clock_start::Kind) -> Option<pb::ClockStart> {
    Some(pb::ClockStart { kind: Some(kind) })
}

fn join_window(millis: u64) -> Option<pb::ClockStart> {
    starts(clock_start::Kind::JoinWindow(span(millis).expect("set")))
}

fn uuid(number: u32) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

/// A value of an error's ErrorInfo.
fn metadata(status: &Status, name: &str) -> String {
    let details = status.get_error_details();
    let info = details.error_info().expect("every error of the service has one");
    info.metadata.get(name).cloned().unwrap_or_default()
}

#[track_caller]
fn is(status: &Status, code: Code, why: &str) {
    assert_eq!((status.code(), reason(status).as_str()), (code, why), "{status:?}");
}

/// The first message of a stream that was asked for none before it.
async fn snapshot(stream: &mut Watching) -> pb::Game {
    match within(stream.message()).await.expect("no error").and_then(|message| message.message) {
        Some(Message::Snapshot(game)) => game,
        other => panic!("no snapshot: {other:?}"),
    }
}

/// The next message, a heartbeat.
async fn heartbeat(stream: &mut Watching) -> pb::Heartbeat {
    match within(stream.message()).await.expect("no error").and_then(|message| message.message) {
        Some(Message::Heartbeat(heartbeat)) => heartbeat,
        other => panic!("no heartbeat: {other:?}"),
    }
}

/// The next event; there must be one.
async fn event(stream: &mut Watching) -> pb::GameEvent {
    next_event(stream).await.expect("no error").expect("an event")
}

/// Looks at the game until it is as wanted; no time passes for it.
async fn until(table: &Table, client: &mut Client, wanted: impl Fn(&pb::Game) -> bool) -> pb::Game {
    within(async {
        loop {
            let game = table.get(client).await;
            if wanted(&game) {
                return game;
            }
        }
    })
    .await
}

fn presence(game: &pb::Game) -> pb::Presence {
    game.presence.expect("set")
}

fn clock(game: &pb::Game) -> pb::Clock {
    game.clock.expect("set")
}

async fn submit(
    client: &mut Client,
    token: &str,
    request: pb::SubmitMoveRequest,
) -> Result<pb::SubmitMoveResponse, Status> {
    client.submit_move(by(token, request)).await.map(tonic::Response::into_inner)
}

/// A move that must be accepted.
async fn moves(client: &mut Client, table: &Table, token: &str, mv: &str) -> pb::MoveAccepted {
    match submit(client, token, table.submit(mv)).await.expect("a verdict").verdict {
        Some(Verdict::Accepted(accepted)) => accepted,
        other => panic!("{mv}: {other:?}"),
    }
}

fn offer(table: &Table, action: pb::DrawOfferAction) -> pb::OfferDrawRequest {
    pb::OfferDrawRequest { request_id: String::new(), game_id: table.id.clone(), action: action.into() }
}

fn answer(table: &Table, answer: pb::DrawAnswer) -> pb::AnswerDrawRequest {
    pb::AnswerDrawRequest { request_id: String::new(), game_id: table.id.clone(), answer: answer.into() }
}

fn leave(table: &Table) -> pb::LeaveGameRequest {
    pb::LeaveGameRequest { request_id: String::new(), game_id: table.id.clone() }
}

fn abort(table: &Table) -> pb::AbortGameRequest {
    pb::AbortGameRequest { request_id: String::new(), game_id: table.id.clone(), reason: "rain".to_owned() }
}

// Flags.

#[tokio::test]
async fn the_flag_falls_with_nobody_calling_and_whoever_watches_sees_it_dated_at_its_deadline() {
    for noticed_later in [0, 1, 3_000] {
        let server = TestServer::start_manual(&[]).await;
        let mut client = server.client().await;
        let table = Table::new(&mut client, ten_seconds(2_000)).await;
        let mut stream = table.watch(&mut client, None, None).await.expect("a stream");
        let game = snapshot(&mut stream).await;
        assert_eq!((clock(&game).deadline, clock(&game).running_side()), (at(12_000), Side::Red));

        server.advance(ms(11_999));
        let game = table.get(&mut client).await;
        assert_eq!((game.status(), clock(&game).red_remaining), (GameStatus::Running, span(0)));
        server.advance(ms(1 + noticed_later));
        let last = event(&mut stream).await;
        assert_eq!((last.sequence, last.time, last.status()), (2, at(12_000), GameStatus::Ended));
        let expired = pb::game_event::TimeExpired { side: Side::Red.into(), expiries: 1 };
        assert_eq!(last.kind, Some(Kind::TimeExpired(expired)));
        let outcome = last.outcome.clone().expect("the last event carries the outcome");
        assert_eq!((outcome.winner(), outcome.reason()), (Side::Blue, OutcomeReason::Timeout));
        assert_eq!(next_event(&mut stream).await.expect("the stream ends well"), None);
        let game = table.get(&mut client).await;
        assert_eq!((game.ended_at, &game.outcome), (at(12_000), &Some(outcome)));
        assert_eq!((clock(&game).deadline, clock(&game).running_side()), (None, Side::Unspecified));
    }
}

#[tokio::test]
async fn my_move_a_millisecond_before_the_deadline_counts_and_at_the_deadline_it_is_too_late() {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let (early, late) =
        (Table::new(&mut client, ten_seconds(2_000)).await, Table::new(&mut client, ten_seconds(2_000)).await);
    server.advance(ms(11_999));
    let accepted = moves(&mut client, &early, &early.red, "a3a4").await;
    assert_eq!((accepted.charged, accepted.grace_used), (span(10_000), span(1_999)));
    let after = accepted.clock.expect("set");
    assert_eq!((after.running_side(), after.deadline), (Side::Blue, at(23_999)));
    server.advance(ms(1));
    let status = submit(&mut client, &late.red, late.submit("a3a4")).await.expect_err("too late");
    is(&status, Code::FailedPrecondition, "GAME_OVER");
    assert_eq!(
        (metadata(&status, "outcome_reason").as_str(), metadata(&status, "winner").as_str()),
        ("TIMEOUT", "BLUE")
    );
}

#[tokio::test]
async fn with_two_expiries_to_lose_the_first_is_announced_and_two_found_late_have_their_own_dates() {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, NewGameRequest { ruleset: preset("datou"), ..ten_seconds(0) }).await;
    let mut stream = table.watch(&mut client, None, Some(1)).await.expect("a stream");
    server.advance(ms(13_000));
    let first = event(&mut stream).await;
    assert_eq!((first.time, first.status(), first.ply), (at(10_000), GameStatus::Running, Some(0)));
    let after = first.clock.expect("set");
    assert_eq!((after.red_expiries, after.blue_expiries), (Some(1), Some(0)));
    assert_eq!((after.red_remaining, after.deadline), (span(7_000), at(20_000)));
    moves(&mut client, &table, &table.red, "a3a4").await;
    assert_eq!(clock(&table.get(&mut client).await).red_expiries, Some(0));

    server.advance(Span::from_days(1));
    assert!(matches!(event(&mut stream).await.kind, Some(Kind::MoveMade(_))));
    for (date, outcome) in [(23_000, None), (33_000, Some(Side::Red))] {
        let expired = event(&mut stream).await;
        assert_eq!((expired.time, expired.outcome.map(|outcome| outcome.winner())), (at(date), outcome));
    }
    assert_eq!(next_event(&mut stream).await.expect("the stream ends well"), None);
}

/// Whatever was due: a look at the very instant, or long after, shows what time has done.
#[tokio::test]
async fn a_look_at_the_game_never_shows_it_waiting_for_a_deadline_that_has_passed() {
    let idle = NewGameRequest { idle_limit: span(10_000), ..NewGameRequest::default() };
    let away = NewGameRequest { away_limit: span(5_000), ..NewGameRequest::default() };
    let games = [
        ten_seconds(0),
        NewGameRequest { ruleset: preset("datou"), ..ten_seconds(0) },
        NewGameRequest { clock_start: starts(clock_start::Kind::At(at(10_000).expect("set"))), ..ten_seconds(0) },
        NewGameRequest { clock_start: join_window(10_000), ..ten_seconds(0) },
        idle,
        away,
    ];
    for step in [10_000, 10_001, 15_000, 20_000, 86_400_000] {
        let server = TestServer::start_manual(&[]).await;
        let mut client = server.client().await;
        let mut tables = Vec::new();
        for game in &games {
            tables.push(Table::new(&mut client, game.clone()).await);
        }
        server.advance(ms(step));
        for (table, asked) in tables.iter().zip(&games) {
            let game = table.get(&mut client).await;
            let (now, deadline) = (game.server_time.expect("set"), clock(&game).deadline);
            let passed =
                deadline.is_some_and(|deadline| (deadline.seconds, deadline.nanos) <= (now.seconds, now.nanos));
            assert!(!passed, "{step}: {asked:?} {game:?}");
            assert!(game.sequence > 1, "{step}: {asked:?}");
        }
    }
}

// Starts.

#[tokio::test]
async fn a_game_waits_for_its_start_time_and_starts_by_itself() {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let clock_start = starts(clock_start::Kind::At(at(60_000).expect("set")));
    let asked = NewGameRequest { request_id: uuid(1), clock_start, idle_limit: span(1_000), ..ten_seconds(0) };
    let made = client.new_game(asked.clone()).await.expect("a game").into_inner();
    let table = Table::of(&made);
    let mut stream = table.watch(&mut client, None, None).await.expect("a stream");
    let game = snapshot(&mut stream).await;
    assert_eq!((game.status(), clock(&game).deadline, game.started_at), (GameStatus::Waiting, at(60_000), None));
    server.advance(ms(59_999));
    let status = submit(&mut client, &table.red, table.submit("a3a4")).await.expect_err("too early");
    is(&status, Code::FailedPrecondition, "NOT_STARTED");
    server.advance(ms(1));
    let started = event(&mut stream).await;
    assert_eq!((started.kind, started.time), (Some(Kind::Started(pb::game_event::Started {})), at(60_000)));
    assert_eq!(started.clock.expect("set").deadline, at(70_000));
    assert_eq!(moves(&mut client, &table, &table.red, "a3a4").await.charged, span(0));

    // The same request finds the game long after; another that asks for the past makes none.
    server.advance(ms(5_000));
    let again = client.new_game(asked.clone()).await.expect("the same game").into_inner();
    assert_eq!(again, pb::NewGameResponse { replayed: true, ..made });
    let status = client.new_game(NewGameRequest { request_id: uuid(2), ..asked }).await.expect_err("in the past");
    is(&status, Code::InvalidArgument, "INVALID_FIELD");
    assert_eq!(metadata(&status, "field"), "clock_start.at");
}

/// The calls by which a seat shows itself.
#[derive(Clone, Copy, Debug)]
enum Call {
    GetGame,
    LegalMoves,
    WatchGame,
    SubmitMove,
    OfferDraw,
}

async fn calls(client: &mut Client, table: &Table, token: &str, call: Call) -> Result<(), Status> {
    let game_id = table.id.clone();
    match call {
        Call::GetGame => drop(client.get_game(by(token, pb::GetGameRequest { game_id })).await?),
        Call::LegalMoves => {
            let subject = Some(pb::legal_moves_request::Subject::GameId(game_id));
            let request = pb::LegalMovesRequest { subject, ..pb::LegalMovesRequest::default() };
            drop(client.legal_moves(by(token, request)).await?);
        }
        Call::WatchGame => drop(table.watch(client, Some(token), None).await?),
        Call::SubmitMove => drop(submit(client, token, table.submit("a3a4")).await?),
        Call::OfferDraw => {
            drop(client.offer_draw(by(token, offer(table, pb::DrawOfferAction::Make))).await?);
        }
    }
    Ok(())
}

#[tokio::test]
async fn any_call_with_my_token_shows_me_and_the_second_to_show_starts_the_game() {
    let all = [Call::GetGame, Call::LegalMoves, Call::WatchGame, Call::SubmitMove, Call::OfferDraw];
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    for first in all {
        for second in all {
            let asked = NewGameRequest { clock_start: join_window(60_000), ..ten_seconds(0) };
            let table = Table::new(&mut client, asked).await;
            // Neither the arbiter nor a spectator is awaited.
            assert_eq!(table.get(&mut client).await.sequence, 1);
            drop(table.watch(&mut client, None, None).await.expect("a stream"));
            let judged = matches!(first, Call::SubmitMove | Call::OfferDraw);
            match calls(&mut client, &table, &table.blue, first).await {
                Ok(()) => assert!(!judged, "{first:?}"),
                Err(status) => is(&status, Code::FailedPrecondition, "NOT_STARTED"),
            }
            let game = table.get(&mut client).await;
            assert_eq!((game.status(), game.sequence), (GameStatus::Waiting, 2), "{first:?}");
            // The showing comes before the call's own command: a move of the second is played.
            calls(&mut client, &table, &table.red, second).await.expect("the game has started");
            let game = table.get(&mut client).await;
            let own = u64::from(matches!(second, Call::SubmitMove | Call::OfferDraw));
            assert_eq!((game.status(), game.sequence), (GameStatus::Running, 3 + own), "{second:?}");
            client.abort_game(by(&table.arbiter, abort(&table))).await.expect("called off");
            let log = table.whole_log(&mut client).await;
            let shown = |side: Side, starts| Kind::SeatShown(pb::game_event::SeatShown { side: side.into(), starts });
            assert_eq!(log[1].kind, Some(shown(Side::Blue, false)));
            assert_eq!(log[2].kind, Some(shown(Side::Red, true)));
        }
    }
}

#[tokio::test]
async fn when_the_join_window_is_shut_a_call_finds_the_game_called_off() {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, NewGameRequest { clock_start: join_window(60_000), ..ten_seconds(0) }).await;
    calls(&mut client, &table, &table.blue, Call::GetGame).await.expect("a look");
    let mut stream = table.watch(&mut client, None, Some(2)).await.expect("a stream");
    server.advance(ms(60_000));
    let status = submit(&mut client, &table.red, table.submit("a3a4")).await.expect_err("too late");
    is(&status, Code::FailedPrecondition, "GAME_OVER");
    assert_eq!(metadata(&status, "outcome_reason"), "ABORTED");
    let last = event(&mut stream).await;
    let Some(Kind::Aborted(aborted)) = &last.kind else { panic!("{last:?}") };
    assert_eq!((aborted.by(), last.time, last.sequence), (pb::AbortedBy::Service, at(60_000), 3));
    let outcome = last.outcome.expect("the last event");
    assert_eq!(
        (outcome.reason(), outcome.scored, outcome.winner()),
        (OutcomeReason::Aborted, Some(false), Side::Unspecified)
    );
    assert_eq!((&outcome.abort_reason, aborted.reason.is_empty()), (&aborted.reason, false));
}

#[tokio::test]
async fn who_leaves_before_the_start_calls_it_off_and_after_it_loses() {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    // Leaving is a call like any other: as the second showing it starts the game first.
    for (shown, expected) in [(false, OutcomeReason::Aborted), (true, OutcomeReason::Left)] {
        let table =
            Table::new(&mut client, NewGameRequest { clock_start: join_window(60_000), ..ten_seconds(0) }).await;
        if shown {
            calls(&mut client, &table, &table.red, Call::GetGame).await.expect("a look");
        }
        let left = client.leave_game(by(&table.blue, leave(&table))).await.expect("it is allowed").into_inner();
        let outcome = left.event.and_then(|event| event.outcome).expect("it ends the game");
        assert_eq!(outcome.reason(), expected);
        assert_eq!(outcome.winner(), if shown { Side::Red } else { Side::Unspecified });
    }
}

// Presence.

#[tokio::test]
async fn i_am_present_while_a_stream_of_mine_is_open_and_everybody_sees_me_go_and_return() {
    let server = TestServer::start_manual(&[]).await;
    let (mut client, mut players) = (server.client().await, server.client().await);
    let table = Table::new(&mut client, NewGameRequest { away_limit: span(30_000), ..NewGameRequest::default() }).await;
    let mut spectator = table.watch(&mut client, None, Some(1)).await.expect("a stream");
    let _blue = table.watch(&mut players, Some(&table.blue), None).await.expect("a stream");
    let mut one = table.watch(&mut players, Some(&table.red), None).await.expect("a stream");
    let two = table.watch(&mut players, Some(&table.red), None).await.expect("a stream");
    let shown = presence(&snapshot(&mut one).await);
    assert_eq!((shown.red_present, shown.blue_present), (true, true));

    drop(one);
    server.advance(ms(60_000));
    let game = table.get(&mut client).await;
    assert_eq!((presence(&game).red_present, game.sequence), (true, 1));

    drop(two);
    until(&table, &mut client, |game| !presence(game).red_present).await;
    server.advance(ms(4_999));
    assert_eq!(table.get(&mut client).await.sequence, 1);
    server.advance(ms(1));
    let away = event(&mut spectator).await;
    assert_eq!(away.kind, Some(Kind::SeatAway(pb::game_event::SeatAway { side: Side::Red.into() })));
    assert_eq!(away.time, at(65_000));
    let shown = presence(&table.get(&mut client).await);
    assert_eq!((shown.red_away_deadline, shown.blue_away_deadline), (at(95_000), None));

    server.advance(ms(29_999));
    let three = table.watch(&mut players, Some(&table.red), None).await.expect("a stream");
    let back = event(&mut spectator).await;
    assert_eq!(back.kind, Some(Kind::SeatReturned(pb::game_event::SeatReturned { side: Side::Red.into() })));
    assert_eq!(back.time, at(94_999));
    assert_eq!(presence(&table.get(&mut client).await).red_away_deadline, None);

    drop(three);
    until(&table, &mut client, |game| !presence(game).red_present).await;
    server.advance(ms(100_000));
    assert!(matches!(event(&mut spectator).await.kind, Some(Kind::SeatAway(_))));
    let last = event(&mut spectator).await;
    assert_eq!(last.kind, Some(Kind::AwayExpired(pb::game_event::AwayExpired { side: Side::Red.into() })));
    assert_eq!(last.time, at(94_999 + 35_000));
    let outcome = last.outcome.expect("the last event");
    assert_eq!((outcome.winner(), outcome.reason()), (Side::Blue, OutcomeReason::Left));
    assert_eq!(next_event(&mut spectator).await.expect("the stream ends well"), None);
}

#[tokio::test]
async fn when_both_stay_away_nobody_wins() {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, NewGameRequest { away_limit: span(30_000), ..NewGameRequest::default() }).await;
    server.advance(Span::from_days(1));
    let log = table.whole_log(&mut client).await;
    let dates: Vec<_> = log.iter().map(|event| event.time).collect();
    assert_eq!(dates, [at(0), at(5_000), at(5_000), at(35_000)]);
    let outcome = log[3].outcome.clone().expect("the last event");
    assert_eq!((outcome.winner(), outcome.reason()), (Side::Unspecified, OutcomeReason::Aborted));
}

// Heartbeats.

#[tokio::test]
async fn a_heartbeat_comes_after_the_silence_i_asked_for_and_tells_the_time_the_clocks_and_who_is_there() {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, NewGameRequest { away_limit: span(60_000), ..ten_seconds(0) }).await;
    let watch = |heartbeat| pb::WatchGameRequest { game_id: table.id.clone(), after_sequence: None, heartbeat };
    let mut mine = client.watch_game(by(&table.red, watch(span(2_000)))).await.expect("a stream").into_inner();
    snapshot(&mut mine).await;

    server.advance(ms(2_000));
    let beat = heartbeat(&mut mine).await;
    assert_eq!((beat.server_time, beat.sequence), (at(2_000), 1));
    let clock = beat.clock.expect("set");
    assert_eq!((clock.red_remaining, clock.blue_remaining), (span(8_000), span(10_000)));
    assert_eq!((clock.deadline, clock.running_side()), (at(10_000), Side::Red));
    let presence = beat.presence.expect("set");
    assert_eq!((presence.red_present, presence.blue_present), (true, false));

    // An event ends the silence; the next heartbeat counts from it.
    server.advance(ms(1_000));
    moves(&mut client, &table, &table.red, "a3a4").await;
    assert_eq!(event(&mut mine).await.sequence, 2);
    server.advance(ms(1_000));
    table.get(&mut client).await;
    server.advance(ms(1_000));
    let away = event(&mut mine).await;
    assert_eq!((away.sequence, away.time), (3, at(5_000)));
    server.advance(ms(2_000));
    let beat = heartbeat(&mut mine).await;
    assert_eq!((beat.server_time, beat.sequence), (at(7_000), 3));
    assert_eq!(beat.presence.expect("set").blue_away_deadline, at(65_000));

    // Without a wish it is every fifteen seconds.
    let idle = Table::new(&mut client, NewGameRequest::default()).await;
    let mut stream = idle.watch(&mut client, None, None).await.expect("a stream");
    snapshot(&mut stream).await;
    for beat in 1..=3 {
        server.advance(ms(14_999));
        idle.get(&mut client).await;
        server.advance(ms(1));
        assert_eq!(heartbeat(&mut stream).await.server_time, at(7_000 + beat * 15_000));
    }
}

#[tokio::test]
async fn no_heartbeat_comes_before_an_event_that_is_due() {
    for _ in 0..20 {
        let server = TestServer::start_manual(&[]).await;
        let mut client = server.client().await;
        let table = Table::new(&mut client, ten_seconds(0)).await;
        let mut stream = table.watch(&mut client, None, None).await.expect("a stream");
        snapshot(&mut stream).await;
        server.advance(ms(100_000));
        let first = within(stream.message()).await.expect("no error").and_then(|message| message.message);
        assert!(matches!(first, Some(Message::Event(_))), "{first:?}");
    }
}

// Draw offers.

#[tokio::test]
async fn draws_are_offered_with_a_move_and_without_and_answered_over_the_wire() {
    use pb::{DrawAnswer, DrawOfferAction};
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, NewGameRequest::default()).await;
    let made = client.offer_draw(by(&table.blue, offer(&table, DrawOfferAction::Unspecified))).await;
    let event = made.expect("off turn").into_inner().event.expect("set");
    let open = pb::DrawOffer { side: Side::Blue.into(), ply: Some(0) };
    assert_eq!((event.sequence, event.open_offer), (2, Some(open)));
    assert_eq!(table.get(&mut client).await.open_offer, Some(open));

    let status = client.offer_draw(by(&table.red, offer(&table, DrawOfferAction::Make))).await.expect_err("one open");
    is(&status, Code::FailedPrecondition, "OFFER_OPEN");
    assert_eq!(metadata(&status, "offered_by"), "BLUE");
    let status = client.answer_draw(by(&table.blue, answer(&table, DrawAnswer::Accept))).await.expect_err("its own");
    is(&status, Code::FailedPrecondition, "NO_OFFER");

    // A move is the answer to it, even one with an offer.
    let with_offer = |mv| pb::SubmitMoveRequest { offer_draw: true, ..table.submit(mv) };
    let verdict = submit(&mut client, &table.red, with_offer("a3a4")).await.expect("a verdict").verdict;
    let Some(Verdict::Accepted(accepted)) = verdict else { panic!("{verdict:?}") };
    assert_eq!((accepted.offer(), table.get(&mut client).await.open_offer), (OfferResult::OfferOpen, None));

    let verdict = submit(&mut client, &table.blue, with_offer("g7g6")).await.expect("a verdict").verdict;
    let Some(Verdict::Accepted(accepted)) = verdict else { panic!("{verdict:?}") };
    let open = pb::DrawOffer { side: Side::Blue.into(), ply: Some(1) };
    assert_eq!((accepted.offer(), table.get(&mut client).await.open_offer), (OfferResult::Made, Some(open)));
    client.answer_draw(by(&table.red, answer(&table, DrawAnswer::Decline))).await.expect("declined");
    client.offer_draw(by(&table.blue, offer(&table, DrawOfferAction::Make))).await.expect("another ply");
    client.offer_draw(by(&table.blue, offer(&table, DrawOfferAction::TakeBack))).await.expect("taken back");
    let status = client.offer_draw(by(&table.blue, offer(&table, DrawOfferAction::Make))).await.expect_err("one a ply");
    is(&status, Code::FailedPrecondition, "ALREADY_OFFERED");

    client.offer_draw(by(&table.red, offer(&table, DrawOfferAction::Make))).await.expect("made");
    let accepted = client.answer_draw(by(&table.blue, answer(&table, DrawAnswer::Accept))).await.expect("accepted");
    let event = accepted.into_inner().event.expect("set");
    let outcome = event.outcome.expect("it ends the game");
    assert_eq!(
        (outcome.reason(), outcome.winner(), outcome.scored),
        (OutcomeReason::Agreement, Side::Unspecified, Some(false))
    );
    assert_eq!(event.open_offer, None);

    let table = Table::new(&mut client, NewGameRequest { ruleset: preset("datou"), ..NewGameRequest::default() }).await;
    let status = client.offer_draw(by(&table.red, offer(&table, DrawOfferAction::Make))).await.expect_err("no draws");
    is(&status, Code::FailedPrecondition, "DRAWS_OFF");
    let request = pb::SubmitMoveRequest { offer_draw: true, ..table.submit("a3a4") };
    let verdict = submit(&mut client, &table.red, request).await.expect("a verdict").verdict;
    let Some(Verdict::Accepted(accepted)) = verdict else { panic!("{verdict:?}") };
    assert_eq!(accepted.offer(), OfferResult::DrawsOff);
}

// Repeats.

/// A changing call with a request id, by one of the four who make such calls.
#[derive(Clone, Debug)]
enum Changing {
    New(NewGameRequest),
    Move(String, pb::SubmitMoveRequest),
    Offer(String, pb::OfferDrawRequest),
    Answer(String, pb::AnswerDrawRequest),
    Leave(String, pb::LeaveGameRequest),
    Abort(String, pb::AbortGameRequest),
}

/// What it was answered, `replayed` apart.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a few of them live at a time")]
enum Answered {
    New(pb::NewGameResponse),
    Verdict(Option<Verdict>),
    Event(Option<pb::GameEvent>),
}

impl Changing {
    async fn call(&self, client: &mut Client) -> Result<(Answered, bool), Status> {
        Ok(match self.clone() {
            Self::New(request) => {
                let response = client.new_game(request).await?.into_inner();
                let replayed = response.replayed;
                (Answered::New(pb::NewGameResponse { replayed: false, ..response }), replayed)
            }
            Self::Move(token, request) => {
                let response = client.submit_move(by(&token, request)).await?.into_inner();
                (Answered::Verdict(response.verdict), response.replayed)
            }
            Self::Offer(token, request) => {
                let response = client.offer_draw(by(&token, request)).await?.into_inner();
                (Answered::Event(response.event), response.replayed)
            }
            Self::Answer(token, request) => {
                let response = client.answer_draw(by(&token, request)).await?.into_inner();
                (Answered::Event(response.event), response.replayed)
            }
            Self::Leave(token, request) => {
                let response = client.leave_game(by(&token, request)).await?.into_inner();
                (Answered::Event(response.event), response.replayed)
            }
            Self::Abort(token, request) => {
                let response = client.abort_game(by(&token, request)).await?.into_inner();
                (Answered::Event(response.event), response.replayed)
            }
        })
    }

    /// The same id with another body.
    fn altered(&self) -> Option<Self> {
        let mut other = self.clone();
        match &mut other {
            Self::New(request) => request.is_match = !request.is_match,
            Self::Move(_, request) => request.offer_draw = !request.offer_draw,
            Self::Offer(_, request) => request.action = 3 - request.action,
            Self::Answer(_, request) => request.answer = 3 - request.answer,
            Self::Leave(..) => return None,
            Self::Abort(_, request) => request.reason.push('!'),
        }
        Some(other)
    }
}

#[tokio::test]
async fn a_repeat_of_what_changed_the_game_gets_the_first_answer_at_once_and_after_the_end() {
    use pb::{DrawAnswer, DrawOfferAction};
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    for ending in ["leave", "abort", "accept", "forfeit", "flag"] {
        let id = |number: u32| {
            uuid(number + 100 * u32::try_from(ending.len()).expect("short") + u32::from(ending.as_bytes()[0]) * 1_000)
        };
        let asked = NewGameRequest { request_id: id(1), refusal_limit: Some(2), ..ten_seconds(1_000) };
        let create = Changing::New(asked);
        let (first, replayed) = create.call(&mut client).await.expect("a game");
        assert!(!replayed);
        let Answered::New(made) = &first else { panic!("{first:?}") };
        let table = Table::of(made);
        let mv = |number, expected_ply, mv| pb::SubmitMoveRequest {
            request_id: id(number),
            expected_ply: Some(expected_ply),
            ..table.submit(mv)
        };
        let offers = |number, action| pb::OfferDrawRequest { request_id: id(number), ..offer(&table, action) };
        let answers = |number, with| pb::AnswerDrawRequest { request_id: id(number), ..answer(&table, with) };
        let (red, blue) = (table.red.clone(), table.blue.clone());
        let mut script = vec![
            Changing::Offer(blue.clone(), offers(2, DrawOfferAction::Make)),
            Changing::Offer(blue.clone(), offers(3, DrawOfferAction::TakeBack)),
            Changing::Move(red.clone(), mv(4, 0, "a3a5")),
            Changing::Offer(red.clone(), offers(5, DrawOfferAction::Make)),
            Changing::Answer(blue.clone(), answers(6, DrawAnswer::Decline)),
            Changing::Move(red.clone(), mv(7, 0, "a3a4")),
            // A request id belongs to its caller: Blue may have the same as Red.
            Changing::Move(blue.clone(), mv(7, 1, "g7g6")),
            Changing::Offer(red.clone(), offers(8, DrawOfferAction::Make)),
        ];
        let (answered, outcome) = match ending {
            "leave" => {
                (Changing::Leave(red, pb::LeaveGameRequest { request_id: id(9), ..leave(&table) }), OutcomeReason::Left)
            }
            "abort" => {
                let request = pb::AbortGameRequest { request_id: id(9), ..abort(&table) };
                (Changing::Abort(table.arbiter.clone(), request), OutcomeReason::Aborted)
            }
            "accept" => (Changing::Answer(blue, answers(9, DrawAnswer::Accept)), OutcomeReason::Agreement),
            "forfeit" => (Changing::Move(red, mv(9, 2, "a4a9")), OutcomeReason::Forfeit),
            _ => (Changing::Move(red, mv(9, 2, "a4a5")), OutcomeReason::Timeout),
        };
        script.push(answered);
        let mut told = vec![(create, first)];
        for call in script {
            server.advance(ms(100));
            let (answer, replayed) = call.call(&mut client).await.unwrap_or_else(|status| panic!("{call:?}: {status}"));
            assert!(!replayed, "{call:?}");
            told.push((call, answer));
            for (call, answer) in &told {
                let again = call.call(&mut client).await.expect("a repeat");
                assert_eq!(again, (answer.clone(), true), "{call:?}");
            }
        }
        server.advance(Span::from_millis(3_600_000));
        let game = table.get(&mut client).await;
        assert_eq!(game.outcome.as_ref().map(pb::Outcome::reason), Some(outcome), "{ending}");
        for (call, answer) in &told {
            assert_eq!(call.call(&mut client).await.expect("a repeat"), (answer.clone(), true), "{call:?}");
            if let Some(other) = call.altered() {
                let status = other.call(&mut client).await.expect_err("another body");
                is(&status, Code::InvalidArgument, "REQUEST_ID_REUSED");
            }
        }
        assert_eq!(table.get(&mut client).await, pb::Game { server_time: game.server_time, ..game });
        let log = table.whole_log(&mut client).await;
        let expiry = usize::from(ending == "flag");
        assert_eq!(log.len(), told.len() + expiry, "each call changed the game once");
        for ((call, answer), event) in told.iter().zip(&log) {
            match answer {
                Answered::Event(answered) => assert_eq!(answered.as_ref(), Some(event), "{call:?}"),
                Answered::Verdict(Some(Verdict::Accepted(accepted))) => assert_eq!(accepted.sequence, event.sequence),
                Answered::Verdict(Some(Verdict::Refused(refused))) => {
                    assert_eq!((refused.sequence, &refused.outcome), (event.sequence, &event.outcome));
                }
                Answered::Verdict(None) => panic!("{call:?}: no verdict"),
                Answered::New(made) => assert_eq!(made.game.as_ref().map(|game| game.sequence), Some(1)),
            }
        }
    }
}

// Endings.

#[tokio::test]
async fn the_reply_the_stream_a_look_and_the_list_agree_on_the_outcome() {
    let server = TestServer::start_manual(&["--keep-finished-for", "720h"]).await;
    let mut client = server.client().await;
    let den = "6e/3T3/7/7/7/7/7/7/6P r 0 1".to_owned();
    let mut expected = Vec::new();
    for ending in ["den", "leave", "abort", "flag", "forfeit", "idle"] {
        let mut asked = if ending == "idle" { NewGameRequest::default() } else { ten_seconds(0) };
        if ending == "den" {
            asked.start_position = den.clone();
        }
        asked.refusal_limit = Some(1);
        asked.is_match = true;
        let table = Table::new(&mut client, asked).await;
        let mut stream = table.watch(&mut client, None, None).await.expect("a stream");
        snapshot(&mut stream).await;
        server.advance(ms(5));
        let replied = match ending {
            "den" => moves(&mut client, &table, &table.red, "d8d9").await.outcome,
            "leave" => {
                client
                    .leave_game(by(&table.blue, leave(&table)))
                    .await
                    .expect("left")
                    .into_inner()
                    .event
                    .expect("set")
                    .outcome
            }
            "abort" => {
                client
                    .abort_game(by(&table.arbiter, abort(&table)))
                    .await
                    .expect("off")
                    .into_inner()
                    .event
                    .expect("set")
                    .outcome
            }
            "forfeit" => {
                match submit(&mut client, &table.red, table.submit("a3a9")).await.expect("a verdict").verdict {
                    Some(Verdict::Refused(refused)) => {
                        assert_eq!(refused.consequence(), pb::RefusalConsequence::GameLost);
                        refused.outcome
                    }
                    other => panic!("{other:?}"),
                }
            }
            _ => {
                server.advance(Span::from_days(1));
                None
            }
        };
        let last = event(&mut stream).await;
        assert_eq!(next_event(&mut stream).await.expect("the stream ends well"), None);
        let game = table.get(&mut client).await;
        if replied.is_some() {
            assert_eq!(last.outcome, replied, "{ending}");
        }
        assert_eq!(
            (&game.outcome, game.ended_at, game.sequence),
            (&last.outcome, last.time, last.sequence),
            "{ending}"
        );
        let subject = Some(pb::legal_moves_request::Subject::GameId(table.id.clone()));
        let request = pb::LegalMovesRequest { subject, ..pb::LegalMovesRequest::default() };
        let legal = client.legal_moves(request).await.expect("an answer").into_inner();
        assert_eq!((&legal.outcome, legal.moves.len()), (&last.outcome, 0), "{ending}");
        expected.push((table.id.clone(), last.outcome, last.time));
    }
    let listed = client.list_games(pb::ListGamesRequest::default()).await.expect("a page").into_inner().games;
    let listed: Vec<_> = listed.into_iter().map(|game| (game.game_id, game.outcome, game.ended_at)).collect();
    assert_eq!(listed, expected);
}

/// Looks until a game is forgotten; no time passes for it.
async fn forgotten(client: &mut Client, table: &Table) {
    let gone = within(async {
        loop {
            let request = pb::GetGameRequest { game_id: table.id.clone() };
            if let Err(status) = client.get_game(by(&table.red, request)).await {
                return status;
            }
        }
    });
    is(&gone.await, Code::NotFound, "NO_SUCH_GAME");
}

#[tokio::test]
async fn a_finished_game_is_kept_for_the_stated_time_and_number_and_then_forgotten_with_its_request_ids() {
    let server = TestServer::start_manual(&["--keep-finished-for", "1h", "--keep-finished", "2"]).await;
    let mut client = server.client().await;
    let mut made = Vec::new();
    for number in 0..3 {
        let asked = NewGameRequest { request_id: uuid(number), ..NewGameRequest::default() };
        let response = client.new_game(asked).await.expect("a game").into_inner();
        made.push(Table::of(&response));
    }
    let open =
        Table::new(&mut client, NewGameRequest { idle_limit: span(366 * 86_400_000), ..NewGameRequest::default() })
            .await;
    for table in &made[..2] {
        client.leave_game(by(&table.red, leave(table))).await.expect("left");
        server.advance(ms(1_000));
    }
    for table in &made[..2] {
        assert_eq!(table.get(&mut client).await.status(), GameStatus::Ended);
    }
    // A third is one too many: the oldest goes, at once.
    client.leave_game(by(&made[2].red, leave(&made[2]))).await.expect("left");
    forgotten(&mut client, &made[0]).await;
    assert_eq!(made[1].get(&mut client).await.status(), GameStatus::Ended);

    server.advance(ms(3_600_000 - 1_001));
    for table in &made[1..] {
        assert_eq!(table.get(&mut client).await.status(), GameStatus::Ended);
    }
    server.advance(ms(1));
    forgotten(&mut client, &made[1]).await;
    assert_eq!(made[2].get(&mut client).await.status(), GameStatus::Ended);
    server.advance(ms(1_000));
    forgotten(&mut client, &made[2]).await;
    let status = made[2].watch(&mut client, Some(&made[2].blue), Some(0)).await.expect_err("forgotten");
    is(&status, Code::NotFound, "NO_SUCH_GAME");
    let status = client.leave_game(by(&made[2].red, leave(&made[2]))).await.expect_err("forgotten");
    is(&status, Code::NotFound, "NO_SUCH_GAME");
    assert_eq!(open.get(&mut client).await.status(), GameStatus::Running);
    let listed = client.list_games(pb::ListGamesRequest::default()).await.expect("a page").into_inner().games;
    assert_eq!(listed.iter().map(|game| &game.game_id).collect::<Vec<_>>(), [&open.id]);

    let asked = NewGameRequest { request_id: uuid(1), is_match: true, ..NewGameRequest::default() };
    let again = client.new_game(asked).await.expect("a new game").into_inner();
    assert!(!again.replayed);
    assert_ne!(Table::of(&again).id, made[1].id);
}

#[tokio::test]
async fn whoever_watches_a_finished_game_gets_what_is_left_to_tell_and_a_good_end() {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, NewGameRequest::default()).await;
    moves(&mut client, &table, &table.red, "a3a4").await;
    client.leave_game(by(&table.blue, leave(&table))).await.expect("left");
    let game = table.get(&mut client).await;

    for token in [None, Some(table.red.as_str()), Some(table.arbiter.as_str())] {
        let mut stream = table.watch(&mut client, token, None).await.expect("a stream");
        let shown = snapshot(&mut stream).await;
        let presence = shown.presence;
        let your_side = if token == Some(&table.red) { Side::Red.into() } else { 0 };
        assert_eq!(shown, pb::Game { presence, your_side, ..game.clone() });
        assert_eq!(within(stream.message()).await.expect("a good end"), None);
        for (after, expected) in [(0, vec![1, 2, 3]), (1, vec![2, 3]), (2, vec![3]), (3, vec![])] {
            let mut stream = table.watch(&mut client, token, Some(after)).await.expect("a stream");
            let mut sequences = Vec::new();
            let mut outcomes = 0;
            while let Some(event) = next_event(&mut stream).await.expect("a good end") {
                sequences.push(event.sequence);
                outcomes += usize::from(event.outcome.is_some());
            }
            assert_eq!((&sequences, outcomes), (&expected, usize::from(after < 3)));
        }
        for after in [4, u64::MAX] {
            let status = table.watch(&mut client, token, Some(after)).await.expect_err("beyond the head");
            is(&status, Code::OutOfRange, "BEYOND_HEAD");
            assert_eq!(
                (metadata(&status, "sequence"), metadata(&status, "after_sequence")),
                ("3".into(), after.to_string())
            );
        }
    }
}

#[tokio::test]
async fn a_stream_picked_up_where_it_broke_misses_nothing_and_tells_nothing_twice() {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, ten_seconds(0)).await;
    let mut seen = 0;
    let mut sequences = Vec::new();
    for (ply, mv) in (0..).zip(["a3a4", "g7g6", "a4a5", "g6g5"]) {
        let mut stream = table.watch(&mut client, None, Some(seen)).await.expect("a stream");
        moves(&mut client, &table, table.token_at(ply), mv).await;
        for _ in 0..=u64::from(ply == 0) {
            seen = event(&mut stream).await.sequence;
            sequences.push(seen);
        }
    }
    server.advance(ms(10_000));
    let mut stream = table.watch(&mut client, None, Some(seen)).await.expect("a stream");
    sequences.push(event(&mut stream).await.sequence);
    assert_eq!(next_event(&mut stream).await.expect("a good end"), None);
    assert_eq!(sequences, [1, 2, 3, 4, 5, 6]);
}

// Streams of a seat.

#[tokio::test]
async fn my_fifth_stream_ends_my_oldest_which_tells_where_to_go_on() {
    let server = TestServer::start_manual(&["--max-watchers", "1"]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, NewGameRequest { away_limit: span(30_000), ..NewGameRequest::default() }).await;
    moves(&mut client, &table, &table.red, "a3a4").await;
    let mut streams = std::collections::VecDeque::new();
    for _ in 0..4 {
        let mut stream = table.watch(&mut client, Some(&table.red), None).await.expect("a stream");
        assert_eq!(snapshot(&mut stream).await.sequence, 2);
        streams.push_back(stream);
    }
    // The other seat has four of its own, and neither takes a watcher's place.
    let mut others = Vec::new();
    for _ in 0..4 {
        others.push(table.watch(&mut client, Some(&table.blue), Some(2)).await.expect("a stream"));
    }
    let mut spectator = table.watch(&mut client, None, Some(2)).await.expect("the one watcher's place");
    for token in [None, Some(table.arbiter.as_str())] {
        let status = table.watch(&mut client, token, None).await.expect_err("no place");
        is(&status, Code::ResourceExhausted, "TOO_MANY_WATCHERS");
        assert_eq!(metadata(&status, "limit"), "1");
    }

    for round in 0..4 {
        streams.push_back(table.watch(&mut client, Some(&table.red), Some(2 + round)).await.expect("a stream"));
        let mut oldest = streams.pop_front().expect("four");
        let status = within(oldest.message()).await.expect_err("replaced");
        is(&status, Code::ResourceExhausted, "STREAM_REPLACED");
        assert_eq!((metadata(&status, "sequence"), metadata(&status, "limit")), ((2 + round).to_string(), "4".into()));
        let token = table.token_at(1 + u32::try_from(round).expect("small"));
        let mv = ["g7g6", "a4a5", "g6g5", "a5a6"][usize::try_from(round).expect("small")];
        moves(&mut client, &table, token, mv).await;
        for stream in streams.iter_mut().chain(&mut others).chain([&mut spectator]) {
            assert_eq!(event(stream).await.sequence, 3 + round);
        }
    }
    // Those that were ended took nobody's presence with them.
    server.advance(ms(60_000));
    let game = table.get(&mut client).await;
    assert_eq!((presence(&game).red_present, presence(&game).blue_present, game.sequence), (true, true, 6));

    drop(spectator);
    within(async { while table.watch(&mut client, None, None).await.is_err() {} }).await;
}

/// "I ask on behalf of nobody": what is open to everybody needs no token.
#[tokio::test]
async fn a_look_without_a_token_settles_the_time_as_well() {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, ten_seconds(0)).await;
    server.advance(ms(10_000));
    let subject = Some(pb::legal_moves_request::Subject::GameId(table.id.clone()));
    let request = pb::LegalMovesRequest { subject, ..pb::LegalMovesRequest::default() };
    let legal = client.legal_moves(Request::new(request)).await.expect("an answer").into_inner();
    assert_eq!(legal.outcome.map(|outcome| outcome.reason()), Some(OutcomeReason::Timeout));
}
