//! How endpoints are health-checked: the annotations `strait.io/health-check` and `strait.io/health-check-...` of
//! ServiceEntry and DestinationRule, checked.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

/// What an object says about health checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HealthChecked {
    /// They are made.
    By(Arc<HealthCheck>),
    /// None are made, whatever another object says.
    Never,
    /// Nothing.
    #[default]
    Unsaid,
}

/// How endpoints are health-checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HealthCheck {
    /// What is asked.
    pub probe: Probe,
    /// The port that is asked; none for the one that takes the traffic.
    pub port: Option<u16>,
    /// Time from the end of one check to the next.
    ///
    /// Unit: time, at least 100 ms. Default: 10 s.
    pub interval: Duration,
    /// How long a check may take.
    ///
    /// Unit: time, 1 ms to 1 min. Default: 1 s.
    pub timeout: Duration,
    /// Passed checks in a row after which an unhealthy endpoint is healthy.
    ///
    /// Unit: checks, 1 to 100. Default: 1.
    pub healthy_threshold: u32,
    /// Failed checks in a row after which a healthy endpoint is unhealthy.
    ///
    /// Unit: checks, 1 to 100. Default: 3.
    pub unhealthy_threshold: u32,
}

impl HealthCheck {
    /// How often Kubernetes asks, too.
    pub const INTERVAL_DEFAULT: Duration = Duration::from_secs(10);
    /// The shortest interval.
    pub const INTERVAL_MIN: Duration = Duration::from_millis(100);
    /// How long Kubernetes waits, too.
    pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(1);
    /// The longest timeout: a check that hangs holds one of the places that all checks share.
    pub const TIMEOUT_MAX: Duration = Duration::from_secs(60);
    /// Passed checks until an endpoint is healthy.
    pub const HEALTHY_THRESHOLD_DEFAULT: u32 = 1;
    /// Failed checks until an endpoint is unhealthy.
    pub const UNHEALTHY_THRESHOLD_DEFAULT: u32 = 3;
    /// The highest threshold.
    pub const THRESHOLD_MAX: u32 = 100;
}

/// What an endpoint is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Probe {
    /// `grpc.health.v1.Health/Check` over HTTP/2, for a service; passed when that is SERVING.
    Grpc {
        /// Name of the gRPC service, empty for the whole server.
        service: Arc<str>,
        /// The authority that is asked for; none for the host of the service.
        host: Option<Arc<str>>,
    },
    /// GET; passed by the status of the response.
    Http {
        /// Path and query.
        path: Arc<str>,
        /// The host that is asked for; none for the host of the service.
        host: Option<Arc<str>>,
        /// Statuses that pass. Never empty.
        statuses: Vec<RangeInclusive<u16>>,
    },
    /// A connection; passed when it is made.
    Tcp,
}
