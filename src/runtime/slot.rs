//! One game at the server: its state, its records, and the one queue in which commands and expiries
//! enter it in order of arrival and are judged in that order, by one drainer at a time.
//!
//! A drainer runs inline, in the call that found the queue idle, for as long as the log answers at
//! once; where the log takes time it goes on as a task, so that a commit once begun goes on without
//! its caller. The lock is held for judging, never while a log is waited for.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{oneshot, watch};

use super::feed::StreamFlag;
use super::ids::GameId;
use super::log::{Append, Appended};
use super::registry::House;
use crate::game::{
    ClockStart, Command, Event, Game, Kind, Moved, Record, Refusal, Request, Settings, Span, Status, Time, create,
    decide,
};
use crate::rules::Side;

/// How many calls of one seat may wait to be judged. A seat's first move of a ply always may.
pub const WAITING_LIMIT: usize = 64;

/// How long after a log's failure a deadline is looked at again.
const AFTER_FAILURE: Span = Span::from_secs(1);

/// A game at the server.
pub struct Slot {
    id: GameId,
    house: Arc<House>,
    inner: Mutex<Inner>,
}

/// What the lock guards.
pub(super) struct Inner {
    /// `None` until the creation is written.
    pub(super) game: Option<Game>,
    /// The log of the game, as far as it is believed.
    pub(super) records: Vec<Record>,
    queue: VecDeque<Entry>,
    /// Whether a drainer is at work; whoever finds `true` only enters.
    draining: bool,
    /// What tells watchers of new records; exists while somebody watches.
    pub(super) feed: Option<watch::Sender<u64>>,
    /// The open streams of the seats, oldest first.
    pub(super) seat_streams: [Vec<Arc<StreamFlag>>; 2],
    /// How many watch that are no seat's.
    pub(super) spectators: usize,
    /// The deadline that the timers know of.
    scheduled: Option<Time>,
    /// The ply of each seat's latest submitted move: its first of a ply is never shed.
    moved_at: [Option<u32>; 2],
}

/// Something that waits to be judged.
struct Entry {
    arrival: Time,
    ask: Ask,
    request: Option<Request>,
    reply: Option<oneshot::Sender<Reply>>,
}

enum Ask {
    Create(Arc<Settings>),
    Command(Command),
}

/// The answer to an entry.
pub type Reply = Result<Answer, Fault>;

/// A command changed the game, now or when it was first asked.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The game as the event left it.
    pub game: Game,
    /// The event.
    pub record: Record,
    /// Whether the event was caused by an earlier call with the same request id.
    pub replayed: bool,
}

/// A command did not change the game.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The game's judge says no.
    Refused {
        /// Why.
        refusal: Box<Refusal>,
        /// The game as it is.
        game: Box<Game>,
        /// As of when.
        at: Time,
    },
    /// The request id has already changed the game with another body.
    RequestIdReused,
    /// There is no such game.
    NoSuchGame,
    /// The given start does not lie within the time ahead that is allowed.
    StartOutOfRange,
    /// Too many games are open already.
    TooManyGames {
        /// How many may be.
        limit: usize,
    },
    /// Too many calls of the seat wait already.
    TooManyWaiting,
    /// The server is stopping.
    Stopping,
    /// The log could not be written; nothing was changed.
    LogFailed,
    /// It is not known whether the log was written.
    FateUnknown,
    /// A fault of ours.
    Internal,
}

/// A game as one look sees it.
#[derive(Clone, Debug)]
pub struct View {
    /// The game.
    pub game: Game,
    /// Its moves so far, first to last.
    pub moves: Vec<Moved>,
    /// When this held.
    pub now: Time,
}

/// What the drainer does next for the entry at the head of the queue.
enum Next {
    Answer(Box<Reply>),
    Append { event: Event, own: bool },
}

impl Slot {
    pub(super) fn new(id: GameId, house: Arc<House>) -> Self {
        let inner = Inner {
            game: None,
            records: Vec::new(),
            queue: VecDeque::new(),
            draining: false,
            feed: None,
            seat_streams: [Vec::new(), Vec::new()],
            spectators: 0,
            scheduled: None,
            moved_at: [None; 2],
        };
        Self { id, house, inner: Mutex::new(inner) }
    }

