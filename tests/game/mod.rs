//! One game on the test's own table: asked as the runtime asks it, at times that the test names.
//!
//! A point in time is a number of milliseconds after the game's creation.
#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::Arc;

use jungle_referee::game::{
    Command, Event, Game, Kind, Moved, Record, Refusal, Settings, Span, Time, TimeControl, create, decide,
};
use jungle_referee::rules::{Reason, Ruleset, Side};

use super::support::{self, mv};

pub(crate) mod play;
mod usual;
pub(crate) use usual::usual;

/// One second, in the unit of the tests.
pub(crate) const S: u64 = 1_000;

/// The point so many milliseconds after the creation.
pub(crate) const fn t(millis: u64) -> Time {
    Time::from_micros(1_790_000_000_000_000 + millis * 1_000)
}

/// So many milliseconds.
pub(crate) const fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

/// So much for every move.
pub(crate) const fn per_move(millis: u64) -> TimeControl {
    TimeControl::PerMove(ms(millis))
}

/// A stock with an increment.
pub(crate) const fn stock(initial: u64, increment: u64) -> TimeControl {
    TimeControl::Increment { initial: ms(initial), increment: ms(increment) }
}

/// The usual game with a clock.
pub(crate) fn timed(time_control: TimeControl, grace: u64) -> Settings {
    Settings { time_control, grace: ms(grace), ..usual() }
}

/// The usual game in which two expiries in a row lose.
pub(crate) fn two_expiries(limit: u64, grace: u64) -> Settings {
    let ruleset = Ruleset { timeouts_to_lose: 2, ..Ruleset::YESHOU };
    Settings { ruleset, ..timed(per_move(limit), grace) }
}

/// A command to move.
pub(crate) fn move_of(side: Side, text: &str) -> Command {
    Command::Move { side, mv: mv(text), expected_ply: None, offer_draw: false }
}

/// A command to move and offer a draw.
pub(crate) fn move_offering(side: Side, text: &str) -> Command {
    Command::Move { side, mv: mv(text), expected_ply: None, offer_draw: true }
}

/// A game and its log.
#[derive(Clone)]
pub(crate) struct Table {
    pub(crate) game: Game,
    pub(crate) log: Vec<Record>,
}

impl Table {
    /// A game created at 0.
    pub(crate) fn new(settings: Settings) -> Self {
        let event = create(Arc::new(settings.into()), None, t(0));
        let record = Record { sequence: 1, written: t(0), event };
        let game = Game::from_creation(&record).expect("a creation makes a game");
        Self { game, log: vec![record] }
    }

    /// Lets happen what is due at `now`, and answers with how many events that made.
    pub(crate) fn settle(&mut self, now: Time) -> usize {
        let before = self.log.len();
        while self.game.deadline().is_some_and(|deadline| deadline <= now) {
            let event = decide(&self.game, &Command::Tick, None, now).expect("what is due happens");
            self.write(event, now);
            assert!(self.log.len() - before < 100, "time is settled in a few steps");
        }
        self.log.len() - before
    }

    /// Notes whom a command brings or takes away, as the runtime does.
    pub(crate) fn note_presence(&mut self, arrival: Time, command: &Command) {
        match command {
            Command::Arrive(side) => self.game.arrive(*side),
            Command::Depart(side) => self.game.depart(*side, arrival),
            Command::Show(_)
            | Command::Move { .. }
            | Command::OfferDraw(_)
            | Command::TakeBackDraw(_)
            | Command::AcceptDraw(_)
            | Command::DeclineDraw(_)
            | Command::Leave(_)
            | Command::Abort { .. }
            | Command::Tick => {}
        }
    }

    /// Asks at a time, as the runtime does: time first, then the command.
    pub(crate) fn ask_at(&mut self, arrival: Time, written: Time, command: &Command) -> Result<Record, Refusal> {
        self.settle(arrival);
        self.note_presence(arrival, command);
        let event = decide(&self.game, command, None, arrival)?;
        Ok(self.write(event, written))
    }

    /// Asks at so many milliseconds; what happens is written at once.
    pub(crate) fn ask(&mut self, at: u64, command: &Command) -> Result<Record, Refusal> {
        self.ask_at(t(at), t(at), command)
    }

    /// Asks for what must be allowed.
    #[track_caller]
    pub(crate) fn does(&mut self, at: u64, command: &Command) -> Record {
        self.ask(at, command).unwrap_or_else(|refusal| panic!("{command:?} at {at}: {refusal}"))
    }

    /// Asks for what must be refused.
    #[track_caller]
    pub(crate) fn may_not(&mut self, at: u64, command: &Command) -> Refusal {
        match self.ask(at, command) {
            Ok(record) => panic!("{command:?} at {at} was allowed: {record:?}"),
            Err(refusal) => refusal,
        }
    }

    /// A move of whoever is to move.
    #[track_caller]
    pub(crate) fn moves(&mut self, at: u64, text: &str) -> Moved {
        let side = self.game.line().position().side_to_move();
        let record = self.does(at, &move_of(side, text));
        let Kind::Moved(moved) = record.event.kind else { panic!("no move: {record:?}") };
        moved
    }

    /// Quiet moves of both sides that end nothing, so many plies.
    pub(crate) fn plays_on(&mut self, at: u64, plies: u32) {
        for _ in 0..plies {
            let line = *self.game.line();
            let side = line.position().side_to_move();
            let quiet = line.legal_moves().moves.into_iter().find(|legal| {
                let mut after = line;
                after.advance(legal.mv);
                legal.captured.is_none() && after.ending(side).is_none()
            });
            let mv = quiet.expect("a quiet move").mv;
            self.does(at, &Command::Move { side, mv, expected_ply: None, offer_draw: false });
        }
    }

    pub(crate) fn write(&mut self, event: Event, written: Time) -> Record {
        let record = Record { sequence: self.game.sequence() + 1, written, event };
        self.game.apply(&record);
        self.log.push(record.clone());
        record
    }

    /// The last event.
    pub(crate) fn last(&self) -> &Record {
        self.log.last().expect("a log begins with the creation")
    }

    /// How the game ended, and when.
    pub(crate) fn ended(&self) -> Option<(Option<Side>, Reason, Time)> {
        let outcome = self.game.ending()?.outcome;
        Some((outcome.winner, outcome.reason, self.game.ended_at()?))
    }

    /// What a side has left at a time.
    pub(crate) fn left(&self, side: Side, at: u64) -> Span {
        self.game.remaining(side, t(at)).expect("a clock")
    }
}
