//! Random games by the second judge alone: every rule must get its turn in them, or comparing
//! judges on such games would prove little.

mod second_judge;

use second_judge::generate::{Rng, attempt, choose, start, wild_text};
use second_judge::{Exemption, Game, Verdict};
use std::collections::BTreeMap;

/// How often each thing occurred.
struct Tally {
    counts: BTreeMap<String, u32>,
}

impl Tally {
    /// Everything that must occur, so far never.
    fn of(names: &[&str]) -> Tally {
        let mut counts = BTreeMap::new();
        for name in names {
            counts.insert((*name).to_string(), 0);
        }
        Tally { counts }
    }

    fn add(&mut self, name: &str) {
        *self.counts.entry(name.to_string()).or_insert(0) += 1;
    }

    /// Those of the names that occurred fewer times than asked.
    fn fewer_than(&self, times: u32, names: &[&str]) -> Vec<String> {
        let mut few = Vec::new();
        for name in names {
            let count = self.counts[*name];
            if count < times {
                few.push(format!("{name}: {count}"));
            }
        }
        few
    }
}

fn exemption_name(exemption: Exemption) -> &'static str {
    match exemption {
        Exemption::TrapInSeven => "exempt: trap in the 7",
        Exemption::Chased => "exempt: chased",
        Exemption::TrapInSevenAndChased => "exempt: trap in the 7, and chased",
        Exemption::TrapInSeventeen => "exempt: trap in the 17",
    }
}

const MUST_OCCUR: [&str; 36] = [
    "rule: NO_ANIMAL",
    "rule: NOT_YOUR_ANIMAL",
    "rule: STEP",
    "rule: RIVER",
    "rule: JUMP",
    "rule: JUMP_BLOCKED",
    "rule: OWN_DEN",
    "rule: OWN_PIECE",
    "rule: TRAPPED",
    "rule: BANK",
    "rule: RAT_ELEPHANT",
    "rule: STRENGTH",
    "rule: SEVEN_THREE",
    "rule: SEVENTEEN_FIVE",
    "barred: SEVEN_THREE",
    "barred: SEVENTEEN_FIVE",
    "exempt: trap in the 7",
    "exempt: chased",
    "exempt: trap in the 7, and chased",
    "exempt: trap in the 17",
    "waived: SEVEN_THREE",
    "waived: SEVENTEEN_FIVE",
    "barred: a capture",
    "barred: 17-5 though chased",
    "end: DEN",
    "end: ALL_CAPTURED",
    "end: NO_MOVES",
    "end: NO_CAPTURE",
    "end: won with what would have been the last quiet ply",
    "end: short, unscored",
    "end: short, but a match",
    "end: scored, won",
    "end: scored, drawn",
    "end: none in the plies played",
    "round: stayed at 9999",
    "start: Blue to move",
];

#[test]
fn in_random_games_every_rule_bar_exemption_and_ending_occurs() {
    let mut tally = Tally::of(&MUST_OCCUR);
    let mut rng = Rng::new(1);
    let mut games = 0;
    let mut plies = 0;
    while games < 900 {
        let start = start(&mut rng);
        let mut game = start.set_up();
        tally.add(&format!("sort of start: {}", start.sort));
        if game.side_to_move() == 'b' {
            tally.add("start: Blue to move");
        }
        while game.end().is_none() && game.ply() < start.plies {
            look_at(&game, &mut tally, &mut rng);
            let round_at_its_end = game.text().ends_with(" 9999");
            let the_move = choose(&game, &mut rng);
            game.play(&the_move[0..2], &the_move[2..4]);
            if round_at_its_end && game.side_to_move() == 'r' {
                assert!(game.text().ends_with(" 9999"));
                tally.add("round: stayed at 9999");
            }
            plies += 1;
        }
        note_the_end(&game, &mut tally);
        games += 1;
    }
    println!("{games} games, {plies} plies");
    for (name, count) in &tally.counts {
        println!("{count:>7}  {name}");
    }
    let missing = tally.fewer_than(10, &MUST_OCCUR);
    assert!(missing.is_empty(), "occurred too seldom: {missing:?}");
}

