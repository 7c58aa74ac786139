//! The referee's judge against the second judge, which shares no code with it.
//!
//! Random games under random switches are played by both at once. At every ply all 63 × 63 pairs
//! of squares are put to both, and every answer must be the same; after every move the lists, the
//! position's text and the outcome too. What the games must bring about, so that their agreement
//! means something, is counted and demanded at the end.
//!
//! A longer run, and one game played again:
//! ```text
//! JUDGES_AGREE_GAMES=20000 cargo test --release --test judges_agree -- --nocapture
//! JUDGES_AGREE_SEED=17 JUDGES_AGREE_GAMES=1 cargo test --test judges_agree
//! ```
//! Game n of a run has the seed `JUDGES_AGREE_SEED` + n (from 1 if unset) and nothing else to
//! follow from. With fewer games than the default nothing is demanded of what occurs.

mod second_judge;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use jungle_referee::rules::{
    Allowed, Animal, JumpBlockers, Ladder, Line, Move, Outcome, Piece, Position, Reason, Rule, Ruleset, SetupError,
    Side, Square, TigerJump, Violation,
};
use second_judge::generate::{Rng, Start, choose, start, wild_text};
use second_judge::{End, Exemption, Game, Switches, Verdict};

/// How many games a plain run plays.
const GAMES: u64 = 700;
/// How many texts a plain run sets up.
const TEXTS: u64 = 6000;

#[test]
fn in_every_game_both_judges_say_the_same_of_all_pairs_of_squares() {
    let games = number_from("JUDGES_AGREE_GAMES").unwrap_or(GAMES);
    let first = number_from("JUDGES_AGREE_SEED").unwrap_or(1);
    let seen = match play_all(first, games) {
        Ok(seen) => seen,
        Err(disagreement) => panic!("{disagreement}"),
    };
    println!("{games} games from seed {first}:");
    println!("{seen}");
    let (never, never_refused) = (seen.never(), seen.never_refused());
    let complete = never.is_empty() && never_refused.is_empty();
    assert!(complete || games < GAMES, "never occurred: {never:?}, refused: {never_refused:?}");
}

#[test]
fn of_every_text_both_judges_say_the_same_and_for_the_same_reason() {
    let mut seen = Seen::of(&SET_UPS);
    for seed in 0..TEXTS {
        let (text, switches) = wild_text(&mut Rng::new(seed));
        let ruleset = ruleset_of(&switches);
        let ours = Position::set_up(&text, &ruleset);
        let second = Game::set_up(&text, &switches);
        let word = ours.as_ref().map_or_else(reason_against, |_| "ok");
        let second_word = second.as_ref().err().copied().unwrap_or("ok");
        assert_eq!(word, second_word, "seed {seed}: {text:?} under {switches:?}");
        if let (Ok(position), Ok(game)) = (ours, second) {
            assert_eq!(position.to_string(), text, "a text is written as it was read");
            assert_eq!(game.text(), text, "a text is written as it was read");
        }
        seen.add(word);
    }
    println!("{TEXTS} texts:");
    println!("{seen}");
    assert!(seen.never().is_empty(), "never occurred: {:?}", seen.never());
}

#[test]
fn the_same_seed_gives_the_same_game() {
    for seed in [1, 2, 99] {
        let mut games = [Vec::new(), Vec::new()];
        for moves in &mut games {
            let mut rng = Rng::new(seed);
            let start = start(&mut rng);
            let mut game = start.set_up();
            moves.push(start.text.clone());
            while game.end().is_none() && game.ply() < 20 {
                let the_move = choose(&game, &mut rng);
                game.play(&the_move[0..2], &the_move[2..4]);
                moves.push(the_move);
            }
        }
        assert_eq!(games[0], games[1]);
    }
}

fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a whole number, not {text:?}")))
}

// ---------------------------------------------------------------------------------------------
// The games
// ---------------------------------------------------------------------------------------------

