use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::*;
use crate::pattern::Pattern;

/// An owned request to borrow a [`RequestHead`] from.
#[derive(Clone, Debug)]
pub(super) struct Request {
    method: Method,
    scheme: &'static str,
    authority: String,
    path: String,
    query: Option<String>,
    headers: HeaderMap,
}

/// A GET request for a path with an optional query, to `a.com` by http.
pub(super) fn get(target: &str) -> Request {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query.to_owned())),
        None => (target, None),
    };
    Request {
        method: Method::GET,
        scheme: "http",
        authority: "a.com".to_owned(),
        path: path.to_owned(),
        query,
        headers: HeaderMap::new(),
    }
}

impl Request {
    pub(super) fn method(mut self, method: &str) -> Self {
        self.method = method.parse().unwrap();
        self
    }

    pub(super) fn authority(mut self, authority: &str) -> Self {
        self.authority = authority.to_owned();
        self
    }

    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        self.headers
            .append(name, HeaderValue::from_str(value).unwrap());
        self
    }

    pub(super) fn head(&self) -> RequestHead<'_> {
        RequestHead {
            is_http2: false,
            method: &self.method,
            scheme: self.scheme,
            authority: &self.authority,
            host: "a.com",
            path: &self.path,
            query: self.query.as_deref(),
            headers: &self.headers,
            claims: None,
        }
    }
}

pub(super) fn exact(text: &str) -> TextMatch {
    TextMatch::Exact(text.into())
}

pub(super) fn prefix(text: &str) -> TextMatch {
    TextMatch::Prefix(text.into())
}

pub(super) fn regex(text: &str) -> TextMatch {
    TextMatch::Regex(Pattern::whole(text))
}

pub(super) fn uri_exact(value: &str, ignore_case: bool) -> UriMatch {
    let value = value.into();
    UriMatch::Exact { value, ignore_case }
}

pub(super) fn uri_prefix(value: &str, ignore_case: bool) -> UriMatch {
    let value = value.into();
    UriMatch::Prefix { value, ignore_case }
}

pub(super) fn uri_segments(value: &str) -> UriMatch {
    UriMatch::Segments(value.into())
}

pub(super) fn uri_regex(value: &str) -> UriMatch {
    UriMatch::Regex(Pattern::whole(value))
}

pub(super) fn header(key: &str, value: TextMatch) -> HeaderMatch {
    let key = HeaderKey::parse(key).unwrap();
    HeaderMatch { key, value }
}

pub(super) fn parameter(name: &str, value: TextMatch) -> QueryMatch {
    let name = name.into();
    QueryMatch { name, value }
}

pub(super) fn rule(conditions: Conditions) -> Rule {
    Rule {
        name: "rule".into(),
        conditions,
        provenance: Provenance {
            object: "VirtualService/default/a".into(),
            file: "a.yaml".into(),
            line: 1,
        },
    }
}

fn with_uri(uri: UriMatch) -> Conditions {
    Conditions {
        uri,
        ..Conditions::default()
    }
}

fn with_header(key: &str, value: TextMatch) -> Conditions {
    Conditions {
        headers: [header(key, value)].into(),
        ..Conditions::default()
    }
}

fn without_header(key: &str, value: TextMatch) -> Conditions {
    Conditions {
        without_headers: [header(key, value)].into(),
        ..Conditions::default()
    }
}

fn with_parameter(name: &str, value: TextMatch) -> Conditions {
    Conditions {
        query: [parameter(name, value)].into(),
        ..Conditions::default()
    }
}

/// Asserts which of the requests meet the conditions.
fn check(conditions: &Conditions, expected: &[(Request, bool)]) {
    for (request, expected) in expected {
        let matches = conditions.matches(&request.head());
        assert_eq!(matches, *expected, "{conditions:?} on {request:?}");
    }
}

#[test]
fn uri_prefix_is_a_plain_string_prefix() {
    check(
        &with_uri(uri_prefix("/foo", false)),
        &[
            (get("/foo"), true),
            (get("/foobar"), true),
            (get("/foo?x"), true),
            (get("/Foo"), false),
            (get("/fo"), false),
        ],
    );
    check(
        &with_uri(uri_prefix("", false)),
        &[(get("/"), true), (get("/x"), true)],
    );
}

