//! Values for the operators of templates.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderValue, Version};
use rand::rngs::SmallRng;

use crate::certificate::{Facts, PeerCertificate};
use crate::telemetry::{ResponseFlags, Service, Workload};
use crate::trace::TraceContext;

/// Values for the operators of templates. Unknown values are `None` or empty and print as nothing.
#[derive(Clone, Copy, Debug)]
pub struct TemplateContext<'a> {
    /// Address of the client, as far as it can be trusted.
    pub downstream_remote: Option<SocketAddr>,
    /// Address that the client connected to.
    pub downstream_local: Option<SocketAddr>,
    /// Address of the endpoint.
    pub upstream_remote: Option<SocketAddr>,
    /// Peer address of the connection, regardless of `x-forwarded-for`.
    pub downstream_direct_remote: Option<SocketAddr>,
    /// TLS of the downstream connection.
    pub downstream_tls: Option<TlsContext<'a>>,
    /// Local address of the upstream connection.
    pub upstream_local: Option<SocketAddr>,
    /// DNS name of the endpoint.
    pub upstream_name: Option<&'a str>,
    /// Protocol of the upstream connection; empty while there is none.
    pub upstream_protocol: &'static str,
    /// TLS of the upstream connection.
    pub upstream_tls: Option<TlsContext<'a>>,
    /// `outbound|PORT|SUBSET|HOST` of the chosen destination.
    pub upstream_cluster: &'a str,
    /// SNI of the downstream connection.
    pub requested_server_name: Option<&'a str>,
    /// Protocol of the downstream connection.
    pub protocol: Version,
    /// Time when the request began.
    pub start_time: SystemTime,
    /// Current time.
    pub now: SystemTime,
    /// Time since the request began.
    pub duration: Duration,
    /// Time from the beginning of the request to its last byte.
    pub request_duration: Option<Duration>,
    /// Time from the beginning of the request to the head of the upstream response.
    pub response_duration: Option<Duration>,
    /// Bytes of the request body so far.
    pub bytes_received: u64,
    /// Number of attempts, including the current one.
    pub attempts: u32,
    /// Request id for the upstream.
    pub request_id: Option<&'a HeaderValue>,
    /// Random numbers for generated ids.
    pub random: Option<&'a RefCell<SmallRng>>,
    /// Response flags so far.
    pub response_flags: ResponseFlags,
    /// Response status; 0 while there is none.
    pub response_code: u16,
    /// Response code details, as in the access log.
    pub response_code_details: &'a str,
    /// Host name of the machine.
    pub hostname: &'a str,
    /// Name of the route.
    pub route_name: &'a str,
    /// Request method.
    pub method: &'a str,
    /// Current path and query.
    pub path: &'a str,
    /// Current authority.
    pub authority: &'a str,
    /// Request scheme.
    pub scheme: &'a str,
    /// Request headers. Edits of request headers read the headers that they edit instead.
    pub request_headers: Option<&'a HeaderMap>,
    /// Response headers. Edits of response headers read the headers that they edit instead.
    pub response_headers: Option<&'a HeaderMap>,
    /// Environment of the process, read once at start.
    pub environment: &'a BTreeMap<String, String>,
    /// Values of the end, for the access log.
    pub finished: Option<&'a Finished<'a>>,
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
            finished: None,
        }
    }
}

/// Values that only a finished request or connection has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Finished<'a> {
    /// Whether it is a TCP connection without requests.
    pub is_tcp: bool,
    /// Whether the proxy is on the side of the server.
    pub is_inbound: bool,
    /// Body bytes sent to the client.
    pub bytes_sent: u64,
    /// Status of a gRPC response, from its headers or trailers.
    pub grpc_status: Option<u8>,
    /// Reason for closing the connection, if the proxy closed it.
    pub termination_details: Option<&'a str>,
    /// Reason why the upstream connection failed.
    pub transport_failure: Option<&'a str>,
    /// Trailers of the response, as far as a format asks for them.
    pub response_trailers: Option<&'a HeaderMap>,
    /// Kubernetes cluster of the endpoint.
    pub destination_cluster: Option<&'a str>,
    /// Tier of that cluster in the policy.
    pub destination_tier: Option<u8>,
    /// Rule that was chosen, `KIND/NAMESPACE/NAME` with its place in it.
    pub rule: Option<&'a str>,
    /// Service of the endpoint.
    pub service: Option<&'a Service>,
    /// Workload of the client.
    pub downstream_peer: Option<&'a Workload>,
    /// Workload of the endpoint.
    pub upstream_peer: Option<&'a Workload>,
    /// The proxy itself.
    pub node: Option<&'a Node>,
    /// Trace of the request.
    pub trace: Option<&'a TraceContext>,
}

/// The proxy, as `xds.node` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Id, as servers know it.
    pub id: String,
    /// Name of the workload with its namespace.
    pub service_cluster: String,
    /// Namespace of the workload.
    pub namespace: String,
    /// Kubernetes cluster.
    pub cluster: String,
    /// Id of the mesh.
    pub mesh: String,
    /// Name of the workload.
    pub workload: String,
    /// Labels of the workload.
    pub labels: BTreeMap<String, String>,
}

/// TLS connection, as far as templates can print it.
#[derive(Clone, Copy, Debug, Default)]
pub struct TlsContext<'a> {
    /// Version, as in `TLSv1.3`.
    pub version: &'a str,
    /// Cipher suite, by its OpenSSL name.
    pub cipher: &'a str,
    /// Certificate of the peer.
    pub peer: Option<&'a dyn PeerCertificate>,
    /// Facts of the proxy's own certificate.
    pub own: Option<&'a Facts>,
}
