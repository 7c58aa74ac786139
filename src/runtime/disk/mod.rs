//! The log on disk: one SQLite file, one lock file beside it, one thread that writes.
//!
//! A data file is opened, read back, and started, in this order: [`DataFile::open`] takes the lock and checks
//! the file, [`DataFile::read`] checks and reads what earlier runs wrote, [`ReadFile::start`] makes it
//! the log of this run. From there on an event is acknowledged when its transaction is synced.
//!
//! `written` dates a transaction just before its commit: it lies between the append and its answer, and is the
//! same in the reply and in the file, so that a game is the same before and after a restart.

mod fate;
mod fault;
mod key;
mod lock;
mod past;
mod rows;
mod schema;
mod wal;
mod writer;

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::sync::{oneshot, watch};

use super::ids::GameId;
use super::locked;
use super::log::{Append, Appended, Later, Log, LogFault, LogHealth, Past};
use super::time::Clock;
use crate::game::{Event, Record};
pub use fault::{OpenFault, Problem};
pub use key::token_key_beside;
use lock::{Lock, beside};
pub use past::Keep;
use past::Reading;
use rows::NewEvent;
use writer::{Inbox, Job, Writer};

/// A data file that is locked and checked.
pub struct DataFile {
    path: PathBuf,
    lock: Lock,
    connection: Connection,
}

/// A data file that was read back.
pub struct ReadFile {
    file: DataFile,
    reading: Reading,
}

impl fmt::Debug for DataFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl fmt::Debug for ReadFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

impl DataFile {
    /// Opens a data file for this process alone, makes it if there is none, and checks that it is whole.
    ///
    /// # Errors
    /// What is wrong, where, and what to do. Nothing of the file has been changed then.
    pub fn open(path: &Path) -> Result<Self, OpenFault> {
        let path = resolve(path)?;
        let lock = Lock::take(&path)?;
        check_files(&path)?;
        let format = schema::open(&path)?;
        check_tables(&format.connection, &path)?;
        check_witness(&format.connection, &path, &lock)?;
        let connection = format.up_to_date(&path)?;
        // So that the log of this run begins with a file of its own. Where somebody reads, it goes on in the old one.
        let begin = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        begin.map_err(OpenFault::sqlite(&path, "beginning a new write-ahead log"))?;
        Ok(Self { path, lock, connection })
    }

    /// Lets it grow to so many pages of 4,096 bytes and no more: to try what a full disk does.
    ///
    /// # Errors
    /// If SQLite does not take that.
    pub fn limit_pages(&self, pages: u32) -> Result<(), OpenFault> {
        let limited = self.connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()));
        limited.map_err(OpenFault::sqlite(&self.path, "limiting its size"))
    }

    /// Checks and reads back what earlier runs wrote of the open games, and of the finished ones that are kept.
    ///
    /// # Errors
    /// What is wrong, where, and what to do. Nothing of the file has been changed then.
    pub fn read(self, keep: Keep) -> Result<ReadFile, OpenFault> {
        let reading = past::read(&self.connection, &self.path, keep)?;
        Ok(ReadFile { file: self, reading })
    }
}

impl ReadFile {
    /// What was read back. The time of this run must not start before the earlier one's last sign of life.
    #[must_use]
    pub fn past(&self) -> &Past {
        &self.reading.past
    }

    /// How many of the games are open.
    #[must_use]
    pub fn open_games(&self) -> usize {
        self.reading.heads.len()
    }

    /// Makes it the log of this run, dated by this clock.
    ///
    /// # Errors
    /// If there can be no thread to write.
    pub fn start(self, clock: Arc<dyn Clock>) -> Result<SqliteLog, OpenFault> {
        let Self { file, reading } = self;
        let inbox = Arc::<Inbox>::default();
        let (health, watched) = watch::channel(LogHealth::Fine);
        let writer = Writer {
            connection: file.connection,
            path: file.path,
            lock: file.lock,
            committed_at: reading.past.down_since,
            failed_at: reading.past.down_since,
            clock,
            inbox: Arc::clone(&inbox),
            health,
            heads: reading.heads,
            undo: Vec::new(),
            position: reading.position,
            number: reading.number,
            failed: 0,
            unchecked: 0,
        };
        let path = writer.path.clone();
        let thread = thread::Builder::new().name("log".to_owned()).spawn(move || writer.run());
        let thread = thread.map_err(OpenFault::io(&path, "starting its thread"))?;
        Ok(SqliteLog { inbox, health: watched, past: Mutex::new(Some(reading.past)), thread: Some(thread) })
    }
}

