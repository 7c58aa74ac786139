//! Many bots, a limit as short as their thinking allows, and a log that takes twice the limit to write:
//! nobody who sent a move in time is ever flagged. What the log takes is charged to nobody.
//!
//! Runs for 10 s; `SLOW_LOG_SECONDS=60` makes it a minute. A busy machine may leave a sent move lying in
//! a socket; how long, a canary tells that makes calls which no log and no game delays. Its worst trip is
//! the machine's, and is not held against the server.

mod log_double;
mod room;
mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jungle_referee::game::Span;
use jungle_referee::rules::Side;
use jungle_referee::runtime::{Clock, Limits, RandomIds, Registry, SystemClock};
use jungle_referee::service::proto::{self as pb, NewGameRequest, submit_move_response::Verdict};
use log_double::LogDouble;
use server::{Client, Table, TestServer, by, config, next_event, reason};
use tokio::time::sleep;

const GAMES: usize = 250;
const CONNECTIONS: usize = 10;
const LIMIT: Duration = Duration::from_millis(100);
const THINKING: Duration = Duration::from_millis(50);
const WRITING: Duration = Duration::from_millis(200);
/// How long before its deadline a move must have been sent to count as in time.
const MARGIN: Duration = Duration::from_millis(20);

/// Each side walks its elephant to and fro and now and then its lion: no rule is in the way of that.
const RED: [&str; 4] = ["a3a4", "g1g2", "a4a3", "g2g1"];
const BLUE: [&str; 4] = ["g7g6", "a9a8", "g6g7", "a8a9"];

/// The client's own monotonic clock.
#[expect(clippy::disallowed_methods, reason = "a bot has a clock of its own; that is what this test is about")]
fn now() -> Instant {
    Instant::now()
}

/// Where the server's time lies on the client's clock. Both count the same machine's ticks.
#[derive(Clone, Copy)]
struct Offset {
    at: Instant,
    server: Duration,
}

impl Offset {
    fn instant(self, time: &prost_types::Timestamp) -> Instant {
        let seconds = u64::try_from(time.seconds).expect("after 1970");
        let time = Duration::new(seconds, u32::try_from(time.nanos).expect("nanos"));
        self.at + time.saturating_sub(self.server)
    }
}

/// What the bots have seen.
#[derive(Debug, Default)]
struct Seen {
    moves: usize,
    /// What was charged beyond the thinking.
    over: Vec<Duration>,
    /// Moves that came too late although they had been sent in time: how long before the deadline.
    wronged: Vec<Duration>,
    /// Moves that were sent late: the machine had no time for the bot.
    late: usize,
}

/// One game: both bots, each on its own stream, until one is flagged or time is up.
async fn play(mut clients: [Client; 2], offset: Offset, over: Arc<AtomicBool>) -> Seen {
    let limit = prost_types::Duration { seconds: 0, nanos: 100_000_000 };
    let kind = pb::time_control::Kind::PerMove(pb::time_control::PerMove { limit: Some(limit) });
    let request = NewGameRequest {
        time_control: Some(pb::TimeControl { kind: Some(kind) }),
        clock_start: Some(pb::ClockStart {
            kind: Some(pb::clock_start::Kind::JoinWindow(prost_types::Duration { seconds: 60, nanos: 0 })),
        }),
        // Nobody takes anything here, and a minute has many moves.
        ruleset: Some(pb::RulesetSpec { no_capture_rounds: Some(500), ..pb::RulesetSpec::default() }),
        ..NewGameRequest::default()
    };
    let table = Table::new(&mut clients[0], request).await;
    let [red, blue] = clients;
    let tokens = [table.red.clone(), table.blue.clone()];
    let table = Arc::new(table);
    let bots = [(red, RED, tokens[0].clone(), 0), (blue, BLUE, tokens[1].clone(), 1)];
    let bots = bots.map(|(client, moves, token, side)| {
        tokio::spawn(bot(client, Arc::clone(&table), token, side, moves, offset, Arc::clone(&over)))
    });
    let mut seen = Seen::default();
    for bot in bots {
        let one = bot.await.expect("no panic");
        seen.moves += one.moves;
        seen.late += one.late;
        seen.over.extend(one.over);
        seen.wronged.extend(one.wronged);
    }
    seen
}

