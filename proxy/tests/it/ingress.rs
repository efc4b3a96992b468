//! Ingresses: hosts, paths, backends, annotations of ingress-nginx and certificates, over live sockets.

use std::net::SocketAddr;
use std::process::Command;

use crate::support::client::Front;
use crate::support::eventually;
use crate::support::mesh::documents;
use crate::support::origin::{Back, Origin};
use crate::support::pki::Authority;
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::{Raw, Reply};
use crate::support::tls::{Visitor, credential, get};

mod annotations;
mod classes;

/// Returns a Service of the namespace `shop` and its only endpoint.
fn service(name: &str, address: SocketAddr) -> String {
    let (ip, port) = (address.ip(), address.port());
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: shop}}\n\
         spec: {{ports: [{{name: http, port: 80}}]}}\n---\n\
         apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
         metadata: {{name: {name}-1, namespace: shop, labels: {{kubernetes.io/service-name: {name}}}}}\n\
         addressType: IPv4\nports: [{{name: http, port: {port}}}]\nendpoints: [{{addresses: [{ip}]}}]\n"
    )
}

/// Returns an Ingress of the namespace `shop` with annotations of ingress-nginx, `KEY: VALUE` between semicolons.
fn ingress(name: &str, annotations: &str, spec: &str) -> String {
    let annotations = annotations.split_terminator("; ").map(|one| {
        let (key, value) = one.split_once(": ").unwrap();
        format!("nginx.ingress.kubernetes.io/{key}: '{value}'")
    });
    let annotations: Vec<String> = annotations.collect();
    format!(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: {name}\n  namespace: shop\n  \
         annotations: {{{}}}\nspec:\n  ingressClassName: strait\n  {spec}\n",
        annotations.join(", ")
    )
}

/// Returns a rule with paths `TYPE PATH SERVICE`.
fn rules(host: &str, paths: &[&str]) -> String {
    let paths = paths.iter().map(|path| {
        let parts: Vec<&str> = path.split(' ').collect();
        let kind = match parts[0] {
            "i" => "ImplementationSpecific",
            "e" => "Exact",
            _ => "Prefix",
        };
        let backend = format!("{{service: {{name: {}, port: {{number: 80}}}}}}", parts[2]);
        format!(
            "{{path: '{}', pathType: {kind}, backend: {backend}}}",
            parts[1]
        )
    });
    let paths: Vec<String> = paths.collect();
    let host = match host {
        "" => String::new(),
        host => format!("host: '{host}', "),
    };
    format!("rules: [{{{host}http: {{paths: [{}]}}}}]", paths.join(", "))
}

/// Proxy that serves Ingresses, and the services `a` and `b`, whose responses are their names.
struct Edge {
    proxy: Proxy,
    a: Origin,
    b: Origin,
    /// Address of the port 443.
    secured: SocketAddr,
}

impl Edge {
    fn start(ingresses: &[String]) -> Self {
        Self::start_with(&[], ingresses)
    }

    fn start_with(arguments: &[&str], ingresses: &[String]) -> Self {
        Self::start_beside(arguments, &[], ingresses)
    }

    /// Starts it with further objects.
    fn start_beside(arguments: &[&str], more: &[String], ingresses: &[String]) -> Self {
        let [a, b] = ["a", "b"].map(|name| Origin::named(Back::H1, name));
        let start = Start::new();
        let edge = start.edge();
        let empty = "apiVersion: v1\nkind: Service\nmetadata: {name: empty, namespace: shop}\n\
                     spec: {ports: [{name: http, port: 80}]}\n";
        let mesh = [
            service("a", a.address),
            service("b", b.address),
            empty.to_owned(),
        ];
        let mesh = [&mesh, more].concat();
        let secured = SocketAddr::new(edge.ip(), free_address().port());
        let ports = format!("80:{},443:{}", edge.port(), secured.port());
        let proxy = start
            .args([
                "--ingress",
                "--ingress-address",
                &edge.ip().to_string(),
                "--listen-ports",
                &ports,
            ])
            .args(arguments.iter().copied())
            .file("mesh.yaml", documents(&mesh))
            .file("ingress.yaml", documents(ingresses))
            .start();
        Self {
            proxy,
            a,
            b,
            secured,
        }
    }

    fn send(&self, method: &str, host: &str, target: &str, more: &str) -> Reply {
        let text = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n");
        Raw::connect(self.proxy.edge).send(text).reply()
    }

