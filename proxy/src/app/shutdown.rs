//! End of the process: clients are notified, listeners drain, and the remaining connections are closed.
//!
//! | Stage | Sockets | Clients | Next |
//! |---|---|---|---|
//! | serving | open | served | announcing: on `strait drain`, or when the process is told to end (SIGTERM, SIGINT, `/quitquitquit`, the end of `--exit-with-pid`) |
//! | announcing | open | served and told to go elsewhere, not ready | draining inbound (a gateway: draining): `--pre-drain` after the process was told to end |
//! | draining inbound (sidecar) | inbound closed | requests in flight are finished; the workload is served | draining: no connection is left, or `--termination-drain` is over |
//! | workload gone (sidecar) | inbound closed | the same, and what is idle is closed at once | the same |
//! | draining | closed | requests in flight are finished | stopped: nothing is left, or `--drain-time` is over |
//! | stopped | closed | closed | |
//!
//! A sidecar goes from announcing or draining inbound to workload gone once all ports of its workload are closed,
//! whether or not it was told to end: a native sidecar learns from its preStop hook that the pod ends, and from SIGTERM
//! that its workload has ended. A workload that ends still answers its open requests, and sends requests for them:
//! inbound listeners drain first, and outbound listeners go on until no connection is left. [`progress`] has the
//! transitions, [`workload_ports`] observes the end of the workload.

mod progress;
mod workload_ports;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use self::progress::{ObservedProgress, Progress, Times};
use self::workload_ports::WorkloadPorts;
use super::settings::Settings;
use crate::runtime::admission::Admission;
use crate::runtime::drain::{Stage, Trigger};
use crate::snapshot::SnapshotSlot;

/// Interval at which the ports of a workload are checked during a drain.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Runs the drain through its stages.
pub(super) struct Shutdown {
    drain: Trigger,
    admission: Arc<Admission>,
    slot: SnapshotSlot,
    progress: Progress,
    seen: ObservedProgress,
    /// Ports of a sidecar's workload; `None` before the first check.
    ports: Option<WorkloadPorts>,
    /// Connections that the workload had opened by the last check; a change shows that it is not quiet.
    admitted: usize,
}

impl Shutdown {
    /// Makes the shutdown of a process with these settings.
    pub(super) fn new(
        settings: &Settings,
        drain: Trigger,
        admission: &Arc<Admission>,
        slot: &SnapshotSlot,
    ) -> Self {
        Self {
            drain,
            admission: Arc::clone(admission),
            slot: Arc::clone(slot),
            progress: Progress::new(times(settings)),
            seen: ObservedProgress::default(),
            ports: None,
            admitted: 0,
        }
    }

    /// Takes over the times of changed settings, until a drain has begun.
    pub(super) fn follow(&mut self, settings: &Settings) {
        if self.progress.stage() == Stage::Serving && !self.seen.workload_gone {
            *self.progress.times() = times(settings);
        }
    }

    /// Records that another process has the sockets: load balancers and the workload reach that one, so nothing has to
    /// wait.
    pub(super) fn is_handed_over(&mut self) {
        let times = self.progress.times();
        times.pre_drain = Duration::ZERO;
        times.outbound = None;
    }

    /// Records that the workload process has ended: it accepts and opens no more connections.
    pub(super) fn workload_has_ended(&mut self) {
        tracing::info!("the process of the workload has ended (--exit-with-pid)");
        self.seen.workload_gone = true;
        if let Some(outbound) = &mut self.progress.times().outbound {
            outbound.minimum = Duration::ZERO;
        }
    }

    /// Drains until no connection is open or the drain time is over.
    pub(super) async fn drain(&mut self) {
        self.seen.ending = Some(Instant::now());
        self.run().await;
    }

    /// Runs from stage to stage. Returns after the last one, which requires that the process was told to end. Cancel
    /// safe.
    pub(super) async fn run(&mut self) {
        loop {
            let due = self.step();
            if self.progress.stage() == Stage::Stopped {
                return;
            }
            self.changed(due).await;
        }
    }

    /// Closes all connections that are still open.
    pub(super) fn stop(&self) {
        self.drain.stop();
    }

