//! Changes of requests and responses by providers, and their order among other policies.

use super::*;
use crate::support::mesh::routes;

#[test]
fn headers_of_an_allowed_request_come_from_the_provider() {
    let provider = Origin::start(Back::H1, |_| async {
        let headers = [
            ("x-up", "ann"),
            ("x-up", "bob"),
            ("x-other", "no"),
            ("content-length", "17"),
            ("x-client", "yes"),
            ("x-envoy-auth-headers-to-remove", "cookie, host"),
        ];
        reply(200, &headers)
    });
    let fields = "headersToUpstreamOnAllow: [x-up, content-length, transfer-encoding], headersToDownstreamOnAllow: [x-client, x-from]";
    let edge = Edge::http(fields, &provider);
    let reply = edge.request("/", "x-up: evil\r\ncookie: a\r\nx-other: mine\r\n");
    assert_eq!(reply.status, 200);
    assert!(reply.has("x-client: yes") && reply.has("x-from: origin"));
    assert!(!reply.has("x-up: ann") && !reply.has("x-other: no"));
    let seen = edge.last();
    let values: Vec<_> = seen.headers.get_all("x-up").iter().collect();
    assert_eq!(values, ["ann", "bob"]);
    assert_eq!(
        (seen.header("x-other"), seen.header("cookie")),
        (Some("mine"), None)
    );
    assert_eq!(
        (seen.header("content-length"), seen.host()),
        (None, "a.test")
    );

    // replies of the proxy have these headers, too
    edge.set(&[ask(""), of("DENY", "to: [{operation: {paths: [/no]}}]")]);
    let reply = edge.request("/no", "");
    assert_eq!((reply.status, reply.has("x-client: yes")), (403, true));
}

#[test]
fn other_policies_judge_what_the_provider_made_of_a_request() {
    let provider = Origin::start(Back::H1, |request: Request<Incoming>| async move {
        let is_known = request.headers().contains_key("authorization");
        match is_known {
            true => reply(200, &[("x-role", "admin")]),
            false => reply(401, &[]),
        }
    });
    let edge = Edge::http("headersToUpstreamOnAllow: [x-role]", &provider);
    let allow = of(
        "ALLOW",
        "when: [{key: 'request.headers[x-role]', values: [admin]}]",
    );
    edge.set(&[ask("to: [{operation: {paths: [/in*]}}]"), allow.clone()]);
    assert_eq!(edge.request("/in", "authorization: a\r\n").status, 200);
    assert_eq!(edge.request("/in", "x-role: admin\r\n").status, 401);
    assert_eq!(edge.request("/out", "authorization: a\r\n").status, 403);

    // what a provider allows, a DENY policy still denies; what it denies, no ALLOW policy allows
    edge.set(&[
        ask(""),
        of("DENY", "to: [{operation: {paths: [/x]}}]"),
        allow,
    ]);
    assert_eq!(edge.request("/x", "authorization: a\r\n").status, 403);
    assert_eq!(edge.request("/y", "authorization: a\r\n").status, 200);
    assert_eq!(edge.request("/y", "x-role: admin\r\n").status, 401);
}

#[test]
fn route_is_looked_up_again_only_where_the_provider_says_so() {
    let provider = Origin::start(Back::H1, |_| async { reply(200, &[("x-tenant", "blue")]) });
    let edge = Edge::http("headersToUpstreamOnAllow: [x-tenant]", &provider);
    let rules = "- {match: [{headers: {x-tenant: {exact: blue}}}], directResponse: {status: 207}}\n\
        - {directResponse: {status: 208}}";
    let mesh = edge
        .mesh
        .split("---")
        .filter(|one| !one.contains("VirtualService"));
    let mesh = documents(
        mesh.map(str::to_owned)
            .chain([routes("all", "['*']", rules)]),
    );
    edge.change(|| edge.proxy.write("mesh.yaml", &mesh));
    assert_eq!(edge.request("/", "").status, 208);
    let fields = "headersToUpstreamOnAllow: [x-tenant], clearRouteCache: true";
    edge.configure(&super::provider("envoyExtAuthzHttp", fields));
    assert_eq!(edge.request("/", "").status, 207);
}

#[test]
fn several_providers_are_asked_in_the_order_of_their_names() {
    let first = Origin::start(Back::H1, |request: Request<Incoming>| async move {
        reply(
            if request.uri().path() == "/a" {
                401
            } else {
                200
            },
            &[],
        )
    });
    let second = Origin::start(Back::H1, |request: Request<Incoming>| async move {
        reply(
            if request.uri().path() == "/b" {
                404
            } else {
                200
            },
            &[],
        )
    });
    let edge = Edge::http("", &first);
    let more = service("more", Back::H1, &[(second.address, "v1")]);
    edge.change(|| edge.proxy.write("more.yaml", &more));
    let config = format!(
        "{}- {{name: q, envoyExtAuthzHttp: {{service: more.test, port: 80}}}}\n",
        super::provider("envoyExtAuthzHttp", "")
    );
    edge.configure(&config);
    let other = ask("")
        .replace("name: ask", "name: a-other")
        .replace("{name: p}", "{name: q}");
    edge.set(&[other, ask("")]);
    for (path, status, asked) in [
        ("/a", 401, (1, 0)),
        ("/b", 404, (2, 1)),
        ("/c", 200, (3, 2)),
    ] {
        assert_eq!(edge.request(path, "").status, status, "{path}");
        assert_eq!((first.seen().len(), second.seen().len()), asked, "{path}");
    }
}

#[test]
fn several_providers_deny_where_only_one_may_be_named() {
    let provider = answering(200);
    let start = Start::new();
    let config = NamedTempFile::new().unwrap();
    let text = super::provider("envoyExtAuthzHttp", "");
    let second = text
        .replace("extensionProviders:\n", "")
        .replace("name: p", "name: q");
    fs::write(config.path(), format!("{text}{second}")).unwrap();
    let origin = origin();
    let mesh = documents([
        everything_to(start.edge(), &origin),
        service("authz", Back::H1, &[(provider.address, "v1")]),
    ]);
    let other = ask("to: [{operation: {paths: [/a]}}]")
        .replace("name: ask", "name: other")
        .replace("{name: p}", "{name: q}");
    let proxy = start
        .args(LABELS)
        .args(["--mesh-config", config.path().to_str().unwrap()])
        .args(["--authz-custom-providers", "one"])
        .file("mesh.yaml", mesh)
        .file(
            "policies.yaml",
            documents([ask("to: [{operation: {paths: [/b]}}]"), other]),
        )
        .start();
    let status = |path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n");
        Raw::connect(proxy.edge).send(request).reply().status
    };
    assert_eq!((status("/a"), status("/b"), status("/c")), (403, 403, 200));
    assert!(provider.seen().is_empty());
}
