//! Decides whether a request or a connection may go on, by the policies of the listener that it came to.
//!
//! The only step of [`run`](super::run), [`tcp::open`](super::tcp::open) and [`connect::run`](super::connect::run) that refuses
//! for who the client is; `explain` asks it as well. It comes once the head is clean and in its normal form, and before any
//! rule or destination is used.

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
