//! The worked examples of the rules, each under the sentence that a player would say.

mod support;

use jungle_referee::rules::{
    Animal, Ladder, Line, NotationError, Outcome, PRESETS, Piece, Position, Preset, Reason, Rule, Ruleset, SetupError,
    Side, Square, TigerJump, Violation,
};
use support::{mv, names, played};

const YESHOU: Ruleset = Ruleset::YESHOU;
const DATOU: Ruleset = Ruleset::DATOU;
const FOLK: Ruleset = Ruleset::FOLK;
const FOX: Ruleset = Ruleset::FOLK_FOX;

/// A board, a ruleset, a move, and what is said of it: "" for allowed, "takes the …" for a
/// capture, or the rule and the whole sentence of the refusal.
#[track_caller]
fn check(board: &str, ruleset: Ruleset, text: &str, expected: &str) {
    let position = Position::read(board).unwrap_or_else(|e| panic!("{board}: {e}"));
    check_line(&Line::new(position, ruleset), text, expected);
}

#[track_caller]
fn check_line(line: &Line, text: &str, expected: &str) {
    let said = match line.judge(mv(text)) {
        Ok(allowed) => match allowed.captured {
            None => String::new(),
            Some(animal) => format!("takes the {animal}"),
        },
        Err(violation) => format!("{}: {violation}", violation.rule()),
    };
    assert_eq!(said, expected, "{text} in {}", line.position());
    let listed = line.legal_moves().moves.iter().any(|m| m.mv == mv(text));
    assert_eq!(listed, line.judge(mv(text)).is_ok(), "list and verdict");
}

#[track_caller]
fn refused(line: &Line, text: &str) -> Violation {
    line.judge(mv(text)).expect_err(text)
}

// Section 1: board, sides, text.

#[test]
fn red_moves_first_and_has_24_moves() {
    for preset in &PRESETS {
        let line = Line::new(Position::start(&preset.ruleset), preset.ruleset);
        assert_eq!(line.position().side_to_move(), Side::Red);
        assert_eq!(line.legal_moves().moves.len(), 24, "{}", preset.name);
    }
}

#[test]
fn both_sides_start_with_the_same_animals_turned_half_round() {
    let start = Position::start(&YESHOU);
    let red = "tiger a1, cat b2, elephant a3, wolf c3, leopard e3, dog f2, lion g1, rat g3";
    for part in red.split(", ") {
        let (animal, square) = part.split_once(' ').expect("two words");
        let square: Square = square.parse().expect("a square");
        let found = |side, square| start.at(square).filter(|p| p.side == side);
        let name = |piece: Option<Piece>| piece.map(|p| p.animal.to_string());
        assert_eq!(name(found(Side::Red, square)).as_deref(), Some(animal));
        assert_eq!(name(found(Side::Blue, square.turned())).as_deref(), Some(animal));
    }
    assert_eq!(start.pieces().count(), 16);
}

#[test]
fn the_round_grows_after_blues_move_and_stays_at_9999() {
    let line = played("e6/7/7/7/7/7/7/7/6E r 0 9998", YESHOU, "g1g2");
    assert_eq!(line.position().round(), 9998);
    let line = played("e6/7/7/7/7/7/7/7/6E r 0 9998", YESHOU, "g1g2 a9a8 g2g1 a8a9");
    assert_eq!(line.position().to_string(), "e6/7/7/7/7/7/7/7/6E r 4 9999");
}

#[test]
fn a_text_is_refused_for_the_first_reason_that_holds() {
    let check = |text: &str, ruleset: Ruleset, sentence: &str| {
        let error = Position::set_up(text, &ruleset).expect_err(text);
        assert_eq!(error.to_string(), sentence, "{text}");
    };
    // Each text has all the faults of those below it.
    check("ddL4/7/7/1ll4/7/7/7/7/d6 r 200", FOX, "a position has 4 parts with single spaces between them, not 3");
    check(
        "ddw4/7/7/1l5/7/7/7/7/3d3 r 200 1",
        FOX,
        "the letter w on c9 is a wolf, which the ladder DOG_OVER_FOX does not have",
    );
    check("dd5/7/7/1l5/7/7/7/7/3d3 r 200 1", YESHOU, "Blue's dog is on the board twice");
    check("7/7/7/1l5/7/7/7/7/3d3 r 200 1", YESHOU, "Red has no animal");
    check("D6/7/7/1l5/7/7/7/7/3d3 r 200 1", YESHOU, "Blue's lion stands in the river on b6");
    check("De5/ll5/7/7/7/7/7/7/7 r 200 1", YESHOU, "Blue's lion is on the board twice");
    check("De5/l6/7/7/7/7/7/7/3t3 r 200 1", YESHOU, "Blue's tiger stands in the den on d1");
    check("De5/l6/7/7/7/7/7/7/7 r 200 1", YESHOU, "200 plies without a capture have reached the draw at 200");
    check("De5/l6/7/7/7/7/7/7/7 r 199 1", YESHOU, "Red is to move and has no move");
    assert!(Position::set_up("De5/l6/7/7/7/7/7/7/7 b 199 1", &YESHOU).is_ok());
}

