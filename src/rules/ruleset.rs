//! Rulesets as data: the switches of section 6, and the four presets.
//!
//! Here lives what can differ between games, with names, ranges and the text
//! that is hashed. Each switch is read in the one function that it concerns.
//! The SHA-256 itself is taken outside: this module is std only.

use std::fmt;

use super::animal::Animal;

/// Which animal beats which: switch `ladder`.
///
/// # Examples
/// ```
/// use jungle_referee::rules::{Animal, Ladder};
/// assert_eq!(Ladder::WolfOverDog.strength(Animal::Elephant), Some(8));
/// assert!(Ladder::WolfOverDog.strength(Animal::Wolf) > Ladder::WolfOverDog.strength(Animal::Dog));
/// assert!(Ladder::DogOverWolf.strength(Animal::Wolf) < Ladder::DogOverWolf.strength(Animal::Dog));
/// assert_eq!(Ladder::DogOverFox.strength(Animal::Wolf), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ladder {
    /// Elephant, lion, tiger, leopard, wolf, dog, cat, rat.
    WolfOverDog,
    /// The same with the dog above the wolf.
    DogOverWolf,
    /// The same with a fox in the wolf's place, below the dog.
    DogOverFox,
}

impl Ladder {
    /// Every ladder.
    pub const ALL: [Ladder; 3] = [Ladder::WolfOverDog, Ladder::DogOverWolf, Ladder::DogOverFox];

    /// How strong the animal is, from 8 (elephant) to 1 (rat); `None` if the ladder has no such animal.
    #[must_use]
    pub const fn strength(self, animal: Animal) -> Option<u8> {
        match animal {
            Animal::Elephant => Some(8),
            Animal::Lion => Some(7),
            Animal::Tiger => Some(6),
            Animal::Leopard => Some(5),
            Animal::Wolf => match self {
                Ladder::WolfOverDog => Some(4),
                Ladder::DogOverWolf => Some(3),
                Ladder::DogOverFox => None,
            },
            Animal::Fox => match self {
                Ladder::WolfOverDog | Ladder::DogOverWolf => None,
                Ladder::DogOverFox => Some(3),
            },
            Animal::Dog => match self {
                Ladder::WolfOverDog => Some(3),
                Ladder::DogOverWolf | Ladder::DogOverFox => Some(4),
            },
            Animal::Cat => Some(2),
            Animal::Rat => Some(1),
        }
    }

    /// The switch's value as rules, records and hashes write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Ladder::WolfOverDog => "WOLF_OVER_DOG",
            Ladder::DogOverWolf => "DOG_OVER_WOLF",
            Ladder::DogOverFox => "DOG_OVER_FOX",
        }
    }

    /// The value with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Ladder> {
        Ladder::ALL.into_iter().find(|value| value.name() == name)
    }
}

/// Whose rat in the water forbids a jump over it: switch `jump_blockers` (`JUMP_BLOCKED`).
///
/// # Examples
/// ```
/// use jungle_referee::rules::JumpBlockers;
/// assert_eq!(JumpBlockers::from_name("ENEMY_RAT"), Some(JumpBlockers::EnemyRat));
/// assert_eq!(JumpBlockers::AnyRat.name(), "ANY_RAT");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum JumpBlockers {
    /// Either side's rat.
    AnyRat,
    /// The enemy's rat only.
    EnemyRat,
}

impl JumpBlockers {
    /// Every value.
    pub const ALL: [JumpBlockers; 2] = [JumpBlockers::AnyRat, JumpBlockers::EnemyRat];

    /// The switch's value as rules, records and hashes write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            JumpBlockers::AnyRat => "ANY_RAT",
            JumpBlockers::EnemyRat => "ENEMY_RAT",
        }
    }

    /// The value with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<JumpBlockers> {
        JumpBlockers::ALL.into_iter().find(|value| value.name() == name)
    }
}

/// Which ways the tiger jumps: switch `tiger_jump` (`JUMP`).
///
/// # Examples
/// ```
/// use jungle_referee::rules::TigerJump;
/// assert_eq!(TigerJump::from_name("ACROSS_ONLY"), Some(TigerJump::AcrossOnly));
/// assert_eq!(TigerJump::from_name("across_only"), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TigerJump {
    /// Along a rank and along a file, as the lion.
    Both,
    /// Along a rank only.
    AcrossOnly,
}

impl TigerJump {
    /// Every value.
    pub const ALL: [TigerJump; 2] = [TigerJump::Both, TigerJump::AcrossOnly];

    /// The switch's value as rules, records and hashes write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TigerJump::Both => "BOTH",
            TigerJump::AcrossOnly => "ACROSS_ONLY",
        }
    }

    /// The value with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<TigerJump> {
        TigerJump::ALL.into_iter().find(|value| value.name() == name)
    }
}

