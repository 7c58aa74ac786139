//! `jungle-referee`: serves, checks a server's health, or counts move trees.

use std::error::Error;
use std::fs;
use std::future::Future;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use jungle_referee::app::{App, Ports};
use jungle_referee::config::{Config, DEFAULT_LISTEN, ServeArgs};
use jungle_referee::rules::{Position, Preset, perft};
use jungle_referee::runtime::{OpenFault, TokenKey, token_key_beside};
use jungle_referee::telemetry;
use tokio::signal::unix::{SignalKind, signal};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

/// The exit code for settings that are wrong.
const USAGE: u8 = 64;

/// The exit code for a data file whose content is wrong: trying again does not help.
const DATA: u8 = 65;

/// The referee for Dou Shou Qi (Jungle, Animal Chess).
#[derive(Parser)]
#[command(version, about, long_about = None)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Serves until SIGINT or SIGTERM. What happens without a sub-command, too.
    Serve(Box<ServeArgs>),
    /// Asks a server for its health: exit code 0 if it serves, else 1.
    Healthcheck(HealthcheckArgs),
    /// Prints the number of leaves of the move tree, a line a depth.
    Perft(PerftArgs),
}

#[derive(Args)]
struct HealthcheckArgs {
    /// The server's address and port.
    #[arg(long, env = "JUNGLE_HEALTHCHECK", default_value = DEFAULT_LISTEN, value_name = "ADDRESS:PORT")]
    address: String,
    /// The certificates in PEM of whoever issued the server its own: with it the check speaks TLS.
    #[arg(long, env = "JUNGLE_HEALTHCHECK_TLS_CA", value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// The name that the server's certificate is for, if it is not for the address.
    #[arg(long, env = "JUNGLE_HEALTHCHECK_TLS_NAME", value_name = "NAME", requires = "tls_ca")]
    tls_name: Option<String>,
    /// The certificate to show in PEM, where the server asks its clients for one.
    #[arg(long, env = "JUNGLE_HEALTHCHECK_TLS_CERT", value_name = "FILE", requires = "tls_ca", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of that certificate in PEM.
    #[arg(long, env = "JUNGLE_HEALTHCHECK_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

#[derive(Args)]
struct PerftArgs {
    /// The start position; else the usual one.
    #[arg(long, value_name = "TEXT")]
    position: Option<String>,
    /// The preset to judge by.
    #[arg(long, default_value = "yeshou", value_name = "NAME")]
    ruleset: String,
    /// How many plies deep.
    depth: u32,
}

/// `serve` as it is without any flag: what the environment says, else the defaults.
#[derive(Parser)]
struct Bare {
    #[command(flatten)]
    serve: ServeArgs,
}

fn main() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(Cli { command: Some(command) }) => command,
        Ok(Cli { command: None }) => match Bare::try_parse_from(["jungle-referee"]) {
            Ok(Bare { serve }) => Command::Serve(Box::new(serve)),
            Err(error) => return tell_usage(&error),
        },
        Err(error) => return tell_usage(&error),
    };
    match command {
        Command::Serve(args) => serve(&args),
        Command::Healthcheck(args) => healthcheck(&args),
        Command::Perft(args) => count(&args),
    }
}

/// Help and version are no failure; everything else is a wrong call.
fn tell_usage(error: &clap::Error) -> ExitCode {
    let told = error.print();
    if told.is_ok() && !error.use_stderr() { ExitCode::SUCCESS } else { ExitCode::from(USAGE) }
}

/// Tells the person at the terminal what went wrong.
fn complain(problem: impl std::fmt::Display) {
    // If standard error is closed there is nobody to tell.
    let _ = writeln!(io::stderr(), "jungle-referee: {problem}");
}

fn serve(args: &ServeArgs) -> ExitCode {
    let mut config = match Config::from_args(args) {
        Ok(config) => config,
        Err(invalid) => {
            complain(invalid);
            return ExitCode::from(USAGE);
        }
    };
    telemetry::start(&config);
    on_runtime(async {
        let ports = match &config.data {
            None => Ports::in_memory(),
            Some(data) => match on_disk(data, &config) {
                Ok((ports, key)) => {
                    config.keys.tokens = key;
                    ports
                }
                Err(fault) => {
                    complain(&fault);
                    return if fault.is_lasting() { ExitCode::from(DATA) } else { ExitCode::FAILURE };
                }
            },
        };
        let app = match App::build(config, ports).await {
            Ok(app) => app,
            Err(error) => {
                complain(error);
                return ExitCode::FAILURE;
            }
        };
        let stop = match stop_signal() {
            Ok(stop) => stop,
            Err(error) => {
                complain(format_args!("cannot wait for signals: {error}"));
                return ExitCode::FAILURE;
            }
        };
        // Scripts wait for this line; if standard output is closed, nobody does.
        let _ = writeln!(io::stdout(), "jungle-referee listens on {}", app.local_addr());
        match app.run_until(stop).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                complain(error);
                ExitCode::FAILURE
            }
        }
    })
}

