//! What is promised where the data file cannot be written: nothing is acknowledged, what was is there, reads go
//! on, health tells, and the server recovers by itself where that is safe.

mod data_file;
mod server;

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use data_file::{ALL, Author, BEGIN, Folder, done, read, s};
use futures_util::future::join_all;
use jungle_referee::app::Ports;
use jungle_referee::game::{Event, Span};
use jungle_referee::runtime::{
    Append, Appended, DataFile, GameId, Log as _, LogFault, LogHealth, ManualClock, RandomIds, SqliteLog,
};
use jungle_referee::service::proto::referee_service_client::RefereeServiceClient;
use jungle_referee::service::proto::{self as pb, NewGameRequest};
use rusqlite::Connection;
use server::{Client, Table, TestServer, by, config, next_event, reason, within};
use tonic::Code;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

/// A log on a file that may grow to so many pages.
fn start_small(folder: &Folder, clock: &Arc<ManualClock>, pages: u32) -> SqliteLog {
    let file = DataFile::open(&folder.data()).expect("a good data file");
    file.limit_pages(pages).expect("limited");
    file.read(ALL).and_then(|file| file.start(Arc::clone(clock) as _)).expect("started")
}

/// Waits until the log is like this.
async fn until(log: &SqliteLog, health: LogHealth) {
    within(log.health().wait_for(|now| *now == health)).await.expect("the log lives");
}

/// Writes games, many at once, until the log fails, and answers with what it could not write.
async fn fill(log: &SqliteLog) -> Vec<(GameId, u64, Event)> {
    for first in (100..100_000).step_by(50) {
        let created = (first..first + 50).map(|number| {
            let mut author = Author::new(number);
            let (sequence, event) = author.next(BEGIN);
            (author.id, sequence, event)
        });
        let created: Vec<_> = created.collect();
        let appends: Vec<Append> =
            created.iter().map(|(id, sequence, event)| log.append(*id, *sequence, event)).collect();
        let answers = join_all(appends.into_iter().map(done)).await;
        let failed = created.into_iter().zip(answers).filter_map(|(created, appended)| match appended {
            Appended::Written(_) => None,
            Appended::Failed => Some(created),
            Appended::Conflict | Appended::Unknown => panic!("{appended:?}"),
        });
        let failed: Vec<_> = failed.collect();
        if !failed.is_empty() {
            return failed;
        }
    }
    panic!("the file is not limited");
}

/// Frees some room, as an operator may.
fn make_room(folder: &Folder) {
    let other = Connection::open(folder.data()).expect("opened");
    other.execute_batch("DELETE FROM events WHERE game > 20").expect("removed");
}

/// "The disk was full; my move was not taken, and a minute after they had made room it was."
#[tokio::test]
async fn a_full_disk_acknowledges_nothing_and_goes_on_when_there_is_room() {
    let (folder, clock) = (Folder::new(), Arc::new(ManualClock::at(BEGIN)));
    let log = start_small(&folder, &clock, 100);
    let mut first = Author::new(1);
    first.writes(&log, BEGIN).await;
    let failed = fill(&log).await;
    until(&log, LogHealth::Failing).await;
    // It fails for all alike, and reads as before.
    for (id, sequence, event) in &failed {
        assert_eq!(done(log.append(*id, *sequence, event)).await, Appended::Failed);
        assert_eq!(log.tail(*id, 0).await, Ok(Vec::new()));
    }
    assert_eq!(log.tail(first.id, 0).await.expect("readable").len(), 1);
    make_room(&folder);
    clock.advance_to(s(2));
    until(&log, LogHealth::Fine).await;
    for (id, sequence, event) in &failed {
        assert!(matches!(done(log.append(*id, *sequence, event)).await, Appended::Written(_)));
    }
    assert!(matches!(first.writes(&log, s(2)).await, Appended::Written(_)));
}

