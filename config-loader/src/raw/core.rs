//! The Kubernetes core kinds as written.

use serde::Deserialize;

/// EndpointSlice as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointSlice {}

/// Secret as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Secret {}

/// Service as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Service {}
