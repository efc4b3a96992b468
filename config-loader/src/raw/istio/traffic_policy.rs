//! Traffic policy of a service, as written.

use serde::Deserialize;

use super::{ClientTlsSettings, ConnectionPoolSettings, LoadBalancerSettings, PortSelector};
use crate::raw::Field;

/// Traffic policy of a rule or a subset (`trafficPolicy`). Each block is inherited or replaced as a whole.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TrafficPolicy {
    /// Load balancing settings.
    pub load_balancer: Field<LoadBalancerSettings>,
    /// Connection pool settings.
    pub connection_pool: Field<ConnectionPoolSettings>,
    /// Outlier detection settings. Default: off.
    pub outlier_detection: Field<OutlierDetection>,
    /// TLS settings of connections to the endpoints.
    pub tls: Field<ClientTlsSettings>,
    /// Policies of single ports of the service.
    pub port_level_settings: Field<Vec<Field<PortTrafficPolicy>>>,
    /// Tunnel through another proxy.
    pub tunnel: Field<TunnelSettings>,
    /// PROXY protocol header that is sent to the endpoint. Default: none.
    pub proxy_protocol: Field<ProxyProtocol>,
    /// Retry budget, which replaces `maxRetries`.
    pub retry_budget: Field<RetryBudget>,
}

/// Traffic policy of a port: an entry of `portLevelSettings`. Unset blocks have defaults; nothing is inherited.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PortTrafficPolicy {
    /// Port of the service; required.
    pub port: Field<PortSelector>,
    /// Load balancing settings.
    pub load_balancer: Field<LoadBalancerSettings>,
    /// Connection pool settings.
    pub connection_pool: Field<ConnectionPoolSettings>,
    /// Outlier detection settings. Default: off.
    pub outlier_detection: Field<OutlierDetection>,
    /// TLS settings of connections to the endpoints.
    pub tls: Field<ClientTlsSettings>,
}

/// Outlier detection settings (`outlierDetection`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OutlierDetection {
    /// Deprecated; has no effect.
    pub consecutive_errors: Field<i64>,
    /// Whether connect failures are counted separately. Default: false.
    pub split_external_local_origin_errors: Field<bool>,
    /// Number of consecutive connect failures that ejects an endpoint, if they are counted separately; 0 for off.
    /// Default: 5.
    pub consecutive_local_origin_failures: Field<i64>,
    /// Number of consecutive 502, 503 or 504 responses that ejects an endpoint. Default: 0, off.
    pub consecutive_gateway_errors: Field<i64>,
    /// Number of consecutive 5xx responses that ejects an endpoint; 0 for off. Default: 5.
    pub consecutive_5xx_errors: Field<i64>,
    /// Interval between ejection sweeps. Default: 10 s.
    pub interval: Field<String>,
    /// Base ejection time, multiplied by the number of an endpoint's ejections. Default: 30 s.
    pub base_ejection_time: Field<String>,
    /// Maximum percentage of endpoints that may be ejected, 0 to 100. Default: 10.
    pub max_ejection_percent: Field<i64>,
    /// Panic threshold: minimum percentage of healthy endpoints, below which ejections are ignored. Default: 0, off.
    pub min_health_percent: Field<i64>,
    /// HTTP statuses that count as errors, 100 to 599. Default: all 5xx.
    pub outlier_detection_http_error_codes: Field<Vec<Field<i64>>>,
}

/// Tunnel through another proxy (`tunnel`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TunnelSettings {
    /// HTTP method that opens the tunnel: `CONNECT` (default) or `POST`.
    pub protocol: Field<String>,
    /// Host at the end of the tunnel, a name or an address; required.
    pub target_host: Field<String>,
    /// Port at the end of the tunnel, 1 to 65535; required.
    pub target_port: Field<i64>,
}

/// PROXY protocol header that is sent to the endpoint (`proxyProtocol`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProxyProtocol {
    /// Version: `V1` (default, text) or `V2` (binary).
    pub version: Field<String>,
}

/// Retry budget (`retryBudget`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RetryBudget {
    /// Maximum percentage of requests that may be retries, 0 to 100. Default: 20.
    pub percent: Field<f64>,
    /// Number of active retries that is always permitted. Default: 3.
    pub min_retry_concurrency: Field<i64>,
    /// Time window in which requests count. Default: 0, which counts the requests in flight.
    pub budget_interval: Field<String>,
}
