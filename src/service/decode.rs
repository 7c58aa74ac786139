//! From the wire's types to the house's: what cannot be read is named, with its field, before anything
//! else is asked. What passes this door is trusted behind it.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use prost::Message;
use sha2::{Digest, Sha256};

use super::proto as pb;
use crate::game::{
    Caller, ClockStart, Creation, Marks, Request, Settings, Span, Status, Time, TimeControl, move_digest,
};
use crate::rules::{JumpBlockers, Ladder, Line, Move, Position, Preset, Ruleset, Side, Square, TigerJump};
use crate::runtime::ids::parse_uuid;
use crate::runtime::{Filter, GameId};

/// The most bytes of a position text.
const POSITION_BYTES: usize = 128;
/// The most moves of a line.
const LINE_MOVES: usize = 3_000;
/// The most labels of a game.
const LABELS: usize = 16;
/// The most bytes of a label.
const LABEL_BYTES: usize = 64;
/// The most bytes of an external reference.
const REFERENCE_BYTES: usize = 128;
/// The most bytes of the reason for calling a game off.
const ABORT_REASON_BYTES: usize = 256;
/// The highest refusal limit.
const REFUSALS: RangeInclusive<u32> = 1..=1_000;
/// How many expiries in a row may lose.
const TIMEOUTS_TO_LOSE: RangeInclusive<u32> = 1..=2;
/// After how many rounds without a capture a game may be drawn.
const NO_CAPTURE_ROUNDS: RangeInclusive<u32> = 1..=500;
/// How many rounds may make a short game.
const SHORT_GAME_ROUNDS: RangeInclusive<u32> = 0..=100;
/// A limit per move, and the initial time of a stock.
const ALLOWANCE: RangeInclusive<Span> = Span::from_millis(10)..=Span::from_days(30);
/// What a completed move may add.
const INCREMENT: RangeInclusive<Span> = Span::ZERO..=Span::from_days(30);
/// How long a flag may wait.
const GRACE: RangeInclusive<Span> = Span::ZERO..=Span::from_secs(5);
/// How long both seats may take to show themselves.
const JOIN_WINDOW: RangeInclusive<Span> = Span::from_secs(1)..=Span::from_days(366);
/// How long a seat may be away.
const AWAY_LIMIT: RangeInclusive<Span> = Span::from_secs(1)..=Span::from_days(30);
/// How long nothing may happen.
const IDLE_LIMIT: RangeInclusive<Span> = Span::from_secs(1)..=Span::from_days(366);
/// The idle limit of a game that asks for none.
const DEFAULT_IDLE_LIMIT: Span = Span::from_days(1);
/// How long a silence before a heartbeat.
const HEARTBEAT: RangeInclusive<Span> = Span::from_secs(1)..=Span::from_secs(30);
/// The heartbeat of a watch that asks for none.
const DEFAULT_HEARTBEAT: Span = Span::from_secs(15);
/// The most games a page, and how many where none is asked for.
const PAGE: u32 = 500;
const DEFAULT_PAGE: u32 = 50;

/// A field that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    /// The field's path, as in `line.moves[3].from_square`.
    pub(super) field: String,
    /// What is wrong with it, and what it should be.
    pub(super) problem: String,
    /// What a program would otherwise have to read out of the problem.
    pub(super) facts: Vec<(&'static str, String)>,
}

impl Malformed {
    pub(super) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into(), facts: Vec::new() }
    }

    fn with(mut self, name: &'static str, fact: impl fmt::Display) -> Self {
        self.facts.push((name, fact.to_string()));
        self
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)
    }
}

type Decoded<T> = Result<T, Malformed>;

/// A caller's text in a message: in quotes, and no longer than a glance.
fn quote(text: &str) -> String {
    const GLANCE: usize = 40;
    let start: String = text.chars().take(GLANCE).collect();
    if start.len() == text.len() { format!("{start:?}") } else { format!("{start:?}...") }
}

pub(super) fn game_id(text: &str) -> Decoded<GameId> {
    text.parse().map_err(|problem| Malformed::new("game_id", format!("{} {problem}", quote(text))))
}

/// A request id; `None` if there is none.
pub(super) fn request_id(text: &str) -> Decoded<Option<u128>> {
    if text.is_empty() {
        return Ok(None);
    }
    let id = parse_uuid(text).map_err(|problem| Malformed::new("request_id", format!("{} {problem}", quote(text))));
    id.map(Some)
}

