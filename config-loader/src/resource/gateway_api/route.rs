//! Routes, checked.

use std::sync::Arc;

use super::{Backend, BackendRef, GrpcMatch, HttpMatch, ParentRef, RouteExtensions, RouteRule};
use crate::resource::istio::Lined;
use crate::span::Line;

/// Checked HTTPRoute.
#[derive(Clone, Debug, Default)]
pub struct HTTPRoute {
    /// Parents.
    pub parents: Vec<ParentRef>,
    /// Hosts, of which the first label may be `*`; empty for those of the listener.
    pub hostnames: Vec<Lined<Arc<str>>>,
    /// Rules. Never empty.
    pub rules: Vec<RouteRule<HttpMatch>>,
    /// Settings from annotations; `None` without any.
    pub extensions: Option<Box<RouteExtensions>>,
}

/// Checked GRPCRoute.
#[derive(Clone, Debug, Default)]
pub struct GRPCRoute {
    /// Parents.
    pub parents: Vec<ParentRef>,
    /// Hosts, of which the first label may be `*`; empty for those of the listener.
    pub hostnames: Vec<Lined<Arc<str>>>,
    /// Rules.
    pub rules: Vec<RouteRule<GrpcMatch>>,
}

/// Checked TLSRoute.
#[derive(Clone, Debug, Default)]
pub struct TLSRoute {
    /// Parents.
    pub parents: Vec<ParentRef>,
    /// Server names, of which the first label may be `*`. Never empty.
    pub hostnames: Vec<Lined<Arc<str>>>,
    /// Only rule.
    pub rule: L4Rule,
}

/// Checked TCPRoute.
#[derive(Clone, Debug, Default)]
pub struct TCPRoute {
    /// Parents.
    pub parents: Vec<ParentRef>,
    /// Only rule.
    pub rule: L4Rule,
}

/// Rule for connections.
#[derive(Clone, Debug, Default)]
pub struct L4Rule {
    /// Name; `None` without one.
    pub name: Option<Arc<str>>,
    /// Backends, by weight. Never empty.
    pub backends: Vec<Backend>,
    /// Source line within the document.
    pub line: Line,
}

impl L4Rule {
    /// Returns the backends, without their weights.
    pub fn targets(&self) -> impl Iterator<Item = &BackendRef> {
        self.backends.iter().map(|one| &one.target)
    }
}
