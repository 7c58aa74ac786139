//! What the questions answer: settings as they were set, lists page by page, rulesets, legal moves.

use crate::door::{
    Ask, CREATOR_FLAG, CREATOR_KEY, LONG_START, a_move, bearer, long_line, long_ruleset, millis, nobody, told,
};
use crate::server::{Client, EPOCH, Table, TestServer, by};
use jungle_referee::service::proto::legal_moves_request::Subject;
use jungle_referee::service::proto::submit_move_response::Verdict;
use jungle_referee::service::proto::{self as pb, clock_start, time_control};
use prost_types::Timestamp;
use tonic::Request;

fn epoch_and(seconds: i64) -> Timestamp {
    let epoch = i64::try_from(EPOCH.micros() / 1_000_000).expect("it fits");
    Timestamp { seconds: epoch + seconds, nanos: 0 }
}

fn per_move(limit: i64) -> Option<pb::TimeControl> {
    let limit = Some(millis(limit));
    Some(pb::TimeControl { kind: Some(time_control::Kind::PerMove(time_control::PerMove { limit })) })
}

fn stock(initial: i64, gain: Option<i64>) -> Option<pb::TimeControl> {
    let (initial, increment) = (Some(millis(initial)), gain.map(millis));
    Some(pb::TimeControl { kind: Some(time_control::Kind::Increment(time_control::Increment { initial, increment })) })
}

fn start(kind: clock_start::Kind) -> Option<pb::ClockStart> {
    Some(pb::ClockStart { kind: Some(kind) })
}

/// "I set everything there is to set, and the game is just so."
#[tokio::test]
async fn every_setting_of_a_new_game_comes_back_in_its_settings() {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let spec = pb::RulesetSpec {
        preset: "datou".to_owned(),
        ladder: pb::Ladder::DogOverFox.into(),
        rats_capture_across_bank: Some(true),
        jump_blockers: pb::JumpBlockers::EnemyRat.into(),
        tiger_jump: pb::TigerJump::Both.into(),
        trapped_may_capture: Some(false),
        agreed_draw: Some(true),
        timeouts_to_lose: Some(1),
        no_capture_rounds: Some(77),
        short_game_rounds: Some(7),
        seven_three: Some(false),
        seventeen_five: Some(false),
    };
    let ruleset = pb::Ruleset {
        preset: "datou".to_owned(),
        hash: String::new(),
        ladder: pb::Ladder::DogOverFox.into(),
        rats_capture_across_bank: true,
        jump_blockers: pb::JumpBlockers::EnemyRat.into(),
        tiger_jump: pb::TigerJump::Both.into(),
        trapped_may_capture: false,
        agreed_draw: true,
        timeouts_to_lose: 1,
        no_capture_rounds: 77,
        short_game_rounds: 7,
        seven_three: false,
        seventeen_five: false,
    };
    let all = pb::NewGameRequest {
        request_id: String::new(),
        ruleset: Some(spec),
        start_position: "f6/7/7/1r5/7/7/7/7/6E b 12 34".to_owned(),
        time_control: stock(90_500, Some(250)),
        grace: Some(millis(350)),
        clock_start: start(clock_start::Kind::At(epoch_and(3_600))),
        is_match: true,
        refusal_limit: Some(5),
        away_limit: Some(millis(45_000)),
        idle_limit: Some(millis(7_200_000)),
        private: true,
        labels: vec!["round 1".to_owned(), "\u{91ce}\u{517d}".to_owned()],
        external_reference: "cup/2026/7".to_owned(),
    };
    let set = pb::GameSettings {
        ruleset: Some(ruleset),
        start_position: all.start_position.clone(),
        time_control: all.time_control,
        grace: all.grace,
        clock_start: all.clock_start,
        is_match: true,
        refusal_limit: Some(5),
        away_limit: all.away_limit,
        idle_limit: all.idle_limit,
        private: true,
        labels: all.labels.clone(),
        external_reference: all.external_reference.clone(),
    };
    let nothing = pb::NewGameRequest::default();
    let defaults = pb::GameSettings {
        ruleset: None,
        start_position: "l5t/1d3c1/r1p1w1e/7/7/7/E1W1P1R/1C3D1/T5L r 0 1".to_owned(),
        grace: Some(millis(0)),
        idle_limit: Some(millis(86_400_000)),
        ..pb::GameSettings::default()
    };
    let rows = [
        ("everything", all, set),
        ("nothing", nothing.clone(), defaults.clone()),
        (
            "a limit per move",
            pb::NewGameRequest { time_control: per_move(10), ..nothing.clone() },
            pb::GameSettings { time_control: per_move(10), ..defaults.clone() },
        ),
        (
            "a stock without a gain",
            pb::NewGameRequest { time_control: stock(10, None), ..nothing.clone() },
            pb::GameSettings { time_control: stock(10, Some(0)), ..defaults.clone() },
        ),
        (
            "a window to join in",
            pb::NewGameRequest { clock_start: start(clock_start::Kind::JoinWindow(millis(1_000))), ..nothing },
            pb::GameSettings { clock_start: start(clock_start::Kind::JoinWindow(millis(1_000))), ..defaults },
        ),
    ];
    for (what, request, expected) in rows {
        let made = client.new_game(request).await.expect("a game").into_inner();
        let table = Table::of(&made);
        let got = table.get(&mut client).await;
        let mut settings = got.settings.clone().expect("settings");
        assert_eq!(made.game.and_then(|game| game.settings), got.settings, "{what}");
        let mut events = table.watch(&mut client, Some(&table.arbiter), Some(0)).await.expect("a stream");
        let created = crate::server::next_event(&mut events).await.expect("no error").expect("the creation");
        let Some(pb::game_event::Kind::Created(created)) = created.kind else { panic!("{created:?}") };
        assert_eq!(created.settings, got.settings, "{what}");
        let ruleset = settings.ruleset.as_mut().expect("a ruleset");
        assert_eq!(ruleset.hash.len(), 16, "{what}");
        if expected.ruleset.is_some() {
            ruleset.hash.clear();
        } else {
            assert_eq!((ruleset.preset.as_str(), ruleset.hash.as_str()), ("yeshou", "e3b0c44298fc1c14"), "{what}");
            settings.ruleset = None;
        }
        assert_eq!(settings, expected, "{what}");
        assert_eq!(got.position, expected.start_position, "{what}");
        let waits = expected.clock_start.is_some();
        let status = if waits { pb::GameStatus::Waiting } else { pb::GameStatus::Running };
        assert_eq!((got.status(), got.started_at.is_some()), (status, !waits), "{what}");
    }
    server.stop().await;
}

