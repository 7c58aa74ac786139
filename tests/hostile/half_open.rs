//! Connections that stop halfway, by themselves or a byte at a time, until all places are taken.

use std::time::Duration;

use futures_util::future::join_all;
use jungle_referee::service::proto as pb;

use crate::attacker::{Attacker, Fate};
use crate::house::House;
use crate::server::within;
use crate::wire::frames::{GREETING, PREFACE, call, call_headers, frame, framed, kind};

/// How many connections stop halfway at once.
const HALVES: usize = 210;

/// What is left for others: three players' and watchers' connections, one for health, twice.
const PLACES: usize = HALVES + 8;

/// Where a connection stops, and what it then sends a byte of now and then.
type Half = (&'static str, Vec<u8>, &'static [u8]);

fn halves() -> Vec<Half> {
    let begun = [GREETING, &call(1, "GetGame"), &frame(kind::DATA, 0, 1, &framed(&[0; 30])[..20])].concat();
    let headers = [GREETING, &frame(kind::HEADERS, 0, 1, &call_headers("GetGame"))].concat();
    let slow_headers = [headers.as_slice(), &[0, 0xff, 0, kind::CONTINUATION, 0, 0, 0, 0, 1]].concat();
    vec![
        ("not a byte", vec![], b""),
        ("half a preface", PREFACE[..12].to_vec(), b""),
        ("a preface, a byte at a time", vec![], PREFACE),
        ("a preface and no settings", PREFACE.to_vec(), b""),
        ("half of the settings", GREETING[..GREETING.len() - 4].to_vec(), b""),
        ("a greeting, and no answer to pings", GREETING.to_vec(), b""),
        ("headers without end", headers, b""),
        ("headers, a byte at a time", slow_headers, &[b'x'; 200]),
        ("half a message", begun.clone(), b""),
        ("a frame, a byte at a time", [begun.as_slice(), &[0, 0xff, 0, kind::DATA, 0, 0, 0, 0, 1]].concat(), &[0; 200]),
    ]
}

/// Holds a connection that stops halfway, until the server closes it.
async fn hold(house: &House, begin: &[u8], slowly: &[u8]) {
    const PAUSE: Duration = Duration::from_millis(100);
    let mut attacker = Attacker::connect(house.addr).await;
    attacker.send(begin).await;
    for byte in slowly {
        if attacker.goes_on_for(PAUSE).await {
            attacker.send(&[*byte]).await;
        } else {
            return;
        }
    }
    attacker.until_closed().await;
}

/// "Two hundred strangers took a line each and said half a word. They were shown out, and I played meanwhile."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_stop_halfway_are_closed_without_a_word_from_their_clients() {
    let places = format!("--max-connections={PLACES}");
    let house = House::open(&[&places, "--keepalive-interval=500ms", "--keepalive-timeout=2s", "--call-timeout=1s"]);
    let halves = halves();
    house
        .withstands("connections that stop halfway", async |_| {
            let held = halves.iter().cycle().take(HALVES);
            join_all(held.map(|(_, begin, slowly)| hold(&house, begin, slowly))).await;
        })
        .await;
}

/// "It answered every ping, and never finished its message: its call was given up, and its line was free."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_comes_too_slowly_is_given_up_though_its_client_is_there() {
    const STREAMS: u32 = 200;
    let house = House::open(&["--call-timeout=500ms"]);
    let asked = pb::GetGameRequest { game_id: "0".repeat(36) };
    let whole = framed(&prost::Message::encode_to_vec(&asked));
    house
        .withstands("messages that come too slowly", async |_| {
            let begun = (0..STREAMS).flat_map(|number| {
                let stream = 1 + 2 * number;
                [call(stream, "GetGame"), frame(kind::DATA, 0, stream, &whole[..10])].concat()
            });
            let mut attacker = Attacker::greeted(house.addr, &begun.collect::<Vec<u8>>()).await;
            // The end of each call's answer is told in headers; its stream ends with it.
            let mut answered = 0;
            while answered < STREAMS {
                let frame = within(attacker.frame()).await.expect("the connection lives");
                answered += u32::from(frame.kind == kind::HEADERS);
            }
            attacker.vanish();
        })
        .await;
}

/// "It opened one call more than a line may have, whatever it had been told. That one was refused."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_call_more_than_a_connection_may_have_is_refused_and_the_others_go_on() {
    const MOST: u32 = 1_024;
    const REFUSED: u32 = 7;
    let house = House::open(&[]);
    let fate = async |many: u32| {
        let calls = (0..many).flat_map(|number| call(1 + 2 * number, "GetGame"));
        Attacker::greeted(house.addr, &calls.collect::<Vec<u8>>()).await.fate().await
    };
    assert_eq!(fate(MOST).await, Fate::Lives);
    house.withstands("one call too many", async |_| assert_eq!(fate(MOST + 1).await, Fate::Reset(REFUSED))).await;
}
