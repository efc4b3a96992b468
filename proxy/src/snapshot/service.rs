//! What a listener does with its connections: HTTP by host, bytes by rules for connections, or TLS by SNI.

use std::sync::Arc;

use super::detected::{Detected, TlsBytes};
use super::http_hosts::HttpHosts;
use super::intake::Intake;
use super::opaque_routes::OpaqueRoutes;
use crate::provenance::Provenance;
use crate::route::HostIndex;
use crate::tls::{Clients, ServerTls};

/// What the connections of a listener are.
#[derive(Clone, Debug)]
pub enum Service {
    /// Connections that were captured on their way: the address that the client dialed tells which listener of this
    /// intake they are for.
    Captured(Intake),
    /// What the first bytes tell.
    Detected(Arc<Detected>),
    /// HTTP in plain text.
    Http(Arc<HttpHosts>),
    /// Requests of clients that use the sidecar as their HTTP proxy: the port that each names tells which listener of
    /// [`Intake::HttpProxy`] it is for.
    HttpProxy,
    /// Raw TCP bytes.
    Opaque(Arc<OpaqueRoutes>),
    /// TLS; the SNI tells which server it is for.
    Tls(Arc<Chains>),
}

impl Service {
    /// Whether both are one and the same, kept by `Arc`.
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

    /// The connections of other workloads that a listener of a sidecar takes.
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

/// Kinds of connections of other workloads, and whether a listener takes them.
///
/// Source: PeerAuthentication `spec.mtls` and `spec.portLevelMtls`; Sidecar `spec.ingress[].tls`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Admits {
    /// Connections outside of TLS that ends here.
    pub plain_text: bool,
    /// Connections inside of TLS that ends here.
    pub tls: bool,
}

/// The TLS servers of a listener.
#[derive(Debug, Default)]
pub struct Chains {
    /// Which server a name is for: exact, then the longest wildcard, then `*`.
    pub names: HostIndex<u32>,
    /// The servers, by the numbers in `names`.
    pub chains: Box<[Chain]>,
    /// The list of hosts for log lines about mesh clients without a matching server; none unless a server goes by the names of
    /// clusters.
    pub nowhere: Option<Arc<OpaqueRoutes>>,
}

impl Chains {
    /// Indexes servers by their names, of which none is repeated.
    pub fn new(chains: Vec<Chain>) -> Self {
        let numbered = chains.iter().zip(0..);
        let names = numbered.flat_map(|(chain, number)| {
            let names = chain.names.iter();
            names.map(move |name| (Arc::clone(name), number))
        });
        Self {
            names: HostIndex::new(names),
            chains: chains.into_boxed_slice(),
            nowhere: None,
        }
    }

    /// The same, with the list of hosts for log lines about mesh clients without a matching server.
    pub fn with_nowhere(mut self, nowhere: Option<Arc<OpaqueRoutes>>) -> Self {
        self.nowhere = nowhere;
        self
    }

    /// The server for a client's SNI. A server for `*` also takes clients without SNI.
    ///
    /// The name is in lower case and without a trailing dot.
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
    /// Its identity across snapshots: `NAMESPACE/GATEWAY/PORT-NAME`.
    pub id: Arc<str>,
    /// The names that it is found by: its hosts without their namespaces, in lower case.
    pub names: Box<[Arc<str>]>,
    /// `HTTPS` or `TLS`.
    pub protocol: &'static str,
    /// The server that this was made from.
    pub provenance: Provenance,
    /// Requirements for client certificates; none if it asks for no certificate.
    pub clients: Option<Arc<Clients>>,
    /// What is done with its connections.
    pub handling: Handling,
}

impl Chain {
    /// Whether it protects its hosts by what another server does not ask of clients: requests for them then must not come on
    /// connections of that other server.
    pub fn protects_beyond(&self, other: &Self) -> bool {
        match self.handling {
            Handling::AutoPassthrough(_) => false,
            Handling::Passthrough(_) => true,
            Handling::Terminate { .. } => self.clients.is_some() && self.clients != other.clients,
        }
    }
}

/// What is done with TLS connections.
#[derive(Clone, Debug)]
pub enum Handling {
    /// Carried to the cluster that their SNI names, if the client speaks the mesh's own ALPN.
    AutoPassthrough(Arc<OpaqueRoutes>),
    /// Proxied as raw TCP, by SNI.
    Passthrough(Arc<OpaqueRoutes>),
    /// TLS ends here.
    Terminate {
        /// What to handshake with; without it every handshake fails.
        tls: Option<Arc<ServerTls>>,
        /// What is inside.
        then: Then,
    },
}

impl Handling {
    /// What is done, in a word or two.
    pub fn name(&self) -> &'static str {
        match self {
            Self::AutoPassthrough(_) => "auto-passthrough",
            Self::Passthrough(_) => "passthrough",
            Self::Terminate { .. } => "terminate",
        }
    }
}

/// What is inside of a TLS connection that ends here.
#[derive(Clone, Debug)]
pub enum Then {
    /// HTTP/1 or HTTP/2.
    Http(Arc<HttpHosts>),
    /// Bytes.
    Opaque(Arc<OpaqueRoutes>),
}

/// What a connection says of its TLS, as far as it decides what the connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security<'a> {
    /// No TLS.
    Plain,
    /// TLS that ends here; with the name that the client asked for.
    Tls(Option<&'a str>),
}
