//! One who plays both sides of a game, then of the next, one call after the other; and who, after a restart,
//! holds what the server shows against what it had said.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jungle_referee::rules::{Line, Move, Position, Preset};
use jungle_referee::service::proto::game_event::Kind;
use jungle_referee::service::proto::submit_move_response::Verdict;
use jungle_referee::service::proto::watch_game_response::Message;
use jungle_referee::service::proto::{self as pb, GameEvent, NewGameRequest};
use tokio::task::JoinHandle;
use tonic::{Code, Status};

use crate::ledger::{Answer, Ask, Outcome, Told, is_called_for};
use crate::server::{Client, Table, by, next_event, reason, within};
use crate::support::Dice;

/// How many of the older acknowledged asks are asked again at each audit.
const ASKED_AGAIN: usize = 5;

/// How long before its time is up a move must have been sent to count as in time.
const MARGIN: Duration = Duration::from_millis(500);

/// What all players of a round know.
#[derive(Default)]
pub(crate) struct Round {
    /// How many asks have been acknowledged.
    pub(crate) told: AtomicUsize,
}

/// What was counted and what was found wrong.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Acknowledged asks of every kind, and the accepted moves among them.
    pub(crate) told: usize,
    pub(crate) moves: usize,
    /// Asks whose answer did not come: found written, and not.
    pub(crate) doubts_written: usize,
    pub(crate) doubts_lost: usize,
    /// Acknowledged asks that were made once more, and answered as before.
    pub(crate) repeats: usize,
    /// Events whose time was credited, and the longest time before an end that was charged to nobody.
    pub(crate) resumed: usize,
    /// Acknowledged, and not there.
    pub(crate) missing: Vec<String>,
    /// There more than once, or made again by a repeat.
    pub(crate) doubled: Vec<String>,
    /// Anything else that is not as it should be.
    pub(crate) wrong: Vec<String>,
    /// Lost on time though the move was sent in time; and though it was sent late, by a busy machine.
    pub(crate) false_flags: Vec<String>,
    pub(crate) late: usize,
}

impl Findings {
    /// A game was lost on time, by one who had thought for so long by its own clock.
    fn flagged(&mut self, id: &str, limit: Option<Duration>, thought: Duration) {
        match limit {
            Some(limit) if thought + MARGIN >= limit => self.late += 1,
            Some(_) | None => self.false_flags.push(format!("{id} after {thought:?}")),
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.told += other.told;
        self.moves += other.moves;
        self.doubts_written += other.doubts_written;
        self.doubts_lost += other.doubts_lost;
        self.repeats += other.repeats;
        self.resumed += other.resumed;
        self.missing.extend(other.missing);
        self.doubled.extend(other.doubled);
        self.wrong.extend(other.wrong);
        self.false_flags.extend(other.false_flags);
        self.late += other.late;
    }
}

/// What was asked, and what was said of it; `None` while that is in doubt.
struct Entry {
    ask: Ask,
    told: Option<Told>,
}

/// A game, as far as its player knows.
struct Board {
    table: Table,
    line: Line,
    entries: Vec<Entry>,
    /// How many entries have been audited.
    audited: usize,
    /// Its log, as the last audit found it.
    log: Vec<GameEvent>,
    /// What its watcher has seen since.
    seen: Arc<Mutex<Vec<GameEvent>>>,
    over: bool,
    /// Audited after it was over: nothing more can happen to it.
    settled: bool,
}

/// The player.
pub(crate) struct Player {
    dice: Dice,
    /// What its games are like.
    game: NewGameRequest,
    /// The time for each move, if it is short enough to run out.
    limit: Option<Duration>,
    /// When it last heard whose move it is.
    pub(crate) heard: Instant,
    /// Asked for, and not known to be there.
    wanted: Option<Ask>,
    boards: Vec<Board>,
    /// The watch of the game at hand; tells the last sequence, and how it ended.
    watch: Option<JoinHandle<Watched>>,
    pub(crate) findings: Findings,
}

/// How a watch ended: the last sequence seen, and the status unless the game was over.
pub(crate) type Watched = (u64, Option<Status>);

/// The client's own monotonic clock.
#[expect(clippy::disallowed_methods, reason = "who plays has a clock of its own")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

impl Board {
    fn new(ask: Ask, told: Told) -> Self {
        let ruleset = Preset::find("yeshou").expect("a preset").ruleset;
        Self {
            table: told.answer.table(),
            line: Line::new(Position::start(&ruleset), ruleset),
            entries: vec![Entry { ask, told: Some(told) }],
            audited: 0,
            log: Vec::new(),
            seen: Arc::default(),
            over: false,
            settled: false,
        }
    }

