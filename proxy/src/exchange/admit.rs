//! Admission of requests and connections, by the policies of their listener.
//!
//! Called by [`run`](super::run), [`tcp::open`](super::tcp::open) and [`connect::run`](super::connect::run), and by
//! `explain` for requests: after the head was cleaned, and before any rule or destination is used.

use std::sync::Arc;

use super::downstream::connection::{Connection, PeerIdentity};
use super::message::local_reply::LocalReply;
use crate::snapshot::{Direction, Listener, Snapshot};

/// Admits a request, by the policy that its snapshot has for the connection, and returns the listener for it. If that
/// policy forbids the connection, also asks the client to use another one: the connection drains by the policy only
/// some time after requests use its snapshot.
///
/// # Errors
///
/// As [`admit`]; also the reply where no listener is left for the connection.
pub(crate) fn admit_request<'a>(
    snapshot: &'a Snapshot,
    connection: &Connection,
) -> Result<&'a Arc<Listener>, LocalReply> {
    let (key, local) = (&connection.listener, connection.client.destination);
    let listener = snapshot.listener(key, local);
    let of_port = key.of_port(local);
    let of_port = of_port.and_then(|of_port| snapshot.listener(&of_port, local));
    let governing = of_port.or(listener);
    let peer = connection.peer();
    let is_forbidden = |listener: &Arc<Listener>| {
        let admits = listener.service.admits();
        listener.direction == Direction::Inbound && !admits.covers(peer.is_in_tls())
    };
    if governing.is_none_or(is_forbidden) {
        connection.draining.set(true);
    }
    admit(governing.ok_or(LocalReply::NO_ROUTE)?, peer)?;
    listener.ok_or(LocalReply::NO_ROUTE)
}

/// Admits a request or a connection of this client.
///
/// # Errors
///
/// The reply to a client that is not admitted. For plain text to a workload that requires mutual TLS, it is the reply
/// of a server without such a route: the connection is older than the policy, and new plain-text connections end before
/// they send a request.
///
/// Source: PeerAuthentication `spec.mtls`, `spec.portLevelMtls`.
pub(crate) fn admit(listener: &Listener, peer: PeerIdentity<'_>) -> Result<(), LocalReply> {
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
                policies: None,
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
