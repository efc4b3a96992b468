//! The downstream connection of a request, with the results of its TLS handshake.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use traffic::certificate::{self, PeerCertificate as _};

use hyper::header::HeaderValue;

use crate::exchange::downstream::interim::Waiting;
use crate::exchange::downstream::peer_stats::PeerStats;
use crate::snapshot::{ListenerKey, Security};
use crate::tls::peer::PeerCertificate;
use crate::tls::{Identity, ServerTls};
use crate::upstream::Client;
use traffic::authz::Peer;
use traffic::cluster::{Endpoint, SharedProperties};
use traffic::filter::{Scheme, TlsContext};

/// HTTP version of a downstream connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DownstreamProtocol {
    /// HTTP/1.0 or HTTP/1.1.
    Http1,
    /// HTTP/2, by prior knowledge or by ALPN.
    Http2,
}

/// Marker of a reply to a request that did not reach the workload of a sidecar, because it refuses connections. The
/// codec tells the client to send the request on another connection, where the protocol can: HTTP/2 by REFUSED_STREAM,
/// HTTP/1 by closing a connection that had requests before. Without the sidecar, the workload's own connections would
/// have ended so.
#[derive(Clone, Copy, Debug)]
pub struct Unreached;

/// One downstream connection from the point of view of the exchange; created by `listener` and `codec`.
#[derive(Debug)]
pub struct Connection {
    /// The listener that accepted it.
    pub listener: ListenerKey,
    /// Its two ends: the peer's and the proxy's address.
    pub client: Client,
    /// Peer IP address for `x-forwarded-for`.
    pub remote_ip: HeaderValue,
    /// The HTTP version in use.
    pub protocol: DownstreamProtocol,
    /// Whether the peer should send new requests on another connection; set by `codec` when a drain starts, and by the
    /// exchange for a request that finds the connection forbidden. HTTP/1 responses then contain `connection: close`.
    pub draining: Cell<bool>,
    /// Whether the latest response of an HTTP/1 connection is a local reply, so that the rest of the request is not
    /// read; set by the exchange, taken by `codec`.
    pub answered_here: Cell<bool>,
    /// Number of HTTP/2 streams that have become tunnels.
    pub tunnels: Cell<u32>,
    /// Interim responses that wait for the socket or the codec.
    pub interim: Arc<Waiting>,
    /// `server` response header; `None` to keep the upstream's. Set by `codec`.
    pub server_header: Option<HeaderValue>,
    /// TLS handshake results; `None` for plain text.
    pub tls: Option<Rc<Handshake>>,
    /// Endpoint at the address that the client dialed, in the cluster that used it last.
    dialed_endpoint: RefCell<Option<Rc<Endpoint>>>,
}

/// Results of a TLS handshake with a downstream peer; created by `listener` and `codec`.
#[derive(Clone, Debug, Default)]
pub struct Handshake {
    /// SNI of the peer, in lower case and without a trailing dot. Each request uses it to find its server again, in its
    /// own snapshot.
    pub server_name: Option<Arc<str>>,
    /// Version, as in `TLSv1.3`.
    pub version: &'static str,
    /// Cipher suite, by its OpenSSL name.
    pub cipher: &'static str,
    /// Certificate of the peer, if it presented one.
    pub peer: Option<Box<PeerCertificate>>,
    /// Certificate of the proxy.
    pub own: Option<Arc<Identity>>,
    /// TLS configuration that accepted the peer.
    pub server: Option<Arc<ServerTls>>,
    /// Value for `x-forwarded-client-cert`, made by
    /// [`client_cert::element`](crate::exchange::downstream::client_cert::element); `None` if the peer presented no
    /// certificate.
    pub client_cert: Option<HeaderValue>,
    /// Duration of the handshake in microseconds, until the first request takes it.
    pub micros: Cell<u32>,
    /// Metrics with the peer's identity.
    pub peer_stats: PeerStats,
}

impl Handshake {
    /// First URI of the proxy's own certificate.
    pub fn own_principal(&self) -> Option<&str> {
        self.own.as_ref()?.facts.uri()
    }
}

/// Identity of a connection's client, as verified by the TLS handshake.
#[derive(Clone, Copy, Debug)]
pub struct PeerIdentity<'a>(Option<&'a Handshake>);

impl<'a> PeerIdentity<'a> {
    /// The identity from a handshake; none for plain text.
    pub fn new(handshake: Option<&'a Handshake>) -> Self {
        Self(handshake)
    }