/// Plays the games of these seeds on every core; the first disagreement found ends it.
fn play_all(first: u64, games: u64) -> Result<Seen, String> {
    let next = AtomicU64::new(first);
    let stop = AtomicBool::new(false);
    let worker = || {
        let mut seen = Seen::of(&MUST_OCCUR);
        while !stop.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + games {
                break;
            }
            if let Err(disagreement) = play(seed, &mut seen) {
                stop.store(true, Ordering::Relaxed);
                return Err(disagreement);
            }
        }
        Ok(seen)
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        let mut all = Seen::of(&MUST_OCCUR);
        for worker in workers {
            all.merge(worker.join().expect("no judge panics")?);
        }
        Ok(all)
    })
}

/// One game, played by both judges to its end or to its length.
fn play(seed: u64, seen: &mut Seen) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let start = start(&mut rng);
    seen.note_start(&start);
    let mut table = Table::new(seed, &start)?;
    table.compare_position()?;
    while table.second.end().is_none() && table.second.ply() < start.plies {
        table.compare_verdicts(seen)?;
        table.compare_lists()?;
        seen.note_turn(&table.second);
        let the_move = choose(&table.second, &mut rng);
        seen.note_move(&table.second);
        table.play(the_move)?;
    }
    seen.note_end(&table.second);
    Ok(())
}

/// One game with both judges at it.
struct Table<'a> {
    seed: u64,
    start: &'a Start,
    line: Line,
    second: Game,
    moves: Vec<String>,
    /// The names of the squares, in the order of [`Square::ALL`].
    names: [String; 63],
}