#[test]
fn a_wolf_is_no_fox_and_a_fox_no_wolf() {
    let wolf = "w6/7/7/7/7/7/7/7/6E r 0 1";
    let fox = "f6/7/7/7/7/7/7/7/6E r 0 1";
    for preset in &PRESETS {
        let fits = |text| Position::set_up(text, &preset.ruleset).is_ok();
        let has_fox = preset.ruleset.ladder == Ladder::DogOverFox;
        assert_eq!((fits(wolf), fits(fox)), (!has_fox, has_fox), "{}", preset.name);
    }
}

#[test]
fn only_the_form_is_read() {
    let check = |text: &str, error: NotationError| {
        assert_eq!(Position::read(text), Err(error), "{text}");
        assert_eq!(Position::set_up(text, &YESHOU), Err(SetupError::Form(error)));
    };
    let board = "e6/7/7/7/7/7/7/7/6E";
    check("", NotationError::Parts { found: 1 });
    check(&format!("{board} r 0 1 "), NotationError::Parts { found: 5 });
    check(&format!("{board}  r 0 1"), NotationError::Parts { found: 5 });
    check("e6/7/7/7/7/7/7/6E r 0 1", NotationError::Ranks { found: 8 });
    check("e6/7/7/7/7/7/7/7/6E/7 r 0 1", NotationError::Ranks { found: 10 });
    check("e6/7/x6/7/7/7/7/7/6E r 0 1", NotationError::Sign { rank: 7, place: 1 });
    check("e6/7/8/7/7/7/7/7/6E r 0 1", NotationError::Sign { rank: 7, place: 1 });
    check("e6/7/0e6/7/7/7/7/7/6E r 0 1", NotationError::Sign { rank: 7, place: 1 });
    check("e6/7/3\u{e9}3/7/7/7/7/7/6E r 0 1", NotationError::Sign { rank: 7, place: 2 });
    check("e6/7/3\u{661}3/7/7/7/7/7/6E r 0 1", NotationError::Sign { rank: 7, place: 2 });
    check("e6/7/34/7/7/7/7/7/6E r 0 1", NotationError::TwoDigits { rank: 7 });
    check("e6/7//7/7/7/7/7/6E r 0 1", NotationError::Width { rank: 7 });
    check("e6/7/7E/7/7/7/7/7/7 r 0 1", NotationError::Width { rank: 7 });
    check("e6/7/6/7/7/7/7/7/6E r 0 1", NotationError::Width { rank: 7 });
    check(&format!("{board} red 0 1"), NotationError::SideToMove);
    check(&format!("{board} R 0 1"), NotationError::SideToMove);
    for quiet in ["", "-1", "+1", "00", "01", "1.0", "x", "\u{661}"] {
        check(&format!("{board} r {quiet} 1"), NotationError::QuietPlies);
    }
    for round in ["", "0", "01", "10000", "+1", "99999999999999999999999"] {
        check(&format!("{board} r 0 {round}"), NotationError::Round);
    }
}

#[test]
fn a_number_of_any_length_has_reached_the_draw() {
    let text = format!("e6/7/7/7/7/7/7/7/6E r {} 1", "9".repeat(100_000));
    let (found, limit) = (u32::MAX, 200);
    assert_eq!(Position::set_up(&text, &YESHOU), Err(SetupError::QuietPlies { found, limit }));
    let mut line = Line::new(Position::read(&text).expect("of the form"), YESHOU);
    line.advance(mv("g1g2"));
    assert_eq!(line.position().quiet_plies(), u32::MAX);
    let endless = "e".repeat(1_000_000);
    assert!(Position::set_up(&endless, &YESHOU).is_err());
}

#[test]
fn a_finished_position_is_read_but_not_set_up() {
    for text in ["3R2l/7/7/7/7/7/7/7/7 b 3 40", "6l/7/7/7/7/7/7/7/7 r 0 1", "7/7/7/7/7/7/7/7/7 r 0 1"] {
        assert_eq!(Position::read(text).map(|p| p.to_string()).as_deref(), Ok(text));
        assert!(Position::read(text).is_ok_and(|p| p.is_finished()));
        assert!(Position::set_up(text, &YESHOU).is_err());
    }
}

