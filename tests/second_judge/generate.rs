//! Starts, switches and moves for games in which every rule gets its turn.
//!
//! Everything follows from a seed: the same seed gives the same games everywhere. A game is made
//! with `start` and carried on with `choose`; `attempt` picks pairs of squares to ask about on the
//! way, and `wild_text` makes texts of which many cannot be set up.

use super::{Game, Switches, Verdict};

/// A splitmix64 generator.
#[derive(Clone)]
pub struct Rng {
    state: u64,
}

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng { state: seed }
    }

    pub fn next_number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from 0 to `n` - 1.
    pub fn below(&mut self, n: usize) -> usize {
        let n = u64::try_from(n).expect("a small number");
        usize::try_from(self.next_number() % n).expect("a small number")
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        let width = u64::from(high - low) + 1;
        low + u32::try_from(self.next_number() % width).expect("a small number")
    }

    /// True `percent` times in a hundred.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.between(1, 100) <= percent
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

/// A game to be played.
#[derive(Clone, Debug)]
pub struct Start {
    /// What sort of start it is, for reports.
    pub sort: &'static str,
    pub text: String,
    pub switches: Switches,
    pub match_game: bool,
    /// After so many plies it has been played long enough.
    pub plies: u32,
}

impl Start {
    /// The game, set up; a start always can be.
    pub fn set_up(&self) -> Game {
        let mut game = Game::set_up(&self.text, &self.switches).expect("a start can be set up");
        game.match_game = self.match_game;
        game
    }
}

/// File and rank, both from 0, and the letter that stands there.
type Placed = (usize, usize, char);

/// Random switches: each by itself, now and then a preset as it is.
pub fn switches(rng: &mut Rng) -> Switches {
    let preset = rng.pick(&["yeshou", "datou", "folk", "folk-fox"]);
    let mut switches = Switches::preset(preset);
    if rng.chance(15) {
        return switches;
    }
    switches.ladder = rng.pick(&["WOLF_OVER_DOG", "DOG_OVER_WOLF", "DOG_OVER_FOX"]).to_string();
    switches.rats_capture_across_bank = rng.chance(50);
    switches.jump_blockers = rng.pick(&["ANY_RAT", "ENEMY_RAT"]).to_string();
    switches.tiger_jump = rng.pick(&["BOTH", "ACROSS_ONLY"]).to_string();
    switches.trapped_may_capture = rng.chance(50);
    switches.agreed_draw = rng.chance(50);
    switches.timeouts_to_lose = rng.between(1, 2);
    switches.no_capture_rounds = match rng.below(10) {
        0 | 1 => rng.between(1, 30),
        2 => rng.between(1, 500),
        3 => rng.pick(&[1, 2, 499, 500]),
        _ => rng.between(30, 100),
    };
    switches.short_game_rounds = match rng.below(4) {
        0 => 0,
        1 => rng.between(1, 12),
        2 => 10,
        _ => rng.between(0, 100),
    };
    // Mostly both bars; alone and neither now and then.
    switches.seven_three = rng.chance(75);
    switches.seventeen_five = rng.chance(80);
    switches
}

/// The letters of a ladder, Red's.
fn letters(switches: &Switches) -> Vec<char> {
    if switches.ladder == "DOG_OVER_FOX" {
        vec!['E', 'L', 'T', 'P', 'D', 'F', 'C', 'R']
    } else {
        vec!['E', 'L', 'T', 'P', 'W', 'D', 'C', 'R']
    }
}

fn blue(letter: char) -> char {
    letter.to_ascii_lowercase()
}

fn is_water(file: usize, rank: usize) -> bool {
    matches!(file, 1 | 2 | 4 | 5) && (3..=5).contains(&rank)
}

fn is_den(file: usize, rank: usize) -> bool {
    file == 3 && (rank == 0 || rank == 8)
}

/// The board of a position text.
fn board_text(placed: &[Placed]) -> String {
    let mut ranks = Vec::new();
    for rank in (0..9).rev() {
        let mut text = String::new();
        let mut empty = 0;
        for file in 0..7 {
            match placed.iter().find(|p| p.0 == file && p.1 == rank) {
                None => empty += 1,
                Some(p) => {
                    if empty > 0 {
                        text += &empty.to_string();
                    }
                    empty = 0;
                    text.push(p.2);
                }
            }
        }
        if empty > 0 {
            text += &empty.to_string();
        }
        ranks.push(text);
    }
    ranks.join("/")
}

