//! One request to one endpoint, and the one replay that a reused connection may need.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use http::request::Parts;
use hyper::{Request, Response, Version};

use crate::exchange::body::replay::Source;
use crate::exchange::body::upstream::UpstreamBody;
use crate::exchange::downstream::connection::Connection;
use crate::exchange::message::added::Added;
use crate::exchange::message::headers::AttemptHeaders;
use crate::exchange::message::readdress;
use crate::exchange::message::saved_head::SavedHead;
use crate::exchange::select::context::RequestContext;
use crate::exchange::select::target::PickedEndpoint;
use crate::exchange::worker::Worker;
use crate::pool::{ConnectionChoice, Incoming, Phases, PoolTarget};
use crate::telemetry::Counter;
use crate::upstream::http1::{Interim, Message};
use crate::upstream::{Client, Host, Protocol};
use traffic::cluster::RemoteGateway;
use traffic::error::Error;

/// Request in the form in which it goes upstream.
pub struct Outgoing {
    form: Form,
    /// HTTP version of the client's request.
    version: Version,
    /// Whether it has no body and an idempotent method, so that sending it twice does no harm.
    repeatable: bool,
    /// Whether its method is idempotent (RFC 9110, section 9.2.2).
    idempotent: bool,
    /// Whether any byte went to an endpoint.
    sent: bool,
    /// Host for TLS to the endpoint, where the request names it.
    host: Option<Rc<Host>>,
}

enum Form {
    Http1 {
        /// Head and body, taken when a connection has taken them over for good.
        message: Option<Message<UpstreamBody>>,
        /// Copy for further attempts of a request with a body; one without a body is sent again from its `message`.
        saved: Option<Box<SavedRequest>>,
    },
    Http2(Box<Http2>),
}

struct Http2 {
    /// Head and body, taken when a connection has taken them over.
    request: Option<Request<UpstreamBody>>,
    saved: Option<SavedRequest>,
    /// Receiver of interim responses.
    interim: Option<Arc<dyn Interim>>,
}

/// Saved request for a further attempt.
struct SavedRequest {
    saved_head: SavedHead,
    /// Body of the request, if there is one.
    source: Option<Rc<Source>>,
}

impl SavedRequest {
    fn body(&self) -> Option<UpstreamBody> {
        match &self.source {
            None => Some(UpstreamBody::Empty),
            Some(source) => source.reader().map(UpstreamBody::Shared),
        }
    }
}

/// Options that decide the form of a request.
#[derive(Clone, Debug)]
pub struct SendOptions<'a> {
    /// HTTP version of the client's request.
    pub version: Version,
    /// Protocol of the endpoint.
    pub protocol: Protocol,
    /// Whether more than one attempt may be made.
    pub retriable: bool,
    /// Host for TLS to the endpoint, where the request names it.
    pub host: Option<Rc<Host>>,
    /// Whether a further attempt may need another path, because several clusters serve the request.
    pub moves: bool,
    /// Gateway that the request goes through.
    pub hop: Option<&'a Arc<RemoteGateway>>,
}

impl Outgoing {
    /// Makes a request with these options, and uses up its head. `added` are fields that are not among its headers.
    pub fn new(
        context: &RequestContext<'_>,
        options: SendOptions<'_>,
        parts: &mut Parts,
        mut added: Option<Added<'_>>,
        body: UpstreamBody,
    ) -> Self {
        let SendOptions {
            version,
            protocol,
            retriable,
            host,
            moves,
            hop,
        } = options;
        let bodiless = matches!(body, UpstreamBody::Empty);
        let idempotent = parts.method.is_idempotent();
        let repeatable = bodiless && idempotent;
        // a body that is not buffered cannot be sent again
        let is_whole = bodiless || body.source().is_some();
        let saved_head = |parts: &Parts| SavedRequest {
            saved_head: SavedHead::of(&context.worker.buffers, parts),
            source: body.source(),
        };
        let form = match protocol {
            Protocol::Http1 => {
                let wanted = (retriable && !bodiless || moves) && is_whole;
                if wanted && let Some(added) = added.take() {
                    added.insert_into(&mut parts.headers);
                }
                let saved = wanted.then(|| Box::new(saved_head(parts)));
                by(hop, parts);
                Form::Http1 {
                    message: Some(message(context, version, parts, added, body)),
                    saved,
                }
            }
            Protocol::Http2 => {
                // of several requests that wait for a new connection one goes first, so that any may meet a used one
                let wanted = (retriable || repeatable || moves) && is_whole;
                if let Some(added) = added {
                    added.insert_into(&mut parts.headers);
                }
                let saved = wanted.then(|| saved_head(parts));
                by(hop, parts);
                let (unused, ()) = Request::new(()).into_parts();
                let parts = std::mem::replace(parts, unused);
                let request = Some(Request::from_parts(parts, body));
                let interim = interim(context.connection, version);
                Form::Http2(Box::new(Http2 {
                    request,
                    saved,
                    interim,
                }))
            }
        };
        Self {
            form,
            version,
            repeatable,
            idempotent,
            sent: false,
            host,
        }
    }

