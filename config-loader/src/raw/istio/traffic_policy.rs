//! Traffic policy of a service, as written.

use serde::Deserialize;

use super::{ClientTlsSettings, ConnectionPoolSettings, LoadBalancerSettings, PortSelector};
use crate::raw::Field;

/// `trafficPolicy`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TrafficPolicy {
    /// `loadBalancer`
    pub load_balancer: Field<LoadBalancerSettings>,
    /// `connectionPool`
    pub connection_pool: Field<ConnectionPoolSettings>,
    /// `outlierDetection`
    pub outlier_detection: Field<OutlierDetection>,
    /// `tls`
    pub tls: Field<ClientTlsSettings>,
    /// `portLevelSettings`
    pub port_level_settings: Field<Vec<Field<PortTrafficPolicy>>>,
    /// `tunnel`
    pub tunnel: Field<TunnelSettings>,
    /// `proxyProtocol`
    pub proxy_protocol: Field<ProxyProtocol>,
    /// `retryBudget`
    pub retry_budget: Field<RetryBudget>,
}

/// An entry of `portLevelSettings`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PortTrafficPolicy {
    /// `port`
    pub port: Field<PortSelector>,
    /// `loadBalancer`
    pub load_balancer: Field<LoadBalancerSettings>,
    /// `connectionPool`
    pub connection_pool: Field<ConnectionPoolSettings>,
    /// `outlierDetection`
    pub outlier_detection: Field<OutlierDetection>,
    /// `tls`
    pub tls: Field<ClientTlsSettings>,
}

/// `outlierDetection`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OutlierDetection {
    /// `consecutiveErrors`
    pub consecutive_errors: Field<i64>,
    /// `splitExternalLocalOriginErrors`
    pub split_external_local_origin_errors: Field<bool>,
    /// `consecutiveLocalOriginFailures`
    pub consecutive_local_origin_failures: Field<i64>,
    /// `consecutiveGatewayErrors`
    pub consecutive_gateway_errors: Field<i64>,
    /// `consecutive5xxErrors`
    pub consecutive_5xx_errors: Field<i64>,
    /// `interval`
    pub interval: Field<String>,
    /// `baseEjectionTime`
    pub base_ejection_time: Field<String>,
    /// `maxEjectionPercent`
    pub max_ejection_percent: Field<i64>,
    /// `minHealthPercent`
    pub min_health_percent: Field<i64>,
    /// `outlierDetectionHttpErrorCodes`
    pub outlier_detection_http_error_codes: Field<Vec<Field<i64>>>,
}

/// `tunnel`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TunnelSettings {
    /// `protocol`
    pub protocol: Field<String>,
    /// `targetHost`
    pub target_host: Field<String>,
    /// `targetPort`
    pub target_port: Field<i64>,
}

/// `proxyProtocol`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProxyProtocol {
    /// `version`
    pub version: Field<String>,
}

/// `retryBudget`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RetryBudget {
    /// `percent`
    pub percent: Field<f64>,
    /// `minRetryConcurrency`
    pub min_retry_concurrency: Field<i64>,
    /// `budgetInterval`
    pub budget_interval: Field<String>,
}
