//! Endpoint changes while a request is in flight: each attempt picks among the current endpoints, and a pending connect
//! to a removed endpoint moves to another one.

mod simulation;

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use hyper::Response;
use tokio::sync::Notify;

use crate::support::mesh::{documents, gateway, routes, service};
use crate::support::origin::{Back, Origin, RawOrigin, Unreachable, full, read_head};
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::{GET, Raw, Reply};
use crate::support::{DEADLINE, eventually};

/// Connect timeout, so long that a test that waits for it fails.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// Returns a DestinationRule with this traffic policy in addition to a connect timeout.
fn rule(name: &str, policy: &str) -> String {
    let time = CONNECT_TIMEOUT.as_secs();
    format!(
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: {name}}}\nspec:\n  host: {name}.test\n  \
         trafficPolicy: {{connectionPool: {{tcp: {{connectTimeout: {time}s}}}}{policy}}}\n"
    )
}

/// Starts a proxy with these route settings in front of `web` with these endpoints.
fn proxy(back: Back, settings: &str, policy: &str, endpoints: &[SocketAddr]) -> Proxy {
    let start = Start::new();
    let route = format!("- {{{settings}route: [{{destination: {{host: web.test}}}}]}}");
    let mesh = documents([
        gateway(&[start.edge()]),
        routes("all", "['*']", &route),
        rule("web", policy),
    ]);
    start
        .file("mesh.yaml", mesh)
        .file("web.yaml", web(back, endpoints))
        .start()
}

fn web(back: Back, endpoints: &[SocketAddr]) -> String {
    let endpoints: Vec<_> = endpoints.iter().map(|at| (*at, "v1")).collect();
    service("web", back, &endpoints)
}

/// Replaces the endpoints of `web`, and waits until the change is in effect.
fn replace(proxy: &Proxy, back: Back, endpoints: &[SocketAddr]) {
    proxy.write("web.yaml", web(back, endpoints));
    let last = endpoints.last().unwrap().to_string();
    eventually("the endpoint is in use", || {
        proxy.page("/clusters").contains(&last)
    });
}

/// Waits until this number of requests is active at an endpoint.
fn active(proxy: &Proxy, at: SocketAddr, requests: usize) {
    let fact = format!("{at}::rq_active::{requests}\n");
    eventually("requests are at the endpoint", || {
        proxy.page("/clusters").contains(&fact)
    });
}

fn moved(proxy: &Proxy) -> f64 {
    proxy.metric("strait_upstream_connects_moved_total", &[])
}

fn retries(proxy: &Proxy) -> f64 {
    proxy.metric("strait_upstream_retries_total", &[])
}

/// Asserts that a reply is from the origin with this name, after one attempt whose connect moved once.
fn assert_moved(proxy: &Proxy, reply: &Reply, name: &str) {
    let body = String::from_utf8_lossy(&reply.body);
    assert_eq!((reply.status, &*body), (200, name));
    assert_eq!((moved(proxy), retries(proxy)), (1.0, 0.0));
    let line = proxy.logged("/");
    assert_eq!(line["upstream_request_attempt_count"], 1, "{line}");
    assert_eq!(line["response_flags"], "-", "{line}");
}

#[test]
fn pending_connect_moves_when_its_endpoints_are_replaced() {
    for back in [Back::H1, Back::H2] {
        let silent = [(); 3].map(|()| Unreachable::new());
        let silent = silent.each_ref().map(|one| one.address);
        let good = Origin::named(back, "good");
        let proxy = proxy(back, "", "", &silent);
        let mut client = Raw::connect(proxy.edge);
        let begun = Instant::now();
        client.send(GET);
        eventually("the request is at an endpoint", || {
            proxy.page("/clusters").contains("::rq_active::1\n")
        });
        replace(&proxy, back, &[good.address]);
        assert_moved(&proxy, &client.reply(), "good");
        assert!(begun.elapsed() < CONNECT_TIMEOUT);
        let seen = good.only();
        assert_eq!(seen.header("x-envoy-attempt-count"), Some("1"));
    }
}

#[test]
fn request_with_a_streaming_body_moves_with_its_pending_connect() {
    let silent = Unreachable::new();
    let good = Origin::named(Back::H1, "good");
    let proxy = proxy(Back::H1, "retries: {attempts: 0}, ", "", &[silent.address]);
    let mut client = Raw::connect(proxy.edge);
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\nbo");
    active(&proxy, silent.address, 1);
    replace(&proxy, Back::H1, &[good.address]);
    client.send("dy");
    assert_moved(&proxy, &client.reply(), "good");
}