/// Puts a letter on a random free square of a block of the board, if it finds one.
fn scatter(placed: &mut Vec<Placed>, letter: char, files: (u32, u32), ranks: (u32, u32), rng: &mut Rng) {
    if placed.iter().any(|p| p.2 == letter) {
        return;
    }
    for _ in 0..30 {
        let file = usize::try_from(rng.between(files.0, files.1)).expect("a file");
        let rank = usize::try_from(rng.between(ranks.0, ranks.1)).expect("a rank");
        let free = !placed.iter().any(|p| p.0 == file && p.1 == rank);
        let dry = !is_water(file, rank) || letter.eq_ignore_ascii_case(&'R');
        if free && dry && !is_den(file, rank) {
            placed.push((file, rank, letter));
            return;
        }
    }
}

/// The board turned half round, the sides changed.
fn turned(placed: &[Placed]) -> Vec<Placed> {
    let swap = |letter: char| {
        if letter.is_ascii_uppercase() { letter.to_ascii_lowercase() } else { letter.to_ascii_uppercase() }
    };
    placed.iter().map(|p| (6 - p.0, 8 - p.1, swap(p.2))).collect()
}

/// The board seen in a mirror: left for right.
fn mirrored(placed: &[Placed]) -> Vec<Placed> {
    placed.iter().map(|p| (6 - p.0, p.1, p.2)).collect()
}

/// The usual start.
fn usual(switches: &Switches) -> Vec<Placed> {
    let wolf = if switches.ladder == "DOG_OVER_FOX" { 'F' } else { 'W' };
    let red =
        vec![(0, 0, 'T'), (6, 0, 'L'), (1, 1, 'C'), (5, 1, 'D'), (0, 2, 'E'), (2, 2, wolf), (4, 2, 'P'), (6, 2, 'R')];
    let mut both = red.clone();
    both.extend(turned(&red));
    both
}

/// Few animals, anywhere: they have all the room to walk to and fro.
fn ending(switches: &Switches, rng: &mut Rng) -> Vec<Placed> {
    let mut placed = Vec::new();
    for side in 0..2 {
        for _ in 0..rng.between(1, 3) {
            let letter = rng.pick(&letters(switches));
            let letter = if side == 0 { letter } else { blue(letter) };
            scatter(&mut placed, letter, (0, 6), (0, 8), rng);
        }
    }
    placed
}

/// Many animals in a corner of the board, Red's few among Blue's many.
fn crowd(switches: &Switches, rng: &mut Rng) -> Vec<Placed> {
    let mut placed = Vec::new();
    let (files, ranks) = rng.pick(&[((0, 2), (6, 8)), ((0, 1), (6, 8)), ((0, 3), (5, 8))]);
    for _ in 0..rng.between(1, 3) {
        let letter = rng.pick(&letters(switches));
        scatter(&mut placed, letter, files, ranks, rng);
    }
    for _ in 0..rng.between(2, 7) {
        let letter = blue(rng.pick(&letters(switches)));
        scatter(&mut placed, letter, files, ranks, rng);
    }
    if rng.chance(40) {
        scatter(&mut placed, 'r', (1, 2), (3, 5), rng);
    }
    placed
}

/// Animals on and next to the traps.
fn by_the_traps(switches: &Switches, rng: &mut Rng) -> Vec<Placed> {
    let mut placed = Vec::new();
    if rng.chance(20) {
        // A rat in a trap, before the elephant.
        placed = vec![(3, 1, 'r'), (2, 1, 'E')];
    }
    for _ in 0..rng.between(1, 2) {
        let letter = rng.pick(&letters(switches));
        let ranks = rng.pick(&[(7, 8), (0, 1)]);
        scatter(&mut placed, letter, (2, 4), ranks, rng);
    }
    for _ in 0..rng.between(1, 3) {
        let letter = blue(rng.pick(&letters(switches)));
        let ranks = rng.pick(&[(6, 8), (6, 8), (0, 2)]);
        scatter(&mut placed, letter, (1, 5), ranks, rng);
    }
    placed
}

