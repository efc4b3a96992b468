//! HTTPRoutes whose parent is a Service, in a sidecar.

use std::net::SocketAddr;
use std::process::Command;

use hyper::Request;

use super::{Sidecar, service};
use crate::support::client::{Client, Front};
use crate::support::eventually;
use crate::support::mesh::documents;
use crate::support::origin::{Back, Origin, empty};
use crate::support::proxy::free_address;
use crate::support::raw::{Raw, Reply};

/// Returns an HTTPRoute with this parent (fields after the name of the Service) and these rules.
fn route(id: &str, parent: &str, rules: &str) -> String {
    let (namespace, name) = id.split_once('/').unwrap();
    format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
         spec: {{parentRefs: [{{group: '', kind: Service, name: {parent}}}], rules: [{rules}]}}\n"
    )
}

/// Rule that marks responses with a header, and sends all requests to a Service.
fn marked(by: &str, backend: &str) -> String {
    format!(
        "{{filters: [{{type: ResponseHeaderModifier, responseHeaderModifier: {{set: [{{name: by, value: {by}}}]}}}}], \
         backendRefs: [{{name: {backend}, namespace: default, port: 80}}]}}"
    )
}

/// Rule for a path.
fn to(path: &str, backend: &str) -> String {
    format!(
        "{{matches: [{{path: {{type: PathPrefix, value: {path}}}}}], backendRefs: [{{name: {backend}, port: 80}}]}}"
    )
}

fn virtual_service(name: &str, host: &str, created: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: {name}, namespace: default, \
         creationTimestamp: '{created}'}}\nspec: {{hosts: ['{host}'], http: [{{headers: {{response: {{set: {{by: {name}}}}}}}, \
         route: [{{destination: {{host: a}}}}]}}]}}\n"
    )
}

/// Address of the Services `a` and `b`.
const A: &str = "10.96.0.1:80";
const B: &str = "10.96.0.2:80";

/// Sidecar with the Services `a` and `b`, whose responses are their names; they have the ports 80 and 8080.
struct Mesh {
    sidecar: Sidecar,
    origins: [Origin; 2],
}

impl Mesh {
    fn start(routes: &[String]) -> Self {
        Self::start_in("default", routes)
    }

    /// Starts the sidecar of a workload in this namespace.
    fn start_in(namespace: &str, routes: &[String]) -> Self {
        let origins = ["a", "b"].map(|name| Origin::named(Back::H1, name));
        let resources = [
            two_ports("a", "10.96.0.1", origins[0].address),
            two_ports("b", "10.96.0.2", origins[1].address),
            documents(routes),
        ];
        let sidecar = Sidecar::start(&["--namespace", namespace], resources);
        Self { sidecar, origins }
    }

    fn set(&self, routes: &[String]) {
        let proxy = &self.sidecar.proxy;
        let generation = || proxy.metric("strait_config_generation", &[]);
        let before = generation();
        let resources = [
            two_ports("a", "10.96.0.1", self.origins[0].address),
            two_ports("b", "10.96.0.2", self.origins[1].address),
            documents(routes),
        ];
        proxy.write("mesh.yaml", documents(resources));
        eventually("the routes are in effect", || generation() > before);
    }

    fn send(&self, dialed: &str, host: &str, target: &str) -> Reply {
        send(&mut self.sidecar.leaves(dialed), host, target)
    }

    /// Returns the body of a response, and the header `by`; the status of a response that is not a 200.
    fn answer(&self, dialed: &str, host: &str, target: &str) -> String {
        described(&self.send(dialed, host, target))
    }
}

fn send(connection: &mut Raw, host: &str, target: &str) -> Reply {
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    connection.send(request).reply()
}

fn described(reply: &Reply) -> String {
    let mut headers = reply.headers.iter();
    let by = headers.find_map(|line| line.strip_prefix("by: "));
    let body = String::from_utf8_lossy(&reply.body).into_owned();
    match (reply.status, by) {
        (200, Some(by)) => format!("{body} by {by}"),
        (200, None) => body,
        (status, _) => status.to_string(),
    }
}

/// Returns a Service with the ports 80 and 8080.
fn two_ports(name: &str, ip: &str, endpoint: SocketAddr) -> String {
    let one = service(name, ip, ("http", 80), endpoint);
    let target = endpoint.port();
    let (ports, slice) = ("targetPort", "ports: [{name: http, port:");
    assert!(one.contains(ports) && one.contains(slice));
    one.replace(
        &format!("targetPort: {target}}}]"),
        &format!("targetPort: {target}}}, {{name: http-alt, port: 8080, targetPort: {target}}}]"),
    )
    .replace(
        &format!("ports: [{{name: http, port: {target}}}]"),
        &format!("ports: [{{name: http, port: {target}}}, {{name: http-alt, port: {target}}}]"),
    )
}

