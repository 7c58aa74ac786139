//! Writes the seeds of the fuzz targets into `seeds/`, from the referee's tables of facts: `cargo run --example seeds`.

#[path = "../../tests/support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use jungle_referee::game::encode_event;
use jungle_referee::rules::PRESETS;
use jungle_referee::service::proto::legal_moves_request::Subject;
use jungle_referee::service::proto::{LegalMovesRequest, Move, MoveLine, RulesetSpec};
use jungle_referee_fuzz::game_commands::told;
use prost::Message as _;
use serde_json::Value;
use support::Dice;

fn main() {
    write("position_text", position_texts());
    write("line_door", lines());
    write("game_commands", games());
    write("stored_event", events());
}

/// Each seed under its number, in a folder that holds them and what was found.
fn write(target: &str, seeds: impl IntoIterator<Item = Vec<u8>>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    fs::create_dir_all(&folder).expect("a folder for the seeds");
    for (index, seed) in seeds.into_iter().enumerate() {
        fs::write(folder.join(format!("{index:03}")), seed).expect("a seed is written");
    }
}

/// A table of the referee's tests.
fn table(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data").join(name);
    fs::read_to_string(path).expect("a table of facts")
}

/// The rows of a table of columns, without its heading.
fn rows(table: &str) -> impl Iterator<Item = Vec<&str>> {
    table.lines().filter(|line| !line.starts_with('#')).skip(1).map(|line| line.split('\t').collect())
}

/// Texts that a game may start from and texts that it may not, and the positions that moves are counted from.
fn position_texts() -> Vec<Vec<u8>> {
    let of = |preset: &str, text: &str| {
        let index = PRESETS.iter().position(|known| known.name == preset).expect("a preset");
        let choice = u8::try_from(index).expect("few presets");
        [&[choice], text.as_bytes()].concat()
    };
    let (setup, perft) = (table("setup.tsv"), table("perft.tsv"));
    let set_up = rows(&setup).map(|row| of(row[0], row[1]));
    set_up.chain(rows(&perft).map(|row| of("folk", row[1]))).collect()
}

/// The scenes as requests, all with `explain`.
fn lines() -> Vec<Vec<u8>> {
    let scenes = table("scenes.jsonl");
    let scenes = scenes.lines().map(|line| serde_json::from_str::<Value>(line).expect("a scene"));
    scenes
        .map(|scene| {
            let moves = scene["moves"].as_array().expect("a list").iter().map(|mv| {
                let (from, to) = mv.as_str().expect("a move").split_at(2);
                Move { from_square: from.to_owned(), to_square: to.to_owned() }
            });
            let preset = scene["ruleset"].as_str().unwrap_or_default().to_owned();
            let line = MoveLine {
                start_position: scene["start"].as_str().expect("a position").to_owned(),
                moves: moves.collect(),
                ruleset: Some(RulesetSpec { preset, ..RulesetSpec::default() }),
            };
            LegalMovesRequest { subject: Some(Subject::Line(line)), explain: true, ..LegalMovesRequest::default() }
                .encode_to_vec()
        })
        .collect()
}

/// Games of a few and of many commands, with any settings.
fn games() -> Vec<Vec<u8>> {
    let mut dice = Dice(1);
    let lengths = [0, 1, 5, 20, 60, 150, 300, 20, 60, 150];
    let mut byte = || u8::try_from(dice.roll(256)).expect("a byte");
    lengths.into_iter().map(|steps| (0..8 + 6 * steps).map(|_| byte()).collect()).collect()
}

/// One event of each kind that those games tell of, with and without a request and an end.
fn events() -> Vec<Vec<u8>> {
    let mut heads = BTreeSet::new();
    let mut events = Vec::new();
    for record in games().iter().flat_map(|game| told(game)) {
        let mut bytes = record.event.at.micros().to_le_bytes().to_vec();
        encode_event(&record.event, &mut bytes);
        if heads.insert(bytes[8]) {
            events.push(bytes);
        }
    }
    events
}
