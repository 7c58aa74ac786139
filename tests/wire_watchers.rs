//! Many watchers, among them such as do not read; and the numbers that bound them.

mod server;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use jungle_referee::service::proto::watch_game_response::Message;
use jungle_referee::service::proto::{self as pb, NewGameRequest};
use server::{Client, Table, TestServer, by, next_event, reason, within};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tonic::{Code, Streaming};
use wire::{Process, RawWatcher, Windows, long_game, make_move};

/// How many watches a connection may have, unless flags say otherwise.
const WATCHES: usize = 768;

async fn leave(client: &mut Client, table: &Table) {
    let request = pb::LeaveGameRequest { game_id: table.id.clone(), ..pb::LeaveGameRequest::default() };
    within(client.leave_game(by(&table.red, request))).await.expect("red leaves");
}

async fn read_all(mut stream: Streaming<pb::WatchGameResponse>) -> Vec<u64> {
    let mut sequences = Vec::new();
    while let Some(event) = next_event(&mut stream).await.expect("no error") {
        sequences.push(event.sequence);
    }
    sequences
}

/// "Two of a thousand do not read. The others, and we who play, notice nothing."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_watch_and_two_that_do_not_read_delay_nobody() {
    const PLIES: u32 = 24;
    const LAST: u64 = 26;
    const CONNECTIONS: usize = 4;
    // The keepalive would cut the one that does not read its socket; here it shall catch up.
    let server = TestServer::start(&["--keepalive-interval", "1h"]).await;
    let mut client = server.client().await;
    let table = Arc::new(Table::new(&mut client, long_game()).await);

    let mut closed = RawWatcher::connect(server.addr, Windows::CLOSED).await;
    let mut closed_stream = closed.watch(&table, Some(0)).await;
    let mut deaf = RawWatcher::connect(server.addr, Windows::WIDE).await;
    let mut deaf_stream = deaf.watch(&table, Some(0)).await;
    let mut readers = JoinSet::new();
    for number in 0..998 {
        if number % (998 / CONNECTIONS + 1) == 0 {
            client = server.client().await;
        }
        let stream = table.watch(&mut client, None, Some(0)).await.expect("a stream");
        readers.spawn(read_all(stream));
    }

    let mut player = server.client().await;
    for ply in 0..PLIES {
        make_move(&mut player, &table, ply).await;
    }
    leave(&mut player, &table).await;
    let whole: Vec<u64> = (1..=LAST).collect();
    while let Some(read) = within(readers.join_next()).await {
        assert_eq!(read.expect("no panic"), whole);
    }

    // Now the two read.
    closed.connection.set_initial_window_size(65_535).expect("a window");
    let all = (whole.clone(), 0);
    assert_eq!(closed.drive(closed_stream.events()).await, all, "the one whose window was closed");
    assert_eq!(deaf.drive(deaf_stream.events()).await, all, "the one that did not read its socket");
    println!("1000 watchers, {LAST} events: 998 had all while two did not read, and these had all afterwards");
    server.stop().await;
}

/// "A line on which nobody reads is cut, and its watch is no more."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_its_socket_is_cut_by_the_keepalive() {
    let flags = ["--keepalive-interval", "200ms", "--keepalive-timeout", "2s", "--max-watchers", "1"];
    let server = TestServer::start(&flags).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, long_game()).await;
    let mut deaf = RawWatcher::connect(server.addr, Windows::WIDE).await;
    let _stream = deaf.watch(&table, None).await;
    let status = within(table.watch(&mut client, None, None)).await.expect_err("one watches already");
    assert_eq!(reason(&status), "TOO_MANY_WATCHERS");
    watch_when_free(&mut client, &table).await;
    // What it had not read it may still find, and then the end.
    let _ = within(&mut deaf.connection).await;
}

/// Makes as many events as there are refusals, by one side that keeps trying what it may not.
async fn refused_moves(client: &mut Client, table: &Table, ply: u32, number: u32) {
    let mv = if ply == 0 { "a1a9" } else { "g9g1" };
    for _ in 0..number {
        within(client.submit_move(by(table.token_at(ply), table.submit(mv)))).await.expect("a verdict");
    }
}