/// Counts what the turn shows.
fn look_at(game: &Game, tally: &mut Tally, rng: &mut Rng) {
    for (the_move, bar) in game.barred() {
        tally.add(&format!("barred: {bar}"));
        if game.animal_on(&the_move[2..4]).is_some() {
            tally.add("barred: a capture");
        }
        if bar == "SEVENTEEN_FIVE" && game.chased(&the_move[0..2]) {
            tally.add("barred: 17-5 though chased");
        }
        let Verdict::Refused { rule, .. } = game.verdict(&the_move[0..2], &the_move[2..4]) else {
            panic!("{the_move} is barred and allowed");
        };
        assert_eq!(rule, bar);
    }
    for note in game.notes() {
        tally.add(exemption_name(note.exemption));
    }
    if game.waived() {
        assert!(game.barred().is_empty());
        assert!(!game.legal().is_empty());
        let mut bars = Vec::new();
        for the_move in game.legal() {
            let (from, to) = the_move.split_at(2);
            bars.push(game.bar_waiver_apart(from, to).expect("a bar is waived"));
        }
        bars.sort_unstable();
        bars.dedup();
        tally.add(&format!("waived: {}", bars.join(" and ")));
    }
    for _ in 0..6 {
        let (from, to) = attempt(game, rng);
        if let Verdict::Refused { rule, .. } = game.verdict(&from, &to) {
            tally.add(&format!("rule: {rule}"));
        }
    }
}

/// Counts how the game ended.
fn note_the_end(game: &Game, tally: &mut Tally) {
    let Some(end) = game.end() else {
        tally.add("end: none in the plies played");
        return;
    };
    tally.add(&format!("end: {}", end.reason));
    assert!(game.legal().is_empty());
    let quiet: u32 = game.text().split(' ').nth(2).expect("quiet plies").parse().expect("a number");
    let at_the_draw = quiet == 2 * game.switches().no_capture_rounds;
    assert!(at_the_draw || end.winner.is_some());
    if at_the_draw && end.winner.is_some() {
        tally.add("end: won with what would have been the last quiet ply");
    }
    let short = game.ply() <= 2 * game.switches().short_game_rounds;
    assert_eq!(end.scored, game.match_game || !short);
    let points = end.red_half_points + end.blue_half_points;
    assert_eq!(points, if end.scored { 2 } else { 0 });
    if !end.scored {
        tally.add("end: short, unscored");
    } else if short {
        tally.add("end: short, but a match");
    }
    if end.scored && end.winner.is_some() {
        tally.add("end: scored, won");
    } else if end.scored {
        tally.add("end: scored, drawn");
    }
}

const SET_UP: [&str; 8] = [
    "ok",
    "form",
    "animal twice",
    "no animal",
    "land animal in the river",
    "animal in a den",
    "quiet plies at the draw",
    "no move",
];

#[test]
fn among_wild_texts_every_reason_against_a_set_up_occurs() {
    let mut tally = Tally::of(&SET_UP);
    let mut rng = Rng::new(7);
    for _ in 0..3000 {
        let (text, switches) = wild_text(&mut rng);
        match Game::set_up(&text, &switches) {
            Ok(game) => {
                assert_eq!(game.text(), text, "a text is written as it was read");
                tally.add("ok");
            }
            Err(reason) => tally.add(reason),
        }
    }
    for (name, count) in &tally.counts {
        println!("{count:>7}  {name}");
    }
    let missing = tally.fewer_than(10, &SET_UP);
    assert!(missing.is_empty(), "occurred too seldom: {missing:?}");
}

#[test]
fn the_same_seed_gives_the_same_games() {
    let mut texts = Vec::new();
    for _ in 0..2 {
        let mut rng = Rng::new(99);
        let mut text = String::new();
        for _ in 0..5 {
            let start = start(&mut rng);
            let mut game = start.set_up();
            while game.end().is_none() && game.ply() < 20 {
                let the_move = choose(&game, &mut rng);
                game.play(&the_move[0..2], &the_move[2..4]);
                text += &the_move;
            }
            text += &game.text();
        }
        texts.push(text);
    }
    assert_eq!(texts[0], texts[1]);
}
