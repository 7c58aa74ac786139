//! The only place that reads a clock: the port that everything else is given its time through.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use crate::game::Time;

/// A wait that ends when a point in time has come.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where the time comes from.
pub trait Clock: Send + Sync + 'static {
    /// The time now. Never goes back.
    fn now(&self) -> Time;

    /// Waits until `at` has come.
    fn sleep_until(&self, at: Time) -> Sleep;
}

/// The real time: the wall clock at the start plus the monotonic time since, so that a correction of
/// the wall clock never moves a player's clock.
#[derive(Debug)]
pub struct SystemClock {
    wall_at_start: Duration,
    start: Instant,
}

impl SystemClock {
    /// A clock that starts from the wall clock now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place where the clock is read")]
    pub fn start() -> Self {
        // A wall clock before 1970 is taken for 1970.
        let wall_at_start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { wall_at_start, start: Instant::now() }
    }

    /// A clock that starts from the wall clock now, but not before `past`: times never go back from one run
    /// of a server to the next.
    #[must_use]
    pub fn start_after(past: Time) -> Self {
        let mut clock = Self::start();
        clock.wall_at_start = clock.wall_at_start.max(Duration::from_micros(past.micros()));
        clock
    }

    fn micros(since_epoch: Duration) -> Time {
        Time::from_micros(u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX))
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Time {
        Self::micros(self.wall_at_start + self.start.elapsed())
    }

    fn sleep_until(&self, at: Time) -> Sleep {
        Box::pin(tokio::time::sleep(Duration::from_micros(at.since(self.now()).micros())))
    }
}

/// A time that a test moves by hand.
#[derive(Debug)]
pub struct ManualClock {
    now: watch::Sender<Time>,
}

impl ManualClock {
    /// A clock that stands at `now`.
    #[must_use]
    pub fn at(now: Time) -> Self {
        Self { now: watch::Sender::new(now) }
    }

    /// Moves the time forward to `to` and wakes whoever waited for it. An earlier `to` changes nothing.
    pub fn advance_to(&self, to: Time) {
        self.now.send_if_modified(|now| {
            let forward = to > *now;
            if forward {
                *now = to;
            }
            forward
        });
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        *self.now.borrow()
    }

    fn sleep_until(&self, at: Time) -> Sleep {
        let mut now = self.now.subscribe();
        Box::pin(async move {
            if now.wait_for(|now| *now >= at).await.is_err() {
                // The clock is gone: its time will never come.
                std::future::pending::<()>().await;
            }
        })
    }
}
