//! All games of the server: making, finding, listing and forgetting them, and waking them in time.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::watch;

use super::gauges::Gauges;
use super::ids::{GameId, Ids};
use super::load::Load;
use super::locked;
use super::log::{Log, LogHealth, Past};
use super::slot::{Fault, Reply, Slot, Waiting};
use super::time::Clock;
use super::timers::Timers;
use crate::game::{ClockStart, Creation, Game, Marks, Request, Settings, Span, Status, Time};

/// How far ahead a game's start may lie.
const FARTHEST_START: Span = Span::from_days(366);

/// So many settings are kept without a look whether they are in use.
const FEW_SETTINGS: usize = 64;

/// How much the server takes upon itself.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many games may be open at once.
    pub open_games: usize,
    /// How many may watch one game, its seats apart.
    pub watchers_a_game: usize,
    /// How long a finished game is kept.
    pub keep_finished_for: Span,
    /// How many finished games are kept.
    pub keep_finished: usize,
    /// How many calls may be under way before those that can wait are refused.
    pub calls: usize,
}

/// What every game of the server shares.
pub struct House {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) log: Arc<dyn Log>,
    pub(super) timers: Timers,
    pub(super) limits: Limits,
    pub(super) stop: watch::Sender<bool>,
    pub(super) gauges: Arc<Gauges>,
    pub(super) load: Arc<Load>,
    open: AtomicUsize,
    finished: Mutex<VecDeque<(Time, GameId)>>,
    /// How games are set up: mostly alike.
    settings: Mutex<Shared>,
    /// Places whose game could not be created.
    abandoned: Mutex<Vec<(GameId, Option<u128>)>>,
}

/// Settings that games share.
#[derive(Default)]
struct Shared {
    known: HashSet<Arc<Settings>>,
    /// How many there were after those that no game uses had been given up.
    in_use: usize,
}

impl House {
    /// The one copy of these settings.
    fn share(&self, settings: Arc<Settings>) -> Arc<Settings> {
        let mut shared = locked(&self.settings);
        if let Some(known) = shared.known.get(&settings) {
            return Arc::clone(known);
        }
        if shared.known.len() > 2 * shared.in_use + FEW_SETTINGS {
            shared.known.retain(|settings| Arc::strong_count(settings) > 1);
            shared.in_use = shared.known.len();
        }
        shared.known.insert(Arc::clone(&settings));
        settings
    }

    /// Notes that a game has ended.
    pub(super) fn ended(&self, game: GameId, now: Time) {
        self.open.fetch_sub(1, Ordering::AcqRel);
        let mut finished = locked(&self.finished);
        finished.push_back((now, game));
        if finished.len() == 1 || finished.len() > self.limits.keep_finished {
            self.timers.look_again();
        }
    }

    /// Notes that a game could not be created, even though its creator may have gone.
    pub(super) fn abandoned(&self, game: GameId, created_by: Option<u128>) {
        locked(&self.abandoned).push((game, created_by));
        self.timers.look_again();
    }

    /// The oldest finished game that is kept no longer, if there is one.
    fn pop_forgotten(&self, now: Time) -> Option<GameId> {
        let mut finished = locked(&self.finished);
        let (at, _) = *finished.front()?;
        if finished.len() <= self.limits.keep_finished && now < at + self.limits.keep_finished_for {
            return None;
        }
        finished.pop_front().map(|(_, game)| game)
    }

    fn next_to_forget(&self) -> Option<Time> {
        let finished = locked(&self.finished);
        finished.front().map(|(at, _)| *at + self.limits.keep_finished_for)
    }
}

/// The games by their ids, and so in the order of their creation.
type Games = BTreeMap<GameId, Arc<Slot>>;

/// The games of the server.
pub struct Registry {
    house: Arc<House>,
    ids: Arc<dyn Ids>,
    games: RwLock<Games>,
    /// The creator's request ids, as bytes for the room they take, with the games that they made.
    creations: Mutex<HashMap<[u8; 16], Arc<Slot>>>,
    started_at: Time,
}

/// Which games to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only of this status.
    pub status: Option<Status>,
    /// Only with this label.
    pub label: Option<String>,
    /// Only with this external reference.
    pub external_reference: Option<String>,
    /// Whether private games are listed too.
    pub private_too: bool,
}

