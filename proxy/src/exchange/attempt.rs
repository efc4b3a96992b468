//! One request to one endpoint, and the one replay that a reused connection may need.

use hyper::Request;

use super::body::UpstreamBody;
use super::request::{Picked, Worker};
use super::spare::Spare;
use crate::error::{Error, Retry};
use crate::pool::{Failed, Sent, Target};
use crate::telemetry::Counter;

/// Sends the request to the picked endpoint.
///
/// A pooled connection may have been closed by its peer just as the request went out. If nothing of the request can
/// have been acted on twice (it has no body and its method is idempotent, RFC 9110 section 9.2.2), it is sent once
/// more on a fresh connection. A POST is never sent twice once a byte of it was written.
///
/// # Errors
///
/// The reason why there is no response.
pub async fn run(
    worker: &Worker,
    picked: &Picked,
    request: Request<UpstreamBody>,
) -> Result<Sent<UpstreamBody>, Error> {
    let target = picked.target();
    let spare = spare(worker, &target, &request);
    let failed = match worker.pools.send(target, request).await {
        Ok(sent) => return Ok(sent),
        Err(failed) => failed,
    };
    match spare {
        Some(spare) if may_replay(&failed) => {
            worker.count(Counter::UpstreamReplays);
            worker
                .pools
                .send_fresh(target, spare.request())
                .await
                .map_err(|failed| failed.error)
        }
        _ => Err(failed.error),
    }
}

fn may_replay(failed: &Failed) -> bool {
    failed.reused
        && matches!(
            failed.error.retry(),
            Retry::Always | Retry::IfConnectionReused
        )
}

/// Keeps the head if a replay may come: the connection will be a reused one, and the request is repeatable.
fn spare<'a>(
    worker: &'a Worker,
    target: &Target<'_>,
    request: &Request<UpstreamBody>,
) -> Option<Spare<'a>> {
    let repeatable =
        matches!(request.body(), UpstreamBody::Empty) && request.method().is_idempotent();
    (repeatable && worker.pools.would_reuse(target)).then(|| Spare::of(&worker.buffers, request))
}
