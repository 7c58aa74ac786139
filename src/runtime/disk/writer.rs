//! The one thread that writes: it takes what has gathered, commits it as one transaction, and answers.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, Error, OptionalExtension as _, config::DbConfig, ffi};
use tokio::sync::{oneshot, watch};
use tracing::{error, info, warn};

use super::super::ids::GameId;
use super::super::locked;
use super::super::log::{Appended, LogFault, LogHealth};
use super::super::time::Clock;
use super::fate::{Fate, Stage, fate};
use super::lock::Lock;
use super::past::Head;
use super::rows::{EVENT_COLUMNS, EventRow, GAME_COLUMNS, GameRow, NewEvent, SignOfLife, signed};
use crate::game::{Record, Span, Time};

/// How long nothing is committed before a sign of life is, while games are open. The promise is a second.
const PULSE: Duration = Duration::from_millis(500);

/// How much must find room before storage that failed counts as well again, in bytes.
const PROBE_BYTES: u32 = 64 << 10;

/// How long a failed transaction is followed by none.
const RETRY: Span = Span::from_secs(1);

/// How long to wait for as many appends as were answered last: their callers are likely to come back at once,
/// and to commit them together is worth more than this.
const GATHER: Duration = Duration::from_micros(200);

/// About how many bytes the write-ahead log takes before they are carried over into the data file.
const CHECKPOINT_BYTES: usize = 4 << 20;

/// About how many bytes a transaction writes besides its events: a page of each table.
const TRANSACTION_BYTES: usize = 8 << 10;

/// What the writer is asked.
pub(super) enum Job {
    /// To write an event.
    Append(NewEvent, oneshot::Sender<Appended>),
    /// To read what is written of a game after a sequence.
    Tail(GameId, u64, oneshot::Sender<Result<Vec<Record>, LogFault>>),
}

/// Where jobs wait for the writer.
#[derive(Default)]
pub(super) struct Inbox {
    gathered: Mutex<Gathered>,
    wake: Condvar,
}

#[derive(Default)]
struct Gathered {
    jobs: Vec<Job>,
    /// How many jobs the writer would like to have before it wakes.
    wanted: usize,
    /// No more jobs come.
    closing: bool,
    /// The writer is gone.
    gone: bool,
}

impl Inbox {
    /// Leaves a job for the writer; false if the writer is gone.
    pub(super) fn put(&self, job: Job) -> bool {
        let mut gathered = locked(&self.gathered);
        if gathered.gone {
            return false;
        }
        gathered.jobs.push(job);
        if gathered.jobs.len() >= gathered.wanted {
            self.wake.notify_one();
        }
        true
    }

    /// Lets the writer finish what has gathered, and go.
    pub(super) fn close(&self) {
        locked(&self.gathered).closing = true;
        self.wake.notify_one();
    }

    /// Waits for jobs, once there are any for `hoped` of them, and takes all; none after a pulse without any.
    /// `None` once it is closed and empty.
    fn take(&self, hoped: usize) -> Option<Vec<Job>> {
        let mut gathered = locked(&self.gathered);
        for (wanted, patience) in [(1, PULSE), (hoped, GATHER)] {
            gathered.wanted = wanted;
            let lacking = |gathered: &mut Gathered| gathered.jobs.len() < wanted && !gathered.closing;
            let waited = self.wake.wait_timeout_while(gathered, patience, lacking);
            gathered = waited.unwrap_or_else(PoisonError::into_inner).0;
            if gathered.jobs.is_empty() {
                break;
            }
        }
        let jobs = std::mem::take(&mut gathered.jobs);
        (!jobs.is_empty() || !gathered.closing).then_some(jobs)
    }
}

/// Tells, when the writer goes, however it goes, that nothing is written any more.
struct Farewell {
    inbox: Arc<Inbox>,
    health: watch::Sender<LogHealth>,
}

impl Drop for Farewell {
    fn drop(&mut self) {
        let mut gathered = locked(&self.inbox.gathered);
        gathered.gone = true;
        for job in std::mem::take(&mut gathered.jobs) {
            if let Job::Append(_, reply) = job {
                let _ = reply.send(Appended::Failed);
            }
        }
        self.health.send_replace(LogHealth::Closed);
    }
}

/// The writer, with all that it owns.
pub(super) struct Writer {
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
    pub(super) lock: Lock,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) health: watch::Sender<LogHealth>,
    /// Where each open game stands.
    pub(super) heads: HashMap<GameId, Head>,
    /// What to put back if the transaction fails.
    pub(super) undo: Vec<(GameId, Option<Head>)>,
    /// The position of the last event.
    pub(super) position: i64,
    /// The number of the last game.
    pub(super) number: i64,
    /// When something was last committed.
    pub(super) committed_at: Time,
    /// When it failed last, if it still does: and how many appends since.
    pub(super) failed_at: Time,
    pub(super) failed: u64,
    /// About how much was written since the last checkpoint, in bytes.
    pub(super) unchecked: usize,
}

