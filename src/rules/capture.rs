//! The rules of capture: section 3.
//!
//! Here lives what an animal may take where it arrives: `TRAPPED`, `BANK`,
//! `RAT_ELEPHANT`, `STRENGTH`, in that order, with `TRAP` as the exception to
//! the last two. How it gets there lives in `movement`.

use super::animal::{Animal, Piece, Side};
use super::movement::Move;
use super::ruleset::Ruleset;
use super::square::Square;
use super::violation::Violation;

/// Judges whether `piece`, moving so, takes `target`, an enemy on the to-square.
#[inline]
pub(super) fn check(ruleset: &Ruleset, piece: Piece, target: Piece, mv: Move) -> Result<(), Violation> {
    let Move { from, to } = mv;
    let standing = target.animal;
    if !ruleset.trapped_may_capture && trapped(piece.side, from) {
        return Err(Violation::Trapped { piece, from, to, standing });
    }
    if from.is_river() != to.is_river() && !crosses(ruleset, piece.animal, standing) {
        return Err(Violation::Bank { piece, from, to, standing });
    }
    if trapped(target.side, to) {
        return Ok(());
    }
    match (piece.animal, standing) {
        (Animal::Rat, Animal::Elephant) => Ok(()),
        (Animal::Elephant, Animal::Rat) => Err(Violation::RatElephant { piece, from, to }),
        (captor, target) if ruleset.ladder.strength(captor) >= ruleset.ladder.strength(target) => Ok(()),
        (_, standing) => Err(Violation::Strength { piece, from, to, standing }),
    }
}

/// `TRAP`: whether an animal of this side, standing here, stands in an enemy trap.
#[inline]
fn trapped(side: Side, square: Square) -> bool {
    side.opponent().traps().contains(square)
}

/// `BANK`: whether this captor takes this target across the water's edge
/// (switch `rats_capture_across_bank`).
#[inline]
fn crosses(ruleset: &Ruleset, captor: Animal, target: Animal) -> bool {
    ruleset.rats_capture_across_bank && captor == Animal::Rat && target == Animal::Rat
}