    /// Whether its method is idempotent.
    pub fn is_idempotent(&self) -> bool {
        self.idempotent
    }

    /// Whether it can be sent to another cluster: nothing of it was sent yet, or its whole body is buffered and at most
    /// `body_max` bytes long.
    pub fn can_move(&self, body_max: usize) -> bool {
        let saved = match &self.form {
            Form::Http1 { saved, .. } => saved.as_deref(),
            Form::Http2(http2) => http2.saved.as_ref(),
        };
        let source = saved.and_then(|saved| saved.source.as_ref());
        let fits = source.is_none_or(|source| source.is_within(body_max));
        self.can_rewind() && (fits || !self.is_sent())
    }

    /// Whether any byte of it went to an endpoint, in any attempt.
    pub fn is_sent(&self) -> bool {
        let begun = match &self.form {
            Form::Http1 { message, .. } => message.as_ref().is_none_or(Message::is_begun),
            Form::Http2(_) => false,
        };
        self.sent || begun
    }

    /// Whether it can be sent again.
    pub fn can_rewind(&self) -> bool {
        let saved = match &self.form {
            Form::Http1 {
                message: Some(message),
                saved: None,
            } => return message.can_rewind(),
            Form::Http1 { saved, .. } => saved.as_deref(),
            Form::Http2(http2) => http2.saved.as_ref(),
        };
        saved.is_some_and(|saved| saved.source.as_ref().is_none_or(|body| body.is_whole()))
    }

    /// Whether it is saved, so that it can be remade for an endpoint behind another gateway.
    pub fn is_saved(&self) -> bool {
        match &self.form {
            Form::Http1 { saved, .. } => saved.is_some(),
            Form::Http2(http2) => http2.saved.is_some(),
        }
    }

    /// Makes the request ready for a further attempt, with these headers, at an endpoint behind this gateway, if any.
    /// Returns false if it cannot be sent again.
    pub fn rewind(
        &mut self,
        context: &RequestContext<'_>,
        hop: Option<&Arc<RemoteGateway>>,
        headers: &AttemptHeaders,
    ) -> bool {
        self.sent = self.is_sent();
        let remade = |saved: &mut SavedRequest| {
            let body = saved.body()?;
            let mut parts = saved.saved_head.parts();
            headers.apply(&mut parts.headers);
            // the attempt may be sent once more, on a fresh connection
            saved.saved_head = SavedHead::of(&context.worker.buffers, &parts);
            by(hop, &mut parts);
            Some((parts, body))
        };
        match &mut self.form {
            Form::Http1 {
                message: Some(message),
                saved: None,
            } => {
                let rewound = message.rewind();
                headers.each(|name, value| message.set_header(&name, &value));
                rewound
            }
            Form::Http1 {
                message: slot,
                saved,
            } => {
                let made = saved.as_deref_mut().and_then(remade);
                *slot = made.map(|(mut parts, body)| {
                    message(context, self.version, &mut parts, None, body)
                });
                slot.is_some()
            }
            Form::Http2(http2) => {
                let made = http2.saved.as_mut().and_then(remade);
                http2.request = made.map(|(parts, body)| Request::from_parts(parts, body));
                http2.request.is_some()
            }
        }
    }

    /// Frees the memory of further attempts, because none follows.
    pub fn release_saved(&mut self) {
        let saved = match &self.form {
            Form::Http1 { saved, .. } => saved.as_deref(),
            Form::Http2(http2) => http2.saved.as_ref(),
        };
        if let Some(source) = saved.and_then(|saved| saved.source.as_ref()) {
            source.release();
        }
    }
}

/// Makes the head that of a request to an endpoint behind this gateway, if any.
fn by(hop: Option<&Arc<RemoteGateway>>, parts: &mut Parts) {
    if let Some(hop) = hop {
        readdress::by_gateway(parts, hop);
    }
}

fn message(
    context: &RequestContext<'_>,
    version: Version,
    parts: &mut Parts,
    added: Option<Added<'_>>,
    body: UpstreamBody,
) -> Message<UpstreamBody> {
    let memory = context.worker.buffers.take();
    let more = |out: &mut Vec<u8>| {
        if let Some(added) = added {
            added.write_to(out);
        }
    };
    let mut message = Message::with_more(memory, parts, more, body);
    message.set_interim(interim(context.connection, version));
    message
}

