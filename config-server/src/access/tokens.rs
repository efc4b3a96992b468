//! Bearer tokens: hashes are stored in a file or in etcd. A running server reloads them after a change.

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

/// Stored record of a bearer token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Name of the token's user.
    pub name: String,
    /// Role of the token's user.
    pub role: Role,
    /// Time of creation, RFC 3339.
    pub created: String,
    /// Expiry in seconds since 1970; `None` if the token never expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// SHA-256 of the token, in hexadecimal.
    hash: String,
}

/// Tokens of a server, reloaded when their source changes.
#[derive(Debug)]
pub struct Tokens {
    source: Source,
    read: Mutex<(Option<Stamp>, Vec<Token>)>,
}

/// Storage of the tokens: a file, or etcd.
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

/// Maximum length of a token name, in bytes.
pub const NAME_BYTES_MAX: usize = 253;

/// Maximum lifetime of a token with an expiry: ten years.
pub const LIFETIME_MAX: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Parses a token name.
///
/// # Errors
/// If the name is invalid. The message lists the valid forms.
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

/// Checks the lifetime of a new token.
///
/// # Errors
/// If the lifetime is too short or too long. The message names the limit.
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

/// Returns the expiry of a token with this lifetime, in seconds since 1970.
pub fn expiry(after: Duration) -> u64 {
    clock::seconds_now().saturating_add(after.as_secs())
}

/// Version stamp of the token source, which differs after every change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stamp {
    /// File: inode, modification time (seconds, nanoseconds), size.
    File(u64, i64, i64, u64),
    /// etcd: change counter of the mirror.
    Shared(u64),
}

/// Returns the path of the token file in a data directory.
pub fn file_in(data: &Path) -> PathBuf {
    data.join("tokens.json")
}

impl Tokens {
    /// Returns the tokens of a file, which may be absent.
    pub fn at(path: PathBuf) -> Tokens {
        Tokens::of(Source::File(path))
    }

    /// Returns the tokens that replicas share in etcd.
    pub fn shared(mirror: Arc<Mirror>) -> Tokens {
        Tokens::of(Source::Shared(mirror))
    }

    fn of(source: Source) -> Tokens {
        Tokens {
            source,
            read: Mutex::default(),
        }
    }

    /// Returns all tokens.
    pub fn all(&self) -> Vec<Token> {
        self.source.load(None).1
    }

    /// Returns the user of a token; `None` if the token is unknown or expired.
    pub fn user(&self, token: &str) -> Option<User> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.source.stamp();
        if stamp.is_none() || read.0 != stamp {
            *read = self.source.load(stamp);
        }
        let hash = hash(token.as_bytes());
        let now = clock::seconds_now();
        let is_it = |known: &&Token| known.hash == hash && known.expires.is_none_or(|at| now < at);
        read.1.iter().find(is_it).map(|token| User {
            name: token.name.clone(),
            role: token.role.clone(),
            namespace: None,
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
                    // Accept no tokens: any of them may have been revoked.
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

/// Reads the tokens of a file; empty if there is no file.
///
/// # Errors
/// If the file cannot be read.
pub fn load(path: &Path) -> io::Result<Vec<Token>> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Creates a token and returns its text, which is not stored.
///
/// # Errors
/// If the name is taken, or if the file cannot be written.
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
        hash: hash(text.as_bytes()),
    };
    (token, text)
}

/// Creates a token that all replicas accept. Returns `None` if the name is taken.
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

/// Reads the tokens that replicas share.
///
/// # Errors
/// If etcd cannot be read.
pub async fn load_shared(shared: &Shared) -> Result<Vec<Token>, String> {
    let values = shared.tokens().await.map_err(|error| error.to_string())?;
    Ok(read_values(&values))
}

/// Revokes a token. A running server rejects it at once.
///
/// # Errors
/// If there is no token of that name, or if the file cannot be written.
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

/// Replaces the tokens of a file.
///
/// # Errors
/// If the file cannot be written.
pub fn store(path: &Path, tokens: &[Token]) -> io::Result<()> {
    let text = serde_json::to_string_pretty(tokens).map_err(io::Error::other)?;
    files::write_private(path, text.as_bytes())
}

/// Returns the SHA-256 of bytes, in hexadecimal.
pub(crate) fn hash(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

/// Returns bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
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
