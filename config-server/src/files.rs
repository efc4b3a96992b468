//! Files that others must not read.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Makes a directory for this user only, unless there is one.
///
/// # Errors
/// If it cannot be made.
pub fn make_private_dir(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o700))?;
    match sync_parent(path) {
        // A parent may be one that this user cannot list.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => other,
    }
}

/// Whether users outside of its group may use a directory.
pub fn is_open_to_others(directory: &Path) -> bool {
    let found = fs::metadata(directory);
    found.is_ok_and(|found| found.permissions().mode() & 0o007 != 0)
}

/// Syncs the directory of a file, without which a new file may be gone after a power loss.
///
/// # Errors
/// If it cannot be opened or synced.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => File::open(parent)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

/// Makes an empty file with mode 0600 unless there is a file; one that there is gets that mode.
///
/// # Errors
/// If it cannot be made.
pub fn make_private(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let file = options.append(true).create(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))
}

/// Locks a data directory by a file in it, for as long as the file is open.
///
/// # Errors
/// If another server has it, or if the file cannot be made. The text is for a person.
pub fn lock(path: &Path) -> Result<File, String> {
    try_lock(path)?.ok_or_else(|| {
        format!(
            "{} is in use by another server: stop it, or give this one a data directory of its own (--data)",
            path.display()
        )
    })
}

/// As [`lock`]; none if another process has it.
///
/// # Errors
/// If the file cannot be made. The text is for a person.
pub fn try_lock(path: &Path) -> Result<Option<File>, String> {
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

/// A file in a data directory while a backup is being restored into it.
const RESTORING: &str = "restore.unfinished";

/// Checks that no restore into a data directory was interrupted.
///
/// # Errors
/// If one was. The text is for a person.
pub fn unfinished(data: &Path) -> Result<(), String> {
    match data.join(RESTORING).exists() {
        false => Ok(()),
        true => Err(format!(
            "{} has a part of a backup, whose restore did not finish: run `strait control restore` again",
            data.display()
        )),
    }
}

/// Notes that a restore begins.
///
/// # Errors
/// If it cannot be written.
pub fn begin(data: &Path) -> io::Result<()> {
    write_private(&data.join(RESTORING), b"")
}

/// Notes that a restore is done.
///
/// # Errors
/// If it cannot be written.
pub fn finish(data: &Path) -> io::Result<()> {
    fs::remove_file(data.join(RESTORING))?;
    File::open(data)?.sync_all()
}

/// Replaces a file at once by one with mode 0600, and syncs it to disk.
///
/// # Errors
/// If it cannot be written.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
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
