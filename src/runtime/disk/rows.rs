//! Rows of the tables, with their checksums.
//!
//! A checksum is the first 8 bytes of a SHA-256 over all other columns, as a signed big-endian number. It is
//! there to find damage, not forgery. A row's place is summed too, and an event's game by its id, so
//! that a row is whole only where it belongs.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};
use sha2::{Digest as _, Sha256};

use super::super::ids::GameId;
use crate::game::{CodeError, Creation, Event, Kind, Record, Time, decode_event, encode_event, ruleset_hash};
use crate::rules::Side;

/// Of a game that has not ended, in `games.status`.
pub(super) const OPEN: &str = "OPEN";
/// Of a game that has ended.
pub(super) const ENDED: &str = "ENDED";

/// A checksum in the making: each part with its kind and length, so that no two rows look alike.
struct Sum(Sha256);

impl Sum {
    fn of(table: &str) -> Self {
        Self(Sha256::new()).bytes(table.as_bytes())
    }

    fn number(mut self, number: i64) -> Self {
        self.0.update([b'n']);
        self.0.update(number.to_be_bytes());
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.update([b'b']);
        self.0.update(bytes.len().to_be_bytes());
        self.0.update(bytes);
        self
    }

    fn maybe<T>(mut self, value: Option<T>, add: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            Some(value) => add(self, value),
            None => {
                self.0.update([b'-']);
                self
            }
        }
    }

    fn finish(self) -> i64 {
        let digest = self.0.finalize();
        digest[..8].iter().fold(0, |sum, byte| sum << 8 | i64::from(*byte))
    }
}

/// A count or a time as SQLite has it. Those beyond 2^63 do not happen.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn time(micros: i64) -> Time {
    Time::from_micros(u64::try_from(micros).unwrap_or(0))
}

/// An event before it has its place and its date.
pub(super) struct NewEvent {
    pub(super) game: GameId,
    pub(super) sequence: u64,
    at: Time,
    kind: &'static str,
    body: Vec<u8>,
    /// For a creation: the row of the game.
    pub(super) creation: Option<Box<GameRow>>,
    /// For an ending: what it adds to the row of the game.
    pub(super) ending: Option<Ended>,
    pub(super) is_ply: bool,
}

impl NewEvent {
    pub(super) fn of(game: GameId, sequence: u64, event: &Event) -> Self {
        let mut body = Vec::with_capacity(64);
        encode_event(event, &mut body);
        let creation = if let Kind::Created(creation) = &event.kind {
            Some(Box::new(GameRow::new(game, event.at, creation)))
        } else {
            None
        };
        let ending = event.ending.as_ref().map(|ending| Ended {
            winner: ending.outcome.winner.map(side_name).map(str::to_owned),
            reason: ending.outcome.reason.id().to_owned(),
            scored: ending.outcome.scored,
            at: signed(event.at.micros()),
            plies: 0,
        });
        let is_ply = matches!(event.kind, Kind::Moved(_));
        Self { game, sequence, at: event.at, kind: kind_name(&event.kind), body, creation, ending, is_ply }
    }

    /// About how many bytes of the file it takes.
    pub(super) fn size(&self) -> usize {
        self.body.len() + 48
    }

    /// Writes it as `position`, a place after all others, of the game with this number.
    pub(super) fn insert(
        &self,
        connection: &Connection,
        position: i64,
        game: i64,
        written: Time,
    ) -> rusqlite::Result<()> {
        let (sequence, at, written) = (signed(self.sequence), signed(self.at.micros()), signed(written.micros()));
        let sum = event_sum(position, self.game, [sequence, at, written], self.kind.as_bytes(), &self.body);
        let sql = "INSERT INTO events (position, game, sequence, at, written, kind, body, checksum) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let mut insert = connection.prepare_cached(sql)?;
        insert.execute(params![position, game, sequence, at, written, self.kind, self.body, sum])?;
        Ok(())
    }
}

fn event_sum(position: i64, game: GameId, numbers: [i64; 3], kind: &[u8], body: &[u8]) -> i64 {
    let sum = Sum::of("events").number(position).bytes(&game.as_u128().to_be_bytes());
    numbers.into_iter().fold(sum, Sum::number).bytes(kind).bytes(body).finish()
}

/// The columns of an event, in the order in which [`EventRow::read`] takes them.
pub(super) const EVENT_COLUMNS: &str = "position, game, sequence, at, written, kind, body, checksum";

