//! The application: built once from its settings, run until it is told to stop. Tests and the binary
//! build the same one; time, ids and the log are arguments.

mod batched;
mod connections;
mod page;
mod seldom;

use std::any::Any;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::transport::Server;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tower_http::catch_panic::CatchPanicLayer;
use tracing::{error, info, warn};

use crate::config::Config;
use crate::game::Time;
use crate::runtime::call::{Call, of_call};
use crate::runtime::{
    Clock, DataFile, Ids, Keep, Limits, Log, LogHealth, MemoryLog, OpenFault, RandomIds, Registry, SystemClock,
};
use crate::service::calls::Calls;
use crate::service::proto::FILE_DESCRIPTOR_SET;
use crate::service::proto::referee_service_server::RefereeServiceServer;
use crate::service::tally::Tally;
use crate::service::trace::CallNumbers;
use crate::service::{Referee, health, pace};
use crate::telemetry::metrics::Metrics;
use connections::{Rules, connections};

/// How many lost games are named in the log when an in-memory server stops.
const NAMED_LOSSES: usize = 1_000;

/// The largest header block of a request, in bytes: a token and more.
const HEADER_BYTES: u32 = 16 * 1024;

/// How many streams of one connection the server may reset for the client's errors before it closes the
/// connection. tonic, unless told, sets no limit here, where hyper and h2 would.
const RESETS_FOR_ERRORS: usize = 1_024;

/// What an application gets its time, ids and log from.
pub struct Ports {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Game ids.
    pub ids: Arc<dyn Ids>,
    /// Where events are written.
    pub log: Arc<dyn Log>,
}

impl Ports {
    /// Real time, random ids, games in memory.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::with_clock(Arc::new(SystemClock::start()))
    }

    /// Games in memory under this clock.
    #[must_use]
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        let log = Arc::new(MemoryLog::new(Arc::clone(&clock)));
        Self { clock, ids: Arc::new(RandomIds::default()), log }
    }

    /// Real time, random ids, games in a file: those that it holds, and those to come. The time goes on from
    /// where the earlier run was last seen alive, if the wall clock says less.
    ///
    /// # Errors
    /// Why the file cannot be used.
    pub fn on_disk(data: &Path, limits: &Limits) -> Result<Self, OpenFault> {
        let stopwatch = SystemClock::start();
        let begun = stopwatch.now();
        let file = DataFile::open(data)?;
        let checked = stopwatch.now();
        let keep_for = limits.keep_finished_for.micros();
        let keep = Keep {
            ended_after: Time::from_micros(begun.micros().saturating_sub(keep_for)),
            ended_at_most: limits.keep_finished,
        };
        let file = file.read(keep)?;
        let games = &file.past().games;
        let (games, events) = (games.len(), games.iter().map(|(_, game, _)| game.sequence()).sum::<u64>());
        let (check, reading) = (checked.since(begun), stopwatch.now().since(checked));
        let (check, reading) = (Duration::from_micros(check.micros()), Duration::from_micros(reading.micros()));
        info!(file = %data.display(), games, open = file.open_games(), events, ?check, ?reading, "the data file was read");
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::start_after(file.past().down_since));
        let log = Arc::new(file.start(Arc::clone(&clock))?);
        Ok(Self { clock, ids: Arc::new(RandomIds::default()), log })
    }
}

/// A server that listens and is ready to run.
pub struct App {
    config: Config,
    listener: TcpListener,
    local_addr: SocketAddr,
    metrics: Option<TcpListener>,
    registry: Arc<Registry>,
    clock: Arc<dyn Clock>,
}

