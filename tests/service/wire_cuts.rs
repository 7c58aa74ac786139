//! Connections that break: a call cut after each byte, either way, and made again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::server::{Client, Table, TestServer, by, within};
use crate::wire::{Carried, Cut, cutting_proxy, long_game, make_move};
use jungle_referee::service::proto::referee_service_client::RefereeServiceClient;
use jungle_referee::service::proto::submit_move_response::Verdict;
use jungle_referee::service::proto::watch_game_response::Message;
use jungle_referee::service::proto::{self as pb, NewGameRequest};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tonic::transport::Endpoint;

/// How many offsets are tried at once.
const AT_ONCE: usize = 8;

/// Every cut of an exchange of so many bytes: at each offset either way, half of them with a reset.
fn cuts(whole: Carried) -> Vec<Cut> {
    let up = (0..=whole.up).map(|up| Cut { up, ..Cut::NEVER });
    let down = (1..=whole.down).map(|down| Cut { down, ..Cut::NEVER });
    up.chain(down).enumerate().map(|(index, cut)| Cut { reset: index % 2 == 1, ..cut }).collect()
}

/// A client on one connection through a proxy; `None` if not even the connection comes about.
async fn client_at(addr: SocketAddr) -> Option<Client> {
    let endpoint = Endpoint::from_shared(format!("http://{addr}")).expect("an address");
    within(endpoint.connect()).await.ok().map(RefereeServiceClient::new)
}

/// Counts what became of the cut calls.
#[derive(Default)]
struct Tally {
    offsets: AtomicUsize,
    /// The connection had carried all before its cut would have come.
    not_cut: AtomicUsize,
    answered: AtomicUsize,
    made: AtomicUsize,
    not_made: AtomicUsize,
    /// The first call was judged between the look at the game and the second call.
    made_late: AtomicUsize,
}

impl Tally {
    fn add(count: &AtomicUsize) {
        count.fetch_add(1, Ordering::Relaxed);
    }
}

fn accepted(reply: pb::SubmitMoveResponse) -> (pb::MoveAccepted, bool) {
    match reply.verdict {
        Some(Verdict::Accepted(accepted)) => (accepted, reply.replayed),
        other => panic!("not accepted: {other:?}"),
    }
}

/// Moves through a proxy; how much it carried, and the answer if it came.
async fn first_try(
    server: SocketAddr,
    cut: Cut,
    table: &Table,
    request: &pb::SubmitMoveRequest,
) -> (Carried, Option<pb::SubmitMoveResponse>) {
    let (addr, carried) = cutting_proxy(server, cut).await;
    let answer = match client_at(addr).await {
        Some(mut client) => within(client.submit_move(by(&table.red, request.clone()))).await.ok(),
        None => None,
    };
    (within(carried).await.expect("the proxy ends"), answer.map(tonic::Response::into_inner))
}

async fn move_cut_at(server: Arc<TestServer>, cut: Cut, tally: Arc<Tally>) -> Carried {
    let mut client = server.client().await;
    let table = Table::new(&mut client, NewGameRequest::default()).await;
    let request_id = uuid(tally.offsets.fetch_add(1, Ordering::Relaxed));
    let request = pb::SubmitMoveRequest { request_id, expected_ply: Some(0), ..table.submit("a3a4") };
    let (carried, first) = first_try(server.addr, cut, &table, &request).await;
    let before = table.get(&mut client).await;
    assert!(before.sequence <= 2, "{cut:?}: {} events", before.sequence);

    let mut again = server.client().await;
    let reply = within(again.submit_move(by(&table.red, request))).await;
    let (second, replayed) = accepted(reply.unwrap_or_else(|status| panic!("{cut:?}: {status}")).into_inner());
    let after = table.get(&mut client).await;
    assert_eq!((after.sequence, after.ply, after.moves.len()), (2, Some(1), 1), "{cut:?}");
    assert_eq!(second.sequence, 2, "{cut:?}");
    let made = before.sequence == 2;
    assert!(replayed || !made, "{cut:?}: the move was there, and the repeat says that it made it");
    if let Some(first) = first {
        let (first, first_replayed) = accepted(first);
        assert_eq!((first_replayed, replayed, &first), (false, true, &second), "{cut:?}");
        Tally::add(&tally.answered);
    }
    match (carried.cut, made, replayed) {
        (false, ..) => Tally::add(&tally.not_cut),
        (true, true, _) => Tally::add(&tally.made),
        (true, false, false) => Tally::add(&tally.not_made),
        (true, false, true) => Tally::add(&tally.made_late),
    }
    carried
}