impl Writer {
    /// Works until the inbox is closed.
    pub(super) fn run(mut self) {
        let _farewell = Farewell { inbox: Arc::clone(&self.inbox), health: self.health.clone() };
        let mut hoped = 1;
        while let Some(jobs) = self.inbox.take(hoped) {
            let (mut appends, mut tails) = (Vec::with_capacity(jobs.len()), Vec::new());
            for job in jobs {
                match job {
                    Job::Append(event, reply) => appends.push((event, reply)),
                    Job::Tail(game, after, reply) => tails.push((game, after, reply)),
                }
            }
            hoped = appends.len().max(1);
            if appends.is_empty() {
                self.pulse();
            } else {
                self.append(appends);
            }
            for (game, after, reply) in tails {
                let _ = reply.send(self.tail(game, after));
            }
            self.checkpoint();
        }
    }

    fn health(&self) -> LogHealth {
        *self.health.borrow()
    }

    /// Writes events as one transaction, and answers.
    fn append(&mut self, appends: Vec<(NewEvent, oneshot::Sender<Appended>)>) {
        if self.health() == LogHealth::Failing && self.clock.now() >= self.failed_at + RETRY {
            self.probe();
        }
        let answers = match self.health() {
            LogHealth::Fine => self.transact(|writer, written| {
                appends.iter().map(|(event, _)| writer.write(event, written)).collect::<Result<Vec<_>, _>>()
            }),
            LogHealth::Failing | LogHealth::Closed => Err(Fate::NotWritten),
        };
        match answers {
            Ok(answers) => {
                for ((_, reply), appended) in appends.into_iter().zip(answers) {
                    // Who asked may be gone: the event is written all the same.
                    let _ = reply.send(appended);
                }
            }
            Err(fate) => {
                self.failed += appends.len() as u64;
                let appended = if fate == Fate::Unknown { Appended::Unknown } else { Appended::Failed };
                for (_, reply) in appends {
                    let _ = reply.send(appended);
                }
            }
        }
    }

    /// Nothing has come for a while: shows that the server is alive, if somebody's clock may run, or whether
    /// the storage is well again.
    fn pulse(&mut self) {
        match self.health() {
            LogHealth::Fine if !self.heads.is_empty() && self.clock.now() > self.committed_at => {
                // What comes of it is in the health.
                let _ = self.transact(|writer, now| writer.sign(now));
            }
            LogHealth::Failing => self.probe(),
            LogHealth::Fine | LogHealth::Closed => {}
        }
    }

    fn sign(&self, now: Time) -> Result<(), Error> {
        SignOfLife { alive_at: signed(now.micros()), position: self.position }.write(&self.connection)
    }

    /// Tries whether there is room again: more than a last page, so that what comes next finds room too.
    fn probe(&mut self) {
        let tried = self.transact(|writer, now| {
            let fill = "INSERT INTO probe (number, filler) VALUES (1, zeroblob(?1)) ON CONFLICT (number) DO NOTHING";
            writer.connection.prepare_cached(fill)?.execute([PROBE_BYTES])?;
            writer.sign(now)
        });
        if tried.is_ok() {
            let _ = self.transact(|writer, _| writer.execute("DELETE FROM probe"));
        }
    }

    /// Does something as one transaction, dated once; or as if it had never been begun.
    fn transact<T>(&mut self, work: impl FnOnce(&mut Self, Time) -> Result<T, Error>) -> Result<T, Fate> {
        let before = (self.position, self.number);
        let tried = self.execute("BEGIN IMMEDIATE").and_then(|()| {
            let now = self.clock.now();
            work(self, now).map(|done| (done, now))
        });
        let committed = match tried {
            Ok(done) => self.execute("COMMIT").map(|()| done).map_err(|error| (Stage::Commit, error)),
            Err(error) => Err((Stage::Before, error)),
        };
        match committed {
            Ok((done, now)) => {
                self.undo.clear();
                self.committed_at = now;
                self.lock.witness(u64::try_from(self.position).unwrap_or(0));
                self.unchecked += TRANSACTION_BYTES;
                self.well_again();
                Ok(done)
            }
            Err((stage, error)) => {
                (self.position, self.number) = before;
                for (game, head) in std::mem::take(&mut self.undo).into_iter().rev() {
                    self.set_head(game, head);
                }
                let fate = fate(stage, &error);
                self.note_failure(fate, &error);
                if !self.connection.is_autocommit()
                    && let Err(error) = self.execute("ROLLBACK")
                {
                    self.note_failure(Fate::NotWrittenAndClosed, &error);
                }
                Err(fate)
            }
        }
    }