#[test]
fn route_of_a_service_applies_to_its_address_whatever_the_host() {
    let mesh = Mesh::start(&[route("default/r", "b", &marked("r", "b"))]);
    for host in [
        "b",
        "b.default",
        "b.default.svc.cluster.local",
        "10.96.0.2",
        "a",
        "outside.test",
    ] {
        assert_eq!(mesh.answer(B, host, "/"), "b by r", "{host}");
    }
    // the host of a Service with routes does not lead away from another address
    for host in ["a", "b"] {
        assert_eq!(mesh.answer(A, host, "/"), "a", "{host}");
    }
    // an endpoint is no Service
    let pod = mesh.origins[1].address.to_string();
    assert_eq!(mesh.answer(&pod, &pod, "/"), "b");
}

#[test]
fn routes_without_a_match_answer_404_and_removed_ones_leave_nothing() {
    let routes = [
        route("default/one", "a", &to("/a", "a")),
        route("default/two", "a", &to("/a/b", "b")),
    ];
    let mesh = Mesh::start(&routes);
    for (target, expected) in [("/a", "a"), ("/a/b/c", "b"), ("/ab", "404"), ("/", "404")] {
        assert_eq!(mesh.answer(A, "a", target), expected, "{target}");
    }
    assert_eq!(mesh.answer(B, "b", "/"), "b");
    mesh.set(&routes[..1]);
    assert_eq!(mesh.answer(A, "a", "/a/b/c"), "a");
    mesh.set(&[]);
    assert_eq!(mesh.answer(A, "a", "/"), "a");
    assert_eq!(mesh.answer(A, "b", "/"), "b", "the host counts again");
    mesh.set(&routes);
    assert_eq!(mesh.answer(A, "a", "/"), "404");
}

#[test]
fn port_of_a_parent_limits_a_route_to_it() {
    let mesh = Mesh::start(&[
        route("default/a", "a, port: 80", &marked("r", "a")),
        route("default/b", "b", &marked("r", "b")),
    ]);
    for (dialed, expected) in [
        (A, "a by r"),
        ("10.96.0.1:8080", "a"),
        (B, "b by r"),
        ("10.96.0.2:8080", "b by r"),
    ] {
        let host = dialed.strip_suffix(":80").unwrap_or(dialed);
        assert_eq!(mesh.answer(dialed, host, "/"), expected, "{dialed}");
    }
    // several ports, and a port beside none: one list
    let both = "a, port: 80}, {group: '', kind: Service, name: a, port: 8080";
    mesh.set(&[
        route("default/both", both, &to("/both", "b")),
        route("default/all", "a", &to("/", "a")),
    ]);
    for dialed in [A, "10.96.0.1:8080"] {
        assert_eq!(mesh.answer(dialed, "a", "/both"), "b", "{dialed}");
        assert_eq!(mesh.answer(dialed, "a", "/"), "a", "{dialed}");
    }
}

#[test]
fn consumer_route_replaces_producer_routes_for_its_namespace_only() {
    let consumer = "a, namespace: default";
    let routes = [
        route("default/producer", "a", &marked("producer", "a")),
        route("shop/consumer", consumer, &marked("consumer", "a")),
    ];
    for (namespace, expected) in [
        ("shop", "a by consumer"),
        ("default", "a by producer"),
        ("other", "a by producer"),
    ] {
        let mesh = Mesh::start_in(namespace, &routes);
        assert_eq!(mesh.answer(A, "a.default", "/"), expected, "{namespace}");
        if namespace == "shop" {
            mesh.set(&routes[..1]);
            assert_eq!(mesh.answer(A, "a.default", "/"), "a by producer");
            mesh.set(&routes[1..]);
            assert_eq!(mesh.answer(A, "a.default", "/"), "a by consumer");
        }
    }
}

#[test]
fn older_of_a_virtual_service_and_producer_routes_applies() {
    let dated = |created: &str| {
        route("default/r", "a", &marked("r", "a")).replace(
            "namespace: default}",
            &format!("namespace: default, creationTimestamp: '{created}'}}"),
        )
    };
    let (old, new) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    let mesh = Mesh::start(&[dated(old), virtual_service("v", "a", new)]);
    assert_eq!(mesh.answer(A, "a", "/"), "a by r");
    mesh.set(&[dated(new), virtual_service("v", "a", old)]);
    assert_eq!(mesh.answer(A, "a", "/"), "a by v");
    // a VirtualService for a wider host is less specific
    mesh.set(&[
        dated(new),
        virtual_service("v", "*.default.svc.cluster.local", old),
    ]);
    assert_eq!(mesh.answer(A, "a", "/"), "a by r");
    // connections to other addresses do not get the route
    assert_eq!(mesh.answer("192.0.2.7:80", "a", "/"), "a by v");
    mesh.set(&[virtual_service("v", "a", new)]);
    assert_eq!(mesh.answer(A, "a", "/"), "a by v");
}

