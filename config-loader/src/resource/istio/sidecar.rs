//! Sidecar, checked.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::{Bind, ConnectionPool, Destination, Protocol, ServerTls};
use crate::span::Line;

/// Checked Sidecar.
#[derive(Clone, Debug, Default)]
pub struct Sidecar {
    /// Labels of the workloads, in the resource's own namespace, that the object applies to. `None` for the whole
    /// namespace, or for the whole mesh in the root namespace.
    pub workload_selector: Option<BTreeMap<String, String>>,
    /// Source line of the selector.
    pub workload_selector_line: Line,
    /// Inbound listeners; empty for the ports of the workload's services.
    pub ingress: Vec<IngressListener>,
    /// Hosts that the workload can reach; `None` for all.
    pub egress: Option<Vec<EgressListener>>,
    /// Outbound traffic policy for unknown destinations; `None` for the policy of the mesh.
    pub outbound: Option<OutboundPolicy>,
    /// Limits of connections to the workload, for ports without their own.
    pub inbound_connection_pool: Option<Box<ConnectionPool>>,
}

/// Port of a Sidecar listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SidecarPort {
    /// Port number; 0 with a Unix socket.
    pub number: u16,
    /// Application protocol of the port.
    pub protocol: Protocol,
    /// Name of the port; may be empty.
    pub name: Arc<str>,
}

/// Inbound listener: an entry of `ingress`.
#[derive(Clone, Debug)]
pub struct IngressListener {
    /// Port of the listener.
    pub port: SidecarPort,
    /// Address that the listener binds to.
    pub bind: Bind,
    /// Traffic capture mode.
    pub capture: CaptureMode,
    /// Address in the workload that receives the traffic; `None` for the original destination.
    pub default_endpoint: Option<LocalEndpoint>,
    /// TLS settings, for clients without mesh mutual TLS.
    pub tls: Option<Box<ServerTls>>,
    /// Limits of connections to the workload.
    pub connection_pool: Option<Box<ConnectionPool>>,
    /// Source line within the document.
    pub line: Line,
}

/// Address in the workload that receives inbound traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalEndpoint {
    /// Address and port of the loopback interface.
    Loopback(IpAddr, u16),
    /// Unix socket.
    Unix(Arc<str>),
    /// Port of the workload's own address.
    Workload(u16),
}

/// Traffic capture mode of a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaptureMode {
    /// Default of the mesh.
    #[default]
    Default,
    /// Traffic is redirected to the listener with iptables.
    Iptables,
    /// No capture: the application dials the listener.
    None,
}

/// Outbound listener: an entry of `egress`.
#[derive(Clone, Debug)]
pub struct EgressListener {
    /// Port of the services; `None` for all other ports. Only the last entry can have `None`.
    pub port: Option<SidecarPort>,
    /// Address that the listener binds to.
    pub bind: Bind,
    /// Traffic capture mode.
    pub capture: CaptureMode,
    /// Reachable hosts. Never empty.
    pub hosts: Vec<EgressHost>,
    /// Source line within the document.
    pub line: Line,
}

/// Reachable hosts: an entry of `egress[].hosts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressHost {
    /// Namespaces of the services.
    pub namespace: EgressNamespace,
    /// Host name, wildcard (`*.` and a name) or `*`.
    pub host: Arc<str>,
    /// Source line within the document.
    pub line: Line,
}

/// Namespaces of an egress host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EgressNamespace {
    /// All namespaces.
    Any,
    /// No namespace.
    NoNamespace,
    /// One namespace.
    Only(Arc<str>),
    /// Namespace of the workload.
    Own,
    /// One namespace, excluded from the other entries.
    Without(Arc<str>),
}

/// Outbound traffic policy (`outboundTrafficPolicy`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutboundPolicy {
    /// Whether traffic to unknown destinations is allowed.
    pub allow_any: bool,
    /// Service that receives traffic to unknown destinations; `None` for the original destination.
    pub egress_proxy: Option<Destination>,
    /// Source line within the document.
    pub line: Line,
}
