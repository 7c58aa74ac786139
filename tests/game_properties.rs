//! What holds in every game, whatever its settings, whoever asks for what and whenever: random games,
//! driven as the runtime drives them, with every event checked as it is written.

mod game;
mod support;

use std::collections::BTreeMap;

use game::ms;
use game::play::{Play, settings, some_request};
use jungle_referee::game::{AbortedBy, Command, Kind, Moved, OfferResult, Span, Time};
use jungle_referee::rules::Side::{Blue, Red};
use jungle_referee::rules::{Move, Reason, Square};
use support::Dice;

/// The smallest step of time.
const MICRO: Span = Span::from_micros(1);

/// How often each kind of event and each way to end occurred.
type Tally = BTreeMap<String, u64>;

impl Play {
    /// Any time from now on: the greater `calm`, the less often about the deadline or beyond it.
    fn some_time(&self, dice: &mut Dice, calm: usize) -> Time {
        let deadline = self.game().deadline().unwrap_or(self.now);
        let ahead = usize::try_from(deadline.since(self.now).micros()).expect("a long span fits");
        let mut step = |most: usize| self.now + Span::from_micros(u64::try_from(dice.roll(most)).expect("fits"));
        let (short, long) = (step(ahead.min(20_000)), step(ahead.min(9_000_000)));
        let at = match dice.roll(calm) {
            0 => deadline,
            1 => Time::from_micros(deadline.micros() - 1),
            2 => deadline + MICRO,
            3 => deadline + dice.pick(&[ms(1), ms(70_000), Span::from_days(400)]),
            4 => Time::from_micros(self.now.micros().midpoint(deadline.micros())),
            5 => self.now + ms(5_000),
            6..9 => long,
            _ if dice.coin() => short,
            _ => self.now,
        };
        at.max(self.now)
    }

    fn some_command(&self, dice: &mut Dice) -> Command {
        let side = dice.pick(&[Red, Blue]);
        match dice.roll(100) {
            0..52 => self.good_move(dice),
            52..60 => self.any_move(dice),
            60..66 => Command::OfferDraw(side),
            66..68 => Command::TakeBackDraw(side),
            68..72 => Command::DeclineDraw(side),
            72 => Command::AcceptDraw(side),
            73..81 => Command::Arrive(side),
            81..88 => Command::Depart(side),
            88..95 => Command::Show(side),
            95 if dice.roll(3) == 0 => Command::Leave(side),
            96 if dice.roll(4) == 0 => Command::Abort { by_creator: dice.coin(), reason: "so be it".into() },
            _ => Command::Tick,
        }
    }

    /// A move of the side to move that the rules allow; now and then one that ends the game.
    fn good_move(&self, dice: &mut Dice) -> Command {
        let line = self.game().line();
        let side = line.position().side_to_move();
        let ends = |mv: Move| {
            let mut after = *line;
            after.advance(mv);
            after.ending(side).is_some()
        };
        let legal = line.legal_moves().moves;
        let last = legal.iter().map(|legal| legal.mv).find(|mv| dice.roll(3) == 0 && ends(*mv));
        match last.or_else(|| dice.allowed(line, self.latest[side.index()])) {
            Some(mv) => Command::Move { side, mv, expected_ply: Some(line.ply()), offer_draw: dice.roll(6) == 0 },
            None => Command::Tick,
        }
    }

    /// Any two squares, any side, perhaps a stale ply.
    fn any_move(&self, dice: &mut Dice) -> Command {
        let mv = Move { from: dice.pick(&Square::ALL), to: dice.pick(&Square::ALL) };
        let expected_ply = dice.pick(&[None, Some(self.game().line().ply()), Some(3)]);
        Command::Move { side: dice.pick(&[Red, Blue]), mv, expected_ply, offer_draw: dice.coin() }
    }

    /// Every command, with no mistake in it but the time.
    fn nothing_more_is_accepted(&mut self, dice: &mut Dice) {
        let events = self.table.log.len();
        for _ in 0..10 {
            let at = self.some_time(dice, 9);
            let command = self.some_command(dice);
            assert!(self.ask(at, Span::ZERO, &command, None).is_err(), "{command:?}");
        }
        assert_eq!(self.table.log.len(), events);
    }
}

