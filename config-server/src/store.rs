//! Where objects are kept: a map of keys to values in which every write has a revision.
//!
//! The embedded store ([`embedded`]) is a file of this process; that in [`etcd`] is shared by replicas. Both keep the same
//! promises: a write is durable before it is acknowledged, revisions only rise, and [`History`] has every change after its
//! floor, in order.

pub mod embedded;
pub mod etcd;
pub mod history;
pub mod pages;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

pub use history::History;

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
    /// How many bytes it holds.
    pub fn size(&self) -> usize {
        let length = |value: &Option<Bytes>| value.as_ref().map_or(0, Bytes::len);
        self.key.len() + length(&self.value) + length(&self.previous)
    }
}

/// What a write needs the key to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Absent.
    Absent,
    /// As that write left it.
    At(Revision),
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is durable.
    Done(Revision),
    /// The key was not as expected; nothing was written.
    Mismatch,
}

/// Which keys a scan returns.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// What the keys begin with.
    pub prefix: String,
    /// Only keys after this one.
    pub after: Option<String>,
    /// At most so many.
    pub limit: Option<usize>,
    /// As of that write; none for the latest.
    pub at: Option<Revision>,
}

/// What a scan returned, in the order of keys.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The write as of which it is.
    pub revision: Revision,
    /// The entries.
    pub entries: Vec<Entry>,
    /// How many more there are after them.
    pub remaining: usize,
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

/// What a store answers.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A durable map with revisions.
pub trait Store: Send + Sync + 'static {
    /// The latest value of a key, if there is one, with the latest revision of the store.
    fn get<'a>(&'a self, key: &'a str) -> Reply<'a, (Option<Entry>, Revision)>;

    /// Entries by prefix.
    fn scan(&self, scan: Scan) -> Reply<'_, Page>;

    /// Puts a value, or deletes the key if there is none, if the key is as expected. Returns once that is durable.
    fn write(&self, key: String, expected: Expected, value: Option<Bytes>) -> Reply<'_, Written>;

    /// The changes of late. Those of other replicas arrive a little after they were made.
    fn history(&self) -> &History;

    /// The latest revision of the store, with the writes of all replicas.
    fn latest(&self) -> Reply<'_, Revision>;

    /// Whether this replica does what only one of them may do. At most one leads.
    fn is_leader(&self) -> bool;
}