/// What a watch that does not read may cost, all in all, in bytes.
const BOUND: usize = 96 * 1024;

/// What watchers that do not read do meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stuck {
    /// There are none: what the game itself costs.
    None,
    /// Their streams' windows are closed.
    Closed,
    /// Their windows are wide open, and they do not read their socket, from before the events.
    Live,
    /// The same, from after the events: they have all of them to catch up with.
    Replaying,
}

/// By how much a server grows while a game has its events and so many watchers do not read.
async fn growth(stuck: Stuck, number: usize) -> usize {
    const REFUSED: u32 = 950;
    // In a process of its own: memory once freed would be used again, unseen.
    let process = Process::start(&["--keepalive-interval", "1h"]);
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{}", process.addr)).expect("an address");
    let mut client = Client::new(within(endpoint.connect()).await.expect("it listens"));
    let table = Table::new(&mut client, long_game()).await;
    // The first events warm the process up.
    refused_moves(&mut client, &table, 0, 49).await;
    let windows = if stuck == Stuck::Closed { Windows::CLOSED } else { Windows::WIDE };
    let mut watcher = RawWatcher::connect(process.addr, windows).await;
    let mut streams = Vec::new();
    let before = process.memory();
    if matches!(stuck, Stuck::Closed | Stuck::Live) {
        for _ in 0..number {
            streams.push(watcher.watch(&table, Some(50)).await);
        }
    }
    refused_moves(&mut client, &table, 0, REFUSED - 49).await;
    make_move(&mut client, &table, 0).await;
    refused_moves(&mut client, &table, 1, REFUSED).await;
    let _calls = match stuck {
        Stuck::Replaying => watcher.watch_deaf(&table, number).await,
        Stuck::None | Stuck::Closed | Stuck::Live => Vec::new(),
    };
    tokio::time::sleep(Duration::from_millis(300)).await;
    let grown = process.memory().saturating_sub(before);
    let bytes = event_bytes(&mut client, &table).await;
    assert!(bytes > 3 * BOUND, "{bytes} bytes of events prove nothing about a bound of {BOUND}");
    grown
}

/// "Whoever does not read costs no more, however long the game goes on."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watchers_that_do_not_read_cost_no_more_as_the_game_goes_on() {
    const STUCK: usize = 60;
    let game = growth(Stuck::None, STUCK).await;
    println!("1,901 events without a watcher: {game} bytes");
    for stuck in [Stuck::Closed, Stuck::Live, Stuck::Replaying] {
        let each = growth(stuck, STUCK).await.saturating_sub(game) / STUCK;
        println!("{STUCK} watchers that do not read, {stuck:?}: {each} bytes each");
        assert!(each < BOUND, "{stuck:?}: {each} bytes a watch");
    }
}

/// How many bytes a game's events have on the wire so far.
async fn event_bytes(client: &mut Client, table: &Table) -> usize {
    use prost::Message as _;
    let head = table.get(client).await.sequence;
    let mut stream = table.watch(client, None, Some(0)).await.expect("a stream");
    let mut bytes = 0;
    while let Some(event) = next_event(&mut stream).await.expect("no error") {
        bytes += event.encoded_len();
        if event.sequence == head {
            break;
        }
    }
    bytes
}