    fn execute(&self, sql: &str) -> Result<(), Error> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }

    fn set_head(&mut self, game: GameId, head: Option<Head>) -> Option<Head> {
        match head {
            Some(head) => self.heads.insert(game, head),
            None => self.heads.remove(&game),
        }
    }

    /// Writes an event within the transaction, if it is the next of its game.
    fn write(&mut self, event: &NewEvent, written: Time) -> Result<Appended, Error> {
        let position = self.position + 1;
        let head = match (self.heads.get(&event.game), &event.creation) {
            (Some(head), None) if head.sequence + 1 == event.sequence => *head,
            (None, Some(creation)) if event.sequence == 1 => {
                let number = self.number + 1;
                let row = creation.starting_at(position);
                match row.insert(&self.connection, number) {
                    Ok(()) => {}
                    // The id is there: of a game that has ended.
                    Err(error) if error.sqlite_error_code() == Some(ffi::ErrorCode::ConstraintViolation) => {
                        return Ok(Appended::Conflict);
                    }
                    Err(error) => return Err(error),
                }
                self.number = number;
                Head { number, sequence: 0, plies: 0 }
            }
            (Some(_) | None, _) => return Ok(Appended::Conflict),
        };
        event.insert(&self.connection, position, head.number, written)?;
        self.position = position;
        self.unchecked += event.size();
        let plies = head.plies + i64::from(event.is_ply);
        let next = match &event.ending {
            Some(ending) => {
                let row = self.game_row(head.number)?.ended(ending, plies);
                row.update_ended(&self.connection, head.number)?;
                None
            }
            None => Some(Head { sequence: event.sequence, plies, ..head }),
        };
        let before = self.set_head(event.game, next);
        self.undo.push((event.game, before));
        Ok(Appended::Written(written))
    }

    /// The row of a game as it was written. A row that was damaged since must not get a new checksum.
    fn game_row(&self, number: i64) -> Result<GameRow, Error> {
        let sql = format!("SELECT {GAME_COLUMNS} FROM games WHERE number = ?1");
        let found = self.connection.prepare_cached(&sql)?.query_row([number], GameRow::read)?;
        found.map(|(_, row)| row).ok_or_else(|| damaged(format!("the table games, number {number}")))
    }

    /// Notes that a transaction failed. Told once until it is well again.
    fn note_failure(&mut self, fate: Fate, error: &Error) {
        self.failed_at = self.clock.now();
        let file = self.path.display();
        let (before, after) = match fate {
            Fate::NotWritten => (self.health(), LogHealth::Failing),
            Fate::NotWrittenAndClosed | Fate::Unknown => (self.health(), LogHealth::Closed),
        };
        match (before, after) {
            (LogHealth::Fine, LogHealth::Failing) => {
                error!(%file, %error, "the data file cannot be written, nothing is acknowledged; it is tried again each second");
            }
            (LogHealth::Fine | LogHealth::Failing, LogHealth::Closed) => {
                let fate = if fate == Fate::Unknown { "unknown until then" } else { "not written" };
                error!(%file, %error, last = fate, "the data file is closed for writing until the server is started anew");
                // What is on the disk is for the next start to see, as it is.
                let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
            }
            (_, LogHealth::Fine) | (LogHealth::Failing, LogHealth::Failing) | (LogHealth::Closed, _) => return,
        }
        self.health.send_replace(after);
    }

    fn well_again(&mut self) {
        if self.health() == LogHealth::Failing {
            info!(file = %self.path.display(), failed = self.failed, "the data file is written again");
            self.failed = 0;
            self.health.send_replace(LogHealth::Fine);
        }
    }

    /// What is written of a game after a sequence. Once closed nobody can tell: what SQLite would show is what it
    /// believes, and the disk may hold more.
    fn tail(&self, game: GameId, after: u64) -> Result<Vec<Record>, LogFault> {
        if self.health() == LogHealth::Closed {
            return Err(LogFault);
        }
        self.read_tail(game, after).map_err(|error| {
            warn!(file = %self.path.display(), %game, %error, "a game cannot be read back");
            LogFault
        })
    }

    fn read_tail(&self, game: GameId, after: u64) -> Result<Vec<Record>, Error> {
        let sql = "SELECT number, first_position FROM games WHERE id = ?1";
        let mut place = self.connection.prepare_cached(sql)?;
        let place = place.query_row([game.to_string()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some((number, first)) = place else { return Ok(Vec::new()) };
        let sql = format!(
            "SELECT {EVENT_COLUMNS} FROM events WHERE position >= ?1 AND game = ?2 AND sequence > ?3 ORDER BY position"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let rows = statement.query_and_then([first, number, signed(after)], |row| {
            let row = EventRow::read(row)?;
            let place = format!("the table events, position {}", row.position);
            row.record(game).map_err(|fault| damaged(format!("{place}: {fault}")))
        });
        rows?.collect()
    }

    /// Carries the write-ahead log over into the data file, once it has grown: as far as no reader needs it.
    fn checkpoint(&mut self) {
        if self.unchecked < CHECKPOINT_BYTES || self.health() != LogHealth::Fine {
            return;
        }
        self.unchecked = 0;
        if let Err(error) = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())) {
            self.note_failure(fate(Stage::Before, &error), &error);
        }
    }
}

fn damaged(place: String) -> Error {
    Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(format!("{place} is not what was written")))
}