#[test]
fn pending_connect_without_another_endpoint_stays() {
    let mut late = Unreachable::listening();
    late.fill();
    let proxy = proxy(Back::H1, "", "", &[late.address]);
    let mut client = Raw::connect(proxy.edge);
    client.send(GET);
    active(&proxy, late.address, 1);
    // no endpoint is left, but the one that has left may still take the connection
    proxy.write("web.yaml", web(Back::H1, &[]));
    let gone = format!("{}::", late.address);
    eventually("the endpoint has left", || {
        !proxy.page("/clusters").contains(&gone)
    });
    late.empty();
    let mut from_proxy = loop {
        let mut stream = late.accept();
        if !read_head(&mut stream).is_empty() {
            break stream;
        }
    };
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate";
    from_proxy.write_all(response.as_bytes()).unwrap();
    assert_eq!(client.reply().body, b"late");
    assert_eq!(moved(&proxy), 0.0);
}

/// Starts an origin that answers 503 when the test permits it.
fn failing(gate: &Arc<Notify>) -> Origin {
    let gate = Arc::clone(gate);
    Origin::start(Back::H1, move |_| {
        let gate = Arc::clone(&gate);
        async move {
            gate.notified().await;
            let response = Response::builder().status(503);
            response.body(full("failing")).unwrap()
        }
    })
}

const RETRIES: &str = "retries: {attempts: 2, retryOn: '503', backoff: 1ms}, ";

#[test]
fn retry_goes_to_an_endpoint_that_came_after_the_request() {
    let gate = Arc::new(Notify::new());
    let (failing, good) = (failing(&gate), Origin::named(Back::H1, "good"));
    let proxy = proxy(Back::H1, RETRIES, "", &[failing.address]);
    let mut client = Raw::connect(proxy.edge);
    client.send(GET);
    active(&proxy, failing.address, 1);
    replace(&proxy, Back::H1, &[good.address]);
    gate.notify_one();
    let reply = client.reply();
    assert_eq!((reply.status, &*reply.body), (200, &b"good"[..]));
    assert_eq!((moved(&proxy), retries(&proxy)), (0.0, 1.0));
    assert_eq!(failing.seen().len(), 1);
}

#[test]
fn retry_of_a_removed_service_finds_no_healthy_upstream() {
    let gate = Arc::new(Notify::new());
    let failing = failing(&gate);
    let proxy = proxy(Back::H1, RETRIES, "", &[failing.address]);
    let mut client = Raw::connect(proxy.edge);
    client.send(GET);
    active(&proxy, failing.address, 1);
    proxy.remove("web.yaml");
    let gone = format!("{}::", failing.address);
    eventually("the service has left", || {
        !proxy.page("/clusters").contains(&gone)
    });
    gate.notify_one();
    assert_eq!(client.reply().status, 503);
    assert_eq!(failing.seen().len(), 1);
    assert_eq!(proxy.logged("/")["response_flags"], "UH");
}

#[test]
fn pending_connect_moves_when_its_endpoint_is_ejected() {
    let mut bad = Unreachable::listening();
    let good = Origin::named(Back::H1, "good");
    let outliers = ", outlierDetection: {consecutive5xxErrors: 1, baseEjectionTime: 300s, \
                    maxEjectionPercent: 100}";
    let proxy = proxy(
        Back::H1,
        "retries: {attempts: 0}, ",
        outliers,
        &[bad.address],
    );
    let mut first = Raw::connect(proxy.edge);
    first.send(GET.replace("GET /", "GET /first"));
    let mut established = bad.accept();
    read_head(&mut established);
    bad.fill();
    let mut second = Raw::connect(proxy.edge);
    second.send(GET);
    active(&proxy, bad.address, 2);
    replace(&proxy, Back::H1, &[bad.address, good.address]);
    assert_eq!(moved(&proxy), 0.0);
    let response = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n";
    established.write_all(response.as_bytes()).unwrap();
    assert_eq!(first.reply().status, 500);
    assert_moved(&proxy, &second.reply(), "good");
    // what was given up is no failure of either endpoint
    let ejections = proxy.metric("strait_outlier_ejections_total", &[]);
    assert_eq!(ejections, 1.0);
}

/// Answers health checks with a status, on this port of the address.
fn checked(ip: IpAddr, port: u16, status: &Arc<AtomicU16>) -> Origin {
    let status = Arc::clone(status);
    let listener = TcpListener::bind((ip, port)).unwrap();
    Origin::start_on(listener, Back::H1, move |_| {
        let response = Response::builder().status(status.load(Ordering::Relaxed));
        let response = response.body(full("checked")).unwrap();
        async move { response }
    })
}

