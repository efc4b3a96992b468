use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, Version};
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::*;
use crate::telemetry::ResponseFlags;

/// Prints a template with a context in which everything has a value.
fn print(text: &str) -> Option<String> {
    let mut request = HeaderMap::new();
    request.insert("x-id", HeaderValue::from_static("abc"));
    request.append("x-id", HeaderValue::from_static("second"));
    let mut response = HeaderMap::new();
    response.insert("x-answer", HeaderValue::from_static("42"));
    let environment = BTreeMap::from([("POD".to_owned(), "pod-1".to_owned())]);
    let random = RefCell::new(SmallRng::seed_from_u64(1));
    let request_id = HeaderValue::from_static("id-1");
    let context = TemplateContext {
        downstream_direct_remote: Some("192.0.2.7:5000".parse().unwrap()),
        downstream_tls: Some(TlsContext {
            version: "TLSv1.3",
            cipher: "TLS_AES_128_GCM_SHA256",
            ..TlsContext::default()
        }),
        upstream_local: Some("10.1.2.3:6000".parse().unwrap()),
        upstream_name: Some("db.example"),
        upstream_protocol: "HTTP/2",
        upstream_tls: None,
        now: SystemTime::UNIX_EPOCH + Duration::from_secs(1_709_210_097),
        duration: Duration::from_micros(12_900),
        request_duration: Some(Duration::from_millis(3)),
        response_duration: None,
        bytes_received: 17,
        attempts: 2,
        request_id: Some(&request_id),
        random: Some(&random),
        downstream_remote: Some("10.0.0.1:4000".parse().unwrap()),
        downstream_local: Some("[::1]:80".parse().unwrap()),
        upstream_remote: None,
        upstream_cluster: "outbound|80||s",
        requested_server_name: Some("sni.a.com"),
        protocol: Version::HTTP_2,
        start_time: SystemTime::UNIX_EPOCH + Duration::from_millis(1_709_210_096_042),
        response_flags: ResponseFlags::UT,
        response_code: 504,
        response_code_details: "response_timeout",
        hostname: "gateway-0",
        route_name: "route-a",
        method: "GET",
        path: "/p?q=1",
        authority: "a.com:80",
        scheme: "https",
        request_headers: Some(&request),
        response_headers: Some(&response),
        environment: &environment,
        finished: None,
    };
    let value = Template::parse(text).unwrap().value(&context)?;
    Some(value.to_str().unwrap().to_owned())
}

