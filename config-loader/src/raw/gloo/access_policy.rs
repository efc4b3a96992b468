//! Access policy in effect, as written in the status of a Destination.

use serde::Deserialize;

use super::ClusterObjectRef;
use crate::raw::{Field, Map};

/// Permissions of an access policy (`spec`). An empty list permits all.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AccessPolicySpec {
    /// Workloads that may send requests.
    pub source_selector: Field<Vec<Field<IdentitySelector>>>,
    /// Destinations that the policy protects.
    pub destination_selector: Field<Vec<Field<DestinationSelector>>>,
    /// Permitted paths: exact, or with a `*` at the start or end.
    pub allowed_paths: Field<Vec<Field<String>>>,
    /// Permitted HTTP methods.
    pub allowed_methods: Field<Vec<Field<String>>>,
    /// Permitted ports.
    pub allowed_ports: Field<Vec<Field<i64>>>,
}

/// Selector of workloads by identity: an entry of `sourceSelector`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IdentitySelector {
    /// Namespaces and clusters of the workloads.
    pub kube_identity_matcher: Field<KubeIdentityMatcher>,
    /// Service accounts of the workloads.
    pub kube_service_account_refs: Field<KubeServiceAccountRefs>,
}

/// Namespaces and clusters of workloads (`kubeIdentityMatcher`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeIdentityMatcher {
    /// Namespaces of the workloads.
    pub namespaces: Field<Vec<Field<String>>>,
    /// Clusters of the workloads.
    pub clusters: Field<Vec<Field<String>>>,
}

/// Service accounts of workloads (`kubeServiceAccountRefs`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeServiceAccountRefs {
    /// Service accounts; an empty part matches any value.
    pub service_accounts: Field<Vec<Field<ClusterObjectRef>>>,
}

/// Selector of destinations: an entry of `destinationSelector`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DestinationSelector {
    /// Labels, namespaces and clusters of the destinations.
    pub kube_service_matcher: Field<KubeServiceMatcher>,
    /// Destinations by name.
    pub kube_service_refs: Field<KubeServiceRefs>,
}

/// Labels, namespaces and clusters of destinations (`kubeServiceMatcher`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeServiceMatcher {
    /// Labels that a destination must have.
    pub labels: Field<Map<String>>,
    /// Namespaces of the destinations.
    pub namespaces: Field<Vec<Field<String>>>,
    /// Clusters of the destinations.
    pub clusters: Field<Vec<Field<String>>>,
}

/// Destinations by name (`kubeServiceRefs`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeServiceRefs {
    /// Services; an empty part matches any value.
    pub services: Field<Vec<Field<ClusterObjectRef>>>,
}
