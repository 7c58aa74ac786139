//! The application: built once from its settings, run until it is told to stop. Tests and the binary
//! build the same one; time, ids and the log are arguments.

use std::any::Any;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tonic::body::Body;
use tonic::transport::Server;
use tonic::transport::server::Connected;
use tower_http::catch_panic::CatchPanicLayer;
use tracing::{error, info, warn};

use crate::config::Config;
use crate::runtime::{Clock, Ids, Log, MemoryLog, RandomIds, Registry, SystemClock};
use crate::service::proto::FILE_DESCRIPTOR_SET;
use crate::service::proto::referee_service_server::RefereeServiceServer;
use crate::service::trace::CallSpans;
use crate::service::{ConnectionInfo, Referee};

/// How many lost games are named in the log when an in-memory server stops.
const NAMED_LOSSES: usize = 1_000;

/// The largest header block of a request, in bytes: a token and more.
const HEADER_BYTES: u32 = 16 * 1024;

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
}

/// A server that listens and is ready to run.
pub struct App {
    config: Config,
    listener: TcpListener,
    local_addr: SocketAddr,
    registry: Arc<Registry>,
}

impl App {
    /// Binds the address and builds all that serves.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub async fn build(config: Config, ports: Ports) -> io::Result<Self> {
        let listener = TcpListener::bind(config.listen).await?;
        let local_addr = listener.local_addr()?;
        let registry = Arc::new(Registry::new(ports.clock, ports.ids, ports.log, config.limits));
        Ok(Self { config, listener, local_addr, registry })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
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
    pub async fn run_until(self, stop: impl Future<Output = ()> + Send) -> Result<(), tonic::transport::Error> {
        let Self { config, listener, registry, .. } = self;
        let (health, health_service) = tonic_health::server::health_reporter();
        health.set_serving::<RefereeServiceServer<Referee>>().await;
        let referee = Referee::new(Arc::clone(&registry), config.keys.clone(), config.service);
        let (begin_shutdown, shutdown) = oneshot::channel::<()>();
        let serving = Server::builder()
            .timeout(config.call_timeout)
            .max_concurrent_streams(config.max_streams_per_connection)
            .http2_keepalive_interval(Some(config.keepalive_interval))
            .http2_keepalive_timeout(Some(config.keepalive_timeout))
            .http2_max_header_list_size(HEADER_BYTES)
            .layer(CallSpans::default())
            .layer(CatchPanicLayer::custom(on_panic))
            .add_service(health_service)
            .add_service(reflection_v1())
            .add_service(reflection_v1alpha())
            .add_service(RefereeServiceServer::new(referee).max_decoding_message_size(config.max_message_bytes))
            .serve_with_incoming_shutdown(connections(listener, config.max_connections), async {
                // A dropped sender means that this future is about to be dropped as well.
                let _ = shutdown.await;
            });
        let keeping_time = registry.keep_time();
        tokio::pin!(serving, keeping_time, stop);
        tokio::select! {
            served = &mut serving => return served,
            () = &mut keeping_time => {}
            () = &mut stop => {}
        }
        info!("stopping");
        health.set_service_status("", tonic_health::ServingStatus::NotServing).await;
        health.set_not_serving::<RefereeServiceServer<Referee>>().await;
        registry.stop();
        // The receiver is gone only if serving has ended already.
        let _ = begin_shutdown.send(());
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
        tell_losses(&registry);
        left.unwrap_or(Ok(()))
    }
}

/// Tells the log which games end with the server, because they were in memory only.
fn tell_losses(registry: &Registry) {
    let lost = registry.open_games();
    if lost.is_empty() {
        return;
    }
    warn!(games = lost.len(), "open games are lost, they were in memory only");
    for id in lost.iter().take(NAMED_LOSSES) {
        warn!(game = %id, "lost");
    }
}

/// The answer to a call whose handler panicked: a fault of ours, told to nobody but the log.
fn on_panic(panic: Box<dyn Any + Send>) -> http::Response<Body> {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    error!(panic = text.unwrap_or("without a message"), "a call panicked");
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

/// The connections as they come, each with its place among the most that may be open.
fn connections(listener: TcpListener, most: usize) -> impl stream::Stream<Item = io::Result<Connection>> {
    let places = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
    stream::unfold((listener, places), |(listener, places)| async move {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                        warn!("a connection was closed: the most that may be open are");
                        continue;
                    };
                    // Small messages must not wait for one another; a socket that is gone shows at its first read.
                    let _ = stream.set_nodelay(true);
                    let connection = Connection { stream, info: ConnectionInfo::default(), _place: place };
                    return Some((Ok(connection), (listener, places)));
                }
                // Out of file descriptors, or a client gone before it was taken: the listener lives on.
                Err(error) => {
                    warn!(%error, "a connection could not be taken");
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                }
            }
        }
    })
}

/// A client's connection.
struct Connection {
    stream: TcpStream,
    info: ConnectionInfo,
    _place: OwnedSemaphorePermit,
}

impl Connected for Connection {
    type ConnectInfo = ConnectionInfo;

    fn connect_info(&self) -> ConnectionInfo {
        self.info.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
