//! Tests of preflights and other cross-origin requests, as tables.

use super::*;
use crate::pattern::Pattern;

fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(*name, HeaderValue::from_static(value));
    }
    headers
}

fn policy() -> Cors {
    Cors {
        origins: Box::new([OriginMatch::Exact("http://o".into())]),
        methods: Listed::new(&["GET", "POST"]),
        headers: Listed::new(&["x-a", "x-b"]),
        expose: Listed::as_written(&["x-c", "x-d"]),
        max_age: Some(seconds(Duration::from_secs(86_400))),
        credentials: true,
        preflights: Preflights::ForwardUnmatched,
    }
}

fn preflight(origin: &'static str) -> HeaderMap {
    headers(&[
        ("origin", origin),
        ("access-control-request-method", "PUT"),
        ("access-control-request-headers", "x-z"),
    ])
}

#[test]
fn preflight_of_an_allowed_origin_is_answered_with_all_that_is_configured() {
    let verdict = policy().judge(&Method::OPTIONS, &preflight("http://o"));
    let expected = headers(&[
        ("access-control-allow-origin", "http://o"),
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-methods", "GET,POST"),
        ("access-control-allow-headers", "x-a,x-b"),
        ("access-control-max-age", "86400"),
    ]);
    assert_eq!(verdict, CorsVerdict::Answer(expected));
}

#[test]
fn preflight_reply_has_only_configured_headers() {
    let bare = Cors {
        origins: Box::new([OriginMatch::Any]),
        ..Cors::default()
    };
    let verdict = bare.judge(&Method::OPTIONS, &preflight("http://o"));
    let expected = headers(&[("access-control-allow-origin", "http://o")]);
    assert_eq!(verdict, CorsVerdict::Answer(expected));
}

#[test]
fn wildcard_echoes_the_requested_values() {
    let star = Cors {
        origins: Box::new([OriginMatch::Any]),
        methods: Listed::new(&["*"]),
        headers: Listed::new(&["*"]),
        ..Cors::default()
    };
    let verdict = star.judge(&Method::OPTIONS, &preflight("http://any"));
    let expected = headers(&[
        ("access-control-allow-origin", "http://any"),
        ("access-control-allow-methods", "PUT"),
        ("access-control-allow-headers", "x-z"),
    ]);
    assert_eq!(verdict, CorsVerdict::Answer(expected));
}

#[test]
fn preflight_of_an_origin_that_is_not_allowed_is_forwarded_or_answered_without_origin() {
    let other = preflight("http://other");
    assert_eq!(policy().judge(&Method::OPTIONS, &other), CorsVerdict::Pass);
    let ignoring = Cors {
        preflights: Preflights::AnswerUnmatched,
        ..policy()
    };
    let expected = headers(&[
        ("access-control-allow-methods", "GET,POST"),
        ("access-control-allow-headers", "x-a,x-b"),
        ("access-control-max-age", "86400"),
    ]);
    assert_eq!(
        ignoring.judge(&Method::OPTIONS, &other),
        CorsVerdict::Answer(expected)
    );
}

#[test]
fn strict_preflight_reply_has_headers_for_allowed_origins_only() {
    let strict = Cors {
        preflights: Preflights::Strict,
        ..policy()
    };
    let other = strict.judge(&Method::OPTIONS, &preflight("http://other"));
    let vary = headers(&[("vary", "origin")]);
    assert_eq!(other, CorsVerdict::Answer(vary));
    let mut asked = preflight("http://o");
    let mut expected = headers(&[
        ("vary", "origin"),
        ("access-control-allow-origin", "http://o"),
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-methods", "GET,POST"),
        ("access-control-allow-headers", "x-a,x-b"),
        ("access-control-expose-headers", "x-c,x-d"),
        ("access-control-max-age", "86400"),
    ]);
    let verdict = strict.judge(&Method::OPTIONS, &asked);
    assert_eq!(verdict, CorsVerdict::Answer(expected.clone()));
    asked.remove(ACCESS_CONTROL_REQUEST_HEADERS);
    expected.remove(ACCESS_CONTROL_ALLOW_HEADERS);
    let verdict = strict.judge(&Method::OPTIONS, &asked);
    assert_eq!(verdict, CorsVerdict::Answer(expected));
}

#[test]
fn only_options_with_origin_and_requested_method_is_a_preflight() {
    let share = CorsVerdict::Share(HeaderValue::from_static("http://o"));
    let method = ("access-control-request-method", "PUT");
    let origin = ("origin", "http://o");
    for (request, lines, expected) in [
        (Method::OPTIONS, &[origin][..], &share),
        (
            Method::OPTIONS,
            &[origin, ("access-control-request-method", "")],
            &share,
        ),
        (Method::OPTIONS, &[method], &CorsVerdict::Pass),
        (
            Method::OPTIONS,
            &[("origin", ""), method],
            &CorsVerdict::Pass,
        ),
        (Method::GET, &[origin, method], &share),
        (Method::GET, &[origin], &share),
        (Method::GET, &[("origin", "http://O")], &CorsVerdict::Pass),
        (Method::GET, &[], &CorsVerdict::Pass),
    ] {
        let verdict = policy().judge(&request, &headers(lines));
        assert_eq!(verdict, *expected, "{request} {lines:?}");
    }
}