// Section 2: movement.

#[test]
fn an_animal_moves_one_square_along_a_file_or_a_rank() {
    let board = "6e/7/7/7/7/7/7/2D4/6E r 0 1";
    for to in ["c2b2", "c2c1", "c2c3", "c2d2"] {
        check(board, YESHOU, to, "");
    }
    check(
        board,
        YESHOU,
        "c2d3",
        "STEP: the dog on c2 cannot go to d3: an animal moves one square along a file or a rank",
    );
    check(
        board,
        YESHOU,
        "c2c4",
        "STEP: the dog on c2 cannot go to c4: an animal moves one square along a file or a rank",
    );
    check(board, YESHOU, "c2c2", "STEP: the dog on c2 cannot stay where it is");
}

#[test]
fn nobody_moves_an_empty_square_or_the_opponents_animal() {
    let board = "6e/7/7/7/7/7/7/2D4/6E r 0 1";
    check(board, YESHOU, "a1a1", "NO_ANIMAL: there is no animal on a1");
    check(board, YESHOU, "g9a1", "NOT_YOUR_ANIMAL: the elephant on g9 is Blue's, and Red is to move");
}

#[test]
fn only_the_rat_enters_the_river_whatever_swims_there() {
    let board = "6e/7/7/7/7/1r5/1C5/7/6E r 0 1";
    check(board, YESHOU, "b3b4", "RIVER: the cat on b3 cannot enter the river on b4: only the rat swims");
    let board = "6e/7/7/7/7/1R5/1C5/7/6E r 0 1";
    check(board, YESHOU, "b3b4", "RIVER: the cat on b3 cannot enter the river on b4: only the rat swims");
    check(board, YESHOU, "b4a4", "");
    check(board, YESHOU, "b4b5", "");
}

#[test]
fn the_lion_jumps_over_two_or_three_squares_of_water() {
    check("6e/7/7/7/7/7/1L5/7/7 r 0 1", DATOU, "b3b7", "");
    check("6e/7/7/7/3L3/7/7/7/7 r 0 1", DATOU, "d5a5", "");
    check("6e/7/7/7/3L3/7/7/7/7 r 0 1", DATOU, "d5g5", "");
    check("6e/7/7/7/L6/7/7/7/7 r 0 1", DATOU, "a5d5", "");
}

#[test]
fn the_tiger_jumps_along_a_file_only_where_the_ruleset_lets_it() {
    let board = "6e/7/7/7/7/7/1T5/7/7 r 0 1";
    check(board, YESHOU, "b3b7", "");
    check(
        board,
        DATOU,
        "b3b7",
        "JUMP: the tiger on b3 cannot jump to b7: in this ruleset the tiger jumps along a rank only",
    );
    check("6e/7/7/7/3T3/7/7/7/7 r 0 1", DATOU, "d5a5", "");
}

#[test]
fn nobody_else_jumps_the_rat_included() {
    check(
        "6e/7/7/7/P6/7/7/7/7 r 0 1",
        YESHOU,
        "a5d5",
        "JUMP: the leopard on a5 cannot jump to d5: only the lion and the tiger jump over the river",
    );
    check(
        "6e/7/7/7/7/7/1R5/7/7 r 0 1",
        YESHOU,
        "b3b7",
        "JUMP: the rat on b3 cannot jump to b7: only the lion and the tiger jump over the river",
    );
    // Not along a jump line: no jump at all.
    check(
        "6e/7/7/7/7/1R5/7/7/7 r 0 1",
        YESHOU,
        "b4b7",
        "STEP: the rat on b4 cannot go to b7: an animal moves one square along a file or a rank",
    );
    check(
        "6e/7/7/7/L6/7/7/7/7 r 0 1",
        YESHOU,
        "a5g5",
        "STEP: the lion on a5 cannot go to g5: an animal moves one square along a file or a rank",
    );
}

