//! Clocks that run out: how late flags fall, what waiting costs, and whether a move in time is ever flagged.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use jungle_referee::game::{Command, Kind, Record, Span, Time, TimeControl};
use jungle_referee::rules::Side;
use jungle_referee::runtime::feed::WatchOptions;
use jungle_referee::runtime::{Clock, Fault, Slot, Told, Watch};

use crate::cpu::{LOAD_CORE, Led, SERVER_CORE, now};
use crate::fill::{Games, game_id, timed_game};
use crate::table::{as_figure, micros, percentile};

/// How long the deadlines fall due.
const SPAN: Duration = Duration::from_secs(60);

/// How long a server does nothing but wait, to see what that costs.
const IDLE: Duration = Duration::from_secs(10);

/// The head of the table.
pub(crate) const HEAD: &str = "\
| deadlines over 60 s | late µs p50 | p99 | max | early | flags | CPU while all wait | CPU µs a flag |
|---|---|---|---|---|---|---|---|";

/// Has so many clocks run out over a minute, and prints how it went.
pub(crate) async fn run_out(count: u64) {
    let mut server = Led::start(SERVER_CORE, &["serve-referee", "--keep-finished", "10000000"]);
    // All are armed before the first is due: about as many micros each as are allowed for here.
    let arming = Duration::from_secs(2) + Duration::from_micros(12) * u32::try_from(count).expect("few");
    let began = now();
    server.ask(&format!("arm 0 {count} {} {}", (arming + IDLE).as_millis(), SPAN.as_millis()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (idle_from, spent) = (now(), server.spent());
    tokio::time::sleep((arming + IDLE).saturating_sub(began.elapsed() + Duration::from_secs(1))).await;
    let waiting = server.spent();
    let idle = (waiting - spent).as_secs_f64() / idle_from.elapsed().as_secs_f64();
    tokio::time::sleep((arming + IDLE + SPAN + Duration::from_secs(3)).saturating_sub(began.elapsed())).await;
    let each = micros(server.spent() - waiting) / as_figure(usize::try_from(count).expect("few"));
    let told = server.ask(&format!("lateness 0 {count}"));
    println!("| {count} | {} | {:.2} % | {each:.2} |", told.replace(' ', " | "), idle * 100.0);
}

/// Makes moves around their deadlines while both cores are kept busy, and prints what became of them.
pub(crate) fn close_calls_under_load(count: u64) {
    let _burners = [SERVER_CORE, LOAD_CORE].map(|core| Led::start(core, &["burn"]));
    let both = format!("{SERVER_CORE},{LOAD_CORE}");
    let mut server = Led::start(&both, &["serve-referee"]);
    println!("{}", server.ask(&format!("close 0 {count}")));
}

/// In the server: makes games whose deadlines fall due one after the other, from `delay` to `delay + span` ms from now.
pub(crate) async fn arm(games: &Games, first: u64, count: u64, [delay, span]: [u64; 2]) {
    let clock = &games.clock;
    let due = clock.now() + Span::from_millis(delay);
    for game in first..first + count {
        let deadline = due + Span::from_micros(span * 1_000 * (game - first) / count);
        let limit = TimeControl::PerMove(deadline.since(clock.now()));
        games.create(game, timed_game(game, limit)).await;
        if game.is_multiple_of(64) {
            tokio::task::yield_now().await;
        }
    }
}

/// In the server: how late the flags of these games fell, in µs: p50, p99, the most; how many fell early, and how many at all.
pub(crate) async fn lateness(games: &Games, first: u64, count: u64) -> String {
    let (mut late, mut early) = (Vec::new(), 0);
    for game in first..first + count {
        let slot = games.registry.find(game_id(game)).expect("a game that is kept");
        let records = records(&slot).await;
        let [created, ended] = &records[..] else { panic!("no flag fell: {records:?}") };
        let Kind::Created(creation) = &created.event.kind else { panic!("{created:?}") };
        let TimeControl::PerMove(limit) = creation.settings.time_control else { panic!("{created:?}") };
        let deadline = created.written + limit;
        assert!(matches!(ended.event.kind, Kind::TimeExpired(Side::Red)) && ended.event.at == deadline, "{ended:?}");
        early += usize::from(ended.written < deadline);
        late.push(Duration::from_micros(ended.written.since(deadline).micros()));
    }
    late.sort_unstable();
    let at = |share| micros(percentile(&late, share));
    format!("{:.0} {:.0} {:.0} {early} {}", at(0.5), at(0.99), at(1.0), late.len())
}

/// The records of an ended game.
async fn records(slot: &Arc<Slot>) -> Vec<Record> {
    let options = WatchOptions { after_sequence: Some(0), heartbeat: Span::from_days(1), seat: None };
    let mut watch = Watch::begin(slot, options).await.expect("a watch");
    let mut records = Vec::new();
    while let Some(told) = watch.next().await {
        match told.expect("the server goes on") {
            Told::Event(event) => records.push(event.0.clone()),
            Told::Snapshot(_) | Told::Heartbeat(_) => {}
        }
    }
    records
}

/// What became of a move around its deadline.
enum Close {
    InTime {
        flagged: bool,
    },
    Late {
        accepted: bool,
    },
    /// It was made while the deadline passed: both are right.
    Between,
}

/// In the server: moves around their deadlines, as many as games.
pub(crate) async fn close_calls(games: &Games, first: u64, count: u64) -> String {
    const AT_ONCE: u64 = 500;
    let (mut in_time, mut flagged, mut late, mut accepted, mut between) = (0, 0, 0, 0, 0);
    for batch in (first..first + count).step_by(usize::try_from(AT_ONCE).expect("small")) {
        let mut calls = Vec::new();
        for game in batch..(batch + AT_ONCE).min(first + count) {
            let limit = TimeControl::PerMove(Span::from_millis(50 + game % 200));
            let slot = games.create(game, timed_game(game, limit)).await;
            calls.push(tokio::spawn(close_call(slot, Arc::clone(&games.clock), game)));
        }
        for call in join_all(calls).await {
            match call.expect("no panic") {
                Close::InTime { flagged: was } => (in_time, flagged) = (in_time + 1, flagged + u32::from(was)),
                Close::Late { accepted: was } => (late, accepted) = (late + 1, accepted + u32::from(was)),
                Close::Between => between += 1,
            }
        }
    }
    format!(
        "{in_time} moves in time, {flagged} of them flagged; {late} too late, {accepted} of them accepted; \
         {between} while the deadline passed"
    )
}

/// Makes a move some millis before the deadline or after it.
async fn close_call(slot: Arc<Slot>, clock: Arc<dyn Clock>, game: u64) -> Close {
    let deadline = slot.view(None).await.expect("a game").game.deadline().expect("a clock that runs");
    // From 6 ms ahead to 2 ms too late, as the number of the game has it.
    let aim = Time::from_micros(deadline.micros() - 6_000 + game * 7_919 % 8_000);
    clock.sleep_until(aim).await;
    let mv = "a3a4".parse().expect("a move");
    let command = Command::Move { side: Side::Red, mv, expected_ply: Some(0), offer_draw: false };
    let began = clock.now();
    let reply = slot.ask(None, command, None).await;
    let ended = clock.now();
    let moved = match reply {
        Ok(_) => true,
        Err(Fault::Refused { .. }) => false,
        Err(fault) => panic!("{fault:?}"),
    };
    if ended < deadline {
        Close::InTime { flagged: !moved }
    } else if began >= deadline {
        Close::Late { accepted: moved }
    } else {
        Close::Between
    }
}
