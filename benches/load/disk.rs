//! Games on disk: moves beside batched commits of the same bytes into a table of SQLite, and beside plain appends.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::calls::{Contestant, Kind, Load};
use crate::cpu::{Led, SERVER_CORE, be_led, now, this_program};
use crate::lines::Lines;
use crate::table::{Middle, Sample, as_figure, micros, percentile};

/// How many games are open.
const GAMES: usize = 1_000;

/// How many calls are in flight; a commit of SQLite's beside them has as many rows.
const IN_FLIGHT: [usize; 4] = [1, 16, 64, 256];

/// The most commits that a measurement takes.
const MOST_COMMITS: usize = 1_000;

/// What the numbers of a row of events take beside its texts, in bytes.
const NUMBERS: usize = 32;

/// The head of the table.
const HEAD: &str = "\
| in flight, rows a commit | moves/s | rows/s, SQLite | moves to rows | rows/s, append | CPU µs a move | move p50 µs | p99 µs | commit p50 µs, SQLite | append p50 µs |
|---|---|---|---|---|---|---|---|---|---|";

/// Commits of one kind, one after the other.
struct Commits {
    /// The time from row to row.
    row: Duration,
    /// How long half of the commits took at most.
    half: Duration,
}

/// Measures moves and commits in turn, with their files in this folder, and prints how they compare.
pub(crate) async fn compare(folder: &Path, rounds: usize) {
    let lines = Rc::new(Lines::new());
    let data = folder.join("games.db");
    remove(&data);
    let path = data.to_str().expect("a path that is text");
    let mut referee = Contestant::referee("on disk", &this_program(), &["--data", path], GAMES, &lines);
    let mut baseline = Led::start(SERVER_CORE, &["serve-commits", folder.to_str().expect("a path that is text")]);
    let bytes = row_bytes(&data);
    println!("A row has {bytes} bytes.\n\n{HEAD}");
    for in_flight in IN_FLIGHT {
        let commits = MOST_COMMITS.min(60_000 / in_flight);
        let load = Load { kind: Kind::Accepted, in_flight, connections: 1, calls: commits * in_flight };
        let (mut moves, mut sqlite, mut append) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            moves.push(referee.measure(load, 0).await);
            sqlite.push(commits_of(&mut baseline, "sqlite", in_flight, commits, bytes));
            append.push(commits_of(&mut baseline, "append", in_flight, commits, bytes));
        }
        println!("{}", row(in_flight, &moves, &sqlite, &append));
    }
    drop((referee, baseline));
    remove(&data);
    remove(&folder.join("rows.db"));
}

fn row(in_flight: usize, moves: &[Sample], sqlite: &[Commits], append: &[Commits]) -> String {
    let middle = |figures: &mut dyn Iterator<Item = f64>| Middle::of(figures).expect("rounds").middle();
    let speed = |row: Duration| 1.0 / row.as_secs_f64();
    let ratios = moves.iter().zip(sqlite).map(|(moves, commits)| speed(moves.took) / speed(commits.row));
    format!(
        "| {in_flight} | {:.0} | {:.0} | {} | {:.0} | {:.1} | {:.0} | {:.0} | {:.0} | {:.0} |",
        middle(&mut moves.iter().map(|sample| speed(sample.took))),
        middle(&mut sqlite.iter().map(|commits| speed(commits.row))),
        Middle::of(ratios).expect("rounds").with_range(),
        middle(&mut append.iter().map(|commits| speed(commits.row))),
        middle(&mut moves.iter().map(|sample| micros(sample.cpu))),
        middle(&mut moves.iter().map(|sample| micros(sample.half))),
        middle(&mut moves.iter().map(|sample| micros(sample.most))),
        middle(&mut sqlite.iter().map(|commits| micros(commits.half))),
        middle(&mut append.iter().map(|commits| micros(commits.half))),
    )
}

