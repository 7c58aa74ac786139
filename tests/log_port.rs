//! What is promised where the log takes time, fails, or leaves in doubt.

mod log_double;
mod room;
mod server;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::select_all;
use jungle_referee::game::{Caller, Command, Event, Kind, Request, Span, Status, TimeControl};
use jungle_referee::rules::Side;
use jungle_referee::runtime::slot::WAITING_LIMIT;
use jungle_referee::runtime::{Clock as _, Fault, ManualClock};
use jungle_referee::service::proto::{self as pb, NewGameRequest};
use log_double::{Fate, LogDouble};
use room::{
    Room, a_move, a_move_at, before_the_den, breathe, charged, enter, event_at_hand, kinds, per_move, request,
    settings, watch, watch_as, within,
};
use server::{EPOCH, Table, TestServer, by, config, reason};
use tonic::Code;

const MS: fn(u64) -> Span = Span::from_millis;

/// A server on a hand-moved clock, and its log.
async fn server() -> (TestServer, LogDouble) {
    let clock = Arc::new(ManualClock::at(EPOCH));
    let log = LogDouble::new(Arc::clone(&clock) as _);
    let server = TestServer::start_with(config(&[]), log.ports(), Some(clock)).await;
    (server, log)
}

fn with_id(table: &Table, mv: &str, ply: u32, id: &str) -> pb::SubmitMoveRequest {
    pb::SubmitMoveRequest { request_id: id.to_owned(), expected_ply: Some(ply), ..table.submit(mv) }
}

const ID: &str = "0190a000-0000-7000-8000-000000000001";

/// "Nobody hears of my move before it is written down: not I, not a watcher, not who asks."
#[tokio::test]
async fn nothing_is_shown_or_acknowledged_before_it_is_written() {
    let room = Room::new();
    let game = room.game(settings()).await;
    let mut watcher = watch(&game, Some(1)).await;
    room.log.hold();
    let mut call = enter(&game, a_move(Side::Red, "a3a4"), None).waits();
    breathe().await;
    assert!((&mut call).now_or_never().is_none());
    assert_eq!(event_at_hand(&mut watcher), None);
    let view = game.view(None).await.expect("a view");
    assert_eq!((view.game.sequence(), view.moves.len(), view.game.line().ply()), (1, 0, 0));
    assert_eq!(kinds(&room.log.records(game.id())), ["created"]);
    room.log.release();
    let answer = within(call).await.expect("accepted");
    assert_eq!((answer.record.sequence, answer.replayed), (2, false));
    assert_eq!(room.log.records(game.id())[1], answer.record);
    breathe().await;
    assert_eq!(event_at_hand(&mut watcher), Some(answer.record));
}

/// "The disk was full; I was told so, and the same move went through a moment later."
#[tokio::test]
async fn a_failed_append_is_unavailable_and_changes_nothing() {
    let (server, log) = server().await;
    let mut client = server.client().await;
    log.next(Fate::Failed);
    let unmade = client.new_game(NewGameRequest::default()).await.expect_err("not written");
    assert_eq!((unmade.code(), reason(&unmade).as_str()), (Code::Unavailable, "LOG_FAILED"));
    let listed = client.list_games(pb::ListGamesRequest::default()).await.expect("a list").into_inner();
    assert!(listed.games.is_empty());

    let table = Table::new(&mut client, NewGameRequest::default()).await;
    for late in [false, true] {
        if late {
            log.delay(Duration::from_millis(5));
        }
        let before = table.get(&mut client).await;
        log.next(Fate::Failed);
        let failed = client.submit_move(by(&table.red, with_id(&table, "a3a4", 0, ID))).await.expect_err("not written");
        assert_eq!((failed.code(), reason(&failed).as_str()), (Code::Unavailable, "LOG_FAILED"));
        assert_eq!(table.get(&mut client).await, before);
    }
    let made =
        client.submit_move(by(&table.red, with_id(&table, "a3a4", 0, ID))).await.expect("a verdict").into_inner();
    assert!(!made.replayed);
    assert_eq!(table.get(&mut client).await.sequence, 2);
    server.stop().await;
}

