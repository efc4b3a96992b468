//! The spans of a request: what is known of it and of its attempts, kept until it ends, and written then in one pass.
//!
//! Only requests that are sampled, that may be kept at their end, or that a tap may show, have any.

mod attempt;
mod attributes;
mod events;
mod kept;
mod names;
mod own_request;
mod server;
mod status;
mod tapped;

pub(in crate::exchange) use self::kept::{
    ATTEMPTS_MAX, Attempt, AttemptEnd, Cause, End, Spans, Tapped, Times,
};
pub(in crate::exchange) use self::own_request::{OwnHead, OwnSpan, Purpose};
pub(in crate::exchange) use self::status::Failure;
pub(in crate::exchange) use self::tapped::TappedEnd;
use traffic::trace::TraceContext;

impl Spans {
    /// Writes the spans of the server and of all attempts; returns their number.
    pub(in crate::exchange) fn write(&self, end: &End<'_>, out: &mut Vec<u8>) {
        self.write_server(end, out);
        if !end.context.is_single {
            for attempt in &self.attempts {
                self.write_attempt(attempt, end, out);
            }
        }
    }

    /// Number of spans that [`Self::write`] writes.
    pub(in crate::exchange) fn count(&self, context: &TraceContext) -> usize {
        match context.is_single {
            true => 1,
            false => 1 + self.attempts.len(),
        }
    }
}
