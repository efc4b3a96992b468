//! One health check of an endpoint, on a connection of its own that is made with the same settings as those of
//! requests.

use std::borrow::Cow;
use std::error::Error as _;
use std::future::poll_fn;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{Empty, Full};
use hyper::body::Body;
use hyper::header::{
    CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, TE, USER_AGENT,
};
use hyper::{Method, Request, StatusCode};

use crate::pool::{PoolSettings, PoolTarget};
use crate::upstream::http1::Message;
use crate::upstream::{
    Alternates, Buffers, Client, Connected, Counts, Host, Protocol, Reach, Sender, TlsTarget,
    connect, grpc_health, http2,
};
use traffic::balance::EndpointIdx;
use traffic::cluster::{Cluster, Endpoint, HealthCheck, Probe};
use traffic::error::{BoxError, Error};
use traffic::registry::Address;
use wire::http2::worker_buffers::WorkerBuffers;

/// User agent of health checks.
const AGENT: HeaderValue = HeaderValue::from_static("strait-health-check");

/// Context of no sampled trace: a proxy or a workload on the way makes no span of a check.
///
/// Source: W3C Trace Context, 3.2. The ids are never shown, and are the same for all checks.
const UNSAMPLED: (HeaderName, HeaderValue) = (
    HeaderName::from_static("traceparent"),
    HeaderValue::from_static("00-00000000000000000000000000000001-0000000000000001-00"),
);

/// Addresses of a PROXY protocol header without a client: two families make it UNKNOWN, as the protocol requires for
/// connections that the proxy makes for itself.
const NO_CLIENT: Client = Client {
    source: SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
    destination: SocketAddr::new(std::net::IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
};

/// Shared state that connections need.
pub(super) struct CheckConnector {
    counts: Rc<Counts>,
    memory: Rc<WorkerBuffers>,
    buffers: Rc<Buffers>,
}

impl CheckConnector {
    pub(super) fn new(counts: Rc<Counts>) -> Self {
        Self {
            counts,
            memory: Rc::default(),
            buffers: Rc::default(),
        }
    }
}

/// Check of one endpoint.
#[derive(Clone, Copy)]
struct Probed<'a> {
    means: &'a CheckConnector,
    cluster: &'a Cluster,
    endpoint: &'a Endpoint,
    check: &'a HealthCheck,
    /// Host in the request and in TLS.
    host: &'a str,
}

/// Checks an endpoint. Returns whether it passes, and its answer.
pub(super) async fn ask(
    means: &CheckConnector,
    cluster: &Cluster,
    index: EndpointIdx,
    check: &HealthCheck,
) -> (bool, String) {
    let endpoint = cluster.endpoint(index);
    let own_host = host_of(cluster, endpoint);
    let probed = |host| Probed {
        means,
        cluster,
        endpoint,
        check,
        host,
    };
    let result = match &check.probe {
        Probe::Grpc { service, host } => {
            let host = host.as_deref().unwrap_or(&own_host);
            grpc(probed(host), service).await
        }
        Probe::Http {
            path,
            host,
            statuses,
        } => {
            let host = host.as_deref().unwrap_or(&own_host);
            let status = http(probed(host), path).await;
            status.map(|status| {
                let status = status.as_u16();
                let passed = statuses.iter().any(|range| range.contains(&status));
                (passed, status.to_string())
            })
        }
        Probe::Tcp => connected(probed(&own_host), Protocol::Http1)
            .await
            .map(|_| (true, "connected".to_owned())),
    };
    result.unwrap_or_else(|error| (false, words(&error)))
}

/// Host of a check that sets none.
fn host_of<'a>(cluster: &'a Cluster, endpoint: &Endpoint) -> Cow<'a, str> {
    match cluster.host.starts_with('*') {
        true => endpoint.hash_key().into(),
        false => Cow::Borrowed(&cluster.host),
    }
}

