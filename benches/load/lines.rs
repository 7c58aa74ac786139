//! Lines of legal moves that no rule ends, the same in every process, with all that the answers to them must say.

use jungle_referee::rules::{Animal, LegalMove, Line, Move, Position, Ruleset, Side};
use jungle_referee::service::proto as pb;

/// How many plies a line has.
pub(crate) const PLIES: usize = 220;

/// How many lines there are. Games take them in turn.
const LINES: usize = 64;

/// How often a move that takes something is played while there are others, one in so many.
const RARELY: usize = 24;

/// A ply of a line, as the judge sees it.
pub(crate) struct Ply {
    /// The move.
    pub(crate) mv: Move,
    /// What it takes, as the wire says it.
    pub(crate) captured: i32,
    /// The position before it.
    pub(crate) position: String,
    /// The legal moves before it, with what they take.
    pub(crate) legal: Vec<(Move, i32)>,
    /// A move that is not allowed here, and the rule that says so.
    pub(crate) refused: (Move, i32),
}

/// All lines.
pub(crate) struct Lines(Vec<Vec<Ply>>);

impl Lines {
    /// Makes them: by chance, but by the same chance each time.
    pub(crate) fn new() -> Self {
        let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
        Self((0..LINES).map(|_| line(&mut chance)).collect())
    }

    /// The line of a game.
    pub(crate) fn of(&self, game: u64) -> &[Ply] {
        let line = game % u64::try_from(LINES).expect("a small number");
        &self.0[usize::try_from(line).expect("a small number")]
    }
}

/// The side that moves at a ply.
pub(crate) fn mover(ply: usize) -> Side {
    if ply.is_multiple_of(2) { Side::Red } else { Side::Blue }
}

/// A sequence of numbers that looks like chance.
struct Chance(u64);

impl Chance {
    /// A number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let bound = u64::try_from(bound).expect("a number of moves");
        usize::try_from(self.0 % bound).expect("below a number of moves")
    }
}

/// One line; what runs into an end is thrown away and begun anew.
fn line(chance: &mut Chance) -> Vec<Ply> {
    loop {
        let mut line = Line::new(Position::start(&Ruleset::YESHOU), Ruleset::YESHOU);
        let mut plies = Vec::with_capacity(PLIES);
        while plies.len() < PLIES
            && let Some((next, ply)) = lengthened(&line, chance)
        {
            line = next;
            plies.push(ply);
        }
        if plies.len() == PLIES {
            return plies;
        }
    }
}

/// The line with one more ply, if there is one that does not end it.
fn lengthened(line: &Line, chance: &mut Chance) -> Option<(Line, Ply)> {
    let legal = line.legal_moves().moves;
    let peaceful = |mv: &&LegalMove| mv.captured.is_none();
    let mut wanted: Vec<&LegalMove> = legal.iter().filter(peaceful).collect();
    if wanted.is_empty() || chance.below(RARELY) == 0 {
        wanted = legal.iter().collect();
    }
    let going_on = |mv: Move| {
        let (mut after, mover) = (*line, line.position().side_to_move());
        after.advance(mv);
        after.ending(mover).is_none().then_some(after)
    };
    let (played, after) = (0..8).find_map(|_| {
        let played = wanted[chance.below(wanted.len())];
        going_on(played.mv).map(|after| (played, after))
    })?;
    let ply = Ply {
        mv: played.mv,
        captured: on_the_wire(played.captured),
        position: line.position().to_string(),
        legal: legal.iter().map(|legal| (legal.mv, on_the_wire(legal.captured))).collect(),
        refused: refused(line, chance)?,
    };
    Some((after, ply))
}

/// One of the moves that a player might try and that are not allowed.
fn refused(line: &Line, chance: &mut Chance) -> Option<(Move, i32)> {
    let candidates = line.candidates();
    let wrong: Vec<_> =
        candidates.iter().filter_map(|tried| tried.verdict.as_ref().err().map(|why| (tried.mv, why))).collect();
    let (mv, why) = wrong.get(chance.below(wrong.len().max(1)))?;
    let rule = pb::Rule::from_str_name(&format!("RULE_{}", why.rule().id())).expect("a rule of the contract");
    Some((*mv, rule.into()))
}

fn on_the_wire(animal: Option<Animal>) -> i32 {
    let Some(animal) = animal else { return pb::Animal::Unspecified.into() };
    let name = format!("ANIMAL_{animal:?}").to_uppercase();
    pb::Animal::from_str_name(&name).expect("an animal of the contract").into()
}
