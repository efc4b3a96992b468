//! EndpointSlice as written.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::raw::{Field, Map};

/// EndpointSlice as written, beside its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointSlice {
    /// `addressType`
    pub address_type: Field<String>,
    /// `endpoints`
    pub endpoints: Field<Vec<Field<SliceEndpoint>>>,
    /// `ports`
    pub ports: Field<Vec<Field<SlicePort>>>,
}

/// An entry of `endpoints` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SliceEndpoint {
    /// `addresses`
    pub addresses: Field<Vec<Field<String>>>,
    /// `conditions`
    pub conditions: Field<EndpointConditions>,
    /// `hostname`
    pub hostname: Field<String>,
    /// `nodeName`
    pub node_name: Field<String>,
    /// `zone`
    pub zone: Field<String>,
    /// `targetRef`
    pub target_ref: Field<ObjectReference>,
    /// `deprecatedTopology`
    pub deprecated_topology: Field<Map<String>>,
    /// `hints`
    pub hints: Field<EndpointHints>,
}

/// `conditions` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointConditions {
    /// `ready`
    pub ready: Field<bool>,
    /// `serving`
    pub serving: Field<bool>,
    /// `terminating`
    pub terminating: Field<bool>,
}

/// `targetRef` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectReference {
    /// `kind`
    pub kind: Field<String>,
    /// `namespace`
    pub namespace: Field<String>,
    /// `name`
    pub name: Field<String>,
    /// `apiVersion`
    pub api_version: Field<IgnoredAny>,
    /// `fieldPath`
    pub field_path: Field<IgnoredAny>,
    /// `resourceVersion`
    pub resource_version: Field<IgnoredAny>,
    /// `uid`
    pub uid: Field<IgnoredAny>,
}

/// `hints` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointHints {
    /// `forZones`
    pub for_zones: Field<Vec<Field<Hint>>>,
    /// `forNodes`
    pub for_nodes: Field<Vec<Field<Hint>>>,
}

/// An entry of a hint as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hint {
    /// `name`
    pub name: Field<String>,
}

/// An entry of `ports` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlicePort {
    /// `name`
    pub name: Field<String>,
    /// `protocol`
    pub protocol: Field<String>,
    /// `port`
    pub port: Field<i64>,
    /// `appProtocol`
    pub app_protocol: Field<String>,
}
