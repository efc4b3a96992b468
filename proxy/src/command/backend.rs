//! The demo's backends: small echo servers that say who they are and what they were asked.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

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
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

fn echo(name: &str, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let host = request
        .headers()
        .get(HOST)
        .map_or("-", |host| host.to_str().unwrap_or("-"));
    let text = format!(
        "hello from {name}: {} {} for {host}\n",
        request.method(),
        request.uri()
    );
    let mut response = Response::new(Full::new(Bytes::from(text)));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    if let Ok(name) = HeaderValue::from_str(name) {
        response.headers_mut().insert("x-backend", name);
    }
    response
}
