//! The load harness: what the referee costs beside a bare tonic echo. `cargo bench --bench load -- help` tells how.
//!
//! Servers are processes of their own on one core; the load runs on the other. See BENCHMARKS.md.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people, which prints what it measured")]

mod calls;
mod clocks;
mod cpu;
mod disk;
mod drive;
mod echo;
mod fanout;
mod fill;
mod lines;
mod memory;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

use clap::{Args, Parser, Subcommand};

use calls::CallsArgs;
use cpu::LOAD_CORE;
use lines::Lines;

/// Measures the referee beside a bare tonic echo.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    what: Option<What>,
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
    /// Commits, for comparison.
    #[command(hide = true)]
    ServeCommits(Flags),
    /// Keeps a core busy.
    #[command(hide = true)]
    Burn,
}

#[derive(Subcommand)]
enum Measure {
    /// Unary calls beside the echo.
    Calls(CallsArgs),
    /// Moves on disk beside batched commits of the same bytes.
    Disk(DiskArgs),
    /// Streams beside bare streams.
    Fanout(FanoutArgs),
    /// Clocks that run out, on servers with so many armed.
    Clocks(Counts),
    /// Moves around their deadlines while both cores are busy.
    CloseCalls(Counts),
    /// What games weigh.
    Memory(MemoryArgs),
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
struct DiskArgs {
    /// The folder for the files that are written and removed again.
    #[arg(long, default_value = env!("CARGO_TARGET_TMPDIR"))]
    data: PathBuf,
    /// How often each side is measured, in turn.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
}

#[derive(Args)]
struct FanoutArgs {
    /// How many games, and how many watch each, as `1x100`.
    #[arg(value_delimiter = ',', default_value = "1x1,1x100,1x1000,1x10000,10000x1")]
    shapes: Vec<String>,
}

#[derive(Args)]
struct MemoryArgs {
    /// How many games.
    #[arg(default_value_t = 100_000)]
    count: u64,
    /// At which plies.
    #[arg(long, value_delimiter = ',', default_value = "0,60,200")]
    plies: Vec<u64>,
}

#[derive(Args)]
struct Counts {
    /// How many.
    #[arg(value_delimiter = ',', default_value = "100000")]
    counts: Vec<u64>,
}

fn main() -> ExitCode {
    let what = Cli::parse().what.unwrap_or_else(|| What::Measure(Measure::Calls(CallsArgs::usual())));
    match what {
        What::ServeEcho(flags) => on_server_runtime(echo::serve(&flags.flags)),
        What::ServeReferee(flags) => on_server_runtime(fill::serve(&flags.flags)),
        What::ServeCommits(folder) => on_server_runtime(disk::serve(&folder.flags)),
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
        Measure::Calls(args) => calls::all(&args).await,
        Measure::Disk(args) => disk::compare(&args.data, args.rounds).await,
        Measure::Fanout(args) => fanout(&args).await,
        Measure::Clocks(args) => {
            println!("{}", clocks::HEAD);
            for count in args.counts {
                clocks::run_out(count).await;
            }
        }
        Measure::CloseCalls(args) => args.counts.into_iter().for_each(clocks::close_calls_under_load),
        Measure::Memory(args) => memory::games(args.count, &args.plies),
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
    let ended = cpu::again(&cpu::this_program(), LOAD_CORE, &args)
        .env(PINNED, "1")
        .status()
        .expect("taskset, of util-linux, starts");
    if ended.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The runtime that the binary runs on.
fn on_server_runtime(server: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime").block_on(server);
}
