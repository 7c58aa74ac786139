//! Counting the move tree: the check values of section 8.

use jungle_referee::rules::{Ladder, PRESETS, Position, Ruleset, perft};

/// The switches of `perft.tsv` and `moves.tsv`.
const SWITCHES: Ruleset = Ruleset { ladder: Ladder::WolfOverDog, ..Ruleset::FOLK };

#[track_caller]
fn check(name: &str, text: &str, ruleset: &Ruleset, leaves: &[u64]) {
    let position = Position::read(text).expect("a position of the table");
    for (depth, expected) in (1..).zip(leaves) {
        let found = perft(&position, ruleset, depth);
        assert_eq!(found, *expected, "{name} at depth {depth}");
    }
}

#[test]
fn every_tree_of_the_table_has_its_leaves_to_depth_5() {
    let mut rows = 0;
    for row in include_str!("data/perft.tsv").lines().skip(2) {
        let cells: Vec<&str> = row.split('\t').collect();
        let leaves: Vec<u64> = cells[2..7].iter().flat_map(|n| n.parse()).collect();
        assert_eq!(leaves.len(), 5, "{row}");
        check(cells[0], cells[1], &SWITCHES, &leaves);
        rows += 1;
    }
    assert_eq!(rows, 8);
}

#[test]
fn the_small_trees_have_their_leaves_at_depth_6_too() {
    for row in include_str!("data/perft.tsv").lines().skip(3) {
        let cells: Vec<&str> = row.split('\t').collect();
        let position = Position::read(cells[1]).expect("a position of the table");
        let expected = cells[7].parse::<u64>().expect("a number");
        assert_eq!(perft(&position, &SWITCHES, 6), expected, "{}", cells[0]);
    }
}

#[test]
fn the_opening_tree_is_the_same_for_all_four_presets() {
    for preset in &PRESETS {
        let start = Position::start(&preset.ruleset).to_string();
        let leaves = [24, 576, 12_240, 260_099, 5_111_620];
        check(preset.name, &start, &preset.ruleset, &leaves);
    }
}

#[test]
fn the_opening_tree_has_its_leaves_at_depth_6() {
    let start = Position::start(&SWITCHES);
    #[expect(clippy::disallowed_methods, reason = "speed is printed, never asserted")]
    let began = std::time::Instant::now();
    let leaves = perft(&start, &SWITCHES, 6);
    let millions = 1e-6 * 100_453_636.0 / began.elapsed().as_secs_f64();
    println!("{leaves} leaves, {millions:.1} million a second");
    assert_eq!(leaves, 100_453_636);
}
