//! The trace of a request: its spans begin and end with the request and its attempts, and are exported at the end.

use http::request::Parts;
use hyper::Response;

use super::Record;
use super::end as log;
use super::spans::{
    ATTEMPTS_MAX, Attempt, AttemptEnd, Cause, End, OwnHead, OwnSpan, Purpose, Spans, Times,
};
use crate::exchange::message::added::trace_value;
use crate::exchange::message::header_changes::SetHeader;
use crate::exchange::message::headers::X_REQUEST_ID;
use crate::exchange::select::find_route::Found;
use crate::exchange::select::target::PickedEndpoint;
use crate::exchange::trace;
use crate::exchange::trace_parts::admits;
use crate::pool::{Incoming, Phases};
use crate::runtime::clock;
use crate::snapshot::Traced;
use crate::telemetry::{Counter, RequestProtocol, RequestRecord};
use crate::upstream::Protocol;
use traffic::error::Error;
use traffic::trace::context::new_span;
use traffic::trace::{DecidedBy, TraceContext, headers, sampling};

/// Number of the first mirror among the children of the server span.
const MIRRORS_FROM: u32 = 1 << 16;

impl Record {
    /// Records the trace of the request. Calls `spans` if spans may be exported.
    pub(in crate::exchange) fn begin_trace(
        &mut self,
        context: TraceContext,
        traced: Traced<'_>,
        spans: impl FnOnce() -> Spans,
    ) {
        self.trace = Some(context);
        let settings = traced.settings;
        let may_report = context.is_sampled() || settings.keep.is_on();
        if may_report && settings.reports && self.worker.traces.queue.is_on() {
            self.spans = Some(Box::new(spans()));
        }
    }

    /// The spans, if they may be exported.
    pub(super) fn exported(&self) -> Option<&Spans> {
        self.spans.as_deref().filter(|spans| spans.may_export)
    }

    /// The trace context of the request, if it is traced.
    pub fn trace(&self) -> Option<&TraceContext> {
        self.trace.as_ref()
    }

    /// The request id, if it says now that the request is sampled, and did not before.
    pub(in crate::exchange) fn changed_request_id(&self) -> Option<[u8; 36]> {
        let (context, spans) = (self.trace.as_ref()?, self.exported()?);
        let by = context.decided_by;
        let is_raised = matches!(by, DecidedBy::Retry | DecidedBy::Failover);
        let id = spans.request_id.as_ref()?.as_bytes();
        let uses_id = is_raised && spans.settings.uses_request_id;
        sampling::marked(id, b'9').filter(|_| uses_id)
    }

