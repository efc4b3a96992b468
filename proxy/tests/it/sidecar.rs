//! Sidecar with live sockets. A PROXY header replaces the kernel's capture: it carries the original destination.

mod app_health;
mod first_speaker;
mod headless;
mod http_proxy;
mod ingress_tls;
mod job;
mod load;
mod mutual_tls;
mod policy_changes;
mod rollouts;
mod scopes;
mod service_routes;
mod taps;
mod termination;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use hyper::Response;

use crate::support::mesh::documents;
use crate::support::origin::{Back, Origin, empty};
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::{Raw, Reply};
use crate::support::{DEADLINE, eventually};

/// Sidecar of a workload `app: web`, and the addresses of its listeners for captured connections.
pub struct Sidecar {
    pub proxy: Proxy,
    outbound: SocketAddr,
    inbound: SocketAddr,
}

impl Sidecar {
    pub fn start(arguments: &[&str], resources: impl IntoIterator<Item = String>) -> Self {
        let (outbound, inbound) = (free_address(), free_address());
        let proxy = Start::new()
            .args([
                "--mode",
                "sidecar",
                "--original-destination",
                "proxy-header",
            ])
            .args([
                "--labels",
                "app=web",
                "--outbound-listener",
                &outbound.to_string(),
            ])
            .args(["--inbound-listener", &inbound.to_string()])
            .args(arguments.iter().copied())
            .file("mesh.yaml", documents(resources))
            .start();
        Self {
            proxy,
            outbound,
            inbound,
        }
    }

    /// Opens a connection of the workload to `dialed`.
    pub fn leaves(&self, dialed: &str) -> Raw {
        captured(self.outbound, dialed)
    }

    /// Opens a connection to the workload that was made to `dialed`.
    pub fn arrives(&self, dialed: &str) -> Raw {
        captured(self.inbound, dialed)
    }
}

fn captured(at: SocketAddr, dialed: &str) -> Raw {
    let dialed: SocketAddr = dialed.parse().unwrap();
    let mut connection = Raw::connect(at);
    let (ip, port) = (dialed.ip(), dialed.port());
    connection.send(format!("PROXY TCP4 192.0.2.1 {ip} 4000 {port}\r\n"));
    connection
}

fn get(connection: &mut Raw, host: &str) -> Reply {
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
    connection.send(request).reply()
}

/// Returns a Service `name` in the namespace `default` with one port, served at `endpoint`.
pub fn service(name: &str, ip: &str, port: (&str, u16), endpoint: SocketAddr) -> String {
    let (port_name, number) = port;
    let (target_ip, target) = (endpoint.ip(), endpoint.port());
    documents([
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: default}}\nspec:\n  clusterIP: {ip}\n  \
             selector: {{app: {name}}}\n  ports: [{{name: {port_name}, port: {number}, targetPort: {target}}}]\n"
        ),
        format!(
            "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: {name}-1, namespace: default, labels: \
             {{kubernetes.io/service-name: {name}}}}}\naddressType: IPv4\nports: [{{name: {port_name}, port: {target}}}]\n\
             endpoints: [{{addresses: [{target_ip}]}}]\n"
        ),
    ])
}

/// Starts an upstream server that answers every request with 200.
fn answering() -> Origin {
    Origin::start(Back::H1, |_| async move { Response::new(empty()) })
}

/// Server that speaks first, once per connection.
struct Greeter {
    address: SocketAddr,
}

