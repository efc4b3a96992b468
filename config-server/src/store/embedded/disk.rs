//! File of the store behind redb, with its disk errors.
//!
//! After an I/O error, redb rejects all operations until it is reopened. The file is opened and locked once for the
//! life of the process. Each opening of redb gets its own `Disk`, and the earlier one can no longer write.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::{Builder, Database, DatabaseError, StorageBackend};
use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
use rustix::io::Errno;

use crate::files;

/// Size of redb's cache, in bytes. The kernel's page cache has the same data. The default of redb is 1 GiB.
const CACHE_BYTES: usize = 64 << 20;

/// File of a store.
#[derive(Debug)]
pub(super) struct StoreFile {
    path: PathBuf,
    file: Arc<File>,
    /// Whether a sync has failed. The content of the disk is unknown from then on.
    is_unsynced: Arc<AtomicBool>,
}

/// Open database, with the switch that ends its access to the file.
#[derive(Debug)]
pub(super) struct Opened {
    pub database: Arc<Database>,
    is_live: Arc<AtomicBool>,
}

impl Opened {
    /// Revokes the database's access to the file.
    pub(super) fn fence(&self) {
        self.is_live.store(false, Ordering::SeqCst);
    }
}

impl StoreFile {
    /// Opens and locks the file, and creates it if absent.
    ///
    /// # Errors
    /// If another process has locked the file, or if it cannot be opened, as a message.
    pub(super) fn open(path: &Path) -> Result<StoreFile, String> {
        let shown = path.display();
        let in_file = |error: io::Error| {
            format!(
                "{shown} cannot be opened: {error}. It must be a file that this user may read and write"
            )
        };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(in_file)?;
        file.set_permissions(std::fs::Permissions::from_mode(0o600))
            .map_err(in_file)?;
        files::sync_parent(path).map_err(in_file)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(format!(
                    "{shown} is in use by another process: each data directory belongs to one server"
                ));
            }
            Err(TryLockError::Error(error)) => return Err(in_file(error)),
        }
        Ok(StoreFile {
            path: path.to_owned(),
            file: Arc::new(file),
            is_unsynced: Arc::default(),
        })
    }

    /// Opens the database and checks every page.
    ///
    /// # Errors
    /// If the file is damaged or cannot be read, as a message.
    pub(super) fn check_and_open(&self) -> Result<Opened, String> {
        let shown = self.path.display();
        self.database(true).map_err(|error| match error {
            Refused::Io(why) => format!("{shown} cannot be opened: {why}"),
            Refused::Damaged(why) => format!(
                "{shown} is damaged: {why}. Restore a backup into a new data directory with `strait control restore`, and \
                 keep this file"
            ),
        })
    }

    /// Reopens the database after a disk error.
    ///
    /// # Errors
    /// If the file is damaged or cannot be read.
    pub(super) fn reopen(&self) -> Result<Opened, String> {
        self.database(false).map_err(|error| match error {
            Refused::Io(why) | Refused::Damaged(why) => why,
        })
    }

    fn database(&self, is_checked: bool) -> Result<Opened, Refused> {
        let is_live = Arc::new(AtomicBool::new(true));
        let disk = Disk {
            file: Arc::clone(&self.file),
            is_live: Arc::clone(&is_live),
            is_unsynced: Arc::clone(&self.is_unsynced),
        };
        let open = || {
            Builder::new()
                .set_cache_size(CACHE_BYTES)
                .set_check_integrity_on_open(is_checked)
                .create_with_backend(disk)
        };
        // redb may panic on a file that another program has changed.
        let opened = catch_unwind(AssertUnwindSafe(open)).unwrap_or_else(|_| {
            Err(DatabaseError::Storage(redb::StorageError::Corrupted(
                "its pages are inconsistent".to_owned(),
            )))
        });
        let database = opened.map_err(Refused::from)?;
        Ok(Opened {
            database: Arc::new(database),
            is_live,
        })
    }

    /// Whether a sync has failed.
    pub(super) fn is_unsynced(&self) -> bool {
        self.is_unsynced.load(Ordering::SeqCst)
    }

    /// Returns the number of bytes of the file system that this user may write; `None` if unknown.
    pub(super) fn free_bytes(&self) -> Option<u64> {
        let stat = fstatvfs(&*self.file).ok()?;
        Some(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

/// Reason why a database was not opened.
enum Refused {
    Io(String),
    Damaged(String),
}

impl From<DatabaseError> for Refused {
    fn from(error: DatabaseError) -> Refused {
        match error {
            DatabaseError::Storage(redb::StorageError::Io(error))
                if error.kind() == io::ErrorKind::InvalidData =>
            {
                Refused::Damaged(error.to_string())
            }
            DatabaseError::Storage(redb::StorageError::Io(error))
                if error.kind() == io::ErrorKind::UnexpectedEof =>
            {
                Refused::Damaged("it ends too early".to_owned())
            }
            DatabaseError::Storage(redb::StorageError::Io(error)) => Refused::Io(error.to_string()),
            other => Refused::Damaged(other.to_string()),
        }
    }
}

/// Access to the file for one opening of the database.
#[derive(Debug)]
struct Disk {
    file: Arc<File>,
    is_live: Arc<AtomicBool>,
    is_unsynced: Arc<AtomicBool>,
}

impl Disk {
    fn live(&self) -> io::Result<&File> {
        match self.is_live.load(Ordering::SeqCst) {
            true => Ok(&self.file),
            false => Err(io::Error::other("the store was opened again")),
        }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.live()?.metadata()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.live()?.read_exact_at(out, offset)
    }

    /// Allocates the space of a growing file at once, so that a full disk is detected before a write.
    fn set_len(&self, len: u64) -> io::Result<()> {
        let file = self.live()?;
        let now = file.metadata()?.len();
        if len > now {
            match fallocate(file, FallocateFlags::empty(), now, len - now) {
                Ok(()) => return Ok(()),
                // Some file systems do not support `fallocate`.
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {}
                Err(error) => return Err(error.into()),
            }
        }
        file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        let synced = self.live()?.sync_data();
        if synced.is_err() {
            self.is_unsynced.store(true, Ordering::SeqCst);
        }
        synced
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.live()?.write_all_at(data, offset)
    }
}
