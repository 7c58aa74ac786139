//! The encrypted door: who is let in, who is not, and that a stranger's handshake holds up nobody.

use std::net::SocketAddr;
use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tonic::Status;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::door::{CREATOR_FLAG, CREATOR_KEY, uuid};
use crate::door_binary::{FREE_PORT, Running, run};
use crate::server::{Client, Table, TestServer, by, next_event, within};
use jungle_referee::service::proto as pb;

/// A folder of this test's own, for as long as it lives.
pub(crate) struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("jungle-referee-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a writable folder for temporary files");
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a writable folder");
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A certificate with its key, in PEM.
struct Shown {
    cert: String,
    key: String,
}

/// Somebody who issues certificates.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("an authority"))
    }

    fn pem(&self) -> String {
        self.0.pem()
    }

    fn issue(&self, name: &str) -> Shown {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new([name.to_owned()]).expect("a name");
        let cert = params.signed_by(&key, &self.0).expect("a certificate");
        Shown { cert: cert.pem(), key: key.serialize_pem() }
    }
}

/// A server's certificate and the flags that give it.
struct House {
    folder: Folder,
    authority: Authority,
    flags: Vec<String>,
    key: String,
}

impl House {
    fn new(name: &str) -> Self {
        let (folder, authority) = (Folder::new(name), Authority::new());
        let Shown { cert, key } = authority.issue("127.0.0.1");
        let flags = vec![
            format!("--tls-cert={}", folder.file("server.pem", &cert)),
            format!("--tls-key={}", folder.file("server.key", &key)),
        ];
        Self { folder, authority, flags, key }
    }

    /// Asks the clients for certificates of this authority.
    fn asks_for(&mut self, clients: &Authority) {
        self.flags.push(format!("--tls-client-ca={}", self.folder.file("clients.pem", &clients.pem())));
    }

    fn flags(&self) -> Vec<&str> {
        self.flags.iter().map(String::as_str).collect()
    }

    async fn server(&self, more: &[&str]) -> TestServer {
        TestServer::start(&[&self.flags(), more].concat()).await
    }
}

/// Connects with TLS and lists the rulesets: whether that succeeds.
async fn asks(server: &TestServer, trusts: &Authority, shows: Option<&Shown>) -> Result<Client, String> {
    asks_at(server.addr, trusts, shows).await
}

async fn asks_at(server: SocketAddr, trusts: &Authority, shows: Option<&Shown>) -> Result<Client, String> {
    let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(trusts.pem()));
    if let Some(Shown { cert, key }) = shows {
        tls = tls.identity(Identity::from_pem(cert, key));
    }
    let endpoint = Endpoint::from_shared(format!("https://{server}")).expect("an address");
    let endpoint = endpoint.tls_config(tls).expect("readable certificates");
    let mut client = Client::new(within(endpoint.connect()).await.map_err(|error| format!("{error:?}"))?);
    let listed = within(client.list_rulesets(pb::ListRulesetsRequest {})).await;
    listed.map(|_| client).map_err(|status: Status| format!("{status:?}"))
}

/// "Nobody on the way can read my token; and I know that it is my referee."
#[tokio::test]
async fn who_trusts_the_servers_issuer_plays_over_tls_and_nobody_else() {
    let house = House::new("tls-server");
    let server = house.server(&[]).await;
    let mut client = asks(&server, &house.authority, None).await.expect("served");
    let table = Table::new(&mut client, pb::NewGameRequest::default()).await;
    let mut stream = table.watch(&mut client, Some(&table.red), Some(1)).await.expect("a stream");
    client.submit_move(by(&table.red, table.submit("a3a4"))).await.expect("a verdict");
    assert_eq!(next_event(&mut stream).await.expect("no error").map(|event| event.sequence), Some(2));
    asks(&server, &Authority::new(), None).await.map(drop).expect_err("an issuer that it does not know");
    let plain = Endpoint::from_shared(format!("http://{}", server.addr)).expect("an address");
    let plainly = async {
        let mut client = Client::new(plain.connect().await.map_err(|error| format!("{error:?}"))?);
        client.list_rulesets(pb::ListRulesetsRequest {}).await.map_err(|status| format!("{status:?}"))
    };
    within(plainly).await.map(drop).expect_err("plain text at an encrypted door");
    server.stop().await;
}