impl Greeter {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(mut client) = client else { return };
                std::thread::spawn(move || {
                    let _ = client.write_all(b"greeting\n");
                    let mut rest = [0; 64];
                    while let Ok(read @ 1..) = client.read(&mut rest) {
                        if client.write_all(&rest[..read]).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { address }
    }
}

fn read_line(stream: &mut TcpStream) -> String {
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut line = String::new();
    let mut byte = [0];
    while !line.ends_with('\n') && stream.read(&mut byte).unwrap() == 1 {
        line.push(char::from(byte[0]));
    }
    line
}

fn policy(mode: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {{name: s}}\nspec:\n  outboundTrafficPolicy: {{mode: {mode}}}\n"
    )
}

#[test]
fn requests_of_the_workload_go_by_host_and_those_of_nobody_where_they_were_sent() {
    let api = answering();
    let outside = answering();
    let sidecar = Sidecar::start(
        &[],
        [service("api", "10.96.0.1", ("http", 80), api.address)],
    );
    for host in [
        "api",
        "api.default",
        "api.default.svc.cluster.local",
        "10.96.0.1",
    ] {
        assert_eq!(
            get(&mut sidecar.leaves("10.96.0.1:80"), host).status,
            200,
            "{host}"
        );
    }
    assert_eq!(api.seen().len(), 4);
    // no service has the host: the address that was dialed has it, and never DNS
    let dialed = outside.address.to_string();
    let mut connection = sidecar.leaves(&dialed);
    assert_eq!(get(&mut connection, "outside.test").status, 200);
    assert_eq!(outside.seen()[0].host(), "outside.test");
    connection.finish();
    eventually("the end of the connection is logged", || {
        let logged = sidecar.proxy.access_log();
        let mut clusters = logged.iter().map(|line| &line["upstream_cluster"]);
        clusters.any(|cluster| cluster == "PassthroughCluster")
    });
}

#[test]
fn unknown_destinations_are_refused_under_registry_only() {
    let api = answering();
    let outside = answering();
    let resources = [
        service("api", "10.96.0.1", ("http", 80), api.address),
        policy("REGISTRY_ONLY"),
    ];
    let sidecar = Sidecar::start(&[], resources);
    assert_eq!(get(&mut sidecar.leaves("10.96.0.1:80"), "api").status, 200);
    let refused = get(&mut sidecar.leaves("10.96.0.1:80"), "outside.test");
    assert_eq!((refused.status, refused.body.len()), (502, 0));
    let call = "POST / HTTP/1.1\r\nHost: outside.test\r\nContent-Type: application/grpc\r\n\r\n";
    let refused = sidecar.leaves("10.96.0.1:80").send(call).reply();
    assert_eq!(refused.status, 200);
    assert!(refused.has("grpc-status: 14"), "{refused:?}");
    let mut connection = sidecar.leaves(&outside.address.to_string());
    assert!(
        connection
            .send("GET / HTTP/1.1\r\nHost: outside.test\r\n\r\n")
            .is_closed()
    );
    assert_eq!(outside.seen().len(), 0);
}

#[test]
fn host_of_a_virtual_service_is_served_on_the_ports_of_its_services() {
    let api = answering();
    let rules = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: api}\nspec:\n  \
        hosts: [api.default.svc.cluster.local, shop.test]\n  http:\n  - directResponse: {status: 204}\n";
    let resources = [
        service("api", "10.96.0.1", ("http", 8080), api.address),
        service("other", "10.96.0.2", ("http", 8081), api.address),
        rules.to_owned(),
        policy("REGISTRY_ONLY"),
    ];
    let sidecar = Sidecar::start(&[], resources);
    for (address, host, status) in [
        ("10.96.0.1:8080", "api", 204),
        ("10.96.0.1:8080", "shop.test", 204),
        ("10.96.0.3:80", "shop.test", 204),
        ("10.96.0.2:8081", "shop.test", 502),
        ("10.96.0.1:8080", "unknown.test", 502),
    ] {
        let reply = get(&mut sidecar.leaves(address), host);
        assert_eq!(reply.status, status, "{address} {host}");
    }
    assert_eq!(api.seen().len(), 0);
}

