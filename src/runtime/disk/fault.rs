//! Why a data file cannot be used: what is wrong, where, and what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a data file cannot be used.
#[derive(Debug)]
pub struct OpenFault {
    /// The file that is meant.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a data file.
#[derive(Debug)]
pub enum Problem {
    /// Another process has it.
    InUse {
        /// The process that the lock file names.
        pid: Option<u32>,
    },
    /// The operating system or SQLite cannot do what was asked.
    Unusable {
        /// What was asked.
        doing: &'static str,
        /// What they say.
        error: String,
    },
    /// It is something else than a data file of this server.
    NotOurs {
        /// How that shows.
        why: String,
    },
    /// A newer version of the server wrote it.
    Newer {
        /// The format of the file.
        format: u32,
        /// The newest format that this version knows.
        known: u32,
    },
    /// What is in it cannot be what was written.
    Damaged {
        /// Where: a byte, a table and row, a game.
        place: String,
        /// How that shows.
        why: String,
    },
}

impl OpenFault {
    pub(super) fn new(path: &Path, problem: Problem) -> Self {
        Self { path: path.to_owned(), problem }
    }

    pub(super) fn damaged(path: &Path, place: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(path, Problem::Damaged { place: place.into(), why: why.into() })
    }

    /// For `map_err`: what was being done when the system refused.
    pub(super) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::new(path, Problem::Unusable { doing, error: error.to_string() })
    }

    /// For `map_err`: what was being done when SQLite refused. What SQLite calls damage is damage.
    pub(super) fn sqlite(path: &Path, doing: &'static str) -> impl FnOnce(rusqlite::Error) -> Self {
        move |error| match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => {
                Self::new(path, Problem::NotOurs { why: format!("{doing}: {error}") })
            }
            Some(rusqlite::ErrorCode::DatabaseCorrupt) => Self::damaged(path, doing, error.to_string()),
            _ => Self::new(path, Problem::Unusable { doing, error: error.to_string() }),
        }
    }

    /// Whether the content of the file is at fault, so that trying again does not help.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        match self.problem {
            Problem::NotOurs { .. } | Problem::Newer { .. } | Problem::Damaged { .. } => true,
            Problem::InUse { .. } | Problem::Unusable { .. } => false,
        }
    }
}

impl fmt::Display for OpenFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.problem {
            Problem::InUse { pid: Some(pid) } => {
                write!(f, "{path} is in use by the process {pid}: stop that one first")
            }
            Problem::InUse { pid: None } => write!(f, "{path} is in use by another process: stop that one first"),
            Problem::Unusable { doing, error } => write!(f, "{path} cannot be used: {doing}: {error}"),
            Problem::NotOurs { why } => write!(f, "{path} is not a data file of this server: {why}"),
            Problem::Newer { format, known } => write!(
                f,
                "{path} has the format {format}, and this version knows formats up to {known}: \
                 start the version that wrote it, or a newer one"
            ),
            Problem::Damaged { place, why } => write!(
                f,
                "{path} is damaged: {place}: {why}. Nothing was changed. Copy the file and those beside it away, \
                 then restore a back-up (docs/operations.md, The data file)"
            ),
        }
    }
}

impl std::error::Error for OpenFault {}
