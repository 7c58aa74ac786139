//! What the tests of the service's door share: every call as data, who calls, and an error taken
//! apart, with what every error keeps checked.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::collections::{BTreeMap, HashMap};

use jungle_referee::service::proto::{self as pb, FILE_DESCRIPTOR_SET};
use prost::Message as _;
use prost_types::{Duration, FileDescriptorSet};
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Status};
use tonic_types::{ErrorDetail, StatusExt as _};

use crate::server::{Client, within};

/// A creator's key for the servers that have one.
pub(crate) const CREATOR_KEY: &str = "a-creator-s-key-for-tests";
/// The flag that gives it.
pub(crate) const CREATOR_FLAG: &str = "--creator-key=a-creator-s-key-for-tests";

/// A request of any call.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "a test holds few of them")]
pub(crate) enum Ask {
    NewGame(pb::NewGameRequest),
    GetGame(pb::GetGameRequest),
    ListGames(pb::ListGamesRequest),
    ListRulesets(pb::ListRulesetsRequest),
    LegalMoves(pb::LegalMovesRequest),
    SubmitMove(pb::SubmitMoveRequest),
    OfferDraw(pb::OfferDrawRequest),
    AnswerDraw(pb::AnswerDrawRequest),
    LeaveGame(pb::LeaveGameRequest),
    AbortGame(pb::AbortGameRequest),
    WatchGame(pb::WatchGameRequest),
}

impl Ask {
    /// The call's name in the contract.
    pub(crate) fn call(&self) -> &'static str {
        match self {
            Self::NewGame(_) => "NewGame",
            Self::GetGame(_) => "GetGame",
            Self::ListGames(_) => "ListGames",
            Self::ListRulesets(_) => "ListRulesets",
            Self::LegalMoves(_) => "LegalMoves",
            Self::SubmitMove(_) => "SubmitMove",
            Self::OfferDraw(_) => "OfferDraw",
            Self::AnswerDraw(_) => "AnswerDraw",
            Self::LeaveGame(_) => "LeaveGame",
            Self::AbortGame(_) => "AbortGame",
            Self::WatchGame(_) => "WatchGame",
        }
    }

    /// Makes the call; a watch is dropped after its first message.
    pub(crate) async fn send(self, client: &mut Client, who: &MetadataMap) -> Result<(), Status> {
        match self {
            Self::NewGame(message) => client.new_game(with(who, message)).await.map(drop),
            Self::GetGame(message) => client.get_game(with(who, message)).await.map(drop),
            Self::ListGames(message) => client.list_games(with(who, message)).await.map(drop),
            Self::ListRulesets(message) => client.list_rulesets(with(who, message)).await.map(drop),
            Self::LegalMoves(message) => client.legal_moves(with(who, message)).await.map(drop),
            Self::SubmitMove(message) => client.submit_move(with(who, message)).await.map(drop),
            Self::OfferDraw(message) => client.offer_draw(with(who, message)).await.map(drop),
            Self::AnswerDraw(message) => client.answer_draw(with(who, message)).await.map(drop),
            Self::LeaveGame(message) => client.leave_game(with(who, message)).await.map(drop),
            Self::AbortGame(message) => client.abort_game(with(who, message)).await.map(drop),
            Self::WatchGame(message) => {
                let mut stream = client.watch_game(with(who, message)).await?.into_inner();
                within(stream.message()).await?.ok_or_else(|| Status::unknown("a stream of nothing")).map(drop)
            }
        }
    }
}

/// A request with this metadata.
pub(crate) fn with<T>(who: &MetadataMap, message: T) -> Request<T> {
    let mut request = Request::new(message);
    *request.metadata_mut() = who.clone();
    request
}

/// The metadata of a caller without a token.
pub(crate) fn nobody() -> MetadataMap {
    MetadataMap::new()
}

/// The metadata of a caller with a token or key.
pub(crate) fn bearer(token: &str) -> MetadataMap {
    authorization(&format!("Bearer {token}"))
}

/// The metadata with this header.
pub(crate) fn authorization(header: &str) -> MetadataMap {
    let mut metadata = MetadataMap::new();
    metadata.insert("authorization", header.parse().expect("it fits into a header"));
    metadata
}

