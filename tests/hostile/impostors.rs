//! Callers who are not who they say, or who ask what they may not, by the thousand.

use futures_util::future::join_all;
use jungle_referee::service::proto::submit_move_response::Verdict;
use jungle_referee::service::proto::{self as pb, NewGameRequest};
use tonic::Code;

use crate::attacker::Chance;
use crate::house::{House, many};
use crate::server::{Client, Table, by, reason, within};

/// The letters of a token's text.
const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// What may stand in an error by chance is shorter than this.
const SHORT: usize = 12;

/// How many calls are under way at once.
const AT_ONCE: usize = 64;

/// What was changed in a game by anybody: nothing, if these are equal.
fn lasting(game: pb::Game) -> pb::Game {
    pb::Game { server_time: None, presence: None, clock: None, ..game }
}

/// Asks to move under each of these tokens; none may be taken.
async fn guess(client: &Client, table: &Table, tokens: &[String], codes: &[Code]) {
    for some in tokens.chunks(AT_ONCE) {
        join_all(some.iter().map(async |token| {
            let answer = within(client.clone().submit_move(by(token, table.submit("a3a4")))).await;
            let status = answer.expect_err("a guessed token was taken");
            assert!(codes.contains(&status.code()), "{status}");
            let told = format!("{status:?}");
            assert!(token.len() < SHORT || !told.contains(token), "a token is told in an error");
        }))
        .await;
    }
}

/// The token with each of its letters replaced by each other, cut at each place, and longer by a letter.
fn neighbours(token: &str) -> Vec<String> {
    let mut all: Vec<String> =
        (0..token.len()).map(|end| token[..end].to_owned()).filter(|cut| !cut.is_empty()).collect();
    for (at, is) in token.bytes().enumerate() {
        for letter in LETTERS.iter().filter(|letter| **letter != is) {
            let mut other = token.as_bytes().to_vec();
            other[at] = *letter;
            all.push(String::from_utf8(other).expect("ASCII"));
        }
    }
    all.extend(LETTERS.iter().map(|letter| format!("{token}{}", char::from(*letter))));
    all.push(format!("{token}="));
    all
}

fn random_tokens(chance: &mut Chance, length: usize, number: u32) -> Vec<String> {
    let letters = |chance: &mut Chance| (0..length).map(|_| char::from(LETTERS[chance.below(LETTERS.len())])).collect();
    (0..number).map(|_| letters(chance)).collect()
}

/// "They tried every token that looks like mine, and ten thousand others. My piece did not move."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_guessed_token_is_taken() {
    let each = many("HOSTILE_GUESSES", 1_500);
    let (house, stranger) =
        (House::open(&["--token-key=the-key-of-this-house"]), House::open(&["--token-key=the-key-of-another"]));
    let mut client = house.client().await;
    let table = Table::new(&mut client, NewGameRequest::default()).await;
    let other = Table::new(&mut client, NewGameRequest::default()).await;
    let foreign = Table::new(&mut stranger.client().await, NewGameRequest::default()).await;
    let before = table.get(&mut client).await;
    let near = neighbours(&table.red);
    println!("{} tokens that differ by a letter from a good one", near.len());
    guess(&client, &table, &near, &[Code::Unauthenticated]).await;
    guess(&client, &table, &[foreign.red, foreign.blue, foreign.arbiter], &[Code::Unauthenticated]).await;
    guess(&client, &table, &[other.red, other.blue, other.arbiter, table.arbiter.clone()], &[Code::PermissionDenied])
        .await;
    // Blue's is a good one, at the wrong moment.
    guess(&client, &table, std::slice::from_ref(&table.blue), &[Code::FailedPrecondition]).await;
    drop(client);
    house
        .withstands("guessed tokens", async |round| {
            let chance = &mut Chance(u64::from(round));
            let guessed = random_tokens(chance, table.red.len(), each);
            guess(&house.client().await, &table, &guessed, &[Code::Unauthenticated]).await;
        })
        .await;
    let mut client = house.client().await;
    assert_eq!(lasting(table.get(&mut client).await), lasting(before));
}

