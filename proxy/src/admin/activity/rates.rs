//! Rates between two readings of the counts of a proxy, for `strait top` and the live page: pure, so that they are tested with
//! numbers.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Activity, DestinationActivity, EndpointActivity};

/// Table of rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum View {
    /// Hosts of requests
    Host,
    /// Rules
    Rule,
    /// Destinations: hosts of services
    Destination,
    /// Kubernetes clusters
    Cluster,
    /// Endpoints
    Endpoint,
}

impl View {
    /// All tables, in the order of their keys.
    pub const ALL: [Self; 5] = [
        Self::Host,
        Self::Rule,
        Self::Destination,
        Self::Cluster,
        Self::Endpoint,
    ];

    /// Heading of the table.
    pub fn title(self) -> &'static str {
        match self {
            Self::Host => "hosts",
            Self::Rule => "rules",
            Self::Destination => "destinations",
            Self::Cluster => "clusters",
            Self::Endpoint => "endpoints",
        }
    }
}

/// Column by which rows are sorted, largest first; names from A to Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Column {
    /// Name
    Name,
    /// Requests per second
    #[default]
    Rate,
    /// Share of failed requests
    Failed,
    /// Median of the durations
    P50,
    /// 99th percentile of the durations
    P99,
    /// Requests in flight
    Active,
}

impl Column {
    /// All columns, from left to right.
    pub const ALL: [Self; 6] = [
        Self::Name,
        Self::Rate,
        Self::Failed,
        Self::P50,
        Self::P99,
        Self::Active,
    ];

    /// Position from the left.
    pub fn position(self) -> usize {
        Self::ALL.iter().position(|one| *one == self).unwrap_or(0)
    }

    fn value(self, row: &RateRow) -> f64 {
        let value = match self {
            Self::Name => None,
            Self::Rate => Some(row.rate),
            Self::Failed => row.failed_percent(),
            Self::P50 => row.p50_ms,
            Self::P99 => row.p99_ms,
            Self::Active => row.active.map(|active| active as f64),
        };
        value.unwrap_or(-1.0)
    }
}

/// Sorts rows by a column, and equal ones by name.
pub fn sort(rows: &mut [&RateRow], column: Column, is_reversed: bool) {
    rows.sort_by(|a, b| {
        let by_value = column.value(b).total_cmp(&column.value(a));
        let order = by_value.then_with(|| a.name.cmp(&b.name));
        if is_reversed { order.reverse() } else { order }
    });
}

/// Row of a table. Fields that the proxy does not count for this kind of row are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RateRow {
    /// Host, rule, destination, cluster or endpoint.
    pub name: String,
    /// Description: file and line of a rule, service and cluster of an endpoint.
    pub about: String,
    /// Finished requests per second; of an endpoint, attempts.
    pub rate: f64,
    /// Failed requests per second.
    pub failed: Option<f64>,
    /// Median of the durations in milliseconds, if requests ended.
    pub p50_ms: Option<f64>,
    /// 99th percentile of the durations in milliseconds.
    pub p99_ms: Option<f64>,
    /// Requests in flight.
    pub active: Option<u64>,
    /// Reason why an endpoint gets no requests.
    pub unavailable: Option<String>,
}

impl RateRow {
    /// Share of failed requests in percent.
    pub fn failed_percent(&self) -> Option<f64> {
        let failed = self.failed?;
        (self.rate > 0.0).then(|| failed / self.rate * 100.0)
    }
}

/// Rates of one interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rates {
    /// Version of the proxy.
    pub version: String,
    /// Length of the interval.
    pub interval_seconds: f64,
    /// Generation of the configuration in effect.
    pub generation: u64,
    /// Resources whose newest version is rejected.
    pub rejected: Vec<String>,
    /// Finished requests per second.
    pub rate: f64,
    /// Failed requests per second.
    pub failed: f64,
    /// Requests in flight.
    pub active: u64,
    /// Hosts.
    pub hosts: Vec<RateRow>,
    /// Rules.
    pub rules: Vec<RateRow>,
    /// Destinations.
    pub destinations: Vec<RateRow>,
    /// Kubernetes clusters.
    pub clusters: Vec<RateRow>,
    /// Endpoints.
    pub endpoints: Vec<RateRow>,
    /// Destinations by Kubernetes cluster.
    #[serde(skip)]
    pub by_cluster: Vec<ClusterRate>,
    /// Health events and changes of the configuration within the interval, oldest first.
    pub changes: Vec<String>,
}

/// Requests to a destination in one Kubernetes cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterRate {
    /// Host of the service.
    pub host: String,
    /// Kubernetes cluster.
    pub cluster: String,
    /// Finished requests per second.
    pub rate: f64,
    /// Failed requests per second.
    pub failed: f64,
}