/// The switches that a game is judged by (section 6). The fields bear the switches' names.
///
/// # Examples
/// ```
/// use jungle_referee::rules::Ruleset;
/// let slow_draw = Ruleset { no_capture_rounds: 500, ..Ruleset::YESHOU };
/// assert_eq!(slow_draw.validate(), Ok(()));
/// assert_eq!(slow_draw.canonical_text(), "no_capture_rounds=500\n");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ruleset {
    /// Which animal beats which (`STRENGTH`).
    pub ladder: Ladder,
    /// Whether a rat may take a rat across the water's edge, both ways (`BANK`).
    pub rats_capture_across_bank: bool,
    /// Whose rat forbids a jump over it (`JUMP_BLOCKED`).
    pub jump_blockers: JumpBlockers,
    /// Which ways the tiger jumps (`JUMP`).
    pub tiger_jump: TigerJump,
    /// Whether an animal standing in an enemy trap may take (`TRAPPED`).
    pub trapped_may_capture: bool,
    /// Whether both sides may agree to a draw (`AGREEMENT`).
    pub agreed_draw: bool,
    /// How many expiries in a row lose: 1 or 2 (`TIMEOUT`).
    pub timeouts_to_lose: u8,
    /// How many rounds without a capture draw, 1–500 (`NO_CAPTURE`); a round is two plies.
    pub no_capture_rounds: u16,
    /// Games that end within so many of their own rounds are not scored, 0–100; 0 is off.
    pub short_game_rounds: u8,
    /// Whether the 7-3 bar is in force (`SEVEN_THREE`).
    pub seven_three: bool,
    /// Whether the 17-5 bar is in force (`SEVENTEEN_FIVE`).
    pub seventeen_five: bool,
}

impl Ruleset {
    /// 野兽争霸, the default.
    pub const YESHOU: Ruleset = Ruleset {
        ladder: Ladder::WolfOverDog,
        rats_capture_across_bank: true,
        jump_blockers: JumpBlockers::EnemyRat,
        tiger_jump: TigerJump::Both,
        trapped_may_capture: false,
        agreed_draw: true,
        timeouts_to_lose: 1,
        no_capture_rounds: 100,
        short_game_rounds: 10,
        seven_three: true,
        seventeen_five: true,
    };

    /// 大头.
    pub const DATOU: Ruleset = Ruleset {
        ladder: Ladder::WolfOverDog,
        rats_capture_across_bank: false,
        jump_blockers: JumpBlockers::AnyRat,
        tiger_jump: TigerJump::AcrossOnly,
        trapped_may_capture: true,
        agreed_draw: false,
        timeouts_to_lose: 2,
        no_capture_rounds: 100,
        short_game_rounds: 0,
        seven_three: true,
        seventeen_five: true,
    };

    /// 民间, the game as families play it.
    pub const FOLK: Ruleset = Ruleset {
        ladder: Ladder::DogOverWolf,
        rats_capture_across_bank: false,
        jump_blockers: JumpBlockers::AnyRat,
        tiger_jump: TigerJump::Both,
        trapped_may_capture: true,
        agreed_draw: true,
        timeouts_to_lose: 1,
        no_capture_rounds: 100,
        short_game_rounds: 0,
        seven_three: false,
        seventeen_five: false,
    };

    /// 民间 with a fox in the wolf's place.
    pub const FOLK_FOX: Ruleset = Ruleset { ladder: Ladder::DogOverFox, ..Ruleset::FOLK };

    /// Whether every number is within its range.
    ///
    /// # Errors
    /// Names the first switch out of range, and the range.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::Ruleset;
    /// let error = Ruleset { timeouts_to_lose: 3, ..Ruleset::DATOU }.validate().unwrap_err();
    /// assert_eq!(error.switch, "timeouts_to_lose");
    /// assert_eq!(error.to_string(), "timeouts_to_lose is 3, but must be 1 or 2");
    /// ```
    pub fn validate(&self) -> Result<(), SwitchError> {
        let numbers = [
            ("timeouts_to_lose", u16::from(self.timeouts_to_lose), 1..=2),
            ("no_capture_rounds", self.no_capture_rounds, 1..=500),
            ("short_game_rounds", u16::from(self.short_game_rounds), 0..=100),
        ];
        for (switch, value, range) in numbers {
            if !range.contains(&value) {
                let (low, high) = (range.start(), range.end());
                let link = if high - low == 1 { "or" } else { "to" };
                let problem = format!("is {value}, but must be {low} {link} {high}");
                return Err(SwitchError { switch, problem });
            }
        }
        Ok(())
    }

