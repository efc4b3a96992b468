//! Health pages and metrics of the roles, over plain HTTP.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use super::review::Injector;
use super::secret::Served;
use super::serve::text;
use crate::identities::KeysInUse;
use crate::metrics::Metrics;
use crate::mirror::MirrorStore;
use crate::proxies::Proxies;
use crate::store::Store;

/// Maximum number of connections at once.
const CONNECTIONS_MAX: usize = 64;
/// Maximum life of a connection.
const CONNECTION_MAX: Duration = Duration::from_secs(30);

/// Parts that readiness depends on, and the metrics.
#[derive(Clone, Debug)]
pub(crate) struct Ready {
    pub(crate) certificate: watch::Receiver<Option<Served>>,
    pub(crate) is_stopping: watch::Receiver<bool>,
    /// Injector, and whether the configurations of the webhook have the CA; `None` without the role.
    pub(crate) webhook: Option<(Arc<Injector>, watch::Receiver<bool>)>,
    /// Hub; `None` without the role.
    pub(crate) hub: Option<Arc<Hub>>,
}

/// Part of the hub that the pages show.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) mirror: Arc<MirrorStore>,
    pub(crate) proxies: Arc<Proxies>,
    pub(crate) metrics: Arc<Metrics>,
    /// Keys of the CA of workloads; `None` without the role.
    pub(crate) keys: Option<KeysInUse>,
}

impl Ready {
    /// Returns what the server still waits for; `None` if it is ready.
    async fn waits_for(&self) -> Option<&'static str> {
        if *self.is_stopping.borrow() {
            return Some("the server is stopping");
        }
        if self.certificate.borrow().is_none() {
            return Some("no certificate yet: see the log about the Secret strait-webhook");
        }
        let hub = self.hub.as_ref();
        if hub.is_some_and(|hub| !*hub.mirror.is_complete().borrow()) {
            return Some("the objects of the API server are not listed yet: see the log");
        }
        let keys = hub.and_then(|hub| hub.keys.as_ref());
        if keys.is_some_and(|keys| keys.borrow().is_none()) {
            return Some("the CA has no keys yet: see the log about the Secret strait-ca");
        }
        let (injector, is_bundled) = self.webhook.as_ref()?;
        if !injector.is_ready().await {
            return Some("the namespaces are not listed yet");
        }
        let is_bundled = *is_bundled.borrow();
        (!is_bundled).then_some("no configuration of the webhook has the CA yet")
    }

    fn metrics(&self) -> String {
        let injections = self
            .webhook
            .as_ref()
            .map(|(injector, _)| injector.metrics());
        let hub = self.hub.as_ref().map(|hub| {
            let revision = hub.mirror.history().latest();
            hub.metrics.text(&hub.proxies, revision)
        });
        injections.into_iter().chain(hub).collect()
    }
}

/// Serves until the task is dropped.
pub(crate) async fn serve(listener: TcpListener, ready: Ready) {
    let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    while let Ok(permit) = Arc::clone(&free).acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let ready = ready.clone();
        let service = service_fn(move |request| {
            let ready = ready.clone();
            async move { Ok::<_, Infallible>(answer(&request, &ready).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move {
            let _ = tokio::time::timeout(CONNECTION_MAX, connection).await;
            drop(permit);
        });
    }
}

async fn answer(request: &Request<Incoming>, ready: &Ready) -> Response<Full<Bytes>> {
    match request.uri().path() {
        "/healthz/live" => text(StatusCode::OK, "live"),
        "/healthz/ready" => match ready.waits_for().await {
            None => text(StatusCode::OK, "ready"),
            Some(reason) => text(StatusCode::SERVICE_UNAVAILABLE, reason),
        },
        "/metrics" => Response::new(Full::from(ready.metrics())),
        _ => text(
            StatusCode::NOT_FOUND,
            "pages: /healthz/live /healthz/ready /metrics",
        ),
    }
}
