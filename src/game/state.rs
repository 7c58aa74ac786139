//! The state of a game: the fold of its log, and who is at the board.

use std::sync::Arc;

use super::clock::{ClockStart, Span, Time};
use super::decide::ABSENCE_NOTICE;
use super::event::{Ending, Kind, Moved, OfferResult, Record};
use super::settings::Settings;
use crate::rules::{Line, Side};

/// Where a game stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Created, not started.
    Waiting,
    /// Running.
    Running,
    /// Over.
    Ended,
}

/// A draw offer that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Who made it.
    pub side: Side,
    /// The ply it was made at.
    pub ply: u32,
}

/// What time alone will do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// When.
    pub at: Time,
    /// What.
    pub kind: DueKind,
}

/// What time alone can do. Of two things due at the same instant the earlier listed happens first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DueKind {
    /// The given start time comes.
    Start,
    /// The window for both seats to show themselves closes.
    JoinWindow,
    /// The side to move runs out of time.
    Flag(Side),
    /// A side has been away for too long.
    AwayLimit(Side),
    /// Nothing has happened for too long.
    Idle,
    /// A side has been absent long enough for its countdown to start.
    AwayNotice(Side),
}

/// How and when a game ended. Apart from the game, since most games at a server have not.
#[derive(Clone, Debug, PartialEq, Eq)]
struct End {
    at: Time,
    ending: Ending,
}

/// A game. All of it is the fold of its log, but for who is present: streams come and go without an
/// event, and only an absence that lasts becomes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Game {
    settings: Arc<Settings>,
    line: Line,
    sequence: u64,
    created_at: Time,
    started_at: Option<Time>,
    end: Option<Box<End>>,
    remaining: [Span; 2],
    running_since: Option<Time>,
    expiries: [u8; 2],
    shown: [bool; 2],
    offer: Option<Offer>,
    /// By side: the ply after that of its latest offer; 0 if there was none.
    offered: [u32; 2],
    refusals: [u32; 2],
    last_activity: Time,
    away_since: [Option<Time>; 2],
    /// For how long the server has been down in all.
    down_for: Span,
    /// Not of the log: since when each side has had no stream open; `None` while present.
    absent_since: [Option<Time>; 2],
}

impl Game {
    /// The game that a creation's record makes; `None` if the record is no creation.
    #[must_use]
    pub fn from_creation(record: &Record) -> Option<Self> {
        let Kind::Created(creation) = &record.event.kind else {
            return None;
        };
        let settings = &creation.settings;
        let at = record.event.at;
        let mut game = Self {
            line: Line::new(settings.start, settings.ruleset),
            settings: Arc::clone(settings),
            sequence: record.sequence,
            created_at: at,
            started_at: None,
            end: None,
            remaining: [settings.time_control.initial().unwrap_or_default(); 2],
            running_since: record.clock_after(settings.time_control.initial().is_some(), None),
            expiries: [0; 2],
            shown: [false; 2],
            offer: None,
            offered: [0; 2],
            refusals: [0; 2],
            last_activity: record.written,
            away_since: [None; 2],
            down_for: Span::ZERO,
            absent_since: [Some(at); 2],
        };
        if settings.clock_start == ClockStart::AtCreation {
            game.started_at = Some(at);
        }
        Some(game)
    }

    /// The game that a whole log makes; `None` if it does not begin with a creation.
    #[must_use]
    pub fn fold(records: &[Record]) -> Option<Self> {
        let (creation, rest) = records.split_first()?;
        let mut game = Self::from_creation(creation)?;
        for record in rest {
            game.apply(record);
        }
        Some(game)
    }

