//! Tasks that watch the resources of a server.

use std::collections::HashSet;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::source::kubernetes::client::Connected;
use crate::source::stream::report::Key;

/// Waits for `event`, and for at least `pause`.
pub(super) async fn after(pause: Duration, event: impl Future<Output = ()>) {
    tokio::time::sleep(pause).await;
    event.await;
}

/// Watches of one client. Their tasks end when this is dropped.
#[derive(Default)]
pub(super) struct Watches {
    pub(super) keys: HashSet<Key>,
    pub(super) is_reporting: bool,
    pub(super) tasks: JoinSet<()>,
}

impl Watches {
    /// Ends all watches, so that they start again.
    pub(super) fn clear(&mut self, connected: &Connected) {
        *self = Watches::default();
        connected.signs.clear();
    }
}