#[test]
fn a_rat_in_the_way_forbids_the_jump() {
    let enemy = "6e/7/7/7/7/1r1L3/7/7/7 r 0 1";
    check(enemy, YESHOU, "d4a4", "JUMP_BLOCKED: the lion on d4 cannot jump to a4: the rat on b4 is in the way");
    let own = "6e/7/7/7/7/1R1L3/7/7/7 r 0 1";
    check(own, YESHOU, "d4a4", "");
    check(own, FOLK, "d4a4", "JUMP_BLOCKED: the lion on d4 cannot jump to a4: the rat on b4 is in the way");
    let both = "6e/7/7/7/7/1rRL3/7/7/7 r 0 1";
    check(both, FOLK, "d4a4", "JUMP_BLOCKED: the lion on d4 cannot jump to a4: the rats on b4 and c4 are in the way");
    check(both, YESHOU, "d4a4", "JUMP_BLOCKED: the lion on d4 cannot jump to a4: the rat on b4 is in the way");
    let line = Line::new(Position::read(both).expect("a board"), FOLK);
    let shown = refused(&line, "d4a4").animals();
    assert_eq!(names(shown.iter().map(|(_, p)| p)), ["Blue's rat", "Red's rat"]);
}

#[test]
fn a_tiger_that_may_not_jump_there_is_not_asked_about_rats() {
    let board = "6e/7/7/7/1r5/7/1T5/7/7 r 0 1";
    check(
        board,
        DATOU,
        "b3b7",
        "JUMP: the tiger on b3 cannot jump to b7: in this ruleset the tiger jumps along a rank only",
    );
    check(board, YESHOU, "b3b7", "JUMP_BLOCKED: the tiger on b3 cannot jump to b7: the rat on b5 is in the way");
}

#[test]
fn a_jump_takes_what_the_jumper_could_take() {
    check("7/7/1t5/7/7/7/1L5/7/7 r 0 1", YESHOU, "b3b7", "takes the tiger");
    check(
        "7/7/1e5/7/7/7/1L5/7/7 r 0 1",
        YESHOU,
        "b3b7",
        "STRENGTH: the lion on b3 cannot take the elephant on b7: the elephant is stronger",
    );
    check(
        "7/7/1C5/7/7/7/1L5/7/e6 r 0 1",
        YESHOU,
        "b3b7",
        "OWN_PIECE: the lion on b3 cannot enter b7: Red's own cat stands there",
    );
}

#[test]
fn no_animal_enters_its_own_den() {
    let board = "6e/7/7/7/7/7/7/7/2C4 r 0 1";
    check(board, YESHOU, "c1d1", "OWN_DEN: the cat on c1 cannot enter its own den on d1");
}

#[test]
fn no_animal_enters_a_square_that_its_own_side_holds() {
    let board = "6e/7/7/7/7/7/7/7/RC5 r 0 1";
    check(board, YESHOU, "a1b1", "OWN_PIECE: the rat on a1 cannot enter b1: Red's own cat stands there");
    let line = Line::new(Position::read(board).expect("a board"), YESHOU);
    let shown = refused(&line, "a1b1").animals();
    assert_eq!(names(shown.iter().map(|(_, p)| p)), ["Red's cat"]);
}

// Section 3: captures.

#[test]
fn an_animal_takes_its_own_strength_or_less() {
    let ladders =
        [(Ladder::WolfOverDog, "ELTPWDCR"), (Ladder::DogOverWolf, "ELTPDWCR"), (Ladder::DogOverFox, "ELTPDFCR")];
    for (ladder, letters) in ladders {
        let ruleset = Ruleset { ladder, ..FOLK };
        for (rank, captor) in letters.chars().enumerate() {
            for (other, target) in letters.chars().enumerate() {
                let target_letter = target.to_ascii_lowercase();
                let board = format!("7/{captor}{target_letter}5/7/7/7/7/7/7/7 r 0 1");
                let line = Line::new(Position::read(&board).expect("a board"), ruleset);
                let found = line.judge(mv("a8b8")).map_err(|v| v.rule());
                let expected = match (captor, target) {
                    ('E', 'R') => Err(Rule::RatElephant),
                    ('R', 'E') => Ok(Some(Animal::Elephant)),
                    _ if rank <= other => Ok(Animal::from_letter(target)),
                    _ => Err(Rule::Strength),
                };
                assert_eq!(found.map(|a| a.captured), expected, "{board}");
            }
        }
    }
}

#[test]
fn the_rat_takes_the_elephant_and_the_elephant_never_the_rat() {
    let board = "7/7/7/7/3e3/3R3/7/7/7";
    check(&format!("{board} r 0 1"), YESHOU, "d4d5", "takes the elephant");
    check(
        &format!("{board} b 0 1"),
        YESHOU,
        "d5d4",
        "RAT_ELEPHANT: the elephant on d5 cannot take the rat on d4: an elephant never takes a rat",
    );
}