/// A duration of so many milliseconds.
pub(crate) fn millis(millis: i64) -> Duration {
    let nanos = i32::try_from(millis % 1_000 * 1_000_000).expect("less than a second");
    Duration { seconds: millis / 1_000, nanos }
}

/// A UUID that ends in this number.
pub(crate) fn uuid(number: u32) -> String {
    format!("6d1f0c3a-8f0e-4a53-9a4e-0000{number:08x}")
}

/// Everything an error of the service carries.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) code: Code,
    pub(crate) reason: String,
    pub(crate) metadata: HashMap<String, String>,
}

impl Told {
    /// A value of the metadata; empty if it is not there.
    pub(crate) fn value(&self, name: &str) -> &str {
        self.metadata.get(name).map_or("", String::as_str)
    }
}

/// Takes an error of the service apart.
///
/// What every such error keeps is checked: exactly one ErrorInfo of the domain, whose reason the
/// contract lists with this status; a sentence; every number of it in the metadata; the metadata that
/// the contract promises; the details that fit the status; and under 4 KiB as it goes over the wire.
pub(crate) fn taken_apart(status: &Status) -> Result<Told, String> {
    let code = status.code();
    let complaint = |what: &str| format!("{what}: {code:?} {:?} {:?}", status.message(), status.get_error_details());
    let raw = tonic_types::Status::decode(status.details()).map_err(|_| complaint("unreadable details"))?;
    let details = status.check_error_details_vec().map_err(|_| complaint("unreadable details"))?;
    if raw.details.len() != details.len() {
        return Err(complaint("details of unknown types"));
    }
    let infos: Vec<_> = details
        .iter()
        .filter_map(|detail| if let ErrorDetail::ErrorInfo(info) = detail { Some(info) } else { None })
        .collect();
    let [info] = infos.as_slice() else {
        return Err(complaint("not exactly one ErrorInfo"));
    };
    if info.domain != "jungle.v1" {
        return Err(complaint("another domain"));
    }
    let promises = promises();
    let Some(promise) = promises.get(&info.reason) else {
        return Err(complaint("a reason that the contract does not list"));
    };
    if promise.code != code {
        return Err(complaint(&format!("the contract gives this reason with {:?}", promise.code)));
    }
    if let Some(missing) = promise.metadata.iter().find(|name| !info.metadata.contains_key(*name)) {
        return Err(complaint(&format!("the contract promises {missing} in the metadata")));
    }
    if status.message().trim().len() < 10 || (raw.code, raw.message.as_str()) != (i32::from(code), status.message()) {
        return Err(complaint("no sentence, or not the same one in the details"));
    }
    for number in status.message().split(|letter: char| !letter.is_ascii_digit()).filter(|run| !run.is_empty()) {
        if !info.metadata.values().any(|value| value.contains(number)) {
            return Err(complaint(&format!("{number} is not in the metadata")));
        }
    }
    let details = status.get_error_details();
    let violations = details.bad_request().map(|bad| bad.field_violations.as_slice()).unwrap_or_default();
    match (code, violations) {
        (Code::InvalidArgument, [violation]) => {
            let named = info.metadata.get("field") == Some(&violation.field);
            if !named || info.metadata.get("problem") != Some(&violation.description) {
                return Err(complaint("the BadRequest and the metadata differ"));
            }
        }
        (Code::InvalidArgument, _) => return Err(complaint("not one field in the BadRequest")),
        (_, []) => {}
        (_, _) => return Err(complaint("a BadRequest that does not fit")),
    }
    if details.precondition_failure().is_some() != (code == Code::FailedPrecondition) {
        return Err(complaint("a PreconditionFailure goes with FAILED_PRECONDITION"));
    }
    if code == Code::ResourceExhausted && details.retry_info().is_none() {
        return Err(complaint("no RetryInfo"));
    }
    // A message travels percent-encoded, details in base64.
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"\"#%<>`?{}".contains(&byte);
    let message: usize = status.message().bytes().map(|byte| if plain(byte) { 1 } else { 3 }).sum();
    let size = message + status.details().len().div_ceil(3) * 4;
    if size >= 4_096 {
        return Err(complaint(&format!("{size} bytes")));
    }
    Ok(Told { code, reason: info.reason.clone(), metadata: info.metadata.clone() })
}

/// Takes an error apart that must be there and in order.
#[track_caller]
pub(crate) fn told<T: std::fmt::Debug>(result: Result<T, Status>) -> Told {
    let status = result.expect_err("an error");
    taken_apart(&status).unwrap_or_else(|complaint| panic!("{complaint}"))
}