    /// Returns the name of the service that answers, or the status of another response.
    fn answer(&self, host: &str, target: &str) -> String {
        self.answer_to(host, target, "")
    }

    fn answer_to(&self, host: &str, target: &str, headers: &str) -> String {
        let reply = self.send("GET", host, target, headers);
        match reply.status {
            200 => String::from_utf8_lossy(&reply.body).into_owned(),
            status => status.to_string(),
        }
    }

    fn all(&self, host: &str, expected: &[(&str, &str)]) {
        for (target, answer) in expected {
            assert_eq!(self.answer(host, target), *answer, "{host}{target}");
        }
    }

    fn set(&self, ingresses: &[String]) {
        let generation = || self.proxy.metric("strait_config_generation", &[]);
        let before = generation();
        self.proxy.write("ingress.yaml", documents(ingresses));
        eventually("the Ingresses are in effect", || generation() > before);
    }
}

#[test]
fn paths_match_as_kubernetes_has_them() {
    // the table of path matches in the documentation of Ingress, and precedence
    for (paths, expected) in [
        (&["p / a"][..], &[("/any", "a")][..]),
        (
            &["e /foo a"],
            &[("/foo", "a"), ("/bar", "404"), ("/foo/", "404")],
        ),
        (&["e /foo/ a"], &[("/foo", "404"), ("/foo/", "a")]),
        (
            &["p /foo a"],
            &[("/foo", "a"), ("/foo/", "a"), ("/foobar", "404")],
        ),
        (&["p /foo/ a"], &[("/foo", "a"), ("/foo/", "a")]),
        (&["p /aaa/bb a"], &[("/aaa/bbb", "404")]),
        (
            &["p /aaa/bbb a"],
            &[
                ("/aaa/bbb", "a"),
                ("/aaa/bbb/", "a"),
                ("/aaa/bbb/ccc", "a"),
                ("/aaa/bbbxyz", "404"),
            ],
        ),
        (&["p / a", "p /aaa b"], &[("/aaa/ccc", "b"), ("/ccc", "a")]),
        (&["p /foo a", "e /foo b"], &[("/foo", "b"), ("/foo/x", "a")]),
        (&["i /foo a"], &[("/foo/x", "a"), ("/foobar", "404")]),
    ] {
        let edge = Edge::start(&[ingress("i", "", &rules("x.test", paths))]);
        edge.all("x.test", expected);
    }
}

#[test]
fn hosts_are_exact_or_have_one_label_more() {
    let default = "defaultBackend: {service: {name: b, port: {name: http}}}";
    let edge = Edge::start(&[
        ingress("exact", "", &rules("x.test", &["p /a a"])),
        ingress("wild", "", &rules("*.x.test", &["p / a"])),
        ingress(
            "broken",
            "",
            &rules("y.test", &["p /none none", "p /empty empty"]),
        ),
    ]);
    edge.all("x.test", &[("/a", "a"), ("/", "404")]);
    edge.all("w.x.test", &[("/", "a")]);
    edge.all("v.w.x.test", &[("/", "404")]);
    edge.all("other.test", &[("/", "404")]);
    edge.all(
        "y.test",
        &[("/none", "503"), ("/empty", "503"), ("/", "404")],
    );
    let resource = "rules: [{host: z.test, http: {paths: [{path: /, pathType: Prefix, backend: \
                    {resource: {kind: Bucket, name: c}}}]}}]";
    edge.set(&[
        ingress("exact", "", &rules("x.test", &["p /a a"])),
        ingress("wild", "", &rules("*.x.test", &["p / a"])),
        ingress("default", "", default),
        ingress("resource", "", resource),
    ]);
    edge.all("v.w.x.test", &[("/", "b")]);
    edge.all("other.test", &[("/", "b")]);
    edge.all("z.test", &[("/", "500")]);
    edge.all("x.test", &[("/a", "a"), ("/", "404")]);
}

#[test]
fn explain_names_the_ingress_and_its_line() {
    let edge = Edge::start(&[ingress("i", "", &rules("x.test", &["p /a a"]))]);
    let explained = Command::new(env!("CARGO_BIN_EXE_strait"))
        .args([
            "explain",
            "--ingress",
            "--ingress-address",
            &edge.proxy.edge.ip().to_string(),
        ])
        .args([
            "--listen-ports",
            &format!("80:{}", edge.proxy.edge.port()),
            "--config",
        ])
        .arg(edge.proxy.mesh())
        .args([
            "GET",
            &format!("http://{}/a", edge.proxy.edge),
            "-H",
            "Host: x.test",
        ])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&explained.stdout);
    assert!(text.contains("Ingress/shop/i"), "{text}");
    assert!(text.contains("ingress.yaml:10"), "{text}");
}

