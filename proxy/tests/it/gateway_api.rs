//! Gateway and HTTPRoute of the Gateway API: listeners, precedence, filters and backends, over live sockets.

mod backend_filters;
mod backend_tls;
mod converted;
mod cors;
mod failures;
mod grpc_routes;
mod header_lines;
mod listen_ports;
mod listener_tls;
mod paths;
mod policies;
mod sources;
mod tcp_routes;
mod tls_routes;
mod validation_changes;

use std::net::SocketAddr;

use crate::support::client::Front;
use crate::support::eventually;
use crate::support::mesh::documents;
use crate::support::origin::{Back, Origin, full};
use crate::support::pki::Authority;
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::{Raw, Reply};
use crate::support::tls::{Visitor, credential, get};

/// Returns a Service and its only endpoint.
fn service(id: &str, address: SocketAddr) -> String {
    let (namespace, name) = id.split_once('/').unwrap();
    let (ip, port) = (address.ip(), address.port());
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
         spec: {{ports: [{{name: http, port: 80}}]}}\n---\n\
         apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
         metadata: {{name: {name}-1, namespace: {namespace}, labels: {{kubernetes.io/service-name: {name}}}}}\n\
         addressType: IPv4\nports: [{{name: http, port: {port}}}]\nendpoints: [{{addresses: [{ip}]}}]\n"
    )
}

fn object(kind: &str, id: &str, spec: &str) -> String {
    let (namespace, name) = id.split_once('/').unwrap();
    format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: {kind}\n\
         metadata: {{name: {name}, namespace: {namespace}}}\nspec: {{{spec}}}\n"
    )
}

/// Returns a route to the Gateway with these hosts and rules.
fn route(name: &str, hosts: &str, rules: &str) -> String {
    let spec = format!("parentRefs: [{{name: main}}], hostnames: [{hosts}], rules: [{rules}]");
    object("HTTPRoute", &format!("edge/{name}"), &spec)
}

/// Rule with one match and one backend.
fn rule(matched: &str, backend: &str) -> String {
    format!("{{matches: [{{{matched}}}], backendRefs: [{{name: {backend}, port: 80}}]}}")
}

fn path(kind: &str, value: &str) -> String {
    format!("path: {{type: {kind}, value: '{value}'}}")
}

/// Proxy with a Gateway, and the services `a`, `b` and `c`, whose responses are their names.
struct Edge {
    proxy: Proxy,
    origins: [Origin; 3],
}

impl Edge {
    /// Starts with these listeners; `PORT` is the port of the proxy.
    fn start(listeners: &str, routes: &[String]) -> Self {
        Self::start_with(listeners, routes, &[])
    }

    /// Starts with further documents.
    fn start_with(listeners: &str, routes: &[String], more: &[String]) -> Self {
        Self::start_as(Start::new(), listeners, routes, more)
    }

    /// Starts with further arguments as well.
    fn start_as(start: Start, listeners: &str, routes: &[String], more: &[String]) -> Self {
        let origins = ["a", "b", "c"].map(|name| Origin::named(Back::H1, name));
        let edge = start.edge();
        let port = edge.port().to_string();
        let listeners = listeners.replace("PORT", &port);
        let gateway = format!(
            "gatewayClassName: strait, allowedListeners: {{namespaces: {{from: Same}}}}, addresses: [{{value: {}}}], listeners: [{listeners}]",
            edge.ip()
        );
        let services = ["a", "b", "c"].iter().zip(&origins);
        let services =
            services.map(|(name, origin)| service(&format!("edge/{name}"), origin.address));
        let mut mesh: Vec<String> = services.collect();
        mesh.push(object("Gateway", "edge/main", &gateway));
        mesh.extend(more.iter().cloned());
        let proxy = start
            .file("mesh.yaml", documents(&mesh))
            .file("routes.yaml", documents(routes))
            .start();
        Self { proxy, origins }
    }

    fn set(&self, routes: &[String]) {
        let generation = || self.proxy.metric("strait_config_generation", &[]);
        let before = generation();
        self.proxy.write("routes.yaml", documents(routes));
        eventually("the routes are in effect", || generation() > before);
    }

    fn send(&self, method: &str, host: &str, target: &str, headers: &str) -> Reply {
        let text = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n");
        Raw::connect(self.proxy.edge).send(text).reply()
    }

