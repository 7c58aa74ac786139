//! A position text, at both of its doors.

use std::str;

use jungle_referee::rules::{Line, Move, PRESETS, Position, Square};

/// The first byte picks a preset, the rest is the text. A text is refused, or read as it was written; what a
/// game may start from is a position that has somebody to move, and whose list of moves is the judge's.
pub fn position_text(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else { return };
    let Ok(text) = str::from_utf8(text) else { return };
    let ruleset = PRESETS[usize::from(*choice) % PRESETS.len()].ruleset;
    let read = Position::read(text);
    if let Ok(position) = &read {
        reads_back(position, text);
    }
    match Position::set_up(text, &ruleset) {
        Ok(position) => {
            assert_eq!(Ok(position), read, "both doors read the same");
            assert!(!position.is_finished(), "no game starts at its end");
            lists_what_it_judges(&Line::new(position, ruleset));
        }
        Err(refused) => assert!(!refused.to_string().is_empty(), "a refusal says why"),
    }
}

/// One position has one text; only a count of quiet plies beyond `u32` is read as the largest.
fn reads_back(position: &Position, text: &str) {
    if position.quiet_plies() < u32::MAX {
        assert_eq!(position.to_string(), text);
    }
    assert_eq!(Position::read(&position.to_string()).as_ref(), Ok(position));
    assert_eq!(position.turned().turned(), *position);
}

/// Of all pairs of squares, those are listed that the judge allows.
fn lists_what_it_judges(line: &Line) {
    let pairs = Square::ALL.into_iter().flat_map(|from| Square::ALL.map(|to| Move { from, to }));
    let allowed: Vec<Move> = pairs.filter(|mv| line.judge(*mv).is_ok()).collect();
    let listed: Vec<Move> = line.legal_moves().moves.iter().map(|legal| legal.mv).collect();
    assert_eq!(listed, allowed);
    assert!(!listed.is_empty(), "a game starts with a move to make");
}
