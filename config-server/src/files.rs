//! Files and directories that other users cannot read.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Creates a directory with mode 0700 if absent.
///
/// # Errors
/// If the directory cannot be created.
pub(crate) fn make_private_dir(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o700))?;
    match sync_parent(path) {
        // The user may lack permission to read the parent directory.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => other,
    }
}

/// Whether users outside the directory's group have any access to it.
pub(crate) fn is_open_to_others(directory: &Path) -> bool {
    let found = fs::metadata(directory);
    found.is_ok_and(|found| found.permissions().mode() & 0o007 != 0)
}

/// Syncs the parent directory of a file. Without it, a new file may be lost in a power failure.
///
/// # Errors
/// If the directory cannot be opened or synced.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => File::open(parent)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

/// Creates an empty file with mode 0600 if absent; an existing file gets that mode.
///
/// # Errors
/// If the file cannot be created.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let file = options.append(true).create(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))
}

/// Locks a data directory through a file in it. The lock lasts until the file is closed.
///
/// # Errors
/// If another server holds the lock, or if the file cannot be created, as a message.
pub(crate) fn lock(path: &Path) -> Result<File, String> {
    try_lock(path)?.ok_or_else(|| {
        format!(
            "{} is in use by another server: stop it, or give this one a data directory of its own (--data)",
            path.display()
        )
    })
}

/// Locks a data directory as [`lock`] does. Returns `None` if another process holds the lock.
///
/// # Errors
/// If the file cannot be created, as a message.
pub(crate) fn try_lock(path: &Path) -> Result<Option<File>, String> {
    let shown = path.display();
    let in_file = |error: io::Error| {
        format!(
            "{shown} cannot be locked: {error}. It must be a file that this user may read and write"
        )
    };
    make_private(path).map_err(in_file)?;
    let file = File::open(path).map_err(in_file)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(in_file(error)),
    }
}

/// Name of the marker file that exists in a data directory during a restore.
const RESTORING: &str = "restore.unfinished";

/// Checks that no restore into the data directory was interrupted.
///
/// # Errors
/// If a restore was interrupted, as a message.
pub(crate) fn check_restored(data: &Path) -> Result<(), String> {
    match data.join(RESTORING).exists() {
        false => Ok(()),
        true => Err(format!(
            "{} has a part of a backup, whose restore did not finish: run `strait control restore` again",
            data.display()
        )),
    }
}

/// Creates the marker of a restore.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn begin_restore(data: &Path) -> io::Result<()> {
    write_private(&data.join(RESTORING), b"")
}

/// Removes the marker of a restore.
///
/// # Errors
/// If the file cannot be removed.
pub(crate) fn finish_restore(data: &Path) -> io::Result<()> {
    fs::remove_file(data.join(RESTORING))?;
    File::open(data)?.sync_all()
}

/// Replaces a file atomically by one with mode 0600, and syncs it to disk.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let part = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&part)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&part, path)?;
    sync_parent(path)
}
