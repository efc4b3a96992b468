//! Monitors the health of endpoints: unejects them when due, rebuilds balancer tables, and logs and counts events.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::Control;
use super::panics::Panics;
use crate::runtime::clock;
use crate::snapshot::SnapshotSlot;
use crate::telemetry::{Counter, Gauge, Telemetry, WorkerId};
use traffic::cluster::Cluster;
use traffic::registry::{Cause, Event, EventKind, Journal, Moment};

/// Interval of sweeps and of steps of the slow start.
const TICK: Duration = Duration::from_millis(100);

/// State of the sweep task.
pub struct EjectionSweep {
    /// Snapshot in effect.
    pub slot: SnapshotSlot,
    /// Notified of every generation that takes effect.
    pub generations: watch::Receiver<u64>,
    /// Journal of endpoint events.
    pub journal: Arc<Journal>,
    /// Counters.
    pub telemetry: Arc<Telemetry>,
}

/// Values of the gauges.
#[derive(Clone, Copy, Default)]
struct Shown {
    ejected: usize,
    unhealthy: usize,
}

impl Shown {
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
    shown: Shown,
}

impl EjectionSweep {
    /// Monitors the endpoints of the snapshots that a control task publishes in this slot.
    pub fn of(control: &Control, slot: &SnapshotSlot) -> Self {
        Self {
            slot: Arc::clone(slot),
            generations: control.publisher.generations(),
            journal: Arc::clone(control.registry.journal()),
            telemetry: Arc::clone(&control.telemetry),
        }
    }

    /// Monitors endpoints until the future is dropped.
    pub async fn run(mut self) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut panics = Panics::default();
        let mut monitored = self.monitored(Vec::new(), &mut panics);
        let (mut told, mut shown) = (0, Shown::default());
        loop {
            let mut replaced = false;
            tokio::select! {
                changed = self.generations.changed() => {
                    if changed.is_err() {
                        return; // there is no configuration any more
                    }
                    monitored = self.monitored(monitored, &mut panics);
                    replaced = true;
                }
                () = self.journal.called() => {}
                _ = tick.tick(), if !monitored.is_empty() => {}
            }
            let now = self.journal.at(clock::now());
            for one in &mut monitored {
                one.sweep_if_due(now);
            }
            panics.record_changes(now);
            let before = told;
            told = self.log_events(told);
            if told != before {
                for one in &mut monitored {
                    one.shown = Shown::of(&one.cluster);
                }
            }
            if told != before || replaced {
                shown = self.update_gauges(&monitored, shown);
            }
        }
    }

    /// Lists the clusters of the snapshot in effect that need monitoring; each keeps the time of its next sweep.
    fn monitored(
        &self,
        before: Vec<MonitoredCluster>,
        panics: &mut Panics,
    ) -> Vec<MonitoredCluster> {
        let now = self.journal.at(clock::now());
        let snapshot = self.slot.load_full();
        panics.follow(Arc::clone(&snapshot));
        // both are sorted by ID
        let mut before = before.into_iter().peekable();
        let clusters = snapshot.clusters.iter().flatten();
        clusters
            .filter_map(|cluster| {
                let id = cluster.id();
                while before.next_if(|one| one.cluster.id() < id).is_some() {}
                let known = before.next_if(|one| one.cluster.id() == id);
                let balance = &cluster.balance;
                if balance.outlier.is_none() && balance.warmup.is_none() && cluster.check.is_none()
                {
                    if known.is_some() {
                        cluster.adopt(now);
                    }
                    return None;
                }
                let kept = known
                    .as_ref()
                    .filter(|one| Arc::ptr_eq(&one.cluster, cluster));
                let shown = kept.map_or_else(
                    || {
                        cluster.adopt(now);
                        Shown::of(cluster)
                    },
                    |one| one.shown,
                );
                let outlier = cluster.balance.outlier.as_ref();
                let interval = outlier.map_or(TICK, |outlier| outlier.interval);
                let known = known.filter(|one| one.interval == interval);
                Some(MonitoredCluster {
                    cluster: Arc::clone(cluster),
                    interval,
                    due: known.map_or(now, |one| one.due),
                    shown,
                })
            })
            .collect()
    }

    /// Logs and counts the events since the last call; returns the number of the next event.
    fn log_events(&self, from: u64) -> u64 {
        let mut next = from;
        for event in self.journal.since(from) {
            next = event.number + 1;
            self.count(&event.what);
            log(&event);
        }
        next
    }

    /// Updates the gauges from the shown to the current values, and returns the current ones.
    fn update_gauges(&self, monitored: &[MonitoredCluster], shown: Shown) -> Shown {
        let all = || monitored.iter().map(|one| one.shown);
        let now = Shown {
            ejected: all().map(|one| one.ejected).sum(),
            unhealthy: all().map(|one| one.unhealthy).sum(),
        };
        self.set_gauge(Gauge::EndpointsEjected, shown.ejected, now.ejected);
        self.set_gauge(Gauge::EndpointsUnhealthy, shown.unhealthy, now.unhealthy);
        now
    }

    fn set_gauge(&self, gauge: Gauge, from: usize, to: usize) {
        let counters = &self.telemetry.counters;
        for _ in from..to {
            counters.raise(WorkerId::CONTROL, gauge);
        }
        for _ in to..from {
            counters.lower(WorkerId::CONTROL, gauge);
        }
    }

    fn count(&self, what: &EventKind) {
        let counters = &self.telemetry.counters;
        let worker = WorkerId::CONTROL;
        match what {
            EventKind::Ejected { cause, .. } => counters.increment(worker, ejection(*cause)),
            EventKind::Unejected { .. } => counters.increment(worker, Counter::Unejections),
            EventKind::EjectionOverflow { .. } => {
                counters.increment(worker, Counter::EjectionsOverflowed)
            }
            EventKind::PanicModeEntered { .. } => {
                counters.increment(worker, Counter::PanicModeEntries)
            }
            EventKind::PriorityLoadChanged { .. } => {
                counters.increment(worker, Counter::PriorityLoadChanges)
            }
            EventKind::Unhealthy { .. } => counters.increment(worker, Counter::TurnedUnhealthy),
            EventKind::Healthy => counters.increment(worker, Counter::TurnedHealthy),
            EventKind::HealthCheckRemoved | EventKind::PanicModeLeft { .. } => {}
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

fn ejection(cause: Cause) -> Counter {
    match cause {
        Cause::ServerErrors => Counter::EjectedServerErrors,
        Cause::GatewayErrors => Counter::EjectedGatewayErrors,
        Cause::LocalErrors => Counter::EjectedLocalErrors,
    }
}

fn log(event: &Event) {
    let (cluster, endpoint) = (&*event.cluster, event.endpoint.as_deref());
    let kind = event.what.name();
    let bad = matches!(
        event.what,
        EventKind::Ejected { .. }
            | EventKind::PanicModeEntered { .. }
            | EventKind::Unhealthy { .. }
    );
    if bad {
        tracing::warn!(cluster, endpoint, kind, "{}", event.what);
    } else {
        tracing::info!(cluster, endpoint, kind, "{}", event.what);
    }
}