    /// Returns what `strait explain` says of a GET request with these options.
    fn explain(&self, options: &[&str], target: &str) -> String {
        let explained = std::process::Command::new(env!("CARGO_BIN_EXE_strait"))
            .args(["explain", "--config"])
            .arg(self.proxy.mesh())
            .args(options)
            .args(["GET", &format!("http://{}{target}", self.proxy.edge)])
            .output()
            .unwrap();
        String::from_utf8_lossy(&explained.stdout).into_owned()
    }

    /// Returns the name of the service that answers, or the status of another response.
    fn answer(&self, host: &str, target: &str) -> String {
        let reply = self.send("GET", host, target, "");
        match reply.status {
            200 => String::from_utf8_lossy(&reply.body).into_owned(),
            status => status.to_string(),
        }
    }
}

const ONE: &str = "{name: http, protocol: HTTP, port: PORT}";

#[test]
fn matches_are_tried_by_precedence_over_all_routes_of_a_host() {
    let rules = [
        rule(&path("PathPrefix", "/"), "a"),
        rule(&path("PathPrefix", "/p"), "b"),
        rule(&path("RegularExpression", "/p/[a-z]+"), "a"),
        rule(&path("Exact", "/p/x"), "c"),
    ];
    let wide = rule(
        &format!(
            "{}, headers: [{{name: v, value: '2'}}]",
            path("PathPrefix", "/p")
        ),
        "c",
    );
    let edge = Edge::start(
        ONE,
        &[
            route("narrow", "shop.test", &rules.join(", ")),
            route("wide", "'*.test', shop.test", &wide),
            route("any", "", &rule(&path("PathPrefix", "/only"), "b")),
        ],
    );
    for (host, target, expected) in [
        ("shop.test", "/", "a"),
        ("SHOP.test:80", "/p", "b"),
        ("shop.test", "/p/", "b"),
        ("shop.test", "/p/x", "c"),
        ("shop.test", "/p/y", "b"),
        ("shop.test", "/px", "a"),
        // a wider host is tried when no rule of the narrower ones matches
        ("x.test", "/only", "b"),
        ("x.test", "/p", "404"),
        ("other.com", "/only/1", "b"),
        ("other.com", "/", "404"),
    ] {
        assert_eq!(edge.answer(host, target), expected, "{host}{target}");
    }
    let with_header = edge.send("GET", "shop.test", "/p/1", "v: 2\r\n");
    assert_eq!(with_header.body, b"c", "more headers of another route");
    edge.set(&[]);
    assert_eq!(edge.answer("shop.test", "/"), "404", "no route is left");
}

#[test]
fn a_host_belongs_to_the_most_specific_listener() {
    let listener = |name: &str, host: &str| {
        format!("{{name: {name}, protocol: HTTP, port: PORT, hostname: '{host}'}}")
    };
    let listeners = [
        ONE.to_owned(),
        listener("wild", "*.shop.test"),
        listener("exact", "a.shop.test"),
        listener("empty", "b.shop.test"),
    ];
    let attached = |name: &str, section: &str, backend: &str| {
        let spec = format!(
            "parentRefs: [{{name: main, sectionName: {section}}}], hostnames: ['*.test', '*.shop.test', a.shop.test, b.shop.test, other.com], rules: [{{backendRefs: [{{name: {backend}, port: 80}}]}}]"
        );
        object("HTTPRoute", &format!("edge/{name}"), &spec)
    };
    let edge = Edge::start(
        &listeners.join(", "),
        &[
            attached("r1", "http", "a"),
            attached("r2", "wild", "b"),
            attached("r3", "exact", "c"),
        ],
    );
    for (host, expected) in [
        ("x.test", "a"),
        ("other.com", "a"),
        ("x.shop.test", "b"),
        ("a.shop.test", "c"),
        ("b.shop.test", "404"),
        ("shop.test", "a"),
        ("none.com", "404"),
    ] {
        assert_eq!(edge.answer(host, "/"), expected, "{host}");
    }
}

