//! One place for the deadlines of all games. An entry is a hint: it says when to look at a game, and
//! the game says what is due. A game has at most one entry, and a later deadline moves nothing.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

use tokio::sync::Notify;

use super::ids::GameId;
use super::locked;
use super::time::Clock;
use crate::game::Time;

/// The deadlines of all games.
#[derive(Debug, Default)]
pub(super) struct Timers {
    entries: Mutex<BTreeSet<(Time, GameId)>>,
    sooner: Notify,
}

impl Timers {
    fn entries(&self) -> MutexGuard<'_, BTreeSet<(Time, GameId)>> {
        locked(&self.entries)
    }

    /// Asks for a look at a game at a time, in place of the entry it has.
    pub(super) fn schedule(&self, at: Time, game: GameId, instead_of: Option<Time>) {
        let mut entries = self.entries();
        if let Some(known) = instead_of {
            entries.remove(&(known, game));
        }
        let soonest = entries.first().is_none_or(|(first, _)| at < *first);
        entries.insert((at, game));
        drop(entries);
        if soonest {
            self.sooner.notify_one();
        }
    }

    /// Takes back the entry of a game in which nothing is due any more.
    pub(super) fn forget(&self, at: Time, game: GameId) {
        self.entries().remove(&(at, game));
    }

    /// Has whoever waits look again at what it waits for.
    pub(super) fn look_again(&self) {
        self.sooner.notify_one();
    }

    /// Takes out a game whose time has come, with that time.
    pub(super) fn pop_due(&self, now: Time) -> Option<(Time, GameId)> {
        let mut entries = self.entries();
        if entries.first()?.0 > now {
            return None;
        }
        entries.pop_first()
    }

    /// Waits until the first entry is due, or `otherwise` has come, or a sooner entry was added.
    pub(super) async fn wait(&self, clock: &dyn Clock, otherwise: Option<Time>) {
        let first = self.entries().first().map(|(at, _)| *at);
        let sooner = self.sooner.notified();
        match first.into_iter().chain(otherwise).min() {
            Some(at) => tokio::select! {
                () = clock.sleep_until(at) => {}
                () = sooner => {}
            },
            None => sooner.await,
        }
    }
}
