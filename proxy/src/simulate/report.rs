//! Results of a simulation as plain data, of which text, JSON and HTML are made.

use std::collections::BTreeSet;
use std::sync::Arc;

use config_loader::{EventAction, ScenarioEvent};
use serde::Serialize;

use super::expectations::{self, Checked};
use super::figures::{Cell, Figures, Limit, SECOND, seconds};
use super::inputs::{Inputs, target_name};
use crate::explain::duration;
use traffic::registry::{Event, EventKind};

/// Largest number of rows of a table whose interval is not written.
const ROWS_MAX: u64 = 40;

/// Lengths of intervals, in seconds.
const INTERVALS: [u64; 9] = [1, 2, 5, 10, 15, 30, 60, 300, 900];

/// Longest scenario with cells of a tenth of a second, and number of cells of longer ones.
const FINE_MAX: u64 = 360 * SECOND;
const CELLS_MAX: u64 = 3_600;

/// The length of a cell, in nanoseconds, of a scenario of this length.
pub(super) fn cell_width(duration: u64) -> u64 {
    match duration {
        0..=FINE_MAX => SECOND / 10,
        _ => SECOND * duration.div_ceil(CELLS_MAX * SECOND),
    }
}

/// Names of clusters by their keys: the last parts, if those differ.
pub(super) fn names(keys: &[Arc<str>]) -> Vec<String> {
    let short = |key: &Arc<str>| key.rsplit('/').next().unwrap_or_default().to_owned();
    let all: Vec<String> = keys.iter().map(short).collect();
    let unique: BTreeSet<&String> = all.iter().collect();
    match unique.len() == all.len() {
        true => all,
        false => keys.iter().map(ToString::to_string).collect(),
    }
}

/// Event at one proxy, or of the scenario.
pub(super) struct Told {
    /// Time since the start, in nanoseconds.
    at: u64,
    /// The proxy; `None` for the scenario.
    proxy: Option<u16>,
    pub(super) kind: &'static str,
    pub(super) cluster: Arc<str>,
    endpoint: Option<Box<str>>,
    text: String,
}

impl Told {
    pub(super) fn of_journal(proxy: u16, event: Event) -> Self {
        // the priority tells events of one cluster apart
        let endpoint = match &event.what {
            EventKind::PanicModeEntered { priority, .. }
            | EventKind::PanicModeLeft { priority, .. } => {
                Some(format!("priority {priority}").into())
            }
            _ => event.endpoint,
        };
        Self {
            at: event.at.0.saturating_sub(1) * 1_000_000,
            proxy: Some(proxy),
            kind: event.what.name(),
            cluster: event.cluster,
            endpoint,
            text: event.what.to_string(),
        }
    }

    pub(super) fn of_scenario(at: u64, event: &ScenarioEvent) -> Self {
        let text = match &event.action {
            EventAction::Errors { share, status } => {
                format!("{:.4} % of requests get {status}", share * 100.0).replace(".0000", "")
            }
            EventAction::Latency(factor) => format!("service times are x{factor}"),
            EventAction::Stop => "refuses connections".to_owned(),
            EventAction::Hang => "accepts connections and never answers".to_owned(),
            EventAction::Restore => "as at the start again".to_owned(),
            EventAction::Rate(rate) => format!("the rate is {rate}/s"),
            EventAction::Config(path) => format!("the configuration is {path}"),
        };
        let is_of_endpoints =
            !matches!(event.action, EventAction::Rate(_) | EventAction::Config(_));
        Self {
            at,
            proxy: None,
            kind: "scenario",
            cluster: Arc::default(),
            endpoint: is_of_endpoints.then(|| target_name(&event.target).into()),
            text,
        }
    }

    /// The priority of an event of panic mode.
    pub(super) fn panicking(&self) -> String {
        self.endpoint.as_deref().unwrap_or_default().to_owned()
    }
}

/// Event of the scenario, or one that has happened at one or several proxies.
#[derive(Clone, Debug, Serialize)]
pub struct Happening {
    /// Time of the first, in seconds since the start.
    pub at: f64,
    /// `scenario`, `limit`, or the name of an event of endpoints.
    pub kind: &'static str,
    /// Upstream cluster; empty for the scenario and limits.
    pub cluster: Arc<str>,
    /// Endpoint, or target of an event of the scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Box<str>>,
    /// Description, with the numbers of the first.
    pub text: String,
    /// Number of proxies; 0 for the scenario.
    pub proxies: usize,
    /// Number of times.
    pub count: usize,
}

/// Figures of an interval.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Start, in seconds.
    pub from: f64,
    /// End, in seconds.
    pub to: f64,
    /// Number of requests.
    pub requests: u64,
    /// Number of failed requests.
    pub failed: u64,
    /// Percentage of failed requests.
    pub failed_percent: f64,
    /// Median latency, in milliseconds.
    pub p50_ms: f64,
    /// 99th percentile of the latency, in milliseconds.
    pub p99_ms: f64,
    /// Attempts per request.
    pub attempts_per_request: f64,
    /// Percentages of the clusters, in their order.
    pub shares: Vec<f64>,
    /// Largest number of endpoints that a proxy had ejected.
    pub ejected: u64,
    /// Whether a priority of a proxy was in panic mode.
    pub panic: bool,
    /// Requests and retries that limits have refused.
    pub overflow: u64,
}

