//! PeerAuthentication as written.

use serde::Deserialize;

use super::LabelSelector;
use crate::raw::{Field, Map};

/// PeerAuthentication as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PeerAuthentication {
    /// `selector`
    pub selector: Field<LabelSelector>,
    /// `mtls`
    pub mtls: Field<MutualTls>,
    /// `portLevelMtls`
    pub port_level_mtls: Field<Map<MutualTls>>,
}

/// `mtls`, and a value of `portLevelMtls`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MutualTls {
    /// `mode`
    pub mode: Field<String>,
}
