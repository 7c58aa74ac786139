//! The handed tables: single verdicts, set-up texts, scenes and whole games.

mod support;

use std::collections::BTreeMap;

use jungle_referee::rules::{Ladder, Line, Outcome, Position, Preset, Reason, Ruleset, SetupError, Side, Violation};
use serde_json::Value;
use support::{mv, names, ruleset_of, texts};

#[test]
fn every_verdict_of_the_table_is_given_with_its_rule_and_squares() {
    let mut rows = 0;
    for row in include_str!("data/moves.tsv").lines().skip(3) {
        let cells: Vec<&str> = row.split('\t').collect();
        let &[_, position, mv, verdict, rule, squares, _] = cells.as_slice() else {
            panic!("{row}");
        };
        check_verdict(position, mv, [verdict, rule, squares], row);
        rows += 1;
    }
    assert_eq!(rows, 58);
}

#[track_caller]
fn check_verdict(position: &str, mv: &str, expected: [&str; 3], row: &str) {
    let ruleset = Ruleset { ladder: Ladder::WolfOverDog, ..Ruleset::FOLK };
    let position = Position::read(position).expect(row);
    let mut line = Line::new(position, ruleset);
    let Ok(mv) = mv.parse() else {
        return assert_eq!(expected, ["malformed", "", ""], "{row}");
    };
    match line.judge(mv) {
        Err(violation) => {
            let squares = names(violation.squares()).join(" ");
            let rule = violation.rule().id();
            assert_eq!(expected, ["illegal", rule, &squares], "{row}");
        }
        Ok(_) => {
            let mover = line.position().side_to_move();
            line.advance(mv);
            let verdict = match line.ending(mover) {
                Some((Some(winner), reason)) => {
                    format!("{}_{}", winner.to_string().to_uppercase(), reason.id())
                }
                Some((None, reason)) => reason.id().to_owned(),
                None => "legal".to_owned(),
            };
            assert_eq!(expected, [&verdict, "", ""], "{row}");
        }
    }
}

#[test]
fn every_text_of_the_table_is_set_up_or_refused_for_its_reason() {
    let mut rows = 0;
    for row in include_str!("data/setup.tsv").lines().skip(2) {
        let cells: Vec<&str> = row.split('\t').collect();
        let ruleset = Preset::find(cells[0]).expect(row).ruleset;
        let found = match Position::set_up(cells[1], &ruleset) {
            Ok(position) => {
                assert_eq!(position.to_string(), cells[1]);
                ["ok", ""]
            }
            Err(error) => ["refused", words(&error)],
        };
        assert_eq!(found, [cells[2], cells.get(3).copied().unwrap_or("")], "{row}");
        rows += 1;
    }
    assert_eq!(rows, 13);
}

/// The table's words for a reason.
fn words(error: &SetupError) -> &'static str {
    match error {
        SetupError::Form(_) | SetupError::ForeignLetter { .. } => "form",
        SetupError::Twice { .. } => "animal twice",
        SetupError::NoAnimals { .. } => "no animal",
        SetupError::InRiver { .. } => "land animal in the river",
        SetupError::InDen { .. } => "animal in a den",
        SetupError::QuietPlies { .. } => "quiet plies at the draw",
        SetupError::NoMove { .. } => "no move",
    }
}

#[test]
fn every_scene_ends_as_it_is_told() {
    let scenes = include_str!("data/scenes.jsonl").lines();
    let mut count = 0;
    for scene in scenes {
        let scene: Value = serde_json::from_str(scene).expect("a scene");
        let name = scene["name"].as_str().expect("a name");
        let mut game = Game::new(&scene);
        for mv in texts(&scene["moves"]) {
            game.play(mv, name);
        }
        if game.ending.is_none() {
            check_turn(&game.line, &scene, name);
        }
        game.check_outcome(&scene, name);
        count += 1;
    }
    assert_eq!(count, 35);
}

