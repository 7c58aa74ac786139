//! A game's own log in memory: its records as bytes, one after the other.
//!
//! A million open games live in these bytes, so they are few. They are written once and read from a
//! [`Cursor`], which carries what the next record's short form leaves out.

use std::sync::Arc;

use super::clock::Time;
use super::code::{CodeError, Hints, Reader, Writer};
use super::event::{Kind, Moved, Record};
use super::settings::{Marks, Settings};
use super::state::Game;

/// The records of a game, first to last.
#[derive(Clone, Debug)]
pub struct Journal {
    /// How the game was set up; `None` before its creation.
    settings: Option<Arc<Settings>>,
    /// The first record, by itself: it never grows, so it leaves no gap in memory when the others move.
    creation: Box<[u8]>,
    /// The other records.
    bytes: Vec<u8>,
    /// When the last record was written.
    written: Time,
}

impl Default for Journal {
    fn default() -> Self {
        Self { settings: None, creation: Box::default(), bytes: Vec::new(), written: Time::from_micros(0) }
    }
}

/// A place between two records of a journal, and what is known there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Among the bytes after the creation.
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
        self.sequence += 1;
        self.written = record.written;
        if let Kind::Created(creation) = &record.event.kind {
            self.timed = creation.settings.time_control.initial().is_some();
        } else {
            self.offset = u32::try_from(offset).unwrap_or(u32::MAX);
        }
        self.ply += u32::from(matches!(record.event.kind, Kind::Moved(_)));
        self.since = record.clock_after(self.timed, self.since);
    }
}

/// A journal that is full grows to a multiple of this, less the word that the allocator keeps with it: by
/// little, since most games wait for their next move, and to few sizes, so that the room that one game
/// leaves is of use to another.
const GRAIN: usize = 64;

impl Journal {
    /// Writes the next record down, and folds it into the game, which is `None` before its creation.
    pub fn write(&mut self, game: &mut Option<Game>, record: &Record) {
        self.push(game.as_ref(), record);
        match game {
            Some(game) => game.apply(record),
            None => *game = Game::from_creation(record),
        }
    }

    fn push(&mut self, before: Option<&Game>, record: &Record) {
        let mut scratch = Vec::with_capacity(64);
        let mut writer = Writer { out: &mut scratch, settings_apart: true };
        writer.difference(record.event.at, self.written);
        writer.difference(record.written, record.event.at);
        writer.event(&record.event, Some(before.map_or_else(Hints::default, hints_of)));
        self.written = record.written;
        if let Kind::Created(creation) = &record.event.kind {
            self.settings = Some(Arc::clone(&creation.settings));
            self.creation = scratch.into();
            return;
        }
        if self.bytes.capacity() - self.bytes.len() < scratch.len() {
            let room = (self.bytes.len() + scratch.len() + size_of::<usize>()).next_multiple_of(GRAIN);
            self.bytes.reserve_exact(room - size_of::<usize>() - self.bytes.len());
        }
        self.bytes.extend_from_slice(&scratch);
    }

    /// The place after the last record, where the game is as it is now.
    #[must_use]
    pub fn end(&self, game: &Game) -> Cursor {
        let Hints { since, ply } = hints_of(game);
        Cursor {
            offset: u32::try_from(self.bytes.len()).unwrap_or(u32::MAX),
            sequence: u32::try_from(game.sequence()).unwrap_or(u32::MAX),
            ply,
            timed: game.settings().time_control.initial().is_some(),
            written: self.written,
            since,
        }
    }

    /// The record after the cursor, which goes beyond it; `None` at the end.
    ///
    /// # Panics
    /// If the cursor is another journal's.
    pub fn read(&self, cursor: &mut Cursor) -> Option<Record> {
        let next = usize::try_from(cursor.offset).unwrap_or(usize::MAX);
        let (bytes, next) = if cursor.sequence == 0 { (&*self.creation, 0) } else { (&*self.bytes, next) };
        if next == bytes.len() {
            return None;
        }
        let reader = Reader { bytes, next, settings: self.settings.as_ref() };
        let record = try_read(reader, cursor).expect("a journal reads what it wrote");
        Some(record)
    }

    /// All records, from the first.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        let mut cursor = Cursor::default();
        std::iter::from_fn(move || self.read(&mut cursor))
    }

    /// What the game is found by.
    #[must_use]
    pub fn marks(&self) -> Marks {
        self.records().next().and_then(|record| record.event.marks().cloned()).unwrap_or_default()
    }

    /// The moves, first to last.
    #[must_use]
    pub fn moves(&self) -> Vec<Moved> {
        let moves = self.records().filter_map(|record| {
            let Kind::Moved(moved) = record.event.kind else { return None };
            Some(moved)
        });
        moves.collect()
    }

    /// The place after the record of a sequence, 0 being the beginning; `None` if it lies beyond the head.
    #[must_use]
    pub fn seek(&self, sequence: u64) -> Option<Cursor> {
        let mut cursor = Cursor::default();
        while cursor.sequence() < sequence {
            self.read(&mut cursor)?;
        }
        Some(cursor)
    }

    /// The game as of a sequence; `None` if that is 0 or lies beyond the head.
    #[must_use]
    pub fn fold_to(&self, sequence: u64) -> Option<Game> {
        let mut records = self.records();
        let mut game = Game::from_creation(&records.next()?)?;
        while game.sequence() < sequence {
            game.apply(&records.next()?);
        }
        (game.sequence() == sequence).then_some(game)
    }

    /// Whether a request id may be in it. `false` is certain.
    #[must_use]
    pub fn may_hold(&self, request_id: u128) -> bool {
        let id = request_id.to_be_bytes();
        [&*self.creation, &*self.bytes].into_iter().any(|bytes| memchr::memmem::find(bytes, &id).is_some())
    }

    /// Shares the settings of other games that are set up alike: the game's own, once those are shared.
    pub fn share_settings(&mut self, game: &Game) {
        self.settings = Some(Arc::clone(game.settings()));
    }
}

fn try_read(mut reader: Reader<'_>, cursor: &mut Cursor) -> Result<Record, CodeError> {
    let at = reader.difference(cursor.written)?;
    let written = reader.difference(at)?;
    let event = reader.event(at, Some(cursor.hints()))?;
    let record = Record { sequence: cursor.sequence() + 1, written, event };
    cursor.pass(&record, reader.next);
    Ok(record)
}

fn hints_of(game: &Game) -> Hints {
    Hints { since: game.running().map(|(_, since)| since), ply: game.line().ply() }
}
