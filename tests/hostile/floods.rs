//! Too much of what HTTP/2 allows: pings, settings, priorities, empty frames, headers without end, messages
//! without end, answers that nobody takes.

use futures_util::future::join_all;
use jungle_referee::service::proto as pb;

use crate::attacker::Attacker;
use crate::house::{House, many};
use crate::server::Table;
use crate::wire::frames::{call, call_headers, flag, frame, kind, literal, message};

/// What a server may need for an attack while it goes on, in bytes.
const HELD: usize = 24 * 1024 * 1024;

/// How many bytes are sent at once.
const AT_ONCE: usize = 16 * 1024;

/// A flood: what begins it, what is sent again and again, and whether the sender reads.
struct Flood {
    name: &'static str,
    begin: Vec<u8>,
    again: Vec<u8>,
    reads: bool,
}

fn flood(name: &'static str, begin: Vec<u8>, again: &[u8]) -> Flood {
    Flood { name, begin, again: again.repeat((AT_ONCE / again.len()).max(1)), reads: false }
}

/// Headers that are in the table, and that a block names a thousand times: some 30 bytes grow to megabytes.
fn swelling() -> Vec<u8> {
    // Into the table, with a value of 120 bytes; it is then its first entry, 62.
    let entry = [vec![0x40, 1, b'x', 120], vec![b'v'; 120]].concat();
    [call_headers("ListRulesets"), entry, vec![0xbe; 15_000]].concat()
}

fn floods() -> Vec<Flood> {
    use kind::{CONTINUATION, DATA, HEADERS, PING, PRIORITY, RST_STREAM, SETTINGS, WINDOW_UPDATE};
    let open = || call(1, "ListRulesets");
    let over = [open(), message(1, &pb::ListRulesetsRequest {})].concat();
    let many_settings = [0, 4, 0, 0, 0xff, 0xff].repeat(2_000);
    let depends = |stream: u32| frame(PRIORITY, 0, stream, &[0, 0, 0, 1, 16]);
    let priorities: Vec<u8> = (0..1_000).flat_map(|number| depends(3 + 2 * number)).collect();
    let mut all = vec![
        flood("pings", vec![], &frame(PING, 0, 0, &[3; 8])),
        flood("settings", vec![], &frame(SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0])),
        flood("long settings", vec![], &frame(SETTINGS, 0, 0, &many_settings)),
        flood("settings confirmed", vec![], &frame(SETTINGS, flag::ACK, 0, &[])),
        flood("answers to no ping", vec![], &frame(PING, flag::ACK, 0, &[3; 8])),
        flood("priorities", vec![], &priorities),
        flood("frames of an unknown kind", vec![], &frame(0x63, 0, 0, &[3; 200])),
        flood("a wider window", vec![], &frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
        flood("a stream's wider window", open(), &frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])),
        flood(
            "a window to and fro",
            open(),
            &[[0, 4, 0, 0, 0, 0], [0, 4, 0x7f, 0xff, 0, 0]].map(|s| frame(SETTINGS, 0, 0, &s)).concat(),
        ),
        flood("data of nothing", open(), &frame(DATA, 0, 1, &[])),
        flood("data of padding", open(), &frame(DATA, flag::PADDED, 1, &[3, 0, 0, 0])),
        flood("data for what is over", over.clone(), &frame(DATA, 0, 1, &[0; 5])),
        flood("resets of what is over", over, &frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])),
        flood("more headers of nothing", frame(HEADERS, 0, 1, &[]), &frame(CONTINUATION, 0, 1, &[])),
        flood("more headers of a byte", frame(HEADERS, 0, 1, &[0]), &frame(CONTINUATION, 0, 1, &[0x7f])),
        flood("trailers", open(), &frame(HEADERS, flag::END_HEADERS, 1, &literal("x", "y"))),
    ];
    let reading = [0, 1, 2, 9].map(|index| {
        let Flood { name, begin, again, .. }: &Flood = &all[index];
        Flood { name, begin: begin.clone(), again: again.clone(), reads: true }
    });
    all.extend(reading);
    all
}

/// "Somebody sent pings and settings without end and read no answer; I played on."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_of_frames_cost_a_bounded_amount_and_leave_nothing() {
    let times = many("HOSTILE_FLOOD", 48);
    let house = House::open(&[]);
    house.serves().await;
    house.comes_to_rest().await;
    for Flood { name, begin, again, reads } in floods() {
        let before = house.process.memory();
        let mut attacker = Attacker::greeted(house.addr, &begin).await;
        attacker.pour(&again, 16 * times, reads).await;
        let held = house.process.memory().saturating_sub(before);
        println!("{name}{}: {} KiB held", if reads { ", answers read" } else { "" }, held / 1024);
        assert!(held < HELD, "{name}: {held} bytes for one connection");
        attacker.vanish();
    }
    house
        .withstands("floods of frames", async |_| {
            let each = floods();
            join_all(each.iter().map(async |Flood { begin, again, reads, .. }| {
                let mut attacker = Attacker::greeted(house.addr, begin).await;
                attacker.pour(again, times, *reads).await;
                attacker.vanish();
            }))
            .await;
        })
        .await;
}