/// Counts of a row.
#[derive(Clone, Debug, Default)]
struct Counts {
    about: String,
    requests: u64,
    failed: u64,
    durations: Vec<u64>,
    active: Option<u64>,
}

impl Counts {
    fn add(&mut self, requests: u64, failed: u64, durations: &[u64]) {
        self.requests += requests;
        self.failed += failed;
        self.durations
            .resize(self.durations.len().max(durations.len()), 0);
        for (sum, count) in self.durations.iter_mut().zip(durations) {
            *sum += count;
        }
    }
}

type Table = BTreeMap<String, Counts>;

impl Rates {
    /// Makes the rates between two readings; `None` if the process was restarted between them.
    pub fn between(before: &Activity, after: &Activity) -> Option<Self> {
        let seconds = after.at_seconds - before.at_seconds;
        if seconds <= 0.0 {
            return None;
        }
        let bounds = &after.duration_bounds_ms;
        let rates = |of: fn(&Activity) -> Table, has_durations: bool| {
            let before = of(before);
            let rows = of(after).into_iter().map(|(name, counts)| {
                let base = before.get(&name);
                row(
                    name,
                    &counts,
                    base,
                    has_durations.then_some(bounds),
                    seconds,
                )
            });
            rows.collect::<Vec<_>>()
        };
        let destinations = rates(destinations, true);
        let sum = |of: fn(&RateRow) -> f64| destinations.iter().map(of).sum();
        Some(Self {
            version: after.version.clone(),
            interval_seconds: seconds,
            generation: after.generation,
            rejected: after
                .rejected
                .iter()
                .map(|one| one.object.clone())
                .collect(),
            rate: sum(|row| row.rate),
            failed: sum(|row| row.failed.unwrap_or(0.0)),
            active: after.requests_active,
            hosts: rates(hosts, false),
            rules: rates(rules, false),
            destinations,
            clusters: rates(clusters, true),
            endpoints: endpoints(before, after, seconds),
            by_cluster: by_cluster(before, after, seconds),
            changes: changes(before, after),
        })
    }

    /// The rows of a table.
    pub fn rows(&self, view: View) -> &[RateRow] {
        match view {
            View::Host => &self.hosts,
            View::Rule => &self.rules,
            View::Destination => &self.destinations,
            View::Cluster => &self.clusters,
            View::Endpoint => &self.endpoints,
        }
    }
}

fn row(
    name: String,
    counts: &Counts,
    base: Option<&Counts>,
    bounds: Option<&Vec<f64>>,
    seconds: f64,
) -> RateRow {
    let base = base.cloned().unwrap_or_default();
    let rate = |after: u64, before: u64| after.saturating_sub(before) as f64 / seconds;
    let before = base.durations.iter().copied().chain(std::iter::repeat(0));
    let durations: Vec<u64> = counts
        .durations
        .iter()
        .zip(before)
        .map(|(after, before)| after.saturating_sub(before))
        .collect();
    let quantile = |share| quantile(bounds?, &durations, share);
    RateRow {
        name,
        about: counts.about.clone(),
        rate: rate(counts.requests, base.requests),
        failed: Some(rate(counts.failed, base.failed)),
        p50_ms: quantile(0.5),
        p99_ms: quantile(0.99),
        active: counts.active,
        unavailable: None,
    }
}

/// The duration that this share of requests does not exceed, by the line between the bounds of its bucket; `None` without
/// requests. Beyond the last bound, it is that bound.
fn quantile(bounds: &[f64], counts: &[u64], share: f64) -> Option<f64> {
    let total: u64 = counts.iter().sum();
    if total == 0 {
        return None;
    }
    let wanted = total as f64 * share;
    let mut below = 0.0;
    for (at, count) in counts.iter().enumerate() {
        let count = *count as f64;
        if count > 0.0 && below + count >= wanted {
            let lower = at.checked_sub(1).map_or(0.0, |before| bounds[before]);
            let Some(upper) = bounds.get(at) else {
                return Some(lower);
            };
            return Some(lower + (upper - lower) * (wanted - below) / count);
        }
        below += count;
    }
    bounds.last().copied()
}

fn hosts(activity: &Activity) -> Table {
    let mut table = Table::new();
    for rule in &activity.rules {
        let name = rule.hosts.join(", ");
        table
            .entry(name)
            .or_default()
            .add(rule.requests, rule.failed, &[]);
    }
    table
}

fn rules(activity: &Activity) -> Table {
    let mut table = Table::new();
    for rule in &activity.rules {
        let counts = table.entry(rule.rule.clone()).or_default();
        counts.about.clone_from(&rule.location);
        counts.add(rule.requests, rule.failed, &[]);
    }
    table
}