fn uuid(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}

/// "My line broke while I moved. I asked again, and had moved once."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_cut_at_any_byte_and_made_again_is_made_once() {
    let server = Arc::new(TestServer::start(&[]).await);
    let whole = move_cut_at(Arc::clone(&server), Cut::NEVER, Arc::default()).await;
    let tally = Arc::new(Tally::default());
    // The first number is taken by the call that was not cut.
    tally.offsets.store(1, Ordering::Relaxed);
    let cuts = cuts(whole);
    let mut tries = JoinSet::new();
    for cut in &cuts {
        if tries.len() >= AT_ONCE {
            tries.join_next().await.expect("one of them").expect("no panic");
        }
        tries.spawn(move_cut_at(Arc::clone(&server), *cut, Arc::clone(&tally)));
    }
    while let Some(tried) = tries.join_next().await {
        tried.expect("no panic");
    }
    let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    let (made, not_made, late) = (count(&tally.made), count(&tally.not_made), count(&tally.made_late));
    println!(
        "SubmitMove: {} bytes up, {} down; {} offsets cut ({} of them after the answer had come), {} ended before \
         their cut; the move had been made {made} times, had not {not_made} times, was made meanwhile {late} times",
        whole.up,
        whole.down,
        made + not_made + late,
        count(&tally.answered).saturating_sub(count(&tally.not_cut)),
        count(&tally.not_cut),
    );
    assert!(whole.up > 300 && whole.down > 150, "{whole:?}: is this a whole call?");
    assert!(made > 100 && not_made > 100, "made {made}, not made {not_made}: the cuts are not where they should be");
    assert!(count(&tally.not_cut) * 10 < cuts.len(), "{} of {} not cut", count(&tally.not_cut), cuts.len());
}

