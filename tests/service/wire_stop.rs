//! The server's end: what clients are told, what is still answered, and that it leaves in time.

use std::sync::Arc;
use std::time::Duration;

use crate::server::{Client, Table, TestServer, by, config, next_event, reason, within};
use crate::wire::{Process, RawWatcher, Windows, long_game, make_move, unknowing_proxy};
use jungle_referee::app::Ports;
use jungle_referee::game::Event;
use jungle_referee::runtime::log::Later;
use jungle_referee::runtime::{Append, Appended, Clock, GameId, Log, LogFault, RandomIds, SystemClock};
use jungle_referee::service::proto::referee_service_client::RefereeServiceClient;
use jungle_referee::service::proto::submit_move_response::Verdict;
use jungle_referee::service::proto::{self as pb, NewGameRequest};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt as _;

const SERVICE: &str = "jungle.v1.RefereeService";

/// An HTTP/2 client's greeting with empty settings.
const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

async fn channel(addr: std::net::SocketAddr) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{addr}")).expect("an address");
    within(endpoint.connect()).await.expect("it listens")
}

async fn health_watch(channel: Channel, service: &str) -> Streaming<tonic_health::pb::HealthCheckResponse> {
    let request = HealthCheckRequest { service: service.to_owned() };
    let mut stream = within(HealthClient::new(channel).watch(request)).await.expect("a stream").into_inner();
    let first = within(stream.message()).await.expect("no error").expect("a status");
    assert_eq!(first.status(), ServingStatus::Serving);
    stream
}

/// Reads a stream to its end, which must be that of the stop; the last sequence it told.
async fn ends_with_the_stop(mut stream: Streaming<pb::WatchGameResponse>, from: u64) {
    let reading = async {
        let mut last = from;
        loop {
            match next_event(&mut stream).await {
                Ok(Some(event)) => {
                    assert_eq!(event.sequence, last + 1);
                    last = event.sequence;
                }
                Ok(None) => panic!("the stream ended as if the game were over"),
                Err(status) => return (last, status),
            }
        }
    };
    // All of it within the test's patience: heartbeats alone would keep a stream going for ever.
    let (last, status): (u64, Status) = within(reading).await;
    assert_eq!((status.code(), reason(&status).as_str()), (Code::Unavailable, "SERVER_STOPPING"), "{status}");
    let details = status.get_error_details();
    let told = details.error_info().expect("details").metadata.get("sequence").cloned();
    assert_eq!(told, Some(last.to_string()), "the last sequence sent");
    assert!(details.retry_info().is_some());
}

/// A connection that stopped in the middle of a request: a message of 100 bytes is announced, 3 bytes came.
async fn half_a_request(addr: std::net::SocketAddr) -> impl Sized {
    let mut raw = RawWatcher::connect(addr, Windows::WIDE).await;
    let call = raw.begin("SubmitMove", vec![0, 0, 0, 0, 100, 1, 2, 3]).await;
    (raw, call)
}

/// "The server stops: every stream says so, with where to go on; health says it, and all leave at once."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_end_with_the_last_sequence_health_says_it_and_nobody_waits_for_the_grace_period() {
    // The one who waits for the grace period here misses the test's patience.
    let mut server = TestServer::start(&["--grace", "1h"]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, long_game()).await;
    let mut streams = Vec::new();
    for token in [None, Some(&table.red), Some(&table.blue), Some(&table.arbiter), None] {
        let mut other = server.client().await;
        let stream = within(table.watch(&mut other, token.map(String::as_str), Some(0))).await.expect("a stream");
        streams.push((stream, 0));
        let stream = within(table.watch(&mut client, token.map(String::as_str), Some(1))).await.expect("a stream");
        streams.push((stream, 1));
    }
    for ply in 0..5 {
        make_move(&mut client, &table, ply).await;
    }
    let mut healths = Vec::new();
    for service in ["", SERVICE] {
        healths.push(health_watch(server.channel().await, service).await);
    }
    // One has connected and says nothing, one says half a greeting, one greets and has no streams.
    let silent = TcpStream::connect(server.addr).await.expect("it listens");
    let mut mumbling = TcpStream::connect(server.addr).await.expect("it listens");
    mumbling.write_all(&GREETING[..10]).await.expect("it is open");
    let idle = server.client().await;

    server.begin_stop();
    for (stream, from) in streams {
        ends_with_the_stop(stream, from).await;
    }
    for mut health in healths {
        let last = within(health.message()).await.expect("no error").expect("a status");
        assert_eq!(last.status(), ServingStatus::NotServing);
        assert!(within(health.message()).await.expect("no error").is_none(), "the watch of health ends");
    }
    server.stop().await;
    drop((silent, mumbling, idle));
}