#[test]
fn filters_change_requests_and_responses() {
    let filters = "{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-a, value: '100%'}], add: [{name: x-b, value: two}], remove: [x-c]}}, \
         {type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: x-r, value: rule}]}}, \
         {type: URLRewrite, urlRewrite: {hostname: inner.test, path: {type: ReplacePrefixMatch, replacePrefixMatch: /new/}}}, \
         {type: RequestMirror, requestMirror: {backendRef: {name: b, port: 80}}}";
    let backend = "{name: a, port: 80, filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-a, value: backend}]}}]}";
    let old = path("PathPrefix", "/old");
    let redirect = |filter: &str, matched: &str| {
        format!(
            "{{matches: [{{{matched}}}], filters: [{{type: RequestRedirect, requestRedirect: {{{filter}}}}}]}}"
        )
    };
    let rules = [
        format!("{{matches: [{{{old}}}], filters: [{filters}], backendRefs: [{backend}]}}"),
        redirect(
            "scheme: https, hostname: safe.test, statusCode: 301",
            &path("Exact", "/r1"),
        ),
        redirect(
            "path: {type: ReplacePrefixMatch, replacePrefixMatch: /to}",
            &path("PathPrefix", "/r2"),
        ),
        redirect(
            "port: 8080, path: {type: ReplaceFullPath, replaceFullPath: /full}",
            &path("Exact", "/r3"),
        ),
    ];
    let edge = Edge::start(ONE, &[route("r", "", &rules.join(", "))]);
    let reply = edge.send(
        "GET",
        "shop.test",
        "/old/1?q",
        "x-a: 1\r\nx-b: one\r\nx-c: gone\r\n",
    );
    assert_eq!((reply.status, &*reply.body), (200, &b"a"[..]));
    assert!(reply.has("x-r: rule"));
    let seen = edge.origins[0].only();
    assert_eq!((seen.host(), seen.path()), ("inner.test", "/new/1?q"));
    assert_eq!(seen.header("x-a"), Some("backend"));
    assert_eq!(seen.header("x-c"), None);
    eventually("the mirror gets a copy", || {
        edge.origins[1].seen().len() == 1
    });
    let copy = edge.origins[1].only();
    assert_eq!((copy.host(), copy.path()), ("inner.test", "/new/1?q"));
    let port = edge.proxy.edge.port();
    for (target, status, location) in [
        ("/r1", 301, "https://safe.test/r1".to_owned()),
        ("/r2/x?q", 302, format!("http://shop.test:{port}/to/x?q")),
        ("/r2", 302, format!("http://shop.test:{port}/to")),
        ("/r3", 302, "http://shop.test:8080/full".to_owned()),
    ] {
        let reply = edge.send("GET", "shop.test", target, "");
        assert_eq!(reply.status, status, "{target}");
        assert!(
            reply.has(&format!("location: {location}")),
            "{target}: {reply:?}"
        );
    }
}

#[test]
fn copies_keep_their_host_whatever_mirrors_of_virtual_services_get() {
    let mirror =
        "filters: [{type: RequestMirror, requestMirror: {backendRef: {name: b, port: 80}}}]";
    let rules = format!("{{{mirror}, backendRefs: [{{name: a, port: 80}}]}}");
    let start = Start::new().args(["--shadow-host-suffix"]);
    let edge = Edge::start_as(start, ONE, &[route("r", "", &rules)], &[]);
    assert_eq!(edge.answer("shop.test", "/"), "a");
    eventually("the mirror gets a copy", || {
        edge.origins[1].seen().len() == 1
    });
    assert_eq!(edge.origins[1].only().host(), "shop.test");
}