#[test]
fn pending_connect_moves_when_its_endpoint_becomes_unhealthy() {
    let silent = Unreachable::new();
    let (ill, well) = (Arc::new(AtomicU16::new(200)), Arc::new(AtomicU16::new(200)));
    let checks = checked(silent.address.ip(), 0, &ill);
    let port = checks.address.port();
    let good = TcpListener::bind(crate::support::proxy::free_address()).unwrap();
    let good = Origin::start_on(good, Back::H1, |_| async { Response::new(full("good")) });
    let _checks_of_good = checked(good.address.ip(), port, &well);
    let annotated = |endpoints: &[SocketAddr]| {
        let annotations = format!(
            "{{name: web, annotations: {{strait.io/health-check: http, strait.io/health-check-port: '{port}', \
             strait.io/health-check-interval: 100ms, strait.io/health-check-unhealthy-threshold: '2'}}}}"
        );
        web(Back::H1, endpoints).replace("{name: web}", &annotations)
    };
    let proxy = proxy(Back::H1, "", "", &[silent.address]);
    proxy.write("web.yaml", annotated(&[silent.address]));
    eventually("the endpoint is healthy", || {
        proxy
            .page("/clusters")
            .contains("last_health_check::passed")
    });
    let mut client = Raw::connect(proxy.edge);
    client.send(GET);
    active(&proxy, silent.address, 1);
    proxy.write("web.yaml", annotated(&[silent.address, good.address]));
    eventually("both endpoints are healthy", || {
        let page = proxy.page("/clusters");
        page.matches("last_health_check::passed").count() == 2
    });
    assert_eq!(moved(&proxy), 0.0);
    ill.store(503, Ordering::Relaxed);
    assert_moved(&proxy, &client.reply(), "good");
}

#[test]
fn pending_raw_connection_moves_when_its_endpoint_is_replaced() {
    let silent = [(); 2].map(|()| Unreachable::new());
    let silent = silent.each_ref().map(|one| one.address);
    let good = RawOrigin::start(|_, mut stream| {
        let mut bytes = [0; 4];
        stream.read_exact(&mut bytes).unwrap();
        stream.write_all(&bytes).unwrap();
    });
    let start = Start::new();
    let (ip, port) = (start.edge().ip(), start.edge().port());
    let mesh = documents([
        format!(
            "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{name: tcp}}\nspec:\n  servers:\n  \
             - {{port: {{number: {port}, name: tcp, protocol: TCP}}, bind: {ip}, hosts: ['*']}}\n"
        ),
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: tcp}\nspec:\n  \
         hosts: ['*']\n  gateways: [tcp]\n  tcp:\n  - route: [{destination: {host: web.test}}]\n"
            .to_owned(),
        rule("web", ""),
    ]);
    let raw = |endpoints: &[_]| web(Back::H1, endpoints).replace("HTTP", "TCP");
    let start = start.file("mesh.yaml", mesh);
    let proxy = start.file("web.yaml", raw(&silent)).start();
    let mut client = TcpStream::connect(proxy.edge).unwrap();
    client.set_read_timeout(Some(DEADLINE)).unwrap();
    eventually("the connection is at an endpoint", || {
        proxy.page("/clusters").contains("::rq_active::1\n")
    });
    proxy.write("web.yaml", raw(&[good.address]));
    client.write_all(b"echo").unwrap();
    let mut bytes = [0; 4];
    client.read_exact(&mut bytes).unwrap();
    assert_eq!((&bytes, moved(&proxy)), (b"echo", 1.0));
    drop(client);
    eventually("the connection is logged", || {
        !proxy.access_log().is_empty()
    });
    let line = &proxy.access_log()[0];
    assert_eq!(line["response_flags"], "-", "{line}");
    assert_eq!(line["upstream_host"], good.address.to_string(), "{line}");
}

#[test]
fn pending_mirror_moves_when_its_endpoint_is_replaced() {
    let silent = Unreachable::new();
    let (good, shadow) = (
        Origin::named(Back::H1, "good"),
        Origin::named(Back::H1, "shadow"),
    );
    let mirror = "mirror: {host: shadow.test}, ";
    let proxy = proxy(Back::H1, mirror, "", &[good.address]);
    let shadows = |at| {
        documents([
            service("shadow", Back::H1, &[(at, "v1")]),
            rule("shadow", ""),
        ])
    };
    proxy.write("shadow.yaml", shadows(silent.address));
    let known = silent.address.to_string();
    eventually("the mirror is known", || {
        proxy.page("/clusters").contains(&known)
    });
    assert_eq!(Raw::connect(proxy.edge).send(GET).reply().status, 200);
    active(&proxy, silent.address, 1);
    proxy.write("shadow.yaml", shadows(shadow.address));
    eventually("the copy is answered", || {
        let completed = [("result", "completed")];
        proxy.metric("strait_mirror_requests_total", &completed) == 1.0
    });
    assert_eq!((shadow.seen().len(), moved(&proxy)), (1, 1.0));
}
