//! Counts since the start of the proxy, from which readers make rates: `/activity`, `strait top`, and the live page.
//!
//! Only rules, destinations and endpoints that have had a request are listed.

pub mod links;
pub mod rates;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::view::{EventView, QuarantineView};
use crate::runtime::{clock, dates};
use crate::snapshot::{Route, Snapshot};
use crate::telemetry::{Gauge, Reporter, RuleStats, StatsRegistry, Telemetry};
use traffic::registry::Journal;
use traffic::telemetry::requests::Variant;

/// Number of health events, the newest, that the page has.
const EVENTS_MAX: usize = 64;

/// Counts since the start of the process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    /// Version of the proxy.
    pub version: String,
    /// Time of the counts, in seconds by a clock that begins with the process.
    pub at_seconds: f64,
    /// Generation of the configuration in effect.
    pub generation: u64,
    /// Sources of the configuration.
    pub sources: Vec<AppliedView>,
    /// Resources whose newest version is rejected.
    pub rejected: Vec<QuarantineView>,
    /// Requests in flight.
    pub requests_active: u64,
    /// Upper bounds of the buckets of durations, in milliseconds.
    pub duration_bounds_ms: Vec<f64>,
    /// Destinations by Kubernetes cluster.
    pub destinations: Vec<DestinationActivity>,
    /// Rules.
    pub rules: Vec<RuleActivity>,
    /// Endpoints.
    pub endpoints: Vec<EndpointActivity>,
    /// The newest health events.
    pub events: Vec<EventView>,
}

/// Newest change of a source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AppliedView {
    /// The source.
    pub source: String,
    /// Newest revision in effect, if the source has revisions.
    pub revision: Option<String>,
    /// Time when it took effect.
    pub applied: String,
}

/// Requests to a destination in one Kubernetes cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DestinationActivity {
    /// Host of the service.
    pub host: String,
    /// Kubernetes cluster.
    pub cluster: String,
    /// `inbound` for requests to the workload of a sidecar, else `outbound`.
    pub direction: String,
    /// Finished requests.
    pub requests: u64,
    /// Requests of these that ended with 5xx, or with a gRPC status that says so.
    pub failed: u64,
    /// Requests by bucket of their duration; the last bucket has no upper bound.
    pub durations: Vec<u64>,
}

/// Requests of a rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RuleActivity {
    /// Name, as in the metrics.
    pub rule: String,
    /// File and line.
    pub location: String,
    /// Hosts whose requests it takes.
    pub hosts: Vec<String>,
    /// Listeners of these hosts.
    pub listeners: Vec<String>,
    /// Hosts of its services, with their part of the weight.
    pub destinations: Vec<(String, f64)>,
    /// Finished requests.
    pub requests: u64,
    /// Requests of these with 5xx.
    pub failed: u64,
}

/// Requests of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndpointActivity {
    /// Address.
    pub endpoint: String,
    /// Host of the service.
    pub host: String,
    /// Name of the upstream cluster.
    pub upstream_cluster: String,
    /// Kubernetes cluster.
    pub cluster: String,
    /// Requests in flight.
    pub active: u64,
    /// Attempts so far.
    pub requests: u64,
    /// Reason why the endpoint gets no requests now.
    pub unavailable_reason: Option<String>,
}

/// The newest of the events, oldest first.
pub fn newest(mut events: Vec<EventView>) -> Vec<EventView> {
    events.split_off(events.len().saturating_sub(EVENTS_MAX))
}

/// Counts of a proxy, without what other pages have.
pub fn activity(snapshot: &Snapshot, telemetry: &Telemetry, journal: &Journal) -> Activity {
    let sources = telemetry.propagation.sources().into_iter();
    let bounds = telemetry.stats.bounds();
    Activity {
        at_seconds: journal.at(clock::now()).0 as f64 / 1000.0,
        generation: snapshot.generation,
        sources: sources
            .map(|one| AppliedView {
                source: one.source.to_string(),
                revision: one.revision.map(|revision| revision.to_string()),
                applied: dates::rfc3339(one.applied),
            })
            .collect(),
        requests_active: gauge(telemetry, Gauge::RequestsActive),
        duration_bounds_ms: bounds.millis().to_vec(),
        destinations: destinations(&telemetry.stats),
        rules: rules(snapshot),
        endpoints: endpoints(snapshot),
        ..Activity::default()
    }
}

fn gauge(telemetry: &Telemetry, gauge: Gauge) -> u64 {
    u64::try_from(telemetry.counters.gauge(gauge)).unwrap_or(0)
}