    /// Checks the state and enters the stages that follow. Returns the time of the next stage if time alone brings it.
    fn step(&mut self) -> Option<Instant> {
        let now = Instant::now();
        self.look(now);
        let asked = self.drain.stage();
        if asked > self.progress.stage() {
            log(asked, self.progress.times(), &self.admission, &self.seen);
            self.progress.enter(asked, now);
        }
        let Self {
            drain,
            admission,
            progress,
            seen,
            ..
        } = self;
        let times = *progress.times();
        progress.step(seen, now, |stage| {
            log(stage, &times, admission, seen);
            drain.raise(stage);
        })
    }

    fn look(&mut self, now: Instant) {
        let is_told = self.drain.stage() > Stage::Serving || self.seen.ending.is_some();
        self.seen.announced = is_told;
        if is_told && self.progress.times().outbound.is_some() && !self.seen.workload_gone {
            let find = || WorkloadPorts::find(&self.slot.load());
            self.seen.workload_gone = self.ports.get_or_insert_with(find).are_gone();
        }
        let admitted = self.admission.outbound_admitted();
        self.seen.quiet = match self.seen.quiet {
            _ if self.admission.total() > 0 => None,
            Some(since) if admitted == self.admitted => Some(since),
            _ => Some(now),
        };
        self.admitted = admitted;
        self.seen.finished = self.drain.running() == 0;
    }

    /// Waits for `due`, or for an event that may bring the next stage earlier.
    async fn changed(&self, due: Option<Instant>) {
        let stage = self.progress.stage();
        let drains_inbound = matches!(stage, Stage::DrainingInbound | Stage::WorkloadGone);
        let are_known = self.ports.as_ref().is_some_and(WorkloadPorts::are_known);
        let looks = are_known && stage < Stage::WorkloadGone;
        let look = looks.then(|| Instant::now() + LOOK_INTERVAL);
        tokio::select! {
            () = until(due.into_iter().chain(look).min()) => {}
            () = self.drain.beyond(stage) => {}
            () = self.admission.all_emptied(), if drains_inbound && self.seen.quiet.is_none() => {}
            () = self.drain.finished(), if stage == Stage::Draining && !self.seen.finished => {}
        }
    }
}

/// Returns the times of settings.
fn times(settings: &Settings) -> Times {
    Times {
        pre_drain: settings.pre_drain,
        drain_time: settings.drain_time,
        outbound: settings.outbound_drain,
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Logs that a stage is entered.
fn log(stage: Stage, times: &Times, admission: &Admission, seen: &ObservedProgress) {
    let (total, outbound) = (admission.total(), admission.outbound());
    let inbound = total.saturating_sub(outbound);
    match stage {
        Stage::Serving => {}
        Stage::Announcing if seen.ending.is_some() => {
            tracing::info!(pre_drain = ?times.pre_drain, "shutting down: no longer ready; clients are told to go elsewhere");
        }
        Stage::Announcing => {
            tracing::info!("no longer ready; clients are told to go elsewhere, and served");
        }
        Stage::DrainingInbound => {
            let outbound_drain = times.outbound.map(|drain| (drain.time, drain.minimum));
            let (termination_drain, minimum) = outbound_drain.unwrap_or_default();
            tracing::info!(
                inbound,
                outbound,
                ?termination_drain,
                ?minimum,
                "draining inbound: no new connections to the workload; its own connections are served"
            );
        }
        Stage::WorkloadGone => {
            tracing::info!(
                inbound,
                outbound,
                "draining inbound: the workload takes no connections any more, and idle ones are closed"
            );
        }
        Stage::Draining => {
            if times.outbound.is_some() && seen.ending.is_some() {
                log_end_of_inbound(seen, inbound, outbound);
            }
            tracing::info!(drain_time = ?times.drain_time, "draining: no new connections; waiting for in-flight requests");
        }
        Stage::Stopped if seen.finished => tracing::info!("drained"),
        Stage::Stopped => {
            tracing::warn!(
                connections = total,
                "drain time is over: open connections are closed"
            );
        }
    }
}

fn log_end_of_inbound(seen: &ObservedProgress, inbound: usize, outbound: usize) {
    match seen.quiet {
        Some(_) => tracing::info!("draining inbound: no connection is left"),
        None => tracing::warn!(
            inbound,
            outbound,
            "--termination-drain is over: connections of the workload drain, too"
        ),
    }
}

#[cfg(test)]
mod tests;
