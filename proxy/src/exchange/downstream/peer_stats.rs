//! Metrics with the identity of a connection's client, cached with the connection.

use std::cell::RefCell;
use std::sync::Arc;

use crate::telemetry::RequestStats;

/// Metrics of one client's requests. Most connections to a workload have one destination, so that only the last result
/// is cached.
#[derive(Clone, Debug, Default)]
pub struct PeerStats(RefCell<Option<Known>>);

#[derive(Clone, Debug)]
struct Known {
    base: Arc<RequestStats>,
    of_peer: Option<Arc<RequestStats>>,
}

impl PeerStats {
    /// The metrics with the labels of `base` and those of the client, if it has any. Calls `find` only if `base` has
    /// changed since the last call.
    pub fn find(
        &self,
        base: &Arc<RequestStats>,
        find: impl FnOnce() -> Option<Arc<RequestStats>>,
    ) -> Option<Arc<RequestStats>> {
        let mut known = self.0.borrow_mut();
        if let Some(known) = &*known
            && Arc::ptr_eq(&known.base, base)
        {
            return known.of_peer.clone();
        }
        let of_peer = find();
        *known = Some(Known {
            base: Arc::clone(base),
            of_peer: of_peer.clone(),
        });
        of_peer
    }
}