/// How many connections at once try to make the server keep what they send.
const HOARDERS: usize = 60;

/// What each of them sends: a beginning, and so many times more.
type Hoard = (&'static str, Vec<u8>, Vec<u8>, u32);

fn hoards() -> Vec<Hoard> {
    // What they would make it keep, without limits: 3 MiB each, and so some 180 MiB.
    let endless = [literal("x", "y"), vec![0, 1, b'z', 0x7f, 0x80, 0x80, 0x40]].concat();
    let call_of = |length: u32| {
        let prefix = [&[0], length.to_be_bytes().as_slice()].concat();
        [call(1, "GetGame"), frame(kind::DATA, 0, 1, &prefix)].concat()
    };
    let swollen: Vec<u8> =
        (0..60).flat_map(|n| frame(kind::HEADERS, flag::END_HEADERS, 3 + 2 * n, &swelling())).collect();
    vec![
        (
            "headers without end",
            frame(kind::HEADERS, 0, 1, &endless),
            frame(kind::CONTINUATION, 0, 1, &[b'v'; AT_ONCE]),
            192,
        ),
        ("a message of 4 GiB", call_of(u32::MAX), frame(kind::DATA, 0, 1, &[0; AT_ONCE]), 192),
        ("a message of 4 MB", call_of(4_000_000), frame(kind::DATA, 0, 1, &[0; AT_ONCE]), 192),
        ("headers that swell", swollen, vec![], 0),
    ]
}

/// "Sixty strangers sent headers and messages without end. The server kept none of it."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_and_messages_without_end_are_not_kept() {
    let house = House::open(&[]);
    house.serves().await;
    house.comes_to_rest().await;
    for (name, begin, more, times) in hoards() {
        let before = house.process.memory();
        let hoarding = (0..HOARDERS).map(async |_| {
            let mut attacker = Attacker::greeted(house.addr, &begin).await;
            attacker.pour(&more, times, true).await;
            attacker
        });
        let attackers = join_all(hoarding).await;
        let held = house.process.memory().saturating_sub(before);
        println!("{name}, {HOARDERS} times: {} KiB held", held / 1024);
        assert!(held < HELD, "{name}: {held} bytes for {HOARDERS} connections");
        attackers.into_iter().for_each(Attacker::vanish);
        house.comes_to_rest().await;
    }
    let all = hoards();
    house
        .withstands("headers and messages without end", async |_| {
            let hoarding = all.iter().cycle().take(HOARDERS).map(async |(_, begin, more, times)| {
                let mut attacker = Attacker::greeted(house.addr, begin).await;
                attacker.pour(more, *times, true).await;
                attacker.vanish();
            });
            join_all(hoarding).await;
        })
        .await;
}

/// Calls whose answers nobody takes: the window of each stream is closed.
async fn untaken(house: &House, table: &Table, streams: u32) -> Attacker {
    let closed = frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let looks = pb::LegalMovesRequest {
        subject: Some(pb::legal_moves_request::Subject::GameId(table.id.clone())),
        explain: true,
        ..pb::LegalMovesRequest::default()
    };
    let calls = (0..streams).flat_map(|number| {
        let stream = 1 + 2 * number;
        [call(stream, "LegalMoves"), message(stream, &looks)].concat()
    });
    let mut attacker = Attacker::greeted(house.addr, &closed).await;
    attacker.pour(&calls.collect::<Vec<u8>>(), 1, true).await;
    // Whoever is answered a ping has been heard to the end.
    attacker.send(&frame(kind::PING, 0, 0, &[5; 8])).await;
    while crate::server::within(attacker.frame()).await.is_some_and(|frame| frame.payload != [5; 8]) {}
    attacker
}

/// "Somebody asked a thousand times and took no answer, on many lines; I was answered at once."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_nobody_takes_are_bounded_by_their_connection_and_go_with_it() {
    const STREAMS: u32 = 1_000;
    const LINES: usize = 4;
    let house = House::open(&[]);
    let table = Table::new(&mut house.client().await, pb::NewGameRequest::default()).await;
    let before = house.process.memory();
    let line = untaken(&house, &table, STREAMS).await;
    let held = house.process.memory().saturating_sub(before);
    println!("{STREAMS} answers of LegalMoves that nobody takes: {} bytes each", held / 1_000);
    assert!(held < HELD, "{held} bytes for one connection");
    line.vanish();
    house
        .withstands("answers that nobody takes", async |_| {
            let lines = join_all((0..LINES).map(|_| untaken(&house, &table, STREAMS))).await;
            house.serves().await;
            lines.into_iter().for_each(Attacker::vanish);
        })
        .await;
}
