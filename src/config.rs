//! Flags and environment: every name, unit, default and limit, and the checked settings they make.
//!
//! All flags are read as text and checked here together, so that one start tells of every bad setting.

mod tls;

use std::fmt;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use clap::builder::{FalseyValueParser, OsStringValueParser, TypedValueParser};

use crate::game::Span;
use crate::runtime::token::SHORTEST_KEY;
use crate::runtime::{Limits, TokenKey};
use crate::service::{Keys, ServiceLimits};
pub use tls::Tls;

/// The longest duration that a flag may give: far more than any server runs, far less than a clock can count.
const LONGEST_DURATION: Duration = Duration::from_secs(3_650 * 86_400);

/// Where a server listens unless told otherwise.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:50051";

/// The flags of `serve`, each of them an environment variable too. Durations are written as `10s`,
/// `500ms`, `24h`.
#[derive(Args, Clone, Debug)]
pub struct ServeArgs {
    /// The address and port to listen on.
    #[arg(long, env = "JUNGLE_LISTEN", default_value = DEFAULT_LISTEN, value_name = "ADDRESS:PORT")]
    pub listen: String,
    /// Lets anybody create games beyond loopback without a creator's key.
    #[arg(long, env = "JUNGLE_OPEN", value_parser = FalseyValueParser::new())]
    pub open: bool,
    /// The key for NewGame, ListGames and AbortGame, at least 16 bytes. Other users of the machine can
    /// see flags: better give a file.
    #[arg(long, env = "JUNGLE_CREATOR_KEY", value_name = "SECRET", hide_env_values = true)]
    pub creator_key: Option<String>,
    /// A file that holds the creator's key.
    #[arg(long, env = "JUNGLE_CREATOR_KEY_FILE", value_name = "FILE", value_parser = any_path())]
    pub creator_key_file: Option<PathBuf>,
    /// The key that tokens are issued under, at least 16 bytes; else one is made at each start.
    #[arg(long, env = "JUNGLE_TOKEN_KEY", value_name = "SECRET", hide_env_values = true)]
    pub token_key: Option<String>,
    /// A file that holds the key that tokens are issued under.
    #[arg(long, env = "JUNGLE_TOKEN_KEY_FILE", value_name = "FILE", value_parser = any_path())]
    pub token_key_file: Option<PathBuf>,
    /// The server's certificate in PEM, with those between it and its issuer: with it and --tls-key the
    /// server speaks TLS, and nothing else.
    #[arg(long, env = "JUNGLE_TLS_CERT", value_name = "FILE", value_parser = any_path())]
    pub tls_cert: Option<PathBuf>,
    /// The private key of the server's certificate in PEM.
    #[arg(long, env = "JUNGLE_TLS_KEY", value_name = "FILE", value_parser = any_path())]
    pub tls_key: Option<PathBuf>,
    /// The certificates in PEM of whoever issues clients theirs: every client must then show one.
    #[arg(long, env = "JUNGLE_TLS_CLIENT_CA", value_name = "FILE", value_parser = any_path())]
    pub tls_client_ca: Option<PathBuf>,
    /// The address and port of the metrics page, http://ADDRESS:PORT/metrics; without it there is none.
    #[arg(long, env = "JUNGLE_METRICS_LISTEN", value_name = "ADDRESS:PORT")]
    pub metrics_listen: Option<String>,
    /// The file to keep games in; else they are kept in memory, and lost at the end.
    #[arg(long, env = "JUNGLE_DATA", value_name = "FILE", value_parser = any_path())]
    pub data: Option<PathBuf>,
    /// How many games may be open at once.
    #[arg(long, env = "JUNGLE_MAX_OPEN_GAMES", default_value = "1000000", value_name = "NUMBER")]
    pub max_open_games: String,
    /// How many may watch one game, its seats apart.
    #[arg(long, env = "JUNGLE_MAX_WATCHERS", default_value = "10000", value_name = "NUMBER")]
    pub max_watchers: String,
    /// How many watches the server may have open, those of the games' seats apart.
    #[arg(long, env = "JUNGLE_MAX_WATCHES", default_value = "100000", value_name = "NUMBER")]
    pub max_watches: String,
    /// How many watches one connection may have open.
    #[arg(long, env = "JUNGLE_MAX_WATCHES_PER_CONNECTION", default_value = "768", value_name = "NUMBER")]
    pub max_watches_per_connection: String,
    /// How many HTTP/2 streams one connection may have open; at more its client waits in silence.
    #[arg(long, env = "JUNGLE_MAX_STREAMS_PER_CONNECTION", default_value = "1024", value_name = "NUMBER")]
    pub max_streams_per_connection: String,
    /// How many connections may be open; more are closed at once.
    #[arg(long, env = "JUNGLE_MAX_CONNECTIONS", default_value = "10000", value_name = "NUMBER")]
    pub max_connections: String,
    /// How long a finished game is kept.
    #[arg(long, env = "JUNGLE_KEEP_FINISHED_FOR", default_value = "24h", value_name = "DURATION")]
    pub keep_finished_for: String,
    /// How many finished games are kept.
    #[arg(long, env = "JUNGLE_KEEP_FINISHED", default_value = "100000", value_name = "NUMBER")]
    pub keep_finished: String,
    /// The largest request message, in bytes.
    #[arg(long, env = "JUNGLE_MAX_MESSAGE_BYTES", default_value = "65536", value_name = "BYTES")]
    pub max_message_bytes: String,
    /// How many calls other than WatchGame may be under way; more are refused, but never a seat's first
    /// move of a ply.
    #[arg(long, env = "JUNGLE_MAX_CALLS", default_value = "16384", value_name = "NUMBER")]
    pub max_calls: String,
    /// How long a call other than WatchGame may take.
    #[arg(long, env = "JUNGLE_CALL_TIMEOUT", default_value = "10s", value_name = "DURATION")]
    pub call_timeout: String,
    /// After how long a silence a connection is pinged.
    #[arg(long, env = "JUNGLE_KEEPALIVE_INTERVAL", default_value = "20s", value_name = "DURATION")]
    pub keepalive_interval: String,
    /// How long an unanswered ping may take before the connection is closed, and a new connection until
    /// its client has greeted.
    #[arg(long, env = "JUNGLE_KEEPALIVE_TIMEOUT", default_value = "10s", value_name = "DURATION")]
    pub keepalive_timeout: String,
    /// How long the server takes to leave after SIGTERM, whatever its clients do.
    #[arg(long, env = "JUNGLE_GRACE", default_value = "5s", value_name = "DURATION")]
    pub grace: String,
    /// What to log, as a tracing filter: error, warn, info, debug, or by module.
    #[arg(long, env = "JUNGLE_LOG", default_value = "info", value_name = "FILTER")]
    pub log: String,
    /// How to log: text or json.
    #[arg(long, env = "JUNGLE_LOG_FORMAT", default_value = "text", value_name = "FORMAT")]
    pub log_format: String,
}