#[test]
fn uri_segments_end_at_a_slash() {
    check(
        &with_uri(uri_segments("/foo")),
        &[
            (get("/foo"), true),
            (get("/foo/"), true),
            (get("/foo//bar"), true),
            (get("/foo?x"), true),
            (get("/foobar"), false),
            (get("/foo%2Fbar"), false),
            (get("/foo;a"), false),
            (get("/Foo"), false),
            (get("/fo"), false),
        ],
    );
    check(
        &with_uri(uri_segments("")),
        &[(get("/"), true), (get("/x"), true), (get("*"), false)],
    );
}

#[test]
fn uri_exact_ignores_the_query() {
    check(
        &with_uri(uri_exact("/foo", false)),
        &[
            (get("/foo"), true),
            (get("/foo?x=1"), true),
            (get("/foo/"), false),
            (get("/FOO"), false),
        ],
    );
}

#[test]
fn uri_regex_matches_the_whole_path() {
    check(
        &with_uri(uri_regex("/b.*")),
        &[
            (get("/b"), true),
            (get("/bc?x"), true),
            (get("/ab"), false),
            (get("/B"), false),
        ],
    );
    check(
        &with_uri(uri_regex("/a|/b")),
        &[(get("/b"), true), (get("/bx"), false)],
    );
}

#[test]
fn ignore_uri_case_applies_to_ascii_exact_and_prefix() {
    check(
        &with_uri(uri_prefix("/Foo", true)),
        &[
            (get("/FOO/bar"), true),
            (get("/foo"), true),
            (get("/fo"), false),
        ],
    );
    check(
        &with_uri(uri_exact("/foo", true)),
        &[(get("/FOO"), true), (get("/FOOO"), false)],
    );
    check(
        &with_uri(uri_prefix("/ä", true)),
        &[(get("/ä"), true), (get("/Ä"), false)],
    );
}

#[test]
fn escaped_slashes_are_not_separators() {
    check(
        &with_uri(uri_exact("/a%2Fb", false)),
        &[(get("/a%2Fb"), true), (get("/a/b"), false)],
    );
}

#[test]
fn method_and_scheme_are_case_sensitive() {
    let conditions = Conditions {
        method: Some(exact("GET")),
        scheme: Some(prefix("htt")),
        ..Conditions::default()
    };
    check(
        &conditions,
        &[
            (get("/"), true),
            (get("/").method("POST"), false),
            (get("/").method("get"), false),
        ],
    );
    let conditions = Conditions {
        scheme: Some(exact("https")),
        ..Conditions::default()
    };
    check(&conditions, &[(get("/"), false)]);
}

#[test]
fn authority_is_compared_with_its_port_and_case() {
    let authority = |value| Conditions {
        authority: Some(value),
        ..Conditions::default()
    };
    check(
        &authority(exact("a.com")),
        &[
            (get("/"), true),
            (get("/").authority("a.com:80"), false),
            (get("/").authority("A.com"), false),
        ],
    );
    check(
        &authority(prefix("a.")),
        &[(get("/").authority("a.org:1"), true)],
    );
    check(
        &authority(regex(r"a\.com(:\d+)?")),
        &[(get("/").authority("a.com:80"), true)],
    );
    check(&authority(TextMatch::Present), &[(get("/"), true)]);
}

#[test]
fn header_names_ignore_case_and_values_do_not() {
    check(
        &with_header("H", exact("a")),
        &[
            (get("/").header("h", "a"), true),
            (get("/").header("h", "A"), false),
            (get("/").header("H", "a"), true),
            (get("/"), false),
        ],
    );
}

#[test]
fn one_matching_header_line_is_enough() {
    let lines = get("/").header("h", "a").header("h", "b");
    check(&with_header("h", exact("a,b")), &[(lines.clone(), false)]);
    check(&with_header("h", exact("b")), &[(lines.clone(), true)]);
    check(&without_header("h", exact("b")), &[(lines, false)]);
}

#[test]
fn lines_of_a_joined_header_are_one_value() {
    let joined = |value: TextMatch| Conditions {
        headers: [HeaderMatch {
            key: HeaderKey::parse("h").unwrap().joined(),
            value,
        }]
        .into(),
        ..Conditions::default()
    };
    let one = get("/").header("h", "a");
    let lines = one.clone().header("x", "c").header("h", "b");
    check(
        &joined(exact("a,b")),
        &[(lines.clone(), true), (one.clone(), false)],
    );
    check(
        &joined(exact("b")),
        &[(lines.clone(), false), (get("/"), false)],
    );
    check(&joined(exact("a")), &[(lines.clone(), false), (one, true)]);
    check(&joined(prefix("a,")), &[(lines, true)]);
}

