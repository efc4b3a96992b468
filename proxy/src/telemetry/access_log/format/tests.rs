use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, UNIX_EPOCH};

use super::super::entry::HttpVersion;
use super::*;
use traffic::telemetry::flags::ResponseFlags;

fn text_line(entry: &Entry<'_>) -> String {
    let mut out = Vec::new();
    text(&mut out, &mut Timestamp::default(), entry);
    String::from_utf8(out).expect("text lines are ASCII")
}

fn json_line(entry: &Entry<'_>) -> String {
    let mut out = Vec::new();
    json(&mut out, &mut Timestamp::default(), entry, None);
    String::from_utf8(out).expect("JSON is UTF-8")
}

fn v4(last: u8, port: u16) -> Option<SocketAddr> {
    Some((Ipv4Addr::new(10, 0, 0, last), port).into())
}

/// An entry with all fields.
fn full() -> Entry<'static> {
    Entry {
        start: UNIX_EPOCH + Duration::from_secs(1_704_067_200),
        method: Some("GET"),
        path: Some(b"/a"),
        version: Some(HttpVersion::Http11),
        response_code: 200,
        flags: ResponseFlags::NONE,
        response_code_details: Some("via_upstream"),
        bytes_received: 0,
        bytes_sent: 5,
        duration: Duration::from_micros(3_999),
        upstream_service_time: Some(Duration::from_millis(2)),
        x_forwarded_for: Some(b"10.0.0.9"),
        user_agent: Some(b"curl/8"),
        request_id: Some(b"6e0c"),
        authority: Some(b"a.com"),
        upstream_host: v4(1, 8080).map(Host::Ip),
        upstream_cluster: Some("outbound|80||a.default.svc.cluster.local"),
        upstream_local_address: v4(7, 41000),
        downstream_local_address: v4(7, 8080),
        downstream_remote_address: v4(9, 5123),
        requested_server_name: None,
        route_name: Some("default"),
        ..Entry::default()
    }
}

#[test]
fn a_proxied_request_prints_as_istio_prints_it() {
    assert_eq!(
        text_line(&full()),
        "[2024-01-01T00:00:00.000Z] \"GET /a HTTP/1.1\" 200 - via_upstream - \"-\" 0 5 3 2 \
         \"10.0.0.9\" \"curl/8\" \"6e0c\" \"a.com\" \"10.0.0.1:8080\" \
         outbound|80||a.default.svc.cluster.local 10.0.0.7:41000 10.0.0.7:8080 10.0.0.9:5123 - default\n"
    );
}

#[test]
fn missing_values_print_a_dash() {
    assert_eq!(
        text_line(&Entry::default()),
        "[1970-01-01T00:00:00.000Z] \"- - -\" 0 - - - \"-\" 0 0 0 - \"-\" \"-\" \"-\" \"-\" \"-\" - - - - - -\n"
    );
}

#[test]
fn a_failed_request_prints_flags_and_details_without_spaces() {
    let entry = Entry {
        response_code: 503,
        version: Some(HttpVersion::Http2),
        flags: ResponseFlags::URX | ResponseFlags::UF,
        response_code_details: Some(
            "upstream_reset_before_response_started{remote connection failure}",
        ),
        connection_termination_details: Some("went away"),
        upstream_transport_failure_reason: Some("delayed connect error: 111"),
        upstream_host: Some(Host::Ip((Ipv6Addr::LOCALHOST, 80).into())),
        requested_server_name: Some("a b.com"),
        route_name: Some("my rule"),
        ..full()
    };
    assert_eq!(
        text_line(&entry),
        "[2024-01-01T00:00:00.000Z] \"GET /a HTTP/2\" 503 UF,URX \
         upstream_reset_before_response_started{remote_connection_failure} went_away \
         \"delayed connect error: 111\" 0 5 3 2 \"10.0.0.9\" \"curl/8\" \"6e0c\" \"a.com\" \"[::1]:80\" \
         outbound|80||a.default.svc.cluster.local 10.0.0.7:41000 10.0.0.7:8080 10.0.0.9:5123 a_b.com my_rule\n"
    );
}

