//! Two things at once, in every pairing: exactly one of them wins, and everybody tells the same story.
//!
//! Each round is a new game on one board, in which every contestant can end the game at once. What
//! "winning" means where a contestant does not end the game:
//!
//! - A *joiner* wins if it came before the end: its snapshot shows a running game, and the last event
//!   comes in its tail. It loses if its snapshot already carries the outcome. Either way it knows the end.
//! - A *stop* wins if it came before the end reached the stream of a watcher that had been there all the
//!   time: the stream is cut and names the last sequence told; the game is over all the same, for moves
//!   are judged as before. It loses if that stream tells the outcome and ends.
//! - A joiner against a stop wins if its watch begins; it is then told its snapshot before it is cut.

mod log_double;
mod room;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use jungle_referee::game::{Command, Game, Marks, Settings, Span, Status};
use jungle_referee::rules::{Position, Reason, Side};
use jungle_referee::runtime::feed::{WatchFault, WatchOptions};
use jungle_referee::runtime::slot::Reply;
use jungle_referee::runtime::{
    Answer, Clock as _, Cut, Fault, Filter, GameId, Limits, ManualClock, RandomIds, Registry, Slot, Watch,
};
use log_double::LogDouble;
use room::{BEGIN, Room, Story, a_move_at, enter, follow, per_move, watch, within};
use tokio::task::JoinHandle;

/// How many rounds a pair is raced at least, and after how many it is given up that both sides win.
const ROUNDS: u32 = 1_000;
const MOST_ROUNDS: u32 = 20_000;

const LIMIT: Span = Span::from_millis(100);

/// What can happen to a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// Red walks into the den.
    Move,
    /// Red's time is up.
    Flag,
    /// Blue leaves.
    Leave,
    /// Red accepts Blue's offer.
    Draw,
    /// The arbiter calls the game off.
    Abort,
    /// A watcher joins.
    Join,
    /// The server stops.
    Stop,
}

const ALL: [What; 7] = [What::Move, What::Flag, What::Leave, What::Draw, What::Abort, What::Join, What::Stop];

impl What {
    fn command(self, second: bool) -> Option<Command> {
        Some(match (self, second) {
            (Self::Move, false) => a_move_at(Side::Red, "d8d9", 0),
            (Self::Move, true) => a_move_at(Side::Red, "c9d9", 0),
            (Self::Leave, false) => Command::Leave(Side::Blue),
            (Self::Leave, true) => Command::Leave(Side::Red),
            (Self::Draw, _) => Command::AcceptDraw(Side::Red),
            (Self::Abort, second) => Command::Abort { by_creator: second, reason: "a fire alarm".into() },
            (Self::Flag | Self::Join | Self::Stop, _) => return None,
        })
    }

    fn reason(self) -> Option<Reason> {
        match self {
            Self::Move => Some(Reason::Den),
            Self::Flag => Some(Reason::Timeout),
            Self::Leave => Some(Reason::Left),
            Self::Draw => Some(Reason::Agreement),
            Self::Abort => Some(Reason::Aborted),
            Self::Join | Self::Stop => None,
        }
    }
}

/// The pairs: each two different, and those equal that two callers can do at once.
fn pairs() -> Vec<(What, What)> {
    let mut pairs = Vec::new();
    for (index, one) in ALL.into_iter().enumerate() {
        if matches!(one, What::Move | What::Leave | What::Draw | What::Abort) {
            pairs.push((one, one));
        }
        pairs.extend(ALL[index + 1..].iter().map(|other| (one, *other)));
    }
    pairs
}

/// A board on which Red has two ways into the den.
fn board() -> Settings {
    let settings = per_move(LIMIT);
    let start = Position::set_up("2P3e/3T3/7/7/7/7/7/7/7 r 0 1", &settings.ruleset).expect("a board");
    Settings { start, ..settings }
}