    /// Whether the connection uses TLS that the proxy terminates.
    pub fn is_in_tls(self) -> bool {
        self.0.is_some()
    }

    /// Whether the client presented a certificate, which the handshake has verified.
    pub fn has_certificate(self) -> bool {
        self.0.is_some_and(|handshake| handshake.peer.is_some())
    }

    /// The client's identity in the mesh: the only URI of its certificate, if that has the form of the mesh.
    ///
    /// Source: SPIFFE X.509-SVID 2, which allows one URI.
    pub fn of_mesh(self) -> Option<Peer<'a>> {
        let facts = self.0?.peer.as_ref()?.facts()?;
        let mut uris = facts.names.iter().filter_map(certificate::Name::uri);
        let only = uris.next().filter(|_| uris.next().is_none())?;
        Peer::parse(only)
    }

    /// URI of the client's identity in the mesh, if authorities of the mesh have verified it. A server with authorities of
    /// its own proves none: they could name any workload.
    pub fn mesh_principal(self) -> Option<&'a str> {
        let (peer, server) = (self.of_mesh()?, self.0?.server.as_ref()?);
        let is_proven = server.proves_mesh_identity(peer.trust_domain);
        self.principal().filter(|_| is_proven)
    }

    /// First URI of the client's certificate, such as `spiffe://DOMAIN/ns/NAMESPACE/sa/ACCOUNT`.
    pub fn principal(self) -> Option<&'a str> {
        self.0?.peer.as_ref()?.facts()?.uri()
    }
}

impl Connection {
    /// Creates a connection that was accepted on `listener`.
    pub fn new(
        listener: ListenerKey,
        remote: SocketAddr,
        local: SocketAddr,
        protocol: DownstreamProtocol,
    ) -> Self {
        let ip = remote.ip().to_canonical().to_string();
        Self {
            listener,
            client: Client {
                source: remote,
                destination: local,
            },
            remote_ip: HeaderValue::try_from(ip).expect("an IP address is visible ASCII"),
            protocol,
            draining: Cell::new(false),
            answered_here: Cell::new(false),
            tunnels: Cell::new(0),
            interim: Arc::new(match protocol {
                DownstreamProtocol::Http1 => Waiting::default(),
                DownstreamProtocol::Http2 => Waiting::of_streams(),
            }),
            server_header: None,
            tls: None,
            dialed_endpoint: RefCell::default(),
        }
    }

    /// The endpoint at the dialed address, with the properties `common` of a cluster. Cached for further requests of
    /// the connection to the same cluster.
    pub fn dialed_endpoint(
        &self,
        common: &Arc<SharedProperties>,
        find: impl FnOnce() -> Rc<Endpoint>,
    ) -> Rc<Endpoint> {
        let mut known = self.dialed_endpoint.borrow_mut();
        match &*known {
            Some(known) if Arc::ptr_eq(&known.common, common) => Rc::clone(known),
            _ => Rc::clone(known.insert(find())),
        }
    }

    /// Address that the client dialed; `None` if it is the proxy's own.
    pub fn dialed(&self) -> Option<SocketAddr> {
        (!self.listener.has_socket()).then_some(self.client.destination)
    }

    /// Adds the results of a TLS handshake.
    pub fn with_tls(self, handshake: Handshake) -> Self {
        Self {
            tls: Some(Rc::new(handshake)),
            ..self
        }
    }

    /// Scheme of the connection itself.
    pub fn scheme(&self) -> Scheme {
        match self.tls {
            None => Scheme::Http,
            Some(_) => Scheme::Https,
        }
    }

    /// The identity of the client.
    pub fn peer(&self) -> PeerIdentity<'_> {
        PeerIdentity::new(self.tls.as_deref())
    }

    /// TLS of the connection, as far as it selects the server of the listener.
    pub fn security(&self) -> Security<'_> {
        match &self.tls {
            Some(tls) => Security::Tls(tls.server_name.as_deref()),
            None => Security::Plain,
        }
    }

    /// TLS values for header templates.
    pub fn tls_context(&self) -> Option<TlsContext<'_>> {
        let tls = self.tls.as_deref()?;
        Some(TlsContext {
            version: tls.version,
            cipher: tls.cipher,
            peer: tls
                .peer
                .as_deref()
                .map(|peer| peer as &dyn certificate::PeerCertificate),
            own: tls.own.as_deref().map(|own| &own.facts),
        })
    }

    /// SNI of the TLS handshake.
    pub fn server_name(&self) -> Option<&str> {
        self.tls.as_ref()?.server_name.as_deref()
    }
}
