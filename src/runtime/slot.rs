//! One game at the server: its state, its records, and the one queue in which commands and expiries
//! enter it in order of arrival and are judged in that order, by one drainer at a time.
//!
//! A drainer runs inline, in the call that found the queue idle, for as long as the log answers at
//! once; where the log takes time it goes on as a task, so that a commit once begun goes on without
//! its caller. The lock is held for judging, never while a log is waited for.
//!
//! Where the log leaves doubt, the game is fenced: nothing more is judged until its tail has been read.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;

use tokio::sync::{oneshot, watch};
use tracing::{debug, info};

use super::call::{Call, of_call};
use super::feed::StreamFlag;
use super::ids::GameId;
use super::load::Load;
use super::locked;
use super::log::{Append, Appended, Later, LogFault};
use super::registry::House;
use crate::game::{
    Caller, ClockStart, Command, Creation, Event, Game, Journal, Kind, Marks, Moved, Record, Refusal, Request,
    Settings, Span, Status, Time, create, decide, resume,
};
use crate::rules::Side;

/// How many calls of one seat may wait to be judged, the one that is being written included. A seat's
/// first move of a ply always may.
pub const WAITING_LIMIT: usize = 64;

/// How long after a log's failure a deadline is looked at again.
const AFTER_FAILURE: Span = Span::from_secs(1);

/// A game at the server.
pub struct Slot {
    id: GameId,
    house: Arc<House>,
    inner: Mutex<Inner>,
}

/// What the lock guards. A million games wait for their next move, and this is what each of them costs.
pub(super) struct Inner {
    /// `None` until the creation is written.
    pub(super) game: Option<Game>,
    /// The log of the game, as far as it is believed.
    pub(super) journal: Journal,
    /// What exists only while something goes on.
    pub(super) busy: Busy,
    /// The time for which the timers have an entry of this game.
    scheduled: Option<Time>,
    /// By seat: the ply after that of its latest submitted move, or 0: its first of a ply is never shed.
    moved_at: [u32; 2],
}

/// Somebody waits, writes or watches, or something is not as it should be.
#[derive(Default)]
pub(super) struct Doings {
    queue: VecDeque<Entry>,
    /// The creator's request id, while the game is being created.
    created_by: Option<u128>,
    /// Whether a task waits for the log on behalf of the head; whoever finds `true` only enters.
    writing: bool,
    /// Set while the log may hold more than is believed.
    fence: Option<Box<Fence>>,
    /// What tells watchers of new records; exists while somebody watches.
    pub(super) feed: Option<watch::Sender<u64>>,
    /// The open streams of the seats, oldest first.
    pub(super) seat_streams: [Vec<Arc<StreamFlag>>; 2],
    /// How many watch that are no seat's.
    pub(super) spectators: usize,
    /// After a failure: when to look again, whatever is due until then.
    retry_at: Option<Time>,
    /// The server was down since then, and that has not been written into the game yet.
    down_since: Option<Time>,
}

/// The [`Doings`] of a game in which something goes on: read, they are always there; they take room
/// from the first time that they are changed until nothing goes on any more.
#[derive(Default)]
pub(super) struct Busy(Option<Box<Doings>>);

impl Busy {
    /// Gives the room back if nothing goes on.
    pub(super) fn rest(&mut self) {
        if self.is_at_rest() {
            self.0 = None;
        }
    }

    fn is_at_rest(&self) -> bool {
        let idle = self.queue.is_empty() && !self.writing && self.fence.is_none();
        idle && !self.is_watched() && self.retry_at.is_none() && self.down_since.is_none()
    }
}

impl Doings {
    /// Whether anybody watches.
    pub(super) fn is_watched(&self) -> bool {
        self.spectators > 0 || self.seat_streams.iter().any(|streams| !streams.is_empty())
    }
}

impl Deref for Busy {
    type Target = Doings;

