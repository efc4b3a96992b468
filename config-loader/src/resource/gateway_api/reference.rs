//! References to other objects.

use std::sync::Arc;

use crate::span::Line;

/// Reference to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectReference {
    /// API group; empty for the core group.
    pub group: Arc<str>,
    /// Kind.
    pub kind: Arc<str>,
    /// Namespace; that of the referrer if none is written.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Source line within the document.
    pub line: Line,
}

impl ObjectReference {
    /// Whether the object is of this group and kind.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        (&*self.group, &*self.kind) == (group, kind)
    }
}

/// Reference to the parent of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentRef {
    /// Parent.
    pub object: ObjectReference,
    /// Whether the namespace is written. Status repeats it only then.
    pub has_namespace: bool,
    /// Name of a listener; `None` for all of them.
    pub section: Option<Arc<str>>,
    /// Port of listeners, or of a Service; `None` for all of them.
    pub port: Option<u16>,
}

/// Reference to a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendRef {
    /// Backend.
    pub object: ObjectReference,
    /// Port. A Service always has one.
    pub port: Option<u16>,
}
