//! The key that tokens are issued under, where it is kept beside a data file.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use jungle_referee::rules::Side;
use jungle_referee::runtime::{GameId, Seat, token_key_beside};

/// A folder of its own, gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("jungle-token-key-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn data(&self) -> PathBuf {
        self.0.join("games.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const GAME: GameId = GameId::from_u128(7);
const SEAT: Seat = Seat::Player(Side::Blue);

/// "They restarted the server, and nobody had thought of a key: my token is as good as before."
#[test]
fn a_key_is_made_once_and_only_its_owner_reads_it() {
    let folder = Folder::new("made");
    let token = token_key_beside(&folder.data()).expect("a new key").issue(GAME, SEAT);
    let key = folder.0.join("games.db.key");
    assert_eq!(fs::metadata(&key).expect("the key's file").permissions().mode() & 0o777, 0o600);
    fs::write(folder.data(), "games").expect("a data file");
    let again = token_key_beside(&folder.data()).expect("the same key");
    assert_eq!(again.verify(&token), Some((GAME, SEAT)));
    let left: Vec<_> = fs::read_dir(&folder.0).expect("the folder").collect();
    assert_eq!(left.len(), 2, "nothing else is left lying about");
}

/// "I restored the games and forgot the key: the server told me, before it made every token worthless."
#[test]
fn games_without_their_key_are_refused_with_what_to_do() {
    let folder = Folder::new("gone");
    fs::write(folder.data(), "games").expect("a data file");
    let told = token_key_beside(&folder.data()).expect_err("no key").to_string();
    for words in ["games.db.key", "it is gone", "put it back", "--token-key-file"] {
        assert!(told.contains(words), "{told}");
    }
    assert!(!folder.0.join("games.db.key").exists());
    fs::write(folder.0.join("games.db.key"), "too short\n").expect("a key");
    let told = token_key_beside(&folder.data()).expect_err("a short key").to_string();
    assert!(told.contains("fewer than 16 bytes") && !told.contains("too short"), "{told}");
}