    /// Writes the facts of the next record down. Judges nothing and cannot fail.
    pub fn apply(&mut self, record: &Record) {
        let event = &record.event;
        self.sequence = record.sequence;
        match &event.kind {
            Kind::Created(_) => {}
            Kind::SeatShown { side, starts } => {
                self.shown[side.index()] = true;
                if *starts {
                    self.started_at = Some(event.at);
                }
            }
            Kind::Started => self.started_at = Some(event.at),
            Kind::Moved(moved) => self.apply_move(moved),
            Kind::Refused { side, .. } => self.refusals[side.index()] += 1,
            Kind::TimeExpired(side) => {
                self.expiries[side.index()] += 1;
                let fresh = self.settings.time_control.initial().unwrap_or_default();
                self.remaining[side.index()] = if event.ending.is_some() { Span::ZERO } else { fresh };
            }
            Kind::DrawOffered(side) => self.open_offer(*side, self.line.ply()),
            Kind::DrawTakenBack(_) | Kind::DrawDeclined(_) | Kind::DrawAccepted(_) => self.offer = None,
            Kind::SeatAway(side) => self.away_since[side.index()] = Some(event.at),
            Kind::SeatReturned(side) => self.away_since[side.index()] = None,
            Kind::Resumed { down_since } => self.resume(*down_since, record.written),
            Kind::SeatLeft(_) | Kind::AwayExpired(_) | Kind::Aborted(_) => {}
        }
        self.running_since = record.clock_after(self.settings.time_control.initial().is_some(), self.running_since);
        // Streams coming and going must not keep a game alive for ever.
        if !matches!(event.kind, Kind::SeatAway(_) | Kind::SeatReturned(_)) {
            self.last_activity = record.written;
        }
        if let Some(ending) = &event.ending {
            self.end(ending.clone(), event.at);
        }
    }

    /// The server is back: away countdowns begin anew, and nobody is known to be there.
    fn resume(&mut self, down_since: Time, written: Time) {
        self.down_for = self.down_for + written.since(down_since);
        self.away_since = [None; 2];
        self.absent_since = [Some(written); 2];
    }

    fn apply_move(&mut self, moved: &Moved) {
        let side = moved.side.index();
        let ply = self.line.ply();
        self.line.advance(moved.mv);
        self.remaining[side] = self.settings.time_control.after_move(self.remaining[side].minus(moved.charged));
        self.expiries[side] = 0;
        if self.offer.is_some_and(|offer| offer.side != moved.side) {
            self.offer = None;
        }
        if moved.offer == OfferResult::Made {
            self.open_offer(moved.side, ply);
        }
    }

    fn open_offer(&mut self, side: Side, ply: u32) {
        self.offer = Some(Offer { side, ply });
        self.offered[side.index()] = ply.saturating_add(1);
    }

    fn end(&mut self, ending: Ending, at: Time) {
        if let Some(since) = self.running_since.take() {
            // A clock that a move has just started has run for no time at all: `at` is not after it.
            let running = &mut self.remaining[self.line.position().side_to_move().index()];
            *running = running.minus(at.since(since));
        }
        self.end = Some(Box::new(End { at, ending }));
        self.offer = None;
        self.away_since = [None; 2];
    }

    /// Notes that a side's first stream has opened, at a time up to which all is settled.
    pub fn arrive(&mut self, side: Side) {
        self.absent_since[side.index()] = None;
    }

    /// Notes that a side's last stream has closed at `now`.
    pub fn depart(&mut self, side: Side, now: Time) {
        self.absent_since[side.index()] = Some(now);
    }

    /// What time alone will do next, if nothing else happens; `None` once the game is over.
    #[must_use]
    pub fn due(&self) -> Option<Due> {
        let mut due = self.clock_due()?;
        if self.status() == Status::Running && self.settings.away_limit.is_some() {
            for side in [Side::Red, Side::Blue] {
                if let Some(away) = self.away_due(side)
                    && (away.at, away.kind) < (due.at, due.kind)
                {
                    due = away;
                }
            }
        }
        Some(due)
    }

