//! Access policy in effect on a Destination.

use std::sync::Arc;

use super::{ClusterRef, MeshRef};
use crate::resource::istio::authorization_policy::Alternative;
use crate::span::Line;

/// An entry of `appliedAccessPolicies`.
#[derive(Clone, Debug)]
pub struct AppliedAccessPolicy {
    /// Reference of the policy.
    pub policy: MeshRef,
    /// Generation of the policy that is in effect.
    pub observed_generation: i64,
    /// Content of the policy, or the reason that it admits no client.
    pub spec: Result<AccessPolicy, String>,
    /// Source line within the document.
    pub line: Line,
}

/// Permissions of an access policy.
#[derive(Clone, Debug, Default)]
pub struct AccessPolicy {
    /// Workloads that may send requests; empty for all clients.
    pub sources: Vec<SourceSelector>,
    /// Permitted paths, methods and ports; empty for all requests.
    pub operation: Alternative,
}

/// Selector of workloads by identity. Without any value, it selects every client.
#[derive(Clone, Debug, Default)]
pub struct SourceSelector {
    /// Namespaces of the workloads.
    pub namespaces: Vec<Arc<str>>,
    /// Clusters of the workloads.
    pub clusters: Vec<Arc<str>>,
    /// Service accounts of the workloads; an empty cluster is any.
    pub service_accounts: Vec<ClusterRef>,
}

impl SourceSelector {
    /// Returns the names of clusters.
    pub fn cluster_names(&self) -> impl Iterator<Item = &Arc<str>> {
        let accounts = self.service_accounts.iter().map(|account| &account.cluster);
        let accounts = accounts.filter(|cluster| !cluster.is_empty());
        self.clusters.iter().chain(accounts)
    }
}
