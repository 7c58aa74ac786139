//! The load harness: what the referee costs beside a bare tonic echo. `cargo bench --bench load -- help` tells how.
//!
//! Servers are processes of their own on one core; the load runs on the other. See BENCHMARKS.md.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people, which prints what it measured")]

mod calls;
mod clocks;
mod cpu;
mod drive;
mod echo;
mod fanout;
mod fill;
mod lines;
mod memory;
mod table;

use std::process::ExitCode;
use std::rc::Rc;

use clap::{Args, Parser, Subcommand};

use calls::{Contestant, Kind, Load};
use cpu::{LOAD_CORE, SERVER_CORE};
use lines::Lines;

/// Measures the referee beside a bare tonic echo.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    what: What,
    /// Given by cargo.
    #[arg(long, global = true, hide = true)]
    bench: bool,
}

#[derive(Subcommand)]
enum What {
    #[command(flatten)]
    Measure(Measure),
    /// A server of this harness.
    #[command(hide = true)]
    ServeEcho(Flags),
    /// A server of this harness.
    #[command(hide = true)]
    ServeReferee(Flags),
    /// Keeps a core busy.
    #[command(hide = true)]
    Burn,
}

#[derive(Subcommand)]
enum Measure {
    /// Unary calls beside the echo.
    Calls(CallsArgs),
    /// Streams beside bare streams.
    Fanout(FanoutArgs),
    /// Clocks that run out, on servers with so many armed.
    Clocks(Counts),
    /// Moves around their deadlines while both cores are busy.
    CloseCalls(Counts),
    /// What games weigh.
    Memory(Counts),
    /// What idle watchers weigh.
    Watchers,
    /// Whether memory comes back.
    Plateau(Counts),
}

#[derive(Args)]
struct Flags {
    #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
    flags: Vec<String>,
}

#[derive(Args)]
struct CallsArgs {
    /// Which calls; reads come first, for they leave the games as they are.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "get-game,legal-moves,refused,accepted")]
    kinds: Vec<Kind>,
    /// How often each server is measured, in turn with the others.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// How many calls a measurement takes.
    #[arg(long, default_value_t = 60_000)]
    calls: usize,
    /// With how many open games, a server each.
    #[arg(long, value_delimiter = ',', default_value = "1000")]
    games: Vec<usize>,
    /// How many calls in flight.
    #[arg(long, value_delimiter = ',', default_value = "64")]
    in_flight: Vec<usize>,
    /// On how many connections.
    #[arg(long, value_delimiter = ',', default_value = "1")]
    connections: Vec<usize>,
}

#[derive(Args)]
struct FanoutArgs {
    /// How many games, and how many watch each, as `1x100`.
    #[arg(value_delimiter = ',', default_value = "1x1,1x100,1x1000,1x10000,10000x1")]
    shapes: Vec<String>,
}

#[derive(Args)]
struct Counts {
    /// How many.
    #[arg(value_delimiter = ',', default_value = "100000")]
    counts: Vec<u64>,
}

fn main() -> ExitCode {
    match Cli::parse().what {
        What::ServeEcho(flags) => on_server_runtime(echo::serve(&flags.flags)),
        What::ServeReferee(flags) => on_server_runtime(fill::serve(&flags.flags)),
        What::Burn => cpu::burn(),
        What::Measure(_) if std::env::var_os(PINNED).is_none() => return pinned(),
        What::Measure(what) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(measure(what));
        }
    }
    ExitCode::SUCCESS
}

async fn measure(what: Measure) {
    match what {
        Measure::Calls(args) => calls(&args).await,
        Measure::Fanout(args) => fanout(&args).await,
        Measure::Clocks(args) => {
            println!("{}", clocks::HEAD);
            for count in args.counts {
                clocks::run_out(count).await;
            }
        }
        Measure::CloseCalls(args) => args.counts.into_iter().for_each(clocks::close_calls_under_load),
        Measure::Memory(args) => args.counts.into_iter().for_each(memory::games),
        Measure::Watchers => memory::watchers(&Rc::new(Lines::new())).await,
        Measure::Plateau(args) => args.counts.into_iter().for_each(memory::plateau),
    }
}

async fn fanout(args: &FanoutArgs) {
    let lines = Rc::new(Lines::new());
    println!("{}", fanout::HEAD);
    for shape in &args.shapes {
        let (games, watchers) = shape.split_once('x').expect("a shape such as 1x100");
        let number = |text: &str| text.parse().expect("a shape such as 1x100");
        fanout::compare(number(games), number(watchers), &lines).await;
    }
}

/// Set once this process is on the core of the load.
const PINNED: &str = "LOAD_IS_PINNED";

/// Runs this program again on the core of the load.
fn pinned() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let ended = cpu::again(LOAD_CORE, &args).env(PINNED, "1").status().expect("taskset, of util-linux, starts");
    if ended.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The runtime that the binary runs on.
fn on_server_runtime(server: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime").block_on(server);
}

async fn calls(args: &CallsArgs) {
    let lines = Rc::new(Lines::new());
    let mut echo = Contestant::echo(SERVER_CORE, &lines);
    let mut referees: Vec<Contestant> = args
        .games
        .iter()
        .map(|games| Contestant::referee(&format!("{games} games"), SERVER_CORE, &[], *games, &lines))
        .collect();
    println!("{}", table::CALLS);
    for kind in args.kinds.iter().copied() {
        for connections in args.connections.iter().copied() {
            for in_flight in args.in_flight.iter().copied().filter(|in_flight| *in_flight >= connections) {
                let load = Load { kind, in_flight, connections, calls: args.calls };
                compare(load, args.rounds, &mut echo, &mut referees).await;
            }
        }
    }
}

/// Measures the echo and the referees in turn, and prints their rows.
async fn compare(load: Load, rounds: usize, echo: &mut Contestant, referees: &mut [Contestant]) {
    let mut samples = vec![Vec::new(); referees.len()];
    let mut echoes = Vec::new();
    for _ in 0..rounds {
        for (referee, samples) in referees.iter_mut().zip(&mut samples) {
            samples.push(referee.measure(load, 0).await);
        }
        let size = samples[0].last().map_or(0, |sample| sample.size);
        echoes.push(echo.measure(load, size).await);
    }
    let head = |name: &str| format!("{} | {name} | {} | {}", load.kind.name(), load.in_flight, load.connections);
    println!("{}", table::row(&head(&echo.name), &echoes, &echoes));
    for (referee, samples) in referees.iter().zip(&samples) {
        println!("{}", table::row(&head(&referee.name), samples, &echoes));
    }
}