    /// The game's id.
    #[must_use]
    pub fn id(&self) -> GameId {
        self.id
    }

    pub(super) fn house(&self) -> &Arc<House> {
        &self.house
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic while judging is caught and leaves the state as it was.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the game was set up; `None` if it was never created.
    #[must_use]
    pub fn settings(&self) -> Option<Arc<Settings>> {
        self.lock().game.as_ref().map(|game| Arc::clone(game.settings()))
    }

    pub(super) async fn create(self: &Arc<Self>, settings: Arc<Settings>, request: Option<Request>) -> Reply {
        self.enter(None, Ask::Create(settings), request).await
    }

    /// Has a command judged. A seat that the caller's token shows is noted first.
    ///
    /// # Errors
    /// Why the game was not changed.
    pub async fn ask(self: &Arc<Self>, seat: Option<Side>, command: Command, request: Option<Request>) -> Reply {
        self.enter(seat, Ask::Command(command), request).await
    }

    /// Looks at the game, with the time settled.
    ///
    /// # Errors
    /// [`Fault::NoSuchGame`] if it was never created.
    pub async fn view(self: &Arc<Self>, seat: Option<Side>) -> Result<View, Fault> {
        self.settle(seat).await;
        let inner = self.lock();
        inner.view(self.house.clock.now()).ok_or(Fault::NoSuchGame)
    }

    /// Looks at the game, with the time settled, and leaves its moves out.
    ///
    /// # Errors
    /// [`Fault::NoSuchGame`] if it was never created.
    pub async fn glance(self: &Arc<Self>, seat: Option<Side>) -> Result<View, Fault> {
        self.settle(seat).await;
        self.lock().glance(self.house.clock.now()).ok_or(Fault::NoSuchGame)
    }

    /// Lets happen what is due, and notes that a seat has shown itself, before a look.
    pub(super) async fn settle(self: &Arc<Self>, seat: Option<Side>) {
        let now = self.house.clock.now();
        let due = self.lock().game.as_ref().and_then(Game::deadline).is_some_and(|at| at <= now);
        if due {
            self.enter_tick();
        }
        if let Some(side) = seat.filter(|side| self.lock().awaits(*side)) {
            // Its refusal would only mean that another call has shown the seat in the meantime.
            let _ = self.ask(None, Command::Show(side), None).await;
        }
    }

    /// Lets time alone do what is due.
    pub(super) fn enter_tick(self: &Arc<Self>) {
        self.enter_silently(Command::Tick);
    }

    /// A deadline that the timers knew of has come.
    pub(super) fn on_timer(self: &Arc<Self>) {
        self.lock().scheduled = None;
        self.enter_tick();
    }

    /// Enters a command whose answer nobody waits for.
    pub(super) fn enter_silently(self: &Arc<Self>, command: Command) {
        let mut inner = self.lock();
        let arrival = self.house.clock.now();
        inner.queue.push_back(Entry { arrival, ask: Ask::Command(command), request: None, reply: None });
        self.drain(inner);
    }

    async fn enter(self: &Arc<Self>, seat: Option<Side>, ask: Ask, request: Option<Request>) -> Reply {
        let (reply, answer) = oneshot::channel();
        {
            let mut inner = self.lock();
            if !inner.has_room(&ask) {
                return Err(Fault::TooManyWaiting);
            }
            // Stamp and place in the queue are one step under the lock: the queue is in order of arrival.
            let arrival = self.house.clock.now();
            if let Some(side) = seat.filter(|side| inner.awaits(*side)) {
                let ask = Ask::Command(Command::Show(side));
                inner.queue.push_back(Entry { arrival, ask, request: None, reply: None });
            }
            inner.queue.push_back(Entry { arrival, ask, request, reply: Some(reply) });
            self.drain(inner);
        }
        // A reply that is dropped unsent means that its drainer has died of a fault of ours.
        answer.await.unwrap_or(Err(Fault::Internal))
    }

    /// Judges what waits, unless somebody is at it already.
    fn drain(self: &Arc<Self>, mut inner: MutexGuard<'_, Inner>) {
        if inner.draining {
            return;
        }
        inner.draining = true;
        while let Some(next) = inner.next() {
            match next {
                Next::Answer(reply) => inner.answer(*reply),
                Next::Append { event, own } => {
                    let sequence = inner.sequence() + 1;
                    match self.house.log.append(self.id, sequence, &event) {
                        Append::Done(Appended::Written(written)) => {
                            self.believe(&mut inner, Record { sequence, written, event }, own);
                        }
                        Append::Done(appended) => {
                            return self.go_on_later(Box::pin(std::future::ready(appended)), sequence, event, own);
                        }
                        Append::Pending(appended) => return self.go_on_later(appended, sequence, event, own),
                    }
                }
            }
        }
        inner.draining = false;
        self.schedule(&mut inner);
    }

    /// Waits for the log in a task of its own, which then drains on.
    fn go_on_later(self: &Arc<Self>, appended: super::log::Later<Appended>, sequence: u64, event: Event, own: bool) {
        let slot = Arc::clone(self);
        tokio::spawn(async move {
            let written = match appended.await {
                Appended::Written(written) => Ok(vec![Record { sequence, written, event: event.clone() }]),
                Appended::Failed => Err(Fault::LogFailed),
                Appended::Conflict | Appended::Unknown => {
                    let tail = slot.house.log.tail(slot.id, sequence - 1).await;
                    tail.map_err(|_| Fault::FateUnknown)
                }
            };
            let mut inner = slot.lock();
            match written {
                Ok(records) if records.is_empty() => inner.answer(Err(Fault::LogFailed)),
                // What others wrote is believed first; the entry at the head is then judged again.
                Ok(records) => {
                    for record in records {
                        let own = own && record.event == event;
                        slot.believe(&mut inner, record, own);
                    }
                }
                Err(fault) => {
                    inner.answer(Err(fault));
                    slot.house.timers.schedule(slot.house.clock.now() + AFTER_FAILURE, slot.id);
                }
            }
            inner.draining = false;
            slot.drain(inner);
        });
    }

    /// Believes a written record, and tells: the reply if the head of the queue caused it, the feed.
    fn believe(&self, inner: &mut Inner, record: Record, own: bool) {
        match &mut inner.game {
            Some(game) => game.apply(&record),
            None => inner.game = Game::from_creation(&record),
        }
        let ended = record.event.ending.is_some();
        let sequence = record.sequence;
        inner.records.push(record.clone());
        if ended {
            self.house.ended(self.id, self.house.clock.now());
        }
        if own && let Some(game) = inner.game.clone() {
            inner.answer(Ok(Answer { game, record, replayed: false }));
        }
        if let Some(feed) = &inner.feed {
            feed.send_replace(sequence);
        }
    }

    /// Tells the timers of a deadline that is sooner than the one they know. A later one they find out
    /// about when the time they know has come.
    fn schedule(&self, inner: &mut Inner) {
        let Some(deadline) = inner.game.as_ref().and_then(Game::deadline) else {
            return;
        };
        if inner.scheduled.is_none_or(|scheduled| deadline < scheduled) {
            inner.scheduled = Some(deadline);
            self.house.timers.schedule(deadline, self.id);
        }
    }
}

impl Inner {
    fn sequence(&self) -> u64 {
        self.game.as_ref().map_or(0, Game::sequence)
    }