#[test]
fn server_that_speaks_first_is_heard_at_once_on_a_declared_port() {
    let db = Greeter::start();
    // so long that only a connection that is not looked into ends in time
    let slow = ["--protocol-detection-timeout", "1h"];
    let sidecar = Sidecar::start(
        &slow,
        [service("db", "10.96.0.2", ("tcp-db", 3306), db.address)],
    );
    let connection = sidecar.leaves("10.96.0.2:3306");
    let mut stream = connection.stream();
    assert_eq!(read_line(&mut stream), "greeting\n");
    stream.write_all(b"query\n").unwrap();
    assert_eq!(read_line(&mut stream), "query\n");
    // no service has this address: it is not looked into either
    let mut stream = sidecar.leaves(&db.address.to_string()).stream();
    assert_eq!(read_line(&mut stream), "greeting\n");
    let timeouts = "strait_protocol_detection_timeouts_total";
    assert_eq!(sidecar.proxy.metric(timeouts, &[]), 0.0);
}

#[test]
fn client_of_a_declared_address_may_be_silent_past_the_detection_timeout() {
    let (web, db) = (answering(), Greeter::start());
    let quick = ["--protocol-detection-timeout", "50ms"];
    let resources = [
        service("web", "10.96.0.1", ("http", 7000), web.address),
        service("db", "10.96.0.2", ("other", 7000), db.address),
    ];
    let sidecar = Sidecar::start(&quick, resources);
    let mut silent = sidecar.leaves("10.96.0.1:7000");
    // each greeting takes a timeout on the undeclared address of the same port
    for _ in 0..2 {
        let mut stream = sidecar.leaves("10.96.0.2:7000").stream();
        assert_eq!(read_line(&mut stream), "greeting\n");
    }
    let timeouts = "strait_protocol_detection_timeouts_total";
    assert_eq!(sidecar.proxy.metric(timeouts, &[]), 2.0);
    assert_eq!(get(&mut silent, "web").status, 200);
    assert_eq!(web.seen().len(), 1);
}

#[test]
fn server_that_speaks_first_on_an_undeclared_port_is_heard_after_the_timeout() {
    let db = Greeter::start();
    let quick = ["--protocol-detection-timeout", "50ms"];
    let sidecar = Sidecar::start(
        &quick,
        [service("db", "10.96.0.2", ("other", 7000), db.address)],
    );
    let mut stream = sidecar.leaves("10.96.0.2:7000").stream();
    assert_eq!(read_line(&mut stream), "greeting\n");
    let timeouts = "strait_protocol_detection_timeouts_total";
    assert_eq!(sidecar.proxy.metric(timeouts, &[]), 1.0);
    // a client that speaks needs no timeout: requests and bytes share the port
    let web = answering();
    sidecar.proxy.write(
        "web.yaml",
        service("web", "10.96.0.3", ("other", 7000), web.address),
    );
    eventually("the service is known", || {
        let mut connection = sidecar.leaves("10.96.0.3:7000");
        connection.send("GET / HTTP/1.1\r\nHost: web\r\n\r\n");
        let reply = connection.try_reply().ok().flatten();
        reply.is_some_and(|reply| reply.status == 200)
    });
}

#[test]
fn connections_that_were_not_captured_are_closed_and_counted() {
    let (outbound, inbound) = (free_address(), free_address());
    let proxy = Start::new()
        .args([
            "--mode",
            "sidecar",
            "--outbound-listener",
            &outbound.to_string(),
        ])
        .args(["--inbound-listener", &inbound.to_string()])
        .file("mesh.yaml", policy("ALLOW_ANY"))
        .start();
    for address in [outbound, inbound] {
        let mut direct = Raw::connect(address);
        assert!(
            direct
                .send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
                .is_closed()
        );
    }
    let reason = [("reason", "not_captured")];
    let rejected = proxy.metric("strait_downstream_connections_rejected_total", &reason);
    assert_eq!(rejected, 2.0);
}