    /// Every switch by its name with its value as text, sorted by name in byte order.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::Ruleset;
    /// let switches = Ruleset::FOLK.switches();
    /// assert_eq!(switches[0], ("agreed_draw", "true".to_owned()));
    /// assert!(switches.is_sorted());
    /// ```
    #[must_use]
    pub fn switches(&self) -> [(&'static str, String); 11] {
        [
            ("agreed_draw", self.agreed_draw.to_string()),
            ("jump_blockers", self.jump_blockers.name().to_owned()),
            ("ladder", self.ladder.name().to_owned()),
            ("no_capture_rounds", self.no_capture_rounds.to_string()),
            ("rats_capture_across_bank", self.rats_capture_across_bank.to_string()),
            ("seven_three", self.seven_three.to_string()),
            ("seventeen_five", self.seventeen_five.to_string()),
            ("short_game_rounds", self.short_game_rounds.to_string()),
            ("tiger_jump", self.tiger_jump.name().to_owned()),
            ("timeouts_to_lose", self.timeouts_to_lose.to_string()),
            ("trapped_may_capture", self.trapped_may_capture.to_string()),
        ]
    }

    /// The text that a ruleset's hash is taken over: a line `name=value` for each
    /// switch that differs from `yeshou`, sorted by name, each ended by LF.
    ///
    /// A switch added later changes no old text. The hash is the first 8 bytes of
    /// the text's SHA-256.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::Ruleset;
    /// assert_eq!(Ruleset::YESHOU.canonical_text(), "");
    /// assert_eq!(
    ///     Ruleset::DATOU.canonical_text(),
    ///     "agreed_draw=false\n\
    ///      jump_blockers=ANY_RAT\n\
    ///      rats_capture_across_bank=false\n\
    ///      short_game_rounds=0\n\
    ///      tiger_jump=ACROSS_ONLY\n\
    ///      timeouts_to_lose=2\n\
    ///      trapped_may_capture=true\n"
    /// );
    /// ```
    #[must_use]
    pub fn canonical_text(&self) -> String {
        let usual = Ruleset::YESHOU.switches();
        let mut text = String::new();
        for ((name, value), (_, usual)) in self.switches().iter().zip(usual) {
            if *value != usual {
                text.push_str(&format!("{name}={value}\n"));
            }
        }
        text
    }

    /// How many plies without a capture draw: two a round (`NO_CAPTURE`).
    #[must_use]
    pub fn no_capture_plies(&self) -> u32 {
        2 * u32::from(self.no_capture_rounds)
    }

    /// The preset with exactly these switches, if there is one.
    ///
    /// # Examples
    /// ```
    /// use jungle_referee::rules::Ruleset;
    /// assert_eq!(Ruleset::FOLK.preset().map(|p| p.name), Some("folk"));
    /// assert!(Ruleset { agreed_draw: false, ..Ruleset::FOLK }.preset().is_none());
    /// ```
    #[must_use]
    pub fn preset(&self) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.ruleset == *self)
    }
}

impl Default for Ruleset {
    /// `yeshou`.
    fn default() -> Ruleset {
        Ruleset::YESHOU
    }
}

/// A ruleset with a name.
///
/// # Examples
/// ```
/// use jungle_referee::rules::{Preset, Ruleset};
/// assert_eq!(Preset::find("datou").map(|p| p.ruleset), Some(Ruleset::DATOU));
/// assert!(Preset::find("Datou").is_none());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Preset {
    /// The name that requests and records use, lower case.
    pub name: &'static str,
    /// The switches.
    pub ruleset: Ruleset,
    /// One line of text for people.
    pub summary: &'static str,
}

impl Preset {
    /// The preset with this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.name == name)
    }
}

/// The four rulesets that have a name (section 6); the first is the default.
pub static PRESETS: [Preset; 4] = [
    Preset {
        name: "yeshou",
        ruleset: Ruleset::YESHOU,
        summary: "野兽争霸: a trapped animal takes nothing, rats fight across the bank, only the enemy's rat blocks a jump, games of 10 rounds or fewer do not count",
    },
    Preset {
        name: "datou",
        ruleset: Ruleset::DATOU,
        summary: "大头: the tiger jumps along a rank only, any rat blocks, no agreed draws, the second expiry in a row loses",
    },
    Preset {
        name: "folk",
        ruleset: Ruleset::FOLK,
        summary: "民间: the dog above the wolf, any rat blocks a jump, no bars on repetition",
    },
    Preset {
        name: "folk-fox",
        ruleset: Ruleset::FOLK_FOX,
        summary: "民间 (with a fox): as folk, a fox below the dog in the wolf's place",
    },
];

/// A switch whose value is out of its range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SwitchError {
    /// The switch's name.
    pub switch: &'static str,
    /// What is wrong with its value, and what would be right.
    pub problem: String,
}

impl fmt::Display for SwitchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.switch, self.problem)
    }
}

impl std::error::Error for SwitchError {}
