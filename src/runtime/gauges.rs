//! What the referee counts of itself: plain numbers, bumped without a lock on the way of a move and read
//! by whoever tells of them. How they are named and written is the metrics page's business.
//!
//! No number here is an id, and none is asked for by one: their kinds are the closed lists of the house.

use std::sync::atomic::{AtomicU64, Ordering};

use super::log::Appended;
use super::slot::{Fault, Reply};
use crate::game::{Kind, Record, Refusal, Span, Status, Time};
use crate::rules::{Reason, Rule};

/// The upper bounds of the buckets that spans are counted in, in microseconds.
const SPANS: [u64; 15] =
    [10, 50, 100, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000, 10_000_000];

/// The upper bounds of the buckets that events behind are counted in.
const EVENTS: [u64; 7] = [0, 1, 3, 10, 30, 100, 1_000];

// What is counted by rule or reason is found by its place in the list of all, which its number must be.
const _: () = {
    let mut place = 0;
    while place < Rule::ALL.len() {
        assert!(Rule::ALL[place] as usize == place);
        place += 1;
    }
    let mut place = 0;
    while place < Reason::ALL.len() {
        assert!(Reason::ALL[place] as usize == place);
        place += 1;
    }
};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Counts one more.
    pub fn bump(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How many there were.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How many of something there are now.
#[derive(Debug, Default)]
pub struct Level(AtomicU64);

impl Level {
    /// One more is there.
    pub fn up(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// One has gone that [`up`](Self::up) was told of.
    pub fn down(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many are there.
    #[must_use]
    pub fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How often something was how large.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    /// How many were within each bound and beyond the one before it; at the end those beyond all.
    buckets: Box<[Count]>,
    sum: AtomicU64,
}

impl Histogram {
    fn new(bounds: &'static [u64]) -> Self {
        let buckets = (0..=bounds.len()).map(|_| Count::default()).collect();
        Self { bounds, buckets, sum: AtomicU64::new(0) }
    }

    fn note(&self, size: u64) {
        // Nearly all are within the first bounds: looking is quicker than reckoning.
        let bucket = self.bounds.iter().position(|bound| size <= *bound).unwrap_or(self.bounds.len());
        self.buckets[bucket].bump();
        self.sum.fetch_add(size, Ordering::Relaxed);
    }

    /// The sum of all sizes.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }

    /// How many there were up to each bound and beyond the one before; `None` is the end without a bound.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<u64>, u64)> {
        let bounds = self.bounds.iter().copied().map(Some).chain([None]);
        bounds.zip(self.buckets.iter().map(Count::read))
    }
}

/// What the referee counts of its games. All counts begin at zero with the server's start.
#[derive(Debug)]
pub struct Gauges {
    /// Games that were created.
    pub created: Count,
    /// Games there are now, by [`Status`]: waiting, running, ended and not forgotten yet.
    pub games: [Level; 3],
    /// Games that ended, by [`Reason`], in the order of [`Reason::ALL`].
    pub endings: [Count; Reason::ALL.len()],
    /// Moves that were accepted.
    pub accepted: Count,
    /// Moves that a rule refused, in the order of [`Rule::ALL`].
    pub refused: [Count; Rule::ALL.len()],
    /// From a clock's end to the moment its flag was written, in microseconds.
    pub flag_lateness: Histogram,
    /// From a command's arrival to its judgement, in microseconds.
    pub queue_delay: Histogram,
    /// From the judgement to the moment the log had the event, in microseconds.
    pub append_latency: Histogram,
    /// Appends that the log refused.
    pub appends_failed: Count,
    /// Appends that somebody else was before.
    pub appends_in_conflict: Count,
    /// Appends of which it was not known whether they were written.
    pub appends_unknown: Count,
    /// Calls that repeated an earlier request.
    pub replays: Count,
    /// Watches that are open now, those of the seats included.
    pub watches: Level,
    /// How many events a watch still had before it when it was told one.
    pub watch_lag: Histogram,
}

impl Default for Gauges {
    fn default() -> Self {
        Self {
            created: Count::default(),
            games: Default::default(),
            endings: Default::default(),
            accepted: Count::default(),
            refused: Default::default(),
            flag_lateness: Histogram::new(&SPANS),
            queue_delay: Histogram::new(&SPANS),
            append_latency: Histogram::new(&SPANS),
            appends_failed: Count::default(),
            appends_in_conflict: Count::default(),
            appends_unknown: Count::default(),
            replays: Count::default(),
            watches: Level::default(),
            watch_lag: Histogram::new(&EVENTS),
        }
    }
}

impl Gauges {
    /// A command's turn came, after it had waited for so long.
    pub(super) fn judged(&self, waited: Span) {
        self.queue_delay.note(waited.micros());
    }

    /// An append that was begun at a time has come to an end.
    pub(super) fn appended(&self, begun: Time, appended: Appended) {
        match appended {
            Appended::Written(written) => self.append_latency.note(written.since(begun).micros()),
            Appended::Failed => self.appends_failed.bump(),
            Appended::Conflict => self.appends_in_conflict.bump(),
            Appended::Unknown => self.appends_unknown.bump(),
        }
    }

    /// A record is believed, which took its game from one status to another; `None` is before its creation.
    pub(super) fn believed(&self, record: &Record, before: Option<Status>, after: Status) {
        self.moved_on(before, Some(after));
        match &record.event.kind {
            Kind::Created(_) => self.created.bump(),
            Kind::Moved(_) => self.accepted.bump(),
            Kind::Refused { violation, .. } => self.refused[violation.rule() as usize].bump(),
            Kind::TimeExpired(_) => self.flag_lateness.note(record.written.since(record.event.at).micros()),
            Kind::SeatShown { .. }
            | Kind::Started
            | Kind::DrawOffered(_)
            | Kind::DrawTakenBack(_)
            | Kind::DrawDeclined(_)
            | Kind::DrawAccepted(_)
            | Kind::SeatLeft(_)
            | Kind::SeatAway(_)
            | Kind::SeatReturned(_)
            | Kind::AwayExpired(_)
            | Kind::Aborted(_)
            | Kind::Resumed { .. } => {}
        }
        if let Some(ending) = &record.event.ending {
            self.endings[ending.outcome.reason as usize].bump();
        }
    }

    /// A game went from one status to another; `None` is before it is known here, and after it is forgotten.
    pub(super) fn moved_on(&self, before: Option<Status>, after: Option<Status>) {
        if before != after {
            before.inspect(|before| self.games[*before as usize].down());
            after.inspect(|after| self.games[*after as usize].up());
        }
    }

    /// A command was answered without an event of its own.
    pub(super) fn answered(&self, reply: &Reply) {
        match reply {
            Ok(answer) if answer.replayed => self.replays.bump(),
            Err(Fault::Refused { refusal, .. }) => {
                if let Refusal::Forbidden(violation) = &**refusal {
                    self.refused[violation.rule() as usize].bump();
                }
            }
            Ok(_) | Err(_) => {}
        }
    }

    /// A watch was told an event, with so many more before it.
    pub(super) fn told(&self, behind: usize) {
        self.watch_lag.note(behind as u64);
    }
}
