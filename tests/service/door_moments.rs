//! The right question at the wrong moment, and the verdicts on moves that are not allowed.

use crate::door::{Ask, bearer, millis, nobody, told, uuid};
use crate::server::{Client, Table, TestServer, by};
use jungle_referee::game::Span;
use jungle_referee::service::proto::submit_move_response::Verdict;
use jungle_referee::service::proto::{self as pb, Animal, Rule, Side, clock_start, time_control};
use tonic::Code;

/// A game of a server whose time stands still, and a client of it.
struct Scene {
    server: TestServer,
    client: Client,
    table: Table,
}

impl Scene {
    async fn new(request: pb::NewGameRequest) -> Self {
        let server = TestServer::start_manual(&[]).await;
        let mut client = server.client().await;
        let table = Table::new(&mut client, request).await;
        Self { server, client, table }
    }

    fn red(&self) -> String {
        self.table.red.clone()
    }

    fn blue(&self) -> String {
        self.table.blue.clone()
    }

    async fn submit(&mut self, token: &str, request: pb::SubmitMoveRequest) -> Result<Verdict, tonic::Status> {
        let answer = self.client.submit_move(by(token, request)).await?.into_inner();
        Ok(answer.verdict.expect("a verdict"))
    }

    /// Plays moves that are allowed, from the ply at hand on.
    async fn play(&mut self, moves: &[&str]) {
        let from = self.table.get(&mut self.client).await.ply.expect("told");
        for (ply, mv) in (from..).zip(moves) {
            let (token, request) = (self.table.token_at(ply).to_owned(), self.table.submit(mv));
            let verdict = self.submit(&token, request).await.expect("a verdict");
            assert!(matches!(verdict, Verdict::Accepted(_)), "{mv}: {verdict:?}");
        }
    }

    async fn refused(&mut self, token: &str, request: pb::SubmitMoveRequest) -> pb::MoveRefusal {
        match self.submit(token, request).await.expect("a verdict") {
            Verdict::Refused(refusal) => refusal,
            Verdict::Accepted(accepted) => panic!("accepted: {accepted:?}"),
        }
    }

    async fn send(&mut self, token: &str, ask: Ask) -> Result<(), tonic::Status> {
        ask.send(&mut self.client, &bearer(token)).await
    }

    fn offer(&self) -> Ask {
        Ask::OfferDraw(pb::OfferDrawRequest { game_id: self.table.id.clone(), ..pb::OfferDrawRequest::default() })
    }

    fn take_back(&self) -> Ask {
        Ask::OfferDraw(pb::OfferDrawRequest { game_id: self.table.id.clone(), action: 2, request_id: String::new() })
    }

    fn answer(&self, answer: pb::DrawAnswer) -> Ask {
        let (game_id, request_id) = (self.table.id.clone(), String::new());
        Ask::AnswerDraw(pb::AnswerDrawRequest { request_id, game_id, answer: answer.into() })
    }

    fn leave(&self) -> Ask {
        Ask::LeaveGame(pb::LeaveGameRequest { game_id: self.table.id.clone(), request_id: String::new() })
    }

    fn abort(&self) -> Ask {
        let (game_id, reason) = (self.table.id.clone(), "rain".to_owned());
        Ask::AbortGame(pb::AbortGameRequest { request_id: String::new(), game_id, reason })
    }
}

fn preset(name: &str) -> pb::NewGameRequest {
    let ruleset = Some(pb::RulesetSpec { preset: name.to_owned(), ..pb::RulesetSpec::default() });
    pb::NewGameRequest { ruleset, ..pb::NewGameRequest::default() }
}

fn from(position: &str) -> pb::NewGameRequest {
    pb::NewGameRequest { start_position: position.to_owned(), ..pb::NewGameRequest::default() }
}

/// The values of an error's metadata, in the order of the names.
fn values<const N: usize>(told: &crate::door::Told, names: [&str; N]) -> [String; N] {
    names.map(|name| told.value(name).to_owned())
}