/// What the contract's comments say about a reason.
pub(crate) struct Promise {
    pub(crate) code: Code,
    /// The names that its metadata always has.
    pub(crate) metadata: Vec<String>,
}

/// The descriptors of the contract.
pub(crate) fn descriptors() -> FileDescriptorSet {
    FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).expect("the descriptors of this build")
}

/// What the comments of `ErrorReason` promise, by the reason's name without its prefix.
pub(crate) fn promises() -> BTreeMap<String, Promise> {
    let set = descriptors();
    let holds = |name: Option<&str>| name == Some("ErrorReason");
    let file = set.file.iter().find(|file| file.enum_type.iter().any(|found| holds(found.name.as_deref())));
    let file = file.expect("the file of ErrorReason");
    let index = file.enum_type.iter().position(|found| holds(found.name.as_deref())).expect("found above");
    let info = file.source_code_info.as_ref().expect("the comments");
    let mut promises = BTreeMap::new();
    for (number, value) in file.enum_type[index].value.iter().enumerate().skip(1) {
        // enum_type is field 5 of a file, value is field 2 of an enum.
        let path = [5, index, 2, number].map(|step| i32::try_from(step).expect("small"));
        let comment = info.location.iter().find(|location| location.path == path).expect("a location");
        let comment = comment.leading_comments.as_deref().unwrap_or_default().split_whitespace();
        let comment = comment.collect::<Vec<_>>().join(" ");
        let name = value.name.as_deref().and_then(|name| name.strip_prefix("ERROR_REASON_")).expect("a prefix");
        let status = comment.split(':').next().unwrap_or_default();
        let code = (0..17).map(Code::from_i32).find(|code| screaming(*code) == status);
        let code = code.unwrap_or_else(|| panic!("the comment of {name} does not begin with a status: {comment}"));
        promises.insert(name.to_owned(), Promise { code, metadata: promised_metadata(&comment) });
    }
    promises
}

/// `Metadata: a, b (one of these), c.` as names; what is there at times only is left out.
fn promised_metadata(comment: &str) -> Vec<String> {
    let Some((_, list)) = comment.split_once("Metadata: ") else {
        return Vec::new();
    };
    let list = list.split('.').next().unwrap_or_default();
    let mut names = String::new();
    let mut depth = 0;
    for letter in list.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            other if depth == 0 => names.push(other),
            _ => {}
        }
    }
    names.split(',').map(str::trim).filter(|name| !name.contains(' ')).map(str::to_owned).collect()
}

/// A status by its name in the contract: `InvalidArgument` is `INVALID_ARGUMENT`.
fn screaming(code: Code) -> String {
    let mut name = String::new();
    for letter in format!("{code:?}").chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

/// Where a line of 3,000 moves starts, under [`long_ruleset`].
pub(crate) const LONG_START: &str = "6e/7/7/7/7/w6/d6/c6/T5E r 0 1";

/// A ruleset without bars that lets a game go on for 500 rounds after each capture.
pub(crate) fn long_ruleset() -> pb::RulesetSpec {
    pb::RulesetSpec { preset: "folk".to_owned(), no_capture_rounds: Some(500), ..pb::RulesetSpec::default() }
}

/// A line of so many moves from [`LONG_START`]: the elephants shuttle, and Red's tiger takes an animal
/// every 900 plies.
pub(crate) fn long_line(plies: usize) -> Vec<pb::Move> {
    let (mut red_up, mut blue_down) = (false, false);
    let mut moves = Vec::with_capacity(plies);
    for ply in 0..plies {
        let mv = match ply {
            900 => "a1a2",
            1_800 => "a2a3",
            2_700 => "a3a4",
            _ if ply % 2 == 0 => {
                red_up = !red_up;
                if red_up { "g1g2" } else { "g2g1" }
            }
            _ => {
                blue_down = !blue_down;
                if blue_down { "g9g8" } else { "g8g9" }
            }
        };
        moves.push(a_move(mv));
    }
    moves
}

/// A move of a line, as `a3a4`.
pub(crate) fn a_move(mv: &str) -> pb::Move {
    pb::Move { from_square: mv[..2].to_owned(), to_square: mv[2..].to_owned() }
}
