use super::*;

fn map(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

#[test]
fn headers_of_one_connection_are_removed() {
    let mut headers = map(&[
        ("connection", "keep-alive"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("te", "gzip"),
        ("x", "1"),
    ]);
    strip_request(&mut headers, false).unwrap();
    assert_eq!(headers, map(&[("x", "1")]));
}

#[test]
fn operation_name_for_a_trace_is_removed_from_responses() {
    let sent = map(&[("x-envoy-decorator-operation", "web:80/*"), ("x", "1")]);
    let mut response = sent.clone();
    strip_response(&mut response, false);
    assert_eq!(response, map(&[("x", "1")]));
    let mut request = sent.clone();
    strip_request(&mut request, false).unwrap();
    assert_eq!(request, sent);
}

#[test]
fn headers_named_by_any_connection_line_are_removed() {
    let mut headers = map(&[
        ("connection", "X-One, close"),
        ("connection", " ,x-two,no name"),
        ("x-one", "1"),
        ("x-two", "2"),
        ("x-three", "3"),
    ]);
    strip_request(&mut headers, false).unwrap();
    assert_eq!(headers, map(&[("x-three", "3")]));
}

#[test]
fn the_message_keeps_its_host_and_length() {
    let mut headers = map(&[
        ("connection", "host, content-length"),
        ("host", "a"),
        ("content-length", "3"),
    ]);
    strip_request(&mut headers, false).unwrap();
    assert_eq!(headers, map(&[("host", "a"), ("content-length", "3")]));
}

#[test]
fn te_trailers_is_forwarded() {
    for te in ["trailers", "gzip, Trailers"] {
        let mut headers = map(&[("connection", "te"), ("te", te)]);
        strip_request(&mut headers, false).unwrap();
        assert_eq!(headers, map(&[("te", "trailers")]), "{te}");
    }
}

#[test]
fn an_upgrade_is_forwarded() {
    let mut headers = map(&[
        ("connection", "keep-alive, Upgrade, x"),
        ("upgrade", "websocket"),
        ("x", "1"),
        ("sec-websocket-version", "13"),
    ]);
    strip_request(&mut headers, true).unwrap();
    let expected = map(&[
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
    ]);
    assert_eq!(headers, expected);
}

#[test]
fn connection_naming_a_protected_header_is_rejected() {
    let ten = ["x"; 10].join(",");
    for value in [
        "x-forwarded-for",
        "close, X-Forwarded-Proto",
        "x-forwarded-host",
        ":path",
        &ten,
    ] {
        let mut headers = map(&[("connection", value)]);
        assert_eq!(
            strip_request(&mut headers, false),
            Err(InvalidConnection),
            "{value}"
        );
    }
    let nine = ["x"; 9].join(",");
    assert_eq!(
        strip_request(&mut map(&[("connection", &nine)]), false),
        Ok(())
    );
}

#[test]
fn a_response_is_never_rejected() {
    let mut headers = map(&[
        ("connection", "x-forwarded-for, x"),
        ("x", "1"),
        ("transfer-encoding", "chunked"),
    ]);
    strip_response(&mut headers, false);
    assert_eq!(headers, map(&[("x", "1")]));
    let mut headers = map(&[("connection", "x"), ("x", "1"), ("y", "2")]);
    strip_response(&mut headers, false);
    assert_eq!(headers, map(&[("y", "2")]));
    let mut headers = map(&[("connection", "Upgrade"), ("upgrade", "websocket")]);
    strip_response(&mut headers, true);
    assert_eq!(
        headers,
        map(&[("connection", "upgrade"), ("upgrade", "websocket")])
    );
}

#[test]
fn other_headers_are_kept() {
    let lines = [
        ("host", "a"),
        ("accept", "*/*"),
        ("accept", "x"),
        ("trailer", "t"),
    ];
    let mut headers = map(&lines);
    strip_request(&mut headers, false).unwrap();
    assert_eq!(headers, map(&lines));
}

#[test]
fn upgrade_needs_connection_and_upgrade_headers() {
    let rows: &[(&[&str], Option<&str>, bool)] = &[
        (&["Upgrade"], Some("websocket"), true),
        (&["keep-alive, Upgrade"], Some("websocket"), true),
        (&["keep-alive", "upgrade"], Some("foo/2"), true),
        (&["upgrade"], Some("h2c"), false),
        (&["upgrade, http2-settings"], Some("websocket, H2C"), false),
        (&["keep-alive"], Some("websocket"), false),
        (&["upgrade"], None, false),
        (&[], Some("websocket"), false),
    ];
    for (connection, upgrade, expected) in rows {
        let mut headers = HeaderMap::new();
        for value in *connection {
            headers.append(CONNECTION, HeaderValue::from_static(value));
        }
        if let Some(value) = upgrade {
            headers.insert(UPGRADE, HeaderValue::from_static(value));
        }
        assert_eq!(
            asks_to_upgrade(&headers),
            *expected,
            "{connection:?} {upgrade:?}"
        );
    }
}
