//! The referee as a child: the same `App` as in production, and games that are made in its process, each by
//! the road that a call takes: the registry, the game's queue, the judge, the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Parser;
use futures_util::future::join_all;
use jungle_referee::app::{App, Ports};
use jungle_referee::config::{Config, ServeArgs};
use jungle_referee::game::{Caller, Command, Creation, Marks, Request, Settings, Span, Time, TimeControl, move_digest};
use jungle_referee::runtime::time::Sleep;
use jungle_referee::runtime::{Clock, GameId, Ids, Registry, Seat, Slot, SystemClock, TokenKey};
use jungle_referee::telemetry;

use crate::clocks;
use crate::cpu::{be_led, now};
use crate::lines::{Lines, mover};

#[path = "../../tests/game/usual.rs"]
mod usual;

/// In how many games something happens at once.
const AT_ONCE: usize = 256;

/// What a player thinks about a move.
const THINKING: Span = Span::from_secs(5);

/// The key that both processes know, so that the load can make tokens.
const TOKEN_KEY: &str = "a-key-for-measuring-only";

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    serve: ServeArgs,
}

/// The settings of a server that is measured: limits so wide that none is met, and these flags.
pub(crate) fn config(flags: &[String]) -> Config {
    let wide = ["--max-open-games", "--max-watchers", "--max-watches-per-connection", "--max-streams-per-connection"];
    let wide = wide.iter().flat_map(|flag| [(*flag).to_owned(), "10000000".to_owned()]);
    let fixed = ["load", "--listen", "127.0.0.1:0", "--token-key", TOKEN_KEY].map(str::to_owned);
    let args = fixed.into_iter().chain(wide).chain(flags.iter().cloned());
    Config::from_args(&Flags::parse_from(args).serve).expect("the flags are right")
}

/// Who may act in the games.
pub(crate) struct Tokens(TokenKey);

impl Tokens {
    /// Those of every measured server.
    pub(crate) fn new() -> Self {
        Self(TokenKey::new(TOKEN_KEY.as_bytes()))
    }

    /// The arbiter's token.
    pub(crate) fn arbiter(&self, game: u64) -> String {
        self.0.issue(game_id(game), Seat::Arbiter)
    }

    /// The token of the seat that moves at a ply.
    pub(crate) fn mover(&self, game: u64, ply: usize) -> String {
        self.0.issue(game_id(game), Seat::Player(mover(ply)))
    }
}

/// The id of the game of this number: of the form of real ones, but known to both processes.
pub(crate) fn game_id(number: u64) -> GameId {
    const MILLIS: u128 = 1_790_000_000_000;
    GameId::from_u128((MILLIS << 80) | (7 << 76) | (2 << 62) | u128::from(number))
}

/// Gives the games their numbers.
#[derive(Default)]
struct Counted(AtomicU64);

