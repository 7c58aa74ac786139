//! The tables, how a new data file is made, and how an older one is brought up to date.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::fault::{OpenFault, Problem};
use super::lock::{OWNER_ONLY, beside};

/// What marks a SQLite file as one of ours: "JGLr".
const APPLICATION_ID: i32 = 0x4a47_4c72;

/// How long a transaction waits for another program that writes to the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// Beyond this the file of the write-ahead log is cut back when it starts anew, in bytes.
const WAL_KEPT: u32 = 64 << 20;

/// What leads from each format to the next, the first from an empty file to format 1. Only ever add to
/// this: files of all formats are out there.
const STEPS: [&str; 1] = [FORMAT_1];

/// Times are microseconds since 1970 in UTC. The views are for people, the tables for the server.
const FORMAT_1: &str = "
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;
CREATE TABLE games (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    preset TEXT NOT NULL,
    ruleset_hash TEXT NOT NULL,
    labels TEXT NOT NULL,
    external_reference TEXT NOT NULL,
    private INTEGER NOT NULL,
    first_position INTEGER NOT NULL,
    status TEXT NOT NULL,
    winner TEXT,
    reason TEXT,
    scored INTEGER,
    ended_at INTEGER,
    plies INTEGER,
    checksum INTEGER NOT NULL
) STRICT;
CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    game INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    at INTEGER NOT NULL,
    written INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body BLOB NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;
CREATE TABLE sign_of_life (
    number INTEGER PRIMARY KEY,
    alive_at INTEGER NOT NULL,
    position INTEGER NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;
CREATE TABLE probe (
    number INTEGER PRIMARY KEY,
    filler BLOB NOT NULL
) STRICT;
CREATE VIEW games_readable AS
    SELECT number, id, strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at, preset,
        labels, external_reference, private, status, winner, reason, scored, plies,
        strftime('%Y-%m-%dT%H:%M:%fZ', ended_at / 1e6, 'unixepoch') AS ended_at
    FROM games;
CREATE VIEW events_readable AS
    SELECT position, games.id AS game, sequence, strftime('%Y-%m-%dT%H:%M:%fZ', at / 1e6, 'unixepoch') AS at,
        strftime('%Y-%m-%dT%H:%M:%fZ', written / 1e6, 'unixepoch') AS written, kind, length(body) AS bytes
    FROM events JOIN games ON games.number = events.game;
";

/// Opens the data file, and makes it if there is none. Nothing of it is changed, whatever it is.
pub(super) fn open(path: &Path) -> Result<DataFormat, OpenFault> {
    let exists = path.try_exists().map_err(OpenFault::io(path, "looking for it"))?;
    if !exists {
        make(path, &STEPS)?;
    }
    let connection = connect(path).map_err(OpenFault::sqlite(path, "opening it"))?;
    let format = format_of(&connection, path)?;
    let known = u32::try_from(STEPS.len()).unwrap_or(u32::MAX);
    if format > known {
        return Err(OpenFault::new(path, Problem::Newer { format, known }));
    }
    Ok(DataFormat { connection, format })
}

/// A data file of ours, in a format that may be an older one.
pub(super) struct DataFormat {
    pub(super) connection: Connection,
    format: u32,
}

impl DataFormat {
    /// Brings it up to date, and makes it ready to be written to.
    pub(super) fn up_to_date(mut self, path: &Path) -> Result<Connection, OpenFault> {
        prepare(&self.connection, path)?;
        upgrade(&mut self.connection, self.format, &STEPS)
            .map_err(OpenFault::sqlite(path, "bringing its format up to date"))?;
        Ok(self.connection)
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

fn prepare(connection: &Connection, path: &Path) -> Result<(), OpenFault> {
    let doing = "switching to the write-ahead log";
    let set = || {
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "journal_size_limit", WAL_KEPT)?;
        // The writer does this itself: after its answers, and with an eye on what comes of it.
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        let mode = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0))?;
        // A file that comes from a back-up is in this mode only now, and SQLite opens its log with the next look.
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(mode)
    };
    let mode = set().map_err(OpenFault::sqlite(path, doing))?;
    if mode == "wal" {
        Ok(())
    } else {
        let error = format!("the journal mode stays {mode}");
        Err(OpenFault::new(path, Problem::Unusable { doing, error }))
    }
}