    fn take(&mut self, told: Told) {
        match &told.answer {
            Answer::Judged(Verdict::Accepted(accepted)) => {
                let made = accepted.r#move.as_ref().expect("a move");
                self.line.advance(format!("{}{}", made.from_square, made.to_square).parse().expect("a move"));
                self.over = accepted.outcome.is_some();
            }
            Answer::Judged(Verdict::Refused(refused)) => self.over = refused.outcome.is_some(),
            Answer::Event(event) => self.over = event.outcome.is_some(),
            Answer::Created(_) => {}
        }
        self.entries.last_mut().expect("asked").told = Some(told);
    }
}

impl Player {
    pub(crate) fn new(seed: u64, game: NewGameRequest, limit: Option<Duration>) -> Self {
        Self {
            dice: Dice(seed),
            game,
            limit,
            heard: now(),
            wanted: None,
            boards: Vec::new(),
            watch: None,
            findings: Findings::default(),
        }
    }

    /// How many games it has begun.
    pub(crate) fn games(&self) -> usize {
        self.boards.len()
    }

    /// Plays on and on until an answer does not come.
    pub(crate) async fn play(&mut self, client: &mut Client, round: &Round) {
        if self.boards.last().is_some_and(|board| !board.over) {
            self.follow(client).await;
        }
        loop {
            let board = self.boards.last_mut().filter(|board| !board.over);
            let ask = match &board {
                Some(board) => next_ask(&mut self.dice, board),
                None => {
                    let reference = request_id(&mut self.dice);
                    let game = NewGameRequest { external_reference: reference.clone(), ..self.game.clone() };
                    Ask::Game(NewGameRequest { request_id: reference, ..game })
                }
            };
            match board {
                Some(board) => board.entries.push(Entry { ask: ask.clone(), told: None }),
                None => self.wanted = Some(ask.clone()),
            }
            let sent = now();
            match within(ask.make(client)).await {
                Outcome::Doubt => return,
                Outcome::Refused(status) => self.refused(&status, sent),
                Outcome::Told(told) => {
                    round.told.fetch_add(1, Ordering::Relaxed);
                    self.told(client, told).await;
                }
            }
            self.heard = now();
        }
    }

    async fn told(&mut self, client: &mut Client, told: Told) {
        self.findings.told += 1;
        if told.replayed {
            self.findings.doubled.push(format!("told of a repeat that was none: {told:?}"));
        }
        self.findings.moves += usize::from(matches!(told.answer, Answer::Judged(Verdict::Accepted(_))));
        match self.wanted.take() {
            Some(ask) => {
                self.boards.push(Board::new(ask, told));
                self.follow(client).await;
            }
            None => self.boards.last_mut().expect("a game").take(told),
        }
    }

    /// What was asked was judged and changed nothing; if the game is over, time has ended it.
    fn refused(&mut self, status: &Status, sent: Instant) {
        let board = self.boards.last_mut().expect("a game");
        board.entries.pop();
        if status.code() == Code::Aborted {
            self.findings.wrong.push(format!("{}: nobody else moves here: {status:?}", board.table.id));
        }
        if reason(status) == "GAME_OVER" {
            board.over = true;
            self.findings.flagged(&board.table.id, self.limit, sent.saturating_duration_since(self.heard));
        }
    }

