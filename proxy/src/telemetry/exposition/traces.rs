//! Families about traces and their export.

use prometheus::proto::MetricFamily;

use super::families::{counter_family, gauge_family, pair, unix_seconds};
use crate::telemetry::Telemetry;
use crate::telemetry::otlp::Exporter;
use traffic::telemetry::names::{self, label};
use traffic::trace::DecidedBy;

/// Sampling decisions, without kinds that never occurred.
pub(super) fn decisions(telemetry: &Telemetry) -> MetricFamily {
    let totals = telemetry.traces.totals();
    debug_assert_eq!(totals.len(), DecidedBy::ALL.len() * 2);
    let origins = DecidedBy::ALL.into_iter();
    let kinds = origins.flat_map(|by| ["not_sampled", "sampled"].map(|decision| (by, decision)));
    let counted = kinds.zip(totals).filter(|(_, count)| *count > 0);
    let values = counted.map(|((by, decision), count)| {
        let labels = vec![
            pair(label::DECISION, decision),
            pair(label::BY, by.as_str()),
        ];
        (labels, count)
    });
    counter_family(names::TRACES, values)
}

/// Requests to the collector, and what waits for it.
pub(super) fn exporter(exporter: &Exporter) -> [MetricFamily; 3] {
    let signal = || pair(label::SIGNAL, "traces");
    let totals = exporter.totals();
    let results = totals
        .results()
        .map(|(result, count)| (vec![signal(), pair(label::RESULT, result.as_str())], count));
    let queued = [(vec![signal()], exporter.queue_bytes() as f64)];
    let last = totals.last_success();
    let last = last.map(|at| (vec![signal()], unix_seconds(at)));
    [
        counter_family(names::OTLP_EXPORTS, results),
        gauge_family(names::OTLP_QUEUE, queued),
        gauge_family(names::OTLP_LAST_SUCCESS, last),
    ]
}
