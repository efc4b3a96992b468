//! Listener addresses and endpoint addresses.

use std::net::IpAddr;
use std::sync::Arc;

/// Address that a listener binds to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Bind {
    /// Unset: every address, or the default of the kind.
    #[default]
    Default,
    /// IP address.
    Ip(IpAddr),
    /// Unix socket: an absolute path, or `@` and an abstract name.
    Unix(Arc<str>),
}

/// Address of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EndpointAddress {
    /// DNS name to resolve.
    Dns(Arc<str>),
    /// IP address.
    Ip(IpAddr),
    /// Unknown address: only the network is known, and the endpoint is reached through that network's gateway.
    Network,
    /// Unix socket: an absolute path, or `@` and an abstract name.
    Unix(Arc<str>),
}
