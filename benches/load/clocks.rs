//! Clocks that run out: how late flags fall, what waiting costs, and whether a move in time is ever flagged.

use crate::fill::Games;

pub(crate) async fn arm(_: &Games, _: u64, _: u64, _: [u64; 2]) {}
pub(crate) async fn lateness(_: &Games, _: u64, _: u64) -> String { String::new() }
pub(crate) async fn close_calls(_: &Games, _: u64, _: u64) -> String { String::new() }