/// The games of a pair, on a clock that the flag moves.
struct Hall {
    clock: Arc<ManualClock>,
    log: LogDouble,
    registry: Arc<Registry>,
    time: JoinHandle<()>,
}

impl Drop for Hall {
    fn drop(&mut self) {
        self.time.abort();
    }
}

impl Hall {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::at(BEGIN));
        let log = LogDouble::new(Arc::clone(&clock) as _);
        let limits = Limits {
            open_games: usize::MAX,
            watchers_a_game: 100,
            keep_finished_for: Span::from_days(1),
            keep_finished: usize::MAX,
            calls: usize::MAX,
        };
        let ids = Arc::new(RandomIds::default());
        let registry = Arc::new(Registry::new(Arc::clone(&clock) as _, ids, Arc::new(log.clone()), limits));
        let keeper = Arc::clone(&registry);
        let time = tokio::spawn(async move { keeper.keep_time().await });
        Self { clock, log, registry, time }
    }

    /// A game in which Blue has offered a draw.
    async fn game(&self) -> Arc<Slot> {
        let (id, reply) = self.registry.new_game(board().into(), None).await.expect("room");
        reply.expect("a game");
        let slot = self.registry.find(id).expect("the game");
        slot.ask(None, Command::OfferDraw(Side::Blue), None).await.expect("an offer");
        slot
    }
}

/// Where the two wait for one another, and how much later than the other one starts.
struct StartLine {
    there: AtomicU32,
    skew: i32,
}

impl StartLine {
    /// Comes to the line; when both are there, dawdles for its handicap.
    fn go(&self, second: bool) {
        self.there.fetch_add(1, Ordering::AcqRel);
        let mut looks = 0_u32;
        while self.there.load(Ordering::Acquire) < 2 {
            std::hint::spin_loop();
            looks += 1;
            if looks > 1_000 {
                // The other has no processor yet.
                std::thread::park_timeout(std::time::Duration::from_micros(50));
            }
        }
        let handicap = if second { self.skew.saturating_neg() } else { self.skew };
        for _ in 0..handicap {
            std::hint::spin_loop();
        }
    }
}

/// What a contestant brings home.
enum Brought {
    Reply(Box<Reply>),
    Joined(Result<Box<Story>, WatchFault>),
    Nothing,
}

/// Starts a contestant.
fn contestant(what: What, second: bool, hall: &Hall, slot: &Arc<Slot>, line: &Arc<StartLine>) -> JoinHandle<Brought> {
    let (slot, line) = (Arc::clone(slot), Arc::clone(line));
    let (clock, registry) = (Arc::clone(&hall.clock), Arc::clone(&hall.registry));
    tokio::spawn(async move {
        match what.command(second) {
            Some(command) => {
                line.go(second);
                Brought::Reply(Box::new(slot.ask(None, command, None).await))
            }
            None if what == What::Join => {
                let options = WatchOptions { after_sequence: None, heartbeat: Span::from_days(300), seat: None };
                line.go(second);
                match Watch::begin(&slot, options).await {
                    Ok(watch) => Brought::Joined(Ok(Box::new(follow(watch).await))),
                    Err(fault) => Brought::Joined(Err(fault)),
                }
            }
            None => {
                let deadline = clock.now() + LIMIT;
                line.go(second);
                if what == What::Flag {
                    clock.advance_to(deadline);
                } else {
                    registry.stop();
                }
                Brought::Nothing
            }
        }
    })
}

