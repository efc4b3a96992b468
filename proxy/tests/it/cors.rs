//! CORS, on live sockets.

use hyper::{Method, Request};

use crate::support::client::{Answer, Client, Front};
use crate::support::mesh::{documents, gateway, routes, service};
use crate::support::origin::{Back, Origin, empty, full};
use crate::support::proxy::Proxy;

/// Starts an origin that sends CORS headers of its own.
fn origin() -> Origin {
    Origin::start(Back::H1, |_| async {
        hyper::Response::builder()
            .header("access-control-allow-origin", "http://upstream")
            .body(full("up"))
            .unwrap()
    })
}

fn with_policy(origin: &Origin, policy: &str) -> Proxy {
    Proxy::with(|edge| {
        let rule = format!(
            "- name: shared\n  corsPolicy: {policy}\n  \
             headers: {{response: {{set: {{access-control-allow-origin: http://rule, x-edited: \"yes\"}}}}}}\n  \
             route: [{{destination: {{host: web.test}}}}]"
        );
        documents([
            gateway(&[edge]),
            service("web", origin.back, &[(origin.address, "v1")]),
            routes("all", "[\"*\"]", &rule),
        ])
    })
}

async fn ask(proxy: &Proxy, method: Method, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::builder().method(method).uri("http://a.test/");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    client.call(request.body(empty()).unwrap()).await
}

const ORIGIN: (&str, &str) = ("origin", "http://o");
const METHOD: (&str, &str) = ("access-control-request-method", "GET");
const FULL: &str = "{allowOrigins: [{exact: \"http://o\"}], allowMethods: [GET, POST], allowHeaders: [x-a], \
                    exposeHeaders: [x-b, x-c], maxAge: 24h, allowCredentials: true}";

#[tokio::test]
async fn preflight_of_an_allowed_origin_gets_a_local_reply() {
    let origin = origin();
    let proxy = with_policy(&origin, FULL);
    let answer = ask(&proxy, Method::OPTIONS, &[ORIGIN, METHOD]).await;
    assert_eq!((answer.status, answer.text()), (200, ""));
    for (name, value) in [
        ("access-control-allow-origin", Some("http://o")),
        ("access-control-allow-credentials", Some("true")),
        ("access-control-allow-methods", Some("GET,POST")),
        ("access-control-allow-headers", Some("x-a")),
        ("access-control-max-age", Some("86400")),
        ("access-control-expose-headers", None),
        // the rule's response edits do not touch it
        ("x-edited", None),
        ("vary", None),
        ("content-type", None),
    ] {
        assert_eq!(answer.header(name), value, "{name}");
    }
    assert_eq!(origin.seen().len(), 0);
    let line = proxy.logged("/");
    assert_eq!(line["response_code_details"], "cors_response");
    assert_eq!(line["response_flags"], "-");
}