#[test]
fn rules_limit_retry_and_share() {
    let flaky = Origin::start(Back::H1, {
        let failed = std::sync::atomic::AtomicBool::new(false);
        move |_| {
            let is_first = !failed.swap(true, std::sync::atomic::Ordering::SeqCst);
            let status = if is_first { 503 } else { 200 };
            async move {
                let response = hyper::Response::builder().status(status);
                response.body(full("flaky")).unwrap()
            }
        }
    });
    let silent = Origin::start(Back::H1, |_| std::future::pending());
    let cors = "{type: CORS, cors: {allowOrigins: ['https://*.shop.test'], allowMethods: [GET, PUT], allowHeaders: [x-a], exposeHeaders: [x-e], allowCredentials: true}}";
    let to = |matched: &str, more: &str, backend: &str| {
        format!(
            "{{matches: [{{{matched}}}], {more}, backendRefs: [{{name: {backend}, port: 80}}]}}"
        )
    };
    let rules = [
        to(
            &path("Exact", "/slow"),
            "timeouts: {request: 50ms}",
            "silent",
        ),
        to(
            &path("Exact", "/attempt"),
            "timeouts: {backendRequest: 50ms}",
            "silent",
        ),
        to(
            &path("Exact", "/retry"),
            "retry: {codes: [503], attempts: 1, backoff: 1ms}",
            "flaky",
        ),
        to(
            &path("PathPrefix", "/cors"),
            &format!("filters: [{cors}]"),
            "a",
        ),
        to("method: PUT", "name: put", "b"),
        to("queryParams: [{name: v, value: '2'}]", "name: query", "c"),
    ];
    let edge = Edge::start_with(
        ONE,
        &[route("r", "", &rules.join(", "))],
        &[
            service("edge/flaky", flaky.address),
            service("edge/silent", silent.address),
        ],
    );
    assert_eq!(edge.answer("shop.test", "/slow"), "504");
    assert_eq!(edge.answer("shop.test", "/attempt"), "504");
    assert_eq!(edge.answer("shop.test", "/retry"), "flaky");
    assert_eq!(flaky.seen().len(), 2);
    assert_eq!(edge.send("PUT", "shop.test", "/", "").body, b"b");
    assert_eq!(edge.answer("shop.test", "/?v=2"), "c");
    assert_eq!(edge.answer("shop.test", "/"), "404");
    let preflight = |origin: &str| {
        let headers = format!(
            "origin: {origin}\r\naccess-control-request-method: PUT\r\naccess-control-request-headers: x-a\r\n"
        );
        edge.send("OPTIONS", "shop.test", "/cors", &headers)
    };
    let allowed = preflight("https://www.shop.test");
    assert_eq!(allowed.status, 200);
    for line in [
        "access-control-allow-origin: https://www.shop.test",
        "access-control-allow-methods: GET, PUT",
        "access-control-allow-headers: x-a",
        "access-control-expose-headers: x-e",
        "access-control-allow-credentials: true",
        "access-control-max-age: 5",
    ] {
        assert!(allowed.has(line), "{line}: {allowed:?}");
    }
    let other = preflight("https://evil.test");
    assert_eq!(other.status, 200);
    assert!(
        !other
            .headers
            .iter()
            .any(|line| line.starts_with("access-control")),
        "{other:?}"
    );
    let shared = edge.send(
        "GET",
        "shop.test",
        "/cors",
        "origin: https://a.shop.test\r\n",
    );
    assert!(
        shared.has("access-control-allow-origin: https://a.shop.test"),
        "{shared:?}"
    );
}

#[test]
fn backends_that_are_not_valid_answer_500_and_those_without_endpoints_503() {
    let to = |name: &str, backends: &str| {
        format!(
            "{{matches: [{{{}}}], backendRefs: [{backends}]}}",
            path("Exact", name)
        )
    };
    let rules = [
        to("/unknown", "{name: none, port: 80}"),
        to("/port", "{name: a, port: 81}"),
        to("/kind", "{name: a, kind: Pod, port: 80}"),
        to("/zero", "{name: a, port: 80, weight: 0}"),
        to("/none", ""),
        to("/grant", "{name: far, namespace: other, port: 80}"),
        to("/half", "{name: a, port: 80}, {name: none, port: 80}"),
        to("/empty", "{name: empty, port: 80}"),
        format!(
            "{{matches: [{{{}}}], filters: [{{type: ExtensionRef, extensionRef: {{group: a.b, kind: C, name: d}}}}], backendRefs: [{{name: a, port: 80}}]}}",
            path("Exact", "/filter")
        ),
    ];
    let rules = route("r", "", &rules.join(", "));
    let edge = Edge::start(ONE, &[]);
    let far = service("other/far", edge.origins[2].address);
    let empty = "apiVersion: v1\nkind: Service\nmetadata: {name: empty, namespace: edge}\nspec: {ports: [{name: http, port: 80}]}\n".to_owned();
    edge.set(&[rules.clone(), far.clone(), empty.clone()]);
    for (target, expected) in [
        ("/unknown", "500"),
        ("/port", "500"),
        ("/kind", "500"),
        ("/zero", "500"),
        ("/none", "500"),
        ("/grant", "500"),
        ("/filter", "500"),
        ("/empty", "503"),
    ] {
        assert_eq!(edge.answer("shop.test", target), expected, "{target}");
    }
    let explained = edge.explain(&[], "/unknown");
    assert!(explained.contains("500 NC"), "{explained}");
    let answers: Vec<String> = (0..60).map(|_| edge.answer("shop.test", "/half")).collect();
    let served = answers.iter().filter(|one| *one == "a").count();
    assert!(
        answers.iter().all(|one| one == "a" || one == "500"),
        "{answers:?}"
    );
    assert!((10..50).contains(&served), "{served} of 60");
    let grant = "from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: edge}], to: [{group: '', kind: Service}]";
    edge.set(&[
        rules.clone(),
        far.clone(),
        empty.clone(),
        object("ReferenceGrant", "other/g", grant),
    ]);
    assert_eq!(edge.answer("shop.test", "/grant"), "c");
    edge.set(&[rules, far, empty]);
    assert_eq!(
        edge.answer("shop.test", "/grant"),
        "500",
        "the grant is gone"
    );
    let call = edge.send(
        "POST",
        "shop.test",
        "/unknown",
        "content-type: application/grpc\r\nte: trailers\r\ncontent-length: 0\r\n",
    );
    assert_eq!(call.status, 200);
    assert!(call.has("grpc-status: 14"), "{call:?}");
}

