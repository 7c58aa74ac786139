//! The second judge: the rules once more, slowly and plainly.
//!
//! It exists to be compared with the referee's own judge. It shares no code with it, takes every
//! rule literally from the rules' text, and prefers the dullest way to say a thing to the fastest.
//! Rule ids in the comments are the ids of the rules.
//!
//! A test uses it with `mod second_judge;`. Nothing here knows of clocks, offers or players: it
//! judges moves, counts runs and quiet plies, and tells the endings that a move can bring about.

// Several test programs include this module, and none uses all of it.
#![allow(dead_code, unreachable_pub)]

pub mod generate;

/// The switches of a ruleset (section 6).
#[derive(Clone, Debug, PartialEq)]
pub struct Switches {
    /// `WOLF_OVER_DOG`, `DOG_OVER_WOLF` or `DOG_OVER_FOX`.
    pub ladder: String,
    pub rats_capture_across_bank: bool,
    /// `ANY_RAT` or `ENEMY_RAT`.
    pub jump_blockers: String,
    /// `BOTH` or `ACROSS_ONLY`.
    pub tiger_jump: String,
    pub trapped_may_capture: bool,
    /// Carried along; no move depends on it.
    pub agreed_draw: bool,
    /// Carried along; no move depends on it.
    pub timeouts_to_lose: u32,
    pub no_capture_rounds: u32,
    pub short_game_rounds: u32,
    pub seven_three: bool,
    pub seventeen_five: bool,
}

impl Switches {
    /// One column of the table in section 6.
    pub fn preset(name: &str) -> Switches {
        let yeshou = Switches {
            ladder: "WOLF_OVER_DOG".to_string(),
            rats_capture_across_bank: true,
            jump_blockers: "ENEMY_RAT".to_string(),
            tiger_jump: "BOTH".to_string(),
            trapped_may_capture: false,
            agreed_draw: true,
            timeouts_to_lose: 1,
            no_capture_rounds: 100,
            short_game_rounds: 10,
            seven_three: true,
            seventeen_five: true,
        };
        let datou = Switches {
            ladder: "WOLF_OVER_DOG".to_string(),
            rats_capture_across_bank: false,
            jump_blockers: "ANY_RAT".to_string(),
            tiger_jump: "ACROSS_ONLY".to_string(),
            trapped_may_capture: true,
            agreed_draw: false,
            timeouts_to_lose: 2,
            no_capture_rounds: 100,
            short_game_rounds: 0,
            seven_three: true,
            seventeen_five: true,
        };
        let folk = Switches {
            ladder: "DOG_OVER_WOLF".to_string(),
            rats_capture_across_bank: false,
            jump_blockers: "ANY_RAT".to_string(),
            tiger_jump: "BOTH".to_string(),
            trapped_may_capture: true,
            agreed_draw: true,
            timeouts_to_lose: 1,
            no_capture_rounds: 100,
            short_game_rounds: 0,
            seven_three: false,
            seventeen_five: false,
        };
        let mut folk_fox = folk.clone();
        folk_fox.ladder = "DOG_OVER_FOX".to_string();
        match name {
            "yeshou" => yeshou,
            "datou" => datou,
            "folk" => folk,
            "folk-fox" => folk_fox,
            other => panic!("no preset {other}"),
        }
    }

    /// The ladder as letters, the strongest first (`STRENGTH`).
    fn ladder_letters(&self) -> &'static str {
        match self.ladder.as_str() {
            "WOLF_OVER_DOG" => "ELTPWDCR",
            "DOG_OVER_WOLF" => "ELTPDWCR",
            "DOG_OVER_FOX" => "ELTPDFCR",
            other => panic!("no ladder {other}"),
        }
    }
}

