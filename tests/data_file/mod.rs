//! Data files for tests: folders that go away, stories to write, and what is read back.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use jungle_referee::game::{Command, Creation, Event, Game, Marks, Record, Request, Span, Time, create, decide};
use jungle_referee::runtime::{
    Append, Appended, DataFile, GameId, Keep, Log, ManualClock, OpenFault, ReadFile, SqliteLog,
};

#[path = "../game/usual.rs"]
mod usual;
pub(crate) use usual::usual;

/// When the stories begin.
pub(crate) const BEGIN: Time = Time::from_micros(1_790_000_000_000_000);

/// Every game, however long ago it ended.
pub(crate) const ALL: Keep = Keep { ended_after: Time::from_micros(0), ended_at_most: usize::MAX };

/// A folder that is removed with this.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// A new folder, in memory where the system has such a place: what is tested here is not the disk.
    pub(crate) fn new() -> Self {
        let shared = Path::new("/dev/shm");
        Self::within(if shared.is_dir() { shared } else { Path::new(env!("CARGO_TARGET_TMPDIR")) })
    }

    /// A new folder on a disk that takes its time to sync.
    pub(crate) fn on_disk() -> Self {
        Self::within(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    fn within(parent: &Path) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = parent.join(format!("jungle-referee-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for a test");
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The data file of the folder.
    pub(crate) fn data(&self) -> PathBuf {
        self.0.join("games.db")
    }

    /// A file beside the data file.
    pub(crate) fn beside(&self, suffix: &str) -> PathBuf {
        self.0.join(format!("games.db{suffix}"))
    }

    /// What a kill now would leave of the data file and its write-ahead log.
    pub(crate) fn left_by_a_kill(&self) -> Left {
        Left {
            data: fs::read(self.data()).expect("the data file"),
            wal: fs::read(self.beside("-wal")).unwrap_or_default(),
            lock: fs::read(self.beside(".lock")).expect("the lock file"),
        }
    }

    /// Puts files there as if nothing else had ever been in the folder.
    pub(crate) fn put(&self, left: &Left, with_lock: bool) {
        for entry in fs::read_dir(&self.0).expect("the folder") {
            fs::remove_file(entry.expect("an entry").path()).expect("removed");
        }
        fs::write(self.data(), &left.data).expect("written");
        fs::write(self.beside("-wal"), &left.wal).expect("written");
        if with_lock {
            fs::write(self.beside(".lock"), &left.lock).expect("written");
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The files of a data file, byte for byte.
#[derive(Clone)]
pub(crate) struct Left {
    pub(crate) data: Vec<u8>,
    pub(crate) wal: Vec<u8>,
    pub(crate) lock: Vec<u8>,
}

/// Every game with its records, oldest first.
pub(crate) type State = Vec<(GameId, Vec<Record>)>;

pub(crate) fn state(file: &ReadFile) -> State {
    file.past().games.iter().map(|(id, _, journal)| (*id, journal.records().collect())).collect()
}

/// Opens and reads, or says why not.
pub(crate) fn read(data: &Path) -> Result<State, OpenFault> {
    DataFile::open(data)?.read(ALL).map(|file| state(&file))
}

/// Opens, reads and starts.
pub(crate) fn start(data: &Path, clock: &Arc<ManualClock>) -> SqliteLog {
    let file = DataFile::open(data).and_then(|file| file.read(ALL)).expect("a good data file");
    file.start(Arc::clone(clock) as _).expect("started")
}

/// Waits for an append.
pub(crate) async fn done(append: Append) -> Appended {
    match append {
        Append::Done(appended) => appended,
        Append::Pending(appended) => appended.await,
    }
}

/// A game that is played by the rules, for its events.
pub(crate) struct Author {
    pub(crate) id: GameId,
    game: Option<Game>,
    creation: Creation,
    dice: u64,
}

impl Author {
    pub(crate) fn new(number: u32) -> Self {
        let marks = Marks {
            labels: vec![format!("story \"{number}\""), "\u{9f20}".to_owned()],
            external_reference: format!("board {number}"),
        };
        let creation = Creation { marks, ..usual().into() };
        Self { id: game_id(number), game: None, creation, dice: u64::from(number) }
    }

    /// The next event: the creation, then moves with request ids.
    pub(crate) fn next(&mut self, at: Time) -> (u64, Event) {
        let event = match &self.game {
            None => create(Arc::new(self.creation.clone()), None, at),
            Some(game) => {
                let side = game.line().position().side_to_move();
                let legal = game.line().legal_moves().moves;
                self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let index = usize::try_from(self.dice >> 33).expect("64 bits") % legal.len();
                let command =
                    Command::Move { side, mv: legal[index].mv, expected_ply: None, offer_draw: self.dice >> 60 == 0 };
                let caller = jungle_referee::game::Caller::Seat(side);
                let request = Request { caller, id: u128::from(self.dice) << 64, digest: self.dice };
                decide(game, &command, Some(request), at).expect("a legal move")
            }
        };
        (self.take(&event), event)
    }

    /// The event that ends the game.
    pub(crate) fn end(&mut self, at: Time) -> (u64, Event) {
        let game = self.game.as_ref().expect("created");
        let side = game.line().position().side_to_move();
        let event = decide(game, &Command::Leave(side), None, at).expect("a seat may leave");
        (self.take(&event), event)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.game.as_ref().is_some_and(|game| game.ended_at().is_some())
    }

    fn take(&mut self, event: &Event) -> u64 {
        let sequence = self.game.as_ref().map_or(0, Game::sequence) + 1;
        let record = Record { sequence, written: event.at, event: event.clone() };
        match &mut self.game {
            Some(game) => game.apply(&record),
            None => self.game = Game::from_creation(&record),
        }
        sequence
    }

    /// Writes the next event to a log.
    pub(crate) async fn writes(&mut self, log: &dyn Log, at: Time) -> Appended {
        let (sequence, event) = self.next(at);
        done(log.append(self.id, sequence, &event)).await
    }

    /// Writes the ending to a log.
    pub(crate) async fn writes_end(&mut self, log: &dyn Log, at: Time) -> Appended {
        let (sequence, event) = self.end(at);
        done(log.append(self.id, sequence, &event)).await
    }
}

/// The id of a test's game.
pub(crate) fn game_id(number: u32) -> GameId {
    GameId::from_u128(0x0190_a000_0000_7000_8000_0000_0000_0000 + u128::from(number))
}

/// So many seconds after the beginning.
pub(crate) fn s(seconds: u64) -> Time {
    BEGIN + Span::from_secs(seconds)
}
