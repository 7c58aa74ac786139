//! The second judge against the handed data: whatever the data say, it must say too.

mod second_judge;

use second_judge::{Game, Switches, Verdict, is_square};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

/// A file of the handed data.
fn handed(file: &str) -> String {
    let path = format!("{}/tests/data/{file}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&path).expect("the handed data are there")
}

/// The rows of a table, without the comments and the line of names.
fn rows(file: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut names_read = false;
    for line in handed(file).lines() {
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        if names_read {
            rows.push(line.split('\t').map(str::to_string).collect());
        }
        names_read = true;
    }
    rows
}

/// The lines of a file of records.
fn records(file: &str) -> Vec<Value> {
    handed(file).lines().map(|line| serde_json::from_str(line).expect("a line is a record")).collect()
}

/// The switches of moves.tsv and perft.tsv.
fn switches_of_the_tables() -> Switches {
    let mut switches = Switches::preset("folk");
    switches.ladder = "WOLF_OVER_DOG".to_string();
    switches
}

/// The switches of a record. Where it names a preset, they must be that preset's.
fn switches_of(record: &Value) -> Switches {
    let given = record["switches"].as_object().expect("switches");
    assert_eq!(given.len(), 11, "a record carries all switches");
    let word = |name: &str| given[name].as_str().expect("a word").to_string();
    let on = |name: &str| given[name].as_bool().expect("yes or no");
    let number = |name: &str| -> u32 {
        let number = given[name].as_u64().expect("a number");
        number.try_into().expect("a small number")
    };
    let switches = Switches {
        ladder: word("ladder"),
        rats_capture_across_bank: on("rats_capture_across_bank"),
        jump_blockers: word("jump_blockers"),
        tiger_jump: word("tiger_jump"),
        trapped_may_capture: on("trapped_may_capture"),
        agreed_draw: on("agreed_draw"),
        timeouts_to_lose: number("timeouts_to_lose"),
        no_capture_rounds: number("no_capture_rounds"),
        short_game_rounds: number("short_game_rounds"),
        seven_three: on("seven_three"),
        seventeen_five: on("seventeen_five"),
    };
    if let Some(preset) = record["ruleset"].as_str() {
        assert_eq!(switches, Switches::preset(preset), "{preset}");
    }
    switches
}

/// Checks what is legal, barred, waived and refused in a position against a record of it.
fn check_turn(game: &Game, record: &Value, place: &str) -> usize {
    let legal: Vec<String> = record["legal"]
        .as_array()
        .expect("legal moves")
        .iter()
        .map(|the_move| the_move.as_str().expect("a move").to_string())
        .collect();
    assert_eq!(game.legal(), legal, "{place}: legal");

    let mut barred = BTreeMap::new();
    for (the_move, rule) in record["barred"].as_object().expect("barred moves") {
        barred.insert(the_move.clone(), rule.as_str().expect("a rule").to_string());
    }
    let barred: Vec<(String, String)> = barred.into_iter().collect();
    assert_eq!(game.barred(), barred, "{place}: barred");
    for (the_move, bar) in &barred {
        let verdict = game.verdict(&the_move[0..2], &the_move[2..4]);
        let Verdict::Refused { rule, .. } = verdict else {
            panic!("{place}: {the_move} is allowed");
        };
        assert_eq!(&rule, bar, "{place}: {the_move}");
    }

    let waived = record["waived"].as_bool().expect("waived or not");
    assert_eq!(game.waived(), waived, "{place}: waived");

    if game.end().is_none() {
        for the_move in &legal {
            let verdict = game.verdict(&the_move[0..2], &the_move[2..4]);
            let takes = game.animal_on(&the_move[2..4]);
            assert_eq!(verdict, Verdict::Allowed { takes, waived }, "{place}: {the_move}");
        }
    }

    let mut refusals = 0;
    let Some(refused) = record.get("refused") else {
        return refusals;
    };
    for (the_move, refusal) in refused.as_object().expect("refused moves") {
        let verdict = game.verdict(&the_move[0..2], &the_move[2..4]);
        let Verdict::Refused { rule, squares, .. } = verdict else {
            panic!("{place}: {the_move} is allowed");
        };
        let expected: Vec<&str> = refusal["squares"]
            .as_array()
            .expect("squares")
            .iter()
            .map(|square| square.as_str().expect("a square"))
            .collect();
        assert_eq!(rule, refusal["rule"].as_str().expect("a rule"), "{place}: {the_move}");
        assert_eq!(squares, expected, "{place}: {the_move}");
        refusals += 1;
    }
    refusals
}

/// Checks how a game ended, or that it runs, against a record of it.
fn check_outcome(game: &Game, outcome: &Value, place: &str) {
    if outcome.is_null() {
        assert_eq!(game.end(), None, "{place}: still running");
        return;
    }
    let end = game.end().expect("an end");
    let winner = match outcome["winner"].as_str() {
        None => None,
        Some("red") => Some('r'),
        Some("blue") => Some('b'),
        Some(other) => panic!("{place}: no side {other}"),
    };
    assert_eq!(end.winner, winner, "{place}: winner");
    assert_eq!(Some(end.reason.as_str()), outcome["reason"].as_str(), "{place}: reason");
    assert_eq!(Some(end.scored), outcome["scored"].as_bool(), "{place}: scored");
    assert_eq!(
        Some(f64::from(end.red_half_points)),
        outcome["red"].as_f64().map(|points| points * 2.0),
        "{place}: red's points"
    );
    assert_eq!(
        Some(f64::from(end.blue_half_points)),
        outcome["blue"].as_f64().map(|points| points * 2.0),
        "{place}: blue's points"
    );
}

#[test]
fn the_second_judge_gives_the_handed_verdict_on_every_handed_move() {
    let switches = switches_of_the_tables();
    let mut checked = 0;
    for row in rows("moves.tsv") {
        let (id, position, the_move) = (&row[0], &row[1], &row[2]);
        let (verdict, rule, squares) = (row[3].as_str(), &row[4], &row[5]);
        checked += 1;
        let mut game = Game::set_up(position, &switches).expect(id);
        let (from, to) = the_move.split_at(2);
        if verdict == "malformed" {
            assert!(!is_square(from) || !is_square(to), "{id}");
            continue;
        }
        match game.verdict(from, to) {
            Verdict::Refused { rule: named, squares: shown, .. } => {
                assert_eq!(verdict, "illegal", "{id}: refused by {named}");
                assert_eq!(&named, rule, "{id}");
                assert_eq!(&shown.join(" "), squares, "{id}");
            }
            Verdict::Allowed { .. } => {
                let said = match game.play(from, to) {
                    None => "legal".to_string(),
                    Some(end) => {
                        let winner = match end.winner {
                            Some('r') => "RED",
                            Some(_) => "BLUE",
                            None => "NOBODY",
                        };
                        format!("{winner}_{}", end.reason)
                    }
                };
                assert_eq!(said, verdict, "{id}");
            }
        }
    }
    println!("{checked} verdicts");
    assert_eq!(checked, 58);
}

#[test]
fn the_second_judge_sets_up_and_refuses_the_handed_texts_for_the_handed_reasons() {
    let mut checked = 0;
    for row in rows("setup.tsv") {
        let said = match Game::set_up(&row[1], &Switches::preset(&row[0])) {
            Ok(game) => {
                assert_eq!(game.text(), row[1], "a text is written as it was read");
                "ok".to_string()
            }
            Err(reason) => format!("refused {reason}"),
        };
        assert_eq!(said, row[2..].join(" "), "{}", row[1]);
        checked += 1;
    }
    println!("{checked} set-up texts");
    assert_eq!(checked, 13);
}

/// The leaves of the move tree. The bars are off and the quiet count is out of reach.
fn leaves(game: &Game, depth: usize) -> u64 {
    let mut count = 0;
    for the_move in game.legal() {
        if depth == 1 {
            count += 1;
        } else {
            let mut next = game.clone();
            next.play(&the_move[0..2], &the_move[2..4]);
            count += leaves(&next, depth - 1);
        }
    }
    count
}

#[test]
fn the_second_judge_counts_the_handed_leaves_of_the_move_tree() {
    let mut switches = switches_of_the_tables();
    // "The quiet count plays no part": it cannot be reached at these depths.
    switches.no_capture_rounds = 500;
    let mut checked = 0;
    let mut numbers = 0;
    for row in rows("perft.tsv") {
        let game = Game::set_up(&row[1], &switches).expect(&row[0]);
        for depth in 1..=6 {
            let expected: u64 = row[depth + 1].parse().expect("a number");
            // Deeper than 3 only where the slow judge is quick enough.
            if depth > 3 && expected > 300_000 {
                continue;
            }
            assert_eq!(leaves(&game, depth), expected, "{} to {depth}", row[0]);
            numbers += 1;
        }
        checked += 1;
    }
    println!("{checked} positions, {numbers} numbers of leaves");
    assert_eq!(checked, 8);
}

#[test]
fn all_presets_have_the_same_tree_from_the_start_to_depth_three() {
    let mut checked = 0;
    for preset in ["yeshou", "datou", "folk", "folk-fox"] {
        let wolves = if preset == "folk-fox" {
            "l5t/1d3c1/r1p1f1e/7/7/7/E1F1P1R/1C3D1/T5L r 0 1"
        } else {
            "l5t/1d3c1/r1p1w1e/7/7/7/E1W1P1R/1C3D1/T5L r 0 1"
        };
        let game = Game::set_up(wolves, &Switches::preset(preset)).expect(preset);
        assert_eq!(leaves(&game, 1), 24, "{preset}");
        assert_eq!(leaves(&game, 2), 576, "{preset}");
        assert_eq!(leaves(&game, 3), 12_240, "{preset}");
        checked += 1;
    }
    println!("{checked} presets");
    assert_eq!(checked, 4);
}

#[test]
fn the_second_judge_ends_every_handed_scene_as_the_scene_says() {
    let mut checked = 0;
    let mut refusals = 0;
    for scene in records("scenes.jsonl") {
        let title = scene["name"].as_str().expect("a name");
        let start = scene["start"].as_str().expect("a start");
        let mut game = Game::set_up(start, &switches_of(&scene)).expect(title);
        for the_move in scene["moves"].as_array().expect("moves") {
            let the_move = the_move.as_str().expect("a move");
            game.play(&the_move[0..2], &the_move[2..4]);
        }
        refusals += check_turn(&game, &scene, title);
        check_outcome(&game, &scene["outcome"], title);
        checked += 1;
    }
    println!("{checked} scenes, {refusals} refusals");
    assert_eq!(checked, 35);
}

#[test]
fn the_second_judge_replays_every_handed_game_turn_by_turn() {
    let mut checked = 0;
    let mut turns = 0;
    let mut refusals = 0;
    for record in records("games.jsonl") {
        let start = record["start"].as_str().expect("a start");
        let mut game = Game::set_up(start, &switches_of(&record)).expect(start);
        for ply in record["plies"].as_array().expect("plies") {
            let place = format!("game {checked}, ply {}", game.ply());
            refusals += check_turn(&game, ply, &place);
            let the_move = ply["move"].as_str().expect("a move");
            game.play(&the_move[0..2], &the_move[2..4]);
            turns += 1;
        }
        let place = format!("game {checked}, its end");
        assert_eq!(Some(game.text().as_str()), record["end"].as_str(), "{place}");
        check_outcome(&game, &record["outcome"], &place);
        checked += 1;
    }
    println!("{checked} games, {turns} turns, {refusals} refusals");
    assert_eq!(checked, 40);
}

#[test]
fn a_seven_three_refusal_shows_the_plies_that_ended_on_the_square() {
    let start = "6e/d6/1W5/7/7/7/7/7/6T r 0 1";
    let mut game = Game::set_up(start, &Switches::preset("yeshou")).expect(start);
    for _ in 0..4 {
        for the_move in ["b7b8", "a8a7", "b8b7", "a7a8"] {
            if game.ply() < 14 {
                game.play(&the_move[0..2], &the_move[2..4]);
            }
        }
    }
    assert_eq!(
        game.verdict("b8", "b7"),
        Verdict::Refused { rule: "SEVEN_THREE".to_string(), squares: vec!["b7".to_string()], plies: vec![2, 6, 10] }
    );
}

#[test]
fn the_reasons_against_a_set_up_are_named_in_their_order() {
    let yeshou = Switches::preset("yeshou");
    let mut checked = 0;
    for (text, reason) in [
        // One more mistake is mended from row to row.
        ("7/7/7/1l5/7/7/7/7/1ll1l2 r 200 1x", "form"),
        ("3l3/7/7/1l5/7/7/7/7/7 r 200 1", "animal twice"),
        ("3l3/7/7/1e5/7/7/7/7/7 r 200 1", "no animal"),
        ("3l3/7/7/1e5/7/7/7/7/6C r 200 1", "land animal in the river"),
        ("3l3/7/7/e6/7/7/7/7/6C r 200 1", "animal in a den"),
        ("7/7/7/7/7/7/7/6e/5lC r 200 1", "quiet plies at the draw"),
        ("7/7/7/7/7/7/7/6e/5lC r 199 1", "no move"),
        // A fox is of another ladder; a count too long to hold is still of the form.
        ("f6/7/7/7/7/7/7/7/6E r 0 1", "form"),
        ("e6/7/7/7/7/7/7/7/6E r 99999999999999999999 1", "quiet plies at the draw"),
        ("e6/7/7/7/7/7/7/7/6E r 0 10000", "form"),
        ("e6/7/7/7/7/7/7/7/6E  r 0 1", "form"),
        ("e6/7/7/7/7/7/7/7/6E r 0 1 ", "form"),
        ("e6/7/7/7/7/7/7/7/6E r 00 1", "form"),
        ("e6/7/7/7/7/7/7/7/6E r +0 1", "form"),
    ] {
        let refused = Game::set_up(text, &yeshou).err();
        assert_eq!(refused, Some(reason), "{text}");
        checked += 1;
    }
    println!("{checked} set-up texts");
    assert_eq!(checked, 14);
}
