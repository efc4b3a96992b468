//! Kubelet probes that the sidecar answers in place of the workload's containers.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use hyper::{Response, StatusCode};
use socket2::{Domain, Socket, Type};

use crate::health_checks::grpc_origin;
use crate::support::origin::{Back, Origin, full};
use crate::support::pki::Authority;
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::{Raw, Reply};
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};

/// Returns an address on 127.0.0.1 for the health server. The containers listen there as well, since the proxy probes
/// the address at which it was probed.
///
/// The socket reserves the port, while a listener can still bind it.
fn health_address() -> (Socket, SocketAddr) {
    let reserved = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    reserved.set_reuse_address(true).unwrap();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    reserved.bind(&any.into()).unwrap();
    let address = reserved.local_addr().unwrap().as_socket().unwrap();
    (reserved, address)
}

/// Starts a proxy with these probers, and returns it with its health server.
fn start(json: &str) -> (Proxy, SocketAddr) {
    started(|start| start.args(["--app-probers", json]))
}

fn started(with: impl FnOnce(Start) -> Start) -> (Proxy, SocketAddr) {
    let (_reserved, health) = health_address();
    let start = Start::new().args(["--allow-empty", "--health", &health.to_string()]);
    (with(start).start(), health)
}

fn probe(health: SocketAddr, path: &str, headers: &str) -> Reply {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {health}\r\n{headers}\r\n");
    Raw::connect(health).send(request).reply()
}

fn body(reply: &Reply) -> &str {
    std::str::from_utf8(&reply.body).unwrap()
}

/// Starts a container that answers by path.
fn container() -> Origin {
    Origin::start(Back::H1, |request| async move {
        let (status, location, body) = match request.uri().path() {
            "/live" => (200, None, "alive".to_owned()),
            "/broken" => (503, None, "no database".to_owned()),
            "/moved" => (302, Some("/live"), String::new()),
            "/login" => (302, Some("https://login.example/"), String::new()),
            "/nowhere" => (302, None, "no location".to_owned()),
            "/circle" => (302, Some("/circle"), String::new()),
            "/long" => (200, None, "x".repeat(100_000)),
            "/hangs" => std::future::pending().await,
            _ => (404, None, String::new()),
        };
        let mut response = Response::new(full(body));
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        if let Some(location) = location {
            response
                .headers_mut()
                .insert("location", location.parse().unwrap());
        }
        response
    })
}

fn http(paths: &[&str], port: u16) -> String {
    let probers = paths.iter().map(|path| {
        format!(
            r#""/app-health{path}/livez": {{"httpGet": {{"path": "{path}", "port": {port}}}, "timeoutSeconds": 1}}"#
        )
    });
    format!("{{{}}}", probers.collect::<Vec<_>>().join(", "))
}

#[test]
fn http_probes_are_answered_as_the_container_answers() {
    let web = container();
    let paths = [
        "/live", "/broken", "/moved", "/login", "/circle", "/long", "/hangs", "/nowhere",
    ];
    let (proxy, health) = start(&http(&paths, web.address.port()));
    for (path, status, text) in [
        ("/live", 200, "alive"),
        ("/broken", 503, "no database"),
        ("/moved", 200, "alive"),
        ("/login", 200, "redirects to another host"),
        ("/nowhere", 302, "no location"),
        ("/circle", 500, "10 redirects"),
        ("/long", 200, "xxx"),
        ("/hangs", 500, "no answer within 1s"),
    ] {
        let reply = probe(health, &format!("/app-health{path}/livez"), "");
        assert_eq!(reply.status, status, "{path}");
        assert!(body(&reply).contains(text), "{path}: {}", body(&reply));
        assert!(body(&reply).len() <= 10 << 10, "{path}");
    }
    // the admin server asks at its own address, where no container listens
    let (status, why) = proxy.try_page("GET", "/app-health/live/livez").unwrap();
    assert_eq!(status, 500, "the admin server as well");
    assert!(why.contains("cannot connect"), "{why}");
    let index = proxy.page("/");
    assert!(index.contains("href=\"/app-health/live/livez\""), "{index}");
    let asked = web.seen().len();
    assert_eq!(probe(health, "/app-health/live/readyz", "").status, 404);
    assert_eq!(probe(health, "/app-health/other/livez", "").status, 404);
    assert_eq!(web.seen().len(), asked, "nothing else is asked");
}

