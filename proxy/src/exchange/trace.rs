//! The trace context of a request: read from its head, decided, and added to what goes upstream.

use http::{HeaderMap, Request};
use hyper::header::HeaderName;

use super::message::clean::Cleaned;
use super::trace_parts::admits;
use super::worker::Worker;
use crate::snapshot::{Direction, Traced};
use crate::telemetry::Counter;
use traffic::trace::{
    self, DecidedBy, Incoming, RequestId, SpanForm, TraceContext, headers, sampling,
};
use wire::fields;

/// Asks for a trace; of an internal client.
const X_ENVOY_FORCE_TRACE: HeaderName = HeaderName::from_static("x-envoy-force-trace");

/// Id by which a client finds the trace of its request.
pub(super) const X_CLIENT_TRACE_ID: HeaderName = HeaderName::from_static("x-client-trace-id");

/// Begins or continues the trace of a request with a clean head, and adds it to what goes upstream.
pub(super) fn begin<B>(
    worker: &Worker,
    traced: Traced<'_>,
    request: &mut Request<B>,
    cleaned: &mut Cleaned<'_>,
) -> TraceContext {
    let Traced {
        settings,
        direction,
    } = traced;
    let head = request.headers_mut();
    let parent = trace::read(head, settings);
    worker.count(counter(&parent));
    let mut context = worker.random(TraceContext::begin);
    if settings.has_short_ids {
        context.trace_id[..8].fill(0);
    }
    context.is_single = settings.spans == SpanForm::Istio && direction != Direction::Gateway;
    let id = cleaned.request_id(head);
    let asked = trace::Request {
        id: id.and_then(|id| RequestId::read(id, cleaned.is_id_kept)),
        is_id_kept: cleaned.is_id_kept,
        is_forced: fields::has(head, &X_ENVOY_FORCE_TRACE),
        has_client_id: fields::has(head, &X_CLIENT_TRACE_ID),
    };
    let is_external = direction == Direction::Gateway && !cleaned.trust.internal;
    let admit = || !is_external || admits(worker.traces.external.as_ref());
    trace::decide(&mut context, &parent, &asked, settings, admit);
    let mark = sampling::new_mark(&context, &asked, settings);
    let marked = id
        .zip(mark)
        .and_then(|(id, mark)| sampling::marked(id, mark));
    if let Some(id) = marked {
        cleaned.set_request_id(head, id);
    }
    headers::clear(head, settings, &parent);
    if settings.propagates {
        context.propagators = settings.propagators;
        cleaned.add_trace(head, context);
    }
    let counted = tally(context.decided_by, context.is_sampled());
    worker.telemetry.traces.count(worker.id, counted);
    context
}

/// Continues the trace of a request that gets no further than its head, if the client has sampled it.
pub(super) fn continued(
    worker: &Worker,
    traced: Traced<'_>,
    head: &HeaderMap,
) -> Option<TraceContext> {
    let parent = trace::read(head, traced.settings);
    parent.ids.filter(|_| parent.is_sampled == Some(true))?;
    let mut context = worker.random(TraceContext::begin);
    let is_external = traced.direction == Direction::Gateway;
    let admit = || !is_external || admits(worker.traces.external.as_ref());
    let asked = trace::Request::default();
    trace::decide(&mut context, &parent, &asked, traced.settings, admit);
    (context.decided_by == DecidedBy::Parent).then_some(context)
}

/// Number of the counter of a decision.
pub(super) fn tally(decided_by: DecidedBy, is_sampled: bool) -> usize {
    decided_by as usize * 2 + usize::from(is_sampled)
}

fn counter(parent: &Incoming) -> Counter {
    match parent {
        Incoming {
            is_conflict: true, ..
        } => Counter::TraceContextsConflict,
        Incoming {
            is_invalid: true, ..
        } => Counter::TraceContextsInvalid,
        Incoming { ids: Some(_), .. } => Counter::TraceContextsValid,
        _ => Counter::TraceContextsNone,
    }
}
