//! A log for tests that keeps its own records, and that does what it is told: take its time, hold on,
//! fail, leave in doubt, or have been written to by somebody else.
//!
//! Told once, a fate is met by the next append; `every` append is slowed alike.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use jungle_referee::app::Ports;
use jungle_referee::game::{Event, Journal, Kind, Record, Span, Time};
use jungle_referee::runtime::log::Later;
use jungle_referee::runtime::{Append, Appended, Clock, GameId, Log, LogFault, Past, RandomIds};
use tokio::sync::watch;

/// What becomes of an append.
#[derive(Clone)]
pub(crate) enum Fate {
    /// It is written.
    Written,
    /// Nothing is written, and the log says so.
    Failed,
    /// It is written, and the log cannot say so.
    UnknownButWritten,
    /// It is not written, and the log cannot say so.
    UnknownNotWritten,
    /// Somebody else writes this event first.
    Conflict(Event),
    /// The log panics, at once.
    Panics,
    /// The log panics while it is waited for.
    PanicsLater,
}

/// When an append is done.
#[derive(Clone)]
enum Pace {
    AtOnce,
    /// After so much real time.
    Real(Duration),
    /// After so much of the log's own clock.
    ByClock(Span),
}

/// The log. Clones are the same log.
#[derive(Clone)]
pub(crate) struct LogDouble {
    clock: Arc<dyn Clock>,
    inner: Arc<Mutex<Inner>>,
    /// How many appends have been let go; those beyond wait.
    released: watch::Sender<Gate>,
}

#[derive(Clone, Copy, Debug)]
struct Gate {
    closed: bool,
    released: u64,
}

struct Inner {
    records: HashMap<GameId, Vec<Record>>,
    fates: VecDeque<Fate>,
    pace: Pace,
    tail_fails: bool,
    down_since: Option<Time>,
    asked: u64,
    held: u64,
    tails: u64,
}

impl fmt::Debug for LogDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogDouble(..)")
    }
}

impl LogDouble {
    /// A log that writes at once, dated by this clock.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let inner = Inner {
            records: HashMap::new(),
            fates: VecDeque::new(),
            pace: Pace::AtOnce,
            tail_fails: false,
            down_since: None,
            asked: 0,
            held: 0,
            tails: 0,
        };
        let released = watch::Sender::new(Gate { closed: false, released: 0 });
        Self { clock, inner: Arc::new(Mutex::new(inner)), released }
    }

    /// The ports of a server on this log.
    pub(crate) fn ports(&self) -> Ports {
        Ports { clock: Arc::clone(&self.clock), ids: Arc::new(RandomIds::default()), log: Arc::new(self.clone()) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no panic under this lock")
    }

    /// From now on every append takes so much real time.
    pub(crate) fn delay(&self, by: Duration) {
        self.lock().pace = Pace::Real(by);
    }

    /// From now on every append takes so much time of the log's clock.
    pub(crate) fn delay_by_clock(&self, by: Span) {
        self.lock().pace = Pace::ByClock(by);
    }

    /// What becomes of the next append, after those told before.
    pub(crate) fn next(&self, fate: Fate) {
        self.lock().fates.push_back(fate);
    }

    /// From now on appends are held until they are released.
    pub(crate) fn hold(&self) {
        let released = self.lock().held;
        self.released.send_modify(|gate| *gate = Gate { closed: true, released });
    }

    /// Lets one held append go, or the next to be held.
    pub(crate) fn release_one(&self) {
        self.released.send_modify(|gate| gate.released += 1);
    }

    /// Lets all go, and holds none any more.
    pub(crate) fn release(&self) {
        self.released.send_modify(|gate| gate.closed = false);
    }

    /// Whether the tail can be read.
    pub(crate) fn tail_fails(&self, fails: bool) {
        self.lock().tail_fails = fails;
    }

    /// The server has gone down, its last sign of life at `since`: the next one on this log takes over.
    pub(crate) fn go_down(&self, since: Time) {
        self.lock().down_since = Some(since);
    }

    /// Writes an event as somebody else would.
    pub(crate) fn write(&self, game: GameId, event: Event) {
        let written = self.clock.now();
        let mut inner = self.lock();
        let records = inner.records.entry(game).or_default();
        let sequence = u64::try_from(records.len()).expect("a short log") + 1;
        records.push(Record { sequence, written, event });
    }

    /// What is written of a game.
    pub(crate) fn records(&self, game: GameId) -> Vec<Record> {
        self.lock().records.get(&game).cloned().unwrap_or_default()
    }

    /// The games of which something is written.
    pub(crate) fn games(&self) -> Vec<GameId> {
        self.lock().records.keys().copied().collect()
    }

    /// How many appends were asked for so far.
    pub(crate) fn asked(&self) -> u64 {
        self.lock().asked
    }

    /// How often the tail was read.
    pub(crate) fn tails(&self) -> u64 {
        self.lock().tails
    }

    /// Writes as the next sequence, or says why not.
    fn settle(&self, game: GameId, sequence: u64, event: Event, fate: Fate) -> Appended {
        let in_doubt = matches!(fate, Fate::UnknownButWritten);
        match fate {
            Fate::Failed => return Appended::Failed,
            Fate::UnknownNotWritten => return Appended::Unknown,
            Fate::Panics | Fate::PanicsLater => panic!("a log that panics"),
            Fate::Conflict(other) => self.write(game, other),
            Fate::Written | Fate::UnknownButWritten => {}
        }
        let head = u64::try_from(self.records(game).len()).expect("a short log");
        if head + 1 != sequence {
            return Appended::Conflict;
        }
        self.write(game, event);
        if in_doubt {
            return Appended::Unknown;
        }
        Appended::Written(self.records(game)[usize::try_from(head).expect("a short log")].written)
    }
}

