//! AuthorizationPolicy and RequestAuthentication, checked. They are not enforced yet.

use std::collections::BTreeMap;

/// A checked AuthorizationPolicy.
#[derive(Clone, Debug, Default)]
pub struct AuthorizationPolicy {
    /// The workloads that it is for.
    pub scope: PolicyScope,
}

/// A checked RequestAuthentication.
#[derive(Clone, Debug, Default)]
pub struct RequestAuthentication {
    /// The workloads that it is for.
    pub scope: PolicyScope,
}

/// The workloads that a security policy is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyScope {
    /// The labels of the workloads of the resource's own namespace that it is for, and in the root namespace of those
    /// of the mesh; empty for all.
    pub selector: BTreeMap<String, String>,
    /// Whether it names what it is for (`targetRefs`), such as a waypoint or a Gateway of the Gateway API: never a
    /// sidecar or a gateway that is selected by labels.
    pub has_targets: bool,
}
