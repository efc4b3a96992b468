//! Quantities that are measured, and how they are written.

use std::collections::BTreeMap;

use crate::compare::configure::Proxy;

/// A quantity that is compared between proxies, or with a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// Time until a changed route is in effect, in ms; the route is in one of many VirtualServices.
    ChangeMillis,
    /// The same, with all routes in one VirtualService.
    ChangeOneObjectMillis,
    /// CPU time per call of gRPC, in us.
    CpuGrpc,
    /// CPU time per small request over HTTP/2 with TLS, in us.
    CpuH2,
    /// CPU time per small request over HTTP/2 without TLS, in us.
    CpuH2c,
    /// CPU time per small request over HTTPS, in us.
    CpuHttps,
    /// CPU time per request of 1 MiB, in us.
    CpuLarge,
    /// CPU time per small request that hits the last of many routes, in us.
    CpuManyRoutes,
    /// CPU time per small request with a single route, in us.
    CpuOneRoute,
    /// CPU time per small request of a plain route that is alone, in us.
    CpuPlainAlone,
    /// The same after many other plain routes.
    CpuPlainBesidePlain,
    /// The same after as many routes with features.
    CpuPlainBesideFeatures,
    /// CPU time per small request, in us.
    CpuSmall,
    /// CPU time of a client's and a service's sidecar with mutual TLS between them, per request, in us.
    CpuPair,
    /// The same at a low steady rate.
    CpuPairSteady,
    /// CPU time per GB of TCP, in ms.
    CpuTcp,
    /// CPU time per connection with a full TLS handshake, in us.
    CpuTlsFull,
    /// CPU time per connection with a resumed TLS session, in us.
    CpuTlsResumed,
    /// Memory per idle connection, in KiB.
    ConnectionKib,
    /// Memory of the idle process, in KiB.
    IdleKib,
    /// Memory with 5,000 routes, in KiB.
    LoadedKib,
    /// What such a pair adds to the latency of 99 in 100 requests, in us.
    PairAddedMicros,
    /// Memory of the larger one of the pair, in KiB.
    PairKib,
}

/// The figures of a run.
pub type Figures = BTreeMap<(Figure, Proxy), f64>;

/// One table with a heading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// What was done, in a sentence or two.
    pub text: String,
    /// Names of the columns; the first one names the row.
    pub columns: Vec<String>,
    /// The rows, as wide as `columns`.
    pub rows: Vec<Vec<String>>,
}

/// A figure with as many decimals as it can bear.
pub fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// `value / base` as a factor, or a dash where one is missing.
pub fn ratio(value: Option<f64>, base: Option<f64>) -> String {
    match (value, base) {
        (Some(value), Some(base)) if base > 0.0 => format!("{:.2}x", value / base),
        _ => "-".to_owned(),
    }
}