/// Makes a data file under another name and renames it once it is whole: an interrupted start leaves
/// no half of a file.
fn make(path: &Path, steps: &[&str]) -> Result<(), OpenFault> {
    let fresh = beside(path, ".new");
    for suffix in ["", "-wal", "-shm", "-journal"] {
        match fs::remove_file(beside(&fresh, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(OpenFault::io(&fresh, "removing what an interrupted start has left")(error));
            }
            Ok(()) | Err(_) => {}
        }
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(OWNER_ONLY).open(&fresh);
    let file = file.map_err(OpenFault::io(&fresh, "making it"))?;
    // The mode again, whatever the umask: SQLite gives its other files the mode of this one.
    file.set_permissions(Permissions::from_mode(OWNER_ONLY)).map_err(OpenFault::io(&fresh, "making it"))?;
    let mut connection = connect(&fresh).map_err(OpenFault::sqlite(&fresh, "making it"))?;
    prepare(&connection, &fresh)?;
    upgrade(&mut connection, 0, steps).map_err(OpenFault::sqlite(&fresh, "making its tables"))?;
    connection.close().map_err(|(_, error)| OpenFault::sqlite(&fresh, "closing it")(error))?;
    file.sync_all().map_err(OpenFault::io(&fresh, "syncing it"))?;
    fs::rename(&fresh, path).map_err(OpenFault::io(path, "giving it its name"))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(OpenFault::io(folder, "syncing the folder"))
}

/// The format of a file, if it is one of ours.
fn format_of(connection: &Connection, path: &Path) -> Result<u32, OpenFault> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let reading = "reading its format";
    let application = number("application_id").map_err(OpenFault::sqlite(path, reading))?;
    if application != i64::from(APPLICATION_ID) {
        let why = format!("its application id is {application:#x}, not {APPLICATION_ID:#x}");
        return Err(OpenFault::new(path, Problem::NotOurs { why }));
    }
    let format = number("user_version").map_err(OpenFault::sqlite(path, reading))?;
    let told: String = connection
        .query_row("SELECT value FROM meta WHERE key = 'format'", [], |row| row.get(0))
        .map_err(OpenFault::sqlite(path, reading))?;
    match u32::try_from(format) {
        Ok(format) if format >= 1 && told == format.to_string() => Ok(format),
        Ok(_) | Err(_) => {
            let why = format!("the header says {format}, the table meta says {told:?}");
            Err(OpenFault::damaged(path, "its format", why))
        }
    }
}

/// Takes each step that the file lacks, in a transaction of its own.
fn upgrade(connection: &mut Connection, format: u32, steps: &[&str]) -> rusqlite::Result<()> {
    for (step, next) in steps.iter().zip(1..).skip(usize::try_from(format).unwrap_or(usize::MAX)) {
        take_step(connection, step, next)?;
    }
    Ok(())
}

fn take_step(connection: &mut Connection, step: &str, format: u32) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(step)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", format)?;
    let told = "INSERT INTO meta (key, value) VALUES ('format', ?1) ON CONFLICT (key) DO UPDATE SET value = ?1";
    transaction.execute(told, [format.to_string()])?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(connection: &Connection) -> (i64, String) {
        let header = connection.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a number");
        let told = connection.query_row("SELECT value FROM meta WHERE key = 'format'", [], |row| row.get(0));
        (header, told.expect("told"))
    }

    #[test]
    fn an_older_file_takes_the_steps_that_it_lacks_each_whole_or_not_at_all() {
        let mut connection = Connection::open_in_memory().expect("opened");
        let steps = [FORMAT_1, "ALTER TABLE games ADD COLUMN title TEXT; UPDATE games SET title = preset"];
        upgrade(&mut connection, 0, &steps[..1]).expect("format 1");
        assert_eq!(format(&connection), (1, "1".to_owned()));
        connection
            .execute_batch("INSERT INTO games VALUES (1,'a',0,'p','h','[]','',0,1,'OPEN',NULL,NULL,NULL,NULL,NULL,0)")
            .expect("a row");

        let broken = [FORMAT_1, "ALTER TABLE games ADD COLUMN title TEXT; UPDATE nothing SET title = preset"];
        upgrade(&mut connection, 1, &broken).expect_err("a step that cannot be taken");
        assert_eq!(format(&connection), (1, "1".to_owned()));
        assert!(connection.prepare("SELECT title FROM games").is_err());

        upgrade(&mut connection, 1, &steps).expect("format 2");
        assert_eq!(format(&connection), (2, "2".to_owned()));
        let title: String = connection.query_row("SELECT title FROM games", [], |row| row.get(0)).expect("a title");
        assert_eq!(title, "p");
        upgrade(&mut connection, 2, &steps).expect("nothing to do");
        assert_eq!(format(&connection), (2, "2".to_owned()));
    }
}
