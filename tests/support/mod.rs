//! What the tests of the rules share: reading the tables, and a seeded generator.
#![allow(dead_code, reason = "each test file uses its part")]

use jungle_referee::rules::{
    Animal, JumpBlockers, Ladder, Line, Move, Piece, Position, Preset, Ruleset, Side, Square, TigerJump,
};
use serde_json::Value;

/// The switches of a "switches" object, which must be those of the preset it names, if any.
#[track_caller]
pub(crate) fn ruleset_of(case: &Value) -> Ruleset {
    let switches = &case["switches"];
    let text = |name: &str| switches[name].as_str().expect("a name");
    let truth = |name: &str| switches[name].as_bool().expect("a truth");
    let number = |name: &str| switches[name].as_u64().expect("a number");
    let ruleset = Ruleset {
        ladder: Ladder::from_name(text("ladder")).expect("a ladder"),
        rats_capture_across_bank: truth("rats_capture_across_bank"),
        jump_blockers: JumpBlockers::from_name(text("jump_blockers")).expect("blockers"),
        tiger_jump: TigerJump::from_name(text("tiger_jump")).expect("a way to jump"),
        trapped_may_capture: truth("trapped_may_capture"),
        agreed_draw: truth("agreed_draw"),
        timeouts_to_lose: u8::try_from(number("timeouts_to_lose")).expect("in range"),
        no_capture_rounds: u16::try_from(number("no_capture_rounds")).expect("in range"),
        short_game_rounds: u8::try_from(number("short_game_rounds")).expect("in range"),
        seven_three: truth("seven_three"),
        seventeen_five: truth("seventeen_five"),
    };
    assert_eq!(ruleset.validate(), Ok(()));
    if let Some(name) = case["ruleset"].as_str() {
        assert_eq!(Preset::find(name).map(|p| p.ruleset), Some(ruleset));
    }
    ruleset
}

/// A list of texts.
#[track_caller]
pub(crate) fn texts(value: &Value) -> Vec<&str> {
    let list = value.as_array().expect("a list");
    list.iter().map(|v| v.as_str().expect("a text")).collect()
}

/// A move that the test wrote itself.
#[track_caller]
pub(crate) fn mv(text: &str) -> Move {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Names of what can be named, in order.
pub(crate) fn names<T: ToString>(items: impl IntoIterator<Item = T>) -> Vec<String> {
    items.into_iter().map(|item| item.to_string()).collect()
}

/// A line set up from a text, with these moves played; each must be allowed.
#[track_caller]
pub(crate) fn played(text: &str, ruleset: Ruleset, moves: &str) -> Line {
    let start = Position::set_up(text, &ruleset).unwrap_or_else(|e| panic!("{text}: {e}"));
    let mut line = Line::new(start, ruleset);
    for text in moves.split_whitespace() {
        if let Err(violation) = line.judge(mv(text)) {
            panic!("{text} at ply {}: {violation}", line.ply());
        }
        line.advance(mv(text));
    }
    line
}

/// A small seeded generator of numbers (splitmix64): the same seed, the same test.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number from 0 to below `sides`.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let sides = u64::try_from(sides.max(1)).expect("a small number");
        usize::try_from((z ^ (z >> 31)) % sides).expect("below sides")
    }

    /// One of these.
    pub(crate) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.roll(items.len())]
    }

    /// Yes or no.
    pub(crate) fn coin(&mut self) -> bool {
        self.roll(2) == 0
    }

    /// Any switches within their ranges; the bars more often on than off.
    pub(crate) fn ruleset(&mut self) -> Ruleset {
        Ruleset {
            ladder: self.pick(&Ladder::ALL),
            rats_capture_across_bank: self.coin(),
            jump_blockers: self.pick(&JumpBlockers::ALL),
            tiger_jump: self.pick(&TigerJump::ALL),
            trapped_may_capture: self.coin(),
            agreed_draw: self.coin(),
            timeouts_to_lose: self.pick(&[1, 2]),
            no_capture_rounds: self.pick(&[1, 7, 40, 100]),
            short_game_rounds: self.pick(&[0, 3, 10]),
            seven_three: self.roll(4) > 0,
            seventeen_five: self.roll(4) > 0,
        }
    }

    /// A position that a game may start from: the usual one, or a few animals anywhere.
    pub(crate) fn start(&mut self, ruleset: &Ruleset) -> Position {
        if self.roll(4) == 0 {
            return Position::start(ruleset);
        }
        loop {
            let text = self.board(ruleset);
            if let Ok(position) = Position::set_up(&text, ruleset) {
                return position;
            }
        }
    }

    fn board(&mut self, ruleset: &Ruleset) -> String {
        let mut cells = [None; 63];
        let wanted = 1 + self.roll(4);
        let corner = self.coin();
        for side in Side::ALL {
            for animal in Animal::ALL {
                let known = ruleset.ladder.strength(animal).is_some();
                if known && self.roll(8) < wanted {
                    let range = if corner { 21 } else { 63 };
                    cells[self.roll(range)] = Some(Piece { side, animal });
                }
            }
        }
        let side = self.pick(&["r", "b"]);
        let quiet = self.roll(2) * self.roll(200);
        format!("{} {side} {quiet} {}", drawn(&cells), 1 + self.roll(9999))
    }

    /// A move of the list; mostly one of the animal that moved last, and soon back again.
    pub(crate) fn allowed(&mut self, line: &Line, latest: Option<Move>) -> Option<Move> {
        let moves: Vec<Move> = line.legal_moves().moves.iter().map(|m| m.mv).collect();
        let again: Vec<Move> = moves.iter().copied().filter(|m| latest.is_some_and(|l| l.to == m.from)).collect();
        let back = again.iter().find(|m| latest.is_some_and(|l| l.from == m.to));
        match (moves.is_empty(), back, self.roll(10)) {
            (true, _, _) => None,
            (false, Some(back), 0..4) => Some(*back),
            (false, _, 4..9) if !again.is_empty() => Some(self.pick(&again)),
            (false, _, _) => Some(self.pick(&moves)),
        }
    }
}

/// The first part of a position text for cells in the order of [`Square::ALL`].
pub(crate) fn drawn(cells: &[Option<Piece>; 63]) -> String {
    let mut ranks = Vec::new();
    for rank in (0..9).rev() {
        let mut text = String::new();
        for file in 0..7 {
            let square = Square::new(file, rank).expect("on the board");
            text.push(cells[square.index()].map_or('.', |piece| piece.letter()));
        }
        for run in (1..=7).rev() {
            text = text.replace(&".".repeat(run), &run.to_string());
        }
        ranks.push(text);
    }
    ranks.join("/")
}
