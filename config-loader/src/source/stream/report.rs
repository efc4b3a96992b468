//! What the tasks of servers report to the collector.

use std::sync::Arc;
use std::time::SystemTime;

use tokio::sync::watch;

use crate::diagnostic::Diagnostic;
use crate::proxy_state::ProxyState;
use crate::source::errors::SourceError;
use crate::source::look::ObjectText;

/// A server whose objects are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::source) struct Origin {
    /// Its URL, which the names of its objects begin with.
    pub(in crate::source) name: String,
    /// What it is, for messages: `API server` or `xDS server`.
    pub(in crate::source) title: &'static str,
    /// Whether it is that of a remote cluster, without which the proxy can do after a while.
    pub(in crate::source) is_remote: bool,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.title, self.name)
    }
}

/// How many messages of watches may wait to be taken in; watches pause beyond it, and with them their servers.
pub(in crate::source) const MESSAGES_MAX: usize = 256;

/// The state of the proxy as it changes; none before the first configuration is in effect.
pub(in crate::source) type States = watch::Receiver<Option<Arc<ProxyState>>>;

/// One change: what a document is called, and its text; none if the object is gone.
pub(in crate::source) type Change = (Arc<str>, Option<ObjectText>);

/// A resource of a server, as `virtualservices.networking.istio.io`, with the namespace where only one is watched.
pub(in crate::source) type Key = Arc<str>;

/// What a task reports to the collector.
#[derive(Debug)]
pub(in crate::source) enum Report {
    /// These resources are watched from now on, or waited for.
    Watching(Vec<Key>),
    /// There is a saved state, which takes effect if the server does not answer.
    Saved,
    /// What changed, in order.
    Changes(Vec<Change>),
    /// What was saved of objects whose newest texts follow: the last good ones, if those are rejected.
    LastGood(Vec<(Arc<str>, String)>),
    /// Everything of this resource up to this revision of the server has been told.
    Seen(Key, u64),
    /// What was saved is in effect, since the server, or one of its resources, says nothing.
    Restored(Restored),
    /// There is a complete list of this resource.
    Listed(Key),
    /// There is a complete list of this resource, or there cannot be one for now.
    Settled(Key),
    /// The credentials do not allow this resource, and the proxy needs it.
    Forbidden(Key),
    /// A list, a watch or the stream failed, which is counted.
    Failed(SourceError),
    /// What is wrong with a resource, or no longer.
    Trouble(Key, Option<Diagnostic>),
    /// What is wrong with the server as a whole, or no longer.
    ServerTrouble(Option<Diagnostic>),
}

/// What was saved.
#[derive(Debug)]
pub(in crate::source) struct Restored {
    /// The resource; none for all.
    pub(in crate::source) key: Option<Key>,
    /// When it was saved.
    pub(in crate::source) at: SystemTime,
    pub(in crate::source) changes: Vec<Change>,
}

/// A report, and the number of the server that it is of.
pub(in crate::source) type Message = (usize, Report);
