//! Limit of concurrent streams on an HTTP/2 connection.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;

/// Streams on a new connection before the peer's SETTINGS arrive. RFC 9113, section 6.5.3, permits sending at once; the
/// peer could refuse more than one.
pub const STREAMS_BEFORE_SETTINGS: usize = 1;

/// Maximum concurrent streams of one connection.
#[derive(Debug, Default)]
pub struct StreamLimit {
    max: Cell<Option<usize>>,
    ended: Cell<bool>,
    changed: Notify,
}

impl StreamLimit {
    pub(super) fn new() -> Rc<Self> {
        Rc::default()
    }

    /// Returns the number of concurrent streams allowed now.
    #[inline]
    pub fn allowed(&self) -> usize {
        self.max.get().unwrap_or(STREAMS_BEFORE_SETTINGS)
    }

    /// Whether the peer's limit is known.
    pub fn is_known(&self) -> bool {
        self.max.get().is_some()
    }

    /// Whether the connection accepts no more streams.
    pub fn is_ended(&self) -> bool {
        self.ended.get()
    }

    /// Waits until the limit changes or the connection ends; one task waits at a time.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Waits for the peer's limit or the end of the connection, at most this long.
    pub async fn known(&self, wait_max: Duration) {
        let known = async {
            while !self.is_known() && !self.is_ended() {
                self.changed().await;
            }
        };
        // later settings still apply when they arrive
        drop(tokio::time::timeout(wait_max, known).await);
    }

    /// Sets the limit that the peer announced.
    pub(super) fn update(&self, max: Option<usize>) {
        if max.is_some() && self.max.replace(max) != max {
            self.changed.notify_one();
        }
    }

    /// Notes that the connection accepts no more streams.
    pub(super) fn end(&self) {
        if !self.ended.replace(true) {
            self.changed.notify_one();
        }
    }
}
