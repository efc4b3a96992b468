//! One fetch of a key set over HTTP/1.1, with or without TLS. Redirects are not followed.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CACHE_CONTROL, HOST, HeaderMap, HeaderValue};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use ipnet::IpNet;
use jwt::{KEYS_BYTES_MAX, Keys};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::control::certificates::root_store;
use crate::exchange::Worker;
use crate::exchange::service_call::{ServiceCall, head};
use crate::jwks::RemoteKeys;
use crate::snapshot::SnapshotSlot;
use crate::upstream::Client;
use traffic::claims::{Claim, Claims};

/// Time after which keys are fetched again, unless the server says another one within [`RENEWAL_RANGE`].
const RENEWAL: Duration = Duration::from_secs(300);
const RENEWAL_RANGE: (u64, u64) = (60, 86_400);

/// Maximum time of a call; that of a fetch is shorter.
const CALL_MAX: Duration = Duration::from_secs(60);

/// Settings of fetching key sets.
#[derive(Clone, Debug)]
pub struct KeySetSettings {
    /// File of authorities for servers of key sets; `None` for those of the operating system.
    pub authorities: Option<PathBuf>,
    /// Addresses that are never connected to.
    pub blocked: Vec<IpNet>,
    /// Maximum time that the start waits for the first fetch of each key set.
    pub ready_timeout: Duration,
}

/// Client of the servers of key sets.
pub(super) struct Fetcher {
    tls: TlsConnector,
    blocked: Vec<IpNet>,
    slot: SnapshotSlot,
    make_worker: MakeWorker,
}

/// Makes a worker without listeners, whose connections go to known services. It is dropped after each call: its snapshot would
/// keep certificates in use.
pub type MakeWorker = Box<dyn Fn() -> Rc<Worker>>;

trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

impl Fetcher {
    pub(super) fn new(
        settings: &KeySetSettings,
        slot: &SnapshotSlot,
        make_worker: MakeWorker,
    ) -> Result<Self, String> {
        let roots = root_store(settings.authorities.as_deref())?;
        let config = ClientConfig::builder_with_provider(Arc::new(
            rustls::crypto::aws_lc_rs::default_provider(),
        ))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
        Ok(Self {
            tls: TlsConnector::from(Arc::new(config)),
            blocked: settings.blocked.clone(),
            slot: Arc::clone(slot),
            make_worker,
        })
    }

    /// Fetches keys, with the time after which to fetch them again.
    pub(super) async fn keys(&self, wanted: &RemoteKeys) -> Result<(Keys, Duration), String> {
        let mut url = wanted.url.to_string();
        if wanted.is_discovery {
            let (_, body) = self.get(&url).await?;
            let configuration =
                Claims::parse(&body).map_err(|error| format!("OpenID configuration: {error}"))?;
            let named = configuration.get("jwks_uri").and_then(Claim::text);
            let named = named
                .ok_or("the OpenID configuration has no `jwks_uri`")?
                .to_owned();
            if url.starts_with("https:") && !named.starts_with("https:") {
                return Err(format!(
                    "the OpenID configuration names `{named}`, which is not https"
                ));
            }
            url = named;
        }
        let (headers, body) = self.get(&url).await?;
        let keys = Keys::parse(&body).map_err(|error| error.to_string())?;
        Ok((keys, renewal(&headers)))
    }

