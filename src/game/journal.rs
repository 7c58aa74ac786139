//! A game's own log in memory: its records as bytes, one after the other.
//!
//! A million open games live in these bytes, so they are few. They are written once and read from a
//! [`Cursor`], which carries what the next record's short form leaves out.

use super::clock::{ClockStart, Time};
use super::code::{CodeError, Hints, Reader, Writer};
use super::event::{Kind, Moved, Record};
use super::state::Game;

/// The records of a game, first to last.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    bytes: Vec<u8>,
    end: Cursor,
}

/// A place between two records of a journal, and what is known there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    offset: u32,
    sequence: u32,
    ply: u32,
    timed: bool,
    written: Time,
    since: Option<Time>,
}

impl Default for Cursor {
    fn default() -> Self {
        Self { offset: 0, sequence: 0, ply: 0, timed: false, written: Time::from_micros(0), since: None }
    }
}

impl Cursor {
    /// The sequence of the record before it; 0 at the beginning.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence.into()
    }

    fn hints(&self) -> Hints {
        Hints { since: self.since, ply: self.ply }
    }

    /// Goes beyond a record that ends at `offset`.
    fn pass(&mut self, record: &Record, offset: usize) {
        self.offset = u32::try_from(offset).unwrap_or(u32::MAX);
        self.sequence += 1;
        self.written = record.written;
        match &record.event.kind {
            Kind::Created(settings) => {
                self.timed = settings.time_control.initial().is_some();
                if settings.clock_start == ClockStart::AtCreation {
                    self.start_clock(record.written);
                }
            }
            Kind::SeatShown { starts: true, .. } | Kind::Started => self.start_clock(record.written),
            Kind::Moved(_) => {
                self.ply += 1;
                self.start_clock(record.written);
            }
            Kind::TimeExpired(_) => self.since = Some(record.event.at),
            Kind::Resumed { down_since } => {
                let down = record.written.since(*down_since);
                self.since = self.since.map(|since| (since + down).min(record.written.max(since)));
            }
            Kind::SeatShown { starts: false, .. }
            | Kind::Refused { .. }
            | Kind::DrawOffered(_)
            | Kind::DrawTakenBack(_)
            | Kind::DrawDeclined(_)
            | Kind::DrawAccepted(_)
            | Kind::SeatLeft(_)
            | Kind::SeatAway(_)
            | Kind::SeatReturned(_)
            | Kind::AwayExpired(_)
            | Kind::Aborted(_) => {}
        }
    }

    fn start_clock(&mut self, at: Time) {
        self.since = self.timed.then_some(at);
    }
}

/// How much a journal that is full grows by: little, since most games wait for their next move.
const GROWTH: usize = 16;

impl Journal {
    /// The sequence of the last record; 0 if there is none.
    #[must_use]
    pub fn head(&self) -> u64 {
        self.end.sequence()
    }

    /// The place after the last record.
    #[must_use]
    pub fn end(&self) -> Cursor {
        self.end
    }

    /// Writes the next record down.
    pub fn push(&mut self, record: &Record) {
        let mut scratch = Vec::with_capacity(64);
        let mut writer = Writer { out: &mut scratch };
        writer.difference(record.event.at, self.end.written);
        writer.difference(record.written, record.event.at);
        writer.event(&record.event, Some(self.end.hints()));
        if self.bytes.capacity() - self.bytes.len() < scratch.len() {
            self.bytes.reserve_exact(scratch.len() + self.bytes.len() / GROWTH);
        }
        self.bytes.extend_from_slice(&scratch);
        self.end.pass(record, self.bytes.len());
    }

    /// The record after the cursor, which goes beyond it; `None` at the end.
    ///
    /// # Panics
    /// If the cursor is another journal's.
    pub fn read(&self, cursor: &mut Cursor) -> Option<Record> {
        if cursor.sequence >= self.end.sequence {
            return None;
        }
        let record = self.try_read(cursor).expect("a journal reads what it wrote");
        Some(record)
    }

    fn try_read(&self, cursor: &mut Cursor) -> Result<Record, CodeError> {
        let mut reader = Reader { bytes: &self.bytes, next: usize::try_from(cursor.offset).unwrap_or(usize::MAX) };
        let at = reader.difference(cursor.written)?;
        let written = reader.difference(at)?;
        let event = reader.event(at, Some(cursor.hints()))?;
        let record = Record { sequence: cursor.sequence() + 1, written, event };
        cursor.pass(&record, reader.next);
        Ok(record)
    }

    /// All records, from the first.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        let mut cursor = Cursor::default();
        std::iter::from_fn(move || self.read(&mut cursor))
    }

    /// The moves, first to last.
    #[must_use]
    pub fn moves(&self) -> Vec<Moved> {
        let mut moves = Vec::with_capacity(usize::try_from(self.end.ply).unwrap_or(0));
        moves.extend(self.records().filter_map(|record| {
            let Kind::Moved(moved) = record.event.kind else { return None };
            Some(moved)
        }));
        moves
    }

    /// The game as of a sequence, and the cursor after it; `None` if that is 0 or lies beyond the head.
    #[must_use]
    pub fn fold_to(&self, sequence: u64) -> Option<(Game, Cursor)> {
        if sequence > self.head() {
            return None;
        }
        let mut cursor = Cursor::default();
        let mut game: Option<Game> = None;
        while cursor.sequence() < sequence {
            let record = self.read(&mut cursor)?;
            match &mut game {
                Some(game) => game.apply(&record),
                None => game = Game::from_creation(&record),
            }
        }
        Some((game?, cursor))
    }

    /// Whether a request id may be in it. `false` is certain.
    #[must_use]
    pub fn may_hold(&self, request_id: u128) -> bool {
        memchr::memmem::find(&self.bytes, &request_id.to_be_bytes()).is_some()
    }

    /// How much memory its records take.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.capacity()
    }
}