/// The log on disk. When it is dropped it finishes what was appended, and lets the file go.
pub struct SqliteLog {
    inbox: Arc<Inbox>,
    health: watch::Receiver<LogHealth>,
    past: Mutex<Option<Past>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for SqliteLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteLog").field("health", &*self.health.borrow()).finish_non_exhaustive()
    }
}

impl Drop for SqliteLog {
    fn drop(&mut self) {
        self.inbox.close();
        if let Some(thread) = self.thread.take() {
            // If it panicked, that was told when it happened.
            let _ = thread.join();
        }
    }
}

impl Log for SqliteLog {
    fn append(&self, game: GameId, sequence: u64, event: &Event) -> Append {
        let (reply, answer) = oneshot::channel();
        if self.inbox.put(Job::Append(NewEvent::of(game, sequence, event), reply)) {
            // A writer that dies of it may have written it.
            Append::Pending(Box::pin(async { answer.await.unwrap_or(Appended::Unknown) }))
        } else {
            Append::Done(Appended::Failed)
        }
    }

    fn tail(&self, game: GameId, sequence: u64) -> Later<Result<Vec<Record>, LogFault>> {
        let (reply, answer) = oneshot::channel();
        // If the writer is gone, so is the other end of this.
        self.inbox.put(Job::Tail(game, sequence, reply));
        Box::pin(async { answer.await.unwrap_or(Err(LogFault)) })
    }

    fn past(&self) -> Option<Past> {
        locked(&self.past).take()
    }

    fn outlasts(&self) -> bool {
        true
    }

    fn health(&self) -> watch::Receiver<LogHealth> {
        self.health.clone()
    }
}

/// The one path of a file, whatever it is called by: else one file could have two locks.
fn resolve(path: &Path) -> Result<PathBuf, OpenFault> {
    if let Ok(path) = path.canonicalize() {
        return Ok(path);
    }
    let looking = "looking for its folder";
    let Some(name) = path.file_name() else {
        return Err(OpenFault::io(path, looking)(io::ErrorKind::InvalidInput.into()));
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    };
    Ok(folder.canonicalize().map_err(OpenFault::io(path, looking))?.join(name))
}

/// What SQLite would pass over in silence: an empty file is a new one to it, without its file the
/// write-ahead log is nothing, and of that log it drops what it cannot read.
fn check_files(path: &Path) -> Result<(), OpenFault> {
    let size = |path: &Path| match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(OpenFault::io(path, "looking for it")(error)),
    };
    let wal = beside(path, "-wal");
    let wal_size = size(&wal)?.unwrap_or(0);
    match size(path)? {
        Some(0) => return Err(OpenFault::damaged(path, "byte 0", "it is empty; a new file must not be there at all")),
        None if wal_size > 0 => {
            return Err(OpenFault::damaged(path, "byte 0", format!("it is gone, but {} is there", wal.display())));
        }
        Some(_) | None => {}
    }
    if wal_size == 0 {
        return Ok(());
    }
    let checked = File::open(&wal).and_then(|file| wal::check(&mut BufReader::with_capacity(1 << 16, file)));
    match checked.map_err(OpenFault::io(&wal, "reading it"))? {
        Ok(()) => Ok(()),
        Err(damage) => {
            let why = "what is there is not what was written, and more was committed after it";
            Err(OpenFault::damaged(&wal, format!("byte {}", damage.byte), why))
        }
    }
}

/// Whether the structure of the file holds: the content of its rows is checked when they are read.
fn check_tables(connection: &Connection, path: &Path) -> Result<(), OpenFault> {
    for check in ["PRAGMA quick_check(1)", "PRAGMA integrity_check(games)"] {
        let told: String = connection
            .query_row(check, [], |row| row.get(0))
            .map_err(OpenFault::sqlite(path, "the check of its structure"))?;
        if told != "ok" {
            return Err(OpenFault::damaged(path, "its structure", told.replace('\n', " ")));
        }
    }
    Ok(())
}

/// Whether all is there that the lock file knows to have been committed.
fn check_witness(connection: &Connection, path: &Path, lock: &Lock) -> Result<(), OpenFault> {
    let position = past::last_position(connection).map_err(OpenFault::sqlite(path, "reading the table events"))?;
    match lock.witnessed() {
        Some(witnessed) if i64::try_from(witnessed).is_ok_and(|witnessed| position < witnessed) => {
            let lock = beside(path, ".lock");
            let why = format!(
                "its last event is {position}, but {} knows that event {witnessed} was committed (remove that file if \
                 this one is a back-up that shall be played on from)",
                lock.display()
            );
            Err(OpenFault::damaged(path, "its end", why))
        }
        Some(_) | None => Ok(()),
    }
}
