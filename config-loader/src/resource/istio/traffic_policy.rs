//! Traffic policy of a service.

use std::sync::Arc;
use std::time::Duration;

use super::{ClientTls, ConnectionPool, LoadBalancer};
use crate::span::Line;

/// Traffic policy of a rule or a subset (`trafficPolicy`). Each block is inherited or replaced as a whole.
#[derive(Clone, Debug, Default)]
pub struct TrafficPolicy {
    /// Connection pool settings.
    pub connection_pool: Option<Box<ConnectionPool>>,
    /// Load balancing settings.
    pub load_balancer: Option<Box<LoadBalancer>>,
    /// Outlier detection settings.
    pub outlier_detection: Option<Box<OutlierDetection>>,
    /// TLS settings of connections to the endpoints.
    pub tls: Option<Box<ClientTls>>,
    /// Tunnel through another proxy.
    pub tunnel: Option<Box<Tunnel>>,
    /// Version of the PROXY protocol header that is sent to the endpoint; `None` for no header.
    pub proxy_protocol: Option<ProxyProtocolVersion>,
    /// Retry budget, which replaces the fixed limit of retries.
    pub retry_budget: Option<RetryBudget>,
    /// Policies of single ports of the service. Ports are unique.
    pub ports: Vec<PortPolicy>,
}

impl TrafficPolicy {
    /// Whether any block is set.
    pub fn is_written(&self) -> bool {
        self.connection_pool.is_some()
            || self.load_balancer.is_some()
            || self.outlier_detection.is_some()
            || self.tls.is_some()
            || self.tunnel.is_some()
            || self.proxy_protocol.is_some()
            || self.retry_budget.is_some()
            || !self.ports.is_empty()
    }

    /// Returns the policy for a port of the service, if it has its own.
    pub fn port(&self, port: u16) -> Option<&PortPolicy> {
        self.ports.iter().find(|policy| policy.port == port)
    }
}

/// Traffic policy of a port: an entry of `portLevelSettings`. Unset blocks have defaults; nothing is inherited.
#[derive(Clone, Debug, Default)]
pub struct PortPolicy {
    /// Port of the service.
    pub port: u16,
    /// Connection pool settings.
    pub connection_pool: Option<Box<ConnectionPool>>,
    /// Load balancing settings.
    pub load_balancer: Option<Box<LoadBalancer>>,
    /// Outlier detection settings.
    pub outlier_detection: Option<Box<OutlierDetection>>,
    /// TLS settings of connections to the endpoints.
    pub tls: Option<Box<ClientTls>>,
    /// Source line within the document.
    pub line: Line,
}

/// Outlier detection settings (`outlierDetection`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlierDetection {
    /// Number of consecutive 5xx responses that ejects an endpoint; 0 for off.
    pub consecutive_5xx_errors: u32,
    /// Number of consecutive 502, 503 or 504 responses that ejects an endpoint; 0 for off.
    pub consecutive_gateway_errors: u32,
    /// Number of consecutive connect failures that ejects an endpoint; 0 for off. Only with
    /// `split_external_local_origin_errors`.
    pub consecutive_local_origin_failures: u32,
    /// Whether connect failures are counted separately.
    pub split_external_local_origin_errors: bool,
    /// Interval between ejection sweeps.
    pub interval: Duration,
    /// Base ejection time. An endpoint is ejected for this time multiplied by the number of its ejections.
    pub base_ejection_time: Duration,
    /// Maximum percentage of a cluster's endpoints that may be ejected, 0 to 100.
    pub ejection_percent_max: u8,
    /// Panic threshold: minimum percentage of healthy endpoints, below which ejections are ignored. 0 for off.
    pub health_percent_min: u8,
    /// HTTP statuses that count as errors, sorted; empty for all 5xx.
    pub http_error_codes: Vec<u16>,
    /// Source line of `ejection_percent_max`, otherwise of the whole block.
    pub line: Line,
}

impl Default for OutlierDetection {
    fn default() -> OutlierDetection {
        OutlierDetection {
            consecutive_5xx_errors: 5,
            consecutive_gateway_errors: 0,
            consecutive_local_origin_failures: 5,
            split_external_local_origin_errors: false,
            interval: Duration::from_secs(10),
            base_ejection_time: Duration::from_secs(30),
            ejection_percent_max: 10,
            health_percent_min: 0,
            http_error_codes: Vec::new(),
            line: Line::default(),
        }
    }
}

/// Tunnel through another proxy (`tunnel`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// HTTP method that opens the tunnel.
    pub method: TunnelMethod,
    /// Host at the end of the tunnel: a name or an address.
    pub target_host: Arc<str>,
    /// Port at the end of the tunnel.
    pub target_port: u16,
    /// Source line within the document.
    pub line: Line,
}

/// HTTP method that opens a tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TunnelMethod {
    /// `CONNECT`
    #[default]
    Connect,
    /// `POST`, with the stream as the body.
    Post,
}

/// Version of the PROXY protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyProtocolVersion {
    /// Version 1: a line of text.
    #[default]
    V1,
    /// Version 2: binary.
    V2,
}

/// Retry budget (`retryBudget`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryBudget {
    /// Maximum percentage of requests that may be retries, 0 to 100.
    pub percent: f64,
    /// Number of concurrent retries that is always permitted.
    pub retry_concurrency_min: u32,
    /// Time window in which requests count; `None` to count the requests in flight.
    pub interval: Option<Duration>,
}

impl Default for RetryBudget {
    fn default() -> RetryBudget {
        RetryBudget {
            percent: 20.0,
            retry_concurrency_min: 3,
            interval: None,
        }
    }
}
