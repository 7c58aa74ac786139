//! What must hold for any bytes whatever, a function for each door that strangers' bytes come through.
//!
//! Two drivers call them: the fuzzer, through `fuzz_targets/`, which looks for bytes that break a promise;
//! and `tests/fuzz_seeds.rs` of the referee, which runs the seeds, and all that was ever found, without it.

#[path = "../../tests/game/mod.rs"]
mod game;
#[path = "../../tests/support/mod.rs"]
pub(crate) mod support;

pub mod game_commands;
mod line_door;
mod position_text;
mod stored_event;

pub use game_commands::game_commands;
pub use line_door::line_door;
pub use position_text::position_text;
pub use stored_event::stored_event;
