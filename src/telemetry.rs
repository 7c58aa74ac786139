//! What the server says of itself: log lines, on standard error, and the numbers of the metrics page.

pub mod metrics;

use std::io::{self, IsTerminal as _};

use tracing_subscriber::EnvFilter;

use crate::config::{Config, LogFormat};

/// Starts the log. A second call in one process changes nothing.
pub fn start(config: &Config) {
    // The filter was checked with the other settings.
    let filter = EnvFilter::try_new(&config.log).unwrap_or_default();
    let subscriber =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(io::stderr().is_terminal());
    let started = match config.log_format {
        LogFormat::Text => subscriber.try_init(),
        LogFormat::Json => subscriber.json().try_init(),
    };
    if started.is_err() {
        tracing::debug!("the log was started before");
    }
}
