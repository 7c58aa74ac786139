//! Whole games over the wire, many at a time: what the replies say, what a watcher is told and what
//! GetGame shows is one and the same, and the second judge, asked about the same moves, agrees.
//!
//! `MANY_GAMES=10000` plays so many; without it 400 are played.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::second_judge::generate::{Rng, switches};
use crate::second_judge::{Game, Switches};
use crate::server::{Client, Table, TestServer, by, next_event};
use jungle_referee::service::proto::{self as pb, NewGameRequest, submit_move_response::Verdict};

const GAMES: usize = 400;
const IN_FLIGHT: usize = 16;

/// After so many plies a game is long enough, and both sides only hurry.
const PATIENT_PLIES: u32 = 60;

/// More plies than any game here can last: 16 captures, and 100 rounds between two of them.
const MOST_PLIES: u32 = 3_600;

/// How a game is set up for both judges.
struct SetUp {
    preset: &'static str,
    switches: Switches,
    is_match: bool,
}

impl SetUp {
    /// Every other game is a preset as it is; the rest have switches of their own.
    fn of(number: usize, rng: &mut Rng) -> Self {
        let preset = ["yeshou", "datou", "folk", "folk-fox"][number % 4];
        let as_it_is = (number / 4).is_multiple_of(2);
        let mut wanted = if as_it_is { Switches::preset(preset) } else { switches(rng) };
        if !as_it_is && rng.chance(60) {
            wanted.no_capture_rounds = rng.between(1, 12);
        }
        wanted.no_capture_rounds = wanted.no_capture_rounds.min(100);
        Self { preset, switches: wanted, is_match: rng.chance(30) }
    }

    fn request(&self) -> NewGameRequest {
        let (wanted, usual) = (&self.switches, Switches::preset(self.preset));
        let mut ruleset = pb::RulesetSpec { preset: self.preset.to_owned(), ..pb::RulesetSpec::default() };
        if *wanted != usual {
            ruleset.set_ladder(match wanted.ladder.as_str() {
                "WOLF_OVER_DOG" => pb::Ladder::WolfOverDog,
                "DOG_OVER_WOLF" => pb::Ladder::DogOverWolf,
                _ => pb::Ladder::DogOverFox,
            });
            ruleset.set_jump_blockers(match wanted.jump_blockers.as_str() {
                "ANY_RAT" => pb::JumpBlockers::AnyRat,
                _ => pb::JumpBlockers::EnemyRat,
            });
            ruleset.set_tiger_jump(match wanted.tiger_jump.as_str() {
                "BOTH" => pb::TigerJump::Both,
                _ => pb::TigerJump::AcrossOnly,
            });
            ruleset.rats_capture_across_bank = Some(wanted.rats_capture_across_bank);
            ruleset.trapped_may_capture = Some(wanted.trapped_may_capture);
            ruleset.agreed_draw = Some(wanted.agreed_draw);
            ruleset.timeouts_to_lose = Some(wanted.timeouts_to_lose);
            ruleset.no_capture_rounds = Some(wanted.no_capture_rounds);
            ruleset.short_game_rounds = Some(wanted.short_game_rounds);
            ruleset.seven_three = Some(wanted.seven_three);
            ruleset.seventeen_five = Some(wanted.seventeen_five);
        }
        NewGameRequest { ruleset: Some(ruleset), is_match: self.is_match, ..NewGameRequest::default() }
    }

    fn name(&self) -> String {
        let changed = self.switches != Switches::preset(self.preset);
        format!("{}{}", self.preset, if changed { " + switches" } else { "" })
    }
}

/// How far a square is from the den that its side wants to enter.
fn distance(square: &str, red: bool) -> u8 {
    let (file, rank) = (square.as_bytes()[0], square.as_bytes()[1]);
    file.abs_diff(b'd') + rank.abs_diff(if red { b'9' } else { b'1' })
}

