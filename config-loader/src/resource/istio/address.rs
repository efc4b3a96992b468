//! Addresses to listen on, and addresses of endpoints.

use std::net::IpAddr;
use std::sync::Arc;

/// What a listener binds to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Bind {
    /// Nothing was written: every address, or what the kind says.
    #[default]
    Default,
    /// This address.
    Ip(IpAddr),
    /// A Unix socket: an absolute path, or `@` and an abstract name.
    Unix(Arc<str>),
}

/// Where an endpoint is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EndpointAddress {
    /// A domain name, to be resolved.
    Dns(Arc<str>),
    /// An address.
    Ip(IpAddr),
    /// Only its network is known: it is reached through that network's gateway.
    Network,
    /// A Unix socket: an absolute path, or `@` and an abstract name.
    Unix(Arc<str>),
}
