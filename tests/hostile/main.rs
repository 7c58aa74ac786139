//! Clients that mean harm, against the real binary in a process of its own, so that what they cost it can
//! be read. While each attack goes on, and after it, others play a whole game; afterwards nothing of the
//! attack is left: no connection, no call, no watch, no busy processor, and no memory that grows from one
//! repeat to the next.
//!
//! What is shown elsewhere is not repeated: `door_resets` (rapid resets), `door_tls` (handshakes that do not
//! end), `door_limits` and `wire_watchers` (the limits one by one, readers that never read), `wire_cuts`.

#[path = "../server/mod.rs"]
mod server;
#[path = "../wire/mod.rs"]
mod wire;

mod attacker;
mod house;

mod crowds;
mod floods;
mod half_open;
mod impostors;
mod malformed;
