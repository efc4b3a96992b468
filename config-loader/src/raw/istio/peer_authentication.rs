//! PeerAuthentication as written.

use serde::Deserialize;

use super::LabelSelector;
use crate::raw::{Field, Map};

/// PeerAuthentication as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PeerAuthentication {
    /// Workloads in the policy's namespace. Default: the whole namespace, or the mesh in the root namespace.
    pub selector: Field<LabelSelector>,
    /// Mutual TLS of all ports without their own setting.
    pub mtls: Field<MutualTls>,
    /// Mutual TLS of single ports of the workload, by port number; needs `selector`.
    pub port_level_mtls: Field<Map<MutualTls>>,
}

/// Mutual TLS of inbound connections: `mtls`, and a value of `portLevelMtls`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MutualTls {
    /// Mode: `DISABLE`, `PERMISSIVE`, `STRICT`, or `UNSET` (default), which inherits the mode.
    pub mode: Field<String>,
}
