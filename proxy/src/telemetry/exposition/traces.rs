//! Families about traces, and about exports to collectors.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use prometheus::proto::MetricFamily;

use super::families::{counter_family, gauge_family, pair, unix_seconds};
use crate::telemetry::Telemetry;
use crate::telemetry::otlp::{Exporter, OtlpSignal, OtlpTotals};
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

/// Counts of requests to collectors, by signal.
#[derive(Default)]
pub(super) struct Signals(BTreeMap<OtlpSignal, SignalCounts>);

#[derive(Default)]
struct SignalCounts {
    results: BTreeMap<&'static str, u64>,
    queue_bytes: usize,
    last_success: Option<SystemTime>,
}

impl Signals {
    /// Adds up the exporters of each signal.
    pub(super) fn of<'e>(
        exporters: impl Iterator<Item = &'e Arc<Exporter>>,
        push: Option<&OtlpTotals>,
    ) -> Self {
        let mut signals = Self::default();
        for exporter in exporters {
            let counts = signals.add(exporter.signal(), exporter.totals());
            counts.queue_bytes += exporter.queue_bytes();
        }
        if let Some(push) = push {
            signals.add(OtlpSignal::Metrics, push);
        }
        signals
    }

    fn add(&mut self, signal: OtlpSignal, totals: &OtlpTotals) -> &mut SignalCounts {
        let counts = self.0.entry(signal).or_default();
        for (result, count) in totals.results() {
            *counts.results.entry(result.as_str()).or_default() += count;
        }
        counts.last_success = counts.last_success.max(totals.last_success());
        counts
    }

    /// Requests to collectors, and what waits for them.
    pub(super) fn families(&self) -> [MetricFamily; 3] {
        let label = |signal: &OtlpSignal| pair(label::SIGNAL, signal.as_str());
        let results = self.0.iter().flat_map(|(signal, counts)| {
            let results = counts.results.iter();
            results.map(move |(result, count)| {
                (vec![label(signal), pair(label::RESULT, result)], *count)
            })
        });
        let queued = self.0.iter();
        let queued = queued.map(|(signal, one)| (vec![label(signal)], one.queue_bytes as f64));
        let last = self.0.iter().filter_map(|(signal, one)| {
            let at = unix_seconds(one.last_success?);
            Some((vec![label(signal)], at))
        });
        [
            counter_family(names::OTLP_EXPORTS, results),
            gauge_family(names::OTLP_QUEUE, queued),
            gauge_family(names::OTLP_LAST_SUCCESS, last),
        ]
    }
}
