//! Listeners of a sidecar that detect the protocol from the first bytes.

use std::net::IpAddr;
use std::sync::Arc;

use super::http_hosts::HttpHosts;
use super::opaque_routes::OpaqueRoutes;
use crate::tls::ServerTls;

/// Handling of connections by the protocol that their first bytes show.
#[derive(Debug, Default)]
pub struct Detected {
    /// HTTP, in plain text or inside mutual TLS of the mesh; `None` to proxy it as raw TCP.
    pub http: Option<Arc<HttpHosts>>,
    /// Whether the port declares HTTP: a client whose ALPN names raw bytes of the mesh (`istio`) sends requests, too.
    pub declares_http: bool,
    /// Handling of TLS connections.
    pub tls: TlsBytes,
    /// All other connections, as raw TCP.
    pub opaque: Arc<OpaqueRoutes>,
    /// Service addresses that were declared to have clients that send first; sorted. Connections to other addresses are
    /// proxied as raw TCP if the client sends nothing within the detection timeout.
    pub client_first: Box<[IpAddr]>,
}

/// Handling of connections that begin with TLS.
#[derive(Clone, Debug, Default)]
pub enum TlsBytes {
    /// Proxied as raw TCP, like all other bytes.
    #[default]
    Opaque,
    /// Proxied as raw TCP, by SNI.
    ByName(Arc<OpaqueRoutes>),
    /// Mutual TLS of the mesh is terminated.
    Mesh(MeshTls),
}

/// Termination of mutual TLS between workloads.
#[derive(Clone, Debug)]
pub struct MeshTls {
    /// TLS server settings; without them every handshake fails.
    pub tls: Option<Arc<ServerTls>>,
    /// Whether connections without mutual TLS are refused.
    pub strict: bool,
}

/// Purpose of waiting for the first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// Detect mutual TLS of the mesh; proxy all other connections as raw TCP.
    Hello,
    /// Detect the protocol.
    Protocol,
    /// Require mutual TLS of the mesh.
    Tls,
}

impl Detected {
    /// Purpose of waiting for the first bytes of this listener.
    pub fn awaited(&self) -> Awaited {
        match (&self.tls, &self.http) {
            (TlsBytes::Mesh(mesh), _) if mesh.strict => Awaited::Tls,
            (TlsBytes::Mesh(_), None) => Awaited::Hello,
            _ => Awaited::Protocol,
        }
    }

    /// Whether clients of the dialed address send first.
    pub fn speaks_first(&self, dialed: IpAddr) -> bool {
        self.client_first.binary_search(&dialed).is_ok()
    }

    /// Whether both are the same; parts are compared by pointer.
    pub fn is_same(&self, other: &Self) -> bool {
        let Self {
            http,
            declares_http,
            tls,
            opaque,
            client_first,
        } = self;
        *declares_http == other.declares_http
            && http.as_ref().map(Arc::as_ptr) == other.http.as_ref().map(Arc::as_ptr)
            && tls.is_same(&other.tls)
            && Arc::ptr_eq(opaque, &other.opaque)
            && *client_first == other.client_first
    }
}

impl TlsBytes {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Opaque, Self::Opaque) => true,
            (Self::ByName(a), Self::ByName(b)) => Arc::ptr_eq(a, b),
            (Self::Mesh(a), Self::Mesh(b)) => {
                a.strict == b.strict
                    && a.tls.as_ref().map(Arc::as_ptr) == b.tls.as_ref().map(Arc::as_ptr)
            }
            _ => false,
        }
    }
}