#[test]
fn expressions_rewrite_by_their_groups_and_rank_by_length() {
    let edge = Edge::start(&[
        ingress(
            "api",
            "rewrite-target: /v2/$2",
            &rules("x.test", &["i /api(/|$)(.*) a", "e /api-exact a"]),
        ),
        ingress("web", "", &rules("x.test", &["p / b", "p /Other b"])),
    ]);
    for (target, path) in [
        ("/api/orders/1?q=2", "/v2/orders/1?q=2"),
        ("/API/x", "/v2/x"),
        ("/api", "/v2/"),
    ] {
        assert_eq!(edge.answer("x.test", target), "a", "{target}");
        assert_eq!(edge.a.seen().last().unwrap().path(), path);
    }
    edge.all("x.test", &[("/", "b"), ("/other", "b"), ("/apix", "b")]);
    // ingress-nginx compares all paths of such a host as expressions
    let host = Edge::start_with(
        &["--ingress-nginx-regex", "host"],
        &[
            ingress(
                "api",
                "use-regex: true",
                &rules("x.test", &["i /api/[0-9]+ a"]),
            ),
            ingress("web", "", &rules("x.test", &["p /Other b"])),
        ],
    );
    host.all(
        "x.test",
        &[("/other-one", "b"), ("/api/12", "a"), ("/api/x", "404")],
    );
}

#[test]
fn redirects_of_annotations_have_their_status_and_location() {
    let tls = "tls: [{hosts: [s.test], secretName: none}]\n  ";
    let edge = Edge::start(&[
        ingress(
            "p",
            "permanent-redirect: https://y.test/z; permanent-redirect-code: 308",
            &rules("p.test", &["p / a"]),
        ),
        ingress(
            "t",
            "temporal-redirect: http://y.test",
            &rules("t.test", &["p / a"]),
        ),
        ingress("r", "app-root: /app", &rules("r.test", &["p / a"])),
        ingress(
            "w",
            "from-to-www-redirect: true",
            &rules("w.test", &["p / a"]),
        ),
        ingress(
            "s",
            "ssl-redirect: true",
            &format!("{tls}{}", rules("s.test", &["p / a"])),
        ),
        ingress(
            "f",
            "force-ssl-redirect: true",
            &rules("f.test", &["p / a"]),
        ),
        ingress("no-tls", "ssl-redirect: true", &rules("n.test", &["p / a"])),
    ]);
    for (host, target, status, location) in [
        ("p.test", "/", 308, "https://y.test/z"),
        ("t.test", "/", 302, "http://y.test/"),
        ("r.test", "/", 302, "http://r.test/app"),
        ("www.w.test", "/x?y", 308, "http://w.test/x?y"),
        ("s.test", "/x?y", 308, "https://s.test/x?y"),
        ("f.test", "/x", 308, "https://f.test/x"),
    ] {
        let reply = edge.send("GET", host, target, "");
        assert_eq!(reply.status, status, "{host}");
        assert!(
            reply.has(&format!("location: {location}")),
            "{host}: {reply:?}"
        );
    }
    edge.all("r.test", &[("/x", "a")]);
    edge.all("w.test", &[("/x", "a")]);
    edge.all("n.test", &[("/x", "a")]);
}

#[test]
fn canary_gets_its_share_and_what_headers_and_cookies_say() {
    let canary = "canary: true; canary-by-header: X-Canary; canary-by-cookie: c; canary-weight: 30";
    let edge = Edge::start(&[
        ingress("stable", "", &rules("x.test", &["p / a"])),
        ingress("next", canary, &rules("x.test", &["p / b"])),
    ]);
    for (headers, expected) in [
        ("X-Canary: always\r\nCookie: c=never\r\n", "b"),
        ("X-Canary: never\r\nCookie: c=always\r\n", "a"),
        ("Cookie: a=1; c=always; d=2\r\n", "b"),
        ("Cookie: c=never\r\n", "a"),
    ] {
        for _ in 0..20 {
            assert_eq!(
                edge.answer_to("x.test", "/", headers),
                expected,
                "{headers}"
            );
        }
    }
    let mut connection = Raw::connect(edge.proxy.edge);
    let request = "GET / HTTP/1.1\r\nHost: x.test\r\nX-Canary: other\r\n\r\n";
    let share = (0..10_000)
        .filter(|_| connection.send(request).reply().body == b"b")
        .count();
    // 4.4 standard deviations are 2 %
    assert!((2_800..3_200).contains(&share), "{share}");
}