    /// Watches the game at hand from where its log was read to.
    async fn follow(&mut self, client: &mut Client) {
        let board = self.boards.last().expect("a game");
        let (seen, from) = (Arc::clone(&board.seen), board.log.len() as u64);
        let Ok(mut stream) = board.table.watch(client, Some(&board.table.red), Some(from)).await else { return };
        self.watch = Some(tokio::spawn(async move {
            let mut last = from;
            // Untimed games send nothing for long; a watch that is never told of the end is told by the caller.
            loop {
                match next_event(&mut stream).await {
                    Ok(Some(event)) => {
                        last = event.sequence;
                        seen.lock().expect("no panic").push(event);
                    }
                    Ok(None) => return (last, None),
                    Err(status) => return (last, Some(status)),
                }
            }
        }));
    }

    /// How the watch of the game at hand has ended.
    pub(crate) async fn watched(&mut self) -> Option<Watched> {
        match self.watch.take() {
            Some(watch) => Some(within(watch).await.expect("no panic")),
            None => None,
        }
    }

    /// After a restart: is all there that was said, once, as it was; and does nothing more come of asking again.
    /// `starts`: how often the server was started since the last audit.
    pub(crate) async fn audit(&mut self, client: &mut Client, starts: usize) {
        let made_anew = self.audit_wanted(client).await;
        let Self { boards, dice, findings, .. } = self;
        for board in boards.iter_mut().filter(|board| !board.settled) {
            let was_over = board.over;
            board.audit(client, dice, findings, starts).await;
            let flagged = board.log.last().is_some_and(|event| matches!(event.kind, Some(Kind::TimeExpired(_))));
            if flagged && !was_over {
                findings.flagged(&board.table.id, self.limit, now().saturating_duration_since(self.heard));
            }
        }
        boards.extend(made_anew);
    }

    /// Audits every game once more, the finished ones too, and asks everything again that was ever acknowledged.
    pub(crate) async fn audit_all(&mut self, client: &mut Client) {
        let Self { boards, findings, .. } = self;
        for board in boards {
            if !board.is_there(client).await {
                findings.missing.push(format!("{}: the whole game", board.table.id));
                continue;
            }
            let log = board.read(client).await;
            if log != board.log {
                findings.wrong.push(format!("{}: its log has changed since the last audit", board.table.id));
            }
            let entries: Vec<&Entry> = board.entries.iter().collect();
            repeat(client, &entries, findings).await;
            if board.read(client).await.len() != log.len() {
                findings.doubled.push(format!("{}: repeats have added events", board.table.id));
            }
        }
    }

    /// How many of its acknowledged asks are not there.
    pub(crate) async fn count_missing(&mut self, client: &mut Client) -> usize {
        let mut missing = 0;
        for board in &self.boards {
            let log = if board.is_there(client).await { board.read(client).await } else { Vec::new() };
            let mut found = Findings::default();
            board.compare(&log, &mut found);
            missing += found.missing.len();
        }
        missing
    }

    /// A game whose creation is in doubt is found by its reference, or was never made, and is then made anew.
    async fn audit_wanted(&mut self, client: &mut Client) -> Option<Board> {
        let ask = self.wanted.take()?;
        let Ask::Game(request) = &ask else { panic!("{ask:?}") };
        let listing =
            pb::ListGamesRequest { external_reference: request.external_reference.clone(), ..Default::default() };
        let listed = client.list_games(listing.clone()).await.expect("a list").into_inner().games.len();
        let Outcome::Told(told) = ask.make(client).await else { panic!("{ask:?}") };
        if told.replayed != (listed == 1) {
            self.findings.wrong.push(format!("{listed} games listed, replayed {}: {ask:?}", told.replayed));
        }
        self.findings.doubts_written += usize::from(told.replayed);
        self.findings.doubts_lost += usize::from(!told.replayed);
        let listed = client.list_games(listing).await.expect("a list").into_inner().games.len();
        if listed != 1 {
            self.findings.doubled.push(format!("{listed} games were made by {ask:?}"));
        }
        self.findings.told += 1;
        let (replayed, mut board) = (told.replayed, Board::new(ask, told));
        if replayed {
            self.boards.push(board);
            return None;
        }
        board.log = board.read(client).await;
        Some(board)
    }
}

impl Board {
    async fn is_there(&self, client: &mut Client) -> bool {
        let look = pb::GetGameRequest { game_id: self.table.id.clone() };
        match within(client.get_game(by(&self.table.arbiter, look))).await {
            Ok(_) => true,
            Err(status) if status.code() == Code::NotFound => false,
            Err(status) => panic!("{status:?}"),
        }
    }

