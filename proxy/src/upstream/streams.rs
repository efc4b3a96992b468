//! How many streams the peer of an HTTP/2 connection allows.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;

/// Streams on a new connection until the peer's SETTINGS say how many it allows (RFC 9113, section 6.5.3 lets us send
/// at once; more than this could only be refused).
pub const STREAMS_BEFORE_SETTINGS: usize = 1;

/// The number of streams that one connection takes at a time.
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

    /// How many streams may be open now.
    #[inline]
    pub fn allowed(&self) -> usize {
        self.max.get().unwrap_or(STREAMS_BEFORE_SETTINGS)
    }

    /// Whether the peer has said how many it allows.
    pub fn is_known(&self) -> bool {
        self.max.get().is_some()
    }

    /// Whether the connection takes no more streams.
    pub fn is_ended(&self) -> bool {
        self.ended.get()
    }

    /// Waits until the peer allows another number than before, or the connection ends; one waits at a time.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Waits for the peer's settings, or the end of the connection, but no longer than this.
    pub async fn known(&self, wait_max: Duration) {
        let known = async {
            while !self.is_known() && !self.is_ended() {
                self.changed().await;
            }
        };
        // late settings are taken when they come
        drop(tokio::time::timeout(wait_max, known).await);
    }

    /// The peer allows so many.
    pub(super) fn update(&self, max: Option<usize>) {
        if max.is_some() && self.max.replace(max) != max {
            self.changed.notify_one();
        }
    }

    /// The connection takes no more streams.
    pub(super) fn end(&self) {
        if !self.ended.replace(true) {
            self.changed.notify_one();
        }
    }
}