/// "The game that could not be written takes no place, even if its creator did not wait for the answer."
#[tokio::test]
async fn a_creation_that_fails_gives_its_place_back() {
    let room = Room::with_open_games(1);
    for gone in [false, true] {
        room.log.hold();
        room.log.next(Fate::Failed);
        let mut call = Box::pin(room.registry.new_game(settings().into(), None));
        assert!((&mut call).now_or_never().is_none());
        let call = Some(call).filter(|_| !gone);
        room.log.release();
        breathe().await;
        if let Some(call) = call {
            let (_, reply) = within(call).await.expect("a place");
            assert!(matches!(reply, Err(Fault::LogFailed)));
        }
    }
    room.game(settings()).await;
    assert!(matches!(room.registry.new_game(settings().into(), None).await, Err(Fault::TooManyGames { limit: 1 })));
}

/// "Two back ends asked for the same game at once; the first try failed; there is one game all the same."
#[tokio::test]
async fn a_failed_creation_does_not_lose_the_repeat_that_waits_behind_it() {
    let room = Room::new();
    let request = Some(Request { caller: Caller::Creator, id: 5, digest: 1 });
    room.log.hold();
    room.log.next(Fate::Failed);
    let new_game = || Box::pin(room.registry.new_game(settings().into(), request));
    let (mut first, mut second) = (new_game(), new_game());
    assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
    room.log.release_one();
    breathe().await;
    assert!(matches!(within(first).await, Ok((_, Err(Fault::LogFailed)))));
    let mut third = new_game();
    assert!((&mut third).now_or_never().is_none());
    room.log.release();
    let (second, second_reply) = within(second).await.expect("a place");
    let (third, third_reply) = within(third).await.expect("a place");
    assert_eq!((second, second_reply.expect("made").replayed), (third, false));
    assert!(third_reply.expect("found").replayed);
    assert_eq!(room.log.games(), [second]);
    assert!(room.registry.find(second).is_some());
}

/// "The answer of the disk was lost; the server looked, and my move stood."
#[tokio::test]
async fn after_doubt_the_tail_is_read_and_then_answered() {
    for (fate, late) in [(Fate::UnknownButWritten, false), (Fate::UnknownButWritten, true)] {
        let room = Room::new();
        let game = room.game(settings()).await;
        if late {
            room.log.delay_by_clock(MS(200));
        }
        room.log.next(fate);
        let call = enter(&game, a_move(Side::Red, "a3a4"), request(Side::Red, 1));
        room.pass(MS(200)).await;
        let answer = call.reply().await.expect("written");
        assert_eq!((answer.record.sequence, answer.replayed, room.log.tails()), (2, false, 1));
        assert_eq!(room.log.records(game.id())[1], answer.record);
    }
    let room = Room::new();
    let game = room.game(settings()).await;
    room.log.next(Fate::UnknownNotWritten);
    let reply = enter(&game, a_move(Side::Red, "a3a4"), None).reply().await;
    assert!(matches!(reply, Err(Fault::LogFailed)), "{reply:?}");
    enter(&game, a_move(Side::Red, "a3a4"), None).reply().await.expect("the next call works");
    assert_eq!(kinds(&room.log.records(game.id())), ["created", "moved"]);
}

/// "The server could not find out whether I had moved, and said so. Later the same request told me."
#[tokio::test]
async fn an_unreadable_tail_is_fate_unknown_and_the_same_request_id_tells_later() {
    for written in [true, false] {
        let (server, log) = server().await;
        let mut client = server.client().await;
        let table = Table::new(&mut client, NewGameRequest::default()).await;
        log.tail_fails(true);
        log.next(if written { Fate::UnknownButWritten } else { Fate::UnknownNotWritten });
        for _ in 0..3 {
            let doubt = client.submit_move(by(&table.red, with_id(&table, "a3a4", 0, ID))).await.expect_err("doubt");
            assert_eq!((doubt.code(), reason(&doubt).as_str()), (Code::Unavailable, "FATE_UNKNOWN"));
        }
        // The game is fenced: nobody is judged on a board that may be the one before.
        let doubt = client.submit_move(by(&table.red, table.submit("a3a9"))).await.expect_err("no verdict");
        assert_eq!(reason(&doubt), "FATE_UNKNOWN");
        log.tail_fails(false);
        let told = client.submit_move(by(&table.red, with_id(&table, "a3a4", 0, ID))).await.expect("told").into_inner();
        assert_eq!(told.replayed, written);
        let game = table.get(&mut client).await;
        assert_eq!((game.sequence, game.ply), (2, Some(1)));
        server.stop().await;
    }
}

