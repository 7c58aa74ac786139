//! The binary and its settings: what it says, with which code it ends, and how it leaves.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, ExitStatus, Stdio};

use crate::door::told;
use crate::server::{Client, Table, next_event, within};
use clap::{Args as _, Parser};
use jungle_referee::config::{Config, Invalid, ServeArgs};
use jungle_referee::service::proto as pb;
use tokio::sync::oneshot;

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    serve: ServeArgs,
}

fn checked(flags: &[&str]) -> Result<Config, Invalid> {
    let flags = ["test"].iter().chain(flags);
    Config::from_args(&Flags::try_parse_from(flags).expect("flags of the right form").serve)
}

/// A file of this text, for as long as it lives.
struct TextFile(std::path::PathBuf);

impl TextFile {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("jungle-referee-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("a writable folder for temporary files");
        Self(path)
    }

    fn flag(&self, flag: &str) -> String {
        format!("--{flag}={}", self.0.display())
    }
}

impl Drop for TextFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Wrong values of every flag; `None` for a flag that has none.
fn wrong_values() -> Vec<(&'static str, Option<&'static [&'static str]>)> {
    const NUMBERS: &[&str] = &["0", "-1", "1.5", "many", "", " 1", "1,000", "99999999999999999999999"];
    const DURATIONS: &[&str] =
        &["0s", "0", "10", "-1s", "soon", "", "1 fortnight", "1e3s", "3651d", "500000000000years"];
    vec![
        ("listen", Some(&["50051", "localhost", "127.0.0.1", "127.0.0.1:99999", ":50051", "", "0.0.0.0:0", "[::]:0"])),
        ("open", None),
        (
            "creator-key",
            Some(&["", "short", "fifteen-letters", "a key with blanks in it", "k\u{e9}y-k\u{e9}y-k\u{e9}y-k\u{e9}y"]),
        ),
        ("creator-key-file", Some(&["/nowhere/at/all", "/", ""])),
        ("token-key", Some(&["", "short", "fifteen-letters", "a\tkey\twith\ttabs\tin\tit"])),
        ("token-key-file", Some(&["/nowhere/at/all", "/", ""])),
        ("tls-cert", Some(&["/nowhere/at/all", "/", ""])),
        ("tls-key", Some(&["/nowhere/at/all", "/", ""])),
        ("tls-client-ca", Some(&["/nowhere/at/all", "/", ""])),
        ("metrics-listen", Some(&["9464", "localhost", "127.0.0.1", "127.0.0.1:99999", ""])),
        ("data", Some(&["", "/", ".."])),
        ("max-open-games", Some(NUMBERS)),
        ("max-calls", Some(NUMBERS)),
        ("max-watches", Some(NUMBERS)),
        ("max-watchers", Some(NUMBERS)),
        ("max-watches-per-connection", Some(NUMBERS)),
        ("max-streams-per-connection", Some(&["0", "-1", "4294967296", "x"])),
        ("max-connections", Some(NUMBERS)),
        ("keep-finished-for", Some(DURATIONS)),
        ("keep-finished", Some(NUMBERS)),
        ("max-message-bytes", Some(NUMBERS)),
        ("call-timeout", Some(DURATIONS)),
        ("keepalive-interval", Some(DURATIONS)),
        ("keepalive-timeout", Some(DURATIONS)),
        ("grace", Some(DURATIONS)),
        ("log", Some(&["jungle=loud", "=", "a=b=c"])),
        ("log-format", Some(&["", "Text", "xml"])),
    ]
}

#[test]
fn each_wrong_flag_is_named_alone_and_no_flag_is_left_out_here() {
    let command = ServeArgs::augment_args(clap::Command::new("serve"));
    let flags: BTreeSet<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
    let rows: BTreeSet<&str> = wrong_values().iter().map(|(flag, _)| *flag).collect();
    assert_eq!(flags, rows);
    for argument in command.get_arguments() {
        let variable = argument.get_env().expect("every flag is an environment variable too").to_string_lossy();
        assert!(variable.starts_with("JUNGLE_"), "{variable}");
    }
    let mut complaints = Vec::new();
    for (flag, values) in wrong_values() {
        for value in values.unwrap_or_default() {
            match checked(&[&format!("--{flag}={value}")]) {
                Ok(_) => complaints.push(format!("--{flag}={value:?} was taken")),
                Err(Invalid { problems }) => {
                    let named = problems.first().is_some_and(|problem| problem.starts_with(&format!("--{flag}")));
                    if !named || problems.len() != 1 {
                        complaints.push(format!("--{flag}={value:?}: {problems:?}"));
                    }
                    let secret = ["creator-key", "token-key"].contains(&flag) && !value.is_empty();
                    if secret && problems.iter().any(|problem| problem.contains(value)) {
                        complaints.push(format!("--{flag}={value:?} is repeated: {problems:?}"));
                    }
                }
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn all_wrong_flags_are_named_in_one_message() {
    let wrong: Vec<_> = wrong_values()
        .into_iter()
        // A key and a file of it at once are one problem; the file's own is told alone.
        .filter(|(flag, _)| !["creator-key-file", "token-key-file"].contains(flag))
        .filter_map(|(flag, values)| Some((flag, values?.first().copied()?)))
        .collect();
    let flags: Vec<String> = wrong.iter().map(|(flag, value)| format!("--{flag}={value}")).collect();
    let invalid = checked(&flags.iter().map(String::as_str).collect::<Vec<_>>()).expect_err("all wrong");
    assert_eq!(invalid.problems.len(), wrong.len(), "{invalid}");
    let message = invalid.to_string();
    for (flag, _) in wrong {
        assert_eq!(message.matches(&format!("--{flag}: ")).count(), 1, "--{flag} in {message}");
    }
}

#[test]
fn a_key_comes_from_a_flag_or_a_file_and_not_from_both() {
    let good = TextFile::new("good", "a-key-of-enough-letters\n");
    let crlf = TextFile::new("crlf", "a-key-of-enough-letters\r\n");
    let (empty, short) = (TextFile::new("empty", ""), TextFile::new("short", "short\n"));
    let two = TextFile::new("two", "a-key-of-enough-letters\nand-a-second-line\n");
    for kind in ["creator-key", "token-key"] {
        let (given, file) = (format!("--{kind}=a-key-of-enough-letters"), format!("{kind}-file"));
        for flags in [vec![given.clone()], vec![good.flag(&file)], vec![crlf.flag(&file)]] {
            let config = checked(&flags.iter().map(String::as_str).collect::<Vec<_>>()).expect("a key");
            if kind == "creator-key" {
                assert_eq!(config.keys.creator.as_deref(), Some("a-key-of-enough-letters"), "{flags:?}");
            }
            assert!(!format!("{config:?}").contains("a-key-of-enough-letters"), "a key is never shown");
        }
        for flags in
            [vec![given, good.flag(&file)], vec![empty.flag(&file)], vec![short.flag(&file)], vec![two.flag(&file)]]
        {
            let invalid = checked(&flags.iter().map(String::as_str).collect::<Vec<_>>()).expect_err("no key");
            assert!(invalid.problems.len() == 1 && invalid.problems[0].contains(kind), "{flags:?}: {invalid}");
        }
    }
}

#[test]
fn beyond_loopback_a_server_wants_a_creators_key_or_the_word_that_it_is_open() {
    let far = ["0.0.0.0:0", "[::]:0", "192.0.2.1:50051", "[2001:db8::1]:50051"];
    let near = ["127.0.0.1:0", "127.1.2.3:0", "[::1]:0", "[::ffff:127.0.0.1]:0"];
    let listen = |address: &str| format!("--listen={address}");
    for address in near {
        assert!(checked(&[&listen(address)]).is_ok(), "{address}");
    }
    for address in far {
        let invalid = checked(&[&listen(address)]).expect_err(address);
        assert_eq!(invalid.problems.len(), 1, "{invalid}");
        let problem = &invalid.problems[0];
        assert!(problem.contains("--creator-key-file") && problem.contains("--open"), "{problem}");
        assert!(checked(&[&listen(address), "--token-key=a-key-of-enough-letters"]).is_err(), "{address}");
        assert!(checked(&[&listen(address), "--open"]).is_ok(), "{address}");
        assert!(checked(&[&listen(address), "--creator-key=a-key-of-enough-letters"]).is_ok(), "{address}");
        // A key that is wrong is the only problem: it was meant to be there.
        let invalid = checked(&[&listen(address), "--creator-key=short"]).expect_err(address);
        assert!(invalid.problems.len() == 1 && invalid.problems[0].starts_with("--creator-key:"), "{invalid}");
    }
}

/// The binary, with nothing of this process's environment.
pub(crate) fn binary(arguments: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jungle-referee"));
    command.args(arguments).env_clear().envs(environment.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What a run of the binary that ends by itself told.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn run(arguments: &[&str], environment: &[(&str, &str)]) -> Run {
    let output = binary(arguments, environment).output().expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// A running server of the binary; killed when dropped before it has ended.
pub(crate) struct Running {
    pid: u32,
    pub(crate) addr: SocketAddr,
    line: String,
    ended: Option<oneshot::Receiver<(ExitStatus, String)>>,
}

impl Running {
    pub(crate) fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut child = binary(arguments, environment).spawn().expect("the binary runs");
        let pid = child.id();
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let mut err = child.stderr.take().expect("piped");
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        let (tell, ended) = oneshot::channel();
        std::thread::spawn(move || {
            let mut text = String::new();
            let _ = err.read_to_string(&mut text);
            let _ = tell.send((child.wait().expect("a child of ours"), text));
        });
        let addr = line.trim_end().rsplit(' ').next().and_then(|addr| addr.parse().ok());
        let addr = addr.unwrap_or_else(|| panic!("the line tells where it listens: {line:?}"));
        Self { pid, addr, line, ended: Some(ended) }
    }

    pub(crate) fn signal(&self, name: &str) {
        assert!(self.signal_unless_gone(name), "it runs");
    }

    /// Whether it was there to be sent the signal.
    fn signal_unless_gone(&self, name: &str) -> bool {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.pid.to_string()]).status();
        sent.expect("a kill command").success()
    }

    /// Waits for its end, whose code it must tell by itself.
    pub(crate) async fn end(mut self) -> (Option<i32>, String) {
        let ended = self.ended.take().expect("ends once");
        let (status, err) = within(ended).await.expect("the thread tells");
        (status.code(), err)
    }

    async fn client(&self) -> Client {
        Client::connect(format!("http://{}", self.addr)).await.expect("it listens")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended.is_some() {
            let _ = Command::new("kill").args(["-KILL", &self.pid.to_string()]).status();
        }
    }
}

pub(crate) const FREE_PORT: (&str, &str) = ("JUNGLE_LISTEN", "127.0.0.1:0");

/// "I just ran it, and it told me where it listens."
#[tokio::test]
async fn a_bare_run_listens_says_where_is_healthy_and_leaves_when_told() {
    for (arguments, environment) in [
        (vec![], vec![FREE_PORT]),
        (vec!["serve"], vec![FREE_PORT]),
        (vec!["serve", "--listen", "127.0.0.1:0"], vec![]),
        (vec!["serve", "--listen", "127.0.0.1:0"], vec![("JUNGLE_LISTEN", "192.0.2.1:1")]),
    ] {
        let running = Running::start(&arguments, &environment);
        assert_eq!(running.line, format!("jungle-referee listens on {}\n", running.addr));
        assert_ne!(running.addr.port(), 0);
        let mut client = running.client().await;
        let table = Table::new(&mut client, pb::NewGameRequest::default()).await;
        assert_eq!(table.get(&mut client).await.sequence, 1);
        let address = running.addr.to_string();
        for healthcheck in [
            run(&["healthcheck", "--address", &address], &[]),
            run(&["healthcheck"], &[("JUNGLE_HEALTHCHECK", &address)]),
        ] {
            assert_eq!((healthcheck.code, healthcheck.out.as_str()), (Some(0), ""), "{healthcheck:?}");
        }
        running.signal("TERM");
        let (code, err) = running.end().await;
        assert_eq!(code, Some(0), "{err}");
        assert!(!err.contains(&table.red) && !err.contains(&table.arbiter), "a token in the log: {err}");
        assert!(err.contains(&table.id), "the game that is lost is named: {err}");
    }
}

/// "I stopped the server while people were watching, and it did not hang."
#[tokio::test]
async fn a_signal_ends_the_streams_with_their_place_and_the_server_in_bounded_time() {
    for (first, then) in [("TERM", None), ("INT", None), ("TERM", Some("TERM")), ("INT", Some("TERM"))] {
        let running = Running::start(&["serve"], &[FREE_PORT, ("JUNGLE_GRACE", "1s")]);
        let mut client = running.client().await;
        let table = Table::new(&mut client, pb::NewGameRequest::default()).await;
        let mut stream = table.watch(&mut client, Some(&table.red), Some(1)).await.expect("a stream");
        // Somebody who connected and never said a word must not hold it back.
        let silent = TcpStream::connect(running.addr).expect("it listens");
        running.signal(first);
        let stopping = told(next_event(&mut stream).await);
        assert_eq!((stopping.reason.as_str(), stopping.value("sequence")), ("SERVER_STOPPING", "1"));
        if let Some(then) = then {
            // It may have left by now; if not, the second signal changes nothing.
            running.signal_unless_gone(then);
        }
        let (code, err) = running.end().await;
        assert_eq!(code, Some(0), "{first} {then:?}: {err}");
        drop(silent);
    }
}

/// "My script only asked whether it is healthy."
#[test]
fn a_health_check_of_no_server_ends_with_code_1_and_says_whom_it_asked() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let closed = free.local_addr().expect("an address").to_string();
    drop(free);
    let deaf = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let deaf_address = deaf.local_addr().expect("an address").to_string();
    for address in [closed.as_str(), &deaf_address, "not an address"] {
        let asked = run(&["healthcheck", "--address", address], &[]);
        assert_eq!(asked.code, Some(1), "{asked:?}");
        assert!(asked.err.starts_with("jungle-referee: ") && asked.err.contains(address), "{asked:?}");
    }
}

#[test]
fn wrong_settings_end_it_with_code_64_and_one_message_that_names_them_all() {
    let flags = ["serve", "--max-watchers=none", "--grace=never", "--creator-key=short"];
    let environment = [("JUNGLE_LOG_FORMAT", "xml"), ("JUNGLE_LISTEN", "nowhere"), ("JUNGLE_CALL_TIMEOUT", "0s")];
    let asked = run(&flags, &environment);
    assert_eq!((asked.code, asked.out.as_str()), (Some(64), ""), "{asked:?}");
    for flag in ["max-watchers", "grace", "creator-key", "log-format", "listen", "call-timeout"] {
        assert_eq!(asked.err.matches(&format!("--{flag}: ")).count(), 1, "--{flag} in {}", asked.err);
    }
    assert!(!asked.err.contains("short"), "a key in the message: {}", asked.err);
    type Environment = &'static [(&'static str, &'static str)];
    let rows: [(&[&str], Environment, &str); 9] = [
        (&[], &[("JUNGLE_GRACE", "never")], "--grace"),
        (&["serve", "--listen=0.0.0.0:0"], &[], "--creator-key-file"),
        (&["serve", "--listen=0.0.0.0:0"], &[("JUNGLE_OPEN", "false")], "--creator-key-file"),
        (&["serve", "--listne=127.0.0.1:0"], &[], "--listne"),
        (&["sevre"], &[], "sevre"),
        (&["perft"], &[], "<DEPTH>"),
        (&["perft", "three"], &[], "three"),
        (&["perft", "--ruleset=chess", "1"], &[], "chess"),
        (&["perft", "--position=7/7", "1"], &[], "--position"),
    ];
    for (arguments, environment, names) in rows {
        let asked = run(arguments, environment);
        assert_eq!((asked.code, asked.out.as_str()), (Some(64), ""), "{arguments:?}: {asked:?}");
        assert!(asked.err.contains(names), "{arguments:?}: {asked:?}");
    }
}

/// "I set every limit as high as it goes, and it still serves."
#[tokio::test]
async fn the_highest_values_that_are_taken_serve() {
    let (flags, number) = (wrong_values(), usize::MAX.to_string());
    let arguments: Vec<String> = flags
        .iter()
        .filter_map(|(flag, values)| match (*flag, values.is_some_and(|values| values.contains(&"0s"))) {
            ("max-streams-per-connection", _) => Some(format!("--{flag}={}", u32::MAX)),
            (_, true) => Some(format!("--{flag}=3650d")),
            (flag, false) => {
                (flag.starts_with("max-") || flag == "keep-finished").then(|| format!("--{flag}={number}"))
            }
        })
        .collect();
    assert_eq!(arguments.len(), 14, "{arguments:?}");
    let arguments: Vec<&str> = ["serve"].into_iter().chain(arguments.iter().map(String::as_str)).collect();
    let running = Running::start(&arguments, &[FREE_PORT]);
    let mut client = running.client().await;
    let table = Table::new(&mut client, pb::NewGameRequest::default()).await;
    let mut stream = table.watch(&mut client, None, Some(0)).await.expect("a stream");
    assert!(next_event(&mut stream).await.expect("no error").is_some());
    running.signal("TERM");
    assert_eq!(told(next_event(&mut stream).await).reason, "SERVER_STOPPING");
    let (code, err) = running.end().await;
    assert_eq!(code, Some(0), "{err}");
    assert!(!err.contains("panicked"), "{err}");
}

/// "Another server had the port already."
#[test]
fn an_address_that_is_taken_is_named_and_ends_it_with_code_1() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("an address").to_string();
    let asked = run(&["serve", "--listen", &address], &[]);
    assert_eq!((asked.code, asked.out.as_str()), (Some(1), ""), "{asked:?}");
    assert!(asked.err.contains(&address), "{asked:?}");
}

#[test]
fn perft_prints_a_line_a_depth_and_nothing_else() {
    let rows: [(&[&str], &str); 4] = [
        (&["perft", "3"], "1 24\n2 576\n3 12240\n"),
        (&["perft", "--ruleset", "folk-fox", "3"], "1 24\n2 576\n3 12240\n"),
        (&["perft", "--position", "6e/7/7/7/7/7/7/7/6E r 0 1", "2"], "1 2\n2 4\n"),
        (&["perft", "0"], ""),
    ];
    for (arguments, out) in rows {
        let asked = run(arguments, &[]);
        assert_eq!((asked.code, asked.out.as_str(), asked.err.as_str()), (Some(0), out, ""), "{arguments:?}");
    }
    for arguments in [["--help"], ["--version"]] {
        let asked = run(&arguments, &[]);
        assert!(asked.code == Some(0) && asked.out.contains("eferee") && asked.err.is_empty(), "{asked:?}");
    }
}
