//! What is no HTTP/2, or no gRPC: frames of a wrong length or in a wrong place, header blocks that cannot
//! be read, messages that are not what they say, random bytes, and real sessions with errors in them.

use bytes::Bytes;
use futures_util::future::join_all;
use jungle_referee::service::proto as pb;
use prost::Message as _;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::attacker::Fate::{Ended, Lives, Reset};
use crate::attacker::{Attacker, Chance, Fate};
use crate::house::{House, many};
use crate::server::{Table, within};
use crate::wire::frames::{GREETING, call, call_headers, flag, frame, framed, kind, literal, message};

const PROTOCOL: Fate = Ended(Some(1));
const FLOW: Fate = Ended(Some(3));
const SIZE: Fate = Ended(Some(6));
const MALFORMED: Fate = Reset(1);

/// A setting.
fn setting(id: u16, value: u32) -> Vec<u8> {
    frame(kind::SETTINGS, 0, 0, &[id.to_be_bytes().as_slice(), &value.to_be_bytes()].concat())
}

/// A header block as a whole call.
fn headers(block: &[u8]) -> Vec<u8> {
    frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, block)
}

/// Only the head of a frame, which says that so many bytes follow.
fn head(length: u32, kind: u8, stream: u32) -> Vec<u8> {
    [&length.to_be_bytes()[1..], &[kind, 0], stream.to_be_bytes().as_slice()].concat()
}

/// A call that has had its answer.
fn over() -> Vec<u8> {
    [call(1, "ListRulesets"), message(1, &pb::ListRulesetsRequest {})].concat()
}

/// Frames whose length, stream or moment is wrong, and what HTTP/2 has for them.
fn frames() -> Vec<(&'static str, Vec<u8>, Fate)> {
    use kind::{
        CONTINUATION, DATA, GOAWAY, HEADERS, PING, PRIORITY, PUSH_PROMISE, RST_STREAM, SETTINGS, WINDOW_UPDATE,
    };
    let open = || call(1, "ListRulesets");
    vec![
        ("data on stream 0", frame(DATA, 0, 0, &[0; 5]), PROTOCOL),
        ("data on a stream that is not open", frame(DATA, 0, 1, &[0; 5]), PROTOCOL),
        ("data with more padding than data", [open(), frame(DATA, flag::PADDED, 1, &[9, 0, 0])].concat(), PROTOCOL),
        ("headers on stream 0", frame(HEADERS, flag::END_HEADERS, 0, &call_headers("GetGame")), PROTOCOL),
        ("headers on a stream of the server's", call(2, "ListRulesets"), PROTOCOL),
        ("a stream of a lower number", [call(5, "GetGame"), call(3, "GetGame")].concat(), PROTOCOL),
        ("headers with more padding than headers", frame(HEADERS, 4 | flag::PADDED, 1, &[200, 0]), PROTOCOL),
        ("headers that depend on themselves", frame(HEADERS, 4 | flag::PRIORITY, 1, &[0, 0, 0, 1, 0]), MALFORMED),
        ("a frame of 16 KiB and a byte", frame(DATA, 0, 1, &[0; 16_385]), SIZE),
        ("a frame of 16 MiB, announced", head((1 << 24) - 1, DATA, 1), SIZE),
        ("a priority of four bytes", frame(PRIORITY, 0, 1, &[0; 4]), PROTOCOL),
        ("a priority on stream 0", frame(PRIORITY, 0, 0, &[0; 5]), PROTOCOL),
        ("a stream that depends on itself", frame(PRIORITY, 0, 1, &[0, 0, 0, 1, 0]), MALFORMED),
        ("a reset of stream 0", frame(RST_STREAM, 0, 0, &[0; 4]), PROTOCOL),
        ("a reset of a stream that is not open", frame(RST_STREAM, 0, 1, &[0; 4]), PROTOCOL),
        ("a reset of three bytes", [open(), frame(RST_STREAM, 0, 1, &[0; 3])].concat(), PROTOCOL),
        ("settings of five bytes", frame(SETTINGS, 0, 0, &[0; 5]), PROTOCOL),
        ("settings on a stream", frame(SETTINGS, 0, 1, &[]), PROTOCOL),
        ("settings confirmed, with some", frame(SETTINGS, flag::ACK, 0, &[0; 6]), PROTOCOL),
        ("a push that is neither on nor off", setting(2, 2), PROTOCOL),
        ("a window of 2 GiB", setting(4, 1 << 31), PROTOCOL),
        ("frames of at most a byte", setting(5, 1), PROTOCOL),
        ("a setting that nobody knows", setting(0x77, 7), Lives),
        ("a push from a client", frame(PUSH_PROMISE, 4, 1, &[0, 0, 0, 2]), PROTOCOL),
        ("a ping of seven bytes", frame(PING, 0, 0, &[0; 7]), PROTOCOL),
        ("a ping on a stream", frame(PING, 0, 1, &[0; 8]), PROTOCOL),
        ("an answer to no ping", frame(PING, flag::ACK, 0, &[7; 8]), Lives),
        ("a farewell of four bytes", frame(GOAWAY, 0, 0, &[0; 4]), PROTOCOL),
        ("a farewell on a stream", frame(GOAWAY, 0, 1, &[0; 8]), PROTOCOL),
        ("a window wider by nothing", frame(WINDOW_UPDATE, 0, 0, &[0; 4]), PROTOCOL),
        ("a window wider by three bytes", frame(WINDOW_UPDATE, 0, 0, &[0; 3]), PROTOCOL),
        ("a window beyond 2 GiB", frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]), FLOW),
        (
            "a stream's window beyond 2 GiB",
            [open(), frame(WINDOW_UPDATE, 0, 1, &[0x7f, 255, 255, 255])].concat(),
            Reset(3),
        ),
        ("the window of a stream that is not open", frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]), PROTOCOL),
        ("more headers of none", frame(CONTINUATION, 4, 1, &[0]), PROTOCOL),
        ("more headers on another stream", [head(0, HEADERS, 1), frame(CONTINUATION, 4, 3, &[0])].concat(), PROTOCOL),
        ("something else among headers", [head(0, HEADERS, 1), frame(PING, 0, 0, &[0; 8])].concat(), PROTOCOL),
        ("a frame of an unknown kind", frame(0x63, 0xff, 1, b"anything"), Lives),
    ]
}

