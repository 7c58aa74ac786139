//! Who asks: every call by every kind of caller, and every way in which a token can be wrong.

use std::sync::Arc;

use crate::door::{Ask, CREATOR_FLAG, CREATOR_KEY, bearer, nobody, taken_apart, told, uuid};
use crate::server::{Client, EPOCH, Table, TestServer, config};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jungle_referee::app::Ports;
use jungle_referee::game::Span;
use jungle_referee::runtime::ManualClock;
use jungle_referee::service::proto::legal_moves_request::Subject;
use jungle_referee::service::proto::{self as pb};
use tonic::metadata::{MetadataMap, MetadataValue};

/// Every kind of caller, in the columns' order of the tables.
const CALLERS: [&str; 8] = ["nobody", "red", "blue", "arbiter", "other game", "broken", "creator", "wrong key"];

/// What a call answers: `ok`, or the reason of its error.
type Expected = [&'static str; 8];

/// The calls that no table of callers may leave out.
const CALLS: [&str; 11] = [
    "NewGame",
    "GetGame",
    "ListGames",
    "ListRulesets",
    "LegalMoves",
    "SubmitMove",
    "OfferDraw",
    "AnswerDraw",
    "LeaveGame",
    "AbortGame",
    "WatchGame",
];

/// The metadata of a kind of caller to a game.
fn metadata(caller: &str, table: &Table, other: &Table) -> MetadataMap {
    match caller {
        "nobody" => nobody(),
        "red" => bearer(&table.red),
        "blue" => bearer(&table.blue),
        "arbiter" => bearer(&table.arbiter),
        "other game" => bearer(&other.red),
        "broken" => bearer(&flipped(&table.red, 30)),
        "creator" => bearer(CREATOR_KEY),
        "wrong key" => bearer("another-key-of-no-server"),
        _ => panic!("no caller {caller}"),
    }
}

/// A token with one letter changed.
fn flipped(token: &str, index: usize) -> String {
    let mut bytes = token.as_bytes().to_vec();
    bytes[index] = if bytes[index] == b'A' { b'B' } else { b'A' };
    String::from_utf8(bytes).expect("still ASCII")
}

/// Each call about a game, in the order of the contract.
fn asks(table: &Table) -> Vec<(&'static str, Ask)> {
    let game_id = table.id.clone();
    let line = Some(Subject::Line(pb::MoveLine::default()));
    let id = String::new;
    let (action, reason) = (0, "rain".to_owned());
    vec![
        ("NewGame", Ask::NewGame(pb::NewGameRequest::default())),
        ("GetGame", Ask::GetGame(pb::GetGameRequest { game_id: game_id.clone() })),
        ("ListGames", Ask::ListGames(pb::ListGamesRequest::default())),
        ("ListRulesets", Ask::ListRulesets(pb::ListRulesetsRequest {})),
        ("LegalMoves of a game", legal_moves(Some(Subject::GameId(game_id.clone())))),
        ("LegalMoves of a line", legal_moves(line)),
        ("SubmitMove", Ask::SubmitMove(table.submit("a3a4"))),
        ("OfferDraw", Ask::OfferDraw(pb::OfferDrawRequest { request_id: id(), game_id: game_id.clone(), action })),
        (
            "AnswerDraw",
            Ask::AnswerDraw(pb::AnswerDrawRequest { request_id: id(), game_id: game_id.clone(), answer: 2 }),
        ),
        ("LeaveGame", Ask::LeaveGame(pb::LeaveGameRequest { request_id: id(), game_id: game_id.clone() })),
        ("AbortGame", Ask::AbortGame(pb::AbortGameRequest { request_id: id(), game_id: game_id.clone(), reason })),
        ("WatchGame", Ask::WatchGame(pb::WatchGameRequest { game_id, after_sequence: None, heartbeat: None })),
    ]
}

fn legal_moves(subject: Option<Subject>) -> Ask {
    Ask::LegalMoves(pb::LegalMovesRequest { subject, ..pb::LegalMovesRequest::default() })
}

/// `ok`, or the reason of the error.
fn heard(answer: Result<(), tonic::Status>) -> String {
    match answer {
        Ok(()) => "ok".to_owned(),
        Err(status) => match taken_apart(&status) {
            Ok(told) => told.reason,
            Err(complaint) => complaint,
        },
    }
}

/// A game on a server, made by whoever may make it.
async fn make(client: &mut Client, private: bool) -> Table {
    let request = pb::NewGameRequest { private, ..pb::NewGameRequest::default() };
    let who = bearer_if_keyed(client).await;
    let made = client.new_game(crate::door::with(&who, request)).await.expect("a new game");
    Table::of(&made.into_inner())
}

/// The creator's key if the server has one.
async fn bearer_if_keyed(client: &mut Client) -> MetadataMap {
    let keyed = client.list_games(pb::ListGamesRequest::default()).await.is_err();
    if keyed { bearer(CREATOR_KEY) } else { nobody() }
}

/// Has every kind of caller make every call, each on a game of its own.
async fn check(flags: &[&str], private: bool, expected: &[(&'static str, Expected)]) {
    let server = TestServer::start_manual(flags).await;
    let mut client = server.client().await;
    for call in CALLS {
        assert!(expected.iter().any(|(row, _)| row.split(' ').next() == Some(call)), "no row for {call}");
    }
    let mut complaints = Vec::new();
    for (row, reasons) in expected {
        for (caller, reason) in CALLERS.iter().zip(reasons) {
            let (table, other) = (make(&mut client, private).await, make(&mut client, false).await);
            let asks = asks(&table);
            let (_, ask) = asks.into_iter().find(|(call, _)| call == row).expect("a call of that name");
            let heard = heard(ask.send(&mut client, &metadata(caller, &table, &other)).await);
            if heard != *reason {
                complaints.push(format!("{row} by {caller}: {heard}, not {reason}"));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    server.stop().await;
}

const MISSING: &str = "TOKEN_MISSING";
const INVALID: &str = "TOKEN_INVALID";
const DENIED: &str = "NOT_ALLOWED";
const OTHER: &str = "TOKEN_OF_OTHER_GAME";
const HIDDEN: &str = "NO_SUCH_GAME";

/// "With a key, only I make games and list them; anybody may look."
#[tokio::test]
async fn on_a_server_with_a_creators_key_each_caller_may_do_what_the_contract_says() {
    let open: Expected = ["ok", "ok", "ok", "ok", "ok", INVALID, "ok", INVALID];
    let sight: Expected = ["ok", "ok", "ok", "ok", OTHER, INVALID, "ok", INVALID];
    let creators: Expected = [MISSING, DENIED, DENIED, DENIED, DENIED, INVALID, "ok", INVALID];
    let seats: Expected = [MISSING, "ok", "ok", DENIED, OTHER, INVALID, DENIED, INVALID];
    check(
        &[CREATOR_FLAG],
        false,
        &[
            ("NewGame", creators),
            ("GetGame", sight),
            ("ListGames", creators),
            ("ListRulesets", open),
            ("LegalMoves of a game", sight),
            ("LegalMoves of a line", open),
            ("SubmitMove", [MISSING, "ok", "NOT_YOUR_TURN", DENIED, OTHER, INVALID, DENIED, INVALID]),
            ("OfferDraw", seats),
            ("AnswerDraw", [MISSING, "NO_OFFER", "NO_OFFER", DENIED, OTHER, INVALID, DENIED, INVALID]),
            ("LeaveGame", seats),
            ("AbortGame", [MISSING, DENIED, DENIED, "ok", OTHER, INVALID, "ok", INVALID]),
            ("WatchGame", sight),
        ],
    )
    .await;
}

/// "On a server without a key anybody makes games; calling one off still takes the arbiter."
#[tokio::test]
async fn on_a_server_without_a_creators_key_each_caller_may_do_what_the_contract_says() {
    let open: Expected = ["ok", "ok", "ok", "ok", "ok", INVALID, INVALID, INVALID];
    let sight: Expected = ["ok", "ok", "ok", "ok", OTHER, INVALID, INVALID, INVALID];
    let seats: Expected = [MISSING, "ok", "ok", DENIED, OTHER, INVALID, INVALID, INVALID];
    check(
        &[],
        false,
        &[
            ("NewGame", open),
            ("GetGame", sight),
            ("ListGames", open),
            ("ListRulesets", open),
            ("LegalMoves of a game", sight),
            ("LegalMoves of a line", open),
            ("SubmitMove", [MISSING, "ok", "NOT_YOUR_TURN", DENIED, OTHER, INVALID, INVALID, INVALID]),
            ("OfferDraw", seats),
            ("AnswerDraw", [MISSING, "NO_OFFER", "NO_OFFER", DENIED, OTHER, INVALID, INVALID, INVALID]),
            ("LeaveGame", seats),
            ("AbortGame", [MISSING, DENIED, DENIED, "ok", OTHER, INVALID, INVALID, INVALID]),
            ("WatchGame", sight),
        ],
    )
    .await;
}

/// "Nobody but us can even tell that our game exists."
#[tokio::test]
async fn a_private_game_does_not_exist_for_others() {
    let open: Expected = ["ok", "ok", "ok", "ok", "ok", INVALID, "ok", INVALID];
    let sight: Expected = [HIDDEN, "ok", "ok", "ok", HIDDEN, INVALID, "ok", INVALID];
    let creators: Expected = [MISSING, DENIED, DENIED, DENIED, DENIED, INVALID, "ok", INVALID];
    let seats: Expected = [HIDDEN, "ok", "ok", DENIED, HIDDEN, INVALID, DENIED, INVALID];
    check(
        &[CREATOR_FLAG],
        true,
        &[
            ("NewGame", creators),
            ("GetGame", sight),
            ("ListGames", creators),
            ("ListRulesets", open),
            ("LegalMoves of a game", sight),
            ("LegalMoves of a line", open),
            ("SubmitMove", [HIDDEN, "ok", "NOT_YOUR_TURN", DENIED, HIDDEN, INVALID, DENIED, INVALID]),
            ("OfferDraw", seats),
            ("AnswerDraw", [HIDDEN, "NO_OFFER", "NO_OFFER", DENIED, HIDDEN, INVALID, DENIED, INVALID]),
            ("LeaveGame", seats),
            ("AbortGame", [HIDDEN, DENIED, DENIED, "ok", HIDDEN, INVALID, "ok", INVALID]),
            ("WatchGame", sight),
        ],
    )
    .await;
}

/// "A stranger cannot tell a private game from one that never was."
#[tokio::test]
async fn a_private_game_and_none_at_all_answer_alike() {
    let server = TestServer::start_manual(&[CREATOR_FLAG]).await;
    let mut client = server.client().await;
    let (private, other) = (make(&mut client, true).await, make(&mut client, false).await);
    let none = Table { id: "ffffffff-ffff-7fff-bfff-ffffffffffff".to_owned(), ..make(&mut client, true).await };
    for caller in ["nobody", "other game", "broken", "wrong key"] {
        let pairs = asks(&private).into_iter().zip(asks(&none));
        for ((call, of_private), (_, of_none)) in pairs {
            let of_private = of_private.send(&mut client, &metadata(caller, &private, &other)).await;
            let of_none = of_none.send(&mut client, &metadata(caller, &private, &other)).await;
            let text = |answer: Result<(), tonic::Status>, id: &str| {
                answer.err().map(|status| (status.code(), status.message().replace(id, "ID")))
            };
            assert_eq!(text(of_private, &private.id), text(of_none, &none.id), "{call} by {caller}");
        }
    }
    server.stop().await;
}

/// "Not a single letter of my token can be changed, wherever I show it."
#[tokio::test]
async fn a_token_with_any_letter_or_bit_changed_is_refused_on_every_call() {
    let server = TestServer::start_manual(&[CREATOR_FLAG]).await;
    let mut client = server.client().await;
    let table = make(&mut client, false).await;
    let mut tried = 0;
    for token in [&table.red, &table.blue, &table.arbiter] {
        let bytes = URL_SAFE_NO_PAD.decode(token).expect("base64url");
        let letters = (0..token.len()).map(|index| flipped(token, index));
        let bits = (0..bytes.len() * 8).map(|bit| {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            URL_SAFE_NO_PAD.encode(changed)
        });
        let cut = (1..token.len()).map(|length| token[..length].to_owned());
        let longer = ["A", "=", "AAAA", "."].map(|more| format!("{token}{more}"));
        for wrong in letters.chain(bits).chain(cut).chain(longer) {
            let ask = Ask::GetGame(pb::GetGameRequest { game_id: table.id.clone() });
            let heard = heard(ask.send(&mut client, &bearer(&wrong)).await);
            assert_eq!(heard, INVALID, "{wrong}");
            tried += 1;
        }
    }
    for (call, ask) in asks(&table) {
        assert_eq!(heard(ask.send(&mut client, &bearer(&flipped(&table.red, 20))).await), INVALID, "{call}");
    }
    println!("{tried} wrong tokens");
    server.stop().await;
}

/// "I wrote the header another way."
#[tokio::test]
async fn a_header_that_is_not_bearer_and_a_token_is_a_wrong_token_and_never_a_spectator() {
    let server = TestServer::start_manual(&[CREATOR_FLAG]).await;
    let mut client = server.client().await;
    let table = make(&mut client, false).await;
    let token = &table.red;
    let basic = URL_SAFE_NO_PAD.encode(format!("red:{token}"));
    let written = |header: String| crate::door::authorization(&header);
    let mut twice = bearer(token);
    twice.append("authorization", bearer(token).get("authorization").expect("set").clone());
    let mut other_first = bearer(&table.blue);
    other_first.append("authorization", bearer(token).get("authorization").expect("set").clone());
    let mut opaque = MetadataMap::new();
    opaque.insert("authorization", MetadataValue::try_from(&b"Bearer \xff\xfe"[..]).expect("opaque bytes"));
    let wrong = [
        ("the token alone", written(token.clone())),
        ("Basic", written(format!("Basic {basic}"))),
        ("Token", written(format!("Token {token}"))),
        ("the scheme alone", written("Bearer".to_owned())),
        ("the scheme and a blank", written("Bearer ".to_owned())),
        ("nothing", written(String::new())),
        ("no blank", written(format!("Bearer{token}"))),
        ("a colon", written(format!("Bearer: {token}"))),
        ("two tokens", written(format!("Bearer {token} {token}"))),
        ("a comma between two", written(format!("Bearer {token}, Bearer {token}"))),
        ("in quotes", written(format!("Bearer \"{token}\""))),
        ("a part of the key", bearer(&CREATOR_KEY[..CREATOR_KEY.len() - 1])),
        ("more than the key", bearer(&format!("{CREATOR_KEY}x"))),
        ("8 KB", bearer(&"A".repeat(8_000))),
        ("two headers alike", twice),
        ("two headers", other_first),
        ("bytes that are no text", opaque),
    ];
    for (what, who) in &wrong {
        for (call, ask) in asks(&table) {
            assert_eq!(heard(ask.send(&mut client, who).await), INVALID, "{call} with {what}");
        }
    }
    for right in ["bearer", "BEARER"] {
        let ask = Ask::SubmitMove(table.submit("a3a5"));
        assert_eq!(heard(ask.send(&mut client, &written(format!("{right} {token}"))).await), "ok", "{right}");
    }
    println!("{} wrong headers by {} calls", wrong.len(), asks(&table).len());
    server.stop().await;
}

/// "The error says who I am to the server and whom it wanted, and does not repeat my secret."
#[tokio::test]
async fn an_error_about_identity_says_who_was_seen_and_who_is_needed_and_repeats_no_secret() {
    let server = TestServer::start_manual(&[CREATOR_FLAG]).await;
    let mut client = server.client().await;
    let (table, other) = (make(&mut client, false).await, make(&mut client, true).await);
    let abort = |table: &Table| asks(table).remove(10).1;
    let submit = |table: &Table| asks(table).remove(6).1;
    let denied = told(abort(&table).send(&mut client, &bearer(&table.red)).await);
    assert_eq!((denied.value("caller"), denied.value("needed").contains("arbiter")), ("red's seat", true));
    let denied = told(submit(&table).send(&mut client, &bearer(&table.arbiter)).await);
    assert_eq!((denied.value("caller"), denied.value("needed").contains("seat")), ("the arbiter", true));
    let denied = told(submit(&table).send(&mut client, &bearer(CREATOR_KEY)).await);
    assert_eq!(denied.value("caller"), "the creator");
    let denied = told(asks(&table).remove(0).1.send(&mut client, &bearer(&table.blue)).await);
    assert!(denied.value("needed").contains("creator"), "{denied:?}");
    let elsewhere = told(submit(&table).send(&mut client, &bearer(&other.red)).await);
    assert_eq!(elsewhere.value("game_id"), table.id, "the game that was asked for, not the token's");
    for secret in [&table.red, &table.arbiter, &other.red, &CREATOR_KEY.to_owned(), &flipped(&table.red, 5)] {
        for (call, ask) in asks(&table) {
            if let Err(status) = ask.send(&mut client, &bearer(secret)).await {
                let all = format!("{status:?} {:?}", status.get_error_details_debug());
                assert!(!all.contains(secret.as_str()), "{call}: {all}");
            }
        }
    }
    server.stop().await;
}

trait DetailsDebug {
    fn get_error_details_debug(&self) -> String;
}

impl DetailsDebug for tonic::Status {
    fn get_error_details_debug(&self) -> String {
        String::from_utf8_lossy(self.details()).into_owned()
    }
}

/// A server of these flags that started so many seconds after [`EPOCH`].
async fn started_later(flags: &[&str], seconds: u64) -> TestServer {
    let clock = Arc::new(ManualClock::at(EPOCH + Span::from_secs(seconds)));
    let ports = Ports::with_clock(Arc::clone(&clock) as _);
    TestServer::start_with(config(flags), ports, Some(clock)).await
}

/// "The server was restarted; my bot sees at once that its game is gone, and not that its token is bad."
#[tokio::test]
async fn after_a_restart_in_memory_every_call_on_a_game_of_before_answers_not_found() {
    const TOKEN_KEY: &str = "--token-key=a-key-that-outlives-a-run";
    for (flags, kept) in [(vec![], false), (vec![TOKEN_KEY], true), (vec![CREATOR_FLAG, TOKEN_KEY], true)] {
        let before = TestServer::start_manual(&flags).await;
        let mut client = before.client().await;
        let (table, private) = (make(&mut client, false).await, make(&mut client, true).await);
        before.stop().await;

        let after = started_later(&flags, 10).await;
        let mut client = after.client().await;
        let own = make(&mut client, false).await;
        for game in [&table, &private] {
            for caller in ["nobody", "red", "blue", "arbiter"] {
                let who = metadata(caller, game, &own);
                for (call, ask) in asks(game) {
                    let heard = heard(ask.send(&mut client, &who).await);
                    let names_a_game =
                        !["NewGame", "ListGames", "ListRulesets", "LegalMoves of a line"].contains(&call);
                    let gone = if names_a_game { HIDDEN } else { heard.as_str() };
                    assert_eq!(heard, gone, "{call} by {caller} under {flags:?}");
                    // On calls that name no game a token of a lost key is a wrong one.
                    if !names_a_game && caller != "nobody" && !kept {
                        assert_eq!(heard, INVALID, "{call} by {caller}");
                    }
                }
            }
        }
        // A token of before does not open a game of now.
        let stranger = Ask::GetGame(pb::GetGameRequest { game_id: own.id.clone() });
        let heard = heard(stranger.send(&mut client, &bearer(&table.red)).await);
        assert_eq!(heard, if kept { OTHER } else { INVALID });
        after.stop().await;
    }
}

/// "Our back end crashed after it had called; it calls again, and gets the tokens that it lost."
#[tokio::test]
async fn the_tokens_of_a_replayed_new_game_are_the_same_and_open_the_same_seats() {
    let server = TestServer::start_manual(&[CREATOR_FLAG]).await;
    let mut client = server.client().await;
    let request = pb::NewGameRequest { request_id: uuid(1), private: true, ..pb::NewGameRequest::default() };
    let ask = |request: pb::NewGameRequest| crate::door::with(&bearer(CREATOR_KEY), request);
    let first = client.new_game(ask(request.clone())).await.expect("a game").into_inner();
    let table = Table::of(&first);
    assert_eq!(heard(Ask::SubmitMove(table.submit("a3a4")).send(&mut client, &bearer(&table.red)).await), "ok");
    let again = client.new_game(ask(request)).await.expect("the same game").into_inner();
    assert_eq!(again, pb::NewGameResponse { replayed: true, ..first });
    let seats = [&again.red_token, &again.blue_token, &again.arbiter_token];
    assert!(seats[0] != seats[1] && seats[1] != seats[2] && seats[0] != seats[2]);
    server.stop().await;
}