#[test]
fn container_sees_the_headers_of_its_probe_and_its_own_port() {
    let web = container();
    let (_proxy, health) = start(&http(&["/live"], web.address.port()));
    let headers = "User-Agent: kube-probe/1.34\r\nx-probe: yes\r\nConnection: keep-alive\r\n";
    assert_eq!(probe(health, "/app-health/live/livez", headers).status, 200);
    let seen = web.only();
    assert_eq!(seen.header("user-agent"), Some("kube-probe/1.34"));
    assert_eq!(seen.header("x-probe"), Some("yes"));
    assert_eq!(seen.header("connection"), Some("close"));
    assert_eq!(seen.header("host"), Some(&*web.address.to_string()));
}

#[test]
fn tcp_probe_passes_while_the_port_is_open() {
    let open = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = open.local_addr().unwrap().port();
    let json = format!(r#"{{"/app-health/db/readyz": {{"tcpSocket": {{"port": {port}}}}}}}"#);
    let (_proxy, health) = start(&json);
    assert_eq!(probe(health, "/app-health/db/readyz", "").status, 200);
    drop(open);
    let reply = probe(health, "/app-health/db/readyz", "");
    assert_eq!(reply.status, 500);
    assert!(body(&reply).contains("cannot connect"), "{}", body(&reply));
}

#[test]
fn istios_variable_is_read_and_a_mistake_in_it_is_reported() {
    let web = container();
    let json = http(&["/live"], web.address.port());
    let (_proxy, health) = started(|start| start.env("ISTIO_KUBE_APP_PROBERS", &json));
    assert_eq!(probe(health, "/app-health/live/livez", "").status, 200);
    let mut wrong = Start::new()
        .args(["--allow-empty", "--app-probers"])
        .args([r#"{"/app-health/web/livez": {}}"#])
        .spawn();
    assert_eq!(wrong.wait().code(), Some(2));
    let log = wrong.stderr();
    assert!(
        log.contains("/app-health/web/livez: expected one of"),
        "{log}"
    );
}

#[test]
fn https_probe_does_not_verify_the_certificate() {
    let pair = Authority::new("unknown").server(&["other.example"]);
    let web = TlsOrigin::start(Speaks::H1, &Terms::new(&pair));
    let port = web.address.port();
    let json = format!(
        r#"{{"/app-health/web/livez": {{"httpGet": {{"path": "/", "port": {port}, "scheme": "HTTPS"}}}}}}"#
    );
    let (_proxy, health) = start(&json);
    assert_eq!(probe(health, "/app-health/web/livez", "").status, 200);
}

#[test]
fn grpc_probe_asks_the_health_service() {
    let serving = Arc::new(AtomicU16::new(1));
    let api = grpc_origin("api", &serving);
    let port = api.address.port();
    let prober = |service: &str| {
        format!(
            r#""/app-health/{service}/readyz": {{"grpc": {{"port": {port}, "service": "{service}"}}}}"#
        )
    };
    let (_proxy, health) = start(&format!("{{{}, {}}}", prober("pkg.S"), prober("other")));
    let ask = |service: &str| probe(health, &format!("/app-health/{service}/readyz"), "");
    assert_eq!(ask("pkg.S").status, 200);
    let unknown = ask("other");
    assert_eq!(unknown.status, 500);
    assert_eq!(body(&unknown), "unknown service\n");
    serving.store(2, Ordering::Relaxed);
    assert_eq!(body(&ask("pkg.S")), "NOT_SERVING\n");
}
