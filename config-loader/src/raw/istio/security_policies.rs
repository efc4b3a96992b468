//! RequestAuthentication as written. It is not enforced yet: only the fields that select workloads are read.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{LabelSelector, PolicyTargetReference};
use crate::raw::Field;

/// RequestAuthentication as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestAuthentication {
    /// Workloads in the policy's namespace. Default: the whole namespace, or the mesh in the root namespace.
    pub selector: Field<LabelSelector>,
    /// Object that the policy is attached to; the older form of `targetRefs`.
    pub target_ref: Field<PolicyTargetReference>,
    /// Objects that the policy is attached to, at most 16; not beside `selector`.
    pub target_refs: Field<Vec<Field<PolicyTargetReference>>>,
    /// Accepted tokens and their issuers; ignored.
    pub jwt_rules: Field<IgnoredAny>,
}