fn id(number: usize) -> String {
    format!("6d1f0c3a-8f0e-4a53-9a4e-{number:012x}")
}

/// "My opponent tried thousands of moves that are none. My clock ran on, and the board stayed."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_refused_moves_changes_nothing_and_costs_nothing_that_lasts() {
    const FORBIDDEN: [&str; 4] = ["a1a9", "g7g6", "d5d6", "a1a1"];
    let each = usize::try_from(many("HOSTILE_MOVES", 2_000)).expect("64 bits");
    let house = House::open(&[]);
    let mut client = house.client().await;
    let table = Table::new(&mut client, NewGameRequest::default()).await;
    let before = table.get(&mut client).await;
    drop(client);
    house
        .withstands("refused moves", async |round| {
            let client = house.client().await;
            let first = usize::try_from(round).expect("small") * each;
            let numbers: Vec<usize> = (first..first + each).collect();
            for some in numbers.chunks(AT_ONCE / 2) {
                join_all(some.iter().map(async |number| {
                    // Each with an id of its own: only what changed a game binds one.
                    let asked = table.submit(FORBIDDEN[number % FORBIDDEN.len()]);
                    let asked = pb::SubmitMoveRequest { request_id: id(*number), expected_ply: Some(0), ..asked };
                    match within(client.clone().submit_move(by(&table.red, asked))).await {
                        Ok(reply) => assert!(matches!(reply.into_inner().verdict, Some(Verdict::Refused(_)))),
                        Err(status) => assert_eq!(status.code(), Code::InvalidArgument, "{status}"),
                    }
                }))
                .await;
            }
        })
        .await;
    let mut client = house.client().await;
    assert_eq!(lasting(table.get(&mut client).await), lasting(before));
}

/// "They used my request's id for moves of their own, and theirs for others: each was told so."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_ids_that_are_misused_change_nothing() {
    let each = usize::try_from(many("HOSTILE_MOVES", 2_000)).expect("64 bits");
    let house = House::open(&[]);
    let mut client = house.client().await;
    let table = Table::new(&mut client, NewGameRequest::default()).await;
    let mine = pb::SubmitMoveRequest { request_id: id(1), expected_ply: Some(0), ..table.submit("a3a4") };
    within(client.submit_move(by(&table.red, mine.clone()))).await.expect("a verdict");
    let before = table.get(&mut client).await;
    drop(client);
    // The same id: of another body, without a ply, on another ply, of another caller, as text that is no id.
    let asked = [
        (&table.red, pb::SubmitMoveRequest { to_square: "b3".to_owned(), ..mine.clone() }, "REQUEST_ID_REUSED"),
        (&table.red, pb::SubmitMoveRequest { expected_ply: None, ..mine.clone() }, "INVALID_FIELD"),
        (&table.red, pb::SubmitMoveRequest { expected_ply: Some(1), ..mine.clone() }, "REQUEST_ID_REUSED"),
        (&table.blue, mine.clone(), "STALE_PLY"),
        (&table.red, pb::SubmitMoveRequest { request_id: "mine".to_owned(), ..mine.clone() }, "INVALID_FIELD"),
        (&table.red, pb::SubmitMoveRequest { request_id: id(2), ..mine.clone() }, "NOT_YOUR_TURN"),
    ];
    house
        .withstands("misused request ids", async |_| {
            let client = house.client().await;
            for turn in 0..each / AT_ONCE {
                join_all((0..AT_ONCE).map(async |number| {
                    let (token, asked, told) = &asked[(turn + number) % asked.len()];
                    let answer = within(client.clone().submit_move(by(token, asked.clone()))).await;
                    assert_eq!(reason(&answer.expect_err("misused")), *told);
                }))
                .await;
                // The one whose id it is still gets its answer.
                let again = within(client.clone().submit_move(by(&table.red, mine.clone()))).await.expect("a verdict");
                assert!(again.into_inner().replayed);
            }
        })
        .await;
    let mut client = house.client().await;
    assert_eq!(lasting(table.get(&mut client).await), lasting(before));
}