#[test]
fn inbound_requests_reach_the_workload_and_are_reported_by_the_destination() {
    let web = answering();
    let sidecar = Sidecar::start(
        &[],
        [service("web", "10.96.0.3", ("http", 80), web.address)],
    );
    let dialed = web.address.to_string();
    assert_eq!(get(&mut sidecar.arrives(&dialed), "web").status, 200);
    assert_eq!(web.seen().len(), 1);
    let logged = sidecar.proxy.logged("/");
    assert_eq!(
        logged["upstream_cluster"],
        format!("inbound|{}||", web.address.port())
    );
    let labels = [
        ("reporter", "destination"),
        ("destination_service", "web.default.svc.cluster.local"),
    ];
    assert_eq!(sidecar.proxy.metric("istio_requests_total", &labels), 1.0);
    // a port that no service has passes, too
    let other = answering();
    let dialed = other.address.to_string();
    assert_eq!(get(&mut sidecar.arrives(&dialed), "web").status, 200);
    assert_eq!(other.seen().len(), 1);
}

#[test]
fn workload_sees_the_server_envoy_and_its_clients_istio_envoy() {
    let origin = Origin::start(Back::H1, |_| async move {
        let mut response = Response::new(empty());
        let server = "origin/1".parse().unwrap();
        response.headers_mut().insert("server", server);
        response
    });
    let resources = || {
        [
            service("web", "10.96.0.3", ("http", 80), origin.address),
            policy("REGISTRY_ONLY"),
        ]
    };
    let dialed = origin.address.to_string();
    for (flags, outbound, inbound) in [
        (&[][..], "envoy", "istio-envoy"),
        (&["--server-name", "mine"], "mine", "mine"),
        (&["--server-name", ""], "origin/1", "origin/1"),
    ] {
        let sidecar = Sidecar::start(flags, resources());
        let reply = get(&mut sidecar.leaves("10.96.0.3:80"), "web");
        assert!(reply.has(&format!("server: {outbound}")), "{reply:?}");
        let reply = get(&mut sidecar.arrives(&dialed), "web");
        assert!(reply.has(&format!("server: {inbound}")), "{reply:?}");
        if outbound != "origin/1" {
            let blocked = get(&mut sidecar.leaves("10.96.0.3:80"), "outside.test");
            assert!(blocked.has(&format!("server: {outbound}")), "{blocked:?}");
            let malformed = "GET / HTTP/1.1\r\nHost: web\r\nx y: 1\r\n\r\n";
            let refused = sidecar.leaves("10.96.0.3:80").send(malformed).reply();
            assert!(refused.has(&format!("server: {outbound}")), "{refused:?}");
        }
    }
}

#[test]
fn redirects_of_a_sidecar_have_the_scheme_that_the_workload_reports() {
    let api = answering();
    let rule = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: api, namespace: default}\n\
                spec: {hosts: [api], http: [{redirect: {uri: /new}}]}\n";
    let resources = [
        service("api", "10.96.0.1", ("http", 80), api.address),
        rule.to_owned(),
    ];
    let sidecar = Sidecar::start(&[], resources);
    for (lines, scheme) in [
        ("", "http"),
        ("X-Forwarded-Proto: https\r\n", "https"),
        ("X-Forwarded-Proto: HTTPS\r\n", "https"),
        ("X-Forwarded-Proto: ftp\r\n", "http"),
        (
            "X-Forwarded-Proto: https\r\nX-Forwarded-Proto: http\r\n",
            "http",
        ),
    ] {
        let request = format!("GET / HTTP/1.1\r\nHost: api\r\n{lines}\r\n");
        let reply = sidecar.leaves("10.96.0.1:80").send(request).reply();
        assert_eq!(reply.status, 301);
        let location = format!("location: {scheme}://api/new");
        assert!(reply.has(&location), "{lines:?} {reply:?}");
    }
}

#[test]
fn default_endpoint_takes_requests_to_its_port() {
    let app = answering();
    let ingress = format!(
        "apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {{name: s}}\nspec:\n  ingress:\n  - port: {{number: 8080, \
         protocol: HTTP, name: http}}\n    defaultEndpoint: {}\n",
        app.address
    );
    let sidecar = Sidecar::start(&[], [ingress]);
    assert_eq!(
        get(&mut sidecar.arrives("10.3.0.1:8080"), "web").status,
        200
    );
    assert_eq!(app.seen().len(), 1);
}