#[test]
fn annotations_that_restrict_requests_are_followed_or_close_their_ingress() {
    let edge = Edge::start(&[
        ingress(
            "out",
            "whitelist-source-range: 192.0.2.0/24",
            &rules("out.test", &["p / a"]),
        ),
        ingress(
            "in",
            "whitelist-source-range: 127.0.0.0/8",
            &rules("in.test", &["p / a"]),
        ),
        ingress(
            "deny",
            "denylist-source-range: 127.0.0.0/8",
            &rules("deny.test", &["p / a"]),
        ),
        ingress(
            "body",
            "proxy-body-size: 4",
            &rules("body.test", &["p / a"]),
        ),
        ingress(
            "rate",
            "limit-rpm: 2; limit-burst-multiplier: 1",
            &rules("rate.test", &["p / a"]),
        ),
        ingress(
            "closed",
            "auth-type: basic; auth-secret: users",
            &rules("closed.test", &["p /x a"]),
        ),
        ingress("beside", "", &rules("closed.test", &["p /y a"])),
    ]);
    edge.all("out.test", &[("/", "403")]);
    edge.all("in.test", &[("/", "a")]);
    edge.all("deny.test", &[("/", "403")]);
    let body = |length: usize| {
        let more = format!("Content-Length: {length}\r\n\r\n{}", "x".repeat(length));
        let text = format!("POST / HTTP/1.1\r\nHost: body.test\r\n{more}");
        Raw::connect(edge.proxy.edge).send(text).reply().status
    };
    assert_eq!((body(4), body(5)), (200, 413));
    edge.all("rate.test", &[("/", "a"), ("/", "a"), ("/", "503")]);
    edge.all("closed.test", &[("/x", "500"), ("/y", "a"), ("/", "404")]);
}

#[test]
fn requests_have_the_edits_of_annotations() {
    let cors = "enable-cors: true; cors-allow-origin: https://o.test; cors-expose-headers: X-A";
    let edge = Edge::start(&[
        ingress(
            "v",
            "upstream-vhost: v.internal; x-forwarded-prefix: /p",
            &rules("v.test", &["p / a"]),
        ),
        ingress(
            "r",
            "rewrite-target: /fixed",
            &rules("r.test", &["p /old a"]),
        ),
        ingress("c", cors, &rules("c.test", &["p / a"])),
        ingress(
            "alias",
            "server-alias: also.test",
            &rules("first.test", &["p / a"]),
        ),
    ]);
    edge.all("v.test", &[("/", "a")]);
    let seen = edge.a.seen().pop().unwrap();
    assert_eq!(
        (seen.host(), seen.header("x-forwarded-prefix")),
        ("v.internal", Some("/p"))
    );
    edge.all("r.test", &[("/old/x?y", "a")]);
    assert_eq!(edge.a.seen().pop().unwrap().path(), "/fixed?y");
    edge.all("also.test", &[("/", "a")]);
    let preflight = "Origin: https://o.test\r\nAccess-Control-Request-Method: PUT\r\n";
    let reply = edge.send("OPTIONS", "c.test", "/", preflight);
    assert!(
        reply.has("access-control-allow-origin: https://o.test"),
        "{reply:?}"
    );
    assert!(
        reply.has("access-control-allow-credentials: true"),
        "{reply:?}"
    );
    assert!(reply.has("access-control-max-age: 1728000"), "{reply:?}");
}

