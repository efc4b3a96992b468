//! Kind of traffic to a destination, and the endpoints of a raw TCP connection.

use std::net::{IpAddr, SocketAddr};

use crate::exchange::message::local_reply::{LocalReply, grpc_status};
use http::HeaderMap;
use traffic::error::Kind;
use traffic::filter::timeout;

/// Kind of traffic to a destination.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TrafficKind {
    Request,
    GrpcRequest,
    /// Raw TCP connection.
    Connection,
}

impl TrafficKind {
    /// Returns the kind of a request with these header fields.
    pub(super) fn of_request(headers: &HeaderMap) -> TrafficKind {
        match timeout::is_grpc(headers) {
            true => TrafficKind::GrpcRequest,
            false => TrafficKind::Request,
        }
    }

    /// Describes the failure of a destination, beginning with a keyword for its state.
    pub(super) fn fails(self, word: &str, kind: Kind, why: &str) -> String {
        let reply = LocalReply::for_client(kind, self == TrafficKind::GrpcRequest);
        let (status, flags) = (reply.status.as_u16(), reply.flags);
        match self {
            TrafficKind::Request => format!("{word}: requests get {status} {flags}; {why}"),
            TrafficKind::GrpcRequest => {
                let code = grpc_status(reply.status);
                format!("{word}: requests get 200 with grpc-status {code} {flags}; {why}")
            }
            TrafficKind::Connection => format!("{word}: connections are closed, {flags}; {why}"),
        }
    }
}

/// Known facts of a raw TCP connection.
pub(super) struct ConnectionFacts<'a> {
    /// Address of the client, if given.
    pub(super) client: Option<IpAddr>,
    /// Address that the client dialed, if it is not the proxy's own.
    pub(super) dialed: Option<SocketAddr>,
    /// Server name (SNI) that the client requests in TLS.
    pub(super) sni: Option<&'a str>,
}
