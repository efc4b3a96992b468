//! Entries of a store, their changes, and store errors.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

/// Revision of the store, which increases with every write to any key.
pub type Revision = u64;

/// Key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Key of the entry.
    pub key: Arc<str>,
    /// Revision of the write that set the value.
    pub revision: Revision,
    /// Encoded object.
    pub value: Bytes,
}

/// Change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Changed key.
    pub key: Arc<str>,
    /// Revision of the change.
    pub revision: Revision,
    /// New value; `None` if the key was deleted.
    pub value: Option<Bytes>,
    /// Previous value; `None` if the key was absent.
    pub previous: Option<Bytes>,
}

impl Event {
    /// Returns the size of the key and both values, in bytes.
    pub fn size(&self) -> usize {
        let length = |value: &Option<Bytes>| value.as_ref().map_or(0, Bytes::len);
        self.key.len() + length(&self.value) + length(&self.previous)
    }
}

/// Error of a store operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// Compaction: the revision is older than the history.
    Compacted,
    /// Future revision, which the store has not reached.
    Future {
        /// Latest revision.
        current: Revision,
    },
    /// Lack of space for the write.
    Full(String),
    /// Failure of the store, such as a disk error or a lost connection.
    Failed(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Compacted => f.write_str("the revision is older than the history"),
            StoreError::Future { current } => {
                write!(
                    f,
                    "the revision is not reached yet, the latest is {current}"
                )
            }
            StoreError::Full(why) | StoreError::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for StoreError {}
