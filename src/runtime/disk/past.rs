//! Reading back what earlier runs have written: everything is checked before anything is believed.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _};
use tracing::info;

use super::super::ids::GameId;
use super::super::log::Past;
use super::fault::OpenFault;
use super::rows::{EVENT_COLUMNS, EventRow, GAME_COLUMNS, GameRow, SignOfLife, signed};
use crate::game::{Game, Journal, Kind, Record, Time};

/// From how many events on their reading tells how far it is.
const LONG_READING: i64 = 100_000;

/// Which finished games are read back. Open games always are.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    /// Those that ended after this time,
    pub ended_after: Time,
    /// and of these at most so many, the newest.
    pub ended_at_most: usize,
}

/// Where an open game stands, as far as the writer must know.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// The number of its row.
    pub(super) number: i64,
    /// The last sequence written.
    pub(super) sequence: u64,
    pub(super) plies: i64,
}

/// What was read, and where the writer goes on.
pub(super) struct Reading {
    pub(super) past: Past,
    pub(super) heads: HashMap<GameId, Head>,
    /// The position of the last event.
    pub(super) position: i64,
    /// The number of the last game.
    pub(super) number: i64,
}

/// A game that is being read.
struct StoredGame {
    id: GameId,
    row: GameRow,
    /// As its events left it; `None` before the first.
    game: Option<Game>,
    journal: Journal,
    plies: i64,
    has_ended: bool,
}

struct Reader<'a> {
    connection: &'a Connection,
    path: &'a Path,
    /// The games to be read, by number.
    wanted: HashMap<i64, StoredGame>,
    /// The numbers of all the others.
    others: HashSet<i64>,
    last_game: i64,
    last_written: i64,
}

const READING_GAMES: &str = "reading the table games";
const READING_EVENTS: &str = "reading the table events";

/// Reads back the open games, and those finished ones that are kept.
pub(super) fn read(connection: &Connection, path: &Path, keep: Keep) -> Result<Reading, OpenFault> {
    let mut reader =
        Reader { connection, path, wanted: HashMap::new(), others: HashSet::new(), last_game: 0, last_written: 0 };
    reader.games(keep)?;
    let life = reader.sign_of_life()?;
    let position = reader.last_position()?;
    if position < life.position {
        let why = format!("the last event is {position}, but there were {} when the server last told", life.position);
        return Err(OpenFault::damaged(path, "the table events", why));
    }
    reader.events(position)?;
    reader.finish(position, life)
}

/// The position of the last event in the table; 0 if there is none.
pub(super) fn last_position(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT coalesce(max(position), 0) FROM events", [], |row| row.get(0))
}