/// Renders an error with its cause.
fn words(error: &Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Connects to the endpoint's own address: a tunnel or gateway that requests would use does not apply.
async fn connected(probed: Probed<'_>, protocol: Protocol) -> Result<Connected, Error> {
    let Probed {
        means,
        cluster,
        endpoint,
        check,
        host,
    } = probed;
    let (address, alternates) = check_address(endpoint, check.port);
    let settings = PoolSettings {
        connect_timeout: check.timeout.max(Duration::from_millis(1)),
        keep_alive: None,
        ..cluster.pool.clone()
    };
    let host = Host::of(host);
    let tls = cluster.tls(endpoint);
    let target = PoolTarget {
        reach: Reach {
            address: &address,
            alternates: &alternates,
        },
        cluster: &cluster.state,
        state: &endpoint.state,
        protocol,
        settings: &settings,
        tls: tls.map(|client| TlsTarget {
            client,
            host: Some(&host),
        }),
        client: &NO_CLIENT,
        phases: None,
    };
    let settings = target.connect_settings();
    connect(target.reach, settings, &means.counts, &means.memory).await
}

/// Returns the address of a check, with the port of the check if it sets one.
fn check_address(endpoint: &Endpoint, other: Option<u16>) -> (Address, Alternates) {
    let address = match (&endpoint.address, other) {
        (Address::Ip(address), Some(port)) => Address::Ip(SocketAddr::new(address.ip(), port)),
        (Address::Name { name, .. }, Some(port)) => Address::Name {
            name: name.clone(),
            port,
        },
        (address, _) => address.clone(),
    };
    let alternates = match endpoint.alternates() {
        Alternates::Name { resolution, port } => Alternates::Name {
            resolution: resolution.clone(),
            port: other.unwrap_or(*port),
        },
        Alternates::None | Alternates::SameName(_) => Alternates::None,
    };
    (address, alternates)
}

/// Adds the headers of every check.
fn add_headers(headers: &mut HeaderMap) {
    let (name, value) = UNSAMPLED;
    headers.insert(name, value);
    headers.insert(USER_AGENT, AGENT);
}

/// Sends a GET and returns the status of the response.
async fn http(probed: Probed<'_>, path: &str) -> Result<StatusCode, Error> {
    let (cluster, host) = (probed.cluster, probed.host);
    let declared = cluster.protocol;
    let protocol = cluster.pool.speaks.choose(declared, declared, false);
    let connected = connected(probed, protocol).await?;
    let is_tls = cluster.tls(probed.endpoint).is_some();
    let mut request = Request::new(Empty::<Bytes>::new());
    add_headers(request.headers_mut());
    match connected.sender {
        Sender::Http1(connection) => {
            *request.uri_mut() = path.parse().map_err(unsendable)?;
            let host = HeaderValue::try_from(host).map_err(unsendable)?;
            request.headers_mut().insert(HOST, host);
            let close = HeaderValue::from_static("close");
            request.headers_mut().insert(CONNECTION, close);
            let (mut parts, body) = request.into_parts();
            let memory = probed.means.buffers.take();
            let mut message = Some(Message::new(memory, &mut parts, body));
            Ok(connection.exchange(&mut message).await?.status())
        }
        Sender::Http2(sender) => {
            *request.uri_mut() = absolute(is_tls, host, path)?;
            Ok(response(&sender, request).await?.0)
        }
    }
}

/// Makes a target with the scheme of the connection, as HTTP/2 requires.
fn absolute(is_tls: bool, host: &str, path: &str) -> Result<hyper::Uri, Error> {
    let scheme = if is_tls { "https" } else { "http" };
    let uri = hyper::Uri::builder().scheme(scheme).authority(host);
    uri.path_and_query(path).build().map_err(unsendable)
}

/// Makes the error of a check that cannot be sent; validated resources do not cause it.
fn unsendable(error: impl Into<BoxError>) -> Error {
    Error::new(traffic::error::Kind::UpstreamProtocol).with_source(error)
}

/// Returns status, headers and body of a response over HTTP/2.
async fn response<B>(
    sender: &http2::Sender,
    request: Request<B>,
) -> Result<(StatusCode, HeaderMap, http2::Incoming), Error>
where
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let mut request = Some(request);
    let sent = sender.send(&mut request, None).await;
    let (parts, body) = sent.map_err(|failed| failed.error)?.into_parts();
    Ok((parts.status, parts.headers, body))
}

/// Asks the health service of gRPC whether a service is SERVING, and returns its answer.
async fn grpc(probed: Probed<'_>, service: &str) -> Result<(bool, String), Error> {
    let connected = connected(probed, Protocol::Http2).await?;
    let Sender::Http2(sender) = connected.sender else {
        return Ok((false, "no HTTP/2".to_owned()));
    };
    let is_tls = probed.cluster.tls(probed.endpoint).is_some();
    let mut request = Request::new(Full::new(grpc_health::question(service)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = absolute(is_tls, probed.host, grpc_health::METHOD)?;
    let headers = request.headers_mut();
    add_headers(headers);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(TE, HeaderValue::from_static("trailers"));
    let (status, mut headers, mut body) = response(&sender, request).await?;
    if status != StatusCode::OK {
        return Ok((false, format!("status {}", status.as_u16())));
    }
    let mut answer = BytesMut::new();
    while let Some(frame) = poll_fn(|cx| body.poll_frame(cx)).await {
        match frame?.into_data() {
            Ok(data) if answer.len() + data.len() <= grpc_health::ANSWER_BYTES_MAX => {
                answer.extend_from_slice(&data);
            }
            Ok(_) => return Ok((false, "too long an answer".to_owned())),
            Err(frame) => headers.extend(frame.into_trailers().unwrap_or_default()),
        }
    }
    Ok(grpc_health::verdict(&headers, &answer))
}
