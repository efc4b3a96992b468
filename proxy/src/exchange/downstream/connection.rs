//! The downstream connection that a request came on, with the results of its TLS handshake.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use hyper::header::HeaderValue;

use crate::cluster::{Common, Endpoint};
use crate::exchange::downstream::interim::Waiting;
use crate::exchange::downstream::peer_stats::PeerStats;
use crate::filter::{Scheme, TlsContext};
use crate::snapshot::{ListenerKey, Security};
use crate::tls::Identity;
use crate::tls::peer::PeerCertificate;
use crate::upstream::Client;

/// The HTTP version spoken with the downstream peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DownstreamProtocol {
    /// HTTP/1.0 or HTTP/1.1.
    Http1,
    /// HTTP/2, by prior knowledge or by ALPN.
    Http2,
}

/// Marks a reply to a request that did not reach the workload of a sidecar, since that takes no connections: it ends, or has
/// not begun. The codec tells the client to send the request on another connection, where that can be said: HTTP/2 by
/// REFUSED_STREAM, HTTP/1 by the end of a connection that had requests before. Without the sidecar, the workload's own
/// connections would have ended so.
#[derive(Clone, Copy, Debug)]
pub struct Unreached;

/// One downstream connection, as the exchange sees it; made by `listener` and `codec`.
#[derive(Debug)]
pub struct Connection {
    /// The listener that accepted it.
    pub listener: ListenerKey,
    /// Its two ends, the peer's and ours.
    pub client: Client,
    /// The peer's IP address as it goes into `x-forwarded-for`.
    pub remote_ip: HeaderValue,
    /// The HTTP version in use.
    pub protocol: DownstreamProtocol,
    /// Whether the peer should send new requests on another connection; set by `codec` when a drain starts. An
    /// HTTP/1 response then carries `connection: close`.
    pub draining: Cell<bool>,
    /// Whether the latest response of an HTTP/1 connection is a local reply, so that nothing is read on what may still come of
    /// the request; set by the exchange, taken by `codec`.
    pub answered_here: Cell<bool>,
    /// Streams of an HTTP/2 connection that carry another protocol now.
    pub tunnels: Cell<u32>,
    /// Interim responses that wait for the socket, or for the codec to look.
    pub interim: Arc<Waiting>,
    /// Value of the `server` response header; `None` leaves the upstream's. Set by `codec`.
    pub server_header: Option<HeaderValue>,
    /// Results of the TLS handshake; `None` on a plain connection.
    pub tls: Option<Rc<Handshake>>,
    /// The endpoint at the address that the client dialed, of the last cluster that went there.
    dialed_endpoint: RefCell<Option<Rc<Endpoint>>>,
}

/// Results of a TLS handshake with a downstream peer; made by `listener` and `codec`.
#[derive(Clone, Debug, Default)]
pub struct Handshake {
    /// The name that the peer asked for (SNI), in lower case and without a trailing dot. A request finds its server by
    /// it again, in the snapshot that it is served by.
    pub server_name: Option<Arc<str>>,
    /// Version, as in `TLSv1.3`.
    pub version: &'static str,
    /// Cipher suite, by OpenSSL's name.
    pub cipher: &'static str,
    /// The peer's certificate, if it showed one.
    pub peer: Option<Box<PeerCertificate>>,
    /// Our own certificate.
    pub own: Option<Arc<Identity>>,
    /// What goes into `x-forwarded-client-cert`: an element made by
    /// [`client_cert::element`](crate::exchange::downstream::client_cert::element); `None` when the peer showed no certificate.
    pub client_cert: Option<HeaderValue>,
    /// Statistics with the peer's identity.
    pub peer_stats: PeerStats,
}

/// Identity of the client of a connection: what its TLS handshake proved.
#[derive(Clone, Copy, Debug)]
pub struct PeerIdentity<'a>(Option<&'a Handshake>);

impl<'a> PeerIdentity<'a> {
    /// The identity by a handshake; none for a connection in plain text.
    pub fn new(handshake: Option<&'a Handshake>) -> Self {
        Self(handshake)
    }

    /// Whether the connection is inside TLS that ends here.
    pub fn is_in_tls(self) -> bool {
        self.0.is_some()
    }

    /// Whether the client showed a certificate, which the handshake has verified.
    pub fn has_certificate(self) -> bool {
        self.0.is_some_and(|handshake| handshake.peer.is_some())
    }

    /// The first URI of the client's certificate, as `spiffe://DOMAIN/ns/NAMESPACE/sa/ACCOUNT`.
    pub fn principal(self) -> Option<&'a str> {
        self.0?.peer.as_ref()?.facts()?.uri()
    }
}

impl Connection {
    /// A connection that was accepted on `listener`.
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

    /// The endpoint at the address that the client dialed, as a cluster has it with this in common; found once for all
    /// requests of the connection that go to the same cluster.
    pub fn dialed_endpoint(
        &self,
        common: &Arc<Common>,
        find: impl FnOnce() -> Rc<Endpoint>,
    ) -> Rc<Endpoint> {
        let mut known = self.dialed_endpoint.borrow_mut();
        match &*known {
            Some(known) if Arc::ptr_eq(&known.common, common) => Rc::clone(known),
            _ => Rc::clone(known.insert(find())),
        }
    }

    /// The address that the client dialed, where that is not the proxy's own.
    pub fn dialed(&self) -> Option<SocketAddr> {
        (!self.listener.has_socket()).then_some(self.client.destination)
    }

    /// The same connection under TLS.
    pub fn with_tls(self, handshake: Handshake) -> Self {
        Self {
            tls: Some(Rc::new(handshake)),
            ..self
        }
    }

    /// The scheme that the connection itself speaks.
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

    /// What decides which servers of the listener its requests are for.
    pub fn security(&self) -> Security<'_> {
        match &self.tls {
            Some(tls) => Security::Tls(tls.server_name.as_deref()),
            None => Security::Plain,
        }
    }

    /// What header values may say of its TLS.
    pub fn tls_context(&self) -> Option<TlsContext<'_>> {
        let tls = self.tls.as_deref()?;
        Some(TlsContext {
            version: tls.version,
            cipher: tls.cipher,
            peer: tls.peer.as_deref(),
            own: tls.own.as_deref().map(|own| &own.facts),
        })
    }

    /// The name that the peer asked for in its TLS handshake.
    pub fn server_name(&self) -> Option<&str> {
        self.tls.as_ref()?.server_name.as_deref()
    }
}