/// A path as it comes, an empty one too: what is wrong with it is told with all the rest.
fn any_path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The checked settings of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen.
    pub listen: SocketAddr,
    /// How connections are encrypted; `None` if they are not.
    pub tls: Option<Tls>,
    /// Where the metrics page is; `None` if there is none.
    pub metrics_listen: Option<SocketAddr>,
    /// The secrets.
    pub keys: Keys,
    /// Whether the key that tokens are issued under was given; else it is made, and kept beside the data file.
    pub token_key_given: bool,
    /// The file to keep games in; in memory if none is given.
    pub data: Option<PathBuf>,
    /// How much the registry takes upon itself.
    pub limits: Limits,
    /// The limits that the service keeps.
    pub service: ServiceLimits,
    /// How many HTTP/2 streams one connection may have open.
    pub max_streams_per_connection: u32,
    /// How many connections may be open.
    pub max_connections: usize,
    /// The largest request message, in bytes.
    pub max_message_bytes: usize,
    /// How long a call other than a watch may take.
    pub call_timeout: Duration,
    /// After how long a silence a connection is pinged.
    pub keepalive_interval: Duration,
    /// How long an unanswered ping may take.
    pub keepalive_timeout: Duration,
    /// How long the server takes to leave.
    pub grace: Duration,
    /// What to log.
    pub log: String,
    /// How to log.
    pub log_format: LogFormat,
}

/// Every setting that is wrong, a line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The problems, each naming its flag.
    pub problems: Vec<String>,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the settings are wrong:")?;
        for problem in &self.problems {
            writeln!(f, "  {problem}")?;
        }
        Ok(())
    }
}

/// Gathers problems, so that all are told at once.
#[derive(Default)]
struct Check {
    problems: Vec<String>,
}

impl Check {
    fn problem(&mut self, flag: &str, problem: impl fmt::Display) {
        self.problems.push(format!("--{flag}: {problem}"));
    }

    /// An address and port.
    fn address(&mut self, flag: &str, text: &str, such_as: &str) -> SocketAddr {
        text.parse().unwrap_or_else(|_| {
            self.problem(flag, format_args!("{text:?} is not an address and port such as {such_as}"));
            SocketAddr::from(([127, 0, 0, 1], 0))
        })
    }

    /// A number of 1 or more.
    fn number<T: FromStr + Default + PartialEq>(&mut self, flag: &str, text: &str) -> T {
        match text.parse::<T>() {
            Ok(number) if number != T::default() => number,
            Ok(_) | Err(_) => {
                self.problem(flag, format_args!("{text:?} is not a whole number of 1 or more"));
                T::default()
            }
        }
    }

