//! How far a source is: the newest revision of its server that an update contains, and when that was received.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

/// What files are called as a source.
pub const FILES: &str = "files";

/// When something was received, for measuring and for showing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// By the monotonic clock.
    pub instant: Instant,
    /// By the wall clock.
    pub time: SystemTime,
}

impl Received {
    /// Received at this moment.
    pub fn now() -> Received {
        Received::at(Instant::now())
    }

    /// Received at an instant of a moment ago.
    pub fn at(instant: Instant) -> Received {
        Received {
            instant,
            time: SystemTime::now() - instant.elapsed(),
        }
    }
}

/// How far one source is, as of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRevision {
    /// The source: [`FILES`], or the URL of a server, such as `kubernetes://east`.
    pub source: Arc<str>,
    /// The newest revision of the server that the update contains; none if the source has no revisions.
    ///
    /// Of a Kubernetes API server this is the highest `resourceVersion` of all of its watches, as a number.
    pub revision: Option<Arc<str>>,
    /// When the oldest change was received that came with this update.
    pub received: Received,
    /// When the state was saved that stands in for the server until it answers (`--state`).
    pub restored: Option<SystemTime>,
}

impl SourceRevision {
    /// The revision as a number, if it is one.
    pub fn number(&self) -> Option<u64> {
        self.revision.as_ref()?.parse().ok()
    }

    /// Whether this says something else than `other` about what the source contains.
    pub(crate) fn differs(&self, other: &SourceRevision) -> bool {
        self.revision != other.revision || self.restored != other.restored
    }
}