/// One runner and enemies next to it, so that it is often chased.
fn pursuit(switches: &Switches, rng: &mut Rng) -> Vec<Placed> {
    let mut placed = Vec::new();
    let file = rng.between(0, 4);
    let rank = rng.between(0, 6);
    let near = ((file, file + 2), (rank, rank + 2));
    let runner = rng.pick(&letters(switches));
    scatter(&mut placed, runner, near.0, near.1, rng);
    for _ in 0..rng.between(1, 2) {
        let hunter = blue(rng.pick(&letters(switches)));
        scatter(&mut placed, hunter, near.0, near.1, rng);
    }
    let bystander = rng.pick(&letters(switches));
    scatter(&mut placed, blue(bystander), (0, 6), (0, 8), rng);
    if rng.chance(50) {
        let bystander = rng.pick(&letters(switches));
        scatter(&mut placed, bystander, (0, 6), (0, 8), rng);
    }
    placed
}

/// Rats in the water, jumpers on the banks.
fn by_the_water(switches: &Switches, rng: &mut Rng) -> Vec<Placed> {
    let mut placed = Vec::new();
    if rng.chance(20) {
        // Both rats in the way of one jump.
        let rank = rng.pick(&[3, 4, 5]);
        let (lion, tiger) = rng.pick(&[('L', 't'), ('T', 'l')]);
        placed = vec![(1, rank, 'R'), (2, rank, 'r'), (0, rank, lion), (3, rank, tiger)];
    }
    for rat in ['R', 'r'] {
        if rng.chance(80) {
            let files = rng.pick(&[(1, 2), (0, 3)]);
            scatter(&mut placed, rat, files, (2, 6), rng);
        }
    }
    for letter in ['L', 'T', 'E', 'l', 't', 'e'] {
        if rng.chance(45) {
            scatter(&mut placed, letter, (0, 3), (2, 6), rng);
        }
    }
    for _ in 0..2 {
        let letter = rng.pick(&letters(switches));
        scatter(&mut placed, letter, (0, 6), (0, 8), rng);
        let letter = blue(rng.pick(&letters(switches)));
        scatter(&mut placed, letter, (0, 6), (0, 8), rng);
    }
    placed
}

/// A rat alone in its river, its ring closed at one corner by land animals that it cannot take:
/// after 17 moves the bars would take all that it has.
fn penned_rat(switches: &Switches, rng: &mut Rng) -> Vec<Placed> {
    let mut placed = vec![rng.pick(&[(1, 4, 'R'), (2, 3, 'R')])];
    let mut guards = vec!['c', 'd', 'p', 'l', 't', 'e'];
    for square in [(0, 3), (1, 2)] {
        let guard = guards.remove(rng.below(guards.len()));
        placed.push((square.0, square.1, guard));
    }
    // The corner beside it too.
    if rng.chance(60) {
        for square in [(2, 2), (3, 3)] {
            let guard = guards.remove(rng.below(guards.len()));
            placed.push((square.0, square.1, guard));
        }
    }
    let walker = blue(rng.pick(&letters(switches)));
    scatter(&mut placed, walker, (5, 6), (6, 8), rng);
    placed
}

/// A runner on the edge beside a friend that cannot move: after seven moves to and fro the bar
/// would take its only step.
fn penned_pair(switches: &Switches, rng: &mut Rng) -> Vec<Placed> {
    let dog = if switches.ladder == "DOG_OVER_FOX" { 'F' } else { 'W' };
    let runner = rng.pick(&['E', 'L', 'T', 'P', 'D', dog]);
    let mut guards = vec!['e', 'l', 't', 'p', 'd'];
    let one = guards.remove(rng.below(guards.len()));
    let other = guards.remove(rng.below(guards.len()));
    let begin = rng.pick(&[7, 7, 8]);
    let mut placed = vec![(0, begin, runner), (1, 8, 'C'), (1, 7, one), (2, 8, other)];
    if rng.chance(50) {
        // The step beyond is closed too.
        let third = guards.remove(rng.below(guards.len()));
        placed.push((0, 6, third));
    }
    let walker = blue(rng.pick(&['C', 'R', 'T', 'D']));
    scatter(&mut placed, walker, (5, 6), (0, 3), rng);
    placed
}

