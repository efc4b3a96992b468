//! What the tasks of servers report to the collector.

use std::sync::Arc;
use std::time::SystemTime;

use crate::diagnostic::Diagnostic;

/// How many messages of watches may wait to be taken in; watches pause beyond it, and with them their servers.
pub(super) const MESSAGES_MAX: usize = 256;

/// One change: what a document is called, and its text; none if the object is gone.
pub(super) type Change = (Arc<str>, Option<String>);

/// A resource of a server, as `virtualservices.networking.istio.io`, with the namespace where only one is watched.
pub(super) type Key = Arc<str>;

/// What a task reports to the collector.
#[derive(Debug)]
pub(super) enum Report {
    /// These resources are watched from now on.
    Watching(Vec<Key>),
    /// What changed, in order.
    Changes(Vec<Change>),
    /// What was saved is in effect, since the server, or one of its resources, says nothing.
    Restored(Restored),
    /// There is a complete list of this resource, or there cannot be one for now.
    Settled(Key),
    /// What is wrong with a resource, or no longer.
    Trouble(Key, Option<Diagnostic>),
    /// What is wrong with the server as a whole, or no longer.
    ServerTrouble(Option<Diagnostic>),
}

/// What was saved.
#[derive(Debug)]
pub(super) struct Restored {
    /// The resource; none for all.
    pub(super) key: Option<Key>,
    /// When it was saved.
    pub(super) at: SystemTime,
    pub(super) changes: Vec<Change>,
}

/// A report, and the number of the server that it is of.
pub(super) type Message = (usize, Report);
