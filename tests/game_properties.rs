//! What holds in every game, whatever its settings, whoever asks for what and whenever: random games,
//! driven as the runtime drives them, with every event checked as it is written.

mod game;
mod support;

use std::collections::{BTreeMap, BTreeSet};

use game::{Table, ms, t, usual};
use jungle_referee::game::{
    AbortedBy, Caller, ClockStart, Command, DueKind, Game, Journal, Kind, Moved, OfferResult, Record, Refusal, Request,
    Settings, Span, Status, Time, TimeControl, decide, decode_event, encode_event, move_digest, resume,
};
use jungle_referee::rules::Side::{Blue, Red};
use jungle_referee::rules::{Move, Position, Reason, Side, Square};
use support::Dice;

/// The smallest step of time.
const MICRO: Span = Span::from_micros(1);

/// How often each kind of event and each way to end occurred.
type Tally = BTreeMap<String, u64>;

/// Any settings within their ranges.
fn settings(dice: &mut Dice) -> Settings {
    let ruleset = dice.ruleset();
    let allowance = dice.pick(&[ms(10), ms(1_000), ms(60_000), Span::from_days(30)]);
    let increment = dice.pick(&[Span::ZERO, ms(1), ms(5_000), Span::from_days(30)]);
    let time_control = match dice.roll(3) {
        0 => TimeControl::Untimed,
        1 if ruleset.timeouts_to_lose == 1 => TimeControl::Increment { initial: allowance, increment },
        _ => TimeControl::PerMove(allowance),
    };
    let grace = if time_control == TimeControl::Untimed { Span::ZERO } else { dice.pick(&[ms(0), ms(1), ms(5_000)]) };
    let clock_start = match dice.roll(5) {
        0 => ClockStart::At(t(0) + dice.pick(&[ms(1), ms(60_000), Span::from_days(366)])),
        1 => ClockStart::WhenBothShown(dice.pick(&[ms(1_000), ms(60_000), Span::from_days(366)])),
        _ => ClockStart::AtCreation,
    };
    // Random boards seldom leave a side without a move; one in twenty games begins a move away from it.
    let start = if dice.roll(20) == 0 {
        Position::set_up("c6/LT5/7/7/7/7/7/7/7 r 0 1", &ruleset).expect("a position")
    } else {
        dice.start(&ruleset)
    };
    Settings {
        start,
        ruleset,
        time_control,
        grace,
        clock_start,
        is_match: dice.coin(),
        refusal_limit: dice.pick(&[None, None, Some(1), Some(4), Some(30)]),
        away_limit: dice.pick(&[None, Some(ms(1_000)), Some(ms(30_000)), Some(Span::from_days(30))]),
        idle_limit: dice.pick(&[ms(1_000), ms(60_000), Span::from_days(366)]),
        ..usual()
    }
}

/// A game, what the test knows of it by its own account, and what has happened.
struct Play {
    table: Table,
    now: Time,
    written: Time,
    charged: [Span; 2],
    completed: [u64; 2],
    offer: Option<Side>,
    offers: BTreeSet<(usize, u32)>,
    latest: [Option<Move>; 2],
}

impl Play {
    fn new(settings: Settings) -> Self {
        let table = Table::new(settings);
        let (now, written) = (t(0), t(0));
        Self {
            table,
            now,
            written,
            charged: [Span::ZERO; 2],
            completed: [0; 2],
            offer: None,
            offers: BTreeSet::new(),
            latest: [None; 2],
        }
    }

    fn game(&self) -> &Game {
        &self.table.game
    }

    /// Settles the time, then asks; what happens is written `lag` later, never before what came earlier.
    fn ask(&mut self, at: Time, lag: Span, command: &Command, request: Option<Request>) -> Result<(), Refusal> {
        assert!(at >= self.now, "commands arrive in order");
        self.now = at;
        self.settle(lag);
        self.table.note_presence(at, command);
        let over = self.game().status() == Status::Ended;
        let event = decide(self.game(), command, request, at)?;
        assert!(!over, "nothing is accepted after the end: {command:?}");
        assert_eq!((event.at, event.request), (at, request), "a command is dated by its arrival");
        self.write(event, lag);
        assert!(self.game().deadline().is_none_or(|deadline| deadline > at), "what was settled stays settled");
        Ok(())
    }

