//! References to other objects.

use std::sync::Arc;

use crate::kind::{MCS_API, Name};
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

    /// Whether the object is a Service.
    pub fn is_service(&self) -> bool {
        self.is("", "Service")
    }

    /// Whether the object is a ServiceImport of one of the groups that have this kind.
    pub fn is_service_import(&self) -> bool {
        &*self.kind == "ServiceImport"
            && (&*self.group == MCS_API || self.group.ends_with("flomesh.io"))
    }

    /// Returns namespace and name.
    pub fn to_name(&self) -> Name {
        Name {
            namespace: Arc::clone(&self.namespace),
            name: Arc::clone(&self.name),
        }
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
