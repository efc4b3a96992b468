//! Measured quantities, and their formatting.

use std::collections::BTreeMap;

use crate::compare::configure::Proxy;

/// Quantity that is compared between proxies, or with a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// Time until a changed route is in effect, in ms; the route is in one of many VirtualServices.
    ChangeMillis,
    /// Time until a changed route is in effect, in ms, with all routes in one VirtualService.
    ChangeOneObjectMillis,
    /// CPU time per gRPC call, in us.
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
    /// CPU time per small request of a plain route that is the only route, in us.
    CpuPlainAlone,
    /// CPU time per small request of a plain route after many other plain routes, in us.
    CpuPlainBesidePlain,
    /// CPU time per small request of a plain route after as many routes with features, in us.
    CpuPlainBesideFeatures,
    /// CPU time per small request, in us.
    CpuSmall,
    /// CPU time per request of a client's and a service's sidecar with mutual TLS between them, in us.
    CpuPair,
    /// CPU time per request of such a pair at a low steady rate, in us.
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
    /// Latency that such a pair adds at the 99th percentile, in us.
    PairAddedMicros,
    /// Memory of the larger process of the pair, in KiB.
    PairKib,
}

/// Figures of a run.
pub type Figures = BTreeMap<(Figure, Proxy), f64>;

/// Table with a heading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// Description of the measurement, in a sentence or two.
    pub text: String,
    /// Names of the columns; the first one names the row.
    pub columns: Vec<String>,
    /// Rows, with as many cells as `columns`.
    pub rows: Vec<Vec<String>>,
}

/// Formats a figure with fewer decimals the larger it is.
pub fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Formats `value / base` as a factor, or as a dash if either is missing.
pub fn ratio(value: Option<f64>, base: Option<f64>) -> String {
    match (value, base) {
        (Some(value), Some(base)) if base > 0.0 => format!("{:.2}x", value / base),
        _ => "-".to_owned(),
    }
}
