//! Restore of a backup into an empty data directory or etcd prefix.
//!
//! Revisions continue far above those of the backup, since clients may have seen later ones than it contains. Their
//! watches get 410 and list again.

use std::fs;
use std::path::Path;

use futures_util::{StreamExt, TryStreamExt, stream};

use super::backup::Backup;
use super::location::Location;
use crate::access::tokens;
use crate::files;
use crate::store::embedded::{EmbeddedStore, STORE_FILE};
use crate::store::etcd::{EtcdSettings, EtcdStore, Shared};
use crate::store::{Entry, Expected, Revision, Scan, Store, StoreError, Written};

/// Increase of revisions at a restore, which exceeds the number of writes between a backup and the loss of the store.
pub const REVISIONS_SKIPPED: Revision = 1_000_000_000;
/// Maximum number of concurrent writes to etcd.
const WRITES_MAX: usize = 64;

/// Restores a backup.
///
/// # Errors
/// If the destination is not empty, or if it cannot be written.
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
    if files::check_restored(data).is_ok() {
        check_empty(data)?;
    }
    files::begin_restore(data).map_err(in_data)?;
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
    files::finish_restore(data).map_err(in_data)
}

/// Checks that a data directory is empty, apart from the lock and `lost+found`.
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

/// Restores a backup below an empty etcd prefix, or resumes an interrupted restore of the same backup.
async fn restore_in_etcd(backup: &Backup, etcd: &EtcdSettings) -> Result<(), String> {
    let failed = |error: StoreError| {
        format!(
            "the restore did not finish: {error}. Run it again with the same backup: it goes on where it stopped"
        )
    };
    let shared = Shared::new(etcd)?;
    let store = EtcdStore::open_for_command(etcd).await?;
    begin_in_etcd(backup, etcd, &shared, &store).await?;
    // Set the offset first, so that all revisions are above those of the backup.
    let base = backup.revision + REVISIONS_SKIPPED;
    shared.set_base(base).await.map_err(failed)?;
    let writes = backup
        .objects
        .iter()
        .map(|entry| restore_entry(&store, entry));
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
    shared.finish_restore().await.map_err(failed)
}

/// Returns a name of the backup that distinguishes an interrupted restore from that of another backup.
pub fn name_of(backup: &Backup) -> String {
    format!(
        "{} of revision {} with {} objects",
        backup.time,
        backup.revision,
        backup.objects.len()
    )
}

/// Records the start of a restore, or detects an interrupted one of the same backup.
async fn begin_in_etcd(
    backup: &Backup,
    etcd: &EtcdSettings,
    shared: &Shared,
    store: &EtcdStore,
) -> Result<(), String> {
    let in_words = |error: StoreError| error.to_string();
    let name = name_of(backup);
    match shared.restoring().await.map_err(in_words)? {
        Some(other) if other != name => {
            return Err(format!(
                "the restore of another backup, {other}, did not finish: restore that one, or delete all keys below {:?}",
                etcd.prefix
            ));
        }
        Some(_) => return Ok(()),
        None => {}
    }
    let scan = Scan {
        limit: Some(1),
        ..Scan::default()
    };
    let page = store.scan(scan).await.map_err(in_words)?;
    let is_used = shared.known_authority().await.map_err(in_words)?.is_some()
        || !shared.tokens().await.map_err(in_words)?.is_empty();
    if is_used || !page.entries.is_empty() {
        return Err(format!(
            "etcd has keys below {:?}: stop the servers and delete them, or name another prefix with --etcd-prefix",
            etcd.prefix
        ));
    }
    let has_begun = shared.begin_restore(name.clone()).await.map_err(in_words)?;
    // the last write of an interrupted restore may have arrived only now
    let is_own = has_begun || shared.restoring().await.map_err(in_words)? == Some(name);
    match is_own {
        true => Ok(()),
        false => Err("another restore into this etcd has just begun".to_owned()),
    }
}

/// Stores an object, unless an interrupted restore already did.
async fn restore_entry(store: &EtcdStore, entry: &Entry) -> Result<(), StoreError> {
    let (key, value) = (entry.key.to_string(), entry.value.clone());
    if let Written::Done(_) = store.write(key, Expected::Absent, Some(value)).await? {
        return Ok(());
    }
    let (found, _) = store.get(&entry.key).await?;
    match found {
        Some(found) if found.value == entry.value => Ok(()),
        _ => Err(StoreError::Failed(format!(
            "{} was written meanwhile: stop all servers on this etcd",
            entry.key
        ))),
    }
}