    async fn get(&self, url: &str) -> Result<(HeaderMap, Bytes), String> {
        let uri: Uri = url.parse().map_err(|_| format!("`{url}` is not a URL"))?;
        if let Some(answer) = self.get_from_service(url, &uri).await {
            return answer;
        }
        let authority = uri
            .authority()
            .ok_or_else(|| format!("`{url}` has no host"))?
            .clone();
        let stream = self.connect(&uri, authority.host()).await?;
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(64 << 10)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let request = Request::get(target)
            .header(HOST, authority.as_str())
            .header(ACCEPT, "application/json")
            .body(Empty::<Bytes>::new())
            .map_err(|error| error.to_string())?;
        let fetch = async {
            let response = sender
                .send_request(request)
                .await
                .map_err(|error| error.to_string())?;
            if response.status() != 200 {
                return Err(format!("`{url}` answered {}", response.status()));
            }
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, KEYS_BYTES_MAX).collect().await;
            let body = body.map_err(|error| format!("`{url}`: {error}"))?;
            Ok((parts.headers, body.to_bytes()))
        };
        // the connection is driven until the response is read, and dropped with it
        tokio::pin!(connection);
        tokio::pin!(fetch);
        let mut is_open = true;
        loop {
            tokio::select! {
                fetched = &mut fetch => return fetched,
                _ = &mut connection, if is_open => is_open = false,
            }
        }
    }

    /// Asks a known service, whose DestinationRule applies; `None` for another host.
    async fn get_from_service(
        &self,
        url: &str,
        uri: &Uri,
    ) -> Option<Result<(HeaderMap, Bytes), String>> {
        self.slot.load().key_set_service(url)?;
        let worker = (self.make_worker)();
        let snapshot = worker.snapshot();
        let service = snapshot.key_set_service(url)?;
        let target = uri.path_and_query().cloned();
        let target = target.unwrap_or_else(|| PathAndQuery::from_static("/"));
        let mut parts = head(Method::GET, Uri::from(target));
        let json = HeaderValue::from_static("application/json");
        parts.headers.insert(ACCEPT, json);
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let call = ServiceCall {
            worker: &worker,
            snapshot: &snapshot,
            service,
            client: Client {
                source: nowhere,
                destination: nowhere,
            },
            timeout: CALL_MAX,
            needs_tls: false,
            record: None,
        };
        let response = call.whole(parts, Bytes::new(), None).await;
        let response = response.and_then(|response| {
            let (status, headers) = (response.head.status, response.head.headers);
            Ok((status, headers, response.body?))
        });
        Some(match response {
            Ok((StatusCode::OK, headers, body)) => Ok((headers, body)),
            Ok((status, ..)) => Err(format!("`{url}` answered {status}")),
            Err(error) => Err(format!("`{url}`: {error}")),
        })
    }

    async fn connect(&self, uri: &Uri, host: &str) -> Result<Box<dyn Io>, String> {
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(format!("`{uri}` is no http or https URL")),
        };
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let addresses = tokio::net::lookup_host((bare, port))
            .await
            .map_err(|error| format!("`{host}`: {error}"))?;
        let stream = self
            .connect_first(addresses)
            .await
            .map_err(|error| format!("`{host}`: {error}"))?;
        if !is_tls {
            return Ok(Box::new(stream));
        }
        let name = ServerName::try_from(bare.to_owned())
            .map_err(|_| format!("`{host}` is no host name"))?;
        let stream = self
            .tls
            .connect(name, stream)
            .await
            .map_err(|error| format!("`{host}`: {error}"))?;
        Ok(Box::new(stream))
    }

    async fn connect_first(
        &self,
        addresses: impl Iterator<Item = SocketAddr>,
    ) -> io::Result<TcpStream> {
        let mut last = io::Error::other("no address");
        for address in addresses {
            let ip = address.ip().to_canonical();
            if self.blocked.iter().any(|block| block.contains(&ip)) {
                last = io::Error::other(format!("address {ip} is blocked (--jwks-blocked)"));
                continue;
            }
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// Returns the time after which to fetch keys again.
fn renewal(headers: &HeaderMap) -> Duration {
    let directives = headers
        .get_all(CACHE_CONTROL)
        .into_iter()
        .filter_map(|line| line.to_str().ok());
    let mut directives = directives.flat_map(|line| line.split(','));
    let age = directives.find_map(|one| one.trim().strip_prefix("max-age=")?.parse::<u64>().ok());
    age.map_or(RENEWAL, |age| {
        Duration::from_secs(age.clamp(RENEWAL_RANGE.0, RENEWAL_RANGE.1))
    })
}
