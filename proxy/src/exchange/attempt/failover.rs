//! Replays a request in the next tiers of clusters.
//!
//! It follows the retries of the request's policy, which stay in their tier: one attempt in each further tier, in order.
//! In the last tier the retries of the default policy are made. Path and headers are rebuilt from the saved head.

use super::request::{AttemptResult, ForwardedRequest, drain};
use super::retries;
use crate::exchange::record::Record;
use crate::exchange::select::context::RequestContext;
use crate::telemetry::{Counter, ReplayCause};
use traffic::error::{Error, Kind};

/// Sends the request to the tiers after its own, until one does not fail it.
///
/// # Errors
///
/// Why the last attempt got no response.
pub(super) async fn run(
    context: &RequestContext<'_>,
    forwarded: &mut ForwardedRequest<'_>,
    record: &mut Record,
    first: (AttemptResult, ReplayCause),
) -> AttemptResult {
    let worker = context.worker;
    let body_max = worker.settings.failover_replay_bytes;
    let (mut attempted, mut cause) = first;
    loop {
        if !forwarded.outgoing.can_move(body_max) {
            worker.count(Counter::FailoverWithoutBody);
            return attempted;
        }
        let Some(next) = forwarded.picked.of_next_tier(worker) else {
            return attempted;
        };
        let (from, to) = (forwarded.picked.cluster().name(), next.cluster().name());
        tracing::debug!(%from, %to, ?cause, "goes to the next cluster");
        if let Ok(response) = attempted {
            drain(response).await;
        }
        next.came_from(forwarded.picked.cluster().id(), cause, worker);
        if !forwarded.redirect(context, next, record) {
            return Err(Error::new(Kind::DownstreamBody));
        }
        attempted = forwarded.attempt(context, record, None).await;
        record.attempt_ended(&attempted);
        if let Some(reason) = forwarded.default_retry_reason(context, &attempted, record) {
            attempted = retries::run(context, forwarded, record, (attempted, reason)).await;
        }
        match forwarded.failover_cause(context, &attempted, record) {
            Some(next_cause) => cause = next_cause,
            None => return attempted,
        }
    }
}
