//! Sidecar resource: reachable services, listeners, and inbound traffic of its workload.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;

use super::{Greeter, Sidecar, answering, get, read_line, service};
use crate::support::DEADLINE;
use crate::support::proxy::free_address;
use crate::support::raw::Raw;

/// Returns a Sidecar of the namespace `default` with this spec, in flow style.
fn resource(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {{name: {name}}}\nspec: {spec}\n"
    )
}

/// Returns a ServiceEntry for a host, served at `endpoint`.
fn entry(name: &str, endpoint: SocketAddr) -> String {
    let (ip, port) = (endpoint.ip(), endpoint.port());
    format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: {name}}}\nspec:\n  hosts: [{name}.test]\n  \
         resolution: STATIC\n  ports: [{{number: 80, name: http, protocol: HTTP}}]\n  endpoints: [{{address: {ip}, ports: {{http: \
         {port}}}}}]\n"
    )
}

const REGISTRY_ONLY: &str = "outboundTrafficPolicy: {mode: REGISTRY_ONLY}";

#[test]
fn sidecar_of_the_workload_decides_which_hosts_it_reaches() {
    let (seen, hidden) = (answering(), answering());
    let own = format!(
        "{{workloadSelector: {{labels: {{app: web}}}}, {REGISTRY_ONLY}, egress: [{{hosts: ['./seen.test']}}]}}"
    );
    let of_all = format!("{{{REGISTRY_ONLY}, egress: [{{hosts: ['./hidden.test']}}]}}");
    let other =
        "{workloadSelector: {labels: {app: other}}, outboundTrafficPolicy: {mode: ALLOW_ANY}}";
    let sidecar = Sidecar::start(
        &[],
        [
            entry("seen", seen.address),
            entry("hidden", hidden.address),
            resource("web", &own),
            resource("all", &of_all),
            resource("a-other", other),
        ],
    );
    let status = |host: &str| get(&mut sidecar.leaves("192.0.2.7:80"), host).status;
    assert_eq!(status("seen.test"), 200);
    assert_eq!(status("hidden.test"), 502);
    assert_eq!((seen.seen().len(), hidden.seen().len()), (1, 0));
}

#[test]
fn egress_listeners_without_capture_are_dialed_by_the_workload() {
    let api = answering();
    let (ip, number) = (free_address().ip(), free_address().port());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("egress.sock");
    let service = service("api", "10.96.0.1", ("http", number), api.address);
    let spec = format!(
        "{{{REGISTRY_ONLY}, egress: [{{port: {{number: {number}, protocol: HTTP, name: http}}, bind: {ip}, captureMode: NONE, hosts: \
         ['./*']}}, {{port: {{number: 0, protocol: HTTP, name: local}}, bind: 'unix://{}', captureMode: NONE, hosts: ['./*']}}]}}",
        path.display()
    );
    let _sidecar = Sidecar::start(&[], [service, resource("s", &spec)]);
    let mut dialed = Raw::connect(SocketAddr::new(ip, number));
    assert_eq!(get(&mut dialed, "api").status, 200);
    assert_eq!(get(&mut dialed, "nobody.test").status, 502);
    let mut local = UnixStream::connect(&path).unwrap();
    local.set_read_timeout(Some(DEADLINE)).unwrap();
    local
        .write_all(b"GET / HTTP/1.1\r\nHost: api.default\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut response = String::new();
    local.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    assert_eq!(api.seen().len(), 2);
}

#[test]
fn egress_proxy_takes_requests_for_unknown_hosts() {
    let (api, gateway) = (answering(), answering());
    let spec = "{outboundTrafficPolicy: {mode: ALLOW_ANY, egressProxy: {host: gateway.test, port: {number: 80}}}}";
    let sidecar = Sidecar::start(
        &[],
        [
            service("api", "10.96.0.1", ("http", 80), api.address),
            entry("gateway", gateway.address),
            resource("s", spec),
        ],
    );
    assert_eq!(get(&mut sidecar.leaves("10.96.0.1:80"), "api").status, 200);
    assert_eq!(
        get(&mut sidecar.leaves("192.0.2.7:80"), "outside.test").status,
        200
    );
    // bytes for an unknown port go there, too
    assert_eq!(
        get(&mut sidecar.leaves("192.0.2.7:8081"), "bytes.test").status,
        200
    );
    let hosts: Vec<String> = gateway
        .seen()
        .iter()
        .map(|seen| seen.host().to_owned())
        .collect();
    assert_eq!(hosts, ["outside.test", "bytes.test"]);
}

#[test]
fn egress_proxy_can_be_a_subset_of_its_service() {
    let (old, new) = (answering(), answering());
    let endpoints = [("v1", old.address), ("v2", new.address)].map(|(version, address)| {
        let (ip, port) = (address.ip(), address.port());
        format!("{{address: {ip}, ports: {{http: {port}}}, labels: {{version: {version}}}}}")
    });
    let gateway = format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: gateway}}\nspec:\n  hosts: [gateway.test]\n  \
         resolution: STATIC\n  ports: [{{number: 80, name: http, protocol: HTTP}}]\n  endpoints: [{}]\n",
        endpoints.join(", ")
    );
    let rule = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: gateway}\nspec:\n  host: gateway.test\n  \
                subsets: [{name: new, labels: {version: v2}}]\n";
    let spec = "{outboundTrafficPolicy: {mode: ALLOW_ANY, egressProxy: {host: gateway.test, subset: new, port: {number: 80}}}}";
    let resources = [gateway, rule.to_owned(), resource("s", spec)];
    let sidecar = Sidecar::start(&[], resources);
    for _ in 0..4 {
        let reply = get(&mut sidecar.leaves("192.0.2.7:80"), "outside.test");
        assert_eq!(reply.status, 200);
    }
    assert_eq!((old.seen().len(), new.seen().len()), (0, 4));
}

