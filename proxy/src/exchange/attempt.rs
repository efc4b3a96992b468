//! One request to one endpoint, and the one replay that a reused connection may need.

use std::sync::Arc;

use http::request::Parts;
use hyper::{Request, Response, Version};

use super::body::UpstreamBody;
use super::forward::Forward;
use super::request::{Connection, DownstreamProtocol, Picked, Worker};
use super::spare::Spare;
use crate::error::{Error, Kind, Retry};
use crate::pool::{Choice, Failed, Incoming, Target};
use crate::telemetry::Counter;
use crate::upstream::Protocol;
use crate::upstream::http1::{Interim, Message};

/// A request in the form in which it goes upstream.
pub struct Outgoing {
    form: Form,
    /// Nothing of it can be acted on twice: it has no body, and its method is idempotent (RFC 9110, section 9.2.2).
    repeatable: bool,
}

/// Taken when the request is handed on for good.
#[expect(
    clippy::large_enum_variant,
    reason = "the usual one stays where it is; a box would be an allocation per request"
)]
enum Form {
    Http1(Option<Message<UpstreamBody>>),
    Http2(Option<Box<Request<UpstreamBody>>>),
}

impl Outgoing {
    /// A request that came as HTTP `version`, for an endpoint that speaks `protocol`.
    pub fn new(
        forward: &Forward<'_>,
        version: Version,
        protocol: Protocol,
        parts: Parts,
        body: UpstreamBody,
    ) -> Self {
        let worker = forward.worker;
        let repeatable = matches!(body, UpstreamBody::Empty) && parts.method.is_idempotent();
        let form = match protocol {
            Protocol::Http1 => {
                let interim = interim(forward.connection, version);
                let message = Message::new(worker.buffers.take(), parts, body);
                Form::Http1(Some(message.with_interim(interim)))
            }
            Protocol::Http2 => Form::Http2(Some(Box::new(Request::from_parts(parts, body)))),
        };
        Self { form, repeatable }
    }
}

/// Who takes interim responses: an HTTP/1.1 client does, one of HTTP/1.0 must not (RFC 9110, section 15.2), and the
/// library that writes HTTP/2 cannot.
fn interim(connection: &Connection, version: Version) -> Option<Arc<dyn Interim>> {
    let takes = connection.protocol == DownstreamProtocol::Http1 && version == Version::HTTP_11;
    takes.then(|| Arc::clone(&connection.interim) as Arc<dyn Interim>)
}

/// Sends the request to the picked endpoint.
///
/// A pooled connection may have been closed by its peer just as the request went out. If nothing of the request can
/// have been acted on twice, it is sent once more on a fresh connection. A POST is never sent twice once a byte of it
/// was written.
///
/// # Errors
///
/// The reason why there is no response.
pub async fn run(
    worker: &Worker,
    picked: &Picked,
    outgoing: &mut Outgoing,
) -> Result<Response<Incoming<UpstreamBody>>, Error> {
    let target = picked.target();
    let repeatable = outgoing.repeatable;
    match &mut outgoing.form {
        Form::Http1(message) => over_http1(worker, target, message, repeatable).await,
        Form::Http2(request) => match request.take() {
            // boxed: larger than what HTTP/1 takes, which would have to carry it
            Some(request) => Box::pin(over_http2(worker, target, *request, repeatable)).await,
            None => Err(Error::new(Kind::DownstreamBody)),
        },
    }
}

async fn over_http1(
    worker: &Worker,
    target: Target<'_>,
    message: &mut Option<Message<UpstreamBody>>,
    repeatable: bool,
) -> Result<Response<Incoming<UpstreamBody>>, Error> {
    let mut choice = Choice::Any;
    loop {
        let failed = match worker.pools.send_http1(target, message, choice).await {
            Ok(response) => return Ok(response),
            Err(failed) => failed,
        };
        let again = choice == Choice::Any && repeatable && may_replay(&failed);
        if !(again && message.as_mut().is_some_and(Message::rewind)) {
            return Err(failed.error);
        }
        worker.count(Counter::UpstreamReplays);
        choice = Choice::Fresh;
    }
}

async fn over_http2(
    worker: &Worker,
    target: Target<'_>,
    request: Request<UpstreamBody>,
    repeatable: bool,
) -> Result<Response<Incoming<UpstreamBody>>, Error> {
    // of several requests that wait for a new connection one goes first, so that any may meet a used one
    let spare = repeatable.then(|| Spare::of(&worker.buffers, &request));
    let failed = match worker.pools.send_http2(target, request, Choice::Any).await {
        Ok(response) => return Ok(response),
        Err(failed) => failed,
    };
    match spare {
        Some(spare) if may_replay(&failed) => {
            worker.count(Counter::UpstreamReplays);
            let sent = worker
                .pools
                .send_http2(target, spare.request(), Choice::Fresh);
            sent.await.map_err(|failed| failed.error)
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
