//! What is promised of the data file: who may open it, what is in it, and what comes back.

mod data_file;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::Arc;

use data_file::{ALL, Author, BEGIN, Folder, done, game_id, read, s, start, state};
use jungle_referee::runtime::disk::Problem;
use jungle_referee::runtime::{Appended, Clock as _, DataFile, Keep, Log as _, ManualClock, OpenFault, SqliteLog};
use rusqlite::Connection;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(BEGIN))
}

/// The fault of a file that cannot be opened.
fn refused(folder: &Folder) -> OpenFault {
    read(&folder.data()).expect_err("not to be used")
}

/// Writes a story of some games, half of them to the end, and answers with what was said of it.
async fn tell(log: &SqliteLog, clock: &ManualClock, games: u32, plies: u64) -> data_file::State {
    let mut authors: Vec<Author> = (0..games).map(Author::new).collect();
    let mut told: data_file::State = authors.iter().map(|author| (author.id, Vec::new())).collect();
    for round in 0..=plies {
        for (author, (_, records)) in authors.iter_mut().zip(&mut told) {
            let at = s(2 * round);
            clock.advance_to(at + jungle_referee::game::Span::from_millis(3));
            let ends = round == plies && records.len() % 2 == u64_parity(author);
            if author.is_over() {
                continue;
            }
            let (sequence, event) = if ends { author.end(at) } else { author.next(at) };
            let Appended::Written(written) = done(log.append(author.id, sequence, &event)).await else {
                panic!("not written")
            };
            records.push(jungle_referee::game::Record { sequence, written, event });
        }
    }
    told
}

fn u64_parity(author: &Author) -> usize {
    usize::from(author.id.as_u128() % 2 == 1)
}

/// "The server was killed; every game came back as it had been told, to the microsecond."
#[tokio::test]
async fn what_was_acknowledged_comes_back_the_same_after_a_stop_and_after_a_kill() {
    let (folder, killed, clock) = (Folder::new(), Folder::new(), clock());
    let log = start(&folder.data(), &clock);
    let told = tell(&log, &clock, 6, 9).await;
    killed.put(&folder.left_by_a_kill(), true);
    assert_eq!(read(&killed.data()).expect("a good file"), told);
    drop(log);
    assert_eq!(read(&folder.data()).expect("a good file"), told);
    assert!(told.iter().any(|(_, records)| records.iter().any(|record| record.event.ending.is_some())));
    assert!(told.iter().any(|(_, records)| records.iter().all(|record| record.event.ending.is_none())));
}

/// "After the restart my game went on where it was."
#[tokio::test]
async fn a_game_goes_on_after_a_restart() {
    let (folder, clock) = (Folder::new(), clock());
    let mut author = Author::new(1);
    for run in 0..3 {
        let log = start(&folder.data(), &clock);
        for _ in 0..3 {
            let written = clock.now();
            assert_eq!(author.writes(&log, written).await, Appended::Written(written), "run {run}");
        }
        clock.advance_to(s(run));
    }
    assert_eq!(read(&folder.data()).expect("a good file")[0].1.len(), 9);
}

/// "By mistake I started a second server on the same file; it said which process has it, and left."
#[tokio::test]
async fn a_file_has_one_server_whatever_it_is_called_by() {
    let (folder, clock) = (Folder::new(), clock());
    let log = start(&folder.data(), &clock);
    let link = folder.path().join("link.db");
    symlink(folder.data(), &link).expect("a link");
    for path in [folder.data(), link.clone(), folder.path().join("../").join(folder.path()).join("games.db")] {
        let fault = read(&path).expect_err("in use");
        assert!(matches!(fault.problem, Problem::InUse { pid: Some(pid) } if pid == std::process::id()), "{fault}");
        assert!(fault.to_string().contains(&std::process::id().to_string()), "{fault}");
        assert!(!fault.is_lasting());
    }
    drop(log);
    // The lock file stays, and hinders nobody.
    assert!(folder.beside(".lock").exists());
    read(&link).expect("free again");
}

/// "Other users of the machine cannot read our games."
#[tokio::test]
async fn only_the_owner_may_read_what_is_written() {
    let (folder, clock) = (Folder::new(), clock());
    let log = start(&folder.data(), &clock);
    Author::new(1).writes(&log, BEGIN).await;
    for suffix in ["", "-wal", "-shm", ".lock"] {
        let mode = fs::metadata(folder.beside(suffix)).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{suffix}");
    }
}

