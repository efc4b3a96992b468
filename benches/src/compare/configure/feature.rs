//! The features whose cost is measured one by one, in Strait alone.

/// Something that a request takes on its way, beside the plain route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Nothing: what the others are compared with.
    None,
    /// The access log, written to `/dev/null`.
    AccessLog,
    /// Limits of connections, pending and active requests, which are not reached.
    CircuitBreakers,
    /// A policy for the origin that the request states.
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
    /// No retries: a plain route has those of Istio's default policy.
    NoRetries,
    /// Outlier detection.
    OutlierDetection,
    /// A regular expression for the path.
    RegexMatch,
    /// A policy of retries of its own.
    Retries,
    /// Another path to the upstream.
    Rewrite,
    /// A subset by labels, which all endpoints have.
    Subset,
    /// A timeout.
    Timeout,
    /// Two destinations with equal weights.
    Weights,
}

impl Feature {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 18] = [
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
    ];

    /// Its name in the table.
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
            Self::Weights => "two destinations",
        }
    }
}

/// The header that conditions and hashes look at, and its value in every request.
pub const HEADER: (&str, &str) = ("x-bench", "bench-1");

/// The origin that a policy for CORS allows.
pub const ORIGIN: (&str, &str) = ("origin", "https://app.bench.example");

/// Headers of the requests to all of the features and to the plain route, so that they differ in nothing.
pub const HEADERS: [(&str, &str); 2] = [HEADER, ORIGIN];

/// The path of these requests.
pub const PATH: &str = "/route-00000/item";

/// Endpoints that take the requests, and as many in another region for the failover.
pub const ENDPOINTS: u16 = 4;
