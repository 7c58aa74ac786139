//! Events as bytes, for the log on disk and for the journal that a game keeps in memory.
//!
//! The form is written down for other readers in `docs/log.md`. An event's times are kept beside its
//! bytes. Whoever folds a log as it reads knows what the clock and the ply were: with such [`Hints`] a
//! usual move takes three bytes and its request id. Reading checks everything and builds only what
//! the bytes hold: wrong bytes are an error, never a panic and never a large allocation.

use std::fmt;
use std::sync::Arc;

use super::clock::{ClockStart, Span, Time, TimeControl};
use super::command::{Caller, Request};
use super::event::{AbortedBy, Ending, Event, Kind, Moved, OfferResult};
use super::settings::{Creation, Marks, Settings};
use crate::rules::{
    Animal, Entries, JumpBlockers, Ladder, Move, Outcome, Piece, Position, Preset, Reason, Rule, Ruleset, Side, Square,
    SquareSet, TigerJump, Violation,
};

/// Bytes that are no event of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeError {
    /// What could not be read.
    pub what: &'static str,
    /// At which byte, from 0.
    pub at: usize,
}

impl fmt::Display for CodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no event: {} at byte {}", self.what, self.at)
    }
}

impl std::error::Error for CodeError {}

/// What a reader knows of the game just before an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hints {
    /// Since when a clock has been running.
    pub(super) since: Option<Time>,
    /// The number of the ply about to be made.
    pub(super) ply: u32,
}

/// Writes an event without its times.
pub fn encode_event(event: &Event, out: &mut Vec<u8>) {
    Writer { out, settings_apart: false }.event(event, None);
}

/// Reads an event that happened at `at`.
///
/// # Errors
/// If the bytes are not exactly one event.
pub fn decode_event(bytes: &[u8], at: Time) -> Result<Event, CodeError> {
    let mut reader = Reader { bytes, next: 0, settings: None };
    let event = reader.event(at, None)?;
    if reader.next == bytes.len() { Ok(event) } else { Err(reader.error("bytes after its end")) }
}

/// A digest of a submitted move's request: one number for each move, ply and offer.
#[must_use]
pub fn move_digest(mv: Move, expected_ply: u32, offer_draw: bool) -> u64 {
    let squares = u64::from(mv.from.byte()) << 6 | u64::from(mv.to.byte());
    u64::from(expected_ply) << 13 | squares << 1 | u64::from(offer_draw)
}

const KIND: u8 = 0b0001_1111;
const BLUE: u8 = 0b0010_0000;
const HAS_REQUEST: u8 = 0b0100_0000;
const HAS_ENDING: u8 = 0b1000_0000;

/// The numbers of the kinds. They are written to disk: never give one of them a new meaning.
mod number {
    pub(super) const CREATED: u8 = 0;
    pub(super) const SEAT_SHOWN: u8 = 1;
    pub(super) const SEAT_SHOWN_STARTS: u8 = 2;
    pub(super) const STARTED: u8 = 3;
    pub(super) const MOVED: u8 = 4;
    pub(super) const REFUSED: u8 = 5;
    pub(super) const TIME_EXPIRED: u8 = 6;
    pub(super) const DRAW_OFFERED: u8 = 7;
    pub(super) const DRAW_TAKEN_BACK: u8 = 8;
    pub(super) const DRAW_DECLINED: u8 = 9;
    pub(super) const DRAW_ACCEPTED: u8 = 10;
    pub(super) const SEAT_LEFT: u8 = 11;
    pub(super) const SEAT_AWAY: u8 = 12;
    pub(super) const SEAT_RETURNED: u8 = 13;
    pub(super) const AWAY_EXPIRED: u8 = 14;
    pub(super) const ABORTED_BY_ARBITER: u8 = 15;
    pub(super) const ABORTED_BY_CREATOR: u8 = 16;
    pub(super) const ABORTED_BY_SERVICE: u8 = 17;
    pub(super) const RESUMED: u8 = 18;
    /// A move as most are: no waiver, no offer, the whole time since the clock ran charged and no grace
    /// used, its request's digest the move's own. Only readable with hints.
    pub(super) const MOVED_PLAINLY: u8 = 31;
}

const PRESENT: u8 = 1;
const ABSENT: u8 = 0;
const NO_SQUARE: u8 = 63;

