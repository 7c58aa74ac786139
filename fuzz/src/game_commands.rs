//! Any commands at any times, asked of one game.

use jungle_referee::game::{Command, Record, Span, Time};
use jungle_referee::rules::{Move, Side, Square};

use super::game::ms;
use super::game::play::{Play, settings, some_request};
use super::support::Dice;

/// The most commands of one game.
const STEPS: usize = 400;

/// A command, what it is about, and when it comes.
type Step = [u8; 6];

/// The first eight bytes pick the settings, each six that follow are a command. However it goes, the clocks stay
/// true, the log tells the whole game, and the game ends and stays ended.
pub fn game_commands(data: &[u8]) {
    let _ = told(data);
}

/// The log of such a game.
pub fn told(data: &[u8]) -> Vec<Record> {
    let Some((seed, steps)) = data.split_first_chunk() else { return Vec::new() };
    let mut play = Play::new(settings(&mut Dice(u64::from_le_bytes(*seed))));
    let steps = steps.as_chunks().0;
    for step in steps.iter().take(STEPS) {
        take(&mut play, step);
    }
    play.check_fold();
    if seed[0] & 1 == 0 {
        play.players_stall();
    } else {
        play.time_runs_out();
    }
    let ended = play.table.log.len();
    for step in steps.iter().take(STEPS) {
        take(&mut play, step);
    }
    assert_eq!(play.table.log.len(), ended, "an ended game stays as it is");
    play.check_fold();
    play.check_bytes();
    play.table.log
}

fn take(play: &mut Play, step: &Step) {
    let [what, one, two, wait, long, lag] = *step;
    let lag = Span::from_micros(u64::from(lag & 0x0f).pow(5));
    if what == u8::MAX {
        return play.restart(Span::from_micros(u64::from(long).pow(5)), lag);
    }
    let at = time(play, wait, long);
    let command = command(play, what, one, two);
    let request = some_request(&mut Dice(play.table.log.len() as u64), &command);
    let _ = play.ask(at, lag, &command, request);
}

/// About now, or about the game's next deadline.
fn time(play: &Play, wait: u8, long: u8) -> Time {
    let long = u64::from(long);
    let deadline = play.game().deadline().unwrap_or(play.now);
    let at = match wait % 8 {
        0 => deadline,
        1 => Time::from_micros(deadline.micros() - 1),
        2 => deadline + Span::from_micros(1 + long),
        3 => deadline + Span::from_days(long),
        4 => Time::from_micros(play.now.micros().midpoint(deadline.micros())),
        5 => play.now + ms(5_000),
        6 => play.now + ms(long * long),
        _ => play.now,
    };
    at.max(play.now)
}

fn command(play: &Play, what: u8, one: u8, two: u8) -> Command {
    let side = Side::ALL[usize::from(one & 1)];
    match what % 16 {
        0..=6 => allowed(play, one, two),
        7 => any_move(side, one, two),
        8 => Command::OfferDraw(side),
        9 => Command::TakeBackDraw(side),
        10 => Command::AcceptDraw(side),
        11 => Command::DeclineDraw(side),
        12 => Command::Arrive(side),
        13 => Command::Depart(side),
        14 => Command::Show(side),
        _ if two == 0 => Command::Leave(side),
        _ if two == 1 => Command::Abort { by_creator: one & 1 == 0, reason: "so be it".into() },
        _ => Command::Tick,
    }
}

/// A move that the rules allow, if there is one.
fn allowed(play: &Play, one: u8, two: u8) -> Command {
    let line = play.game().line();
    let legal = line.legal_moves().moves;
    let Some(legal) = legal.get(usize::from(one) % legal.len().max(1)) else { return Command::Tick };
    let side = line.position().side_to_move();
    Command::Move { side, mv: legal.mv, expected_ply: Some(line.ply()), offer_draw: two & 7 == 0 }
}

/// A move between any two squares, for a ply that may be another.
fn any_move(side: Side, one: u8, two: u8) -> Command {
    let square = |byte: u8| Square::ALL[usize::from(byte >> 1) % Square::ALL.len()];
    let expected_ply = [None, Some(u32::from(one))][usize::from(two & 1)];
    Command::Move { side, mv: Move { from: square(one), to: square(two) }, expected_ply, offer_draw: two & 2 == 0 }
}
