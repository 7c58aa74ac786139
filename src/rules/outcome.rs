//! How a game ended, and what it is worth: section 5.
//!
//! Here live the reasons, the score and short games. Which of the reasons on the
//! board holds after a move is asked of [`Line::ending`](super::Line::ending);
//! the others (time, leaving, agreement) are decided where games are kept.

use std::fmt;

use super::animal::Side;
use super::ruleset::Ruleset;

/// Why a game ended (section 5).
///
/// # Examples
/// ```
/// use jungle_referee::rules::Reason;
/// assert_eq!(Reason::AllCaptured.id(), "ALL_CAPTURED");
/// assert_eq!(Reason::from_id("DEN"), Some(Reason::Den));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// An animal entered the enemy den: its side wins.
    Den,
    /// The opponent has no animal left: the mover wins.
    AllCaptured,
    /// The opponent, to move, has no move that sections 2–3 allow: the mover wins.
    NoMoves,
    /// So many rounds in a row without a capture: drawn.
    NoCapture,
    /// The side to move ran out of time: the opponent wins.
    Timeout,
    /// A side left, or was away for too long: the opponent wins.
    Left,
    /// Both sides agreed to a draw.
    Agreement,
    /// A side reached the refusal limit: the opponent wins.
    Forfeit,
    /// Called off by the arbiter or the service: no winner, never scored.
    Aborted,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 9] = [
        Reason::Den,
        Reason::AllCaptured,
        Reason::NoMoves,
        Reason::NoCapture,
        Reason::Timeout,
        Reason::Left,
        Reason::Agreement,
        Reason::Forfeit,
        Reason::Aborted,
    ];

    /// The id that records and documents name.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Reason::Den => "DEN",
            Reason::AllCaptured => "ALL_CAPTURED",
            Reason::NoMoves => "NO_MOVES",
            Reason::NoCapture => "NO_CAPTURE",
            Reason::Timeout => "TIMEOUT",
            Reason::Left => "LEFT",
            Reason::Agreement => "AGREEMENT",
            Reason::Forfeit => "FORFEIT",
            Reason::Aborted => "ABORTED",
        }
    }

    /// The reason with this id.
    #[must_use]
    pub fn from_id(id: &str) -> Option<Reason> {
        Reason::ALL.into_iter().find(|reason| reason.id() == id)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// How a game ended; final.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Outcome {
    /// Who won; `None` for a draw and for a game that was called off.
    pub winner: Option<Side>,
    /// Why it ended.
    pub reason: Reason,
    /// Whether it counts: short games and aborted ones do not.
    pub scored: bool,
}

impl Outcome {
    /// The outcome of a game that ended after `plies_played` plies of its own.
    ///
    /// A game that ends within its own first `short_game_rounds` rounds (two plies
    /// each) keeps its result but is not scored; a match always is, whatever its
    /// length. An aborted game never is, and has no winner.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::{Outcome, Reason, Ruleset, Side};
    /// let red = Some(Side::Red);
    /// let after = |plies, is_match| {
    ///     Outcome::new(red, Reason::Den, plies, &Ruleset::YESHOU, is_match).points()
    /// };
    /// assert_eq!(after(20, false), (0, 0));
    /// assert_eq!(after(21, false), (2, 0));
    /// assert_eq!(after(20, true), (2, 0));
    /// ```
    #[must_use]
    pub fn new(winner: Option<Side>, reason: Reason, plies_played: u32, ruleset: &Ruleset, is_match: bool) -> Outcome {
        let short_plies = 2 * u32::from(ruleset.short_game_rounds);
        let short = short_plies > 0 && plies_played <= short_plies;
        let aborted = reason == Reason::Aborted;
        Outcome { winner: winner.filter(|_| !aborted), reason, scored: !aborted && (is_match || !short) }
    }

    /// What Red and Blue get, in half points: 2–0 for a win, 1–1 for a draw, 0–0 if not scored.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::{Outcome, Reason, Ruleset};
    /// let draw = Outcome::new(None, Reason::NoCapture, 200, &Ruleset::YESHOU, false);
    /// assert_eq!(draw.points(), (1, 1));
    /// ```
    #[must_use]
    pub const fn points(&self) -> (u8, u8) {
        if !self.scored {
            return (0, 0);
        }
        match self.winner {
            Some(Side::Red) => (2, 0),
            Some(Side::Blue) => (0, 2),
            None => (1, 1),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.winner {
            Some(side) => write!(f, "{side} wins by {}", self.reason)?,
            None if self.reason == Reason::Aborted => f.write_str("called off")?,
            None => write!(f, "drawn by {}", self.reason)?,
        }
        if self.scored { Ok(()) } else { f.write_str(", not scored") }
    }
}
