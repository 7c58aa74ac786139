//! The promises of `fuzz/`, kept without a fuzzer: for its seeds, for all that it ever found, and for both with a
//! few bytes spoilt.

#[path = "../fuzz/src/lib.rs"]
#[allow(unreachable_pub, reason = "a library there, a module here")]
mod targets;

use std::fs;
use std::path::Path;

use targets::support::Dice;

/// How often each seed is spoilt.
const SPOILT: usize = 200;

/// What must hold for any bytes.
fn check(name: &str, target: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(name);
    let mut paths: Vec<_> =
        fs::read_dir(&folder).expect("a folder of seeds").map(|entry| entry.expect("a seed").path()).collect();
    assert!(paths.len() > 5, "{name} has seeds");
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).expect("a seed")).collect();
    let mut dice = Dice(4);
    for seed in &seeds {
        target(seed);
        for _ in 0..SPOILT {
            let other = dice.roll(seeds.len());
            target(&spoilt(seed, &seeds[other], &mut dice));
        }
    }
}

/// A seed with bytes changed, cut out, doubled, or with the end of another.
fn spoilt(seed: &[u8], other: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=dice.roll(4) {
        let (one, two) = (dice.roll(bytes.len()), dice.roll(bytes.len() + 1));
        let (from, to) = (one.min(two), one.max(two));
        match dice.roll(5) {
            0 if !bytes.is_empty() => bytes[one] ^= 1 << dice.roll(8),
            1 if !bytes.is_empty() => bytes[one] = dice.pick(&[0, 1, 0x7f, 0x80, 0xff, b' ', b'/', b'9']),
            2 => drop(bytes.drain(from..to)),
            3 => bytes.extend_from_within(from..to),
            _ => {
                bytes.truncate(from);
                bytes.extend_from_slice(&other[dice.roll(other.len())..]);
            }
        }
    }
    bytes
}

#[test]
fn any_position_text_is_refused_or_read_as_it_was_written() {
    check("position_text", targets::position_text);
}

#[test]
fn any_line_is_answered_with_its_mistake_or_with_a_list_that_can_be_relied_on() {
    check("line_door", targets::line_door);
}

#[test]
fn stored_bytes_are_an_event_that_is_written_the_same_again_or_are_refused() {
    check("stored_event", targets::stored_event);
}

#[test]
fn any_commands_at_any_times_make_a_game_that_tells_its_story_and_ends() {
    check("game_commands", targets::game_commands);
}