/// "I asked which rules there are."
#[tokio::test]
async fn the_rulesets_are_listed_with_every_switch_a_line_of_text_and_the_hash_of_the_rules_page() {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let presets = client.list_rulesets(pb::ListRulesetsRequest {}).await.expect("the presets").into_inner().presets;
    let seen: Vec<_> = presets
        .iter()
        .map(|preset| {
            let rules = preset.ruleset.as_ref().expect("a ruleset");
            let numbers = (rules.timeouts_to_lose, rules.no_capture_rounds, rules.short_game_rounds);
            let bools = [
                rules.rats_capture_across_bank,
                rules.trapped_may_capture,
                rules.agreed_draw,
                rules.seven_three,
                rules.seventeen_five,
            ];
            let enums = (rules.ladder(), rules.jump_blockers(), rules.tiger_jump());
            (rules.preset.as_str(), rules.hash.as_str(), enums, bools, numbers)
        })
        .collect();
    use pb::{JumpBlockers as Blockers, Ladder, TigerJump as Jump};
    let expected = [
        (
            "yeshou",
            "e3b0c44298fc1c14",
            (Ladder::WolfOverDog, Blockers::EnemyRat, Jump::Both),
            [true, false, true, true, true],
            (1, 100, 10),
        ),
        (
            "datou",
            "b68a121da49a4a16",
            (Ladder::WolfOverDog, Blockers::AnyRat, Jump::AcrossOnly),
            [false, true, false, true, true],
            (2, 100, 0),
        ),
        (
            "folk",
            "12cb3ada192807c1",
            (Ladder::DogOverWolf, Blockers::AnyRat, Jump::Both),
            [false, true, true, false, false],
            (1, 100, 0),
        ),
        (
            "folk-fox",
            "bc00fc4d3b4940dc",
            (Ladder::DogOverFox, Blockers::AnyRat, Jump::Both),
            [false, true, true, false, false],
            (1, 100, 0),
        ),
    ];
    assert_eq!(seen, expected);
    for preset in &presets {
        assert!(preset.summary.len() > 10 && !preset.summary.contains('\n'), "{:?}", preset.summary);
    }
    // Equal switches, equal hash, by whatever road.
    let yeshou_from_datou = pb::RulesetSpec {
        preset: "datou".to_owned(),
        rats_capture_across_bank: Some(true),
        jump_blockers: Blockers::EnemyRat.into(),
        tiger_jump: Jump::Both.into(),
        trapped_may_capture: Some(false),
        agreed_draw: Some(true),
        timeouts_to_lose: Some(1),
        short_game_rounds: Some(10),
        ..pb::RulesetSpec::default()
    };
    let request = pb::NewGameRequest { ruleset: Some(yeshou_from_datou), ..pb::NewGameRequest::default() };
    let game = Table::new(&mut client, request).await.get(&mut client).await;
    let ruleset = game.settings.and_then(|settings| settings.ruleset).expect("a ruleset");
    assert_eq!((ruleset.preset.as_str(), ruleset.hash.as_str()), ("datou", "e3b0c44298fc1c14"));
    server.stop().await;
}

