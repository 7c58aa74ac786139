//! Watching: each watch reads the game's own log from its cursor, so that replay, resuming and
//! following live are one road, and a slow watcher costs no buffer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use super::slot::{Slot, View};
use crate::game::{Command, Cursor, Game, Record, Span, Status, Time};
use crate::rules::Side;

/// How many streams of one seat may be open; one more ends the oldest.
pub const STREAMS_PER_SEAT: usize = 4;

/// Marks the stream of a seat, so that a newer one can end it.
#[derive(Debug, Default)]
pub(super) struct StreamFlag {
    replaced: AtomicBool,
}

/// Why a watch cannot begin.
#[derive(Clone, Debug)]
pub enum WatchFault {
    /// There is no such game.
    NoSuchGame,
    /// The cursor is beyond the last event.
    BeyondHead {
        /// The last event's sequence.
        head: u64,
    },
    /// The game has its number of watchers.
    TooManyWatchers {
        /// That number.
        limit: usize,
    },
    /// The server is stopping.
    Stopping,
}

/// What a watcher is told.
#[derive(Clone, Debug)]
pub enum Told {
    /// The whole state, first.
    Snapshot(Box<View>),
    /// An event, with the game as it left it.
    Event(Box<(Record, Game)>),
    /// A sign of life, with the game as of now.
    Heartbeat(Box<View>),
}

/// Why a watch ends without an outcome. Each carries the last sequence told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The server stops.
    Stopping {
        /// The last sequence told.
        sequence: u64,
    },
    /// The seat has opened newer streams.
    Replaced {
        /// The last sequence told.
        sequence: u64,
    },
}

/// One watcher's way through a game's log.
pub struct Watch {
    slot: Arc<Slot>,
    /// What has been told so far.
    cursor: Cursor,
    /// The game as of the cursor, from when that lies behind until nothing has happened for a heartbeat. At
    /// the head it is the game itself: those who only wait, which most do, hold no copy.
    copy: Option<Box<Game>>,
    snapshot_due: bool,
    finished: bool,
    heartbeat: Span,
    last_told: Time,
    news: watch::Receiver<u64>,
    stop: watch::Receiver<bool>,
    seat: Option<(Side, Arc<StreamFlag>)>,
}

/// How to watch.
#[derive(Clone, Copy, Debug)]
pub struct WatchOptions {
    /// The last sequence seen; `None` to begin with a snapshot.
    pub after_sequence: Option<u64>,
    /// How long a silence before a heartbeat.
    pub heartbeat: Span,
    /// The seat whose token came with the call.
    pub seat: Option<Side>,
}

impl Watch {
    /// Begins to watch a game.
    ///
    /// # Errors
    /// Why it cannot.
    pub async fn begin(slot: &Arc<Slot>, options: WatchOptions) -> Result<Self, WatchFault> {
        slot.settle(options.seat).await;
        Self::enter(slot, options)
    }

    fn enter(slot: &Arc<Slot>, options: WatchOptions) -> Result<Self, WatchFault> {
        let mut inner = slot.lock();
        let head = inner.game.as_ref().map(Game::sequence).ok_or(WatchFault::NoSuchGame)?;
        let stop = slot.house().stop.subscribe();
        if *stop.borrow() {
            return Err(WatchFault::Stopping);
        }
        let after = options.after_sequence.unwrap_or(0);
        let cursor = inner.journal.seek(after).ok_or(WatchFault::BeyondHead { head })?;
        let mut replaces = false;
        let seat = match options.seat {
            Some(side) => {
                let streams = &mut inner.busy.seat_streams[side.index()];
                replaces = streams.len() >= STREAMS_PER_SEAT;
                if replaces {
                    streams.remove(0).replaced.store(true, Ordering::Release);
                }
                let flag = Arc::new(StreamFlag::default());
                streams.push(Arc::clone(&flag));
                Some((side, flag))
            }
            None => {
                let limit = slot.house().limits.watchers_a_game;
                if inner.busy.spectators >= limit {
                    return Err(WatchFault::TooManyWatchers { limit });
                }
                inner.busy.spectators += 1;
                None
            }
        };
        let feed = inner.busy.feed.get_or_insert_with(|| watch::Sender::new(head));
        if replaces {
            // Wakes the stream that has just been replaced.
            feed.send_replace(head);
        }
        let news = feed.subscribe();
        if let Some(side) = options.seat {
            // One step with the stream's place: comings and goings are judged in the order they happened.
            slot.enter_silently(inner, Command::Arrive(side));
        }
        slot.house().gauges.watches.up();
        Ok(Self {
            slot: Arc::clone(slot),
            cursor,
            copy: None,
            snapshot_due: options.after_sequence.is_none(),
            finished: false,
            heartbeat: options.heartbeat,
            last_told: slot.house().clock.now(),
            news,
            stop,
            seat,
        })
    }

