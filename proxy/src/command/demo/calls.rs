//! Control API of the demo: stops and starts clusters, and reports the counts of requests.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::net::TcpListener;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;

use super::clusters::Clusters;
use crate::command::load::Counts;

/// Serves the API on a thread of its own, until the process ends.
///
/// # Errors
///
/// Fails when the thread cannot be started.
pub(super) fn spawn(
    listener: TcpListener,
    clusters: Arc<Clusters>,
    counts: Counts,
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot answer the demo's calls: {error}");
    listener.set_nonblocking(true).map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(failed)?;
    let serve = async move {
        let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
            return;
        };
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::task::yield_now().await;
                continue;
            };
            let answer = service_fn(|request| {
                let response = answer(&clusters, &counts, &request);
                std::future::ready(Ok::<_, Infallible>(response))
            });
            // one after another: calls are short, and a second stop of a cluster waits for the first
            let connection = http1::Builder::new()
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), answer);
            let _ = connection.await;
        }
    };
    std::thread::Builder::new()
        .name("demo-calls".to_owned())
        .spawn(move || runtime.block_on(serve))
        .map_err(failed)?;
    Ok(())
}

fn answer(
    clusters: &Clusters,
    counts: &Counts,
    request: &Request<Incoming>,
) -> Response<Full<Bytes>> {
    let (status, text) = called(clusters, counts, request.method(), request.uri().path());
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

fn called(
    clusters: &Clusters,
    counts: &Counts,
    method: &Method,
    path: &str,
) -> (StatusCode, String) {
    let words: Vec<&str> = path.trim_matches('/').split('/').collect();
    match (method.as_str(), &*words) {
        ("GET", ["demo", "clusters"]) => (StatusCode::OK, states(clusters)),
        ("GET", ["demo", "requests"]) => (StatusCode::OK, counts.text()),
        ("POST", ["demo", "clusters", name, "stop"]) => done(clusters, clusters.stop_one(name)),
        ("POST", ["demo", "clusters", name, "start"]) => done(clusters, clusters.start_one(name)),
        _ => (StatusCode::NOT_FOUND, USAGE.to_owned()),
    }
}

const USAGE: &str = "\
GET  /demo/clusters               which clusters run
POST /demo/clusters/NAME/stop     stops one
POST /demo/clusters/NAME/start    starts it again
GET  /demo/requests               the demo's own requests so far, by who answered
";

fn done(clusters: &Clusters, result: Result<(), String>) -> (StatusCode, String) {
    match result {
        Ok(()) => (StatusCode::OK, states(clusters)),
        Err(error) => (StatusCode::NOT_FOUND, format!("{error}\n")),
    }
}

fn states(clusters: &Clusters) -> String {
    let mut text = String::new();
    for (name, runs) in clusters.states() {
        let _ = writeln!(text, "{name} {}", if runs { "runs" } else { "stopped" });
    }
    text
}
