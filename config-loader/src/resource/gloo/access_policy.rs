//! An access policy in effect on a destination.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ClusterRef, MeshRef};

/// An entry of `appliedAccessPolicies`.
#[derive(Clone, Debug, Default)]
pub struct AppliedAccessPolicy {
    /// The policy.
    pub policy: MeshRef,
    /// The generation of it that is in effect.
    pub observed_generation: i64,
    /// What it says.
    pub spec: AccessPolicy,
}

/// Who may do what. An empty list represents all.
#[derive(Clone, Debug, Default)]
pub struct AccessPolicy {
    /// The workloads that may.
    pub sources: Vec<SourceSelector>,
    /// The destinations that it is about.
    pub destinations: Vec<DestinationSelector>,
    /// The paths: exact, or with a `*` at the start or at the end.
    pub paths: Vec<Arc<str>>,
    /// The methods.
    pub methods: Vec<Arc<str>>,
    /// The ports.
    pub ports: Vec<u16>,
}

/// Workloads by their identities. What both parts say holds together.
#[derive(Clone, Debug, Default)]
pub struct SourceSelector {
    /// Their namespaces.
    pub namespaces: Vec<Arc<str>>,
    /// Their clusters.
    pub clusters: Vec<Arc<str>>,
    /// Their service accounts, where an empty part represents any.
    pub service_accounts: Vec<ClusterRef>,
}

/// Destinations by their labels or their names.
#[derive(Clone, Debug, Default)]
pub struct DestinationSelector {
    /// Labels that they all have.
    pub labels: BTreeMap<String, String>,
    /// Their namespaces.
    pub namespaces: Vec<Arc<str>>,
    /// Their clusters.
    pub clusters: Vec<Arc<str>>,
    /// The destinations themselves.
    pub services: Vec<ClusterRef>,
}
