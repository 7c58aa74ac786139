//! The machinery around the games: the clock on the wall, ids and tokens, the log, one queue a game,
//! timers, feeds and the registry. tokio lives here; tonic and the wire's types do not.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub mod call;
pub mod disk;
pub mod feed;
pub mod gauges;
pub mod ids;
pub mod load;
pub mod log;
pub mod registry;
pub mod slot;
pub mod time;
mod timers;
pub mod token;

pub use disk::{DataFile, Keep, OpenFault, ReadFile, SqliteLog, token_key_beside};
pub use feed::{Cut, Told, Watch};
pub use gauges::Gauges;
pub use ids::{GameId, Ids, RandomIds};
pub use load::Load;
pub use log::{Append, Appended, Log, LogFault, LogHealth, MemoryLog, Past};
pub use registry::{Filter, Limits, Registry};
pub use slot::{Answer, Fault, Slot, View};
pub use time::{Clock, ManualClock, SystemClock};
pub use token::{Seat, TokenKey};

/// Locks, also after a panic under the lock: what the locks here guard is whole after each statement.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