/// One round: `true` if the first of the pair won.
async fn round(hall: &Hall, pair: (What, What), skew: i32) -> bool {
    let slot = hall.game().await;
    let watchers = [watch(&slot, Some(0)).await, watch(&slot, Some(1)).await, watch(&slot, None).await];
    let watchers = watchers.map(|watch| tokio::spawn(follow(watch)));
    let line = Arc::new(StartLine { there: AtomicU32::new(0), skew });
    let first = contestant(pair.0, false, hall, &slot, &line);
    let second = contestant(pair.1, true, hall, &slot, &line);
    // Where neither ends the game, it ends by the arbiter's hand once both are done.
    let neither = pair == (What::Join, What::Stop);
    let (first, second) = if neither {
        (within(first).await.expect("no panic"), within(second).await.expect("no panic"))
    } else {
        let (first, second) = tokio::join!(within(first), within(second));
        (first.expect("no panic"), second.expect("no panic"))
    };
    let mut stories = Vec::new();
    for watcher in watchers {
        stories.push(within(watcher).await.expect("no panic"));
    }
    let judged = Judged { hall, slot: &slot, stories: &stories };
    if neither { judged.join_against_stop(first) } else { judged.winner(pair, first, second).await }
}

/// What everybody tells after a round.
struct Judged<'a> {
    hall: &'a Hall,
    slot: &'a Arc<Slot>,
    stories: &'a [Story],
}

impl Judged<'_> {
    /// Checks that all tell one story, and tells who won.
    async fn winner(&self, pair: (What, What), first: Brought, second: Brought) -> bool {
        // A look settles what time has done.
        let game = self.slot.view(None).await.expect("the game").game;
        let ending = game.ending().expect("an outcome").clone();
        let log = self.hall.log.records(self.slot.id());
        assert_eq!(log.iter().filter(|record| record.event.ending.is_some()).count(), 1);
        let last = log.last().expect("a log");
        assert_eq!((last.event.ending.as_ref(), last.sequence, log.len()), (Some(&ending), 3, 3));
        // Whatever came at the deadline or after it came too late, whoever noticed that first.
        let deadline = log[0].written + LIMIT;
        assert_eq!(last.event.at >= deadline, ending.outcome.reason == Reason::Timeout);
        assert!(last.event.at <= deadline);
        self.listed(&game);
        let stopped = pair.1 == What::Stop;
        for story in self.stories {
            let seen = story.last.as_ref().map_or(0, Game::sequence);
            match story.cut {
                None => assert_eq!(story.last.as_ref(), Some(&game)),
                Some(Cut::Stopping { sequence }) => assert!(stopped && sequence == seen && seen == 2),
                Some(cut) => panic!("{cut:?}"),
            }
            let told = if story.cut.is_some() { &log[..2] } else { &log[..] };
            assert!(told.ends_with(&story.records), "{story:?}");
        }
        let mut wins = [false, false];
        for (index, (what, brought)) in [(pair.0, first), (pair.1, second)].into_iter().enumerate() {
            wins[index] = match brought {
                Brought::Reply(reply) => self.answered(*reply, &game),
                Brought::Joined(Ok(story)) => {
                    assert_eq!(story.last.as_ref(), Some(&game), "the joiner knows the end");
                    story.snapshot.expect("a snapshot").status() == Status::Running
                }
                Brought::Joined(Err(fault)) => panic!("{fault:?}"),
                Brought::Nothing if what == What::Flag => ending.outcome.reason == Reason::Timeout,
                Brought::Nothing => self.stories[0].cut.is_some(),
            };
        }
        match pair {
            // One ends the game, and the other comes before or after that.
            (_, What::Join | What::Stop) => {
                assert_eq!(Some(ending.outcome.reason), pair.0.reason());
                !wins[1]
            }
            _ => {
                assert!(wins[0] != wins[1], "{pair:?}: {wins:?}");
                let winner = if wins[0] { pair.0 } else { pair.1 };
                assert_eq!(Some(ending.outcome.reason), winner.reason());
                wins[0]
            }
        }
    }

    /// Whether this reply ended the game; if not, it says that the game was over.
    fn answered(&self, reply: Reply, game: &Game) -> bool {
        match reply {
            Ok(Answer { record, replayed, .. }) => {
                assert_eq!((record.event.ending.as_ref(), record.sequence), (game.ending(), 3));
                assert!(!replayed);
                true
            }
            Err(Fault::Refused { refusal, game: told, .. }) => {
                assert!(matches!(*refusal, jungle_referee::game::Refusal::GameOver(_)), "{refusal:?}");
                assert_eq!(*told, *game);
                false
            }
            Err(fault) => panic!("{fault:?}"),
        }
    }

    fn listed(&self, game: &Game) {
        let id = self.slot.id();
        let before = GameId::from_u128(id.as_u128() - 1);
        let listed = self.hall.registry.list(&Filter::default(), Some(before), 1);
        assert_eq!(listed, [(id, game.clone(), Marks::default())]);
    }

    fn join_against_stop(&self, joined: Brought) -> bool {
        for story in self.stories {
            assert_eq!(story.cut, Some(Cut::Stopping { sequence: 2 }));
        }
        match joined {
            Brought::Joined(Ok(story)) => {
                assert_eq!(story.snapshot.as_ref().map(Game::sequence), Some(2));
                assert_eq!(story.cut, Some(Cut::Stopping { sequence: 2 }));
                true
            }
            Brought::Joined(Err(WatchFault::Stopping)) => false,
            Brought::Joined(Err(fault)) => panic!("{fault:?}"),
            Brought::Reply(_) | Brought::Nothing => panic!("a joiner joins"),
        }
    }
}

