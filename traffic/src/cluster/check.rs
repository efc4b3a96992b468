//! Active health checks of a cluster's endpoints: the requests and how their results count. Pure.
//!
//! The control thread sends the checks, once for all workers. Invariant: only endpoints of a cluster with health checks
//! are excluded for failing checks.

mod results;

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use crate::registry::Thresholds;

/// Active health checks of a cluster's endpoints.
///
/// Source: annotations `strait.io/health-check...` of a DestinationRule, else of the ServiceEntry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HealthCheck {
    /// The request that a check sends.
    pub probe: Probe,
    /// Port to check; `None` for the port that takes the traffic.
    pub port: Option<u16>,
    /// Time from the end of one check to the next.
    pub interval: Duration,
    /// Timeout of one check.
    pub timeout: Duration,
    /// Consecutive results that change the health of an endpoint.
    pub thresholds: Thresholds,
}

/// The request of a health check, and the condition to pass it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Probe {
    /// The standard health service of gRPC; passes when the service is SERVING.
    Grpc {
        /// Name of the gRPC service, empty for the whole server.
        service: Arc<str>,
        /// `:authority` of the request; `None` for the host of the cluster.
        host: Option<Arc<str>>,
    },
    /// GET; passes if the status of the response is among `statuses`.
    Http {
        /// Path and query.
        path: Arc<str>,
        /// Host of the request; `None` for the host of the cluster.
        host: Option<Arc<str>>,
        /// Statuses that pass.
        statuses: Vec<RangeInclusive<u16>>,
    },
    /// A TCP connection; passes when it is established.
    Tcp,
}

impl fmt::Display for HealthCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.probe {
            Probe::Grpc { service, .. } if service.is_empty() => f.write_str("gRPC"),
            Probe::Grpc { service, .. } => write!(f, "gRPC service {service}"),
            Probe::Http { path, .. } => write!(f, "GET {path}"),
            Probe::Tcp => f.write_str("TCP connection"),
        }?;
        if let Some(port) = self.port {
            write!(f, " on port {port}")?;
        }
        let (interval, timeout) = (self.interval, self.timeout);
        let Thresholds { healthy, unhealthy } = self.thresholds;
        write!(f, " every {interval:?}, timeout {timeout:?}")?;
        write!(f, ", unhealthy after {unhealthy}, healthy after {healthy}")
    }
}
