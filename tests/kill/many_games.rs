//! A start with very many open games: what it says, how long it takes, and that they are there.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use jungle_referee::app::Ports;
use jungle_referee::game::{Command, Span};
use jungle_referee::rules::Side;
use jungle_referee::runtime::{GameId, Limits, Registry};
use jungle_referee::service::proto as pb;
use tokio::task::JoinSet;

use crate::data_file::{Folder, usual};
use crate::house::client_at;
use crate::player::now;
use crate::wire::{Process, binary};

/// How many write at once, as calls do.
const AT_ONCE: usize = 1_024;

/// Each side walks its elephant to and fro.
const MOVES: [&str; 4] = ["a3a4", "g7g6", "a4a3", "g6g7"];

/// Fills a data file as a server does: games that are created and moved in, none of them over.
async fn fill(data: &Path, games: usize, plies: usize) -> Vec<GameId> {
    let limits = Limits {
        open_games: games,
        watchers_a_game: 1,
        keep_finished_for: Span::from_days(1),
        keep_finished: 1,
        calls: usize::MAX,
    };
    let Ports { clock, ids, log } = Ports::on_disk(data, &limits).expect("a new data file");
    let registry = Arc::new(Registry::new(clock, ids, log, limits));
    let mut writers = JoinSet::new();
    for writer in 0..AT_ONCE {
        let registry = Arc::clone(&registry);
        let own = games / AT_ONCE + usize::from(writer < games % AT_ONCE);
        writers.spawn(async move {
            let mut ids = Vec::with_capacity(own);
            for _ in 0..own {
                let (id, made) = registry.new_game(usual().into(), None).await.expect("room");
                made.expect("a game");
                let slot = registry.find(id).expect("the game");
                for ply in 0..plies {
                    let (side, mv) = (Side::ALL[ply % 2], MOVES[ply % 4].parse().expect("a move"));
                    let command = Command::Move { side, mv, expected_ply: None, offer_draw: false };
                    slot.ask(None, command, None).await.expect("a move");
                }
                ids.push(id);
            }
            ids
        });
    }
    let mut ids = Vec::with_capacity(games);
    while let Some(written) = writers.join_next().await {
        ids.extend(written.expect("no panic"));
    }
    ids
}

/// "We had a hundred thousand games going. It said how far it was, and how long it took, and they went on."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: see CONTRIBUTING.md"]
async fn a_start_with_very_many_open_games_says_how_far_it_is_and_how_long_it_took() {
    let number = |name: &str, usual: usize| std::env::var(name).map_or(usual, |text| text.parse().expect("a number"));
    let (games, plies) = (number("OPEN_GAMES", 100_000), number("PLIES", 9));
    let folder = Folder::on_disk();
    let began = now();
    let ids = fill(&folder.data(), games, plies).await;
    println!("{games} games of {} events written in {:?}", plies + 1, began.elapsed());
    for end in ["", "-wal"] {
        let size = fs::metadata(folder.beside(end)).map_or(0, |file| file.len());
        println!("games.db{end}: {size} bytes");
    }
    let (log, data) = (folder.path().join("log"), folder.data().display().to_string());
    let errors = File::create(&log).expect("a file");
    let began = now();
    // Its games know no token; without a key of its own the file would be refused.
    let flags = ["--log=info", "--token-key=of-a-file-without-key", "--data", &data];
    let process = Process::listening(binary(&flags).stderr(errors).spawn().expect("the binary starts"));
    println!("listens after {:?}, with {} bytes of memory", began.elapsed(), process.memory());
    let mut client = client_at(process.addr).await;
    for id in ids.iter().step_by(games / 100 + 1) {
        let request = pb::GetGameRequest { game_id: id.to_string() };
        let game = client.get_game(request).await.expect("the game").into_inner().game.expect("set");
        // All that was there, and the event that says how long the server was down.
        assert_eq!((game.status(), game.sequence), (pb::GameStatus::Running, plies as u64 + 2));
    }
    println!("a hundred games looked at after {:?}, with {} bytes of memory", began.elapsed(), process.memory());
    let log = fs::read_to_string(&log).expect("a log");
    println!("{log}");
    assert!(log.contains(&format!("open={games}")), "the line that says what was read");
}