/// "I moved twice." "It is not my turn, and my bot was a move behind as well."
#[tokio::test]
async fn moving_out_of_turn_tells_whose_turn_it_is_and_is_named_before_a_stale_ply() {
    let mut scene = Scene::new(pb::NewGameRequest::default()).await;
    let (red, blue) = (scene.red(), scene.blue());
    let mut table = Vec::new();
    let early = scene.table.submit("a7a6");
    table.push((told(scene.submit(&blue, early.clone()).await), ["RED", "0", "1"]));
    let stale = pb::SubmitMoveRequest { expected_ply: Some(7), ..early };
    table.push((told(scene.submit(&blue, stale).await), ["RED", "0", "1"]));
    scene.play(&["a3a4"]).await;
    let twice = scene.table.submit("a4a5");
    table.push((told(scene.submit(&red, twice.clone()).await), ["BLUE", "1", "2"]));
    let stale = pb::SubmitMoveRequest { expected_ply: Some(0), ..twice };
    table.push((told(scene.submit(&red, stale).await), ["BLUE", "1", "2"]));
    for (told, expected) in table {
        assert_eq!((told.code, told.reason.as_str()), (Code::FailedPrecondition, "NOT_YOUR_TURN"));
        assert_eq!(values(&told, ["side_to_move", "ply", "sequence"]), expected);
    }
    scene.server.stop().await;
}

/// "My bot thought about an old board."
#[tokio::test]
async fn a_move_for_another_ply_is_aborted_with_the_ply_and_sequence_to_catch_up_from() {
    let mut scene = Scene::new(pb::NewGameRequest::default()).await;
    scene.play(&["a3a4", "a7a6"]).await;
    let red = scene.red();
    for (expected_ply, mv) in [(0, "a4a5"), (1, "a4a5"), (3, "a4a5"), (u32::MAX, "a4a5"), (0, "a1a1"), (0, "b5b6")] {
        let request = pb::SubmitMoveRequest { expected_ply: Some(expected_ply), ..scene.table.submit(mv) };
        let told = told(scene.submit(&red, request).await);
        assert_eq!((told.code, told.reason.as_str()), (Code::Aborted, "STALE_PLY"));
        let stated = expected_ply.to_string();
        assert_eq!(values(&told, ["expected_ply", "ply", "sequence"]), [stated.as_str(), "2", "3"]);
    }
    scene.play(&["a4a5"]).await;
    scene.server.stop().await;
}

/// "The game was over, and the server told me how it had ended."
#[tokio::test]
async fn after_the_end_every_change_is_answered_with_how_the_game_ended() {
    let rows = [
        ("6e/7/3T3/7/7/7/7/7/6P r 0 1", ["d7d8", "g9g8", "d8d9"].as_slice(), ["DEN", "RED", "3", "4"]),
        ("6e/6L/7/7/7/7/7/7/6p b 199 1", &["g1g2"], ["NO_CAPTURE", "NONE", "1", "2"]),
        ("6c/6L/7/7/7/7/7/7/7 r 0 1", &["g8g9"], ["ALL_CAPTURED", "RED", "1", "2"]),
    ];
    for (position, moves, expected) in rows {
        let mut scene = Scene::new(from(position)).await;
        let first = if position.contains(" b ") { 1 } else { 0 };
        for (ply, mv) in (first..).zip(moves) {
            let (token, request) = (scene.table.token_at(ply).to_owned(), scene.table.submit(mv));
            let verdict = scene.submit(&token, request).await.expect("a verdict");
            assert!(matches!(verdict, Verdict::Accepted(_)), "{mv}: {verdict:?}");
        }
        over(&mut scene, expected).await;
    }
    let mut scene = Scene::new(pb::NewGameRequest::default()).await;
    let (ask, token) = (scene.leave(), scene.red());
    scene.send(&token, ask).await.expect("Red leaves");
    over(&mut scene, ["LEFT", "BLUE", "0", "2"]).await;
    let mut scene = Scene::new(pb::NewGameRequest::default()).await;
    let (ask, token) = (scene.abort(), scene.table.arbiter.clone());
    scene.send(&token, ask).await.expect("the arbiter calls it off");
    over(&mut scene, ["ABORTED", "NONE", "0", "2"]).await;
}

