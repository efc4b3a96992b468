//! The demo's backends: small echo servers that say who they are and what they were asked, in HTTP/1.1 and HTTP/2.
//!
//! A gRPC call is answered with status 0. The first try of a request whose path ends in `flaky` fails.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use crate::exchange::message::headers::X_ENVOY_ATTEMPT_COUNT;
use crate::filter::timeout::is_grpc;

/// How a client begins that knows that we speak HTTP/2 (RFC 9113, section 3.4); no other request begins so.
const PREFACE: &[u8] = b"PRI * HTTP/2.0";

/// Starts a backend on a thread of its own; it runs until the process ends.
///
/// # Errors
///
/// When the address cannot be listened on.
pub fn spawn(name: Arc<str>, address: SocketAddr) -> io::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    std::thread::Builder::new()
        .name(format!("demo-{name}"))
        .spawn(move || {
            tokio::task::LocalSet::new().block_on(&runtime, serve(listener, name));
        })?;
    Ok(address)
}

async fn serve(listener: std::net::TcpListener, name: Arc<str>) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // out of descriptors: let connections end before the next try
            tokio::task::yield_now().await;
            continue;
        };
        let name = Arc::clone(&name);
        tokio::task::spawn_local(async move {
            let service = service_fn(move |request| {
                std::future::ready(Ok::<_, Infallible>(echo(&name, &request)))
            });
            // a client that goes away is not our business
            if speaks_http2(&stream).await {
                let serve =
                    http2::Builder::new(Local).serve_connection(TokioIo::new(stream), service);
                let _ = serve.await;
            } else {
                let serve = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                let _ = serve.await;
            }
        });
    }
}

/// Looks at the first bytes and leaves them where they are. A client that sends the preface in pieces gets HTTP/1.
async fn speaks_http2(stream: &TcpStream) -> bool {
    let mut first = [0; PREFACE.len()];
    let peeked = stream.peek(&mut first).await;
    peeked.is_ok_and(|_| first == *PREFACE)
}

/// Spawns on the thread's own local set.
#[derive(Clone, Copy)]
struct Local;

impl<F: Future + 'static> hyper::rt::Executor<F> for Local {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(async move { drop(future.await) });
    }
}

type EchoBody = UnsyncBoxBody<Bytes, Infallible>;

/// The answer to a gRPC call: no message, and status 0 in trailers.
fn grpc_echo() -> Response<EchoBody> {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    let body = Full::new(Bytes::new());
    let body = body.with_trailers(std::future::ready(Some(Ok(trailers))));
    let mut response = Response::new(body.boxed_unsync());
    let grpc = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert(CONTENT_TYPE, grpc);
    response
}

fn echo(name: &str, request: &Request<Incoming>) -> Response<EchoBody> {
    let mut response = if is_grpc(request.headers()) {
        grpc_echo()
    } else {
        text_echo(name, request)
    };
    if let Ok(name) = HeaderValue::from_str(name) {
        response.headers_mut().insert("x-backend", name);
    }
    response
}

fn text_echo(name: &str, request: &Request<Incoming>) -> Response<EchoBody> {
    let host = request
        .headers()
        .get(HOST)
        .map_or("-", |host| host.to_str().unwrap_or("-"));
    let first_try = request
        .headers()
        .get(X_ENVOY_ATTEMPT_COUNT)
        .is_none_or(|count| count == "1");
    let fails = first_try && request.uri().path().ends_with("flaky");
    let says = if fails {
        format!("{name} fails the first try")
    } else {
        format!("hello from {name}")
    };
    let path = request
        .uri()
        .path_and_query()
        .map_or("/", |path| path.as_str());
    let text = format!("{says}: {} {path} for {host}\n", request.method());
    let mut response = Response::new(Full::new(Bytes::from(text)).boxed_unsync());
    if fails {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}