pub(super) struct Writer<'a> {
    pub(super) out: &'a mut Vec<u8>,
    /// Whether the reader will know how the game was set up.
    pub(super) settings_apart: bool,
}

impl Writer<'_> {
    fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    /// Seven bits a byte, the lowest first; the eighth says that there are more.
    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(low_bits(number) | 0x80);
            number >>= 7;
        }
        self.byte(low_bits(number));
    }

    /// A difference, small whichever its sign: `later - earlier` where both are times.
    pub(super) fn difference(&mut self, later: Time, earlier: Time) {
        let (ahead, back) = (later.since(earlier).micros(), earlier.since(later).micros());
        self.number(if back > 0 { back << 1 | 1 } else { ahead << 1 });
    }

    fn text(&mut self, text: &str) {
        self.number(text.len().try_into().unwrap_or(u64::MAX));
        self.out.extend_from_slice(text.as_bytes());
    }

    pub(super) fn event(&mut self, event: &Event, hints: Option<Hints>) {
        let plain = hints.is_some_and(|hints| is_plain(event, hints));
        let (kind, side) = kind_number(&event.kind, plain);
        let marks = [(side == Some(Side::Blue), BLUE), (event.request.is_some(), HAS_REQUEST)];
        let marks = marks.into_iter().chain([(event.ending.is_some(), HAS_ENDING)]);
        self.byte(marks.filter(|(holds, _)| *holds).fold(kind, |head, (_, mark)| head | mark));
        self.payload(&event.kind, plain);
        if let Some(ending) = &event.ending {
            self.ending(ending);
        }
        if let Some(request) = &event.request {
            self.out.extend_from_slice(&request.id.to_be_bytes());
            if !plain {
                self.out.extend_from_slice(&request.digest.to_be_bytes());
            }
        }
    }

    fn payload(&mut self, kind: &Kind, plain: bool) {
        match kind {
            Kind::Created(creation) => self.creation(creation),
            Kind::Moved(moved) if plain => self.squares(moved),
            Kind::Moved(moved) => {
                self.squares(moved);
                self.byte(u8::from(moved.waived) | offer_number(moved.offer) << 1);
                self.number(moved.charged.micros());
                self.number(moved.grace_used.micros());
            }
            Kind::Refused { mv, violation, .. } => self.refused(*mv, violation),
            Kind::Resumed { down_since } => self.number(down_since.micros()),
            Kind::SeatShown { .. }
            | Kind::Started
            | Kind::TimeExpired(_)
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

    /// Two squares of six bits, and four bits for what was taken: its place from 1, or 0.
    fn squares(&mut self, moved: &Moved) {
        let taken = moved.captured.map_or(0, |animal| animal.index() + 1);
        let (from, to) = (moved.mv.from.index(), moved.mv.to.index());
        let packed = u16::try_from(from << 10 | to << 4 | taken).unwrap_or(u16::MAX);
        self.out.extend_from_slice(&packed.to_be_bytes());
    }

    fn ending(&mut self, ending: &Ending) {
        let Outcome { winner, reason, scored } = ending.outcome;
        let winner = winner.map_or(0, |side| small(side.index()) + 1);
        let place = small(Reason::ALL.iter().position(|known| *known == reason).unwrap_or(0));
        let told = u8::from(ending.abort_reason.is_some());
        self.byte(winner | u8::from(scored) << 2 | place << 3 | told << 7);
        if let Some(reason) = &ending.abort_reason {
            self.text(reason);
        }
    }

    /// The move, its rule's place, the animal that was to move if there is one, and what else shows it.
    fn refused(&mut self, mv: Move, violation: &Violation) {
        let rule = violation.rule();
        let place = Rule::ALL.iter().position(|known| *known == rule).unwrap_or(0);
        self.out.extend_from_slice(&[mv.from.byte(), mv.to.byte(), small(place)]);
        match *violation {
            Violation::NoAnimal { .. } => {}
            Violation::NotYourAnimal { piece, .. }
            | Violation::Step { piece, .. }
            | Violation::River { piece, .. }
            | Violation::Jump { piece, .. }
            | Violation::OwnDen { piece, .. }
            | Violation::RatElephant { piece, .. } => self.piece(piece),
            Violation::JumpBlocked { piece, rats, .. } => {
                self.piece(piece);
                rats.into_iter().for_each(|rat| self.byte(rat.map_or(NO_SQUARE, Square::byte)));
            }
            Violation::OwnPiece { piece, standing, .. }
            | Violation::Trapped { piece, standing, .. }
            | Violation::Bank { piece, standing, .. }
            | Violation::Strength { piece, standing, .. } => {
                self.piece(piece);
                self.byte(small(standing.index()));
            }
            Violation::SevenThree { piece, entries, .. } => {
                self.piece(piece);
                let (ply, turns_back) = entries.parts();
                self.number(ply.into());
                self.byte(turns_back);
            }
            Violation::SeventeenFive { piece, window, .. } => {
                self.piece(piece);
                self.number(window.bits());
            }
        }
    }

    fn piece(&mut self, piece: Piece) {
        self.byte(small(piece.side.index()) << 4 | small(piece.animal.index()));
    }

    fn creation(&mut self, Creation { settings, marks }: &Creation) {
        if !self.settings_apart {
            self.settings(settings);
        }
        self.number(marks.labels.len().try_into().unwrap_or(u64::MAX));
        marks.labels.iter().for_each(|label| self.text(label));
        self.text(&marks.external_reference);
    }

    fn settings(&mut self, settings: &Settings) {
        self.text(settings.preset);
        self.ruleset(&settings.ruleset);
        if settings.start == Position::start(&settings.ruleset) {
            self.byte(ABSENT);
        } else {
            self.byte(PRESENT);
            self.text(&settings.start.to_string());
        }
        match settings.time_control {
            TimeControl::Untimed => self.byte(0),
            TimeControl::PerMove(limit) => self.numbered(1, &[limit.micros()]),
            TimeControl::Increment { initial, increment } => {
                self.numbered(2, &[initial.micros(), increment.micros()]);
            }
        }
        match settings.clock_start {
            ClockStart::AtCreation => self.byte(0),
            ClockStart::At(at) => self.numbered(1, &[at.micros()]),
            ClockStart::WhenBothShown(window) => self.numbered(2, &[window.micros()]),
        }
        self.byte(u8::from(settings.is_match) | u8::from(settings.private) << 1);
        // Neither limit can be zero: zero is none.
        let away = settings.away_limit.map_or(0, Span::micros);
        let refusals = settings.refusal_limit.map_or(0, u64::from);
        for number in [settings.grace.micros(), refusals, away, settings.idle_limit.micros()] {
            self.number(number);
        }
    }

    fn numbered(&mut self, case: u8, numbers: &[u64]) {
        self.byte(case);
        numbers.iter().for_each(|number| self.number(*number));
    }

    /// Every switch as it was, so that no later change of a preset touches an old game.
    fn ruleset(&mut self, ruleset: &Ruleset) {
        let place = |of: Option<usize>| small(of.unwrap_or(0));
        let Ruleset { ladder, jump_blockers, tiger_jump, .. } = ruleset;
        self.byte(place(Ladder::ALL.iter().position(|known| known == ladder)));
        self.byte(place(JumpBlockers::ALL.iter().position(|known| known == jump_blockers)));
        self.byte(place(TigerJump::ALL.iter().position(|known| known == tiger_jump)));
        let flags = flags_of(ruleset).into_iter().zip(0..);
        self.byte(flags.fold(0, |all, (flag, bit)| all | u8::from(flag) << bit));
        self.byte(ruleset.timeouts_to_lose);
        self.number(ruleset.no_capture_rounds.into());
        self.byte(ruleset.short_game_rounds);
    }
}

fn flags_of(ruleset: &Ruleset) -> [bool; 5] {
    [
        ruleset.rats_capture_across_bank,
        ruleset.trapped_may_capture,
        ruleset.agreed_draw,
        ruleset.seven_three,
        ruleset.seventeen_five,
    ]
}

const fn low_bits(number: u64) -> u8 {
    (number & 0x7f) as u8
}

/// A place in a short list.
fn small(place: usize) -> u8 {
    u8::try_from(place).unwrap_or(u8::MAX)
}

fn is_plain(event: &Event, hints: Hints) -> bool {
    let Kind::Moved(moved) = &event.kind else { return false };
    let whole = hints.since.map_or(Span::ZERO, |since| event.at.since(since));
    let own = move_digest(moved.mv, hints.ply, false);
    !moved.waived
        && moved.offer == OfferResult::NotAsked
        && (moved.charged, moved.grace_used) == (whole, Span::ZERO)
        && event.request.is_none_or(|request| request.digest == own)
}

fn kind_number(kind: &Kind, plain: bool) -> (u8, Option<Side>) {
    match kind {
        Kind::Created(_) => (number::CREATED, None),
        Kind::SeatShown { side, starts: false } => (number::SEAT_SHOWN, Some(*side)),
        Kind::SeatShown { side, starts: true } => (number::SEAT_SHOWN_STARTS, Some(*side)),
        Kind::Started => (number::STARTED, None),
        Kind::Moved(moved) => (if plain { number::MOVED_PLAINLY } else { number::MOVED }, Some(moved.side)),
        Kind::Refused { side, .. } => (number::REFUSED, Some(*side)),
        Kind::TimeExpired(side) => (number::TIME_EXPIRED, Some(*side)),
        Kind::DrawOffered(side) => (number::DRAW_OFFERED, Some(*side)),
        Kind::DrawTakenBack(side) => (number::DRAW_TAKEN_BACK, Some(*side)),
        Kind::DrawDeclined(side) => (number::DRAW_DECLINED, Some(*side)),
        Kind::DrawAccepted(side) => (number::DRAW_ACCEPTED, Some(*side)),
        Kind::SeatLeft(side) => (number::SEAT_LEFT, Some(*side)),
        Kind::SeatAway(side) => (number::SEAT_AWAY, Some(*side)),
        Kind::SeatReturned(side) => (number::SEAT_RETURNED, Some(*side)),
        Kind::AwayExpired(side) => (number::AWAY_EXPIRED, Some(*side)),
        Kind::Aborted(AbortedBy::Arbiter) => (number::ABORTED_BY_ARBITER, None),
        Kind::Aborted(AbortedBy::Creator) => (number::ABORTED_BY_CREATOR, None),
        Kind::Aborted(AbortedBy::Service) => (number::ABORTED_BY_SERVICE, None),
        Kind::Resumed { .. } => (number::RESUMED, None),
    }
}

const fn offer_number(offer: OfferResult) -> u8 {
    match offer {
        OfferResult::NotAsked => 0,
        OfferResult::Made => 1,
        OfferResult::DrawsOff => 2,
        OfferResult::OfferOpen => 3,
        OfferResult::AlreadyOffered => 4,
        OfferResult::GameOver => 5,
    }
}

const OFFERS: [OfferResult; 6] = [
    OfferResult::NotAsked,
    OfferResult::Made,
    OfferResult::DrawsOff,
    OfferResult::OfferOpen,
    OfferResult::AlreadyOffered,
    OfferResult::GameOver,
];

pub(super) struct Reader<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) next: usize,
    /// How the game was set up, where its creation's bytes leave that out.
    pub(super) settings: Option<&'a Arc<Settings>>,
}