/// A victim in a corner with hunters at hand: one quiet step may leave it without a move.
fn last_breath(switches: &Switches, rng: &mut Rng) -> Vec<Placed> {
    let weak = letters(switches)[5];
    let mut placed = vec![(0, 8, rng.pick(&['C', 'P', weak]))];
    let mut hunters = vec!['e', 'l', 't'];
    let beside = hunters.remove(rng.below(hunters.len()));
    placed.push((1, 8, beside));
    let near = hunters.remove(rng.below(hunters.len()));
    let square = rng.pick(&[(0, 6), (1, 7), (0, 6), (1, 6)]);
    placed.push((square.0, square.1, near));
    if rng.chance(40) {
        scatter(&mut placed, hunters[0], (0, 3), (5, 8), rng);
    }
    placed
}

/// A random start, always one that can be set up.
pub fn start(rng: &mut Rng) -> Start {
    loop {
        let mut switches = switches(rng);
        let (sort, placed, plies) = match rng.below(20) {
            0 => ("usual", usual(&switches), 70),
            1..=3 => ("ending", ending(&switches, rng), 90),
            4..=6 => ("crowd", crowd(&switches, rng), 40),
            7 => ("by the traps", by_the_traps(&switches, rng), 70),
            8..=10 => ("pursuit", pursuit(&switches, rng), 60),
            11 | 12 => ("by the water", by_the_water(&switches, rng), 50),
            13..=15 => ("penned rat", penned_rat(&switches, rng), 70),
            16 | 17 => ("penned pair", penned_pair(&switches, rng), 40),
            _ => ("last breath", last_breath(&switches, rng), 20),
        };
        // Pens are for the bars, which take their time.
        if sort.starts_with("penned") && rng.chance(80) {
            switches.seven_three = true;
            switches.seventeen_five = true;
            switches.no_capture_rounds = rng.between(40, 100);
        }
        let placed = if sort != "usual" && rng.chance(50) { turned(&placed) } else { placed };
        let placed = if sort != "usual" && rng.chance(50) { mirrored(&placed) } else { placed };
        let side = if rng.chance(50) { 'r' } else { 'b' };
        let at_the_draw = 2 * switches.no_capture_rounds;
        let quiet = match rng.below(6) {
            // Shut in with what would be the last quiet ply.
            1..=3 if sort == "last breath" => at_the_draw - 1,
            // A pen needs its time.
            _ if sort.starts_with("penned") && rng.chance(80) => 0,
            0 => at_the_draw - rng.between(1, at_the_draw.min(24)),
            1 => rng.between(0, at_the_draw - 1),
            _ => 0,
        };
        let round = match rng.below(5) {
            0 => rng.between(9990, 9999),
            1 => rng.between(1, 9999),
            _ => 1,
        };
        let start = Start {
            sort,
            text: format!("{} {side} {quiet} {round}", board_text(&placed)),
            switches,
            match_game: rng.chance(20),
            plies,
        };
        if Game::set_up(&start.text, &start.switches).is_ok() {
            return start;
        }
    }
}

/// A text that is often refused: a start with a mistake or two in it.
pub fn wild_text(rng: &mut Rng) -> (String, Switches) {
    let start = start(rng);
    let mut switches = start.switches;
    let mut text = start.text;
    for _ in 0..rng.between(1, 2) {
        let fields: Vec<String> = text.split(' ').map(str::to_string).collect();
        let whole = fields.len() == 4;
        match rng.below(10) {
            // One character lost, put in, or changed.
            0 => {
                let mut characters: Vec<char> = text.chars().collect();
                characters.remove(rng.below(characters.len()));
                text = characters.into_iter().collect();
            }
            1 | 2 => {
                let mut characters: Vec<char> = text.chars().collect();
                let place = rng.below(characters.len());
                let new = rng.pick(&"ELTPWFDCReltpwfdcr0123456789/ rbRBxX-".chars().collect::<Vec<_>>());
                if rng.chance(50) {
                    characters.insert(place, new);
                } else {
                    characters[place] = new;
                }
                text = characters.into_iter().collect();
            }
            // Another ladder.
            3 => {
                switches.ladder = rng.pick(&["WOLF_OVER_DOG", "DOG_OVER_WOLF", "DOG_OVER_FOX"]).to_string();
            }
            // A count at, before or far behind the draw; a round at the ends; zeros in front.
            4 if whole => {
                let at_the_draw = 2 * switches.no_capture_rounds;
                let quiet = rng.pick(&[
                    at_the_draw.to_string(),
                    (at_the_draw - 1).to_string(),
                    (at_the_draw + 1).to_string(),
                    "00".to_string(),
                    "01".to_string(),
                    "-1".to_string(),
                    "+1".to_string(),
                    String::new(),
                ]);
                text = format!("{} {} {quiet} {}", fields[0], fields[1], fields[3]);
            }
            5 if whole => {
                let round = rng.pick(&["0", "1", "01", "9999", "10000", "", "1 ", "x"]);
                text = format!("{} {} {} {round}", fields[0], fields[1], fields[2]);
            }
            // Some animals anywhere, doubles, rivers and dens included, and sides left empty.
            _ if whole => {
                let mut placed: Vec<Placed> = Vec::new();
                let sides = rng.pick(&[3, 3, 3, 3, 1, 2]);
                for _ in 0..rng.between(1, 6) {
                    let mut letter = rng.pick(&letters(&switches));
                    if sides == 2 || (sides == 3 && rng.chance(50)) {
                        letter = blue(letter);
                    }
                    let mut at = (rng.below(7), rng.below(9));
                    if rng.chance(15) {
                        at = rng.pick(&[(3, 0), (3, 8)]);
                    }
                    if !placed.iter().any(|p| (p.0, p.1) == at) {
                        placed.push((at.0, at.1, letter));
                    }
                }
                if rng.chance(25) {
                    // The side to move is shut in.
                    placed = vec![(0, 8, 'C'), (0, 7, 'e'), (1, 8, 'l')];
                }
                text = format!("{} {} {} {}", board_text(&placed), fields[1], fields[2], fields[3]);
            }
            _ => {}
        }
    }
    (text, switches)
}

