use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use http::Version;

use super::*;
use crate::telemetry::ResponseFlags;

/// `remove`, `set` and `add` as written, pairs as `name=value`.
pub(in crate::filter) fn scope(remove: &[&str], set: &[&str], add: &[&str]) -> HeaderScope {
    let pair = |text: &&str| {
        let (name, value) = text.split_once('=').unwrap();
        (name.to_owned(), value.to_owned())
    };
    HeaderScope {
        remove: remove.iter().map(|name| (*name).to_owned()).collect(),
        set: set.iter().map(pair).collect(),
        add: add.iter().map(pair).collect(),
    }
}

pub(in crate::filter) fn headers(lines: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once('=').unwrap();
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

pub(in crate::filter) fn with_context(test: impl FnOnce(&TemplateContext<'_>)) {
    test(&TemplateContext {
        downstream_direct_remote: None,
        downstream_tls: None,
        upstream_local: None,
        upstream_name: None,
        upstream_protocol: "",
        upstream_tls: None,
        now: SystemTime::UNIX_EPOCH,
        duration: Duration::ZERO,
        request_duration: None,
        response_duration: None,
        bytes_received: 0,
        attempts: 0,
        request_id: None,
        random: None,
        downstream_remote: None,
        downstream_local: None,
        upstream_remote: None,
        upstream_cluster: "",
        requested_server_name: None,
        protocol: Version::HTTP_11,
        start_time: SystemTime::UNIX_EPOCH,
        response_flags: ResponseFlags::default(),
        response_code: 0,
        response_code_details: "",
        hostname: "",
        route_name: "route-a",
        method: "GET",
        path: "/",
        authority: "a.com",
        scheme: "http",
        request_headers: None,
        response_headers: None,
        environment: &BTreeMap::new(),
        finished: None,
    });
}

/// Asserts the result of a scope on request headers.
fn check(scope: &HeaderScope, before: &[&str], after: &[&str]) {
    let compiled = RequestHeaderOps::compile(&[scope]).unwrap();
    let mut edited = headers(before);
    with_context(|context| compiled.ops.apply_to_request(&mut edited, context));
    assert_eq!(edited, headers(after), "{scope:?}");
}

#[test]
fn removes_come_before_sets_before_adds() {
    check(&scope(&["x"], &[], &[]), &["x=1", "x=2", "y=3"], &["y=3"]);
    check(
        &scope(&["x"], &["x=2"], &["x=3"]),
        &["x=1"],
        &["x=2", "x=3"],
    );
    check(&scope(&[], &["x=2"], &[]), &["x=1", "x=1"], &["x=2"]);
}

#[test]
fn add_appends_another_header_line() {
    check(&scope(&[], &[], &["x=b"]), &["x=a"], &["x=a", "x=b"]);
}

#[test]
fn an_empty_value_changes_nothing() {
    check(
        &scope(&[], &["x="], &["y=%REQ(missing)%"]),
        &["x=1"],
        &["x=1"],
    );
}

#[test]
fn values_are_evaluated_after_removes_and_before_sets() {
    check(
        &scope(
            &["gone"],
            &["x=%REQ(y)%", "y=new"],
            &["z=%REQ(y)%", "w=%REQ(gone)%"],
        ),
        &["y=old", "gone=1"],
        &["y=new", "x=old", "z=old"],
    );
}

#[test]
fn values_may_hold_operators_and_percent_signs() {
    check(
        &scope(&[], &["x=50%%", "y=<%ROUTE_NAME%>"], &[]),
        &[],
        &["x=50%", "y=<route-a>"],
    );
}

#[test]
fn response_templates_read_the_edited_response() {
    let ops =
        HeaderOps::compile_response(&[&scope(&["x"], &["y=[%RESP(x)%]", "z=%RESP(w)%"], &[])])
            .unwrap();
    let mut edited = headers(&["x=1", "w=2"]);
    with_context(|context| ops.apply_to_response(&mut edited, context));
    assert_eq!(edited, headers(&["w=2", "y=[]", "z=2"]));
}

#[test]
fn headers_owned_by_the_proxy_cannot_be_set() {
    check(
        &scope(
            &[],
            &[
                "connection=x",
                "Transfer-Encoding=chunked",
                "content-length=1",
            ],
            &["te=x"],
        ),
        &[],
        &[],
    );
}

#[test]
fn host_edit_sets_the_authority() {
    for name in ["Host", ":authority"] {
        let set =
            RequestHeaderOps::compile(&[&scope(&[], &[&format!("{name}=b.com")], &[])]).unwrap();
        assert_eq!(set.authority.unwrap(), "b.com");
        assert!(set.ops.is_empty());
        let added =
            RequestHeaderOps::compile(&[&scope(&[], &[], &[&format!("{name}=b.com")])]).unwrap();
        assert_eq!(added.authority.unwrap(), "b.com");
    }
}

#[test]
fn invalid_names_and_values_are_rejected() {
    let name = |name: &str| HeaderError::Name(name.to_owned());
    for (scope, expected) in [
        (scope(&[], &[":path=x"], &[]), name(":path")),
        (scope(&["Host"], &[], &[]), name("Host")),
        (scope(&[":method"], &[], &[]), name(":method")),
        (
            scope(&[], &["x=a\nb"], &[]),
            HeaderError::Value("x".to_owned()),
        ),
        (
            scope(&[], &[], &["x=50%"]),
            HeaderError::Template("x".to_owned(), TemplateError::Open(2)),
        ),
    ] {
        assert_eq!(
            RequestHeaderOps::compile(&[&scope]).unwrap_err(),
            expected,
            "{scope:?}"
        );
    }
    let host = HeaderOps::compile_response(&[&scope(&[], &["host=x"], &[])]);
    assert_eq!(host.unwrap_err(), name("host"));
}
