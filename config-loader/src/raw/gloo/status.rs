//! Status of a Destination, as written.

use serde::Deserialize;

use super::{AccessPolicySpec, ObjectRef};
use crate::raw::{Field, IntOrString, Map};

/// `status`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DestinationStatus {
    /// `observedGeneration`: a text if it was written by protobuf's JSON mapping
    pub observed_generation: Field<IntOrString>,
    /// `appliedTrafficPolicies`
    pub applied_traffic_policies: Field<Vec<Field<AppliedTrafficPolicy>>>,
    /// `appliedAccessPolicies`
    pub applied_access_policies: Field<Vec<Field<AppliedAccessPolicy>>>,
    /// `localFqdn`
    pub local_fqdn: Field<String>,
    /// `appliedFederation`
    pub applied_federation: Field<AppliedFederation>,
    /// `requiredSubsets`
    pub required_subsets: Field<Vec<Field<RequiredSubsets>>>,
}

/// An entry of `appliedTrafficPolicies` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppliedTrafficPolicy {
    /// `ref`
    #[serde(rename = "ref")]
    pub reference: Field<ObjectRef>,
    /// `observedGeneration`: a text if it was written by protobuf's JSON mapping
    pub observed_generation: Field<IntOrString>,
    /// `spec`: content in an API that Strait does not read
    pub spec: Field<serde_json::Value>,
}

/// An entry of `appliedAccessPolicies` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppliedAccessPolicy {
    /// `ref`
    #[serde(rename = "ref")]
    pub reference: Field<ObjectRef>,
    /// `observedGeneration`: a text if it was written by protobuf's JSON mapping
    pub observed_generation: Field<IntOrString>,
    /// `spec`
    pub spec: Field<AccessPolicySpec>,
}

/// `appliedFederation` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppliedFederation {
    /// `federatedHostname`
    pub federated_hostname: Field<String>,
    /// `federatedToMeshes`
    pub federated_to_meshes: Field<Vec<Field<ObjectRef>>>,
    /// `flatNetwork`
    pub flat_network: Field<bool>,
    /// `virtualMeshRef`
    pub virtual_mesh_ref: Field<ObjectRef>,
    /// `tcpKeepalive`
    pub tcp_keepalive: Field<TcpKeepalive>,
}

/// `tcpKeepalive` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TcpKeepalive {
    /// `probes`
    pub probes: Field<i64>,
    /// `time`
    pub time: Field<String>,
    /// `interval`
    pub interval: Field<String>,
}

/// An entry of `requiredSubsets` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequiredSubsets {
    /// `trafficPolicyRef`
    pub traffic_policy_ref: Field<ObjectRef>,
    /// `observedGeneration`: a text if it was written by protobuf's JSON mapping
    pub observed_generation: Field<IntOrString>,
    /// `trafficShift`
    pub traffic_shift: Field<TrafficShift>,
}

/// `trafficShift` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TrafficShift {
    /// `destinations`
    pub destinations: Field<Vec<Field<WeightedDestination>>>,
}

/// An entry of `destinations` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WeightedDestination {
    /// `weight`
    pub weight: Field<i64>,
    /// `kubeService`
    pub kube_service: Field<ShiftKubeService>,
    /// `virtualDestination`
    pub virtual_destination: Field<VirtualDestination>,
    /// `staticDestination`
    pub static_destination: Field<ObjectRef>,
    /// `clusterHeader`
    pub cluster_header: Field<String>,
    /// `options`
    pub options: Field<RouteOptions>,
}

/// `kubeService` of a shift as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ShiftKubeService {
    /// `name`
    pub name: Field<String>,
    /// `namespace`
    pub namespace: Field<String>,
    /// `clusterName`
    pub cluster_name: Field<String>,
    /// `subset`
    pub subset: Field<Map<String>>,
    /// `port`
    pub port: Field<i64>,
}

/// `virtualDestination` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VirtualDestination {
    /// `name`
    pub name: Field<String>,
    /// `namespace`
    pub namespace: Field<String>,
    /// `subset`
    pub subset: Field<Map<String>>,
}

/// `options` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteOptions {
    /// `headerManipulation`
    pub header_manipulation: Field<HeaderManipulation>,
}

/// `headerManipulation` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HeaderManipulation {
    /// `appendRequestHeaders`
    pub append_request_headers: Field<Map<String>>,
    /// `removeRequestHeaders`
    pub remove_request_headers: Field<Vec<Field<String>>>,
    /// `appendResponseHeaders`
    pub append_response_headers: Field<Map<String>>,
    /// `removeResponseHeaders`
    pub remove_response_headers: Field<Vec<Field<String>>>,
}