/// Requests in flight by a property of their endpoints.
fn active(activity: &Activity, of: fn(&EndpointActivity) -> &str) -> BTreeMap<&str, u64> {
    let mut active = BTreeMap::new();
    for endpoint in &activity.endpoints {
        *active.entry(of(endpoint)).or_default() += endpoint.active;
    }
    active
}

fn destinations(activity: &Activity) -> Table {
    let (mut table, active) = (Table::new(), active(activity, |one| &one.host));
    for one in &activity.destinations {
        let name = match &*one.direction {
            "inbound" => format!("{} (inbound)", one.host),
            _ => one.host.clone(),
        };
        let counts = table.entry(name).or_insert_with(|| Counts {
            active: Some(active.get(&*one.host).copied().unwrap_or(0)),
            ..Counts::default()
        });
        counts.add(one.requests, one.failed, &one.durations);
    }
    table
}

fn clusters(activity: &Activity) -> Table {
    let (mut table, active) = (Table::new(), active(activity, |one| &one.cluster));
    for one in &activity.destinations {
        let counts = table.entry(one.cluster.clone()).or_insert_with(|| Counts {
            active: Some(active.get(&*one.cluster).copied().unwrap_or(0)),
            ..Counts::default()
        });
        counts.add(one.requests, one.failed, &one.durations);
    }
    table
}

fn endpoints(before: &Activity, after: &Activity, seconds: f64) -> Vec<RateRow> {
    let key = |one: &EndpointActivity| (one.upstream_cluster.clone(), one.endpoint.clone());
    let before: BTreeMap<_, u64> = before
        .endpoints
        .iter()
        .map(|one| (key(one), one.requests))
        .collect();
    let rows = after.endpoints.iter().map(|one| {
        let base = before.get(&key(one)).copied().unwrap_or(0);
        RateRow {
            name: one.endpoint.clone(),
            about: format!("{} {}", one.host, one.cluster),
            rate: one.requests.saturating_sub(base) as f64 / seconds,
            active: Some(one.active),
            unavailable: one.unavailable_reason.clone(),
            ..RateRow::default()
        }
    });
    rows.collect()
}

fn by_cluster(before: &Activity, after: &Activity, seconds: f64) -> Vec<ClusterRate> {
    fn key(one: &DestinationActivity) -> [&str; 3] {
        [&one.host, &one.cluster, &one.direction]
    }
    let before: BTreeMap<_, _> = before
        .destinations
        .iter()
        .map(|one| (key(one), one))
        .collect();
    let rows = after.destinations.iter().map(|one| {
        let base = before.get(&key(one)).copied();
        let rate = |of: fn(&DestinationActivity) -> u64| {
            of(one).saturating_sub(base.map_or(0, of)) as f64 / seconds
        };
        ClusterRate {
            host: one.host.clone(),
            cluster: one.cluster.clone(),
            rate: rate(|one| one.requests),
            failed: rate(|one| one.failed),
        }
    });
    rows.collect()
}

/// Changes between two readings: health events, then those of the configuration.
fn changes(before: &Activity, after: &Activity) -> Vec<String> {
    let last = before.events.last().map(|event| event.number);
    let new = after.events.iter();
    let new = new.filter(|event| last.is_none_or(|last| event.number > last));
    let mut changes: Vec<String> = new
        .map(|event| {
            let endpoint = event.endpoint.as_deref().unwrap_or("all endpoints");
            let (cluster, kind, message) = (&event.cluster, &event.kind, &event.message);
            format!("{kind}: {cluster} {endpoint}: {message}")
        })
        .collect();
    if after.generation != before.generation {
        let source = after
            .sources
            .iter()
            .find(|one| !before.sources.contains(one));
        let from = source.map_or_else(String::new, |one| match &one.revision {
            Some(revision) => format!(" from {}, revision {revision}", one.source),
            None => format!(" from {}", one.source),
        });
        let generation = after.generation;
        changes.push(format!(
            "configuration: generation {generation} is in effect{from}"
        ));
    }
    for one in &after.rejected {
        if !before.rejected.contains(one) {
            let error = one.errors.first().map_or("", String::as_str);
            let (object, location) = (&one.object, &one.location);
            changes.push(format!(
                "configuration: {object} is rejected ({location}): {error}"
            ));
        }
    }
    for one in &before.rejected {
        if !after
            .rejected
            .iter()
            .any(|other| other.object == one.object)
        {
            changes.push(format!("configuration: {} is accepted again", one.object));
        }
    }
    changes
}

#[cfg(test)]
mod tests;