    fn deref(&self) -> &Doings {
        static NONE: Doings = Doings {
            queue: VecDeque::new(),
            created_by: None,
            writing: false,
            fence: None,
            feed: None,
            seat_streams: [Vec::new(), Vec::new()],
            spectators: 0,
            retry_at: None,
            down_since: None,
        };
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for Busy {
    fn deref_mut(&mut self) -> &mut Doings {
        self.0.get_or_insert_default()
    }
}

/// Something that waits to be judged.
struct Entry {
    arrival: Time,
    /// The seat that the caller's token shows: noted before the entry's own command.
    shows: Option<Side>,
    ask: Ask,
    request: Option<Request>,
    reply: Option<oneshot::Sender<Reply>>,
    /// The call that it came with, for the log's lines.
    call: Option<Call>,
    /// Calls that repeated the request while it waited. They are no entries of their own.
    repeats: Vec<oneshot::Sender<Reply>>,
}

enum Ask {
    Create(Arc<Creation>),
    Command(Command),
}

/// Why nothing is judged until the tail of the log has been read.
enum Fence {
    /// The head's event may have been written, or another one in its place.
    Head { event: Event, own: bool },
    /// The tail could not be read for an entry that has been answered since.
    Earlier,
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
    /// Too many calls are under way, and this one can wait.
    Busy {
        /// How many may be.
        limit: usize,
    },
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
    /// What it is found by.
    pub marks: Marks,
    /// When this held.
    pub now: Time,
}

/// What the drainer does next for the entry at the head of the queue.
enum Next {
    Answer(Box<Reply>),
    Append { event: Event, own: bool },
    ReadTail,
}

/// An answer on its way.
pub(super) struct Waiting(oneshot::Receiver<Reply>);

impl Waiting {
    pub(super) async fn reply(self) -> Reply {
        // A reply that is dropped unsent means that its drainer has died of a fault of ours.
        self.0.await.unwrap_or(Err(Fault::Internal))
    }
}

impl Slot {
    pub(super) fn new(id: GameId, house: Arc<House>) -> Self {
        let inner =
            Inner { game: None, journal: Journal::default(), busy: Busy::default(), scheduled: None, moved_at: [0; 2] };
        Self { id, house, inner: Mutex::new(inner) }
    }

    /// The place of a game that an earlier run of the server wrote.
    pub(super) fn restored(id: GameId, game: Game, journal: Journal, house: Arc<House>) -> Self {
        let slot = Self::new(id, house);
        {
            let mut inner = slot.lock();
            inner.game = Some(game);
            inner.journal = journal;
        }
        slot
    }

    /// Notes in an open game that the server was down: the first entry of its queue, before any call.
    pub(super) fn resume(self: &Arc<Self>, down_since: Time) {
        let mut inner = self.lock();
        inner.busy.down_since = Some(down_since);
        if let Some(game) = &mut inner.game {
            // Who was there until then is not known, and counts as having been.
            Side::ALL.into_iter().for_each(|side| game.depart(side, down_since));
        }
        self.enter_silently(inner, Command::Tick);
    }

    /// The game's id.
    #[must_use]
    pub fn id(&self) -> GameId {
        self.id
    }

    /// The creator's request id that it is found by again.
    pub(super) fn created_by(&self) -> Option<u128> {
        let creation = self.lock().journal.records().next()?;
        creation.event.request.map(|request| request.id)
    }

    pub(super) fn house(&self) -> &Arc<House> {
        &self.house
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic while judging is caught and leaves the state as it was.
        locked(&self.inner)
    }

    /// How the game was set up; `None` if it was never created.
    #[must_use]
    pub fn settings(&self) -> Option<Arc<Settings>> {
        self.lock().game.as_ref().map(|game| Arc::clone(game.settings()))
    }

    /// Whether there is no game here, and nothing under way that could make one.
    pub(super) fn is_abandoned(&self) -> bool {
        self.lock().is_abandoned()
    }

    /// Enters the creation of the game.
    pub(super) fn create(self: &Arc<Self>, creation: Arc<Creation>, request: Option<Request>) -> Waiting {
        let (reply, answer) = oneshot::channel();
        let mut inner = self.lock();
        inner.busy.created_by = request.map(|request| request.id);
        self.enter(inner, None, Ask::Create(creation), request, Some(reply));
        Waiting(answer)
    }

    /// Has a command judged. A seat that the caller's token shows is noted first.
    ///
    /// # Errors
    /// Why the game was not changed.
    pub async fn ask(self: &Arc<Self>, seat: Option<Side>, command: Command, request: Option<Request>) -> Reply {
        let (reply, answer) = oneshot::channel();
        {
            let mut inner = self.lock();
            if let Some(twin) = inner.waiting_twin(request) {
                twin.repeats.push(reply);
                self.house.gauges.replays.bump();
            } else {
                inner.make_room(&command, &self.house.load)?;
                self.enter(inner, seat, Ask::Command(command), request, Some(reply));
            }
        }
        Waiting(answer).reply().await
    }

    /// Looks at the game, with the time settled.
    ///
    /// # Errors
    /// [`Fault::NoSuchGame`] if it was never created.
    pub async fn view(self: &Arc<Self>, seat: Option<Side>) -> Result<View, Fault> {
        self.look(seat, Inner::view).await.ok_or(Fault::NoSuchGame)
    }

    /// Looks at the game, with the time settled, and leaves its moves and its marks out.
    ///
    /// # Errors
    /// [`Fault::NoSuchGame`] if it was never created.
    pub async fn glance(self: &Arc<Self>, seat: Option<Side>) -> Result<View, Fault> {
        self.look(seat, Inner::glance).await.ok_or(Fault::NoSuchGame)
    }

    /// Looks once what is due has happened and the seat has shown itself, as of one moment. Where the log
    /// fails, the look is at what is written.
    pub(super) async fn look<T>(self: &Arc<Self>, seat: Option<Side>, at: impl Fn(&Inner, Time) -> T) -> T {
        let first = {
            let inner = self.lock();
            let now = self.house.clock.now();
            match inner.pending(seat, now) {
                None => return at(&inner, now),
                Some(command) => command,
            }
        };
        // A refusal only means that another call has seen to it in the meantime.
        let _ = self.ask(None, first, None).await;
        let inner = self.lock();
        at(&inner, self.house.clock.now())
    }

    /// Lets happen what is due, and notes that a seat has shown itself.
    pub(super) async fn settle(self: &Arc<Self>, seat: Option<Side>) {
        self.look(seat, |_, _| ()).await;
    }

    /// A deadline that the timers knew of has come.
    pub(super) fn on_timer(self: &Arc<Self>, at: Time) {
        let mut inner = self.lock();
        if inner.scheduled == Some(at) {
            inner.scheduled = None;
            if inner.busy.retry_at.is_some() {
                inner.busy.retry_at = None;
            }
        }
        self.enter_silently(inner, Command::Tick);
    }

    /// Enters a command whose answer nobody waits for, in one step with what the caller did under the lock.
    pub(super) fn enter_silently(self: &Arc<Self>, inner: MutexGuard<'_, Inner>, command: Command) {
        self.enter(inner, None, Ask::Command(command), None, None);
    }

    fn enter(
        self: &Arc<Self>,
        mut inner: MutexGuard<'_, Inner>,
        shows: Option<Side>,
        ask: Ask,
        request: Option<Request>,
        reply: Option<oneshot::Sender<Reply>>,
    ) {
        // Stamp and place in the queue are one step under the lock: the queue is in order of arrival.
        let arrival = self.house.clock.now();
        inner.busy.queue.push_back(Entry {
            arrival,
            shows,
            ask,
            request,
            reply,
            call: Call::here(),
            repeats: Vec::new(),
        });
        self.drain(inner);
    }

    /// Judges what waits, unless a task is at it already.
    fn drain(self: &Arc<Self>, mut inner: MutexGuard<'_, Inner>) {
        while !inner.busy.writing && !inner.busy.queue.is_empty() {
            self.unharmed(&mut inner, |inner| self.step(inner));
        }
        if !inner.busy.writing {
            self.schedule(&mut inner);
            if inner.is_abandoned() {
                self.house.abandoned(self.id, inner.busy.created_by);
            }
            inner.busy.rest();
        }
    }

    /// Judging is ours, and no panic is known in it; should there be one, it ends the head's command alone.
    fn unharmed(&self, inner: &mut Inner, what: impl FnOnce(&mut Inner)) {
        if catch_unwind(AssertUnwindSafe(|| what(inner))).is_err() {
            self.give_up(inner, Fault::Internal);
        }
    }

    /// Does what comes next for the head of the queue.
    fn step(self: &Arc<Self>, inner: &mut Inner) {
        let next = inner.judge_head();
        let now = self.house.clock.now();
        self.count(inner, &next, now);
        match next {
            Next::Answer(reply) => inner.answer(*reply),
            Next::ReadTail => self.read_tail(inner),
            Next::Append { event, own } => {
                let sequence = inner.sequence() + 1;
                match self.house.log.append(self.id, sequence, &event) {
                    Append::Done(appended) => {
                        self.house.gauges.appended(now, appended);
                        self.appended(inner, appended, sequence, event, own);
                    }
                    Append::Pending(appended) => self.go_on_later(inner, appended, move |slot, inner, appended| {
                        // A log that dies of the append may have written it.
                        let appended = appended.unwrap_or(Appended::Unknown);
                        slot.house.gauges.appended(now, appended);
                        slot.appended(inner, appended, sequence, event, own);
                    }),
                }
            }
        }
    }

    /// Counts that the head's turn has come. What has to happen before it is not its turn.
    fn count(&self, inner: &Inner, next: &Next, now: Time) {
        match next {
            Next::Append { own: false, .. } | Next::ReadTail => return,
            Next::Append { own: true, .. } => {}
            Next::Answer(reply) => self.house.gauges.answered(reply),
        }
        if let Some(head) = inner.busy.queue.front() {
            self.house.gauges.judged(now.since(head.arrival));
        }
    }

    /// What became of the head's event, or of one that had to come before it.
    fn appended(&self, inner: &mut Inner, appended: Appended, sequence: u64, event: Event, own: bool) {
        match appended {
            Appended::Written(written) => self.believe(inner, Record { sequence, written, event }, own),
            Appended::Failed => self.give_up(inner, Fault::LogFailed),
            Appended::Conflict => inner.busy.fence = Some(Box::new(Fence::Head { event, own: false })),
            Appended::Unknown => inner.busy.fence = Some(Box::new(Fence::Head { event, own })),
        }
    }

    fn read_tail(self: &Arc<Self>, inner: &mut Inner) {
        let tail = self.house.log.tail(self.id, inner.sequence());
        self.go_on_later(inner, tail, |slot, inner, tail| match tail.unwrap_or(Err(LogFault)) {
            Ok(records) => slot.believe_tail(inner, records),
            Err(LogFault) => {
                inner.busy.fence = Some(Box::new(Fence::Earlier));
                slot.give_up(inner, Fault::FateUnknown);
            }
        });
    }

    /// Believes what the log holds more. The head's own event answers it; after other news it is judged again.
    fn believe_tail(&self, inner: &mut Inner, records: Vec<Record>) {
        let fence = inner.busy.fence.take();
        let head = match fence.as_deref() {
            Some(Fence::Head { event, own }) => Some((event, *own)),
            Some(Fence::Earlier) | None => None,
        };
        let before = inner.sequence();
        for record in records {
            if record.sequence == inner.sequence() + 1 {
                let own = head.is_some_and(|(event, own)| own && *event == record.event);
                self.believe(inner, record, own);
            }
        }
        if head.is_some() && inner.sequence() == before {
            self.give_up(inner, Fault::LogFailed);
        }
    }

    /// Waits for the log in a task of its own, which then drains on. `None`: the log panicked.
    fn go_on_later<T: 'static>(
        self: &Arc<Self>,
        inner: &mut Inner,
        mut later: Later<T>,
        then: impl FnOnce(&Arc<Self>, &mut Inner, Option<T>) + Send + 'static,
    ) {
        let slot = Arc::clone(self);
        inner.busy.writing = true;
        tokio::spawn(async move {
            let result = poll_fn(|context| {
                let polled = catch_unwind(AssertUnwindSafe(|| later.as_mut().poll(context)));
                polled.map_or(Poll::Ready(None), |poll| poll.map(Some))
            });
            let result = result.await;
            let mut inner = slot.lock();
            inner.busy.writing = false;
            slot.unharmed(&mut inner, |inner| then(&slot, inner, result));
            slot.drain(inner);
        });
    }

    /// Answers the head with a fault of the machinery; what needs no caller is tried again a little later.
    fn give_up(&self, inner: &mut Inner, fault: Fault) {
        inner.busy.retry_at = Some(self.house.clock.now() + AFTER_FAILURE);
        inner.note_presence();
        inner.answer(Err(fault));
    }

    /// Believes a written record, and tells: the reply if the head of the queue caused it, the feed.
    fn believe(&self, inner: &mut Inner, record: Record, own: bool) {
        let before = inner.game.as_ref().map(Game::status);
        let Inner { game, journal, .. } = inner;
        journal.write(game, &record);
        if matches!(record.event.kind, Kind::Resumed { .. }) || record.event.ending.is_some() {
            // Credited, or over: nothing is left to be credited.
            inner.busy.down_since = None;
        }
        if let Some(game) = &inner.game {
            self.house.gauges.believed(&record, before, game.status());
        }
        let sequence = record.sequence;
        debug!(game = %self.id, sequence, "event");
        if let Some(ending) = &record.event.ending {
            let call = inner.busy.queue.front().filter(|_| own).and_then(|head| head.call);
            of_call(call, || info!(game = %self.id, outcome = %ending.outcome, "game over"));
            self.house.ended(self.id, self.house.clock.now());
        }
        if own && let Some(game) = inner.game.clone() {
            inner.answer(Ok(Answer { game, record, replayed: false }));
        }
        if let Some(feed) = &inner.busy.feed {
            feed.send_replace(sequence);
        }
    }

    /// Tells the timers of a deadline that is sooner than the one they know. A later one they find out
    /// about when the time they know has come.
    fn schedule(&self, inner: &mut Inner) {
        let deadline = inner.busy.retry_at.or_else(|| inner.game.as_ref().and_then(Game::deadline));
        match (deadline, inner.scheduled) {
            (None, None) => {}
            (None, Some(known)) => {
                inner.scheduled = None;
                self.house.timers.forget(known, self.id);
            }
            (Some(at), Some(known)) if known <= at && inner.busy.retry_at.is_none() => {}
            (Some(at), known) => {
                inner.scheduled = Some(at);
                self.house.timers.schedule(at, self.id, known);
            }
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

    /// What must be asked before a look at `now` by this seat.
    fn pending(&self, seat: Option<Side>, now: Time) -> Option<Command> {
        if let Some(side) = seat.filter(|side| self.awaits(*side)) {
            return Some(Command::Show(side));
        }
        let due = self.game.as_ref().and_then(Game::deadline).is_some_and(|at| at <= now);
        (due || self.busy.down_since.is_some()).then_some(Command::Tick)
    }

    fn is_abandoned(&self) -> bool {
        self.game.is_none() && self.busy.queue.is_empty() && self.busy.fence.is_none()
    }

    /// The entry of the same request, if it waits to be judged or written.
    fn waiting_twin(&mut self, request: Option<Request>) -> Option<&mut Entry> {
        let request = request?;
        let twin = self.busy.queue.iter_mut().find(|entry| entry.request == Some(request))?;
        twin.repeats.retain(|repeat| !repeat.is_closed());
        Some(twin)
    }

    /// Whether one more entry of this seat may wait: up to the limit, and always its first move of a ply. Its
    /// further moves are shed while the server is busy; other calls have been, before they came here.
    fn make_room(&mut self, command: &Command, load: &Load) -> Result<(), Fault> {
        let Some(caller) = caller_of(command) else {
            self.forget_gone_looks();
            return Ok(());
        };
        if let Command::Move { side, .. } = command {
            let ply = self.game.as_ref().map_or(0, |game| game.line().ply().saturating_add(1));
            if std::mem::replace(&mut self.moved_at[side.index()], ply) != ply {
                return Ok(());
            }
            if load.is_too_much() {
                return Err(Fault::Busy { limit: load.most() });
            }
        }
        let waiting = self.busy.queue.iter().filter(|entry| match &entry.ask {
            Ask::Command(command) => caller_of(command) == Some(caller),
            Ask::Create(_) => false,
        });
        if waiting.count() < WAITING_LIMIT { Ok(()) } else { Err(Fault::TooManyWaiting) }
    }

    /// A look whose caller has gone need not be settled. The head may be under way, and stays.
    fn forget_gone_looks(&mut self) {
        let mut head = true;
        self.busy.queue.retain(|entry| {
            let look = matches!(&entry.ask, Ask::Command(Command::Show(_) | Command::Tick));
            let gone = entry.reply.as_ref().is_some_and(oneshot::Sender::is_closed);
            std::mem::take(&mut head) || !(look && gone)
        });
    }

    /// Streams that came or went are a fact, whatever becomes of their entry.
    fn note_presence(&mut self) {
        let (Some(entry), Some(game)) = (self.busy.queue.front(), self.game.as_mut()) else {
            return;
        };
        match &entry.ask {
            Ask::Command(Command::Depart(side)) => game.depart(*side, entry.arrival),
            Ask::Command(Command::Arrive(side)) => game.arrive(*side),
            Ask::Command(_) | Ask::Create(_) => {}
        }
    }

    /// What to do for the entry at the head of the queue.
    fn judge_head(&mut self) -> Next {
        if self.busy.fence.is_some() {
            return Next::ReadTail;
        }
        let (Some(entry), game) = (self.busy.queue.front(), &self.game) else {
            return Next::Answer(Box::new(Err(Fault::Internal)));
        };
        let Some(game) = game else {
            return match &entry.ask {
                Ask::Create(creation) => {
                    let event = create(Arc::clone(creation), entry.request, entry.arrival);
                    Next::Append { event, own: true }
                }
                Ask::Command(_) => Next::Answer(Box::new(Err(Fault::NoSuchGame))),
            };
        };
        if let Some(request) = entry.request
            && let Some(reply) = repeat(&self.journal, request)
        {
            return Next::Answer(Box::new(reply));
        }
        let command = match &entry.ask {
            Ask::Create(_) => return Next::Answer(Box::new(Err(Fault::RequestIdReused))),
            Ask::Command(command) => command,
        };
        if let Some(event) = due_first(game, entry, self.busy.down_since) {
            return Next::Append { event, own: false };
        }
        let (arrival, request, command) = (entry.arrival, entry.request, command.clone());
        self.note_presence();
        let Some(game) = &self.game else {
            return Next::Answer(Box::new(Err(Fault::NoSuchGame)));
        };
        match decide(game, &command, request, arrival) {
            Ok(event) => Next::Append { event, own: true },
            Err(refusal) => {
                let (refusal, game) = (Box::new(refusal), Box::new(game.clone()));
                Next::Answer(Box::new(Err(Fault::Refused { refusal, game, at: arrival })))
            }
        }
    }

    /// Answers the entry at the head, and whoever has repeated it, and takes it out of the queue.
    fn answer(&mut self, reply: Reply) {
        let Some(entry) = self.busy.queue.pop_front() else {
            return;
        };
        // A caller may have gone; the next call with its request id tells it all the same.
        for repeat in entry.repeats {
            let _ = repeat.send(reply.clone().map(|answer| Answer { replayed: true, ..answer }));
        }
        if let Some(sender) = entry.reply {
            let _ = sender.send(reply);
        }
    }

    /// The game without its moves and its marks, as a heartbeat needs it.
    pub(super) fn glance(&self, now: Time) -> Option<View> {
        Some(View { game: self.game.clone()?, moves: Vec::new(), marks: Marks::default(), now })
    }

    pub(super) fn view(&self, now: Time) -> Option<View> {
        let game = self.game.clone()?;
        Some(View { moves: self.journal.moves(), marks: self.journal.marks(), game, now })
    }
}

/// What has to happen before the entry's own command, each an event of its own: what is due by its
/// arrival; the return of a seat that is back, if that could not be written; the seat that it shows.
fn due_first(game: &Game, entry: &Entry, down_since: Option<Time>) -> Option<Event> {
    let happens_by = |command: Command, time: Time| decide(game, &command, None, time).ok();
    if let Some(down_since) = down_since {
        // What fell due while the server lived has happened; after that nobody's time ran.
        return happens_by(Command::Tick, down_since).or_else(|| Some(resume(down_since, entry.arrival)));
    }
    let happens = |command: Command| happens_by(command, entry.arrival);
    let back = Side::ALL.into_iter().filter(|side| game.is_present(*side) && game.is_away(*side));
    happens(Command::Tick)
        .or_else(|| back.map(Command::Arrive).find_map(happens))
        .or_else(|| entry.shows.map(Command::Show).and_then(happens))
}

/// The player or official whose call a command is, if it is a call.
fn caller_of(command: &Command) -> Option<Caller> {
    match command {
        Command::Move { side, .. }
        | Command::OfferDraw(side)
        | Command::TakeBackDraw(side)
        | Command::AcceptDraw(side)
        | Command::DeclineDraw(side)
        | Command::Leave(side) => Some(Caller::Seat(*side)),
        Command::Abort { by_creator: true, .. } => Some(Caller::Creator),
        Command::Abort { by_creator: false, .. } => Some(Caller::Arbiter),
        Command::Show(_) | Command::Arrive(_) | Command::Depart(_) | Command::Tick => None,
    }
}

/// The answer to a request that has changed the game before, rebuilt from the event it caused.
fn repeat(journal: &Journal, request: Request) -> Option<Reply> {
    if !journal.may_hold(request.id) {
        return None;
    }
    let same_id = |known: Request| (known.caller, known.id) == (request.caller, request.id);
    let record = journal.records().filter(|record| record.event.request.is_some_and(same_id)).last()?;
    if record.event.request != Some(request) {
        return Some(Err(Fault::RequestIdReused));
    }
    Some(match journal.fold_to(record.sequence) {
        Some(game) => Ok(Answer { game, record, replayed: true }),
        None => Err(Fault::Internal),
    })
}
