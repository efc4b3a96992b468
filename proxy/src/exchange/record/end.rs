//! Outcome of an exchange, as the access log reads it.

use std::sync::Arc;
use std::time::Duration;

use crate::telemetry::{RequestRecord, RequestStats};
use crate::upstream::ConnectionInfo;
use traffic::trace::TraceContext;

/// Outcome of a request, with its upstream connection.
pub struct Outcome<'a> {
    /// End of the exchange.
    pub end: &'a End<'a>,
    /// Upstream connection.
    pub ends: Option<&'a ConnectionInfo>,
}

/// Outcome of an exchange for the access log.
pub struct End<'a> {
    /// The report for the metrics.
    pub record: &'a RequestRecord,
    /// Response code details, in Envoy's words.
    pub details: &'a str,
    /// Number of attempts.
    pub attempts: u32,
    /// Time from the last request byte to the first response byte.
    pub upstream_time: Option<Duration>,
    /// Time from the beginning of the request to its last byte.
    pub request_time: Option<Duration>,
    /// Metrics, without values of the request as labels.
    pub stats: &'a Arc<RequestStats>,
    /// Rule that was chosen.
    pub rule: Option<&'a str>,
    /// Trace of the request.
    pub trace: Option<&'a TraceContext>,
    /// Whether the request has spans that may be exported, with tags that have operators.
    pub has_spans: bool,
}

impl<'a> End<'a> {
    /// The end of a request that was refused before it reached the exchange.
    pub fn refused(
        record: &'a RequestRecord,
        details: &'a str,
        stats: &'a Arc<RequestStats>,
    ) -> Self {
        Self {
            record,
            details,
            attempts: 0,
            upstream_time: None,
            request_time: None,
            stats,
            rule: None,
            trace: None,
            has_spans: false,
        }
    }
}