type Read<T> = Result<T, CodeError>;

impl Reader<'_> {
    fn error(&self, what: &'static str) -> CodeError {
        CodeError { what, at: self.next }
    }

    fn byte(&mut self) -> Read<u8> {
        let byte = *self.bytes.get(self.next).ok_or(self.error("an early end"))?;
        self.next += 1;
        Ok(byte)
    }

    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let rest = self.bytes.get(self.next..).and_then(|rest| rest.first_chunk::<N>());
        let array = *rest.ok_or(self.error("an early end"))?;
        self.next += N;
        Ok(array)
    }

    pub(super) fn number(&mut self) -> Read<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                // A number has one form.
                return if byte == 0 && shift > 0 { Err(self.error("a number with a zero end")) } else { Ok(number) };
            }
        }
        Err(self.error("a number of more than 64 bits"))
    }

    pub(super) fn difference(&mut self, earlier: Time) -> Read<Time> {
        let number = self.number()?;
        let (back, span) = (number & 1 == 1, number >> 1);
        let micros = earlier.micros();
        let later = if back { micros.checked_sub(span) } else { micros.checked_add(span) };
        later.map(Time::from_micros).ok_or(self.error("a time out of range"))
    }

    fn text(&mut self) -> Read<&str> {
        let length = usize::try_from(self.number()?).map_err(|_| self.error("a text too long"))?;
        let end = self.next.checked_add(length).ok_or(self.error("a text too long"))?;
        let bytes = self.bytes.get(self.next..end).ok_or(self.error("an early end"))?;
        let text = std::str::from_utf8(bytes).map_err(|_| self.error("a text that is not UTF-8"))?;
        self.next = end;
        Ok(text)
    }

    /// The item at a place of a list.
    fn place<T: Copy>(&self, list: &[T], place: u8, what: &'static str) -> Read<T> {
        list.get(usize::from(place)).copied().ok_or(self.error(what))
    }

    fn one_of<T: Copy>(&mut self, list: &[T], what: &'static str) -> Read<T> {
        let place = self.byte()?;
        self.place(list, place, what)
    }

    fn square(&mut self) -> Read<Square> {
        let byte = self.byte()?;
        Square::from_index(byte).ok_or(self.error("no square"))
    }

    pub(super) fn event(&mut self, at: Time, hints: Option<Hints>) -> Read<Event> {
        let head = self.byte()?;
        let side = if head & BLUE == 0 { Side::Red } else { Side::Blue };
        let kind = self.kind(head & KIND, side, at, hints)?;
        let ending = if head & HAS_ENDING == 0 { None } else { Some(self.ending()?) };
        let request = if head & HAS_REQUEST == 0 { None } else { Some(self.request(&kind, head & KIND, hints)?) };
        Ok(Event { at, kind, ending, request })
    }

    fn kind(&mut self, number: u8, side: Side, at: Time, hints: Option<Hints>) -> Read<Kind> {
        Ok(match number {
            number::CREATED => Kind::Created(Arc::new(self.creation()?)),
            number::SEAT_SHOWN => Kind::SeatShown { side, starts: false },
            number::SEAT_SHOWN_STARTS => Kind::SeatShown { side, starts: true },
            number::STARTED => Kind::Started,
            number::MOVED => Kind::Moved(self.moved(side)?),
            number::MOVED_PLAINLY => {
                let hints = hints.ok_or(self.error("a short move in a log that has none"))?;
                let (mv, captured) = self.squares()?;
                let charged = hints.since.map_or(Span::ZERO, |since| at.since(since));
                let (grace_used, offer) = (Span::ZERO, OfferResult::NotAsked);
                Kind::Moved(Moved { side, mv, captured, waived: false, charged, grace_used, offer })
            }
            number::REFUSED => self.refused(side)?,
            number::TIME_EXPIRED => Kind::TimeExpired(side),
            number::DRAW_OFFERED => Kind::DrawOffered(side),
            number::DRAW_TAKEN_BACK => Kind::DrawTakenBack(side),
            number::DRAW_DECLINED => Kind::DrawDeclined(side),
            number::DRAW_ACCEPTED => Kind::DrawAccepted(side),
            number::SEAT_LEFT => Kind::SeatLeft(side),
            number::SEAT_AWAY => Kind::SeatAway(side),
            number::SEAT_RETURNED => Kind::SeatReturned(side),
            number::AWAY_EXPIRED => Kind::AwayExpired(side),
            number::ABORTED_BY_ARBITER => Kind::Aborted(AbortedBy::Arbiter),
            number::ABORTED_BY_CREATOR => Kind::Aborted(AbortedBy::Creator),
            number::ABORTED_BY_SERVICE => Kind::Aborted(AbortedBy::Service),
            number::RESUMED => Kind::Resumed { down_since: Time::from_micros(self.number()?) },
            _ => return Err(self.error("an unknown kind")),
        })
    }

    fn squares(&mut self) -> Read<(Move, Option<Animal>)> {
        let [high, low] = self.array()?;
        let square = |bits: u8| Square::from_index(bits).ok_or(self.error("no square"));
        let mv = Move { from: square(high >> 2)?, to: square((high & 3) << 4 | low >> 4)? };
        let captured = match (low & 15).checked_sub(1) {
            None => None,
            Some(place) => Some(self.place(&Animal::ALL, place, "no animal")?),
        };
        Ok((mv, captured))
    }

    fn moved(&mut self, side: Side) -> Read<Moved> {
        let (mv, captured) = self.squares()?;
        let flags = self.byte()?;
        let offer = self.place(&OFFERS, flags >> 1, "no result of an offer")?;
        let charged = Span::from_micros(self.number()?);
        let grace_used = Span::from_micros(self.number()?);
        Ok(Moved { side, mv, captured, waived: flags & 1 == 1, charged, grace_used, offer })
    }

    fn ending(&mut self) -> Read<Ending> {
        let byte = self.byte()?;
        let winner = self.place(&[None, Some(Side::Red), Some(Side::Blue)], byte & 3, "no winner")?;
        let reason = self.place(&Reason::ALL, byte >> 3 & 15, "no reason")?;
        let outcome = Outcome { winner, reason, scored: byte & 4 != 0 };
        let abort_reason = if byte & 0x80 == 0 { None } else { Some(self.text()?.into()) };
        Ok(Ending { outcome, abort_reason })
    }

    fn request(&mut self, kind: &Kind, number: u8, hints: Option<Hints>) -> Read<Request> {
        let caller = caller_of(kind).ok_or(self.error("a request where nobody asks"))?;
        let id = u128::from_be_bytes(self.array()?);
        let digest = match (kind, hints) {
            (Kind::Moved(moved), Some(hints)) if number == number::MOVED_PLAINLY => {
                move_digest(moved.mv, hints.ply, false)
            }
            _ => u64::from_be_bytes(self.array()?),
        };
        Ok(Request { caller, id, digest })
    }

    fn refused(&mut self, side: Side) -> Read<Kind> {
        let (from, to) = (self.square()?, self.square()?);
        let rule = self.one_of(&Rule::ALL, "no rule")?;
        let violation = Box::new(self.violation(rule, from, to)?);
        Ok(Kind::Refused { side, mv: Move { from, to }, violation })
    }

    fn violation(&mut self, rule: Rule, from: Square, to: Square) -> Read<Violation> {
        if rule == Rule::NoAnimal {
            return Ok(Violation::NoAnimal { from });
        }
        let piece = self.piece()?;
        Ok(match rule {
            Rule::NoAnimal => Violation::NoAnimal { from },
            Rule::NotYourAnimal => Violation::NotYourAnimal { piece, from },
            Rule::Step => Violation::Step { piece, from, to },
            Rule::River => Violation::River { piece, from, to },
            Rule::Jump => Violation::Jump { piece, from, to },
            Rule::OwnDen => Violation::OwnDen { piece, from, to },
            Rule::RatElephant => Violation::RatElephant { piece, from, to },
            Rule::JumpBlocked => Violation::JumpBlocked { piece, from, to, rats: [self.rat()?, self.rat()?] },
            Rule::OwnPiece => Violation::OwnPiece { piece, from, to, standing: self.animal()? },
            Rule::Trapped => Violation::Trapped { piece, from, to, standing: self.animal()? },
            Rule::Bank => Violation::Bank { piece, from, to, standing: self.animal()? },
            Rule::Strength => Violation::Strength { piece, from, to, standing: self.animal()? },
            Rule::SevenThree => {
                let ply = u32::try_from(self.number()?).map_err(|_| self.error("a ply too large"))?;
                let turns_back = self.byte()?;
                let entries = Entries::from_parts(ply, turns_back).ok_or(self.error("no entries"))?;
                Violation::SevenThree { piece, from, to, entries }
            }
            Rule::SeventeenFive => {
                let bits = self.number()?;
                let window = SquareSet::from_bits(bits).ok_or(self.error("no set of squares"))?;
                Violation::SeventeenFive { piece, from, to, window }
            }
        })
    }

    fn rat(&mut self) -> Read<Option<Square>> {
        let byte = self.byte()?;
        if byte == NO_SQUARE {
            return Ok(None);
        }
        Square::from_index(byte).map(Some).ok_or(self.error("no square"))
    }

    fn animal(&mut self) -> Read<Animal> {
        self.one_of(&Animal::ALL, "no animal")
    }

    fn piece(&mut self) -> Read<Piece> {
        let byte = self.byte()?;
        let side = self.place(&Side::ALL, byte >> 4, "no side")?;
        Ok(Piece { side, animal: self.place(&Animal::ALL, byte & 15, "no animal")? })
    }

    fn creation(&mut self) -> Read<Creation> {
        let settings = match self.settings {
            Some(known) => Arc::clone(known),
            None => Arc::new(self.settings()?),
        };
        let mut labels = Vec::new();
        for _ in 0..self.number()? {
            labels.push(self.text()?.to_owned());
        }
        let external_reference = self.text()?.to_owned();
        Ok(Creation { settings, marks: Marks { labels, external_reference } })
    }

    fn settings(&mut self) -> Read<Settings> {
        let preset = self.text().map(Preset::find)?.ok_or(self.error("an unknown preset"))?.name;
        let ruleset = self.ruleset()?;
        let start = match self.one_of(&[false, true], "no start")? {
            false => Position::start(&ruleset),
            true => self.text().map(Position::read)?.map_err(|_| self.error("a start that is no position"))?,
        };
        let time_control = match self.byte()? {
            0 => TimeControl::Untimed,
            1 => TimeControl::PerMove(self.span()?),
            2 => TimeControl::Increment { initial: self.span()?, increment: self.span()? },
            _ => return Err(self.error("an unknown time control")),
        };
        let clock_start = match self.byte()? {
            0 => ClockStart::AtCreation,
            1 => ClockStart::At(Time::from_micros(self.number()?)),
            2 => ClockStart::WhenBothShown(self.span()?),
            _ => return Err(self.error("an unknown start of the clock")),
        };
        let flags = self.byte()?;
        let grace = self.span()?;
        let refusals = u32::try_from(self.number()?).map_err(|_| self.error("a limit too large"))?;
        let (away_limit, idle_limit) = (self.span()?, self.span()?);
        Ok(Settings {
            preset,
            ruleset,
            start,
            time_control,
            grace,
            clock_start,
            is_match: flags & 1 != 0,
            refusal_limit: Some(refusals).filter(|limit| *limit > 0),
            away_limit: Some(away_limit).filter(|limit| *limit > Span::ZERO),
            idle_limit,
            private: flags & 2 != 0,
        })
    }

    fn span(&mut self) -> Read<Span> {
        self.number().map(Span::from_micros)
    }

    fn ruleset(&mut self) -> Read<Ruleset> {
        let ladder = self.one_of(&Ladder::ALL, "an unknown ladder")?;
        let jump_blockers = self.one_of(&JumpBlockers::ALL, "unknown blockers of jumps")?;
        let tiger_jump = self.one_of(&TigerJump::ALL, "an unknown jump of the tiger")?;
        let flags = self.byte()?;
        let flag = |bit: u8| flags >> bit & 1 == 1;
        let ruleset = Ruleset {
            ladder,
            rats_capture_across_bank: flag(0),
            jump_blockers,
            tiger_jump,
            trapped_may_capture: flag(1),
            agreed_draw: flag(2),
            timeouts_to_lose: self.byte()?,
            no_capture_rounds: u16::try_from(self.number()?).map_err(|_| self.error("a switch out of range"))?,
            short_game_rounds: self.byte()?,
            seven_three: flag(3),
            seventeen_five: flag(4),
        };
        ruleset.validate().map_err(|_| self.error("a switch out of range"))?;
        Ok(ruleset)
    }
}

/// Whose request can have caused an event of this kind.
fn caller_of(kind: &Kind) -> Option<Caller> {
    match kind {
        Kind::Created(_) | Kind::Aborted(AbortedBy::Creator) => Some(Caller::Creator),
        Kind::Aborted(AbortedBy::Arbiter) => Some(Caller::Arbiter),
        Kind::Moved(Moved { side, .. })
        | Kind::Refused { side, .. }
        | Kind::DrawOffered(side)
        | Kind::DrawTakenBack(side)
        | Kind::DrawDeclined(side)
        | Kind::DrawAccepted(side)
        | Kind::SeatLeft(side) => Some(Caller::Seat(*side)),
        Kind::SeatShown { .. }
        | Kind::Started
        | Kind::TimeExpired(_)
        | Kind::SeatAway(_)
        | Kind::SeatReturned(_)
        | Kind::AwayExpired(_)
        | Kind::Aborted(AbortedBy::Service)
        | Kind::Resumed { .. } => None,
    }
}