fn destinations(stats: &StatsRegistry) -> Vec<DestinationActivity> {
    let bounds = stats.bounds().millis();
    let mut by_name: BTreeMap<(String, String, &str), DestinationActivity> = BTreeMap::new();
    for handle in stats.all_request_stats() {
        let labels = handle.labels();
        let direction = match labels.reporter {
            Reporter::Destination => "inbound",
            Reporter::Source => "outbound",
        };
        let (host, cluster) = (
            labels.service.host.to_string(),
            handle.cluster().to_string(),
        );
        for (variant, total) in handle.totals() {
            let key = (host.clone(), cluster.clone(), direction);
            let one = by_name.entry(key).or_insert_with(|| DestinationActivity {
                host: host.clone(),
                cluster: cluster.clone(),
                direction: direction.to_owned(),
                durations: vec![0; bounds.len() + 1],
                ..DestinationActivity::default()
            });
            let count = total.duration.count();
            one.requests += count;
            one.failed += if is_failure(variant) { count } else { 0 };
            let mut below = 0;
            for (at, (_, up_to)) in total.duration.cumulative(bounds).enumerate() {
                one.durations[at] += up_to - below;
                below = up_to;
            }
            one.durations[bounds.len()] += count - below;
        }
    }
    by_name.into_values().collect()
}

fn is_failure(variant: Variant) -> bool {
    variant.code() >= 500 || matches!(variant.grpc_status(), Some(2 | 4 | 12..=15))
}

fn rules(snapshot: &Snapshot) -> Vec<RuleActivity> {
    // a rule of several hosts or listeners has its counts once
    let mut found: BTreeMap<*const RuleStats, RuleActivity> = BTreeMap::new();
    for listener in snapshot.listeners.values() {
        let name = listener.key.address.to_string();
        for host in listener.all_http().flat_map(|hosts| hosts.all()) {
            for route in host.routes.iter() {
                let used = route.rule_stats.as_ref().filter(|stats| stats.is_used());
                let named = used.and_then(|stats| Some((stats, stats.own_series()?)));
                let Some((stats, rule)) = named else { continue };
                let one = found
                    .entry(Arc::as_ptr(stats))
                    .or_insert_with(|| rule_activity(snapshot, route, stats, rule));
                add_once(&mut one.hosts, &host.name);
                add_once(&mut one.listeners, &name);
            }
        }
    }
    let mut rules: Vec<_> = found.into_values().collect();
    rules.sort_by(|a, b| a.rule.cmp(&b.rule));
    rules
}

fn add_once(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}

fn rule_activity(
    snapshot: &Snapshot,
    route: &Route,
    stats: &RuleStats,
    rule: &str,
) -> RuleActivity {
    let totals = stats.totals();
    let at = &route.provenance;
    let split = route.split.iter().flat_map(|split| split.entries());
    let weights: Vec<(String, f64)> = split
        .filter_map(|(weight, one)| {
            let cluster = snapshot.current_cluster(one.cluster)?;
            Some((cluster.host.to_string(), weight as f64))
        })
        .collect();
    let whole: f64 = weights.iter().map(|(_, weight)| weight).sum();
    let parts = weights.into_iter();
    RuleActivity {
        rule: rule.to_owned(),
        location: format!("{}:{}", at.file, at.line),
        hosts: Vec::new(),
        listeners: Vec::new(),
        destinations: parts
            .map(|(host, weight)| (host, weight / whole.max(1.0)))
            .collect(),
        requests: totals.iter().sum(),
        failed: totals.last().copied().unwrap_or(0),
    }
}

fn endpoints(snapshot: &Snapshot) -> Vec<EndpointActivity> {
    // clusters of several subsets, and a service with its pool of the local cluster, share the state of endpoints
    let mut known = HashSet::new();
    let mut found = Vec::new();
    for cluster in snapshot.clusters.iter().flatten() {
        let now = cluster.state.journal.at(clock::now());
        for endpoint in cluster.endpoints() {
            let (active, requests) = (endpoint.state.active(), endpoint.state.requests());
            if requests == 0 && active == 0 || !known.insert(Arc::as_ptr(&endpoint.state)) {
                continue;
            }
            let outlier = cluster.balance.outlier.as_ref();
            found.push(EndpointActivity {
                endpoint: endpoint.address.to_string(),
                host: cluster.host.to_string(),
                upstream_cluster: cluster.name().to_string(),
                cluster: endpoint.stats.cluster().to_string(),
                active: u64::from(active),
                requests,
                unavailable_reason: endpoint.exclusion_reason(outlier, now),
            });
        }
    }
    found
}
