//! Revision of a source: the newest revision of its server that an update contains, and the time when it was received.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

/// Name of the files as a source.
pub const FILES: &str = "files";

/// Time when a change was received, for latency metrics and for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Time by the monotonic clock.
    pub instant: Instant,
    /// Time by the wall clock.
    pub time: SystemTime,
}

impl Received {
    /// Returns the current time.
    pub fn now() -> Received {
        Received::at(Instant::now())
    }

    /// Returns the time of a recent `instant`.
    pub fn at(instant: Instant) -> Received {
        Received {
            instant,
            time: SystemTime::now() - instant.elapsed(),
        }
    }
}

/// Revision of one source, as of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRevision {
    /// Source: [`FILES`], or the URL of a server, such as `kubernetes://east`.
    pub source: Arc<str>,
    /// Newest revision of the server that the update contains. `None` if the source has no revisions.
    ///
    /// For a Kubernetes API server this is the highest `resourceVersion` of all of its watches, as a number.
    pub revision: Option<Arc<str>>,
    /// Time when the oldest change of this update was received.
    pub received: Received,
    /// Time when the state in effect was saved; `None` once the server has responded (`--state`).
    pub restored: Option<SystemTime>,
}

impl SourceRevision {
    /// Returns the revision as a number, if it is one.
    pub fn number(&self) -> Option<u64> {
        self.revision.as_ref()?.parse().ok()
    }

    /// Whether the source's content differs between this revision and `other`.
    pub(crate) fn differs(&self, other: &SourceRevision) -> bool {
        self.revision != other.revision || self.restored != other.restored
    }
}