/// "Somebody had locked the file with a tool; we waited until they were done."
#[tokio::test]
async fn a_file_that_another_program_holds_is_written_again_when_it_lets_go() {
    let (folder, clock) = (Folder::new(), Arc::new(ManualClock::at(BEGIN)));
    let log = start_small(&folder, &clock, 10_000);
    let mut author = Author::new(1);
    author.writes(&log, BEGIN).await;
    let other = Connection::open(folder.data()).expect("opened");
    other.execute_batch("BEGIN IMMEDIATE").expect("locked");
    let (sequence, event) = author.next(s(1));
    assert_eq!(done(log.append(author.id, sequence, &event)).await, Appended::Failed);
    until(&log, LogHealth::Failing).await;
    assert_eq!(log.tail(author.id, 0).await.expect("readable").len(), 1);
    other.execute_batch("ROLLBACK").expect("let go");
    until(&log, LogHealth::Fine).await;
    assert!(matches!(done(log.append(author.id, sequence, &event)).await, Appended::Written(_)));
    drop(log);
    assert_eq!(read(&folder.data()).expect("a good file")[0].1.len(), 2);
}

/// "A row had been changed behind its back; it did not put its own seal under that."
#[tokio::test]
async fn a_game_whose_row_was_changed_meanwhile_is_not_sealed_anew() {
    let (folder, clock) = (Folder::new(), Arc::new(ManualClock::at(BEGIN)));
    let log = start_small(&folder, &clock, 10_000);
    let mut author = Author::new(1);
    author.writes(&log, BEGIN).await;
    let other = Connection::open(folder.data()).expect("opened");
    other.execute_batch("UPDATE games SET preset = 'datou'").expect("changed");
    assert_eq!(author.writes_end(&log, s(1)).await, Appended::Failed);
    until(&log, LogHealth::Closed).await;
    assert_eq!(log.tail(author.id, 0).await, Err(LogFault));
    assert_eq!(Author::new(2).writes(&log, s(1)).await, Appended::Failed);
    drop((log, other));
    let fault = read(&folder.data()).expect_err("damaged").to_string();
    assert!(fault.contains("the table games, number 1"), "{fault}");
}

/// The health of a server, and a stream of it.
async fn health(addr: SocketAddr) -> ServingStatus {
    let channel = Endpoint::from_shared(format!("http://{addr}")).expect("an address").connect().await;
    let mut client = HealthClient::new(channel.expect("the server listens"));
    let answer = client.check(HealthCheckRequest { service: "jungle.v1.RefereeService".to_owned() }).await;
    answer.expect("an answer").into_inner().status()
}

/// "While the disk was full I could look at my game and watch it; the balancer sent newcomers elsewhere; then it
/// went on, and nobody had to do anything."
#[tokio::test]
async fn a_server_on_a_full_disk_says_so_serves_who_reads_and_goes_on_by_itself() {
    let (folder, clock) = (Folder::new(), Arc::new(ManualClock::at(server::EPOCH)));
    let log = Arc::new(start_small(&folder, &clock, 100));
    let ports = Ports { clock: Arc::clone(&clock) as _, ids: Arc::new(RandomIds::default()), log: log.clone() };
    let server = TestServer::start_with(config(&[]), ports, Some(Arc::clone(&clock))).await;
    let mut client = server.client().await;
    let table = Table::new(&mut client, NewGameRequest::default()).await;
    client.submit_move(by(&table.red, table.submit("a3a4"))).await.expect("a verdict");
    let told = HealthClient::new(server.channel().await).watch(HealthCheckRequest::default()).await;
    let mut told = told.expect("a stream").into_inner();
    let mut next_status = async || within(told.message()).await.expect("no error").map(|answer| answer.status());
    assert_eq!(next_status().await, Some(ServingStatus::Serving));
    fill(&log).await;
    assert_eq!(next_status().await, Some(ServingStatus::NotServing));
    assert_eq!(health(server.addr).await, ServingStatus::NotServing);

    let refused = client.submit_move(by(&table.blue, table.submit("a7a6"))).await.expect_err("not written");
    assert_eq!((refused.code(), reason(&refused).as_str()), (Code::Unavailable, "LOG_FAILED"));
    let refused = client.new_game(NewGameRequest::default()).await.expect_err("not written");
    assert_eq!((refused.code(), reason(&refused).as_str()), (Code::Unavailable, "LOG_FAILED"));
    assert_eq!(table.get(&mut client).await.sequence, 2);
    let mut stream = table.watch(&mut client, None, Some(0)).await.expect("a stream");
    for sequence in 1..=2 {
        assert_eq!(next_event(&mut stream).await.expect("no error").expect("an event").sequence, sequence);
    }
    make_room(&folder);
    clock.advance_to(server::EPOCH + Span::from_secs(2));
    assert_eq!(next_status().await, Some(ServingStatus::Serving));
    assert_eq!(health(server.addr).await, ServingStatus::Serving);
    client.submit_move(by(&table.blue, table.submit("a7a6"))).await.expect("a verdict");
    assert_eq!(next_event(&mut stream).await.expect("no error").expect("an event").sequence, 3);
    server.stop().await;
    // Its health is over with it, and holds nobody back.
    assert_eq!(next_status().await, Some(ServingStatus::NotServing));
    assert_eq!(next_status().await, None);
}

