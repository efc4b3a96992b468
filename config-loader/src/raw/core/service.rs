//! Service as written.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Condition, LoadBalancerStatus, SessionAffinityConfig};
use crate::raw::{Field, IntOrString, Map};

/// Service as written, beside its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Service {
    /// `spec`
    pub spec: Field<ServiceSpec>,
    /// `status`
    pub status: Field<ServiceStatus>,
}

/// `spec`. Fields that only the cluster's network implementation uses are accepted and ignored.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceSpec {
    /// `ports`
    pub ports: Field<Vec<Field<ServicePort>>>,
    /// `selector`
    pub selector: Field<Map<String>>,
    /// `clusterIP`
    #[serde(rename = "clusterIP")]
    pub cluster_ip: Field<String>,
    /// `clusterIPs`
    #[serde(rename = "clusterIPs")]
    pub cluster_ips: Field<Vec<Field<String>>>,
    /// `type`
    #[serde(rename = "type")]
    pub service_type: Field<String>,
    /// `externalIPs`
    #[serde(rename = "externalIPs")]
    pub external_ips: Field<Vec<Field<String>>>,
    /// `sessionAffinity`
    pub session_affinity: Field<String>,
    /// `sessionAffinityConfig`
    pub session_affinity_config: Field<SessionAffinityConfig>,
    /// `externalName`
    pub external_name: Field<String>,
    /// `externalTrafficPolicy`
    pub external_traffic_policy: Field<String>,
    /// `internalTrafficPolicy`
    pub internal_traffic_policy: Field<String>,
    /// `publishNotReadyAddresses`
    pub publish_not_ready_addresses: Field<bool>,
    /// `trafficDistribution`
    pub traffic_distribution: Field<String>,
    /// `ipFamilies`
    pub ip_families: Field<Vec<Field<String>>>,
    /// `ipFamilyPolicy`
    pub ip_family_policy: Field<String>,
    /// `allocateLoadBalancerNodePorts`
    pub allocate_load_balancer_node_ports: Field<IgnoredAny>,
    /// `healthCheckNodePort`
    pub health_check_node_port: Field<IgnoredAny>,
    /// `loadBalancerClass`
    pub load_balancer_class: Field<IgnoredAny>,
    /// `loadBalancerIP`
    #[serde(rename = "loadBalancerIP")]
    pub load_balancer_ip: Field<IgnoredAny>,
    /// `loadBalancerSourceRanges`
    pub load_balancer_source_ranges: Field<IgnoredAny>,
    /// `topologyKeys`: removed in Kubernetes 1.22
    pub topology_keys: Field<IgnoredAny>,
    /// `ipFamily`: removed in Kubernetes 1.20
    pub ip_family: Field<IgnoredAny>,
}

/// An entry of `ports` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    /// `name`
    pub name: Field<String>,
    /// `protocol`
    pub protocol: Field<String>,
    /// `appProtocol`
    pub app_protocol: Field<String>,
    /// `port`
    pub port: Field<i64>,
    /// `targetPort`
    pub target_port: Field<IntOrString>,
    /// `nodePort`
    pub node_port: Field<i64>,
}

/// `status`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceStatus {
    /// `loadBalancer`
    pub load_balancer: Field<LoadBalancerStatus>,
    /// `conditions`
    pub conditions: Field<Vec<Field<Condition>>>,
}
