//! The server is killed at random moments under load, again and again on the same file. `KILLS=200` is the long run.

use std::thread;
use std::time::Duration;

use jungle_referee::service::proto::{self as pb, NewGameRequest};

use crate::data_file::Folder;
use crate::house::House;
use crate::player::Player;

/// How many play at once.
const PLAYERS: usize = 12;

/// At most so many asks are acknowledged between two kills.
const MOST_BETWEEN: usize = 150;

fn seconds(seconds: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos: 0 })
}

/// Games of every kind of clock, with far more time than the test takes, and the limit of refusals that makes a
/// refused move an event.
pub(crate) fn games(number: usize) -> NewGameRequest {
    use pb::time_control::{Increment, Kind, PerMove};
    let kind = match number % 3 {
        0 => Some(Kind::PerMove(PerMove { limit: seconds(3_600) })),
        1 => Some(Kind::Increment(Increment { initial: seconds(36_000), increment: seconds(1) })),
        _ => None,
    };
    NewGameRequest {
        time_control: kind.map(|kind| pb::TimeControl { kind: Some(kind) }),
        refusal_limit: Some(1_000),
        ..NewGameRequest::default()
    }
}

/// "It was killed while we played, at any moment, again and again. What it had told us was so."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_kills_at_random_moments() {
    let number = |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().expect("a number"));
    let (kills, seed) = (number("KILLS", 20), number("SEED", 1));
    println!("seed {seed}");
    let folder = Folder::on_disk();
    let players = (0..PLAYERS).map(|index| Player::new(seed * 1_000 + index as u64, games(index), None)).collect();
    let mut house = House::new(&folder.data(), &[], seed, players);
    for kill in 0..kills {
        // The very first starts too, which make the file.
        if kill < 3 || kill % 5 == 4 {
            house.kill_a_start();
            continue;
        }
        let mut process = house.start();
        house.audit(&process).await;
        let playing = house.play(&process, &[]).await;
        playing.told(1 + house.dice.roll(MOST_BETWEEN)).await;
        thread::sleep(Duration::from_micros(house.dice.roll(3_000) as u64));
        process.kill();
        house.gather(playing).await;
    }
    let process = house.start();
    house.audit(&process).await;
    house.audit_all(&process).await;
    let found = house.findings(&format!("{kills} kills"));
    assert!(found.moves as u64 > kills, "they did play");
    assert_eq!((found.missing, found.doubled, found.wrong, found.false_flags), Default::default());
}