/// The protocol of the Sidecar takes precedence over that of the service: the greeting of a server-first protocol is
/// forwarded immediately although the service declares HTTP, and a service that declares TCP is found by its host.
#[test]
fn egress_listeners_carry_the_protocol_that_they_declare() {
    let (db, api) = (Greeter::start(), answering());
    // so long that only a connection that is not looked into ends in time
    let slow = ["--protocol-detection-timeout", "1h"];
    let (dialed, captured) = (free_address(), "10.96.0.3:3307");
    let listeners = format!(
        "{{port: {{number: {}, protocol: MYSQL, name: dialed}}, bind: {}, captureMode: NONE, hosts: ['./*']}}, \
         {{port: {{number: 3307, protocol: MYSQL, name: captured}}, hosts: ['./*']}}, \
         {{port: {{number: 8082, protocol: HTTP, name: api}}, hosts: ['./*']}}",
        dialed.port(),
        dialed.ip()
    );
    let spec = format!("{{{REGISTRY_ONLY}, egress: [{listeners}]}}");
    let resources = [
        service("db", "10.96.0.2", ("http", dialed.port()), db.address),
        service("captured", "10.96.0.3", ("http", 3307), db.address),
        service("api", "10.96.0.4", ("tcp", 8082), api.address),
        resource("s", &spec),
    ];
    let sidecar = Sidecar::start(&slow, resources);
    let mut stream = Raw::connect(dialed).stream();
    assert_eq!(read_line(&mut stream), "greeting\n");
    let mut stream = sidecar.leaves(captured).stream();
    assert_eq!(read_line(&mut stream), "greeting\n");
    let status = |host: &str| get(&mut sidecar.leaves("10.96.0.4:8082"), host).status;
    assert_eq!((status("api"), status("nobody.test")), (200, 502));
}

#[test]
fn limits_of_connections_to_the_workload_hold() {
    const ONCE: &str = "{http: {maxRequestsPerConnection: 1}}";
    for (own, connections) in [
        (String::new(), 1),
        (format!("inboundConnectionPool: {ONCE}, "), 2),
    ] {
        let app = answering();
        let spec = format!("{{{own}{REGISTRY_ONLY}}}");
        let resources = [
            service("web", "10.96.0.1", ("http", 80), app.address),
            resource("s", &spec),
        ];
        let sidecar = Sidecar::start(&[], resources);
        let mut connection = sidecar.arrives(&app.address.to_string());
        for _ in 0..2 {
            assert_eq!(get(&mut connection, "web").status, 200);
        }
        assert_eq!(app.connections(), connections, "{own}");
    }
    let app = answering();
    let spec = format!(
        "{{ingress: [{{port: {{number: 8080, protocol: HTTP, name: http}}, defaultEndpoint: '{}', connectionPool: {ONCE}}}]}}",
        app.address
    );
    let sidecar = Sidecar::start(&[], [resource("s", &spec)]);
    let mut connection = sidecar.arrives("10.3.0.1:8080");
    for _ in 0..2 {
        assert_eq!(get(&mut connection, "web").status, 200);
    }
    assert_eq!(app.connections(), 2);
}
