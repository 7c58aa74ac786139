//! The tests that talk to a real server, in one program: what they share is compiled once.

#[path = "../log_double/mod.rs"]
mod log_double;
#[path = "../second_judge/mod.rs"]
mod second_judge;
#[path = "../server/mod.rs"]
mod server;
#[path = "../wire/mod.rs"]
mod wire;

mod door;

mod door_answers;
mod door_binary;
mod door_callers;
mod door_errors;
mod door_fields;
mod door_limits;
mod door_metrics;
mod door_moments;
mod door_resets;
mod door_tls;
mod first_game;
mod many_games;
mod server_clocks;
mod wire_cuts;
mod wire_stop;
