//! Statistics that a connection's client has, kept with the connection.

use std::cell::RefCell;
use std::sync::Arc;

use crate::telemetry::RequestStats;

/// Statistics of the requests of one client. Most connections to a workload have one destination, so that the last one
/// found is kept.
#[derive(Clone, Debug, Default)]
pub struct PeerStats(RefCell<Option<Known>>);

#[derive(Clone, Debug)]
struct Known {
    base: Arc<RequestStats>,
    of_peer: Option<Arc<RequestStats>>,
}

impl PeerStats {
    /// The statistics with the labels of `base` and those of the client, if it has any. `find` is asked where `base` is another
    /// than the last time.
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
