//! Echo server that responds with its identity and the request, in HTTP/1.1 and HTTP/2.
//!
//! A gRPC call gets status 0. The first attempt of a request whose path ends in `flaky` fails, and `/status/CODE`
//! responds with that status.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use super::Workload;
use crate::exchange::message::headers::X_ENVOY_ATTEMPT_COUNT;
use crate::runtime::drain;
use traffic::filter::timeout::is_grpc;

/// Connection preface of a client with prior knowledge of HTTP/2 (RFC 9113, section 3.4); no HTTP/1 request begins with
/// it.
const PREFACE: &[u8] = b"PRI * HTTP/2.0";

/// Pause after a failed accept.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Starts a backend on a thread of its own; it runs until the process ends.
///
/// # Errors
///
/// Fails when the address cannot be listened on.
pub fn spawn(workload: Workload, address: SocketAddr) -> io::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    // only the end of the process ends it
    let (_, drain) = drain::pair();
    std::thread::Builder::new()
        .name(format!("demo-{workload}"))
        .spawn(move || {
            let serve = serve(listener, Arc::new(workload), drain);
            tokio::task::LocalSet::new().block_on(&runtime, serve);
        })?;
    Ok(address)
}

/// Serves until a drain begins; connections then finish their requests.
pub(super) async fn serve(
    listener: std::net::TcpListener,
    workload: Arc<Workload>,
    drain: drain::Watch,
) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = drain.soft() => return,
        };
        let Ok((stream, _)) = accepted else {
            // out of descriptors: let connections end before the next attempt
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (workload, drain) = (Arc::clone(&workload), drain.clone());
        tokio::task::spawn_local(async move { connection(stream, workload, drain).await });
    }
}

/// Serves one connection. Errors are ignored: only the client is affected.
async fn connection(stream: TcpStream, workload: Arc<Workload>, drain: drain::Watch) {
    let _running = drain.running();
    let service = service_fn(move |request| {
        std::future::ready(Ok::<_, Infallible>(echo(&workload, &request)))
    });
    let http2 = tokio::select! {
        http2 = speaks_http2(&stream) => http2,
        () = drain.soft() => return,
    };
    let io = TokioIo::new(stream);
    if http2 {
        let mut serve = pin!(http2::Builder::new(Local).serve_connection(io, service));
        tokio::select! {
            _ = serve.as_mut() => return,
            () = drain.soft() => serve.as_mut().graceful_shutdown(),
        }
        let _ = serve.await;
    } else {
        let mut serve = pin!(http1::Builder::new().serve_connection(io, service));
        tokio::select! {
            _ = serve.as_mut() => return,
            () = drain.soft() => serve.as_mut().graceful_shutdown(),
        }
        let _ = serve.await;
    }
}

/// Peeks at the first bytes. A client that sends the preface in pieces gets HTTP/1.
async fn speaks_http2(stream: &TcpStream) -> bool {
    let mut first = [0; PREFACE.len()];
    let peeked = stream.peek(&mut first).await;
    peeked.is_ok_and(|_| first == *PREFACE)
}

/// Executor that spawns on the thread's own local set.
#[derive(Clone, Copy)]
struct Local;

impl<F: Future + 'static> hyper::rt::Executor<F> for Local {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(async move { drop(future.await) });
    }
}

type EchoBody = UnsyncBoxBody<Bytes, Infallible>;

/// Response to a gRPC call: no message, and status 0 in trailers.
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

fn echo(workload: &Workload, request: &Request<Incoming>) -> Response<EchoBody> {
    let mut response = if is_grpc(request.headers()) {
        grpc_echo()
    } else {
        http_echo(workload, request)
    };
    if let Ok(name) = HeaderValue::from_str(&workload.to_string()) {
        response.headers_mut().insert("x-backend", name);
    }
    response
}

fn http_echo(workload: &Workload, request: &Request<Incoming>) -> Response<EchoBody> {
    let first_try = request
        .headers()
        .get(X_ENVOY_ATTEMPT_COUNT)
        .is_none_or(|count| count == "1");
    let path = request.uri().path();
    let status = match path.strip_prefix("/status/") {
        _ if first_try && path.ends_with("flaky") => StatusCode::SERVICE_UNAVAILABLE,
        Some(code) => code.parse().unwrap_or(StatusCode::NOT_FOUND),
        None => StatusCode::OK,
    };
    let accepts = request.headers().get(ACCEPT);
    let is_json = accepts.is_some_and(|accepts| accepts == JSON);
    let (kind, text) = match is_json {
        true => (JSON, json(workload, request)),
        false => ("text/plain", text(workload, request, status)),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)).boxed_unsync());
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

const JSON: &str = "application/json";

fn host(request: &Request<Incoming>) -> &str {
    let authority = request
        .uri()
        .authority()
        .map(|authority| authority.as_str());
    let header = request.headers().get(HOST);
    let header = header.and_then(|host| host.to_str().ok());
    header.or(authority).unwrap_or("-")
}

fn path(request: &Request<Incoming>) -> &str {
    let path = request.uri().path_and_query();
    path.map_or("/", |path| path.as_str())
}

fn text(workload: &Workload, request: &Request<Incoming>, status: StatusCode) -> String {
    let says = match status {
        StatusCode::OK => format!("hello from {workload}"),
        _ if path(request).ends_with("flaky") => format!("{workload} fails the first try"),
        status => format!("{workload} responds {}", status.as_u16()),
    };
    let (method, path, host) = (request.method(), path(request), host(request));
    format!("{says}: {method} {path} for {host}\n")
}

fn json(workload: &Workload, request: &Request<Incoming>) -> String {
    let headers = request.headers().iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes());
        (name.as_str().to_owned(), value.into_owned().into())
    });
    let headers: serde_json::Map<String, serde_json::Value> = headers.collect();
    let Workload {
        cluster,
        service,
        version,
    } = workload;
    let json = serde_json::json!({
        "cluster": cluster,
        "service": service,
        "version": version,
        "method": request.method().as_str(),
        "path": path(request),
        "host": host(request),
        "protocol": format!("{:?}", request.version()),
        "headers": headers,
    });
    json.to_string() + "\n"
}
