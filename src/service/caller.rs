//! Who calls: the bearer token or key of the metadata, and the connection it came on.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tonic::metadata::MetadataMap;

use crate::runtime::{GameId, Seat, TokenKey};

/// The server's secrets.
#[derive(Clone)]
pub struct Keys {
    /// The key that tokens are issued under.
    pub tokens: TokenKey,
    /// The creator's key; `None` if anybody may create games.
    pub creator: Option<Arc<str>>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(..)")
    }
}

/// Who a call's metadata proves its caller to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// No token and no key came.
    Nobody,
    /// The creator's key.
    Creator,
    /// A token of a game.
    Holder(GameId, Seat),
    /// Something came that this server did not issue.
    Unknown,
}

impl Keys {
    /// Reads who calls.
    pub(super) fn identify(&self, metadata: &MetadataMap) -> Identity {
        let mut headers = metadata.get_all("authorization").iter();
        let (Some(header), None) = (headers.next(), headers.next()) else {
            let none = metadata.get("authorization").is_none();
            return if none { Identity::Nobody } else { Identity::Unknown };
        };
        let bearer = header.to_str().ok().and_then(|header| header.split_once(' '));
        let Some((_, secret)) = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) else {
            return Identity::Unknown;
        };
        let secret = secret.trim();
        // Most calls come with a token, and a token is told from a key by itself.
        if let Some((game, seat)) = self.tokens.verify(secret) {
            return Identity::Holder(game, seat);
        }
        let is_creator = self.creator.as_ref().is_some_and(|key| self.tokens.same_secret(key, secret));
        if is_creator { Identity::Creator } else { Identity::Unknown }
    }
}

/// What is known of the connection that a call came on.
#[derive(Clone, Debug, Default)]
pub struct ConnectionInfo {
    pub(super) watches: Watches,
}

/// The watches that are open of a connection, or of the whole server.
#[derive(Clone, Debug, Default)]
pub(super) struct Watches(Arc<AtomicUsize>);

/// The place of a watch among them, for as long as it lives.
#[derive(Debug)]
pub(super) struct WatchPlace(Arc<AtomicUsize>);

impl Watches {
    /// Takes a place for one more watch, if there is one left.
    pub(super) fn take_place(&self, limit: usize) -> Option<WatchPlace> {
        let taken = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |watches| (watches < limit).then_some(watches + 1));
        taken.ok().map(|_| WatchPlace(Arc::clone(&self.0)))
    }
}

impl Drop for WatchPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
