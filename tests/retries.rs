//! A retry is safe: the same request a hundred times at once changes the game once, and all hundred are
//! told the same.

mod log_double;
mod server;

use std::sync::Arc;
use std::time::Duration;

use jungle_referee::runtime::SystemClock;
use jungle_referee::service::proto::{self as pb, NewGameRequest, submit_move_response::Verdict};
use log_double::LogDouble;
use server::{Client, Table, TestServer, by, config, reason, within};
use tonic::{Code, Status};

/// How often each request is sent, and over how many connections.
const TIMES: usize = 100;
const CONNECTIONS: usize = 5;

const ID: &str = "0190a000-0000-7000-8000-0000000000ff";

/// A changing call, with its request id.
#[derive(Clone, Debug)]
enum Call {
    NewGame(Box<NewGameRequest>),
    SubmitMove(pb::SubmitMoveRequest),
    OfferDraw(pb::OfferDrawRequest),
    AnswerDraw(pb::AnswerDrawRequest),
    LeaveGame(pb::LeaveGameRequest),
    AbortGame(pb::AbortGameRequest),
}

/// An answer without its `replayed`, and that.
type Answer = Result<(String, bool), Status>;

impl Call {
    /// Makes the call with a token, if it needs one.
    async fn make(self, mut client: Client, token: &str) -> Answer {
        macro_rules! answer {
            ($call:expr) => {{
                let mut answer = $call.await?.into_inner();
                let replayed = std::mem::take(&mut answer.replayed);
                Ok((format!("{answer:?}"), replayed))
            }};
        }
        match self {
            Self::NewGame(request) => answer!(client.new_game(*request)),
            Self::SubmitMove(request) => answer!(client.submit_move(by(token, request))),
            Self::OfferDraw(request) => answer!(client.offer_draw(by(token, request))),
            Self::AnswerDraw(request) => answer!(client.answer_draw(by(token, request))),
            Self::LeaveGame(request) => answer!(client.leave_game(by(token, request))),
            Self::AbortGame(request) => answer!(client.abort_game(by(token, request))),
        }
    }
}

/// A server with connections to it, on a log that takes its time or none.
struct Crowd {
    server: TestServer,
    clients: Vec<Client>,
}

impl Crowd {
    async fn new(slow: bool) -> Self {
        let log = LogDouble::new(Arc::new(SystemClock::start()));
        if slow {
            log.delay(Duration::from_millis(60));
        }
        let server = TestServer::start_with(config(&[]), log.ports(), None).await;
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            clients.push(server.client().await);
        }
        Self { server, clients }
    }

    async fn table(&mut self, request: NewGameRequest) -> Table {
        Table::new(&mut self.clients[0], request).await
    }

    /// The same call, all at once.
    async fn at_once(&self, call: &Call, token: &str) -> Vec<Answer> {
        let mut calls = Vec::new();
        for index in 0..TIMES {
            let (client, call, token) = (self.clients[index % CONNECTIONS].clone(), call.clone(), token.to_owned());
            calls.push(tokio::spawn(async move { call.make(client, &token).await }));
        }
        let mut answers = Vec::new();
        for call in calls {
            answers.push(within(call).await.expect("no panic"));
        }
        answers
    }

    /// The call changes the game by one event, and all answers are that event's, now and later.
    async fn changes_once(&mut self, table: &Table, call: Call, token: &str) {
        let before = table.get(&mut self.clients[0]).await.sequence;
        let first = one_answer(self.at_once(&call, token).await, 1);
        assert_eq!(table.get(&mut self.clients[0]).await.sequence, before + 1, "{call:?}");
        let later = call.clone().make(self.clients[1].clone(), token).await.expect("an answer");
        assert_eq!(later, (first, true), "{call:?}");
    }
}

/// The one answer that all were given, so many of them not as a repeat.
fn one_answer(answers: Vec<Answer>, not_replayed: usize) -> String {
    let answers: Vec<_> = answers.into_iter().map(|answer| answer.expect("an answer")).collect();
    assert_eq!(answers.len(), TIMES);
    assert_eq!(answers.iter().filter(|(_, replayed)| !replayed).count(), not_replayed);
    let first = answers[0].0.clone();
    assert!(answers.iter().all(|(answer, _)| *answer == first));
    first
}

fn submit(table: &Table, mv: &str, expected_ply: u32) -> pb::SubmitMoveRequest {
    pb::SubmitMoveRequest { request_id: ID.to_owned(), expected_ply: Some(expected_ply), ..table.submit(mv) }
}