#[test]
fn nothing_takes_across_the_waters_edge_but_rats_where_the_ruleset_lets_them() {
    let board = "6e/7/7/7/rR5/7/7/7/7 r 0 1";
    check(board, YESHOU, "b5a5", "takes the rat");
    check(board, DATOU, "b5a5", "BANK: the rat on b5 cannot take the rat on a5: the water's edge lies between them");
    let board = "6e/7/7/7/rR5/7/7/7/7 b 0 1";
    check(board, YESHOU, "a5b5", "takes the rat");
    check(board, DATOU, "a5b5", "BANK: the rat on a5 cannot take the rat on b5: the water's edge lies between them");
    let board = "7/7/7/7/eR5/7/7/7/7 r 0 1";
    check(
        board,
        YESHOU,
        "b5a5",
        "BANK: the rat on b5 cannot take the elephant on a5: the water's edge lies between them",
    );
    let line = Line::new(Position::read(board).expect("a board"), YESHOU);
    let violation = refused(&line, "b5a5");
    assert_eq!(names(violation.squares()), ["a5", "b5"]);
    let shown = violation.animals();
    assert_eq!(names(shown.iter().map(|(_, p)| p)), ["Blue's elephant", "Red's rat"]);
}

#[test]
fn rats_take_each_other_within_the_river() {
    for ruleset in [YESHOU, DATOU, FOLK, FOX] {
        check("6e/7/7/7/1Rr4/7/7/7/7 r 0 1", ruleset, "b5c5", "takes the rat");
    }
}

#[test]
fn an_animal_in_an_enemy_trap_cannot_resist() {
    check("6e/7/7/7/7/7/7/2Er3/7 r 0 1", YESHOU, "c2d2", "takes the rat");
    check("7/7/7/7/7/7/7/2Re3/7 r 0 1", YESHOU, "c2d2", "takes the elephant");
    check("7/7/7/7/7/7/7/2Cl3/7 r 0 1", YESHOU, "c2d2", "takes the lion");
}

#[test]
fn ones_own_traps_do_nothing() {
    check(
        "2l4/2C4/7/7/7/7/7/7/7 r 0 1",
        YESHOU,
        "c8c9",
        "STRENGTH: the cat on c8 cannot take the lion on c9: the lion is stronger",
    );
    // Nor do they hold back the owner's own animal, standing in one.
    check("2l4/2C4/7/7/7/7/7/7/7 b 0 1", YESHOU, "c9c8", "takes the cat");
}

#[test]
fn an_animal_in_an_enemy_trap_takes_nothing_where_the_ruleset_says_so() {
    let board = "7/3L3/3c3/7/7/7/7/7/7 r 0 1";
    check(board, YESHOU, "d8d7", "TRAPPED: the lion on d8 cannot take the cat on d7: it stands in an enemy trap");
    check(board, DATOU, "d8d7", "takes the cat");
    check(board, YESHOU, "d8c8", "");
    check(board, YESHOU, "d8d9", "");
}

// Section 4: repetition.

const SHUTTLE: &str = "6e/d6/1W5/7/7/7/7/7/6T r 0 1";

#[test]
fn the_eighth_step_of_a_shuttle_is_barred() {
    let seven = "b7b8 a8a7 b8b7 a7a8 b7b8 a8a7 b8b7 a7a8 b7b8 a8a7 b8b7 a7a8 b7b8 a8a7";
    let line = played(SHUTTLE, YESHOU, seven);
    check_line(
        &line,
        "b8b7",
        "SEVEN_THREE: the wolf on b8 cannot go to b7 this turn: 3 of its latest 7 moves ended there",
    );
    assert_eq!(refused(&line, "b8b7").plies(), [2, 6, 10]);
    assert_eq!(names(line.barred().iter().map(|(mv, _)| mv)), ["b8b7"]);
    for free in ["b8a8", "b8b9", "b8c8", "g1f1", "g1g2"] {
        check_line(&line, free, "");
    }
}

#[test]
fn one_move_earlier_nothing_was_barred() {
    let six = "b7b8 a8a7 b8b7 a7a8 b7b8 a8a7 b8b7 a7a8 b7b8 a8a7 b8b7 a7a8";
    assert!(played(SHUTTLE, YESHOU, six).barred().is_empty());
}

#[test]
fn a_move_by_another_animal_starts_the_run_anew() {
    let moves = "b7b8 a8a7 b8b7 a7a8 g1g2 a8a7 b7b8 a7a8 b8b7 a8a7 b7b8 a7a8 b8b7 a8a7";
    assert!(played(SHUTTLE, YESHOU, moves).barred().is_empty());
}