async fn page(client: &mut Client, request: pb::ListGamesRequest, key: Option<&str>) -> pb::ListGamesResponse {
    let who = key.map_or_else(nobody, bearer);
    client.list_games(crate::door::with(&who, request)).await.expect("a page").into_inner()
}

/// All pages, with something done between one and the next.
async fn pages(client: &mut Client, request: pb::ListGamesRequest, key: Option<&str>) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut request = request;
    loop {
        let answer = page(client, request.clone(), key).await;
        pages.push(answer.games.into_iter().map(|game| game.game_id).collect::<Vec<_>>());
        if answer.next_page_token.is_empty() {
            return pages;
        }
        request.page_token = answer.next_page_token;
    }
}

/// "I listed the games while new ones came in, and saw each once."
#[tokio::test]
async fn the_games_are_listed_oldest_first_page_by_page_while_others_are_created() {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let mut ids = Vec::new();
    for number in 0..10 {
        let labels = vec![format!("group {}", number % 2)];
        let made = Table::new(&mut client, pb::NewGameRequest { labels, ..pb::NewGameRequest::default() }).await;
        ids.push(made.id);
    }
    let mut seen = Vec::new();
    let mut request = pb::ListGamesRequest { page_size: 3, ..pb::ListGamesRequest::default() };
    let mut sizes = Vec::new();
    loop {
        let answer = page(&mut client, request.clone(), None).await;
        sizes.push(answer.games.len());
        seen.extend(answer.games.into_iter().map(|game| game.game_id));
        if answer.next_page_token.is_empty() {
            break;
        }
        request.page_token = answer.next_page_token;
        if ids.len() < 13 {
            ids.push(Table::new(&mut client, pb::NewGameRequest::default()).await.id);
        }
    }
    assert_eq!(seen, ids, "oldest first, each once, the newcomers too");
    assert_eq!(sizes, [3, 3, 3, 3, 1]);
    // A page that is just full is the last one, and says so.
    let thirteen = pages(&mut client, pb::ListGamesRequest { page_size: 13, ..Default::default() }, None).await;
    assert_eq!(thirteen.len(), 1);
    // Within a filter as well.
    let label = "group 1".to_owned();
    let odd = pages(&mut client, pb::ListGamesRequest { label, page_size: 2, ..Default::default() }, None).await;
    assert_eq!(odd.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 1]);
    assert_eq!(odd.concat(), [1, 3, 5, 7, 9].map(|index: usize| ids[index].clone()));
    // Without a size, 50 a page.
    for _ in ids.len()..51 {
        Table::new(&mut client, pb::NewGameRequest::default()).await;
    }
    let sizes = pages(&mut client, pb::ListGamesRequest::default(), None).await;
    assert_eq!(sizes.iter().map(Vec::len).collect::<Vec<_>>(), [50, 1]);
    server.stop().await;
}

