//! Tokens: who a caller is, in a text that proves itself.
//!
//! A token is base64url of `version, game id, seat, generation, HMAC-SHA256 of those under the
//! server's key`. Nothing is kept for it, it is compared in constant time, and it is never logged.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::ids::GameId;
use crate::rules::Side;

const VERSION: u8 = 1;
const GENERATION: u8 = 1;
const CLAIMS: usize = 1 + 16 + 1 + 1;
const MAC: usize = 32;

/// The shortest secret that is taken for a key, in bytes.
pub const SHORTEST_KEY: usize = 16;

/// Whose token it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Seat {
    /// A player's.
    Player(Side),
    /// The arbiter's.
    Arbiter,
}

impl Seat {
    const fn byte(self) -> u8 {
        match self {
            Self::Player(Side::Red) => b'r',
            Self::Player(Side::Blue) => b'b',
            Self::Arbiter => b'a',
        }
    }

    const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            b'r' => Some(Self::Player(Side::Red)),
            b'b' => Some(Self::Player(Side::Blue)),
            b'a' => Some(Self::Arbiter),
            _ => None,
        }
    }
}

/// The server's key for tokens.
#[derive(Clone)]
pub struct TokenKey(Hmac<Sha256>);

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey(..)")
    }
}

impl TokenKey {
    /// The key that these bytes are; any number of them.
    ///
    /// # Panics
    /// Never: HMAC takes keys of any length.
    #[must_use]
    pub fn new(secret: &[u8]) -> Self {
        Self(Hmac::new_from_slice(secret).expect("HMAC takes a key of any length"))
    }

    /// A new key, for as long as the process lives.
    ///
    /// # Panics
    /// If the operating system gives no random bytes.
    #[must_use]
    pub fn random() -> Self {
        Self::new(Self::new_text().as_bytes())
    }

    /// The key of a file: its text, line ends left out; `None` if that is too short for a secret.
    #[must_use]
    pub fn from_text(text: &[u8]) -> Option<Self> {
        let text = text.trim_ascii_end();
        (text.len() >= SHORTEST_KEY).then(|| Self::new(text))
    }

    /// A new key as the text of a file.
    ///
    /// # Panics
    /// If the operating system gives no random bytes.
    #[must_use]
    pub fn new_text() -> String {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).expect("the operating system gives random bytes");
        URL_SAFE_NO_PAD.encode(secret) + "\n"
    }

    /// The token of a seat of a game.
    #[must_use]
    pub fn issue(&self, game: GameId, seat: Seat) -> String {
        let mut token = Vec::with_capacity(CLAIMS + MAC);
        token.push(VERSION);
        token.extend_from_slice(&game.as_u128().to_be_bytes());
        token.extend_from_slice(&[seat.byte(), GENERATION]);
        let mac = self.0.clone().chain_update(&token).finalize().into_bytes();
        token.extend_from_slice(&mac);
        URL_SAFE_NO_PAD.encode(token)
    }

    /// Whose token this is; `None` if it was not issued under this key.
    #[must_use]
    pub fn verify(&self, token: &str) -> Option<(GameId, Seat)> {
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (claims, mac) = bytes.split_at_checked(CLAIMS)?;
        self.0.clone().chain_update(claims).verify_slice(mac).ok()?;
        let (version, rest) = claims.split_first()?;
        let (id, rest) = rest.split_first_chunk::<16>()?;
        let known = *version == VERSION && rest.get(1) == Some(&GENERATION);
        let seat = Seat::from_byte(*rest.first()?)?;
        known.then(|| (GameId::from_u128(u128::from_be_bytes(*id)), seat))
    }

    /// Whether two secrets are the same, in constant time.
    #[must_use]
    pub fn same_secret(&self, one: &str, other: &str) -> bool {
        let mac = self.0.clone().chain_update(one).finalize().into_bytes();
        self.0.clone().chain_update(other).verify_slice(&mac).is_ok()
    }
}