#[test]
fn the_7_3_bar_is_off_in_folk_rules() {
    let seven = "b7b8 a8a7 b8b7 a7a8 b7b8 a8a7 b8b7 a7a8 b7b8 a8a7 b8b7 a7a8 b7b8 a8a7";
    let line = played(SHUTTLE, FOLK, seven);
    check_line(&line, "b8b7", "");
}

#[test]
fn on_the_seventh_step_if_the_move_before_ended_where_the_shuttle_begins() {
    // The wolf comes to b7 from c7: its 7th move of the run is the 6th of the shuttle.
    let start = "6e/d6/2W4/7/7/7/7/7/6T r 0 1";
    let moves = "c7b7 a8a9 b7b8 a9a8 b8b7 a8a9 b7b8 a9a8 b8b7 a8a9 b7b8 a9a8 b8b7 a8a9";
    let line = played(start, YESHOU, moves);
    assert_eq!(names(line.barred().iter().map(|(mv, _)| mv)), ["b7b8"]);
    assert_eq!(refused(&line, "b7b8").plies(), [2, 6, 10]);
}

const CHASE: &str = "g1g2 a8a7 g2g1 a7a8 g1g2 a8a7 g2g1 a7a8 g1g2 a8a7 g2g1 a7a8 c7b7 a8a7";
const CHASE_START: &str = "6e/d6/2W4/7/7/7/7/7/6T r 0 1";

#[test]
fn a_chased_animal_may_go_back() {
    let line = played(CHASE_START, YESHOU, &format!("{CHASE} g1g2"));
    check_line(&line, "a7a8", "");
    assert!(!line.legal_moves().waived);
}

#[test]
fn an_animal_that_nothing_attacks_may_not_go_back() {
    let line = played(CHASE_START, YESHOU, &format!("{CHASE} b7b8"));
    check_line(
        &line,
        "a7a8",
        "SEVEN_THREE: the dog on a7 cannot go to a8 this turn: 3 of its latest 7 moves ended there",
    );
    assert_eq!(refused(&line, "a7a8").plies(), [3, 7, 11]);
}

const RING: &str = "a1a2 g9f9 a2b2 f9f8 b2b1 f8g8 b1a1 g8g9 a1a2 g9f9 a2b2 f9f8 b2b1 f8g8 b1a1 g8g9 \
    a1a2 g9f9 a2b2 f9f8 b2b1 f8g8 b1a1 g8g9 a1a2 g9f9 a2b2 f9f8 b2b1 f8g8 b1a1 g8g9 a1a2 g9f9";

#[test]
fn seventeen_moves_around_four_squares_bar_the_ring() {
    let line = played("6e/7/7/7/7/7/7/7/T5P r 0 1", YESHOU, RING);
    let said = "its latest 17 moves ended on a1, a2, b1 and b2 only";
    check_line(&line, "a2a1", &format!("SEVENTEEN_FIVE: the tiger on a2 cannot go to a1 this turn: {said}"));
    check_line(&line, "a2b2", &format!("SEVENTEEN_FIVE: the tiger on a2 cannot go to b2 this turn: {said}"));
    assert_eq!(names(refused(&line, "a2a1").squares()), ["a1", "a2", "b1", "b2"]);
    assert!(refused(&line, "a2a1").plies().is_empty());
    for free in ["a2a3", "g1f1", "g1g2"] {
        check_line(&line, free, "");
    }
}

#[test]
fn sixteen_moves_around_the_ring_bar_nothing() {
    let moves: Vec<&str> = RING.split_whitespace().collect();
    let line = played("6e/7/7/7/7/7/7/7/T5P r 0 1", YESHOU, &moves[..32].join(" "));
    assert!(line.barred().is_empty());
}

#[test]
fn being_chased_does_not_exempt_from_the_17_5_bar() {
    let elephant = RING.split_whitespace().step_by(2);
    let rat = "d3c3 c3d3 ".repeat(7) + "d3c3 c3b3 b3a3";
    let moves: Vec<&str> = elephant.zip(rat.split_whitespace()).flat_map(|(red, blue)| [red, blue]).collect();
    let no_seven = Ruleset { seven_three: false, ..YESHOU };
    let start = "7/7/7/7/7/7/3r3/7/E5P r 0 1";
    let mut line = played(start, no_seven, &moves.join(" "));
    let barred = names(line.barred().iter().map(|(mv, _)| mv));
    assert_eq!(barred, ["a2a1", "a2b2"]);
    line.advance(mv("g1g2"));
    check_line(&line, "a3a2", "takes the elephant");
}