/// "Show me only these."
#[tokio::test]
async fn the_games_are_listed_by_status_label_and_reference_and_each_in_short() {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let window = start(clock_start::Kind::JoinWindow(millis(60_000)));
    let plain = pb::NewGameRequest::default();
    let labelled = |labels: &[&str], external_reference: &str| pb::NewGameRequest {
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        external_reference: external_reference.to_owned(),
        ..plain.clone()
    };
    let requests = [
        ("waiting", pb::NewGameRequest { clock_start: window, ..labelled(&["cup", "a"], "1") }),
        ("running", labelled(&["cup", "b"], "2")),
        ("ended", pb::NewGameRequest { is_match: true, ..labelled(&["cup"], "1") }),
        ("plain", plain.clone()),
    ];
    let mut tables = Vec::new();
    for (name, request) in requests {
        tables.push((name, Table::new(&mut client, request).await));
    }
    let (_, ended) = &tables[2];
    let (game_id, request_id) = (ended.id.clone(), String::new());
    client.leave_game(by(&ended.blue, pb::LeaveGameRequest { request_id, game_id })).await.expect("Blue leaves");
    let filter = |status: pb::GameStatus, label: &str, external_reference: &str| pb::ListGamesRequest {
        status: status.into(),
        label: label.to_owned(),
        external_reference: external_reference.to_owned(),
        ..pb::ListGamesRequest::default()
    };
    use pb::GameStatus::{Ended, Running, Unspecified, Waiting};
    let rows: [(_, &[&str]); 12] = [
        (filter(Unspecified, "", ""), &["waiting", "running", "ended", "plain"]),
        (filter(Waiting, "", ""), &["waiting"]),
        (filter(Running, "", ""), &["running", "plain"]),
        (filter(Ended, "", ""), &["ended"]),
        (filter(Unspecified, "cup", ""), &["waiting", "running", "ended"]),
        (filter(Unspecified, "a", ""), &["waiting"]),
        (filter(Unspecified, "cu", ""), &[]),
        (filter(Unspecified, "CUP", ""), &[]),
        (filter(Unspecified, "", "1"), &["waiting", "ended"]),
        (filter(Ended, "cup", "1"), &["ended"]),
        (filter(Ended, "cup", "2"), &[]),
        (filter(Unspecified, "", "3"), &[]),
    ];
    for (request, expected) in rows {
        let found = page(&mut client, request.clone(), None).await;
        let names: Vec<_> = found
            .games
            .iter()
            .map(|game| tables.iter().find(|(_, table)| table.id == game.game_id).expect("one of these").0)
            .collect();
        assert_eq!(names, expected, "{request:?}");
        assert_eq!(found.next_page_token, "", "{request:?}");
    }
    let found = page(&mut client, filter(Ended, "", ""), None).await;
    let game = ended.get(&mut client).await;
    let summary = pb::GameSummary {
        game_id: ended.id.clone(),
        status: Ended.into(),
        sequence: 2,
        ply: Some(0),
        preset: "yeshou".to_owned(),
        ruleset_hash: "e3b0c44298fc1c14".to_owned(),
        is_match: true,
        private: false,
        labels: vec!["cup".to_owned()],
        external_reference: "1".to_owned(),
        created_at: game.created_at,
        ended_at: game.ended_at,
        outcome: game.outcome,
    };
    assert_eq!(found.games, [summary]);
    server.stop().await;
}

/// "Our private games are on my list, and on nobody else's."
#[tokio::test]
async fn private_games_are_listed_for_the_creators_key_only() {
    for (flags, key, listed) in [(vec![], None, [true, false]), (vec![CREATOR_FLAG], Some(CREATOR_KEY), [true, true])] {
        let server = TestServer::start_manual(&flags).await;
        let mut client = server.client().await;
        let mut ids = Vec::new();
        for private in [false, true] {
            let request = pb::NewGameRequest { private, ..pb::NewGameRequest::default() };
            let who = key.map_or_else(nobody, bearer);
            let made = client.new_game(crate::door::with(&who, request)).await.expect("a game").into_inner();
            ids.push(Table::of(&made).id);
        }
        let games = pages(&mut client, pb::ListGamesRequest { page_size: 1, ..Default::default() }, key).await.concat();
        assert_eq!([games.contains(&ids[0]), games.contains(&ids[1])], listed, "{flags:?}");
        server.stop().await;
    }
}

fn line_request(line: pb::MoveLine) -> pb::LegalMovesRequest {
    pb::LegalMovesRequest { subject: Some(Subject::Line(line)), ..pb::LegalMovesRequest::default() }
}

fn names(moves: &[pb::LegalMove]) -> Vec<String> {
    moves.iter().map(|mv| format!("{}{}", mv.from_square, mv.to_square)).collect()
}

