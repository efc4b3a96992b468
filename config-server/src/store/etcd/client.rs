//! Connections to the members of an etcd cluster, and calls that fail over to another member.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use grpc_client::{self as grpc, ClientTlsFiles};
use http::Uri;
use http::uri::PathAndQuery;
use prost::Message;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tonic::client::Grpc;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

/// Timeout of a call to one member.
const CALL_MAX: Duration = Duration::from_secs(5);
/// Total timeout of a call, over all members.
const CALL_TOTAL_MAX: Duration = Duration::from_secs(15);
/// Delay after every member has failed.
const PAUSE: Duration = Duration::from_millis(100);
/// Maximum size of a response, in bytes. Pages of large objects are large.
const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// Connection settings of etcd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EtcdSettings {
    /// Client URLs of the members.
    pub urls: Vec<String>,
    /// CA of the members' certificates; required for `https`.
    pub ca: Option<PathBuf>,
    /// Client certificate.
    pub certificate: Option<PathBuf>,
    /// Private key of the client certificate.
    pub key: Option<PathBuf>,
    /// Prefix of all keys, without a trailing `/`.
    pub prefix: String,
}

/// Client of an etcd cluster.
#[derive(Clone, Debug)]
pub(super) struct Client {
    members: Arc<[Channel]>,
    /// Index of the member that answered last.
    current: Arc<AtomicUsize>,
}

/// Result of a call.
#[derive(Debug)]
pub(super) struct Called<T> {
    /// Response of the member.
    pub response: T,
    /// Whether the call was sent more than once, in which case an earlier attempt may have succeeded as well.
    pub is_repeated: bool,
}

impl Client {
    /// Returns a client of the members, without connecting.
    ///
    /// # Errors
    /// If a URL is invalid or a file cannot be read.
    pub(super) fn new(settings: &EtcdSettings) -> Result<Client, String> {
        let urls = settings.urls.iter();
        let needs_tls = urls.clone().any(|url| url.starts_with("https://"));
        let tls = match needs_tls {
            true => Some(tls(settings)?),
            false => None,
        };
        let members: Result<Vec<Channel>, String> =
            urls.map(|url| channel(url, tls.as_ref())).collect();
        let members = members?;
        if members.is_empty() {
            return Err("no URL of etcd is given".to_owned());
        }
        Ok(Client {
            members: members.into(),
            current: Arc::default(),
        })
    }

    /// Calls a method, and fails over to the next member while members are unreachable.
    ///
    /// # Errors
    /// If etcd rejects the call, or if no member was reached in time.
    pub(super) async fn call<Q, R>(
        &self,
        path: &'static str,
        message: &Q,
    ) -> Result<Called<R>, Status>
    where
        Q: Message + Clone + 'static,
        R: Message + Default + 'static,
    {
        let deadline = Instant::now() + CALL_TOTAL_MAX;
        let mut attempts = 0;
        loop {
            let at = self.current.load(Ordering::Relaxed);
            let call = self.call_one(at, path, message.clone());
            let outcome = timeout(CALL_MAX, call).await;
            let outcome =
                outcome.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer in time")));
            attempts += 1;
            match outcome {
                Ok(response) => {
                    return Ok(Called {
                        response,
                        is_repeated: attempts > 1,
                    });
                }
                Err(status) if !may_repeat(&status) || Instant::now() > deadline => {
                    return Err(status);
                }
                Err(_) => self.fail_over(at),
            }
            if attempts % self.members.len() == 0 {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn call_one<Q, R>(&self, at: usize, path: &'static str, message: Q) -> Result<R, Status>
    where
        Q: Message + 'static,
        R: Message + Default + 'static,
    {
        let mut grpc = self.grpc(at).await?;
        let path = PathAndQuery::from_static(path);
        let response = grpc
            .unary(request(message), path, ProstCodec::<Q, R>::default())
            .await?;
        Ok(response.into_inner())
    }

    /// Opens a bidirectional stream to the current member.
    ///
    /// # Errors
    /// If the member is unreachable. The next stream uses another member.
    pub(super) async fn stream<Q, R>(
        &self,
        path: &'static str,
        messages: impl futures_util::Stream<Item = Q> + Send + 'static,
    ) -> Result<Streaming<R>, Status>
    where
        Q: Message + 'static,
        R: Message + Default + 'static,
    {
        let at = self.current.load(Ordering::Relaxed);
        let open = async {
            let mut grpc = self.grpc(at).await?;
            let path = PathAndQuery::from_static(path);
            let codec = ProstCodec::<Q, R>::default();
            grpc.streaming(request(messages), path, codec).await
        };
        match timeout(CALL_MAX, open).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => {
                self.fail_over(at);
                Err(status)
            }
            Err(_) => {
                self.fail_over(at);
                Err(Status::deadline_exceeded("no answer in time"))
            }
        }
    }

    /// Fails over to the next member after a stream broke.
    pub(super) fn leave(&self) {
        self.fail_over(self.current.load(Ordering::Relaxed));
    }

    async fn grpc(&self, at: usize) -> Result<Grpc<Channel>, Status> {
        let channel = self.members[at % self.members.len()].clone();
        let mut grpc = Grpc::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let unavailable = |error: tonic::transport::Error| Status::unavailable(error.to_string());
        grpc.ready().await.map_err(unavailable)?;
        Ok(grpc)
    }

    /// Makes the next member the current one, unless another call has done so.
    fn fail_over(&self, from: usize) {
        let next = (from + 1) % self.members.len();
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        // A concurrent call chose the same member.
        let _ = self.current.compare_exchange(from, next, success, failure);
    }
}

fn request<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    // A member without a leader rejects the call instead of waiting, so that another member is tried.
    let value = MetadataValue::from_static("true");
    request.metadata_mut().insert("hasleader", value);
    request
}

fn may_repeat(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Aborted
            | Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Internal
            | Code::Unavailable
            | Code::Unknown
    )
}

fn channel(url: &str, tls: Option<&TlsConnector>) -> Result<Channel, String> {
    let wrong = |why: &str| format!("the etcd URL {url:?} {why}: write https://HOST:PORT");
    let full = match url.contains("://") {
        true => url.to_owned(),
        false => format!("http://{url}"),
    };
    let uri: Uri = full.parse().map_err(|_| wrong("is not a URL"))?;
    let host = uri.host().ok_or_else(|| wrong("names no host"))?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let tls = match (uri.scheme_str(), tls) {
        (Some("http"), _) => None,
        (Some("https"), Some(tls)) => Some(tls),
        _ => return Err(wrong("is neither http nor https")),
    };
    grpc::channel(host, uri.port_u16().unwrap_or(2379), tls).map_err(|_| wrong("names no host"))
}

/// Returns the TLS connector for etcd.
fn tls(settings: &EtcdSettings) -> Result<TlsConnector, String> {
    let files = ClientTlsFiles {
        ca: settings.ca.clone(),
        certificate: settings.certificate.clone(),
        key: settings.key.clone(),
    };
    grpc::client_tls(
        &files,
        "https to etcd needs the CA that issued its certificate: add --etcd-ca FILE",
    )
}