    /// Lets happen what is due. Four things at most can wait for one another: the start, two absences
    /// or two expiries, and an end.
    fn settle(&mut self, lag: Span) {
        for _ in 0..8 {
            let Some(deadline) = self.game().deadline().filter(|deadline| *deadline <= self.now) else {
                assert_eq!(decide(self.game(), &Command::Tick, None, self.now), Err(Refusal::Nothing));
                return;
            };
            let event = decide(self.game(), &Command::Tick, None, self.now).expect("what is due happens");
            assert_eq!(event.at, deadline, "time is dated by the clock, not by when it is noticed");
            self.write(event, lag);
        }
        panic!("settling does not end: {:?}", self.game());
    }

    fn write(&mut self, event: jungle_referee::game::Event, lag: Span) {
        let before = self.game().clone();
        let last = self.table.last().event.at;
        self.written = self.written.max(self.now + lag);
        let record = self.table.write(event, self.written);
        self.check_event(&record, &before, last);
        self.check_clocks(&before, &record);
        self.check_offer(&record, &before);
        self.check_end(&record);
    }

    fn check_event(&self, record: &Record, before: &Game, last: Time) {
        assert_eq!(record.sequence, before.sequence() + 1, "no gaps");
        assert!(before.status() != Status::Ended, "nothing follows the end: {record:?}");
        assert!(record.event.at >= last, "times never go back: {record:?} after {last:?}");
        assert!(record.written >= record.event.at);
        let moved = matches!(record.event.kind, Kind::Moved(_));
        assert_eq!(*self.game().line() != *before.line(), moved, "moves change the board, and nothing else does");
    }

    /// The test's own account of both clocks.
    fn check_clocks(&mut self, before: &Game, record: &Record) {
        if let Kind::Moved(moved) = &record.event.kind {
            self.account(before, moved, record.event.at);
        }
        let game = &self.table.game;
        let control = game.settings().time_control;
        for side in [Red, Blue] {
            for at in [record.event.at, record.written, record.written + ms(7)] {
                let left = game.remaining(side, at);
                assert_eq!(left.is_some(), control != TimeControl::Untimed);
                let most = match control {
                    TimeControl::Untimed => Span::ZERO,
                    TimeControl::PerMove(limit) => limit,
                    TimeControl::Increment { initial, increment } => {
                        let completed = self.completed[side.index()];
                        let gained = Span::from_micros(increment.micros() * completed);
                        (initial + gained).minus(self.charged[side.index()])
                    }
                };
                assert!(left.unwrap_or_default() <= most, "{side} has {left:?}, at most {most}");
                let stands = game.running().is_none_or(|(running, _)| running != side);
                if stands && game.status() == Status::Running && control != TimeControl::Untimed {
                    assert_eq!(left, Some(most), "a clock that stands shows all that it has");
                }
            }
        }
        if let Some((side, since)) = game.running() {
            assert_eq!(side, game.line().position().side_to_move());
            let moved = matches!(record.event.kind, Kind::Moved(_) | Kind::SeatShown { .. } | Kind::Started);
            assert!(!moved || since == record.written, "the next clock starts when the event is written");
            let expired = matches!(record.event.kind, Kind::TimeExpired(_));
            assert!(!expired || since == record.event.at, "a fresh allowance runs from the expiry's date");
        }
    }

    fn account(&mut self, before: &Game, moved: &Moved, at: Time) {
        let side = moved.side.index();
        self.completed[side] += 1;
        self.charged[side] = self.charged[side] + moved.charged;
        self.latest[side] = Some(moved.mv);
        let thought = before.running().map_or(Span::ZERO, |(_, since)| at.since(since));
        assert_eq!(moved.charged + moved.grace_used, thought, "all thought is charged or grace");
        let grace = before.settings().grace;
        assert!(moved.grace_used == Span::ZERO || moved.grace_used < grace);
        let left = before.running().and_then(|(running, since)| before.remaining(running, since));
        assert!(moved.charged <= left.unwrap_or_default());
        assert!(moved.grace_used == Span::ZERO || Some(moved.charged) == left, "grace comes after the clock");
    }