/// "Nobody asked again, and still the server found out what had become of my move."
#[tokio::test]
async fn a_fenced_game_reads_its_tail_by_itself() {
    let room = Room::new();
    let game = room.game(settings()).await;
    let mut watcher = watch(&game, Some(1)).await;
    room.log.tail_fails(true);
    room.log.next(Fate::UnknownButWritten);
    let reply = enter(&game, a_move(Side::Red, "a3a4"), None).reply().await;
    assert!(matches!(reply, Err(Fault::FateUnknown)));
    room.pass(MS(1_000)).await;
    assert_eq!(event_at_hand(&mut watcher), None);
    room.log.tail_fails(false);
    room.pass(MS(1_000)).await;
    assert_eq!(event_at_hand(&mut watcher).map(|record| record.sequence), Some(2));
}

/// "I wrote down the id of my request before I asked for a game; in the end it brought me that game."
#[tokio::test]
async fn a_creation_in_doubt_is_found_by_its_request_id() {
    for written in [true, false] {
        let room = Room::with_open_games(1);
        let request = Some(Request { caller: Caller::Creator, id: 5, digest: 1 });
        room.log.tail_fails(true);
        room.log.next(if written { Fate::UnknownButWritten } else { Fate::UnknownNotWritten });
        let (id, reply) = room.registry.new_game(settings().into(), request).await.expect("a place");
        assert!(matches!(reply, Err(Fault::FateUnknown)));
        room.log.tail_fails(false);
        let (again, reply) = room.registry.new_game(settings().into(), request).await.expect("a place");
        assert_eq!(reply.expect("a game").replayed, written);
        assert!(again == id || !written);
        assert_eq!(kinds(&room.log.records(room.only_game())), ["created"]);
    }
    // Without an id nobody can ask again; the place is free once the log tells that there is no game.
    let room = Room::with_open_games(1);
    room.log.tail_fails(true);
    room.log.next(Fate::UnknownNotWritten);
    let (_, reply) = room.registry.new_game(settings().into(), None).await.expect("a place");
    assert!(matches!(reply, Err(Fault::FateUnknown)));
    room.log.tail_fails(false);
    room.pass(MS(1_000)).await;
    room.game(settings()).await;
}

/// "Another node had called the game off; my move met the game as it was then."
#[tokio::test]
async fn after_a_conflict_the_news_is_believed_and_the_command_judged_again() {
    let room = Room::new();
    let game = room.game(settings()).await;
    let mut watcher = watch(&game, Some(1)).await;
    let offered = Event { at: room.clock.now(), kind: Kind::DrawOffered(Side::Blue), ending: None, request: None };
    room.log.next(Fate::Conflict(offered));
    let answer = enter(&game, a_move(Side::Red, "a3a4"), None).reply().await.expect("accepted on the newer state");
    assert_eq!((answer.record.sequence, answer.game.offer()), (3, None));
    assert_eq!(kinds(&room.log.records(game.id())), ["created", "offered", "moved"]);
    assert_eq!(event_at_hand(&mut watcher).map(|record| record.sequence), Some(2));
    assert_eq!(event_at_hand(&mut watcher).map(|record| record.sequence), Some(3));

    let moved = answer.record.event.clone();
    let theirs = Event { kind: Kind::DrawOffered(Side::Red), ..moved };
    room.log.next(Fate::Conflict(theirs));
    let reply = enter(&game, Command::OfferDraw(Side::Red), None).reply().await;
    assert!(matches!(reply, Err(Fault::Refused { .. })), "{reply:?}");
}

