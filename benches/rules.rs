//! What the pure parts cost, each by itself: the judge, the lists that derive from it, the game's events.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use jungle_referee::game::{Caller, create, decide};
use jungle_referee::game::{Command, Event, Game, Record, Request, Settings, Span, Time, TimeControl};
use jungle_referee::rules::{Line, Position, Ruleset, perft};

#[path = "load/lines.rs"]
#[allow(dead_code, reason = "the load uses all of it")]
mod lines;
#[path = "../tests/game/usual.rs"]
mod usual;

use lines::{Lines, mover};

/// How many plies the game has that is folded.
const PLIES: usize = 100;

/// When it begins.
const BEGIN: Time = Time::from_micros(1_790_000_000_000_000);

/// A game in its middle: the bars have moves to look at.
fn midgame(lines: &Lines) -> Line {
    let mut line = Line::new(Position::start(&Ruleset::YESHOU), Ruleset::YESHOU);
    for ply in &lines.of(0)[..40] {
        line.advance(ply.mv);
    }
    line
}

fn rules(criterion: &mut Criterion) {
    let lines = Lines::new();
    let line = midgame(&lines);
    let next = &lines.of(0)[40];
    criterion.bench_function("judge one move, accepted", |b| b.iter(|| black_box(&line).judge(black_box(next.mv))));
    criterion
        .bench_function("judge one move, refused", |b| b.iter(|| black_box(&line).judge(black_box(next.refused.0))));
    criterion.bench_function("legal moves", |b| b.iter(|| black_box(&line).legal_moves()));
    criterion.bench_function("legal moves with explain", |b| {
        b.iter(|| (black_box(&line).legal_moves(), black_box(&line).candidates()));
    });
    criterion.bench_function("advance a line by a move", |b| {
        b.iter_batched_ref(|| line, |line| line.advance(black_box(next.mv)), BatchSize::SmallInput);
    });
    criterion.bench_function("position text", |b| b.iter(|| black_box(line.position()).to_string()));
    let start = Position::start(&Ruleset::YESHOU);
    let mut group = criterion.benchmark_group("perft");
    group.throughput(Throughput::Elements(perft(&start, &Ruleset::YESHOU, 4)));
    group.bench_function("depth 4", |b| b.iter(|| perft(black_box(&start), &Ruleset::YESHOU, 4)));
    group.finish();
}

/// The records of a game of a line, as the road of a move makes them.
fn records(lines: &Lines) -> Vec<Record> {
    let control = TimeControl::Increment { initial: Span::from_days(1), increment: Span::from_secs(5) };
    let settings = Settings { time_control: control, ..usual::usual() };
    let written = |sequence, event: Event| Record { sequence, written: event.at, event };
    let mut records = vec![written(1, create(Arc::new(settings.into()), None, BEGIN))];
    let mut game = Game::fold(&records).expect("a creation");
    for ply in 0..PLIES {
        let now = BEGIN + Span::from_secs(u64::try_from(ply).expect("small"));
        let event = decide(&game, &a_move(lines, ply), Some(request(ply)), now).expect("a legal move");
        let record = written(game.sequence() + 1, event);
        game.apply(&record);
        records.push(record);
    }
    records
}

fn a_move(lines: &Lines, ply: usize) -> Command {
    let expected_ply = u32::try_from(ply).ok();
    Command::Move { side: mover(ply), mv: lines.of(0)[ply].mv, expected_ply, offer_draw: false }
}

fn request(ply: usize) -> Request {
    Request { caller: Caller::Seat(mover(ply)), id: u128::try_from(ply).expect("small"), digest: 1 }
}

fn games(criterion: &mut Criterion) {
    let lines = Lines::new();
    let records = records(&lines);
    let (last, before) = records.split_last().expect("records");
    let game = Game::fold(before).expect("a creation");
    let now = last.event.at;
    let command = a_move(&lines, PLIES - 1);
    criterion.bench_function("decide a move", |b| {
        b.iter(|| decide(black_box(&game), black_box(&command), Some(request(PLIES)), now));
    });
    criterion.bench_function("apply a move", |b| {
        b.iter_batched_ref(|| game.clone(), |game| game.apply(black_box(last)), BatchSize::SmallInput);
    });
    criterion.bench_function("fold a game of 100 plies", |b| b.iter(|| Game::fold(black_box(&records))));
}

criterion_group!(benches, rules, games);
criterion_main!(benches);
