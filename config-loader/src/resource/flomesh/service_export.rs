//! ServiceExport, checked.

use std::sync::Arc;

use super::{ClusterKey, ServiceAccount};
use crate::resource::core::Condition;
use crate::resource::istio::Pattern;
use crate::span::Line;

/// A checked ServiceExport: the routes of its cluster's gateway to the service with the same namespace and name.
#[derive(Clone, Debug, Default)]
pub struct ServiceExport {
    /// One route each; never empty.
    pub rules: Vec<ExportRule>,
    /// How the path is rewritten, the same for all rules.
    pub path_rewrite: Option<PathRewrite>,
    /// Whether a client stays with the endpoint that it was sent to.
    pub session_sticky: bool,
    /// How requests are spread over the service's endpoints.
    pub algorithm: Algorithm,
    /// The clusters that may import it; empty for all.
    pub target_clusters: Vec<ClusterKey>,
    /// The identity of the workloads behind it, when that was written.
    pub service_account: Option<ServiceAccount>,
    /// `status.conditions`
    pub conditions: Vec<Condition>,
}

/// A route of a gateway to an exported service.
#[derive(Clone, Debug)]
pub struct ExportRule {
    /// The service's port.
    pub port: u16,
    /// The path, with a leading slash.
    pub path: Arc<str>,
    /// How the path is compared.
    pub path_type: PathType,
    /// Where it was written.
    pub line: Line,
}

/// How a path is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathType {
    /// The whole of it.
    Exact,
    /// From the start, element by element: `/foo` matches `/foo/bar` but not `/foobar`.
    Prefix,
}

impl PathType {
    /// The name, as Kubernetes writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            PathType::Exact => "Exact",
            PathType::Prefix => "Prefix",
        }
    }
}

/// How a path is rewritten: the first match of one expression is replaced.
#[derive(Clone, Debug)]
pub struct PathRewrite {
    /// What is replaced. Not anchored.
    pub from: Pattern,
    /// The replacement. Groups are named as `regex` has it: `${1}`.
    pub to: Arc<str>,
    /// Where it was written.
    pub line: Line,
}

/// How requests are spread over the endpoints of an exported service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// By a hash of the client's address.
    Hashing,
    /// To the endpoint with the fewest active requests.
    LeastWork,
    /// In turns.
    #[default]
    RoundRobin,
}