/// What comes on a stream that is over, or about to be: that is a race, and either end is right.
fn too_late() -> Vec<Vec<u8>> {
    vec![[over(), call(1, "GetGame")].concat(), [over(), frame(kind::DATA, 0, 1, &[0; 5])].concat()]
}

/// Header blocks that cannot be read, or are not those of a request.
fn blocks() -> Vec<(&'static str, Vec<u8>, Fate)> {
    let with = |name: &str, value: &str| [call_headers("ListRulesets"), literal(name, value)].concat();
    let nul_name = [call_headers("ListRulesets"), vec![0, 1, 0, 1, b'x']].concat();
    vec![
        ("the entry 0 of the table", headers(&[0x80]), PROTOCOL),
        ("an entry beyond the table", headers(&[0xff, 0xff, 0x03]), PROTOCOL),
        ("a number without end", headers(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), PROTOCOL),
        ("a table of 2 GiB", headers(&[0x3f, 0xe1, 0xff, 0xff, 0xff, 0x07]), PROTOCOL),
        ("a text longer than the block", headers(&[0x00, 0x7e, b'a']), PROTOCOL),
        ("a Huffman code of ones only", headers(&[0x00, 0x84, 0xff, 0xff, 0xff, 0xff, 0x00]), PROTOCOL),
        ("a name in capitals", headers(&with("X-Name", "1")), PROTOCOL),
        ("a name of a NUL", headers(&nul_name), PROTOCOL),
        ("a header of the connection", headers(&with("connection", "close")), MALFORMED),
        ("a method after the headers", headers(&with(":method", "GET")), MALFORMED),
        (
            "a pseudo-header that nobody knows",
            headers(&[literal(":anything", "1"), call_headers("GetGame")].concat()),
            PROTOCOL,
        ),
        ("an answer's header", headers(&[literal(":status", "200"), call_headers("GetGame")].concat()), MALFORMED),
        ("no method", headers(&literal(":path", "/")), MALFORMED),
        ("no headers", headers(&[]), MALFORMED),
        (
            "a path of nothing",
            headers(&[literal(":method", "GET"), literal(":scheme", "http"), literal(":path", "")].concat()),
            MALFORMED,
        ),
        ("a length that is not the body's", headers(&with("content-length", "7")), MALFORMED),
        ("a length that is no number", headers(&with("content-length", "-1")), MALFORMED),
        (
            "a page for a browser",
            headers(&[literal(":method", "GET"), literal(":scheme", "http"), literal(":path", "/")].concat()),
            Lives,
        ),
        ("a tunnel", headers(&[literal(":method", "CONNECT"), literal(":authority", "elsewhere:80")].concat()), Lives),
    ]
}

