//! Families for the applied state of configuration sources.

use std::time::{Duration, SystemTime};

use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};

use super::families::{counter_family, family_of, gauge_family, histogram_metric, pair};
use traffic::telemetry::names::{self, label};
use traffic::telemetry::propagation::{BOUNDS, PropagationStats, Tracked};

/// Age of the last message of a server that answers: an API server is silent for at most 65 s.
const CONNECTED_MAX: Duration = Duration::from_secs(70);

/// All families about sources.
pub(super) fn families(stats: &PropagationStats) -> [MetricFamily; 6] {
    let tracked = stats.tracked();
    let now = SystemTime::now();
    let histograms = tracked.iter().map(histogram).collect();
    let revisions = tracked.iter().filter_map(|one| {
        let number: u64 = one.last.revision.as_ref()?.parse().ok()?;
        Some((labels(one), number as f64))
    });
    let ages = tracked.iter().filter_map(|one| {
        let age = now.duration_since(one.last.restored?).unwrap_or_default();
        Some((labels(one), age.as_secs_f64()))
    });
    let ages_of_messages = stats.ages.now();
    let connected = ages_of_messages.iter().map(|(source, age)| {
        let labels = vec![pair(label::CONFIG_SOURCE, source)];
        (labels, f64::from(u8::from(*age <= CONNECTED_MAX)))
    });
    let connected = gauge_family(names::SOURCE_CONNECTED, connected);
    let heard = ages_of_messages.into_iter().map(|(source, age)| {
        let labels = vec![pair(label::CONFIG_SOURCE, &source)];
        (labels, age.as_secs_f64())
    });
    let errors = stats.errors.now().into_iter().map(|one| {
        let labels = vec![
            pair(label::CONFIG_SOURCE, &one.source),
            pair(label::REASON, one.reason),
        ];
        (labels, one.count)
    });
    [
        family_of(names::PROPAGATION, MetricType::HISTOGRAM, histograms),
        gauge_family(names::SOURCE_REVISION, revisions),
        gauge_family(names::MESSAGE_AGE, heard),
        connected,
        gauge_family(names::STATE_AGE, ages),
        counter_family(names::SOURCE_ERRORS, errors),
    ]
}

fn labels(of: &Tracked) -> Vec<LabelPair> {
    vec![pair(label::CONFIG_SOURCE, &of.last.source)]
}

fn histogram(of: &Tracked) -> Metric {
    let counted = BOUNDS.into_iter().zip(of.buckets);
    histogram_metric(labels(of), counted, of.buckets.iter().sum(), of.sum)
}
