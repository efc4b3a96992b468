//! Entries of a store, their changes, and the errors of reading them.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

/// The number of a write. It rises with every write to any key.
pub type Revision = u64;

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Arc<str>,
    /// The write that made the value.
    pub revision: Revision,
    /// The value.
    pub value: Bytes,
}

/// A change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The key.
    pub key: Arc<str>,
    /// The write.
    pub revision: Revision,
    /// The new value; none if the key was deleted.
    pub value: Option<Bytes>,
    /// The value before; none if the key was absent.
    pub previous: Option<Bytes>,
}

impl Event {
    /// Bytes of the key and both values.
    pub fn size(&self) -> usize {
        let length = |value: &Option<Bytes>| value.as_ref().map_or(0, Bytes::len);
        self.key.len() + length(&self.value) + length(&self.previous)
    }
}

/// Why a store did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The revision is older than the history.
    Compacted,
    /// The revision is not reached yet.
    Future {
        /// The latest revision.
        current: Revision,
    },
    /// There is no space for the write.
    Full(String),
    /// The store failed: a broken disk, a lost connection.
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
