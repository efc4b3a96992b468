//! Limits and timeouts of upstream connections.

use std::sync::Arc;
use std::time::Duration;

use super::{Protocol, ProxyProtocol, TcpKeepalive, UpstreamTls};
use crate::registry::{ClusterState, PendingPermit, Permit, RequestPermit, Sort};
use wire::http2::keep_alive::KeepAlive;

/// Maximum idle connections per worker and endpoint; a further one is closed after its response.
pub const IDLE_CONNECTIONS_MAX: usize = 1_024;

/// Maximum HTTP/2 connections per worker and endpoint; once all of them are at the stream limit of their peer, requests
/// wait for a stream to end.
pub const HTTP2_CONNECTIONS_MAX: usize = 1_024;

/// Maximum requests that wait for a connection or an HTTP/2 stream, per worker and endpoint; a further one overflows.
pub const WAITING_REQUESTS_MAX: usize = 1_024;

/// Maximum idle time of an HTTP connection that announced its client to the endpoint. No other client may use it, and
/// nothing shows that its client has left.
pub const ANNOUNCED_IDLE_MAX: Duration = Duration::from_secs(10);

/// Limits of a cluster's connections and requests, over all workers; `u32::MAX` for no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Connections to all endpoints together. An endpoint without a connection may exceed the limit by one.
    ///
    /// Source: DestinationRule `connectionPool.tcp.maxConnections`.
    pub connections: u32,
    /// Requests that wait for a connection or a stream; not those for which a connection is being opened.
    ///
    /// Source: DestinationRule `connectionPool.http.http1MaxPendingRequests`.
    pub pending: u32,
    /// Requests that have a connection, of any HTTP version.
    ///
    /// Source: DestinationRule `connectionPool.http.http2MaxRequests`.
    pub requests: u32,
}

impl Limits {
    /// No limits.
    pub const NONE: Self = Self {
        connections: u32::MAX,
        pending: u32::MAX,
        requests: u32::MAX,
    };

    /// Takes a permit for a request of a cluster that has a connection: none without a limit.
    ///
    /// # Errors
    ///
    /// The limit is reached.
    pub fn admit(
        &self,
        cluster: &Arc<ClusterState>,
    ) -> Result<Option<RequestPermit>, LimitReached> {
        permit(cluster, self.requests)
    }

    /// Takes a permit for a request of a cluster that waits for a connection: none without a limit.
    ///
    /// # Errors
    ///
    /// The limit is reached.
    pub fn wait(&self, cluster: &Arc<ClusterState>) -> Result<Option<PendingPermit>, LimitReached> {
        permit(cluster, self.pending)
    }
}

/// Error of a request above a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitReached;

fn permit<S: Sort>(
    cluster: &Arc<ClusterState>,
    max: u32,
) -> Result<Option<Permit<S>>, LimitReached> {
    match max {
        u32::MAX => Ok(None),
        max => Permit::acquire(cluster, max as usize)
            .map(Some)
            .ok_or(LimitReached),
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::NONE
    }
}

/// Choice of the HTTP version, given that of the port and that of the client.
///
/// Source: DestinationRule `connectionPool.http.h2UpgradePolicy` and `useClientProtocol`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HttpVersionPolicy {
    /// Version that the port declares.
    #[default]
    Declared,
    /// Version of the client's request.
    AsClient,
    /// HTTP/2, except for requests to switch protocols, which only HTTP/1.1 supports.
    Http2,
}

impl HttpVersionPolicy {
    /// Returns the name for messages.
    pub const fn name(self, declared: Protocol) -> &'static str {
        match (self, declared) {
            (Self::Declared, declared) => declared.name(),
            (Self::AsClient, _) => "the client's protocol",
            (Self::Http2, Protocol::Http1) => "HTTP/2 (upgraded)",
            (Self::Http2, Protocol::Http2) => Protocol::Http2.name(),
        }
    }

    /// Returns the version of a request: `client` is the version that it arrived in, `upgrading` whether it asks to
    /// switch protocols.
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

/// Settings of a cluster's upstream connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// Time to open a connection.
    ///
    /// Unit: time, > 0. Default: 10 s. Source: DestinationRule `connectionPool.tcp.connectTimeout`.
    pub connect_timeout: Duration,
    /// Time that an idle connection is kept.
    ///
    /// Unit: time, > 0. Default: 1 h. Source: DestinationRule `connectionPool.http.idleTimeout`.
    pub idle_timeout: Duration,
    /// Time that a raw TCP connection may be idle.
    ///
    /// Unit: time, > 0. Default: that of the proxy, 1 h. Source: DestinationRule `connectionPool.tcp.idleTimeout`.
    pub tcp_idle_timeout: Option<Duration>,
    /// Timing of PINGs that detect a dead HTTP/2 peer; none by default.
    ///
    /// Source: DestinationRule `connectionPool.http.http2KeepAlive`.
    pub keep_alive: Option<KeepAlive>,
    /// TCP keepalive; off by default.
    ///
    /// Source: DestinationRule `connectionPool.tcp.tcpKeepalive`.
    pub tcp_keepalive: Option<TcpKeepalive>,
    /// Version of the PROXY header to send on connections; none by default.
    ///
    /// Source: DestinationRule `proxyProtocol`.
    pub proxy_protocol: Option<ProxyProtocol>,
    /// Source address of connections to the sidecar's own workload; `None` for other connections.
    pub source: Option<Source>,
    /// Limits of connections and requests.
    pub limits: Limits,
    /// Requests per connection before it is closed; unlimited by default.
    ///
    /// Source: DestinationRule `connectionPool.http.maxRequestsPerConnection`.
    pub requests_per_connection_max: Option<u32>,
    /// Maximum age of a connection; unlimited by default. Requests in flight end first; raw TCP connections are cut
    /// off.
    ///
    /// Source: DestinationRule `connectionPool.tcp.maxConnectionDuration`.
    pub connection_duration_max: Option<Duration>,
    /// Maximum concurrent streams of an HTTP/2 connection, below the peer's limit; the peer's limit by default.
    ///
    /// Source: DestinationRule `connectionPool.http.maxConcurrentStreams`.
    pub streams_max: Option<u32>,
    /// Choice of the HTTP version.
    pub speaks: HttpVersionPolicy,
    /// TLS settings for endpoints without their own; none by default.
    ///
    /// Source: DestinationRule `tls`.
    pub tls: Option<Arc<dyn UpstreamTls>>,
}

/// Source address of connections to the sidecar's own workload, so that they are not captured again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// Client's address; only its requests use the connection.
    Client,
    /// Address that capture rules exempt.
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
            speaks: HttpVersionPolicy::default(),
            tls: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocol_follows_port_client_or_h2_upgrade() {
        use HttpVersionPolicy::{AsClient, Declared};
        use Protocol::{Http1, Http2};
        for (speaks, declared, client, upgrading, expected) in [
            (Declared, Http1, Http2, false, Http1),
            (Declared, Http2, Http1, false, Http2),
            (Declared, Http2, Http1, true, Http2),
            (HttpVersionPolicy::Http2, Http1, Http1, false, Http2),
            (HttpVersionPolicy::Http2, Http1, Http2, false, Http2),
            (HttpVersionPolicy::Http2, Http1, Http1, true, Http1),
            (HttpVersionPolicy::Http2, Http2, Http1, true, Http2),
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