const ALL_FILES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];

fn square_name(file: usize, rank: usize) -> String {
    format!("{}{}", ALL_FILES[file], rank + 1)
}

fn square_numbers(square: &str) -> (usize, usize) {
    let file = ALL_FILES.iter().position(|file| *file == &square[0..1]).expect("a file");
    let rank: usize = square[1..2].parse().expect("a rank");
    (file, rank - 1)
}

/// Two squares to ask about: anything, but mostly an animal and a square that it might reach.
pub fn attempt(game: &Game, rng: &mut Rng) -> (String, String) {
    let anything = square_name(rng.below(7), rng.below(9));
    if rng.chance(10) {
        return (anything, square_name(rng.below(7), rng.below(9)));
    }
    let mut occupied = Vec::new();
    for file in 0..7 {
        for rank in 0..9 {
            let square = square_name(file, rank);
            if let Some(letter) = game.animal_on(&square) {
                let own = letter.is_ascii_uppercase() == (game.side_to_move() == 'r');
                if own || rng.chance(10) {
                    occupied.push((file, rank));
                }
            }
        }
    }
    if occupied.is_empty() {
        return (anything, square_name(rng.below(7), rng.below(9)));
    }
    let (file, rank) = rng.pick(&occupied);
    let far_file = if rng.chance(80) { 1 } else { 3 };
    let far_rank = if rng.chance(80) { 1 } else { 4 };
    let (to_file, to_rank) = match rng.below(9) {
        0 | 1 => (file + far_file, rank),
        2 | 3 => (file, rank + far_rank),
        4 | 5 => (file.saturating_sub(far_file), rank),
        6 | 7 => (file, rank.saturating_sub(far_rank)),
        _ => (file + 1, rank + 1),
    };
    (square_name(file, rank), square_name(to_file.min(6), to_rank.min(8)))
}

/// How a side likes to play for a while.
#[derive(Clone, Copy, PartialEq)]
enum Habit {
    /// Anything legal.
    Anything,
    /// The same animal, to and fro.
    Shuttle,
    /// The same animal, round four squares.
    Ring,
    /// Quiet moves that attack the enemy's latest mover.
    Chase,
    /// Captures, and steps towards the enemy den.
    Forward,
}

/// How many animals a side has.
fn animals(game: &Game, side: char) -> usize {
    let text = game.text();
    let board = text.split(' ').next().unwrap_or_default();
    let own = |c: &char| c.is_ascii_alphabetic() && c.is_ascii_uppercase() == (side == 'r');
    board.chars().filter(own).count()
}