/// "The old version did not touch the file that the new one had written."
#[test]
fn a_file_of_a_newer_format_is_refused_and_left_as_it_is() {
    let folder = Folder::new();
    read(&folder.data()).expect("a new file");
    let other = Connection::open(folder.data()).expect("opened");
    other.execute_batch("PRAGMA user_version = 2; UPDATE meta SET value = '2' WHERE key = 'format'").expect("changed");
    drop(other);
    let before = folder.left_by_a_kill();
    let fault = refused(&folder);
    assert!(matches!(fault.problem, Problem::Newer { format: 2, known: 1 }), "{fault}");
    assert!(fault.to_string().contains("format 2") && fault.is_lasting(), "{fault}");
    assert_eq!(folder.left_by_a_kill().data, before.data);
}

/// "I gave it the wrong file, and the file is as it was."
#[test]
fn what_is_no_data_file_is_refused_and_left_as_it_is() {
    let folder = Folder::new();
    let foreign = Connection::open(folder.data()).expect("opened");
    foreign.execute_batch("CREATE TABLE songs (name TEXT); INSERT INTO songs VALUES ('la')").expect("made");
    drop(foreign);
    for content in [fs::read(folder.data()).expect("the file"), b"a text of some length".repeat(300), b"x".to_vec()] {
        fs::write(folder.data(), &content).expect("written");
        let fault = refused(&folder);
        assert!(matches!(fault.problem, Problem::NotOurs { .. }), "{fault}");
        assert_eq!(fs::read(folder.data()).expect("the file"), content);
    }
}

/// "The disk had lost the file, and the server did not begin a new one as if nothing had been."
#[tokio::test]
async fn a_file_that_is_gone_or_empty_is_not_taken_for_a_new_one() {
    let (folder, clock) = (Folder::new(), clock());
    let log = start(&folder.data(), &clock);
    Author::new(1).writes(&log, BEGIN).await;
    let left = folder.left_by_a_kill();
    drop(log);

    folder.put(&left, false);
    fs::write(folder.data(), b"").expect("emptied");
    let fault = refused(&folder);
    assert!(fault.to_string().contains("it is empty"), "{fault}");

    folder.put(&left, false);
    fs::remove_file(folder.data()).expect("removed");
    let fault = refused(&folder);
    assert!(fault.to_string().contains("it is gone, but"), "{fault}");

    folder.put(&left, true);
    for suffix in ["", "-wal"] {
        fs::remove_file(folder.beside(suffix)).expect("removed");
    }
    let fault = refused(&folder);
    assert!(fault.to_string().contains("knows that event 1 was committed"), "{fault}");
}

/// "We put a back-up back, and were told about the newer events until we said that we mean it."
#[tokio::test]
async fn a_back_up_made_while_serving_is_whole_and_older_events_are_only_taken_on_demand() {
    let (folder, clock) = (Folder::new(), clock());
    let log = start(&folder.data(), &clock);
    let mut author = Author::new(1);
    for _ in 0..5 {
        author.writes(&log, BEGIN).await;
    }
    let back_up = folder.path().join("back-up.db");
    let reader = Connection::open(folder.data()).expect("opened");
    reader.execute("VACUUM INTO ?1", [back_up.to_str().expect("a plain path")]).expect("backed up");
    drop(reader);
    let saved = read(&back_up).expect("a good file");
    assert_eq!(saved[0].1.len(), 5);
    author.writes(&log, BEGIN).await;
    drop(log);

    let back_up = fs::read(&back_up).expect("the back-up");
    let mut left = folder.left_by_a_kill();
    (left.data, left.wal) = (back_up, Vec::new());
    folder.put(&left, true);
    let fault = refused(&folder);
    assert!(fault.to_string().contains("its last event is 5, but"), "{fault}");
    fs::remove_file(folder.beside(".lock")).expect("removed");
    assert_eq!(read(&folder.data()).expect("a good file"), saved);
}