/// An event as it is in the table.
pub(super) struct EventRow<'a> {
    pub(super) position: i64,
    pub(super) game: i64,
    pub(super) sequence: i64,
    at: i64,
    pub(super) written: i64,
    kind: &'a [u8],
    body: &'a [u8],
    checksum: i64,
}

/// Why a row is not what was written.
pub(super) enum RowFault {
    Checksum,
    Code(CodeError),
}

impl std::fmt::Display for RowFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Checksum => f.write_str("its checksum is wrong"),
            Self::Code(error) => error.fmt(f),
        }
    }
}

impl<'a> EventRow<'a> {
    pub(super) fn read(row: &'a Row<'_>) -> rusqlite::Result<Self> {
        let bytes = |column| -> rusqlite::Result<&'a [u8]> {
            Ok(match row.get_ref(column)? {
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
                // No row of ours: its checksum will say so.
                ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => &[],
            })
        };
        Ok(Self {
            position: row.get(0)?,
            game: row.get(1)?,
            sequence: row.get(2)?,
            at: row.get(3)?,
            written: row.get(4)?,
            kind: bytes(5)?,
            body: bytes(6)?,
            checksum: row.get(7)?,
        })
    }

    /// The record of this game that the row is.
    pub(super) fn record(&self, game: GameId) -> Result<Record, RowFault> {
        let numbers = [self.sequence, self.at, self.written];
        if event_sum(self.position, game, numbers, self.kind, self.body) != self.checksum {
            return Err(RowFault::Checksum);
        }
        let event = decode_event(self.body, time(self.at)).map_err(RowFault::Code)?;
        let sequence = u64::try_from(self.sequence).unwrap_or(0);
        Ok(Record { sequence, written: time(self.written), event })
    }
}

/// A row of `games`.
#[derive(Clone, Debug)]
pub(super) struct GameRow {
    pub(super) id: String,
    created_at: i64,
    preset: String,
    ruleset_hash: String,
    labels: String,
    external_reference: String,
    private: bool,
    pub(super) first_position: i64,
    pub(super) ended: Option<Ended>,
}

/// What the ending adds to a row of `games`.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    winner: Option<String>,
    reason: String,
    scored: bool,
    pub(super) at: i64,
    pub(super) plies: i64,
}

/// The columns of a game, in the order in which [`GameRow::read`] takes them.
pub(super) const GAME_COLUMNS: &str = "number, id, created_at, preset, ruleset_hash, labels, external_reference, \
     private, first_position, status, winner, reason, scored, ended_at, plies, checksum";

impl GameRow {
    fn new(game: GameId, at: Time, Creation { settings, marks }: &Creation) -> Self {
        Self {
            id: game.to_string(),
            created_at: signed(at.micros()),
            preset: settings.preset.to_owned(),
            ruleset_hash: ruleset_hash(&settings.ruleset),
            labels: json(&marks.labels),
            external_reference: marks.external_reference.clone(),
            private: settings.private,
            first_position: 0,
            ended: None,
        }
    }

    /// The row of a game whose first event is at this position.
    pub(super) fn starting_at(&self, first_position: i64) -> Self {
        Self { first_position, ..self.clone() }
    }

    /// The row of the game once it has ended so, after so many plies.
    pub(super) fn ended(self, ending: &Ended, plies: i64) -> Self {
        Self { ended: Some(Ended { plies, ..ending.clone() }), ..self }
    }

