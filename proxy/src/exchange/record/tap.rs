//! The record of a request that taps may show.

use hyper::Request;

use super::Record;
use super::end::End;
use super::spans::{Spans, Tapped, TappedEnd};
use super::tapped::{self, TapInput};

impl Record {
    /// Begins to keep what taps show of the request, if its head is as one of them says.
    pub(in crate::exchange) fn begin_tap<B>(&mut self, input: TapInput<'_>, request: &Request<B>) {
        let set = tapped::find(&self.worker, &self.connection, &input.open, request);
        if set.is_empty() {
            return;
        }
        let spans = match self.spans.take() {
            Some(spans) => spans,
            None => Box::new(tapped::begin(
                &self.worker,
                &self.connection,
                &input,
                request,
            )),
        };
        self.spans.insert(spans).taps = Some(Tapped {
            open: input.open,
            set,
            handshake_micros: input.handshake_micros,
        });
    }

    /// Hands the request to taps.
    pub(super) fn report_tapped(&self, spans: &Spans, end: &End<'_>) {
        let end = TappedEnd {
            end,
            connection: &self.connection,
            picked: self.picked.as_ref(),
            target: self.target.as_ref(),
            started: self.started,
            time: self.start_time(),
        };
        tapped::show(&self.worker, spans, &end);
    }
}