/// What the judge says about a move.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// `takes` is the animal taken, as written in a position text. `waived`: the move stands only
    /// because the bars are waived this turn.
    Allowed { takes: Option<char>, waived: bool },
    /// The first rule that fails in section 7's order, the squares that show it (from a1 to g9,
    /// file before rank) and, for `SEVEN_THREE`, the plies that show it (ascending, from 0).
    Refused { rule: String, squares: Vec<String>, plies: Vec<u32> },
}

/// How a game ended (section 5).
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// `'r'`, `'b'`, or none for a draw.
    pub winner: Option<char>,
    /// `DEN`, `ALL_CAPTURED`, `NO_MOVES` or `NO_CAPTURE`.
    pub reason: String,
    pub scored: bool,
    pub red_half_points: u32,
    pub blue_half_points: u32,
}

/// Why a bar that counts enough moves does not bar after all (section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exemption {
    /// `SEVEN_THREE`: one of the 7 moves ended on a trap, and the animal is not chased.
    TrapInSeven,
    /// `SEVEN_THREE`: the animal is chased, and none of the 7 moves ended on a trap.
    Chased,
    /// `SEVEN_THREE`: both at once.
    TrapInSevenAndChased,
    /// `SEVENTEEN_FIVE`: one of the 17 moves ended on a trap.
    TrapInSeventeen,
}

/// An exemption and the move that it saved from its bar (the other bar may still refuse it).
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    pub exemption: Exemption,
    pub the_move: String,
}

/// A square: file `'a'` to `'g'` and rank 1 to 9. Sorted, squares run from a1 to g9, file before
/// rank.
type Square = (char, u8);

/// The letters on the board by file and rank; `'.'` is an empty square. Red is upper case.
type Board = [[char; 9]; 7];

/// A move that was played. Its place in the history is its ply number.
#[derive(Clone)]
struct Played {
    side: char,
    /// The letter names the animal: a side has no animal twice.
    animal: char,
    from: Square,
    to: Square,
}

/// A refusal before it is written out.
struct Refusal {
    rule: &'static str,
    squares: Vec<Square>,
    plies: Vec<u32>,
}

/// A position as a text writes it.
struct Position {
    board: Board,
    side: char,
    quiet: u32,
    round: u32,
}

/// A game from its set-up on.
#[derive(Clone)]
pub struct Game {
    /// Created as a match: scored whatever its length. Off unless set.
    pub match_game: bool,
    switches: Switches,
    started_from: String,
    board: Board,
    side: char,
    quiet: u32,
    round: u32,
    history: Vec<Played>,
    end: Option<End>,
}

// ---------------------------------------------------------------------------------------------
// Section 1: board, sides, text
// ---------------------------------------------------------------------------------------------

const FILES: [char; 7] = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];

/// All 63 squares, from a1 to g9, file before rank.
#[rustfmt::skip]
const ALL_SQUARES: [Square; 63] = [
    ('a', 1), ('a', 2), ('a', 3), ('a', 4), ('a', 5), ('a', 6), ('a', 7), ('a', 8), ('a', 9),
    ('b', 1), ('b', 2), ('b', 3), ('b', 4), ('b', 5), ('b', 6), ('b', 7), ('b', 8), ('b', 9),
    ('c', 1), ('c', 2), ('c', 3), ('c', 4), ('c', 5), ('c', 6), ('c', 7), ('c', 8), ('c', 9),
    ('d', 1), ('d', 2), ('d', 3), ('d', 4), ('d', 5), ('d', 6), ('d', 7), ('d', 8), ('d', 9),
    ('e', 1), ('e', 2), ('e', 3), ('e', 4), ('e', 5), ('e', 6), ('e', 7), ('e', 8), ('e', 9),
    ('f', 1), ('f', 2), ('f', 3), ('f', 4), ('f', 5), ('f', 6), ('f', 7), ('f', 8), ('f', 9),
    ('g', 1), ('g', 2), ('g', 3), ('g', 4), ('g', 5), ('g', 6), ('g', 7), ('g', 8), ('g', 9),
];

