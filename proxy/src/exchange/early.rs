//! Fault injection, CORS, limits and checks by another service, before a request is forwarded or redirected. Not used for rules without them.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response};

use crate::exchange::direct;
use crate::exchange::downstream::body::DownstreamBody;
use crate::exchange::ext_authz;
use crate::exchange::forward;
use crate::exchange::forward::reply_body::ReplyBody;
use crate::exchange::limit;
use crate::exchange::message::clean::Cleaned;
use crate::exchange::message::local_reply::{self, LocalReply};
use crate::exchange::record::{Ending, Record};
use crate::exchange::select::context::RequestContext;
use crate::exchange::worker::Worker;
use crate::telemetry::{Counter, Gauge, ResponseFlags};
use traffic::filter::{Abort, CorsVerdict, Early, Fault};
use traffic::limit::RouteLimits;

/// Maximum number of requests that one worker delays at a time; further ones are not delayed, and counted.
pub const DELAYED_MAX: u32 = 10_000;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// Applies faults, CORS, limits and the check around the redirect or the forwarding of a request.
pub async fn run(
    early: &Early,
    context: RequestContext<'_>,
    request: &mut Request<DownstreamBody>,
    mut cleaned: Cleaned<'_>,
    mut record: Box<Record>,
) -> Response<ReplyBody> {
    if let Some(fault) = &early.fault
        && let Some(abort) = apply_faults(fault, context.worker, &mut record).await
    {
        return aborted(&context, request, abort, record);
    }
    // use the current endpoints after a delay
    let newest = context.worker.snapshot();
    let context = RequestContext {
        snapshot: &newest,
        ..context
    };
    let verdict = match &early.cors {
        Some(cors) => cors.judge(request.method(), request.headers()),
        None => CorsVerdict::Pass,
    };
    if let CorsVerdict::Answer(headers) = verdict {
        let mut response = Response::new(Bytes::new());
        *response.headers_mut() = headers;
        record.record_rule_response(&response, "cors_response");
        record.finish(Ending::Complete);
        return response.map(ReplyBody::from);
    }
    let admitted = match &early.limits {
        None => Ok(None),
        Some(limits) => admit(limits, &context, request, &mut cleaned, &mut record).await,
    };
    let checked = match (admitted, &early.check) {
        (Ok(added), Some(check)) => {
            // the service gets the fields that the proxy adds
            cleaned.show(request.headers_mut());
            // boxed: few routes have a check
            let asked = ext_authz::route::ask(check, &context, request, &record);
            Box::pin(asked).await.map(|cookies| (added, Some(cookies)))
        }
        (admitted, _) => admitted.map(|added| (added, None)),
    };
    let mut response = match checked {
        Err(reply) => refused(&context, request, &reply, record),
        Ok((added, cookies)) => {
            let mut response = match direct::answer(&context, request, &record) {
                Some(response) => direct::finish(&context, request, response, record),
                None => forward::run(context, request, cleaned, record).await,
            };
            if let Some(added) = added {
                response.headers_mut().extend(*added);
            }
            if let Some(cookies) = cookies {
                cookies.add(response.status(), response.headers_mut());
            }
            response
        }
    };
    if let Some(cors) = &early.cors {
        let allowed = match verdict {
            CorsVerdict::Share(origin) => Some(origin),
            CorsVerdict::Answer(_) | CorsVerdict::Pass => None,
        };
        cors.share(allowed, response.headers_mut());
    }
    response
}

/// Counts a request, and limits its body. Returns headers of the rate limit service for the response.
async fn admit(
    limits: &Arc<RouteLimits>,
    context: &RequestContext<'_>,
    request: &mut Request<DownstreamBody>,
    cleaned: &mut Cleaned<'_>,
    record: &mut Record,
) -> Result<Option<Box<HeaderMap>>, LocalReply> {
    let described = limit::admit(limits, context, request, cleaned, record)?;
    let service = context.snapshot.rate_limit_service.as_ref();
    match service.filter(|_| !described.is_empty()) {
        None => Ok(None),
        // boxed: few routes have limits that a service counts
        Some(service) => {
            let added = Box::pin(limit::service::ask(
                described, service, context, request, record,
            ))
            .await;
            added.map(|added| (!added.is_empty()).then(|| Box::new(added)))
        }
    }
}

/// Replies to a request that limits refuse, with the rule's response edits.
fn refused(
    context: &RequestContext<'_>,
    request: &Request<DownstreamBody>,
    reply: &LocalReply,
    mut record: Box<Record>,
) -> Response<ReplyBody> {
    let mut response = record.reply(reply);
    context.edit_reply(request, &record, &mut response);
    record.record_logged_head(response.headers());
    record.finish(Ending::Complete);
    response.map(ReplyBody::from)
}

/// Draws the faults of a request and waits for its delay; returns the reply if it is aborted.
async fn apply_faults(fault: &Fault, worker: &Rc<Worker>, record: &mut Record) -> Option<Abort> {
    let plan = worker.random(|rng| fault.plan(rng));
    if let Some(time) = plan.delay {
        match DelayPermit::take(worker) {
            Some(permit) => {
                record.add_flags(ResponseFlags::DI);
                permit.wait(time).await;
                record.record_forwarding_start();
            }
            None => worker.count(Counter::FaultDelaysOverflowed),
        }
    }
    plan.abort
}

/// Counts a delayed request until its delay is over or its client has disconnected.
struct DelayPermit<'a>(&'a Worker);

impl<'a> DelayPermit<'a> {
    fn take(worker: &'a Worker) -> Option<Self> {
        let taken = worker.delayed.get();
        if taken >= DELAYED_MAX {
            return None;
        }
        worker.delayed.set(taken + 1);
        worker.raise(Gauge::FaultDelaysActive);
        worker.count(Counter::FaultDelays);
        Some(Self(worker))
    }

    async fn wait(self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

impl Drop for DelayPermit<'_> {
    fn drop(&mut self) {
        self.0.delayed.set(self.0.delayed.get() - 1);
        self.0.lower(Gauge::FaultDelaysActive);
    }
}

/// Replies to an aborted request, with the rule's response edits.
fn aborted(
    context: &RequestContext<'_>,
    request: &Request<DownstreamBody>,
    abort: Abort,
    mut record: Box<Record>,
) -> Response<ReplyBody> {
    context.worker.count(Counter::FaultAborts);
    let mut response = record.reply(&LocalReply::fault(abort.status));
    local_reply::drop_forbidden_body(&mut response);
    if let Some(status) = abort.grpc
        && record.replies_grpc()
    {
        let headers = response.headers_mut();
        headers.insert(GRPC_STATUS, HeaderValue::from(u16::from(status)));
        record.record_grpc_status(headers);
    }
    context.edit_reply(request, &record, &mut response);
    record.record_logged_head(response.headers());
    record.finish(Ending::Complete);
    response.map(ReplyBody::from)
}