    /// The whole log. A look at the game comes first: before it the server notes that it was down.
    async fn read(&self, client: &mut Client) -> Vec<GameEvent> {
        let head = within(self.table.get(client)).await.sequence;
        let stream = within(self.table.watch(client, Some(&self.table.arbiter), Some(0))).await;
        let mut stream = stream.expect("a stream");
        let mut log = Vec::new();
        while log.last().is_none_or(|event: &GameEvent| event.sequence < head) {
            match within(stream.message()).await.expect("no error").and_then(|message| message.message) {
                Some(Message::Event(event)) => log.push(event),
                Some(Message::Heartbeat(_)) => {}
                other => panic!("{}: {other:?} in a log of {head}", self.table.id),
            }
        }
        log
    }

    async fn audit(&mut self, client: &mut Client, dice: &mut Dice, findings: &mut Findings, starts: usize) {
        let id = self.table.id.clone();
        if !self.is_there(client).await {
            findings.missing.push(format!("{id}: the whole game"));
            (self.over, self.settled) = (true, true);
            return;
        }
        let log = self.read(client).await;
        if log.iter().zip(1..).any(|(event, sequence)| event.sequence != sequence) {
            findings.wrong.push(format!("{id}: its sequences have a gap"));
        }
        let mut known = std::mem::take(&mut self.log);
        let seen = std::mem::take(&mut *self.seen.lock().expect("no panic"));
        known.extend(seen);
        if !log.starts_with(&known) {
            let at = known.iter().zip(&log).position(|(known, event)| known != event);
            findings.wrong.push(format!("{id}: not as it was seen, from {at:?} of {} on", known.len()));
        }
        self.compare(&log, findings);
        let in_doubt = self.count(&log, findings);
        resumed(&id, &log, known.len(), starts, findings);
        self.line = replay(&log);
        self.over = log.last().is_some_and(|event| event.outcome.is_some());
        let written = self.settle_doubt(client, in_doubt, findings).await;
        self.ask_again(client, dice, findings).await;
        self.audited = self.entries.len();
        self.log = self.read(client).await;
        if !self.log.starts_with(&log) || self.log.len() != log.len() + usize::from(written) {
            findings.doubled.push(format!("{id}: {} events, {} after repeats", log.len(), self.log.len()));
        }
        self.agree(client, findings).await;
        self.settled = self.over;
    }

    /// Looks for what was acknowledged since the last audit: is it in the log, at its sequence, as it was told.
    fn compare(&self, log: &[GameEvent], findings: &mut Findings) {
        for entry in &self.entries[self.audited..] {
            let Some(told) = &entry.told else { continue };
            let event = usize::try_from(told.sequence - 1).ok().and_then(|index| log.get(index));
            if !event.is_some_and(|event| told.answer.is_of(event)) {
                findings.missing.push(format!("{}: {told:?}, but {event:?}", self.table.id));
            }
        }
    }

    /// Whether the log holds as many events that calls caused as were acknowledged. If the last ask is in
    /// doubt: whether its event is there, too.
    fn count(&self, log: &[GameEvent], findings: &mut Findings) -> Option<bool> {
        let told = self.entries.iter().filter(|entry| entry.told.is_some()).count();
        let in_doubt = self.entries.len() - told;
        let caused = log.iter().filter(|event| is_called_for(event)).count();
        if caused < told {
            findings.missing.push(format!("{}: {told} acknowledged, {caused} events", self.table.id));
        } else if caused > told + in_doubt {
            findings.doubled.push(format!("{}: {told} acknowledged, {caused} events", self.table.id));
        }
        (in_doubt > 0).then_some(caused > told)
    }

