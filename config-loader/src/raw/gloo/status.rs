//! Status of a Destination, as written.

use serde::Deserialize;

use super::{AccessPolicySpec, ObjectRef};
use crate::raw::{Field, IntOrString, Map};

/// State that the management plane reports (`status`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DestinationStatus {
    /// `observedGeneration`: a text if it was written by protobuf's JSON mapping
    pub observed_generation: Field<IntOrString>,
    /// Traffic policies in effect.
    pub applied_traffic_policies: Field<Vec<Field<AppliedTrafficPolicy>>>,
    /// Access policies in effect.
    pub applied_access_policies: Field<Vec<Field<AppliedAccessPolicy>>>,
    /// Host name that only proxies of the local cluster know.
    pub local_fqdn: Field<String>,
    /// Access from other clusters.
    pub applied_federation: Field<AppliedFederation>,
    /// Traffic shifts that name subsets of this destination.
    pub required_subsets: Field<Vec<Field<RequiredSubsets>>>,
}

/// Traffic policy in effect: an entry of `appliedTrafficPolicies`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppliedTrafficPolicy {
    /// Name and namespace of the policy (`ref`).
    #[serde(rename = "ref")]
    pub reference: Field<ObjectRef>,
    /// `observedGeneration`: a text if it was written by protobuf's JSON mapping
    pub observed_generation: Field<IntOrString>,
    /// `spec`: content in an API that Strait does not read
    pub spec: Field<serde_json::Value>,
}

/// Access policy in effect: an entry of `appliedAccessPolicies`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppliedAccessPolicy {
    /// Name and namespace of the policy (`ref`).
    #[serde(rename = "ref")]
    pub reference: Field<ObjectRef>,
    /// `observedGeneration`: a text if it was written by protobuf's JSON mapping
    pub observed_generation: Field<IntOrString>,
    /// Content of the policy.
    pub spec: Field<AccessPolicySpec>,
}

/// Access from other clusters (`appliedFederation`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppliedFederation {
    /// Host name for clients in other clusters of the meshes.
    pub federated_hostname: Field<String>,
    /// Meshes that may access the destination.
    pub federated_to_meshes: Field<Vec<Field<ObjectRef>>>,
    /// Whether workloads are reached directly, not through the gateway of their cluster. Default: false.
    pub flat_network: Field<bool>,
    /// Virtual mesh that federates the destination.
    pub virtual_mesh_ref: Field<ObjectRef>,
    /// TCP keepalive of connections between clusters.
    pub tcp_keepalive: Field<TcpKeepalive>,
}

/// TCP keepalive probes (`tcpKeepalive`). Unset values use the operating system's default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TcpKeepalive {
    /// Number of unanswered probes after which a connection is dead.
    pub probes: Field<i64>,
    /// Idle time of a connection before the first probe.
    pub time: Field<String>,
    /// Interval between probes.
    pub interval: Field<String>,
}

/// Traffic shift that names subsets of this destination: an entry of `requiredSubsets`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequiredSubsets {
    /// Policy with the shift.
    pub traffic_policy_ref: Field<ObjectRef>,
    /// `observedGeneration`: a text if it was written by protobuf's JSON mapping
    pub observed_generation: Field<IntOrString>,
    /// Destinations of the shift.
    pub traffic_shift: Field<TrafficShift>,
}

/// Weighted destinations of a policy (`trafficShift`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TrafficShift {
    /// Destinations, whose weights add up to 100.
    pub destinations: Field<Vec<Field<WeightedDestination>>>,
}

/// Destination of a traffic shift: an entry of `destinations`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WeightedDestination {
    /// Share of the traffic, in percent.
    pub weight: Field<i64>,
    /// Service of a Kubernetes cluster.
    pub kube_service: Field<ShiftKubeService>,
    /// Virtual destination; not supported.
    pub virtual_destination: Field<VirtualDestination>,
    /// Static destination; not supported.
    pub static_destination: Field<ObjectRef>,
    /// Request header that names the cluster; not supported.
    pub cluster_header: Field<String>,
    /// Header edits for requests to this destination.
    pub options: Field<RouteOptions>,
}

/// Service or a subset of it that a shift names (`kubeService`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ShiftKubeService {
    /// Name of the service.
    pub name: Field<String>,
    /// Namespace of the service.
    pub namespace: Field<String>,
    /// Cluster of the service.
    pub cluster_name: Field<String>,
    /// Labels of the subset's workloads. Default: all.
    pub subset: Field<Map<String>>,
    /// Port number; required if the service has several ports.
    pub port: Field<i64>,
}

/// Virtual destination that a shift names (`virtualDestination`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VirtualDestination {
    /// Name of the virtual destination.
    pub name: Field<String>,
    /// Namespace of the virtual destination.
    pub namespace: Field<String>,
    /// Labels of the subset's workloads. Default: all.
    pub subset: Field<Map<String>>,
}

/// Options of a destination (`options`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteOptions {
    /// Header edits of requests and responses.
    pub header_manipulation: Field<HeaderManipulation>,
}

/// Header edits of requests and responses (`headerManipulation`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HeaderManipulation {
    /// Headers added to the request.
    pub append_request_headers: Field<Map<String>>,
    /// Headers removed from the request.
    pub remove_request_headers: Field<Vec<Field<String>>>,
    /// Headers added to the response.
    pub append_response_headers: Field<Map<String>>,
    /// Headers removed from the response.
    pub remove_response_headers: Field<Vec<Field<String>>>,
}
