//! Providers over HTTP.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use super::*;
use crate::support::origin::{RawOrigin, Unreachable};

/// Decisions of the metric of authorization.
fn custom(edge: &Edge, result: &str) -> f64 {
    let labels = [
        ("stage", "custom"),
        ("result", result),
        ("transport", "http"),
    ];
    edge.proxy.metric("strait_authz_decisions_total", &labels)
}

#[test]
fn provider_sees_the_head_that_its_settings_name() {
    let provider = answering(200);
    let fields = "pathPrefix: /check, includeRequestHeadersInCheck: [x-a, y-*], \
        includeAdditionalHeadersInCheck: {x-more: strait}, timeout: 1500ms";
    let edge = Edge::http(fields, &provider);
    let headers =
        "authorization: secret\r\nx-a: 1\r\ny-b: 2\r\ncookie: c\r\nx-more: forged\r\nx-b: 3\r\n";
    let reply = edge.send(
        "PUT //a/../b?c=d",
        &format!("{headers}content-length: 0\r\n"),
        "",
    );
    assert_eq!(reply.status, 200);
    let seen = provider.only();
    assert_eq!(
        (seen.method.as_str(), seen.path(), seen.host()),
        ("PUT", "/check//b?c=d", "a.test")
    );
    let mut names: Vec<&str> = seen.headers.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "authorization",
            "content-length",
            "host",
            "x-a",
            "x-envoy-expected-rq-timeout-ms",
            "x-more",
            "y-b"
        ]
    );
    assert_eq!(seen.header("x-more"), Some("strait"));
    assert_eq!(seen.header("content-length"), Some("0"));
    assert_eq!(seen.header("x-envoy-expected-rq-timeout-ms"), Some("1500"));
    assert_eq!(edge.last().header("x-more"), Some("forged"));
    assert_eq!(
        (custom(&edge, "allowed"), custom(&edge, "denied")),
        (1.0, 0.0)
    );

    // the older name of the list counts only without the newer one
    edge.configure(&super::provider(
        "envoyExtAuthzHttp",
        "includeHeadersInCheck: [Cookie]",
    ));
    edge.request("/", headers);
    let seen = provider.seen().pop().unwrap();
    assert!(seen.header("cookie").is_some() && seen.header("x-a").is_none());
}

#[test]
fn only_what_policies_select_is_checked() {
    let provider = answering(403);
    let edge = Edge::http("", &provider);
    edge.set(&[ask("to: [{operation: {paths: [/a*]}}]")]);
    assert_eq!(edge.request("/b", "").status, 200);
    assert_eq!(edge.request("/a", "").status, 403);
    assert_eq!(provider.seen().len(), 1);

    // a policy in dry run asks no provider
    let dry = ask("").replace(
        "annotations: {}",
        "annotations: {istio.io/dry-run: \"true\"}",
    );
    edge.set(&[dry]);
    assert_eq!(edge.request("/a", "").status, 200);
    assert_eq!(provider.seen().len(), 1);

    // invalid requests are refused before
    edge.set(&[ask("")]);
    assert_eq!(edge.request("/%00", "").status, 400);
    assert_eq!(provider.seen().len(), 1);
}

#[test]
fn client_gets_what_the_provider_answers() {
    for (status, fields, expected) in [
        (403, "", "x-why: no"),
        (
            302,
            "headersToDownstreamOnDeny: [set-cookie]",
            "location: /login",
        ),
        (401, "headersToDownstreamOnDeny: [X-Why]", "x-why: no"),
        (404, "", "set-cookie: a=b"),
    ] {
        let provider = Origin::start(Back::H1, move |_| async move {
            let headers = [
                ("x-why", "no"),
                ("location", "/login"),
                ("set-cookie", "a=b"),
            ];
            reply(status, &headers)
        });
        let edge = Edge::http(fields, &provider);
        let reply = edge.request("/page", "");
        assert_eq!(reply.status, status, "{fields}");
        assert_eq!(&*reply.body, b"from the provider");
        assert!(reply.has(expected), "{status} {fields}");
        assert_eq!(reply.has("x-why: no"), status != 302, "{status} {fields}");
        assert!(reply.has("content-length: 17") && !reply.has("transfer-encoding: chunked"));
        let line = edge.proxy.logged("/page");
        assert_eq!(line["response_code_details"], "ext_authz_denied");
        assert_eq!(line["response_flags"], "UAEX");
        assert!(edge.origin.seen().is_empty());
        assert_eq!(
            (custom(&edge, "allowed"), custom(&edge, "denied")),
            (0.0, 1.0)
        );
    }
}

