//! Where objects are kept: a map of keys to values in which every write has a revision.
//!
//! The embedded store ([`embedded`]) is a file of this process; that in [`etcd`] is shared by replicas. Both keep the same
//! promises: a write is durable before it is acknowledged, revisions only rise, and [`History`] has every change after its
//! floor, in order.

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
