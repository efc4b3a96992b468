//! What a Sidecar says about its workload: what it reaches, by which listeners, and what may reach it.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;

use super::{Sidecar, answering, get, service};
use crate::support::DEADLINE;
use crate::support::proxy::free_address;
use crate::support::raw::Raw;

/// A Sidecar of the namespace `default` with this spec, in YAML's flow style.
fn resource(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {{name: {name}}}\nspec: {spec}\n"
    )
}

/// A ServiceEntry for a host, served at `endpoint`.
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
