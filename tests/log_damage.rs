//! What is promised of a damaged data file: the last transaction is dropped whole, or the server does not
//! start and says what is wrong and where. Nothing is ever misread.
//!
//! `DAMAGES=100000 cargo test --release --test log_damage` tries so many random places instead of a few, and
//! every byte of the last transaction where the usual run leaves some out.

mod data_file;
mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use data_file::{Author, BEGIN, Folder, Left, State, read, s, start};
use jungle_referee::runtime::disk::Problem;
use jungle_referee::runtime::{Appended, ManualClock};
use support::Dice;

/// The bytes of a frame of the write-ahead log, and of its header.
const FRAME: usize = 24 + 4096;
const WAL_HEADER: usize = 32;

/// A data file with something in its write-ahead log, and what a reader must find.
struct Scene {
    left: Left,
    /// Before the last transaction, and after it.
    states: [State; 2],
    /// Where the last transaction begins in the write-ahead log.
    last: usize,
}

/// What came of reading a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Came {
    Whole,
    WithoutTheLast,
    Refused,
}

/// Some games in the file itself, and more of them in the write-ahead log. The last transaction is an ending,
/// which changes two tables, or the creation of a game.
async fn scene(ends_with_creation: bool) -> Scene {
    let (folder, clock) = (Folder::new(), Arc::new(ManualClock::at(BEGIN)));
    let mut authors: Vec<Author> = (0..12).map(Author::new).collect();
    let log = start(&folder.data(), &clock);
    for round in 0..9 {
        for author in &mut authors {
            assert!(matches!(author.writes(&log, s(round)).await, Appended::Written(_)));
        }
    }
    authors[3].writes_end(&log, s(9)).await;
    authors.remove(3);
    drop(log);
    let log = start(&folder.data(), &clock);
    for round in 10..14 {
        for author in &mut authors {
            assert!(matches!(author.writes(&log, s(round)).await, Appended::Written(_)));
        }
    }
    let before = folder.left_by_a_kill();
    let copy = Folder::new();
    copy.put(&before, false);
    let without_the_last = read(&copy.data()).expect("a good file");
    let written = if ends_with_creation {
        Author::new(77).writes(&log, s(20)).await
    } else {
        authors[5].writes_end(&log, s(20)).await
    };
    assert!(matches!(written, Appended::Written(_)));
    let left = folder.left_by_a_kill();
    copy.put(&left, true);
    let whole = read(&copy.data()).expect("a good file");
    assert_ne!(whole, without_the_last);
    assert_eq!(left.data, before.data, "the write-ahead log has both");
    assert!((2..=5).contains(&((left.wal.len() - before.wal.len()) / FRAME)), "a transaction of some frames");
    Scene { states: [without_the_last, whole], last: before.wal.len(), left }
}

impl Scene {
    /// Reads the file with this damage done to it. Panics if it is misread.
    fn with(&self, folder: &Folder, damaged: &Left, with_lock: bool, what: &dyn std::fmt::Display) -> Came {
        folder.put(damaged, with_lock);
        match read(&folder.data()) {
            Ok(state) if state == self.states[1] => Came::Whole,
            Ok(state) if state == self.states[0] => Came::WithoutTheLast,
            Ok(_) => panic!("{what}: misread"),
            Err(fault) => {
                let told = fault.to_string();
                assert!(told.contains("games.db") && told.len() > 40, "{what}: {told}");
                let (damaged, elsewhere) = match &fault.problem {
                    Problem::Damaged { place, why } => (!place.is_empty() && !why.is_empty(), false),
                    Problem::NotOurs { .. } | Problem::Newer { .. } | Problem::Unusable { .. } => (true, false),
                    Problem::InUse { .. } => (false, true),
                };
                assert!(damaged && !elsewhere, "{what}: {told}");
                Came::Refused
            }
        }
    }

    /// Tries damages one by one, on two threads, and counts what came of them.
    fn tally(&self, damages: &[Damage], with_lock: bool) -> BTreeMap<Came, usize> {
        let halves = damages.split_at(damages.len() / 2);
        let part = |damages: &[Damage]| {
            let folder = Folder::new();
            let mut tally = BTreeMap::new();
            for damage in damages {
                if !damage.changes(&self.left) {
                    continue;
                }
                let came = self.with(&folder, &damage.done_to(&self.left), with_lock, damage);
                *tally.entry(came).or_default() += 1;
            }
            tally
        };
        let mut tallies = std::thread::scope(|scope| {
            let other = scope.spawn(|| part(halves.1));
            [part(halves.0), other.join().expect("no misreading")]
        });
        let (first, second) = tallies.split_at_mut(1);
        for (came, count) in &second[0] {
            *first[0].entry(*came).or_default() += count;
        }
        tallies[0].clone()
    }
}