impl<'a> Table<'a> {
    fn new(seed: u64, start: &'a Start) -> Result<Table<'a>, String> {
        let ruleset = ruleset_of(&start.switches);
        let position = Position::set_up(&start.text, &ruleset)
            .map_err(|error| format!("seed {seed}: only the second judge sets up {}: {error}", start.text))?;
        Ok(Table {
            seed,
            start,
            line: Line::new(position, ruleset),
            second: start.set_up(),
            moves: Vec::new(),
            names: Square::ALL.map(|square| square.to_string()),
        })
    }

    /// Puts all 63 × 63 pairs to both.
    fn compare_verdicts(&self, seen: &mut Seen) -> Result<(), String> {
        let enemy = self.line.position().side_to_move().opponent();
        for from in Square::ALL {
            for to in Square::ALL {
                let ours = self.line.judge(Move { from, to });
                let second = self.second.verdict(&self.names[from.index()], &self.names[to.index()]);
                if !self.same(&ours, &second, enemy) {
                    let asked = format!("{from}{to}");
                    return Err(self.disagreement(&asked, &told(&ours, enemy), &second));
                }
                match ours {
                    Ok(allowed) => self.note_capture(from, to, allowed, seen),
                    Err(violation) => seen.note_refusal(&violation),
                }
            }
        }
        Ok(())
    }

    /// Counts the captures that are more than strength against strength.
    fn note_capture(&self, from: Square, to: Square, allowed: Allowed, seen: &mut Seen) {
        let (Some(captor), Some(target)) = (self.line.position().at(from), allowed.captured) else {
            return;
        };
        let strength = |animal| self.line.ruleset().ladder.strength(animal);
        match (captor.animal, target) {
            (Animal::Rat, Animal::Elephant) => seen.add("may take: the rat an elephant"),
            (Animal::Elephant, Animal::Rat) => seen.add("may take: the elephant a rat in a trap"),
            (Animal::Rat, Animal::Rat) if from.is_river() != to.is_river() => {
                seen.add("may take: a rat a rat across the edge");
            }
            (captor, target) if strength(captor) < strength(target) => {
                seen.add("may take: in a trap, what is stronger");
            }
            _ => {}
        }
    }

    /// Whether two verdicts say the same: rule, squares and plies, or what is taken and the waiver.
    fn same(&self, ours: &Result<Allowed, Violation>, second: &Verdict, enemy: Side) -> bool {
        match (ours, second) {
            (Ok(allowed), Verdict::Allowed { takes, waived }) => {
                allowed.waived == *waived && taken(allowed, enemy) == *takes
            }
            (Err(violation), Verdict::Refused { rule, squares, plies }) => {
                violation.rule().id() == rule
                    && violation.squares().iter().map(|square| &self.names[square.index()]).eq(squares)
                    && violation.plies() == *plies
            }
            (Ok(_), Verdict::Refused { .. }) | (Err(_), Verdict::Allowed { .. }) => false,
        }
    }

    fn compare_lists(&self) -> Result<(), String> {
        let legal = self.line.legal_moves();
        let ours: Vec<String> = legal.moves.iter().map(|legal| legal.mv.to_string()).collect();
        self.compare("the legal moves", &ours, &self.second.legal())?;
        self.compare("whether the bars are waived", &legal.waived, &self.second.waived())?;
        let barred = self.line.barred();
        let ours: Vec<_> = barred.iter().map(|(mv, bar)| (mv.to_string(), bar.rule().id().to_string())).collect();
        self.compare("the barred moves", &ours, &self.second.barred())
    }

    /// What the position says: its text, and the same again when that is read.
    fn compare_position(&self) -> Result<(), String> {
        let text = self.line.position().to_string();
        self.compare("the position", &text, &self.second.text())?;
        self.compare("the ply", &self.line.ply(), &self.second.ply())?;
        self.compare("the position read again", &Position::read(&text), &Ok(*self.line.position()))
    }

    /// Plays a move on both boards, and compares what it took and whether it ended the game.
    fn play(&mut self, the_move: String) -> Result<(), String> {
        let mover = self.line.position().side_to_move();
        let takes = self.second.animal_on(&the_move[2..4]);
        let end = self.second.play(&the_move[0..2], &the_move[2..4]);
        let captured = self.line.advance(the_move.parse().expect("two squares"));
        self.moves.push(the_move);
        let captured = captured.map(|animal| Piece { side: mover.opponent(), animal }.letter());
        self.compare("what was taken", &captured, &takes)?;
        self.compare_position()?;
        let ours = self.line.ending(mover).map(|(winner, reason)| self.outcome(winner, reason));
        self.compare("the outcome", &ours, &end)
    }

    /// The project's outcome in the second judge's words.
    fn outcome(&self, winner: Option<Side>, reason: Reason) -> End {
        let (plies, ruleset) = (self.line.ply(), self.line.ruleset());
        let outcome = Outcome::new(winner, reason, plies, ruleset, self.start.match_game);
        let (red, blue) = outcome.points();
        End {
            winner: outcome.winner.map(Side::letter),
            reason: outcome.reason.id().to_string(),
            scored: outcome.scored,
            red_half_points: u32::from(red),
            blue_half_points: u32::from(blue),
        }
    }

    fn compare<T: PartialEq + std::fmt::Debug>(&self, what: &str, ours: &T, second: &T) -> Result<(), String> {
        if ours == second { Ok(()) } else { Err(self.disagreement(what, ours, second)) }
    }

    /// All that is needed to play it again.
    fn disagreement(&self, asked: &str, ours: &impl std::fmt::Debug, second: &impl std::fmt::Debug) -> String {
        let Table { seed, start, line, moves, .. } = self;
        [
            format!("the judges disagree in the game of seed {seed}"),
            format!("start:    {}", start.text),
            format!("switches: {:?}, match: {}", start.switches, start.match_game),
            format!("moves:    {}", moves.join(" ")),
            format!("board:    {}", line.position()),
            format!("asked:    {asked}"),
            format!("judge:    {ours:?}"),
            format!("second:   {second:?}"),
            format!("again:    JUDGES_AGREE_SEED={seed} JUDGES_AGREE_GAMES=1 cargo test --test judges_agree"),
        ]
        .join("\n")
    }
}

// ---------------------------------------------------------------------------------------------
// From the words of one judge to those of the other
// ---------------------------------------------------------------------------------------------

fn ruleset_of(switches: &Switches) -> Ruleset {
    let ruleset = Ruleset {
        ladder: Ladder::from_name(&switches.ladder).expect("a ladder"),
        rats_capture_across_bank: switches.rats_capture_across_bank,
        jump_blockers: JumpBlockers::from_name(&switches.jump_blockers).expect("blockers"),
        tiger_jump: TigerJump::from_name(&switches.tiger_jump).expect("a way to jump"),
        trapped_may_capture: switches.trapped_may_capture,
        agreed_draw: switches.agreed_draw,
        timeouts_to_lose: u8::try_from(switches.timeouts_to_lose).expect("in range"),
        no_capture_rounds: u16::try_from(switches.no_capture_rounds).expect("in range"),
        short_game_rounds: u8::try_from(switches.short_game_rounds).expect("in range"),
        seven_three: switches.seven_three,
        seventeen_five: switches.seventeen_five,
    };
    assert_eq!(ruleset.validate(), Ok(()));
    ruleset
}

fn taken(allowed: &Allowed, enemy: Side) -> Option<char> {
    allowed.captured.map(|animal| Piece { side: enemy, animal }.letter())
}

/// The project's verdict in the second judge's words.
fn told(ours: &Result<Allowed, Violation>, enemy: Side) -> Verdict {
    match ours {
        Ok(allowed) => Verdict::Allowed { takes: taken(allowed, enemy), waived: allowed.waived },
        Err(violation) => Verdict::Refused {
            rule: violation.rule().id().to_string(),
            squares: violation.squares().iter().map(ToString::to_string).collect(),
            plies: violation.plies(),
        },
    }
}

fn reason_against(error: &SetupError) -> &'static str {
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

// ---------------------------------------------------------------------------------------------
// What occurred
// ---------------------------------------------------------------------------------------------

const MUST_OCCUR: [&str; 29] = [
    "plies",
    "blocked: by two rats",
    "barred: SEVEN_THREE",
    "barred: SEVENTEEN_FIVE",
    "barred: a capture",
    "barred: 17-5 though chased",
    "exempt: trap in the 7",
    "exempt: chased",
    "exempt: trap in the 7, and chased",
    "exempt: trap in the 17",
    "waived: SEVEN_THREE",
    "waived: SEVENTEEN_FIVE",
    "end: DEN",
    "end: ALL_CAPTURED",
    "end: NO_MOVES",
    "end: NO_CAPTURE",
    "end: won with what would have been the last quiet ply",
    "end: short, unscored",
    "end: short, but a match",
    "end: a match, drawn",
    "end: scored, won",
    "end: scored, drawn",
    "end: none in the plies played",
    "round: stayed at 9999",
    "start: Blue to move",
    "may take: the rat an elephant",
    "may take: the elephant a rat in a trap",
    "may take: a rat a rat across the edge",
    "may take: in a trap, what is stronger",
];

const SET_UPS: [&str; 8] = [
    "ok",
    "form",
    "animal twice",
    "no animal",
    "land animal in the river",
    "animal in a den",
    "quiet plies at the draw",
    "no move",
];

/// How often each thing occurred.
struct Seen {
    counts: BTreeMap<String, u64>,
    /// Refusals, over all pairs of squares, in the order of [`Rule::ALL`].
    refused: [u64; 14],
}

impl Seen {
    /// What must occur, so far never.
    fn of(names: &[&str]) -> Seen {
        Seen { counts: names.iter().map(|name| ((*name).to_string(), 0)).collect(), refused: [0; 14] }
    }

