//! Lines of the log that a flood must not flood it with: at most one a second, with how often it happened.

use std::sync::Arc;

use crate::game::{Span, Time};
use crate::runtime::Clock;

/// The shortest time between two lines.
const BETWEEN: Span = Span::from_secs(1);

/// Something that is told seldom.
pub(super) struct Seldom {
    clock: Arc<dyn Clock>,
    /// When the next line may be written.
    next: Time,
    untold: u64,
}

impl Seldom {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { next: clock.now(), clock, untold: 0 }
    }

    /// It happened once more: tells so, unless it was told just now.
    pub(super) fn note(&mut self, tell: impl FnOnce(u64)) {
        self.untold += 1;
        if self.clock.now() >= self.next {
            self.tell(tell);
        }
    }

    /// Tells how often it happened since the last line.
    pub(super) fn tell(&mut self, tell: impl FnOnce(u64)) {
        self.next = self.clock.now() + BETWEEN;
        tell(std::mem::take(&mut self.untold));
    }

    /// Waits until something is to be told that has not been.
    pub(super) async fn untold(&self) {
        if self.untold == 0 {
            return std::future::pending().await;
        }
        self.clock.sleep_until(self.next).await;
    }
}
