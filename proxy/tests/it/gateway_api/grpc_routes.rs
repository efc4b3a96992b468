//! GRPCRoute: matches by service, method and metadata, and backends, which always get HTTP/2.

use hyper::{Request, Version};

use super::{Edge, ONE, object, path, route, rule, service};
use crate::support::client::{Answer, Client, Front};
use crate::support::eventually;
use crate::support::origin::{Back, Origin, empty};
use crate::support::pki::Authority;
use crate::support::tls::{Visitor, credential};

/// Returns a route to the Gateway with these hosts and rules.
fn grpc_route(name: &str, hosts: &str, rules: &str) -> String {
    route(name, hosts, rules).replace("HTTPRoute", "GRPCRoute")
}

/// Rule with one match and one backend.
fn to(matched: &str, backend: &str) -> String {
    rule(matched, backend)
}

fn method(fields: &str) -> String {
    format!("method: {{{fields}}}")
}

/// Services `v1`, `v2` and `v3`, whose ports declare HTTP/1.1, and which speak HTTP/2 only.
struct Calls {
    edge: Edge,
    origins: [Origin; 3],
}

impl Calls {
    fn start(listeners: &str, routes: &[String], more: &[String]) -> Self {
        let origins = ["v1", "v2", "v3"].map(|name| Origin::named(Back::H2, name));
        let names = ["v1", "v2", "v3"].iter().zip(&origins);
        let services = names.map(|(name, origin)| service(&format!("edge/{name}"), origin.address));
        let mut all: Vec<String> = services.collect();
        all.extend(more.iter().cloned());
        let edge = Edge::start_with(listeners, routes, &all);
        Self { edge, origins }
    }

    /// Returns the name of the service that answers, or the gRPC status of another response.
    async fn call(&self, host: &str, path: &str) -> String {
        self.call_with(host, path, &[]).await
    }

    async fn call_with(&self, host: &str, path: &str, metadata: &[(&str, &str)]) -> String {
        let answer = self.answer(host, path, metadata).await;
        match answer.header("grpc-status") {
            Some(status) => status.to_owned(),
            None => answer.text().to_owned(),
        }
    }