    /// Asks again what is in doubt. True if it has been made by that, and not before.
    async fn settle_doubt(&mut self, client: &mut Client, in_doubt: Option<bool>, findings: &mut Findings) -> bool {
        let Some(written) = in_doubt else { return false };
        findings.doubts_written += usize::from(written);
        findings.doubts_lost += usize::from(!written);
        let ask = self.entries.last().expect("in doubt").ask.clone();
        match within(ask.make(client)).await {
            Outcome::Told(told) => {
                if told.replayed != written {
                    let id = &self.table.id;
                    findings.wrong.push(format!("{id}: written {written}, replayed {}: {ask:?}", told.replayed));
                }
                findings.told += 1;
                if written {
                    self.entries.last_mut().expect("in doubt").told = Some(told);
                } else {
                    self.take(told);
                }
                !written
            }
            Outcome::Refused(status) => {
                if written {
                    findings.missing.push(format!("{}: {status:?} though it is written: {ask:?}", self.table.id));
                }
                self.over |= reason(&status) == "GAME_OVER";
                self.entries.pop();
                false
            }
            Outcome::Doubt => panic!("no answer: {ask:?}"),
        }
    }

    /// Asks again what was acknowledged since the last audit, and some of what was before.
    async fn ask_again(&self, client: &mut Client, dice: &mut Dice, findings: &mut Findings) {
        let (older, newer) = self.entries.split_at(self.audited);
        let picked = (0..ASKED_AGAIN.min(older.len())).map(|_| &older[dice.roll(older.len())]);
        let entries: Vec<&Entry> = picked.chain(newer).collect();
        repeat(client, &entries, findings).await;
    }

