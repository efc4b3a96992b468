//! Handling of a listener's connections: HTTP by host, raw TCP by rules, or TLS by SNI.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use super::detected::{Detected, TlsBytes};
use super::http_hosts::HttpHosts;
use super::intake::Intake;
use super::opaque_routes::OpaqueRoutes;
use crate::tls::{ClientCertRequirements, ServerTls};
use traffic::provenance::Provenance;
use traffic::route::HostIndex;

/// Handling of a listener's connections.
#[derive(Clone, Debug)]
pub enum Service {
    /// Captured connections: the address that the client dialed selects the listener with this intake.
    Captured(Intake),
    /// Protocol detected from the first bytes.
    Detected(Arc<Detected>),
    /// HTTP in plain text.
    Http(Arc<HttpHosts>),
    /// Requests to the sidecar as an HTTP proxy: the port of the requested host selects the listener of
    /// [`Intake::HttpProxy`].
    HttpProxy,
    /// Raw TCP bytes.
    Opaque(Arc<OpaqueRoutes>),
    /// TLS; the SNI selects the server.
    Tls(Arc<Chains>),
}

impl Service {
    /// Whether both are the same; parts are compared by pointer.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Captured(a), Self::Captured(b)) => a == b,
            (Self::Detected(a), Self::Detected(b)) => Arc::ptr_eq(a, b),
            (Self::Http(a), Self::Http(b)) => Arc::ptr_eq(a, b),
            (Self::HttpProxy, Self::HttpProxy) => true,
            (Self::Opaque(a), Self::Opaque(b)) => Arc::ptr_eq(a, b),
            (Self::Tls(a), Self::Tls(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// Kinds of connections that a listener of a sidecar accepts from other workloads.
    pub fn admits(&self) -> Admits {
        let (plain_text, tls) = match self {
            Self::Detected(detected) => match &detected.tls {
                TlsBytes::Mesh(mesh) => (!mesh.strict, true),
                TlsBytes::ByName(_) | TlsBytes::Opaque => (true, false),
            },
            Self::Http(_) | Self::Opaque(_) => (true, false),
            Self::Tls(chains) => {
                let passes = |chain: &Chain| !matches!(chain.handling, Handling::Terminate { .. });
                (chains.chains.iter().any(passes), true)
            }
            Self::Captured(_) | Self::HttpProxy => (true, true),
        };
        Admits { plain_text, tls }
    }
}

/// Kinds of connections that a listener accepts from other workloads.
///
/// Source: PeerAuthentication `spec.mtls` and `spec.portLevelMtls`; Sidecar `spec.ingress[].tls`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Admits {
    /// Connections outside of TLS that the proxy terminates.
    pub plain_text: bool,
    /// Connections inside of TLS that the proxy terminates.
    pub tls: bool,
}

impl Admits {
    /// Whether connections inside or outside of TLS are accepted.
    pub fn covers(self, in_tls: bool) -> bool {
        match in_tls {
            true => self.tls,
            false => self.plain_text,
        }
    }
}

/// The TLS servers of a listener.
#[derive(Debug, Default)]
pub struct Chains {
    /// Index from SNI to servers: exact, then the longest wildcard, then `*`.
    pub names: HostIndex<u32>,
    /// The servers, by the numbers in `names`.
    pub chains: Box<[Chain]>,
    /// Hosts to log for mesh clients without a matching server; `None` unless the hosts of a server are names of
    /// clusters.
    pub nowhere: Option<Arc<OpaqueRoutes>>,
    /// Whether requests for a host of another server are misdirected, whatever their protocol, and raw TCP connections
    /// without a destination end before their handshake.
    ///
    /// Source: listeners of the Gateway API.
    pub is_isolated: bool,
    /// Hash of what accepts clients, within this process: another one if the TLS configuration of a server is another one.
    pub servers: u64,
}

impl Chains {
    /// Indexes servers by their names, which must be unique.
    pub fn new(chains: Vec<Chain>) -> Self {
        let numbered = chains.iter().zip(0..);
        let names = numbered.flat_map(|(chain, number)| {
            let names = chain.names.iter();
            names.map(move |name| (Arc::clone(name), number))
        });
        let mut servers = DefaultHasher::new();
        for chain in &chains {
            let tls = match &chain.handling {
                Handling::Terminate { tls, .. } => Some(tls.as_ref().map(Arc::as_ptr)),
                _ => None,
            };
            (&chain.names, tls, chain.clients.is_some()).hash(&mut servers);
        }
        Self {
            servers: servers.finish(),
            names: HostIndex::new(names),
            chains: chains.into_boxed_slice(),
            nowhere: None,
            is_isolated: false,
        }
    }

    /// Sets the hosts to log for mesh clients without a matching server.
    pub fn with_nowhere(mut self, nowhere: Option<Arc<OpaqueRoutes>>) -> Self {
        self.nowhere = nowhere;
        self
    }

    /// The server for a client's SNI. A server for `*` also takes clients without SNI.
    ///
    /// `sni` must be in lower case and without a trailing dot.
    pub fn find(&self, sni: Option<&str>) -> Option<&Chain> {
        let number = match sni {
            Some(name) => self.names.find(name),
            None => self.names.any(),
        };
        self.chains.get(*number? as usize)
    }
}

/// A TLS server of a Gateway.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Identity across snapshots: `NAMESPACE/GATEWAY/PORT-NAME`.
    pub id: Arc<str>,
    /// Hosts without their namespaces, in lower case.
    pub names: Box<[Arc<str>]>,
    /// `HTTPS` or `TLS`.
    pub protocol: &'static str,
    /// The server that the chain was compiled from.
    pub provenance: Provenance,
    /// Requirements for client certificates; `None` to request no certificate.
    pub clients: Option<Arc<ClientCertRequirements>>,
    /// Handling of its connections.
    pub handling: Handling,
}

impl Chain {
    /// Whether the server has requirements for clients that `other` lacks: requests for its hosts must then not arrive
    /// on connections of `other`.
    pub fn protects_beyond(&self, other: &Self) -> bool {
        match self.handling {
            Handling::AutoPassthrough(_) => false,
            Handling::Passthrough(_) => true,
            Handling::Terminate { .. } => self.clients.is_some() && self.clients != other.clients,
        }
    }
}

/// Handling of TLS connections.
#[derive(Clone, Debug)]
pub enum Handling {
    /// Proxied to the cluster that the SNI names, if the client offers the ALPN of the mesh.
    AutoPassthrough(Arc<OpaqueRoutes>),
    /// Proxied as raw TCP, by SNI.
    Passthrough(Arc<OpaqueRoutes>),
    /// TLS is terminated.
    Terminate {
        /// TLS server settings; without them every handshake fails.
        tls: Option<Arc<ServerTls>>,
        /// Protocol inside of TLS.
        then: Then,
    },
}

impl Handling {
    /// The name in pages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::AutoPassthrough(_) => "auto-passthrough",
            Self::Passthrough(_) => "passthrough",
            Self::Terminate { .. } => "terminate",
        }
    }
}

/// Protocol inside of terminated TLS.
#[derive(Clone, Debug)]
pub enum Then {
    /// HTTP/1 or HTTP/2.
    Http(Arc<HttpHosts>),
    /// Raw TCP.
    Opaque(Arc<OpaqueRoutes>),
}

/// TLS of a connection, as far as it selects the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security<'a> {
    /// No TLS.
    Plain,
    /// Terminated TLS with the SNI of the client.
    Tls(Option<&'a str>),
}