/// "Only the bots that I gave a certificate to come as far as a call."
#[tokio::test]
async fn where_clients_must_show_certificates_only_those_of_the_issuer_are_let_in() {
    let (mut house, clients) = (House::new("tls-clients"), Authority::new());
    house.asks_for(&clients);
    let server = house.server(&[]).await;
    asks(&server, &house.authority, Some(&clients.issue("bot"))).await.expect("one of the issuer's");
    asks(&server, &house.authority, None).await.map(drop).expect_err("no certificate");
    let strange = Authority::new().issue("bot");
    asks(&server, &house.authority, Some(&strange)).await.map(drop).expect_err("another issuer's");
    // The server's own issuer is not the clients'.
    let servers = house.authority.issue("bot");
    asks(&server, &house.authority, Some(&servers)).await.map(drop).expect_err("the server's issuer's");
    asks(&server, &house.authority, Some(&clients.issue("bot"))).await.expect("still let in");
    server.stop().await;
}

/// "Half the world knocked and never came in; I did not notice."
#[tokio::test]
async fn a_handshake_that_does_not_go_on_holds_up_nobody_and_is_cut() {
    const SILENT: usize = 100;
    let house = House::new("tls-silent");
    let server = house.server(&["--keepalive-timeout=1s", "--max-connections=101"]).await;
    let mut silent = Vec::new();
    for number in 0..SILENT {
        let mut stream = TcpStream::connect(server.addr).await.expect("it listens");
        // Nothing at all, or the beginning of a client's first record.
        stream.write_all(&[0x16, 0x03, 0x01, 0x02, 0x00][..number % 6]).await.expect("it is taken");
        silent.push(stream);
    }
    let mut client = asks(&server, &house.authority, None).await.expect("served beside a hundred that are silent");
    Table::new(&mut client, pb::NewGameRequest::default()).await;
    for mut stream in silent {
        // The server closes it, in order or not.
        let _ = within(stream.read_to_end(&mut Vec::new())).await;
    }
    // Their places are free again, and who did come in has stayed.
    asks(&server, &house.authority, None).await.expect("a place");
    Table::new(&mut client, pb::NewGameRequest::default()).await;
    server.stop().await;
}

/// "My container asks its own referee whether it is well, over TLS."
#[tokio::test]
async fn the_health_check_speaks_tls_and_shows_a_certificate_where_one_is_asked_for() {
    let (mut house, clients) = (House::new("tls-health"), Authority::new());
    house.asks_for(&clients);
    let running = Running::start(&[&["serve"], house.flags().as_slice()].concat(), &[FREE_PORT]);
    let address = running.addr.to_string();
    let bot = clients.issue("bot");
    let ca = house.folder.file("ca.pem", &house.authority.pem());
    let other = house.folder.file("other.pem", &Authority::new().pem());
    let cert = house.folder.file("bot.pem", &bot.cert);
    let key = house.folder.file("bot.key", &bot.key);
    let check = |flags: &[&str]| run(&[&["healthcheck", "--address", &address], flags].concat(), &[]);
    let shows = ["--tls-cert", &cert, "--tls-key", &key];
    let good = check(&[&["--tls-ca", &ca], shows.as_slice()].concat());
    assert_eq!((good.code, good.err.as_str()), (Some(0), ""), "{good:?}");
    let rows = [
        check(&[]),
        check(&["--tls-ca", &ca]),
        check(&[&["--tls-ca", &other], shows.as_slice()].concat()),
        check(&[&["--tls-ca", &ca, "--tls-name", "elsewhere.example"], shows.as_slice()].concat()),
        check(&["--tls-ca", "/nowhere/at/all"]),
    ];
    for bad in rows {
        assert_eq!(bad.code, Some(1), "{bad:?}");
        assert!(!bad.err.contains("PRIVATE") && !bad.err.contains(&house.key[40..60]), "{bad:?}");
    }
    assert_eq!(check(&["--tls-cert", &cert]).code, Some(64));
}

