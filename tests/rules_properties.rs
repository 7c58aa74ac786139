//! What holds on every board: played through games of a seeded generator, with switches
//! of all kinds, and with texts of no kind.

mod support;

use jungle_referee::rules::{
    Animal, Line, Move, Position, Rule, Ruleset, SetupError, Side, Square, SquareSet, Violation,
};
use proptest::prelude::{any, prop_assert_eq, proptest};
use support::{Dice, mv};

const GAMES: u64 = 150;

/// Every move that can be written: 63 × 63.
fn every_move() -> impl Iterator<Item = Move> {
    Square::ALL.into_iter().flat_map(|from| Square::ALL.into_iter().map(move |to| Move { from, to }))
}

/// Plays `GAMES` games to their end, or to `plies`, and looks at each line on the way.
fn on_every_line(plies: u32, mut look: impl FnMut(&Line, &mut Dice)) {
    for seed in 0..GAMES {
        let mut dice = Dice(seed);
        let ruleset = dice.ruleset();
        let mut line = Line::new(dice.start(&ruleset), ruleset);
        let mut latest = [None; 2];
        while line.ply() < plies {
            look(&line, &mut dice);
            let side = line.position().side_to_move();
            let Some(mv) = dice.allowed(&line, latest[side.index()]) else {
                panic!("a running game has a move: {line:?}");
            };
            latest[side.index()] = Some(mv);
            line.advance(mv);
            if line.ending(side).is_some() {
                look(&line, &mut dice);
                break;
            }
        }
    }
}

#[test]
fn every_reachable_position_is_read_back_as_it_was_written() {
    on_every_line(400, |line, _| {
        let text = line.position().to_string();
        assert_eq!(Position::read(&text).as_ref(), Ok(line.position()), "{text}");
    });
}

#[test]
fn a_running_position_can_be_set_up_and_a_finished_one_cannot() {
    on_every_line(400, |line, _| {
        let position = line.position();
        let set_up = Position::set_up(&position.to_string(), line.ruleset());
        let mover = position.side_to_move().opponent();
        match line.ending(mover) {
            None => assert_eq!(set_up.as_ref(), Ok(position)),
            Some(_) => assert!(set_up.is_err(), "{position}"),
        }
    });
}

#[test]
fn the_list_is_what_the_judge_allows_among_all_moves() {
    on_every_line(120, |line, _| {
        let legal = line.legal_moves();
        assert!(legal.moves.is_sorted_by_key(|m| m.mv));
        let judged: Vec<_> = every_move().filter_map(|mv| line.judge(mv).ok().map(|allowed| (mv, allowed))).collect();
        let listed: Vec<_> = legal.moves.iter().map(|m| (m.mv, m.captured)).collect();
        let allowed: Vec<_> = judged.iter().map(|(mv, a)| (*mv, a.captured)).collect();
        assert_eq!(listed, allowed, "{line:?}");
        assert!(judged.iter().all(|(_, a)| a.waived == legal.waived));
    });
}

#[test]
fn candidates_are_judged_like_any_move_and_are_at_most_36() {
    on_every_line(400, |line, _| {
        let candidates = line.candidates();
        assert!(candidates.len() <= 36);
        assert!(candidates.is_sorted_by_key(|c| c.mv));
        for candidate in &candidates {
            assert_eq!(candidate.verdict, line.judge(candidate.mv));
        }
        let barred = candidates.iter().filter_map(|c| c.verdict.err());
        let bars = [Rule::SevenThree, Rule::SeventeenFive];
        let count = barred.filter(|v| bars.contains(&v.rule())).count();
        assert_eq!(line.barred().len(), count);
        assert!(!line.legal_moves().waived || count == 0);
    });
}

#[test]
fn the_board_turned_half_round_gives_the_turned_verdict_on_every_move() {
    for seed in 0..GAMES {
        let mut dice = Dice(seed ^ 0x7ead);
        let ruleset = dice.ruleset();
        let start = dice.start(&ruleset);
        let mut line = Line::new(start, ruleset);
        let mut turned = Line::new(start.turned(), ruleset);
        let mut latest = [None; 2];
        while line.ply() < 60 {
            assert_eq!(line.position().turned().turned(), *line.position());
            for mv in every_move() {
                check_turned(&line, &turned, mv);
            }
            let side = line.position().side_to_move();
            let Some(mv) = dice.allowed(&line, latest[side.index()]) else {
                panic!("a running game has a move: {line:?}");
            };
            latest[side.index()] = Some(mv);
            assert_eq!(line.advance(mv), turned.advance(mv.turned()));
            let ending = line.ending(side);
            let other = turned.ending(side.opponent());
            let winner = |w: Option<Side>| w.map(Side::opponent);
            assert_eq!(ending.map(|(w, r)| (winner(w), r)), other);
            if ending.is_some() {
                break;
            }
        }
    }
}