/// Which of the files.
#[derive(Clone, Copy, Debug)]
enum In {
    Data,
    Wal,
}

/// A damage at a byte.
#[derive(Clone, Copy, Debug)]
enum Damage {
    /// The file ends before it.
    Cut(In, usize),
    /// Its bits are changed by these.
    Flip(In, usize, u8),
    /// A piece of the file from there on, as long as a sector or shorter, is nothing but zeros.
    Blank(In, usize),
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

impl Damage {
    /// Whether it is one: zeros in place of zeros are not.
    fn changes(self, left: &Left) -> bool {
        let done = self.done_to(left);
        (done.data, done.wal) != (left.data.clone(), left.wal.clone())
    }

    fn done_to(self, left: &Left) -> Left {
        let mut left = left.clone();
        let (Self::Cut(file, at) | Self::Flip(file, at, _) | Self::Blank(file, at)) = self;
        let bytes = match file {
            In::Data => &mut left.data,
            In::Wal => &mut left.wal,
        };
        match self {
            Self::Cut(..) => bytes.truncate(at),
            Self::Flip(_, _, bits) => bytes[at] ^= bits,
            Self::Blank(..) => {
                let end = bytes.len().min(at + 512);
                bytes[at..end].fill(0);
            }
        }
        left
    }
}

const FEW: usize = 600;

/// How many random damages: few in the usual run.
fn damages() -> usize {
    std::env::var("DAMAGES").ok().and_then(|number| number.parse().ok()).unwrap_or(FEW)
}

/// "The power failed in the middle of a move: it was there, or it was not, and all before it was."
#[tokio::test]
async fn the_last_transaction_is_dropped_whole_wherever_it_is_cut_or_changed() {
    let every = damages() > FEW;
    for ends_with_creation in [false, true] {
        let scene = scene(ends_with_creation).await;
        let end = scene.left.wal.len();
        let mut dice = Dice(7);
        let mut places: Vec<usize> = (scene.last..end).collect();
        // All of what steers the reader: the header of each frame and the beginning of its page; of the rest some.
        places.retain(|at| every || (at - WAL_HEADER) % FRAME < 24 + 128 || dice.roll(16) == 0);
        let cuts: Vec<Damage> = places.iter().map(|at| Damage::Cut(In::Wal, *at)).collect();
        let flips: Vec<Damage> = places.iter().map(|at| Damage::Flip(In::Wal, *at, 1 << dice.roll(8))).collect();
        let blanks: Vec<Damage> = places.iter().step_by(16).map(|at| Damage::Blank(In::Wal, *at)).collect();
        for (name, damages) in [("cut", cuts), ("changed", flips), ("blank", blanks)] {
            let tally = scene.tally(&damages, false);
            println!("last transaction {name}: {tally:?}");
            // A cut is what a crash leaves. Of a change the reader may say that no crash leaves such.
            let starts = tally.get(&Came::WithoutTheLast).copied().unwrap_or_default();
            assert!(!tally.contains_key(&Came::Whole), "{name}: {tally:?}");
            assert!(starts == tally.values().sum::<usize>() || name != "cut" && starts > 0, "{name}: {tally:?}");
            // Where the lock file tells that it had been committed, it is not dropped at all.
            let some: Vec<Damage> = damages.into_iter().step_by(50).collect();
            let tally = scene.tally(&some, true);
            assert!(tally.keys().all(|came| *came == Came::Refused), "{name}, with the lock file: {tally:?}");
        }
    }
}

/// "A row had fallen out of its page without a trace in any other; the server would not start."
#[tokio::test]
async fn a_page_that_has_lost_its_last_row_is_found() {
    let (folder, clock) = (Folder::new(), Arc::new(ManualClock::at(BEGIN)));
    let log = start(&folder.data(), &clock);
    for number in 0..40 {
        let mut author = Author::new(number);
        for round in 0..5 {
            author.writes(&log, s(round)).await;
        }
    }
    drop(log);
    let whole = folder.left_by_a_kill();
    let mut found = 0;
    for page in (4096..whole.data.len()).step_by(4096) {
        let (kind, rows) = (whole.data[page], u16::from_be_bytes([whole.data[page + 3], whole.data[page + 4]]));
        // The pages that hold rows of tables, and their number of rows.
        if kind == 0x0d && rows > 0 {
            let mut less = whole.clone();
            less.data[page + 3..page + 5].copy_from_slice(&(rows - 1).to_be_bytes());
            folder.put(&less, false);
            let fault = read(&folder.data()).expect_err("one row less");
            assert!(matches!(fault.problem, Problem::Damaged { .. }), "{fault}");
            found += 1;
        }
    }
    assert!(found > 5, "{found} pages");
}

/// "We gave up what could not be read any more, as the page for operators says, and played on with the rest."
#[tokio::test]
async fn a_write_ahead_log_that_is_cut_where_it_is_damaged_gives_what_was_before() {
    let (scene, folder) = (scene(false).await, Folder::new());
    for frame in [3, 11, 20] {
        let at = WAL_HEADER + frame * FRAME;
        let damage = Damage::Flip(In::Wal, at + 1_000, 4);
        folder.put(&damage.done_to(&scene.left), false);
        let fault = read(&folder.data()).expect_err("damaged");
        assert!(fault.to_string().contains(&format!("games.db-wal is damaged: byte {at}:")), "{fault}");
        folder.put(&Damage::Cut(In::Wal, at).done_to(&scene.left), false);
        for ((id, before), (whole_id, whole)) in read(&folder.data()).expect("whole again").iter().zip(&scene.states[1])
        {
            assert!(id == whole_id && whole.starts_with(before));
        }
    }
}

/// "A sector had rotted somewhere; the server said where, or nothing was lost."
#[tokio::test]
async fn damage_anywhere_else_is_found_or_does_no_harm() {
    let scene = scene(false).await;
    let (data, wal) = (scene.left.data.len(), scene.left.wal.len());
    let mut dice = Dice(11);
    let random = |dice: &mut Dice, file: In, below: usize| match dice.roll(4) {
        0 => Damage::Blank(file, dice.roll(below)),
        1 => Damage::Flip(file, dice.roll(below), 0xff),
        _ => Damage::Flip(file, dice.roll(below), 1 << dice.roll(8)),
    };
    // Everything that steers the readers: the headers of both files, and of each frame.
    let mut in_wal: Vec<Damage> = (0..WAL_HEADER).map(|at| Damage::Flip(In::Wal, at, 1 << (at % 8))).collect();
    for frame in (WAL_HEADER..scene.last).step_by(FRAME) {
        in_wal.extend((frame..frame + 24).map(|at| Damage::Flip(In::Wal, at, 1 << dice.roll(8))));
    }
    in_wal.extend((0..damages()).map(|_| random(&mut dice, In::Wal, scene.last)));
    let mut in_data: Vec<Damage> =
        (0..100).flat_map(|at| (0..8).map(move |bit| Damage::Flip(In::Data, at, 1 << bit))).collect();
    in_data.extend((0..damages()).map(|_| random(&mut dice, In::Data, data)));
    in_data.extend((0..damages() / 10).map(|_| Damage::Cut(In::Data, dice.roll(data))));
    for with_lock in [false, true] {
        let tally = scene.tally(&in_wal, with_lock);
        println!("elsewhere in the write-ahead log, lock file {with_lock}: {tally:?}");
        assert!(!tally.contains_key(&Came::WithoutTheLast), "{tally:?}");
        let tally = scene.tally(&in_data, with_lock);
        println!("in the data file, lock file {with_lock}: {tally:?}");
        assert!(tally[&Came::Refused] > in_data.len() / 10, "{tally:?}");
        assert!(!tally.contains_key(&Came::WithoutTheLast), "{tally:?}");
    }
    // A write-ahead log that ends early looks like one that is whole; the lock file knows better.
    let cuts: Vec<Damage> = (0..damages() / 10).map(|_| Damage::Cut(In::Wal, dice.roll(wal))).collect();
    let tally = scene.tally(&cuts, true);
    assert!(tally.keys().all(|came| *came == Came::Refused), "{tally:?}");
}
