//! The game that tests begin with, and change one thing of.

use jungle_referee::game::{ClockStart, Settings, Span, TimeControl};
use jungle_referee::rules::{Position, Ruleset};

/// An untimed game of the default ruleset from the usual start.
pub(crate) fn usual() -> Settings {
    Settings {
        preset: "yeshou",
        ruleset: Ruleset::YESHOU,
        start: Position::start(&Ruleset::YESHOU),
        time_control: TimeControl::Untimed,
        grace: Span::ZERO,
        clock_start: ClockStart::AtCreation,
        is_match: false,
        refusal_limit: None,
        away_limit: None,
        idle_limit: Span::from_days(1),
        private: false,
    }
}
