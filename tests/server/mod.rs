//! A real server on a free port of loopback, for tests: the same `App` as in production, with the time
//! and the log given to it.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use jungle_referee::app::{App, Ports};
use jungle_referee::config::{Config, ServeArgs};
use jungle_referee::game::{Span, Time};
use jungle_referee::runtime::{ManualClock, Registry};
use jungle_referee::service::proto::referee_service_client::RefereeServiceClient;
use jungle_referee::service::proto::{self as pb, NewGameRequest, NewGameResponse, watch_game_response::Message};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};
use tonic_types::StatusExt as _;

/// The generated client over a channel.
pub(crate) type Client = RefereeServiceClient<Channel>;

/// How long a test waits for what must come, before it says that it did not.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// When the hand-moved clock of a test begins: a moment in 2026, on a full second.
pub(crate) const EPOCH: Time = Time::from_micros(1_790_000_000_000_000);

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    serve: ServeArgs,
}

/// The settings that these flags make, on a free port of loopback.
pub(crate) fn config(flags: &[&str]) -> Config {
    let flags = ["test", "--listen", "127.0.0.1:0"].iter().chain(flags);
    Config::from_args(&Flags::parse_from(flags).serve).expect("the flags of a test are right")
}

/// A running server. Stops when dropped; `stop` also waits for it.
pub(crate) struct TestServer {
    pub(crate) addr: SocketAddr,
    pub(crate) registry: Arc<Registry>,
    /// Where the metrics page is, if there is one.
    pub(crate) metrics: Option<SocketAddr>,
    /// The clock that the test moves; `None` if the server runs on real time.
    pub(crate) clock: Option<Arc<ManualClock>>,
    stop: Option<oneshot::Sender<()>>,
    served: Option<JoinHandle<()>>,
}

impl TestServer {
    /// A server on real time.
    pub(crate) async fn start(flags: &[&str]) -> Self {
        Self::start_with(config(flags), Ports::in_memory(), None).await
    }

    /// A server whose time the test moves by hand.
    pub(crate) async fn start_manual(flags: &[&str]) -> Self {
        let clock = Arc::new(ManualClock::at(EPOCH));
        let ports = Ports::with_clock(Arc::clone(&clock) as _);
        Self::start_with(config(flags), ports, Some(clock)).await
    }

    /// A server of these settings and ports.
    pub(crate) async fn start_with(config: Config, ports: Ports, clock: Option<Arc<ManualClock>>) -> Self {
        let app = App::build(config, ports).await.expect("a free port");
        let (addr, registry, metrics) = (app.local_addr(), Arc::clone(app.registry()), app.metrics_addr());
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(async move {
            let until = async {
                let _ = stopped.await;
            };
            app.run_until(until).await.expect("the server serves");
        });
        Self { addr, registry, metrics, clock, stop: Some(stop), served: Some(served) }
    }

    /// A new connection.
    pub(crate) async fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.addr)).expect("an address");
        endpoint.connect().await.expect("the server listens")
    }

    /// A client on a new connection.
    pub(crate) async fn client(&self) -> Client {
        RefereeServiceClient::new(self.channel().await)
    }

    /// Moves the time forward.
    pub(crate) fn advance(&self, span: Span) {
        let clock = self.clock.as_ref().expect("a clock that the test moves");
        use jungle_referee::runtime::Clock as _;
        clock.advance_to(clock.now() + span);
    }

    /// Tells the server to stop, without waiting for it.
    pub(crate) fn begin_stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    /// Stops the server and waits until it has left.
    pub(crate) async fn stop(mut self) {
        self.begin_stop();
        let served = self.served.take().expect("stopped once");
        within(served).await.expect("the server ends without a panic");
    }
}

/// Waits for what must come soon.
pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it comes within the test's patience")
}

/// A request with a bearer token.
pub(crate) fn by<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let value = format!("Bearer {token}").parse().expect("a token fits into a header");
    request.metadata_mut().insert("authorization", value);
    request
}

/// A game and its tokens.
pub(crate) struct Table {
    pub(crate) id: String,
    pub(crate) red: String,
    pub(crate) blue: String,
    pub(crate) arbiter: String,
}

impl Table {
    pub(crate) fn of(made: &NewGameResponse) -> Self {
        Self {
            id: made.game.as_ref().expect("a game").game_id.clone(),
            red: made.red_token.clone(),
            blue: made.blue_token.clone(),
            arbiter: made.arbiter_token.clone(),
        }
    }

    /// Creates a game.
    pub(crate) async fn new(client: &mut Client, request: NewGameRequest) -> Self {
        Self::of(&client.new_game(request).await.expect("a new game").into_inner())
    }

    /// The token of the side that moves at a ply of a game in which Red moves first.
    pub(crate) fn token_at(&self, ply: u32) -> &str {
        if ply.is_multiple_of(2) { &self.red } else { &self.blue }
    }

    /// A request to move, as `a3a4`.
    pub(crate) fn submit(&self, mv: &str) -> pb::SubmitMoveRequest {
        pb::SubmitMoveRequest {
            game_id: self.id.clone(),
            from_square: mv[..2].to_owned(),
            to_square: mv[2..].to_owned(),
            ..pb::SubmitMoveRequest::default()
        }
    }

    /// The whole state, as the arbiter sees it.
    pub(crate) async fn get(&self, client: &mut Client) -> pb::Game {
        let request = pb::GetGameRequest { game_id: self.id.clone() };
        client.get_game(by(&self.arbiter, request)).await.expect("the game").into_inner().game.expect("set")
    }

    /// The stream of a watcher with a token or without.
    pub(crate) async fn watch(
        &self,
        client: &mut Client,
        token: Option<&str>,
        after_sequence: Option<u64>,
    ) -> Result<Streaming<pb::WatchGameResponse>, Status> {
        let request = pb::WatchGameRequest { game_id: self.id.clone(), after_sequence, heartbeat: None };
        let request = match token {
            Some(token) => by(token, request),
            None => Request::new(request),
        };
        client.watch_game(request).await.map(tonic::Response::into_inner)
    }

    /// All events of an ended game.
    pub(crate) async fn whole_log(&self, client: &mut Client) -> Vec<pb::GameEvent> {
        let mut stream = self.watch(client, Some(&self.arbiter), Some(0)).await.expect("a stream");
        let mut events = Vec::new();
        while let Some(message) = within(stream.message()).await.expect("no error") {
            match message.message.expect("set") {
                Message::Event(event) => events.push(event),
                Message::Snapshot(_) => panic!("a snapshot in a stream that asked for events"),
                Message::Heartbeat(_) => {}
            }
        }
        events
    }
}

/// The next event of a stream, heartbeats and the snapshot skipped; `None` at its end.
pub(crate) async fn next_event(stream: &mut Streaming<pb::WatchGameResponse>) -> Result<Option<pb::GameEvent>, Status> {
    loop {
        match within(stream.message()).await? {
            None => return Ok(None),
            Some(message) => {
                if let Some(Message::Event(event)) = message.message {
                    return Ok(Some(event));
                }
            }
        }
    }
}

/// The reason of an error that the service made.
pub(crate) fn reason(status: &Status) -> String {
    let details = status.get_error_details();
    details.error_info().map(|info| info.reason.clone()).unwrap_or_default()
}