/// Whether a text names a square of the board.
pub fn is_square(text: &str) -> bool {
    read_square(text).is_some()
}

fn read_square(text: &str) -> Option<Square> {
    let mut characters = text.chars();
    let (Some(file), Some(rank), None) = (characters.next(), characters.next(), characters.next()) else {
        return None;
    };
    if !FILES.contains(&file) {
        return None;
    }
    let rank = match rank {
        '1' => 1,
        '2' => 2,
        '3' => 3,
        '4' => 4,
        '5' => 5,
        '6' => 6,
        '7' => 7,
        '8' => 8,
        '9' => 9,
        _ => return None,
    };
    Some((file, rank))
}

fn square(text: &str) -> Square {
    match read_square(text) {
        Some(square) => square,
        None => panic!("{text} is no square"),
    }
}

fn name(square: Square) -> String {
    let mut name = String::with_capacity(2);
    name.push(square.0);
    name.push(char::from(b'0' + square.1));
    name
}

fn file_number(file: char) -> usize {
    match file {
        'a' => 0,
        'b' => 1,
        'c' => 2,
        'd' => 3,
        'e' => 4,
        'f' => 5,
        'g' => 6,
        other => panic!("no file {other}"),
    }
}

fn at(board: &Board, square: Square) -> char {
    board[file_number(square.0)][usize::from(square.1) - 1]
}

fn put(board: &mut Board, square: Square, letter: char) {
    board[file_number(square.0)][usize::from(square.1) - 1] = letter;
}

/// Whose den the square is.
fn den_of(square: Square) -> Option<char> {
    match square {
        ('d', 1) => Some('r'),
        ('d', 9) => Some('b'),
        _ => None,
    }
}

/// Whose trap the square is.
fn trap_of(square: Square) -> Option<char> {
    match square {
        ('c', 1) | ('e', 1) | ('d', 2) => Some('r'),
        ('c', 9) | ('e', 9) | ('d', 8) => Some('b'),
        _ => None,
    }
}

/// Two rivers, b4 to c6 and e4 to f6.
fn is_river(square: Square) -> bool {
    let wet_file = matches!(square.0, 'b' | 'c' | 'e' | 'f');
    let wet_rank = matches!(square.1, 4..=6);
    wet_file && wet_rank
}

/// The side an animal's letter belongs to.
fn side_of(letter: char) -> char {
    if letter.is_ascii_uppercase() { 'r' } else { 'b' }
}

/// The animal without its side.
fn kind(letter: char) -> char {
    letter.to_ascii_uppercase()
}

fn other_side(side: char) -> char {
    if side == 'r' { 'b' } else { 'r' }
}

/// The squares on which a side has an animal, from a1 to g9.
fn squares_of(board: &Board, side: char) -> Vec<Square> {
    let mut squares = Vec::new();
    for square in ALL_SQUARES {
        let letter = at(board, square);
        if letter != '.' && side_of(letter) == side {
            squares.push(square);
        }
    }
    squares
}

/// A number without leading zeros. One too large to hold is as good as the largest held.
fn read_number(text: &str) -> Option<u32> {
    if text.is_empty() || !text.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    if text.len() > 1 && text.starts_with('0') {
        return None;
    }
    Some(text.parse().unwrap_or(u32::MAX))
}