/// "I did not know yet that it stops: my move was answered, a new game was not begun."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_know_yet_is_answered() {
    let mut server = TestServer::start(&["--grace", "1h"]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, long_game()).await;
    let stream = within(table.watch(&mut client, None, Some(1))).await.expect("a stream");
    let proxied = channel(unknowing_proxy(server.addr).await).await;
    let mut unknowing = RefereeServiceClient::new(proxied.clone());
    make_move(&mut unknowing, &table, 0).await;

    server.begin_stop();
    ends_with_the_stop(stream, 1).await;
    make_move(&mut unknowing, &table, 1).await;
    let status = within(unknowing.new_game(NewGameRequest::default())).await.expect_err("no more games");
    assert_eq!((status.code(), reason(&status).as_str()), (Code::Unavailable, "SERVER_STOPPING"));
    assert!(status.get_error_details().retry_info().is_some());
    let status = within(table.watch(&mut unknowing, None, Some(3))).await.expect_err("no more streams");
    assert_eq!((status.code(), reason(&status).as_str()), (Code::Unavailable, "SERVER_STOPPING"));
    for service in ["", SERVICE] {
        let request = HealthCheckRequest { service: service.to_owned() };
        let answer = within(HealthClient::new(proxied.clone()).check(request)).await.expect("an answer").into_inner();
        assert_eq!(answer.status(), ServingStatus::NotServing, "{service:?}");
    }
    assert_eq!(table.get(&mut unknowing).await.sequence, 3);
    // Nobody is let in any more.
    let refused = TcpStream::connect(server.addr).await;
    assert!(refused.is_err(), "{refused:?}");
    drop((unknowing, proxied));
    server.stop().await;
}

/// A log that takes its time with all but creations: until the test says.
struct SlowLog {
    clock: Arc<dyn Clock>,
    written: watch::Receiver<bool>,
    begun: Arc<Notify>,
}

impl Log for SlowLog {
    fn append(&self, _game: GameId, sequence: u64, _event: &Event) -> Append {
        if sequence == 1 {
            return Append::Done(Appended::Written(self.clock.now()));
        }
        let (clock, mut written) = (Arc::clone(&self.clock), self.written.clone());
        self.begun.notify_one();
        Append::Pending(Box::pin(async move {
            written.wait_for(|written| *written).await.expect("the test lives");
            Appended::Written(clock.now())
        }))
    }

    fn tail(&self, _game: GameId, _sequence: u64) -> Later<Result<Vec<jungle_referee::game::Record>, LogFault>> {
        Box::pin(std::future::ready(Err(LogFault)))
    }
}

/// "My move was being written when the server was told to stop. It was written, and I was told."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_is_being_written_is_answered() {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let (write, written) = watch::channel(false);
    let begun = Arc::new(Notify::new());
    let log = Arc::new(SlowLog { clock: Arc::clone(&clock), written, begun: Arc::clone(&begun) });
    let ports = Ports { clock, ids: Arc::new(RandomIds::default()), log };
    let mut server = TestServer::start_with(config(&["--grace", "1h", "--call-timeout", "1h"]), ports, None).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, long_game()).await;
    let stream = within(table.watch(&mut client, None, Some(1))).await.expect("a stream");
    let (mut mover, request) = (server.client().await, by(&table.red, table.submit("a1a2")));
    let moving = tokio::spawn(async move { mover.submit_move(request).await });
    within(begun.notified()).await;
    assert!(!moving.is_finished());

    server.begin_stop();
    ends_with_the_stop(stream, 1).await;
    write.send_replace(true);
    let reply = within(moving).await.expect("no panic").expect("an answer").into_inner();
    let Some(Verdict::Accepted(accepted)) = reply.verdict else { panic!("{reply:?}") };
    assert_eq!(accepted.sequence, 2);
    server.stop().await;
}