    fn add(&mut self, name: &str) {
        *self.counts.entry(name.to_string()).or_default() += 1;
    }

    fn merge(&mut self, other: Seen) {
        for (name, count) in other.counts {
            *self.counts.entry(name).or_default() += count;
        }
        for (rule, count) in other.refused.into_iter().enumerate() {
            self.refused[rule] += count;
        }
    }

    /// What was to occur and did not.
    fn never(&self) -> Vec<&str> {
        self.counts.iter().filter(|(_, count)| **count == 0).map(|(name, _)| name.as_str()).collect()
    }

    /// The rules that refused nothing.
    fn never_refused(&self) -> Vec<Rule> {
        Rule::ALL.into_iter().zip(self.refused).filter(|(_, count)| *count == 0).map(|(rule, _)| rule).collect()
    }

    fn note_start(&mut self, start: &Start) {
        self.add(&format!("start: {}", start.sort));
        if start.text.contains(" b ") {
            self.add("start: Blue to move");
        }
    }

    fn note_refusal(&mut self, violation: &Violation) {
        self.refused[violation.rule() as usize] += 1;
        if violation.rule() == Rule::JumpBlocked && violation.squares().len() == 2 {
            self.add("blocked: by two rats");
        }
    }

    fn note_turn(&mut self, game: &Game) {
        self.add("plies");
        for (the_move, bar) in game.barred() {
            let (from, to) = the_move.split_at(2);
            self.add(&format!("barred: {bar}"));
            if game.animal_on(to).is_some() {
                self.add("barred: a capture");
            }
            if bar == "SEVENTEEN_FIVE" && game.chased(from) {
                self.add("barred: 17-5 though chased");
            }
        }
        for note in game.notes() {
            self.add(match note.exemption {
                Exemption::TrapInSeven => "exempt: trap in the 7",
                Exemption::Chased => "exempt: chased",
                Exemption::TrapInSevenAndChased => "exempt: trap in the 7, and chased",
                Exemption::TrapInSeventeen => "exempt: trap in the 17",
            });
        }
        if game.waived() {
            let legal = game.legal();
            let bar = |the_move: &String| game.bar_waiver_apart(&the_move[0..2], &the_move[2..4]);
            let mut bars: Vec<String> = legal.iter().filter_map(bar).collect();
            assert_eq!(bars.len(), legal.len(), "a bar is waived on every move");
            bars.sort_unstable();
            bars.dedup();
            self.add(&format!("waived: {}", bars.join(" and ")));
        }
    }