/// Reads a position text; a finished position can be read too. None: not of the form, or a letter
/// is not of the ladder.
fn read_position(text: &str, switches: &Switches) -> Option<Position> {
    let fields: Vec<&str> = text.split(' ').collect();
    if fields.len() != 4 {
        return None;
    }
    let ranks: Vec<&str> = fields[0].split('/').collect();
    if ranks.len() != 9 {
        return None;
    }
    let mut board: Board = [['.'; 9]; 7];
    // The first rank written is rank 9.
    let mut rank = 9;
    for rank_text in ranks {
        let mut filled = 0;
        let mut digit_before = false;
        for c in rank_text.chars() {
            if let Some(run) = c.to_digit(10) {
                if !(1..=7).contains(&run) || digit_before {
                    return None;
                }
                for _ in 0..run {
                    filled += 1;
                }
                digit_before = true;
            } else {
                if !switches.ladder_letters().contains(c.to_ascii_uppercase()) {
                    return None;
                }
                if filled >= 7 {
                    return None;
                }
                put(&mut board, (FILES[filled], rank), c);
                filled += 1;
                digit_before = false;
            }
        }
        if filled != 7 {
            return None;
        }
        rank -= 1;
    }
    let side = match fields[1] {
        "r" => 'r',
        "b" => 'b',
        _ => return None,
    };
    let quiet = read_number(fields[2])?;
    let round = read_number(fields[3])?;
    if !(1..=9999).contains(&round) {
        return None;
    }
    Some(Position { board, side, quiet, round })
}

/// Writes a position text.
fn write_position(position: &Position) -> String {
    let mut ranks = Vec::new();
    for rank in [9, 8, 7, 6, 5, 4, 3, 2, 1] {
        let mut text = String::new();
        let mut empty = 0;
        for file in FILES {
            let letter = at(&position.board, (file, rank));
            if letter == '.' {
                empty += 1;
            } else {
                if empty > 0 {
                    text.push_str(&empty.to_string());
                    empty = 0;
                }
                text.push(letter);
            }
        }
        if empty > 0 {
            text.push_str(&empty.to_string());
        }
        ranks.push(text);
    }
    format!("{} {} {} {}", ranks.join("/"), position.side, position.quiet, position.round)
}

// ---------------------------------------------------------------------------------------------
// Section 2: movement
// ---------------------------------------------------------------------------------------------

/// One square along a file or a rank (`STEP`).
fn is_one_step(from: Square, to: Square) -> bool {
    let files = file_number(from.0).abs_diff(file_number(to.0));
    let ranks = from.1.abs_diff(to.1);
    (files == 1 && ranks == 0) || (files == 0 && ranks == 1)
}

/// The water squares between the two ends of a jump line (`JUMP`); none if it is no jump line.
fn jumped_over(from: Square, to: Square) -> Vec<Square> {
    // Along a rank, ranks 4 to 6: a to d, d to g, and back.
    if from.1 == to.1 && matches!(from.1, 4..=6) {
        let rank = from.1;
        match (from.0, to.0) {
            ('a', 'd') | ('d', 'a') => return vec![('b', rank), ('c', rank)],
            ('d', 'g') | ('g', 'd') => return vec![('e', rank), ('f', rank)],
            _ => {}
        }
    }
    // Along a file, b, c, e and f: rank 3 to rank 7, and back.
    if from.0 == to.0 && matches!(from.0, 'b' | 'c' | 'e' | 'f') {
        let file = from.0;
        if (from.1, to.1) == (3, 7) || (from.1, to.1) == (7, 3) {
            return vec![(file, 4), (file, 5), (file, 6)];
        }
    }
    Vec::new()
}

/// Whether this animal may jump along this line, rats apart (`JUMP`, switch `tiger_jump`).
fn may_jump(animal: char, from: Square, to: Square, switches: &Switches) -> bool {
    let along_a_rank = from.1 == to.1;
    match kind(animal) {
        'L' => true,
        'T' => switches.tiger_jump == "BOTH" || along_a_rank,
        _ => false,
    }
}

fn refuse(rule: &'static str, squares: &[Square]) -> Refusal {
    let mut squares = squares.to_vec();
    squares.sort_unstable();
    squares.dedup();
    Refusal { rule, squares, plies: Vec::new() }
}