#[test]
fn origins_are_compared_as_written() {
    let regex = Pattern::whole(r"https://[a-z]+\.example");
    let cors = Cors {
        origins: Box::new([
            OriginMatch::Prefix("http://dev.".into()),
            OriginMatch::Regex(regex),
        ]),
        ..Cors::default()
    };
    for (origin, allowed) in [
        ("http://dev.a", true),
        ("http://dev", false),
        ("https://a.example", true),
        ("https://a.example.evil", false),
        ("xhttps://a.example", false),
    ] {
        let value = HeaderValue::from_static(origin);
        assert_eq!(cors.allows(&value), allowed, "{origin}");
    }
}

#[test]
fn cors_headers_replace_those_of_the_endpoint() {
    let mut response = headers(&[
        ("access-control-allow-origin", "*"),
        ("access-control-allow-origin", "http://x"),
        ("vary", "accept"),
    ]);
    policy().share(Some(HeaderValue::from_static("http://o")), &mut response);
    let expected = headers(&[
        ("vary", "accept"),
        ("access-control-allow-origin", "http://o"),
        ("access-control-allow-credentials", "true"),
        ("access-control-expose-headers", "x-c,x-d"),
    ]);
    assert_eq!(response, expected);
}

#[test]
fn response_has_only_configured_cors_headers() {
    let mut response = headers(&[("access-control-expose-headers", "x-own")]);
    let bare = Cors::default();
    bare.share(Some(HeaderValue::from_static("http://o")), &mut response);
    let expected = headers(&[
        ("access-control-expose-headers", "x-own"),
        ("access-control-allow-origin", "http://o"),
    ]);
    assert_eq!(response, expected);
}

#[test]
fn strict_response_varies_by_origin_and_keeps_no_cors_header_of_the_endpoint() {
    let cors = Cors {
        preflights: Preflights::Strict,
        ..Cors::default()
    };
    let of_endpoint = [
        ("access-control-allow-origin", "*"),
        ("access-control-allow-credentials", "true"),
        ("access-control-expose-headers", "*"),
    ];
    let mut response = headers(&of_endpoint);
    cors.share(None, &mut response);
    let mut expected = headers(&of_endpoint);
    expected.insert("vary", HeaderValue::from_static("origin"));
    assert_eq!(response, expected, "the origin is not allowed");
    cors.share(Some(HeaderValue::from_static("null")), &mut response);
    let expected = headers(&[("access-control-allow-origin", "null"), ("vary", "origin")]);
    assert_eq!(response, expected);
    for told in ["*", "accept, Origin", "ORIGIN"] {
        let mut response = headers(&[("vary", told)]);
        cors.share(None, &mut response);
        assert_eq!(response, headers(&[("vary", told)]));
    }
    let mut response = headers(&[("vary", "x-origin")]);
    cors.share(None, &mut response);
    assert_eq!(
        response,
        headers(&[("vary", "x-origin"), ("vary", "origin")])
    );
}

#[test]
fn names_of_the_response_are_exposed_instead_of_a_wildcard() {
    let cors = Cors {
        expose: Listed::new(&["*"]),
        credentials: true,
        ..Cors::default()
    };
    let mut response = headers(&[("x-a", "1"), ("x-b", "2"), ("x-b", "3")]);
    cors.share(Some(HeaderValue::from_static("http://o")), &mut response);
    let exposed = &response["access-control-expose-headers"];
    assert_eq!(exposed, "x-a,x-b");
    let CorsVerdict::Answer(answer) = cors.judge(&Method::OPTIONS, &preflight("http://o")) else {
        return;
    };
    assert!(!answer.contains_key("access-control-expose-headers"));
}

#[test]
fn lists_of_the_gateway_api_have_spaces() {
    let spaced = |listed: Listed| match listed.spaced() {
        Listed::These(names) => names.to_str().unwrap_or_default().to_owned(),
        Listed::Nothing => "nothing".to_owned(),
        Listed::Requested => "requested".to_owned(),
    };
    assert_eq!(
        spaced(Listed::new(&["GET", "PUT", "DELETE"])),
        "GET, PUT, DELETE"
    );
    assert_eq!(spaced(Listed::new(&["*"])), "requested");
    assert_eq!(spaced(Listed::new(&[] as &[&str])), "nothing");
}