/// Whatever would change an ended game names its outcome; looking at it goes on.
async fn over(scene: &mut Scene, expected: [&str; 4]) {
    let (red, blue, arbiter) = (scene.red(), scene.blue(), scene.table.arbiter.clone());
    let stale = pb::SubmitMoveRequest { expected_ply: Some(99), ..scene.table.submit("a3a4") };
    let asks = [
        (&red, Ask::SubmitMove(scene.table.submit("a3a4"))),
        (&blue, Ask::SubmitMove(scene.table.submit("a3a3"))),
        (&red, Ask::SubmitMove(stale)),
        (&red, scene.offer()),
        (&blue, scene.take_back()),
        (&red, scene.answer(pb::DrawAnswer::Accept)),
        (&blue, scene.answer(pb::DrawAnswer::Decline)),
        (&red, scene.leave()),
        (&arbiter, scene.abort()),
    ];
    for (token, ask) in asks {
        let call = ask.call();
        let told = told(scene.send(token, ask).await);
        assert_eq!((told.code, told.reason.as_str()), (Code::FailedPrecondition, "GAME_OVER"), "{call}");
        assert_eq!(values(&told, ["outcome_reason", "winner", "ply", "sequence"]), expected, "{call}");
    }
    let game = scene.table.get(&mut scene.client).await;
    assert_eq!(game.status(), pb::GameStatus::Ended);
    assert_eq!(scene.table.whole_log(&mut scene.client).await.last().map(|event| event.sequence), Some(game.sequence));
}

/// "The tournament starts at noon; before that there is nothing to move."
#[tokio::test]
async fn before_the_start_nothing_is_played_and_leaving_calls_the_game_off() {
    let window = |window| pb::ClockStart { kind: Some(clock_start::Kind::JoinWindow(window)) };
    let request = || pb::NewGameRequest { clock_start: Some(window(millis(60_000))), ..pb::NewGameRequest::default() };
    let mut scene = Scene::new(request()).await;
    let red = scene.red();
    let stale = pb::SubmitMoveRequest { expected_ply: Some(5), ..scene.table.submit("a3a4") };
    for ask in [
        Ask::SubmitMove(scene.table.submit("a3a4")),
        Ask::SubmitMove(stale),
        Ask::SubmitMove(scene.table.submit("a3a3")),
        scene.offer(),
        scene.take_back(),
        scene.answer(pb::DrawAnswer::Accept),
    ] {
        let call = ask.call();
        let told = told(scene.send(&red, ask).await);
        assert_eq!((told.code, told.reason.as_str()), (Code::FailedPrecondition, "NOT_STARTED"), "{call}");
        // The call itself has shown Red's seat, before it was judged.
        assert_eq!(told.value("sequence"), "2", "{call}");
    }
    let (ask, blue) = (scene.leave(), scene.blue());
    scene.send(&blue, ask).await.expect("Blue leaves; its call has shown it first, and so started the game");
    let outcome = scene.table.get(&mut scene.client).await.outcome.expect("it is over");
    assert_eq!((outcome.reason(), outcome.winner()), (pb::OutcomeReason::Left, Side::Red));
    scene.server.stop().await;

    let mut scene = Scene::new(request()).await;
    let (ask, red) = (scene.leave(), scene.red());
    scene.send(&red, ask).await.expect("Red leaves before the start");
    let outcome = scene.table.get(&mut scene.client).await.outcome.expect("it is over");
    assert_eq!((outcome.reason(), outcome.winner()), (pb::OutcomeReason::Aborted, Side::Unspecified));
    assert!(!outcome.abort_reason.is_empty());
    scene.server.stop().await;
}

/// "I asked for events that have not happened yet."
#[tokio::test]
async fn watching_from_beyond_the_head_tells_the_head() {
    let mut scene = Scene::new(pb::NewGameRequest::default()).await;
    scene.play(&["a3a4", "a7a6"]).await;
    for after in [4, 5, u64::MAX] {
        let watch = scene.table.watch(&mut scene.client, None, Some(after)).await;
        let told = told(watch.map(drop));
        assert_eq!((told.code, told.reason.as_str()), (Code::OutOfRange, "BEYOND_HEAD"));
        assert_eq!(values(&told, ["after_sequence", "sequence"]), [after.to_string(), "3".to_owned()]);
    }
    let mut at_head = scene.table.watch(&mut scene.client, None, Some(3)).await.expect("a stream at the head");
    scene.play(&["a4a5"]).await;
    let next = crate::server::next_event(&mut at_head).await.expect("no error").expect("an event");
    assert_eq!(next.sequence, 4);
    // Of an ended game the head itself has nothing after it: the stream ends at once.
    let (ask, red) = (scene.leave(), scene.red());
    scene.send(&red, ask).await.expect("Red leaves");
    let mut ended = scene.table.watch(&mut scene.client, None, Some(5)).await.expect("a stream");
    assert_eq!(crate::server::next_event(&mut ended).await.expect("no error"), None);
    let beyond = told(scene.table.watch(&mut scene.client, None, Some(6)).await.map(drop));
    assert_eq!(values(&beyond, ["after_sequence", "sequence"]), ["6", "5"]);
    scene.server.stop().await;
}

