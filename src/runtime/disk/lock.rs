//! The lock file beside a data file: one process at a time, and a witness of what was committed.
//!
//! The lock is the operating system's and ends with its process, however that ends; the file itself
//! stays. It names the process, and the position of the last event that was committed. SQLite drops what
//! it cannot read at the end of its log without a word; the witness tells that something was there.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Read as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::fault::{OpenFault, Problem};

/// Only its owner may read what the server writes.
pub(super) const OWNER_ONLY: u32 = 0o600;

/// A lock that is held, for as long as this lives.
pub(super) struct Lock {
    file: File,
    /// The last event that the lock file knew of when the lock was taken.
    witnessed: Option<u64>,
}

/// The path of a data file with something after its name.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

impl Lock {
    /// Takes the lock of the data file, or says who has it.
    pub(super) fn take(data: &Path) -> Result<Self, OpenFault> {
        let path = beside(data, ".lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(OWNER_ONLY)
            .open(&path)
            .map_err(OpenFault::io(&path, "opening the lock file"))?;
        let mut text = String::new();
        // What cannot be read says nothing; it is written anew below.
        let _ = file.read_to_string(&mut text);
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let pid = field(&text, "pid").and_then(|pid| u32::try_from(pid).ok());
                return Err(OpenFault::new(data, Problem::InUse { pid }));
            }
            Err(TryLockError::Error(error)) => return Err(OpenFault::io(&path, "locking it")(error)),
        }
        let lock = Self { file, witnessed: field(&text, "events") };
        lock.write(lock.witnessed.unwrap_or(0)).map_err(OpenFault::io(&path, "writing the lock file"))?;
        Ok(lock)
    }

    /// The last event that an earlier run committed, if it could still write that down.
    pub(super) fn witnessed(&self) -> Option<u64> {
        self.witnessed
    }

    /// Notes the last event that was committed. Not synced: after a power failure it may be an older one.
    pub(super) fn witness(&self, position: u64) {
        // A witness that cannot write is one fewer; the log itself is written.
        let _ = self.write(position);
    }

    /// Of the same length each time, so that it takes no more room on a full disk.
    fn write(&self, position: u64) -> std::io::Result<()> {
        let text = format!("pid {:>10}\nevents {position:>20}\n", std::process::id());
        self.file.write_all_at(text.as_bytes(), 0)
    }
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().parse().ok()
}
