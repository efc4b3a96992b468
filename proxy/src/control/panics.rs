//! Panic mode of the pools of services that several clusters serve.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::snapshot::Snapshot;
use traffic::cluster::Cluster;
use traffic::registry::{ClusterId, EventKind, Moment};

/// The last reported panic mode of pools. A pool is in panic mode only while no other pool of its service is available.
#[derive(Debug, Default)]
pub(super) struct Panics {
    snapshot: Arc<Snapshot>,
    /// Clusters of the services whose pools can enter panic mode.
    services: Vec<Arc<Cluster>>,
    /// Pools in panic mode as of the last report, with the priority.
    told: BTreeSet<(ClusterId, u8)>,
}

impl Panics {
    /// Switches to the services of this snapshot.
    pub(super) fn follow(&mut self, snapshot: Arc<Snapshot>) {
        let clusters = snapshot.clusters.iter().flatten();
        let may_panic = |cluster: &&Arc<Cluster>| {
            cluster.federation.is_some() && cluster.balance.panic_percent > 0
        };
        self.services = clusters.filter(may_panic).cloned().collect();
        self.snapshot = snapshot;
    }

    /// Records which pools have entered or left panic mode since the last call.
    pub(super) fn record_changes(&mut self, now: Moment) {
        let pools_in_panic = self.pools_in_panic();
        for &(id, priority) in pools_in_panic.difference(&self.told) {
            self.record_event(id, priority, now, |priority, healthy| {
                EventKind::PanicModeEntered { priority, healthy }
            });
        }
        for &(id, priority) in self.told.difference(&pools_in_panic) {
            self.record_event(id, priority, now, |priority, healthy| {
                EventKind::PanicModeLeft { priority, healthy }
            });
        }
        self.told = pools_in_panic;
    }

    fn pools_in_panic(&self) -> BTreeSet<(ClusterId, u8)> {
        let pool = |id| self.snapshot.cluster(id);
        let federations = self.services.iter().filter_map(|it| it.federation.as_ref());
        let last = federations.flat_map(|federation| {
            let available = federation.available(pool);
            federation.last_resorts(available)
        });
        let mut all = BTreeSet::new();
        for id in last {
            let Some(cluster) = pool(id) else { continue };
            let live = cluster.live();
            let shares = (0..).zip(&live.tables_for(true).shares);
            let panics = shares.filter(|(_, share)| share.panic);
            all.extend(panics.map(|(priority, _)| (id, priority)));
        }
        all
    }

    /// Records an event of a priority, unless its pool is gone.
    fn record_event(
        &self,
        id: ClusterId,
        priority: u8,
        now: Moment,
        what: impl Fn(u8, (u32, u32)) -> EventKind,
    ) {
        let Some(cluster) = self.snapshot.cluster(id) else {
            return;
        };
        let live = cluster.live();
        if let Some(health) = live.health.get(usize::from(priority)) {
            let state = &cluster.state;
            let what = what(priority, (health.healthy, health.total));
            state.journal.record(now, &state.name, None, what);
        }
    }
}
