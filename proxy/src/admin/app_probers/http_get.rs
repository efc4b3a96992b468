//! GET to a container, as the kubelet sends it: certificates are not verified, redirects within the pod are followed,
//! and a redirect to another host passes.

use std::net::IpAddr;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, LOCATION, TRANSFER_ENCODING, UPGRADE};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;

use super::connect::connect;
use super::{HttpGet, ProbeRequest};
use crate::admin::reply::Reply;
use crate::tls::client::unverified;
use crate::tls::encrypted::Encrypted;
use traffic::error::BoxError;

/// Maximum number of redirects that a probe follows.
const REDIRECTS_MAX: usize = 10;

/// Maximum bytes of a response body that the kubelet receives.
const BODY_BYTES_MAX: usize = 10 << 10;

/// Maximum bytes of a response head.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Headers of the kubelet's request that are not forwarded: they concern its connection, or this client sets its own.
const NOT_FORWARDED: [http::HeaderName; 5] =
    [CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE];

/// Target of the next request; the address is always that of the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    is_tls: bool,
    port: u16,
    path: PathAndQuery,
    host: HeaderValue,
}

/// Sends the GET and returns the response of the container.
pub(super) async fn ask(get: &HttpGet, asked: ProbeRequest<'_>) -> Result<Reply, BoxError> {
    let mut target = Target {
        is_tls: get.is_tls,
        port: get.port,
        path: get.path.parse()?,
        host: host(get, asked)?,
    };
    for _ in 0..=REDIRECTS_MAX {
        // kept until its body is read
        let mut tasks = JoinSet::new();
        let request = target.request(get, asked)?;
        let stream = connect(asked.pod, target.port).await?;
        let response = match target.is_tls {
            false => send(stream, request, &mut tasks).await?,
            true => {
                let name = ServerName::from(asked.pod);
                let encrypted = Encrypted::connect(stream, unverified()?, name).await;
                let encrypted = encrypted.map_err(|failure| format!("TLS handshake: {failure}"))?;
                send(encrypted, request, &mut tasks).await?
            }
        };
        let status = response.status();
        let location = response.headers().get(LOCATION);
        let location = location.filter(|_| status.is_redirection()).cloned();
        // a redirect that leads nowhere is an answer like any other, also to the kubelet
        let Some(location) = location else {
            let body = body_of(response.into_body()).await;
            return Ok(Reply::new(status, "text/plain; charset=utf-8", body));
        };
        match target.redirected(&location, asked.pod) {
            Some(next) => target = next,
            // a redirect to elsewhere says that the container works
            None => return Ok(Reply::text(StatusCode::OK, "redirects to another host\n")),
        }
    }
    Err(format!("stopped after {REDIRECTS_MAX} redirects").into())
}

/// Returns the `Host` header for the container: that of the probe, or that of the kubelet's request with the port of
/// the container.
fn host(get: &HttpGet, asked: ProbeRequest<'_>) -> Result<HeaderValue, BoxError> {
    let sent = asked.headers.get(HOST).and_then(|host| host.to_str().ok());
    let own = get.headers.get(HOST);
    let pod = std::net::SocketAddr::new(asked.pod, get.port).to_string();
    Ok(match (sent, own) {
        (_, Some(own)) => own.clone(),
        (Some(sent), None) => match sent.rsplit_once(':') {
            Some((name, port)) if port == asked.port.to_string() => {
                HeaderValue::try_from(format!("{name}:{}", get.port))?
            }
            _ => HeaderValue::try_from(sent)?,
        },
        (None, None) => HeaderValue::try_from(pod)?,
    })
}

impl Target {
    fn request(
        &self,
        get: &HttpGet,
        asked: ProbeRequest<'_>,
    ) -> Result<Request<Empty<Bytes>>, BoxError> {
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = Uri::from(self.path.clone());
        let headers = request.headers_mut();
        let forward = |from: &HeaderMap, headers: &mut HeaderMap| {
            for name in from.keys().filter(|name| !NOT_FORWARDED.contains(name)) {
                headers.remove(name);
                for value in from.get_all(name) {
                    headers.append(name.clone(), value.clone());
                }
            }
        };
        forward(&get.headers, headers);
        forward(asked.headers, headers);
        headers.insert(HOST, self.host.clone());
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        Ok(request)
    }

    /// Returns the target that a redirect leads to; `None` for another host, or a location that cannot be followed.
    fn redirected(&self, location: &HeaderValue, pod: IpAddr) -> Option<Self> {
        let location = location.to_str().ok()?;
        let is_absolute = location.contains("://") || location.starts_with("//");
        if !is_absolute {
            let path = match location.starts_with('/') {
                true => location.to_owned(),
                false => {
                    let (folder, _) = self.path.path().rsplit_once('/')?;
                    format!("{folder}/{location}")
                }
            };
            let path = path.parse().ok()?;
            return Some(Self {
                path,
                ..self.clone()
            });
        }
        let uri: Uri = location.parse().ok()?;
        let is_tls = match uri.scheme_str()? {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let name = uri.host()?.trim_start_matches('[').trim_end_matches(']');
        if name.parse::<IpAddr>().ok()? != pod {
            return None;
        }
        Some(Self {
            is_tls,
            port: uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 }),
            path: uri.path_and_query()?.clone(),
            host: HeaderValue::try_from(uri.authority()?.as_str()).ok()?,
        })
    }
}

/// Sends a request over a connection, which `tasks` drives.
async fn send<S>(
    stream: S,
    request: Request<Empty<Bytes>>,
    tasks: &mut JoinSet<()>,
) -> Result<http::Response<Incoming>, BoxError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await?;
    tasks.spawn(async move { drop(connection.await) });
    Ok(sender.send_request(request).await?)
}

/// Reads at most [`BODY_BYTES_MAX`] of a body. A body that breaks off counts as complete.
async fn body_of(mut body: Incoming) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < BODY_BYTES_MAX {
        let Some(Ok(frame)) = body.frame().await else {
            break;
        };
        let data = frame.into_data().unwrap_or_default();
        let room = BODY_BYTES_MAX - bytes.len();
        bytes.extend_from_slice(&data[..data.len().min(room)]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_are_followed_within_the_pod() {
        let pod: IpAddr = "10.1.0.7".parse().unwrap();
        let target = Target {
            is_tls: false,
            port: 8080,
            path: PathAndQuery::from_static("/a/live?x=1"),
            host: HeaderValue::from_static("10.1.0.7:8080"),
        };
        for (location, expected) in [
            ("/ready", Some((false, 8080, "/ready"))),
            ("ready?y", Some((false, 8080, "/a/ready?y"))),
            ("http://10.1.0.7/x", Some((false, 80, "/x"))),
            ("https://10.1.0.7:8443/x", Some((true, 8443, "/x"))),
            ("http://10.1.0.8:8080/x", None),
            ("https://login.example/", None),
            ("//10.1.0.7/x", None),
            ("ftp://10.1.0.7/x", None),
            ("/a b", None),
        ] {
            let next = target.redirected(&HeaderValue::from_static(location), pod);
            let found = next
                .as_ref()
                .map(|next| (next.is_tls, next.port, next.path.as_str()));
            assert_eq!(found, expected, "{location}");
        }
    }
}
