//! Access policy in effect on a Destination.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ClusterRef, MeshRef};

/// An entry of `appliedAccessPolicies`.
#[derive(Clone, Debug, Default)]
pub struct AppliedAccessPolicy {
    /// Reference of the policy.
    pub policy: MeshRef,
    /// Generation of the policy that is in effect.
    pub observed_generation: i64,
    /// Content of the policy.
    pub spec: AccessPolicy,
}

/// Permissions of an access policy. An empty list permits all.
#[derive(Clone, Debug, Default)]
pub struct AccessPolicy {
    /// Workloads that may send requests.
    pub sources: Vec<SourceSelector>,
    /// Destinations that the policy protects.
    pub destinations: Vec<DestinationSelector>,
    /// Permitted paths: exact, or with a `*` at the start or end.
    pub paths: Vec<Arc<str>>,
    /// Permitted HTTP methods.
    pub methods: Vec<Arc<str>>,
    /// Permitted ports.
    pub ports: Vec<u16>,
}

/// Selector of workloads by identity. Namespace or cluster, and service account, must all match.
#[derive(Clone, Debug, Default)]
pub struct SourceSelector {
    /// Namespaces of the workloads.
    pub namespaces: Vec<Arc<str>>,
    /// Clusters of the workloads.
    pub clusters: Vec<Arc<str>>,
    /// Service accounts of the workloads; an empty part matches any value.
    pub service_accounts: Vec<ClusterRef>,
}

/// Selector of destinations by label or name.
#[derive(Clone, Debug, Default)]
pub struct DestinationSelector {
    /// Labels that a destination must have.
    pub labels: BTreeMap<String, String>,
    /// Namespaces of the destinations.
    pub namespaces: Vec<Arc<str>>,
    /// Clusters of the destinations.
    pub clusters: Vec<Arc<str>>,
    /// Destinations by name.
    pub services: Vec<ClusterRef>,
}
