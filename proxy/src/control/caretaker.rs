//! Looks after the health of endpoints: sweeps ejections, makes tables anew, tells what happened.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::Control;
use super::panics::Panics;
use crate::cluster::Cluster;
use crate::registry::{Cause, ClusterId, Event, Happening, Journal, Moment};
use crate::snapshot::SnapshotSlot;
use crate::telemetry::{Counter, Gauge, Telemetry, WorkerId};

/// How exact sweeps and warm-ups are.
const TICK: Duration = Duration::from_millis(100);

/// Everything that looking after endpoints takes.
pub struct Caretaker {
    /// The snapshot in force.
    pub slot: SnapshotSlot,
    /// Told of every generation that is put in force.
    pub generations: watch::Receiver<u64>,
    /// What happened to endpoints.
    pub journal: Arc<Journal>,
    /// Counters.
    pub telemetry: Arc<Telemetry>,
}

/// What the gauges show.
#[derive(Clone, Copy, Default)]
struct Shown {
    ejected: usize,
    unhealthy: usize,
}

/// A cluster that needs care, and when it is swept next.
struct Ward {
    cluster: Arc<Cluster>,
    interval: Duration,
    due: Moment,
}

impl Caretaker {
    /// Looks after the endpoints of what a control task publishes in this slot.
    pub fn of(control: &Control, slot: &SnapshotSlot) -> Self {
        Self {
            slot: Arc::clone(slot),
            generations: control.publisher.generations(),
            journal: Arc::clone(control.registry.journal()),
            telemetry: Arc::clone(&control.telemetry),
        }
    }

    /// Looks after endpoints until it is dropped.
    pub async fn run(mut self) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut panics = Panics::default();
        let mut wards = self.wards(Vec::new(), &mut panics);
        let (mut told, mut shown) = (0, Shown::default());
        loop {
            let mut replaced = false;
            tokio::select! {
                changed = self.generations.changed() => {
                    if changed.is_err() {
                        return; // there is no configuration any more
                    }
                    wards = self.wards(wards, &mut panics);
                    replaced = true;
                }
                () = self.journal.called() => {}
                _ = tick.tick(), if !wards.is_empty() => {}
            }
            let now = self.journal.now();
            for ward in &mut wards {
                ward.look(now);
            }
            panics.look(now);
            let before = told;
            told = self.tell(told);
            if told != before || replaced {
                shown = self.show(&wards, shown);
            }
        }
    }

    /// The clusters of the snapshot in force whose endpoints may come and go; each keeps its turn.
    fn wards(&self, before: Vec<Ward>, panics: &mut Panics) -> Vec<Ward> {
        let now = self.journal.now();
        let snapshot = self.slot.load_full();
        panics.follow(Arc::clone(&snapshot));
        let mut before: HashMap<ClusterId, Ward> = before
            .into_iter()
            .map(|ward| (ward.cluster.id(), ward))
            .collect();
        let clusters = snapshot.clusters.iter().flatten();
        clusters
            .filter_map(|cluster| {
                let known = before.remove(&cluster.id());
                let balance = &cluster.balance;
                if balance.outlier.is_none() && balance.warmup.is_none() && cluster.check.is_none()
                {
                    if known.is_some() {
                        cluster.adopt(now);
                    }
                    return None;
                }
                if known
                    .as_ref()
                    .is_none_or(|ward| !Arc::ptr_eq(&ward.cluster, cluster))
                {
                    cluster.adopt(now);
                }
                let outlier = cluster.balance.outlier.as_ref();
                let interval = outlier.map_or(TICK, |outlier| outlier.interval);
                let known = known.filter(|ward| ward.interval == interval);
                Some(Ward {
                    cluster: Arc::clone(cluster),
                    interval,
                    due: known.map_or(now, |ward| ward.due),
                })
            })
            .collect()
    }

    /// Logs and counts what happened since the last time; returns the number of the next event.
    fn tell(&self, from: u64) -> u64 {
        let mut next = from;
        for event in self.journal.since(from) {
            next = event.number + 1;
            self.count(&event.what);
            log(&event);
        }
        next
    }

    /// Brings the gauges from what they show to what is so, and returns that.
    fn show(&self, wards: &[Ward], shown: Shown) -> Shown {
        let clusters = || wards.iter().map(|ward| &ward.cluster);
        let now = Shown {
            ejected: clusters().map(|cluster| cluster.ejected()).sum(),
            unhealthy: clusters().map(|cluster| cluster.unhealthy()).sum(),
        };
        self.bring(Gauge::EndpointsEjected, shown.ejected, now.ejected);
        self.bring(Gauge::EndpointsUnhealthy, shown.unhealthy, now.unhealthy);
        now
    }

    fn bring(&self, gauge: Gauge, from: usize, to: usize) {
        let counters = &self.telemetry.counters;
        for _ in from..to {
            counters.raise(WorkerId::CONTROL, gauge);
        }
        for _ in to..from {
            counters.lower(WorkerId::CONTROL, gauge);
        }
    }

    fn count(&self, what: &Happening) {
        let counters = &self.telemetry.counters;
        let worker = WorkerId::CONTROL;
        match what {
            Happening::Ejected { cause, .. } => counters.increment(worker, ejection(*cause)),
            Happening::Returned { .. } => counters.increment(worker, Counter::Unejections),
            Happening::Spared { .. } => counters.increment(worker, Counter::EjectionsOverflowed),
            Happening::PanicOn { .. } => counters.increment(worker, Counter::PanicModeEntries),
            Happening::Shifted { .. } => counters.increment(worker, Counter::PriorityLoadChanges),
            Happening::Unhealthy { .. } => counters.increment(worker, Counter::TurnedUnhealthy),
            Happening::Healthy => counters.increment(worker, Counter::TurnedHealthy),
            Happening::Unchecked | Happening::PanicOff { .. } => {}
        }
    }
}

impl Ward {
    fn look(&mut self, now: Moment) {
        if now < self.due {
            self.cluster.refresh(now);
            return;
        }
        self.cluster.sweep(now);
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
        Happening::Ejected { .. } | Happening::PanicOn { .. } | Happening::Unhealthy { .. }
    );
    if bad {
        tracing::warn!(cluster, endpoint, kind, "{}", event.what);
    } else {
        tracing::info!(cluster, endpoint, kind, "{}", event.what);
    }
}
