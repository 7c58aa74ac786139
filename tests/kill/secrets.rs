//! What must be nowhere: keys, tokens and the text of request ids are in no log line, no number, no error and no
//! data file.

use std::fs::{self, File};
use std::time::Duration;

use jungle_referee::service::proto::{self as pb, NewGameRequest};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tonic::{Code, Status};

use crate::data_file::Folder;
use crate::house::client_at;
use crate::server::{Client, Table, by, within};
use crate::wire::{Process, binary};

const CREATOR_KEY: &str = "the-creators-key-of-this-test";
const TOKEN_KEY: &str = "the-token-key-of-this-test";

/// The request ids of the test, by number.
fn request_id(number: u8) -> uuid::Uuid {
    uuid::Uuid::from_u128(0x5ec2_e7a1_d00d_4bad_8bad_f00d_cafe_0000 + u128::from(number))
}

fn id(number: u8) -> String {
    request_id(number).to_string()
}

/// A token with its last letter but three changed.
fn forged(token: &str) -> String {
    let at = token.len() - 4;
    let letter = if &token[at..=at] == "A" { "B" } else { "A" };
    format!("{}{letter}{}", &token[..at], &token[at + 1..])
}

/// The metrics page of a server whose log says where it is.
async fn page(log: &str) -> String {
    let line = log.lines().find(|line| line.contains("the metrics page is served")).expect("a line");
    let (_, address) = line.split_once("127.0.0.1:").expect("an address");
    let port: u16 = address.chars().take_while(char::is_ascii_digit).collect::<String>().parse().expect("a port");
    let mut stream = within(TcpStream::connect(("127.0.0.1", port))).await.expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").await.expect("it is taken");
    let mut page = String::new();
    within(stream.read_to_string(&mut page)).await.expect("a page");
    assert!(page.contains("jungle_"), "{page}");
    page
}

/// Plays a game with everything that can go wrong in it; the errors.
async fn play(client: &mut Client, table: &Table, other: &Table) -> Vec<Status> {
    let mv = |mv: &str, ply, number| pb::SubmitMoveRequest {
        request_id: id(number),
        expected_ply: Some(ply),
        ..table.submit(mv)
    };
    for _ in 0..2 {
        client.submit_move(by(&table.red, mv("a3a4", 0, 1))).await.expect("a verdict");
    }
    // Refused by a rule, and counted.
    client.submit_move(by(&table.blue, mv("g7d5", 1, 2))).await.expect("a verdict");
    let offer = pb::OfferDrawRequest { request_id: id(3), game_id: table.id.clone(), action: 0 };
    client.offer_draw(by(&table.red, offer)).await.expect("an offer");
    let mut errors = Vec::new();
    for (token, request) in [
        (&table.red, mv("a4a5", 2, 4)),
        (&table.red, mv("a4a5", 0, 1)),
        (&table.blue, mv("g7g6", 9, 5)),
        (&table.blue, pb::SubmitMoveRequest { expected_ply: None, ..mv("g7g6", 1, 6) }),
        (&table.blue, mv("z7g6", 1, 6)),
        (&table.arbiter, mv("g7g6", 1, 6)),
        (&other.blue, mv("g7g6", 1, 6)),
        (&forged(&table.blue), mv("g7g6", 1, 6)),
        (&CREATOR_KEY.to_owned(), mv("g7g6", 1, 6)),
    ] {
        errors.push(client.submit_move(by(token, request)).await.expect_err("an error"));
    }
    let game_id = |table: &Table| pb::GetGameRequest { game_id: table.id.clone() };
    errors.push(client.get_game(by(&forged(&table.red), game_id(other))).await.expect_err("an error"));
    errors.push(client.get_game(by(&table.red, game_id(other))).await.expect_err("an error"));
    let created = NewGameRequest { request_id: id(0), is_match: true, ..NewGameRequest::default() };
    errors.push(client.new_game(by(CREATOR_KEY, created)).await.expect_err("another body"));
    errors.push(client.new_game(by(&CREATOR_KEY[1..], NewGameRequest::default())).await.expect_err("an error"));
    errors.push(client.list_games(by(TOKEN_KEY, pb::ListGamesRequest::default())).await.expect_err("an error"));
    errors
}