#[tokio::test]
async fn cors_headers_are_added_after_all_other_header_edits() {
    let origin = origin();
    let proxy = with_policy(&origin, FULL);
    let answer = ask(&proxy, Method::GET, &[ORIGIN]).await;
    assert_eq!((answer.status, answer.text()), (200, "up"));
    for (name, value) in [
        ("access-control-allow-origin", "http://o"),
        ("access-control-allow-credentials", "true"),
        ("access-control-expose-headers", "x-b,x-c"),
        ("x-edited", "yes"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
}

#[tokio::test]
async fn wildcard_policy_echoes_every_origin() {
    let origin = origin();
    let proxy = with_policy(&origin, "{allowOrigins: [{exact: \"*\"}]}");
    let answer = ask(&proxy, Method::GET, &[ORIGIN]).await;
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some("http://o")
    );
    assert_eq!(answer.header("access-control-allow-credentials"), None);
}

#[tokio::test]
async fn allow_origin_lists_exact_origins_and_allow_origins_replaces_it() {
    let origin = origin();
    let old = "allowOrigin: [\"http://o\", \"http://p\"]";
    let both = format!("{old}, allowOrigins: [{{exact: \"http://q\"}}]");
    for (policy, allowed, others) in [
        (
            old,
            &["http://o", "http://p"][..],
            &["http://ox", "http://q"][..],
        ),
        ("allowOrigin: [\"*\"]", &["http://o", "http://any"], &[]),
        (&both, &["http://q"], &["http://o"]),
    ] {
        let proxy = with_policy(&origin, &format!("{{{policy}, allowMethods: [GET]}}"));
        for one in allowed {
            let answer = ask(&proxy, Method::GET, &[("origin", one)]).await;
            let echoed = answer.header("access-control-allow-origin");
            assert_eq!(echoed, Some(*one), "{policy}");
            let answer = ask(&proxy, Method::OPTIONS, &[("origin", one), METHOD]).await;
            assert_eq!((answer.status, answer.text()), (200, ""), "{policy} {one}");
            let methods = answer.header("access-control-allow-methods");
            assert_eq!(methods, Some("GET"), "{policy} {one}");
        }
        for one in others {
            let answer = ask(&proxy, Method::GET, &[("origin", one)]).await;
            let left = answer.header("access-control-allow-origin");
            assert_eq!(left, Some("http://rule"), "{policy} {one}");
        }
    }
}

#[tokio::test]
async fn origins_are_allowed_by_prefix_and_regex() {
    let origin = origin();
    for (allowed, yes, no) in [
        ("prefix: 'http://a.'", "http://a.test", "http://b.test"),
        (
            "regex: 'http://[ab].test'",
            "http://b.test",
            "http://c.test",
        ),
        (
            "exact: 'http://a.test'",
            "http://a.test",
            "http://a.test:81",
        ),
    ] {
        let proxy = with_policy(&origin, &format!("{{allowOrigins: [{{{allowed}}}]}}"));
        for (name, shared) in [(yes, true), (no, false)] {
            let answer = ask(&proxy, Method::GET, &[("origin", name)]).await;
            let header = answer.headers.get("access-control-allow-origin");
            let header = header.map(|value| value.to_str().unwrap());
            assert_eq!(header == Some(name), shared, "{allowed}: {name}");
        }
    }
}

#[tokio::test]
async fn response_to_an_origin_that_is_not_allowed_has_no_cors_headers() {
    let origin = origin();
    let proxy = with_policy(&origin, FULL);
    let answer = ask(&proxy, Method::GET, &[("origin", "http://other")]).await;
    assert_eq!((answer.status, answer.text()), (200, "up"));
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some("http://rule")
    );
    assert_eq!(answer.header("access-control-allow-credentials"), None);
}

#[tokio::test]
async fn preflight_of_an_origin_that_is_not_allowed_follows_unmatched_preflights() {
    let origin = origin();
    let other = [("origin", "http://other"), METHOD];
    let forwarding = FULL.replace("maxAge", "unmatchedPreflights: FORWARD, maxAge");
    for policy in [FULL, &forwarding] {
        let proxy = with_policy(&origin, policy);
        let answer = ask(&proxy, Method::OPTIONS, &other).await;
        assert_eq!((answer.status, answer.text()), (200, "up"), "{policy}");
    }
    let before = origin.seen().len();
    let ignoring = FULL.replace("maxAge", "unmatchedPreflights: IGNORE, maxAge");
    let proxy = with_policy(&origin, &ignoring);
    let answer = ask(&proxy, Method::OPTIONS, &other).await;
    assert_eq!((answer.status, answer.text()), (200, ""));
    assert_eq!(answer.header("access-control-allow-origin"), None);
    assert_eq!(answer.header("access-control-allow-credentials"), None);
    assert_eq!(
        answer.header("access-control-allow-methods"),
        Some("GET,POST")
    );
    assert_eq!(answer.header("access-control-max-age"), Some("86400"));
    assert_eq!(origin.seen().len(), before);
}

#[tokio::test]
async fn options_without_a_requested_method_goes_upstream() {
    let origin = origin();
    let proxy = with_policy(&origin, FULL);
    let answer = ask(&proxy, Method::OPTIONS, &[ORIGIN]).await;
    assert_eq!((answer.status, answer.text()), (200, "up"));
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some("http://o")
    );
}

#[tokio::test]
async fn local_reply_of_a_matched_route_has_cors_headers() {
    let proxy = Proxy::with(|edge| {
        let rule =
            format!("- corsPolicy: {FULL}\n  route: [{{destination: {{host: empty.test}}}}]");
        documents([
            gateway(&[edge]),
            service("empty", Back::H1, &[]),
            routes("all", "[\"*\"]", &rule),
        ])
    });
    let answer = ask(&proxy, Method::GET, &[ORIGIN]).await;
    assert_eq!((answer.status, answer.text()), (503, "no healthy upstream"));
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some("http://o")
    );
}

#[tokio::test]
async fn direct_responses_have_no_cors_headers() {
    let proxy = Proxy::with(|edge| {
        let rule = format!(
            "- corsPolicy: {FULL}\n  directResponse: {{status: 200, body: {{string: here}}}}"
        );
        documents([gateway(&[edge]), routes("all", "[\"*\"]", &rule)])
    });
    for method in [Method::GET, Method::OPTIONS] {
        let answer = ask(&proxy, method, &[ORIGIN, METHOD]).await;
        assert_eq!((answer.status, answer.text()), (200, "here"));
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
}
