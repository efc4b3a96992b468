//! Limits and times of upstream connections.

use std::sync::Arc;
use std::time::Duration;

use crate::http2::pulse::KeepAlive;
use crate::tls::ClientTls;
use crate::upstream::{Protocol, ProxyProtocol, TcpKeepalive};

/// Most connections that wait for a request, per worker and endpoint; a further one is closed after its response.
pub const IDLE_CONNECTIONS_MAX: usize = 1_024;

/// Most HTTP/2 connections, per worker and endpoint; once all of them carry as many streams as their peer allows,
/// requests wait for one to end.
pub const HTTP2_CONNECTIONS_MAX: usize = 1_024;

/// Most requests that wait for a connection, or for a stream of an HTTP/2 connection, per worker and endpoint; a
/// further one overflows.
pub const WAITING_REQUESTS_MAX: usize = 1_024;

/// Longest time that a connection of HTTP which told its endpoint of a client waits for the next request of that
/// client; no other client may use it, and nothing says that the client has gone.
pub const ANNOUNCED_IDLE_MAX: Duration = Duration::from_secs(10);

/// How many connections and requests a cluster takes, over all workers; `u32::MAX` for any number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Connections, of all its endpoints together. An endpoint without any may have one in spite of it.
    ///
    /// Source: DestinationRule `connectionPool.tcp.maxConnections`.
    pub connections: u32,
    /// Requests that wait for a connection or a stream that is not being made for them.
    ///
    /// Source: DestinationRule `connectionPool.http.http1MaxPendingRequests`.
    pub pending: u32,
    /// Requests that have a connection, of any version of HTTP.
    ///
    /// Source: DestinationRule `connectionPool.http.http2MaxRequests`.
    pub requests: u32,
}

impl Limits {
    /// No limit at all.
    pub const NONE: Self = Self {
        connections: u32::MAX,
        pending: u32::MAX,
        requests: u32::MAX,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::NONE
    }
}

/// What connections speak, given what the port declares and what the client spoke.
///
/// Source: DestinationRule `connectionPool.http.h2UpgradePolicy` and `useClientProtocol`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Speaks {
    /// What the port declares.
    #[default]
    Declared,
    /// What the client speaks.
    AsClient,
    /// HTTP/2, but for requests that ask for another protocol, which only HTTP/1.1 can pass on.
    Http2,
}

impl Speaks {
    /// For people.
    pub const fn name(self, declared: Protocol) -> &'static str {
        match (self, declared) {
            (Self::Declared, declared) => declared.name(),
            (Self::AsClient, _) => "the client's protocol",
            (Self::Http2, Protocol::Http1) => "HTTP/2 (upgraded)",
            (Self::Http2, Protocol::Http2) => Protocol::Http2.name(),
        }
    }

    /// What a request goes out in: `client` is what it came in, `upgrading` whether it asks for another protocol.
    pub fn choose(self, declared: Protocol, client: Protocol, upgrading: bool) -> Protocol {
        match self {
            Self::Declared => declared,
            Self::AsClient if upgrading => Protocol::Http1,
            Self::AsClient => client,
            Self::Http2 if upgrading => declared,
            Self::Http2 => Protocol::Http2,
        }
    }
}

/// Limits and times of a cluster's upstream connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// How long making a connection may take.
    ///
    /// Unit: time, > 0. Default: 10 s. Source: DestinationRule `connectionPool.tcp.connectTimeout`.
    pub connect_timeout: Duration,
    /// How long a connection without a request is kept.
    ///
    /// Unit: time, > 0. Default: 1 h. Source: DestinationRule `connectionPool.http.idleTimeout`.
    pub idle_timeout: Duration,
    /// How long a raw TCP connection may be idle.
    ///
    /// Unit: time, > 0; none for the proxy's own, 1 h. Source: DestinationRule `connectionPool.tcp.idleTimeout`.
    pub tcp_idle_timeout: Option<Duration>,
    /// When the peer of an HTTP/2 connection that is silent is asked whether it is still there; never by default.
    ///
    /// Source: DestinationRule `connectionPool.http.http2KeepAlive`.
    pub keep_alive: Option<KeepAlive>,
    /// Probes of the kernel on silent connections; none by default.
    ///
    /// Source: DestinationRule `connectionPool.tcp.tcpKeepalive`.
    pub tcp_keepalive: Option<TcpKeepalive>,
    /// The PROXY header that connections begin with; none by default.
    ///
    /// Source: DestinationRule `proxyProtocol`.
    pub proxy_protocol: Option<ProxyProtocol>,
    /// The address that connections to the workload beside the proxy come from; none for connections to others.
    pub source: Option<Source>,
    /// How many connections and requests there may be.
    pub limits: Limits,
    /// How many requests a connection carries before it is closed; any number by default.
    ///
    /// Source: DestinationRule `connectionPool.http.maxRequestsPerConnection`.
    pub requests_per_connection_max: Option<u32>,
    /// How long a connection is used, from when it was made; for ever by default. Requests that it carries by then end
    /// first; raw TCP bytes do not.
    ///
    /// Source: DestinationRule `connectionPool.tcp.maxConnectionDuration`.
    pub connection_duration_max: Option<Duration>,
    /// How many streams an HTTP/2 connection carries at a time, where its peer allows more; what the peer allows by
    /// default.
    ///
    /// Source: DestinationRule `connectionPool.http.maxConcurrentStreams`.
    pub streams_max: Option<u32>,
    /// What connections speak.
    pub speaks: Speaks,
    /// The TLS settings for endpoints without their own; none by default.
    ///
    /// Source: DestinationRule `tls`.
    pub tls: Option<Arc<ClientTls>>,
}

/// The address that connections to the workload beside the proxy come from, so that they are not captured again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The client's own; only its requests use the connection.
    Client,
    /// One that capture rules leave alone.
    Proxy,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(3_600),
            tcp_idle_timeout: None,
            keep_alive: None,
            tcp_keepalive: None,
            proxy_protocol: None,
            source: None,
            limits: Limits::NONE,
            requests_per_connection_max: None,
            connection_duration_max: None,
            streams_max: None,
            speaks: Speaks::default(),
            tls: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocol_follows_port_client_or_h2_upgrade() {
        use Protocol::{Http1, Http2};
        use Speaks::{AsClient, Declared};
        for (speaks, declared, client, upgrading, expected) in [
            (Declared, Http1, Http2, false, Http1),
            (Declared, Http2, Http1, false, Http2),
            (Declared, Http2, Http1, true, Http2),
            (Speaks::Http2, Http1, Http1, false, Http2),
            (Speaks::Http2, Http1, Http2, false, Http2),
            (Speaks::Http2, Http1, Http1, true, Http1),
            (Speaks::Http2, Http2, Http1, true, Http2),
            (AsClient, Http1, Http2, false, Http2),
            (AsClient, Http2, Http1, false, Http1),
            (AsClient, Http2, Http2, true, Http1),
        ] {
            let chosen = speaks.choose(declared, client, upgrading);
            assert_eq!(
                chosen, expected,
                "{speaks:?} {declared:?} {client:?} {upgrading}"
            );
        }
    }
}
