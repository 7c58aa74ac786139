//! One game with its own account of what must hold: every event is checked as it is written.

use std::collections::BTreeSet;

use jungle_referee::game::{
    Caller, ClockStart, Command, DueKind, Game, Journal, Kind, Moved, OfferResult, Record, Refusal, Request, Settings,
    Span, Status, Time, TimeControl, decide, decode_event, encode_event, move_digest, resume,
};
use jungle_referee::rules::Side::{Blue, Red};
use jungle_referee::rules::{Move, Position, Reason, Side, Square};

use super::support::Dice;
use super::{Table, ms, t, usual};

/// Any settings within their ranges.
pub(crate) fn settings(dice: &mut Dice) -> Settings {
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
pub(crate) struct Play {
    pub(crate) table: Table,
    pub(crate) now: Time,
    written: Time,
    charged: [Span; 2],
    completed: [u64; 2],
    offer: Option<Side>,
    offers: BTreeSet<(usize, u32)>,
    pub(crate) latest: [Option<Move>; 2],
}

impl Play {
    pub(crate) fn new(settings: Settings) -> Self {
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

    pub(crate) fn game(&self) -> &Game {
        &self.table.game
    }

    /// Settles the time, then asks; what happens is written `lag` later, never before what came earlier.
    pub(crate) fn ask(
        &mut self,
        at: Time,
        lag: Span,
        command: &Command,
        request: Option<Request>,
    ) -> Result<(), Refusal> {
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
    pub(crate) fn settle(&mut self, lag: Span) {
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
    pub(crate) fn check_fold(&self) {
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
    pub(crate) fn check_bytes(&self) {
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
        let seen = (self.table.log.len() / 2).max(1);
        assert_eq!(Game::fold(&self.table.log[..seen]), journal.fold_to(seen as u64));
        let mut cursor = journal.seek(seen as u64).expect("a place within the journal");
        assert_eq!(journal.read(&mut cursor).as_ref(), self.table.log.get(seen));
        let beyond = self.table.log.len() as u64 + 1;
        assert_eq!((journal.fold_to(0), journal.fold_to(beyond), journal.seek(beyond)), (None, None, None));
    }

    /// The server goes down now, and is back some time later: nobody is charged for it.
    pub(crate) fn restart(&mut self, down: Span, lag: Span) {
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

    /// Nobody does anything any more: time alone ends the game.
    pub(crate) fn time_runs_out(&mut self) {
        for _ in 0..12 {
            let Some(deadline) = self.game().deadline() else { return };
            self.now = self.now.max(deadline);
            self.settle(Span::ZERO);
        }
        panic!("time does not end the game: {:?}", self.game());
    }

    /// Both sides do all that is allowed but move, again and again, each time at the last moment.
    pub(crate) fn players_stall(&mut self) {
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

fn some_number(dice: &mut Dice) -> u64 {
    u64::try_from(dice.roll(usize::MAX)).expect("a usize fits")
}

/// A request id, as a caller may or may not send it with this command.
pub(crate) fn some_request(dice: &mut Dice, command: &Command) -> Option<Request> {
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