/// "Whatever its clients do, the process leaves within its grace period, and says that all went well."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_process_leaves_within_the_grace_period_whatever_clients_do() {
    const GRACE: Duration = Duration::from_secs(1);
    // For a machine that is busy with other things.
    const MARGIN: Duration = Duration::from_secs(5);
    let mut process = Process::start(&["--grace", "1s"]);
    let mut client = Client::new(channel(process.addr).await);
    let table = Table::new(&mut client, long_game()).await;
    make_move(&mut client, &table, 0).await;
    let spectator = within(table.watch(&mut client, None, Some(0))).await.expect("a stream");
    let seat = within(table.watch(&mut client, Some(&table.blue), Some(2))).await.expect("a stream");
    let mut health = health_watch(channel(process.addr).await, "").await;
    let silent = TcpStream::connect(process.addr).await.expect("it listens");
    let mut deaf = RawWatcher::connect(process.addr, Windows::WIDE).await;
    let deaf_stream = deaf.watch(&table, None).await;
    let mut closed = RawWatcher::connect(process.addr, Windows::CLOSED).await;
    let closed_stream = closed.watch(&table, None).await;
    let half = half_a_request(process.addr).await;

    process.terminate();
    ends_with_the_stop(spectator, 0).await;
    ends_with_the_stop(seat, 2).await;
    let last = within(health.message()).await.expect("no error").expect("a status");
    assert_eq!(last.status(), ServingStatus::NotServing);
    let left = process.left_within(GRACE + MARGIN).await.expect("it leaves");
    assert_eq!(left.code(), Some(0));
    drop((silent, deaf, deaf_stream, closed, closed_stream, half));
}

/// "With nobody on the line, it leaves at once."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_process_leaves_at_once_when_its_clients_do() {
    let mut process = Process::start(&["--grace", "1h"]);
    let mut client = Client::new(channel(process.addr).await);
    let table = Table::new(&mut client, long_game()).await;
    let stream = within(table.watch(&mut client, None, Some(0))).await.expect("a stream");
    let health = health_watch(channel(process.addr).await, SERVICE).await;
    let silent = TcpStream::connect(process.addr).await.expect("it listens");
    process.terminate();
    ends_with_the_stop(stream, 0).await;
    let left = process.left_within(crate::server::PATIENCE).await.expect("it leaves");
    assert_eq!(left.code(), Some(0));
    drop((health, silent));
}

/// "Who is not gone when the grace period is over is put out, in a server that shares its process, too."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_end_with_the_server_that_took_them() {
    let server = TestServer::start(&["--grace", "50ms"]).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, long_game()).await;
    let mut closed = RawWatcher::connect(server.addr, Windows::CLOSED).await;
    let _stream = closed.watch(&table, None).await;
    server.stop().await;
    // Its connection answers pings and would live for ever: only the server can end it.
    let _ = within(&mut closed.connection).await;
}

/// "A connection that does not greet is closed after a while."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_does_not_greet_is_closed() {
    let server = TestServer::start(&["--keepalive-timeout", "100ms", "--keepalive-interval", "1h"]).await;
    let mut silent = TcpStream::connect(server.addr).await.expect("it listens");
    let mut mumbling = TcpStream::connect(server.addr).await.expect("it listens");
    mumbling.write_all(&GREETING[..23]).await.expect("it is open");
    for open in [&mut silent, &mut mumbling] {
        let mut raw = Vec::new();
        // It may say its own settings first; then comes the end.
        let _ = within(open.read_to_end(&mut raw)).await;
    }
    server.stop().await;
}