/// What an event is called in the count.
fn kind_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Created(_) => "Created",
        Kind::SeatShown { starts: false, .. } => "SeatShown, the first",
        Kind::SeatShown { starts: true, .. } => "SeatShown, the second",
        Kind::Started => "Started",
        Kind::Moved(Moved { offer: OfferResult::NotAsked, .. }) => "Moved",
        Kind::Moved(Moved { offer: OfferResult::Made, .. }) => "Moved, offer made",
        Kind::Moved(Moved { offer: OfferResult::DrawsOff, .. }) => "Moved, draws off",
        Kind::Moved(Moved { offer: OfferResult::OfferOpen, .. }) => "Moved, offer open",
        Kind::Moved(Moved { offer: OfferResult::AlreadyOffered, .. }) => "Moved, already offered",
        Kind::Moved(Moved { offer: OfferResult::GameOver, .. }) => "Moved, offer at the end",
        Kind::Refused { .. } => "Refused",
        Kind::TimeExpired(_) => "TimeExpired",
        Kind::DrawOffered(_) => "DrawOffered",
        Kind::DrawTakenBack(_) => "DrawTakenBack",
        Kind::DrawDeclined(_) => "DrawDeclined",
        Kind::DrawAccepted(_) => "DrawAccepted",
        Kind::SeatLeft(_) => "SeatLeft",
        Kind::SeatAway(_) => "SeatAway",
        Kind::SeatReturned(_) => "SeatReturned",
        Kind::AwayExpired(_) => "AwayExpired",
        Kind::Aborted(AbortedBy::Arbiter) => "Aborted by the arbiter",
        Kind::Aborted(AbortedBy::Creator) => "Aborted by the creator",
        Kind::Aborted(AbortedBy::Service) => "Aborted by the service",
        Kind::Resumed { .. } => "Resumed",
    }
}

const KINDS: [&str; 24] = [
    "Resumed",
    "Created",
    "SeatShown, the first",
    "SeatShown, the second",
    "Started",
    "Moved",
    "Moved, offer made",
    "Moved, draws off",
    "Moved, offer open",
    "Moved, already offered",
    "Moved, offer at the end",
    "Refused",
    "TimeExpired",
    "DrawOffered",
    "DrawTakenBack",
    "DrawDeclined",
    "DrawAccepted",
    "SeatLeft",
    "SeatAway",
    "SeatReturned",
    "AwayExpired",
    "Aborted by the arbiter",
    "Aborted by the creator",
    "Aborted by the service",
];

/// Why the service and the seats call games off.
const CALLED_OFF: [&str; 6] = [
    "so be it",
    "the two seats did not both show themselves in time",
    "nothing happened for the idle limit",
    "both sides were away",
    "Red left before the start",
    "Blue left before the start",
];

fn count(tally: &mut Tally, play: &Play) {
    let mut one = |name: String| *tally.entry(name).or_default() += 1;
    for record in &play.table.log {
        one(kind_name(&record.event.kind).to_owned());
        if let Kind::TimeExpired(_) = record.event.kind
            && record.event.ending.is_none()
        {
            one("TimeExpired, a fresh allowance".to_owned());
        }
        if let Some(ending) = &record.event.ending {
            one(ending.outcome.reason.id().to_owned());
            if let Some(reason) = &ending.abort_reason {
                one(reason.to_string());
            }
        }
    }
}

/// Plays one game with so many commands, then lets it end in one of three ways.
fn play(seed: u64, tally: &mut Tally) {
    let dice = &mut Dice(seed);
    let mut play = Play::new(settings(dice));
    let presence = dice.coin();
    for side in [Red, Blue] {
        if presence {
            play.table.game.arrive(side);
        }
    }
    let calm = dice.pick(&[20, 200, 2_000]);
    for _ in 0..dice.pick(&[0, 10, 60, 300]) {
        let at = play.some_time(dice, calm);
        let lag = dice.pick(&[Span::ZERO, Span::ZERO, Span::ZERO, MICRO, ms(3_000)]);
        let command = play.some_command(dice);
        let request = some_request(dice, &command);
        let _ = play.ask(at, lag, &command, request);
        if dice.roll(40) == 0 {
            play.check_fold();
        }
        if dice.roll(60) == 0 {
            play.restart(dice.pick(&[MICRO, ms(900), Span::from_days(3)]), lag);
        }
    }
    if dice.coin() {
        play.players_stall();
    } else {
        play.time_runs_out();
    }
    play.nothing_more_is_accepted(dice);
    play.check_fold();
    play.check_bytes();
    count(tally, &play);
}

/// "However it is played, the log tells the whole game, the clocks stay true, and it ends."
#[test]
fn every_game_keeps_its_clocks_tells_its_story_and_ends() {
    const GAMES: u64 = 6_000;
    let mut tally = Tally::new();
    for game in 0..GAMES {
        let seed = 0x0c10_c4ed ^ (game << 20);
        let mut of_one = Tally::new();
        let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| play(seed, &mut of_one)));
        assert!(played.is_ok(), "the game of seed {seed:#x}");
        for (name, times) in of_one {
            *tally.entry(name).or_default() += times;
        }
    }
    println!("{GAMES} games:");
    for (name, times) in &tally {
        println!("{times:>9}  {name}");
    }
    let reasons = Reason::ALL.iter().map(|reason| reason.id());
    let fresh = ["TimeExpired, a fresh allowance"];
    let missing: Vec<_> = KINDS
        .into_iter()
        .chain(reasons)
        .chain(CALLED_OFF)
        .chain(fresh)
        .filter(|name| !tally.contains_key(*name))
        .collect();
    assert!(missing.is_empty(), "these did not occur: {missing:?}");
}
