//! Connection pool settings: limits and timeouts of connections to endpoints.

use std::time::Duration;

use crate::span::Line;

/// Content of `connectionPool`, with defaults for unset fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionPool {
    /// Settings of all connections.
    pub tcp: TcpPool,
    /// Settings of HTTP connections and requests.
    pub http: HttpPool,
    /// Source line within the document.
    pub line: Line,
}

/// `connectionPool.tcp`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpPool {
    /// Maximum number of connections.
    ///
    /// Unit: connections, > 0. Default: `u32::MAX`. Scope: per cluster, across workers.
    pub connections_max: u32,
    /// Timeout for connecting, including the TLS handshake; `None` for that of the mesh, which is 10 s by default.
    pub connect_timeout: Option<Duration>,
    /// TCP keepalive probes; `None` for those of the mesh, which are off by default.
    pub keepalive: Option<TcpKeepalive>,
    /// Maximum lifetime of a connection; `None` for no limit.
    pub connection_duration_max: Option<Duration>,
    /// Idle timeout of a connection without traffic; `None` for no limit.
    pub idle_timeout: Option<Duration>,
}

impl TcpPool {
    /// Default idle timeout.
    pub const IDLE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(3600);
}

impl Default for TcpPool {
    fn default() -> TcpPool {
        TcpPool {
            connections_max: u32::MAX,
            connect_timeout: None,
            keepalive: None,
            connection_duration_max: None,
            idle_timeout: Some(TcpPool::IDLE_TIMEOUT_DEFAULT),
        }
    }
}

/// TCP keepalive (`tcpKeepalive`); `None` for the operating system's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpKeepalive {
    /// Idle time of a connection before the first probe.
    pub time: Option<Duration>,
    /// Interval between probes.
    pub interval: Option<Duration>,
    /// Number of unanswered probes after which the connection is dead.
    pub probes: Option<u32>,
}

/// `connectionPool.http`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpPool {
    /// Maximum number of requests that wait for a connection.
    ///
    /// Unit: requests, > 0. Default: `u32::MAX`. Scope: per cluster, across workers.
    pub pending_requests_max: u32,
    /// Maximum number of active requests, of any HTTP version.
    ///
    /// Unit: requests, > 0. Default: `u32::MAX`. Scope: per cluster, across workers.
    pub requests_max: u32,
    /// Maximum number of requests on one connection; `None` for no limit.
    pub requests_per_connection_max: Option<u32>,
    /// Maximum number of concurrent retries.
    ///
    /// Unit: requests, > 0. Default: `u32::MAX`. Scope: per cluster, across workers.
    pub retries_max: u32,
    /// Idle timeout of a connection without active requests; `None` for no limit.
    pub idle_timeout: Option<Duration>,
    /// Upgrade policy: whether HTTP/1.1 requests go upstream as HTTP/2.
    pub upgrade: UpgradePolicy,
    /// Whether upstream requests use the client's HTTP version.
    pub use_client_protocol: bool,
    /// Maximum number of streams on one HTTP/2 connection; `None` for the peer's limit.
    pub concurrent_streams_max: Option<u32>,
    /// Keepalive pings on HTTP/2 connections; `None` for off.
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

/// Upgrade policy for HTTP/1.1 requests (`h2UpgradePolicy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpgradePolicy {
    /// Default of the mesh, which is no upgrade.
    #[default]
    Default,
    /// HTTP/1.1 requests go upstream as HTTP/1.1.
    DoNotUpgrade,
    /// HTTP/1.1 requests go upstream as HTTP/2.
    Upgrade,
}

/// Keepalive pings of HTTP/2 connections (`http2KeepAlive`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2KeepAlive {
    /// Interval between pings.
    pub interval: Duration,
    /// Timeout of the ping's acknowledgment.
    pub timeout: Duration,
}
