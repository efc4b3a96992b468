//! AuthorizationPolicy and RequestAuthentication as written. They are not enforced yet: only the fields that select
//! workloads are read.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::LabelSelector;
use crate::raw::Field;

/// AuthorizationPolicy as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuthorizationPolicy {
    /// Workloads in the policy's namespace. Default: the whole namespace, or the mesh in the root namespace.
    pub selector: Field<LabelSelector>,
    /// Object that the policy is attached to; only its presence is read.
    pub target_ref: Field<IgnoredAny>,
    /// Objects that the policy is attached to; only their presence is read.
    pub target_refs: Field<IgnoredAny>,
    /// Rules that requests are matched with; ignored.
    pub rules: Field<IgnoredAny>,
    /// Action for matching requests; ignored.
    pub action: Field<IgnoredAny>,
    /// External authorization provider; ignored.
    pub provider: Field<IgnoredAny>,
}

/// RequestAuthentication as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestAuthentication {
    /// Workloads in the policy's namespace. Default: the whole namespace, or the mesh in the root namespace.
    pub selector: Field<LabelSelector>,
    /// Object that the policy is attached to; only its presence is read.
    pub target_ref: Field<IgnoredAny>,
    /// Objects that the policy is attached to; only their presence is read.
    pub target_refs: Field<IgnoredAny>,
    /// Accepted tokens and their issuers; ignored.
    pub jwt_rules: Field<IgnoredAny>,
}