    /// Whether the game as it is shown is what its log says.
    async fn agree(&self, client: &mut Client, findings: &mut Findings) {
        let game = within(self.table.get(client)).await;
        let last = self.log.last().expect("an event");
        let shown = (game.sequence, game.status, game.ply, game.side_to_move, &game.position, &game.open_offer);
        let said = (last.sequence, last.status, last.ply, last.side_to_move, &last.position, &last.open_offer);
        let moves: Vec<_> = self.log.iter().filter_map(made).cloned().collect();
        let folded = replay(&self.log).position().to_string();
        if shown != said || game.outcome != last.outcome || game.moves != moves || game.position != folded {
            findings.wrong.push(format!("{}: shown {game:?}, but the log says {last:?}", self.table.id));
        }
    }
}

/// Asks again what was acknowledged: the same answers must come.
async fn repeat(client: &mut Client, entries: &[&Entry], findings: &mut Findings) {
    for (ask, first) in entries.iter().filter_map(|entry| Some((&entry.ask, entry.told.as_ref()?))) {
        findings.repeats += 1;
        match within(ask.make(client)).await {
            Outcome::Told(again) if again.replayed => {
                if (again.sequence, &again.answer) != (first.sequence, &first.answer) {
                    findings.wrong.push(format!("first {first:?}, then {again:?}"));
                }
            }
            Outcome::Told(again) => findings.doubled.push(format!("first {first:?}, then made again: {again:?}")),
            Outcome::Refused(status) => findings.missing.push(format!("first {first:?}, then {status:?}")),
            Outcome::Doubt => panic!("no answer: {ask:?}"),
        }
    }
}

fn made(event: &GameEvent) -> Option<&pb::PlayedMove> {
    match &event.kind {
        Some(Kind::MoveMade(made)) => made.r#move.as_ref(),
        Some(_) | None => None,
    }
}

/// The line of a log's moves.
fn replay(log: &[GameEvent]) -> Line {
    let ruleset = Preset::find("yeshou").expect("a preset").ruleset;
    let mut line = Line::new(Position::start(&ruleset), ruleset);
    for made in log.iter().filter_map(made) {
        line.advance(format!("{}{}", made.from_square, made.to_square).parse().expect("a move"));
    }
    line
}

fn micros(time: &prost_types::Timestamp) -> i64 {
    time.seconds * 1_000_000 + i64::from(time.nanos / 1_000)
}

fn span(span: &prost_types::Duration) -> i64 {
    span.seconds * 1_000_000 + i64::from(span.nanos / 1_000)
}

/// The deadline of a running clock and what it has left, in microseconds; `None` where no clock runs.
fn running(event: &GameEvent) -> Option<(i64, i64)> {
    let clock = event.clock.as_ref()?;
    let left = match clock.running_side() {
        pb::Side::Red => clock.red_remaining.as_ref()?,
        pb::Side::Blue => clock.blue_remaining.as_ref()?,
        pb::Side::Unspecified => return None,
    };
    Some((micros(clock.deadline.as_ref()?), span(left)))
}

/// A game that was open was told of the time that the server was down, once a start, and nobody was charged for
/// it: to the microsecond, the clock that ran lost what passed until the last sign of life and nothing else.
fn resumed(id: &str, log: &[GameEvent], known: usize, starts: usize, findings: &mut Findings) {
    let told = |event: &GameEvent| matches!(event.kind, Some(Kind::Resumed(_)));
    let number = log[known.min(log.len())..].iter().filter(|event| told(event)).count();
    let goes_on_after_the_end = log.iter().rev().skip(1).any(|event| event.outcome.is_some());
    let is_open = log.last().is_some_and(|event| event.outcome.is_none());
    if number > starts || (is_open && number == 0) || goes_on_after_the_end {
        findings.wrong.push(format!("{id}: {number} times resumed in {starts} starts"));
    }
    findings.resumed += number;
    for pair in log.windows(2).skip(known.saturating_sub(1)) {
        let Some(Kind::Resumed(resumed)) = &pair[1].kind else { continue };
        let (Some((deadline, left)), Some(after)) = (running(&pair[0]), running(&pair[1])) else { continue };
        let down_since = micros(resumed.down_since.as_ref().expect("a time"));
        let lived = (down_since - (deadline - left)).max(0);
        if after.1 != left - lived {
            findings.wrong.push(format!("{id}: {left} before, {lived} until it went down, {} after", after.1));
        }
    }
}

/// A request id.
fn request_id(dice: &mut Dice) -> String {
    let half = |dice: &mut Dice| dice.roll(usize::MAX) as u128;
    uuid::Uuid::from_u128(half(dice) << 64 | half(dice)).to_string()
}

/// What a player does next: mostly a move that is allowed.
fn next_ask(dice: &mut Dice, board: &Board) -> Ask {
    let table = &board.table;
    let id = request_id(dice);
    let (request_id, game_id) = (id, table.id.clone());
    let token = dice.pick(&[&table.red, &table.blue]).clone();
    match dice.roll(100) {
        0..3 => {
            Ask::Answer(token, pb::AnswerDrawRequest { request_id, game_id, answer: pb::DrawAnswer::Decline.into() })
        }
        3..9 => Ask::Offer(token, pb::OfferDrawRequest { request_id, game_id, action: 0 }),
        9 => Ask::Leave(token, pb::LeaveGameRequest { request_id, game_id }),
        10 => {
            Ask::Abort(table.arbiter.clone(), pb::AbortGameRequest { request_id, game_id, reason: "a test".to_owned() })
        }
        roll => {
            let ply = board.line.ply();
            let legal: Vec<Move> = board.line.legal_moves().moves.iter().map(|legal| legal.mv).collect();
            let mv = legal[dice.roll(legal.len())].to_string();
            // Now and then to a square far away, which is mostly refused, and counts.
            let to = if roll < 18 { "d5" } else { &mv[2..] };
            let request = pb::SubmitMoveRequest {
                request_id,
                expected_ply: Some(ply),
                offer_draw: roll % 8 == 0,
                ..table.submit(&format!("{}{to}", &mv[..2]))
            };
            Ask::Move(table.token_at(ply).to_owned(), request)
        }
    }
}