impl Ids for Counted {
    fn next(&self, _: Time) -> GameId {
        game_id(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// Serves until standard input ends.
pub(crate) async fn serve(flags: &[String]) {
    let config = config(flags);
    telemetry::start(&config);
    let haste = Arc::new(Haste { real: SystemClock::start(), passed: AtomicU64::new(0) });
    let ports = Ports { ids: Arc::new(Counted::default()), ..ports(&config, &haste) };
    let clock = Arc::clone(&ports.clock);
    let app = App::build(config, ports).await.expect("a free port");
    let games = Games { registry: Arc::clone(app.registry()), clock, haste, lines: Lines::new() };
    let address = app.local_addr().to_string();
    tokio::spawn(app.run_until(std::future::pending()));
    be_led(&address, async |words| {
        let began = now();
        match words {
            ["fill", first, count, plies] => games.fill(number(first), number(count), number(plies)).await,
            ["play", first, count, ply] => games.play(number(first), number(count), number(ply)).await,
            ["end", first, count] => games.end(number(first), number(count)).await,
            ["arm", first, count, delay, span] => {
                clocks::arm(&games, number(first), number(count), [number(delay), number(span)]).await;
            }
            ["lateness", first, count] => return clocks::lateness(&games, number(first), number(count)).await,
            ["close", first, count] => return clocks::close_calls(&games, number(first), number(count)).await,
            _ => panic!("told {words:?}"),
        }
        format!("{:.3}", began.elapsed().as_secs_f64())
    })
    .await;
}

/// The real time, and the time that passes in play while nobody waits for it here.
struct Haste {
    real: SystemClock,
    passed: AtomicU64,
}

impl Haste {
    fn pass(&self, time: Span) {
        self.passed.fetch_add(time.micros(), Ordering::Relaxed);
    }

    fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }
}

impl Clock for Haste {
    fn now(&self) -> Time {
        self.real.now() + Span::from_micros(self.passed())
    }

    fn sleep_until(&self, at: Time) -> Sleep {
        self.real.sleep_until(Time::from_micros(at.micros().saturating_sub(self.passed())))
    }
}

/// Where the games are kept. Those on disk have the real time alone.
fn ports(config: &Config, haste: &Arc<Haste>) -> Ports {
    match &config.data {
        None => Ports::with_clock(Arc::clone(haste) as _),
        Some(data) => Ports::on_disk(data, &config.limits).expect("a new data file"),
    }
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

/// The games of the child.
pub(crate) struct Games {
    pub(crate) registry: Arc<Registry>,
    pub(crate) clock: Arc<dyn Clock>,
    haste: Arc<Haste>,
    lines: Lines,
}

impl Games {
    /// Makes `count` games of `plies` plies each, all at once and a few seconds a ply, as many are played; their
    /// numbers begin at `first`.
    async fn fill(&self, first: u64, count: u64, plies: u64) {
        self.in_each(first, count, async |game| {
            self.create(game, usual_game(game)).await;
        })
        .await;
        for ply in 0..plies {
            self.in_each(first, count, async |game| {
                self.haste.pass(Span::from_micros(THINKING.micros() / count));
                self.play_one(game, ply).await;
            })
            .await;
        }
    }

    /// Does something in each game, in many at once: a log on disk has then much to write together.
    async fn in_each(&self, first: u64, count: u64, what: impl AsyncFn(u64)) {
        let last = first + count;
        for batch in (first..last).step_by(AT_ONCE) {
            join_all((batch..last).take(AT_ONCE).map(|game| what(game))).await;
            // The rest of the server has its turn.
            tokio::task::yield_now().await;
        }
    }

    /// Makes the game of this number.
    pub(crate) async fn create(&self, game: u64, creation: Creation) -> Arc<Slot> {
        let request = Request { caller: Caller::Creator, id: request_id(game, 0), digest: game };
        let (id, reply) = self.registry.new_game(creation, Some(request)).await.expect("room");
        reply.expect("a new game");
        assert_eq!(id, game_id(game), "the games come in the order of their numbers");
        self.registry.find(id).expect("just made")
    }

    /// Makes the move of this ply in a game.
    async fn play_one(&self, game: u64, ply: u64) {
        let slot = self.registry.find(game_id(game)).expect("an open game");
        let (ply, number) = (usize::try_from(ply).expect("few"), u32::try_from(ply).expect("few"));
        let side = mover(ply);
        let mv = self.lines.of(game)[ply].mv;
        let command = Command::Move { side, mv, expected_ply: Some(number), offer_draw: false };
        // As the service makes it of the request.
        let digest = move_digest(mv, number, false);
        let request = Request { caller: Caller::Seat(side), id: request_id(game, ply + 1), digest };
        slot.ask(Some(side), command, Some(request)).await.expect("a legal move");
    }

    /// Makes the move of this ply in each game.
    async fn play(&self, first: u64, count: u64, ply: u64) {
        self.in_each(first, count, async |game| self.play_one(game, ply).await).await;
    }

    /// Ends each game: a side leaves.
    async fn end(&self, first: u64, count: u64) {
        self.in_each(first, count, async |game| {
            let slot = self.registry.find(game_id(game)).expect("an open game");
            let request = Request { caller: Caller::Seat(mover(0)), id: request_id(game, usize::MAX), digest: game };
            slot.ask(None, Command::Leave(mover(0)), Some(request)).await.expect("the end");
        })
        .await;
    }
}

/// The game that is measured: an increment clock, and a reference of 32 bytes.
pub(crate) fn usual_game(game: u64) -> Creation {
    timed_game(game, TimeControl::Increment { initial: Span::from_days(10), increment: Span::from_secs(5) })
}

/// The same with another clock.
pub(crate) fn timed_game(game: u64, time_control: TimeControl) -> Creation {
    Creation {
        settings: Arc::new(Settings { time_control, ..usual::usual() }),
        marks: Marks { external_reference: format!("{game:032}"), ..Marks::default() },
    }
}

/// A request id that no other request has.
pub(crate) fn request_id(game: u64, step: usize) -> u128 {
    // Spread as chance would spread it, and a UUID of version 4 in form.
    let mixed = (u128::from(game) << 64 | u128::try_from(step).expect("64 bits"))
        .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    let of_chance = mixed & !(0xf << 76) & !(3 << 62);
    of_chance | (4 << 76) | (2 << 62)
}