impl App {
    /// Binds the addresses and builds all that serves.
    ///
    /// # Errors
    /// If an address cannot be bound; the error names it.
    pub async fn build(config: Config, ports: Ports) -> io::Result<Self> {
        let listener = bind(config.listen).await?;
        let local_addr = listener.local_addr()?;
        let metrics = match config.metrics_listen {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        let (clock, past) = (Arc::clone(&ports.clock), ports.log.past());
        let registry = Arc::new(Registry::new(ports.clock, ports.ids, ports.log, config.limits));
        if let Some(past) = past {
            registry.restore(past);
        }
        Ok(Self { config, listener, local_addr, metrics, registry, clock })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Where the metrics page is, if there is one.
    #[must_use]
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// The games.
    #[must_use]
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Serves until `stop` ends, then leaves within the grace period, whatever its clients do: health
    /// turns NOT_SERVING, no more games and connections are taken, the streams end, calls under way
    /// are answered.
    ///
    /// # Errors
    /// If serving fails.
    pub async fn run_until(
        self,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), tonic::transport::Error> {
        self.run(Box::pin(stop)).await
    }

    /// Boxed, so that the whole server is compiled here once, and not in each program that runs it.
    fn run(self, mut stop: BoxFuture<'static, ()>) -> BoxFuture<'static, Result<(), tonic::transport::Error>> {
        Box::pin(async move { self.serve(&mut stop).await })
    }

    async fn serve(self, stop: &mut BoxFuture<'static, ()>) -> Result<(), tonic::transport::Error> {
        let Self { config, listener, metrics, registry, clock, .. } = self;
        let tally = Arc::new(Tally::default());
        // Dropped, and so ended, with this function: the page tells of the stop to its end.
        let mut page = JoinSet::new();
        if let Some(listener) = metrics {
            page.spawn(page::serve(listener, Metrics::new(&registry, &tally)));
        }
        let health = HealthReporter::new();
        tell_health(&health, ServingStatus::Serving).await;
        let referee = Referee::new(Arc::clone(&registry), config.keys.clone(), config.service, Arc::clone(&tally));
        // When its sender goes, at the end of this function at the latest, so do all connections.
        let (begin_shutdown, mut shutdown) = watch::channel(false);
        let rules = Rules {
            most: config.max_connections,
            greeting_within: config.keepalive_timeout,
            tls: config.tls.map(|tls| TlsAcceptor::from(tls.server_config())),
            stopping: shutdown.clone(),
            tally: Arc::clone(&tally),
            clock,
        };
        // The layers from the outside in: a panic is told within the call's span.
        let serving = Server::builder()
            .timeout(config.call_timeout)
            .max_concurrent_streams(config.max_streams_per_connection)
            .http2_keepalive_interval(Some(config.keepalive_interval))
            .http2_keepalive_timeout(Some(config.keepalive_timeout))
            .http2_max_header_list_size(HEADER_BYTES)
            .http2_max_local_error_reset_streams(Some(RESETS_FOR_ERRORS))
            // Who closes all its calls at once keeps its connection: h2 by itself closes it after twenty.
            .http2_max_pending_accept_reset_streams(usize::try_from(config.max_streams_per_connection).ok())
            .layer(pace::Pace)
            .layer(CallNumbers::default())
            .layer(Calls::new(tally, Arc::clone(registry.load())))
            .layer(CatchPanicLayer::custom(on_panic))
            .add_service(health::health_service(&health, registry.stopping()))
            .add_service(reflection_v1())
            .add_service(reflection_v1alpha())
            .add_service(RefereeServiceServer::new(referee).max_decoding_message_size(config.max_message_bytes))
            .serve_with_incoming_shutdown(connections(listener, rules), async move {
                // A dropped sender means that this future is about to be dropped as well.
                let _ = shutdown.wait_for(|stopping| *stopping).await;
            });
        let keeping_time = registry.keep_time();
        let following = follow_log(registry.log_health(), &health);
        tokio::pin!(serving, keeping_time);
        tokio::select! {
            served = &mut serving => return served,
            () = &mut keeping_time => {}
            () = stop => {}
            () = following => {}
        }
        info!("stopping");
        // First the streams learn why they end, then the connections that they end: streams that are open
        // are finished, and what came before the client knew is answered.
        tell_health(&health, ServingStatus::NotServing).await;
        registry.stop();
        begin_shutdown.send_replace(true);
        let graceful = async {
            tokio::select! {
                served = &mut serving => served,
                () = &mut keeping_time => Ok(()),
            }
        };
        let left = tokio::time::timeout(config.grace, graceful).await;
        if left.is_err() {
            warn!("some clients did not leave within the grace period; their connections are closed");
        }
        if !registry.outlasts() {
            tell_losses(&registry);
        }
        left.unwrap_or(Ok(()))
    }
}

/// Binds an address, or says which could not be bound.
async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| io::Error::new(error.kind(), format!("cannot listen on {address}: {error}")))
}

/// Health is what the log's is: a server that cannot write cannot judge. Goes on for ever.
async fn follow_log(mut log: watch::Receiver<LogHealth>, health: &HealthReporter) {
    // A log without its sender stays as it is.
    while log.changed().await.is_ok() {
        let status = match *log.borrow_and_update() {
            LogHealth::Fine => ServingStatus::Serving,
            LogHealth::Failing | LogHealth::Closed => ServingStatus::NotServing,
        };
        tell_health(health, status).await;
    }
    std::future::pending::<()>().await;
}

async fn tell_health(health: &HealthReporter, status: ServingStatus) {
    health.set_service_status("", status).await;
    health.set_service_status(<RefereeServiceServer<Referee> as NamedService>::NAME, status).await;
}

/// Tells the log which games end with the server, because they were in memory only.
fn tell_losses(registry: &Registry) {
    let lost = registry.open_games();
    if lost.is_empty() {
        return;
    }
    let named: Vec<String> = lost.iter().take(NAMED_LOSSES).map(ToString::to_string).collect();
    warn!(games = lost.len(), ids = named.join(" "), "open games are lost, they were in memory only");
}

/// The answer to a call whose handler panicked: a fault of ours, told to nobody but the log.
fn on_panic(panic: Box<dyn Any + Send>) -> http::Response<Body> {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    of_call(Call::here(), || error!(panic = text.unwrap_or("without a message"), "a call panicked"));
    crate::service::internal_fault().into_http()
}

fn reflection_v1()
-> tonic_reflection::server::v1::ServerReflectionServer<impl tonic_reflection::server::v1::ServerReflection> {
    reflection().build_v1().expect("the descriptors were made by this build")
}

fn reflection_v1alpha()
-> tonic_reflection::server::v1alpha::ServerReflectionServer<impl tonic_reflection::server::v1alpha::ServerReflection> {
    reflection().build_v1alpha().expect("the descriptors were made by this build")
}

fn reflection() -> tonic_reflection::server::Builder<'static> {
    tonic_reflection::server::Builder::configure()
        .include_reflection_service(false)
        .register_encoded_file_descriptor_set(tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
}