    /// Whether the game waits for this seat to show itself.
    fn awaits(&self, side: Side) -> bool {
        self.game.as_ref().is_some_and(|game| {
            game.status() == Status::Waiting
                && matches!(game.settings().clock_start, ClockStart::WhenBothShown(_))
                && !game.has_shown(side)
        })
    }

    /// Whether one more entry of this seat may wait: up to the limit, and always its first move of a ply.
    fn has_room(&mut self, ask: &Ask) -> bool {
        let Ask::Command(command) = ask else {
            return true;
        };
        let Some(side) = seat_of(command) else {
            return true;
        };
        if matches!(command, Command::Move { .. }) {
            let ply = self.game.as_ref().map(|game| game.line().ply());
            if std::mem::replace(&mut self.moved_at[side.index()], ply) != ply {
                return true;
            }
        }
        let waiting = self.queue.iter().filter(|entry| match &entry.ask {
            Ask::Command(command) => seat_of(command) == Some(side),
            Ask::Create(_) => false,
        });
        waiting.count() < WAITING_LIMIT
    }

    /// What to do for the entry at the head; `None` if nothing waits.
    fn next(&mut self) -> Option<Next> {
        if self.queue.is_empty() {
            return None;
        }
        // Judging is ours, and no panic is known in it; should there be one, it ends this command alone.
        let next = catch_unwind(AssertUnwindSafe(|| self.judge_head()));
        Some(next.unwrap_or(Next::Answer(Box::new(Err(Fault::Internal)))))
    }

