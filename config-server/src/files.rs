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
    fs::set_permissions(path, Permissions::from_mode(0o700))
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
    let shown = path.display();
    let in_file = |error: io::Error| format!("{shown}: {error}");
    make_private(path).map_err(in_file)?;
    let file = File::open(path).map_err(in_file)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(format!(
            "{shown} is in use by another server: stop it, or give this one a data directory of its own (--data)"
        )),
        Err(TryLockError::Error(error)) => Err(in_file(error)),
    }
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
    match path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}