/// Sections 2 and 3 in section 7's order, for a side that is taken to be on turn: the animal that
/// the move takes, if any, or the first rule that fails.
fn by_sections_2_and_3(
    board: &Board,
    switches: &Switches,
    side: char,
    from: Square,
    to: Square,
) -> Result<Option<char>, Refusal> {
    let animal = at(board, from);

    // NO_ANIMAL, NOT_YOUR_ANIMAL.
    if animal == '.' {
        return Err(refuse("NO_ANIMAL", &[from]));
    }
    if side_of(animal) != side {
        return Err(refuse("NOT_YOUR_ANIMAL", &[from]));
    }

    // STEP: one step, or one of the jump lines, where other rules decide.
    let water = jumped_over(from, to);
    let on_a_jump_line = !water.is_empty();
    if !is_one_step(from, to) && !on_a_jump_line {
        return Err(refuse("STEP", &[to]));
    }

    // RIVER: whatever stands there.
    if is_river(to) && kind(animal) != 'R' {
        return Err(refuse("RIVER", &[to]));
    }

    if on_a_jump_line {
        // JUMP.
        if !may_jump(animal, from, to, switches) {
            return Err(refuse("JUMP", &[to]));
        }
        // JUMP_BLOCKED: each blocking rat is shown.
        let mut blocking = Vec::new();
        for square in water {
            let letter = at(board, square);
            if letter == '.' || kind(letter) != 'R' {
                continue;
            }
            let enemy = side_of(letter) != side;
            if enemy || switches.jump_blockers == "ANY_RAT" {
                blocking.push(square);
            }
        }
        if !blocking.is_empty() {
            return Err(refuse("JUMP_BLOCKED", &blocking));
        }
    }

    // OWN_DEN.
    if den_of(to) == Some(side) {
        return Err(refuse("OWN_DEN", &[to]));
    }

    let target = at(board, to);
    if target == '.' {
        return Ok(None);
    }

    // OWN_PIECE.
    if side_of(target) == side {
        return Err(refuse("OWN_PIECE", &[to]));
    }

    // TRAPPED: in an enemy trap it takes nothing, unless the switch lets it.
    let enemy = other_side(side);
    if trap_of(from) == Some(enemy) && !switches.trapped_may_capture {
        return Err(refuse("TRAPPED", &[from]));
    }

    // BANK: nothing takes across the water's edge, but for a rat a rat with the switch.
    if is_river(from) != is_river(to) {
        let rat_and_rat = kind(animal) == 'R' && kind(target) == 'R';
        if !(rat_and_rat && switches.rats_capture_across_bank) {
            return Err(refuse("BANK", &[from, to]));
        }
    }

    // TRAP: what stands in a trap of the captor's side cannot resist. It settles the two rules
    // that are left.
    if trap_of(to) == Some(side) {
        return Ok(Some(target));
    }

    // RAT_ELEPHANT: the elephant never takes the rat; the rat takes the elephant.
    if kind(animal) == 'E' && kind(target) == 'R' {
        return Err(refuse("RAT_ELEPHANT", &[to]));
    }
    if kind(animal) == 'R' && kind(target) == 'E' {
        return Ok(Some(target));
    }

    // STRENGTH: its own strength or less. The ladder has the strongest first.
    let ladder = switches.ladder_letters();
    if ladder.find(kind(animal)) > ladder.find(kind(target)) {
        return Err(refuse("STRENGTH", &[to]));
    }
    Ok(Some(target))
}

/// Every move that sections 2 and 3 allow a side, from a1 to g9: each animal, each square.
fn moves_by_sections_2_and_3(board: &Board, switches: &Switches, side: char) -> Vec<(Square, Square)> {
    let mut moves = Vec::new();
    for from in squares_of(board, side) {
        for to in ALL_SQUARES {
            if by_sections_2_and_3(board, switches, side, from, to).is_ok() {
                moves.push((from, to));
            }
        }
    }
    moves
}

// ---------------------------------------------------------------------------------------------
// The game
// ---------------------------------------------------------------------------------------------

