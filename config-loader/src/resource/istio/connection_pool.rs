//! Limits and times of connections to endpoints.

use std::time::Duration;

use crate::span::Line;

/// `connectionPool`. What is not written has its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionPool {
    /// Of all connections.
    pub tcp: TcpPool,
    /// Of HTTP connections and requests.
    pub http: HttpPool,
    /// Where it was written.
    pub line: Line,
}

/// `connectionPool.tcp`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpPool {
    /// The most connections.
    ///
    /// Unit: connections, > 0. Default: `u32::MAX`. Scope: per cluster, across workers.
    pub connections_max: u32,
    /// How long connecting may take, a TLS handshake included.
    pub connect_timeout: Duration,
    /// Probes on idle connections; none for off.
    pub keepalive: Option<TcpKeepalive>,
    /// How long a connection may live; none for no limit.
    pub connection_duration_max: Option<Duration>,
    /// How long a connection may carry no byte; none for no limit.
    pub idle_timeout: Option<Duration>,
}

impl TcpPool {
    /// How long connecting may take where nothing is written.
    pub const CONNECT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
    /// How long a connection may be idle where nothing is written.
    pub const IDLE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(3600);
}

impl Default for TcpPool {
    fn default() -> TcpPool {
        TcpPool {
            connections_max: u32::MAX,
            connect_timeout: TcpPool::CONNECT_TIMEOUT_DEFAULT,
            keepalive: None,
            connection_duration_max: None,
            idle_timeout: Some(TcpPool::IDLE_TIMEOUT_DEFAULT),
        }
    }
}

/// `tcpKeepalive`; none leaves a value to the operating system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpKeepalive {
    /// How long a connection is idle before the first probe.
    pub time: Option<Duration>,
    /// Between probes.
    pub interval: Option<Duration>,
    /// Probes without an answer after which the connection is dead.
    pub probes: Option<u32>,
}

/// `connectionPool.http`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpPool {
    /// The most requests that wait for a connection.
    ///
    /// Unit: requests, > 0. Default: `u32::MAX`. Scope: per cluster, across workers.
    pub pending_requests_max: u32,
    /// The most active requests, of any HTTP version.
    ///
    /// Unit: requests, > 0. Default: `u32::MAX`. Scope: per cluster, across workers.
    pub requests_max: u32,
    /// The most requests on one connection; none for no limit.
    pub requests_per_connection_max: Option<u32>,
    /// The most retries at a time.
    ///
    /// Unit: requests, > 0. Default: `u32::MAX`. Scope: per cluster, across workers.
    pub retries_max: u32,
    /// How long a connection may have no active request; none for no limit.
    pub idle_timeout: Option<Duration>,
    /// Whether HTTP/1.1 requests go upstream as HTTP/2.
    pub upgrade: UpgradePolicy,
    /// Whether upstream requests use the client's protocol.
    pub use_client_protocol: bool,
    /// The most streams on one HTTP/2 connection; none for what the peer allows.
    pub concurrent_streams_max: Option<u32>,
    /// Pings on HTTP/2 connections; none for off.
    pub http2_keep_alive: Option<Http2KeepAlive>,
}

impl Default for HttpPool {
    fn default() -> HttpPool {
        HttpPool {
            pending_requests_max: u32::MAX,
            requests_max: u32::MAX,
            requests_per_connection_max: None,
            retries_max: u32::MAX,
            idle_timeout: Some(TcpPool::IDLE_TIMEOUT_DEFAULT),
            upgrade: UpgradePolicy::default(),
            use_client_protocol: false,
            concurrent_streams_max: None,
            http2_keep_alive: None,
        }
    }
}

/// `h2UpgradePolicy`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpgradePolicy {
    /// As the mesh says, which is not to.
    #[default]
    Default,
    /// HTTP/1.1 stays what it is.
    DoNotUpgrade,
    /// HTTP/1.1 requests go upstream as HTTP/2.
    Upgrade,
}

/// `http2KeepAlive`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2KeepAlive {
    /// Between pings.
    pub interval: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
}