/// The ports of a server on a data file, and the key that its tokens are issued under.
fn on_disk(data: &Path, config: &Config) -> Result<(Ports, TokenKey), OpenFault> {
    let key = if config.token_key_given { config.keys.tokens.clone() } else { token_key_beside(data)? };
    Ok((Ports::on_disk(data, &config.limits)?, key))
}

/// Ends at the first SIGINT or SIGTERM.
fn stop_signal() -> io::Result<impl Future<Output = ()> + Send> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

fn on_runtime(work: impl Future<Output = ExitCode>) -> ExitCode {
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let code = runtime.block_on(work);
            // Connections that did not leave in time must not hold the process back.
            runtime.shutdown_timeout(Duration::from_millis(100));
            code
        }
        Err(error) => {
            complain(error);
            ExitCode::FAILURE
        }
    }
}

/// Where and how to ask for health.
fn endpoint(args: &HealthcheckArgs) -> Result<Endpoint, String> {
    let read = |file: &PathBuf| fs::read(file).map_err(|error| format!("{}: {error}", file.display()));
    let scheme = if args.tls_ca.is_some() { "https" } else { "http" };
    let endpoint = Endpoint::from_shared(format!("{scheme}://{}", args.address)).map_err(|error| whole(&error))?;
    let Some(ca) = &args.tls_ca else { return Ok(endpoint) };
    let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(ca)?));
    if let Some(name) = &args.tls_name {
        tls = tls.domain_name(name);
    }
    if let (Some(cert), Some(key)) = (&args.tls_cert, &args.tls_key) {
        tls = tls.identity(Identity::from_pem(read(cert)?, read(key)?));
    }
    endpoint.tls_config(tls).map_err(|error| whole(&error))
}

/// An error with what caused it.
fn whole(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.map(ToString::to_string).fold(error.to_string(), |told, cause| {
        // Some tell their cause by themselves.
        if told.ends_with(&cause) { told } else { format!("{told}: {cause}") }
    })
}

fn healthcheck(args: &HealthcheckArgs) -> ExitCode {
    const PATIENCE: Duration = Duration::from_secs(3);
    on_runtime(async {
        let checked = async {
            let channel = endpoint(args)?.connect().await.map_err(|error| whole(&error))?;
            let answer = HealthClient::new(channel).check(HealthCheckRequest { service: String::new() }).await;
            answer.map(|answer| answer.into_inner().status()).map_err(|status| status.to_string())
        };
        match tokio::time::timeout(PATIENCE, checked).await {
            Ok(Ok(ServingStatus::Serving)) => ExitCode::SUCCESS,
            Ok(Ok(status)) => {
                complain(format_args!("{} answers {}", args.address, status.as_str_name()));
                ExitCode::FAILURE
            }
            Ok(Err(error)) => {
                complain(format_args!("{}: {error}", args.address));
                ExitCode::FAILURE
            }
            Err(_) => {
                complain(format_args!("{} did not answer within {PATIENCE:?}", args.address));
                ExitCode::FAILURE
            }
        }
    })
}

fn count(args: &PerftArgs) -> ExitCode {
    let Some(preset) = Preset::find(&args.ruleset) else {
        complain(format_args!("--ruleset: {:?} is not a preset", args.ruleset));
        return ExitCode::from(USAGE);
    };
    let ruleset = preset.ruleset;
    let position = match args.position.as_ref().map(|text| Position::set_up(text, &ruleset)).transpose() {
        Ok(position) => position.unwrap_or_else(|| Position::start(&ruleset)),
        Err(error) => {
            complain(format_args!("--position: {error}"));
            return ExitCode::from(USAGE);
        }
    };
    for depth in 1..=args.depth {
        if writeln!(io::stdout(), "{depth} {}", perft(&position, &ruleset, depth)).is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
