//! PeerAuthentication, checked.

use std::collections::BTreeMap;

use crate::span::Line;

/// Checked PeerAuthentication.
#[derive(Clone, Debug, Default)]
pub struct PeerAuthentication {
    /// Labels of the workloads, in the resource's own namespace, that the policy applies to. Empty for the whole
    /// namespace, or for the whole mesh in the root namespace.
    pub selector: BTreeMap<String, String>,
    /// Mode of ports without a mode of their own; `None` to inherit the mode of the namespace or the mesh (`UNSET`).
    pub mode: Option<MutualTls>,
    /// Mode of single ports of the workload, by number. Empty without a selector.
    pub ports: BTreeMap<u16, PortMutualTls>,
    /// Source line of `mtls`.
    pub line: Line,
}

/// Port-level mode: a value of `portLevelMtls`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortMutualTls {
    /// Mode of the port; `None` to inherit the mode of the workload (`UNSET`).
    pub mode: Option<MutualTls>,
    /// Source line within the document.
    pub line: Line,
}

/// Mutual TLS mode of a workload's inbound connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MutualTls {
    /// Plain text only. Mutual TLS of the mesh is not terminated.
    Disable,
    /// Mutual TLS of the mesh, and plain text.
    #[default]
    Permissive,
    /// Mutual TLS of the mesh only.
    Strict,
}

impl MutualTls {
    /// Returns the name as written in `mode`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Disable => "DISABLE",
            Self::Permissive => "PERMISSIVE",
            Self::Strict => "STRICT",
        }
    }
}