/// "I put the log on the mailing list, the page on a screen and the data file on a stick, and gave nothing away."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_in_a_log_a_number_an_error_or_the_data_file() {
    let folder = Folder::new();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let (creator_key, token_key) = (write("creator", CREATOR_KEY), write("token", TOKEN_KEY));
    let data = folder.data().display().to_string();
    let mut told = Vec::new();
    let mut tables: Vec<Table> = Vec::new();
    for (run, format) in ["text", "json"].into_iter().enumerate() {
        let log = folder.path().join(format);
        let flags = ["--log=trace", "--metrics-listen=127.0.0.1:0", "--grace=1s", "--log-format", format];
        let files = ["--data", &data, "--creator-key-file", &creator_key, "--token-key-file", &token_key];
        let errors = File::create(&log).expect("a file");
        let child = binary(&[&flags[..], &files].concat()).stderr(errors).spawn().expect("the binary starts");
        let mut process = Process::listening(child);
        let mut client = client_at(process.addr).await;
        if run == 0 {
            for (number, private) in [(0, false), (7, true)] {
                let request = NewGameRequest {
                    request_id: id(number),
                    private,
                    refusal_limit: Some(9),
                    ..NewGameRequest::default()
                };
                let made = client.new_game(by(CREATOR_KEY, request)).await.expect("a game").into_inner();
                tables.push(Table::of(&made));
            }
        }
        // The second run answers the same again, and knows the first one's tokens.
        let errors = play(&mut client, &tables[0], &tables[1]).await;
        let codes: Vec<Code> = errors.iter().map(Status::code).collect();
        for code in [Code::Unauthenticated, Code::NotFound, Code::InvalidArgument, Code::FailedPrecondition] {
            assert!(codes.contains(&code), "{codes:?}");
        }
        told.extend(errors.iter().map(|status| ("an error", format!("{status:?} {status}"))));
        told.push(("the metrics page", page(&fs::read_to_string(&log).expect("a log")).await));
        process.terminate();
        let left = process.left_within(Duration::from_secs(20)).await.expect("it leaves");
        assert_eq!(left.code(), Some(0));
        told.push(("the log", fs::read_to_string(&log).expect("a log")));
    }
    let secrets = secrets(&tables);
    for secret in &secrets {
        for (what, text) in &told {
            assert!(!text.contains(secret), "{secret} is in {what}");
        }
    }
    let bytes: Vec<u8> =
        ["", "-wal", "-shm", ".lock"].iter().flat_map(|end| fs::read(folder.beside(end)).unwrap_or_default()).collect();
    let holds = |what: &[u8]| bytes.windows(what.len()).any(|window| window == what);
    for secret in &secrets {
        assert!(!holds(secret.as_bytes()), "{secret} is in the data file");
    }
    // What binds a retry is there, as bytes: the search above can find what is there.
    let bound = request_id(1);
    assert!(holds(bound.as_bytes()) || holds(&bound.to_u128_le().to_be_bytes()), "the id of a move that was made");
    assert!(told.iter().any(|(what, text)| *what == "the log" && text.contains(&tables[0].id)));
}

/// Everything that nobody may read, also in part.
fn secrets(tables: &[Table]) -> Vec<String> {
    let mut secrets = vec![CREATOR_KEY.to_owned(), TOKEN_KEY.to_owned()];
    for table in tables {
        for token in [&table.red, &table.blue, &table.arbiter] {
            // The first half says game and seat, which are no secrets; the other is what makes it good.
            secrets.extend([token.clone(), forged(token), token[token.len() - 20..].to_owned()]);
        }
    }
    for number in 0..8 {
        secrets.extend([id(number), request_id(number).simple().to_string()]);
    }
    secrets
}
