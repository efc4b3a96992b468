//! Clusters whose endpoint is the address that the client dialed.

use std::net::SocketAddr;
use std::sync::Arc;

use super::SharedProperties;

/// Turns the address that a client dialed into an endpoint.
///
/// Source: ServiceEntry `resolution: NONE`, DestinationRule `loadBalancer.simple: PASSTHROUGH`, and traffic that a
/// sidecar passes through.
#[derive(Clone, Debug)]
pub struct Dialed {
    /// Properties that all endpoints of this cluster share.
    pub common: Arc<SharedProperties>,
    /// Port to connect to in place of the dialed one.
    pub port: Option<u16>,
}

impl Dialed {
    /// Address to connect to for a client that dialed `dialed`.
    pub fn address(&self, dialed: SocketAddr) -> SocketAddr {
        SocketAddr::new(dialed.ip(), self.port.unwrap_or(dialed.port()))
    }
}