/// "A fault in the log cost me one call, not the game."
#[tokio::test]
async fn a_log_that_panics_ends_one_call() {
    let room = Room::new();
    let game = room.game(settings()).await;
    for (fate, internal) in [(Fate::Panics, true), (Fate::PanicsLater, false)] {
        room.log.next(fate);
        let reply = enter(&game, a_move(Side::Red, "a3a4"), None).reply().await;
        assert_eq!(matches!(reply, Err(Fault::Internal)), internal, "{reply:?}");
        assert_eq!(matches!(reply, Err(Fault::LogFailed)), !internal, "{reply:?}");
    }
    enter(&game, a_move(Side::Red, "a3a4"), None).reply().await.expect("the next call works");
}

/// "My line dropped while the server wrote; I had moved all the same, and the request id told me."
#[tokio::test]
async fn a_caller_that_goes_away_may_still_have_moved() {
    let (server, log) = server().await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, NewGameRequest::default()).await;
    log.hold();
    let asked = log.asked();
    let mut gone = server.client().await;
    let call = gone.submit_move(by(&table.red, with_id(&table, "a3a4", 0, ID)));
    assert!(tokio::time::timeout(Duration::from_millis(200), call).await.is_err());
    drop(gone);
    assert_eq!(log.asked(), asked + 1);
    log.release();
    let told = client.submit_move(by(&table.red, with_id(&table, "a3a4", 0, ID))).await.expect("told").into_inner();
    assert!(told.replayed);
    assert_eq!(table.get(&mut client).await.ply, Some(1));
    server.stop().await;
}

/// "A bot that floods is told to wait; its opponent, and its own next move, are not its victims."
#[tokio::test]
async fn sixty_four_calls_of_a_seat_wait_and_a_first_move_of_a_ply_always_may() {
    let (server, log) = server().await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, NewGameRequest::default()).await;
    log.hold();
    let mut calls = Vec::new();
    for _ in 0..=WAITING_LIMIT {
        let (mut client, token, game_id) = (client.clone(), table.red.clone(), table.id.clone());
        let request = pb::OfferDrawRequest { game_id, ..pb::OfferDrawRequest::default() };
        calls.push(tokio::spawn(async move { client.offer_draw(by(&token, request)).await }));
    }
    // One too many: it is told at once, while all the others wait.
    let (done, _, calls) = within(select_all(calls)).await;
    let shed = done.expect("no panic").expect_err("one too many");
    assert_eq!((shed.code(), reason(&shed).as_str()), (Code::ResourceExhausted, "TOO_MANY_WAITING"));
    assert!(calls.iter().all(|call| !call.is_finished()));
    let slot = server.registry.find(table.id.parse().expect("an id")).expect("the game");
    let first = enter(&slot, a_move(Side::Red, "a3a4"), None).waits();
    let second = enter(&slot, a_move(Side::Red, "a3a4"), None).reply().await;
    assert!(matches!(second, Err(Fault::TooManyWaiting)), "{second:?}");
    let blue = enter(&slot, Command::Leave(Side::Blue), None).waits();
    log.release();
    within(first).await.expect("the first move of the ply is judged");
    within(blue).await.expect("the other seat has a queue of its own");
    let mut offers = 0;
    for call in calls {
        offers += usize::from(within(call).await.expect("no panic").is_ok());
    }
    assert_eq!(offers, 1);
    server.stop().await;
}