/// A bot: hears of its turn, thinks, moves.
async fn bot(
    mut client: Client,
    table: Arc<Table>,
    token: String,
    side: usize,
    moves: [&str; 4],
    offset: Offset,
    over: Arc<AtomicBool>,
) -> Seen {
    let mut seen = Seen::default();
    let mine = [pb::Side::Red, pb::Side::Blue][side];
    let mut stream = table.watch(&mut client, Some(&token), Some(0)).await.expect("a stream");
    let mut turn = 0;
    while let Ok(Some(event)) = next_event(&mut stream).await {
        if event.status() != pb::GameStatus::Running || event.side_to_move() != mine || event.outcome.is_some() {
            continue;
        }
        if over.load(Ordering::Relaxed) {
            let request = pb::LeaveGameRequest { game_id: table.id.clone(), ..pb::LeaveGameRequest::default() };
            let _ = client.leave_game(by(&token, request)).await;
            break;
        }
        let clock = event.clock.as_ref().expect("clocks");
        let deadline = offset.instant(clock.deadline.as_ref().expect("a deadline"));
        let thinks_from = deadline.checked_sub(LIMIT).expect("long after the start");
        sleep(THINKING).await;
        let sent = now();
        let spare = deadline.saturating_duration_since(sent);
        let answer = client.submit_move(by(&token, table.submit(moves[turn % 4]))).await;
        turn += 1;
        match answer.map(tonic::Response::into_inner) {
            Ok(pb::SubmitMoveResponse { verdict: Some(Verdict::Accepted(accepted)), .. }) => {
                let charged = accepted.charged.expect("a charge");
                let charged = Duration::new(0, u32::try_from(charged.nanos).expect("nanos"));
                seen.moves += 1;
                seen.over.push(charged.saturating_sub(sent.saturating_duration_since(thinks_from)));
            }
            Ok(other) => panic!("{other:?}"),
            Err(status) => {
                assert_eq!(reason(&status), "GAME_OVER", "{status:?}");
                if spare >= MARGIN {
                    seen.wronged.push(spare);
                } else {
                    seen.late += 1;
                }
                break;
            }
        }
    }
    seen
}

/// The longest that the machine needed, load and all, to bring a call there and back.
async fn canary(mut client: Client, over: Arc<AtomicBool>) -> Duration {
    const PAUSE: Duration = Duration::from_millis(5);
    let mut worst = Duration::ZERO;
    while !over.load(Ordering::Relaxed) {
        let began = now();
        sleep(PAUSE).await;
        client.list_rulesets(pb::ListRulesetsRequest::default()).await.expect("the presets");
        worst = worst.max(began.elapsed().saturating_sub(PAUSE));
    }
    worst
}

