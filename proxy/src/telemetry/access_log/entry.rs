//! The fields of an access log line.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use http::Version;
use traffic::filter::TemplateContext;
use traffic::telemetry::flags::ResponseFlags;

/// HTTP version of a downstream connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2.
    Http2,
}

impl HttpVersion {
    /// The name in Envoy's logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        }
    }
}

/// Address of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host<'a> {
    /// Address and port.
    Ip(SocketAddr),
    /// Path of a Unix socket, or an unresolved name and port.
    Text(&'a [u8]),
}

impl From<SocketAddr> for Host<'_> {
    fn from(address: SocketAddr) -> Self {
        Host::Ip(address)
    }
}

/// One finished request or TCP connection; all fields are borrowed. `None` prints `-` (text) or `null` (JSON).
///
/// Text from the wire is stored as bytes, since header values need not be UTF-8.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// Time when the first byte of the request arrived.
    pub start: SystemTime,
    /// Method; `None` for TCP.
    pub method: Option<&'a str>,
    /// Path and query as sent by the client: `x-envoy-original-path` if the path was rewritten.
    pub path: Option<&'a [u8]>,
    /// HTTP version of the client; `None` for TCP.
    pub version: Option<HttpVersion>,
    /// Status sent to the client; 0 for none.
    pub response_code: u16,
    /// Response flags.
    pub flags: ResponseFlags,
    /// Reason for the response, such as `via_upstream`. Spaces print as `_`.
    pub response_code_details: Option<&'a str>,
    /// Reason for closing the connection, if the proxy closed it. Spaces print as `_`.
    pub connection_termination_details: Option<&'a str>,
    /// Reason why the upstream connection failed.
    pub upstream_transport_failure_reason: Option<&'a str>,
    /// Body bytes received from the client.
    pub bytes_received: u64,
    /// Body bytes sent to the client.
    pub bytes_sent: u64,
    /// Time from the first byte of the request to the last byte of the response.
    pub duration: Duration,
    /// Time from the last byte sent upstream to the first header received.
    pub upstream_service_time: Option<Duration>,
    /// `x-forwarded-for`.
    pub x_forwarded_for: Option<&'a [u8]>,
    /// `user-agent`.
    pub user_agent: Option<&'a [u8]>,
    /// `x-request-id`.
    pub request_id: Option<&'a [u8]>,
    /// Host or `:authority`.
    pub authority: Option<&'a [u8]>,
    /// Address of the endpoint that served the request.
    pub upstream_host: Option<Host<'a>>,
    /// Name of the cluster, such as `outbound|80||a.default.svc.cluster.local`.
    pub upstream_cluster: Option<&'a str>,
    /// Kubernetes cluster of the endpoint: its key if a policy shares traffic among clusters, else its name.
    pub destination_cluster: Option<&'a str>,
    /// Tier of that cluster in the policy; `None` without a policy.
    pub destination_tier: Option<u8>,
    /// Number of attempts: times that the request was sent, or endpoints that a TCP connection was tried on.
    pub attempts: u32,
    /// Local address of the upstream connection.
    pub upstream_local_address: Option<SocketAddr>,
    /// Local address of the downstream connection.
    pub downstream_local_address: Option<SocketAddr>,
    /// Address of the client.
    pub downstream_remote_address: Option<SocketAddr>,
    /// SNI.
    pub requested_server_name: Option<&'a str>,
    /// First URI of the client's certificate.
    pub downstream_peer_uri_san: Option<&'a str>,
    /// Name of the AUDIT policy that matched; only in JSON.
    pub audit: Option<&'a str>,
    /// Name of the route.
    pub route_name: Option<&'a str>,
}

impl<'a> Entry<'a> {
    /// Values for formats of the user and for filters, as far as an entry has them.
    pub fn context(&self) -> TemplateContext<'a> {
        let text = |bytes: Option<&'a [u8]>| {
            let text = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
            text.unwrap_or_default()
        };
        let (upstream_remote, upstream_name) = match self.upstream_host {
            Some(Host::Ip(address)) => (Some(address), None),
            Some(Host::Text(name)) => (None, Some(text(Some(name)))),
            None => (None, None),
        };
        TemplateContext {
            downstream_remote: self.downstream_remote_address,
            downstream_direct_remote: self.downstream_remote_address,
            downstream_local: self.downstream_local_address,
            upstream_remote,
            upstream_name,
            upstream_local: self.upstream_local_address,
            upstream_cluster: self.upstream_cluster.unwrap_or_default(),
            requested_server_name: self.requested_server_name,
            protocol: match self.version {
                Some(HttpVersion::Http10) => Version::HTTP_10,
                Some(HttpVersion::Http2) => Version::HTTP_2,
                Some(HttpVersion::Http11) | None => Version::HTTP_11,
            },
            start_time: self.start,
            now: SystemTime::now(),
            duration: self.duration,
            bytes_received: self.bytes_received,
            attempts: self.attempts,
            response_flags: self.flags,
            response_code: self.response_code,
            response_code_details: self.response_code_details.unwrap_or_default(),
            route_name: self.route_name.unwrap_or_default(),
            method: self.method.unwrap_or_default(),
            path: text(self.path),
            authority: text(self.authority),
            ..TemplateContext::default()
        }
    }
}

impl Default for Entry<'_> {
    /// An empty entry at the beginning of 1970; a base for struct update syntax.
    fn default() -> Self {
        Self {
            start: SystemTime::UNIX_EPOCH,
            method: None,
            path: None,
            version: None,
            response_code: 0,
            flags: ResponseFlags::NONE,
            response_code_details: None,
            connection_termination_details: None,
            upstream_transport_failure_reason: None,
            bytes_received: 0,
            bytes_sent: 0,
            duration: Duration::ZERO,
            upstream_service_time: None,
            x_forwarded_for: None,
            user_agent: None,
            request_id: None,
            authority: None,
            upstream_host: None,
            upstream_cluster: None,
            destination_cluster: None,
            destination_tier: None,
            attempts: 0,
            upstream_local_address: None,
            downstream_local_address: None,
            downstream_remote_address: None,
            requested_server_name: None,
            downstream_peer_uri_san: None,
            audit: None,
            route_name: None,
        }
    }
}
