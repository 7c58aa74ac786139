//! Game ids, and where they come from.

use std::fmt;
use std::str::FromStr;
use std::sync::Mutex;

use uuid::{Builder, Uuid};

use super::locked;
use crate::game::Time;

/// A game's id: a UUIDv7, written in lower case. Ids order by creation.
///
/// Kept as two halves, since a `u128` would have whatever holds one keep room for its alignment: there are
/// several such for each game.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GameId {
    high: u64,
    low: u64,
}

impl GameId {
    /// The id that this number is.
    #[must_use]
    pub const fn from_u128(number: u128) -> Self {
        let (high, low) = Uuid::from_u128(number).as_u64_pair();
        Self { high, low }
    }

    /// The number that this id is.
    #[must_use]
    pub const fn as_u128(self) -> u128 {
        self.uuid().as_u128()
    }

    const fn uuid(self) -> Uuid {
        Uuid::from_u64_pair(self.high, self.low)
    }

    /// Whether it is of the form that this server gives: a UUIDv7.
    #[must_use]
    pub fn is_v7(self) -> bool {
        self.uuid().get_version_num() == 7
    }

    /// When the game was created, to the millisecond, as the id itself tells.
    #[must_use]
    pub fn created_at(self) -> Time {
        let millis = self.high >> 16;
        Time::from_micros(millis.saturating_mul(1_000))
    }
}

impl fmt::Debug for GameId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for GameId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.uuid().as_hyphenated().fmt(f)
    }
}

impl FromStr for GameId {
    type Err = NotAUuid;

    fn from_str(text: &str) -> Result<Self, NotAUuid> {
        parse_uuid(text).map(Self::from_u128)
    }
}

/// The text is not a UUID of 36 characters with hyphens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAUuid;

impl fmt::Display for NotAUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("is not a UUID such as 01900000-0000-7000-8000-000000000000")
    }
}

/// Reads a UUID in its form of 36 characters with hyphens, in either case.
///
/// # Errors
/// [`NotAUuid`] for anything else.
pub fn parse_uuid(text: &str) -> Result<u128, NotAUuid> {
    if text.len() != 36 {
        return Err(NotAUuid);
    }
    Uuid::try_parse(text).map(|uuid| uuid.as_u128()).map_err(|_| NotAUuid)
}

/// Where game ids come from.
pub trait Ids: Send + Sync + 'static {
    /// A new id, greater than all before.
    fn next(&self, now: Time) -> GameId;
}

/// Ids of time and chance.
#[derive(Debug, Default)]
pub struct RandomIds {
    last: Mutex<u128>,
}

impl Ids for RandomIds {
    fn next(&self, now: Time) -> GameId {
        let mut random = [0; 10];
        getrandom::fill(&mut random).expect("the operating system gives random bytes");
        let fresh = Builder::from_unix_timestamp_millis(now.micros() / 1_000, &random).into_uuid().as_u128();
        let mut last = locked(&self.last);
        // Within a millisecond chance may step back; the next number keeps the order of creation.
        *last = fresh.max(*last + 1);
        GameId::from_u128(*last)
    }
}
