//! AuthorizationPolicy and RequestAuthentication, checked. They are not enforced yet.

use std::collections::BTreeMap;

/// Checked AuthorizationPolicy.
#[derive(Clone, Debug, Default)]
pub struct AuthorizationPolicy {
    /// Workloads that the policy applies to.
    pub scope: PolicyScope,
}

/// Checked RequestAuthentication.
#[derive(Clone, Debug, Default)]
pub struct RequestAuthentication {
    /// Workloads that the policy applies to.
    pub scope: PolicyScope,
}

/// Workloads that a security policy applies to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyScope {
    /// Labels of the workloads, in the resource's own namespace, or in the whole mesh for the root namespace; empty for
    /// all.
    pub selector: BTreeMap<String, String>,
    /// Whether the policy names its targets (`targetRefs`), such as a waypoint or a Gateway of the Gateway API. Such a
    /// policy never applies to a sidecar, or to a gateway that is selected by labels.
    pub has_targets: bool,
}