#[test]
fn both_bars_on_one_move_name_the_7_3_bar_first() {
    let there_and_back = ["b1b2 g9g8 b2b1 g8g9"; 9].join(" ");
    let moves: Vec<&str> = there_and_back.split_whitespace().collect();
    let start = "6e/7/7/7/7/7/7/7/1C4P r 0 1";
    let without = Ruleset { seven_three: false, ..YESHOU };
    let line = played(start, without, &moves[..34].join(" "));
    assert_eq!(refused(&line, "b2b1").rule(), Rule::SeventeenFive);
    // The same run judged by both bars: the moves were never judged by the first.
    let mut line = Line::new(Position::read(start).expect("a board"), YESHOU);
    for text in &moves[..34] {
        line.advance(mv(text));
    }
    assert_eq!(refused(&line, "b2b1").rule(), Rule::SevenThree);
    assert_eq!(refused(&line, "b2b1").plies(), [22, 26, 30]);
}

#[test]
fn if_the_bars_took_every_move_away_none_applies() {
    let ring = "b5b4 g9f9 b4c4 f9f8 c4c5 f8g8 c5b5 g8g9 ".repeat(4) + "b5b4 g9f9";
    let mut line = played("6w/7/7/7/1R5/d6/1c5/7/7 r 0 1", YESHOU, &ring);
    let legal = line.legal_moves();
    assert!(legal.waived);
    assert_eq!(names(legal.moves.iter().map(|m| m.mv)), ["b4b5", "b4c4"]);
    assert!(line.barred().is_empty());
    assert!(line.judge(mv("b4b5")).is_ok_and(|allowed| allowed.waived));
    // What sections 2-3 refuse stays refused, under its own rule.
    assert_eq!(refused(&line, "b4b3").rule(), Rule::Bank);
    // The move counts in the run as usual: back on b5 the same holds.
    line.advance(mv("b4b5"));
    line.advance(mv("f9f8"));
    assert!(!line.legal_moves().waived, "a5, b6 and c5: something is left");
    assert_eq!(names(line.barred().iter().map(|(mv, _)| mv)), ["b5b4", "b5c5"]);
}

// Section 5: how a game ends.

#[track_caller]
fn check_ending(start: &str, ruleset: Ruleset, moves: &str, expected: Option<(Option<Side>, Reason)>) {
    let line = played(start, ruleset, moves);
    let mover = line.position().side_to_move().opponent();
    assert_eq!(line.ending(mover), expected, "{}", line.position());
}

#[test]
fn entering_the_enemy_den_wins_from_a_trap_too() {
    check_ending("2R3e/7/7/7/7/7/7/7/7 r 0 1", YESHOU, "c9d9", Some((Some(Side::Red), Reason::Den)));
    check_ending("6E/7/7/7/7/7/7/3l3/7 b 0 1", YESHOU, "d2d1", Some((Some(Side::Blue), Reason::Den)));
}

#[test]
fn taking_the_last_animal_wins() {
    check_ending("7/7/7/7/7/7/7/7/Tc5 r 0 1", YESHOU, "a1b1", Some((Some(Side::Red), Reason::AllCaptured)));
}

#[test]
fn hemming_the_opponent_in_wins_even_on_the_last_quiet_ply() {
    let start = "eCp4/2d4/cw5/7/7/7/7/7/7 b 199 1";
    check_ending(start, Ruleset::DATOU, "b7b8", Some((Some(Side::Blue), Reason::NoMoves)));
}

#[test]
fn a_hundred_rounds_without_a_capture_are_drawn() {
    let start = |quiet| format!("6e/7/7/7/7/7/7/7/T5P r {quiet} 100");
    check_ending(&start(199), YESHOU, "a1a2", Some((None, Reason::NoCapture)));
    check_ending(&start(198), YESHOU, "a1a2", None);
}

#[test]
fn a_capture_starts_the_count_anew_and_the_den_comes_first() {
    let line = played("6e/7/7/7/7/7/7/dc5/T6 r 199 100", YESHOU, "a1a2");
    assert_eq!(line.position().quiet_plies(), 0);
    assert_eq!(line.ending(Side::Red), None);
    check_ending("2T3e/7/7/7/7/7/7/7/7 r 199 100", YESHOU, "c9d9", Some((Some(Side::Red), Reason::Den)));
}