    /// The test's own account of the open offer.
    fn check_offer(&mut self, record: &Record, before: &Game) {
        let ply = before.line().ply();
        let made = match &record.event.kind {
            Kind::DrawOffered(side) => Some(*side),
            Kind::Moved(moved) => {
                self.offer = self.offer.filter(|maker| *maker == moved.side);
                Some(moved.side).filter(|_| moved.offer == OfferResult::Made)
            }
            Kind::DrawTakenBack(_) | Kind::DrawDeclined(_) | Kind::DrawAccepted(_) => {
                self.offer = None;
                None
            }
            Kind::Created(_)
            | Kind::SeatShown { .. }
            | Kind::Started
            | Kind::Refused { .. }
            | Kind::TimeExpired(_)
            | Kind::SeatLeft(_)
            | Kind::SeatAway(_)
            | Kind::SeatReturned(_)
            | Kind::AwayExpired(_)
            | Kind::Aborted(_)
            | Kind::Resumed { .. } => None,
        };
        if let Some(side) = made {
            assert!(before.settings().ruleset.agreed_draw && before.offer().is_none());
            assert!(self.offers.insert((side.index(), ply)), "one offer a side and ply: {side} at {ply}");
            self.offer = Some(side);
        }
        if record.event.ending.is_some() {
            self.offer = None;
        }
        assert_eq!(self.game().offer().map(|offer| offer.side), self.offer);
    }

    fn check_end(&self, record: &Record) {
        let game = self.game();
        assert_eq!(game.ending(), record.event.ending.as_ref());
        assert_eq!(game.status() == Status::Ended, record.event.ending.is_some());
        assert_eq!(game.deadline().is_none(), record.event.ending.is_some(), "a deadline until the end");
        if let Some(deadline) = game.deadline() {
            let most = Span::from_days(366 + 30 + 30 * self.completed[0].max(self.completed[1])) + ms(5_000);
            assert!(deadline <= record.written + most, "a finite deadline");
            return;
        }
        let outcome = game.ending().expect("ended").outcome;
        let settings = game.settings();
        let short = game.line().ply() <= 2 * u32::from(settings.ruleset.short_game_rounds);
        let aborted = outcome.reason == Reason::Aborted;
        // A game of no plies at all is short only where short games are known.
        let short = short && settings.ruleset.short_game_rounds > 0;
        assert_eq!(outcome.scored, !aborted && (settings.is_match || !short));
        assert_eq!(game.ended_at(), Some(record.event.at));
        assert!(game.running().is_none() && game.offer().is_none());
        assert!(!game.is_away(Red) && !game.is_away(Blue));
    }

    /// The fold of the log is the state, but for who is present.
    fn check_fold(&self) {
        let mut folded = Game::fold(&self.table.log).expect("a log begins with the creation");
        let mut game = self.game().clone();
        assert_eq!(folded.clock_due(), game.clock_due());
        for side in [Red, Blue] {
            folded.arrive(side);
            game.arrive(side);
        }
        assert_eq!(folded, game);
        let endings = self.table.log.iter().filter(|record| record.event.ending.is_some()).count();
        assert_eq!(endings, usize::from(game.status() == Status::Ended));
    }

    /// The journal and the log on disk give the same records back.
    fn check_bytes(&self) {
        let (mut game, mut journal) = (None, Journal::default());
        for record in &self.table.log {
            journal.write(&mut game, record);
            let mut bytes = Vec::new();
            encode_event(&record.event, &mut bytes);
            assert_eq!(decode_event(&bytes, record.event.at).as_ref(), Ok(&record.event), "{bytes:?}");
            let request = record.event.request;
            assert!(request.is_none_or(|request| journal.may_hold(request.id)));
        }
        assert!(journal.records().eq(self.table.log.iter().cloned()));
        let seen = self.table.log.len() / 2;
        let (folded, mut cursor) = journal.fold_to(seen.max(1) as u64).expect("a game to fold");
        assert_eq!(Game::fold(&self.table.log[..seen.max(1)]), Some(folded));
        assert_eq!(journal.read(&mut cursor).as_ref(), self.table.log.get(seen.max(1)));
    }