/// Races a pair until it has had its rounds and each side has won.
async fn race(pair: (What, What)) -> (u32, u32) {
    let mut wins = (0, 0);
    let mut skew = 0_i32;
    let mut hall = Hall::new();
    while wins.0 + wins.1 < ROUNDS || (wins.0.min(wins.1) == 0 && wins.0 + wins.1 < MOST_ROUNDS) {
        let first = round(&hall, pair, skew).await;
        // Whoever won starts a little later next time; now and then the two start together.
        let step = 1 + (skew.abs() / 8);
        skew = if first { skew + step } else { skew - step }.clamp(-200_000, 200_000);
        if first {
            wins.0 += 1;
        } else {
            wins.1 += 1;
        }
        if pair.1 == What::Stop {
            hall = Hall::new();
        }
    }
    wins
}

/// "Whatever happened at the same moment, the table has one result, and everybody reads the same one."
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_things_at_once_exactly_one_wins_and_all_tell_the_same_story() {
    let mut table = Vec::new();
    for pair in pairs() {
        table.push((pair, race(pair).await));
    }
    println!("{:<16}{:>12}{:>12}", "pair", "first wins", "second wins");
    for ((one, other), wins) in &table {
        println!("{:<16}{:>12}{:>12}", format!("{one:?} x {other:?}"), wins.0, wins.1);
    }
    for (pair, wins) in table {
        assert!(wins.0 > 0 && wins.1 > 0, "{pair:?}: {wins:?}");
    }
}

/// Enters a contestant while the log is held; the flag comes by the time alone.
async fn enter_held(room: &Room, slot: &Arc<Slot>, what: What, second: bool) -> Option<room::Entered> {
    match what.command(second) {
        Some(command) => Some(enter(slot, command, None)),
        None => {
            assert_eq!(what, What::Flag);
            room.pass(LIMIT).await;
            None
        }
    }
}

