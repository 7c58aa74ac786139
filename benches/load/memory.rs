//! Memory: what a game costs, open and finished, what a watcher costs, and whether it all comes back.

use std::rc::Rc;

use crate::cpu::{Led, SERVER_CORE};
use crate::fanout::Streams;
use crate::lines::Lines;

/// How many watchers are weighed.
const WATCHERS: usize = 10_000;

/// How often games come and go to see whether the memory does.
const REPEATS: u64 = 10;

/// Prints what so many games weigh at these plies, open and finished.
pub(crate) fn games(count: u64, plies: &[u64]) {
    println!(
        "| open games | plies | bytes a game | all, GiB | finished and kept, bytes a game |\n|---|---|---|---|---|"
    );
    for plies in plies {
        let mut server = Led::start(SERVER_CORE, &["serve-referee", "--keep-finished", "10000000"]);
        let before = server.resident();
        server.ask(&format!("fill 0 {count} {plies}"));
        let open = server.resident() - before;
        server.ask(&format!("end 0 {count}"));
        let finished = server.resident().saturating_sub(before);
        let (whole, rest) = (open >> 30, ((open & ((1 << 30) - 1)) * 100) >> 30);
        println!("| {count} | {plies} | {} | {whole}.{rest:02} | {} |", open / count, finished / count);
    }
}

/// Prints what an idle watcher weighs, beside an idle bare stream.
pub(crate) async fn watchers(lines: &Rc<Lines>) {
    println!("| idle streams | server | bytes each |\n|---|---|---|");
    for (name, is_echo) in [("bare stream", true), ("referee", false)] {
        let streams = Streams::open(is_echo, 1, WATCHERS, lines).await;
        println!("| {WATCHERS} of one game | {name} | {:.0} |", streams.bytes_each);
    }
}

/// Prints the memory after each of several times that games were played, ended and forgotten.
pub(crate) fn plateau(count: u64) {
    println!("| time | after {count} games of 60 plies were played and forgotten, MiB |\n|---|---|");
    let mut server = Led::start(SERVER_CORE, &["serve-referee", "--keep-finished", "1"]);
    for repeat in 0..REPEATS {
        let first = repeat * count;
        server.ask(&format!("fill {first} {count} 60"));
        server.ask(&format!("end {first} {count}"));
        println!("| {} | {} |", repeat + 1, server.resident() >> 20);
    }
}
