//! Settings of connections to endpoints, and the addresses to connect to. Data only: the owner of the sockets uses it.

use std::any::Any;
use std::fmt;
use std::time::Duration;

mod alternates;
mod protocol;
mod settings;

pub use alternates::{ADDRESSES_MAX, Alternates, Reach};
pub use protocol::Protocol;
pub use settings::{
    ANNOUNCED_IDLE_MAX, HTTP2_CONNECTIONS_MAX, HttpVersionPolicy, IDLE_CONNECTIONS_MAX, Limits,
    PoolSettings, Source, WAITING_REQUESTS_MAX,
};

/// TLS configuration of connections to endpoints, made by the owner of the sockets.
pub trait UpstreamTls: Any + fmt::Debug + fmt::Display + Send + Sync {
    /// Identifier, never reused: configurations with equal ones are the same.
    fn serial(&self) -> u64;

    /// Whether the settings depend on the host of a request.
    fn wants_host(&self) -> bool;
}

impl PartialEq for dyn UpstreamTls {
    fn eq(&self, other: &Self) -> bool {
        self.serial() == other.serial()
    }
}

impl Eq for dyn UpstreamTls {}

/// Version of the PROXY header.
///
/// Source: DestinationRule `trafficPolicy.proxyProtocol.version`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ProxyProtocol {
    /// Text, one line.
    #[default]
    V1,
    /// Binary.
    V2,
}

/// TCP keepalive, by which the kernel detects a dead peer. Unset values are the system's defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TcpKeepalive {
    /// Silence before the first probe.
    pub time: Option<Duration>,
    /// Time between probes.
    pub interval: Option<Duration>,
    /// Unanswered probes after which the connection is broken.
    pub probes: Option<u32>,
}