#[track_caller]
fn check_turned(line: &Line, turned: &Line, mv: Move) {
    match (line.judge(mv), turned.judge(mv.turned())) {
        (Ok(here), Ok(there)) => assert_eq!(here, there, "{mv} in {line:?}"),
        (Err(here), Err(there)) => {
            assert_eq!(here.rule(), there.rule(), "{mv} in {line:?}");
            assert_eq!(here.plies(), there.plies(), "{mv} in {line:?}");
            let squares: SquareSet = here.squares().into_iter().collect();
            let back: SquareSet = there.squares().iter().map(|s| s.turned()).collect();
            assert_eq!(squares, back, "{mv} in {line:?}");
            assert_eq!(here.animals().len(), there.animals().len());
        }
        (here, there) => panic!("{mv} in {line:?}: {here:?}, turned {there:?}"),
    }
}

#[test]
fn what_is_shown_is_sorted_and_stands_on_the_board() {
    on_every_line(60, |line, _| {
        let violations = every_move().filter_map(|mv| line.judge(mv).err());
        for violation in violations {
            let squares = violation.squares();
            assert!(!squares.is_empty());
            assert!(squares.is_sorted_by(|a, b| a < b), "{violation:?}");
            let animals = violation.animals();
            assert!(animals.is_sorted());
            for (square, piece) in animals {
                assert!(squares.contains(&square), "{violation:?}");
                assert_eq!(line.position().at(square), Some(piece), "{violation:?}");
            }
            let seven_three = violation.rule() == Rule::SevenThree;
            assert_eq!(violation.plies().len() >= 3, seven_three);
            assert!(violation.plies().iter().all(|ply| *ply < line.ply()));
            assert!(!violation.to_string().is_empty());
        }
    });
}

#[test]
fn every_game_ends() {
    for seed in 0..GAMES {
        let mut dice = Dice(seed ^ 0xe7d);
        let ruleset = dice.ruleset();
        let start = dice.start(&ruleset);
        let mut line = Line::new(start, ruleset);
        let mut latest = [None; 2];
        let captures = u32::try_from(start.pieces().count()).expect("at most 18");
        let longest = (captures + 1) * ruleset.no_capture_plies();
        loop {
            let side = line.position().side_to_move();
            let mv = dice.allowed(&line, latest[side.index()]);
            let mv = mv.expect("a running game has a move");
            latest[side.index()] = Some(mv);
            line.advance(mv);
            if line.ending(side).is_some() {
                break;
            }
            assert!(line.ply() <= longest, "{line:?}");
        }
    }
}

/// The bars told a second time, word by word from section 4, over the whole history.
#[test]
fn the_bars_are_those_that_the_whole_history_gives() {
    let mut barred = 0;
    let mut waived = 0;
    for seed in 0..8 * GAMES {
        let mut dice = Dice(seed ^ 0xba5);
        let ruleset = dice.ruleset();
        let free = Ruleset { seven_three: false, seventeen_five: false, ..ruleset };
        let mut line = Line::new(dice.start(&ruleset), ruleset);
        let mut history: [Vec<(Animal, Square, u32)>; 2] = [Vec::new(), Vec::new()];
        let mut latest = [None; 2];
        while line.ply() < 150 {
            let side = line.position().side_to_move();
            let told = told_bars(&line, free, &history[side.index()]);
            let listed: Vec<_> = line.barred();
            let found: Vec<_> = listed.iter().map(|(m, v)| (*m, v.rule(), v.plies())).collect();
            assert_eq!(line.legal_moves().waived, told.is_none(), "{line:?}");
            assert_eq!(found, told.clone().unwrap_or_default(), "{line:?}");
            barred += found.len();
            waived += usize::from(told.is_none());
            let mv = dice.allowed(&line, latest[side.index()]);
            let mv = mv.expect("a running game has a move");
            let animal = line.position().at(mv.from).expect("an animal").animal;
            latest[side.index()] = Some(mv);
            history[side.index()].push((animal, mv.to, line.ply()));
            line.advance(mv);
            if line.ending(side).is_some() {
                break;
            }
        }
    }
    assert!(barred > 1000 && waived > 10, "{barred} barred, {waived} waived");
}

type Barred = Vec<(Move, Rule, Vec<u32>)>;

