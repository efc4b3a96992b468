//! Connection pool settings, as written.

use serde::Deserialize;

use crate::raw::Field;

/// `connectionPool`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConnectionPoolSettings {
    /// `tcp`
    pub tcp: Field<TcpSettings>,
    /// `http`
    pub http: Field<HttpSettings>,
}

/// `connectionPool.tcp`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TcpSettings {
    /// `maxConnections`
    pub max_connections: Field<i64>,
    /// `connectTimeout`
    pub connect_timeout: Field<String>,
    /// `tcpKeepalive`
    pub tcp_keepalive: Field<TcpKeepalive>,
    /// `maxConnectionDuration`
    pub max_connection_duration: Field<String>,
    /// `idleTimeout`
    pub idle_timeout: Field<String>,
}

/// `tcpKeepalive`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TcpKeepalive {
    /// `probes`
    pub probes: Field<i64>,
    /// `time`
    pub time: Field<String>,
    /// `interval`
    pub interval: Field<String>,
}

/// `connectionPool.http`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpSettings {
    /// `http1MaxPendingRequests`
    pub http1_max_pending_requests: Field<i64>,
    /// `http2MaxRequests`
    pub http2_max_requests: Field<i64>,
    /// `maxRequestsPerConnection`
    pub max_requests_per_connection: Field<i64>,
    /// `maxRetries`
    pub max_retries: Field<i64>,
    /// `idleTimeout`
    pub idle_timeout: Field<String>,
    /// `h2UpgradePolicy`
    pub h2_upgrade_policy: Field<String>,
    /// `useClientProtocol`
    pub use_client_protocol: Field<bool>,
    /// `maxConcurrentStreams`
    pub max_concurrent_streams: Field<i64>,
    /// `http2KeepAlive`
    pub http2_keep_alive: Field<Http2KeepAlive>,
}

/// `http2KeepAlive`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Http2KeepAlive {
    /// `interval`
    pub interval: Field<String>,
    /// `timeout`
    pub timeout: Field<String>,
}