    fn note_move(&mut self, game: &Game) {
        if game.side_to_move() == 'b' && game.text().ends_with(" 9999") {
            self.add("round: stayed at 9999");
        }
    }

    fn note_end(&mut self, game: &Game) {
        let Some(end) = game.end() else {
            return self.add("end: none in the plies played");
        };
        self.add(&format!("end: {}", end.reason));
        let quiet = game.text().split(' ').nth(2).map(str::to_string);
        let at_the_draw = quiet == Some((2 * game.switches().no_capture_rounds).to_string());
        if at_the_draw && end.winner.is_some() {
            self.add("end: won with what would have been the last quiet ply");
        }
        let short = game.ply() <= 2 * game.switches().short_game_rounds;
        match (end.scored, short, end.winner.is_some()) {
            (false, _, _) => self.add("end: short, unscored"),
            (true, true, _) => self.add("end: short, but a match"),
            (true, false, true) => self.add("end: scored, won"),
            (true, false, false) => self.add("end: scored, drawn"),
        }
        if game.match_game && end.winner.is_none() {
            self.add("end: a match, drawn");
        }
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let refused = Rule::ALL.into_iter().zip(self.refused).filter(|(_, count)| *count > 0);
        for (rule, count) in refused {
            writeln!(f, "{count:>12}  refused: {rule}")?;
        }
        for (name, count) in &self.counts {
            writeln!(f, "{count:>12}  {name}")?;
        }
        Ok(())
    }
}
