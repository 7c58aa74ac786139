//! One suite for every making of the log: what the layers above may count on.
//!
//! Another making joins with a case of [`Making`] and what it takes to make one; nothing else changes.

mod data_file;
mod log_double;

use std::sync::Arc;

use data_file::{Author, BEGIN, Folder, done, game_id, s, start};
use futures_util::future::join_all;
use jungle_referee::game::Record;
use jungle_referee::runtime::{Append, Appended, Log, LogFault, LogHealth, ManualClock, MemoryLog};
use log_double::{Fate, LogDouble};

/// What is under test.
enum Making {
    Memory,
    Sqlite,
    Double,
    DoubleThatTakesTime,
}

const ALL: [Making; 4] = [Making::Memory, Making::Sqlite, Making::Double, Making::DoubleThatTakesTime];

/// A log, its clock, and what must live as long as they.
struct Bench {
    name: &'static str,
    /// Whether it keeps what is written: then it can be read back, and knows whose turn it is.
    keeps: bool,
    clock: Arc<ManualClock>,
    log: Arc<dyn Log>,
    _folder: Option<Folder>,
}

fn bench(making: &Making) -> Bench {
    let clock = Arc::new(ManualClock::at(BEGIN));
    let port = Arc::clone(&clock) as _;
    let (name, log, folder): (_, Arc<dyn Log>, _) = match making {
        Making::Memory => ("memory", Arc::new(MemoryLog::new(port)), None),
        Making::Sqlite => {
            let folder = Folder::new();
            ("sqlite", Arc::new(start(&folder.data(), &clock)), Some(folder))
        }
        Making::Double => ("the double", Arc::new(LogDouble::new(port)), None),
        Making::DoubleThatTakesTime => {
            let log = LogDouble::new(port);
            log.delay(std::time::Duration::from_millis(1));
            ("the double that takes time", Arc::new(log), None)
        }
    };
    Bench { name, keeps: !matches!(making, Making::Memory), clock, log, _folder: folder }
}

fn benches() -> impl Iterator<Item = Bench> {
    ALL.iter().map(bench)
}

fn keepers() -> impl Iterator<Item = Bench> {
    benches().filter(|bench| bench.keeps)
}

impl Bench {
    async fn tail(&self, author: &Author, after: u64) -> Vec<Record> {
        let tail = self.log.tail(author.id, after).await;
        tail.unwrap_or_else(|LogFault| panic!("{}: its tail can be read", self.name))
    }
}

/// "An event is written as the next of its game, and dated by the log's clock."
#[tokio::test]
async fn the_next_event_is_written_and_dated() {
    for bench in benches() {
        let mut author = Author::new(1);
        for second in 1..8 {
            bench.clock.advance_to(s(second));
            let appended = author.writes(&*bench.log, s(second - 1)).await;
            assert_eq!(appended, Appended::Written(s(second)), "{}", bench.name);
        }
        assert_eq!(author.writes_end(&*bench.log, s(9)).await, Appended::Written(s(7)), "{}", bench.name);
    }
}

/// "What was answered is what is read back: the same events, the same dates."
#[tokio::test]
async fn the_tail_is_what_was_answered() {
    for bench in keepers() {
        let mut author = Author::new(1);
        let mut told = Vec::new();
        for second in 0..6 {
            bench.clock.advance_to(s(second));
            let (sequence, event) = if second == 5 { author.end(s(second)) } else { author.next(s(second)) };
            let Appended::Written(written) = done(bench.log.append(author.id, sequence, &event)).await else {
                panic!("{}: not written", bench.name);
            };
            told.push(Record { sequence, written, event });
        }
        for after in 0..=6 {
            let tail = bench.tail(&author, after).await;
            assert_eq!(tail, told[usize::try_from(after).expect("a few")..], "{} after {after}", bench.name);
        }
        assert_eq!(bench.tail(&author, 99).await, [], "{}", bench.name);
        assert_eq!(bench.tail(&Author::new(2), 0).await, [], "{}", bench.name);
    }
}

