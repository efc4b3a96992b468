//! Monitors the health of endpoints: unejects them when due, rebuilds balancer tables, and logs and counts events.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::Control;
use super::monitor::{Excluded, Monitor, TICK};
use crate::runtime::clock;
use crate::snapshot::SnapshotSlot;
use crate::telemetry::{Counter, Gauge, Telemetry, WorkerId};
use traffic::registry::{Cause, Event, EventKind, Journal};

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
        let mut monitor = Monitor::default();
        self.follow(&mut monitor);
        let (mut told, mut shown) = (0, Excluded::default());
        loop {
            let mut replaced = false;
            tokio::select! {
                changed = self.generations.changed() => {
                    if changed.is_err() {
                        return; // there is no configuration any more
                    }
                    self.follow(&mut monitor);
                    replaced = true;
                }
                () = self.journal.called() => {}
                _ = tick.tick(), if !monitor.is_empty() => {}
            }
            monitor.sweep(self.journal.at(clock::now()));
            let before = told;
            told = self.log_events(told);
            if told != before {
                monitor.recount();
            }
            if told != before || replaced {
                shown = self.update_gauges(&monitor, shown);
            }
        }
    }

    fn follow(&self, monitor: &mut Monitor) {
        monitor.follow(self.slot.load_full(), self.journal.at(clock::now()));
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
    fn update_gauges(&self, monitor: &Monitor, shown: Excluded) -> Excluded {
        let now = monitor.excluded();
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
            // a shift is counted where it happens
            EventKind::HealthCheckRemoved
            | EventKind::PanicModeLeft { .. }
            | EventKind::TierShifted { .. } => {}
        }
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
    if matches!(event.what, EventKind::TierShifted { .. }) {
        return; // logged where it happens
    }
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
