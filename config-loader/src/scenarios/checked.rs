//! Scenario of `strait simulate`, checked.

use std::sync::Arc;
use std::time::Duration;

use crate::diagnostic::Location;
use crate::written_proxies::WrittenProxy;

/// Load on proxies, what happens meanwhile, and what must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scenario {
    /// File or directory of the configuration, relative to the directory of the scenario, which is the default.
    pub config: Option<Arc<str>>,
    /// The proxies, all of one kind.
    pub proxy: WrittenProxy,
    /// Length of the intervals of the table, if written.
    pub interval: Option<Duration>,
    /// Requests.
    pub load: ScenarioLoad,
    /// Endpoints as long as no event changes them.
    pub endpoints: ScenarioEndpoints,
    /// Events, in the order of time.
    pub events: Vec<ScenarioEvent>,
    /// Expectations, in the order of the file.
    pub expected: Vec<ExpectedFigure>,
}

/// Requests of a scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScenarioLoad {
    /// Method.
    pub method: Arc<str>,
    /// URL.
    pub url: Arc<str>,
    /// Header fields.
    pub headers: Vec<(Arc<str>, Arc<str>)>,
    /// Requests per second, to all proxies together.
    pub rate: f64,
    /// Time for which requests begin.
    pub duration: Duration,
    /// Number of proxies, at least 1.
    pub proxies: u16,
    /// Number of workers of each proxy, at least 1.
    pub workers: u16,
    /// Location in the file.
    pub location: Location,
}

/// Endpoints as long as no event changes them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScenarioEndpoints {
    /// Median of the service time. Default: 5 ms.
    pub p50: Duration,
    /// 99th percentile of the service time. Default: 25 ms.
    pub p99: Duration,
    /// Requests that an endpoint serves at a time; further ones wait. Default: no limit.
    pub concurrency: Option<u32>,
}

impl Default for ScenarioEndpoints {
    fn default() -> Self {
        Self {
            p50: Duration::from_millis(5),
            p99: Duration::from_millis(25),
            concurrency: None,
        }
    }
}

/// Event of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioEvent {
    /// Time since the start.
    pub at: Duration,
    /// Endpoints that it is about.
    pub target: ScenarioTarget,
    /// The event.
    pub action: EventAction,
    /// Location in the file.
    pub location: Location,
}

/// Endpoints that an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScenarioTarget {
    /// All endpoints.
    All,
    /// Endpoints of a Kubernetes cluster, by its key or name.
    Cluster(Arc<str>),
    /// Endpoints of a zone.
    Zone(Arc<str>),
    /// Endpoints of a service, by its host.
    Host(Arc<str>),
    /// Endpoint with this address and port.
    Endpoint(Arc<str>),
}

/// Change by an event.
#[derive(Clone, Debug, PartialEq)]
pub enum EventAction {
    /// Endpoints answer a share of requests, 0 to 1, with an error.
    Errors {
        /// Share of the requests.
        share: f64,
        /// Status of the error.
        status: u16,
    },
    /// Service times are multiplied.
    Latency(f64),
    /// Endpoints refuse connections, and open connections break.
    Stop,
    /// Endpoints accept connections and never answer.
    Hang,
    /// Endpoints are as at the start.
    Restore,
    /// Another number of requests per second.
    Rate(f64),
    /// Another configuration takes effect, from a path relative to the directory of the scenario.
    Config(Arc<str>),
}

/// Expectation of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedFigure {
    /// Figure that is compared.
    pub figure: Figure,
    /// Comparison with the figure.
    pub comparison: Comparison,
    /// Start of the time that counts.
    pub from: Duration,
    /// End of the time that counts; `None` for the next event, or the end, if `within` is written, else the end.
    pub to: Option<Duration>,
    /// Time after `from` until which the comparison must hold for the rest; `None` to count all from `from` on.
    pub within: Option<Duration>,
    /// Location in the file.
    pub location: Location,
}

/// Figure of a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Percentage of requests that have failed.
    Failed,
    /// Percentage of the requests with an endpoint whose last one was in this cluster, by key or name.
    Share(Arc<str>),
    /// Attempts per request.
    AttemptsPerRequest,
    /// Median latency, in milliseconds.
    P50,
    /// 99th percentile of the latency, in milliseconds.
    P99,
    /// Requests and retries that a limit has refused.
    Overflow,
    /// Largest number of endpoints that are ejected at a time.
    Ejected,
}

/// Comparison with a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Operator.
    pub operator: Operator,
    /// Number.
    pub value: f64,
}

/// Operator of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Equal, but for noise: within 1 percentage point, or 1 % of other figures.
    About,
    /// `>=`.
    AtLeast,
    /// `<=`.
    AtMost,
    /// `<`.
    Less,
    /// `>`.
    More,
}

impl Comparison {
    /// Whether a number is as compared. `is_percent` is whether it is a percentage.
    pub fn holds(self, number: f64, is_percent: bool) -> bool {
        let value = self.value;
        match self.operator {
            Operator::About => {
                let slack = if is_percent { 1.0 } else { value.abs() / 100.0 };
                (number - value).abs() <= slack
            }
            Operator::AtLeast => number >= value,
            Operator::AtMost => number <= value,
            Operator::Less => number < value,
            Operator::More => number > value,
        }
    }
}
