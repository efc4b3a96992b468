//! Fault injection and CORS, before a request is forwarded. Not used for rules without either.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Request, Response};

use crate::exchange::downstream::body::DownstreamBody;
use crate::exchange::forward;
use crate::exchange::forward::reply_body::ReplyBody;
use crate::exchange::message::clean::Cleaned;
use crate::exchange::message::local_reply::{self, LocalReply};
use crate::exchange::record::{Ending, Record};
use crate::exchange::select::context::RequestContext;
use crate::exchange::worker::Worker;
use crate::telemetry::{Counter, Gauge, ResponseFlags};
use traffic::filter::{Abort, CorsVerdict, Early, Fault};

/// Maximum number of requests that one worker delays at a time; further ones are not delayed, and counted.
pub const DELAYED_MAX: u32 = 10_000;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// Applies faults and CORS around the forwarding of a request.
pub async fn run(
    early: &Early,
    context: RequestContext<'_>,
    (request, cleaned): (&mut Request<DownstreamBody>, Cleaned<'_>),
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
    match (&early.cors, verdict) {
        (_, CorsVerdict::Answer(headers)) => {
            let mut response = Response::new(Bytes::new());
            *response.headers_mut() = headers;
            record.record_rule_response(&response, "cors_response");
            record.finish(Ending::Complete);
            response.map(ReplyBody::from)
        }
        (Some(cors), CorsVerdict::Share(origin)) => {
            let mut response = forward::run(context, (request, cleaned), record).await;
            cors.share(origin, response.headers_mut());
            response
        }
        _ => forward::run(context, (request, cleaned), record).await,
    }
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
    record.finish(Ending::Complete);
    response.map(ReplyBody::from)
}
