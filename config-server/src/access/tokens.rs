//! Bearer tokens: a file with the hash of each, which a running server reads again when it changes.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::digest;
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::{Role, User};
use crate::clock;
use crate::files;

/// What is known of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The name of its user.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// When it was made.
    pub created: String,
    /// Until when it is good, in seconds since 1970; none for always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// SHA-256 of the token, in hexadecimal.
    hash: String,
}

/// The tokens in a file.
#[derive(Debug)]
pub struct Tokens {
    path: PathBuf,
    read: Mutex<(Option<Stamp>, Vec<Token>)>,
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Token {
            name,
            role,
            created,
            ..
        } = self;
        write!(f, "{name:20} {role:30} created {created}")?;
        match self.expires {
            Some(at) => write!(f, ", expires {}", clock::rfc3339(at)),
            None => Ok(()),
        }
    }
}

/// The time, in seconds since 1970, so long after now.
pub fn expiry(after: std::time::Duration) -> u64 {
    clock::seconds_now().saturating_add(after.as_secs())
}

/// By what a file that was replaced is told from the one before.
type Stamp = (u64, i64, i64, u64);

/// The file of the tokens in a data directory.
pub fn file_in(data: &Path) -> PathBuf {
    data.join("tokens.json")
}

impl Tokens {
    /// The tokens of that file, which need not exist.
    pub fn at(path: PathBuf) -> Tokens {
        Tokens {
            path,
            read: Mutex::default(),
        }
    }

    /// The user of a token.
    pub fn user(&self, token: &str) -> Option<User> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = stamp(&self.path);
        if read.0 != stamp {
            match load(&self.path) {
                Ok(tokens) => *read = (stamp, tokens),
                Err(error) => {
                    // Tokens that may have been revoked do not count.
                    tracing::error!(file = %self.path.display(), %error, "the tokens cannot be read");
                    *read = (stamp, Vec::new());
                }
            }
        }
        let hash = hash(token);
        let now = clock::seconds_now();
        let is_it = |known: &&Token| known.hash == hash && known.expires.is_none_or(|at| now < at);
        read.1.iter().find(is_it).map(|token| User {
            name: token.name.clone(),
            role: token.role.clone(),
        })
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let found = fs::metadata(path).ok()?;
    Some((found.ino(), found.mtime(), found.mtime_nsec(), found.len()))
}

/// The tokens in a file; none if there is no file.
///
/// # Errors
/// If it cannot be read.
pub fn load(path: &Path) -> io::Result<Vec<Token>> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Makes a token. The text is returned and kept nowhere.
///
/// # Errors
/// If there is one of that name, or if the file cannot be written.
pub fn create(path: &Path, name: &str, role: Role, expires: Option<u64>) -> io::Result<String> {
    let mut tokens = load(path)?;
    if tokens.iter().any(|token| token.name == name) {
        return Err(io::Error::other(format!(
            "there is a token named {name:?} already"
        )));
    }
    let secret: [u8; 32] = rand::rng().random();
    let text = format!("strait_{}", hex(&secret));
    tokens.push(Token {
        name: name.to_owned(),
        role,
        created: clock::now(),
        expires,
        hash: hash(&text),
    });
    store(path, &tokens)?;
    Ok(text)
}

/// Revokes a token. A running server refuses it at once.
///
/// # Errors
/// If there is none of that name, or if the file cannot be written.
pub fn revoke(path: &Path, name: &str) -> io::Result<()> {
    let mut tokens = load(path)?;
    let count = tokens.len();
    tokens.retain(|token| token.name != name);
    if tokens.len() == count {
        return Err(io::Error::other(format!(
            "there is no token named {name:?}"
        )));
    }
    store(path, &tokens)
}

fn store(path: &Path, tokens: &[Token]) -> io::Result<()> {
    let text = serde_json::to_string_pretty(tokens).map_err(io::Error::other)?;
    files::write_private(path, text.as_bytes())
}

fn hash(token: &str) -> String {
    hex(digest::digest(&digest::SHA256, token.as_bytes()).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_known_until_they_are_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let path = file_in(dir.path());
        let tokens = Tokens::at(path.clone());
        assert_eq!(tokens.user("x"), None);
        let text = create(&path, "ci", Role::Writer(vec!["a".to_owned()]), None).unwrap();
        let user = tokens.user(&text).unwrap();
        assert_eq!(
            (&*user.name, user.role),
            ("ci", Role::Writer(vec!["a".to_owned()]))
        );
        assert!(create(&path, "ci", Role::Reader, None).is_err());
        let stored = fs::read_to_string(&path).unwrap();
        assert!(!stored.contains(&text));
        revoke(&path, "ci").unwrap();
        assert_eq!(tokens.user(&text), None);
        let old = create(&path, "old", Role::Reader, Some(1)).unwrap();
        assert_eq!(tokens.user(&old), None);
    }
}
