//! A backup into a data directory or an etcd that has nothing yet.
//!
//! Revisions go on far above those of the backup: clients may have seen later ones than it has. Their watches get 410
//! and list again.

use std::fs;
use std::path::Path;

use futures_util::{StreamExt, TryStreamExt, stream};

use super::backup::Backup;
use super::location::Location;
use crate::access::tokens;
use crate::files;
use crate::store::embedded::{EmbeddedStore, STORE_FILE};
use crate::store::etcd::{EtcdSettings, EtcdStore, Shared};
use crate::store::{Expected, Revision, Scan, Store, StoreError, Written};

/// How far revisions are moved: more than a server writes between a backup and its loss.
pub const REVISIONS_SKIPPED: Revision = 1_000_000_000;
/// How many writes to etcd are in flight.
const WRITES_MAX: usize = 64;

/// Stores all that a backup has.
///
/// # Errors
/// If there is anything already, or if it cannot be written.
pub async fn restore(backup: &Backup, into: &Location) -> Result<(), String> {
    match &into.etcd {
        None => restore_in_directory(backup, into),
        Some(etcd) => restore_in_etcd(backup, etcd).await,
    }
}

fn restore_in_directory(backup: &Backup, into: &Location) -> Result<(), String> {
    let data = &into.data;
    let in_data = |error: std::io::Error| format!("{}: {error}", data.display());
    files::make_private_dir(data).map_err(in_data)?;
    let _lock = match files::try_lock(&data.join("lock"))? {
        Some(lock) => lock,
        None => {
            return Err(format!(
                "a server runs on {}: restore into a new directory",
                data.display()
            ));
        }
    };
    if files::unfinished(data).is_ok() {
        check_empty(data)?;
    }
    files::begin(data).map_err(in_data)?;
    let store = data.join(STORE_FILE);
    match fs::remove_file(&store) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(in_data(error)),
        _ => {}
    }
    if let Some(authority) = &backup.authority {
        authority.write_to(data)?;
    }
    tokens::store(&tokens::file_in(data), &backup.tokens).map_err(in_data)?;
    let revision = backup.revision + REVISIONS_SKIPPED;
    EmbeddedStore::restore(&store, revision, &backup.objects)?;
    files::finish(data).map_err(in_data)
}

/// Checks that nothing is in a data directory but the lock, and what a file system has by itself.
fn check_empty(data: &Path) -> Result<(), String> {
    let in_data = |error: std::io::Error| format!("{}: {error}", data.display());
    for entry in fs::read_dir(data).map_err(in_data)? {
        let name = entry.map_err(in_data)?.file_name();
        if name != "lock" && name != "lost+found" {
            return Err(format!(
                "{} is not empty, it has {}: restore into a new directory, or move what it has elsewhere first",
                data.display(),
                name.display()
            ));
        }
    }
    Ok(())
}

async fn restore_in_etcd(backup: &Backup, etcd: &EtcdSettings) -> Result<(), String> {
    let failed = |error: StoreError| {
        format!(
            "the restore did not finish: {error}. Delete all keys below {:?} and run it again",
            etcd.prefix
        )
    };
    let shared = Shared::new(etcd)?;
    let store = EtcdStore::open_for_command(etcd).await?;
    let scan = Scan {
        limit: Some(1),
        ..Scan::default()
    };
    let page = store.scan(scan).await.map_err(|error| error.to_string())?;
    let authority = shared.known_authority().await;
    let is_used = authority.map_err(|error| error.to_string())?.is_some()
        || !shared
            .tokens()
            .await
            .map_err(|error| error.to_string())?
            .is_empty();
    if is_used || !page.entries.is_empty() {
        return Err(format!(
            "etcd has keys below {:?}: stop the servers and delete them, or name another prefix with --etcd-prefix",
            etcd.prefix
        ));
    }
    // First, so that a server that starts too early has no revisions of before.
    let base = backup.revision + REVISIONS_SKIPPED;
    shared.set_base(base).await.map_err(failed)?;
    let writes = backup.objects.iter().map(|entry| {
        let written = store.write(
            entry.key.to_string(),
            Expected::Absent,
            Some(entry.value.clone()),
        );
        async move {
            match written.await? {
                Written::Done(_) => Ok(()),
                Written::Mismatch => Err(StoreError::Failed(format!(
                    "{} was written meanwhile: stop all servers on this etcd",
                    entry.key
                ))),
            }
        }
    });
    let done: Result<(), StoreError> = stream::iter(writes)
        .buffer_unordered(WRITES_MAX)
        .try_collect()
        .await;
    done.map_err(failed)?;
    for token in &backup.tokens {
        let value = serde_json::to_vec(token).map_err(|error| error.to_string())?;
        shared
            .add_token(&token.name, value.into())
            .await
            .map_err(failed)?;
    }
    if let Some(authority) = &backup.authority {
        let value = serde_json::to_vec(authority).map_err(|error| error.to_string())?;
        shared.authority(value.into()).await.map_err(failed)?;
    }
    Ok(())
}
