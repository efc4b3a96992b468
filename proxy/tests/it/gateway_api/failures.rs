//! Answers to what cannot be served: statuses by protocol, hosts that lie between listeners, and grants that go away.

use std::sync::atomic::{AtomicBool, Ordering};

use hyper::Request;

use super::listener_tls::credential;
use super::{Edge, ONE, object, path, route, rule, service};
use crate::support::client::Front;
use crate::support::eventually;
use crate::support::origin::empty;
use crate::support::pki::Authority;
use crate::support::raw::Raw;
use crate::support::tls::Visitor;

#[tokio::test]
async fn each_failure_has_its_status_in_every_protocol() {
    let ca = Authority::new("ca");
    let listener = |name: &str, host: &str| {
        format!(
            "{{name: {name}, protocol: HTTPS, port: PORT, hostname: {host}, tls: {{certificateRefs: [{{name: cred}}]}}}}"
        )
    };
    let listeners = [listener("own", "own.test"), listener("other", "other.test")];
    let to = |target: &str, backends: &str| {
        format!(
            "{{matches: [{{{}}}], backendRefs: [{backends}]}}",
            path("Exact", target)
        )
    };
    let rules = [
        to("/s.A/Invalid", "{name: none, port: 80}"),
        to("/s.A/Empty", "{name: empty, port: 80}"),
    ];
    let empty_service = "apiVersion: v1\nkind: Service\nmetadata: {name: empty, namespace: edge}\nspec: {ports: [{name: http, port: 80}]}\n".to_owned();
    let cred = credential("edge/cred", &ca.server(&["own.test"]), &[]);
    let edge = Edge::start_with(
        &listeners.join(", "),
        &[route("r", "", &rules.join(", "))],
        &[empty_service, cred],
    );
    let visitor = Visitor::new(edge.proxy.edge, &ca);
    for (host, target, status, grpc) in [
        ("own.test", "/s.A/Invalid", 500, "14"),
        ("own.test", "/s.A/Empty", 503, "14"),
        ("own.test", "/s.A/None", 404, "12"),
        ("unknown.test", "/s.A/Empty", 404, "12"),
        ("other.test", "/s.A/Empty", 421, "2"),
    ] {
        for front in [Front::H1, Front::H2] {
            let mut client = visitor.client(front, "own.test").await.unwrap();
            let request = |content_type: &str| {
                Request::post(format!("https://{host}{target}"))
                    .header("content-type", content_type)
                    .body(empty())
                    .unwrap()
            };
            let answer = client.call(request("text/plain")).await;
            assert_eq!(answer.status, status, "{front:?} {host}{target}");
            let answer = client.call(request("application/grpc")).await;
            let found = (answer.status, answer.header("grpc-status"));
            assert_eq!(found, (200, Some(grpc)), "{front:?} {host}{target}");
        }
    }
}

#[test]
fn host_in_any_spelling_belongs_to_its_listener_alone() {
    let listener = |name: &str, host: &str| {
        format!("{{name: {name}, protocol: HTTP, port: PORT, hostname: '{host}'}}")
    };
    let listeners = [
        ONE.to_owned(),
        listener("exact", "a.test"),
        listener("wild", "*.b.test"),
    ];
    let attached = |section: &str, backend: &str| {
        let spec = format!(
            "parentRefs: [{{name: main, sectionName: {section}}}], rules: [{{backendRefs: [{{name: {backend}, port: 80}}]}}]"
        );
        object("HTTPRoute", &format!("edge/{section}"), &spec)
    };
    let edge = Edge::start(
        &listeners.join(", "),
        &[
            attached("http", "c"),
            attached("exact", "a"),
            attached("wild", "b"),
        ],
    );
    let ask = |text: &str| {
        let reply = Raw::connect(edge.proxy.edge).send(text).reply();
        match reply.status {
            200 => String::from_utf8(reply.body).unwrap(),
            status => status.to_string(),
        }
    };
    for (host, expected) in [
        ("a.test", "a"),
        ("A.TEST", "a"),
        ("a.test.", "a"),
        ("a.test:1234", "a"),
        ("A.test.:80", "a"),
        ("  a.test  ", "a"),
        ("x.a.test", "c"),
        ("x.b.test", "b"),
        ("X.y.B.test:80", "b"),
        ("b.test", "c"),
        (".b.test", "c"),
        ("xn--bcher-kva.b.test", "b"),
        ("a.test,x.b.test", "400"),
        ("a.test/x.b.test", "400"),
        ("a.test x.b.test", "400"),
        ("b\u{fc}cher.b.test", "400"),
        ("", "400"),
    ] {
        let text = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(ask(&text), expected, "{host:?}");
    }
    for (text, expected) in [
        // the target names the host
        ("GET http://a.test/ HTTP/1.1\r\nHost: x.b.test\r\n\r\n", "a"),
        (
            "GET http://X.B.TEST:81/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "b",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a.test\r\nHost: x.b.test\r\n\r\n",
            "400",
        ),
        ("GET / HTTP/1.1\r\n\r\n", "400"),
        // no header names it instead
        (
            "GET / HTTP/1.1\r\nHost: a.test\r\nx-forwarded-host: x.b.test\r\n:authority: x.b.test\r\n\r\n",
            "400",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a.test\r\nx-forwarded-host: x.b.test\r\n\r\n",
            "a",
        ),
    ] {
        assert_eq!(ask(text), expected, "{text:?}");
    }
}

