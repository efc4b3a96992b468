//! Reports from the servers' tasks to the collector.

use std::sync::Arc;
use std::time::SystemTime;

use tokio::sync::watch;

use crate::diagnostic::Diagnostic;
use crate::proxy_state::ProxyState;
use crate::source::errors::SourceError;
use crate::source::look::ObjectText;

/// Server whose objects are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::source) struct Origin {
    /// URL of the server: the prefix of its documents' names.
    pub(in crate::source) name: String,
    /// Kind of server in messages: `API server` or `xDS server`.
    pub(in crate::source) title: &'static str,
    /// Whether it is the server of a remote cluster. The proxy starts without it after a while.
    pub(in crate::source) is_remote: bool,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.title, self.name)
    }
}

/// Capacity of the channel of reports. When it is full, watches pause, which slows down their servers.
pub(in crate::source) const MESSAGES_MAX: usize = 256;

/// State of the proxy as it changes; `None` before the first configuration is in effect.
pub(in crate::source) type States = watch::Receiver<Option<Arc<ProxyState>>>;

/// Change: name of a document, and its text; `None` if the object was deleted.
pub(in crate::source) type Change = (Arc<str>, Option<ObjectText>);

/// Resource of a server, such as `virtualservices.networking.istio.io`, with the namespace if only one is watched.
pub(in crate::source) type Key = Arc<str>;

/// Report from a task to the collector.
#[derive(Debug)]
pub(in crate::source) enum Report {
    /// These resources are watched from now on, or waited for.
    Watching(Vec<Key>),
    /// A saved state exists, which takes effect if the server does not respond.
    Saved,
    /// Changes, in order.
    Changes(Vec<Change>),
    /// Saved text of objects whose newest text follows: the last good version, if the newest is rejected.
    LastGood(Vec<(Arc<str>, String)>),
    /// All changes of this resource up to this server revision have been reported.
    Seen(Key, u64),
    /// Saved objects take effect, because the server or one of its resources does not respond.
    Restored(Restored),
    /// A complete list of this resource has arrived.
    Listed(Key),
    /// Startup no longer waits for this resource: it is listed, or cannot be listed for now.
    Settled(Key),
    /// The credentials do not allow this resource, and the proxy needs it.
    Forbidden(Key),
    /// A list, a watch or the stream failed. The collector counts it.
    Failed(SourceError),
    /// Diagnostic of a resource; `None` once it is resolved.
    Trouble(Key, Option<Diagnostic>),
    /// Diagnostic of the server as a whole; `None` once it is resolved.
    ServerTrouble(Option<Diagnostic>),
}

/// Saved objects that take effect.
#[derive(Debug)]
pub(in crate::source) struct Restored {
    /// Resource; `None` for all.
    pub(in crate::source) key: Option<Key>,
    /// Time when the objects were saved.
    pub(in crate::source) at: SystemTime,
    pub(in crate::source) changes: Vec<Change>,
}

/// Report with the number of its server.
pub(in crate::source) type Message = (usize, Report);
