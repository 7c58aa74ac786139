//! A data file, the servers that come and go on it, and those who play there.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use tokio::task::JoinSet;
use tonic::transport::{Channel, Endpoint};

use crate::player::{Findings, Player, Round, now};
use crate::server::{Client, within};
use crate::support::Dice;
use crate::wire::{Process, binary};

/// How many players share a connection.
const ON_A_CONNECTION: usize = 4;

/// The house.
pub(crate) struct House {
    pub(crate) data: PathBuf,
    /// A library that takes the place of functions of the system's.
    pub(crate) preload: Option<PathBuf>,
    flags: Vec<String>,
    pub(crate) dice: Dice,
    pub(crate) players: Vec<Player>,
    /// How often the server was started since the last audit.
    starts: usize,
    /// How long each start took until the server listened.
    restarts: Vec<Duration>,
    /// How often a start was killed.
    kills_of_starts: usize,
}

/// Those who play, while they do.
pub(crate) struct Playing {
    round: Arc<Round>,
    players: JoinSet<Player>,
}

impl House {
    pub(crate) fn new(data: &Path, flags: &[&str], seed: u64, players: Vec<Player>) -> Self {
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let (data, preload, dice) = (data.to_owned(), None, Dice(seed));
        Self { data, preload, flags, dice, players, starts: 0, restarts: Vec::new(), kills_of_starts: 0 }
    }

    fn spawn(&mut self) -> Child {
        self.starts += 1;
        let data = format!("--data={}", self.data.display());
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).chain(["--log=error", &data]).collect();
        let mut binary = binary(&flags);
        if let Some(library) = &self.preload {
            binary.env("LD_PRELOAD", library);
        }
        binary.spawn().expect("the binary starts")
    }

    /// Starts a server, and waits until it listens.
    pub(crate) fn start(&mut self) -> Process {
        let began = now();
        let process = Process::listening(self.spawn());
        self.restarts.push(began.elapsed());
        for player in &mut self.players {
            player.heard = now();
        }
        process
    }

    /// Starts a server, and kills it before it listens, or a little later.
    pub(crate) fn kill_a_start(&mut self) {
        let longest = self.restarts.iter().max().map_or(20_000, |longest| longest.as_micros());
        let moment = self.dice.roll(usize::try_from(longest).expect("a short time"));
        let mut child = self.spawn();
        thread::sleep(Duration::from_micros(moment as u64));
        child.kill().expect("a child of ours");
        child.wait().expect("a child of ours");
        self.kills_of_starts += 1;
    }

    /// All play: the first through proxies, one each, the others on connections that four share.
    pub(crate) async fn play(&mut self, process: &Process, proxies: &[SocketAddr]) -> Playing {
        let round = Arc::<Round>::default();
        let mut players = JoinSet::new();
        let mut shared = client_at(process.addr).await;
        for (index, mut player) in std::mem::take(&mut self.players).into_iter().enumerate() {
            if index % ON_A_CONNECTION == 0 {
                shared = client_at(process.addr).await;
            }
            let mut client = match proxies.get(index) {
                Some(proxy) => client_at(*proxy).await,
                None => shared.clone(),
            };
            let round = Arc::clone(&round);
            players.spawn(async move {
                player.play(&mut client, &round).await;
                player
            });
        }
        Playing { round, players }
    }

    /// Waits until everybody has noticed that the server is gone; how many asks were acknowledged in all.
    pub(crate) async fn gather(&mut self, mut playing: Playing) -> usize {
        while let Some(player) = within(playing.players.join_next()).await {
            self.players.push(player.expect("no panic"));
        }
        playing.told_so_far()
    }

    /// Everybody holds what the server shows against the ledger.
    pub(crate) async fn audit(&mut self, process: &Process) {
        let starts = std::mem::take(&mut self.starts);
        self.each(process, move |mut player, mut client| async move {
            player.audit(&mut client, starts).await;
            player
        })
        .await;
    }

    /// Everybody does so once more, with all of the ledger.
    pub(crate) async fn audit_all(&mut self, process: &Process) {
        self.each(process, |mut player, mut client| async move {
            player.audit_all(&mut client).await;
            player
        })
        .await;
    }

    async fn each<F>(&mut self, process: &Process, work: impl Fn(Player, Client) -> F)
    where
        F: Future<Output = Player> + Send + 'static,
    {
        let mut players = JoinSet::new();
        for mut player in std::mem::take(&mut self.players) {
            // A watch of before ends with the server that it was of.
            player.watched().await;
            let client = client_at(process.addr).await;
            players.spawn(work(player, client));
        }
        while let Some(player) = players.join_next().await {
            self.players.push(player.expect("no panic"));
        }
    }

    /// Everything that was found, with the figures printed.
    #[expect(clippy::print_stdout, reason = "the figures are what a long run is for")]
    pub(crate) fn findings(&mut self, ends: &str) -> Findings {
        let mut all = Findings::default();
        for player in &mut self.players {
            all.add(std::mem::take(&mut player.findings));
        }
        let games: usize = self.players.iter().map(Player::games).sum();
        self.restarts.sort_unstable();
        let restart = |share: usize| self.restarts[(self.restarts.len() - 1) * share / 100];
        println!("{ends}, {} of them while it started", self.kills_of_starts);
        println!("{games} games; acknowledged: {} asks, {} of them moves", all.told, all.moves);
        println!(
            "unacknowledged: {} found written, {} never made; {} repeats answered as before",
            all.doubts_written, all.doubts_lost, all.repeats
        );
        println!("missing {}, doubled {}, otherwise wrong {}", all.missing.len(), all.doubled.len(), all.wrong.len());
        println!("{} times resumed; flagged: {} wrongly, {} late", all.resumed, all.false_flags.len(), all.late);
        println!("start until it listens: min {:?}, median {:?}, max {:?}", restart(0), restart(50), restart(100));
        all
    }
}

impl Playing {
    /// How many asks have been acknowledged.
    pub(crate) fn told_so_far(&self) -> usize {
        self.round.told.load(Ordering::Relaxed)
    }

    /// Waits until so many asks have been acknowledged, for a while at most.
    pub(crate) async fn told(&self, number: usize) {
        let told = async {
            while self.told_so_far() < number {
                tokio::time::sleep(Duration::from_micros(500)).await;
            }
        };
        // A busy machine plays fewer: that is enough, too.
        let _ = tokio::time::timeout(Duration::from_secs(5), told).await;
    }
}

/// A client on a new connection.
pub(crate) async fn client_at(addr: SocketAddr) -> Client {
    let endpoint = Endpoint::from_shared(format!("http://{addr}")).expect("an address");
    let channel: Channel = within(endpoint.connect()).await.expect("it listens");
    Client::new(channel)
}
