//! References to other objects, and values with their source line.

use std::fmt;

use crate::kind::Name;
use crate::span::Line;

/// Value with its source line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lined<T> {
    /// Parsed value.
    pub value: T,
    /// Source line within the document.
    pub line: Line,
}

/// Proxies that a VirtualService, or one of its match blocks, applies to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GatewayRef {
    /// All sidecars: `mesh`.
    Mesh,
    /// Gateways that a Gateway object selects. The namespace is resolved: never `.` or missing.
    Named(Name),
}

impl GatewayRef {
    /// Whether the reference is to a Gateway, not the mesh.
    pub fn is_named(&self) -> bool {
        matches!(self, GatewayRef::Named(_))
    }
}

impl fmt::Display for GatewayRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GatewayRef::Mesh => f.write_str("mesh"),
            GatewayRef::Named(name) => write!(f, "{}/{}", name.namespace, name.name),
        }
    }
}