/// What is sent instead of a greeting.
fn greetings() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("HTTP/1.1", b"GET / HTTP/1.1\r\nhost: here\r\n\r\n".to_vec()),
        ("the hello of TLS", [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".as_slice(), &[7; 506]].concat()),
        ("a preface with an error", b"PRI * HTTP/2.1\r\n\r\nSM\r\n\r\n".to_vec()),
        ("zeros", vec![0; 4096]),
        ("ones", vec![255; 4096]),
    ]
}

/// "Somebody's library was broken; it lost its own line, and I noticed nothing."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_frames_and_headers_end_their_own_stream_or_connection_and_nothing_more() {
    let house = House::open(&[]);
    let (cases, too_late) = ([frames(), blocks()].concat(), too_late());
    let mut wrong = Vec::new();
    for (name, bytes, fate) in &cases {
        let told = Attacker::greeted(house.addr, bytes).await.fate().await;
        if told != *fate {
            wrong.push(format!("{name}: {told:?} instead of {fate:?}"));
        }
    }
    for (name, bytes) in greetings() {
        let mut attacker = Attacker::connect(house.addr).await;
        attacker.send(&bytes).await;
        let told = attacker.fate().await;
        if !matches!(told, Ended(_)) {
            wrong.push(format!("{name}: {told:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let all: Vec<&Vec<u8>> = cases.iter().map(|(_, bytes, _)| bytes).chain(&too_late).collect();
    house
        .withstands("broken frames and headers", async |_| {
            for _ in 0..10 {
                join_all(all.iter().map(async |bytes| Attacker::greeted(house.addr, bytes).await.fate().await)).await;
            }
        })
        .await;
}

/// A message made longer, by a field that nobody knows.
fn padded(message: &[u8], length: usize) -> Vec<u8> {
    // The field's head: its number and its own length, in three bytes of seven bits.
    let rest = length - message.len() - 4;
    let bits = |shift: usize| u8::try_from(rest >> shift & 0x7f).expect("seven bits");
    [message, &[0x7a, bits(0) | 0x80, bits(7) | 0x80, bits(14)], &vec![0; rest]].concat()
}

/// A body, in DATA frames of this size, and the status that answers it.
fn bodies(good: &[u8]) -> Vec<(&'static str, Vec<u8>, usize, &'static str)> {
    let declared = |length: u32, flag: u8| [&[flag], length.to_be_bytes().as_slice(), good].concat();
    let length = u32::try_from(good.len()).expect("short");
    let whole = framed(good);
    vec![
        ("as it should be", whole.clone(), 16_000, "0"),
        ("of 64 KiB", framed(&padded(good, 65_536)), 16_000, "0"),
        ("of 64 KiB and a byte", framed(&padded(good, 65_537)), 16_000, "11"),
        ("a byte at a time", whole.clone(), 1, "0"),
        ("compressed, it says", declared(length, 1), 16_000, "13"),
        ("neither compressed nor not", declared(length, 9), 16_000, "13"),
        ("a message of 4 GiB, announced", declared(u32::MAX, 0), 16_000, "11"),
        ("a message of 64 KiB and a byte, announced", declared(65_537, 0), 16_000, "11"),
        ("longer than it is", declared(length + 1, 0), 16_000, "13"),
        ("shorter than it is", declared(length - 1, 0), 16_000, "13"),
        ("bytes after the message", [whole.as_slice(), b"more"].concat(), 16_000, "13"),
        ("two messages, of which one counts", [whole.as_slice(), &whole].concat(), 16_000, "0"),
        ("nothing", vec![], 16_000, "13"),
        ("half a prefix", vec![0, 0], 16_000, "13"),
        ("no message in it", framed(&[0xff; 40]), 16_000, "13"),
        (
            "a length without end in it",
            framed(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
            16_000,
            "13",
        ),
    ]
}

/// The status that answers a body.
async fn status_of(house: &House, body: &[u8], size: usize) -> String {
    let stream = within(TcpStream::connect(house.addr)).await.expect("it listens");
    let (sender, connection) = within(h2::client::handshake(stream)).await.expect("a greeting");
    let driven = tokio::spawn(connection);
    let mut sender = within(sender.ready()).await.expect("a place for a stream");
    let request = http::Request::post("http://referee/jungle.v1.RefereeService/GetGame")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .expect("a request");
    let (response, mut sending) = sender.send_request(request, false).expect("a stream");
    for part in body.chunks(size) {
        // An answer may come before all was sent.
        let _ = sending.send_data(Bytes::copy_from_slice(part), false);
    }
    let _ = sending.send_data(Bytes::new(), true);
    let response = within(response).await.expect("an answer");
    let (head, mut body) = response.into_parts();
    let mut trailers = Some(head.headers);
    if trailers.as_ref().is_some_and(|headers| !headers.contains_key("grpc-status")) {
        while let Some(data) = within(body.data()).await {
            drop(data.expect("no reset"));
        }
        trailers = within(body.trailers()).await.expect("no reset");
    }
    driven.abort();
    let status = trailers.and_then(|trailers| trailers.get("grpc-status")?.to_str().ok().map(str::to_owned));
    status.unwrap_or_else(|| "no status".to_owned())
}

/// "It said that its message was compressed, or short, or long; it was answered, and I noticed nothing."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_are_not_what_they_say_are_answered_with_an_error() {
    let house = House::open(&[]);
    let table = Table::new(&mut house.client().await, pb::NewGameRequest::default()).await;
    let cases = bodies(&pb::GetGameRequest { game_id: table.id.clone() }.encode_to_vec());
    let mut wrong = Vec::new();
    for (name, body, size, status) in &cases {
        let told = status_of(&house, body, *size).await;
        if told != *status {
            wrong.push(format!("{name}: status {told} instead of {status}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    house
        .withstands("bodies that are not what they say", async |_| {
            for _ in 0..10 {
                join_all(cases.iter().map(|(_, body, size, _)| status_of(&house, body, *size))).await;
            }
        })
        .await;
}

/// A session as a client has it: two looks, a watch, and a move out of turn.
fn session(table: &Table) -> Vec<u8> {
    let (game_id, token) = (table.id.clone(), format!("Bearer {}", table.blue));
    let blue = [call_headers("SubmitMove"), literal("authorization", &token)].concat();
    let watch = pb::WatchGameRequest { game_id: game_id.clone(), after_sequence: Some(0), heartbeat: None };
    [
        GREETING.to_vec(),
        over(),
        call(3, "GetGame"),
        message(3, &pb::GetGameRequest { game_id }),
        call(5, "WatchGame"),
        message(5, &watch),
        frame(kind::HEADERS, flag::END_HEADERS, 7, &blue),
        message(7, &table.submit("a7a6")),
        frame(kind::PING, 0, 0, &[1; 8]),
        frame(kind::WINDOW_UPDATE, 0, 0, &[0, 0, 1, 0]),
        frame(kind::SETTINGS, flag::ACK, 0, &[]),
        frame(kind::RST_STREAM, 0, 5, &[0, 0, 0, 8]),
    ]
    .concat()
}

/// The bytes with a few errors in them.
fn spoilt(mut bytes: Vec<u8>, chance: &mut Chance) -> Vec<u8> {
    for _ in 0..=chance.below(6) {
        let at = chance.below(bytes.len());
        match chance.below(6) {
            0 => bytes[at] ^= 1 << chance.below(8),
            1 => bytes[at] = chance.bytes(1)[0],
            2 => drop(bytes.remove(at)),
            3 => bytes.insert(at, chance.bytes(1)[0]),
            4 => bytes.truncate(at.max(40)),
            _ => {
                let end = (at + chance.below(60)).min(bytes.len());
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
        }
    }
    bytes
}

/// Sends bytes in pieces, says that this was all, and waits for the end.
async fn tell(house: &House, bytes: &[u8], pieces: usize) {
    let mut attacker = Attacker::connect(house.addr).await;
    for part in bytes.chunks(bytes.len() / pieces + 1) {
        attacker.send(part).await;
    }
    let _ = attacker.stream.shutdown().await;
    attacker.until_closed().await;
}

/// "Noise came over the line, and sessions with errors in them; my game stayed as it was."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_bytes_and_spoilt_sessions_change_nothing() {
    let each = many("HOSTILE_SESSIONS", 300);
    let house = House::open(&[]);
    let mut client = house.client().await;
    let table = Table::new(&mut client, pb::NewGameRequest::default()).await;
    let before = table.get(&mut client).await;
    drop(client);
    let good = session(&table);
    tell(&house, &good, 1).await;
    house
        .withstands("random bytes and spoilt sessions", async |round| {
            for number in 0..each {
                let chance = &mut Chance(u64::from(round) << 32 | u64::from(number));
                let (noise, pieces) = (1 + chance.below(2_000), 1 + chance.below(4));
                let noise = chance.bytes(noise);
                let (after_greeting, errors) = ([GREETING, &noise].concat(), spoilt(good.clone(), chance));
                tokio::join!(
                    tell(&house, &noise, pieces),
                    tell(&house, &after_greeting, pieces),
                    tell(&house, &errors, pieces)
                );
            }
        })
        .await;
    let after = table.get(&mut house.client().await).await;
    let lasting = |game: pb::Game| pb::Game { server_time: None, presence: None, ..game };
    assert_eq!(lasting(after), lasting(before));
}
