use std::time::Duration;

use super::*;

/// A context in which everything has a value.
fn print(text: &str) -> Option<String> {
    let mut request = HeaderMap::new();
    request.insert("x-id", HeaderValue::from_static("abc"));
    request.append("x-id", HeaderValue::from_static("second"));
    let mut response = HeaderMap::new();
    response.insert("x-answer", HeaderValue::from_static("42"));
    let environment = BTreeMap::from([("POD".to_owned(), "pod-1".to_owned())]);
    let context = TemplateContext {
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
    };
    let value = Template::parse(text).unwrap().value(&context)?;
    Some(value.to_str().unwrap().to_owned())
}

#[test]
fn operators_print_what_they_name() {
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
        ("a%UPSTREAM_REMOTE_ADDRESS%b", "ab"),
    ] {
        assert_eq!(print(text).as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn what_is_not_known_prints_as_nothing() {
    for text in [
        "%REQ(missing)%",
        "%RESP(missing)%",
        "%ENVIRONMENT(MISSING)%",
        "%UPSTREAM_HOST%",
        "",
    ] {
        assert_eq!(print(text), None, "{text}");
    }
}

#[test]
fn faults_are_found_when_a_template_is_read() {
    let argument = |operator: &str, problem| TemplateError::Argument(operator.to_owned(), problem);
    for (text, expected) in [
        ("50%", TemplateError::Open(2)),
        ("a%REQ(x%", TemplateError::Open(1)),
        ("%%%PROTOCOL", TemplateError::Open(2)),
        (
            "%NO_SUCH%",
            TemplateError::UnknownOperator("NO_SUCH".to_owned()),
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