#[test]
fn backend_that_is_the_parent_is_its_endpoints() {
    let rules = [
        "{matches: [{path: {value: /self}}], backendRefs: [{name: a, port: 80}]}".to_owned(),
        "{matches: [{path: {value: /none}}], backendRefs: [{name: nothing, port: 80}]}".to_owned(),
        "{matches: [{path: {value: /port}}], filters: [{type: RequestRedirect, requestRedirect: {hostname: x.test}}]}".to_owned(),
    ];
    let mesh = Mesh::start(&[route("default/r", "a", &rules.join(", "))]);
    assert_eq!(mesh.answer(A, "a", "/self"), "a");
    assert_eq!(mesh.answer(A, "a", "/none"), "500");
    assert!(
        mesh.send(A, "a", "/port")
            .has("location: http://x.test/port")
    );
    // the port of a redirect is that of the Service
    let reply = mesh.send("10.96.0.1:8080", "a:8080", "/port");
    assert!(reply.has("location: http://x.test:8080/port"), "{reply:?}");
}

#[test]
fn services_without_an_address_are_known_by_their_names() {
    let origin = Origin::named(Back::H1, "a");
    let target = origin.address.port();
    let headless = service("a", "None", ("http", target), origin.address);
    let sidecar = Sidecar::start(
        &[],
        [
            headless,
            route(
                "default/r",
                "a",
                &format!(
                    "{{backendRefs: [{{name: a, port: {target}}}], filters: [{{type: ResponseHeaderModifier, \
         responseHeaderModifier: {{set: [{{name: by, value: r}}]}}}}]}}"
                ),
            ),
        ],
    );
    let dialed = origin.address.to_string();
    for host in ["a", "a.default.svc.cluster.local"] {
        let host = format!("{host}:{target}");
        assert_eq!(
            described(&send(&mut sidecar.leaves(&dialed), &host, "/")),
            "a by r"
        );
    }
    assert_eq!(
        described(&send(&mut sidecar.leaves(&dialed), &dialed, "/")),
        "a"
    );
}

#[test]
fn http_proxy_knows_services_by_their_names() {
    let origins = ["a", "b"].map(|name| Origin::named(Back::H1, name));
    let at = free_address();
    let resources = [
        service("a", "10.96.0.1", ("http", 80), origins[0].address),
        service("b", "10.96.0.2", ("http", 80), origins[1].address),
        route("default/r", "a", &marked("r", "b")),
    ];
    let at_text = at.to_string();
    let _sidecar = Sidecar::start(&["--http-proxy-listener", &at_text], resources);
    for (host, expected) in [("a", "b by r"), ("b", "b")] {
        let request = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let reply = Raw::connect(at).send(request).reply();
        assert_eq!(described(&reply), expected, "{host}");
    }
}

#[tokio::test]
async fn grpc_and_http_routes_of_a_service_are_one_list() {
    let origins = ["a", "b"].map(|name| Origin::named(Back::H2, name));
    let at = free_address();
    let calls = route(
        "default/calls",
        "a",
        "{matches: [{method: {service: p.S, method: M}}], backendRefs: [{name: b, port: 80}]}",
    );
    let resources = [
        service("a", "10.96.0.1", ("grpc", 80), origins[0].address),
        service("b", "10.96.0.2", ("grpc", 80), origins[1].address),
        calls.replace("HTTPRoute", "GRPCRoute"),
        route("default/r", "a", &to("/p.S", "a")),
    ];
    let _sidecar = Sidecar::start(&["--http-proxy-listener", &at.to_string()], resources);
    for (path, status, expected) in [("/p.S/M", 200, "b"), ("/p.S/N", 200, "a"), ("/q", 404, "")] {
        let mut client = Client::connect(Front::H2, at).await;
        let request = Request::post(format!("http://a{path}")).body(empty());
        let answer = client.call(request.unwrap()).await;
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(answer.text(), expected, "{path}");
    }
}

#[test]
fn explain_names_the_service_of_routes_and_the_step_that_decided() {
    let mesh = Mesh::start(&[
        route("default/one", "a", &to("/a", "a")),
        route("default/two", "a", &to("/a/b", "b")),
        route("default/three", "a", &to("/a/b", "a")),
    ]);
    let explain = |url: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_strait"))
            .args(["explain", "--mode", "sidecar", "--config"])
            .arg(mesh.sidecar.proxy.mesh())
            .args(["GET", url])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let routed = explain("http://a/a/b/c");
    for part in [
        "routes of this Service, whose address 10.96.0.1 is",
        "HTTPRoute/default/three",
        "rule 2 of HTTPRoute/default/two matches as well; the other precedes it: its route is older, or the first by namespace \
         and name",
    ] {
        assert!(routed.contains(part), "{part}: {routed}");
    }
    assert!(explain("http://10.96.0.1/a").contains("routes of this Service"));
    let other = explain("http://a:80/x");
    assert!(other.contains("404"), "{other}");
    let elsewhere = explain("http://b/a/b");
    assert!(!elsewhere.contains("HTTPRoute"), "{elsewhere}");
    mesh.set(&[
        route("default/one", "a", &to("/a", "a")),
        route("default/two", "a", &to("/a/b", "b")),
    ]);
    let longer = explain("http://a/a/b/c");
    assert!(
        longer.contains("the other precedes it: its path is longer"),
        "{longer}"
    );
}