async fn every_call_changes_once(slow: bool) {
    let mut crowd = Crowd::new(slow).await;
    let request_id = || ID.to_owned();

    let new_game = NewGameRequest { request_id: request_id(), refusal_limit: Some(9), ..NewGameRequest::default() };
    one_answer(crowd.at_once(&Call::NewGame(Box::new(new_game)), "").await, 1);
    let listed = crowd.clients[0].list_games(pb::ListGamesRequest::default()).await.expect("a list").into_inner();
    assert_eq!(listed.games.len(), 1);

    let counted = NewGameRequest { refusal_limit: Some(9), ..NewGameRequest::default() };
    let table = crowd.table(counted.clone()).await;
    crowd.changes_once(&table, Call::SubmitMove(submit(&table, "a3a4", 0)), &table.red).await;
    // A seat's id is its own: Blue may use the same.
    crowd.changes_once(&table, Call::SubmitMove(submit(&table, "a7b8", 1)), &table.blue).await;
    assert_eq!(table.get(&mut crowd.clients[0]).await.blue_refusals, Some(1));

    let table = crowd.table(counted.clone()).await;
    let offer = pb::OfferDrawRequest { request_id: request_id(), game_id: table.id.clone(), action: 0 };
    crowd.changes_once(&table, Call::OfferDraw(offer), &table.blue).await;
    let answer = pb::DrawAnswer::Accept.into();
    let answer = pb::AnswerDrawRequest { request_id: request_id(), game_id: table.id.clone(), answer };
    crowd.changes_once(&table, Call::AnswerDraw(answer), &table.red).await;

    let table = crowd.table(counted.clone()).await;
    let leave = pb::LeaveGameRequest { request_id: request_id(), game_id: table.id.clone() };
    crowd.changes_once(&table, Call::LeaveGame(leave), &table.red).await;

    let table = crowd.table(counted).await;
    let reason = "rain".to_owned();
    let abort = pb::AbortGameRequest { request_id: request_id(), game_id: table.id.clone(), reason };
    crowd.changes_once(&table, Call::AbortGame(abort), &table.arbiter).await;
    crowd.server.stop().await;
}

/// "My network stuttered and sent it a hundred times. I had moved once."
#[tokio::test(flavor = "multi_thread")]
async fn a_request_sent_a_hundred_times_at_once_changes_the_game_once() {
    every_call_changes_once(false).await;
}

/// "The disk was slow, too. I had moved once."
#[tokio::test(flavor = "multi_thread")]
async fn a_request_sent_a_hundred_times_at_once_changes_the_game_once_on_a_slow_log() {
    every_call_changes_once(true).await;
}

/// "A move that was refused binds nothing: asked again on the same board it is judged again, and on
/// another board it is not judged at all."
#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_of_a_refused_move_is_judged_anew_on_the_same_board_or_not_at_all() {
    for slow in [false, true] {
        let mut crowd = Crowd::new(slow).await;
        let table = crowd.table(NewGameRequest::default()).await;
        let refused = Call::SubmitMove(submit(&table, "a3a5", 0));
        one_answer(crowd.at_once(&refused, &table.red).await, TIMES);
        assert_eq!(table.get(&mut crowd.clients[0]).await.sequence, 1);
        // The id did not bind: it may carry another move, which does bind it.
        let first = crowd.clients[0].submit_move(by(&table.red, submit(&table, "a3a4", 0))).await.expect("a verdict");
        assert!(matches!(first.into_inner().verdict, Some(Verdict::Accepted(_))));
        for answer in crowd.at_once(&refused, &table.red).await {
            let reused = answer.expect_err("the id is bound now");
            assert_eq!((reused.code(), reason(&reused).as_str()), (Code::InvalidArgument, "REQUEST_ID_REUSED"));
        }
        crowd.clients[0].submit_move(by(&table.blue, table.submit("g7g6"))).await.expect("a verdict");
        let stale = pb::SubmitMoveRequest { request_id: ID.replace('f', "e"), ..submit(&table, "a4a6", 0) };
        for answer in crowd.at_once(&Call::SubmitMove(stale), &table.red).await {
            let stale = answer.expect_err("another board");
            assert_eq!((stale.code(), reason(&stale).as_str()), (Code::Aborted, "STALE_PLY"));
        }
        assert_eq!(table.get(&mut crowd.clients[0]).await.sequence, 3);
        crowd.server.stop().await;
    }
}