    fn status(&self) -> &'static str {
        if self.ended.is_some() { ENDED } else { OPEN }
    }

    fn checksum(&self, number: i64) -> i64 {
        let texts = [&self.id, &self.preset, &self.ruleset_hash, &self.labels, &self.external_reference];
        let sum = Sum::of("games").number(number).number(self.created_at).number(self.first_position);
        let sum = texts.into_iter().fold(sum, |sum, text| sum.bytes(text.as_bytes())).number(self.private.into());
        let ended = |sum: Sum, ended: &Ended| {
            let sum = sum.maybe(ended.winner.as_deref(), |sum, winner| sum.bytes(winner.as_bytes()));
            sum.bytes(ended.reason.as_bytes()).number(ended.scored.into()).number(ended.at).number(ended.plies)
        };
        sum.maybe(self.ended.as_ref(), ended).finish()
    }

    /// A row with its number; `None` if it is not what was written.
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Option<(i64, Self)>> {
        let status: String = row.get(9)?;
        let ended = match status.as_str() {
            ENDED => Some(Ended {
                winner: row.get(10)?,
                reason: row.get(11)?,
                scored: row.get(12)?,
                at: row.get(13)?,
                plies: row.get(14)?,
            }),
            _ => None,
        };
        let found = Self {
            id: row.get(1)?,
            created_at: row.get(2)?,
            preset: row.get(3)?,
            ruleset_hash: row.get(4)?,
            labels: row.get(5)?,
            external_reference: row.get(6)?,
            private: row.get(7)?,
            first_position: row.get(8)?,
            ended,
        };
        let (number, checksum): (i64, i64) = (row.get(0)?, row.get(15)?);
        let open_is_bare = found.ended.is_some()
            || (10..15).all(|column| row.get_ref(column).is_ok_and(|value| matches!(value, ValueRef::Null)));
        let whole = status == found.status() && open_is_bare && found.checksum(number) == checksum;
        Ok(whole.then_some((number, found)))
    }

    pub(super) fn insert(&self, connection: &Connection, number: i64) -> rusqlite::Result<()> {
        let sql = "INSERT INTO games (number, id, created_at, preset, ruleset_hash, labels, external_reference, \
                   private, first_position, status, checksum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
        let mut insert = connection.prepare_cached(sql)?;
        insert.execute(params![
            number,
            self.id,
            self.created_at,
            self.preset,
            self.ruleset_hash,
            self.labels,
            self.external_reference,
            self.private,
            self.first_position,
            self.status(),
            self.checksum(number),
        ])?;
        Ok(())
    }

    /// Writes down how the game with this number ended.
    pub(super) fn update_ended(&self, connection: &Connection, number: i64) -> rusqlite::Result<()> {
        let Some(ended) = &self.ended else { return Ok(()) };
        let sql = "UPDATE games SET status = ?2, winner = ?3, reason = ?4, scored = ?5, ended_at = ?6, plies = ?7, \
                   checksum = ?8 WHERE number = ?1";
        let mut update = connection.prepare_cached(sql)?;
        let checksum = self.checksum(number);
        update.execute(params![
            number,
            self.status(),
            ended.winner,
            ended.reason,
            ended.scored,
            ended.at,
            ended.plies,
            checksum,
        ])?;
        Ok(())
    }
}

/// The row that tells when the server was last alive, and how far the log had come by then.
pub(super) struct SignOfLife {
    pub(super) alive_at: i64,
    pub(super) position: i64,
}

impl SignOfLife {
    fn checksum(&self) -> i64 {
        Sum::of("sign_of_life").number(self.alive_at).number(self.position).finish()
    }

    pub(super) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        let sql = "INSERT INTO sign_of_life (number, alive_at, position, checksum) VALUES (1, ?1, ?2, ?3) \
                   ON CONFLICT (number) DO UPDATE SET alive_at = ?1, position = ?2, checksum = ?3";
        connection.prepare_cached(sql)?.execute([self.alive_at, self.position, self.checksum()])?;
        Ok(())
    }

    /// The row that this is; `None` if it is not what was written.
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Option<Self>> {
        let found = Self { alive_at: row.get(0)?, position: row.get(1)? };
        let checksum: i64 = row.get(2)?;
        Ok((found.checksum() == checksum).then_some(found))
    }
}

/// A list of texts as JSON.
fn json(texts: &[String]) -> String {
    let mut list = String::from("[");
    for (index, text) in texts.iter().enumerate() {
        list.push_str(if index == 0 { "\"" } else { ",\"" });
        for letter in text.chars() {
            match letter {
                '"' | '\\' => list.extend(['\\', letter]),
                '\0'..='\x1f' => list.push_str(&format!("\\u{:04x}", u32::from(letter))),
                _ => list.push(letter),
            }
        }
        list.push('"');
    }
    list.push(']');
    list
}

fn side_name(side: Side) -> &'static str {
    match side {
        Side::Red => "RED",
        Side::Blue => "BLUE",
    }
}

/// The name of a kind in `events.kind`.
fn kind_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Created(_) => "created",
        Kind::SeatShown { .. } => "seat_shown",
        Kind::Started => "started",
        Kind::Moved(_) => "moved",
        Kind::Refused { .. } => "refused",
        Kind::TimeExpired(_) => "time_expired",
        Kind::DrawOffered(_) => "draw_offered",
        Kind::DrawTakenBack(_) => "draw_taken_back",
        Kind::DrawDeclined(_) => "draw_declined",
        Kind::DrawAccepted(_) => "draw_accepted",
        Kind::SeatLeft(_) => "seat_left",
        Kind::SeatAway(_) => "seat_away",
        Kind::SeatReturned(_) => "seat_returned",
        Kind::AwayExpired(_) => "away_expired",
        Kind::Aborted(_) => "aborted",
        Kind::Resumed { .. } => "resumed",
    }
}
