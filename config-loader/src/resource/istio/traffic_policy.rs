//! How a service's traffic is treated.

use std::sync::Arc;
use std::time::Duration;

use super::{ClientTls, ConnectionPool, LoadBalancer};
use crate::span::Line;

/// `trafficPolicy` of a rule or a subset. Blocks are inherited or replaced whole, so each may be missing.
#[derive(Clone, Debug, Default)]
pub struct TrafficPolicy {
    /// Limits of connections.
    pub connection_pool: Option<Box<ConnectionPool>>,
    /// How requests are spread.
    pub load_balancer: Option<Box<LoadBalancer>>,
    /// When an endpoint is taken out.
    pub outlier_detection: Option<Box<OutlierDetection>>,
    /// TLS to the endpoints.
    pub tls: Option<Box<ClientTls>>,
    /// Going through another proxy.
    pub tunnel: Option<Box<Tunnel>>,
    /// Telling the endpoint who the client is.
    pub proxy_protocol: Option<ProxyProtocolVersion>,
    /// How many retries there may be, in place of a fixed number.
    pub retry_budget: Option<RetryBudget>,
    /// What holds for one port of the service. Ports are unique.
    pub ports: Vec<PortPolicy>,
}

impl TrafficPolicy {
    /// Whether it says anything.
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

    /// The policy for one port of the service, if it has its own.
    pub fn port(&self, port: u16) -> Option<&PortPolicy> {
        self.ports.iter().find(|policy| policy.port == port)
    }
}

/// An entry of `portLevelSettings`. What is missing has its default; nothing is inherited.
#[derive(Clone, Debug, Default)]
pub struct PortPolicy {
    /// The service's port.
    pub port: u16,
    /// Limits of connections.
    pub connection_pool: Option<Box<ConnectionPool>>,
    /// How requests are spread.
    pub load_balancer: Option<Box<LoadBalancer>>,
    /// When an endpoint is taken out.
    pub outlier_detection: Option<Box<OutlierDetection>>,
    /// TLS to the endpoints.
    pub tls: Option<Box<ClientTls>>,
    /// Where it was written.
    pub line: Line,
}

/// `outlierDetection`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlierDetection {
    /// How many 5xx in a row; 0 for off.
    pub consecutive_5xx_errors: u32,
    /// How many 502, 503 or 504 in a row; 0 for off.
    pub consecutive_gateway_errors: u32,
    /// How many failures to connect in a row; 0 for off. Only with `split_external_local_origin_errors`.
    pub consecutive_local_origin_failures: u32,
    /// Whether failures to connect are counted apart.
    pub split_external_local_origin_errors: bool,
    /// How often ejected endpoints are looked at.
    pub interval: Duration,
    /// How long an endpoint stays out: this, times the ejections it has had.
    pub base_ejection_time: Duration,
    /// The most of a cluster's endpoints that may be out, 0 to 100.
    pub ejection_percent_max: u8,
    /// The panic threshold, 0 to 100: with fewer endpoints in, ejections are ignored. 0 for never.
    pub health_percent_min: u8,
    /// The statuses that count in place of all 5xx, sorted; empty for all 5xx.
    pub http_error_codes: Vec<u16>,
    /// Where `ejection_percent_max` was written, or else the whole.
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

/// `tunnel`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunnel {
    /// How it is opened.
    pub method: TunnelMethod,
    /// The host that it leads to: a name or an address.
    pub target_host: Arc<str>,
    /// The port that it leads to.
    pub target_port: u16,
    /// Where it was written.
    pub line: Line,
}

/// How a tunnel is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TunnelMethod {
    /// `CONNECT`
    #[default]
    Connect,
    /// `POST`, the stream as its body.
    Post,
}

/// The version of the PROXY protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyProtocolVersion {
    /// A line of text.
    #[default]
    V1,
    /// Binary.
    V2,
}

/// `retryBudget`
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryBudget {
    /// The share of requests that may be retries, 0 to 100.
    pub percent: f64,
    /// So many retries are always allowed.
    pub retry_concurrency_min: u32,
    /// The time in which a request must have begun to count; none to count the requests in flight.
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
