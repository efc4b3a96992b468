//! The discovery.mesh.gloo.solo.io kinds as written.

use serde::Deserialize;

/// Destination as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Destination {}
