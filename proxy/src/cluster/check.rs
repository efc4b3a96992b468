//! Active health checks of a cluster's endpoints: the requests and how their results count. Pure.
//!
//! Who asks is the control thread, once for all workers. Invariant: only an endpoint of a cluster that is checked is
//! out for failing checks.

mod results;

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use crate::registry::Thresholds;

/// How endpoints are health-checked.
///
/// Source: annotations `strait.io/health-check...` of a DestinationRule, else of the ServiceEntry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HealthCheck {
    /// What is asked.
    pub probe: Probe,
    /// The port that is asked; none for the one that takes the traffic.
    pub port: Option<u16>,
    /// Time from the end of one check to the next.
    pub interval: Duration,
    /// How long a check may take.
    pub timeout: Duration,
    /// How many checks it takes.
    pub thresholds: Thresholds,
}

/// What an endpoint is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Probe {
    /// The standard health service of gRPC; passed when the service is SERVING.
    Grpc {
        /// Name of the gRPC service, empty for the whole server.
        service: Arc<str>,
        /// The authority that is asked for; none for the host of the cluster.
        host: Option<Arc<str>>,
    },
    /// GET; passed by the status of the response.
    Http {
        /// Path and query.
        path: Arc<str>,
        /// The host that is asked for; none for the host of the cluster.
        host: Option<Arc<str>>,
        /// Statuses that pass.
        statuses: Vec<RangeInclusive<u16>>,
    },
    /// A connection; passed when it is made.
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
