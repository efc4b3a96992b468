use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;

use super::super::context::{Finished, Node as ProxyNode, TlsContext};
use super::*;
use crate::pattern::Pattern;
use crate::telemetry::{ResponseFlags, Workload};

fn parse(text: &str) -> Result<Expression, ExpressionError> {
    Expression::parse(text, &mut |pattern| Ok(Pattern::part(pattern)))
}

fn good(text: &str) -> Expression {
    parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Calls `act` with a request that got a response of status 404.
fn with_request<T>(act: impl FnOnce(&TemplateContext<'_>) -> T) -> T {
    let mut request = HeaderMap::new();
    request.insert("x-team", HeaderValue::from_static("Shop"));
    request.insert("x-bytes", HeaderValue::from_bytes(b"\xff").unwrap());
    let peer = Workload {
        name: "cart-v1".into(),
        namespace: "shop".into(),
        app: "cart".into(),
        ..Workload::default()
    };
    let node = ProxyNode {
        namespace: "edge".to_owned(),
        labels: [("app".to_owned(), "gateway".to_owned())].into(),
        ..ProxyNode::default()
    };
    let finished = Finished {
        bytes_sent: 7,
        upstream_peer: Some(&peer),
        node: Some(&node),
        ..Finished::default()
    };
    let context = TemplateContext {
        method: "GET",
        path: "/a/b?q=1",
        authority: "Shop.Example:8080",
        scheme: "https",
        response_code: 404,
        response_flags: ResponseFlags::UF,
        upstream_cluster: "outbound|80||cart",
        downstream_remote: Some("10.0.0.1:4000".parse().unwrap()),
        downstream_local: Some("10.0.0.2:80".parse().unwrap()),
        downstream_tls: Some(TlsContext::default()),
        duration: std::time::Duration::from_millis(150),
        bytes_received: 5,
        request_headers: Some(&request),
        finished: Some(&finished),
        ..TemplateContext::default()
    };
    act(&context)
}

#[test]
fn filters_hold_only_if_they_are_true() {
    let table = [
        ("response.code >= 400", true),
        ("response.code == 404 && request.method == 'GET'", true),
        ("response.code >= 500 || response.code < 200", false),
        ("response.code in [404, 503]", true),
        ("response.code", false),
        ("response.code == '404'", false),
        ("response.code == 404u && response.code == 404.0", true),
        ("response.flags == 32", true),
        ("request.host.endsWith('.example')", false),
        ("request.host == \"Shop.Example:8080\"", true),
        (
            "request.path == '/a/b?q=1' && request.url_path == '/a/b'",
            true,
        ),
        ("request.query == 'q=1'", true),
        ("request.url_path.contains('/b')", true),
        ("request.url_path.matches('^/a/.$')", true),
        ("request.url_path.startsWith('/a') ? true : false", true),
        ("request.headers['x-team'] == 'Shop'", true),
        ("request.headers['X-Team'].lowerAscii() == 'shop'", true),
        ("'x-team' in request.headers", true),
        ("'x-none' in request.headers", false),
        ("!('x-none' in request.headers)", true),
        ("request.headers['x-none'] == '1'", false),
        ("request.headers['x-none'] != '1'", false),
        ("!(request.headers['x-none'] == '1')", false),
        ("request.headers['x-bytes'].size() == 1", true),
        ("request.headers[':authority'].startsWith('Shop')", true),
        ("has(request.useragent)", false),
        (
            "!has(request.useragent) || !request.useragent.startsWith('kube')",
            true,
        ),
        ("!request.useragent.startsWith('kube-probe')", false),
        ("request.useragent == 'a' || response.code == 404", true),
        ("response.code == 404 || request.useragent == 'a'", true),
        ("request.useragent == 'a' && response.code == 0", false),
        (
            "connection.mtls && request.url_path.contains('v1beta3')",
            false,
        ),
        ("connection.mtls == false", true),
        ("request.duration > duration('100ms')", true),
        ("request.duration > duration('1m')", false),
        ("duration('1m') + duration('30s') == duration('90s')", true),
        ("timestamp('1970-01-02T00:00:00Z') > request.time", true),
        (
            "timestamp('2024-02-29T12:34:56.5+01:00') == timestamp('2024-02-29T11:34:56.5Z')",
            true,
        ),
        ("int(timestamp('2024-02-29T12:34:56Z')) == 1709210096", true),
        ("xds.cluster_name == 'outbound|80||cart'", true),
        ("xds.node.metadata['NAMESPACE'] == 'edge'", true),
        ("xds.node.metadata['LABELS']['app'] == 'gateway'", true),
        ("xds.listener_direction == 2", true),
        ("filter_state.upstream_peer.workload == 'cart-v1'", true),
        ("upstream_peer.labels['app'].value == 'cart'", true),
        ("downstream_peer.namespace == 'shop'", false),
        ("request.size + response.size == 12", true),
        (
            "source.address == '10.0.0.1:4000' && destination.port == 80",
            true,
        ),
        ("string(destination.port) == '80'", true),
        ("request.host.split('.')[1].split(':')[1] == '8080'", true),
        ("request.host.split('.')[5] == ''", false),
        ("'a' + 'b' == 'ab'", true),
        ("1 / 0 == 1 || true", true),
        ("1 + 1u == 2", false),
        ("9223372036854775807 + 1 > 0", false),
        (
            "-9223372036854775808 < 0 && 7 % 4 == 3 && 2 * 3 - 1 == 5",
            true,
        ),
        ("null == null && null != 1", true),
        (
            "r'\\d' == '\\\\d' && '\\x41\\u0042\\103' == 'ABC' && '''a'b''' == \"a'b\"",
            true,
        ),
        ("size('日本') == 2 && 0x10 == 16 && 1e2 == 100.0", true),
    ];
    with_request(|context| {
        for (text, expected) in table {
            assert_eq!(good(text).holds(context), expected, "{text}");
        }
    });
}

#[test]
fn request_without_response_has_no_code() {
    with_request(|context| {
        let context = TemplateContext {
            response_code: 0,
            ..*context
        };
        for (text, expected) in [
            ("response.code >= 400", false),
            ("response.code == 0", false),
            ("!has(response.code) || response.code >= 400", true),
        ] {
            assert_eq!(good(text).holds(&context), expected, "{text}");
        }
    });
}

#[test]
fn values_print_as_texts() {
    with_request(|context| {
        for (text, expected) in [
            ("request.host", Some("Shop.Example:8080")),
            ("response.code", Some("404")),
            ("string(destination.port)", Some("80")),
            ("connection.mtls", Some("false")),
            ("'fixed'", Some("fixed")),
            ("''", Some("")),
            ("1.5", Some("1.5")),
            ("request.duration", Some("0.15s")),
            ("request.time", Some("1970-01-01T00:00:00.000Z")),
            (
                "has(request.headers.x) ? request.headers['x'] : 'none'",
                Some("none"),
            ),
            ("request.headers['x-none']", None),
            ("null", None),
        ] {
            let mut out = Vec::new();
            let is_printed = good(text).print(&mut out, context);
            let printed = is_printed.then(|| String::from_utf8(out).unwrap());
            assert_eq!(printed.as_deref(), expected, "{text}");
        }
    });
}

#[test]
fn text_outside_of_the_subset_is_refused() {
    for (text, at) in [
        ("", 0),
        ("response.code >=", 16),
        ("response.cod == 1", 0),
        ("request.headers == 1", 0),
        ("request.headers['a b'] == ''", 0),
        ("has(request.headers['x'])", 4),
        ("has(response)", 4),
        ("request.headers.exists(h, h == 'x')", 15),
        ("[1, 2] == [1]", 0),
        ("1 in 2", 5),
        ("'a'.b", 3),
        ("size()", 0),
        ("request.path.startsWith()", 12),
        ("startsWith('a', 'b')", 0),
        ("string('a').size(1)", 11),
        ("request.path.matches(request.host)", 12),
        ("request.path.split('/')", 12),
        ("{'a': 1}", 0),
        ("b'a'", 0),
        ("'open", 0),
        ("'\\q'", 1),
        ("99999999999999999999", 0),
        ("9223372036854775808", 0),
        ("a ~ b", 2),
        ("node.id == 'a'", 0),
        ("response.code response", 14),
        ("(1", 2),
    ] {
        let error = parse(text).expect_err(text);
        assert_eq!(error.at, at, "{text}: {error}");
    }
    let deep = format!("{}true{}", "(".repeat(80), ")".repeat(80));
    assert!(parse(&deep).is_err());
    assert!(parse(&"!".repeat(4000)).is_err());
    assert!(parse(&vec!["true"; 200].join("&&")).is_err());
    assert!(parse(&" ".repeat(5000)).is_err());
}

#[test]
fn attributes_that_may_be_absent_are_told() {
    for (text, expected) in [
        ("response.code >= 400", &["response.code"][..]),
        ("!has(response.code) || response.code >= 400", &[]),
        (
            "!request.useragent.startsWith('kube')",
            &["request.useragent"],
        ),
        ("'x' in request.headers && request.headers['x'] == '1'", &[]),
        ("request.headers['x'] == '1'", &["request.headers['x']"]),
        ("request.path == '/x'", &[]),
    ] {
        let unguarded = good(text).unguarded();
        let names: Vec<&str> = unguarded.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, expected, "{text}");
    }
    assert_eq!(good("1 < 2").fixed(), Some(true));
    assert_eq!(good("1 > 2").fixed(), Some(false));
    assert_eq!(good("response.code > 2").fixed(), None);
    assert_eq!(good("'a'").constant().as_deref(), Some("a"));
    assert!(good("request.host.lowerAscii() == ''").is_beyond_envoy());
    assert!(!good("request.host == ''").is_beyond_envoy());
}

proptest! {
    #[test]
    fn no_text_panics(text in "[ a-z.'\"()\\[\\]!&|=<>?:0-9,+*/%-]{0,40}") {
        if let Ok(expression) = parse(&text) {
            with_request(|context| expression.holds(context));
        }
    }

    #[test]
    fn tokens_in_any_order_do_not_panic(parts in prop::collection::vec(prop::sample::select(vec![
        "response.code", "request.headers", "['x']", "has(", "(", ")", "!", "-", "==", "&&", "||", "?", ":", "in", "[", "]",
        "'a'", "1", "2u", "1.5", ".size()", ".split('a')", "[0]", "duration('1s')", "string(", "true", "+", "%",
    ]), 0..12)) {
        if let Ok(expression) = parse(&parts.join(" ")) {
            with_request(|context| expression.holds(context));
        }
    }
}
