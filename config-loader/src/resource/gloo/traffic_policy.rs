//! What a traffic policy is for. Strait does not read its API; Destinations carry the policies that are applied to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::resource::istio::HttpMatch;

/// Which requests a traffic policy is for: both the source and the request must be among them.
#[derive(Clone, Debug, Default)]
pub struct PolicyTarget {
    /// `sourceSelector`: the sources of requests, any one is enough; empty for all.
    pub sources: Vec<WorkloadSelector>,
    /// `httpRequestMatchers`: what the requests are like, any one is enough; empty for all.
    pub requests: Vec<HttpMatch>,
}

/// `kubeWorkloadMatcher`: workloads that have all of these labels, in one of these namespaces and clusters. What is empty
/// holds for all.
#[derive(Clone, Debug, Default)]
pub struct WorkloadSelector {
    /// Labels, and their values.
    pub labels: BTreeMap<String, String>,
    /// Namespaces.
    pub namespaces: Vec<Arc<str>>,
    /// Names of clusters.
    pub clusters: Vec<Arc<str>>,
}