    /// The last sequence told.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.cursor.sequence()
    }

    /// What comes next: `None` once all is told, to the outcome.
    pub async fn next(&mut self) -> Option<Result<Told, Cut>> {
        loop {
            if self.finished {
                return None;
            }
            if let Some(told) = self.at_hand() {
                self.last_told = self.slot.house().clock.now();
                return Some(Ok(told));
            }
            if self.is_over() {
                return None;
            }
            if let Some(cut) = self.cut() {
                self.finished = true;
                return Some(Err(cut));
            }
            let clock = &self.slot.house().clock;
            tokio::select! {
                _ = self.news.changed() => {}
                _ = self.stop.changed() => {}
                () = clock.sleep_until(self.last_told + self.heartbeat) => {
                    // What is due is told first: no heartbeat shows a deadline that has passed.
                    self.slot.settle(None).await;
                    self.last_told = self.slot.house().clock.now();
                    let told = self.at_hand().or_else(|| self.sign_of_life())?;
                    return Some(Ok(told));
                }
            }
        }
    }

    /// The snapshot if it is due, else the record after the cursor if there is one.
    fn at_hand(&mut self) -> Option<Told> {
        let inner = self.slot.lock();
        if std::mem::take(&mut self.snapshot_due) {
            let view = inner.view(self.slot.house().clock.now())?;
            self.cursor = inner.journal.end(&view.game);
            return Some(Told::Snapshot(Box::new(view)));
        }
        let record = inner.journal.read(&mut self.cursor)?;
        let head = inner.game.as_ref()?;
        let behind = head.sequence() - record.sequence;
        self.slot.house().gauges.told(usize::try_from(behind).unwrap_or(usize::MAX));
        let game = match &mut self.copy {
            Some(copy) => {
                copy.apply(&record);
                Game::clone(copy)
            }
            None if behind == 0 => head.clone(),
            None => {
                let game = inner.journal.fold_to(record.sequence)?;
                self.copy = Some(Box::new(game.clone()));
                game
            }
        };
        Some(Told::Event(Box::new((record, game))))
    }

    /// Whether the game has ended, and all of it has been told.
    fn is_over(&self) -> bool {
        let inner = self.slot.lock();
        let head = inner.game.as_ref();
        head.is_some_and(|game| game.status() == Status::Ended && game.sequence() == self.cursor.sequence())
    }

    fn sign_of_life(&mut self) -> Option<Told> {
        self.copy = None;
        let view = self.slot.lock().glance(self.last_told)?;
        Some(Told::Heartbeat(Box::new(view)))
    }

    fn cut(&self) -> Option<Cut> {
        let sequence = self.sequence();
        if self.seat.as_ref().is_some_and(|(_, flag)| flag.replaced.load(Ordering::Acquire)) {
            return Some(Cut::Replaced { sequence });
        }
        self.stop.borrow().then_some(Cut::Stopping { sequence })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.slot.house().gauges.watches.down();
        let mut inner = self.slot.lock();
        let mut departed = None;
        match &self.seat {
            Some((side, flag)) => {
                let streams = &mut inner.busy.seat_streams[side.index()];
                let before = streams.len();
                streams.retain(|other| !Arc::ptr_eq(other, flag));
                if streams.is_empty() && before > 0 {
                    departed = Some(*side);
                }
            }
            None => inner.busy.spectators = inner.busy.spectators.saturating_sub(1),
        }
        if !inner.busy.is_watched() {
            inner.busy.feed = None;
        }
        if let Some(side) = departed {
            self.slot.enter_silently(inner, Command::Depart(side));
        } else {
            inner.busy.rest();
        }
    }
}