/// What is barred, or `None` for the waiver.
fn told_bars(line: &Line, free: Ruleset, own: &[(Animal, Square, u32)]) -> Option<Barred> {
    let (position, ruleset) = (line.position(), line.ruleset());
    let allowed = Line::new(*position, free).legal_moves().moves;
    let mut barred = Vec::new();
    for mv in allowed.iter().map(|m| m.mv) {
        let animal = position.at(mv.from).expect("an animal").animal;
        let run: Vec<_> = own.iter().rev().take_while(|(a, _, _)| *a == animal).collect();
        let no_trap = |count: usize| run[..count].iter().all(|(_, s, _)| s.trap_of().is_none());
        if ruleset.seven_three && run.len() >= 7 && no_trap(7) {
            let mut plies: Vec<u32> =
                run[..7].iter().filter(|(_, to, _)| *to == mv.to).map(|(_, _, ply)| *ply).collect();
            plies.reverse();
            if plies.len() >= 3 && !told_chased(position, free, mv.from) {
                barred.push((mv, Rule::SevenThree, plies));
                continue;
            }
        }
        if ruleset.seventeen_five && run.len() >= 17 && no_trap(17) {
            let squares: SquareSet = run[..17].iter().map(|(_, to, _)| *to).collect();
            if squares.len() <= 5 && squares.contains(mv.to) {
                barred.push((mv, Rule::SeventeenFive, Vec::new()));
            }
        }
    }
    let all = barred.len() == allowed.len() && !allowed.is_empty();
    (!all).then_some(barred)
}

/// Whether the enemy, were it its turn, could take what stands on the square.
fn told_chased(position: &Position, free: Ruleset, square: Square) -> bool {
    let text = position.to_string();
    let passed = match position.side_to_move() {
        Side::Red => text.replace(" r ", " b "),
        Side::Blue => text.replace(" b ", " r "),
    };
    let passed = Position::read(&passed).expect("the same board");
    let replies = Line::new(passed, free).legal_moves().moves;
    replies.iter().any(|m| m.mv.to == square && m.captured.is_some())
}

#[test]
fn nonsense_that_was_never_judged_does_no_harm() {
    for seed in 0..GAMES {
        let mut dice = Dice(seed ^ 0x0dd);
        let ruleset = dice.ruleset();
        let mut line = Line::new(dice.start(&ruleset), ruleset);
        for _ in 0..60 {
            let mv = Move { from: dice.pick(&Square::ALL), to: dice.pick(&Square::ALL) };
            let before = *line.position();
            let taken = line.advance(mv);
            let after = line.position();
            let moved = before.at(mv.from).is_some() && mv.from != mv.to;
            let expected = before.at(mv.to).filter(|_| moved).map(|piece| piece.animal);
            assert_eq!(taken, expected);
            assert_eq!(after.side_to_move(), before.side_to_move().opponent());
            let left = before.pieces().count() - usize::from(taken.is_some());
            assert_eq!(after.pieces().count(), left);
            assert_eq!(Position::read(&after.to_string()).as_ref(), Ok(after));
            assert!(line.candidates().len() <= 36);
            let _ = line.ending(Side::Red);
        }
    }
}

#[test]
fn any_written_position_can_be_judged() {
    // Both a wolf and a fox, lions that swim, animals in both dens, and no ladder for some.
    let text = "fl1w1e1/1lR1t2/3c3/1L3T1/1r5/7/E1W1P1F/3d3/3C3 b 7 9999";
    let text = text.replacen("1lR1t2", "2R1t2", 1);
    let position = Position::read(&text).expect("of the form");
    for ruleset in [Ruleset::YESHOU, Ruleset::DATOU, Ruleset::FOLK_FOX] {
        for position in [position, position.turned()] {
            let line = Line::new(position, ruleset);
            for mv in every_move() {
                let _ = line.judge(mv).map_err(|violation: Violation| violation.to_string());
            }
            assert!(!line.candidates().is_empty());
        }
    }
    assert!(Line::new(position, Ruleset::FOLK).judge(mv("d2d1")).is_ok());
}

proptest! {
    #[test]
    fn any_text_is_safe_to_read(text in any::<String>()) {
        let _ = text.parse::<Square>();
        let _ = text.parse::<Move>();
        let _ = Position::read(&text);
        let _ = Position::set_up(&text, &Ruleset::YESHOU);
    }

    #[test]
    fn a_text_like_a_position_is_read_as_it_is_written_or_not_at_all(
        text in "([1-8ELTPWFDCRer]{0,4}/){8}[1-7ELl]{1,3} [rb] (0|[1-9][0-9]{0,12}|0[0-9]) [0-9]{1,5}"
    ) {
        let read = Position::read(&text);
        if let Some(position) = read.iter().find(|p| p.quiet_plies() < u32::MAX) {
            prop_assert_eq!(position.to_string(), text.clone());
        }
        match Position::set_up(&text, &Ruleset::FOLK) {
            Ok(position) => prop_assert_eq!(position.to_string(), text),
            Err(error) => {
                let form = matches!(error, SetupError::Form(_));
                let twice = matches!(error, SetupError::Twice { .. } | SetupError::ForeignLetter { .. });
                if read.is_err() {
                    assert!(form || twice);
                }
            }
        }
    }

    #[test]
    fn four_bytes_are_a_move_only_if_they_are_two_squares(text in "[a-h][0-9][a-h][0-9]") {
        match text.parse::<Move>() {
            Ok(mv) => prop_assert_eq!(mv.to_string(), text),
            Err(_) => {
                let (from, to) = text.split_at(2);
                assert!(from.parse::<Square>().is_err() || to.parse::<Square>().is_err());
            }
        }
    }
}
