//! The log: where events are written before they are believed.
//!
//! A seam with several makings. The one here keeps nothing: in memory a game's records live with the
//! game itself, and writing is no more than dating. Others take time and can fail.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::watch;

use super::ids::GameId;
use super::time::Clock;
use crate::game::{Event, Game, Journal, Record, Time};

/// An answer that takes time.
pub type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What became of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// It is written, as of this time.
    Written(Time),
    /// Somebody else wrote that sequence first; this event was not written.
    Conflict,
    /// Nothing was written.
    Failed,
    /// It may have been written or not: the tail tells.
    Unknown,
}

/// An append: done at once, or on its way.
pub enum Append {
    /// It is done.
    Done(Appended),
    /// It will be done. Once begun it goes on, whoever waits for it.
    Pending(Later<Appended>),
}

impl fmt::Debug for Append {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(appended) => f.debug_tuple("Done").field(appended).finish(),
            Self::Pending(_) => f.write_str("Pending(..)"),
        }
    }
}

/// The log cannot be read now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogFault;

/// How a log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogHealth {
    /// It writes.
    Fine,
    /// It cannot write now, and tries again by itself.
    Failing,
    /// It writes no more in this run of the server.
    Closed,
}

/// What a log holds of earlier runs of the server.
#[derive(Debug)]
pub struct Past {
    /// The games that are not forgotten, open and finished, each with all its records and as they left it.
    pub games: Vec<(GameId, Game, Journal)>,
    /// The last sign of life of the earlier run, never before the last record: from here on, no clock ran.
    pub down_since: Time,
}

/// Where events are written.
pub trait Log: Send + Sync + 'static {
    /// Writes an event as the game's `sequence`, if that is the next. Called under the game's lock:
    /// what takes time belongs into [`Append::Pending`].
    fn append(&self, game: GameId, sequence: u64, event: &Event) -> Append;

    /// Reads back what is written of a game after `sequence`, in order and without gaps. Asked only after
    /// [`Appended::Conflict`] and [`Appended::Unknown`], and again until it can be read.
    fn tail(&self, game: GameId, sequence: u64) -> Later<Result<Vec<Record>, LogFault>>;

    /// What it holds of earlier runs, if it outlasts them. Asked once, before anything else.
    fn past(&self) -> Option<Past> {
        None
    }

    /// Whether what is written outlasts this run of the server.
    fn outlasts(&self) -> bool {
        false
    }

    /// How it is, and how that changes.
    fn health(&self) -> watch::Receiver<LogHealth> {
        watch::channel(LogHealth::Fine).1
    }
}

/// The log of a server that keeps its games in memory: an event is written as soon as it is dated.
pub struct MemoryLog {
    clock: Arc<dyn Clock>,
}

impl MemoryLog {
    /// A log that dates by this clock.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }
}

impl Log for MemoryLog {
    fn append(&self, _game: GameId, _sequence: u64, _event: &Event) -> Append {
        Append::Done(Appended::Written(self.clock.now()))
    }

    fn tail(&self, _game: GameId, _sequence: u64) -> Later<Result<Vec<Record>, LogFault>> {
        // Its appends are always written, so nobody has to ask; and it has nothing to read from.
        Box::pin(std::future::ready(Err(LogFault)))
    }
}