impl Reader<'_> {
    fn damaged(&self, place: impl Into<String>, why: impl Into<String>) -> OpenFault {
        OpenFault::damaged(self.path, place, why)
    }

    fn last_position(&self) -> Result<i64, OpenFault> {
        last_position(self.connection).map_err(OpenFault::sqlite(self.path, READING_EVENTS))
    }

    /// Reads the table of games, and finds out which of them to read.
    fn games(&mut self, keep: Keep) -> Result<(), OpenFault> {
        let sqlite = || OpenFault::sqlite(self.path, READING_GAMES);
        let sql = format!("SELECT {GAME_COLUMNS} FROM games ORDER BY number");
        let mut statement = self.connection.prepare(&sql).map_err(sqlite())?;
        let mut rows = statement.query([]).map_err(sqlite())?;
        let mut ended = Vec::new();
        while let Some(row) = rows.next().map_err(sqlite())? {
            let number: i64 = row.get(0).map_err(sqlite())?;
            let place = || format!("the table games, number {number}");
            let found = GameRow::read(row).map_err(|error| self.damaged(place(), error.to_string()))?;
            let Some((_, row)) = found else {
                return Err(self.damaged(place(), "its checksum is wrong"));
            };
            let id = row.id.parse().map_err(|_| self.damaged(place(), "its id is no id"))?;
            self.last_game = number;
            match row.ended.as_ref().map(|ended| ended.at) {
                Some(at) if at <= signed(keep.ended_after.micros()) => {
                    self.others.insert(number);
                    continue;
                }
                Some(at) => ended.push((at, number)),
                None => {}
            }
            let game = StoredGame { id, row, game: None, journal: Journal::default(), plies: 0, has_ended: false };
            self.wanted.insert(number, game);
        }
        ended.sort_unstable();
        let too_many = ended.len().saturating_sub(keep.ended_at_most);
        for (_, number) in ended.drain(..too_many) {
            self.wanted.remove(&number);
            self.others.insert(number);
        }
        Ok(())
    }

    fn sign_of_life(&self) -> Result<SignOfLife, OpenFault> {
        let sql = "SELECT alive_at, position, checksum FROM sign_of_life WHERE number = 1";
        let place = "the table sign_of_life";
        let found = self.connection.query_row(sql, [], SignOfLife::read).optional();
        match found.map_err(OpenFault::sqlite(self.path, "reading the table sign_of_life"))? {
            None => Ok(SignOfLife { alive_at: 0, position: 0 }),
            Some(Some(life)) => Ok(life),
            Some(None) => Err(self.damaged(place, "its checksum is wrong")),
        }
    }

    /// Reads the events in the order in which they were written, from the first that is wanted on.
    fn events(&mut self, last: i64) -> Result<(), OpenFault> {
        let first = self.wanted.values().map(|game| game.row.first_position).min().unwrap_or(last).min(last);
        let sqlite = || OpenFault::sqlite(self.path, READING_EVENTS);
        let connection = self.connection;
        let sql = format!("SELECT {EVENT_COLUMNS} FROM events WHERE position >= ?1 ORDER BY position");
        let mut statement = connection.prepare(&sql).map_err(sqlite())?;
        let mut rows = statement.query([first]).map_err(sqlite())?;
        let total = last - first + 1;
        while let Some(row) = rows.next().map_err(OpenFault::sqlite(self.path, READING_EVENTS))? {
            let row =
                EventRow::read(row).map_err(|error| self.damaged("a row of the table events", error.to_string()))?;
            self.event(&row)?;
            let done = row.position - first + 1;
            if total >= LONG_READING && done % (total / 10) == 0 {
                info!(events = done, of = total, "reading the data file");
            }
        }
        Ok(())
    }

    fn event(&mut self, row: &EventRow<'_>) -> Result<(), OpenFault> {
        let position = row.position;
        let path = self.path;
        let damaged = |why: String| OpenFault::damaged(path, format!("the table events, position {position}"), why);
        let Some(game) = self.wanted.get_mut(&row.game) else {
            return if self.others.contains(&row.game) {
                self.last_written = self.last_written.max(row.written);
                Ok(())
            } else {
                Err(damaged(format!("there is no game with the number {}", row.game)))
            };
        };
        let record = row.record(game.id).map_err(|fault| damaged(format!("game {}: {fault}", game.id)))?;
        game.take(row, &record).map_err(|why| damaged(format!("game {}: {why}", game.id)))?;
        self.last_written = self.last_written.max(row.written);
        Ok(())
    }

    /// Compares the games with their events, and hands all over.
    fn finish(self, position: i64, life: SignOfLife) -> Result<Reading, OpenFault> {
        let mut games: Vec<(i64, StoredGame)> = self.wanted.into_iter().collect();
        games.sort_unstable_by_key(|(number, _)| *number);
        let mut heads = HashMap::new();
        for (number, game) in &games {
            let place = format!("game {}", game.id);
            game.agrees().map_err(|why| OpenFault::damaged(self.path, place, why))?;
            if !game.has_ended {
                let head = Head { number: *number, sequence: game.head(), plies: game.plies };
                heads.insert(game.id, head);
            }
        }
        let down_since = u64::try_from(life.alive_at.max(self.last_written)).unwrap_or(0);
        let past = Past {
            games: games
                .into_iter()
                .filter_map(|(_, stored)| Some((stored.id, stored.game?, stored.journal)))
                .collect(),
            down_since: Time::from_micros(down_since),
        };
        Ok(Reading { past, heads, position, number: self.last_game })
    }
}

impl StoredGame {
    /// The sequence of its last event so far.
    fn head(&self) -> u64 {
        self.game.as_ref().map_or(0, Game::sequence)
    }

    /// Takes its next record, if it can be that.
    fn take(&mut self, row: &EventRow<'_>, record: &Record) -> Result<(), String> {
        let next = self.head() + 1;
        if record.sequence != next {
            return Err(format!("its sequence is {}, and {next} is due", record.sequence));
        }
        if self.has_ended {
            return Err("the game had ended before".to_owned());
        }
        if matches!(record.event.kind, Kind::Created(_)) != (next == 1) {
            return Err("a game begins with its creation, and is created once".to_owned());
        }
        if next == 1 && row.position != self.row.first_position {
            return Err(format!("the game begins at position {}", self.row.first_position));
        }
        self.plies += i64::from(matches!(record.event.kind, Kind::Moved(_)));
        self.has_ended = record.event.ending.is_some();
        self.journal.write(&mut self.game, record);
        Ok(())
    }

    /// Whether its row tells the same as its events.
    fn agrees(&self) -> Result<(), String> {
        match &self.row.ended {
            _ if self.game.is_none() => Err("none of its events is there".to_owned()),
            None if self.has_ended => Err("it is open by the table games, and over by its events".to_owned()),
            Some(_) if !self.has_ended => Err("it is over by the table games, and open by its events".to_owned()),
            Some(ended) if ended.plies != self.plies => {
                Err(format!("it has {} plies by the table games, and {} by its events", ended.plies, self.plies))
            }
            None | Some(_) => Ok(()),
        }
    }
}
