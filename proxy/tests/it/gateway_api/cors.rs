//! CORS filters of HTTPRoutes: which origins they mean, and what caches and browsers are told.

use super::{Edge, ONE, path, route, service};
use crate::support::origin::{Back, Origin, full};
use crate::support::raw::Reply;

/// Rule with a CORS filter and further filters, up to its backends.
fn filtered(target: &str, cors: &str, more: &str) -> String {
    format!(
        "{{matches: [{{{}}}], filters: [{{type: CORS, cors: {{{cors}}}}}{more}]",
        path("PathPrefix", target)
    )
}

/// Rule with a CORS filter for the service `a`.
fn shared(target: &str, cors: &str) -> String {
    let rule = filtered(target, cors, "");
    format!("{rule}, backendRefs: [{{name: a, port: 80}}]}}")
}

/// Values of a header, in the order of their lines.
fn values<'r>(reply: &'r Reply, name: &str) -> Vec<&'r str> {
    let lines = reply
        .headers
        .iter()
        .filter_map(|line| line.split_once(": "));
    let of_name = lines.filter(|(other, _)| *other == name);
    of_name.map(|(_, value)| value).collect()
}

fn preflight(edge: &Edge, target: &str, origin: &str) -> Reply {
    let headers = format!(
        "origin: {origin}\r\naccess-control-request-method: DELETE\r\naccess-control-request-headers: x-a, authorization\r\n"
    );
    edge.send("OPTIONS", "shop.test", target, &headers)
}

#[test]
fn origins_are_compared_by_scheme_host_and_port() {
    let rules = [
        shared("/exact", "allowOrigins: ['https://www.shop.test']"),
        shared("/under", "allowOrigins: ['https://*.shop.test']"),
        shared(
            "/port",
            "allowOrigins: ['https://*:8443', 'http://a.test:80']",
        ),
        shared("/host", "allowOrigins: ['https://*']"),
        shared("/any", "allowOrigins: ['*']"),
    ];
    let edge = Edge::start(ONE, &[route("r", "", &rules.join(", "))]);
    let all = ["/exact", "/under", "/port", "/host", "/any"];
    for (origin, expected) in [
        (
            "https://www.shop.test",
            &["/exact", "/under", "/host", "/any"][..],
        ),
        (
            "https://www.shop.test:443",
            &["/exact", "/under", "/host", "/any"],
        ),
        (
            "HTTPS://WWW.Shop.Test",
            &["/exact", "/under", "/host", "/any"],
        ),
        ("https://a.b.shop.test", &["/under", "/host", "/any"]),
        ("https://shop.test", &["/host", "/any"]),
        ("https://www.shop.test:8443", &["/port", "/any"]),
        ("http://a.test", &["/port", "/any"]),
        ("http://www.shop.test", &["/any"]),
        ("https://www.shop.test/", &["/any"]),
        ("https://evil.test/.shop.test", &["/any"]),
        ("https://user@www.shop.test", &["/any"]),
        ("https://evil.test#.shop.test", &["/any"]),
        ("https://www.shop.test https://evil.test", &["/any"]),
        ("null", &["/any"]),
        ("", &[]),
    ] {
        for target in all {
            let headers = format!("origin: {origin}\r\n");
            let replies = [
                edge.send("GET", "shop.test", target, &headers),
                preflight(&edge, target, origin),
            ];
            for reply in replies {
                assert_eq!(reply.status, 200, "{target} {origin}");
                let allowed = values(&reply, "access-control-allow-origin");
                match expected.contains(&target) {
                    true => assert_eq!(allowed, [origin], "{target} {origin}"),
                    false => assert!(allowed.is_empty(), "{target} {origin}: {reply:?}"),
                }
                assert_eq!(values(&reply, "vary"), ["origin"], "{target} {origin}");
            }
        }
    }
    let without = edge.send("GET", "shop.test", "/exact", "");
    assert_eq!(values(&without, "vary"), ["origin"]);
}

#[test]
fn with_credentials_no_wildcard_is_sent() {
    let all = "allowOrigins: ['*'], allowMethods: ['*'], allowHeaders: ['*'], exposeHeaders: ['*']";
    let bare = |rule: &str| rule.replace("name: a,", "name: bare,");
    let rules = [
        bare(&shared(
            "/private",
            &format!("{all}, allowCredentials: true"),
        )),
        bare(&shared("/public", all)),
    ];
    // the service allows everything to everyone
    let origin = Origin::start(Back::H1, |_| async {
        let response = hyper::Response::builder()
            .header("x-a", "1")
            .header("vary", "accept")
            .header("access-control-allow-origin", "*")
            .header("access-control-allow-credentials", "true")
            .header("access-control-expose-headers", "*");
        response.body(full("")).unwrap()
    });
    let more = [service("edge/bare", origin.address)];
    let edge = Edge::start_with(ONE, &[route("r", "", &rules.join(", "))], &more);
    for (target, credentials) in [("/private", &["true"][..]), ("/public", &[])] {
        let reply = preflight(&edge, target, "https://a.test");
        for (name, expected) in [
            ("access-control-allow-origin", &["https://a.test"][..]),
            ("access-control-allow-credentials", credentials),
            ("access-control-allow-methods", &["DELETE"]),
            ("access-control-allow-headers", &["x-a, authorization"]),
        ] {
            assert_eq!(values(&reply, name), expected, "{target} {name}");
        }
    }
    assert_eq!(origin.seen().len(), 0, "preflights are not forwarded");
    let get = |target: &str| edge.send("GET", "shop.test", target, "origin: https://a.test\r\n");
    let private = get("/private");
    let [exposed] = values(&private, "access-control-expose-headers")[..] else {
        panic!("{private:?}");
    };
    let exposed: Vec<&str> = exposed.split(',').collect();
    assert!(
        exposed.contains(&"x-a") && !exposed.contains(&"*"),
        "{exposed:?}"
    );
    assert!(private.has("access-control-allow-credentials: true"));
    assert_eq!(values(&private, "vary"), ["accept", "origin"]);
    let public = get("/public");
    assert_eq!(values(&public, "access-control-expose-headers"), ["*"]);
    assert!(
        values(&public, "access-control-allow-credentials").is_empty(),
        "{public:?}"
    );
}

#[test]
fn cors_precedes_redirects_and_backends_that_are_not_valid() {
    let cors = "allowOrigins: ['https://a.test'], allowMethods: [DELETE]";
    let redirect = ", {type: RequestRedirect, requestRedirect: {hostname: to.test}}";
    let rules = [
        format!("{}}}", filtered("/to", cors, redirect)),
        shared("/none", cors).replace("name: a,", "name: none,"),
    ];
    let edge = Edge::start(ONE, &[route("r", "", &rules.join(", "))]);
    for (target, status) in [("/to", 302), ("/none", 500)] {
        let reply = preflight(&edge, target, "https://a.test");
        assert_eq!(reply.status, 200, "{target}");
        assert!(
            reply.has("access-control-allow-methods: DELETE"),
            "{reply:?}"
        );
        let reply = edge.send("GET", "shop.test", target, "origin: https://a.test\r\n");
        assert_eq!(reply.status, status, "{target}");
        let allowed = values(&reply, "access-control-allow-origin");
        assert_eq!(allowed, ["https://a.test"], "{reply:?}");
    }
    let explained = edge.explain(&["-H", "origin: https://a.test"], "/to");
    assert!(explained.contains("302"), "{explained}");
    assert!(explained.contains("https://a.test"), "{explained}");
}