impl Filter {
    fn admits(&self, game: &Game) -> bool {
        self.status.is_none_or(|status| status == game.status()) && (self.private_too || !game.settings().private)
    }

    fn admits_marks(&self, marks: &Marks) -> bool {
        self.label.as_ref().is_none_or(|label| marks.labels.contains(label))
            && self.external_reference.as_ref().is_none_or(|wanted| *wanted == marks.external_reference)
    }
}

impl Registry {
    /// An empty registry.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, ids: Arc<dyn Ids>, log: Arc<dyn Log>, limits: Limits) -> Self {
        let started_at = clock.now();
        let house = House {
            clock,
            log,
            timers: Timers::default(),
            limits,
            stop: watch::Sender::new(false),
            gauges: Arc::default(),
            load: Arc::new(Load::new(limits.calls)),
            open: AtomicUsize::new(0),
            finished: Mutex::default(),
            settings: Mutex::default(),
            abandoned: Mutex::default(),
        };
        let (games, creations) = (RwLock::default(), Mutex::default());
        Self { house: Arc::new(house), ids, games, creations, started_at }
    }

    /// What is counted of the games.
    #[must_use]
    pub fn gauges(&self) -> &Arc<Gauges> {
        &self.house.gauges
    }

    /// The calls under way.
    #[must_use]
    pub fn load(&self) -> &Arc<Load> {
        &self.house.load
    }

    fn games(&self) -> RwLockReadGuard<'_, Games> {
        self.games.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn games_mut(&self) -> RwLockWriteGuard<'_, Games> {
        self.games.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over the games of an earlier run. The time since is charged to nobody: each open game gets an
    /// event that says so, before any call to it is judged.
    pub fn restore(&self, past: Past) {
        let mut finished = Vec::new();
        let mut open = Vec::new();
        for (id, mut game, mut journal) in past.games {
            game.share_settings(self.house.share(Arc::clone(game.settings())));
            journal.share_settings(&game);
            let (status, ended_at) = (game.status(), game.ended_at());
            let slot = Arc::new(Slot::restored(id, game, journal, Arc::clone(&self.house)));
            if let Some(request) = slot.created_by() {
                locked(&self.creations).insert(request.to_ne_bytes(), Arc::clone(&slot));
            }
            self.house.gauges.moved_on(None, Some(status));
            match ended_at {
                Some(at) => finished.push((at, id)),
                None => open.push(Arc::clone(&slot)),
            }
            self.games_mut().insert(id, slot);
        }
        finished.sort_unstable();
        *locked(&self.house.finished) = finished.into();
        self.house.open.store(open.len(), Ordering::Release);
        for slot in open {
            slot.resume(past.down_since);
        }
    }

    /// Creates a game, or finds the one that the same request made before.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn new_game(&self, creation: Creation, request: Option<Request>) -> Result<(GameId, Reply), Fault> {
        let settings = self.house.share(creation.settings);
        let (slot, waiting) = self.enter_creation(Creation { settings, ..creation }, request)?;
        let reply = waiting.reply().await;
        if reply.is_err() {
            self.sweep_abandoned();
        }
        Ok((slot.id(), reply))
    }

    /// Finds or makes the place, and enters the creation there.
    fn enter_creation(&self, creation: Creation, request: Option<Request>) -> Result<(Arc<Slot>, Waiting), Fault> {
        let Some(request) = request else {
            let slot = self.make_room(&creation.settings)?;
            let waiting = slot.create(Arc::new(creation), None);
            return Ok((slot, waiting));
        };
        // One step under the lock: a place that is found here is not given up before it is used.
        let mut creations = locked(&self.creations);
        let slot = match creations.get(&request.id.to_ne_bytes()) {
            Some(slot) => Arc::clone(slot),
            None => {
                let slot = self.make_room(&creation.settings)?;
                creations.insert(request.id.to_ne_bytes(), Arc::clone(&slot));
                slot
            }
        };
        let waiting = slot.create(Arc::new(creation), Some(request));
        Ok((slot, waiting))
    }

    /// Gives up the places whose game could not be created: a repeat shall begin anew.
    fn sweep_abandoned(&self) {
        let abandoned = std::mem::take(&mut *locked(&self.house.abandoned));
        for (slot, created_by) in abandoned.into_iter().filter_map(|(id, by)| Some((self.find(id)?, by))) {
            let mut creations = locked(&self.creations);
            if !slot.is_abandoned() {
                continue;
            }
            if let Some(request) = created_by {
                creations.remove(&request.to_ne_bytes());
            }
            if self.games_mut().remove(&slot.id()).is_some() {
                self.house.open.fetch_sub(1, Ordering::AcqRel);
            }
        }
    }

    /// A place for a game yet to be created. What a repeat must not be refused for is asked here.
    fn make_room(&self, settings: &Settings) -> Result<Arc<Slot>, Fault> {
        if *self.house.stop.borrow() {
            return Err(Fault::Stopping);
        }
        let now = self.house.clock.now();
        if let ClockStart::At(at) = settings.clock_start
            && (at <= now || at > now + FARTHEST_START)
        {
            return Err(Fault::StartOutOfRange);
        }
        let limit = self.house.limits.open_games;
        let taken = self
            .house
            .open
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |open| (open < limit).then_some(open + 1));
        taken.map_err(|_| Fault::TooManyGames { limit })?;
        let id = self.ids.next(now);
        let slot = Arc::new(Slot::new(id, Arc::clone(&self.house)));
        self.games_mut().insert(id, Arc::clone(&slot));
        Ok(slot)
    }

    /// Finds a game.
    #[must_use]
    pub fn find(&self, id: GameId) -> Option<Arc<Slot>> {
        self.games().get(&id).cloned()
    }

    /// Whether a game of this id, if there ever was one, was of an earlier run of the server and is lost.
    #[must_use]
    pub fn is_lost(&self, id: GameId) -> bool {
        !self.outlasts()
            && id.is_v7()
            && id.created_at() + Span::from_millis(1) <= self.started_at
            && self.find(id).is_none()
    }

    /// Up to `most` games after `after` that the filter admits, oldest first, with the time settled.
    pub fn list(&self, filter: &Filter, after: Option<GameId>, most: usize) -> Vec<(GameId, Game, Marks)> {
        self.wake_due(self.house.clock.now());
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let games = self.games();
        let admitted = games.range((from, Bound::Unbounded)).filter_map(|(id, slot)| {
            let inner = slot.lock();
            let game = inner.game.as_ref().filter(|game| filter.admits(game))?;
            // Marks are read from the journal: only where the rest fits.
            let marks = inner.journal.marks();
            filter.admits_marks(&marks).then(|| (*id, game.clone(), marks))
        });
        admitted.take(most).collect()
    }

    /// The ids of the games that are not over.
    #[must_use]
    pub fn open_games(&self) -> Vec<GameId> {
        let games = self.games();
        let open = games
            .iter()
            .filter(|(_, slot)| slot.lock().game.as_ref().is_some_and(|game| game.status() != Status::Ended));
        open.map(|(id, _)| *id).collect()
    }

    /// Turns true when the server stops.
    #[must_use]
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.house.stop.subscribe()
    }

    /// How the log is, and how that changes.
    #[must_use]
    pub fn log_health(&self) -> watch::Receiver<LogHealth> {
        self.house.log.health()
    }

    /// Whether its games outlast this run of the server.
    #[must_use]
    pub fn outlasts(&self) -> bool {
        self.house.log.outlasts()
    }

    /// Ends all streams and takes no more games. Moves are judged as before.
    pub fn stop(&self) {
        self.house.stop.send_replace(true);
    }

    /// Wakes games when they are due and forgets finished ones, for as long as it is polled.
    pub async fn keep_time(&self) {
        loop {
            let now = self.house.clock.now();
            self.wake_due(now);
            self.sweep_abandoned();
            self.sweep(now);
            self.house.timers.wait(&*self.house.clock, self.house.next_to_forget()).await;
        }
    }

    fn wake_due(&self, now: Time) {
        while let Some((at, id)) = self.house.timers.pop_due(now) {
            if let Some(slot) = self.find(id) {
                slot.on_timer(at);
            }
        }
    }

    /// Forgets the finished games that are kept no longer.
    fn sweep(&self, now: Time) {
        while let Some(id) = self.house.pop_forgotten(now) {
            let forgotten = self.games_mut().remove(&id);
            self.house.gauges.moved_on(Some(Status::Ended), None);
            if let Some(request) = forgotten.and_then(|slot| slot.created_by()) {
                locked(&self.creations).remove(&request.to_ne_bytes());
            }
        }
    }
}
