//! Sends a request upstream: the first attempt, then retries, then replays in the next tiers of clusters.
//!
//! After an attempt, `machine` decides what follows, from the facts about the request that `facts` reads; `retries`
//! carries the decision out. A request whose first attempt succeeds meets only `machine::Causes`.

pub mod deadline;
pub(super) mod facts;
pub(super) mod failover;
mod failover_cause;
pub(super) mod machine;
pub mod policy;
pub mod request;
mod retries;
pub mod send;

use self::facts::RequestFacts;
use self::machine::Causes;
use self::request::{AttemptResult, ForwardedRequest};
use self::retries::FirstAttempt;
use super::record::Record;
use super::select::context::RequestContext;

/// Sends the request, more than once if its policy says so.
///
/// # Errors
///
/// Reason why the last attempt got no response.
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
                Box::pin(retries::run(context, forwarded, record, *first)).await
            }
        }
    }
}

/// Whether a first attempt is the only one.
enum Verdict {
    /// The request is retried, or goes on to the next tier.
    Failed(Box<FirstAttempt>),
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
    record.record_attempt_result(&first);
    let facts = RequestFacts {
        context,
        forwarded,
        record,
    };
    let causes = Causes::of(&first, &facts);
    match causes.are_none() {
        true => Verdict::Final(first),
        false => Verdict::Failed(Box::new(FirstAttempt {
            result: first,
            causes,
        })),
    }
}
