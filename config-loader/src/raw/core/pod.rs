//! Pod, Node and Namespace as written, with the few fields that are read.

use serde::Deserialize;

use crate::raw::Field;

/// Pod as written, beside its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pod {
    /// `spec`
    pub spec: Field<PodSpec>,
    /// `status`
    pub status: Field<PodStatus>,
}

/// `spec` of a Pod as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// `serviceAccountName`
    pub service_account_name: Field<String>,
    /// `nodeName`
    pub node_name: Field<String>,
}

/// `status` of a Pod as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// `phase`
    pub phase: Field<String>,
    /// `podIP`
    #[serde(rename = "podIP")]
    pub pod_ip: Field<String>,
    /// `podIPs`
    #[serde(rename = "podIPs")]
    pub pod_ips: Field<Vec<Field<PodIp>>>,
    /// `conditions`
    pub conditions: Field<Vec<Field<PodCondition>>>,
}

/// An entry of `podIPs` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodIp {
    /// `ip`
    pub ip: Field<String>,
}

/// An entry of `conditions` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodCondition {
    /// `type`
    #[serde(rename = "type")]
    pub condition: Field<String>,
    /// `status`
    pub status: Field<String>,
}

/// Node as written: only its labels are read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Node {}

/// Namespace as written: only its labels are read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Namespace {}