/// "What came first while the disk was slow was judged first, and what came second met a game that was over."
#[tokio::test]
async fn while_a_write_is_held_the_order_of_arrival_decides() {
    let commands = [What::Move, What::Flag, What::Leave, What::Draw, What::Abort];
    for one in commands {
        for other in commands.into_iter().filter(|other| !(one == What::Flag && *other == What::Flag)) {
            let room = Room::new();
            let slot = room.game(board()).await;
            slot.ask(None, Command::OfferDraw(Side::Blue), None).await.expect("an offer");
            let early = watch(&slot, Some(0)).await;
            room.log.hold();
            let first = enter_held(&room, &slot, one, false).await;
            let second = enter_held(&room, &slot, other, true).await;
            // Who joins now sees a running game, and is told the end; if time is up, it waits for the flag.
            let joiner = tokio::spawn({
                let slot = Arc::clone(&slot);
                async move { follow(watch(&slot, None).await).await }
            });
            room::breathe().await;
            room.log.release();
            let game = within(async {
                loop {
                    let game = slot.view(None).await.expect("the game").game;
                    if game.status() == Status::Ended {
                        break game;
                    }
                    room::breathe().await;
                }
            })
            .await;
            assert_eq!(game.ending().map(|ending| ending.outcome.reason), one.reason(), "{one:?} then {other:?}");
            if let Some(first) = first {
                assert!(first.reply().await.expect("it came first").record.event.ending.is_some());
            }
            if let Some(second) = second {
                assert!(matches!(second.reply().await, Err(Fault::Refused { .. })));
            }
            let (early, joiner) = (follow(early).await, within(joiner).await.expect("no panic"));
            assert_eq!(early.records, room.log.records(slot.id()));
            let tail = usize::from(one != What::Flag && other != What::Flag);
            let seen = if tail == 1 { Status::Running } else { Status::Ended };
            assert_eq!(joiner.snapshot.map(|game| game.status()), Some(seen), "{one:?} then {other:?}");
            assert_eq!((joiner.records.len(), joiner.last, early.last), (tail, Some(game.clone()), Some(game)));
            let late = follow(watch(&slot, None).await).await;
            assert_eq!((late.snapshot.map(|game| game.status()), late.records.len()), (Some(Status::Ended), 0));
        }
    }
}

/// "The server stopped while my winning move was being written; my stream broke off, and the move stood."
#[tokio::test]
async fn a_stop_while_a_write_is_held_cuts_the_streams_and_answers_the_call() {
    let room = Room::new();
    let slot = room.game(board()).await;
    let watcher = watch(&slot, Some(0)).await;
    room.log.hold();
    let call = enter(&slot, a_move_at(Side::Red, "d8d9", 0), None).waits();
    room.registry.stop();
    let story = follow(watcher).await;
    assert_eq!((story.records.len(), story.cut), (1, Some(Cut::Stopping { sequence: 1 })));
    let options = WatchOptions { after_sequence: None, heartbeat: Span::from_days(300), seat: None };
    assert!(matches!(Watch::begin(&slot, options).await, Err(WatchFault::Stopping)));
    room.log.release();
    let answer = within(call).await.expect("the move stands");
    assert_eq!(answer.game.status(), Status::Ended);
    assert_eq!(room.log.records(slot.id()).last(), Some(&answer.record));
    let refused = room.registry.new_game(board().into(), None).await;
    assert!(matches!(refused, Err(Fault::Stopping)));
}

/// "My flag was about to fall; a look, the timers and my opponent's call saw it at once, and it fell once."
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_flag_that_many_notice_falls_once() {
    let hall = Hall::new();
    for _ in 0..ROUNDS {
        let slot = hall.game().await;
        let deadline = hall.clock.now() + LIMIT;
        let looks: Vec<_> = (0..3)
            .map(|_| {
                tokio::spawn({
                    let slot = Arc::clone(&slot);
                    async move { slot.view(Some(Side::Blue)).await.expect("the game").game }
                })
            })
            .collect();
        hall.clock.advance_to(deadline);
        for look in looks {
            let seen = within(look).await.expect("no panic");
            let ended = seen.ended_at().is_none_or(|at| at == deadline);
            assert!(ended && (seen.sequence() == 2 || seen.sequence() == 3));
        }
        let game = slot.view(None).await.expect("the game").game;
        assert_eq!((game.status(), game.ended_at(), game.sequence()), (Status::Ended, Some(deadline), 3));
        assert_eq!(hall.log.records(slot.id()).len(), 3);
    }
}