/// Returns the receiver of interim responses; none for HTTP/1.0, which must not get any (RFC 9110, section 15.2).
fn interim(connection: &Connection, version: Version) -> Option<Arc<dyn Interim>> {
    (version >= Version::HTTP_11).then(|| Arc::clone(&connection.interim) as Arc<dyn Interim>)
}

/// Sends the request to the picked endpoint, and keeps `phases` up to date until it has a connection.
///
/// A pooled connection may have been closed by its peer just as the request went out. If nothing of the request can
/// have been acted on twice, it is sent once more on a fresh connection. A POST is never sent twice once a byte of it
/// was written.
///
/// # Errors
///
/// Reason why there is no response.
#[expect(
    clippy::manual_async_fn,
    reason = "the parameters of an `async fn` are copied once more"
)]
pub fn run(
    context: &RequestContext<'_>,
    picked: &PickedEndpoint,
    outgoing: &mut Outgoing,
    phases: &Cell<Phases>,
) -> impl Future<Output = Result<Response<Incoming>, Error>> {
    async move {
        let message = match &mut outgoing.form {
            Form::Http1 { message, .. } => message,
            Form::Http2(http2) => {
                let attempt = AttemptContext::new(context, picked, &outgoing.host, phases);
                // boxed: larger than what HTTP/1 takes, which would have to carry it
                let sent = &mut outgoing.sent;
                let sending = over_http2(attempt, http2, outgoing.repeatable, sent);
                return Box::pin(sending).await;
            }
        };
        let mut choice = ConnectionChoice::Any;
        loop {
            // made anew each time, not kept: every request would have to carry it
            let attempt = AttemptContext::new(context, picked, &outgoing.host, phases);
            let pool_target = attempt.pool_target(Protocol::Http1);
            let pools = &context.worker.pools;
            let failed = match pools.send_http1(pool_target, message, choice).await {
                Ok(response) => return Ok(response),
                Err(failed) => failed,
            };
            outgoing.sent |= failed.sent;
            let replays =
                choice == ConnectionChoice::Any && outgoing.repeatable && failed.may_repeat();
            if !(replays && message.as_mut().is_some_and(Message::rewind)) {
                return Err(failed.error);
            }
            note_stale(context.worker, phases);
            choice = ConnectionChoice::Fresh;
        }
    }
}

/// Notes that the request is sent again on a fresh connection.
fn note_stale(worker: &Worker, phases: &Cell<Phases>) {
    worker.count(Counter::StaleConnectionRetries);
    let mut noted = phases.get();
    noted.is_stale = true;
    phases.set(noted);
}

/// Values that sending an attempt needs.
#[derive(Clone, Copy)]
struct AttemptContext<'a> {
    worker: &'a Worker,
    client: &'a Client,
    picked: &'a PickedEndpoint,
    host: Option<&'a Rc<Host>>,
    phases: &'a Cell<Phases>,
}

impl<'a> AttemptContext<'a> {
    fn new(
        context: &RequestContext<'a>,
        picked: &'a PickedEndpoint,
        host: &'a Option<Rc<Host>>,
        phases: &'a Cell<Phases>,
    ) -> Self {
        Self {
            worker: context.worker,
            client: &context.connection.client,
            picked,
            host: host.as_ref(),
            phases,
        }
    }

    fn pool_target(self, protocol: Protocol) -> PoolTarget<'a> {
        let pool_target = self.picked.pool_target(self.client, protocol);
        PoolTarget {
            phases: Some(self.phases),
            ..pool_target.asking_for(self.host)
        }
    }
}

async fn over_http2(
    attempt: AttemptContext<'_>,
    http2: &mut Http2,
    repeatable: bool,
    sent: &mut bool,
) -> Result<Response<Incoming>, Error> {
    let worker = attempt.worker;
    let Http2 {
        request,
        saved,
        interim,
    } = http2;
    let mut choice = ConnectionChoice::Any;
    loop {
        let interim = interim.as_ref();
        let pools = &worker.pools;
        let failed = match pools
            .send_http2(
                attempt.pool_target(Protocol::Http2),
                request,
                interim,
                choice,
            )
            .await
        {
            Ok(response) => return Ok(response),
            Err(failed) => failed,
        };
        *sent |= failed.sent;
        let replays = choice == ConnectionChoice::Any && repeatable && failed.may_repeat();
        let Some(saved) = saved.as_ref().filter(|_| replays) else {
            return Err(failed.error);
        };
        note_stale(worker, attempt.phases);
        let mut parts = saved.saved_head.parts();
        by(attempt.picked.endpoint().hop.as_ref(), &mut parts);
        *request = Some(Request::from_parts(parts, UpstreamBody::Empty));
        choice = ConnectionChoice::Fresh;
    }
}
