//! Games in this process, without a wire: the runtime on a clock moved by hand and a log that does what
//! it is told. A call enters the queue when it is first polled, so that a test sets the order to the letter.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt as _;
use jungle_referee::game::{Caller, Command, Game, Kind, Record, Request, Settings, Span, Time, TimeControl};
use jungle_referee::rules::{Move, Position, Side};
use jungle_referee::runtime::feed::WatchOptions;
use jungle_referee::runtime::slot::Reply;
use jungle_referee::runtime::{Clock, Cut, GameId, Limits, ManualClock, RandomIds, Registry, Slot, Told, Watch};
use tokio::task::JoinHandle;

use crate::log_double::LogDouble;

#[path = "../game/usual.rs"]
mod usual;
/// The usual game, untimed.
pub(crate) use usual::usual as settings;

/// When the hand-moved clock begins: a moment in 2026, on a full second.
pub(crate) const BEGIN: Time = Time::from_micros(1_790_000_000_000_000);

/// A call that waits for its answer.
pub(crate) type Call = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// The games, their clock and their log.
pub(crate) struct Room {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) log: LogDouble,
    pub(crate) registry: Arc<Registry>,
    time: JoinHandle<()>,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.time.abort();
    }
}

impl Room {
    pub(crate) fn new() -> Self {
        Self::with_open_games(usize::MAX)
    }

    pub(crate) fn with_open_games(open_games: usize) -> Self {
        let clock = Arc::new(ManualClock::at(BEGIN));
        let log = LogDouble::new(Arc::clone(&clock) as _);
        let limits = Limits {
            open_games,
            watchers_a_game: 1_000,
            keep_finished_for: Span::from_days(1),
            keep_finished: 1_000_000,
            calls: 1_000_000,
        };
        let ids = Arc::new(RandomIds::default());
        let registry = Arc::new(Registry::new(Arc::clone(&clock) as _, ids, Arc::new(log.clone()), limits));
        let keeper = Arc::clone(&registry);
        let time = tokio::spawn(async move { keeper.keep_time().await });
        Self { clock, log, registry, time }
    }

    /// Creates a game.
    pub(crate) async fn game(&self, settings: Settings) -> Arc<Slot> {
        let (id, reply) = self.registry.new_game(settings.into(), None).await.expect("room for a game");
        reply.expect("a new game");
        self.registry.find(id).expect("the new game")
    }

    /// Moves the time forward, and lets the timers do their work.
    pub(crate) async fn pass(&self, span: Span) {
        self.clock.advance_to(self.clock.now() + span);
        breathe().await;
    }

    /// The one game whose creation was written.
    pub(crate) fn only_game(&self) -> GameId {
        let games = self.log.games();
        assert_eq!(games.len(), 1);
        games[0]
    }
}

/// Lets every task that can run do so.
pub(crate) async fn breathe() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// The usual game with a limit per move.
pub(crate) fn per_move(limit: Span) -> Settings {
    Settings { time_control: TimeControl::PerMove(limit), ..settings() }
}

/// A board on which Red walks into the den with `d8d9`.
pub(crate) fn before_the_den(settings: Settings) -> Settings {
    let start = Position::set_up("6e/3T3/7/7/7/7/7/7/6P r 0 1", &settings.ruleset).expect("a board");
    Settings { start, ..settings }
}

pub(crate) fn a_move(side: Side, mv: &str) -> Command {
    let mv: Move = mv.parse().expect("a move");
    Command::Move { side, mv, expected_ply: None, offer_draw: false }
}

pub(crate) fn a_move_at(side: Side, mv: &str, ply: u32) -> Command {
    let mv: Move = mv.parse().expect("a move");
    Command::Move { side, mv, expected_ply: Some(ply), offer_draw: false }
}

/// A request id of a seat; the same number, the same id and body.
pub(crate) fn request(side: Side, id: u128) -> Option<Request> {
    Some(Request { caller: Caller::Seat(side), id, digest: 7 })
}

/// Enters a call now. It has been stamped when this returns; with a log that takes time it then waits.
pub(crate) fn enter(slot: &Arc<Slot>, command: Command, request: Option<Request>) -> Entered {
    let slot = Arc::clone(slot);
    let mut call: Call = Box::pin(async move { slot.ask(None, command, request).await });
    match (&mut call).now_or_never() {
        Some(reply) => Entered::Answered(Box::new(reply)),
        None => Entered::Waits(call),
    }
}

/// A call that has entered.
pub(crate) enum Entered {
    Answered(Box<Reply>),
    Waits(Call),
}

impl Entered {
    #[track_caller]
    pub(crate) fn waits(self) -> Call {
        match self {
            Self::Waits(call) => call,
            Self::Answered(reply) => panic!("answered: {reply:?}"),
        }
    }

    pub(crate) async fn reply(self) -> Reply {
        match self {
            Self::Waits(call) => within(call).await,
            Self::Answered(reply) => *reply,
        }
    }
}

/// Waits for what must come soon.
pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(std::time::Duration::from_secs(20), what).await.expect("it comes in time")
}

/// A watcher without a token.
pub(crate) async fn watch(slot: &Arc<Slot>, after_sequence: Option<u64>) -> Watch {
    watch_as(slot, after_sequence, None).await
}

pub(crate) async fn watch_as(slot: &Arc<Slot>, after_sequence: Option<u64>, seat: Option<Side>) -> Watch {
    let options = WatchOptions { after_sequence, heartbeat: Span::from_days(300), seat };
    Watch::begin(slot, options).await.expect("a watch")
}

/// What a watcher was told until its stream ended.
#[derive(Debug, Default)]
pub(crate) struct Story {
    pub(crate) snapshot: Option<Game>,
    pub(crate) records: Vec<Record>,
    pub(crate) last: Option<Game>,
    pub(crate) cut: Option<Cut>,
}

/// Follows a stream to its end.
pub(crate) async fn follow(mut watch: Watch) -> Story {
    let mut story = Story::default();
    while let Some(told) = within(watch.next()).await {
        match told {
            Ok(Told::Snapshot(view)) => {
                story.last = Some(view.game.clone());
                story.snapshot = Some(view.game);
            }
            Ok(Told::Event(event)) => {
                story.records.push(event.0.clone());
                story.last = Some(event.1.clone());
            }
            Ok(Told::Heartbeat(_)) => {}
            Err(cut) => story.cut = Some(cut),
        }
    }
    story
}

/// The next event that a watcher is told; `None` if there is none at hand.
pub(crate) fn event_at_hand(watch: &mut Watch) -> Option<Record> {
    loop {
        match watch.next().now_or_never()?? {
            Ok(Told::Event(event)) => return Some(event.0.clone()),
            Ok(Told::Snapshot(_) | Told::Heartbeat(_)) => {}
            Err(cut) => panic!("cut: {cut:?}"),
        }
    }
}

/// The kinds of a log, in a word each.
pub(crate) fn kinds(records: &[Record]) -> Vec<&'static str> {
    records.iter().map(|record| crate::log_double::kind(&record.event)).collect()
}

/// What the last move was charged.
pub(crate) fn charged(record: &Record) -> Span {
    let Kind::Moved(moved) = record.event.kind else { panic!("no move") };
    moved.charged
}