    /// Adds the request id to the response, if the client forces a trace.
    pub(in crate::exchange) fn show_forced<'f>(&self, found: &'f mut Found) -> &'f mut Found {
        let is_forced = |context: &TraceContext| context.decided_by == DecidedBy::Forced;
        if self.trace.as_ref().is_some_and(is_forced)
            && let Some(id) = self.exported().and_then(|spans| spans.request_id.clone())
        {
            let changes = found.changes.get_or_insert_default();
            changes.0.push((X_REQUEST_ID, id, SetHeader::Overwrite));
        }
        found
    }

    /// Records the rule of the request.
    pub(in crate::exchange) fn record_found(&mut self, found: &Found) {
        self.record_route(found.route());
        if let Some(spans) = &mut self.spans {
            spans.record_found(found);
        }
    }

    /// Records the head as it goes upstream.
    pub(in crate::exchange) fn record_sent(&mut self, parts: &Parts, protocol: Protocol) {
        if let Some(log) = self.log_mut() {
            log.record_upstream_request(parts, protocol);
        }
        if let Some(spans) = &mut self.spans {
            spans.record_sent(parts);
        }
    }

    /// Records the reason of the next attempt.
    pub(in crate::exchange) fn record_cause(&mut self, reason: &'static str, is_failover: bool) {
        if let Some(spans) = &mut self.spans {
            spans.cause = Some(Cause {
                reason,
                is_failover,
            });
        }
    }

    /// The span of the current attempt.
    fn attempt_span(&mut self) -> Option<&mut Attempt> {
        let last = self.spans.as_mut()?.attempts.last_mut()?;
        (last.number == self.attempts).then_some(last)
    }

    /// Begins the span of an attempt. After a failed one, the trace may be sampled from now on.
    pub(super) fn begin_attempt_span(&mut self, picked: &PickedEndpoint) {
        let Some(spans) = &mut self.spans else {
            return;
        };
        let cause = spans.cause.take();
        let raises = self.attempts > 1 && spans.may_export && spans.settings.keep.errors;
        if let Some(context) = &mut self.trace
            && raises
            && !context.is_sampled()
        {
            context.set_sampled(true);
            context.decided_by = match cause {
                Some(Cause {
                    is_failover: true, ..
                }) => DecidedBy::Failover,
                _ => DecidedBy::Retry,
            };
        }
        if spans.attempts.len() < ATTEMPTS_MAX {
            spans.attempts.push(Attempt {
                number: self.attempts,
                begun: clock::now(),
                picked: picked.clone(),
                cause,
                flags: self.trace.map_or(0, |context| context.flags),
                phases: Phases::default(),
                ended: None,
                end: AttemptEnd::Pending,
            });
        }
    }

    /// Changes the endpoint of an attempt.
    pub(super) fn move_attempt_span(&mut self, picked: &PickedEndpoint) {
        if let Some(attempt) = self.attempt_span() {
            attempt.picked = picked.clone();
        }
    }

    /// Ends the span of an attempt with its result.
    pub(super) fn end_attempt_span(&mut self, attempted: &Result<Response<Incoming>, Error>) {
        let phases = self.phases.get();
        let Some(attempt) = self.attempt_span() else {
            return;
        };
        attempt.ended = Some(clock::now());
        attempt.phases = phases.ended();
        attempt.end = match attempted {
            Ok(response) => AttemptEnd::Response {
                code: response.status().as_u16(),
                grpc_status: super::grpc_status(response.headers()),
                version: response.version(),
                ends: response.body().ends().clone(),
            },
            Err(error) => AttemptEnd::Failed {
                kind: error.kind(),
                transport: error.transport().cloned(),
            },
        };
    }

    /// Records that the response broke off.
    pub(super) fn break_attempt_span(&mut self) {
        if let Some(spans) = &mut self.spans {
            spans.is_broken = true;
        }
    }

    /// Sets the trace context of a copy for a mirror, and begins its span.
    pub(in crate::exchange) fn trace_mirror(
        &self,
        number: usize,
        picked: &PickedEndpoint,
        parts: &mut Parts,
    ) -> Option<Box<OwnSpan>> {
        let context = self.trace.as_ref()?;
        let span_id = context.child(MIRRORS_FROM.saturating_add(number as u32));
        headers::each(context, span_id, |name, value| {
            // a rule may have removed it
            if parts.headers.contains_key(name) {
                parts.headers.insert(name, trace_value(value));
            }
        });
        self.own_span(span_id, Purpose::Mirror, picked, parts)
    }

    /// Sets the trace context of a call of a service, and begins its span.
    pub(in crate::exchange) fn trace_call(
        &self,
        is_grpc: bool,
        picked: &PickedEndpoint,
        parts: &mut Parts,
    ) -> Option<Box<OwnSpan>> {
        let context = self.trace.as_ref()?;
        let span_id = self.worker.random(new_span);
        headers::each(context, span_id, |name, value| {
            parts.headers.insert(name, trace_value(value));
        });
        self.own_span(span_id, Purpose::Call { is_grpc }, picked, parts)
    }

    fn own_span(
        &self,
        span_id: [u8; 8],
        purpose: Purpose,
        picked: &PickedEndpoint,
        parts: &Parts,
    ) -> Option<Box<OwnSpan>> {
        let context = self.trace.as_ref().filter(|one| one.is_sampled())?;
        let spans = self.exported()?;
        let times = Times::new(self.started, self.start_time());
        let head = OwnHead {
            purpose,
            picked,
            parts,
        };
        Some(OwnSpan::begin(spans, context, span_id, times, head))
    }

    /// Shows the request to taps, and exports its spans.
    pub(super) fn report_kept(&self, mut spans: Spans, end: &log::End<'_>) {
        if let Some(last) = spans.attempts.last_mut()
            && matches!(last.end, AttemptEnd::Pending)
        {
            last.phases = self.phases.get().ended();
        }
        self.report_tapped(&spans, end);
        if spans.may_export {
            self.report_spans(&spans, end.record);
        }
    }

    /// Exports the spans at the end of the request, if it is sampled, or one that is kept.
    fn report_spans(&self, spans: &Spans, record: &RequestRecord) {
        let Some(context) = self.trace else {
            return;
        };
        let worker = &self.worker;
        let count = spans.count(&context);
        let mut end = End {
            context,
            times: Times::new(self.started, self.start_time()),
            ended: self.started + record.duration,
            record,
            details: &self.details,
            attempts: self.attempts,
            connection: &self.connection,
            picked: self.picked.as_ref(),
            target: self.target.as_ref(),
            is_tunnel: self.tunnel,
            own: &worker.traces.own.load(),
        };
        if !context.is_sampled() {
            let Some(by) = kept_by(spans, &end) else {
                return;
            };
            if !admits(worker.traces.keep.as_ref()) {
                let counters = &worker.telemetry.counters;
                return counters.add(worker.id, Counter::TraceSpansKeepRate, count as u64);
            }
            end.context.decided_by = by;
        }
        if end.context.decided_by.is_late() {
            let late = trace::tally(end.context.decided_by, true);
            worker.telemetry.traces.count(worker.id, late);
        }
        let added = worker.traces.queue.add(count, |out| spans.write(&end, out));
        if !added {
            let counters = &worker.telemetry.counters;
            counters.add(worker.id, Counter::TraceSpansQueue, count as u64);
        }
    }
}

/// Reason to export spans of a request that is not sampled.
fn kept_by(spans: &Spans, end: &End<'_>) -> Option<DecidedBy> {
    let keep = spans.settings.keep;
    let is_grpc = end.record.protocol == RequestProtocol::Grpc;
    let is_error = || {
        let mut attempts = spans.attempts.iter();
        spans.server_failure(end).is_some()
            || (spans.attempts.len() > 1 && attempts.any(|attempt| attempt.end.is_error(is_grpc)))
    };
    if keep.errors && is_error() {
        return Some(DecidedBy::Error);
    }
    let is_slow = keep.slow.is_some_and(|time| end.record.duration >= time);
    is_slow.then_some(DecidedBy::Slow)
}
