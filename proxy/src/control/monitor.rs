//! Monitored clusters: ejections that end, tables that are out of date, and panic mode. Pure: its user has the clock.

use std::sync::Arc;
use std::time::Duration;

use super::panics::Panics;
use crate::snapshot::Snapshot;
use traffic::cluster::Cluster;
use traffic::registry::Moment;

/// Interval of sweeps and of steps of the slow start.
pub const TICK: Duration = Duration::from_millis(100);

/// Numbers of endpoints that are not used.
#[derive(Clone, Copy, Default)]
pub struct Excluded {
    /// Endpoints that are ejected.
    pub ejected: usize,
    /// Endpoints that fail their health checks.
    pub unhealthy: usize,
}

impl Excluded {
    fn of(cluster: &Cluster) -> Self {
        Self {
            ejected: cluster.ejected(),
            unhealthy: cluster.unhealthy(),
        }
    }
}

/// Cluster that is monitored, with the time of its next sweep.
struct MonitoredCluster {
    cluster: Arc<Cluster>,
    interval: Duration,
    due: Moment,
    /// Counts of its endpoints as of the last event or change.
    excluded: Excluded,
}

/// Clusters of a snapshot that need monitoring.
#[derive(Default)]
pub struct Monitor {
    monitored: Vec<MonitoredCluster>,
    panics: Panics,
}

impl Monitor {
    /// Monitors the clusters of this snapshot; each keeps the time of its next sweep.
    pub fn follow(&mut self, snapshot: Arc<Snapshot>, now: Moment) {
        self.panics.follow(Arc::clone(&snapshot));
        // both are sorted by ID
        let mut before = std::mem::take(&mut self.monitored).into_iter().peekable();
        let clusters = snapshot.clusters.iter().flatten();
        let monitored = clusters.filter_map(|cluster| {
            let id = cluster.id();
            while before.next_if(|one| one.cluster.id() < id).is_some() {}
            let known = before.next_if(|one| one.cluster.id() == id);
            let balance = &cluster.balance;
            if balance.outlier.is_none() && balance.warmup.is_none() && cluster.check.is_none() {
                if known.is_some() {
                    cluster.adopt(now);
                }
                return None;
            }
            let kept = known
                .as_ref()
                .filter(|one| Arc::ptr_eq(&one.cluster, cluster));
            let excluded = kept.map_or_else(
                || {
                    cluster.adopt(now);
                    Excluded::of(cluster)
                },
                |one| one.excluded,
            );
            let outlier = cluster.balance.outlier.as_ref();
            let interval = outlier.map_or(TICK, |outlier| outlier.interval);
            let known = known.filter(|one| one.interval == interval);
            Some(MonitoredCluster {
                cluster: Arc::clone(cluster),
                interval,
                due: known.map_or(now, |one| one.due),
                excluded,
            })
        });
        self.monitored = monitored.collect();
    }

    /// Whether no cluster needs monitoring.
    pub fn is_empty(&self) -> bool {
        self.monitored.is_empty()
    }

    /// Unejects endpoints that are due, rebuilds tables, and records panic mode. Call it every [`TICK`], and when the
    /// journal has rung.
    pub fn sweep(&mut self, now: Moment) {
        for one in &mut self.monitored {
            one.sweep_if_due(now);
        }
        self.panics.record_changes(now);
    }

    /// Counts the endpoints again, after an event.
    pub fn recount(&mut self) {
        for one in &mut self.monitored {
            one.excluded = Excluded::of(&one.cluster);
        }
    }

    /// Numbers of endpoints that are not used.
    pub fn excluded(&self) -> Excluded {
        let all = || self.monitored.iter().map(|one| one.excluded);
        Excluded {
            ejected: all().map(|one| one.ejected).sum(),
            unhealthy: all().map(|one| one.unhealthy).sum(),
        }
    }
}

impl MonitoredCluster {
    fn sweep_if_due(&mut self, now: Moment) {
        if now < self.due {
            self.cluster.refresh(now);
            return;
        }
        self.cluster
            .sweep(&self.cluster.state.ejections.lock(), now);
        let interval = u64::try_from(self.interval.as_millis()).unwrap_or(u64::MAX);
        self.due = Moment(now.0.saturating_add(interval.max(1)));
    }
}
