//! VirtualService, checked: its hosts and gateways, and its rules for TLS and TCP connections.

use std::collections::BTreeMap;
use std::sync::Arc;

use ipnet::IpNet;

use super::{Destination, GatewayRef, HttpRule, Lined};
use crate::resource::{Age, ExportTo, Object};
use crate::span::Line;

/// Checked VirtualService.
#[derive(Clone, Debug, Default)]
pub struct VirtualService {
    /// Hosts as written. No two overlap. Empty in a delegate.
    pub hosts: Vec<Lined<Arc<str>>>,
    /// Gateways that the object applies to. Never empty, except in a delegate.
    pub gateways: Vec<Lined<GatewayRef>>,
    /// Namespaces that may use the resource (`exportTo`).
    pub export_to: ExportTo,
    /// Rules for HTTP requests, in order. Unchanged rules are shared with the previous version.
    pub http: Vec<Arc<HttpRule>>,
    /// Rules for TLS connections that are not terminated here, in order.
    pub tls: Vec<TlsRule>,
    /// Rules for other connections, in order.
    pub tcp: Vec<TcpRule>,
}

impl VirtualService {
    /// Whether the object is a delegate, which only provides rules for other VirtualServices.
    pub fn is_delegate(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Whether the object applies to sidecars.
    pub fn is_for_mesh(&self) -> bool {
        self.gateways
            .iter()
            .any(|gateway| gateway.value == GatewayRef::Mesh)
    }
}

/// Rank of public routes among those for a host.
pub(crate) const PUBLIC: u8 = 2;

impl Object<VirtualService> {
    /// Returns the sort key of VirtualServices in a namespace: private ones first, then ones exported to certain
    /// namespaces, then public ones; oldest first.
    pub fn precedence(&self) -> (u8, Age<'_>) {
        let own = &self.id.namespace;
        let rank = match &self.spec.export_to {
            ExportTo::Namespaces(seen) if seen.iter().all(|namespace| namespace == own) => 0,
            ExportTo::Namespaces(_) | ExportTo::NoNamespace => 1,
            ExportTo::All => PUBLIC,
        };
        (rank, self.age())
    }
}

/// TLS rule: an entry of `tls`.
#[derive(Clone, Debug)]
pub struct TlsRule {
    /// Match blocks, of which any must match. Never empty.
    pub matches: Vec<TlsMatch>,
    /// Weighted destinations of the connection. Never empty.
    pub route: Vec<L4Destination>,
    /// Source line within the document.
    pub line: Line,
}

/// Match block of `tls`. All conditions must match.
#[derive(Clone, Debug, Default)]
pub struct TlsMatch {
    /// SNI hosts, exact or wildcard, of which any must match. Never empty.
    pub sni_hosts: Vec<Arc<str>>,
    /// Subnets of the address that the client dialed; empty for any.
    pub destination_subnets: Vec<IpNet>,
    /// Port of the listener.
    pub port: Option<u16>,
    /// Labels that the proxy's workload must have.
    pub source_labels: BTreeMap<String, String>,
    /// Namespace of the proxy's workload; `None` for any.
    pub source_namespace: Option<Arc<str>>,
    /// Gateways of this match block; empty for those of the VirtualService.
    pub gateways: Vec<GatewayRef>,
    /// Source line of each entry of `gateways`.
    pub gateway_lines: Vec<Line>,
    /// Source line within the document.
    pub line: Line,
}

/// TCP rule: an entry of `tcp`.
#[derive(Clone, Debug)]
pub struct TcpRule {
    /// Match blocks, of which any must match. Empty to match every connection.
    pub matches: Vec<TcpMatch>,
    /// Weighted destinations of the connection. Never empty.
    pub route: Vec<L4Destination>,
    /// Source line within the document.
    pub line: Line,
}

/// Match block of `tcp`. All conditions must match.
#[derive(Clone, Debug, Default)]
pub struct TcpMatch {
    /// Subnets of the address that the client dialed; empty for any.
    pub destination_subnets: Vec<IpNet>,
    /// Subnet of the client; `None` unless [`ReadOptions::enforce_source_subnet`](crate::ReadOptions) is on.
    pub source_subnet: Option<IpNet>,
    /// Port of the listener.
    pub port: Option<u16>,
    /// Labels that the proxy's workload must have.
    pub source_labels: BTreeMap<String, String>,
    /// Namespace of the proxy's workload; `None` for any.
    pub source_namespace: Option<Arc<str>>,
    /// Gateways of this match block; empty for those of the VirtualService.
    pub gateways: Vec<GatewayRef>,
    /// Source line of each entry of `gateways`.
    pub gateway_lines: Vec<Line>,
    /// Source line within the document.
    pub line: Line,
}

/// Weighted destination of connections.
#[derive(Clone, Debug)]
pub struct L4Destination {
    /// Service and subset of the destination.
    pub destination: Destination,
    /// Weight relative to the other destinations. With several destinations the sum is above 0.
    pub weight: u32,
    /// Source line within the document.
    pub line: Line,
}
