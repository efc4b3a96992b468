//! TLS termination: the handshake on a connection whose client hello was read.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use traffic::certificate::PeerCertificate as _;

use http::HeaderValue;
use rustls::ServerConfig;
use tokio::time::Instant;

use super::accepted::AcceptedConnection;
use super::connection_table::ConnectionHandle;
use super::handler::Handler;
use super::socket::Socket;
use super::transport::Transport;
use crate::exchange::downstream::client_cert;
use crate::exchange::downstream::connection::Handshake;
use crate::exchange::downstream::peer_stats::PeerStats;
use crate::runtime::clock::Tick;
use crate::telemetry::Counter;
use crate::tls::encrypted::{Encrypted, Failure, Reason};
use crate::tls::{Identity, Name, Peer, ServerTls};

pub use super::settings::handshake::Settings;

/// Oldest supported version, as on the wire (RFC 5246, section 6.2.1).
const TLS_1_2: u16 = 0x0303;

/// Settings of a handshake.
#[derive(Debug)]
pub struct HandshakeSettings {
    /// Configuration for rustls.
    pub config: Arc<ServerConfig>,
    /// Name that the client requested (SNI).
    pub server_name: Option<Arc<str>>,
    /// TLS configuration of the server.
    pub server: Arc<ServerTls>,
    /// Newest version that the client supports, as on the wire.
    pub version: u16,
    /// Deadline of the handshake.
    pub due: Tick,
}

impl<A: Handler> AcceptedConnection<A> {
    /// Performs the handshake; `None` if it fails, which is counted. The protocol inside TLS is not detected yet.
    pub async fn terminate(self: Box<Self>, terms: HandshakeSettings) -> Option<Box<Self>> {
        let max = self.server.settings().tls.pending_max;
        let Some(_begun) = self.server.handshakes.begin(max) else {
            self.refuse(Counter::TlsHandshakeLimit);
            return None;
        };
        let AcceptedConnection {
            server,
            socket,
            member,
            downstream,
            ..
        } = *self;
        let begun = Instant::now();
        let (socket, counts) = socket.into_handshake()?;
        let accept = Encrypted::accept(socket, terms.config);
        let encrypted = match within(accept, &member, terms.due).await {
            Ok(encrypted) => encrypted,
            Err(failure) => {
                tracing::debug!(remote = %downstream.remote, %failure, "TLS handshake failed");
                server.count(reason_of(terms.version, failure.reason));
                server.count(Counter::TlsHandshakesFailed);
                return None;
            }
        };
        member.enter_tls();
        let session = encrypted.session();
        let mut peer = Peer::of(session);
        if let Some(verifier) = &terms.server.fallback
            && verifier.refuses(session.peer_certificates().unwrap_or_default())
        {
            peer.certificate = None;
        }
        let cipher = peer.cipher.unwrap_or_default();
        server.count_session(peer.resumed, cipher);
        let own = terms.server.identities.first().cloned();
        let tls = Rc::new(Handshake {
            client_cert: client_cert(
                &peer,
                own.as_deref(),
                server.settings().tls.forward_certificate,
            ),
            server_name: terms.server_name,
            version: peer.version.unwrap_or_default(),
            cipher,
            peer: peer.certificate.map(Box::new),
            own,
            server: Some(terms.server),
            micros: Cell::new(u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX)),
            peer_stats: PeerStats::default(),
        });
        member.enter_session(&tls);
        if !server.accepts(&downstream.listener, &tls) {
            // the configuration has changed since the client hello
            member.drain();
        }
        let transport = Transport::Tls(Box::new(encrypted));
        Some(Box::new(AcceptedConnection {
            server,
            socket: Socket::new(transport, counts),
            member,
            downstream,
            tls: Some(tls),
        }))
    }

    /// Returns the deadline of a handshake that begins now.
    pub fn handshake_due(&self) -> Tick {
        self.member.now().after(self.server.settings().tls.timeout)
    }

    /// Whether ALPN selected HTTP/2.
    pub fn agreed_on_http2(&self) -> bool {
        match self.socket.transport() {
            Transport::Tls(encrypted) => encrypted.session().alpn_protocol() == Some(b"h2"),
            Transport::Tcp(_) | Transport::Unix(_) => false,
            #[cfg(test)]
            Transport::InMemory(_) => false,
        }
    }
}

/// Awaits a handshake until a deadline.
async fn within<T>(
    handshake: impl Future<Output = Result<T, Failure>>,
    member: &ConnectionHandle,
    due: Tick,
) -> Result<T, Failure> {
    let mut handshake = pin!(handshake);
    poll_fn(|cx| {
        if let Poll::Ready(result) = handshake.as_mut().poll(cx) {
            return Poll::Ready(result);
        }
        if member.now() >= due {
            return Poll::Ready(Err(Failure::timeout()));
        }
        member.wake_at(cx, due);
        Poll::Pending
    })
    .await
}

/// Returns the `x-forwarded-client-cert` element for a client that presented a certificate.
fn client_cert(
    peer: &Peer,
    own: Option<&Identity>,
    forward_certificate: bool,
) -> Option<HeaderValue> {
    let certificate = peer.certificate.as_ref()?;
    let facts = certificate.facts()?;
    // a SPIFFE identity
    let by = own.and_then(|own| own.facts.names.iter().find_map(Name::uri));
    let names = |uris: bool| {
        let names = facts.names.iter();
        let wanted = names.filter_map(move |name| if uris { name.uri() } else { name.dns() });
        wanted.map(str::to_owned).collect()
    };
    client_cert::element(
        by,
        &client_cert::PeerCertificate {
            hash: certificate.hash(),
            cert: match forward_certificate {
                true => certificate.encoded_pem(),
                false => String::new(),
            },
            chain: String::new(),
            subject: facts.subject.to_string(),
            uris: names(true),
            dns: names(false),
        },
    )
}

/// Counter of a failed handshake: that of the version, if the client supports none.
fn reason_of(version: u16, reason: Reason) -> Counter {
    match version {
        ..TLS_1_2 => Counter::TlsVersion,
        _ => counter(reason),
    }
}

fn counter(reason: Reason) -> Counter {
    match reason {
        Reason::Alert => Counter::TlsClientAlert,
        Reason::ClientCertificateMissing => Counter::TlsClientCertificateMissing,
        Reason::ClientCertificateRefused => Counter::TlsClientCertificateRejected,
        Reason::Closed => Counter::TlsHandshakeIncomplete,
        Reason::Incompatible => Counter::TlsIncompatible,
        Reason::Protocol => Counter::TlsProtocol,
        Reason::Timeout => Counter::TlsHandshakeTimeout,
        Reason::Version => Counter::TlsVersion,
    }
}
