//! Types that several kinds share, as written.

use serde::Deserialize;

use crate::raw::Field;

/// Condition that a controller reports: an entry of `conditions`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Type of the condition.
    #[serde(rename = "type")]
    pub condition_type: Field<String>,
    /// Status of the condition: `True`, `False` or `Unknown`.
    pub status: Field<String>,
    /// Generation of the object that the condition describes.
    pub observed_generation: Field<i64>,
    /// Time of the last change of the status.
    pub last_transition_time: Field<String>,
    /// Reason for the last change, in one word.
    pub reason: Field<String>,
    /// Explanation for people.
    pub message: Field<String>,
}

/// Load balancer addresses (`loadBalancer`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadBalancerStatus {
    /// Addresses of the load balancer.
    pub ingress: Field<Vec<Field<LoadBalancerIngress>>>,
}

/// Address of a load balancer: an entry of `ingress`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadBalancerIngress {
    /// IP address.
    pub ip: Field<String>,
    /// DNS name.
    pub hostname: Field<String>,
    /// Delivery of traffic to `ip`: `VIP` or `Proxy`.
    pub ip_mode: Field<String>,
    /// State of the load balancer's ports.
    pub ports: Field<Vec<Field<PortStatus>>>,
}

/// State of a load balancer's port.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PortStatus {
    /// Port number.
    pub port: Field<i64>,
    /// Transport protocol.
    pub protocol: Field<String>,
    /// Reason that the port has a problem.
    pub error: Field<String>,
}

/// Settings of session affinity (`sessionAffinityConfig`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionAffinityConfig {
    /// Settings of session affinity by client address.
    #[serde(rename = "clientIP")]
    pub client_ip: Field<ClientIpConfig>,
}

/// Settings of session affinity by client address (`clientIP`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientIpConfig {
    /// Lifetime of an affinity entry in seconds, 1 to 86400. Default: 10800.
    pub timeout_seconds: Field<i64>,
}