/// A request as its event keeps it: `body` is the message without the id.
pub(super) fn request(caller: Caller, method: &str, id: Option<u128>, body: &impl Message) -> Option<Request> {
    id.map(|id| Request { caller, id, digest: digest(method, &body.encode_to_vec()) })
}

/// A submitted move's request: what a move's event tells of it need not be kept beside it.
pub(super) fn move_request(side: Side, id: Option<u128>, mv: Move, body: &pb::SubmitMoveRequest) -> Option<Request> {
    let digest = move_digest(mv, body.expected_ply.unwrap_or_default(), body.offer_draw);
    id.map(|id| Request { caller: Caller::Seat(side), id, digest })
}

/// The first eight bytes of a SHA-256 over a name and a body.
fn digest(name: &str, body: &[u8]) -> u64 {
    let hash = Sha256::new().chain_update(name).chain_update([0]).chain_update(body).finalize();
    hash.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

pub(super) fn square(field: &str, text: &str) -> Decoded<Square> {
    square_of("", field, text)
}

/// A square of a field whose name is put together only if it is wrong: most are right.
fn square_of(prefix: &str, field: &str, text: &str) -> Decoded<Square> {
    text.parse().map_err(|_| {
        let problem = format!("{} is not a square: a file a-g and a rank 1-9, such as \"a1\"", quote(text));
        Malformed::new(format!("{prefix}{field}"), problem)
    })
}

pub(super) fn a_move(prefix: &str, from: &str, to: &str) -> Decoded<Move> {
    let from = square_of(prefix, "from_square", from)?;
    Ok(Move { from, to: square_of(prefix, "to_square", to)? })
}

/// An enum of a request: an unknown number is refused, zero is `None`.
fn known<T: TryFrom<i32> + Default + PartialEq>(field: &str, number: i32) -> Decoded<Option<T>> {
    let value = T::try_from(number)
        .map_err(|_| Malformed::new(field, format!("{number} is not a known value of this enum")))?;
    Ok(Some(value).filter(|value| *value != T::default()))
}

fn within<T: PartialOrd + fmt::Display>(field: &str, value: T, range: &RangeInclusive<T>) -> Decoded<T> {
    if range.contains(&value) {
        return Ok(value);
    }
    Err(Malformed::new(field, format!("{value} is not within {} to {}", range.start(), range.end())))
}

/// A duration of whole milliseconds within a range.
fn span(field: &str, duration: &prost_types::Duration, range: &RangeInclusive<Span>) -> Decoded<Span> {
    let malformed = |problem: &str| Malformed::new(field, problem);
    if duration.seconds < 0 || duration.nanos < 0 {
        return Err(malformed("must not be negative"));
    }
    let (Ok(seconds), Ok(nanos)) = (u64::try_from(duration.seconds), u64::try_from(duration.nanos)) else {
        return Err(malformed("must not be negative"));
    };
    if nanos > 999_999_999 {
        return Err(malformed("nanos must lie within 0 to 999,999,999"));
    }
    if nanos % 1_000_000 != 0 {
        return Err(malformed("must be whole milliseconds"));
    }
    within(field, Span::from_secs(seconds) + Span::from_millis(nanos / 1_000_000), range)
}

fn timestamp(field: &str, at: &prost_types::Timestamp) -> Decoded<Time> {
    let malformed = |problem: &str| Malformed::new(field, problem);
    let (Ok(seconds), Ok(nanos)) = (u64::try_from(at.seconds), u64::try_from(at.nanos)) else {
        return Err(malformed("must not lie before 1970"));
    };
    if nanos > 999_999_999 || nanos % 1_000_000 != 0 {
        return Err(malformed("must be whole milliseconds, nanos within 0 to 999,999,999"));
    }
    Ok(Time::from_micros(seconds.saturating_mul(1_000_000).saturating_add(nanos / 1_000)))
}

/// A text of at most so many bytes.
fn text(field: &str, text: String, most: usize) -> Decoded<String> {
    if text.len() > most {
        return Err(Malformed::new(field, format!("has {} bytes, at most {most} are allowed", text.len())));
    }
    Ok(text)
}

/// The preset's name and the switches that a request asks for.
fn ruleset(prefix: &str, spec: Option<pb::RulesetSpec>) -> Decoded<(&'static str, Ruleset)> {
    let spec = spec.unwrap_or_default();
    let field = |name: &str| format!("{prefix}.{name}");
    let name = if spec.preset.is_empty() { "yeshou" } else { &spec.preset };
    let preset = Preset::find(name).ok_or_else(|| {
        let problem = format!("{} is not a preset; ListRulesets gives them all", quote(name));
        Malformed::new(field("preset"), problem)
    })?;
    let mut ruleset = preset.ruleset;
    if let Some(ladder) = known(&field("ladder"), spec.ladder)? {
        ruleset.ladder = match ladder {
            pb::Ladder::Unspecified => ruleset.ladder,
            pb::Ladder::WolfOverDog => Ladder::WolfOverDog,
            pb::Ladder::DogOverWolf => Ladder::DogOverWolf,
            pb::Ladder::DogOverFox => Ladder::DogOverFox,
        };
    }
    if let Some(blockers) = known(&field("jump_blockers"), spec.jump_blockers)? {
        ruleset.jump_blockers = match blockers {
            pb::JumpBlockers::Unspecified => ruleset.jump_blockers,
            pb::JumpBlockers::AnyRat => JumpBlockers::AnyRat,
            pb::JumpBlockers::EnemyRat => JumpBlockers::EnemyRat,
        };
    }
    if let Some(jump) = known(&field("tiger_jump"), spec.tiger_jump)? {
        ruleset.tiger_jump = match jump {
            pb::TigerJump::Unspecified => ruleset.tiger_jump,
            pb::TigerJump::Both => TigerJump::Both,
            pb::TigerJump::AcrossOnly => TigerJump::AcrossOnly,
        };
    }
    for (switch, asked) in [
        (&mut ruleset.rats_capture_across_bank, spec.rats_capture_across_bank),
        (&mut ruleset.trapped_may_capture, spec.trapped_may_capture),
        (&mut ruleset.agreed_draw, spec.agreed_draw),
        (&mut ruleset.seven_three, spec.seven_three),
        (&mut ruleset.seventeen_five, spec.seventeen_five),
    ] {
        *switch = asked.unwrap_or(*switch);
    }
    // Asked here, and not of the ruleset alone, so that a number too large for the switch is told as it was sent.
    if let Some(timeouts) = spec.timeouts_to_lose {
        let timeouts = within(&field("timeouts_to_lose"), timeouts, &TIMEOUTS_TO_LOSE)?;
        ruleset.timeouts_to_lose = u8::try_from(timeouts).unwrap_or(u8::MAX);
    }
    if let Some(rounds) = spec.no_capture_rounds {
        let rounds = within(&field("no_capture_rounds"), rounds, &NO_CAPTURE_ROUNDS)?;
        ruleset.no_capture_rounds = u16::try_from(rounds).unwrap_or(u16::MAX);
    }
    if let Some(rounds) = spec.short_game_rounds {
        let rounds = within(&field("short_game_rounds"), rounds, &SHORT_GAME_ROUNDS)?;
        ruleset.short_game_rounds = u8::try_from(rounds).unwrap_or(u8::MAX);
    }
    ruleset.validate().map_err(|error| Malformed::new(field(error.switch), error.problem))?;
    Ok((preset.name, ruleset))
}

fn position(field: &str, start: &str, ruleset: &Ruleset) -> Decoded<Position> {
    if start.is_empty() {
        return Ok(Position::start(ruleset));
    }
    if start.len() > POSITION_BYTES {
        let problem = format!("has {} bytes, at most {POSITION_BYTES} are allowed", start.len());
        return Err(Malformed::new(field, problem));
    }
    Position::set_up(start, ruleset).map_err(|error| Malformed::new(field, error.to_string()))
}

fn time_control(control: Option<pb::TimeControl>) -> Decoded<TimeControl> {
    use pb::time_control::{Increment, Kind, PerMove};
    let missing = |field: &str| Malformed::new(field, "must be set");
    Ok(match control.and_then(|control| control.kind) {
        None => TimeControl::Untimed,
        Some(Kind::PerMove(PerMove { limit })) => {
            let field = "time_control.per_move.limit";
            TimeControl::PerMove(span(field, &limit.ok_or_else(|| missing(field))?, &ALLOWANCE)?)
        }
        Some(Kind::Increment(Increment { initial, increment })) => {
            let field = "time_control.increment.initial";
            let initial = span(field, &initial.ok_or_else(|| missing(field))?, &ALLOWANCE)?;
            let increment = increment.unwrap_or_default();
            let increment = span("time_control.increment.increment", &increment, &INCREMENT)?;
            TimeControl::Increment { initial, increment }
        }
    })
}

fn clock_start(start: Option<pb::ClockStart>) -> Decoded<ClockStart> {
    use pb::clock_start::Kind;
    Ok(match start.and_then(|start| start.kind) {
        None => ClockStart::AtCreation,
        Some(Kind::At(at)) => ClockStart::At(timestamp("clock_start.at", &at)?),
        Some(Kind::JoinWindow(window)) => {
            ClockStart::WhenBothShown(span("clock_start.join_window", &window, &JOIN_WINDOW)?)
        }
    })
}

fn labels(labels: Vec<String>) -> Decoded<Vec<String>> {
    if labels.len() > LABELS {
        return Err(Malformed::new("labels", format!("are {}, at most {LABELS} are allowed", labels.len())));
    }
    for (index, label) in labels.iter().enumerate() {
        let field = format!("labels[{index}]");
        if label.is_empty() || label.len() > LABEL_BYTES {
            return Err(Malformed::new(field, format!("has {} bytes, 1 to {LABEL_BYTES} are allowed", label.len())));
        }
        if labels[..index].contains(label) {
            return Err(Malformed::new(field, format!("repeats the label {}", quote(label))));
        }
    }
    Ok(labels)
}

/// How a new game shall be.
pub(super) fn creation(request: pb::NewGameRequest) -> Decoded<Creation> {
    let (preset, ruleset) = ruleset("ruleset", request.ruleset)?;
    let time_control = time_control(request.time_control)?;
    if ruleset.timeouts_to_lose > 1 && matches!(time_control, TimeControl::Increment { .. }) {
        let problem =
            "two expiries to lose go with a limit per move or with no clock, not with initial time and increment";
        return Err(Malformed::new("time_control.increment", problem));
    }
    let grace = span("grace", &request.grace.unwrap_or_default(), &GRACE)?;
    if grace > Span::ZERO && time_control == TimeControl::Untimed {
        return Err(Malformed::new("grace", "goes with a time control only"));
    }
    let refusal_limit = request.refusal_limit.map(|limit| within("refusal_limit", limit, &REFUSALS)).transpose()?;
    let away_limit = request.away_limit.map(|limit| span("away_limit", &limit, &AWAY_LIMIT)).transpose()?;
    let idle_limit = request.idle_limit.map(|limit| span("idle_limit", &limit, &IDLE_LIMIT)).transpose()?;
    let settings = Settings {
        preset,
        start: position("start_position", &request.start_position, &ruleset)?,
        ruleset,
        time_control,
        grace,
        clock_start: clock_start(request.clock_start)?,
        is_match: request.is_match,
        refusal_limit,
        away_limit,
        idle_limit: idle_limit.unwrap_or(DEFAULT_IDLE_LIMIT),
        private: request.private,
    };
    let marks = Marks {
        labels: labels(request.labels)?,
        external_reference: text("external_reference", request.external_reference, REFERENCE_BYTES)?,
    };
    Ok(Creation { settings: Arc::new(settings), marks })
}

/// The position that a line of moves leads to, every move of it judged, and how the line ended.
pub(super) fn line(line: pb::MoveLine) -> Decoded<(Line, Option<crate::rules::Outcome>)> {
    let (_, ruleset) = ruleset("line.ruleset", line.ruleset)?;
    let start = position("line.start_position", &line.start_position, &ruleset)?;
    if line.moves.len() > LINE_MOVES {
        let problem = format!("are {}, at most {LINE_MOVES} are allowed", line.moves.len());
        return Err(Malformed::new("line.moves", problem));
    }
    let mut played = Line::new(start, ruleset);
    let mut outcome = None;
    for (index, mv) in line.moves.iter().enumerate() {
        let field = format!("line.moves[{index}]");
        let mv = a_move(&format!("{field}."), &mv.from_square, &mv.to_square)?;
        if outcome.is_some() {
            let problem = format!("{mv} comes after the end of the game");
            return Err(Malformed::new(field, problem).with("index", index));
        }
        let side = played.position().side_to_move();
        if let Err(violation) = played.judge(mv) {
            let rule = violation.rule().id();
            let problem = format!("{mv} is refused by {rule}: {violation}");
            return Err(Malformed::new(field, problem).with("index", index).with("rule", rule));
        }
        played.advance(mv);
        outcome = played
            .ending(side)
            .map(|(winner, reason)| crate::rules::Outcome::new(winner, reason, played.ply(), &ruleset, false));
    }
    Ok((played, outcome))
}

/// The reason for calling a game off.
pub(super) fn abort_reason(reason: String) -> Decoded<String> {
    if reason.trim().is_empty() {
        return Err(Malformed::new("reason", "must say why, for the players to read"));
    }
    text("reason", reason, ABORT_REASON_BYTES)
}

/// Whether a draw offer is to be made; else it is to be taken back.
pub(super) fn makes_offer(action: i32) -> Decoded<bool> {
    Ok(match known("action", action)? {
        None | Some(pb::DrawOfferAction::Unspecified | pb::DrawOfferAction::Make) => true,
        Some(pb::DrawOfferAction::TakeBack) => false,
    })
}

/// Whether a draw offer is accepted; else it is declined.
pub(super) fn accepts(answer: i32) -> Decoded<bool> {
    match known("answer", answer)? {
        Some(pb::DrawAnswer::Accept) => Ok(true),
        Some(pb::DrawAnswer::Decline) => Ok(false),
        None | Some(pb::DrawAnswer::Unspecified) => {
            Err(Malformed::new("answer", "must be DRAW_ANSWER_ACCEPT or DRAW_ANSWER_DECLINE"))
        }
    }
}

pub(super) fn heartbeat(heartbeat: Option<prost_types::Duration>) -> Decoded<Span> {
    heartbeat.map_or(Ok(DEFAULT_HEARTBEAT), |span_asked| span("heartbeat", &span_asked, &HEARTBEAT))
}

/// A page of a listing.
pub(super) struct Page {
    pub(super) filter: Filter,
    pub(super) after: Option<GameId>,
    pub(super) size: usize,
    /// Tells the pages of one filter from those of another.
    filter_digest: u64,
}

impl Page {
    /// The token of the page after the one that ends with this game.
    pub(super) fn token_after(&self, last: GameId) -> String {
        let mut token = last.as_u128().to_be_bytes().to_vec();
        token.extend_from_slice(&self.filter_digest.to_be_bytes());
        URL_SAFE_NO_PAD.encode(token)
    }
}

pub(super) fn page(request: pb::ListGamesRequest) -> Decoded<Page> {
    let status = match known("status", request.status)? {
        None | Some(pb::GameStatus::Unspecified) => None,
        Some(pb::GameStatus::Waiting) => Some(Status::Waiting),
        Some(pb::GameStatus::Running) => Some(Status::Running),
        Some(pb::GameStatus::Ended) => Some(Status::Ended),
    };
    let size = match within("page_size", request.page_size, &(0..=PAGE))? {
        0 => DEFAULT_PAGE,
        size => size,
    };
    let label = text("label", request.label, LABEL_BYTES)?;
    let external_reference = text("external_reference", request.external_reference, REFERENCE_BYTES)?;
    let filter_digest = digest("ListGames", format!("{status:?}\n{label:?}\n{external_reference:?}").as_bytes());
    let after = page_token(&request.page_token, filter_digest)?;
    let filter = Filter {
        status,
        label: Some(label).filter(|label| !label.is_empty()),
        external_reference: Some(external_reference).filter(|reference| !reference.is_empty()),
        private_too: false,
    };
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    Ok(Page { filter, after, size, filter_digest })
}

fn page_token(token: &str, filter_digest: u64) -> Decoded<Option<GameId>> {
    if token.is_empty() {
        return Ok(None);
    }
    let malformed = |problem: &str| Malformed::new("page_token", problem);
    let bytes = URL_SAFE_NO_PAD.decode(token).unwrap_or_default();
    let parts = bytes.split_first_chunk::<16>().and_then(|(id, rest)| Some((id, rest.first_chunk::<8>()?, rest.len())));
    let Some((id, digest, 8)) = parts else {
        return Err(malformed("is not a token that ListGames gave"));
    };
    if u64::from_be_bytes(*digest) != filter_digest {
        return Err(malformed("belongs to a listing with other filters; keep the filters the same"));
    }
    Ok(Some(GameId::from_u128(u128::from_be_bytes(*id))))
}
