//! Bad input at every field of every request. The fields are counted off the contract's descriptors: a
//! field without a row fails, and so does a row without a field.

use std::collections::BTreeSet;

use crate::door::{Ask, LONG_START, a_move, bearer, descriptors, long_line, long_ruleset, millis, nobody, told, uuid};
use crate::server::{EPOCH, Table, TestServer};
use jungle_referee::service::proto::legal_moves_request::Subject;
use jungle_referee::service::proto::{self as pb, clock_start, time_control};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, Duration, Timestamp};
use tonic::{Code, Request};

/// What a row expects.
#[derive(Clone, Debug)]
enum Expect {
    /// The call succeeds.
    Fine,
    /// INVALID_ARGUMENT that names this field, with these words in the problem.
    Bad(String, &'static str),
    /// Another error: the field was read, and what it says meets a state.
    Other(Code, &'static str),
}

type MakeAsk = Box<dyn Fn(&Table) -> Ask>;

struct Row {
    /// The field's path in the contract, as in `NewGame.labels[]`.
    path: String,
    /// What the field holds.
    holds: String,
    expect: Expect,
    ask: MakeAsk,
}

/// The table, grown row by row.
#[derive(Default)]
struct Rows {
    rows: Vec<Row>,
    /// Fields that any value is fine for, and why.
    free: Vec<(String, &'static str)>,
}

impl Rows {
    fn row(&mut self, path: &str, holds: impl Into<String>, expect: Expect, ask: impl Fn(&Table) -> Ask + 'static) {
        self.rows.push(Row { path: path.to_owned(), holds: holds.into(), expect, ask: Box::new(ask) });
    }

    fn fine(&mut self, path: &str, holds: impl Into<String>, ask: impl Fn(&Table) -> Ask + 'static) {
        self.row(path, holds, Expect::Fine, ask);
    }

    /// The error names the field as its path says.
    fn bad(&mut self, path: &str, holds: impl Into<String>, ask: impl Fn(&Table) -> Ask + 'static) {
        self.bad_at(path, field_of(path), holds, "", ask);
    }

    fn bad_at(
        &mut self,
        path: &str,
        field: impl Into<String>,
        holds: impl Into<String>,
        says: &'static str,
        ask: impl Fn(&Table) -> Ask + 'static,
    ) {
        self.row(path, holds, Expect::Bad(field.into(), says), ask);
    }

    fn free(&mut self, path: &str, why: &'static str) {
        self.free.push((path.to_owned(), why));
    }
}

/// `NewGame.ruleset.preset` names the field `ruleset.preset`.
fn field_of(path: &str) -> String {
    let (_, field) = path.split_once('.').expect("a call and a field");
    assert!(!field.contains("[]"), "{path}: name the field with its index");
    field.to_owned()
}

/// A text that is far too long, of letters that take the most bytes on the wire.
fn huge(letter: char) -> String {
    std::iter::repeat_n(letter, 60_000 / letter.len_utf8()).collect()
}

fn new_game(change: impl Fn(&mut pb::NewGameRequest)) -> Ask {
    let mut request = pb::NewGameRequest::default();
    change(&mut request);
    Ask::NewGame(request)
}

fn line(change: impl Fn(&mut pb::MoveLine)) -> Ask {
    let mut line = pb::MoveLine::default();
    change(&mut line);
    Ask::LegalMoves(pb::LegalMovesRequest { subject: Some(Subject::Line(line)), ..pb::LegalMovesRequest::default() })
}

/// Where a field's value goes in a request.
type Set<T> = fn(&Table, T) -> Ask;

fn durations(rows: &mut Rows, path: &str, low: i64, high: i64, ask: Set<Duration>) {
    let bad = [
        ("negative seconds", Duration { seconds: -1, nanos: 0 }),
        ("negative nanos", Duration { seconds: 0, nanos: -1_000_000 }),
        ("both negative", Duration { seconds: -1, nanos: -1_000_000 }),
        ("signs that differ", Duration { seconds: 2, nanos: -1_000_000 }),
        ("a whole second of nanos", Duration { seconds: 1, nanos: 1_000_000_000 }),
        ("the most nanos that fit", Duration { seconds: 1, nanos: i32::MAX }),
        ("a nanosecond too many", Duration { seconds: low / 1_000 + 1, nanos: 1 }),
        ("half a millisecond", Duration { seconds: low / 1_000 + 1, nanos: 500_000 }),
        ("above the range", millis(high + 1)),
        ("the most seconds that fit", Duration { seconds: i64::MAX, nanos: 999_000_000 }),
        ("the fewest seconds that fit", Duration { seconds: i64::MIN, nanos: 0 }),
    ];
    for (holds, duration) in bad {
        rows.bad(path, holds, move |table| ask(table, duration));
    }
    if low > 0 {
        rows.bad(path, "below the range", move |table| ask(table, millis(low - 1)));
        rows.bad(path, "nothing", move |table| ask(table, millis(0)));
    }
    rows.fine(path, "the lowest of the range", move |table| ask(table, millis(low)));
    rows.fine(path, "the highest of the range", move |table| ask(table, millis(high)));
}

fn squares(rows: &mut Rows, path: &str, field: &str, ask: Set<String>) {
    for square in ["h5", "a0", "A1", "a10", "", "a", "5a", " a1", "a1 ", "a\u{661}", "\u{ff41}1", "\0\0", "@1"] {
        rows.bad_at(path, field, format!("{square:?}"), "", move |table| ask(table, square.to_owned()));
    }
    for letter in ['a', '"', '\u{1}', '\u{10ffff}'] {
        let what = format!("60 KB of {letter:?}");
        rows.bad_at(path, field, what, "", move |table| ask(table, huge(letter)));
    }
}

fn game_ids(rows: &mut Rows, path: &str, read: Expect, ask: Set<String>) {
    let own = |table: &Table| table.id.clone();
    for id in ["", "game", "01900000-0000-7000-8000-00000000000", "01900000000070008000000000000000"] {
        rows.bad(path, format!("{id:?}"), move |table| ask(table, id.to_owned()));
    }
    rows.bad(path, "an id in braces", move |table| ask(table, format!("{{{}}}", own(table))));
    rows.bad(path, "an id and a blank", move |table| ask(table, format!("{} ", own(table))));
    rows.bad(path, "an id without hyphens", move |table| ask(table, own(table).replace('-', "")));
    for letter in ['0', '\u{10ffff}'] {
        rows.bad(path, format!("60 KB of {letter:?}"), move |table| ask(table, huge(letter)));
    }
    let nowhere = Expect::Other(Code::NotFound, "NO_SUCH_GAME");
    for (what, id) in [
        ("a v7 id of no game", "01900000-0000-7000-8000-000000000000"),
        ("a v7 id of the far future", "ffffffff-ffff-7fff-bfff-ffffffffffff"),
        ("a v4 id", "6d1f0c3a-8f0e-4a53-9a4e-000000000001"),
        ("the nil id", "00000000-0000-0000-0000-000000000000"),
    ] {
        rows.row(path, what, nowhere.clone(), move |table| ask(table, id.to_owned()));
    }
    rows.row(path, "its id", read.clone(), move |table| ask(table, own(table)));
    rows.row(path, "its id in upper case", read, move |table| ask(table, own(table).to_uppercase()));
}

fn request_ids(rows: &mut Rows, path: &str, read: Expect, ask: Set<String>) {
    let dashless = uuid(1).replace('-', "");
    let bad = ["x", " ", "6d1f0c3a-8f0e-4a53-9a4e-00000000000", "zd1f0c3a-8f0e-4a53-9a4e-000000000001"];
    let bad = bad.map(str::to_owned).into_iter();
    for id in bad.chain([dashless, format!("{{{}}}", uuid(1)), format!("urn:uuid:{}", uuid(1))]) {
        rows.bad(path, format!("{id:?}"), move |table| ask(table, id.clone()));
    }
    for letter in ['-', '\u{10ffff}'] {
        rows.bad(path, format!("60 KB of {letter:?}"), move |table| ask(table, huge(letter)));
    }
    rows.row(path, "nothing", read.clone(), move |table| ask(table, String::new()));
    rows.row(path, "a UUID", read.clone(), move |table| ask(table, uuid(2)));
    rows.row(path, "a UUID in upper case", read, move |table| ask(table, uuid(3).to_uppercase()));
}

/// The texts of section 1 that are refused, with what the refusal says; later faults follow earlier ones.
const POSITIONS: [(&str, &str); 28] = [
    (" ", "parts"),
    ("e6/7/7/7/7/7/7/7/6E r 0", "parts"),
    ("e6/7/7/7/7/7/7/7/6E  r 0 1", "parts"),
    ("e6/7/7/7/7/7/7/7/6E r 0 1 ", "parts"),
    ("e6/7/7/7/7/7/7/6E r 0 1", "ranks"),
    ("e6/7/7/7/7/7/7/7/7/6E r 0 1", "ranks"),
    ("x6/7/7/7/7/7/7/7/6E r 0 1", "rank 9"),
    ("e6/7/7/7/8/7/7/7/6E r 0 1", "rank 5"),
    ("e6/7/7/7/7/7/7/0e6/6E r 0 1", "rank 2"),
    ("e51/7/7/7/7/7/7/7/6E r 0 1", "two digits"),
    ("e7/7/7/7/7/7/7/7/6E r 0 1", "7 squares"),
    ("e5/7/7/7/7/7/7/7/6E r 0 1", "7 squares"),
    ("e6/7/7/7/7/7/7/7/6E R 0 1", "side to move"),
    ("e6/7/7/7/7/7/7/7/6E r 00 1", "quiet"),
    ("e6/7/7/7/7/7/7/7/6E r -1 1", "quiet"),
    ("e6/7/7/7/7/7/7/7/6E r +1 1", "quiet"),
    ("e6/7/7/7/7/7/7/7/6E r 0 0", "round"),
    ("e6/7/7/7/7/7/7/7/6E r 0 01", "round"),
    ("e6/7/7/7/7/7/7/7/6E r 0 10000", "round"),
    ("fee4/7/7/7/7/7/7/7/7 r 0 0", "round"),
    ("fee4/7/7/7/7/7/7/7/7 r 0 1", "ladder"),
    ("ee5/7/7/7/7/7/7/7/7 r 0 1", "twice"),
    ("7/7/7/1L5/7/7/7/7/7 r 0 1", "has no animal"),
    ("3E3/7/7/1l5/7/7/7/7/7 r 200 1", "river"),
    ("3E3/7/7/7/7/7/7/7/6e r 200 1", "den"),
    ("7/7/7/7/7/7/7/l6/Ct5 r 200 1", "draw"),
    ("7/7/7/7/7/7/7/l6/Ct5 r 199 1", "no move"),
    ("e6/7/7/7/7/7/7/7/6E r 99999999999999999999 1", "draw"),
];

fn positions(rows: &mut Rows, path: &str, ask: Set<String>) {
    for (text, says) in POSITIONS {
        rows.bad_at(path, field_of(path), format!("{text:?}"), says, move |table| ask(table, text.to_owned()));
    }
    let padded = |bytes: usize| format!("{:x<bytes$}", "e6/7/7/7/7/7/7/7/6E r 0 1");
    rows.bad_at(path, field_of(path), "128 bytes", "round", move |table| ask(table, padded(128)));
    rows.bad_at(path, field_of(path), "129 bytes", "at most 128", move |table| ask(table, padded(129)));
    rows.bad_at(path, field_of(path), "60 KB", "at most 128", move |table| ask(table, huge('e')));
    rows.fine(path, "nothing: the usual start", move |table| ask(table, String::new()));
    for text in ["e6/7/7/7/7/7/7/7/6E r 0 9999", "e6/7/7/1r5/7/7/7/7/6E b 199 1"] {
        rows.fine(path, text, move |table| ask(table, text.to_owned()));
    }
}

fn rulesets(rows: &mut Rows, path: &str, ask: Set<pb::RulesetSpec>) {
    let at = |field: &str| format!("{path}.{field}");
    fn spec(change: impl FnOnce(&mut pb::RulesetSpec)) -> pb::RulesetSpec {
        let mut spec = pb::RulesetSpec::default();
        change(&mut spec);
        spec
    }
    rows.fine(path, "nothing set: yeshou", move |table| ask(table, pb::RulesetSpec::default()));
    for preset in ["Yeshou", "chess", " ", "yeshou ", "\u{91ce}\u{517d}\u{4e89}\u{9738}"] {
        rows.bad(&at("preset"), format!("{preset:?}"), move |table| ask(table, spec(|s| s.preset = preset.to_owned())));
    }
    for letter in ['y', '"', '\u{1}', '\u{10ffff}'] {
        let what = format!("60 KB of {letter:?}");
        rows.bad(&at("preset"), what, move |table| ask(table, spec(|s| s.preset = huge(letter))));
    }
    for preset in ["", "yeshou", "datou", "folk", "folk-fox"] {
        rows.fine(&at("preset"), preset, move |table| ask(table, spec(|s| s.preset = preset.to_owned())));
    }
    type Change<T> = fn(&mut pb::RulesetSpec, T);
    let enums: [(&str, i32, Change<i32>); 3] = [
        ("ladder", 3, |s, number| s.ladder = number),
        ("jump_blockers", 2, |s, number| s.jump_blockers = number),
        ("tiger_jump", 2, |s, number| s.tiger_jump = number),
    ];
    for (field, last, set) in enums {
        for number in [-1, last + 1, i32::MAX, i32::MIN] {
            let holds = format!("the unknown number {number}");
            rows.bad(&at(field), holds, move |table| ask(table, spec(|s| set(s, number))));
        }
        for number in 0..=last {
            rows.fine(&at(field), number.to_string(), move |table| ask(table, spec(|s| set(s, number))));
        }
    }
    type Numbers = &'static [u32];
    let numbers: [(&str, Numbers, Numbers, Change<u32>); 3] = [
        ("timeouts_to_lose", &[0, 3, 257, u32::MAX], &[1, 2], |s, number| s.timeouts_to_lose = Some(number)),
        ("no_capture_rounds", &[0, 501, 65_537, u32::MAX], &[1, 500], |s, number| s.no_capture_rounds = Some(number)),
        ("short_game_rounds", &[101, 256, u32::MAX], &[0, 100], |s, number| s.short_game_rounds = Some(number)),
    ];
    for (field, bad, fine, set) in numbers {
        for number in bad.iter().copied() {
            // The problem names the number that was sent.
            let says: &'static str = format!("{number}").leak();
            let ask = move |table: &Table| ask(table, spec(|s| set(s, number)));
            rows.bad_at(&at(field), field_of(&at(field)), number.to_string(), says, ask);
        }
        for number in fine.iter().copied() {
            rows.fine(&at(field), number.to_string(), move |table| ask(table, spec(|s| set(s, number))));
        }
    }
    for field in ["rats_capture_across_bank", "trapped_may_capture", "agreed_draw", "seven_three", "seventeen_five"] {
        rows.free(&at(field), "a bool, set or not");
    }
}

fn new_games(rows: &mut Rows) {
    request_ids(rows, "NewGame.request_id", Expect::Fine, |_, id| new_game(|r| r.request_id.clone_from(&id)));
    rulesets(rows, "NewGame.ruleset", |_, spec| new_game(|r| r.ruleset = Some(spec.clone())));
    positions(rows, "NewGame.start_position", |_, text| new_game(|r| r.start_position.clone_from(&text)));
    rows.bad_at("NewGame.start_position", "start_position", "a fox's letter for a wolf's", "ladder", |_| {
        new_game(|r| {
            r.ruleset = Some(pb::RulesetSpec { preset: "folk-fox".to_owned(), ..pb::RulesetSpec::default() });
            r.start_position = "w6/7/7/7/7/7/7/7/6E r 0 1".to_owned();
        })
    });

    fn timed(kind: Option<time_control::Kind>) -> Option<pb::TimeControl> {
        Some(pb::TimeControl { kind })
    }
    fn per_move(limit: Option<Duration>) -> Option<pb::TimeControl> {
        timed(Some(time_control::Kind::PerMove(time_control::PerMove { limit })))
    }
    fn increment(initial: Option<Duration>, increment: Option<Duration>) -> Option<pb::TimeControl> {
        timed(Some(time_control::Kind::Increment(time_control::Increment { initial, increment })))
    }
    const DAYS_30: i64 = 30 * 86_400_000;
    const DAYS_366: i64 = 366 * 86_400_000;
    rows.fine("NewGame.time_control", "nothing set: untimed", |_| new_game(|r| r.time_control = timed(None)));
    rows.fine("NewGame.time_control.kind", "not set: untimed", |_| new_game(|r| r.time_control = timed(None)));
    rows.bad_at("NewGame.time_control.per_move", "time_control.per_move.limit", "no limit", "must be set", |_| {
        new_game(|r| r.time_control = per_move(None))
    });
    durations(rows, "NewGame.time_control.per_move.limit", 10, DAYS_30, |_, limit| {
        new_game(|r| r.time_control = per_move(Some(limit)))
    });
    let stock = "NewGame.time_control.increment";
    rows.bad_at(stock, "time_control.increment.initial", "no initial time", "must be set", |_| {
        new_game(|r| r.time_control = increment(None, Some(millis(10))))
    });
    rows.bad_at(stock, "time_control.increment", "two expiries to lose by the preset", "two expiries", |_| {
        new_game(|r| {
            r.ruleset = Some(pb::RulesetSpec { preset: "datou".to_owned(), ..pb::RulesetSpec::default() });
            r.time_control = increment(Some(millis(60_000)), None);
        })
    });
    rows.bad_at(stock, "time_control.increment", "two expiries to lose by the switch", "two expiries", |_| {
        new_game(|r| {
            r.ruleset = Some(pb::RulesetSpec { timeouts_to_lose: Some(2), ..pb::RulesetSpec::default() });
            r.time_control = increment(Some(millis(60_000)), Some(millis(0)));
        })
    });
    rows.fine(stock, "one expiry to lose where the preset has two", |_| {
        new_game(|r| {
            let preset = "datou".to_owned();
            r.ruleset = Some(pb::RulesetSpec { preset, timeouts_to_lose: Some(1), ..pb::RulesetSpec::default() });
            r.time_control = increment(Some(millis(60_000)), None);
        })
    });
    durations(rows, "NewGame.time_control.increment.initial", 10, DAYS_30, |_, initial| {
        new_game(|r| r.time_control = increment(Some(initial), None))
    });
    durations(rows, "NewGame.time_control.increment.increment", 0, DAYS_30, |_, gain| {
        new_game(|r| r.time_control = increment(Some(millis(1_000)), Some(gain)))
    });
    durations(rows, "NewGame.grace", 0, 5_000, |_, grace| {
        new_game(|r| {
            r.time_control = per_move(Some(millis(1_000)));
            r.grace = Some(grace);
        })
    });
    rows.bad_at("NewGame.grace", "grace", "some, in an untimed game", "time control", |_| {
        new_game(|r| r.grace = Some(millis(1)))
    });
    rows.fine("NewGame.grace", "none, in an untimed game", |_| new_game(|r| r.grace = Some(millis(0))));

    fn starts(kind: Option<clock_start::Kind>) -> Ask {
        new_game(|r| r.clock_start = Some(pb::ClockStart { kind }))
    }
    rows.fine("NewGame.clock_start", "nothing set: at creation", |_| starts(None));
    rows.fine("NewGame.clock_start.kind", "not set: at creation", |_| starts(None));
    let epoch = i64::try_from(EPOCH.micros() / 1_000_000).expect("it fits");
    let year = 366 * 86_400;
    let moments = [
        ("this very moment", epoch, 0, false),
        ("a moment ago", epoch - 1, 999_000_000, false),
        ("1970", 0, 0, false),
        ("before 1970", -1, 0, false),
        ("before 1970, with nanos", -1, 999_000_000, false),
        ("the fewest seconds that fit", i64::MIN, 0, false),
        ("the most seconds that fit", i64::MAX, 0, false),
        ("negative nanos", epoch + 10, -1, false),
        ("a whole second of nanos", epoch + 10, 1_000_000_000, false),
        ("half a millisecond", epoch + 10, 500_000, false),
        ("a millisecond from now", epoch, 1_000_000, true),
        ("366 days from now", epoch + year, 0, true),
        ("a millisecond later than that", epoch + year, 1_000_000, false),
    ];
    for (holds, seconds, nanos, fine) in moments {
        let ask = move |_: &Table| starts(Some(clock_start::Kind::At(Timestamp { seconds, nanos })));
        if fine {
            rows.fine("NewGame.clock_start.at", holds, ask);
        } else {
            rows.bad("NewGame.clock_start.at", holds, ask);
        }
    }
    durations(rows, "NewGame.clock_start.join_window", 1_000, DAYS_366, |_, window| {
        starts(Some(clock_start::Kind::JoinWindow(window)))
    });
    for limit in [0, 1_001, u32::MAX] {
        rows.bad("NewGame.refusal_limit", limit.to_string(), move |_| new_game(|r| r.refusal_limit = Some(limit)));
    }
    for limit in [1, 1_000] {
        rows.fine("NewGame.refusal_limit", limit.to_string(), move |_| new_game(|r| r.refusal_limit = Some(limit)));
    }
    durations(rows, "NewGame.away_limit", 1_000, DAYS_30, |_, limit| new_game(|r| r.away_limit = Some(limit)));
    durations(rows, "NewGame.idle_limit", 1_000, DAYS_366, |_, limit| new_game(|r| r.idle_limit = Some(limit)));
    rows.free("NewGame.is_match", "a bool");
    rows.free("NewGame.private", "a bool");

    let numbered = |count: usize| (0..count).map(|index| format!("label {index}")).collect::<Vec<_>>();
    let labels = |rows: &mut Rows, holds: &str, labels: Vec<String>, expect: Option<(&str, &'static str)>| {
        let ask = move |_: &Table| new_game(|r| r.labels.clone_from(&labels));
        match expect {
            None => rows.fine("NewGame.labels[]", holds, ask),
            Some((field, says)) => rows.bad_at("NewGame.labels[]", field, holds, says, ask),
        }
    };
    labels(rows, "16 labels", numbered(16), None);
    labels(rows, "17 labels", numbered(17), Some(("labels", "at most 16")));
    labels(rows, "64 bytes", vec!["a".repeat(64), "\u{10ffff}".repeat(16)], None);
    labels(rows, "65 bytes", vec!["a".repeat(65)], Some(("labels[0]", "65 bytes")));
    labels(rows, "22 letters of 3 bytes", vec!["a".to_owned(), "\u{91ce}".repeat(22)], Some(("labels[1]", "66 bytes")));
    labels(rows, "60 KB", vec!["a".to_owned(), huge('\u{10ffff}')], Some(("labels[1]", "1 to 64")));
    labels(rows, "an empty one", vec!["a".to_owned(), String::new()], Some(("labels[1]", "1 to 64")));
    let twice = vec!["a".to_owned(), "b".to_owned(), "a".to_owned()];
    labels(rows, "two alike", twice, Some(("labels[2]", "repeats")));
    let wide = "\u{10ffff}".repeat(16);
    labels(rows, "two alike of 16 wide letters", vec![wide.clone(), wide], Some(("labels[1]", "repeats")));
    labels(rows, "two that differ in case", vec!["a".to_owned(), "A".to_owned()], None);

    for (bytes, fine) in [(1, true), (128, true), (129, false), (60_000, false)] {
        let ask = move |_: &Table| new_game(|r| r.external_reference = "r".repeat(bytes));
        if fine {
            rows.fine("NewGame.external_reference", format!("{bytes} bytes"), ask);
        } else {
            rows.bad("NewGame.external_reference", format!("{bytes} bytes"), ask);
        }
    }
}

fn listings(rows: &mut Rows, other_filters: String) {
    fn list(change: impl Fn(&mut pb::ListGamesRequest)) -> Ask {
        let mut request = pb::ListGamesRequest::default();
        change(&mut request);
        Ask::ListGames(request)
    }
    for status in [-1, 4, i32::MAX] {
        rows.bad("ListGames.status", format!("the unknown number {status}"), move |_| list(|r| r.status = status));
    }
    for status in 0..=3 {
        rows.fine("ListGames.status", status.to_string(), move |_| list(|r| r.status = status));
    }
    for (bytes, fine) in [(0, true), (64, true), (65, false), (60_000, false)] {
        let ask = move |_: &Table| list(|r| r.label = "l".repeat(bytes));
        let holds = format!("{bytes} bytes");
        if fine { rows.fine("ListGames.label", holds, ask) } else { rows.bad("ListGames.label", holds, ask) }
    }
    for (bytes, fine) in [(0, true), (128, true), (129, false), (60_000, false)] {
        let ask = move |_: &Table| list(|r| r.external_reference = "r".repeat(bytes));
        let (path, holds) = ("ListGames.external_reference", format!("{bytes} bytes"));
        if fine { rows.fine(path, holds, ask) } else { rows.bad(path, holds, ask) }
    }
    for (size, fine) in [(0, true), (1, true), (500, true), (501, false), (u32::MAX, false)] {
        let ask = move |_: &Table| list(|r| r.page_size = size);
        let (path, holds) = ("ListGames.page_size", size.to_string());
        if fine { rows.fine(path, holds, ask) } else { rows.bad(path, holds, ask) }
    }
    let path = "ListGames.page_token";
    let short = other_filters[..other_filters.len() - 1].to_owned();
    let long = format!("{other_filters}AAAA");
    for token in ["x", " ", "AAAA", "====", "!!!!", "\u{91ce}"].map(str::to_owned).into_iter().chain([short, long]) {
        rows.bad(path, format!("{token:?}"), move |_| list(|r| r.page_token.clone_from(&token)));
    }
    for letter in ['A', '\u{10ffff}'] {
        rows.bad(path, format!("60 KB of {letter:?}"), move |_| list(|r| r.page_token = huge(letter)));
    }
    let token = other_filters.clone();
    rows.bad_at(path, "page_token", "a token of other filters", "filters", move |_| {
        list(|r| r.page_token.clone_from(&token))
    });
    rows.fine(path, "a token of these filters", move |_| {
        list(|r| {
            r.label = "listed".to_owned();
            r.page_token.clone_from(&other_filters);
        })
    });
    rows.fine(path, "nothing: the first page", |_| list(|r| r.page_token = String::new()));
}

fn legal_moves(rows: &mut Rows) {
    fn of_game(id: String) -> Ask {
        let subject = Some(Subject::GameId(id));
        Ask::LegalMoves(pb::LegalMovesRequest { subject, ..pb::LegalMovesRequest::default() })
    }
    rows.bad_at("LegalMoves.subject", "subject", "not set", "set game_id or line", |_| {
        Ask::LegalMoves(pb::LegalMovesRequest::default())
    });
    game_ids(rows, "LegalMoves.game_id", Expect::Fine, |_, id| of_game(id));
    rows.fine("LegalMoves.line", "nothing set: the usual start", |_| line(|_| {}));
    rulesets(rows, "LegalMoves.line.ruleset", |_, spec| line(|l| l.ruleset = Some(spec.clone())));
    positions(rows, "LegalMoves.line.start_position", |_, text| line(|l| l.start_position.clone_from(&text)));
    fn long(plies: usize) -> Ask {
        line(|l| {
            l.start_position = LONG_START.to_owned();
            l.ruleset = Some(long_ruleset());
            l.moves = long_line(plies);
        })
    }
    let moves = "LegalMoves.line.moves[]";
    rows.fine(moves, "3,000 moves", |_| long(3_000));
    rows.bad_at(moves, "line.moves", "3,001 moves", "at most 3000", |_| long(3_001));
    rows.bad_at(moves, "line.moves", "3,001 moves of nothing", "at most 3000", |_| {
        line(|l| l.moves = vec![pb::Move::default(); 3_001])
    });
    rows.bad_at(moves, "line.moves[1]", "a move that is not allowed", "STEP", |_| {
        line(|l| l.moves = ["a3a4", "a7a5", "g3g4"].map(a_move).to_vec())
    });
    rows.bad_at(moves, "line.moves[0]", "a move of the other side", "NOT_YOUR_ANIMAL", |_| {
        line(|l| l.moves = vec![a_move("a7a6")])
    });
    rows.bad_at(moves, "line.moves[1]", "a move after the end", "after the end", |_| {
        line(|l| {
            l.start_position = "6e/3T3/7/7/7/7/7/7/7 r 0 1".to_owned();
            l.moves = ["d8d9", "g9g8"].map(a_move).to_vec();
        })
    });
    squares(rows, "LegalMoves.line.moves[].from_square", "line.moves[1].from_square", |_, square| {
        let second = pb::Move { from_square: square, to_square: "a6".to_owned() };
        line(|l| l.moves = vec![a_move("a3a4"), second.clone()])
    });
    squares(rows, "LegalMoves.line.moves[].to_square", "line.moves[1].to_square", |_, square| {
        let second = pb::Move { from_square: "a7".to_owned(), to_square: square };
        line(|l| l.moves = vec![a_move("a3a4"), second.clone()])
    });
    squares(rows, "LegalMoves.from_square", "from_square", |table, square| {
        let subject = Some(Subject::GameId(table.id.clone()));
        Ask::LegalMoves(pb::LegalMovesRequest { subject, from_square: Some(square), explain: false })
    });
    for square in ["a3", "d5", "a7"] {
        rows.fine("LegalMoves.from_square", square, move |table| {
            let subject = Some(Subject::GameId(table.id.clone()));
            let from_square = Some(square.to_owned());
            Ask::LegalMoves(pb::LegalMovesRequest { subject, from_square, explain: true })
        });
    }
    rows.free("LegalMoves.explain", "a bool");
}

fn seats(rows: &mut Rows) {
    fn submit(table: &Table, change: impl Fn(&mut pb::SubmitMoveRequest)) -> Ask {
        let mut request = table.submit("a3a4");
        change(&mut request);
        Ask::SubmitMove(request)
    }
    request_ids(rows, "SubmitMove.request_id", Expect::Fine, |table, id| {
        submit(table, |r| {
            r.request_id.clone_from(&id);
            r.expected_ply = Some(0);
        })
    });
    game_ids(rows, "SubmitMove.game_id", Expect::Fine, |table, id| submit(table, |r| r.game_id.clone_from(&id)));
    rows.bad_at("SubmitMove.expected_ply", "expected_ply", "absent with a request_id", "must be set", |table| {
        submit(table, |r| r.request_id = uuid(1))
    });
    for ply in [1, u32::MAX] {
        let stale = Expect::Other(Code::Aborted, "STALE_PLY");
        rows.row("SubmitMove.expected_ply", ply.to_string(), stale, move |table| {
            submit(table, |r| r.expected_ply = Some(ply))
        });
    }
    rows.fine("SubmitMove.expected_ply", "0", |table| submit(table, |r| r.expected_ply = Some(0)));
    squares(rows, "SubmitMove.from_square", "from_square", |table, square| {
        submit(table, |r| r.from_square.clone_from(&square))
    });
    squares(rows, "SubmitMove.to_square", "to_square", |table, square| {
        submit(table, |r| r.to_square.clone_from(&square))
    });
    rows.free("SubmitMove.offer_draw", "a bool");

    fn offer(table: &Table, change: impl Fn(&mut pb::OfferDrawRequest)) -> Ask {
        let mut request = pb::OfferDrawRequest { game_id: table.id.clone(), ..pb::OfferDrawRequest::default() };
        change(&mut request);
        Ask::OfferDraw(request)
    }
    request_ids(rows, "OfferDraw.request_id", Expect::Fine, |t, id| offer(t, |r| r.request_id.clone_from(&id)));
    game_ids(rows, "OfferDraw.game_id", Expect::Fine, |t, id| offer(t, |r| r.game_id.clone_from(&id)));
    for action in [-1, 3, i32::MAX] {
        let holds = format!("the unknown number {action}");
        rows.bad("OfferDraw.action", holds, move |table| offer(table, |r| r.action = action));
    }
    rows.fine("OfferDraw.action", "0: make", |table| offer(table, |r| r.action = 0));
    rows.fine("OfferDraw.action", "1: make", |table| offer(table, |r| r.action = 1));
    let none = Expect::Other(Code::FailedPrecondition, "NO_OFFER");
    rows.row("OfferDraw.action", "2: take back", none.clone(), |table| offer(table, |r| r.action = 2));

    fn answer(table: &Table, change: impl Fn(&mut pb::AnswerDrawRequest)) -> Ask {
        let mut request = pb::AnswerDrawRequest { game_id: table.id.clone(), answer: 1, request_id: String::new() };
        change(&mut request);
        Ask::AnswerDraw(request)
    }
    request_ids(rows, "AnswerDraw.request_id", none.clone(), |t, id| answer(t, |r| r.request_id.clone_from(&id)));
    game_ids(rows, "AnswerDraw.game_id", none.clone(), |t, id| answer(t, |r| r.game_id.clone_from(&id)));
    for number in [0, -1, 3, i32::MAX] {
        rows.bad("AnswerDraw.answer", number.to_string(), move |table| answer(table, |r| r.answer = number));
    }
    for number in [1, 2] {
        let holds = number.to_string();
        rows.row("AnswerDraw.answer", holds, none.clone(), move |table| answer(table, |r| r.answer = number));
    }

    fn leave(table: &Table, request_id: String) -> Ask {
        Ask::LeaveGame(pb::LeaveGameRequest { request_id, game_id: table.id.clone() })
    }
    request_ids(rows, "LeaveGame.request_id", Expect::Fine, leave);
    game_ids(rows, "LeaveGame.game_id", Expect::Fine, |_, game_id| {
        Ask::LeaveGame(pb::LeaveGameRequest { request_id: String::new(), game_id })
    });
}

fn arbiters_and_watchers(rows: &mut Rows) {
    fn abort(table: &Table, change: impl Fn(&mut pb::AbortGameRequest)) -> Ask {
        let (game_id, reason) = (table.id.clone(), "rain".to_owned());
        let mut request = pb::AbortGameRequest { request_id: String::new(), game_id, reason };
        change(&mut request);
        Ask::AbortGame(request)
    }
    request_ids(rows, "AbortGame.request_id", Expect::Fine, |t, id| abort(t, |r| r.request_id.clone_from(&id)));
    game_ids(rows, "AbortGame.game_id", Expect::Fine, |t, id| abort(t, |r| r.game_id.clone_from(&id)));
    for reason in ["", " ", " \t\n", "\u{3000}"] {
        rows.bad("AbortGame.reason", format!("{reason:?}"), move |t| abort(t, |r| r.reason = reason.to_owned()));
    }
    for (bytes, fine) in [(1, true), (256, true), (257, false), (60_000, false)] {
        let ask = move |table: &Table| abort(table, |r| r.reason = "x".repeat(bytes));
        let holds = format!("{bytes} bytes");
        if fine { rows.fine("AbortGame.reason", holds, ask) } else { rows.bad("AbortGame.reason", holds, ask) }
    }

    fn watch(table: &Table, change: impl Fn(&mut pb::WatchGameRequest)) -> Ask {
        let mut request = pb::WatchGameRequest { game_id: table.id.clone(), after_sequence: None, heartbeat: None };
        change(&mut request);
        Ask::WatchGame(request)
    }
    game_ids(rows, "WatchGame.game_id", Expect::Fine, |t, id| watch(t, |r| r.game_id.clone_from(&id)));
    rows.fine("WatchGame.after_sequence", "0", |table| watch(table, |r| r.after_sequence = Some(0)));
    for sequence in [2, u64::MAX] {
        let beyond = Expect::Other(Code::OutOfRange, "BEYOND_HEAD");
        rows.row("WatchGame.after_sequence", sequence.to_string(), beyond, move |table| {
            watch(table, |r| r.after_sequence = Some(sequence))
        });
    }
    durations(rows, "WatchGame.heartbeat", 1_000, 30_000, |t, heartbeat| watch(t, |r| r.heartbeat = Some(heartbeat)));
}

/// Every field of every request of the contract, oneofs too, as `NewGame.labels[]`.
fn fields_of_the_contract() -> BTreeSet<String> {
    let set = descriptors();
    let messages: Vec<(String, &DescriptorProto)> = set
        .file
        .iter()
        .flat_map(|file| {
            let package = file.package.clone().unwrap_or_default();
            file.message_type.iter().flat_map(move |message| with_nested(&format!(".{package}"), message))
        })
        .collect();
    let mut fields = BTreeSet::new();
    for method in set.file.iter().flat_map(|file| &file.service).flat_map(|service| &service.method) {
        let call = method.name.clone().unwrap_or_default();
        walk(&messages, method.input_type.as_deref().unwrap_or_default(), &call, &mut fields);
    }
    fields
}

fn with_nested<'a>(scope: &str, message: &'a DescriptorProto) -> Vec<(String, &'a DescriptorProto)> {
    let name = format!("{scope}.{}", message.name.as_deref().unwrap_or_default());
    let nested = message.nested_type.iter().flat_map(|inner| with_nested(&name, inner)).collect::<Vec<_>>();
    std::iter::once((name, message)).chain(nested).collect()
}

fn walk(messages: &[(String, &DescriptorProto)], name: &str, path: &str, fields: &mut BTreeSet<String>) {
    let (_, message) = messages.iter().find(|(known, _)| known == name).expect("a message of the contract");
    let synthetic = |index: usize| {
        message.field.iter().any(|field| {
            field.proto3_optional() && field.oneof_index.and_then(|of| usize::try_from(of).ok()) == Some(index)
        })
    };
    for (index, oneof) in message.oneof_decl.iter().enumerate() {
        if !synthetic(index) {
            fields.insert(format!("{path}.{}", oneof.name.as_deref().unwrap_or_default()));
        }
    }
    for field in &message.field {
        let repeated = if field.label() == Label::Repeated { "[]" } else { "" };
        let path = format!("{path}.{}{repeated}", field.name.as_deref().unwrap_or_default());
        // A duration or timestamp is one value; its parts are rows of the one field.
        if field.r#type() == Type::Message && !field.type_name().starts_with(".google.protobuf.") {
            walk(messages, field.type_name(), &path, fields);
        }
        fields.insert(path);
    }
}

fn table(other_filters: String) -> Rows {
    let mut rows = Rows::default();
    new_games(&mut rows);
    game_ids(&mut rows, "GetGame.game_id", Expect::Fine, |_, game_id| Ask::GetGame(pb::GetGameRequest { game_id }));
    listings(&mut rows, other_filters);
    legal_moves(&mut rows);
    seats(&mut rows);
    arbiters_and_watchers(&mut rows);
    rows
}

/// "I forgot a field, or filled it with rubbish: tell me which, and what is wrong with it."
#[tokio::test]
async fn whatever_a_caller_writes_into_a_field_the_answer_names_the_field_and_the_problem() {
    let server = TestServer::start_manual(&["--max-open-games=100000"]).await;
    let mut client = server.client().await;
    for label in ["listed", "listed", "other"] {
        let labels = vec![label.to_owned()];
        Table::new(&mut client, pb::NewGameRequest { labels, ..pb::NewGameRequest::default() }).await;
    }
    let label = "listed".to_owned();
    let first = pb::ListGamesRequest { label, page_size: 1, ..pb::ListGamesRequest::default() };
    let other_filters = client.list_games(first).await.expect("a page").into_inner().next_page_token;
    let Rows { rows, free } = table(other_filters);
    let mut complaints = Vec::new();
    for row in &rows {
        let game = Table::new(&mut client, pb::NewGameRequest::default()).await;
        let ask = (row.ask)(&game);
        let call = ask.call();
        if !row.path.starts_with(&format!("{call}.")) {
            complaints.push(format!("{} is a row of {call}", row.path));
        }
        let who = match &ask {
            Ask::SubmitMove(_) | Ask::OfferDraw(_) | Ask::AnswerDraw(_) | Ask::LeaveGame(_) => bearer(&game.red),
            Ask::AbortGame(_) => bearer(&game.arbiter),
            Ask::NewGame(_)
            | Ask::GetGame(_)
            | Ask::ListGames(_)
            | Ask::ListRulesets(_)
            | Ask::LegalMoves(_)
            | Ask::WatchGame(_) => nobody(),
        };
        let answer = ask.send(&mut client, &who).await;
        if let Err(complaint) = check(&row.expect, answer) {
            complaints.push(format!("{} holding {}: {complaint}", row.path, row.holds));
        }
    }
    assert!(complaints.is_empty(), "{} of {} rows:\n{}", complaints.len(), rows.len(), complaints.join("\n"));

    let in_table: BTreeSet<String> =
        rows.iter().map(|row| row.path.clone()).chain(free.iter().map(|(path, _)| path.clone())).collect();
    let in_contract = fields_of_the_contract();
    let without_row: Vec<_> = in_contract.difference(&in_table).collect();
    let without_field: Vec<_> = in_table.difference(&in_contract).collect();
    assert!(without_row.is_empty(), "fields without a row: {without_row:?}");
    assert!(without_field.is_empty(), "rows without a field: {without_field:?}");
    println!("{} fields, {} rows, {} fields that take any value", in_contract.len(), rows.len(), free.len());
    server.stop().await;
}

fn check(expect: &Expect, answer: Result<(), tonic::Status>) -> Result<(), String> {
    let status = match (expect, answer) {
        (Expect::Fine, Ok(())) => return Ok(()),
        (Expect::Fine, Err(status)) => return Err(format!("refused: {status:?}")),
        (Expect::Bad(..) | Expect::Other(..), Ok(())) => return Err("it was taken".to_owned()),
        (Expect::Bad(..) | Expect::Other(..), Err(status)) => status,
    };
    let told = crate::door::taken_apart(&status)?;
    match expect {
        Expect::Fine => {}
        Expect::Bad(field, says) => {
            let seen = (told.code, told.reason.as_str(), told.value("field"));
            if seen != (Code::InvalidArgument, "INVALID_FIELD", field) {
                return Err(format!("told {seen:?}, not the field {field}"));
            }
            if !told.value("problem").contains(says) {
                return Err(format!("told {:?} without {says:?}", told.value("problem")));
            }
        }
        Expect::Other(code, reason) => {
            if (told.code, told.reason.as_str()) != (*code, reason) {
                return Err(format!("told {told:?}, not {reason}"));
            }
        }
    }
    Ok(())
}

/// "I reused an id by mistake, and nothing happened twice or in silence."
#[tokio::test]
async fn a_request_id_that_changed_a_game_is_refused_with_another_body_or_another_call() {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let reused = |told: crate::door::Told| {
        let seen = (told.code, told.reason.as_str(), told.value("field"));
        assert_eq!(seen, (Code::InvalidArgument, "REQUEST_ID_REUSED", "request_id"));
    };

    let first = pb::NewGameRequest { request_id: uuid(1), ..pb::NewGameRequest::default() };
    let table = Table::new(&mut client, first.clone()).await;
    let again = client.new_game(first.clone()).await.expect("the same game").into_inner();
    assert!(again.replayed && again.red_token == table.red && again.game.is_some_and(|game| game.game_id == table.id));
    reused(told(client.new_game(pb::NewGameRequest { is_match: true, ..first }).await));

    let mv = pb::SubmitMoveRequest { request_id: uuid(2), expected_ply: Some(0), ..table.submit("a3a4") };
    let played = client.submit_move(crate::server::by(&table.red, mv.clone())).await.expect("a verdict").into_inner();
    let again = client.submit_move(crate::server::by(&table.red, mv.clone())).await.expect("the same").into_inner();
    assert_eq!(again, pb::SubmitMoveResponse { replayed: true, ..played });
    for other in [
        pb::SubmitMoveRequest { to_square: "a2".to_owned(), ..mv.clone() },
        pb::SubmitMoveRequest { expected_ply: Some(2), ..mv.clone() },
        pb::SubmitMoveRequest { offer_draw: true, ..mv.clone() },
    ] {
        reused(told(client.submit_move(crate::server::by(&table.red, other)).await));
    }
    let (game_id, request_id) = (table.id.clone(), uuid(2));
    let leave = pb::LeaveGameRequest { request_id: request_id.clone(), game_id: game_id.clone() };
    let offer = pb::OfferDrawRequest { request_id: request_id.clone(), game_id: game_id.clone(), action: 1 };
    let answer = pb::AnswerDrawRequest { request_id, game_id, answer: 1 };
    for other in [Ask::LeaveGame(leave.clone()), Ask::OfferDraw(offer), Ask::AnswerDraw(answer)] {
        reused(told(other.send(&mut client, &bearer(&table.red)).await));
    }
    // The id belongs to its caller: Blue's of the same number is another.
    let left = client.leave_game(crate::server::by(&table.blue, leave)).await.expect("Blue leaves").into_inner();
    assert!(!left.replayed);
    // After the end the repeat still finds its answer.
    let after = client.submit_move(crate::server::by(&table.red, mv)).await.expect("the same").into_inner();
    assert!(after.replayed);
    server.stop().await;
}

/// "My move was refused, so I tried another under the same id."
#[tokio::test]
async fn a_request_id_that_changed_nothing_is_free_again() {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, pb::NewGameRequest::default()).await;
    let mv = |mv: &str| pb::SubmitMoveRequest { request_id: uuid(1), expected_ply: Some(0), ..table.submit(mv) };
    let refused = client.submit_move(crate::server::by(&table.red, mv("a3a5"))).await.expect("a verdict").into_inner();
    assert!(matches!(refused.verdict, Some(pb::submit_move_response::Verdict::Refused(_))), "{refused:?}");
    let played = client.submit_move(crate::server::by(&table.red, mv("a3a4"))).await.expect("a verdict").into_inner();
    assert!(matches!(played.verdict, Some(pb::submit_move_response::Verdict::Accepted(_))), "{played:?}");
    server.stop().await;
}

/// "I asked again after the start time had come, and still got my game."
#[tokio::test]
async fn a_repeat_of_a_new_game_is_answered_though_its_start_lies_in_the_past_by_now() {
    let server = TestServer::start_manual(&[]).await;
    let mut client = server.client().await;
    let seconds = i64::try_from(EPOCH.micros() / 1_000_000).expect("it fits") + 1;
    let at = clock_start::Kind::At(Timestamp { seconds, nanos: 0 });
    let request = pb::NewGameRequest {
        request_id: uuid(1),
        clock_start: Some(pb::ClockStart { kind: Some(at) }),
        ..pb::NewGameRequest::default()
    };
    let table = Table::new(&mut client, request.clone()).await;
    server.advance(jungle_referee::game::Span::from_secs(5));
    let again = client.new_game(Request::new(request.clone())).await.expect("the same game").into_inner();
    assert!(again.replayed);
    assert_eq!(again.game.map(|game| game.game_id), Some(table.id));
    let fresh = pb::NewGameRequest { request_id: uuid(2), ..request };
    assert_eq!(told(client.new_game(fresh).await).value("field"), "clock_start.at");
    server.stop().await;
}
