//! ServiceExport as written.

use serde::Deserialize;

use crate::raw::Field;
use crate::raw::core::Condition;

/// ServiceExport as written, beside its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceExport {
    /// Routes of the cluster's gateway to the service.
    pub spec: Field<ServiceExportSpec>,
    /// Conditions that controllers report.
    pub status: Field<ServiceExportStatus>,
}

/// Routes of the cluster's gateway to the service (`spec`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceExportSpec {
    /// Path rewrite of all rules.
    pub path_rewrite: Field<PathRewrite>,
    /// Whether session affinity is on. Default: false.
    pub session_sticky: Field<bool>,
    /// Load balancing algorithm for the endpoints. Default: `RoundRobinLoadBalancer`.
    pub load_balancer: Field<String>,
    /// Routes to the service; at least one.
    pub rules: Field<Vec<Field<ServiceExportRule>>>,
    /// Keys of the clusters that may import the service. Default: all.
    pub target_clusters: Field<Vec<Field<String>>>,
    /// Service account of the workloads; `*` for any.
    pub service_account_name: Field<String>,
}

/// Path rewrite: replaces the first match of a regular expression (`pathRewrite`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PathRewrite {
    /// Regular expression to replace, not anchored.
    pub from: Field<String>,
    /// Replacement, with groups as `$1`.
    pub to: Field<String>,
}

/// Route to an exported service: an entry of `rules`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceExportRule {
    /// Port of the service; required.
    pub port_number: Field<i64>,
    /// Path to match, with a leading slash; required.
    pub path: Field<String>,
    /// Match type of the path: `Exact` or `Prefix`; required.
    pub path_type: Field<String>,
}

/// Conditions that controllers report (`status`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceExportStatus {
    /// Conditions of the export.
    pub conditions: Field<Vec<Field<Condition>>>,
}