/// What a row of the referee's events takes, on average.
fn row_bytes(data: &Path) -> usize {
    let connection = Connection::open_with_flags(data, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("the data file");
    let texts = "SELECT CAST(avg(length(body) + length(kind)) AS INTEGER) FROM events WHERE sequence > 1";
    let texts = connection.query_row(texts, [], |row| row.get::<_, i64>(0)).expect("events");
    usize::try_from(texts).expect("a length") + NUMBERS
}

fn commits_of(baseline: &mut Led, what: &str, rows: usize, commits: usize, bytes: usize) -> Commits {
    let told = baseline.ask(&format!("{what} {rows} {commits} {bytes}"));
    let (row, half) = told.split_once(' ').expect("two figures");
    let nanos = |text: &str| Duration::from_nanos(text.parse().expect("a number"));
    Commits { row: nanos(row), half: nanos(half) }
}

/// The process that commits, until standard input ends.
pub(crate) async fn serve(folder: &[String]) {
    let [folder] = folder else { panic!("told {folder:?}") };
    let folder = PathBuf::from(folder);
    let database = folder.join("rows.db");
    let table = table(&database);
    be_led("commits", async |words| {
        let [what, numbers @ ..] = words else { panic!("told {words:?}") };
        let numbers: Vec<usize> = numbers.iter().map(|number| number.parse().expect("a number")).collect();
        let [rows, commits, bytes] = numbers[..] else { panic!("told {words:?}") };
        let body = vec![7; bytes];
        match *what {
            "sqlite" => sqlite(&table, rows, commits, &body),
            "append" => append(&folder.join("rows.log"), rows, commits, &body),
            _ => panic!("told {words:?}"),
        }
    })
    .await;
}

/// A table on disk with the settings that the referee's log has. Its write-ahead log has its full length from
/// the beginning, as that of a server that has run for a while: what makes a file longer makes it slower.
fn table(path: &Path) -> Connection {
    const LONG: i64 = 8 << 20;
    remove(path);
    let connection = Connection::open(path).expect("a new file");
    let settings = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
        CREATE TABLE rows (number INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT";
    connection.execute_batch(settings).expect("a new table");
    connection.execute("INSERT INTO rows (body) VALUES (zeroblob(?1))", [LONG]).expect("room on the disk");
    connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).expect("nobody reads");
    connection
}

/// Commits rows in the order of their numbers.
fn sqlite(table: &Connection, rows: usize, commits: usize, body: &[u8]) -> String {
    let mut insert = table.prepare("INSERT INTO rows (body) VALUES (?1)").expect("a statement");
    timed(rows, commits, || {
        table.execute_batch("BEGIN IMMEDIATE").expect("a transaction");
        for _ in 0..rows {
            insert.execute([body]).expect("a row");
        }
        table.execute_batch("COMMIT").expect("a commit");
    })
}

/// Appends the bytes and waits until the disk has them.
fn append(path: &Path, rows: usize, commits: usize, body: &[u8]) -> String {
    let mut file = File::create(path).expect("a new file");
    let rows_together = body.repeat(rows);
    let told = timed(rows, commits, || {
        file.write_all(&rows_together).expect("room on the disk");
        file.sync_data().expect("a disk");
    });
    remove(path);
    told
}

/// The nanos of a row, and those of the middle commit.
fn timed(rows: usize, commits: usize, mut commit: impl FnMut()) -> String {
    let began = now();
    let mut each: Vec<Duration> = Vec::with_capacity(commits);
    for _ in 0..commits {
        let began = now();
        commit();
        each.push(began.elapsed());
    }
    let row = began.elapsed().div_f64(as_figure(rows * commits));
    each.sort_unstable();
    format!("{} {}", row.as_nanos(), percentile(&each, 0.5).as_nanos())
}

/// Removes a file and what SQLite keeps beside it, if they are there.
fn remove(path: &Path) {
    for ending in ["", "-wal", "-shm", ".lock"] {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        if let Err(error) = std::fs::remove_file(&name) {
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{}: {error}", path.display());
        }
    }
}
