//! Tables of the store file, and errors of redb.

use std::io;

use redb::TableDefinition;

use crate::store::StoreError;

/// Table of objects: key to (revision, value).
pub(super) const OBJECTS: TableDefinition<'_, &str, (u64, &[u8])> = TableDefinition::new("objects");
/// Table of changes: revision to (key, revision before, value before, value). A revision of 0 and an empty value mean
/// `None`.
pub(super) const LOG: TableDefinition<'_, u64, Logged<'static>> = TableDefinition::new("log");
/// Row of the table of changes.
pub(super) type Logged<'a> = (&'a str, u64, &'a [u8], &'a [u8]);

/// Table of counters of the store.
pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// Key of the latest revision.
pub(super) const REVISION: &str = "revision";
/// Key of the floor: the table of changes has every change after this revision.
pub(super) const FLOOR: &str = "floor";

/// Error of a store operation.
#[derive(Debug)]
pub enum Failed {
    /// Error of the store, such as a full disk.
    Store(StoreError),
    /// Error of redb.
    Redb(redb::Error),
}

impl<E: Into<redb::Error>> From<E> for Failed {
    fn from(error: E) -> Failed {
        Failed::Redb(error.into())
    }
}

impl From<Failed> for StoreError {
    fn from(failed: Failed) -> StoreError {
        match failed {
            Failed::Store(error) => error,
            Failed::Redb(redb::Error::Io(error)) if is_full(&error) => StoreError::Full(format!(
                "the disk of the data directory is full ({error}): free space there; reads go on meanwhile"
            )),
            Failed::Redb(redb::Error::Io(error)) => {
                StoreError::Failed(format!("the disk of the data directory failed: {error}"))
            }
            Failed::Redb(other) => StoreError::Failed(format!("the store failed: {other}")),
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}