/// "My move was there in time. That the disk took longer than my limit is not my fault."
#[tokio::test]
async fn a_move_that_arrived_in_time_is_never_flagged_however_long_it_waits() {
    for pending in ["an offer", "nothing", "an expiry of two"] {
        let room = Room::new();
        let mut wanted = per_move(MS(100));
        if pending == "an expiry of two" {
            wanted.ruleset.timeouts_to_lose = 2;
        }
        let game = room.game(wanted).await;
        room.log.delay_by_clock(MS(200));
        let offer = match pending {
            "an offer" => Some(enter(&game, Command::OfferDraw(Side::Blue), None).waits()),
            "nothing" => None,
            _ => {
                room.pass(MS(101)).await;
                None
            }
        };
        // At the last instant that is in time.
        room.pass(Span::from_micros(if pending == "an expiry of two" { 98_999 } else { 99_999 })).await;
        let mv = enter(&game, a_move(Side::Red, "a3a4"), None).waits();
        for _ in 0..8 {
            room.pass(MS(100)).await;
        }
        within(mv).await.expect("in time");
        if let Some(offer) = offer {
            within(offer).await.expect("made");
        }
        let records = room.log.records(game.id());
        let moved = records.iter().find(|record| matches!(record.event.kind, Kind::Moved(_))).expect("moved");
        assert_eq!(charged(moved), Span::from_micros(99_999), "{pending}");
        // Red's move is the last thing that happened before Blue, who never moves, is flagged in turn.
        let expected: &[&str] = match pending {
            "an offer" => &["created", "offered", "moved", "expired"],
            "nothing" => &["created", "moved", "expired"],
            _ => &["created", "expired", "moved", "expired"],
        };
        assert_eq!(&kinds(&records)[..expected.len()], expected);
    }
    // One instant later it is too late, though nobody has noticed yet that time is up.
    let room = Room::new();
    let game = room.game(per_move(MS(100))).await;
    room.log.delay_by_clock(MS(200));
    room.clock.advance_to(room.clock.now() + MS(100));
    let late = enter(&game, a_move(Side::Red, "a3a4"), None).waits();
    room.pass(MS(200)).await;
    assert!(matches!(within(late).await, Err(Fault::Refused { .. })));
    assert_eq!(kinds(&room.log.records(game.id())), ["created", "expired"]);
}

/// "My clock started when the server had written my opponent's move, not when it arrived."
#[tokio::test]
async fn the_next_clock_starts_when_the_event_has_been_written() {
    let room = Room::new();
    let control = TimeControl::Increment { initial: MS(1_000), increment: Span::ZERO };
    let game = room.game(jungle_referee::game::Settings { time_control: control, ..settings() }).await;
    room.log.delay_by_clock(MS(200));
    room.pass(MS(30)).await;
    let red = enter(&game, a_move(Side::Red, "a3a4"), None).waits();
    room.pass(MS(50)).await;
    // Blue answers a move that it cannot have seen yet: that costs nothing.
    let blue = enter(&game, a_move(Side::Blue, "g7g6"), None).waits();
    room.pass(MS(150)).await;
    let red = within(red).await.expect("accepted");
    assert_eq!(red.record.written.since(red.record.event.at), MS(200));
    assert_eq!(red.game.running(), Some((Side::Blue, red.record.written)));
    room.pass(MS(200)).await;
    let blue = within(blue).await.expect("accepted");
    assert_eq!((charged(&red.record), charged(&blue.record)), (MS(30), Span::ZERO));
    room.pass(MS(40)).await;
    let red = enter(&game, a_move(Side::Red, "a4a5"), None).waits();
    room.pass(MS(200)).await;
    assert_eq!(charged(&within(red).await.expect("accepted").record), MS(40));
    let left = game.glance(None).await.expect("a game").game;
    assert_eq!(left.remaining(Side::Red, room.clock.now()), Some(MS(930)));
    assert_eq!(left.remaining(Side::Blue, room.clock.now()), Some(MS(1_000)));
}

/// "A repeat sent while my first try was still being written joined it, and took none of my places."
#[tokio::test]
async fn a_repeat_of_what_waits_is_no_entry_of_its_own() {
    let room = Room::new();
    let game = room.game(settings()).await;
    room.log.hold();
    let ask = |id| enter(&game, a_move_at(Side::Red, "a3a4", 0), request(Side::Red, id)).waits();
    let first = ask(1);
    let repeats: Vec<_> = (0..3 * WAITING_LIMIT).map(|_| ask(1)).collect();
    room.log.release();
    let first = within(first).await.expect("accepted");
    assert!(!first.replayed);
    for repeat in repeats {
        let repeat = within(repeat).await.expect("accepted");
        assert!(repeat.replayed);
        assert_eq!((repeat.record, repeat.game), (first.record.clone(), first.game.clone()));
    }
    assert_eq!(kinds(&room.log.records(game.id())), ["created", "moved"]);
}

