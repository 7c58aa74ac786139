//! Points and spans of time, and the time controls made of them.
//!
//! Nothing here reads a clock: the time comes in as an argument, from `runtime::time`.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::Add;

/// A point in time: microseconds since the Unix epoch, never before it.
///
/// Kept as one more than that, so that an `Option<Time>` takes no more room than a time: a game has many.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(NonZeroU64);

/// A span of time: microseconds, never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Time {
    /// The point so many microseconds after the Unix epoch.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(micros))
    }

    /// Microseconds since the Unix epoch.
    #[must_use]
    pub const fn micros(self) -> u64 {
        self.0.get() - 1
    }

    /// How long after `earlier` this is; zero if it is not after it.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.micros().saturating_sub(earlier.micros()))
    }
}

impl Add<Span> for Time {
    type Output = Self;

    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Time").field(&self.micros()).finish()
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// So many microseconds.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// So many milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// So many seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// So many days of 24 hours.
    #[must_use]
    pub const fn from_days(days: u64) -> Self {
        Self::from_secs(days.saturating_mul(86_400))
    }

    /// Whole microseconds.
    #[must_use]
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// What is left after taking `other` away; never below zero.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Span {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Span {
    /// Seconds, with as many decimals as it needs: `0.25 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (secs, micros) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if micros == 0 {
            return write!(f, "{secs} s");
        }
        let decimals = format!("{micros:06}");
        write!(f, "{secs}.{} s", decimals.trim_end_matches('0'))
    }
}

/// How much time the players have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeControl {
    /// No clock; the idle limit bounds the game.
    Untimed,
    /// So much for every single move.
    PerMove(Span),
    /// A stock for the whole game, topped up after each completed move.
    Increment {
        /// What each side starts with.
        initial: Span,
        /// What a side gains by a completed move.
        increment: Span,
    },
}

impl TimeControl {
    /// What a side has before its first move; `None` if untimed.
    #[must_use]
    pub const fn initial(self) -> Option<Span> {
        match self {
            Self::Untimed => None,
            Self::PerMove(limit) => Some(limit),
            Self::Increment { initial, .. } => Some(initial),
        }
    }

    /// What a side has for its next move after one that left it `left`.
    #[must_use]
    pub fn after_move(self, left: Span) -> Span {
        match self {
            Self::Untimed => Span::ZERO,
            Self::PerMove(limit) => limit,
            Self::Increment { increment, .. } => left + increment,
        }
    }
}

/// When a game starts, and with it the clock of the side to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClockStart {
    /// With its creation.
    AtCreation,
    /// At a given time.
    At(Time),
    /// When both seats have shown themselves, within this window from the creation.
    WhenBothShown(Span),
}