/// The real binary on a data file.
struct Binary {
    child: Child,
    addr: SocketAddr,
}

impl Binary {
    /// Starts it; with a limit no file of its may grow beyond that many blocks, and a write beyond is an error.
    fn start(folder: &Folder, blocks: Option<u32>) -> Self {
        let limit = blocks.map_or(String::new(), |blocks| format!("trap '' XFSZ; ulimit -f {blocks}; "));
        let script = format!("{limit}exec \"$@\"");
        let mut child = Command::new("sh")
            .args(["-c", &script, "sh", env!("CARGO_BIN_EXE_jungle-referee"), "serve"])
            .args(["--listen", "127.0.0.1:0", "--token-key", "of-the-restarted-server", "--data"])
            .arg(folder.data())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let addr = line.trim().rsplit(' ').next().and_then(|addr| addr.parse().ok());
        Self { addr: addr.unwrap_or_else(|| panic!("its address, not {line:?}")), child }
    }

    async fn client(&self) -> Client {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.addr)).expect("an address");
        RefereeServiceClient::new(endpoint.connect().await.expect("the server listens"))
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// "The storage failed in the middle of my request; nobody could say what had become of it. After the restart
/// the same request told."
#[tokio::test]
async fn a_commit_whose_fate_is_unknown_is_told_so_and_the_same_request_later_tells() {
    let folder = Folder::new();
    let server = Binary::start(&folder, Some(400));
    let mut client = server.client().await;
    let table = Table::new(&mut client, NewGameRequest::default()).await;
    let mut made = 1_u64;
    let (request, failed) = loop {
        let request_id = format!("0190a000-0000-7000-8000-{made:012}");
        let request = NewGameRequest { request_id, ..NewGameRequest::default() };
        match client.new_game(request.clone()).await {
            Ok(_) => made += 1,
            Err(failed) => break (request, failed),
        }
        assert!(made < 10_000, "the file is not limited");
    };
    assert_eq!((failed.code(), reason(&failed).as_str()), (Code::Unavailable, "FATE_UNKNOWN"));
    assert_eq!(health(server.addr).await, ServingStatus::NotServing);
    // It is not tried again in this run: the others hear that nothing was written, and read on.
    for _ in 0..3 {
        let refused = client.submit_move(by(&table.red, table.submit("a3a4"))).await.expect_err("not written");
        assert_eq!((refused.code(), reason(&refused).as_str()), (Code::Unavailable, "LOG_FAILED"));
        let repeated = client.new_game(request.clone()).await.expect_err("unknown");
        assert_eq!(repeated.code(), Code::Unavailable, "{repeated}");
    }
    assert_eq!(table.get(&mut client).await.sequence, 1);
    drop((client, server));

    let server = Binary::start(&folder, None);
    let mut client = server.client().await;
    let told = client.new_game(request.clone()).await.expect("it is known now").into_inner();
    let again = client.new_game(request).await.expect("it is known now").into_inner();
    assert_eq!(told.game.map(|game| game.game_id), again.game.map(|game| game.game_id));
    assert!(again.replayed);
    let listed = client.list_games(pb::ListGamesRequest { page_size: 1, ..pb::ListGamesRequest::default() }).await;
    assert_eq!(listed.expect("a list").into_inner().games.len(), 1);
    client.submit_move(by(&table.red, table.submit("a3a4"))).await.expect("a verdict");
    tokio::time::timeout(Duration::from_secs(20), async { drop(server) }).await.expect("gone");
}
