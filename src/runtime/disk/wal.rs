//! Whether SQLite's write-ahead log can be believed, asked before SQLite reads it.
//!
//! SQLite stops at the first frame that it cannot believe, and drops all that come after it without a
//! word. That is right for the last transaction, which a crash may have torn. If more was committed
//! after the bad frame, acknowledged events are at stake, and that is for the operator to decide.
//! The form of the file: <https://sqlite.org/fileformat2.html#walformat>.

use std::io::{self, Read};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
const MAGIC: u32 = 0x377f_0682;
const VERSION: u32 = 3_007_000;

/// A frame, or the header, that cannot be what was written, although more was committed after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WalDamage {
    /// The first byte of the frame, from 0; 0 for the header.
    pub(super) byte: u64,
}

type Sum = (u32, u32);

/// Whose a frame is, by the salts that it carries: each time the log begins anew, it has others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    This,
    /// Left over from before the log began anew: the first salt was a smaller number then, the second any other.
    Earlier,
    /// Nobody's.
    Unreadable,
}

/// The first frame that is not what was written, and what comes after it.
struct Bad {
    byte: u64,
    run: Run,
    is_commit: bool,
    of_this_run_after: u64,
    unreadable_after: u64,
    commits_after: u64,
}

impl Bad {
    /// Whether more was committed after the bad frame, or may have been.
    fn is_damage(&self) -> bool {
        match self.run {
            // A transaction begins when the one before it is safe: nothing comes after a commit that is not.
            Run::This if self.is_commit => self.of_this_run_after + self.unreadable_after > 0,
            // Torn within the last transaction, if that is the only one after it.
            Run::This | Run::Earlier => self.commits_after > 1,
            // A commit or not, nobody can tell any more.
            Run::Unreadable => self.of_this_run_after > 0,
        }
    }
}

/// Reads a write-ahead log. `Ok(Ok(()))`: of what was committed, SQLite will read all but perhaps the
/// last transaction.
pub(super) fn check(wal: &mut impl Read) -> io::Result<Result<(), WalDamage>> {
    let mut header = [0; HEADER];
    if !fill(wal, &mut header)? {
        // Torn while it was made: nothing was committed yet.
        return Ok(Ok(()));
    }
    let big_endian = word(&header, 0) & 1 == 1;
    let page = word(&header, 8);
    let mut sum = (word(&header, 24), word(&header, 28));
    let is_header = word(&header, 0) & !1 == MAGIC
        && word(&header, 4) == VERSION
        && page.is_power_of_two()
        && (512..=65_536).contains(&page)
        && checksum(big_endian, (0, 0), &header[..24]) == sum;
    if !is_header {
        return Ok(Err(WalDamage { byte: 0 }));
    }
    let mut frame = vec![0; FRAME_HEADER + usize::try_from(page).unwrap_or(HEADER)];
    let (mut bad, mut byte) = (None::<Bad>, 32);
    while fill(wal, &mut frame)? {
        let run = run_of(&header, &frame);
        let commits = word(&frame, 4) != 0;
        let stored = (word(&frame, 16), word(&frame, 20));
        match &mut bad {
            None if run == Run::This && frame_sum(big_endian, sum, &frame) == stored => sum = stored,
            None => {
                let is_commit = commits || had_commit(big_endian, sum, &mut frame);
                bad = Some(Bad { byte, run, is_commit, of_this_run_after: 0, unreadable_after: 0, commits_after: 0 });
            }
            Some(bad) => {
                bad.of_this_run_after += u64::from(run == Run::This);
                bad.unreadable_after += u64::from(run == Run::Unreadable);
                bad.commits_after += u64::from(run == Run::This && commits);
            }
        }
        byte += frame.len() as u64;
    }
    let lost = bad.filter(Bad::is_damage);
    Ok(lost.map_or(Ok(()), |bad| Err(WalDamage { byte: bad.byte })))
}

fn run_of(header: &[u8; HEADER], frame: &[u8]) -> Run {
    let (first, second) = ((word(header, 16), word(frame, 8)), (word(header, 20), word(frame, 12)));
    if first.0 == first.1 && second.0 == second.1 {
        Run::This
    } else if (1..=u32::from(u16::MAX)).contains(&first.0.wrapping_sub(first.1)) && second.0 != second.1 {
        Run::Earlier
    } else {
        Run::Unreadable
    }
}

fn frame_sum(big_endian: bool, before: Sum, frame: &[u8]) -> Sum {
    checksum(big_endian, checksum(big_endian, before, &frame[..8]), &frame[FRAME_HEADER..])
}

/// Whether the frame is whole but for one byte of its commit field: then it was a commit.
fn had_commit(big_endian: bool, before: Sum, frame: &mut [u8]) -> bool {
    let stored = (word(frame, 16), word(frame, 20));
    for place in 4..8 {
        let found = frame[place];
        for other in 0..=u8::MAX {
            frame[place] = other;
            if frame_sum(big_endian, before, frame) == stored {
                return true;
            }
        }
        frame[place] = found;
    }
    false
}

/// Fills the buffer; false at the end of the file, also if part of it could be filled.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |word, byte| word << 8 | u32::from(*byte))
}

fn checksum(big_endian: bool, (mut first, mut second): Sum, bytes: &[u8]) -> Sum {
    let number = |bytes: &[u8]| if big_endian { word(bytes, 0) } else { word(bytes, 0).swap_bytes() };
    for pair in bytes.chunks_exact(8) {
        first = first.wrapping_add(number(&pair[..4])).wrapping_add(second);
        second = second.wrapping_add(number(&pair[4..])).wrapping_add(first);
    }
    (first, second)
}
