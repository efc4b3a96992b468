//! What is in the file: tables, and the errors of redb.

use std::io;

use redb::TableDefinition;

use crate::store::StoreError;

/// Key to (revision, value).
pub const OBJECTS: TableDefinition<'_, &str, (u64, &[u8])> = TableDefinition::new("objects");
/// Revision to (key, revision before, value before, value). A revision of 0 before and an empty value mean none.
pub const LOG: TableDefinition<'_, u64, Logged<'static>> = TableDefinition::new("log");
/// A row of the log.
pub type Logged<'a> = (&'a str, u64, &'a [u8], &'a [u8]);

/// Numbers about the whole.
pub const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// The latest revision.
pub const REVISION: &str = "revision";
/// Every change after this revision is in the log.
pub const FLOOR: &str = "floor";

/// Why something was not done.
#[derive(Debug)]
pub enum Failed {
    /// The store says no.
    Store(StoreError),
    /// redb cannot.
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
