//! HTTPS server of the webhook, within limits.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use super::review::{Injector, Question};
use crate::connections::{PATIENCE, accept, handshake, http};

/// Maximum size of a body, in bytes.
const BODY_BYTES_MAX: usize = 8 << 20;
/// Maximum number of reviews at once.
const REVIEWS_MAX: usize = 256;
/// Maximum number of connections at once.
const CONNECTIONS_MAX: usize = 1_024;
/// Time for requests in flight to finish at the end.
const STOPS_AFTER: Duration = Duration::from_secs(10);

/// Serves until `closing` is true, and then finishes the requests in flight. `config` is asked for each connection.
///
/// Connections that are open when `leaving` becomes true end with their requests in flight, so that the API server connects to
/// another replica; connections that are opened later stay until `closing`.
pub(super) async fn serve(
    listener: TcpListener,
    config: impl Fn() -> Option<Arc<ServerConfig>>,
    injector: Arc<Injector>,
    leaving: watch::Receiver<bool>,
    mut closing: watch::Receiver<bool>,
) {
    let reviews = Arc::new(Semaphore::new(REVIEWS_MAX));
    let is_closing = closing.clone();
    let closes = async {
        let _ = closing.wait_for(|is_closing| *is_closing).await;
    };
    // without a certificate the connection is closed
    let mut connections = accept(listener, CONNECTIONS_MAX, closes, |stream, _| {
        let (injector, reviews) = (Arc::clone(&injector), Arc::clone(&reviews));
        let acceptor = TlsAcceptor::from(config()?);
        let ends = match *leaving.borrow() {
            true => is_closing.clone(),
            false => leaving.clone(),
        };
        Some(connection(stream, acceptor, injector, reviews, ends))
    })
    .await;
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(STOPS_AFTER, all).await;
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    injector: Arc<Injector>,
    reviews: Arc<Semaphore>,
    mut ends: watch::Receiver<bool>,
) {
    let Some(stream) = handshake(acceptor, stream).await else {
        return;
    };
    let service = service_fn(move |request| {
        let (injector, reviews) = (Arc::clone(&injector), Arc::clone(&reviews));
        async move { Ok::<_, Infallible>(answer(request, &injector, &reviews).await) }
    });
    let http = http();
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = ends.wait_for(|is_ending| *is_ending) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

type Reply = Response<Full<Bytes>>;

async fn answer(request: Request<Incoming>, injector: &Injector, reviews: &Semaphore) -> Reply {
    let (head, body) = request.into_parts();
    let Some(question) = Question::of(head.uri.path()) else {
        return text(
            StatusCode::NOT_FOUND,
            "the webhooks are at /inject and /validate",
        );
    };
    if head.method != Method::POST {
        let mut reply = text(StatusCode::METHOD_NOT_ALLOWED, "send a POST");
        reply
            .headers_mut()
            .insert(ALLOW, http::HeaderValue::from_static("POST"));
        return reply;
    }
    let media = head
        .headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let media = media
        .and_then(|media| media.split(';').next())
        .unwrap_or_default();
    if !media.trim().eq_ignore_ascii_case("application/json") {
        return text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send application/json");
    }
    let Ok(_permit) = reviews.try_acquire() else {
        let mut reply = text(StatusCode::TOO_MANY_REQUESTS, "too many reviews at once");
        reply
            .headers_mut()
            .insert(RETRY_AFTER, http::HeaderValue::from_static("1"));
        return reply;
    };
    let body = Limited::new(body, BODY_BYTES_MAX).collect();
    let body = match tokio::time::timeout(PATIENCE, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            return text(
                StatusCode::PAYLOAD_TOO_LARGE,
                "the body has more than 8 MiB",
            );
        }
        Ok(Err(_)) => return text(StatusCode::BAD_REQUEST, "the body is incomplete"),
        Err(_) => {
            return text(
                StatusCode::REQUEST_TIMEOUT,
                "the body did not arrive in time",
            );
        }
    };
    match injector.answer(&body, question).await {
        Ok(review) => {
            let mut reply = Response::new(Full::from(review.to_string()));
            let json = http::HeaderValue::from_static("application/json");
            reply.headers_mut().insert(CONTENT_TYPE, json);
            reply
        }
        Err(error) => text(StatusCode::BAD_REQUEST, &error),
    }
}

/// Makes a reply of one line.
pub(super) fn text(status: StatusCode, line: &str) -> Reply {
    let mut reply = Response::new(Full::from(format!("{line}\n")));
    *reply.status_mut() = status;
    reply
}
