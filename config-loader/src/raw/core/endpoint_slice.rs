//! EndpointSlice as written.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::raw::{Field, Map};

/// EndpointSlice as written, beside its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointSlice {
    /// Address type: `IPv4`, `IPv6` or `FQDN`; required.
    pub address_type: Field<String>,
    /// Endpoints of the slice.
    pub endpoints: Field<Vec<Field<SliceEndpoint>>>,
    /// Ports of every endpoint. Default: the ports of the service.
    pub ports: Field<Vec<Field<SlicePort>>>,
}

/// Endpoint: an entry of `endpoints`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SliceEndpoint {
    /// Addresses of the endpoint, all of the slice's type.
    pub addresses: Field<Vec<Field<String>>>,
    /// Conditions of the endpoint.
    pub conditions: Field<EndpointConditions>,
    /// Hostname of the pod below its headless service.
    pub hostname: Field<String>,
    /// Node that the endpoint runs on.
    pub node_name: Field<String>,
    /// Zone that the endpoint runs in.
    pub zone: Field<String>,
    /// Object behind the endpoint, such as a Pod.
    pub target_ref: Field<ObjectReference>,
    /// Topology labels of the first API version.
    pub deprecated_topology: Field<Map<String>>,
    /// Hints for topology-aware routing.
    pub hints: Field<EndpointHints>,
}

/// Conditions of an endpoint (`conditions`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointConditions {
    /// Whether the endpoint is ready for traffic. Default: true.
    pub ready: Field<bool>,
    /// Whether the endpoint is ready, regardless of termination. Default: `ready`.
    pub serving: Field<bool>,
    /// Whether the endpoint is terminating. Default: false.
    pub terminating: Field<bool>,
}

/// Object behind an endpoint (`targetRef`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectReference {
    /// Kind of the object.
    pub kind: Field<String>,
    /// Namespace of the object.
    pub namespace: Field<String>,
    /// Name of the object.
    pub name: Field<String>,
    /// API version of the object.
    pub api_version: Field<IgnoredAny>,
    /// Part of the object.
    pub field_path: Field<IgnoredAny>,
    /// Resource version of the object.
    pub resource_version: Field<IgnoredAny>,
    /// UID of the object.
    pub uid: Field<IgnoredAny>,
}

/// Hints for topology-aware routing (`hints`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointHints {
    /// Zones whose clients use the endpoint.
    pub for_zones: Field<Vec<Field<Hint>>>,
    /// Nodes whose clients use the endpoint.
    pub for_nodes: Field<Vec<Field<Hint>>>,
}

/// Zone or node of a hint.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hint {
    /// Name of the zone or node.
    pub name: Field<String>,
}

/// Port of the endpoints: an entry of `ports`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlicePort {
    /// Name of the service's port. Default: empty.
    pub name: Field<String>,
    /// Transport protocol. Default: `TCP`.
    pub protocol: Field<String>,
    /// Port number of the endpoints. Default: the number of the service's port.
    pub port: Field<i64>,
    /// Application protocol.
    pub app_protocol: Field<String>,
}
