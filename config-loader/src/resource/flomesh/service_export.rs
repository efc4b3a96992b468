//! ServiceExport, checked.

use std::sync::Arc;

use super::{ClusterKey, ServiceAccount};
use crate::resource::core::Condition;
use crate::resource::istio::Pattern;
use crate::span::Line;

/// Checked ServiceExport: routes of the cluster's gateway to the service with the same namespace and name.
#[derive(Clone, Debug, Default)]
pub struct ServiceExport {
    /// Routes to the service; never empty.
    pub rules: Vec<ExportRule>,
    /// Path rewrite of all rules.
    pub path_rewrite: Option<PathRewrite>,
    /// Whether session affinity is on.
    pub session_sticky: bool,
    /// Load balancing algorithm for the service's endpoints.
    pub algorithm: Algorithm,
    /// Clusters that may import the service; empty for all.
    pub target_clusters: Vec<ClusterKey>,
    /// Service account of the workloads, if set.
    pub service_account: Option<ServiceAccount>,
    /// Conditions (`status.conditions`).
    pub conditions: Vec<Condition>,
}

/// Route of a gateway to an exported service.
#[derive(Clone, Debug)]
pub struct ExportRule {
    /// Port of the service.
    pub port: u16,
    /// Path to match, with a leading slash.
    pub path: Arc<str>,
    /// Match type of the path.
    pub path_type: PathType,
    /// Source line within the document.
    pub line: Line,
}

/// Match type of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathType {
    /// Exact match.
    Exact,
    /// Prefix match by path element: `/foo` matches `/foo/bar` but not `/foobar`.
    Prefix,
}

impl PathType {
    /// Returns the name as in Kubernetes.
    pub fn as_str(self) -> &'static str {
        match self {
            PathType::Exact => "Exact",
            PathType::Prefix => "Prefix",
        }
    }
}

/// Path rewrite: replaces the first match of a regular expression.
#[derive(Clone, Debug)]
pub struct PathRewrite {
    /// Regular expression to replace. Not anchored.
    pub from: Pattern,
    /// Replacement, with groups in the syntax of the crate `regex`: `${1}`.
    pub to: Arc<str>,
    /// Source line within the document.
    pub line: Line,
}

/// Load balancing algorithm for the endpoints of an exported service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// Hash of the client's address.
    Hashing,
    /// Endpoint with the fewest active requests.
    LeastWork,
    /// Round robin.
    #[default]
    RoundRobin,
}