impl Row {
    fn of(from: u64, to: u64, cell: &Cell, clusters: usize) -> Self {
        Self {
            from: seconds(from),
            to: seconds(to),
            requests: cell.requests,
            failed: cell.failed,
            failed_percent: cell.failed_percent(),
            p50_ms: cell.latency.quantile(0.5),
            p99_ms: cell.latency.quantile(0.99),
            attempts_per_request: cell.attempts_per_request(),
            shares: (0..clusters).map(|at| cell.share_percent(at)).collect(),
            ejected: cell.ejected,
            panic: cell.panic,
            overflow: cell.refused.iter().sum(),
        }
    }
}

/// Result of a simulation.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Seed of all random numbers.
    pub seed: u64,
    /// URL of the requests.
    pub url: Arc<str>,
    /// Requests per second at the start.
    pub rate: f64,
    /// Number of proxies.
    pub proxies: u16,
    /// Number of workers of each.
    pub workers: u16,
    /// Length of the intervals, in seconds.
    pub interval: f64,
    /// Names of Kubernetes clusters.
    pub clusters: Vec<String>,
    /// Figures by interval.
    pub rows: Vec<Row>,
    /// The whole time.
    pub total: Row,
    /// Events in the order of time.
    pub events: Vec<Happening>,
    /// Expectations, in the order of the scenario.
    pub expectations: Vec<Checked>,
    /// Remarks about what the figures leave out.
    pub notes: Vec<String>,
}

impl Report {
    /// Whether all expectations hold.
    pub fn passed(&self) -> bool {
        self.expectations.iter().all(|one| one.passed)
    }
}

/// Makes the report of a simulation.
pub(super) fn of(
    inputs: &Inputs<'_>,
    figures: &Figures,
    told: &[Told],
    notes: Vec<String>,
) -> Report {
    let scenario = inputs.scenario;
    let load = &scenario.load;
    let whole = load.duration.as_nanos() as u64;
    let interval = scenario.interval.map_or_else(
        || {
            let mut fitting = INTERVALS.into_iter().map(|one| one * SECOND);
            fitting
                .find(|one| whole / one <= ROWS_MAX)
                .unwrap_or(whole / ROWS_MAX)
        },
        |interval| (interval.as_nanos() as u64).max(figures.width),
    );
    let interval = interval.div_ceil(figures.width) * figures.width;
    let clusters = figures.clusters.len();
    let row = |from: u64, to: u64| Row::of(from, to, &figures.sum(from, to), clusters);
    let starts = (0..whole).step_by(interval as usize);
    let mut events = gathered(told, interval);
    events.extend(limits(figures, interval, whole));
    events.sort_by(|one, other| one.at.total_cmp(&other.at));
    Report {
        seed: inputs.seed,
        url: Arc::clone(&load.url),
        rate: load.rate,
        proxies: load.proxies,
        workers: load.workers,
        interval: seconds(interval),
        clusters: figures.clusters.clone(),
        rows: starts
            .map(|from| row(from, (from + interval).min(whole)))
            .collect(),
        total: row(0, whole),
        events,
        expectations: expectations::check(scenario, figures),
        notes,
    }
}

/// Gathers what has happened at several proxies within an interval.
fn gathered(told: &[Told], interval: u64) -> Vec<Happening> {
    let mut all: Vec<(Happening, BTreeSet<u16>, u64)> = Vec::new();
    for one in told {
        let known = all
            .iter_mut()
            .rev()
            .take_while(|(_, _, at)| one.at < at + interval);
        let mut known = known.filter(|(first, _, _)| {
            one.proxy.is_some()
                && (first.kind, &first.cluster, &first.endpoint)
                    == (one.kind, &one.cluster, &one.endpoint)
        });
        if let Some((first, proxies, _)) = known.next() {
            first.count += 1;
            proxies.extend(one.proxy);
            continue;
        }
        let first = Happening {
            at: seconds(one.at),
            kind: one.kind,
            cluster: Arc::clone(&one.cluster),
            endpoint: one.endpoint.clone(),
            text: one.text.clone(),
            proxies: 0,
            count: 1,
        };
        all.push((first, one.proxy.into_iter().collect(), one.at));
    }
    let merged = all.into_iter().map(|(first, proxies, _)| Happening {
        proxies: proxies.len(),
        ..first
    });
    merged.collect()
}

/// Lists the limits that have refused requests, by interval.
fn limits(figures: &Figures, interval: u64, whole: u64) -> Vec<Happening> {
    let mut all = Vec::new();
    for from in (0..whole).step_by(interval as usize) {
        let cell = figures.sum(from, (from + interval).min(whole));
        for (limit, count) in Limit::ALL.into_iter().zip(cell.refused) {
            if count > 0 {
                let what = match limit {
                    Limit::Retries => "retries",
                    Limit::Pending | Limit::Requests => "requests",
                };
                let time = duration(std::time::Duration::from_nanos(interval));
                all.push(Happening {
                    at: seconds(from),
                    kind: "limit",
                    cluster: Arc::default(),
                    endpoint: None,
                    text: format!(
                        "{count} {what} refused within {time}: the limit of {} is reached",
                        limit.name()
                    ),
                    proxies: 0,
                    count: usize::try_from(count).unwrap_or(usize::MAX),
                });
            }
        }
    }
    all
}
