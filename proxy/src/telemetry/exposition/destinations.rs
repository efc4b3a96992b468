//! Families by rule and by destination service.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use prometheus::proto::{LabelPair, MetricFamily, MetricType};

use super::families::{counter_family, family_of, gauge_family, histogram_metric, pair};
use traffic::telemetry::names::{self, label};
use traffic::telemetry::phases::{PHASE_BOUNDS, PHASE_COUNTERS, UpstreamPhase};
use traffic::telemetry::routes::CLASSES;
use traffic::telemetry::{Counter, DestinationState, LimitState, StatsRegistry};

/// Maximum number of endpoints that are named because they are not available.
const UNAVAILABLE_ENDPOINTS_MAX: usize = 1000;

/// Requests of rules, and times of the phases of attempts.
pub(super) fn families(stats: &StatsRegistry) -> [MetricFamily; 2] {
    [rules(stats), phases(stats)]
}

/// Requests of rules, without status classes that never occurred.
fn rules(stats: &StatsRegistry) -> MetricFamily {
    let rules = stats.all_rule_stats();
    let shared = stats.shared_series().totals(&rules);
    let own = rules.iter().filter_map(|rule| {
        let name = rule.own_series()?;
        Some((&**name, rule.totals()))
    });
    let counts = own.chain([("other", shared)]).flat_map(|(name, totals)| {
        let counted = CLASSES.into_iter().zip(totals);
        counted
            .filter(|(_, count)| *count > 0)
            .map(move |(class, count)| {
                let labels = vec![
                    pair(label::RULE, name),
                    pair(label::RESPONSE_CODE_CLASS, class),
                ];
                (labels, count)
            })
    });
    counter_family(names::RULE_REQUESTS, counts)
}

fn labels(state: &DestinationState, name: &str, value: &str) -> Vec<LabelPair> {
    vec![
        pair(label::DESTINATION_SERVICE, &state.service),
        pair(label::PORT, &state.port),
        pair(label::SUBSET, &state.subset),
        pair(name, value),
    ]
}

/// Endpoints and limits of destinations.
pub(super) fn states(states: &[DestinationState]) -> [MetricFamily; 4] {
    let endpoints = states.iter().flat_map(|state| {
        let counts = [
            ("available", state.available),
            ("ejected", state.ejected),
            ("unhealthy", state.unhealthy),
            ("draining", state.draining),
        ];
        counts.map(|(name, count)| (labels(state, label::STATE, name), count as f64))
    });
    let unavailable = states.iter().flat_map(|state| {
        state.unavailable.iter().map(|(address, is_ejected)| {
            let name = if *is_ejected { "ejected" } else { "unhealthy" };
            let mut labels = labels(state, label::STATE, name);
            labels.push(pair(label::ENDPOINT, address));
            (labels, 1.0)
        })
    });
    let limits = |value: fn(&LimitState) -> Option<f64>| {
        states.iter().flat_map(move |state| {
            state.limits.iter().filter_map(move |limit| {
                let labels = labels(state, label::LIMIT, &limit.name);
                value(limit).map(|value| (labels, value))
            })
        })
    };
    [
        gauge_family(names::DESTINATION_ENDPOINTS, endpoints),
        gauge_family(
            names::DESTINATION_UNAVAILABLE,
            unavailable.take(UNAVAILABLE_ENDPOINTS_MAX),
        ),
        gauge_family(
            names::DESTINATION_LIMIT,
            limits(|limit| limit.limit.map(f64::from)),
        ),
        gauge_family(
            names::DESTINATION_IN_USE,
            limits(|limit| Some(limit.in_use as f64)),
        ),
    ]
}

/// Failures, handshakes and retries by destination, without zeros.
pub(super) fn events(states: &[DestinationState]) -> impl Iterator<Item = MetricFamily> + '_ {
    let first = |counter: &Counter| {
        let family = counter.destination_family()?;
        let label = counter.series().label?.0;
        Some((family, label))
    };
    let mut families: Vec<_> = Counter::ALL.iter().filter_map(first).collect();
    families.dedup();
    families.into_iter().map(move |(family, label)| {
        let counts = states.iter().flat_map(move |state| {
            state.events.iter().filter_map(move |(counter, count)| {
                let (_, value) = counter.series().label?;
                let labels = labels(state, label, value);
                (counter.destination_family()? == family).then_some((labels, *count))
            })
        });
        counter_family(family, counts)
    })
}

/// Times of the phases of attempts, by destination service and cluster.
fn phases(stats: &StatsRegistry) -> MetricFamily {
    let mut totals: BTreeMap<(Arc<str>, Arc<str>), [u64; PHASE_COUNTERS]> = BTreeMap::new();
    for handle in stats.all_request_stats() {
        if !handle.phases().is_used() {
            continue;
        }
        let service = Arc::clone(&handle.labels().service.host);
        let key = (service, Arc::clone(handle.cluster()));
        let total = totals.entry(key).or_insert([0; PHASE_COUNTERS]);
        for (sum, count) in total.iter_mut().zip(handle.phases().totals()) {
            *sum += count;
        }
    }
    let histograms = totals.iter().flat_map(|((service, cluster), totals)| {
        UpstreamPhase::ALL.into_iter().filter_map(move |phase| {
            let buckets = &totals[phase.buckets()];
            let count: u64 = buckets.iter().sum();
            let labels = vec![
                pair(label::DESTINATION_SERVICE, service),
                pair(label::DESTINATION_CLUSTER, cluster),
                pair(label::PHASE, phase.as_str()),
            ];
            let bounds = PHASE_BOUNDS.iter().map(|bound| *bound as f64 / 1e6);
            let counted = bounds.zip(buckets.iter().copied());
            let sum = Duration::from_micros(totals[phase.sum()]);
            (count > 0).then(|| histogram_metric(labels, counted, count, sum))
        })
    });
    family_of(
        names::UPSTREAM_PHASES,
        MetricType::HISTOGRAM,
        histograms.collect(),
    )
}