#[test]
fn a_short_game_keeps_its_result_and_is_not_scored() {
    let check = |reason, plies, ruleset: &Ruleset, is_match, scored, points| {
        let winner = match reason {
            Reason::Agreement | Reason::NoCapture => None,
            Reason::Den
            | Reason::AllCaptured
            | Reason::NoMoves
            | Reason::Timeout
            | Reason::Left
            | Reason::Forfeit
            | Reason::Aborted => Some(Side::Blue),
        };
        let outcome = Outcome::new(winner, reason, plies, ruleset, is_match);
        assert_eq!((outcome.scored, outcome.points()), (scored, points), "{outcome}");
        assert_eq!(outcome.winner, winner.filter(|_| reason != Reason::Aborted));
    };
    check(Reason::Den, 20, &YESHOU, false, false, (0, 0));
    check(Reason::Den, 21, &YESHOU, false, true, (0, 2));
    check(Reason::Den, 20, &YESHOU, true, true, (0, 2));
    check(Reason::Timeout, 0, &YESHOU, false, false, (0, 0));
    check(Reason::Timeout, 0, &DATOU, false, true, (0, 2));
    check(Reason::Agreement, 20, &YESHOU, false, false, (0, 0));
    check(Reason::Agreement, 20, &FOLK, false, true, (1, 1));
    check(Reason::Aborted, 300, &DATOU, true, false, (0, 0));
}

// Section 6: rulesets.

#[test]
fn each_preset_has_its_text_to_be_hashed() {
    // First 8 bytes of the texts' SHA-256: e3b0c44298fc1c14, b68a121da49a4a16,
    // 12cb3ada192807c1, bc00fc4d3b4940dc.
    let check = |name: &str, lines: &[&str]| {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let preset = Preset::find(name).expect(name);
        assert_eq!(preset.ruleset.canonical_text(), text, "{name}");
        assert_eq!(preset.ruleset.preset(), Some(preset));
        assert_eq!(preset.ruleset.validate(), Ok(()));
        assert!(preset.summary.lines().count() == 1);
    };
    check("yeshou", &[]);
    check(
        "datou",
        &[
            "agreed_draw=false",
            "jump_blockers=ANY_RAT",
            "rats_capture_across_bank=false",
            "short_game_rounds=0",
            "tiger_jump=ACROSS_ONLY",
            "timeouts_to_lose=2",
            "trapped_may_capture=true",
        ],
    );
    check(
        "folk",
        &[
            "jump_blockers=ANY_RAT",
            "ladder=DOG_OVER_WOLF",
            "rats_capture_across_bank=false",
            "seven_three=false",
            "seventeen_five=false",
            "short_game_rounds=0",
            "trapped_may_capture=true",
        ],
    );
    check(
        "folk-fox",
        &[
            "jump_blockers=ANY_RAT",
            "ladder=DOG_OVER_FOX",
            "rats_capture_across_bank=false",
            "seven_three=false",
            "seventeen_five=false",
            "short_game_rounds=0",
            "trapped_may_capture=true",
        ],
    );
}

#[test]
fn a_switch_out_of_its_range_is_named() {
    let check = |ruleset: Ruleset, sentence: &str| {
        let found = ruleset.validate().map_err(|error| error.to_string());
        assert_eq!(found, Err(sentence.to_owned()));
    };
    for timeouts_to_lose in [0, 3] {
        let ruleset = Ruleset { timeouts_to_lose, ..YESHOU };
        check(ruleset, &format!("timeouts_to_lose is {timeouts_to_lose}, but must be 1 or 2"));
    }
    for no_capture_rounds in [0, 501, u16::MAX] {
        let ruleset = Ruleset { no_capture_rounds, ..YESHOU };
        check(ruleset, &format!("no_capture_rounds is {no_capture_rounds}, but must be 1 to 500"));
    }
    check(Ruleset { short_game_rounds: 101, ..YESHOU }, "short_game_rounds is 101, but must be 0 to 100");
}

// Section 7: the words.

#[test]
fn every_id_names_one_thing() {
    for rule in Rule::ALL {
        assert_eq!(Rule::from_id(rule.id()), Some(rule));
    }
    for reason in Reason::ALL {
        assert_eq!(Reason::from_id(reason.id()), Some(reason));
    }
    for animal in Animal::ALL {
        assert_eq!(Animal::from_letter(animal.letter()), Some(animal));
    }
    for way in TigerJump::ALL {
        assert_eq!(TigerJump::from_name(way.name()), Some(way));
    }
}

#[test]
fn a_line_stays_small() {
    assert!(size_of::<Line>() <= 200, "{}", size_of::<Line>());
    assert!(size_of::<Position>() <= 112, "{}", size_of::<Position>());
    assert!(size_of::<Violation>() <= 24, "{}", size_of::<Violation>());
}