/// "My host watches 768 games on one line; it cannot watch one more, but all its bots still move."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_has_768_watches_and_its_moves_still_pass() {
    let server = TestServer::start(&[]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, long_game()).await;
    let mut streams = Vec::new();
    for _ in 0..WATCHES {
        streams.push(within(table.watch(&mut client, None, Some(0))).await.expect("a stream"));
    }
    for _ in 0..3 {
        let status = within(table.watch(&mut client, None, Some(0))).await.expect_err("full");
        assert_eq!((status.code(), reason(&status).as_str()), (Code::ResourceExhausted, "TOO_MANY_WATCHES"));
    }
    // Few enough that what nobody reads here yet is not too much for this client's HTTP/2 library.
    for ply in 0..4 {
        make_move(&mut client, &table, ply).await;
    }
    let mut other = server.client().await;
    drop(within(table.watch(&mut other, None, None)).await.expect("another connection has its own places"));

    // Places that are left are free again, once the server has heard of it.
    streams.truncate(WATCHES - 10);
    for _ in 0..10 {
        streams.push(watch_when_free(&mut client, &table).await);
    }
    let status = within(table.watch(&mut client, None, Some(0))).await.expect_err("full again");
    assert_eq!(reason(&status), "TOO_MANY_WATCHES");

    // So are those of streams that have ended.
    leave(&mut client, &table).await;
    for stream in streams {
        assert_eq!(within(read_all(stream)).await.last(), Some(&6));
    }
    let next = Table::new(&mut client, NewGameRequest::default()).await;
    let mut streams = Vec::new();
    for _ in 0..WATCHES {
        streams.push(watch_when_free(&mut client, &next).await);
    }
    let status = within(next.watch(&mut client, None, Some(0))).await.expect_err("full again");
    assert_eq!(reason(&status), "TOO_MANY_WATCHES");
}

/// A watch, as soon as there is a place for it.
async fn watch_when_free(client: &mut Client, table: &Table) -> Streaming<pb::WatchGameResponse> {
    let freed = async {
        loop {
            match table.watch(client, None, Some(0)).await {
                Ok(stream) => return stream,
                Err(status) => assert_eq!(status.code(), Code::ResourceExhausted, "{status}"),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(freed).await
}

/// "The gallery is full; but the players' own streams have their seats."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_game_has_its_number_of_watchers_and_the_seats_apart() {
    let server = TestServer::start(&["--max-watchers", "5"]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, long_game()).await;
    let mut streams = Vec::new();
    for token in [None, None, Some(table.arbiter.as_str()), None, None] {
        streams.push(within(table.watch(&mut client, token, None)).await.expect("a stream"));
    }
    let status = within(table.watch(&mut client, None, None)).await.expect_err("full");
    assert_eq!((status.code(), reason(&status).as_str()), (Code::ResourceExhausted, "TOO_MANY_WATCHERS"));
    for token in [&table.red, &table.blue, &table.red] {
        within(table.watch(&mut client, Some(token), None)).await.expect("a seat's stream");
    }
    drop(streams.pop());
    streams.push(watch_when_free(&mut client, &table).await);
    let status = within(table.watch(&mut client, None, None)).await.expect_err("full again");
    assert_eq!(reason(&status), "TOO_MANY_WATCHERS");
}

/// "One connection too many is closed; when another leaves, there is a place."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_surplus_connection_is_closed_and_the_others_live() {
    let server = TestServer::start(&["--max-connections", "3"]).await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = server.client().await;
        // An answer shows that the server has taken the connection.
        let table = Table::new(&mut client, long_game()).await;
        clients.push((client, table));
    }
    let mut surplus = TcpStream::connect(server.addr).await.expect("the system takes it");
    let read = within(surplus.read(&mut [0; 64])).await;
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    for (client, table) in &mut clients {
        make_move(client, table, 0).await;
    }
    clients.pop();
    let again = async {
        loop {
            let mut surplus = TcpStream::connect(server.addr).await.expect("the system takes it");
            // A connection that is taken says its settings; one that is not says nothing.
            let mut raw = [0; 9];
            let greeted = surplus.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
            if greeted.is_ok() && surplus.read_exact(&mut raw).await.is_ok() {
                return raw[3];
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert_eq!(within(again).await, 4, "a SETTINGS frame");
}

/// "A connection has 1,024 streams at most, and says so."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_is_told_of_its_1024_streams_and_has_them() {
    let server = TestServer::start(&["--max-watches-per-connection", "2000"]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, long_game()).await;
    let mut raw = RawWatcher::connect(server.addr, Windows::WIDE).await;
    let mut streams = Vec::new();
    for _ in 0..1_024 {
        streams.push(raw.watch(&table, None).await);
    }
    assert_eq!(raw.most_streams(), 1_024);
    let one_more = tokio::time::timeout(Duration::from_millis(100), raw.watch(&table, None)).await;
    assert!(one_more.is_err(), "one more waits in silence");
    make_move(&mut client, &table, 0).await;
    for stream in &mut streams {
        let first = raw.drive(stream.next()).await.expect("a message");
        assert!(matches!(first, Message::Snapshot(_)));
    }
}

/// "A message beyond 64 KiB is refused by the transport, and the connection goes on."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_beyond_64_kib_is_refused_and_the_connection_goes_on() {
    let server = TestServer::start(&[]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, long_game()).await;
    for (bytes, code) in [(65_000, Code::InvalidArgument), (65_536, Code::OutOfRange), (3 << 20, Code::OutOfRange)] {
        let request = NewGameRequest { external_reference: "x".repeat(bytes), ..NewGameRequest::default() };
        let status = within(client.new_game(request)).await.expect_err("too long");
        assert_eq!(status.code(), code, "{bytes} bytes: {status}");
    }
    make_move(&mut client, &table, 0).await;
}

/// "All my thousand bots call at once on one line."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_of_calls_on_one_connection_is_answered() {
    let server = TestServer::start(&[]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, long_game()).await;
    let mut calls = JoinSet::new();
    for _ in 0..2_000 {
        let (mut client, request) = (client.clone(), by(&table.blue, table.submit("g9g8")));
        calls.spawn(async move { client.submit_move(request).await });
    }
    while let Some(call) = within(calls.join_next()).await {
        let status = call.expect("no panic").expect_err("it is red's turn");
        assert_eq!(reason(&status), "NOT_YOUR_TURN", "{status}");
    }
}

