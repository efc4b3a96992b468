//! Storage of objects: a map from keys to values with a revision for every write.
//!
//! The embedded store ([`embedded`]) is a file of this process; the store in [`etcd`] is shared by replicas. Both
//! guarantee that a write is durable before it is acknowledged, that revisions only increase, and that [`History`] has
//! every change after its floor, in order.

pub mod embedded;
pub mod etcd;
mod event;
pub mod history;
pub mod pages;

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;

pub use event::{Entry, Event, Revision, StoreError};
pub use history::History;

/// Precondition of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Key that does not exist.
    Absent,
    /// Key that was last written at this revision.
    At(Revision),
}

/// Result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Durable write, with its revision.
    Done(Revision),
    /// Precondition that did not match; nothing was written.
    Mismatch,
}

/// Range of keys that a scan returns.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// Prefix of the keys.
    pub prefix: String,
    /// Exclusive lower bound of the keys.
    pub after: Option<String>,
    /// Maximum number of entries.
    pub limit: Option<usize>,
    /// Revision of the scan; `None` for the latest.
    pub at: Option<Revision>,
}

/// Result of a scan, sorted by key.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Revision of the scan.
    pub revision: Revision,
    /// Entries of the page.
    pub entries: Vec<Entry>,
    /// Number of entries after the page.
    pub remaining: usize,
}

/// Future of a store operation.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Durable map with revisions.
pub trait Store: Send + Sync + 'static {
    /// Returns the latest entry of a key, if there is one, and the latest revision of the store.
    fn get<'a>(&'a self, key: &'a str) -> Reply<'a, (Option<Entry>, Revision)>;

    /// Returns entries by prefix.
    fn scan(&self, scan: Scan) -> Reply<'_, Page>;

    /// Writes a value, or deletes the key if `value` is `None`, if the precondition matches. Returns once the write is
    /// durable.
    fn write(&self, key: String, expected: Expected, value: Option<Bytes>) -> Reply<'_, Written>;

    /// Returns the history of recent changes. Changes of other replicas arrive with a short delay.
    fn history(&self) -> &History;

    /// Returns the latest revision of the store, including the writes of all replicas.
    fn latest(&self) -> Reply<'_, Revision>;

    /// Whether this replica is the leader. At most one replica is.
    fn is_leader(&self) -> bool;

    /// Whether every write is refused.
    fn is_read_only(&self) -> bool {
        false
    }
}
