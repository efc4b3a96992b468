//! Sidecar, checked.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::{Bind, ConnectionPool, Destination, Protocol, ServerTls};
use crate::span::Line;

/// A checked Sidecar.
#[derive(Clone, Debug, Default)]
pub struct Sidecar {
    /// The workloads of the resource's own namespace that it is for; none for all, and in the root namespace for all of
    /// the mesh.
    pub workload_selector: Option<BTreeMap<String, String>>,
    /// Where the selector was written.
    pub workload_selector_line: Line,
    /// What the workload accepts; empty for what its services say.
    pub ingress: Vec<IngressListener>,
    /// What the workload can reach by name; none for everything.
    pub egress: Option<Vec<EgressListener>>,
    /// What becomes of traffic to unknown destinations; none for what the mesh says.
    pub outbound: Option<OutboundPolicy>,
    /// Limits of connections to the workload, for ports without their own.
    pub inbound_connection_pool: Option<Box<ConnectionPool>>,
}

/// `port` of a listener of a sidecar.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SidecarPort {
    /// The port; 0 with a Unix socket.
    pub number: u16,
    /// What it speaks.
    pub protocol: Protocol,
    /// Its name; empty if it has none.
    pub name: Arc<str>,
}

/// An entry of `ingress`.
#[derive(Clone, Debug)]
pub struct IngressListener {
    /// The port.
    pub port: SidecarPort,
    /// The address.
    pub bind: Bind,
    /// How traffic gets there.
    pub capture: CaptureMode,
    /// Where it goes; none for where the client meant it to.
    pub default_endpoint: Option<LocalEndpoint>,
    /// TLS, where the mesh does not bring its own.
    pub tls: Option<Box<ServerTls>>,
    /// Limits of connections to the workload.
    pub connection_pool: Option<Box<ConnectionPool>>,
    /// Where it was written.
    pub line: Line,
}

/// Where in the workload inbound traffic goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalEndpoint {
    /// An address and port of the loopback interface.
    Loopback(IpAddr, u16),
    /// A Unix socket.
    Unix(Arc<str>),
    /// A port on the workload's own address.
    Workload(u16),
}

/// How traffic gets to a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaptureMode {
    /// As the mesh says.
    #[default]
    Default,
    /// It is redirected.
    Iptables,
    /// The application dials the listener.
    None,
}

/// An entry of `egress`.
#[derive(Clone, Debug)]
pub struct EgressListener {
    /// The port of the services that are meant; none for all others. At most one entry, the last, has none.
    pub port: Option<SidecarPort>,
    /// The address.
    pub bind: Bind,
    /// How traffic gets there.
    pub capture: CaptureMode,
    /// What can be reached. Never empty.
    pub hosts: Vec<EgressHost>,
    /// Where it was written.
    pub line: Line,
}

/// An entry of `egress[].hosts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressHost {
    /// The namespaces that are meant.
    pub namespace: EgressNamespace,
    /// A name, `*.` and a name, or `*`.
    pub host: Arc<str>,
    /// Where it was written.
    pub line: Line,
}

/// The namespaces of an egress host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EgressNamespace {
    /// All.
    Any,
    /// None.
    NoNamespace,
    /// This one.
    Only(Arc<str>),
    /// That of the workload.
    Own,
    /// This one, taken away from what the others name.
    Without(Arc<str>),
}

/// `outboundTrafficPolicy`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutboundPolicy {
    /// Whether traffic to unknown destinations passes.
    pub allow_any: bool,
    /// The service that such traffic goes to, if not to where it was meant to go.
    pub egress_proxy: Option<Destination>,
    /// Where it was written.
    pub line: Line,
}