#[test]
fn operators_print_their_values() {
    for (text, expected) in [
        ("plain", "plain"),
        ("50%% of %%", "50% of %"),
        ("%DOWNSTREAM_REMOTE_ADDRESS%", "10.0.0.1:4000"),
        ("%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%", "10.0.0.1"),
        ("%DOWNSTREAM_REMOTE_PORT%", "4000"),
        ("%DOWNSTREAM_LOCAL_ADDRESS%", "[::1]:80"),
        ("%DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT%", "::1"),
        ("%UPSTREAM_CLUSTER%", "outbound|80||s"),
        ("%REQUESTED_SERVER_NAME%", "sni.a.com"),
        ("%PROTOCOL%", "HTTP/2"),
        ("%START_TIME%", "2024-02-29T12:34:56.042Z"),
        (
            "%START_TIME(%d/%m/%Y %H-%M-%S.%6f %s)%",
            "29/02/2024 12-34-56.042000 1709210096",
        ),
        ("%RESPONSE_FLAGS%", "UT"),
        ("%RESPONSE_CODE%", "504"),
        ("%RESPONSE_CODE_DETAILS%", "response_timeout"),
        ("%HOSTNAME%", "gateway-0"),
        ("%ROUTE_NAME%", "route-a"),
        ("%REQ(X-Id)%", "abc"),
        ("%REQ(missing?x-id)%", "abc"),
        ("%REQ(:PATH)%", "/p?q=1"),
        (
            "%REQ(:authority)%%REQ(:method)%%REQ(:scheme)%",
            "a.com:80GEThttps",
        ),
        ("%RESP(x-answer)%", "42"),
        ("%ENVIRONMENT(POD)%", "pod-1"),
        ("<%REQ(x-id):2%>", "<ab>"),
        (
            "%REQUEST_HEADER(x-id)% %RESPONSE_HEADER(x-answer)%",
            "abc 42",
        ),
        ("%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT(8)%", "10.0.0.0/8"),
        ("%DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT(64)%", "::/64"),
        ("<%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT(33)%>", "<>"),
        ("%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%", "192.0.2.7:5000"),
        ("%DOWNSTREAM_DIRECT_REMOTE_PORT%", "5000"),
        ("%DOWNSTREAM_DIRECT_LOCAL_PORT%", "80"),
        ("%UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT(16)%", "10.1.0.0/16"),
        ("%UPSTREAM_HOST_NAME%", "db.example"),
        ("%UPSTREAM_CLUSTER_RAW%", "outbound|80||s"),
        ("%UPSTREAM_PROTOCOL%", "HTTP/2"),
        (
            "%DOWNSTREAM_TLS_VERSION% %DOWNSTREAM_TLS_CIPHER%",
            "TLSv1.3 TLS_AES_128_GCM_SHA256",
        ),
        ("%DURATION% %REQUEST_DURATION%", "12 3"),
        ("%EMIT_TIME(%s)%", "1709210097"),
        ("%BYTES_RECEIVED% %BYTES_SENT%", "17 0"),
        ("%UPSTREAM_REQUEST_ATTEMPT_COUNT%", "2"),
        ("%STREAM_ID%", "id-1"),
        ("%RESPONSE_FLAGS_LONG%", "UpstreamRequestTimeout"),
        // :authority 18, :method 10, :path 11, :scheme 12, x-id 7 and 10
        ("%REQUEST_HEADERS_BYTES%", "68"),
        // :status 10, x-answer 10
        ("%RESPONSE_HEADERS_BYTES%", "20"),
        ("l-%CEL(f(a)[\"%)\"])%-%TRAILER(x):3%-r", "l---r"),
        ("a%UPSTREAM_REMOTE_ADDRESS%b", "ab"),
    ] {
        assert_eq!(print(text).as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn unknown_values_print_as_empty() {
    for text in [
        "%REQ(missing)%",
        "%RESP(missing)%",
        "%ENVIRONMENT(MISSING)%",
        "%UPSTREAM_HOST%",
        "%UPSTREAM_TLS_VERSION%%UPSTREAM_PEER_CERT%",
        "%DOWNSTREAM_PEER_SUBJECT%%DOWNSTREAM_LOCAL_SUBJECT%",
        "%RESPONSE_DURATION%",
        "%GRPC_STATUS%",
        "%TRACE_ID%",
        "%VIRTUAL_CLUSTER_NAME%",
        "",
    ] {
        assert_eq!(print(text), None, "{text}");
    }
}

#[test]
fn invalid_templates_are_rejected_when_parsed() {
    let argument = |operator: &str, problem: &'static str| {
        TemplateError::Argument(operator.to_owned(), problem.into())
    };
    for (text, expected) in [
        ("50%", TemplateError::Open(2)),
        ("a%REQ(x%", TemplateError::Open(1)),
        ("%%%PROTOCOL", TemplateError::Open(2)),
        (
            "%no_such%",
            TemplateError::UnknownOperator("no_such".to_owned()),
        ),
        ("% x%", TemplateError::UnknownOperator(" x".to_owned())),
        ("%REQ%", argument("REQ", "needs an argument in parentheses")),
        (
            "%REQ()%",
            argument("REQ", "needs an argument in parentheses"),
        ),
        (
            "%REQ(a b)%",
            argument("REQ", "the argument is not a header name"),
        ),
        ("%PROTOCOL(x)%", argument("PROTOCOL", "takes no argument")),
        (
            "%REQ(x):y%",
            argument("REQ", "expected `:` and a number, or `%`"),
        ),
        (
            "%REQ(x)y%",
            argument("REQ", "expected `:` and a number, or `%`"),
        ),
        (
            "%START_TIME(%Q)%",
            argument("START_TIME", "unknown or unfinished time specifier"),
        ),
        (
            "%START_TIME(%)%",
            argument("START_TIME", "unknown or unfinished time specifier"),
        ),
    ] {
        assert_eq!(Template::parse(text), Err(expected), "{text}");
    }
}

#[test]
fn a_text_without_operators_is_literal() {
    assert_eq!(Template::parse("a%%b").unwrap().as_literal(), Some("a%b"));
    assert_eq!(Template::parse("").unwrap().as_literal(), Some(""));
    assert_eq!(Template::parse("%PROTOCOL%").unwrap().as_literal(), None);
}
