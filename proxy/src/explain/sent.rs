//! Requests and connections as they are sent to a destination, and the ends of a raw TCP connection.

use std::net::{IpAddr, SocketAddr};

use crate::error::Kind;
use crate::exchange::message::local_reply::LocalReply;

/// Traffic of a destination.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Request,
    /// Proxied as raw TCP.
    Connection,
}

impl What {
    /// The failure of a destination, in words that begin with one for its state.
    pub(super) fn fails(self, word: &str, kind: Kind, why: &str) -> String {
        let reply = LocalReply::from_kind(kind);
        let (status, flags) = (reply.status.as_u16(), reply.flags);
        match self {
            What::Request => format!("{word}: requests get {status} {flags}; {why}"),
            What::Connection => format!("{word}: connections are closed, {flags}; {why}"),
        }
    }
}

/// Facts about a raw TCP connection.
pub(super) struct Ends<'a> {
    /// Address of the client, where it counts.
    pub(super) client: Option<IpAddr>,
    /// The address that the client dialed, where that is not the proxy's own.
    pub(super) dialed: Option<SocketAddr>,
    /// The name that the client asks for in TLS.
    pub(super) sni: Option<&'a str>,
}