/// "I gave it the longest line it takes, and it told me where that leads."
#[tokio::test]
async fn a_line_of_three_thousand_moves_is_judged_to_its_end() {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let line = |plies| pb::MoveLine {
        start_position: LONG_START.to_owned(),
        moves: long_line(plies),
        ruleset: Some(long_ruleset()),
    };
    let answer = client.legal_moves(line_request(line(3_000))).await.expect("an answer").into_inner();
    assert_eq!((answer.ply, answer.sequence, answer.side_to_move()), (Some(3_000), None, pb::Side::Red));
    assert!(answer.position.ends_with(" r 299 1501"), "{}", answer.position);
    assert_eq!(answer.outcome, None);
    assert!(names(&answer.moves).contains(&"a4a5".to_owned()), "{:?}", names(&answer.moves));
    // The same line with one wrong move far down.
    let mut wrong = line(3_000);
    wrong.moves[2_345] = a_move("g9g7");
    let told = told(client.legal_moves(line_request(wrong)).await);
    assert_eq!(told.value("field"), "line.moves[2345]");
    assert!(told.value("problem").contains("STEP") && told.value("problem").contains("g9g7"), "{told:?}");
    server.stop().await;
}

/// "The line was over: no moves, and how it ended."
#[tokio::test]
async fn a_finished_line_has_no_moves_and_its_outcome() {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let folk = Some(pb::RulesetSpec { preset: "folk".to_owned(), ..pb::RulesetSpec::default() });
    use pb::OutcomeReason::{AllCaptured, Den, NoCapture, NoMoves};
    let rows = [
        ("6e/3T3/7/7/7/7/7/7/7 r 0 1", None, "d8d9", Den, pb::Side::Red, (false, 0.0, 0.0)),
        ("6e/3T3/7/7/7/7/7/7/7 r 0 1", folk.clone(), "d8d9", Den, pb::Side::Red, (true, 1.0, 0.0)),
        ("6c/6L/7/7/7/7/7/7/7 r 0 1", folk.clone(), "g8g9", AllCaptured, pb::Side::Red, (true, 1.0, 0.0)),
        ("6e/6L/7/7/7/7/7/7/6p b 199 1", folk.clone(), "g1g2", NoCapture, pb::Side::Unspecified, (true, 0.5, 0.5)),
        ("7/7/7/7/7/7/7/lt5/C6 b 0 1", folk, "b2b1", NoMoves, pb::Side::Blue, (true, 0.0, 1.0)),
    ];
    for (position, ruleset, mv, reason, winner, (scored, red, blue)) in rows {
        let start_position = position.to_owned();
        let line = pb::MoveLine { start_position, moves: vec![a_move(mv)], ruleset };
        let request = pb::LegalMovesRequest { explain: true, ..line_request(line) };
        let answer = client.legal_moves(request).await.expect("an answer").into_inner();
        assert_eq!((answer.moves.len(), answer.candidates.len()), (0, 0), "{mv}");
        let outcome = answer.outcome.expect("an outcome");
        assert_eq!((outcome.reason(), outcome.winner(), outcome.scored), (reason, winner, Some(scored)), "{mv}");
        assert_eq!((outcome.red_points, outcome.blue_points), (Some(red), Some(blue)), "{mv}");
    }
    server.stop().await;
}

/// Positions with the moves that lead to what is asked about.
fn studies() -> Vec<(&'static str, Vec<&'static str>)> {
    let shuttle = ["b7b8", "a8a7", "b8b7", "a7a8"];
    let circle = ["a1a2", "g9f9", "a2b2", "f9f8", "b2b1", "f8g8", "b1a1", "g8g9"];
    let alone = ["b5b4", "g9f9", "b4c4", "f9f8", "c4c5", "f8g8", "c5b5", "g8g9"];
    vec![
        ("", vec![]),
        ("", vec!["a3a4", "a7a6", "g3g4", "g7g6", "g1g2"]),
        ("6e/d6/1W5/7/7/7/7/7/6T r 0 1", shuttle.into_iter().cycle().take(14).collect()),
        ("6e/7/7/7/7/7/7/7/T5P r 0 1", circle.into_iter().cycle().take(34).collect()),
        ("6w/7/7/7/1R5/d6/1c5/7/7 r 0 1", alone.into_iter().cycle().take(34).collect()),
        ("6e/2cD3/7/7/7/7/7/7/7 r 0 1", vec![]),
        ("7/7/7/7/1r5/eR5/1L5/1T5/2P4 r 0 1", vec![]),
        ("7/7/7/7/7/7/Er5/7/7 r 0 1", vec![]),
    ]
}

