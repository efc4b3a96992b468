//! Active health checking: the annotations `strait.io/health-check` and `strait.io/health-check-...` of ServiceEntry
//! and DestinationRule, checked.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

/// Health check setting of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HealthChecked {
    /// Health checks are on, with these settings.
    By(Arc<HealthCheck>),
    /// Health checks are off, even if another object turns them on.
    Never,
    /// Unset; another object can turn health checks on.
    #[default]
    Unsaid,
}

/// Settings of active health checking.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HealthCheck {
    /// Request or connection that each check sends.
    pub probe: Probe,
    /// Port to check; `None` for the port of the traffic.
    pub port: Option<u16>,
    /// Interval from the end of one check to the start of the next.
    ///
    /// Unit: time, at least 100 ms. Default: 10 s.
    pub interval: Duration,
    /// Timeout of one check.
    ///
    /// Unit: time, 1 ms to 1 min. Default: 1 s.
    pub timeout: Duration,
    /// Number of consecutive passed checks after which an unhealthy endpoint becomes healthy.
    ///
    /// Unit: checks, 1 to 100. Default: 1.
    pub healthy_threshold: u32,
    /// Number of consecutive failed checks after which a healthy endpoint becomes unhealthy.
    ///
    /// Unit: checks, 1 to 100. Default: 3.
    pub unhealthy_threshold: u32,
}

impl HealthCheck {
    /// Default interval, the same as in Kubernetes.
    pub const INTERVAL_DEFAULT: Duration = Duration::from_secs(10);
    /// Minimum interval.
    pub const INTERVAL_MIN: Duration = Duration::from_millis(100);
    /// Default timeout, the same as in Kubernetes.
    pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(1);
    /// Maximum timeout. A hanging check occupies one of the slots that all checks share.
    pub const TIMEOUT_MAX: Duration = Duration::from_secs(60);
    /// Default of [`HealthCheck::healthy_threshold`].
    pub const HEALTHY_THRESHOLD_DEFAULT: u32 = 1;
    /// Default of [`HealthCheck::unhealthy_threshold`].
    pub const UNHEALTHY_THRESHOLD_DEFAULT: u32 = 3;
    /// Maximum of both thresholds.
    pub const THRESHOLD_MAX: u32 = 100;
}

/// Probe of a health check.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Probe {
    /// gRPC `grpc.health.v1.Health/Check` over HTTP/2; passes if the service is SERVING.
    Grpc {
        /// Name of the gRPC service, empty for the whole server.
        service: Arc<str>,
        /// Authority of the request; `None` for the host of the service.
        host: Option<Arc<str>>,
    },
    /// HTTP GET request; passes if the response has one of the statuses.
    Http {
        /// Path and query of the request.
        path: Arc<str>,
        /// Host of the request; `None` for the host of the service.
        host: Option<Arc<str>>,
        /// Response statuses that pass. Never empty.
        statuses: Vec<RangeInclusive<u16>>,
    },
    /// TCP connection; passes if it is established.
    Tcp,
}
