//! Pod, Node and Namespace as written, with the few fields that are read.

use serde::Deserialize;

use crate::raw::Field;

/// Pod as written, beside its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pod {
    /// Service account and node of the pod.
    pub spec: Field<PodSpec>,
    /// Phase, addresses and conditions of the pod.
    pub status: Field<PodStatus>,
}

/// Service account and node of a pod (`spec`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// Service account of the pod.
    pub service_account_name: Field<String>,
    /// Node that the pod runs on.
    pub node_name: Field<String>,
}

/// Phase, addresses and conditions of a pod (`status`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// Phase of the pod, such as `Running`.
    pub phase: Field<String>,
    /// First IP address of the pod.
    #[serde(rename = "podIP")]
    pub pod_ip: Field<String>,
    /// IP addresses of the pod.
    #[serde(rename = "podIPs")]
    pub pod_ips: Field<Vec<Field<PodIp>>>,
    /// Conditions of the pod, such as `Ready`.
    pub conditions: Field<Vec<Field<PodCondition>>>,
}

/// IP address of a pod: an entry of `podIPs`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodIp {
    /// IP address.
    pub ip: Field<String>,
}

/// Condition of a pod: an entry of `conditions`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodCondition {
    /// Type of the condition.
    #[serde(rename = "type")]
    pub condition: Field<String>,
    /// Status of the condition: `True`, `False` or `Unknown`.
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
