//! Health pages and metrics of the webhook server, over plain HTTP.

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

/// Maximum number of connections at once.
const CONNECTIONS_MAX: usize = 64;
/// Maximum life of a connection.
const CONNECTION_MAX: Duration = Duration::from_secs(30);

/// Conditions of readiness.
#[derive(Clone, Debug)]
pub(super) struct Ready {
    pub(super) injector: Arc<Injector>,
    pub(super) certificate: watch::Receiver<Option<Served>>,
    pub(super) is_bundled: watch::Receiver<bool>,
    pub(super) is_stopping: watch::Receiver<bool>,
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
        if !self.injector.is_ready().await {
            return Some("the namespaces are not listed yet");
        }
        let is_bundled = *self.is_bundled.borrow();
        (!is_bundled).then_some("no configuration of the webhook has the CA yet")
    }
}

/// Serves until the task is dropped.
pub(super) async fn serve(listener: TcpListener, ready: Ready) {
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
        "/metrics" => Response::new(Full::from(ready.injector.metrics())),
        _ => text(
            StatusCode::NOT_FOUND,
            "pages: /healthz/live /healthz/ready /metrics",
        ),
    }
}