/// Watches through a client until the stream ends or breaks; adds what came, and says whether it ended well.
async fn watch_on(client: &mut Client, table: &Table, seen: &mut Vec<pb::GameEvent>) -> bool {
    let after = seen.last().map_or(0, |event| event.sequence);
    let Ok(mut stream) = within(table.watch(client, None, Some(after))).await else {
        return false;
    };
    loop {
        match within(stream.message()).await {
            Ok(Some(message)) => match message.message.expect("set") {
                Message::Event(event) => seen.push(event),
                Message::Snapshot(_) => panic!("a snapshot in a stream that asked for events"),
                Message::Heartbeat(_) => {}
            },
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// A stream through a proxy that cuts it; whether it ended well.
async fn watch_cut_at(server: SocketAddr, cut: Cut, table: &Table, seen: &mut Vec<pb::GameEvent>) -> (Carried, bool) {
    let (addr, carried) = cutting_proxy(server, cut).await;
    let ended = match client_at(addr).await {
        Some(mut client) => watch_on(&mut client, table, seen).await,
        None => false,
    };
    (within(carried).await.expect("the proxy ends"), ended)
}

/// "My line broke while I watched. I came back with the last number I had, and missed nothing."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_cut_at_any_byte_and_taken_up_again_tells_each_event_once() {
    let server = Arc::new(TestServer::start(&[]).await);
    let mut client = server.client().await;
    let table = Arc::new(Table::new(&mut client, long_game()).await);
    for ply in 0..6 {
        make_move(&mut client, &table, ply).await;
    }
    let leave = pb::LeaveGameRequest { game_id: table.id.clone(), ..pb::LeaveGameRequest::default() };
    client.leave_game(by(&table.red, leave)).await.expect("red leaves");
    let log = Arc::new(table.whole_log(&mut client).await);
    assert_eq!(log.len(), 8);

    let mut seen = Vec::new();
    let (whole, ended) = watch_cut_at(server.addr, Cut::NEVER, &table, &mut seen).await;
    assert!(ended && seen == *log, "not cut");
    let mut tries = JoinSet::new();
    let [broken, whole_ones] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    let cuts = cuts(whole);
    for cut in cuts.iter().copied() {
        if tries.len() >= AT_ONCE {
            tries.join_next().await.expect("one of them").expect("no panic");
        }
        let (server, table, log) = (Arc::clone(&server), Arc::clone(&table), Arc::clone(&log));
        let (broken, whole_ones) = (Arc::clone(&broken), Arc::clone(&whole_ones));
        tries.spawn(async move {
            let mut seen = Vec::new();
            let (_, ended) = watch_cut_at(server.addr, cut, &table, &mut seen).await;
            if ended {
                Tally::add(&whole_ones);
            } else {
                Tally::add(&broken);
                let mut client = server.client().await;
                assert!(watch_on(&mut client, &table, &mut seen).await, "{cut:?}: the second stream broke");
            }
            assert_eq!(seen, *log, "{cut:?}");
        });
    }
    while let Some(tried) = tries.join_next().await {
        tried.expect("no panic");
    }
    let (broken, whole_ones) = (broken.load(Ordering::Relaxed), whole_ones.load(Ordering::Relaxed));
    println!(
        "WatchGame: {} bytes up, {} down; {} offsets: {broken} streams broken, {whole_ones} whole before their cut",
        whole.up,
        whole.down,
        cuts.len()
    );
    assert!(broken > 1_000 && whole_ones * 10 < cuts.len(), "broken {broken}, whole {whole_ones}");
}

/// "My line breaks all the time while they play, and I have the whole game."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_cut_again_and_again_during_a_game_tells_each_event_once() {
    const PLIES: u32 = 200;
    const MOST_CONNECTIONS: usize = 2_000;
    let server = TestServer::start(&[]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, long_game()).await;
    // The players wait for the watcher's next connection, so that all of it happens during the game.
    let (connecting, mut connected) = mpsc::unbounded_channel();
    let watching = async {
        let (mut seen, mut connections) = (Vec::new(), 0);
        loop {
            assert!(connections < MOST_CONNECTIONS, "{} events after {connections} connections", seen.len());
            // A frame counts once it has come whole, and a watcher that is far behind is sent large ones:
            // now and then a connection must live for longer.
            let most = if connections % 8 == 7 { 20_000 } else { 2_500 };
            let cut = Cut { down: 300 + (connections * 1_009) % most, reset: connections % 2 == 1, ..Cut::NEVER };
            // The players have left once the game is over.
            let _ = connecting.send(());
            let (_, ended) = watch_cut_at(server.addr, cut, &table, &mut seen).await;
            connections += 1;
            if ended {
                return (seen, connections);
            }
        }
    };
    let mut mover = client.clone();
    let playing = async {
        for ply in 0..PLIES {
            make_move(&mut mover, &table, ply).await;
            // One connection may outlive several moves.
            let _ = tokio::time::timeout(Duration::from_millis(20), connected.recv()).await;
        }
        let leave = pb::LeaveGameRequest { game_id: table.id.clone(), ..pb::LeaveGameRequest::default() };
        mover.leave_game(by(&table.red, leave)).await.expect("red leaves");
    };
    let ((seen, connections), ()) = tokio::join!(watching, playing);
    assert_eq!(seen, table.whole_log(&mut client).await);
    println!("WatchGame during a game: {} events over {connections} connections", seen.len());
    assert!(connections > 10, "only {connections} connections: was it cut at all?");
    server.stop().await;
}