/// "It explained why each move was not allowed, and the referee then said the very same."
#[tokio::test]
async fn what_explain_says_of_each_candidate_is_the_verdict_on_that_move() {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let (mut allowed, mut forbidden) = (0, 0);
    for (position, moves) in studies() {
        let request = pb::NewGameRequest { start_position: position.to_owned(), ..pb::NewGameRequest::default() };
        let table = played(&mut client, &request, &moves).await;
        let ask = pb::LegalMovesRequest {
            subject: Some(Subject::GameId(table.id.clone())),
            explain: true,
            ..pb::LegalMovesRequest::default()
        };
        let answer = client.legal_moves(Request::new(ask.clone())).await.expect("an answer").into_inner();
        let ply = u32::try_from(moves.len()).expect("few");
        assert_eq!((answer.ply, answer.sequence), (Some(ply), Some(u64::from(ply) + 1)));
        assert!((1..=36).contains(&answer.candidates.len()), "{position}: {}", answer.candidates.len());
        // A line has no log and no clock.
        let said = pb::LegalMovesResponse { sequence: None, clock: None, server_time: None, ..answer.clone() };
        // The line says the same as the game that was played by it.
        let line = pb::MoveLine {
            start_position: position.to_owned(),
            moves: moves.iter().map(|mv| a_move(mv)).collect(),
            ruleset: None,
        };
        let of_line = client.legal_moves(pb::LegalMovesRequest { explain: true, ..line_request(line) }).await;
        let of_line = of_line.expect("an answer").into_inner();
        assert_eq!(of_line, said, "{position}");
        // The moves are the candidates that nothing speaks against, in the same order.
        let free = answer.candidates.iter().filter(|candidate| candidate.violation.is_none());
        let free: Vec<_> = free.map(|c| (&c.from_square, &c.to_square, c.captures)).collect();
        let legal: Vec<_> = answer.moves.iter().map(|m| (&m.from_square, &m.to_square, m.captures)).collect();
        assert_eq!(free, legal, "{position}");
        assert!(!legal.is_empty(), "{position}");
        for candidate in &answer.candidates {
            let mv = format!("{}{}", candidate.from_square, candidate.to_square);
            let on = if candidate.violation.is_some() { &table } else { &played(&mut client, &request, &moves).await };
            let submitted = client.submit_move(by(on.token_at(ply), on.submit(&mv))).await.expect("a verdict");
            match (submitted.into_inner().verdict.expect("a verdict"), &candidate.violation) {
                (Verdict::Accepted(accepted), None) => {
                    let made = accepted.r#move.expect("a move");
                    assert_eq!((made.captured, made.waived), (candidate.captures, answer.waived), "{position} {mv}");
                    allowed += 1;
                }
                (Verdict::Refused(refusal), Some(_)) => {
                    assert_eq!(refusal.violation, candidate.violation, "{position} {mv}");
                    forbidden += 1;
                }
                (verdict, _) => panic!("{position} {mv}: {candidate:?} but {verdict:?}"),
            }
        }
        // From one square: the part of the whole that leaves it.
        for square in ["a1", "b7", "b8", "d5"] {
            let ask = pb::LegalMovesRequest { from_square: Some(square.to_owned()), ..ask.clone() };
            let part = client.legal_moves(Request::new(ask)).await.expect("an answer").into_inner();
            let whole = answer.clone();
            let moves = whole.moves.into_iter().filter(|m| m.from_square == square).collect();
            let candidates = whole.candidates.into_iter().filter(|c| c.from_square == square).collect();
            assert_eq!(part, pb::LegalMovesResponse { moves, candidates, ..answer.clone() }, "{position} {square}");
        }
    }
    println!("{allowed} moves made, {forbidden} refused");
    server.stop().await;
}

/// A game in which these moves have been made.
async fn played(client: &mut Client, request: &pb::NewGameRequest, moves: &[&str]) -> Table {
    let table = Table::new(client, request.clone()).await;
    for (ply, mv) in (0..).zip(moves) {
        let ask = Ask::SubmitMove(table.submit(mv));
        ask.send(client, &bearer(table.token_at(ply))).await.expect("a verdict");
    }
    let game = table.get(client).await;
    assert_eq!(game.ply, u32::try_from(moves.len()).ok(), "every move of {moves:?} was made");
    table
}
