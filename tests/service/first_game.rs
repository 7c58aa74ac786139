//! A first whole game over the wire.

use crate::server::{Table, TestServer, by, reason};
use jungle_referee::service::proto::submit_move_response::Verdict;
use jungle_referee::service::proto::{self as pb, NewGameRequest};

/// "The tiger walks into the den, and the server says that I have won."
#[tokio::test]
async fn a_game_is_played_to_the_den_and_its_stream_ends_with_the_outcome() {
    let server = TestServer::start(&[]).await;
    let mut client = server.client().await;
    let start_position = "6e/7/3T3/7/7/7/7/7/6P r 0 1".to_owned();
    let table = Table::new(&mut client, NewGameRequest { start_position, ..NewGameRequest::default() }).await;

    let refused = client.submit_move(by(&table.red, table.submit("d7d9"))).await.expect("a verdict").into_inner();
    let Some(Verdict::Refused(refusal)) = refused.verdict else { panic!("accepted") };
    assert_eq!(refusal.violation.expect("a reason").rule(), pb::Rule::Step);

    for (token, mv) in [(&table.red, "d7d8"), (&table.blue, "g9g8"), (&table.red, "d8d9")] {
        let verdict = client.submit_move(by(token, table.submit(mv))).await.expect("a verdict").into_inner();
        assert!(matches!(verdict.verdict, Some(Verdict::Accepted(_))), "{mv}: {verdict:?}");
    }
    let late = client.submit_move(by(&table.blue, table.submit("g8g9"))).await.expect_err("it is over");
    assert_eq!((late.code(), reason(&late).as_str()), (tonic::Code::FailedPrecondition, "GAME_OVER"));

    let events = table.whole_log(&mut client).await;
    assert_eq!(events.iter().map(|event| event.sequence).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let outcome = events[3].outcome.clone().expect("the last event carries the outcome");
    assert_eq!((outcome.winner(), outcome.reason()), (pb::Side::Red, pb::OutcomeReason::Den));
    assert_eq!(table.get(&mut client).await.outcome, Some(outcome));
    server.stop().await;
}
