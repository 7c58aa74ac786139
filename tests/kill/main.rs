//! The binary with a data file, ended in every way that there is, and what it had said before held against
//! what it says after. What was said is kept by the tests, outside of it: see `ledger`.

#[path = "../data_file/mod.rs"]
mod data_file;
#[path = "../server/mod.rs"]
mod server;
#[path = "../support/mod.rs"]
mod support;
#[path = "../wire/mod.rs"]
mod wire;

mod house;
mod ledger;
mod player;

mod drain;
mod many_games;
mod power_loss;
mod secrets;
mod sigkill;
