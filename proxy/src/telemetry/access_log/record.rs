//! Lines of the access log as log records of OpenTelemetry.
//!
//! Source: `opentelemetry/proto/logs/v1/logs.proto`, message `LogRecord`.

use traffic::filter::{Needs, TemplateContext};

use super::custom;
use super::entry::Entry;
use super::sample::LogSample;
use super::settings::{AccessLogFormat, RecordFormat};
use super::timestamp::Timestamp;
use crate::telemetry::otlp::protobuf::{bytes, fixed32, fixed64, integer, message, unix_nanos};

impl RecordFormat {
    /// Adds the headers that records show.
    pub(super) fn add_needs(&self, needs: &mut Needs) {
        if let AccessLogFormat::Custom(format) = &self.body {
            format.add_needs(needs);
        }
        for (_, value) in &self.attributes {
            value.add_needs(needs);
        }
    }

    /// Appends a record to those of a scope.
    pub(super) fn append(
        &self,
        out: &mut Vec<u8>,
        entry: &Entry<'_>,
        context: &TemplateContext<'_>,
    ) {
        let end = entry.start + entry.duration;
        let finished = context.finished;
        message(out, 2, |out| {
            fixed64(out, 1, unix_nanos(entry.start));
            integer(
                out,
                2,
                severity(entry, finished.is_some_and(|one| one.is_tcp)),
            );
            let text = text(&self.body, entry, context);
            message(out, 5, |out| bytes(out, 1, &text));
            for (key, value) in &self.attributes {
                message(out, 6, |out| {
                    bytes(out, 1, key.as_bytes());
                    message(out, 2, |out| {
                        message(out, 1, |out| custom::text(out, value, context, false));
                    });
                });
            }
            if let Some(trace) = finished.and_then(|finished| finished.trace) {
                fixed32(out, 8, u32::from(trace.flags));
                bytes(out, 9, &trace.trace_id);
                bytes(out, 10, &trace.span_id);
            }
            fixed64(out, 11, unix_nanos(end));
        });
    }
}

/// The line of a format, without its line feed.
fn text(format: &AccessLogFormat, entry: &Entry<'_>, context: &TemplateContext<'_>) -> Vec<u8> {
    let mut line = Vec::new();
    match format {
        AccessLogFormat::Custom(format) => custom::line(&mut line, format, context),
        fixed => fixed.append_fixed(&mut line, &mut Timestamp::default(), entry, LogSample::ALL),
    }
    line.pop();
    line
}

/// Severity: INFO, WARN from status 400, ERROR from 500 and for a request without a response.
fn severity(entry: &Entry<'_>, is_tcp: bool) -> u64 {
    match entry.response_code {
        0 if is_tcp => 9,
        0 | 500.. => 17,
        400.. => 13,
        _ => 9,
    }
}
