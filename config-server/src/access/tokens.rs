//! Bearer tokens: the hash of each is in a file, which a running server reads again when it changes, or in etcd.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest;
use bytes::Bytes;
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::{Role, User};
use crate::clock;
use crate::files;
use crate::object;
use crate::store::etcd::{Mirror, Shared};

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

/// The tokens of a server.
#[derive(Debug)]
pub struct Tokens {
    source: Source,
    read: Mutex<(Option<Stamp>, Vec<Token>)>,
}

/// Where the tokens are.
#[derive(Debug)]
enum Source {
    File(PathBuf),
    Shared(Arc<Mirror>),
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

/// The longest name of a token.
pub const NAME_BYTES_MAX: usize = 253;

/// The longest time for which a token is good, unless it is good for always: ten years.
pub const LIFETIME_MAX: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Reads the name of a token.
///
/// # Errors
/// What is wrong with it, and which names there are.
pub fn parse_name(text: &str) -> Result<String, String> {
    if object::is_name(text) {
        return Ok(text.to_owned());
    }
    let why = match text.len() {
        0 => "it is empty".to_owned(),
        length if length > NAME_BYTES_MAX => {
            format!("it has {length} characters, at most {NAME_BYTES_MAX} are allowed")
        }
        _ => "it is no lowercase RFC 1123 subdomain".to_owned(),
    };
    Err(format!(
        "{why}; use lowercase letters, digits, `-` and `.`, with a letter or digit at both ends, such as ci or edge-1"
    ))
}

/// Checks how long a token is to be good.
///
/// # Errors
/// What is wrong with it, and what is allowed.
pub fn check_lifetime(lifetime: Duration) -> Result<Duration, String> {
    match lifetime {
        short if short < Duration::from_secs(1) => {
            Err("the token would never be valid; use 1s or more, such as 720h".to_owned())
        }
        long if long > LIFETIME_MAX => Err(format!(
            "it is more than ten years; use {}h or less, or leave --expires out for a token that never expires",
            LIFETIME_MAX.as_secs() / 3_600
        )),
        lifetime => Ok(lifetime),
    }
}

/// The time, in seconds since 1970, so long after now.
pub fn expiry(after: Duration) -> u64 {
    clock::seconds_now().saturating_add(after.as_secs())
}

/// By what changed tokens are told from those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stamp {
    /// Of a file: inode, time of the last change, size.
    File(u64, i64, i64, u64),
    /// Of values in etcd.
    Shared(u64),
}

/// The file of the tokens in a data directory.
pub fn file_in(data: &Path) -> PathBuf {
    data.join("tokens.json")
}

impl Tokens {
    /// The tokens of that file, which need not exist.
    pub fn at(path: PathBuf) -> Tokens {
        Tokens::of(Source::File(path))
    }

    /// The tokens that replicas share.
    pub fn shared(mirror: Arc<Mirror>) -> Tokens {
        Tokens::of(Source::Shared(mirror))
    }

    fn of(source: Source) -> Tokens {
        Tokens {
            source,
            read: Mutex::default(),
        }
    }

    /// All of them.
    pub fn all(&self) -> Vec<Token> {
        self.source.load(None).1
    }

    /// The user of a token.
    pub fn user(&self, token: &str) -> Option<User> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.source.stamp();
        if stamp.is_none() || read.0 != stamp {
            *read = self.source.load(stamp);
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

impl Source {
    fn stamp(&self) -> Option<Stamp> {
        match self {
            Source::File(path) => {
                let found = fs::metadata(path).ok()?;
                let (seconds, nanoseconds) = (found.mtime(), found.mtime_nsec());
                Some(Stamp::File(found.ino(), seconds, nanoseconds, found.len()))
            }
            Source::Shared(mirror) => Some(Stamp::Shared(mirror.version())),
        }
    }

    fn load(&self, stamp: Option<Stamp>) -> (Option<Stamp>, Vec<Token>) {
        match self {
            Source::File(path) => {
                let tokens = load(path).unwrap_or_else(|error| {
                    // Tokens that may have been revoked do not count.
                    tracing::error!(file = %path.display(), %error, "the tokens cannot be read");
                    Vec::new()
                });
                (stamp, tokens)
            }
            Source::Shared(mirror) => {
                let (version, values) = mirror.values();
                (Some(Stamp::Shared(version)), read_values(&values))
            }
        }
    }
}

fn read_values(values: &[Bytes]) -> Vec<Token> {
    let read = |value: &Bytes| match serde_json::from_slice(value) {
        Ok(token) => Some(token),
        Err(error) => {
            tracing::error!(%error, "a token in etcd cannot be read");
            None
        }
    };
    values.iter().filter_map(read).collect()
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
    let (token, text) = issue(name, role, expires);
    tokens.push(token);
    store(path, &tokens)?;
    Ok(text)
}

fn issue(name: &str, role: Role, expires: Option<u64>) -> (Token, String) {
    let secret: [u8; 32] = rand::rng().random();
    let text = format!("strait_{}", hex(&secret));
    let token = Token {
        name: name.to_owned(),
        role,
        created: clock::now(),
        expires,
        hash: hash(&text),
    };
    (token, text)
}

/// Makes a token that all replicas honor. None if there is one of that name.
///
/// # Errors
/// If etcd cannot be written.
pub async fn create_shared(
    shared: &Shared,
    name: &str,
    role: Role,
    expires: Option<u64>,
) -> Result<Option<String>, String> {
    let (token, text) = issue(name, role, expires);
    let value = serde_json::to_vec(&token).map_err(|error| error.to_string())?;
    let is_new = shared.add_token(name, value.into()).await;
    Ok(is_new.map_err(|error| error.to_string())?.then_some(text))
}

/// The tokens that replicas share.
///
/// # Errors
/// If etcd cannot be read.
pub async fn load_shared(shared: &Shared) -> Result<Vec<Token>, String> {
    let values = shared.tokens().await.map_err(|error| error.to_string())?;
    Ok(read_values(&values))
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

/// Replaces the tokens in a file.
///
/// # Errors
/// If it cannot be written.
pub fn store(path: &Path, tokens: &[Token]) -> io::Result<()> {
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
    fn names_are_subdomains_of_bounded_length() {
        for good in [
            "ci",
            "admin-x7kqd",
            "edge.eu",
            "7",
            &"a".repeat(NAME_BYTES_MAX),
        ] {
            assert_eq!(parse_name(good).as_deref(), Ok(good));
        }
        for (wrong, why) in [
            ("", "it is empty"),
            ("x y", "no lowercase RFC 1123 subdomain"),
            ("../x", "no lowercase RFC 1123 subdomain"),
            ("a..b", "no lowercase RFC 1123 subdomain"),
            ("A", "no lowercase RFC 1123 subdomain"),
            (&"a".repeat(300), "it has 300 characters, at most 253"),
        ] {
            let error = parse_name(wrong).unwrap_err();
            assert!(
                error.contains(why) && error.contains("such as ci"),
                "{error}"
            );
        }
    }

    #[test]
    fn lifetime_is_bounded() {
        let second = Duration::from_secs(1);
        for good in [second, LIFETIME_MAX] {
            assert_eq!(check_lifetime(good), Ok(good));
        }
        let none = check_lifetime(Duration::ZERO).unwrap_err();
        assert!(none.contains("use 1s or more"), "{none}");
        let long = check_lifetime(LIFETIME_MAX + second).unwrap_err();
        assert!(long.contains("use 87600h or less"), "{long}");
    }

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