/// Ends the load, also if an assertion fails.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn grant_that_goes_away_under_load_leaves_500_and_nothing_else() {
    let rules =
        rule(&path("PathPrefix", "/"), "far").replace("name: far", "name: far, namespace: other");
    let routes = route("r", "", &rules);
    let grant = object(
        "ReferenceGrant",
        "other/g",
        "from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: edge}], to: [{group: '', kind: Service}]",
    );
    let edge = Edge::start(ONE, &[]);
    let far = service("other/far", edge.origins[2].address);
    edge.set(&[routes.clone(), far.clone(), grant]);
    assert_eq!(edge.answer("shop.test", "/"), "c");
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let end = SetOnDrop(&ends);
        let clients: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = Raw::connect(edge.proxy.edge);
                    let mut statuses = Vec::new();
                    while !ends.load(Ordering::SeqCst) {
                        client.send("GET / HTTP/1.1\r\nHost: shop.test\r\n\r\n");
                        let status = client.reply().status;
                        if statuses.last() != Some(&status) {
                            statuses.push(status);
                        }
                    }
                    statuses
                })
            })
            .collect();
        let served = edge.origins[2].seen().len();
        eventually("there is load", || {
            edge.origins[2].seen().len() > served + 40
        });
        edge.set(&[routes, far]);
        eventually("all get 500", || {
            let before = edge.origins[2].seen().len();
            let all_fail = (0..8).all(|_| edge.answer("shop.test", "/") == "500");
            all_fail && edge.origins[2].seen().len() == before
        });
        drop(end);
        for client in clients {
            assert_eq!(client.join().unwrap(), [200, 500]);
        }
    });
}

#[test]
fn objects_as_large_as_the_api_allows_are_served() {
    let hosts: Vec<String> = (0..64).map(|number| format!("h{number}.test")).collect();
    let listeners = hosts.iter().enumerate().map(|(number, host)| {
        format!("{{name: l{number}, protocol: HTTP, port: PORT, hostname: {host}}}")
    });
    let listeners: Vec<String> = listeners.collect();
    let matched = |rule: usize, number: usize| {
        path(
            "RegularExpression",
            &format!("/{rule}/(a|b|[c-f]+){{1,5}}/{number}"),
        )
    };
    let rules = (0..16).map(|rule| {
        let matches: Vec<String> = (0..7)
            .map(|number| format!("{{{}}}", matched(rule, number)))
            .collect();
        let backend = ["a", "b", "c"][rule % 3];
        format!(
            "{{matches: [{}], backendRefs: [{{name: {backend}, port: 80}}]}}",
            matches.join(", ")
        )
    });
    let rules: Vec<String> = rules.collect();
    let routes = hosts
        .chunks(16)
        .enumerate()
        .map(|(number, hosts)| route(&format!("r{number}"), &hosts.join(", "), &rules.join(", ")));
    let routes: Vec<String> = routes.collect();
    let edge = Edge::start(&listeners.join(", "), &routes);
    for (host, target, expected) in [
        ("h0.test", "/0/a/0", "a"),
        ("h63.test", "/15/cdef/6", "a"),
        ("h40.test", "/14/ab/6", "c"),
        ("h40.test", "/14/ab/7", "404"),
        ("h64.test", "/0/a/0", "404"),
    ] {
        assert_eq!(edge.answer(host, target), expected, "{host}{target}");
    }
}