/// "Somebody was first: nothing is written, and the tail shows what stands."
#[tokio::test]
async fn an_event_that_is_not_the_next_is_a_conflict_and_changes_nothing() {
    for bench in keepers() {
        let (mut author, mut rival) = (Author::new(1), Author::new(1));
        for _ in 0..3 {
            author.writes(&*bench.log, s(1)).await;
        }
        bench.clock.advance_to(s(5));
        let stands = bench.tail(&author, 0).await;
        let mut tried = Vec::new();
        for _ in 0..3 {
            tried.push(rival.next(s(2)));
        }
        // Every sequence that is taken, and those beyond the next.
        let beyond = [5, 9, u64::from(u32::MAX)].map(|sequence| (sequence, tried[2].1.clone()));
        for (sequence, event) in tried.iter().cloned().chain(beyond) {
            let appended = done(bench.log.append(author.id, sequence, &event)).await;
            assert_eq!(appended, Appended::Conflict, "{} at {sequence}", bench.name);
            assert_eq!(bench.tail(&author, 0).await, stands, "{} at {sequence}", bench.name);
        }
        assert!(matches!(author.writes(&*bench.log, s(5)).await, Appended::Written(_)), "{}", bench.name);
        assert_eq!(bench.tail(&author, 3).await.len(), 1, "{}", bench.name);
    }
}

/// "Of many who write the same sequence at once, one is first."
#[tokio::test]
async fn of_many_at_once_one_is_first() {
    for bench in keepers() {
        let mut author = Author::new(1);
        author.writes(&*bench.log, BEGIN).await;
        let (sequence, event) = author.next(s(1));
        let appends: Vec<Append> = (0..20).map(|_| bench.log.append(author.id, sequence, &event)).collect();
        let answers = join_all(appends.into_iter().map(done)).await;
        let written = answers.iter().filter(|appended| matches!(appended, Appended::Written(_))).count();
        let conflicts = answers.iter().filter(|appended| matches!(appended, Appended::Conflict)).count();
        assert_eq!((written, conflicts), (1, 19), "{}", bench.name);
        assert_eq!(bench.tail(&author, 1).await.len(), 1, "{}", bench.name);
    }
}

/// "Many games at once do not mix, and each keeps its order."
#[tokio::test]
async fn many_games_are_written_at_once_and_kept_apart() {
    for bench in benches() {
        let mut authors: Vec<Author> = (0..64).map(Author::new).collect();
        let mut latest = BEGIN;
        for round in 1..=8 {
            bench.clock.advance_to(s(round));
            let answers = join_all(authors.iter_mut().map(|author| author.writes(&*bench.log, s(round)))).await;
            for appended in answers {
                let Appended::Written(written) = appended else { panic!("{}: {appended:?}", bench.name) };
                assert!(written >= latest && written <= s(round), "{}", bench.name);
            }
            latest = s(round);
        }
        for author in authors.iter().filter(|_| bench.keeps) {
            let tail = bench.tail(author, 0).await;
            let sequences: Vec<u64> = tail.iter().map(|record| record.sequence).collect();
            assert_eq!(sequences, [1, 2, 3, 4, 5, 6, 7, 8], "{}", bench.name);
            assert!(tail.is_sorted_by_key(|record| record.written), "{}", bench.name);
            let marks = tail[0].event.marks().expect("created");
            let number = usize::try_from(author.id.as_u128() - game_id(0).as_u128()).expect("a few");
            assert_eq!(marks.external_reference, format!("board {number}"), "{}", bench.name);
        }
    }
}

/// "Once begun it goes on, whoever waits for it."
#[tokio::test]
async fn an_append_goes_on_although_nobody_waits() {
    for bench in keepers().filter(|bench| bench.name == "sqlite") {
        let mut author = Author::new(1);
        let (sequence, event) = author.next(BEGIN);
        drop(bench.log.append(author.id, sequence, &event));
        // Asked later, answered later: by then it is written.
        assert_eq!(bench.tail(&author, 0).await.len(), 1);
        assert!(matches!(author.writes(&*bench.log, s(1)).await, Appended::Written(_)));
    }
}

/// "After an unknown answer the tail says which it was."
#[tokio::test]
async fn after_doubt_the_tail_tells() {
    for (fate, kept) in [(Fate::UnknownButWritten, 2), (Fate::UnknownNotWritten, 1)] {
        let clock = Arc::new(ManualClock::at(BEGIN));
        let log = LogDouble::new(Arc::clone(&clock) as _);
        let mut author = Author::new(1);
        author.writes(&log, BEGIN).await;
        log.next(fate);
        assert_eq!(author.writes(&log, s(1)).await, Appended::Unknown);
        assert_eq!(log.tail(author.id, 0).await.expect("readable").len(), kept);
    }
}

/// "A log is fine until it says otherwise."
#[tokio::test]
async fn a_new_log_is_fine() {
    for bench in benches() {
        Author::new(1).writes(&*bench.log, BEGIN).await;
        assert_eq!(*bench.log.health().borrow(), LogHealth::Fine, "{}", bench.name);
    }
}