/// "We talked about a draw, at every wrong moment."
#[tokio::test]
async fn a_draw_offer_at_the_wrong_moment_is_told_what_stands_in_its_way() {
    let failed = |told: &crate::door::Told, reason: &str| {
        assert_eq!((told.code, told.reason.as_str()), (Code::FailedPrecondition, reason));
    };
    let mut scene = Scene::new(pb::NewGameRequest::default()).await;
    let (red, blue) = (scene.red(), scene.blue());
    for (token, ask) in [
        (&red, scene.take_back()),
        (&blue, scene.take_back()),
        (&red, scene.answer(pb::DrawAnswer::Accept)),
        (&blue, scene.answer(pb::DrawAnswer::Decline)),
    ] {
        let told = told(scene.send(token, ask).await);
        failed(&told, "NO_OFFER");
        assert_eq!(told.value("sequence"), "1");
    }
    let ask = scene.offer();
    scene.send(&blue, ask).await.expect("off turn is as good");
    for token in [&red, &blue] {
        let ask = scene.offer();
        let told = told(scene.send(token, ask).await);
        failed(&told, "OFFER_OPEN");
        assert_eq!(values(&told, ["offered_by", "sequence"]), ["BLUE", "2"]);
    }
    let (own, others) = (scene.answer(pb::DrawAnswer::Accept), scene.take_back());
    failed(&told(scene.send(&blue, own).await), "NO_OFFER");
    failed(&told(scene.send(&red, others).await), "NO_OFFER");
    let ask = scene.take_back();
    scene.send(&blue, ask).await.expect("its own");
    let ask = scene.offer();
    let again = told(scene.send(&blue, ask).await);
    failed(&again, "ALREADY_OFFERED");
    assert_eq!(values(&again, ["ply", "sequence"]), ["0", "3"]);
    let (offer, decline) = (scene.offer(), scene.answer(pb::DrawAnswer::Decline));
    scene.send(&red, offer).await.expect("the other side has not offered at this ply");
    scene.send(&blue, decline).await.expect("declined");
    let ask = scene.offer();
    failed(&told(scene.send(&red, ask).await), "ALREADY_OFFERED");
    // A new ply, a new offer: it falls with the other side's move.
    scene.play(&["a3a4"]).await;
    let ask = scene.offer();
    scene.send(&red, ask).await.expect("one a ply");
    scene.play(&["a7a6"]).await;
    let ask = scene.answer(pb::DrawAnswer::Accept);
    failed(&told(scene.send(&blue, ask).await), "NO_OFFER");
    scene.server.stop().await;

    let mut scene = Scene::new(preset("datou")).await;
    let red = scene.red();
    let asks =
        [scene.offer(), scene.take_back(), scene.answer(pb::DrawAnswer::Accept), scene.answer(pb::DrawAnswer::Decline)];
    for ask in asks {
        let told = told(scene.send(&red, ask).await);
        failed(&told, "DRAWS_OFF");
        assert_eq!(told.value("sequence"), "1");
    }
    scene.server.stop().await;
}

