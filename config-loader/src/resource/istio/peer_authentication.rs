//! PeerAuthentication, checked.

use std::collections::BTreeMap;

use crate::span::Line;

/// A checked PeerAuthentication.
#[derive(Clone, Debug, Default)]
pub struct PeerAuthentication {
    /// The labels of the workloads of the resource's own namespace that it is for; empty for all of the namespace, and
    /// in the root namespace for all of the mesh.
    pub selector: BTreeMap<String, String>,
    /// What holds for ports without their own mode; none to inherit it from the namespace or the mesh (`UNSET`).
    pub mode: Option<MutualTls>,
    /// What holds for single ports of the workload, by number. Empty without a selector.
    pub ports: BTreeMap<u16, PortMutualTls>,
    /// Where `mtls` was written.
    pub line: Line,
}

/// A value of `portLevelMtls`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortMutualTls {
    /// What holds for the port; none to inherit it from the workload (`UNSET`).
    pub mode: Option<MutualTls>,
    /// Where it was written.
    pub line: Line,
}

/// What a workload accepts from its clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MutualTls {
    /// Plain text only: the mesh's TLS is not terminated.
    Disable,
    /// The mesh's mutual TLS, and plain text.
    #[default]
    Permissive,
    /// The mesh's mutual TLS only.
    Strict,
}

impl MutualTls {
    /// As it is written in `mode`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Disable => "DISABLE",
            Self::Permissive => "PERMISSIVE",
            Self::Strict => "STRICT",
        }
    }
}