/// "The server's disk was slower than my clock, and still nobody lost a game by it."
#[tokio::test(flavor = "multi_thread")]
async fn under_a_slow_log_no_move_that_was_sent_in_time_is_flagged() {
    let seconds = std::env::var("SLOW_LOG_SECONDS").map_or(10, |text| text.parse().expect("a number of seconds"));
    let clock = Arc::new(SystemClock::start());
    let offset = Offset { at: now(), server: Duration::from_micros(clock.now().micros()) };
    let log = LogDouble::new(clock);
    log.delay(WRITING);
    let server = TestServer::start_with(config(&[]), log.ports(), None).await;
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        clients.push(server.client().await);
    }
    let over = Arc::new(AtomicBool::new(false));
    let canary = tokio::spawn(canary(server.client().await, Arc::clone(&over)));
    let mut games = Vec::new();
    for game in 0..GAMES {
        let pair = [clients[2 * game % CONNECTIONS].clone(), clients[(2 * game + 1) % CONNECTIONS].clone()];
        games.push(tokio::spawn(play(pair, offset, Arc::clone(&over))));
        // The bots of a day do not all sit down in the same instant.
        sleep(Duration::from_millis(2)).await;
    }
    sleep(Duration::from_secs(seconds)).await;
    over.store(true, Ordering::Relaxed);
    let mut seen = Seen::default();
    for game in games {
        let one = server::within(game).await.expect("no panic");
        seen.moves += one.moves;
        seen.late += one.late;
        seen.over.extend(one.over);
        seen.wronged.extend(one.wronged);
    }
    let machine = canary.await.expect("no panic");
    seen.over.sort_unstable();
    let at = |share: usize| {
        let last = seen.over.len().saturating_sub(1);
        seen.over.get(last * share / 100).copied().unwrap_or_default()
    };
    println!("{GAMES} games, {} moves, {} sent too late by the bot's own clock", seen.moves, seen.late);
    println!("{} sent {MARGIN:?} early and flagged; the worst trip of a canary was {machine:?}", seen.wronged.len());
    println!("charged beyond thinking: p50 {:?}, p99 {:?}, max {:?}", at(50), at(99), at(100));
    seen.wronged.retain(|spare| *spare >= MARGIN + machine);
    assert_eq!(seen.wronged, Vec::<Duration>::new(), "flagged although sent in time");
    assert!(seen.moves > GAMES, "the bots did play");
    server.stop().await;
}

/// "I sat beside the server, with no network between us: my move was in time whenever I said so."
#[tokio::test(flavor = "multi_thread")]
async fn without_a_wire_no_move_that_was_made_in_time_is_flagged_under_a_slow_log() {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let log = LogDouble::new(Arc::clone(&clock));
    log.delay(WRITING);
    let limits = Limits {
        open_games: GAMES,
        watchers_a_game: 1,
        keep_finished_for: Span::from_days(1),
        keep_finished: GAMES,
        calls: usize::MAX,
    };
    let ids = Arc::new(RandomIds::default());
    let registry = Arc::new(Registry::new(Arc::clone(&clock), ids, Arc::new(log), limits));
    let keeper = Arc::clone(&registry);
    let time = tokio::spawn(async move { keeper.keep_time().await });
    let mut games = Vec::new();
    for _ in 0..GAMES {
        games.push(tokio::spawn(play_beside(Arc::clone(&registry), Arc::clone(&clock))));
    }
    let (mut moves, mut late) = (0, 0);
    for game in games {
        let (made, too_late) = server::within(game).await.expect("no panic");
        moves += made;
        late += usize::from(too_late);
    }
    println!("without a wire: {moves} moves, {late} bots woken too late by the machine");
    assert!(moves > GAMES);
    time.abort();
}

/// One game of twelve moves, each made when half of its time is gone.
async fn play_beside(registry: Arc<Registry>, clock: Arc<dyn Clock>) -> (usize, bool) {
    let limit = Span::from_millis(100);
    let settings = room::per_move(limit);
    let (id, reply) = registry.new_game(settings.into(), None).await.expect("room");
    let slot = registry.find(id).expect("the game");
    let mut started = reply.expect("a game").record.written;
    for ply in 0..12_usize {
        let (side, moves) = [(Side::Red, RED), (Side::Blue, BLUE)][ply % 2];
        clock.sleep_until(started + Span::from_millis(50)).await;
        let spare = (started + limit).since(clock.now());
        match slot.ask(None, room::a_move(side, moves[ply / 2 % 4]), None).await {
            Ok(answer) => started = answer.record.written,
            Err(fault) => {
                assert!(spare < Span::from_millis(20), "flagged with {spare} to spare: {fault:?}");
                return (ply, true);
            }
        }
    }
    (12, false)
}
