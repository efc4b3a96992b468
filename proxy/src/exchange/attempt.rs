//! One request to one endpoint, and the one replay that a reused connection may need.

use hyper::header::HeaderMap;
use hyper::{Method, Request, Uri, Version};

use super::body::UpstreamBody;
use super::request::{Picked, Worker};
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
    let spare = Spare::of(worker, &target, &request);
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

/// The head of a request that is safe to send again.
struct Spare {
    method: Method,
    uri: Uri,
    version: Version,
    headers: HeaderMap,
}

impl Spare {
    /// Copies the head if a replay may come: the connection will be a reused one, and the request is repeatable.
    fn of(worker: &Worker, target: &Target<'_>, request: &Request<UpstreamBody>) -> Option<Self> {
        let repeatable =
            matches!(request.body(), UpstreamBody::Empty) && request.method().is_idempotent();
        (repeatable && worker.pools.would_reuse(target)).then(|| Self {
            method: request.method().clone(),
            uri: request.uri().clone(),
            version: request.version(),
            headers: request.headers().clone(),
        })
    }

    fn request(self) -> Request<UpstreamBody> {
        let mut request = Request::new(UpstreamBody::Empty);
        *request.method_mut() = self.method;
        *request.uri_mut() = self.uri;
        *request.version_mut() = self.version;
        *request.headers_mut() = self.headers;
        request
    }
}