/// "The flag fell although the log had failed at first: one second late, dated when it was due."
#[tokio::test]
async fn a_flag_that_could_not_be_written_falls_a_little_later_dated_when_it_was_due() {
    let room = Room::new();
    let game = room.game(per_move(MS(100))).await;
    let start = room.clock.now();
    for _ in 0..3 {
        room.log.next(Fate::Failed);
    }
    let asked = room.log.asked();
    room.pass(MS(100)).await;
    assert_eq!(room.log.asked(), asked + 1, "one try, not a storm of them");
    for _ in 0..3 {
        room.pass(MS(1_000)).await;
    }
    let ended = game.glance(None).await.expect("a game").game;
    assert_eq!((ended.status(), ended.ended_at()), (Status::Ended, Some(start + MS(100))));
}

/// "I shut one window and opened another; nobody may call me absent because the server was writing."
#[tokio::test]
async fn presence_survives_a_slow_and_failing_log() {
    let room = Room::new();
    let wanted = jungle_referee::game::Settings { away_limit: Some(Span::from_secs(10)), ..settings() };
    let game = room.game(wanted).await;
    let blue = watch_as(&game, Some(0), Some(Side::Blue)).await;
    room.pass(Span::from_secs(5)).await;
    assert_eq!(kinds(&room.log.records(game.id())), ["created", "away"]);
    // Red comes, and its return cannot be written at first.
    room.log.next(Fate::Failed);
    let first = watch_as(&game, Some(0), Some(Side::Red)).await;
    room.pass(Span::from_secs(1)).await;
    assert_eq!(kinds(&room.log.records(game.id())), ["created", "away", "returned"]);
    // It changes windows while something else is being written.
    room.log.hold();
    let offer = enter(&game, Command::OfferDraw(Side::Blue), None).waits();
    let second = watch_as(&game, Some(0), Some(Side::Red)).await;
    drop(first);
    room.log.release();
    within(offer).await.expect("made");
    let state = game.glance(None).await.expect("a game").game;
    assert!(state.is_present(Side::Red) && state.is_present(Side::Blue));
    room.pass(Span::from_secs(60)).await;
    assert_eq!(kinds(&room.log.records(game.id())), ["created", "away", "returned", "offered"]);
    drop((second, blue));
    room.pass(Span::from_secs(5)).await;
    assert!(game.glance(None).await.expect("a game").game.is_away(Side::Red));
}

/// "I showed myself with my first move; that the log failed just then was told as that, and not as my fault."
#[tokio::test]
async fn a_seat_whose_showing_could_not_be_written_is_told_so() {
    let room = Room::new();
    let clock_start = jungle_referee::game::ClockStart::WhenBothShown(Span::from_secs(60));
    let game = room.game(jungle_referee::game::Settings { clock_start, ..settings() }).await;
    game.view(Some(Side::Blue)).await.expect("a view");
    room.log.next(Fate::Failed);
    let reply = game.ask(Some(Side::Red), a_move(Side::Red, "a3a4"), None).await;
    assert!(matches!(reply, Err(Fault::LogFailed)), "{reply:?}");
    game.ask(Some(Side::Red), a_move(Side::Red, "a3a4"), None).await.expect("accepted");
    assert_eq!(kinds(&room.log.records(game.id())), ["created", "shown", "shown", "moved"]);
}

/// "The last move was the den; nothing else was written after it, though much was waiting."
#[tokio::test]
async fn nothing_is_written_after_the_outcome() {
    let room = Room::new();
    let game = room.game(before_the_den(per_move(MS(100)))).await;
    room.log.hold();
    let den = enter(&game, a_move(Side::Red, "d8d9"), None).waits();
    let leave = enter(&game, Command::Leave(Side::Blue), None).waits();
    let offer = enter(&game, Command::OfferDraw(Side::Blue), None).waits();
    room.pass(MS(500)).await;
    room.log.release();
    assert!(within(den).await.expect("accepted").record.event.ending.is_some());
    assert!(matches!(within(leave).await, Err(Fault::Refused { .. })));
    assert!(matches!(within(offer).await, Err(Fault::Refused { .. })));
    assert_eq!(kinds(&room.log.records(game.id())), ["created", "moved"]);
}