/// "My move counted, though the offer that went with it could not be made."
#[tokio::test]
async fn a_move_whose_offer_cannot_be_made_is_judged_all_the_same_and_told_why() {
    async fn with_offer(scene: &mut Scene, ply: u32, mv: &str) -> pb::OfferResult {
        let request = pb::SubmitMoveRequest { offer_draw: true, ..scene.table.submit(mv) };
        let token = scene.table.token_at(ply).to_owned();
        match scene.submit(&token, request).await.expect("a verdict") {
            Verdict::Accepted(accepted) => accepted.offer(),
            Verdict::Refused(refusal) => panic!("{refusal:?}"),
        }
    }
    let mut scene = Scene::new(pb::NewGameRequest::default()).await;
    let (red, blue) = (scene.red(), scene.blue());
    let refused = pb::SubmitMoveRequest { offer_draw: true, ..scene.table.submit("a3a5") };
    scene.refused(&red, refused).await;
    assert_eq!(scene.table.get(&mut scene.client).await.open_offer, None, "a refused move makes no offer");
    assert_eq!(with_offer(&mut scene, 0, "a3a4").await, pb::OfferResult::Made);
    let game = scene.table.get(&mut scene.client).await;
    assert_eq!(game.open_offer, Some(pb::DrawOffer { side: Side::Red.into(), ply: Some(0) }));
    assert_eq!(with_offer(&mut scene, 1, "a7a6").await, pb::OfferResult::OfferOpen);
    let (offer, take_back) = (scene.offer(), scene.take_back());
    scene.send(&red, offer).await.expect("an offer");
    scene.send(&red, take_back).await.expect("taken back");
    assert_eq!(with_offer(&mut scene, 2, "a4a5").await, pb::OfferResult::AlreadyOffered);
    let offer = scene.offer();
    scene.send(&blue, offer).await.expect("an offer");
    assert_eq!(with_offer(&mut scene, 3, "g7g6").await, pb::OfferResult::OfferOpen);
    scene.server.stop().await;

    let mut scene = Scene::new(preset("datou")).await;
    assert_eq!(with_offer(&mut scene, 0, "a3a4").await, pb::OfferResult::DrawsOff);
    scene.server.stop().await;
    let mut scene = Scene::new(from("6e/3T3/7/7/7/7/7/7/7 r 0 1")).await;
    assert_eq!(with_offer(&mut scene, 0, "d8d9").await, pb::OfferResult::GameOver);
    scene.server.stop().await;
}

/// A move that a rule forbids, and what shows it.
struct Forbidden {
    rule: Rule,
    preset: &'static str,
    position: &'static str,
    before: Vec<&'static str>,
    mv: &'static str,
    squares: &'static [&'static str],
    animals: &'static [(&'static str, Side, Animal)],
    plies: &'static [u32],
}

const START: &str = "";

fn forbidden() -> Vec<Forbidden> {
    let plain = |rule, position, mv, squares, animals| Forbidden {
        rule,
        preset: "yeshou",
        position,
        before: Vec::new(),
        mv,
        squares,
        animals,
        plies: &[],
    };
    let shuttle = ["b7b8", "a8a7", "b8b7", "a7a8"];
    let circle = ["a1a2", "g9f9", "a2b2", "f9f8", "b2b1", "f8g8", "b1a1", "g8g9"];
    vec![
        plain(Rule::NoAnimal, START, "b4b5", &["b4"], &[]),
        plain(Rule::NotYourAnimal, START, "g9f9", &["g9"], &[("g9", Side::Blue, Animal::Tiger)]),
        plain(Rule::Step, START, "a1a1", &["a1"], &[]),
        plain(Rule::Step, START, "a3b4", &["b4"], &[]),
        plain(Rule::River, START, "c3c4", &["c4"], &[]),
        plain(Rule::Jump, START, "e3e7", &["e7"], &[]),
        Forbidden { preset: "datou", ..plain(Rule::Jump, "6e/7/7/7/7/7/1T5/7/7 r 0 1", "b3b7", &["b7"], &[]) },
        plain(Rule::JumpBlocked, "6e/7/7/7/1r5/7/1L5/7/7 r 0 1", "b3b7", &["b5"], &[("b5", Side::Blue, Animal::Rat)]),
        plain(Rule::OwnDen, "6e/7/7/7/7/7/7/3C3/7 r 0 1", "d2d1", &["d1"], &[]),
        plain(Rule::OwnPiece, "6e/7/7/7/7/7/7/C6/T6 r 0 1", "a1a2", &["a2"], &[("a2", Side::Red, Animal::Cat)]),
        plain(Rule::Trapped, "6e/2cD3/7/7/7/7/7/7/7 r 0 1", "d8c8", &["d8"], &[("d8", Side::Red, Animal::Dog)]),
        plain(
            Rule::Bank,
            "7/7/7/7/7/eR5/7/7/7 r 0 1",
            "b4a4",
            &["a4", "b4"],
            &[("a4", Side::Blue, Animal::Elephant), ("b4", Side::Red, Animal::Rat)],
        ),
        plain(Rule::RatElephant, "7/7/7/7/7/7/Er5/7/7 r 0 1", "a3b3", &["b3"], &[("b3", Side::Blue, Animal::Rat)]),
        plain(Rule::Strength, "7/7/7/7/3e3/3C3/7/7/7 r 0 1", "d4d5", &["d5"], &[("d5", Side::Blue, Animal::Elephant)]),
        Forbidden {
            before: shuttle.into_iter().cycle().take(14).collect(),
            plies: &[2, 6, 10],
            ..plain(Rule::SevenThree, "6e/d6/1W5/7/7/7/7/7/6T r 0 1", "b8b7", &["b7"], &[])
        },
        Forbidden {
            before: circle.into_iter().cycle().take(34).collect(),
            ..plain(
                Rule::SeventeenFive,
                "6e/7/7/7/7/7/7/7/T5P r 0 1",
                "a2a1",
                &["a1", "a2", "b1", "b2"],
                &[("a2", Side::Red, Animal::Tiger)],
            )
        },
    ]
}

