//! Features of Strait whose cost per request is measured one at a time.

/// Feature that is added to the plain route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// No feature: the baseline.
    None,
    /// The access log, written to `/dev/null`.
    AccessLog,
    /// Limits of connections, pending and active requests, which are not reached.
    CircuitBreakers,
    /// CORS policy that allows the request's origin.
    Cors,
    /// A delay and an abort with a share of 0 %.
    FaultOff,
    /// Consistent hashing by a header.
    HashByHeader,
    /// A condition on a header.
    HeaderMatch,
    /// Headers set and removed in the request, and added to the response.
    HeaderOperations,
    /// Localities with failover between regions, and outlier detection, which it needs.
    LocalityFailover,
    /// A mirror with a share of 0 %.
    MirrorOff,
    /// Retries turned off; a plain route has Istio's default retry policy.
    NoRetries,
    /// Outlier detection.
    OutlierDetection,
    /// A regular expression for the path.
    RegexMatch,
    /// Explicit retry policy.
    Retries,
    /// Path rewrite.
    Rewrite,
    /// A subset by labels, which all endpoints have.
    Subset,
    /// A timeout.
    Timeout,
    /// Traces of 1 % of the requests, with a collector that cannot be reached.
    Traces,
    /// Two destinations with equal weights.
    Weights,
}

impl Feature {
    /// All features, in the order of the table.
    pub const ALL: [Self; 19] = [
        Self::None,
        Self::HeaderMatch,
        Self::RegexMatch,
        Self::Rewrite,
        Self::HeaderOperations,
        Self::Cors,
        Self::Timeout,
        Self::Retries,
        Self::NoRetries,
        Self::FaultOff,
        Self::MirrorOff,
        Self::Weights,
        Self::Subset,
        Self::HashByHeader,
        Self::CircuitBreakers,
        Self::OutlierDetection,
        Self::LocalityFailover,
        Self::AccessLog,
        Self::Traces,
    ];

    /// Returns the name of the feature in the table.
    pub fn label(self) -> &'static str {
        match self {
            Self::None => "plain route",
            Self::AccessLog => "access log",
            Self::CircuitBreakers => "circuit breakers",
            Self::Cors => "CORS policy",
            Self::FaultOff => "faults of 0 %",
            Self::HashByHeader => "hash of a header",
            Self::HeaderMatch => "header match",
            Self::HeaderOperations => "header operations",
            Self::LocalityFailover => "locality failover",
            Self::MirrorOff => "mirror of 0 %",
            Self::NoRetries => "no retries",
            Self::OutlierDetection => "outlier detection",
            Self::RegexMatch => "regex match",
            Self::Retries => "retry policy",
            Self::Rewrite => "rewrite",
            Self::Subset => "subset",
            Self::Timeout => "timeout",
            Self::Traces => "traces of 1 %",
            Self::Weights => "two destinations",
        }
    }
}

/// Header of every request, used by header conditions and consistent hashing, and its value.
pub const HEADER: (&str, &str) = ("x-bench", "bench-1");

/// Origin that the CORS policy allows.
pub const ORIGIN: (&str, &str) = ("origin", "https://app.bench.example");

/// Headers of every request, the same for all features and the plain route.
pub const HEADERS: [(&str, &str); 2] = [HEADER, ORIGIN];

/// Path of every request.
pub const PATH: &str = "/route-00000/item";

/// Number of endpoints that take the requests; the failover region has as many.
pub const ENDPOINTS: u16 = 4;
