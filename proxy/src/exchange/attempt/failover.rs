//! Picks the endpoint of a replay in the next tier of clusters.

use crate::exchange::select::target::PickedEndpoint;
use crate::exchange::worker::Worker;
use crate::telemetry::ReplayCause;

/// Picks an endpoint of the next tier, and counts the replay; `None` if no later tier has an endpoint any more.
pub(in crate::exchange) fn pick(
    picked: &PickedEndpoint,
    cause: ReplayCause,
    worker: &Worker,
) -> Option<PickedEndpoint> {
    let before = picked.cluster();
    let next = picked.of_next_tier(worker)?;
    let (from, to) = (before.name(), next.cluster().name());
    tracing::debug!(%from, %to, ?cause, "goes to the next cluster");
    next.came_from(before.id(), cause, worker);
    Some(next)
}