/// "Finished games come back as long as they are kept, the newest first in line."
#[tokio::test]
async fn finished_games_come_back_as_long_as_they_are_kept() {
    let (folder, clock) = (Folder::new(), clock());
    let log = start(&folder.data(), &clock);
    for number in 0..4 {
        let mut author = Author::new(number);
        author.writes(&log, s(0)).await;
        if number < 3 {
            author.writes_end(&log, s(10 * (3 - u64::from(number)))).await;
        }
    }
    drop(log);
    let kept = |ended_after, ended_at_most| {
        let file = DataFile::open(&folder.data()).and_then(|file| file.read(Keep { ended_after, ended_at_most }));
        let file = file.expect("a good file");
        assert_eq!(file.open_games(), 1);
        state(&file).into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    let ids = |numbers: &[u32]| numbers.iter().map(|number| game_id(*number)).collect::<Vec<_>>();
    assert_eq!(kept(s(0), 9), ids(&[0, 1, 2, 3]));
    assert_eq!(kept(s(10), 9), ids(&[0, 1, 3]));
    assert_eq!(kept(s(0), 1), ids(&[0, 3]));
    assert_eq!(kept(s(100), 9), ids(&[3]));

    // A game that was not read back is in the file all the same: its id is not free.
    let file = DataFile::open(&folder.data()).and_then(|file| file.read(Keep { ended_after: s(100), ..ALL }));
    let log = file.and_then(|file| file.start(clock)).expect("started");
    assert_eq!(Author::new(1).writes(&log, s(200)).await, Appended::Conflict);
    assert_eq!(log.tail(game_id(1), 0).await.expect("readable").len(), 2);
}

/// "While we were waiting for a move the server went down; the log knew when it had last been alive."
#[tokio::test]
async fn a_sign_of_life_is_written_while_a_game_is_open_and_no_later_than_the_last_event() {
    let (folder, clock) = (Folder::new(), clock());
    let log = start(&folder.data(), &clock);
    let reader = Connection::open(folder.data()).expect("opened");
    let alive_at = || {
        let row = reader.query_row("SELECT alive_at FROM sign_of_life", [], |row| row.get::<_, i64>(0));
        row.ok().and_then(|at| u64::try_from(at).ok())
    };
    let mut author = Author::new(1);
    author.writes(&log, BEGIN).await;
    clock.advance_to(s(77));
    // The writer comes by in real time: it is awaited, and what it writes is of the hand-moved clock.
    data_file_patience(|| alive_at() == Some(s(77).micros())).await;
    author.writes_end(&log, s(78)).await;
    let file_of_a_kill = Folder::new();
    file_of_a_kill.put(&folder.left_by_a_kill(), true);
    let file = DataFile::open(&file_of_a_kill.data()).and_then(|file| file.read(ALL)).expect("a good file");
    assert_eq!(file.past().down_since, s(77));
    clock.advance_to(s(99));
    Author::new(2).writes(&log, s(99)).await;
    drop((reader, log));
    let file = DataFile::open(&folder.data()).and_then(|file| file.read(ALL)).expect("a good file");
    assert_eq!(file.past().down_since, s(99));
}

async fn data_file_patience(mut holds: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("it did not come");
}

/// "I looked into the file with sqlite3 while the server was on, and could read who had won."
#[tokio::test]
async fn an_operator_can_read_the_tables_while_it_serves() {
    let (folder, clock) = (Folder::new(), clock());
    let log = start(&folder.data(), &clock);
    let mut author = Author::new(7);
    author.writes(&log, s(0)).await;
    author.writes(&log, s(1)).await;
    author.writes_end(&log, s(2)).await;
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let reader = Connection::open_with_flags(folder.data(), flags).expect("opened");
    let text = |sql: &str| reader.query_row(sql, [], |row| row.get::<_, String>(0)).expect("a row");
    let games = "SELECT concat_ws('|', id, created_at, preset, labels, external_reference, private, status, winner, \
                 reason, scored, plies, ended_at) FROM games_readable";
    assert_eq!(
        text(games),
        "0190a000-0000-7000-8000-000000000007|2026-09-21T14:13:20.000Z|yeshou|[\"story \\\"7\\\"\",\"\u{9f20}\"]|board 7|0|\
         ENDED|RED|LEFT|0|1|2026-09-21T14:13:22.000Z"
    );
    assert_eq!(text("SELECT json_extract(labels, '$[0]') FROM games"), "story \"7\"");
    let kinds = "SELECT group_concat(sequence || ' ' || kind || ' ' || game, ', ') FROM events_readable";
    let id = game_id(7);
    assert_eq!(text(kinds), format!("1 created {id}, 2 moved {id}, 3 seat_left {id}"));
}