/// Into the den if possible; mostly captures, mostly forward; after many plies in a hurry.
fn choose<'a>(legal: &'a pb::LegalMovesResponse, rng: &mut Rng) -> &'a pb::LegalMove {
    let red = legal.side_to_move() == pb::Side::Red;
    let hurry = legal.ply() > PATIENT_PLIES;
    let moves: Vec<_> = legal.moves.iter().collect();
    if let Some(den) = moves.iter().find(|mv| distance(&mv.to_square, red) == 0).filter(|_| rng.chance(80)) {
        return den;
    }
    let captures: Vec<_> = moves.iter().copied().filter(|mv| mv.captures() != pb::Animal::Unspecified).collect();
    if !captures.is_empty() && rng.chance(70) {
        return rng.pick(&captures);
    }
    let nearer = |mv: &&pb::LegalMove| distance(&mv.to_square, red) < distance(&mv.from_square, red);
    let nearer: Vec<_> = moves.iter().copied().filter(nearer).collect();
    if !nearer.is_empty() && rng.chance(if hurry { 85 } else { 50 }) {
        return rng.pick(&nearer);
    }
    rng.pick(&moves)
}

/// What was said of a move, wherever it was said.
#[derive(Clone, Debug, PartialEq)]
struct Said {
    mv: Option<pb::PlayedMove>,
    sequence: u64,
    position: String,
    outcome: Option<pb::Outcome>,
}

