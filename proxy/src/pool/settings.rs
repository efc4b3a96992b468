//! Limits and times of upstream connections.

use std::time::Duration;

use crate::http2::pulse::KeepAlive;
use crate::upstream::{ProxyProtocol, TcpKeepalive};

/// Most connections that wait for a request, per worker and endpoint; a further one is closed after its response.
pub const IDLE_CONNECTIONS_MAX: usize = 1_024;

/// Most HTTP/2 connections, per worker and endpoint; once all of them carry as many streams as their peer allows,
/// requests wait for one to end.
pub const HTTP2_CONNECTIONS_MAX: usize = 1_024;

/// Most requests that wait for a stream of an HTTP/2 connection, per worker and endpoint; a further one overflows.
pub const WAITING_REQUESTS_MAX: usize = 1_024;

/// Longest time that a connection of HTTP which told its endpoint of a client waits for the next request of that client;
/// nobody else may use it, and nothing says that the client has gone.
pub const ANNOUNCED_IDLE_MAX: Duration = Duration::from_secs(10);

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
    /// How long a connection that is carried as it is may be idle.
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
    /// The header that tells the endpoint of a connection who the client is; none by default.
    ///
    /// Source: DestinationRule `proxyProtocol`.
    pub proxy_protocol: Option<ProxyProtocol>,
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
        }
    }
}
