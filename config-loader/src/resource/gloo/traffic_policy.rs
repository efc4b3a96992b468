//! Requests that a traffic policy applies to. Strait reads traffic policies only from the status of Destinations.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::resource::istio::HttpMatch;

/// Requests that a traffic policy applies to. Both the source and the request must match.
#[derive(Clone, Debug, Default)]
pub struct PolicyTarget {
    /// Source workloads (`sourceSelector`), of which any must match; empty for all.
    pub sources: Vec<WorkloadSelector>,
    /// Request matches (`httpRequestMatchers`), of which any must match; empty for all.
    pub requests: Vec<HttpMatch>,
}

/// Workload selector (`kubeWorkloadMatcher`): all of the labels, one of the namespaces and one of the clusters. An
/// empty field matches all.
#[derive(Clone, Debug, Default)]
pub struct WorkloadSelector {
    /// Labels that a workload must have.
    pub labels: BTreeMap<String, String>,
    /// Namespaces of the workloads.
    pub namespaces: Vec<Arc<str>>,
    /// Names of the workloads' clusters.
    pub clusters: Vec<Arc<str>>,
}
