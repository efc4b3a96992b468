//! Types that several kinds share, as written.

use serde::Deserialize;

use crate::raw::Field;

/// An entry of `conditions` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// `type`
    #[serde(rename = "type")]
    pub condition_type: Field<String>,
    /// `status`
    pub status: Field<String>,
    /// `observedGeneration`
    pub observed_generation: Field<i64>,
    /// `lastTransitionTime`
    pub last_transition_time: Field<String>,
    /// `reason`
    pub reason: Field<String>,
    /// `message`
    pub message: Field<String>,
}

/// `loadBalancer` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadBalancerStatus {
    /// `ingress`
    pub ingress: Field<Vec<Field<LoadBalancerIngress>>>,
}

/// An entry of `ingress` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadBalancerIngress {
    /// `ip`
    pub ip: Field<String>,
    /// `hostname`
    pub hostname: Field<String>,
    /// `ipMode`
    pub ip_mode: Field<String>,
    /// `ports`
    pub ports: Field<Vec<Field<PortStatus>>>,
}

/// State of a port as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PortStatus {
    /// `port`
    pub port: Field<i64>,
    /// `protocol`
    pub protocol: Field<String>,
    /// `error`
    pub error: Field<String>,
}

/// `sessionAffinityConfig` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionAffinityConfig {
    /// `clientIP`
    #[serde(rename = "clientIP")]
    pub client_ip: Field<ClientIpConfig>,
}

/// `clientIP` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientIpConfig {
    /// `timeoutSeconds`
    pub timeout_seconds: Field<i64>,
}
