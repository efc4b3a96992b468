//! Admission of requests and connections, by the policies of their listener.
//!
//! Called by [`run`](super::run), [`tcp::open`](super::tcp::open) and [`connect::run`](super::connect::run), and by
//! `explain` for requests: after the head was cleaned and normalized, and before any rule or destination is used.

use super::downstream::connection::PeerIdentity;
use super::message::local_reply::LocalReply;
use crate::snapshot::Listener;

/// Admits a request or a connection of this client.
///
/// # Errors
///
/// The reply to a client that is not admitted. For plain text to a workload that requires mutual TLS, it is the reply
/// of a server without such a route: the connection is older than the policy, and new plain-text connections end before
/// they send a request.
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