    fn judge_head(&mut self) -> Next {
        let (Some(entry), game) = (self.queue.front(), self.game.as_mut()) else {
            return Next::Answer(Box::new(Err(Fault::Internal)));
        };
        let Some(game) = game else {
            return match &entry.ask {
                Ask::Create(settings) => {
                    let event = create(Arc::clone(settings), entry.request, entry.arrival);
                    Next::Append { event, own: true }
                }
                Ask::Command(_) => Next::Answer(Box::new(Err(Fault::NoSuchGame))),
            };
        };
        if let Some(request) = entry.request
            && let Some(reply) = repeat(&self.records, request)
        {
            return Next::Answer(Box::new(reply));
        }
        let command = match &entry.ask {
            Ask::Create(_) => return Next::Answer(Box::new(Err(Fault::RequestIdReused))),
            Ask::Command(command) => command,
        };
        if game.deadline().is_some_and(|deadline| deadline <= entry.arrival)
            && let Ok(event) = decide(game, &Command::Tick, None, entry.arrival)
        {
            return Next::Append { event, own: false };
        }
        if let Command::Depart(side) = command {
            game.depart(*side, entry.arrival);
        }
        if let Command::Arrive(side) = command {
            game.arrive(*side);
        }
        match decide(game, command, entry.request, entry.arrival) {
            Ok(event) => Next::Append { event, own: true },
            Err(refusal) => {
                let (refusal, game) = (Box::new(refusal), Box::new(game.clone()));
                Next::Answer(Box::new(Err(Fault::Refused { refusal, game, at: entry.arrival })))
            }
        }
    }

    /// Answers the entry at the head and takes it out of the queue.
    fn answer(&mut self, reply: Reply) {
        if let Some(sender) = self.queue.pop_front().and_then(|entry| entry.reply) {
            // The caller may have gone; the next call with its request id tells it all the same.
            let _ = sender.send(reply);
        }
    }

    /// The game without its moves, as a heartbeat needs it.
    pub(super) fn glance(&self, now: Time) -> Option<View> {
        Some(View { game: self.game.clone()?, moves: Vec::new(), now })
    }

    pub(super) fn view(&self, now: Time) -> Option<View> {
        let game = self.game.clone()?;
        let moves = self.records.iter().filter_map(|record| {
            let Kind::Moved(moved) = record.event.kind else { return None };
            Some(moved)
        });
        Some(View { moves: moves.collect(), game, now })
    }
}

/// The seat a command comes from, if it is a player's call.
fn seat_of(command: &Command) -> Option<Side> {
    match command {
        Command::Move { side, .. }
        | Command::OfferDraw(side)
        | Command::TakeBackDraw(side)
        | Command::AcceptDraw(side)
        | Command::DeclineDraw(side)
        | Command::Leave(side) => Some(*side),
        Command::Show(_) | Command::Arrive(_) | Command::Depart(_) | Command::Abort { .. } | Command::Tick => None,
    }
}

/// The answer to a request that has changed the game before, rebuilt from the event it caused.
fn repeat(records: &[Record], request: Request) -> Option<Reply> {
    let same_id = |record: &Record| {
        record.event.request.is_some_and(|known| (known.caller, known.id) == (request.caller, request.id))
    };
    let index = records.iter().rposition(same_id)?;
    let record = records[index].clone();
    if record.event.request.is_none_or(|known| known.digest != request.digest) {
        return Some(Err(Fault::RequestIdReused));
    }
    Some(match Game::fold(&records[..=index]) {
        Some(game) => Ok(Answer { game, record, replayed: true }),
        None => Err(Fault::Internal),
    })
}