/// The habit of the side to move. It follows from the start and the side and changes every 60
/// plies, so a side holds to it long enough for both windows.
fn habit(game: &Game) -> Habit {
    let mut sum: u64 = 0;
    for byte in game.started_from().bytes() {
        sum = sum.wrapping_mul(31).wrapping_add(u64::from(byte));
    }
    sum = sum.wrapping_mul(1009).wrapping_add(u64::from(game.ply() / 60));
    if game.side_to_move() == 'b' {
        sum = sum.wrapping_add(1 << 40);
    }
    let number = Rng::new(sum).below(10);
    if animals(game, game.side_to_move()) == 1 {
        return match number {
            0 => Habit::Anything,
            1..=3 => Habit::Shuttle,
            9 => Habit::Forward,
            _ => Habit::Ring,
        };
    }
    match number {
        0 => Habit::Anything,
        1..=4 => Habit::Shuttle,
        5 | 6 => Habit::Ring,
        7 => Habit::Chase,
        _ => Habit::Forward,
    }
}

/// The legal moves that neither take nor enter a den.
fn calm(game: &Game, legal: &[String]) -> Vec<String> {
    let mut calm = Vec::new();
    for the_move in legal {
        let to = &the_move[2..4];
        if game.animal_on(to).is_none() && to != "d1" && to != "d9" {
            calm.push(the_move.clone());
        }
    }
    calm
}

/// A legal move for the side to move; the game must be running.
pub fn choose(game: &Game, rng: &mut Rng) -> String {
    let legal = game.legal();
    if rng.below(200) == 0 {
        return rng.pick(&legal);
    }
    let calm = calm(game, &legal);
    let habit = habit(game);
    if calm.is_empty() || habit == Habit::Anything {
        return rng.pick(&legal);
    }
    if rng.chance(70)
        && let Some(the_move) = shutting_in(game, &calm)
    {
        return the_move;
    }
    if rng.chance(25)
        && let Some(the_move) = getting_in_the_way(game, &calm)
    {
        return the_move;
    }
    match habit {
        Habit::Shuttle => shuttle(game, &calm, rng),
        Habit::Ring => ring(game, &calm, rng),
        Habit::Chase => chase(game, &calm, rng),
        Habit::Forward | Habit::Anything => forward(game, &legal, rng),
    }
}

/// A calm move that leaves an enemy of few animals without a move.
fn shutting_in(game: &Game, calm: &[String]) -> Option<String> {
    let enemy = if game.side_to_move() == 'r' { 'b' } else { 'r' };
    if animals(game, enemy) > 2 {
        return None;
    }
    for the_move in calm {
        let mut next = game.clone();
        let end = next.play(&the_move[0..2], &the_move[2..4]);
        if end.is_some_and(|end| end.reason == "NO_MOVES") {
            return Some(the_move.clone());
        }
    }
    None
}

/// A calm move onto the square that the enemy's long run would go back to: then a bar may stand
/// against a capture.
fn getting_in_the_way(game: &Game, calm: &[String]) -> Option<String> {
    let enemy = if game.side_to_move() == 'r' { 'b' } else { 'r' };
    let run = game.latest_run(enemy);
    if run.len() < 7 {
        return None;
    }
    for the_move in calm {
        if the_move[2..4] == run[0].0 {
            return Some(the_move.clone());
        }
    }
    None
}

/// Of some moves mostly those that stay in the water, if there are any.
fn keep_wet(moves: Vec<String>, rng: &mut Rng) -> Vec<String> {
    let mut wet = Vec::new();
    for the_move in &moves {
        let from = square_numbers(&the_move[0..2]);
        let to = square_numbers(&the_move[2..4]);
        if is_water(from.0, from.1) && is_water(to.0, to.1) {
            wet.push(the_move.clone());
        }
    }
    if wet.is_empty() || rng.chance(20) { moves } else { wet }
}

/// The first move of a new run: often by the animal farthest from the enemy's, so that those in
/// the fray stay where they are.
fn fresh(game: &Game, calm: &[String], rng: &mut Rng) -> String {
    if rng.chance(25) {
        return rng.pick(calm);
    }
    let mut enemies = Vec::new();
    for file in 0..7 {
        for rank in 0..9 {
            if let Some(letter) = game.animal_on(&square_name(file, rank))
                && letter.is_ascii_uppercase() != (game.side_to_move() == 'r')
            {
                enemies.push((file, rank));
            }
        }
    }
    let mut farthest = Vec::new();
    let mut farthest_distance = 0;
    for the_move in calm {
        let from = square_numbers(&the_move[0..2]);
        let distances = enemies.iter().map(|enemy| from.0.abs_diff(enemy.0) + from.1.abs_diff(enemy.1));
        let distance = distances.min().unwrap_or(0);
        if distance > farthest_distance {
            farthest_distance = distance;
            farthest.clear();
        }
        if distance == farthest_distance {
            farthest.push(the_move.clone());
        }
    }
    let farthest = keep_wet(farthest, rng);
    rng.pick(&farthest)
}

