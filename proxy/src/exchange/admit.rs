//! Decides whether a request or a connection may go on, by the policies of the listener that it came to.
//!
//! The step of [`run`](super::run), [`tcp::open`](super::tcp::open) and [`connect::run`](super::connect::run) for policies about
//! clients; `explain` asks it for requests. It comes once the head is clean and normalized, and before any rule or
//! destination is used.

use super::downstream::connection::PeerIdentity;
use super::message::local_reply::LocalReply;
use crate::snapshot::Listener;

/// Returns whether a request or a connection of this client may go on.
///
/// # Errors
///
/// The reply to a client that is refused. In plain text to a workload that demands mutual TLS, that is the reply of a server
/// without such a route: the client came before the policy, and new connections in plain text end before they send a request.
///
/// Source: PeerAuthentication `spec.mtls`, `spec.portLevelMtls`.
pub fn admit(listener: &Listener, peer: PeerIdentity<'_>) -> Result<(), LocalReply> {
    match peer.is_in_tls() || listener.service.admits().plain_text {
        true => Ok(()),
        false => Err(LocalReply::NO_ROUTE),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::exchange::downstream::connection::Handshake;
    use crate::snapshot::{
        Detected, Direction, ListenerKey, MeshTls, ProxyHeader, Service, TlsBytes,
    };

    #[test]
    fn plain_text_is_refused_where_mutual_tls_is_demanded() {
        let handshake = Handshake::default();
        let (plain, in_tls) = (PeerIdentity::new(None), PeerIdentity::new(Some(&handshake)));
        for strict in [false, true] {
            let listener = Listener {
                key: Arc::new(ListenerKey::from(std::net::SocketAddr::from((
                    [0, 0, 0, 0],
                    80,
                )))),
                direction: Direction::Inbound,
                provenance: Vec::new(),
                protocols: Vec::new(),
                proxy_protocol: ProxyHeader::Off,
                skipped: Vec::new(),
                service: Service::Detected(Arc::new(Detected {
                    tls: TlsBytes::Mesh(MeshTls { tls: None, strict }),
                    ..Detected::default()
                })),
            };
            assert_eq!(admit(&listener, plain).is_err(), strict);
            assert_eq!(admit(&listener, in_tls), Ok(()));
        }
    }
}
