//! The key that tokens are issued under, kept beside the data file: tokens outlast a restart as games do.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::super::token::TokenKey;
use super::fault::OpenFault;
use super::lock::beside;

/// What is said when games are there and their key is not.
const GONE: &str = "it is gone, and the tokens of the games in the data file are good under it alone: put it back, or \
                    give --token-key-file; a new key written there would make all those tokens invalid";

/// The key in `FILE.key`. With a new data file a new key is made, readable by its owner only.
///
/// # Errors
/// If it cannot be read or made, and if it is gone though the data file is there.
pub fn token_key_beside(data: &Path) -> Result<TokenKey, OpenFault> {
    let path = beside(data, ".key");
    if !data.exists() {
        match make(&path) {
            Ok(()) => {}
            // Made by an earlier start that came no further.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(OpenFault::io(&path, "making it")(error)),
        }
    }
    let key = fs::read(&path).map_err(|error| {
        let gone = error.kind() == io::ErrorKind::NotFound;
        if gone { io::Error::new(error.kind(), GONE) } else { error }
    });
    let key = key.map_err(OpenFault::io(&path, "reading it"))?;
    match TokenKey::from_text(&key) {
        Some(key) => Ok(key),
        None => Err(OpenFault::io(&path, "reading it")(io::Error::other("it has fewer than 16 bytes"))),
    }
}

/// Writes a new key, whole or not at all.
fn make(path: &Path) -> io::Result<()> {
    let unfinished = beside(path, ".new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    file.write_all(TokenKey::new_text().as_bytes())?;
    file.sync_all()?;
    // Linked and not renamed: a key that is there already stays.
    let linked = fs::hard_link(&unfinished, path);
    fs::remove_file(&unfinished)?;
    linked
}
