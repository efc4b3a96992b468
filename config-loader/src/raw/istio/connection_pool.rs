//! Connection pool settings, as written.

use serde::Deserialize;

use crate::raw::Field;

/// Connection pool settings (`connectionPool`): limits are per cluster, across workers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConnectionPoolSettings {
    /// Settings of all connections.
    pub tcp: Field<TcpSettings>,
    /// Settings of HTTP connections and requests.
    pub http: Field<HttpSettings>,
}

/// Settings of all connections (`connectionPool.tcp`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TcpSettings {
    /// Maximum number of connections, above 0. Default: no limit.
    pub max_connections: Field<i64>,
    /// Timeout for connecting, including the TLS handshake. Default: 10 s.
    pub connect_timeout: Field<String>,
    /// TCP keepalive probes. Default: off.
    pub tcp_keepalive: Field<TcpKeepalive>,
    /// Maximum lifetime of a connection. Default: no limit.
    pub max_connection_duration: Field<String>,
    /// Idle timeout of a connection without traffic; `0s` for no limit. Default: 1 h.
    pub idle_timeout: Field<String>,
}

/// TCP keepalive probes (`tcpKeepalive`). Unset values use the operating system's default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TcpKeepalive {
    /// Number of unanswered probes after which a connection is dead.
    pub probes: Field<i64>,
    /// Idle time of a connection before the first probe.
    pub time: Field<String>,
    /// Interval between probes.
    pub interval: Field<String>,
}

/// Settings of HTTP connections and requests (`connectionPool.http`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpSettings {
    /// Maximum number of requests that wait for a connection, above 0. Default: no limit.
    pub http1_max_pending_requests: Field<i64>,
    /// Maximum number of active requests, of any HTTP version, above 0. Default: no limit.
    pub http2_max_requests: Field<i64>,
    /// Maximum number of requests on one connection. Default: no limit.
    pub max_requests_per_connection: Field<i64>,
    /// Maximum number of active retries, above 0. Default: no limit.
    pub max_retries: Field<i64>,
    /// Idle timeout of a connection without active requests. Default: that of `tcp.idleTimeout`.
    pub idle_timeout: Field<String>,
    /// Whether HTTP/1.1 requests go upstream as HTTP/2: `DEFAULT` (no), `DO_NOT_UPGRADE` or `UPGRADE`.
    pub h2_upgrade_policy: Field<String>,
    /// Whether upstream requests use the client's HTTP version. Default: false.
    pub use_client_protocol: Field<bool>,
    /// Maximum number of streams on one HTTP/2 connection. Default: the peer's limit.
    pub max_concurrent_streams: Field<i64>,
    /// Keepalive pings on HTTP/2 connections. Default: off.
    pub http2_keep_alive: Field<Http2KeepAlive>,
}

/// Keepalive pings of HTTP/2 connections (`http2KeepAlive`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Http2KeepAlive {
    /// Interval between pings; required.
    pub interval: Field<String>,
    /// Timeout of a ping's acknowledgment; required.
    pub timeout: Field<String>,
}
