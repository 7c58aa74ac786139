//! The server is told to stop under load, by bots that play against the clock, and comes back on the same file.

use std::time::Duration;

use jungle_referee::service::proto::{self as pb, NewGameRequest};
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::data_file::Folder;
use crate::house::{House, client_at};
use crate::player::Player;
use crate::server::{Table, reason};
use crate::wire::{RawWatcher, Windows, unknowing_proxy};

/// How long a side may think about a move.
const LIMIT: Duration = Duration::from_secs(4);

/// How long the server takes to leave.
const GRACE: Duration = Duration::from_secs(2);

/// For a machine that is busy with other things.
const MARGIN: Duration = Duration::from_secs(5);

/// How often it is stopped.
const STOPS: usize = 3;

/// How many play at once, the first two on connections that do not hear that the server stops.
const PLAYERS: usize = 8;

fn blitz() -> NewGameRequest {
    let limit = Some(prost_types::Duration { seconds: 4, nanos: 0 });
    let kind = pb::time_control::Kind::PerMove(pb::time_control::PerMove { limit });
    NewGameRequest {
        time_control: Some(pb::TimeControl { kind: Some(kind) }),
        refusal_limit: Some(1_000),
        ..NewGameRequest::default()
    }
}

/// Each watch ended with the server's stop, which named the last sequence; or with its game.
async fn watches_ended(players: &mut [Player]) {
    for player in players {
        let Some((last, Some(status))) = player.watched().await else { continue };
        assert_eq!((status.code(), reason(&status).as_str()), (Code::Unavailable, "SERVER_STOPPING"), "{status:?}");
        let details = status.get_error_details();
        let told = details.error_info().expect("details").metadata.get("sequence").cloned();
        assert_eq!(told, Some(last.to_string()), "the last sequence sent");
    }
}

/// "They updated the server in the middle of our blitz games. No move was lost, no game was lost, nobody lost on
/// time; once it was away for longer than we may think."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_under_load_loses_no_move_no_game_and_nobodys_time() {
    let folder = Folder::on_disk();
    let players = (0..PLAYERS).map(|index| Player::new(7_000 + index as u64, blitz(), Some(LIMIT))).collect();
    let mut house = House::new(&folder.data(), &["--grace=2s"], 7, players);
    let mut told_after = 0;
    for stop in 0..STOPS {
        let mut process = house.start();
        house.audit(&process).await;
        let proxies = [unknowing_proxy(process.addr).await, unknowing_proxy(process.addr).await];
        let playing = house.play(&process, &proxies).await;
        playing.told(40 + house.dice.roll(40)).await;
        // One holds on, whatever happens.
        let stuck_at = Table::new(&mut client_at(process.addr).await, NewGameRequest::default()).await;
        let mut stuck = RawWatcher::connect(process.addr, Windows::CLOSED).await;
        let stuck_stream = stuck.watch(&stuck_at, None).await;

        process.terminate();
        let told = playing.told_so_far();
        let left = process.left_within(GRACE + MARGIN).await.expect("it leaves, whatever its clients do");
        assert_eq!(left.code(), Some(0));
        told_after += house.gather(playing).await - told;
        watches_ended(&mut house.players).await;
        drop((stuck, stuck_stream));
        if stop == 1 {
            tokio::time::sleep(LIMIT + Duration::from_secs(1)).await;
        }
    }
    let process = house.start();
    house.audit(&process).await;
    house.audit_all(&process).await;
    let found = house.findings(&format!("{STOPS} stops, {told_after} asks acknowledged after they began"));
    // More than were under way when it began.
    assert!(told_after > STOPS * PLAYERS, "who has not heard of the stop is answered until the end");
    assert_eq!((found.missing, found.doubled, found.wrong, found.false_flags), Default::default());
}