/// "My move was refused, and I was told the rule, where to look, and what it cost me."
#[tokio::test]
async fn a_refused_move_carries_the_rule_what_shows_it_a_sentence_and_what_it_brings() {
    let server = TestServer::start_manual(&["--max-open-games=1000"]).await;
    let mut rules = Vec::new();
    for refusal_limit in [None, Some(3)] {
        for row in forbidden() {
            let mut client = server.client().await;
            let limit = time_control::PerMove { limit: Some(millis(60_000)) };
            let request = pb::NewGameRequest {
                start_position: row.position.to_owned(),
                time_control: Some(pb::TimeControl { kind: Some(time_control::Kind::PerMove(limit)) }),
                refusal_limit,
                ..preset(row.preset)
            };
            let table = Table::new(&mut client, request).await;
            for (ply, mv) in (0..).zip(&row.before) {
                let played = client.submit_move(by(table.token_at(ply), table.submit(mv))).await.expect("a verdict");
                let verdict = played.into_inner().verdict;
                assert!(matches!(verdict, Some(Verdict::Accepted(_))), "{mv}: {verdict:?}");
            }
            server.advance(Span::from_millis(1_500));
            let before = table.get(&mut client).await;
            let answer =
                client.submit_move(by(&table.red, table.submit(row.mv))).await.expect("a verdict").into_inner();
            let Some(Verdict::Refused(refusal)) = answer.verdict else { panic!("{:?} accepted", row.rule) };
            let violation = refusal.violation.expect("why");
            let what = format!("{} as {:?}", row.mv, row.rule);
            assert_eq!(violation.rule(), row.rule, "{what}");
            assert_eq!(violation.squares, row.squares, "{what}");
            let animals = row.animals.iter().map(|(square, side, animal)| pb::Piece {
                square: (*square).to_owned(),
                side: (*side).into(),
                animal: (*animal).into(),
            });
            assert_eq!(violation.animals, animals.collect::<Vec<_>>(), "{what}");
            assert_eq!(violation.plies, row.plies, "{what}");
            assert!(violation.sentence.len() > 10, "{what}: {}", violation.sentence);
            for square in row.squares.iter().filter(|_| row.rule != Rule::Bank) {
                assert!(violation.sentence.contains(square), "{what}: {}", violation.sentence);
            }
            let counted = u64::from(refusal_limit.is_some());
            let consequence =
                [pb::RefusalConsequence::None, pb::RefusalConsequence::Counted][usize::from(refusal_limit.is_some())];
            assert_eq!(refusal.consequence, i32::from(consequence), "{what}");
            assert_eq!(refusal.refusals, refusal_limit.map(|_| 1), "{what}");
            assert_eq!((refusal.ply, refusal.sequence), (before.ply, before.sequence + counted), "{what}");
            assert_eq!(refusal.outcome, None, "{what}");
            let clock = refusal.clock.expect("a clock");
            assert_eq!((clock.running_side(), clock.red_remaining), (Side::Red, Some(millis(58_500))), "{what}");
            let after = table.get(&mut client).await;
            assert_eq!(after.red_refusals, refusal_limit.map(|_| 1), "{what}");
            let same = |game: pb::Game| (game.position, game.ply, game.side_to_move, game.moves, game.clock);
            assert_eq!(same(after), same(before), "{what}: the board, the turn and the running clock stay");
            rules.push(row.rule);
        }
    }
    for number in 1..=14 {
        let rule = Rule::try_from(number).expect("a rule");
        assert!(rules.contains(&rule), "no row for {rule:?}");
    }
    assert!(Rule::try_from(15).is_err(), "a new rule wants a row");
    println!("{} refusals", rules.len());
    server.stop().await;
}