    /// A duration of more than nothing, and of no more than a clock can count to.
    fn duration(&mut self, flag: &str, text: &str) -> Duration {
        match humantime::parse_duration(text) {
            Ok(duration) if duration > LONGEST_DURATION => {
                self.problem(flag, format_args!("{text:?} is more than 3650 days"));
                Duration::ZERO
            }
            Ok(duration) if !duration.is_zero() => duration,
            Ok(_) | Err(_) => {
                self.problem(flag, format_args!("{text:?} is not a duration such as 500ms, 10s or 24h"));
                Duration::ZERO
            }
        }
    }

    /// A secret from a flag or a file, not both.
    fn secret(&mut self, flag: &str, given: Option<&str>, file: Option<&PathBuf>) -> Option<String> {
        let secret = match (given, file) {
            (None, None) => return None,
            (Some(_), Some(_)) => {
                self.problem(flag, format_args!("give either this or --{flag}-file"));
                return None;
            }
            (Some(secret), None) => secret.to_owned(),
            (None, Some(file)) => match fs::read_to_string(file) {
                Ok(text) => text.trim_end_matches(['\r', '\n']).to_owned(),
                Err(error) => {
                    self.problem(&format!("{flag}-file"), format_args!("{}: {error}", file.display()));
                    return None;
                }
            },
        };
        if secret.len() < SHORTEST_KEY {
            self.problem(flag, format_args!("a key must have at least {SHORTEST_KEY} bytes"));
            return None;
        }
        if secret.chars().any(|letter| !letter.is_ascii_graphic()) {
            self.problem(flag, "a key must be of printable ASCII without blanks, to fit into a header");
            return None;
        }
        Some(secret)
    }
}

impl Config {
    /// Checks the flags.
    ///
    /// # Errors
    /// [`Invalid`] with every problem found.
    pub fn from_args(args: &ServeArgs) -> Result<Self, Invalid> {
        let mut check = Check::default();
        let listen = check.address("listen", &args.listen, DEFAULT_LISTEN);
        let metrics_listen =
            args.metrics_listen.as_ref().map(|text| check.address("metrics-listen", text, "127.0.0.1:9464"));
        let creator = check.secret("creator-key", args.creator_key.as_deref(), args.creator_key_file.as_ref());
        if !is_loopback(listen.ip()) && args.creator_key.is_none() && args.creator_key_file.is_none() && !args.open {
            check.problem("listen", "beyond loopback give --creator-key-file, or --open to let anybody create games");
        }
        if args.data.as_ref().is_some_and(|path| path.file_name().is_none()) {
            check.problem("data", "must be the name of a file");
        }
        let token_key = check.secret("token-key", args.token_key.as_deref(), args.token_key_file.as_ref());
        let log_format = match args.log_format.as_str() {
            "text" => LogFormat::Text,
            "json" => LogFormat::Json,
            other => {
                check.problem("log-format", format_args!("{other:?} is neither text nor json"));
                LogFormat::Text
            }
        };
        if let Err(error) = tracing_subscriber::EnvFilter::try_new(&args.log) {
            check.problem("log", format_args!("{:?} is not a filter: {error}", args.log));
        }
        let keep_finished_for = check.duration("keep-finished-for", &args.keep_finished_for);
        let config = Self {
            listen,
            tls: check.tls(args),
            metrics_listen,
            token_key_given: token_key.is_some(),
            keys: Keys {
                tokens: token_key.map_or_else(TokenKey::random, |key| TokenKey::new(key.as_bytes())),
                creator: creator.map(Into::into),
            },
            data: args.data.clone(),
            limits: Limits {
                open_games: check.number("max-open-games", &args.max_open_games),
                watchers_a_game: check.number("max-watchers", &args.max_watchers),
                keep_finished_for: Span::from_micros(u64::try_from(keep_finished_for.as_micros()).unwrap_or(u64::MAX)),
                keep_finished: check.number("keep-finished", &args.keep_finished),
                calls: check.number("max-calls", &args.max_calls),
            },
            service: ServiceLimits {
                watches: check.number("max-watches", &args.max_watches),
                watches_a_connection: check.number("max-watches-per-connection", &args.max_watches_per_connection),
            },
            max_streams_per_connection: check.number("max-streams-per-connection", &args.max_streams_per_connection),
            max_connections: check.number("max-connections", &args.max_connections),
            max_message_bytes: check.number("max-message-bytes", &args.max_message_bytes),
            call_timeout: check.duration("call-timeout", &args.call_timeout),
            keepalive_interval: check.duration("keepalive-interval", &args.keepalive_interval),
            keepalive_timeout: check.duration("keepalive-timeout", &args.keepalive_timeout),
            grace: check.duration("grace", &args.grace),
            log: args.log.clone(),
            log_format,
        };
        if check.problems.is_empty() { Ok(config) } else { Err(Invalid { problems: check.problems }) }
    }
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}