/// "I closed a hundred boards at once, just opened, and my line is still up."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_of_cancelled_calls_does_not_cost_the_connection() {
    let server = TestServer::start(&[]).await;
    let mut client = server.client().await;
    let table = Arc::new(Table::new(&mut client, long_game()).await);
    for round in 0..20 {
        let mut calls = JoinSet::new();
        for number in 0..200 {
            let (mut client, table) = (client.clone(), Arc::clone(&table));
            calls.spawn(async move {
                let patience = Duration::from_micros(50 * ((round * 200 + number) % 40));
                let opened = tokio::time::timeout(patience, table.watch(&mut client, None, None)).await;
                if let Ok(Err(status)) = opened {
                    panic!("{status}");
                }
            });
        }
        while let Some(call) = within(calls.join_next()).await {
            call.expect("no panic");
        }
    }
    make_move(&mut client, &table, 0).await;
}

/// "A connection that makes nothing but errors is closed."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_of_errors_alone_is_closed() {
    const STREAMS: u32 = 3_000;
    let server = TestServer::start(&[]).await;
    let mut raw = TcpStream::connect(server.addr).await.expect("it listens");
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    for number in 0..STREAMS {
        // HEADERS, the last of their stream, with ":method: POST" and nothing else.
        bytes.extend_from_slice(&[0, 0, 1, 1, 5]);
        bytes.extend_from_slice(&(2 * number + 1).to_be_bytes());
        bytes.push(0x83);
    }
    let (mut reads, mut writes) = raw.split();
    let mut frames = Vec::new();
    let talk = async {
        // The server may close before it has read all of it.
        let (_, _) = tokio::join!(writes.write_all(&bytes), reads.read_to_end(&mut frames));
    };
    within(talk).await;
    let mut kinds = [0; 256];
    let mut rest = frames.as_slice();
    while let [high, mid, low, kind, ..] = *rest {
        kinds[usize::from(kind)] += 1;
        let length = usize::try_from(u32::from_be_bytes([0, high, mid, low])).expect("small");
        rest = rest.get(9 + length..).unwrap_or_default();
    }
    println!("{STREAMS} bad streams: {} reset, {} GOAWAY", kinds[3], kinds[7]);
    assert!(kinds[7] > 0, "the connection is closed with a word");
    let mut client = server.client().await;
    let table = Table::new(&mut client, long_game()).await;
    make_move(&mut client, &table, 0).await;
}
