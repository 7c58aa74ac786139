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

/// What a frame's header says, and whether its content agrees.
struct Frame {
    this_run: bool,
    /// The size of the database after the commit, in pages; 0 if the frame commits nothing.
    commit: u32,
    stored: Sum,
    /// The sum over its content, from the stored sum of the frame before, or from the right one.
    sums: [Sum; 2],
}

impl Frame {
    fn is_whole(&self) -> bool {
        self.sums.contains(&self.stored)
    }
}

/// The first frame that is not whole, and what comes after it.
struct Bad {
    byte: u64,
    is_commit: bool,
    whole_after: u64,
    commits_after: u64,
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
    let stored = (word(&header, 24), word(&header, 28));
    let is_header = word(&header, 0) & !1 == MAGIC
        && word(&header, 4) == VERSION
        && page.is_power_of_two()
        && (512..=65_536).contains(&page)
        && checksum(big_endian, (0, 0), &header[..24]) == stored;
    if !is_header {
        return Ok(Err(WalDamage { byte: 0 }));
    }
    let mut bytes = vec![0; FRAME_HEADER + usize::try_from(page).unwrap_or(HEADER)];
    let (mut before, mut bad, mut byte) = ([stored; 2], None::<Bad>, 32);
    while fill(wal, &mut bytes)? {
        let frame = frame(big_endian, &header, before, &bytes);
        let good = frame.this_run && frame.is_whole();
        match &mut bad {
            None if good => {}
            // Whole, but of another run: no torn write looks like that.
            None if frame.is_whole() => return Ok(Err(WalDamage { byte })),
            None => {
                let is_commit = frame.this_run && (frame.commit != 0 || had_commit(big_endian, before, &mut bytes));
                bad = Some(Bad { byte, is_commit, whole_after: 0, commits_after: 0 });
            }
            Some(bad) => {
                bad.whole_after += u64::from(good);
                bad.commits_after += u64::from(good && frame.commit != 0);
            }
        }
        before = [frame.stored, frame.sums[0]];
        byte += bytes.len() as u64;
    }
    // A transaction begins when the one before it is safe. So a bad commit with anything after it, or two
    // commits after a bad frame, mean that a transaction which was safe is not.
    let lost = bad.filter(|bad| bad.commits_after >= 2 || bad.is_commit && bad.whole_after >= 1);
    Ok(lost.map_or(Ok(()), |bad| Err(WalDamage { byte: bad.byte })))
}

fn frame(big_endian: bool, header: &[u8; HEADER], before: [Sum; 2], bytes: &[u8]) -> Frame {
    Frame {
        this_run: bytes[8..16] == header[16..24],
        commit: word(bytes, 4),
        stored: (word(bytes, 16), word(bytes, 20)),
        sums: before.map(|before| frame_sum(big_endian, before, bytes)),
    }
}

fn frame_sum(big_endian: bool, before: Sum, bytes: &[u8]) -> Sum {
    checksum(big_endian, checksum(big_endian, before, &bytes[..8]), &bytes[FRAME_HEADER..])
}

/// Whether the frame is whole but for one byte of its commit field: it was a commit.
fn had_commit(big_endian: bool, before: [Sum; 2], bytes: &mut [u8]) -> bool {
    let stored = (word(bytes, 16), word(bytes, 20));
    for place in 4..8 {
        let found = bytes[place];
        for other in 0..=u8::MAX {
            bytes[place] = other;
            if frame_sum(big_endian, before[0], bytes) == stored {
                return true;
            }
        }
        bytes[place] = found;
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
