//! Backup: the complete state of a server at one revision, in one file with a checksum.
//!
//! The file is text. Its first line names the format, the second is the head, one line for each object follows, and
//! the last line has the SHA-256 of all lines before it.

use std::path::Path;

use aws_lc_rs::digest;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde::{Deserialize, Serialize};

use super::location::Opened;
use crate::access::pki::Authority;
use crate::access::tokens::Token;
use crate::clock;
use crate::files;
use crate::store::{Entry, Revision, Scan, Store};

/// First line. The number increases with changes that older versions cannot read.
const FORMAT: &str = "strait-control-backup 1";
/// Prefix of the last line.
const CHECKSUM: &str = "sha256 ";
/// Path of the backup on a running server.
pub const PATH: &str = "/strait/backup";

/// Complete state of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Backup {
    /// Revision of the state.
    pub revision: Revision,
    /// Time of the backup, RFC 3339.
    pub time: String,
    /// Tokens of users, of which only hashes are stored.
    pub tokens: Vec<Token>,
    /// CA with its private key.
    pub authority: Option<Authority>,
    /// Objects, with status, UID and revision.
    pub objects: Vec<Entry>,
}

/// Head of the file, on its second line.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    revision: Revision,
    time: String,
    objects: usize,
    tokens: Vec<Token>,
    ca: Option<Authority>,
}

/// Line of an object.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    key: String,
    revision: Revision,
    /// JSON text of the object, as stored.
    value: String,
}

impl Backup {
    /// Reads the state of an opened store.
    ///
    /// # Errors
    /// If the store, the tokens or the CA cannot be read.
    pub async fn of(from: &Opened) -> Result<Backup, String> {
        let (tokens, authority) = from.access().await?;
        Backup::of_store(&*from.store, tokens, authority).await
    }

    /// Reads the state of the store of a server in this process.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) async fn of_store(
        store: &dyn Store,
        tokens: Vec<Token>,
        authority: Option<Authority>,
    ) -> Result<Backup, String> {
        let page = store.scan(Scan::default()).await;
        let page = page.map_err(|error| error.to_string())?;
        Ok(Backup {
            revision: page.revision,
            time: clock::now(),
            tokens,
            authority,
            objects: page.entries,
        })
    }

    /// Encodes the backup as a file.
    ///
    /// # Errors
    /// If a stored object is not UTF-8.
    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let head = Head {
            revision: self.revision,
            time: self.time.clone(),
            objects: self.objects.len(),
            tokens: self.tokens.clone(),
            ca: self.authority.clone(),
        };
        let mut out = format!("{FORMAT}\n").into_bytes();
        line(&mut out, &head)?;
        for entry in &self.objects {
            let value = std::str::from_utf8(&entry.value);
            let value = value.map_err(|error| format!("{} is damaged: {error}", entry.key))?;
            let one = Line {
                key: entry.key.to_string(),
                revision: entry.revision,
                value: value.to_owned(),
            };
            line(&mut out, &one)?;
        }
        let sum = checksum(&out);
        out.extend_from_slice(format!("{CHECKSUM}{sum}\n").as_bytes());
        Ok(out)
    }

    /// Writes the backup, and replaces the file atomically.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_to(&self, file: &Path) -> Result<(), String> {
        let bytes = self.to_bytes()?;
        files::write_private(file, &bytes).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// Parses a backup file.
    ///
    /// # Errors
    /// If the file is not a backup, is incomplete, or has a wrong checksum.
    pub fn read(bytes: &[u8]) -> Result<Backup, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not a backup".to_owned())?;
        let Some(rest) = text
            .strip_prefix(FORMAT)
            .and_then(|rest| rest.strip_prefix('\n'))
        else {
            return Err(match text.starts_with("strait-control-backup ") {
                true => {
                    "it is of a newer version of Strait: restore it with that version".to_owned()
                }
                false => "it is not a backup of `strait control`".to_owned(),
            });
        };
        let torn = || {
            "it is torn or was altered: its checksum does not match. Use another backup".to_owned()
        };
        let body = rest.strip_suffix('\n').ok_or_else(torn)?;
        let (body, last) = body.rsplit_once('\n').ok_or_else(torn)?;
        let summed = &bytes[..FORMAT.len() + 1 + body.len() + 1];
        if last.strip_prefix(CHECKSUM) != Some(&*checksum(summed)) {
            return Err(torn());
        }
        let malformed = |error: serde_json::Error| format!("it cannot be read: {error}");
        let mut lines = body.split('\n');
        let head: Head = serde_json::from_str(lines.next().unwrap_or("")).map_err(malformed)?;
        let objects = lines.map(|text| {
            let line: Line = serde_json::from_str(text).map_err(malformed)?;
            Ok(Entry {
                key: line.key.into(),
                revision: line.revision,
                value: line.value.into(),
            })
        });
        let objects = objects.collect::<Result<Vec<Entry>, String>>()?;
        if objects.len() != head.objects || objects.iter().any(|one| one.revision > head.revision) {
            return Err(torn());
        }
        Ok(Backup {
            revision: head.revision,
            time: head.time,
            tokens: head.tokens,
            authority: head.ca,
            objects,
        })
    }
}

