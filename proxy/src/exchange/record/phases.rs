//! Metrics of the phases of attempts, and exemplars.

use std::time::{Duration, UNIX_EPOCH};

use super::Record;
use traffic::telemetry::{TracedRequest, UpstreamPhase};
use traffic::trace::TraceContext;

impl Record {
    /// Counts the phases of the attempt that has ended, each if there was one.
    pub(super) fn count_phases(&mut self) {
        if !std::mem::take(&mut self.phases_pending) {
            return;
        }
        let phases = self.phases.get().ended();
        for (phase, time) in [
            (UpstreamPhase::Wait, phases.wait()),
            (UpstreamPhase::Connect, phases.connect()),
            (UpstreamPhase::Tls, phases.tls()),
        ] {
            if !time.is_zero() {
                self.count_phase(phase, time);
            }
        }
    }

    /// Counts the phases of a request that has ended, and of its attempt if that has not.
    pub(super) fn report_phases(&mut self, duration: Duration) {
        self.count_phases();
        if let (Some(first_byte), Some(request)) = (self.upstream_time, self.request_took()) {
            self.count_phase(UpstreamPhase::FirstByte, first_byte);
            let body = duration.saturating_sub(request + first_byte);
            self.count_phase(UpstreamPhase::Body, body);
        }
    }

    fn count_phase(&self, phase: UpstreamPhase, time: Duration) {
        if let Some(picked) = &self.picked {
            let phases = picked.endpoint().stats.phases();
            phases.observe(self.worker.id, phase, time);
        }
    }

    /// Trace of the request as an exemplar, if it is sampled and has spans.
    pub(super) fn exemplar(&self, duration: Duration) -> Option<TracedRequest> {
        let context = self.trace.filter(TraceContext::is_sampled)?;
        if self.exported().is_none() || !self.worker.setting(|all| all.exemplars) {
            return None;
        }
        let ended = self.start_time() + duration;
        let millis = ended.duration_since(UNIX_EPOCH).ok()?.as_millis();
        Some(TracedRequest {
            trace_id: context.trace_id,
            span_id: context.span_id,
            ended_millis: u64::try_from(millis).ok()?,
        })
    }
}
