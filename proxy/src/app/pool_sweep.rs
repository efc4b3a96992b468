//! Ends of idle upstream connections.

use std::rc::Weak;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use crate::exchange::Worker;
use traffic::registry::WakeSignal;

/// Interval at which a worker checks its idle upstream connections.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Closes upstream connections of a worker: about once a second connections that have been idle for too long, and at
/// once connections that requests on other workers wait for.
pub(super) async fn sweep(worker: Weak<Worker>, wake_signal: Arc<WakeSignal>) {
    let mut ticks = tokio::time::interval(SWEEP_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let now = tokio::select! {
            now = ticks.tick() => Some(now),
            () = wake_signal.wait() => None,
        };
        let Some(worker) = worker.upgrade() else {
            return;
        };
        match now {
            Some(now) => worker.pools.sweep(now),
            None => worker.pools.answer(),
        }
    }
}
