//! Clients that open calls and take them back as fast as they can: an honest one keeps its connection, a
//! flood loses it, and others are served.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::server::{Client, Table, within};
use crate::wire::frames::{GREETING, call, frame};
use crate::wire::{Process, long_game, make_move};

/// How many calls a flood is given up after.
const MOST_SENT: u32 = 100_000;

/// So many calls from a stream on, each taken back at once.
fn taken_back(first: u32, many: u32) -> Vec<u8> {
    let streams = (0..many).map(|number| first + 2 * number);
    streams.flat_map(|stream| [call(stream, "ListRulesets"), frame(3, 0, stream, &[0, 0, 0, 8])].concat()).collect()
}

/// How many calls a flood was sent before its connection ended.
async fn flood(process: &Process) -> u32 {
    const AT_ONCE: u32 = 4_096;
    let stream = TcpStream::connect(process.addr).await.expect("it listens");
    let (mut read, mut write) = stream.into_split();
    let hears = tokio::spawn(async move { read.read_to_end(&mut Vec::new()).await });
    write.write_all(GREETING).await.expect("it is taken");
    let mut sent = 0;
    while sent < MOST_SENT && !hears.is_finished() {
        if write.write_all(&taken_back(1 + 2 * sent, AT_ONCE)).await.is_err() {
            break;
        }
        sent += AT_ONCE;
    }
    drop(write);
    // It is closed with a word or without: what counts is that it ends.
    let _ = within(hears).await.expect("no panic");
    sent
}

/// Takes back so many calls at once, and again when the next call has been answered.
async fn honest(process: &Process, rounds: u32) {
    const AT_ONCE: u32 = 1_000;
    let mut connection = TcpStream::connect(process.addr).await.expect("it listens");
    connection.write_all(GREETING).await.expect("it is taken");
    for round in 0..rounds {
        let first = 1 + 2 * round * (AT_ONCE + 1);
        let last = first + 2 * AT_ONCE;
        // There is no such call; that it is answered is what matters.
        let asked = [taken_back(first, AT_ONCE), call(last, "Nothing"), frame(0, 1, last, &[0; 5])].concat();
        connection.write_all(&asked).await.expect("the connection lives");
        loop {
            let mut head = [0; 9];
            within(connection.read_exact(&mut head)).await.expect("the connection lives");
            let [_, high, low, kind, _, stream @ ..] = head;
            within(connection.read_exact(&mut vec![0; usize::from(high) << 8 | usize::from(low)]))
                .await
                .expect("whole");
            assert_ne!(kind, 7, "a GOAWAY in round {round}");
            if kind == 1 && u32::from_be_bytes(stream) == last {
                break;
            }
        }
    }
}

/// "Somebody took back calls by the hundred thousand, and I played on."
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_resets_ends_its_own_connection_and_others_are_served() {
    const GROWTH: usize = 16 * 1024 * 1024;
    let process = Process::start(&[]);
    let mut client = Client::connect(format!("http://{}", process.addr)).await.expect("it listens");
    let table = Table::new(&mut client, long_game()).await;
    let before = process.memory();
    for round in 0..8 {
        let (sent, ()) = tokio::join!(flood(&process), make_move(&mut client, &table, round));
        assert!(sent < MOST_SENT, "round {round}: the connection still lives after {sent} calls");
    }
    let grown = process.memory().saturating_sub(before);
    assert!(grown < GROWTH, "{grown} bytes more");
}

/// "My program gave up all its calls at once, a thousand of them, and kept its connection."
#[tokio::test(flavor = "multi_thread")]
async fn who_takes_back_all_its_calls_at_once_keeps_its_connection_and_others_are_served() {
    let process = Process::start(&[]);
    let mut client = Client::connect(format!("http://{}", process.addr)).await.expect("it listens");
    let table = Table::new(&mut client, long_game()).await;
    tokio::join!(honest(&process, 10), async {
        for ply in 0..20 {
            make_move(&mut client, &table, ply).await;
        }
    });
}