#[test]
fn every_game_goes_as_it_is_told() {
    let (mut games, mut plies) = (0, 0);
    for game in include_str!("data/games.jsonl").lines() {
        let told: Value = serde_json::from_str(game).expect("a game");
        let mut game = Game::new(&told);
        games += 1;
        for ply in told["plies"].as_array().expect("a list") {
            let name = format!("game {games}, ply {}", game.line.ply());
            check_turn(&game.line, ply, &name);
            game.play(ply["move"].as_str().expect("a move"), &name);
            plies += 1;
        }
        let name = format!("game {games}");
        let end = told["end"].as_str().expect("a position");
        assert_eq!(game.line.position().to_string(), end, "{name}");
        assert_eq!(Position::read(end).as_ref(), Ok(game.line.position()));
        game.check_outcome(&told, &name);
    }
    assert_eq!(games, 40);
    assert!(plies > 2000, "{plies}");
}

struct Game {
    line: Line,
    ending: Option<(Option<Side>, Reason)>,
}

impl Game {
    #[track_caller]
    fn new(told: &Value) -> Game {
        let ruleset = ruleset_of(told);
        let start = told["start"].as_str().expect("a position");
        let start = Position::set_up(start, &ruleset).expect(start);
        Game { line: Line::new(start, ruleset), ending: None }
    }

    #[track_caller]
    fn play(&mut self, text: &str, name: &str) {
        assert_eq!(self.ending, None, "{name}: over before {text}");
        let mover = self.line.position().side_to_move();
        let allowed = self.line.judge(mv(text));
        let allowed = allowed.unwrap_or_else(|e| panic!("{name}: {text}: {e}"));
        assert_eq!(self.line.advance(mv(text)), allowed.captured);
        self.ending = self.line.ending(mover);
    }

    #[track_caller]
    fn check_outcome(&self, told: &Value, name: &str) {
        let told = &told["outcome"];
        let Some((winner, reason)) = self.ending else {
            return assert!(told.is_null(), "{name}: still running");
        };
        let outcome = Outcome::new(winner, reason, self.line.ply(), self.line.ruleset(), false);
        let side = outcome.winner.map(|side| side.to_string().to_lowercase());
        assert_eq!(side.as_deref(), told["winner"].as_str(), "{name}");
        assert_eq!(Some(reason.id()), told["reason"].as_str(), "{name}");
        assert_eq!(Some(outcome.scored), told["scored"].as_bool(), "{name}");
        let (red, blue) = outcome.points();
        let halves = |side: &str| told[side].as_f64().map(|points| points * 2.0);
        assert_eq!(Some(f64::from(red)), halves("red"), "{name}");
        assert_eq!(Some(f64::from(blue)), halves("blue"), "{name}");
    }
}

/// What is told of one turn: the list, what is barred, the waiver, and single refusals.
#[track_caller]
fn check_turn(line: &Line, told: &Value, name: &str) {
    let legal = line.legal_moves();
    let moves = names(legal.moves.iter().map(|m| m.mv));
    assert_eq!(moves, texts(&told["legal"]), "{name}: legal");
    assert_eq!(Some(legal.waived), told["waived"].as_bool(), "{name}: waived");
    let barred: BTreeMap<String, Violation> =
        line.barred().into_iter().map(|(mv, violation)| (mv.to_string(), violation)).collect();
    let told_barred = told["barred"].as_object().expect("an object");
    assert_eq!(barred.len(), told_barred.len(), "{name}: barred");
    for (mv, rule) in told_barred {
        let found = barred.get(mv).map(|violation| violation.rule().id());
        assert_eq!(found, rule.as_str(), "{name}: barred {mv}");
    }
    for (text, refusal) in told["refused"].as_object().into_iter().flatten() {
        let violation = line.judge(mv(text)).expect_err(text);
        let rule = refusal["rule"].as_str();
        assert_eq!(Some(violation.rule().id()), rule, "{name}: {text}");
        let squares = texts(&refusal["squares"]);
        assert_eq!(names(violation.squares()), squares, "{name}: {text}");
    }
}
