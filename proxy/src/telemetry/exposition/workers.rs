//! Families about the load of workers, and the TLS of their clients.

use std::time::Duration;

use prometheus::proto::{MetricFamily, MetricType};

use super::families::{counter_family, counter_metric, family_of, histogram_metric, pair};
use traffic::telemetry::Telemetry;
use traffic::telemetry::names::{self, label};
use traffic::telemetry::workers::{DELAY_BOUNDS, SUITES};

/// All of these families, without values that never occurred.
pub(super) fn families(telemetry: &Telemetry) -> [MetricFamily; 3] {
    let busy = telemetry.busy.iter().enumerate().flat_map(|(id, busy)| {
        let labels = move || vec![pair(label::WORKER, &id.to_string())];
        let times = busy.now().into_iter();
        times.map(move |time| counter_metric(labels(), time.as_secs_f64()))
    });
    [
        family_of(names::WORKER_BUSY, MetricType::COUNTER, busy.collect()),
        delays(telemetry),
        sessions(telemetry),
    ]
}

fn delays(telemetry: &Telemetry) -> MetricFamily {
    let [counts @ .., sum] = &telemetry.delays.totals();
    let bounds = DELAY_BOUNDS.iter().map(|bound| *bound as f64 / 1e6);
    let (total, sum) = (counts.iter().sum(), Duration::from_micros(*sum));
    let counted = bounds.zip(counts.iter().copied());
    let histogram = (total > 0).then(|| histogram_metric(Vec::new(), counted, total, sum));
    let histograms = histogram.into_iter().collect();
    family_of(names::WORKER_DELAY, MetricType::HISTOGRAM, histograms)
}

fn sessions(telemetry: &Telemetry) -> MetricFamily {
    let suites = SUITES.into_iter().chain([("other", "other")]);
    let counts = suites.zip(telemetry.sessions.totals());
    let counts = counts.filter(|(_, count)| *count > 0);
    let counts = counts.map(|((version, cipher), count)| {
        let labels = vec![pair(label::CIPHER, cipher), pair(label::VERSION, version)];
        (labels, count)
    });
    counter_family(names::DOWNSTREAM_TLS_SESSIONS, counts)
}
