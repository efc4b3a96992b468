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
    /// `selector`
    pub selector: Field<LabelSelector>,
    /// `targetRef`
    pub target_ref: Field<IgnoredAny>,
    /// `targetRefs`
    pub target_refs: Field<IgnoredAny>,
    /// `rules`
    pub rules: Field<IgnoredAny>,
    /// `action`
    pub action: Field<IgnoredAny>,
    /// `provider`
    pub provider: Field<IgnoredAny>,
}

/// RequestAuthentication as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestAuthentication {
    /// `selector`
    pub selector: Field<LabelSelector>,
    /// `targetRef`
    pub target_ref: Field<IgnoredAny>,
    /// `targetRefs`
    pub target_refs: Field<IgnoredAny>,
    /// `jwtRules`
    pub jwt_rules: Field<IgnoredAny>,
}
