//! One place for the deadlines of all games. An entry is a hint: it says when to look at a game, and
//! the game says what is due. A game has at most one useful entry, and a later deadline moves nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use super::ids::GameId;
use super::time::Clock;
use crate::game::Time;

/// The deadlines of all games.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: Mutex<BinaryHeap<Reverse<(Time, GameId)>>>,
    sooner: Notify,
}

impl Timers {
    /// Asks for a look at a game at a time.
    pub(super) fn schedule(&self, at: Time, game: GameId) {
        let mut heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
        let soonest = heap.peek().is_none_or(|Reverse((first, _))| at < *first);
        heap.push(Reverse((at, game)));
        drop(heap);
        if soonest {
            self.sooner.notify_one();
        }
    }

    /// Has whoever waits look again at what it waits for.
    pub(super) fn look_again(&self) {
        self.sooner.notify_one();
    }

    /// Takes out a game whose time has come.
    pub(super) fn pop_due(&self, now: Time) -> Option<GameId> {
        let mut heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
        let Reverse((at, _)) = heap.peek()?;
        if *at > now {
            return None;
        }
        heap.pop().map(|Reverse((_, game))| game)
    }

    /// Waits until the first entry is due, or `otherwise` has come, or a sooner entry was added.
    pub(super) async fn wait(&self, clock: &dyn Clock, otherwise: Option<Time>) {
        let first = self.heap.lock().unwrap_or_else(PoisonError::into_inner).peek().map(|Reverse((at, _))| *at);
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