#[tokio::test]
async fn hosts_are_served_over_tls_by_their_secrets() {
    let ca = Authority::new("ca");
    let pair = |host: &str| ca.server(&[host]);
    let secret = |name: &str, host: &str| {
        credential(name, &pair(host)).replace(
            &format!("name: {name}"),
            &format!("name: {name}, namespace: shop"),
        )
    };
    let tls = |host: &str, secret: &str| {
        let rules = rules(host, &["p / a"]);
        format!("tls: [{{hosts: [{host}], secretName: {secret}}}]\n  {rules}")
    };
    let secured = free_address();
    let ports = |edge: SocketAddr| format!("80:{},443:{}", edge.port(), secured.port());
    let a = Origin::named(Back::H1, "a");
    let start = Start::new();
    let edge = start.edge();
    let ingresses = [
        ingress("one", "", &tls("one.test", "one")),
        ingress("two", "", &tls("two.test", "two")),
        ingress("none", "", &tls("none.test", "none")),
        ingress("plain", "", &rules("plain.test", &["p / a"])),
    ];
    let address = edge.ip().to_string();
    let proxy = start
        .args([
            "--ingress",
            "--ingress-address",
            &address,
            "--listen-ports",
            &ports(edge),
        ])
        .args(["--ingress-default-certificate", "shop/fallback"])
        .file("mesh.yaml", service("a", a.address))
        .file("ingress.yaml", documents(&ingresses))
        .file(
            "secrets.yaml",
            documents(&[secret("one", "one.test"), secret("fallback", "plain.test")]),
        )
        .start();
    let visitor = Visitor::new(SocketAddr::new(edge.ip(), secured.port()), &ca);
    let status = async |host: &str| match visitor.client(Front::H2, host).await {
        Ok(mut client) => client.call(get(host, "/")).await.status,
        Err(_) => 0,
    };
    assert_eq!(status("one.test").await, 200);
    assert_eq!(status("plain.test").await, 200);
    // a missing certificate closes its host, and no other listener serves it
    assert_eq!(status("none.test").await, 0);
    assert_eq!(status("two.test").await, 0);
    let all = [
        secret("one", "one.test"),
        secret("fallback", "plain.test"),
        secret("two", "two.test"),
    ];
    proxy.write("secrets.yaml", documents(&all));
    let mut arrived = false;
    for _ in 0..200 {
        arrived = status("two.test").await == 200;
        if arrived {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(arrived, "the late certificate is used");
    let text = "GET / HTTP/1.1\r\nHost: one.test\r\n\r\n";
    assert_eq!(Raw::connect(proxy.edge).send(text).reply().status, 200);
}

#[test]
fn migrated_objects_serve_the_same_requests() {
    let ingresses = [
        ingress(
            "api",
            "rewrite-target: /v2/$2; whitelist-source-range: 127.0.0.0/8",
            &rules("x.test", &["i /api(/|$)(.*) a"]),
        ),
        ingress("web", "app-root: /app", &rules("x.test", &["p / b"])),
        ingress("wild", "", &rules("*.y.test", &["p /a a", "e /b b"])),
        ingress(
            "next",
            "canary: true; canary-by-header: X-C",
            &rules("x.test", &["p / a"]),
        ),
        ingress("closed", "satisfy: any", &rules("z.test", &["p / a"])),
    ];
    let edge = Edge::start(&ingresses);
    let file = edge.proxy.mesh().join("ingress.yaml");
    let migrated = Command::new(env!("CARGO_BIN_EXE_strait"))
        .args(["migrate", "ingress", "-o", "yaml", "-f"])
        .arg(&file)
        .arg("-f")
        .arg(edge.proxy.mesh().join("mesh.yaml"))
        .output()
        .unwrap();
    assert_eq!(
        migrated.status.code(),
        Some(1),
        "an annotation is not followed"
    );
    let objects = String::from_utf8(migrated.stdout).unwrap();
    let address = edge.proxy.edge.ip();
    let requests = |edge: &Edge| -> Vec<String> {
        let mut answers = Vec::new();
        for host in ["x.test", "a.y.test", "b.a.y.test", "z.test", "other.test"] {
            for target in [
                "/", "/api", "/api/x", "/APIX", "/app", "/a", "/a/b", "/ab", "/b", "/b/",
            ] {
                for headers in ["", "X-C: always\r\n"] {
                    let reply = edge.send("GET", host, target, headers);
                    answers.push(format!(
                        "{host}{target} {headers}{} {:?}",
                        reply.status, reply.body
                    ));
                }
            }
        }
        answers
    };
    let before = requests(&edge);
    let gateway = objects.replace(
        "gatewayClassName: strait\n",
        &format!("gatewayClassName: strait\n  addresses: [{{value: {address}}}]\n"),
    );
    let generation = || edge.proxy.metric("strait_config_generation", &[]);
    let at = generation();
    edge.proxy.write("ingress.yaml", gateway);
    eventually("the migrated objects are in effect", || generation() > at);
    assert_eq!(requests(&edge), before);
}
