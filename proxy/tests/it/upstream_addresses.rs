//! Endpoint names with several addresses, some of which accept no connections, and endpoints on Unix sockets.

use std::net::SocketAddr;
use std::path::Path;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;

use crate::support::client::{Client, Front, get, post};
use crate::support::mesh::{documents, gateway, routes, service};
use crate::support::origin::{Back, Local, Origin, full};
use crate::support::proxy::{Proxy, Start};
use crate::support::until;

fn all_to_web() -> String {
    routes(
        "all",
        "[\"*\"]",
        "- {route: [{destination: {host: web.test}}]}",
    )
}

/// Starts an origin on a single loopback address that closes each connection after its response.
fn on_one_address(ip: &str) -> Option<Origin> {
    let listener = std::net::TcpListener::bind((ip, 0)).ok()?;
    Some(Origin::start_on(listener, Back::H1, |_| async {
        let mut response = Response::new(full("hello"));
        let headers = response.headers_mut();
        headers.insert("connection", "close".parse().unwrap());
        response
    }))
}

/// Returns a ServiceEntry whose endpoint is `localhost` with the port of this address.
fn localhost(resolution: &str, address: SocketAddr) -> String {
    let address = SocketAddr::from(([127, 0, 0, 1], address.port()));
    service("web", Back::H1, &[(address, "v1")])
        .replace("resolution: STATIC", &format!("resolution: {resolution}"))
        .replace("address: 127.0.0.1", "address: localhost")
}

#[tokio::test]
async fn unreachable_address_family_fails_no_request() {
    for resolution in ["DNS", "DNS_ROUND_ROBIN"] {
        for origin in ["127.0.0.1", "::1"].into_iter().filter_map(on_one_address) {
            let entry = localhost(resolution, origin.address);
            let proxy = Proxy::with(|edge| documents([gateway(&[edge]), all_to_web(), entry]));
            let page = "/clusters";
            until("the name is resolved", async || {
                proxy
                    .page(page)
                    .contains(&origin.address.port().to_string())
            })
            .await;
            if !proxy.page(page).contains("[::1]") && origin.address.is_ipv6() {
                continue; // the name has one address here
            }
            let mut client = Client::connect(Front::H1, proxy.edge).await;
            for number in 0..8 {
                let path = format!("/{number}");
                assert_eq!(client.get(&path).await.text(), "hello", "{resolution}");
                let logged = proxy.logged(&path);
                let host = origin.address.to_string();
                assert_eq!(logged["upstream_host"], *host, "{resolution}");
            }
        }
    }
}

/// Answers on a Unix socket with the method, the path and the body, in a task of this thread.
fn on_socket(path: &Path, back: Back) {
    let listener = tokio::net::UnixListener::bind(path).unwrap();
    tokio::task::spawn_local(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let service = service_fn(async |request: Request<Incoming>| {
                let line = format!("{} {} ", request.method(), request.uri().path());
                let body = request.into_body().collect().await?.to_bytes();
                let text = [line.as_bytes(), &body].concat();
                Ok::<_, hyper::Error>(Response::new(full(text)))
            });
            let io = TokioIo::new(stream);
            tokio::task::spawn_local(async move {
                match back {
                    Back::H1 => drop(
                        hyper::server::conn::http1::Builder::new()
                            .serve_connection(io, service)
                            .await,
                    ),
                    Back::H2 => drop(
                        hyper::server::conn::http2::Builder::new(Local)
                            .serve_connection(io, service)
                            .await,
                    ),
                }
            });
        }
    });
}

fn socket_entry(address: &str, back: Back) -> String {
    let protocol = match back {
        Back::H1 => "HTTP",
        Back::H2 => "HTTP2",
    };
    format!(
        "\
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {{name: web}}
spec:
  hosts: [web.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports:
  - {{number: 80, name: web, protocol: {protocol}}}
  endpoints:
  - {{address: \"unix://{address}\", labels: {{version: v1}}}}
"
    )
}

async fn talk_to_socket(address: &str, back: Back) {
    let start = Start::new();
    let edge = start.edge();
    // What a route may say of the endpoint must not fail for want of an IP address.
    let rule = "\
- name: all
  headers: {request: {set: {x-upstream: \"%UPSTREAM_REMOTE_ADDRESS%\"}}}
  route: [{destination: {host: web.test}}]";
    let mesh = documents([
        gateway(&[edge]),
        routes("all", "[\"*\"]", rule),
        socket_entry(address, back),
    ]);
    let proxy = start.file("mesh.yaml", mesh).start();
    for front in [Front::H1, Front::H2] {
        let mut client = Client::connect(front, proxy.edge).await;
        for number in 0..3 {
            let path = format!("/{front:?}/{number}");
            let answer = client.call(post(&path, "body")).await;
            assert_eq!(answer.text(), format!("POST {path} body"));
            assert_eq!(client.call(get(&path)).await.text(), format!("GET {path} "));
            let logged = proxy.logged(&path);
            assert_eq!(logged["response_flags"], "-");
            assert_eq!(logged["upstream_host"], address);
            assert!(logged["upstream_local_address"].is_null(), "{logged}");
        }
    }
    assert!(proxy.page("/clusters").contains(address));
}

#[tokio::test]
async fn endpoints_on_unix_sockets_serve_requests() {
    let directory = tempfile::tempdir().unwrap();
    tokio::task::LocalSet::new()
        .run_until(async {
            for back in [Back::H1, Back::H2] {
                let path = directory.path().join(format!("{back:?}.sock"));
                on_socket(&path, back);
                talk_to_socket(path.to_str().unwrap(), back).await;
            }
        })
        .await;
}

#[tokio::test]
async fn missing_unix_socket_is_a_connection_failure() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("missing.sock");
    let proxy = Proxy::with(|edge| {
        let entry = socket_entry(path.to_str().unwrap(), Back::H1);
        documents([gateway(&[edge]), all_to_web(), entry])
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let answer = client.get("/missing").await;
    assert_eq!(answer.status, 503);
    let logged = proxy.logged("/missing");
    assert_eq!(logged["response_flags"], "UF,URX");
    assert_eq!(logged["upstream_host"], path.to_str().unwrap());
}