#[test]
fn listener_sets_add_listeners_for_the_namespaces_that_they_allow() {
    let set = |id: &str, host: &str, allowed: &str, port: u16| {
        let listener =
            format!("{{name: more, protocol: HTTP, port: {port}, hostname: {host}{allowed}}}");
        let spec = format!("parentRef: {{name: main, namespace: edge}}, listeners: [{listener}]");
        object("ListenerSet", id, &spec)
    };
    let to_set = |id: &str, set: &str, backend: &str| {
        let parent = format!("{{name: {set}, kind: ListenerSet, namespace: edge}}");
        let spec = format!(
            "parentRefs: [{parent}], rules: [{{backendRefs: [{{name: {backend}, namespace: edge, port: 80}}]}}]"
        );
        object("HTTPRoute", id, &spec)
    };
    let grant = "from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: web}], to: [{group: '', kind: Service}]";
    let listener = "{name: own, protocol: HTTP, port: PORT, hostname: own.test}";
    let edge = Edge::start(listener, &[]);
    let port = edge.proxy.edge.port();
    edge.set(&[
        set("edge/same", "same.test", "", port),
        set(
            "edge/all",
            "all.test",
            ", allowedRoutes: {namespaces: {from: All}}",
            port,
        ),
        set("web/foreign", "foreign.test", "", port),
        to_set("edge/own", "same", "a"),
        to_set("web/one", "same", "b"),
        to_set("web/two", "all", "c"),
        to_set("web/three", "foreign", "c").replace("namespace: edge}]", "namespace: web}]"),
        object("ReferenceGrant", "edge/g", grant),
    ]);
    for (host, expected) in [
        ("same.test", "a"),
        ("all.test", "c"),
        ("own.test", "404"),
        ("foreign.test", "404"),
    ] {
        assert_eq!(edge.answer(host, "/"), expected, "{host}");
    }
}

#[test]
fn listener_of_an_istio_gateway_and_classes_of_others_keep_their_traffic() {
    let rules = route("r", "", "{backendRefs: [{name: a, port: 80}]}");
    let edge = Edge::start(ONE, std::slice::from_ref(&rules));
    assert_eq!(edge.answer("shop.test", "/"), "a");
    let (ip, port) = (edge.proxy.edge.ip(), edge.proxy.edge.port());
    let istio = format!(
        "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{name: main, namespace: edge}}\n\
         spec: {{servers: [{{port: {{number: {port}, name: http, protocol: HTTP}}, bind: {ip}, hosts: ['*']}}]}}\n---\n\
         apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: all, namespace: edge}}\n\
         spec: {{hosts: ['*'], gateways: [main], http: [{{route: [{{destination: {{host: b}}}}]}}]}}\n"
    );
    edge.set(&[rules.clone(), istio]);
    assert_eq!(
        edge.answer("shop.test", "/"),
        "b",
        "the port is that of the other API"
    );
    edge.set(std::slice::from_ref(&rules));
    assert_eq!(edge.answer("shop.test", "/"), "a");
    let class = "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: strait}\nspec: {controllerName: other.test/controller}\n";
    edge.set(&[rules, class.to_owned()]);
    eventually("the port is closed", || {
        std::net::TcpStream::connect(edge.proxy.edge).is_err()
    });
}

