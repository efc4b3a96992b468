//! Access policy in effect, as written in the status of a Destination.

use serde::Deserialize;

use super::ClusterObjectRef;
use crate::raw::{Field, Map};

/// `spec` of an applied access policy as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AccessPolicySpec {
    /// `sourceSelector`
    pub source_selector: Field<Vec<Field<IdentitySelector>>>,
    /// `destinationSelector`
    pub destination_selector: Field<Vec<Field<DestinationSelector>>>,
    /// `allowedPaths`
    pub allowed_paths: Field<Vec<Field<String>>>,
    /// `allowedMethods`
    pub allowed_methods: Field<Vec<Field<String>>>,
    /// `allowedPorts`
    pub allowed_ports: Field<Vec<Field<i64>>>,
}

/// An entry of `sourceSelector` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IdentitySelector {
    /// `kubeIdentityMatcher`
    pub kube_identity_matcher: Field<KubeIdentityMatcher>,
    /// `kubeServiceAccountRefs`
    pub kube_service_account_refs: Field<KubeServiceAccountRefs>,
}

/// `kubeIdentityMatcher` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeIdentityMatcher {
    /// `namespaces`
    pub namespaces: Field<Vec<Field<String>>>,
    /// `clusters`
    pub clusters: Field<Vec<Field<String>>>,
}

/// `kubeServiceAccountRefs` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeServiceAccountRefs {
    /// `serviceAccounts`
    pub service_accounts: Field<Vec<Field<ClusterObjectRef>>>,
}

/// An entry of `destinationSelector` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DestinationSelector {
    /// `kubeServiceMatcher`
    pub kube_service_matcher: Field<KubeServiceMatcher>,
    /// `kubeServiceRefs`
    pub kube_service_refs: Field<KubeServiceRefs>,
}

/// `kubeServiceMatcher` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeServiceMatcher {
    /// `labels`
    pub labels: Field<Map<String>>,
    /// `namespaces`
    pub namespaces: Field<Vec<Field<String>>>,
    /// `clusters`
    pub clusters: Field<Vec<Field<String>>>,
}

/// `kubeServiceRefs` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeServiceRefs {
    /// `services`
    pub services: Field<Vec<Field<ClusterObjectRef>>>,
}
