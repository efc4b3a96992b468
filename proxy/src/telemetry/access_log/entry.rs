//! What a line of the access log is made of.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use super::super::flags::ResponseFlags;

/// The HTTP version that the client speaks.
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
    /// As Envoy prints it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        }
    }
}

/// Where an endpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host<'a> {
    /// Address and port.
    Ip(SocketAddr),
    /// Path of a Unix socket, or a name and port that have no address yet.
    Text(&'a [u8]),
}

impl From<SocketAddr> for Host<'_> {
    fn from(address: SocketAddr) -> Self {
        Host::Ip(address)
    }
}

/// One finished request, or TCP connection; everything is borrowed. `None` prints `-` (text) or `null` (JSON).
///
/// Text from the wire is bytes, since header values need not be UTF-8.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// When the first byte of the request arrived.
    pub start: SystemTime,
    /// Method; none for TCP.
    pub method: Option<&'a str>,
    /// Path and query as the client sent them: `x-envoy-original-path` if the path was rewritten.
    pub path: Option<&'a [u8]>,
    /// HTTP version that the client speaks; none for TCP.
    pub version: Option<HttpVersion>,
    /// Status that was sent; 0 if none was.
    pub response_code: u16,
    /// Response flags.
    pub flags: ResponseFlags,
    /// Why the response is what it is, `via_upstream` for example. Spaces print as `_`.
    pub response_code_details: Option<&'a str>,
    /// Why the connection was closed, if this proxy did it. Spaces print as `_`.
    pub connection_termination_details: Option<&'a str>,
    /// Why the upstream connection failed.
    pub upstream_transport_failure_reason: Option<&'a str>,
    /// Body bytes received from the client.
    pub bytes_received: u64,
    /// Body bytes sent to the client.
    pub bytes_sent: u64,
    /// First byte of the request to last byte of the response.
    pub duration: Duration,
    /// Last byte sent upstream to first header received from there.
    pub upstream_service_time: Option<Duration>,
    /// `x-forwarded-for`.
    pub x_forwarded_for: Option<&'a [u8]>,
    /// `user-agent`.
    pub user_agent: Option<&'a [u8]>,
    /// `x-request-id`.
    pub request_id: Option<&'a [u8]>,
    /// Host or `:authority`.
    pub authority: Option<&'a [u8]>,
    /// The address that the endpoint took the request on.
    pub upstream_host: Option<Host<'a>>,
    /// Name of the cluster, as in `outbound|80||a.default.svc.cluster.local`.
    pub upstream_cluster: Option<&'a str>,
    /// The Kubernetes cluster that the endpoint is in: its key where a policy shares traffic among clusters, else its name.
    pub destination_cluster: Option<&'a str>,
    /// The tier that the policy gives that cluster; none without a policy.
    pub destination_tier: Option<u8>,
    /// How often the request was sent to an endpoint, or how many endpoints the connection was tried on.
    pub attempts: u32,
    /// Our address towards the endpoint.
    pub upstream_local_address: Option<SocketAddr>,
    /// Our address towards the client.
    pub downstream_local_address: Option<SocketAddr>,
    /// The client's address.
    pub downstream_remote_address: Option<SocketAddr>,
    /// SNI.
    pub requested_server_name: Option<&'a str>,
    /// The identity in the client's certificate: its first URI.
    pub downstream_peer_uri_san: Option<&'a str>,
    /// Name of the route.
    pub route_name: Option<&'a str>,
}

impl Default for Entry<'_> {
    /// Nothing known, at the beginning of 1970; a base for struct update syntax.
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
            route_name: None,
        }
    }
}