#[test]
fn destination_rules_apply_to_backends() {
    let rules = route("r", "", "{backendRefs: [{name: a, port: 80}]}");
    let edge = Edge::start(ONE, std::slice::from_ref(&rules));
    let one_each = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: a, namespace: edge}\n\
                    spec: {host: a, trafficPolicy: {connectionPool: {http: {maxRequestsPerConnection: 1}}}}\n";
    let connections = || {
        let before = edge.origins[0].connections();
        (0..3).for_each(|_| assert_eq!(edge.answer("shop.test", "/"), "a"));
        edge.origins[0].connections() - before
    };
    assert!(connections() <= 2, "each worker reuses its connection");
    edge.set(&[rules, one_each.to_owned()]);
    assert_eq!(connections(), 3);
}

#[test]
fn policy_that_is_attached_to_a_gateway_applies_to_it() {
    let rules = route("r", "", "{backendRefs: [{name: a, port: 80}]}");
    let edge = Edge::start(ONE, std::slice::from_ref(&rules));
    assert_eq!(edge.answer("shop.test", "/"), "a");
    let policy = "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: p, namespace: edge}\n\
                  spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: main}], action: DENY, rules: [{}]}\n";
    edge.set(&[rules, policy.to_owned()]);
    assert_eq!(edge.answer("shop.test", "/"), "403");
}

#[tokio::test]
async fn request_for_a_host_of_another_https_listener_is_misdirected() {
    let ca = Authority::new("ca");
    let pair = ca.server(&[
        "example.org",
        "second-example.org",
        "*.wildcard.org",
        "fourth-example.wildcard.org",
        "unknown-example.org",
    ]);
    let listener = |name: &str, host: &str| {
        let tls = "tls: {certificateRefs: [{name: cred}]}";
        format!("{{name: {name}, protocol: HTTPS, port: PORT, {tls}{host}}}")
    };
    let listeners = [
        listener("any", ""),
        listener("second", ", hostname: second-example.org"),
        listener("wild", ", hostname: '*.wildcard.org'"),
        listener("fourth", ", hostname: fourth-example.wildcard.org"),
    ];
    let attached = |section: &str, hosts: &str| {
        let spec = format!(
            "parentRefs: [{{name: main, sectionName: {section}}}], hostnames: [{hosts}], rules: [{{backendRefs: [{{name: a, port: 80}}]}}]"
        );
        object("HTTPRoute", &format!("edge/{section}"), &spec)
    };
    let routes = [
        attached("any", "example.org"),
        attached("second", ""),
        attached("wild", ""),
        attached("fourth", ""),
    ];
    let secret = credential("cred", &pair).replace("name: cred", "name: cred, namespace: edge");
    let edge = Edge::start_with(&listeners.join(", "), &routes, &[secret]);
    let visitor = Visitor::new(edge.proxy.edge, &ca);
    for front in [Front::H1, Front::H2] {
        for (sni, host, expected) in [
            ("example.org", "example.org", 200),
            ("example.org", "second-example.org", 421),
            ("example.org", "unknown-example.org", 404),
            ("second-example.org", "example.org", 421),
            ("second-example.org", "unknown-example.org", 421),
            (
                "third-example.wildcard.org",
                "fith-example.wildcard.org",
                200,
            ),
            (
                "third-example.wildcard.org",
                "fourth-example.wildcard.org",
                421,
            ),
            ("third-example.wildcard.org", "second-example.org", 421),
            ("third-example.wildcard.org", "unknown-example.org", 421),
            (
                "fourth-example.wildcard.org",
                "fith-example.wildcard.org",
                421,
            ),
            ("unknown-example.org", "example.org", 200),
            ("unknown-example.org", "unknown-example.org", 404),
        ] {
            let mut client = visitor.client(front, sni).await.unwrap();
            let answer = client.call(get(host, "/")).await;
            assert_eq!(answer.status, expected, "{front:?} {sni} {host}");
        }
    }
}
