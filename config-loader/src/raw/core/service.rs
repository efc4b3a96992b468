//! Service as written.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Condition, LoadBalancerStatus, SessionAffinityConfig};
use crate::raw::{Field, IntOrString, Map};

/// Service as written, beside its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Service {
    /// Ports, addresses and selector of the service.
    pub spec: Field<ServiceSpec>,
    /// Load balancer addresses and conditions.
    pub status: Field<ServiceStatus>,
}

/// `spec`. Fields that only the cluster's network implementation uses are accepted and ignored.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceSpec {
    /// Ports of the service.
    pub ports: Field<Vec<Field<ServicePort>>>,
    /// Labels of the service's pods.
    pub selector: Field<Map<String>>,
    /// First virtual IP address; `None` for a headless service.
    #[serde(rename = "clusterIP")]
    pub cluster_ip: Field<String>,
    /// Virtual IP addresses, at most one of each family.
    #[serde(rename = "clusterIPs")]
    pub cluster_ips: Field<Vec<Field<String>>>,
    /// Type: `ClusterIP` (default), `NodePort`, `LoadBalancer` or `ExternalName`.
    #[serde(rename = "type")]
    pub service_type: Field<String>,
    /// Further IP addresses at which nodes accept traffic for the service.
    #[serde(rename = "externalIPs")]
    pub external_ips: Field<Vec<Field<String>>>,
    /// Session affinity: `None` (default) or `ClientIP`.
    pub session_affinity: Field<String>,
    /// Settings of session affinity.
    pub session_affinity_config: Field<SessionAffinityConfig>,
    /// DNS name that the service is an alias of; for the type `ExternalName`.
    pub external_name: Field<String>,
    /// Endpoints for traffic from outside of the cluster: `Cluster` (default) or `Local`.
    pub external_traffic_policy: Field<String>,
    /// Endpoints for traffic from inside of the cluster: `Cluster` (default) or `Local`.
    pub internal_traffic_policy: Field<String>,
    /// Whether endpoints that are not ready are published. Default: false.
    pub publish_not_ready_addresses: Field<bool>,
    /// Preference between endpoints, such as `PreferSameZone`.
    pub traffic_distribution: Field<String>,
    /// IP families of the service.
    pub ip_families: Field<Vec<Field<String>>>,
    /// IP family policy: `SingleStack`, `PreferDualStack` or `RequireDualStack`.
    pub ip_family_policy: Field<String>,
    /// Whether a load balancer gets node ports. Default: true.
    pub allocate_load_balancer_node_ports: Field<IgnoredAny>,
    /// Node port of the load balancer's health check.
    pub health_check_node_port: Field<IgnoredAny>,
    /// Implementation of the load balancer.
    pub load_balancer_class: Field<IgnoredAny>,
    /// Requested address of the load balancer.
    #[serde(rename = "loadBalancerIP")]
    pub load_balancer_ip: Field<IgnoredAny>,
    /// Subnets of the clients that the load balancer admits.
    pub load_balancer_source_ranges: Field<IgnoredAny>,
    /// `topologyKeys`: removed in Kubernetes 1.22
    pub topology_keys: Field<IgnoredAny>,
    /// `ipFamily`: removed in Kubernetes 1.20
    pub ip_family: Field<IgnoredAny>,
}

/// Port of the service: an entry of `ports`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    /// Name of the port; may be empty for a single port.
    pub name: Field<String>,
    /// Transport protocol: `TCP` (default), `UDP` or `SCTP`.
    pub protocol: Field<String>,
    /// Application protocol. Default: by the prefix of the port's name.
    pub app_protocol: Field<String>,
    /// Port number that clients use; required.
    pub port: Field<i64>,
    /// Port of the endpoints, by number or name. Default: `port`.
    pub target_port: Field<IntOrString>,
    /// Port number on every node.
    pub node_port: Field<i64>,
}

/// Load balancer addresses and conditions (`status`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceStatus {
    /// Load balancer addresses.
    pub load_balancer: Field<LoadBalancerStatus>,
    /// Conditions that controllers report.
    pub conditions: Field<Vec<Field<Condition>>>,
}