    /// The server goes down now, and is back some time later: nobody is charged for it.
    fn restart(&mut self, down: Span, lag: Span) {
        self.settle(lag);
        if self.game().status() == Status::Ended {
            return;
        }
        // Whatever was written, was written before the last sign of life.
        self.now = self.now.max(self.written);
        self.settle(lag);
        if self.game().status() == Status::Ended {
            return;
        }
        let (down_since, left) = (self.now, Side::ALL.map(|side| self.game().remaining(side, self.now)));
        self.now = self.now + down;
        self.write(resume(down_since, self.now), lag);
        let now_left = Side::ALL.map(|side| self.game().remaining(side, self.written));
        assert_eq!(left, now_left, "nobody is charged for the time between");
        assert!(!self.game().is_away(Red) && !self.game().is_away(Blue), "countdowns begin anew");
        let due = self.game().due();
        assert!(
            due.is_none_or(|due| due.at > self.now || due.kind == DueKind::Start),
            "only a start fell due: {due:?}"
        );
    }

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

    /// Nobody does anything any more: time alone ends the game.
    fn time_runs_out(&mut self) {
        for _ in 0..12 {
            let Some(deadline) = self.game().deadline() else { return };
            self.now = self.now.max(deadline);
            self.settle(Span::ZERO);
        }
        panic!("time does not end the game: {:?}", self.game());
    }

    /// Both sides do all that is allowed but move, again and again, each time at the last moment.
    fn players_stall(&mut self) {
        let refusals = self.game().settings().refusal_limit.unwrap_or(0);
        let mut passes = 0;
        while let Some(due) = self.game().clock_due() {
            // An event postpones an idle limit: a side's offer and its end, a showing, a refused move.
            assert!(passes <= 12 + 2 * refusals, "stalling keeps a game alive: {:?}", self.game());
            passes += 1;
            let last_moment = self.now.max(Time::from_micros(due.at.micros() - 1));
            let before = self.table.log.len();
            for command in stalling() {
                let _ = self.ask(last_moment, Span::ZERO, &command, None);
            }
            if self.table.log.len() == before && self.game().clock_due() == Some(due) {
                self.now = self.now.max(due.at);
                self.settle(Span::ZERO);
            }
        }
    }
}

/// All that players can do without moving, leaving or agreeing.
fn stalling() -> Vec<Command> {
    let mut commands = Vec::new();
    for side in [Red, Blue] {
        let mv = Move { from: Square::ALL[0], to: Square::ALL[0] };
        commands.extend([
            Command::Show(side),
            Command::Arrive(side),
            Command::Depart(side),
            Command::OfferDraw(side),
            Command::TakeBackDraw(side),
            Command::DeclineDraw(side),
            Command::Move { side, mv, expected_ply: None, offer_draw: true },
        ]);
    }
    commands
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

fn some_number(dice: &mut Dice) -> u64 {
    u64::try_from(dice.roll(usize::MAX)).expect("a usize fits")
}

/// A request id, as a caller may or may not send it with this command.
fn some_request(dice: &mut Dice, command: &Command) -> Option<Request> {
    let (caller, digest) = match command {
        Command::Move { side, mv, expected_ply, offer_draw } => {
            (Caller::Seat(*side), move_digest(*mv, expected_ply.unwrap_or_default(), *offer_draw))
        }
        Command::OfferDraw(side)
        | Command::TakeBackDraw(side)
        | Command::AcceptDraw(side)
        | Command::DeclineDraw(side)
        | Command::Leave(side) => (Caller::Seat(*side), some_number(dice)),
        Command::Abort { by_creator: true, .. } => (Caller::Creator, some_number(dice)),
        Command::Abort { by_creator: false, .. } => (Caller::Arbiter, some_number(dice)),
        Command::Show(_) | Command::Arrive(_) | Command::Depart(_) | Command::Tick => return None,
    };
    let id = u128::from(some_number(dice)) << 64 | u128::from(some_number(dice));
    dice.coin().then_some(Request { caller, id, digest })
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
