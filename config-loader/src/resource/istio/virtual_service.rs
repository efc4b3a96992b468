//! VirtualService, checked: its head, and its rules for connections.

use std::collections::BTreeMap;
use std::sync::Arc;

use ipnet::IpNet;

use super::{Destination, GatewayRef, HttpRule, Lined};
use crate::resource::{Age, ExportTo, Object};
use crate::span::Line;

/// A checked VirtualService.
#[derive(Clone, Debug, Default)]
pub struct VirtualService {
    /// The hosts that it is for, as written. No two overlap. Empty if it is a delegate.
    pub hosts: Vec<Lined<Arc<str>>>,
    /// The proxies that it is for. Never empty, except in a delegate.
    pub gateways: Vec<Lined<GatewayRef>>,
    /// Who may use it.
    pub export_to: ExportTo,
    /// Rules for HTTP requests, in order. Unchanged rules are shared with the previous version.
    pub http: Vec<Arc<HttpRule>>,
    /// Rules for TLS connections that are not terminated here, in order.
    pub tls: Vec<TlsRule>,
    /// Rules for other connections, in order.
    pub tcp: Vec<TcpRule>,
}

impl VirtualService {
    /// Whether it only lends its rules to others.
    pub fn is_delegate(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Whether sidecars use it.
    pub fn is_for_mesh(&self) -> bool {
        self.gateways
            .iter()
            .any(|gateway| gateway.value == GatewayRef::Mesh)
    }
}

impl Object<VirtualService> {
    /// Order among the VirtualServices that a namespace sees: private ones first, then objects exported to certain namespaces,
    /// then public ones; the oldest first.
    pub fn precedence(&self) -> (u8, Age<'_>) {
        let own = &self.id.namespace;
        let rank = match &self.spec.export_to {
            ExportTo::Namespaces(seen) if seen.iter().all(|namespace| namespace == own) => 0,
            ExportTo::Namespaces(_) | ExportTo::NoNamespace => 1,
            ExportTo::All => 2,
        };
        (rank, self.age())
    }
}

/// An entry of `tls`.
#[derive(Clone, Debug)]
pub struct TlsRule {
    /// What it is for; any one block is enough. Never empty.
    pub matches: Vec<TlsMatch>,
    /// Where the connection goes. Never empty.
    pub route: Vec<L4Destination>,
    /// Where it was written.
    pub line: Line,
}

/// A match block of `tls`: all of it must hold.
#[derive(Clone, Debug, Default)]
pub struct TlsMatch {
    /// The SNI, exact or a wildcard; any one is enough. Never empty.
    pub sni_hosts: Vec<Arc<str>>,
    /// The address that the client dialled; empty for any.
    pub destination_subnets: Vec<IpNet>,
    /// The listener's port.
    pub port: Option<u16>,
    /// Labels of the proxy's workload.
    pub source_labels: BTreeMap<String, String>,
    /// The namespace of the proxy's workload.
    pub source_namespace: Option<Arc<str>>,
    /// In place of the VirtualService's own; empty for those.
    pub gateways: Vec<GatewayRef>,
    /// Where each of `gateways` was written.
    pub gateway_lines: Vec<Line>,
    /// Where it was written.
    pub line: Line,
}

/// An entry of `tcp`.
#[derive(Clone, Debug)]
pub struct TcpRule {
    /// What it is for; any one block is enough. Empty for everything.
    pub matches: Vec<TcpMatch>,
    /// Where the connection goes. Never empty.
    pub route: Vec<L4Destination>,
    /// Where it was written.
    pub line: Line,
}

/// A match block of `tcp`: all of it must hold.
#[derive(Clone, Debug, Default)]
pub struct TcpMatch {
    /// The address that the client dialled; empty for any.
    pub destination_subnets: Vec<IpNet>,
    /// The client's address; none unless the reader was asked to let it count, since Istio does not look at it.
    pub source_subnet: Option<IpNet>,
    /// The listener's port.
    pub port: Option<u16>,
    /// Labels of the proxy's workload.
    pub source_labels: BTreeMap<String, String>,
    /// The namespace of the proxy's workload.
    pub source_namespace: Option<Arc<str>>,
    /// In place of the VirtualService's own; empty for those.
    pub gateways: Vec<GatewayRef>,
    /// Where each of `gateways` was written.
    pub gateway_lines: Vec<Line>,
    /// Where it was written.
    pub line: Line,
}

/// Where a connection may go.
#[derive(Clone, Debug)]
pub struct L4Destination {
    /// Where.
    pub destination: Destination,
    /// Its share of the connections, relative to the others. With several destinations the sum is above 0.
    pub weight: u32,
    /// Where it was written.
    pub line: Line,
}
