//! The end of the process: readiness fails, listeners drain, and what is left is closed.
//!
//! A sidecar drains in two steps. A workload that ends still answers the requests that it has, and sends requests for
//! them: inbound listeners drain first, and outbound listeners go on until no connection is left.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::settings::{OutboundDrain, Settings};
use crate::runtime::admission::Admission;
use crate::runtime::drain::Trigger;

/// How long no connection is open before a sidecar takes its workload to be done. A client that opens a connection for each
/// request has moments without one.
const QUIET: Duration = Duration::from_secs(1);

/// Least time for connections of a workload to end once outbound listeners drain, too.
const OUTBOUND_END: Duration = Duration::from_secs(1);

/// Drains the listeners, and knows how long to wait.
pub(super) struct Shutdown {
    drain: Trigger,
    admission: Arc<Admission>,
    pre_drain: Duration,
    drain_time: Duration,
    outbound: Option<OutboundDrain>,
}

impl Shutdown {
    /// The end of a process with these settings.
    pub(super) fn new(settings: &Settings, drain: Trigger, admission: &Arc<Admission>) -> Self {
        Self {
            drain,
            admission: Arc::clone(admission),
            pre_drain: settings.pre_drain,
            drain_time: settings.drain_time,
            outbound: settings.outbound_drain,
        }
    }

    /// Another process has the sockets: load balancers and the workload reach that one.
    pub(super) fn is_handed_over(&mut self) {
        self.pre_drain = Duration::ZERO;
        self.outbound = None;
    }

    /// The workload opens no connection any more.
    pub(super) fn workload_has_ended(&mut self) {
        tracing::info!("the process of the workload has ended (--exit-with-pid)");
        if let Some(outbound) = &mut self.outbound {
            outbound.minimum = Duration::ZERO;
        }
    }

    /// Drains until nothing is open any more, or the time for it is over.
    pub(super) async fn drain(&self) {
        self.drain.leave();
        tracing::info!(pre_drain = ?self.pre_drain, "shutting down: no longer ready");
        sleep(self.pre_drain).await;
        let mut over = Instant::now() + self.drain_time;
        if let Some(outbound) = self.outbound {
            self.drain_inbound(outbound).await;
            over = over.max(Instant::now() + OUTBOUND_END);
        }
        tracing::info!(drain_time = ?self.drain_time, "draining: no new connections; waiting for in-flight requests");
        self.drain.drain();
        tokio::select! {
            () = self.drain.finished() => tracing::info!("drained"),
            () = sleep_until(over) => {
                tracing::warn!(connections = self.admission.total(), "drain time is over: open connections are closed");
            }
        }
    }

    /// Closes everything that is still open.
    pub(super) fn stop(&self) {
        self.drain.stop();
    }

    /// Drains inbound listeners, and serves the workload until it has no connection any more.
    async fn drain_inbound(&self, settings: OutboundDrain) {
        let (inbound, outbound) = self.connections();
        tracing::info!(
            inbound,
            outbound,
            termination_drain = ?settings.time,
            minimum = ?settings.minimum,
            "draining inbound: no new connections to the workload; its own connections are served"
        );
        self.drain.drain_inbound();
        let done = async {
            let quiet = QUIET.min(settings.minimum);
            sleep(settings.minimum - quiet).await;
            self.quiet(quiet).await;
        };
        let in_time = timeout(settings.time, done).await.is_ok();
        let (inbound, outbound) = self.connections();
        if in_time {
            tracing::info!("draining inbound: no connection is left");
        } else {
            tracing::warn!(
                inbound,
                outbound,
                "--termination-drain is over: connections of the workload drain, too"
            );
        }
    }

    /// Waits until no connection has been open for this long.
    async fn quiet(&self, time: Duration) {
        loop {
            self.admission.all_emptied().await;
            let before = self.admission.outbound_admitted();
            sleep(time).await;
            if self.admission.total() == 0 && self.admission.outbound_admitted() == before {
                return;
            }
        }
    }

    /// Open connections to the workload, and of the workload.
    fn connections(&self) -> (usize, usize) {
        let outbound = self.admission.outbound();
        let inbound = self.admission.total().saturating_sub(outbound);
        (inbound, outbound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::drain::{self, Stage};

    fn shutdown(outbound: OutboundDrain) -> (Shutdown, drain::Watch, Arc<Admission>) {
        let (trigger, watch) = drain::pair();
        let admission = Admission::new(1, 100);
        let shutdown = Shutdown {
            drain: trigger,
            admission: Arc::clone(&admission),
            pre_drain: Duration::ZERO,
            drain_time: Duration::from_secs(30),
            outbound: Some(outbound),
        };
        (shutdown, watch, admission)
    }

    const DEFAULTS: OutboundDrain = OutboundDrain {
        time: Duration::from_secs(20),
        minimum: Duration::from_secs(5),
    };

    /// Milliseconds from the begin of the drain until outbound listeners drain, too, with connections of the workload that are
    /// open from one millisecond to another.
    async fn outbound_until(connections: &'static [(u64, u64)]) -> u128 {
        let (shutdown, watch, admission) = shutdown(DEFAULTS);
        let begin = Instant::now();
        for (from, to) in connections {
            let admission = Arc::clone(&admission);
            let at = move |millis: &u64| begin + Duration::from_millis(*millis);
            let mut permit = (*from == 0).then(|| admission.admit(0).unwrap());
            tokio::spawn(async move {
                if permit.is_none() {
                    sleep_until(at(from)).await;
                    permit = admission.admit(0);
                }
                let mut permit = permit.unwrap();
                permit.count_outbound();
                sleep_until(at(to)).await;
                drop(permit);
            });
        }
        let ends = async {
            watch.soft().await;
            begin.elapsed().as_millis()
        };
        let (_, millis) = tokio::join!(shutdown.drain(), ends);
        assert_eq!(watch.stage(), Stage::Draining);
        millis
    }

    #[tokio::test(start_paused = true)]
    async fn outbound_serves_while_the_workload_has_connections() {
        for (connections, expected) in [
            (&[][..], 5_000_u128),
            (&[(0, 2_000)], 5_000),
            (&[(0, 4_000), (4_500, 4_600), (5_500, 5_700)], 7_000),
            (&[(0, 8_000)], 9_000),
            (&[(0, 60_000)], 20_000),
        ] {
            let millis = outbound_until(connections).await;
            assert!(millis.abs_diff(expected) < 100, "{connections:?}: {millis}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn outbound_drains_at_once_after_a_handover() {
        let (mut shutdown, watch, _admission) = shutdown(DEFAULTS);
        shutdown.is_handed_over();
        let begin = Instant::now();
        shutdown.drain().await;
        assert_eq!(watch.stage(), Stage::Draining);
        assert!(begin.elapsed() < Duration::from_millis(100));
    }
}
