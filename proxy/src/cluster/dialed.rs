//! Clusters whose endpoint is the address that the client dialed.

use std::net::SocketAddr;
use std::sync::Arc;

use super::Common;

/// How the address that a client dialed becomes an endpoint.
///
/// Source: ServiceEntry `resolution: NONE`, DestinationRule `loadBalancer.simple: PASSTHROUGH`, and what a sidecar passes on
/// as it is.
#[derive(Clone, Debug)]
pub struct Dialed {
    /// What all such endpoints of the cluster have in common.
    pub common: Arc<Common>,
    /// The port to connect to instead of the one that was dialed.
    pub port: Option<u16>,
}

impl Dialed {
    /// Where a connection for a client that dialed this address goes.
    pub fn address(&self, dialed: SocketAddr) -> SocketAddr {
        SocketAddr::new(dialed.ip(), self.port.unwrap_or(dialed.port()))
    }
}
