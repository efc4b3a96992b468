//! Sends a request upstream: the first attempt, then retries, then replays in the next tiers of clusters.

pub mod deadline;
mod decide;
mod failover;
mod failover_cause;
pub mod policy;
pub mod request;
mod retries;
pub mod send;

use self::request::{AttemptResult, ForwardedRequest};
use super::record::Record;
use super::select::context::RequestContext;

/// Sends the request, more than once if its policy says so.
///
/// # Errors
///
/// Why the last attempt got no response.
#[expect(
    clippy::manual_async_fn,
    reason = "the parameters of an `async fn` are copied once more"
)]
pub fn run(
    context: &RequestContext<'_>,
    forwarded: &mut ForwardedRequest<'_>,
    record: &mut Record,
) -> impl Future<Output = AttemptResult> {
    async move {
        let first = forwarded.attempt(context, record, None).await;
        match judge(context, forwarded, record, first) {
            Verdict::Final(attempted) => attempted,
            // boxed: most requests end after one attempt, and need not hold what further ones take
            Verdict::Failed(first) => {
                Box::pin(after_failure(context, forwarded, record, *first)).await
            }
        }
    }
}

/// Whether a first attempt is the only one.
enum Verdict {
    /// The request is retried, or goes on to the next tier.
    Failed(Box<AttemptResult>),
    /// The result goes to the client.
    Final(AttemptResult),
}

/// Takes and returns the result by value: a borrowed one would have room in the future of every request.
fn judge(
    context: &RequestContext<'_>,
    forwarded: &ForwardedRequest<'_>,
    record: &mut Record,
    first: AttemptResult,
) -> Verdict {
    record.attempt_ended(&first);
    let goes_on = forwarded.retry_reason(context, &first, record).is_some()
        || forwarded.failover_cause(context, &first, record).is_some();
    match goes_on {
        true => Verdict::Failed(Box::new(first)),
        false => Verdict::Final(first),
    }
}

/// After a first attempt that failed: the retries of its policy, then the next tiers of clusters.
async fn after_failure(
    context: &RequestContext<'_>,
    forwarded: &mut ForwardedRequest<'_>,
    record: &mut Record,
    first: AttemptResult,
) -> AttemptResult {
    let attempted = match forwarded.retry_reason(context, &first, record) {
        Some(reason) => retries::run(context, forwarded, record, (first, reason)).await,
        None => first,
    };
    match forwarded.failover_cause(context, &attempted, record) {
        Some(cause) => failover::run(context, forwarded, record, (attempted, cause)).await,
        None => attempted,
    }
}
