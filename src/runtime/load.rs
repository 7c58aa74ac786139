//! How many calls are under way, and how many may be: what is shed when there are too many.
//!
//! The service counts its calls here. Only the queue of a game knows whether a move is its seat's first of
//! a ply, and such a move is never shed: so moves come as far as the queue, and the queue asks here.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The calls under way.
#[derive(Debug)]
pub struct Load {
    calls: AtomicUsize,
    most: usize,
}

/// A call's place among those under way, for as long as it lives.
#[derive(Debug)]
pub struct Place(Arc<Load>);

impl Load {
    pub(super) fn new(most: usize) -> Self {
        Self { calls: AtomicUsize::new(0), most }
    }

    /// How many calls may be under way.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most
    }

    /// How many calls are under way.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// Whether more calls are under way than may be, so that what can be shed is.
    #[must_use]
    pub fn is_too_much(&self) -> bool {
        self.calls() > self.most
    }

    /// Takes a place, whatever there are.
    #[must_use]
    pub fn take(self: &Arc<Self>) -> Place {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Place(Arc::clone(self))
    }

    /// Takes a place, if there is one left.
    #[must_use]
    pub fn try_take(self: &Arc<Self>) -> Option<Place> {
        // Counted first: of many at once none but those beyond the most give way.
        let place = self.take();
        (!self.is_too_much()).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}