    /// When time alone will next change the game: see [`Game::due`].
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.due().map(|due| due.at)
    }

    /// What time alone will do next, presence left aside: the same for all who fold the same log.
    #[must_use]
    pub fn clock_due(&self) -> Option<Due> {
        let (at, kind) = match self.status() {
            Status::Ended => return None,
            Status::Waiting => match self.settings.clock_start {
                // A time that passed while the game was being made, or the server down, starts it at once.
                ClockStart::At(at) => (at.max(self.last_activity), DueKind::Start),
                ClockStart::WhenBothShown(window) => (self.created_at + window + self.down_for, DueKind::JoinWindow),
                ClockStart::AtCreation => return None,
            },
            Status::Running => {
                let side = self.line.position().side_to_move();
                match self.running_since {
                    Some(since) => (since + self.remaining[side.index()] + self.settings.grace, DueKind::Flag(side)),
                    None => (self.last_activity + self.settings.idle_limit, DueKind::Idle),
                }
            }
        };
        Some(Due { at, kind })
    }

    fn away_due(&self, side: Side) -> Option<Due> {
        if let Some(at) = self.away_deadline(side) {
            return Some(Due { at, kind: DueKind::AwayLimit(side) });
        }
        let since = self.absent_since[side.index()]?.max(self.started_at?);
        Some(Due { at: since + ABSENCE_NOTICE, kind: DueKind::AwayNotice(side) })
    }

    /// When a side whose countdown runs will have left.
    #[must_use]
    pub fn away_deadline(&self, side: Side) -> Option<Time> {
        Some(self.away_since[side.index()]? + self.settings.away_limit?)
    }

    /// Whether a side's away countdown is running.
    #[must_use]
    pub fn is_away(&self, side: Side) -> bool {
        self.away_since[side.index()].is_some()
    }

    /// Whether a side has a stream open.
    #[must_use]
    pub fn is_present(&self, side: Side) -> bool {
        self.absent_since[side.index()].is_none()
    }

    /// Whether a side has shown itself, in a game that waits for both.
    #[must_use]
    pub fn has_shown(&self, side: Side) -> bool {
        self.shown[side.index()]
    }

    /// What a side has left at `now`, grace apart; `None` if untimed.
    #[must_use]
    pub fn remaining(&self, side: Side, now: Time) -> Option<Span> {
        self.settings.time_control.initial()?;
        let left = self.remaining[side.index()];
        Some(match self.running() {
            Some((running, since)) if running == side => left.minus(now.since(since)),
            Some(_) | None => left,
        })
    }

    /// Whose clock is running and since when.
    #[must_use]
    pub fn running(&self) -> Option<(Side, Time)> {
        Some((self.line.position().side_to_move(), self.running_since?))
    }

    /// Shares the settings of other games that are set up alike.
    ///
    /// # Panics
    /// If they are not.
    pub fn share_settings(&mut self, shared: Arc<Settings>) {
        assert_eq!(self.settings, shared, "only games that are set up alike share");
        self.settings = shared;
    }

    /// How the game was set up.
    #[must_use]
    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// The position, its ply, and what the bars know.
    #[must_use]
    pub fn line(&self) -> &Line {
        &self.line
    }

    /// The sequence of the last event.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Where it stands.
    #[must_use]
    pub fn status(&self) -> Status {
        match (&self.end, self.started_at) {
            (Some(_), _) => Status::Ended,
            (None, Some(_)) => Status::Running,
            (None, None) => Status::Waiting,
        }
    }

    /// How it ended.
    #[must_use]
    pub fn ending(&self) -> Option<&Ending> {
        self.end.as_ref().map(|end| &end.ending)
    }

    /// When it was created.
    #[must_use]
    pub fn created_at(&self) -> Time {
        self.created_at
    }

    /// When it started.
    #[must_use]
    pub fn started_at(&self) -> Option<Time> {
        self.started_at
    }

    /// When it ended.
    #[must_use]
    pub fn ended_at(&self) -> Option<Time> {
        self.end.as_ref().map(|end| end.at)
    }

    /// The open draw offer.
    #[must_use]
    pub fn offer(&self) -> Option<Offer> {
        self.offer
    }

    /// Whether a side has made its one offer of the current ply.
    #[must_use]
    pub fn has_offered(&self, side: Side) -> bool {
        self.offered[side.index()] == self.line.ply().saturating_add(1)
    }

    /// How many expiries in a row a side has on its tally.
    #[must_use]
    pub fn expiries(&self, side: Side) -> u8 {
        self.expiries[side.index()]
    }

    /// How many of a side's moves were refused, in a game that counts them.
    #[must_use]
    pub fn refusals(&self, side: Side) -> u32 {
        self.refusals[side.index()]
    }
}