    async fn answer(&self, host: &str, path: &str, metadata: &[(&str, &str)]) -> Answer {
        let mut client = Client::connect(Front::H2, self.edge.proxy.edge).await;
        let mut request = Request::post(format!("http://{host}{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        for (name, value) in metadata {
            request = request.header(*name, *value);
        }
        let answer = client.call(request.body(empty()).unwrap()).await;
        assert_eq!(answer.status, 200, "{host}{path}");
        answer
    }
}

#[tokio::test]
async fn calls_are_matched_by_service_method_and_metadata() {
    let regex = "type: RegularExpression";
    let rules = [
        // a rule without matches serves what no other one does
        "{backendRefs: [{name: v3, port: 80}]}".to_owned(),
        to(&method("service: a.B, method: Echo"), "v1"),
        to(&method("service: a.B, method: EchoTwo"), "v2"),
        to(&method("service: a.Whole"), "v1"),
        to(&method("method: Only"), "v2"),
        to(
            &method(&format!("{regex}, service: 'r\\.[A-Z]', method: 'Get|Put'")),
            "v1",
        ),
        to(
            &format!(
                "{}, headers: [{{name: version, value: two}}]",
                method("service: a.B, method: Echo")
            ),
            "v2",
        ),
    ];
    let calls = Calls::start(ONE, &[grpc_route("r", "", &rules.join(", "))], &[]);
    for (path, expected) in [
        ("/a.B/Echo", "v1"),
        ("/a.B/EchoTwo", "v2"),
        ("/a.B/EchoThree", "v3"),
        ("/a.b/Echo", "v3"),
        ("/a.Whole/Any", "v1"),
        ("/a.Wholes/Any", "v3"),
        ("/a.Whole/Only", "v1"),
        ("/x.Y/Only", "v2"),
        ("/r.X/Get", "v1"),
        ("/r.X/Gets", "v3"),
        ("/r.XX/Get", "v3"),
    ] {
        assert_eq!(calls.call("shop.test", path).await, expected, "{path}");
    }
    let two = [("version", "two")];
    let answer = calls.call_with("shop.test", "/a.B/Echo", &two).await;
    assert_eq!(answer, "v2", "more metadata");
    let other = [("version", "three")];
    let answer = calls.call_with("shop.test", "/a.B/Echo", &other).await;
    assert_eq!(answer, "v1");
    assert!(
        calls.origins[0]
            .seen()
            .iter()
            .all(|one| one.version == Version::HTTP_2)
    );
}

#[tokio::test]
async fn calls_and_requests_are_matched_with_one_list() {
    let echo = to(&method("service: a.B, method: Echo"), "v1");
    let service = to(&method("service: a.B"), "v2");
    let calls = Calls::start(
        ONE,
        &[
            grpc_route("calls", "shop.test", &format!("{echo}, {service}")),
            route(
                "requests",
                "shop.test, web.test",
                &[
                    rule(&path("PathPrefix", "/"), "a"),
                    rule(&path("PathPrefix", "/a.B/Echo"), "b"),
                ]
                .join(", "),
            ),
        ],
        &[],
    );
    // by HTTP/1.1, as if there were no GRPCRoute
    for (path, expected) in [("/a.B/Echo", "b"), ("/a.B/Other", "a"), ("/", "a")] {
        let reply = calls.edge.send(
            "POST",
            "shop.test",
            path,
            "content-type: application/grpc\r\ncontent-length: 0\r\n",
        );
        assert_eq!(reply.body, expected.as_bytes(), "{path}");
    }
    assert_eq!(calls.call("shop.test", "/a.B/Echo").await, "v1");
    assert_eq!(calls.call("shop.test", "/a.B/Other").await, "v2");
    assert_eq!(calls.call("shop.test", "/x.Y/Other").await, "a");
    assert_eq!(calls.call("web.test", "/a.B/Echo").await, "b");
    let explain = |content_type: &str| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_strait"))
            .args(["explain", "--config"])
            .arg(calls.edge.proxy.mesh())
            .args(["-H", "host: shop.test"])
            .args(["-H", &format!("content-type: {content_type}")])
            .args([
                "POST",
                &format!("http://{}/a.B/Echo", calls.edge.proxy.edge),
            ])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let call = explain("application/grpc");
    assert!(
        call.contains("v1.edge.svc") && call.contains("HTTP/2"),
        "{call}"
    );
    let request = explain("text/plain");
    assert!(request.contains("b.edge.svc"), "{request}");
    assert!(request.contains("httpVersion"), "{request}");
    calls.edge.set(&[]);
    assert_eq!(calls.call("shop.test", "/a.B/Echo").await, "12", "no route");
}

#[tokio::test]
async fn hosts_of_listeners_select_the_routes_of_calls() {
    let listener = |name: &str, host: &str| {
        format!("{{name: {name}, protocol: HTTP, port: PORT, hostname: '{host}'}}")
    };
    let listeners = [
        listener("l1", "bar.com"),
        listener("l2", "foo.bar.com"),
        listener("l3", "*.bar.com"),
        listener("l4", "*.foo.com"),
    ];
    let attached = |backend: &str, sections: &[&str]| {
        let parents = sections.iter();
        let parents = parents.map(|one| format!("{{name: main, sectionName: {one}}}"));
        let parents: Vec<String> = parents.collect();
        let spec = format!(
            "parentRefs: [{}], rules: [{{backendRefs: [{{name: {backend}, port: 80}}]}}]",
            parents.join(", ")
        );
        object("GRPCRoute", &format!("edge/{backend}"), &spec)
    };
    let routes = [
        attached("v1", &["l1"]),
        attached("v2", &["l2"]),
        attached("v3", &["l3", "l4"]),
    ];
    let calls = Calls::start(&listeners.join(", "), &routes, &[]);
    for (host, expected) in [
        ("bar.com", "v1"),
        ("foo.bar.com", "v2"),
        ("baz.bar.com", "v3"),
        ("boo.bar.com", "v3"),
        ("multiple.prefixes.bar.com", "v3"),
        ("multiple.prefixes.foo.com", "v3"),
        ("foo.com", "12"),
        ("no.matching.host", "12"),
    ] {
        assert_eq!(calls.call(host, "/a.B/Echo").await, expected, "{host}");
    }
}

#[tokio::test]
async fn filters_edit_metadata_and_copy_calls() {
    let filters = "{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-set, value: '1%'}], add: [{name: x-add, value: new}], remove: [x-gone]}}, \
         {type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: x-answer, value: rule}]}}, \
         {type: RequestMirror, requestMirror: {backendRef: {name: v2, port: 80}}}";
    let rules = format!("{{filters: [{filters}], backendRefs: [{{name: v1, port: 80}}]}}");
    let calls = Calls::start(ONE, &[grpc_route("r", "", &rules)], &[]);
    let mut client = Client::connect(Front::H2, calls.edge.proxy.edge).await;
    let request = Request::post("http://shop.test/a.B/Echo")
        .header("content-type", "application/grpc")
        .header("x-set", "old")
        .header("x-add", "old")
        .header("x-gone", "old");
    let answer = client.call(request.body(empty()).unwrap()).await;
    assert_eq!(
        (answer.text(), answer.header("x-answer")),
        ("v1", Some("rule"))
    );
    let seen = calls.origins[0].only();
    assert_eq!(seen.header("x-set"), Some("1%"));
    assert_eq!(seen.header("x-gone"), None);
    let added: Vec<_> = seen.headers.get_all("x-add").iter().collect();
    assert_eq!(added, ["old", "new"]);
    eventually("the mirror gets a copy", || {
        calls.origins[1].seen().len() == 1
    });
    let copy = calls.origins[1].only();
    assert_eq!((copy.path(), copy.version), ("/a.B/Echo", Version::HTTP_2));
}

#[tokio::test]
async fn backends_that_are_not_valid_are_unavailable() {
    let rules = |of: &[(&str, &str)]| {
        let rules = of.iter().map(|(name, rest)| {
            format!(
                "{{matches: [{{{}}}], {rest}}}",
                method(&format!("method: {name}"))
            )
        });
        grpc_route("r", "", &rules.collect::<Vec<_>>().join(", "))
    };
    let routes = rules(&[
        ("Unknown", "backendRefs: [{name: none, port: 80}]"),
        ("Kind", "backendRefs: [{name: v1, kind: Pod, port: 80}]"),
        ("Zero", "backendRefs: [{name: v1, port: 80, weight: 0}]"),
        ("None", "name: none"),
        (
            "Grant",
            "backendRefs: [{name: far, namespace: other, port: 80}]",
        ),
        ("Empty", "backendRefs: [{name: empty, port: 80}]"),
        (
            "Filter",
            "filters: [{type: ExtensionRef, extensionRef: {group: a.b, kind: C, name: d}}], backendRefs: [{name: v1, port: 80}]",
        ),
        (
            "Shares",
            "backendRefs: [{name: v1, port: 80, weight: 70}, {name: v2, port: 80, weight: 30}, {name: v3, port: 80, weight: 0}]",
        ),
    ]);
    let empty_service = "apiVersion: v1\nkind: Service\nmetadata: {name: empty, namespace: edge}\nspec: {ports: [{name: http, port: 80}]}\n";
    let calls = Calls::start(ONE, &[], &[empty_service.to_owned()]);
    let far = service("other/far", calls.origins[2].address);
    calls.edge.set(&[routes.clone(), far.clone()]);
    let none = "the route has no valid backend";
    for (name, message) in [
        ("Unknown", "backend Service edge/none is not valid"),
        ("Kind", "backend Pod edge/v1 is not valid"),
        ("Zero", none),
        ("None", none),
        ("Grant", "backend Service other/far is not valid"),
        ("Empty", "no healthy upstream"),
        ("Filter", none),
    ] {
        let path = format!("/a.B/{name}");
        let answer = calls.answer("shop.test", &path, &[]).await;
        assert_eq!(answer.header("grpc-status"), Some("14"), "{name}");
        assert_eq!(answer.header("grpc-message"), Some(message), "{name}");
        let call = [
            "-H",
            "host: shop.test",
            "-H",
            "content-type: application/grpc",
        ];
        let explained = calls.edge.explain(&call, &path);
        assert!(
            explained.contains("requests get 200 with grpc-status 14"),
            "{name}: {explained}"
        );
    }
    let mut counts = [0; 3];
    for _ in 0..100 {
        match &*calls.call("shop.test", "/a.B/Shares").await {
            "v1" => counts[0] += 1,
            "v2" => counts[1] += 1,
            _ => counts[2] += 1,
        }
    }
    assert_eq!(counts[2], 0, "{counts:?}");
    assert!((50..90).contains(&counts[0]), "{counts:?}");
    // a grant for HTTPRoutes is none for this kind
    for (kind, expected) in [("HTTPRoute", "14"), ("GRPCRoute", "v3")] {
        let grant = format!(
            "from: [{{group: gateway.networking.k8s.io, kind: {kind}, namespace: edge}}], to: [{{group: '', kind: Service}}]"
        );
        let grant = object("ReferenceGrant", "other/g", &grant);
        calls.edge.set(&[routes.clone(), far.clone(), grant]);
        let answer = calls.call("shop.test", "/a.B/Grant").await;
        assert_eq!(answer, expected, "{kind}");
    }
}

#[tokio::test]
async fn calls_over_https_reach_their_backends() {
    let ca = Authority::new("ca");
    let pair = ca.server(&["shop.test"]);
    let secret = credential("cred", &pair).replace("name: cred", "name: cred, namespace: edge");
    let listener =
        "{name: https, protocol: HTTPS, port: PORT, tls: {certificateRefs: [{name: cred}]}}";
    let rules = to(&method("service: a.B"), "v1");
    let calls = Calls::start(listener, &[grpc_route("r", "", &rules)], &[secret]);
    let visitor = Visitor::new(calls.edge.proxy.edge, &ca);
    let mut client = visitor.client(Front::H2, "shop.test").await.unwrap();
    let request = Request::post("https://shop.test/a.B/Echo").body(empty());
    assert_eq!(client.call(request.unwrap()).await.text(), "v1");
}
