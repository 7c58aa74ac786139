//! Processes of their own, each on its core, and what they cost: a child is this program again, started under
//! `taskset` with the name of its role, and led by lines of text.

use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The core of the servers.
pub(crate) const SERVER_CORE: &str = "0";
/// The core of the load.
pub(crate) const LOAD_CORE: &str = "1";

/// The moment now.
#[expect(clippy::disallowed_methods, reason = "what is measured here is the real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// What this process has cost so far: the processor time of all its threads, the kernel's share included.
pub(crate) fn spent() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let (secs, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(secs.expect("never negative"), nanos.expect("less than a second"))
}

/// The memory of this process that is in the machine's, in bytes.
pub(crate) fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells of a process's memory");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line of it");
    let kib = line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number of KiB");
    kib * 1_024
}

/// This program.
pub(crate) fn this_program() -> PathBuf {
    std::env::current_exe().expect("the path of this program")
}

/// A program in another role and on the cores of the list.
pub(crate) fn again(program: &Path, cores: &str, role: &[&str]) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", cores]).arg(program).args(role);
    command
}

/// A process that is led by lines: for each that it is told it answers one.
pub(crate) struct Led {
    child: Child,
    tell: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Its first line: where it listens, if it is a server.
    pub(crate) address: String,
}

impl Led {
    /// Starts this program in another role on these cores, and waits for its first line. What it logs is
    /// shown, unless it is the usual.
    pub(crate) fn start(cores: &str, role: &[&str]) -> Self {
        Self::start_program(&this_program(), cores, role)
    }

    /// The same with another build of this program.
    pub(crate) fn start_program(program: &Path, cores: &str, role: &[&str]) -> Self {
        let mut command = again(program, cores, role);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("taskset, of util-linux, starts");
        let tell = child.stdin.take().expect("piped");
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        let log = BufReader::new(child.stderr.take().expect("piped"));
        std::thread::spawn(move || {
            for line in log.lines().map_while(Result::ok).filter(|line| !usual(line)) {
                eprintln!("{line}");
            }
        });
        let mut led = Self { child, tell, answers, address: String::new() };
        led.address = led.answer();
        led
    }

    /// Waits for its answer to what it was told.
    pub(crate) fn answer(&mut self) -> String {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line).expect("an answer");
        assert!(read > 0, "a child has died; what it said stands above");
        line.trim_end().to_owned()
    }

    /// Tells it something.
    pub(crate) fn tell(&mut self, what: &str) {
        writeln!(self.tell, "{what}").expect("the child listens");
    }

    /// Tells it something and waits for the answer.
    pub(crate) fn ask(&mut self, what: &str) -> String {
        self.tell(what);
        self.answer()
    }

    /// Asks for a number.
    pub(crate) fn number(&mut self, what: &str) -> u64 {
        self.ask(what).parse().expect("a number")
    }

    /// The processor time that it has spent.
    pub(crate) fn spent(&mut self) -> Duration {
        Duration::from_nanos(self.number("cpu"))
    }

    /// Its resident memory in bytes.
    pub(crate) fn resident(&mut self) -> u64 {
        self.number("rss")
    }
}

impl Drop for Led {
    fn drop(&mut self) {
        // The child may have died by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a line of the log only tells that all is well.
fn usual(line: &str) -> bool {
    line.contains(" INFO ")
}

/// Keeps its core busy until it is ended.
pub(crate) fn burn() {
    say("burning");
    loop {
        std::hint::black_box(now());
    }
}

/// The other end of [`Led`]: answers each line that comes, until there are no more.
pub(crate) async fn be_led(address: &str, mut answer: impl AsyncFnMut(&[&str]) -> String) {
    let (told, mut lines) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            if told.send(line.expect("text")).is_err() {
                return;
            }
        }
    });
    say(address);
    while let Some(line) = lines.recv().await {
        let words: Vec<&str> = line.split(' ').collect();
        let answer = match words[..] {
            ["cpu"] => spent().as_nanos().to_string(),
            ["rss"] => resident().to_string(),
            _ => answer(&words).await,
        };
        say(&answer);
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever led this process may be gone: then nobody has to know.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