#[test]
fn failures_deny_unless_the_provider_fails_open() {
    let hangs = Unreachable::new();
    let refused = crate::support::proxy::free_address();
    let broken = RawOrigin::start(|_, stream| drop(stream));
    let failing = answering(503);
    for at in [hangs.address, refused, broken.address, failing.address] {
        for (fields, status) in [
            ("", 403),
            ("statusOnError: '503'", 503),
            ("failOpen: true, statusOnError: '503'", 200),
        ] {
            let fields = format!("timeout: 100ms, {fields}");
            let edge = Edge::start("envoyExtAuthzHttp", &fields, Back::H1, at);
            let reply = edge.request("/page", "");
            assert_eq!(reply.status, status, "{at} {fields}");
            let result = if status == 200 { "allowed" } else { "denied" };
            let failures = [("result", result)];
            assert_eq!(
                edge.proxy
                    .metric("strait_ext_authz_failures_total", &failures),
                1.0
            );
            if status != 200 {
                assert!(reply.body.is_empty());
                let line = edge.proxy.logged("/page");
                assert_eq!(line["response_code_details"], "ext_authz_error");
                assert_eq!(line["response_flags"], "UAEX");
            }
        }
    }
}

#[test]
fn unknown_providers_deny_what_they_are_asked_about() {
    let provider = answering(200);
    let edge = Edge::http("", &provider);
    assert_eq!(edge.request("/a", "").status, 200);
    edge.set(&[ask("to: [{operation: {paths: [/a]}}]").replace("name: p", "name: q")]);
    let reply = edge.request("/a", "");
    assert_eq!(
        (reply.status, &*reply.body),
        (403, b"RBAC: access denied".as_slice())
    );
    assert_eq!(edge.request("/b", "").status, 200);

    // a provider may appear, change and disappear while the proxy runs
    let config = super::provider("envoyExtAuthzHttp", "").replace("name: p", "name: q");
    edge.configure(&config);
    assert_eq!(edge.request("/a", "").status, 200);
    edge.configure("extensionProviders: []\n");
    assert_eq!(edge.request("/a", "").status, 403);
    edge.configure(&config);

    // a file with an error keeps its last good version
    fs::write(edge.config.path(), "extensionProviders: [{name: q}]\n").unwrap();
    let rejected = || {
        edge.proxy.metric(
            "strait_config_resources_rejected",
            &[("kind", "MeshConfig")],
        )
    };
    eventually("the file is rejected", || rejected() == 1.0);
    assert_eq!(edge.request("/a", "").status, 200);

    // an unknown service cannot be asked
    edge.change(|| {
        fs::write(
            edge.config.path(),
            config.replace("authz.test", "nowhere.test"),
        )
        .unwrap()
    });
    assert_eq!(edge.request("/a", "").status, 403);
}

#[test]
fn unknown_service_denies_whatever_its_provider_says() {
    let provider = answering(200);
    let edge = Edge::http("failOpen: true", &provider);
    assert_eq!(edge.request("/a", "").status, 200);
    let config = super::provider("envoyExtAuthzHttp", "failOpen: true");
    edge.configure(&config.replace("authz.test", "nowhere.test"));
    let reply = edge.request("/a", "");
    assert_eq!(
        (reply.status, &*reply.body),
        (403, b"RBAC: access denied".as_slice())
    );
    edge.proxy
        .has_logged("the service nowhere.test:80, which no resource names");
}

#[test]
fn denial_stays_one_without_its_page() {
    let provider = Origin::start(Back::H1, |request: Request<Incoming>| async move {
        let status = if request.uri().path() == "/large" {
            403
        } else {
            200
        };
        let mut response = Response::new(full(vec![b'x'; 2 << 20]));
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        response
    });
    let edge = Edge::http("failOpen: true", &provider);
    assert_eq!(edge.request("/large", "").status, 403);
    assert!(edge.origin.seen().is_empty());
    assert_eq!(edge.request("/", "").status, 200);
    let failures = [("result", "allowed")];
    assert_eq!(
        edge.proxy
            .metric("strait_ext_authz_failures_total", &failures),
        1.0
    );
}

#[test]
fn answer_with_too_many_changes_is_a_failure() {
    let provider = Origin::start(Back::H1, |request: Request<Incoming>| async move {
        let count = if request.uri().path() == "/many" {
            65
        } else {
            64
        };
        let mut response = reply(200, &[("unrelated", "1")]);
        for number in 0..20 {
            let name = format!("x-other-{number}").parse::<hyper::header::HeaderName>();
            response
                .headers_mut()
                .append(name.unwrap(), "1".parse().unwrap());
        }
        for _ in 0..count {
            response
                .headers_mut()
                .append("x-up", "ann".parse().unwrap());
        }
        response
    });
    let edge = Edge::http("headersToUpstreamOnAllow: [x-up]", &provider);
    assert_eq!(edge.request("/", "x-up: forged\r\n").status, 200);
    let count = edge.last().headers.get_all("x-up").iter().count();
    assert_eq!(count, 64);
    assert_eq!(edge.request("/many", "x-up: forged\r\n").status, 403);
}

