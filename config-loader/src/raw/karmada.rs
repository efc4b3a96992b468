//! The networking.karmada.io kinds as written.

use serde::Deserialize;

/// MultiClusterService as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MultiClusterService {}
