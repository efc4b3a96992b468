//! ReferenceGrant, checked.

use std::sync::Arc;

/// Checked ReferenceGrant: permits references to objects of its namespace.
#[derive(Clone, Debug, Default)]
pub struct ReferenceGrant {
    /// Objects that may refer. Never empty.
    pub from: Vec<GrantFrom>,
    /// Objects that they may refer to. Never empty.
    pub to: Vec<GrantTo>,
}

/// Objects that may refer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantFrom {
    /// API group; empty for the core group.
    pub group: Arc<str>,
    /// Kind.
    pub kind: Arc<str>,
    /// Namespace.
    pub namespace: Arc<str>,
}

/// Objects that may be referred to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantTo {
    /// API group; empty for the core group.
    pub group: Arc<str>,
    /// Kind.
    pub kind: Arc<str>,
    /// Name; `None` for all of them.
    pub name: Option<Arc<str>>,
}
