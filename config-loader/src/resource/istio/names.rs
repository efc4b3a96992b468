//! Names of other objects, and values that know their line.

use std::fmt;

use crate::kind::Name;
use crate::span::Line;

/// A value, and where it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lined<T> {
    /// The value.
    pub value: T,
    /// Where it was written.
    pub line: Line,
}

/// Which proxies a VirtualService, or one of its match blocks, is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GatewayRef {
    /// All sidecars: `mesh`.
    Mesh,
    /// The gateways that a Gateway object selects. The namespace is never `.` nor missing.
    Named(Name),
}

impl GatewayRef {
    /// Whether it is a gateway, not the mesh.
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
