//! Audit log: one line of JSON per write.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::access::User;
use crate::api::{Call, Change};
use crate::clock;
use crate::status::Failure;

/// Maximum size of the file, in bytes. A larger file is renamed and a new one begun.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Audit log of a server.
#[derive(Debug)]
pub(crate) struct Audit {
    path: PathBuf,
    file: Mutex<File>,
    /// Number of lines lost since the last successful write to the file.
    missing: AtomicU64,
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

impl Audit {
    /// Opens the log file for appending.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub(crate) fn at(path: PathBuf) -> io::Result<Audit> {
        let file = Mutex::new(open(&path)?);
        let missing = AtomicU64::new(0);
        Ok(Audit {
            path,
            file,
            missing,
        })
    }

    /// Records the outcome of a write.
    pub(crate) fn record(&self, user: &User, call: &Call, outcome: &Result<Change, Failure>) {
        let target = &call.target;
        let mut name = target.name.clone().unwrap_or_default();
        let (code, before, after) = match outcome {
            Ok(change) => {
                name.clone_from(&change.name);
                (change.answer.code, change.before, change.after)
            }
            Err(failure) => {
                // The name of an object that was not created is only in the body.
                if let Some(named) = failure.details.get("name").and_then(Value::as_str) {
                    named.clone_into(&mut name);
                }
                (failure.code, None, None)
            }
        };
        let line = json!({
            "time": clock::now(), "user": user.name, "role": user.role.to_string(), "verb": call.verb(),
            "resource": target.resource.qualified(), "namespace": target.namespace, "name": name,
            "subresource": if target.is_status { "status" } else { "" }, "dryRun": call.params.has("dryRun"),
            "code": code.as_u16(), "before": before, "after": after,
        });
        self.write(&line);
    }

    /// Appends a line.
    pub(crate) fn write(&self, line: &Value) {
        let file = self.path.display();
        match self.append(&format!("{line}\n")) {
            Ok(()) => match self.missing.swap(0, Ordering::Relaxed) {
                0 => {}
                missing => {
                    tracing::warn!(%file, missing, "the audit log is written again; lines are missing");
                }
            },
            Err(error) => {
                if self.missing.fetch_add(1, Ordering::Relaxed) == 0 {
                    tracing::error!(%file, %error, "the audit log cannot be written");
                }
            }
        }
    }

    fn append(&self, line: &str) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.metadata()?.len() > FILE_BYTES_MAX {
            std::fs::rename(&self.path, self.path.with_extension("log.1"))?;
            *file = open(&self.path)?;
        }
        file.write_all(line.as_bytes())
    }
}