#[test]
fn headers_of_the_provider_are_never_those_of_the_client() {
    let provider = answering(200);
    let fields = "headersToUpstreamOnAllow: [x-user, x-forwarded-user, 'x-auth-*', authorization]";
    let headers = "x-user: root\r\nx-forwarded-user: root\r\nX_Auth_Email: root@a\r\nx-auth-groups: a\r\nx-other: b\r\nauthorization: c\r\n";
    let closed = Origin::start(Back::H1, |_| async { reply(500, &[]) });
    let open = format!("failOpen: true, {fields}");
    for (fields, provider) in [(fields, &provider), (&*open, &closed)] {
        let edge = Edge::http(fields, provider);
        assert_eq!(edge.request("/", headers).status, 200, "{fields}");
        let seen = edge.last();
        for name in [
            "x-user",
            "x-forwarded-user",
            "x_auth_email",
            "x-auth-groups",
        ] {
            assert_eq!(seen.header(name), None, "{fields} {name}");
        }
        assert_eq!(seen.header("x-other"), Some("b"));
        assert_eq!(seen.header("authorization"), Some("c"));
    }
}

#[test]
fn connection_that_the_provider_closed_is_replaced() {
    let closed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&closed);
    let provider = RawOrigin::start(move |_, mut stream| {
        // each connection answers once, and says nothing of its end
        let mut head = [0; 4096];
        if stream.read(&mut head).is_ok_and(|count| count > 0) {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        }
        drop(stream);
        count.fetch_add(1, Ordering::SeqCst);
    });
    let edge = Edge::start("envoyExtAuthzHttp", "", Back::H1, provider.address);
    for number in 1..=200 {
        assert_eq!(edge.request("/", "").status, 200);
        // what is sent on a connection before it ends may have been processed
        eventually("the connection is closed", || {
            closed.load(Ordering::SeqCst) >= number
        });
    }
}

#[test]
fn bodies_are_sent_up_to_their_bound() {
    let provider = Origin::start(Back::H1, |request: Request<Incoming>| async move {
        use http_body_util::BodyExt;
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&body).into_owned();
        reply(200, &[("x-body", &format!("<{text}>"))])
    });
    let body = |fields: &str| {
        format!(
            "failOpen: true, headersToUpstreamOnAllow: [x-body], includeRequestBodyInCheck: {{maxRequestBytes: 8{fields}}}"
        )
    };
    let edge = Edge::http(&body(""), &provider);
    let seen = |edge: &Edge| edge.last().header("x-body").map(str::to_owned);
    assert_eq!(edge.post("/", "12345678").body, "8".as_bytes());
    assert_eq!(seen(&edge).as_deref(), Some("<12345678>"));
    let header = |name: &str| {
        provider
            .seen()
            .pop()
            .unwrap()
            .header(name)
            .map(str::to_owned)
    };
    assert_eq!(
        header("x-envoy-auth-partial-body").as_deref(),
        Some("false")
    );
    assert_eq!(header("content-length").as_deref(), Some("8"));
    assert_eq!(edge.request("/", "").status, 200);
    assert_eq!(seen(&edge).as_deref(), Some("<>"));
    let reply = edge.post("/large", &"x".repeat(20));
    assert_eq!(
        (reply.status, &*reply.body),
        (413, b"Payload Too Large".as_slice())
    );
    let line = edge.proxy.logged("/large");
    assert_eq!(line["response_code_details"], "request_payload_too_large");

    edge.configure(&super::provider(
        "envoyExtAuthzHttp",
        &body(", allowPartialMessage: true"),
    ));
    let long = "0123456789".repeat(20_000);
    assert_eq!(edge.post("/", &long).body, "200000".as_bytes());
    assert_eq!(seen(&edge).as_deref(), Some("<01234567>"));
    assert_eq!(header("x-envoy-auth-partial-body").as_deref(), Some("true"));
    let chunked = "5\r\nabcde\r\n5\r\nfghij\r\n0\r\n\r\n";
    let reply = edge.send("POST /", "transfer-encoding: chunked\r\n", chunked);
    assert_eq!(&*reply.body, b"10");
    assert_eq!(seen(&edge).as_deref(), Some("<abcdefgh>"));
}

#[test]
fn check_ends_when_its_client_leaves() {
    let (asked, events) = mpsc::channel();
    let provider = RawOrigin::start(move |_, mut stream| {
        let mut bytes = [0; 1024];
        while let Ok(count) = stream.read(&mut bytes) {
            asked.send(count).unwrap();
            if count == 0 {
                return;
            }
        }
    });
    let edge = Edge::start("envoyExtAuthzHttp", "", Back::H1, provider.address);
    let mut client = Raw::connect(edge.proxy.edge);
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_ne!(events.recv(), Ok(0));
    drop(client);
    while events.recv() != Ok(0) {}
}
