//! What the connections of a sidecar may be, where their first bytes tell.

use std::net::IpAddr;
use std::sync::Arc;

use super::http_hosts::HttpHosts;
use super::opaque_routes::OpaqueRoutes;
use crate::tls::ServerTls;

/// What connections are that may be of several protocols.
#[derive(Debug, Default)]
pub struct Detected {
    /// Requests in plain text, or inside of the mesh's TLS. None if HTTP is bytes like all others.
    pub http: Option<Arc<HttpHosts>>,
    /// What becomes of TLS.
    pub tls: TlsBytes,
    /// Everything else.
    pub opaque: Arc<OpaqueRoutes>,
    /// Addresses whose clients speak first, as declared; sorted. A client of another address that says nothing for the
    /// detection timeout is carried as bytes.
    pub client_first: Box<[IpAddr]>,
}

/// What becomes of connections that begin with TLS.
#[derive(Clone, Debug, Default)]
pub enum TlsBytes {
    /// They are bytes like all others.
    #[default]
    Opaque,
    /// They are carried by the name that the client asks for.
    ByName(Arc<OpaqueRoutes>),
    /// TLS between workloads ends here.
    Mesh(MeshTls),
}

/// TLS between workloads.
#[derive(Clone, Debug)]
pub struct MeshTls {
    /// What to handshake with; without it every handshake fails.
    pub tls: Option<Arc<ServerTls>>,
    /// Whether everything else is refused.
    pub strict: bool,
}

/// What the first bytes are awaited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// To see whether they begin TLS between workloads; else they are bytes.
    Hello,
    /// To tell the protocol.
    Protocol,
    /// They must begin TLS between workloads.
    Tls,
}

impl Detected {
    /// What the first bytes are awaited for.
    pub fn awaited(&self) -> Awaited {
        match (&self.tls, &self.http) {
            (TlsBytes::Mesh(mesh), _) if mesh.strict => Awaited::Tls,
            (TlsBytes::Mesh(_), None) => Awaited::Hello,
            _ => Awaited::Protocol,
        }
    }

    /// Whether a client of this address speaks first.
    pub fn speaks_first(&self, dialed: IpAddr) -> bool {
        self.client_first.binary_search(&dialed).is_ok()
    }

    /// Whether both are the same, kept by `Arc`.
    pub fn is_same(&self, other: &Self) -> bool {
        let Self {
            http,
            tls,
            opaque,
            client_first,
        } = self;
        http.as_ref().map(Arc::as_ptr) == other.http.as_ref().map(Arc::as_ptr)
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