impl Game {
    /// Sets a game up from a text, or says the first reason of section 1 against it: `form`,
    /// `animal twice`, `no animal`, `land animal in the river`, `animal in a den`,
    /// `quiet plies at the draw`, `no move`.
    pub fn set_up(text: &str, switches: &Switches) -> Result<Game, &'static str> {
        let Some(position) = read_position(text, switches) else {
            return Err("form");
        };
        let board = position.board;
        let red = squares_of(&board, 'r');
        let blue = squares_of(&board, 'b');

        let mut seen = Vec::new();
        for square in red.iter().chain(blue.iter()) {
            let letter = at(&board, *square);
            if seen.contains(&letter) {
                return Err("animal twice");
            }
            seen.push(letter);
        }
        if red.is_empty() || blue.is_empty() {
            return Err("no animal");
        }
        for square in ALL_SQUARES {
            let letter = at(&board, square);
            if letter != '.' && kind(letter) != 'R' && is_river(square) {
                return Err("land animal in the river");
            }
        }
        for square in ALL_SQUARES {
            if at(&board, square) != '.' && den_of(square).is_some() {
                return Err("animal in a den");
            }
        }
        if position.quiet >= 2 * switches.no_capture_rounds {
            return Err("quiet plies at the draw");
        }
        if moves_by_sections_2_and_3(&board, switches, position.side).is_empty() {
            return Err("no move");
        }
        Ok(Game {
            match_game: false,
            switches: switches.clone(),
            started_from: text.to_string(),
            board,
            side: position.side,
            quiet: position.quiet,
            round: position.round,
            history: Vec::new(),
            end: None,
        })
    }

    /// The position text now.
    pub fn text(&self) -> String {
        write_position(&Position { board: self.board, side: self.side, quiet: self.quiet, round: self.round })
    }

    /// How many plies were played; also the number of the ply to come.
    pub fn ply(&self) -> u32 {
        let mut count = 0;
        for _ in &self.history {
            count += 1;
        }
        count
    }

    /// `'r'` or `'b'`.
    pub fn side_to_move(&self) -> char {
        self.side
    }

    /// The text that the game was set up from.
    pub fn started_from(&self) -> &str {
        &self.started_from
    }

    /// The switches that the game is judged by.
    pub fn switches(&self) -> &Switches {
        &self.switches
    }

    /// How the game ended, if it did.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// What stands on a square.
    pub fn animal_on(&self, on: &str) -> Option<char> {
        let letter = at(&self.board, square(on));
        if letter == '.' { None } else { Some(letter) }
    }

    /// A side's run, newest first, as from and to: its latest moves, as far back as the same
    /// animal made them.
    pub fn latest_run(&self, side: char) -> Vec<(String, String)> {
        let mut run = Vec::new();
        let mut animal = None;
        for played in self.history.iter().rev() {
            if played.side != side {
                continue;
            }
            if animal.is_some() && animal != Some(played.animal) {
                break;
            }
            animal = Some(played.animal);
            run.push((name(played.from), name(played.to)));
        }
        run
    }

    /// The run of one animal (section 4), newest first: the ply and the destination of each move.
    /// Empty if another animal made its side's latest move, or there is none.
    fn run_of(&self, animal: char) -> Vec<(u32, Square)> {
        let mut run = Vec::new();
        let mut ply = self.ply();
        for played in self.history.iter().rev() {
            // Plies are numbered from 0: the latest has the number before the ply to come.
            ply -= 1;
            // The opponent's moves are not counted.
            if played.side != side_of(animal) {
                continue;
            }
            // A move by another animal of the side ends the run.
            if played.animal != animal {
                break;
            }
            run.push((ply, played.to));
        }
        run
    }

    /// Chased (section 4): some enemy animal could take what stands there, by sections 2 and 3,
    /// if it were the enemy's turn.
    fn is_chased(&self, on: Square) -> bool {
        let enemy = other_side(side_of(at(&self.board, on)));
        for from in squares_of(&self.board, enemy) {
            if by_sections_2_and_3(&self.board, &self.switches, enemy, from, on).is_ok() {
                return true;
            }
        }
        false
    }

    /// Whether the animal on a square is chased.
    pub fn chased(&self, on: &str) -> bool {
        self.animal_on(on).is_some() && self.is_chased(square(on))
    }

    /// Section 4 on a move that sections 2 and 3 allow, the waiver apart: the bar that refuses
    /// it, if one does, and the exemptions that kept one from doing so.
    fn bars_on(&self, from: Square, to: Square) -> (Option<Refusal>, Vec<Exemption>) {
        let mut refusal = None;
        let mut exemptions = Vec::new();
        let run = self.run_of(at(&self.board, from));

        // SEVEN_THREE.
        if self.switches.seven_three && run.len() >= 7 {
            let window = &run[0..7];
            let mut plies = Vec::new();
            let mut trap = false;
            for (ply, destination) in window {
                if *destination == to {
                    plies.push(*ply);
                }
                if trap_of(*destination).is_some() {
                    trap = true;
                }
            }
            if plies.len() >= 3 {
                let chased = self.is_chased(from);
                if trap && chased {
                    exemptions.push(Exemption::TrapInSevenAndChased);
                } else if trap {
                    exemptions.push(Exemption::TrapInSeven);
                } else if chased {
                    exemptions.push(Exemption::Chased);
                } else {
                    plies.sort_unstable();
                    let mut seven_three = refuse("SEVEN_THREE", &[to]);
                    seven_three.plies = plies;
                    refusal = Some(seven_three);
                }
            }
        }

        // SEVENTEEN_FIVE. Being chased does not exempt.
        if self.switches.seventeen_five && run.len() >= 17 {
            let window = &run[0..17];
            let mut squares = Vec::new();
            let mut trap = false;
            for (_, destination) in window {
                if !squares.contains(destination) {
                    squares.push(*destination);
                }
                if trap_of(*destination).is_some() {
                    trap = true;
                }
            }
            if squares.len() <= 5 && squares.contains(&to) {
                if trap {
                    exemptions.push(Exemption::TrapInSeventeen);
                } else if refusal.is_none() {
                    refusal = Some(refuse("SEVENTEEN_FIVE", &squares));
                }
            }
        }
        (refusal, exemptions)
    }

    /// The bar that stands against a move that sections 2 and 3 allow, whether waived or not.
    pub fn bar_waiver_apart(&self, from: &str, to: &str) -> Option<String> {
        let (refusal, _) = self.bars_on(square(from), square(to));
        refusal.map(|refusal| refusal.rule.to_string())
    }

    /// Every move of the side to move that sections 2 and 3 allow; none once the game has ended.
    fn allowed_by_the_board(&self) -> Vec<(Square, Square)> {
        if self.end.is_some() {
            return Vec::new();
        }
        moves_by_sections_2_and_3(&self.board, &self.switches, self.side)
    }

    /// Whether the bars are waived this turn: they would take every move that sections 2 and 3
    /// allow the side.
    pub fn waived(&self) -> bool {
        self.bars_take_all(&self.allowed_by_the_board())
    }

    /// Whether a bar stands against every one of these moves, of which there is one at least.
    fn bars_take_all(&self, moves: &[(Square, Square)]) -> bool {
        if moves.is_empty() {
            return false;
        }
        for (from, to) in moves {
            if self.bars_on(*from, *to).0.is_none() {
                return false;
            }
        }
        true
    }

    /// The verdict on a move between any two squares (section 7, from `NO_ANIMAL` on). That the
    /// game is over comes before it in that order: ask `end` first.
    pub fn verdict(&self, from: &str, to: &str) -> Verdict {
        let from = square(from);
        let to = square(to);
        let refusal = match by_sections_2_and_3(&self.board, &self.switches, self.side, from, to) {
            Err(refusal) => refusal,
            Ok(takes) => match self.bars_on(from, to).0 {
                None => {
                    return Verdict::Allowed { takes, waived: false };
                }
                Some(refusal) => {
                    if self.waived() {
                        return Verdict::Allowed { takes, waived: true };
                    }
                    refusal
                }
            },
        };
        let mut squares = Vec::new();
        for square in refusal.squares {
            squares.push(name(square));
        }
        Verdict::Refused { rule: refusal.rule.to_string(), squares, plies: refusal.plies }
    }

    /// The legal moves, sorted from a1 to g9 by from and then by to; none once the game ended.
    pub fn legal(&self) -> Vec<String> {
        let moves = self.allowed_by_the_board();
        let waived = self.bars_take_all(&moves);
        let mut legal = Vec::new();
        for (from, to) in moves {
            if waived || self.bars_on(from, to).0.is_none() {
                legal.push(name(from) + &name(to));
            }
        }
        legal
    }

    /// The barred moves with the bar that refuses each, sorted as `legal`; none while waived.
    pub fn barred(&self) -> Vec<(String, String)> {
        let moves = self.allowed_by_the_board();
        let mut barred = Vec::new();
        if self.bars_take_all(&moves) {
            return barred;
        }
        for (from, to) in moves {
            if let Some(refusal) = self.bars_on(from, to).0 {
                barred.push((name(from) + &name(to), refusal.rule.to_string()));
            }
        }
        barred
    }

    /// The exemptions of this turn: each move that a bar would have refused but for one.
    pub fn notes(&self) -> Vec<Note> {
        let mut notes = Vec::new();
        for (from, to) in self.allowed_by_the_board() {
            for exemption in self.bars_on(from, to).1 {
                notes.push(Note { exemption, the_move: name(from) + &name(to) });
            }
        }
        notes
    }

    /// Plays a legal move and tells how the game ended, if it did. Anything but a legal move in a
    /// running game is a mistake of the caller.
    pub fn play(&mut self, from: &str, to: &str) -> Option<End> {
        assert!(self.end.is_none(), "the game has ended");
        let takes = match self.verdict(from, to) {
            Verdict::Allowed { takes, .. } => takes,
            Verdict::Refused { rule, .. } => panic!("{from}{to} is refused: {rule}"),
        };
        let from = square(from);
        let to = square(to);
        let mover = self.side;
        let opponent = other_side(mover);
        let animal = at(&self.board, from);

        put(&mut self.board, from, '.');
        put(&mut self.board, to, animal);
        self.history.push(Played { side: mover, animal, from, to });
        if takes.is_some() {
            self.quiet = 0;
        } else {
            self.quiet += 1;
        }
        // The round grows after Blue's move and stays at 9999.
        if mover == 'b' && self.round < 9999 {
            self.round += 1;
        }
        self.side = opponent;

        // Section 5, in its order.
        if den_of(to) == Some(opponent) {
            self.finish(Some(mover), "DEN");
        } else if squares_of(&self.board, opponent).is_empty() {
            self.finish(Some(mover), "ALL_CAPTURED");
        } else if moves_by_sections_2_and_3(&self.board, &self.switches, opponent).is_empty() {
            self.finish(Some(mover), "NO_MOVES");
        } else if self.quiet >= 2 * self.switches.no_capture_rounds {
            self.finish(None, "NO_CAPTURE");
        }
        self.end.clone()
    }

    /// Writes the end down, with the points (section 5, short games).
    fn finish(&mut self, winner: Option<char>, reason: &str) {
        // Two plies a round. With 0 rounds no game is short, for it has played a ply.
        let short = self.ply() <= 2 * self.switches.short_game_rounds;
        let scored = self.match_game || !short;
        let (red, blue) = match (scored, winner) {
            (false, _) => (0, 0),
            (true, Some('r')) => (2, 0),
            (true, Some(_)) => (0, 2),
            (true, None) => (1, 1),
        };
        self.end =
            Some(End { winner, reason: reason.to_string(), scored, red_half_points: red, blue_half_points: blue });
    }
}
