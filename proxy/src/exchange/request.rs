//! What an exchange is lent: the worker's parts, and the downstream connection that the request came on.

use std::cell::Cell;
use std::net::SocketAddr;

use crate::snapshot::{ListenerKey, SnapshotSlot};

/// The HTTP version spoken with the downstream peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DownstreamProtocol {
    /// HTTP/1.0 or HTTP/1.1.
    Http1,
    /// HTTP/2, by prior knowledge or by ALPN.
    Http2,
}

/// One downstream connection, as the exchange sees it; made by `listener` and `codec`.
#[derive(Debug)]
pub struct Connection {
    /// The listener that accepted it.
    pub listener: ListenerKey,
    /// Address of the peer.
    pub remote: SocketAddr,
    /// Our address on this connection.
    pub local: SocketAddr,
    /// The HTTP version in use.
    pub protocol: DownstreamProtocol,
    /// Whether the peer should be told to take new requests elsewhere; set by `codec` when a drain starts. An
    /// HTTP/1 response then carries `connection: close`.
    pub draining: Cell<bool>,
}

/// What one worker thread owns and lends to every exchange on it.
#[derive(Debug)]
pub struct Worker {
    /// The published snapshot.
    pub snapshot: SnapshotSlot,
}