/// "Three refused moves and I had lost; a repeat of one of them was not held against me twice."
#[tokio::test]
async fn refused_moves_are_counted_to_the_limit_once_each_and_the_last_loses_the_game() {
    let mut scene = Scene::new(pb::NewGameRequest { refusal_limit: Some(3), ..pb::NewGameRequest::default() }).await;
    let (red, blue) = (scene.red(), scene.blue());
    let with_id = |scene: &Scene, number: u32, mv: &str| pb::SubmitMoveRequest {
        request_id: uuid(number),
        expected_ply: Some(0),
        ..scene.table.submit(mv)
    };
    let first = with_id(&scene, 1, "a3a5");
    let answer = scene.client.submit_move(by(&red, first.clone())).await.expect("a verdict").into_inner();
    let Some(Verdict::Refused(refusal)) = &answer.verdict else { panic!("{answer:?}") };
    assert_eq!((refusal.refusals, refusal.sequence), (Some(1), 2));
    assert_eq!(refusal.consequence(), pb::RefusalConsequence::Counted);
    let repeat = pb::SubmitMoveResponse { replayed: true, ..answer };
    for _ in 0..5 {
        let again = scene.client.submit_move(by(&red, first.clone())).await.expect("the same").into_inner();
        assert_eq!(again, repeat);
    }
    assert_eq!(scene.table.get(&mut scene.client).await.red_refusals, Some(1));
    // The other side's attempts out of turn are no refusals of a rule.
    let early = scene.table.submit("a7a5");
    assert_eq!(told(scene.submit(&blue, early).await).reason, "NOT_YOUR_TURN");
    let second = with_id(&scene, 2, "a3a5");
    assert_eq!(scene.refused(&red, second).await.refusals, Some(2));
    let again = scene.client.submit_move(by(&red, first.clone())).await.expect("the same").into_inner();
    assert_eq!(again, repeat, "the tally as it was then");
    // A move that is made keeps the tally; Blue has one of its own.
    scene.play(&["a3a4"]).await;
    let blues = scene.table.submit("a7a5");
    assert_eq!(scene.refused(&blue, blues).await.refusals, Some(1));
    scene.play(&["a7a6"]).await;
    let last = scene.table.submit("a4a6");
    let refusal = scene.refused(&red, last).await;
    assert_eq!(refusal.consequence(), pb::RefusalConsequence::GameLost);
    assert_eq!((refusal.refusals, refusal.ply, refusal.sequence), (Some(3), Some(2), 7));
    let outcome = refusal.outcome.expect("the end");
    assert_eq!((outcome.winner(), outcome.reason()), (Side::Blue, pb::OutcomeReason::Forfeit));
    let clock = refusal.clock.expect("a clock");
    assert_eq!((clock.running_side(), clock.deadline), (Side::Unspecified, None));
    let game = scene.table.get(&mut scene.client).await;
    assert_eq!((game.red_refusals, game.blue_refusals, game.outcome), (Some(3), Some(1), Some(outcome)));
    let again = scene.client.submit_move(by(&red, first)).await.expect("the same").into_inner();
    assert_eq!(again, repeat, "after the end too");
    let log = scene.table.whole_log(&mut scene.client).await;
    assert_eq!(log.len(), 7);
    let ended: Vec<_> = log.iter().filter(|event| event.outcome.is_some()).map(|event| event.sequence).collect();
    assert_eq!(ended, [7]);
    scene.server.stop().await;
}

/// "In a game of one life my first slip lost."
#[tokio::test]
async fn a_limit_of_one_loses_with_the_first_refused_move() {
    let mut scene = Scene::new(pb::NewGameRequest { refusal_limit: Some(1), ..pb::NewGameRequest::default() }).await;
    let (red, slip) = (scene.red(), scene.table.submit("b5b6"));
    let refusal = scene.refused(&red, slip).await;
    assert_eq!(refusal.violation.as_ref().map(pb::Violation::rule), Some(Rule::NoAnimal));
    assert_eq!(refusal.consequence(), pb::RefusalConsequence::GameLost);
    over(&mut scene, ["FORFEIT", "BLUE", "0", "2"]).await;
    let looked = Ask::GetGame(pb::GetGameRequest { game_id: scene.table.id.clone() });
    looked.send(&mut scene.client, &nobody()).await.expect("anybody may look");
    scene.server.stop().await;
}