#[test]
fn a_present_header_may_be_empty_and_a_missing_one_never_matches() {
    check(
        &with_header("h", TextMatch::Present),
        &[(get("/").header("h", ""), true), (get("/"), false)],
    );
    check(
        &with_header("h", regex(".*")),
        &[(get("/"), false), (get("/").header("h", ""), true)],
    );
}

#[test]
fn pseudo_headers_can_be_matched() {
    let request = get("/p?q=1").authority("a.com:81");
    for (key, value) in [
        (":method", exact("GET")),
        (":path", exact("/p?q=1")),
        (":path", prefix("/p?q")),
        (":path", regex(r"/p\?q=\d")),
        (":authority", exact("a.com:81")),
        (":scheme", exact("http")),
    ] {
        check(&with_header(key, value), &[(request.clone(), true)]);
    }
    check(
        &with_header(":path", exact("/p")),
        &[(request, false), (get("/p"), true)],
    );
    assert_eq!(HeaderKey::parse(":status"), None);
    assert_eq!(HeaderKey::parse("a b"), None);
}

#[test]
fn without_headers_treats_a_missing_header_as_empty() {
    check(
        &without_header("h", exact("a")),
        &[
            (get("/"), true),
            (get("/").header("h", "b"), true),
            (get("/").header("h", "a"), false),
        ],
    );
    check(&without_header("h", regex(".*")), &[(get("/"), false)]);
    check(&without_header("h", prefix("a")), &[(get("/"), true)]);
}

#[test]
fn without_headers_by_presence_requires_absence() {
    check(
        &without_header("h", TextMatch::Present),
        &[(get("/").header("h", ""), false), (get("/"), true)],
    );
    check(
        &without_header(":method", exact("POST")),
        &[(get("/"), true)],
    );
    check(
        &without_header(":method", exact("GET")),
        &[(get("/"), false)],
    );
}

#[test]
fn query_parameters_are_raw_and_the_first_is_used() {
    check(
        &with_parameter("q", exact("")),
        &[
            (get("/?q"), true),
            (get("/?q="), true),
            (get("/?q=1"), false),
            (get("/"), false),
        ],
    );
    check(
        &with_parameter("q", exact("a")),
        &[
            (get("/?q=b&q=a"), false),
            (get("/?x=1&q=a"), true),
            (get("/?Q=a"), false),
        ],
    );
    check(
        &with_parameter("q", TextMatch::Present),
        &[(get("/?q"), true), (get("/?qq"), false), (get("/?"), false)],
    );
    check(
        &with_parameter("q", regex("a%20.")),
        &[(get("/?q=a%20b"), true), (get("/?q=a b"), false)],
    );
    check(
        &with_parameter("q", exact("a=b")),
        &[(get("/?q=a=b"), true)],
    );
}

#[test]
fn all_conditions_of_a_block_must_hold() {
    let conditions = Conditions {
        uri: uri_prefix("/a", false),
        method: Some(exact("GET")),
        headers: [header("x", exact("1")), header("y", TextMatch::Present)].into(),
        ..Conditions::default()
    };
    let all = get("/a").header("x", "1").header("y", "");
    check(
        &conditions,
        &[
            (all.clone(), true),
            (all.clone().method("PUT"), false),
            (get("/a").header("x", "1"), false),
            (get("/b").header("x", "1").header("y", ""), false),
        ],
    );
}

#[test]
fn catch_alls_match_any_path_without_conditions() {
    for (conditions, expected) in [
        (Conditions::default(), true),
        (with_uri(uri_prefix("/", false)), true),
        (with_uri(uri_regex(".*")), true),
        (with_uri(uri_prefix("", false)), false),
        (with_uri(uri_exact("/", false)), false),
        (with_uri(uri_prefix("/a", false)), false),
        (with_header("h", TextMatch::Present), false),
    ] {
        assert_eq!(conditions.is_catch_all(), expected, "{conditions:?}");
    }
}
