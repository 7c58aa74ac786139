//! The two bars on repetition: section 4.
//!
//! Here lives each side's run, and which squares it closes this turn:
//! `SEVEN_THREE` and `SEVENTEEN_FIVE`. The waiver, which needs every move of the
//! side, lives in `judge`, and so does the order of judgement.

use super::animal::{Animal, Piece, Side};
use super::judge;
use super::movement::Move;
use super::position::Position;
use super::ruleset::Ruleset;
use super::square::{Square, SquareSet};
use super::violation::{Entries, Violation};

/// How many moves the 7-3 bar looks at.
pub(super) const SEVEN: usize = 7;
/// How many moves the 17-5 bar looks at: the longest memory of a run.
const SEVENTEEN: usize = 17;

/// A side's own latest moves, newest first, as far back as the same animal made them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Run {
    /// Who made them; `None` before the side's first move.
    animal: Option<Animal>,
    /// How many are kept, 0–17; older ones matter to no bar.
    length: u8,
    /// The destinations, newest first.
    ends: [Square; SEVENTEEN],
}

impl Run {
    /// No moves yet.
    pub(super) const EMPTY: Run = Run { animal: None, length: 0, ends: [Square::on(0, 0); SEVENTEEN] };

    /// Writes down the side's next move: who made it (if anybody), and where it ended.
    pub(super) fn record(&mut self, animal: Option<Animal>, to: Square) {
        if animal.is_none() || animal != self.animal {
            *self = Run::EMPTY;
        }
        if animal.is_some() {
            self.animal = animal;
            self.ends.copy_within(..SEVENTEEN - 1, 1);
            self.ends[0] = to;
            self.length = (self.length + 1).min(17);
        }
    }

    /// The latest so many destinations, newest first, if the run has that many.
    fn latest(&self, count: usize) -> Option<&[Square]> {
        self.ends.get(..usize::from(self.length)).and_then(|ends| ends.get(..count))
    }
}

/// The squares that the bars close this turn, and to whom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bars {
    /// The animal whose run it is; nobody else is barred.
    animal: Option<Animal>,
    /// Closed by `SEVEN_THREE`.
    seven_three: SquareSet,
    /// Closed by `SEVENTEEN_FIVE`: all squares of its window.
    seventeen_five: SquareSet,
}

impl Bars {
    const NONE: Bars = Bars { animal: None, seven_three: SquareSet::EMPTY, seventeen_five: SquareSet::EMPTY };

    /// What the run of the side to move closes in this position.
    pub(super) fn of(position: &Position, ruleset: &Ruleset, run: &Run) -> Bars {
        let side = position.side_to_move();
        let Some(animal) = run.animal else {
            return Bars::NONE;
        };
        let Some(square) = position.square_of(side, animal) else {
            return Bars::NONE;
        };
        let mut bars = Bars { animal: Some(animal), ..Bars::NONE };
        if ruleset.seven_three {
            bars.seven_three = thrice_in_seven(run);
            if !bars.seven_three.is_empty() && chased(position, ruleset, side, square) {
                bars.seven_three = SquareSet::EMPTY;
            }
        }
        if ruleset.seventeen_five {
            bars.seventeen_five = five_in_seventeen(run);
        }
        bars
    }

    /// Whether nothing is closed.
    pub(super) fn is_empty(&self) -> bool {
        self.seven_three.is_empty() && self.seventeen_five.is_empty()
    }

    /// Whether a bar forbids this animal that square.
    pub(super) fn closes(&self, animal: Animal, to: Square) -> bool {
        self.animal == Some(animal) && (self.seven_three.contains(to) || self.seventeen_five.contains(to))
    }

    /// The bar that forbids the move, `SEVEN_THREE` before `SEVENTEEN_FIVE`.
    ///
    /// `ply` is the number of the ply about to be made.
    pub(super) fn violation(&self, run: &Run, ply: u32, piece: Piece, mv: Move) -> Option<Violation> {
        let Move { from, to } = mv;
        if !self.closes(piece.animal, to) {
            return None;
        }
        if self.seven_three.contains(to) {
            let entries = Entries::new(ply, run.latest(SEVEN).unwrap_or(&[]), to);
            return Some(Violation::SevenThree { piece, from, to, entries });
        }
        let window = self.seventeen_five;
        Some(Violation::SeventeenFive { piece, from, to, window })
    }
}

/// `SEVEN_THREE`: the squares that three or more of the latest 7 moves ended on;
/// none if the run is shorter, or any of the 7 ended on a trap.
fn thrice_in_seven(run: &Run) -> SquareSet {
    match run.latest(SEVEN) {
        Some(ends) if !touches_trap(ends) => {
            ends.iter().filter(|end| ends.iter().filter(|other| other == end).count() >= 3).copied().collect()
        }
        Some(_) | None => SquareSet::EMPTY,
    }
}

/// `SEVENTEEN_FIVE`: the squares of the latest 17 moves, if they are at most 5;
/// none if the run is shorter, or any of the 17 ended on a trap.
fn five_in_seventeen(run: &Run) -> SquareSet {
    match run.latest(SEVENTEEN) {
        Some(ends) if !touches_trap(ends) => {
            let window: SquareSet = ends.iter().copied().collect();
            if window.len() <= 5 { window } else { SquareSet::EMPTY }
        }
        Some(_) | None => SquareSet::EMPTY,
    }
}

/// Whether a move ended on a trap, either side's.
fn touches_trap(ends: &[Square]) -> bool {
    ends.iter().any(|end| end.trap_of().is_some())
}

/// *Chased*: some enemy animal could take the one on `square` by sections 2–3, were it the
/// enemy's turn. Bars are ignored, and so is protection.
fn chased(position: &Position, ruleset: &Ruleset, side: Side, square: Square) -> bool {
    position.held_by(side.opponent()).iter().any(|from| judge::reaches(position, ruleset, Move { from, to: square }))
}
