//! Everything that templates may speak of.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderValue, Version};
use rand::rngs::SmallRng;

use crate::telemetry::ResponseFlags;
use crate::tls::Facts;
use crate::tls::peer::PeerCertificate;

/// Everything that templates may speak of. What is not known, or not yet, stays `None` or empty and prints as nothing.
#[derive(Clone, Copy, Debug)]
pub struct TemplateContext<'a> {
    /// Address of the client, as far as it is trusted.
    pub downstream_remote: Option<SocketAddr>,
    /// Address that the client connected to.
    pub downstream_local: Option<SocketAddr>,
    /// Address of the endpoint.
    pub upstream_remote: Option<SocketAddr>,
    /// Peer address of the connection, whatever `x-forwarded-for` says.
    pub downstream_direct_remote: Option<SocketAddr>,
    /// TLS with the client.
    pub downstream_tls: Option<TlsContext<'a>>,
    /// Our address towards the endpoint.
    pub upstream_local: Option<SocketAddr>,
    /// DNS name that the endpoint is known by.
    pub upstream_name: Option<&'a str>,
    /// Protocol of the connection with the endpoint; empty while there is none.
    pub upstream_protocol: &'static str,
    /// TLS with the endpoint.
    pub upstream_tls: Option<TlsContext<'a>>,
    /// `outbound|PORT|SUBSET|HOST` of the chosen destination.
    pub upstream_cluster: &'a str,
    /// SNI of the downstream connection.
    pub requested_server_name: Option<&'a str>,
    /// Protocol of the downstream connection.
    pub protocol: Version,
    /// When the request began.
    pub start_time: SystemTime,
    /// What time it is.
    pub now: SystemTime,
    /// Since the request began.
    pub duration: Duration,
    /// From the beginning of the request to its last byte.
    pub request_duration: Option<Duration>,
    /// From the beginning of the request to the head of the endpoint's response.
    pub response_duration: Option<Duration>,
    /// Bytes of the request's body so far.
    pub bytes_received: u64,
    /// How often the request was sent to an endpoint, this time included.
    pub attempts: u32,
    /// Id of the request, as it is sent on.
    pub request_id: Option<&'a HeaderValue>,
    /// Random numbers for ids.
    pub random: Option<&'a RefCell<SmallRng>>,
    /// Response flags so far.
    pub response_flags: ResponseFlags,
    /// Status of the response; 0 while there is none.
    pub response_code: u16,
    /// Details of the response, as in the access log.
    pub response_code_details: &'a str,
    /// Name of this machine.
    pub hostname: &'a str,
    /// Name of the route.
    pub route_name: &'a str,
    /// Request method.
    pub method: &'a str,
    /// Path and query as they are now.
    pub path: &'a str,
    /// Authority as it is now.
    pub authority: &'a str,
    /// Request scheme.
    pub scheme: &'a str,
    /// Request headers. While request headers are edited, the edited ones are read instead.
    pub request_headers: Option<&'a HeaderMap>,
    /// Response headers. While response headers are edited, the edited ones are read instead.
    pub response_headers: Option<&'a HeaderMap>,
    /// Environment of the process, read once when it started.
    pub environment: &'a BTreeMap<String, String>,
}

impl Default for TemplateContext<'_> {
    fn default() -> Self {
        static NO_ENVIRONMENT: BTreeMap<String, String> = BTreeMap::new();
        Self {
            downstream_remote: None,
            downstream_local: None,
            upstream_remote: None,
            downstream_direct_remote: None,
            downstream_tls: None,
            upstream_local: None,
            upstream_name: None,
            upstream_protocol: "",
            upstream_tls: None,
            upstream_cluster: "",
            requested_server_name: None,
            protocol: Version::HTTP_11,
            start_time: SystemTime::UNIX_EPOCH,
            now: SystemTime::UNIX_EPOCH,
            duration: Duration::ZERO,
            request_duration: None,
            response_duration: None,
            bytes_received: 0,
            attempts: 0,
            request_id: None,
            random: None,
            response_flags: ResponseFlags::NONE,
            response_code: 0,
            response_code_details: "",
            hostname: "",
            route_name: "",
            method: "",
            path: "",
            authority: "",
            scheme: "",
            request_headers: None,
            response_headers: None,
            environment: &NO_ENVIRONMENT,
        }
    }
}

/// What templates may say of a TLS connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct TlsContext<'a> {
    /// Version, as in `TLSv1.3`.
    pub version: &'a str,
    /// Cipher suite, by OpenSSL's name.
    pub cipher: &'a str,
    /// The certificate of the other side.
    pub peer: Option<&'a PeerCertificate>,
    /// What our own certificate says.
    pub own: Option<&'a Facts>,
}
