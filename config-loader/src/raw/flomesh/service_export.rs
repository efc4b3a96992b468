//! ServiceExport as written.

use serde::Deserialize;

use crate::raw::Field;
use crate::raw::core::Condition;

/// ServiceExport as written, beside its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceExport {
    /// `spec`
    pub spec: Field<ServiceExportSpec>,
    /// `status`
    pub status: Field<ServiceExportStatus>,
}

/// `spec`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceExportSpec {
    /// `pathRewrite`
    pub path_rewrite: Field<PathRewrite>,
    /// `sessionSticky`
    pub session_sticky: Field<bool>,
    /// `loadBalancer`
    pub load_balancer: Field<String>,
    /// `rules`
    pub rules: Field<Vec<Field<ServiceExportRule>>>,
    /// `targetClusters`
    pub target_clusters: Field<Vec<Field<String>>>,
    /// `serviceAccountName`
    pub service_account_name: Field<String>,
}

/// `pathRewrite` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PathRewrite {
    /// `from`
    pub from: Field<String>,
    /// `to`
    pub to: Field<String>,
}

/// An entry of `rules` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceExportRule {
    /// `portNumber`
    pub port_number: Field<i64>,
    /// `path`
    pub path: Field<String>,
    /// `pathType`
    pub path_type: Field<String>,
}

/// `status`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceExportStatus {
    /// `conditions`
    pub conditions: Field<Vec<Field<Condition>>>,
}
