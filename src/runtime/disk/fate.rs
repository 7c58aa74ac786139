//! What an error of SQLite means for the transaction that it ended.
//!
//! | where | what SQLite says | what became of the events | and then |
//! |---|---|---|---|
//! | before the commit | FULL, BUSY, LOCKED, READONLY, NOMEM, CANTOPEN, IOERR but for syncs | not written | tried again |
//! | before the commit | a sync failed | not written | closed until a restart |
//! | before the commit | CORRUPT, NOTADB, anything else | not written | closed until a restart |
//! | at the commit | FULL, BUSY | not written | tried again |
//! | at the commit | anything else: IOERR, CORRUPT, NOMEM, … | unknown | closed until a restart |
//!
//! Why FULL at the commit is certain: SQLite writes the frames of a transaction in order, the one that commits
//! it last, and syncs them after that. FULL comes from a write (ENOSPC) and never from a sync, so the last
//! frame is not whole, and no recovery believes it. Any other error may have come from the sync, after
//! which nobody knows what the disk holds: it is never tried again as if nothing had happened.

use rusqlite::{Error, ffi};

/// How far a transaction had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its commit was not asked for yet.
    Before,
    /// At its commit.
    Commit,
}

/// What became of a transaction that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing of it was written, and the next may do better.
    NotWritten,
    /// Nothing of it was written, and nothing more should be.
    NotWrittenAndClosed,
    /// It was written or not: the next start will see.
    Unknown,
}

/// What became of it.
pub(super) fn fate(stage: Stage, error: &Error) -> Fate {
    let code = error.sqlite_error().map_or(ffi::SQLITE_ERROR, |error| error.extended_code);
    match (stage, code, code & 0xff) {
        (_, _, ffi::SQLITE_FULL | ffi::SQLITE_BUSY) => Fate::NotWritten,
        (Stage::Commit, _, _) => Fate::Unknown,
        (Stage::Before, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC | ffi::SQLITE_IOERR_TRUNCATE, _) => {
            Fate::NotWrittenAndClosed
        }
        (
            Stage::Before,
            _,
            ffi::SQLITE_LOCKED | ffi::SQLITE_READONLY | ffi::SQLITE_NOMEM | ffi::SQLITE_CANTOPEN | ffi::SQLITE_IOERR,
        ) => Fate::NotWritten,
        (Stage::Before, _, _) => Fate::NotWrittenAndClosed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_certainly_was_not_written_is_called_so() {
        use Fate::{NotWritten, NotWrittenAndClosed, Unknown};
        for (code, before, commit) in [
            (ffi::SQLITE_FULL, NotWritten, NotWritten),
            (ffi::SQLITE_BUSY, NotWritten, NotWritten),
            (ffi::SQLITE_BUSY_SNAPSHOT, NotWritten, NotWritten),
            (ffi::SQLITE_LOCKED, NotWritten, Unknown),
            (ffi::SQLITE_READONLY, NotWritten, Unknown),
            (ffi::SQLITE_READONLY_DBMOVED, NotWritten, Unknown),
            (ffi::SQLITE_NOMEM, NotWritten, Unknown),
            (ffi::SQLITE_CANTOPEN, NotWritten, Unknown),
            (ffi::SQLITE_IOERR_READ, NotWritten, Unknown),
            (ffi::SQLITE_IOERR_WRITE, NotWritten, Unknown),
            (ffi::SQLITE_IOERR_FSYNC, NotWrittenAndClosed, Unknown),
            (ffi::SQLITE_IOERR_DIR_FSYNC, NotWrittenAndClosed, Unknown),
            (ffi::SQLITE_IOERR_TRUNCATE, NotWrittenAndClosed, Unknown),
            (ffi::SQLITE_CORRUPT, NotWrittenAndClosed, Unknown),
            (ffi::SQLITE_CORRUPT_INDEX, NotWrittenAndClosed, Unknown),
            (ffi::SQLITE_NOTADB, NotWrittenAndClosed, Unknown),
            (ffi::SQLITE_ERROR, NotWrittenAndClosed, Unknown),
            (ffi::SQLITE_MISUSE, NotWrittenAndClosed, Unknown),
        ] {
            let error = Error::SqliteFailure(ffi::Error::new(code), None);
            assert_eq!(fate(Stage::Before, &error), before, "{code} before");
            assert_eq!(fate(Stage::Commit, &error), commit, "{code} at the commit");
        }
        assert_eq!(fate(Stage::Before, &Error::InvalidQuery), NotWrittenAndClosed);
        assert_eq!(fate(Stage::Commit, &Error::InvalidQuery), Unknown);
    }
}