/// Plays a game to its end; each move as its reply tells it.
async fn play(client: &mut Client, table: &Table, rng: &mut Rng) -> Vec<Said> {
    let mut said: Vec<Said> = Vec::new();
    for ply in 0..MOST_PLIES {
        let subject = Some(pb::legal_moves_request::Subject::GameId(table.id.clone()));
        let request = pb::LegalMovesRequest { subject, ..pb::LegalMovesRequest::default() };
        let legal = client.legal_moves(request).await.expect("legal moves").into_inner();
        assert_eq!((legal.ply(), legal.sequence()), (ply, u64::from(ply) + 1));
        assert!(said.last().is_none_or(|last| last.position == legal.position));
        let mv = choose(&legal, rng);
        let mv = format!("{}{}", mv.from_square, mv.to_square);
        let request = pb::SubmitMoveRequest { expected_ply: Some(ply), ..table.submit(&mv) };
        let token = if legal.side_to_move() == pb::Side::Red { &table.red } else { &table.blue };
        let verdict = client.submit_move(by(token, request)).await.expect("a verdict").into_inner();
        let Some(Verdict::Accepted(accepted)) = verdict.verdict else { panic!("{mv} was listed: {verdict:?}") };
        let pb::MoveAccepted { sequence, r#move: mv, position, outcome, .. } = accepted;
        said.push(Said { mv, sequence, position, outcome });
        if said.last().is_some_and(|last| last.outcome.is_some()) {
            return said;
        }
    }
    panic!("a game does not last {MOST_PLIES} plies");
}

/// Follows a game to its end; each move as the stream tells it.
async fn listen(mut client: Client, id: String, after_sequence: Option<u64>) -> Vec<Said> {
    let request = pb::WatchGameRequest { game_id: id, after_sequence, heartbeat: None };
    let mut stream = client.watch_game(request).await.expect("a stream").into_inner();
    let mut said = Vec::new();
    while let Some(event) = next_event(&mut stream).await.expect("no error") {
        let Some(pb::game_event::Kind::MoveMade(made)) = event.kind else { panic!("no move: {event:?}") };
        let pb::GameEvent { sequence, position, outcome, .. } = event;
        said.push(Said { mv: made.r#move, sequence, position, outcome });
    }
    said
}

/// What the second judge says of these moves.
fn judge_again(set_up: &SetUp, start: &str, said: &[Said]) -> &'static str {
    let mut game = Game::set_up(start, &set_up.switches).expect("a start");
    game.match_game = set_up.is_match;
    for (ply, said) in said.iter().enumerate() {
        let mv = said.mv.as_ref().expect("a move");
        assert_eq!(mv.ply.map(u64::from), u64::try_from(ply).ok());
        let end = game.play(&mv.from_square, &mv.to_square);
        assert_eq!(game.text(), said.position, "ply {ply}");
        assert_eq!(end.is_some(), said.outcome.is_some(), "ply {ply}");
    }
    let end = game.end().expect("an end");
    let outcome = said.last().and_then(|last| last.outcome.as_ref()).expect("an outcome");
    let winner = match end.winner {
        Some('r') => pb::Side::Red,
        Some(_) => pb::Side::Blue,
        None => pb::Side::Unspecified,
    };
    let reason = outcome.reason().as_str_name().trim_start_matches("OUTCOME_REASON_");
    let points = [end.red_half_points, end.blue_half_points].map(|half| Some(f64::from(half) / 2.0));
    assert_eq!((outcome.winner(), reason, outcome.scored), (winner, end.reason.as_str(), Some(end.scored)));
    assert_eq!([outcome.red_points, outcome.blue_points], points);
    reason
}

/// One game, told four times and judged twice.
async fn game(client: &mut Client, listener: Client, number: usize) -> (String, &'static str, usize) {
    let mut rng = Rng::new(u64::try_from(number).expect("a number"));
    let set_up = SetUp::of(number, &mut rng);
    let made = client.new_game(set_up.request()).await.expect("a game").into_inner();
    let table = Table::of(&made);
    let start = made.game.expect("a game").position;
    // A listener wants all moves; or it joins somewhere, and what it was too late for is in its snapshot.
    let all = number.is_multiple_of(2);
    let listening = tokio::spawn(listen(listener.clone(), table.id.clone(), all.then_some(1)));
    let said = play(client, &table, &mut rng).await;
    let heard = listening.await.expect("no panic");
    assert!(said.ends_with(&heard) && (!all || said.len() == heard.len()), "{said:?} {heard:?}");
    // Who comes when all is over is told each move as it was then.
    assert_eq!(listen(listener, table.id.clone(), Some(1)).await, said);
    let shown = table.get(client).await;
    let moves: Vec<_> = said.iter().filter_map(|said| said.mv.clone()).collect();
    let last = said.last().expect("a move");
    assert_eq!((&shown.moves, &shown.position, &shown.outcome), (&moves, &last.position, &last.outcome));
    assert_eq!((shown.status(), shown.sequence), (pb::GameStatus::Ended, last.sequence));
    (set_up.name(), judge_again(&set_up, &start, &said), said.len())
}

/// "I let my bots play all night, in all the rulesets, and no two tellings of a game differed."
#[tokio::test(flavor = "multi_thread")]
async fn whole_games_are_told_alike_by_all_and_judged_alike_by_both() {
    let games = std::env::var("MANY_GAMES").map_or(GAMES, |games| games.parse().expect("MANY_GAMES is a number"));
    let server = TestServer::start(&[]).await;
    let next = Arc::new(AtomicUsize::new(0));
    let mut workers = Vec::new();
    for _ in 0..IN_FLIGHT {
        let (mut client, listener, next) = (server.client().await, server.client().await, Arc::clone(&next));
        workers.push(tokio::spawn(async move {
            let mut played = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= games {
                    break played;
                }
                played.push(game(&mut client, listener.clone(), number).await);
            }
        }));
    }
    let (mut by_kind, mut plies, mut longest) = (BTreeMap::<(String, &str), u32>::new(), 0, 0);
    for worker in workers {
        for (ruleset, reason, length) in worker.await.expect("no panic") {
            *by_kind.entry((ruleset, reason)).or_default() += 1;
            plies += length;
            longest = longest.max(length);
        }
    }
    println!("{games} games, {plies} plies, the longest {longest}");
    for ((ruleset, reason), count) in &by_kind {
        println!("{count:>7}  {ruleset:<22} {reason}");
    }
    assert_eq!(by_kind.values().sum::<u32>(), u32::try_from(games).expect("a number"));
    server.stop().await;
}
