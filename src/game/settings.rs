//! How a game was set up: fixed at creation, shared by all who look at the game.

use std::sync::{Arc, LazyLock};

use sha2::{Digest, Sha256};

use super::clock::{ClockStart, Span, TimeControl};
use crate::rules::{PRESETS, Position, Ruleset};

/// The settings of a game. The ranges are checked at the door (`service::decode`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// The name of the preset that the ruleset was made from.
    pub preset: &'static str,
    /// The switches the game is judged by.
    pub ruleset: Ruleset,
    /// Where it starts.
    pub start: Position,
    /// How much time the players have.
    pub time_control: TimeControl,
    /// How long a flag waits after the remaining time is used up.
    pub grace: Span,
    /// When it starts.
    pub clock_start: ClockStart,
    /// Whether it scores however short it is.
    pub is_match: bool,
    /// How many refused moves of one side lose it.
    pub refusal_limit: Option<u32>,
    /// How long a seat may be away, from the notice on.
    pub away_limit: Option<Span>,
    /// How long nothing may happen while no clock runs.
    pub idle_limit: Span,
    /// Whether only its tokens and the creator may see it.
    pub private: bool,
}

/// What a game is found by again. Play does not need it, so it is kept in the game's log alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Labels to find it by.
    pub labels: Vec<String>,
    /// The creator's own reference.
    pub external_reference: String,
}

/// A game as its creator asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Creation {
    /// How it is set up. Games that are set up alike share it.
    pub settings: Arc<Settings>,
    /// What it is found by again.
    pub marks: Marks,
}

impl From<Settings> for Creation {
    /// A game without marks.
    fn from(settings: Settings) -> Self {
        Self { settings: Arc::new(settings), marks: Marks::default() }
    }
}

/// The hash of a ruleset's switches, as `rules.md` section 6 defines it: the first 8 bytes of a
/// SHA-256 in lower-case hex.
///
/// # Examples
/// ```
/// use jungle_referee::{game::ruleset_hash, rules::Ruleset};
/// assert_eq!(ruleset_hash(&Ruleset::YESHOU), "e3b0c44298fc1c14");
/// assert_eq!(ruleset_hash(&Ruleset::DATOU), "b68a121da49a4a16");
/// assert_eq!(ruleset_hash(&Ruleset::FOLK), "12cb3ada192807c1");
/// assert_eq!(ruleset_hash(&Ruleset::FOLK_FOX), "bc00fc4d3b4940dc");
/// ```
#[must_use]
pub fn ruleset_hash(ruleset: &Ruleset) -> String {
    /// Most games are judged by a preset as it is, and many ask for the hash with each look.
    static OF_PRESETS: LazyLock<Vec<String>> =
        LazyLock::new(|| PRESETS.iter().map(|preset| hash_of(&preset.ruleset)).collect());
    let preset = PRESETS.iter().position(|preset| preset.ruleset == *ruleset);
    preset.map_or_else(|| hash_of(ruleset), |place| OF_PRESETS[place].clone())
}

fn hash_of(ruleset: &Ruleset) -> String {
    let digest = Sha256::digest(ruleset.canonical_text());
    digest[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