/// Downloads a backup from a running server, with the kubeconfig of an admin.
///
/// # Errors
/// If the server is unreachable or rejects the request, or if the received backup is incomplete.
pub async fn of_server(kubeconfig: &Path) -> Result<Backup, String> {
    let shown = kubeconfig.display();
    let in_file = |error: &dyn std::fmt::Display| format!("{shown}: {error}");
    let read = Kubeconfig::read_from(kubeconfig).map_err(|error| in_file(&error))?;
    let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    let config = config.map_err(|error| in_file(&error))?;
    let address = config.cluster_url.clone();
    let client = kube::Client::try_from(config).map_err(|error| in_file(&error))?;
    let request = http::Request::get(PATH).body(Vec::new());
    let request = request.map_err(|error| error.to_string())?;
    let text = client.request_text(request).await;
    let text = text.map_err(|error| format!("the server at {address} sent no backup: {error}"))?;
    Backup::read(text.as_bytes())
        .map_err(|why| format!("the backup of the server at {address}: {why}"))
}

fn line(out: &mut Vec<u8>, value: &impl Serialize) -> Result<(), String> {
    serde_json::to_writer(&mut *out, value).map_err(|error| error.to_string())?;
    out.push(b'\n');
    Ok(())
}

fn checksum(bytes: &[u8]) -> String {
    let digest = digest::digest(&digest::SHA256, bytes);
    digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn backup() -> Backup {
        let entry = |key: &str, revision| Entry {
            key: key.into(),
            revision,
            value: Bytes::from_static("{\"a\":\"ü\\n\"}".as_bytes()),
        };
        Backup {
            revision: 9,
            time: "2026-01-01T00:00:00Z".to_owned(),
            tokens: Vec::new(),
            authority: None,
            objects: vec![entry("/a", 3), entry("/b", 9)],
        }
    }

    #[test]
    fn backup_is_read_back() {
        let bytes = backup().to_bytes().unwrap();
        assert_eq!(Backup::read(&bytes), Ok(backup()));
    }

    #[test]
    fn torn_or_altered_file_is_refused() {
        let bytes = backup().to_bytes().unwrap();
        for end in 0..bytes.len() {
            assert!(Backup::read(&bytes[..end]).is_err(), "cut at {end}");
            let mut altered = bytes.clone();
            altered[end] ^= 1;
            assert!(Backup::read(&altered).is_err(), "altered at {end}");
        }
        let twice = [&bytes[..], &bytes[..]].concat();
        assert!(Backup::read(&twice).is_err());
        let newer = String::from_utf8(bytes)
            .unwrap()
            .replacen("backup 1", "backup 2", 1);
        let why = Backup::read(newer.as_bytes()).unwrap_err();
        assert!(why.contains("newer version"), "{why}");
    }
}