impl Log for LogDouble {
    fn append(&self, game: GameId, sequence: u64, event: &Event) -> Append {
        let (fate, pace, number) = {
            let mut inner = self.lock();
            inner.asked += 1;
            let fate = inner.fates.pop_front().unwrap_or(Fate::Written);
            let held = self.released.borrow().closed;
            inner.held += u64::from(held);
            (fate, inner.pace.clone(), held.then_some(inner.held))
        };
        assert!(!matches!(fate, Fate::Panics), "a log that panics at once");
        let event = event.clone();
        let asked_at = self.clock.now();
        if matches!((&pace, number), (Pace::AtOnce, None)) && !matches!(fate, Fate::PanicsLater) {
            return Append::Done(self.settle(game, sequence, event, fate));
        }
        let log = self.clone();
        Append::Pending(Box::pin(async move {
            match pace {
                Pace::AtOnce => {}
                Pace::Real(by) => tokio::time::sleep(by).await,
                Pace::ByClock(by) => log.clock.sleep_until(asked_at + by).await,
            }
            if let Some(number) = number {
                let mut gate = log.released.subscribe();
                gate.wait_for(|gate| !gate.closed || gate.released >= number).await.expect("the log lives");
            }
            log.settle(game, sequence, event, fate)
        }))
    }

    fn tail(&self, game: GameId, sequence: u64) -> Later<Result<Vec<Record>, LogFault>> {
        let fails = {
            let mut inner = self.lock();
            inner.tails += 1;
            inner.tail_fails
        };
        let after = usize::try_from(sequence).expect("a short log");
        let records = self.records(game).into_iter().skip(after).collect();
        Box::pin(std::future::ready(if fails { Err(LogFault) } else { Ok(records) }))
    }

    fn past(&self) -> Option<Past> {
        let inner = self.lock();
        let down_since = inner.down_since?;
        let games = inner.records.iter().map(|(id, records)| {
            let (mut game, mut journal) = (None, Journal::default());
            records.iter().for_each(|record| journal.write(&mut game, record));
            (*id, game.expect("a log begins with the creation"), journal)
        });
        Some(Past { games: games.collect(), down_since })
    }

    fn outlasts(&self) -> bool {
        self.lock().down_since.is_some()
    }
}

/// What kind of event it is, in a word.
pub(crate) fn kind(event: &Event) -> &'static str {
    match event.kind {
        Kind::Created(_) => "created",
        Kind::SeatShown { .. } => "shown",
        Kind::Started => "started",
        Kind::Moved(_) => "moved",
        Kind::Refused { .. } => "refused",
        Kind::TimeExpired(_) => "expired",
        Kind::DrawOffered(_) => "offered",
        Kind::DrawTakenBack(_) => "taken back",
        Kind::DrawDeclined(_) => "declined",
        Kind::DrawAccepted(_) => "accepted",
        Kind::SeatLeft(_) => "left",
        Kind::SeatAway(_) => "away",
        Kind::SeatReturned(_) => "returned",
        Kind::AwayExpired(_) => "away expired",
        Kind::Aborted(_) => "aborted",
        Kind::Resumed { .. } => "resumed",
    }
}