#[test]
fn untrusted_values_cannot_forge_a_field_or_a_line() {
    let evil: &[u8] =
        b"x\" 200 - via_upstream\r\n[2024-01-01T00:00:00.000Z] \"GET /admin \\x22\x1b[2J\xff";
    let evil_name = "sni\n - default";
    let honest = text_line(&full());
    let entry = Entry {
        method: Some("GET\n"),
        path: Some(evil),
        x_forwarded_for: Some(evil),
        user_agent: Some(evil),
        request_id: Some(evil),
        authority: Some(evil),
        requested_server_name: Some(evil_name),
        ..full()
    };
    let line = text_line(&entry);
    assert_eq!(line.matches('\n').count(), 1);
    assert_eq!(line.matches('"').count(), honest.matches('"').count());
    assert!(
        line.bytes()
            .all(|byte| byte == b'\n' || (0x20..0x7f).contains(&byte))
    );
    assert!(line.contains(r"GET\x0A x\x22 200 - via_upstream\x0D\x0A[2024"));
    assert!(line.contains(r"\x5Cx22\x1B[2J\xFF"));
    assert!(line.contains(r"sni\x0A_-_default"));
}

#[test]
fn an_empty_value_does_not_shift_the_fields_after_it() {
    let entry = Entry {
        route_name: Some(""),
        requested_server_name: Some(""),
        user_agent: Some(b""),
        ..full()
    };
    assert!(text_line(&entry).ends_with("10.0.0.9:5123 - -\n"));
    assert!(text_line(&entry).contains(" \"10.0.0.9\" \"-\" \"6e0c\" "));
}

#[test]
fn json_has_the_istio_keys_first_and_strait_keys_after() {
    assert_eq!(
        json_line(&Entry {
            upstream_transport_failure_reason: Some("a \"b\""),
            destination_cluster: Some("r/z/g/c2"),
            destination_tier: Some(1),
            attempts: 2,
            downstream_peer_uri_san: Some("spiffe://a/b"),
            ..full()
        }),
        concat!(
            r#"{"start_time":"2024-01-01T00:00:00.000Z","route_name":"default","method":"GET","path":"/a","#,
            r#""protocol":"HTTP/1.1","response_code":200,"response_flags":"-","response_code_details":"via_upstream","#,
            r#""connection_termination_details":null,"bytes_received":0,"bytes_sent":5,"duration":3,"#,
            r#""upstream_service_time":2,"x_forwarded_for":"10.0.0.9","user_agent":"curl/8","request_id":"6e0c","#,
            r#""authority":"a.com","upstream_host":"10.0.0.1:8080","#,
            r#""upstream_cluster":"outbound|80||a.default.svc.cluster.local","#,
            r#""upstream_local_address":"10.0.0.7:41000","downstream_local_address":"10.0.0.7:8080","#,
            r#""downstream_remote_address":"10.0.0.9:5123","requested_server_name":null,"#,
            r#""upstream_transport_failure_reason":"a \"b\"","#,
            r#""destination_cluster":"r/z/g/c2","destination_tier":1,"upstream_request_attempt_count":2,"#,
            r#""downstream_peer_uri_san":"spiffe://a/b","audit":null}"#,
            "\n"
        )
    );
}

#[test]
fn json_lines_with_untrusted_values_parse_back() {
    let entry = Entry {
        path: Some(b"/\xc3\xa9\xff\"\\\n"),
        response_code_details: Some("reset reason: overflow"),
        upstream_host: Some(Host::Ip((Ipv6Addr::LOCALHOST, 80).into())),
        ..Entry::default()
    };
    let line = json_line(&entry);
    assert_eq!(line.matches('\n').count(), 1);
    let read: serde_json::Value = serde_json::from_str(&line).expect("valid JSON");
    assert_eq!(read["path"], "/é\u{fffd}\"\\\n");
    assert_eq!(read["response_code_details"], "reset_reason:_overflow");
    assert_eq!(read["upstream_host"], "[::1]:80");
    for missing in [
        "method",
        "protocol",
        "upstream_service_time",
        "upstream_cluster",
        "authority",
    ] {
        assert!(read[missing].is_null(), "{missing}");
    }
    assert_eq!(read["response_code"], 0);
    assert_eq!(read.as_object().map(|object| object.len()), Some(29));
}

#[test]
fn sockets_print_their_path() {
    let entry = Entry {
        upstream_host: Some(Host::Text(b"/run/a b.sock")),
        ..full()
    };
    assert!(text_line(&entry).contains(r#" "/run/a b.sock" outbound|80|"#));
    let read: serde_json::Value = serde_json::from_str(&json_line(&entry)).expect("JSON");
    assert_eq!(read["upstream_host"], "/run/a b.sock");
}