/// The calm moves of the animal that made the side's latest move.
fn by_the_same(game: &Game, calm: &[String]) -> Vec<String> {
    let run = game.latest_run(game.side_to_move());
    let mut moves = Vec::new();
    for the_move in calm {
        if run.first().is_some_and(|latest| latest.1 == the_move[0..2]) {
            moves.push(the_move.clone());
        }
    }
    moves
}

/// Back to where the animal came from; if that is barred, mostly on with the same animal.
fn shuttle(game: &Game, calm: &[String], rng: &mut Rng) -> String {
    let run = game.latest_run(game.side_to_move());
    let same = by_the_same(game, calm);
    if same.is_empty() {
        return fresh(game, calm, rng);
    }
    let back = format!("{}{}", run[0].1, run[0].0);
    if same.contains(&back) {
        back
    } else if rng.chance(70) {
        rng.pick(&same)
    } else {
        fresh(game, calm, rng)
    }
}

/// The fourth corner of the square that the last three make.
fn ring(game: &Game, calm: &[String], rng: &mut Rng) -> String {
    let run = game.latest_run(game.side_to_move());
    let same = by_the_same(game, calm);
    if same.is_empty() {
        return fresh(game, calm, rng);
    }
    let here = square_numbers(&run[0].1);
    let before = square_numbers(&run[0].0);
    if run.len() >= 2 {
        let first = square_numbers(&run[1].0);
        let next = (here.0 + first.0, here.1 + first.1);
        if next.0 >= before.0 && next.1 >= before.1 {
            let next = (next.0 - before.0, next.1 - before.1);
            if next != before && next.0 < 7 && next.1 < 9 {
                let on = run[0].1.clone() + &square_name(next.0, next.1);
                if same.contains(&on) {
                    return on;
                }
            }
        }
    }
    // No ring yet, or it is closed: turn off if possible.
    let mut turns = Vec::new();
    for the_move in &same {
        let to = square_numbers(&the_move[2..4]);
        let across = (here.0 == before.0) != (here.0 == to.0);
        if across {
            turns.push(the_move.clone());
        }
    }
    let on = if turns.is_empty() { same } else { turns };
    let on = keep_wet(on, rng);
    rng.pick(&on)
}

/// Quiet moves after which the enemy's latest mover can be taken; it is not taken.
fn chase(game: &Game, calm: &[String], rng: &mut Rng) -> String {
    let enemy = if game.side_to_move() == 'r' { 'b' } else { 'r' };
    let run = game.latest_run(enemy);
    let Some(latest) = run.first() else {
        return rng.pick(calm);
    };
    let mut chases = Vec::new();
    for the_move in calm {
        let mut next = game.clone();
        let end = next.play(&the_move[0..2], &the_move[2..4]);
        if end.is_none() && next.chased(&latest.1) {
            chases.push(the_move.clone());
        }
    }
    if chases.is_empty() { shuttle(game, calm, rng) } else { rng.pick(&chases) }
}

/// Captures, or nearer to the enemy den, or anything.
fn forward(game: &Game, legal: &[String], rng: &mut Rng) -> String {
    let den = if game.side_to_move() == 'r' { (3, 8) } else { (3, 0) };
    let distance = |square: &str| {
        let (file, rank) = square_numbers(square);
        file.abs_diff(den.0) + rank.abs_diff(den.1)
    };
    let mut takes = Vec::new();
    let mut nearer = Vec::new();
    for the_move in legal {
        let (from, to) = the_move.split_at(2);
        if let Verdict::Allowed { takes: Some(_), .. } = game.verdict(from, to) {
            takes.push(the_move.clone());
        }
        if distance(to) < distance(from) {
            nearer.push(the_move.clone());
        }
    }
    if !takes.is_empty() && rng.chance(60) {
        rng.pick(&takes)
    } else if !nearer.is_empty() && rng.chance(60) {
        rng.pick(&nearer)
    } else {
        rng.pick(legal)
    }
}
