//! The flomesh.io and multicluster.flomesh.io kinds as written.

use serde::Deserialize;

/// GlobalTrafficPolicy as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GlobalTrafficPolicy {}

/// ServiceExport as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceExport {}

/// ServiceImport as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceImport {}