/// "I put the whole log on the mailing list, at its loudest, and gave nothing away."
#[tokio::test]
async fn the_log_numbers_the_calls_and_holds_no_secret_at_any_level_as_text_and_as_json() {
    let house = House::new("tls-log");
    for format in ["text", "json"] {
        let more = ["serve", "--log=trace", CREATOR_FLAG, "--log-format", format];
        let running = Running::start(&[&more, house.flags().as_slice()].concat(), &[FREE_PORT]);
        let mut client = asks_at(running.addr, &house.authority, None).await.expect("served");
        let request = pb::NewGameRequest { request_id: uuid(5), ..pb::NewGameRequest::default() };
        let made = client.new_game(by(CREATOR_KEY, request)).await.expect("a game").into_inner();
        let table = Table::of(&made);
        let mv = pb::SubmitMoveRequest { request_id: uuid(6), expected_ply: Some(0), ..table.submit("a3a4") };
        client.submit_move(by(&table.red, mv)).await.expect("a verdict");
        client.submit_move(by(&table.red, table.submit("a4a5"))).await.expect_err("not its turn");
        client.get_game(by("a-token-of-nobody", pb::GetGameRequest { game_id: uuid(1) })).await.expect_err("unknown");
        running.signal("TERM");
        let (code, log) = running.end().await;
        assert_eq!(code, Some(0));
        let key = house.key.lines().nth(1).expect("a line of the key");
        let secrets =
            [CREATOR_KEY, &table.red, &table.blue, &table.arbiter, &uuid(5), &uuid(6), "a-token-of-nobody", key];
        for secret in secrets {
            assert!(!log.contains(secret), "{format}: {secret} is in the log");
        }
        let created = log.lines().find(|line| line.contains("game created")).expect("a line of the creation");
        let refused = log.lines().find(|line| line.contains("NOT_YOUR_TURN")).expect("a line of the refused call");
        assert!(
            created.contains(&table.id) && number(format, created) < number(format, refused),
            "{created} {refused}"
        );
    }
}

/// The number of the call that a line of the log is of.
fn number(format: &str, line: &str) -> u64 {
    if format == "json" {
        let line: serde_json::Value = serde_json::from_str(line).expect("one object a line");
        return line["span"]["number"].as_u64().expect("a number");
    }
    let number = line.split("call{number=").nth(1).and_then(|rest| rest.split(' ').next());
    number.and_then(|number| number.parse().ok()).expect("a number")
}

/// "I mixed up two files; it told me which, and my key is in no log."
#[test]
fn wrong_certificates_and_keys_are_named_with_all_other_settings_and_never_shown() {
    let house = House::new("tls-wrong");
    let other = house.authority.issue("127.0.0.1");
    let (cert, key) = (house.flags[0].clone(), house.flags[1].clone());
    let file = |name: &str, text: &str| house.folder.file(name, text);
    let broken = house.key.replace("PRIVATE KEY-----\n", "PRIVATE KEY-----\n*no base64* ");
    let rows: [(&[String], &str); 7] = [
        (std::slice::from_ref(&cert), "--tls-cert: give --tls-key as well"),
        (std::slice::from_ref(&key), "--tls-key: give --tls-cert as well"),
        (&[cert.clone(), format!("--tls-key={}", file("other.key", &other.key))], "--tls-key: does not serve"),
        (&[cert.clone(), format!("--tls-key={}", file("cert.key", &other.cert))], "--tls-key: "),
        (&[cert.clone(), format!("--tls-key={}", file("broken.key", &broken))], "--tls-key: "),
        (&[format!("--tls-cert={}", file("key.pem", &house.key)), key.clone()], "--tls-cert: "),
        (
            &[cert.clone(), key.clone(), format!("--tls-client-ca={}", file("key-ca.pem", &house.key))],
            "--tls-client-ca: ",
        ),
    ];
    for (flags, names) in rows {
        let flags: Vec<&str> = ["serve", "--grace=never"].into_iter().chain(flags.iter().map(String::as_str)).collect();
        let asked = run(&flags, &[]);
        assert_eq!((asked.code, asked.out.as_str()), (Some(64), ""), "{flags:?}: {asked:?}");
        assert!(asked.err.contains(names) && asked.err.contains("--grace: "), "{flags:?}: {asked:?}");
        assert_eq!(asked.err.matches("\n  --").count(), 2, "{flags:?}: {asked:?}");
        for secret in house.key.lines().chain(other.key.lines()).filter(|line| !line.starts_with("---")) {
            assert!(!asked.err.contains(secret), "{flags:?}: a key is told: {asked:?}");
        }
    }
}
