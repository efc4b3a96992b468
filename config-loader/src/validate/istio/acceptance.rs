//! Values that Istio 1.32 accepts or rejects beyond the rules of its API. Each case was checked with its validation.

use super::testing::check;

#[test]
fn enum_values_are_not_empty() {
    let port = "port: {number: 443, name: a, protocol: HTTPS}";
    for (kind, body) in [
        (
            "DestinationRule",
            "host: b\ntrafficPolicy: {tls: {mode: ''}}",
        ),
        (
            "DestinationRule",
            "host: b\ntrafficPolicy: {loadBalancer: {simple: ''}}",
        ),
        (
            "DestinationRule",
            "host: b\ntrafficPolicy: {connectionPool: {http: {h2UpgradePolicy: ''}}}",
        ),
        (
            "Gateway",
            &*format!(
                "servers:\n- {{{port}, hosts: [a.com], tls: {{mode: '', credentialName: x}}}}"
            ),
        ),
        (
            "Gateway",
            &format!(
                "servers:\n- {{{port}, hosts: [a.com], tls: {{mode: SIMPLE, credentialName: x, minProtocolVersion: ''}}}}"
            ),
        ),
        ("Sidecar", "\noutboundTrafficPolicy:\n  mode: ''"),
        ("Sidecar", "egress:\n- {hosts: ['./*'], captureMode: ''}"),
        (
            "VirtualService",
            "hosts: [b]\nhttp: [{redirect: {uri: /a, derivePort: ''}}]",
        ),
    ] {
        check(kind, &[(body, &["E CM017 6"])]);
    }
    let entry = "hosts: [a.com]\nports: [{number: 80, name: a, protocol: HTTP}]";
    for field in ["resolution: ''", "resolution: NONE\nlocation: ''"] {
        let line = 6 + field.lines().count();
        let expected = format!("E CM017 {line}");
        check(
            "ServiceEntry",
            &[(&format!("{entry}\n{field}"), &[&expected])],
        );
    }
}

/// Returns the closing brackets that a text lacks.
fn open_brackets(text: &str) -> String {
    let mut open = Vec::new();
    for letter in text.chars() {
        match letter {
            '{' => open.push('}'),
            '[' => open.push(']'),
            '}' | ']' => drop(open.pop()),
            _ => {}
        }
    }
    open.into_iter().rev().collect()
}

#[test]
fn int32_fields_end_where_the_type_does() {
    let tcp = "host: b\ntrafficPolicy: {connectionPool: {tcp: {";
    let http = "host: b\ntrafficPolicy: {connectionPool: {http: {";
    let route = "hosts: [b]\nhttp: [{route: [{destination: {host: a}, ";
    let tcp_route = "hosts: [b]\ntcp: [{route: [{destination: {host: a}, ";
    let retries = "hosts: [b]\nhttp: [{route: [{destination: {host: a}}], retries: {";
    for (kind, head, field, code) in [
        ("DestinationRule", tcp, "maxConnections", "DR146"),
        ("DestinationRule", http, "http1MaxPendingRequests", "DR138"),
        ("DestinationRule", http, "http2MaxRequests", "DR139"),
        ("DestinationRule", http, "maxRequestsPerConnection", "DR140"),
        ("DestinationRule", http, "maxRetries", "DR141"),
        ("DestinationRule", http, "maxConcurrentStreams", "DR142"),
        ("VirtualService", retries, "attempts", "VS097"),
        ("VirtualService", route, "weight", "VS106"),
        ("VirtualService", tcp_route, "weight", "VS106"),
    ] {
        let body = |number: u32| {
            let text = format!("{head}{field}: {number}");
            let closing = open_brackets(&text);
            format!("{text}{closing}")
        };
        check(kind, &[(&body(2_147_483_647), &[])]);
        check(kind, &[(&body(2_147_483_648), &[&format!("E {code} 6")])]);
    }
    // `uint32` fields go on
    let rule = "host: b\ntrafficPolicy: {outlierDetection: {consecutive5xxErrors: 4294967295}}";
    check("DestinationRule", &[(rule, &[])]);
    check(
        "WorkloadEntry",
        &[("address: 1.2.3.4\nweight: 2147483648", &[])],
    );
}

#[test]
fn a_single_label_may_be_digits() {
    for (kind, body) in [
        ("DestinationRule", "host: '123'"),
        (
            "ServiceEntry",
            "hosts: ['123']\nports: [{number: 80, name: a, protocol: HTTP}]\nresolution: NONE",
        ),
        (
            "VirtualService",
            "hosts: ['123']\nhttp: [{route: [{destination: {host: '456'}}]}]",
        ),
    ] {
        check(kind, &[(body, &[])]);
    }
    check("DestinationRule", &[("host: a.123", &["E DR123 5"])]);
    check(
        "VirtualService",
        &[(
            "hosts: [1.2.3]\nhttp: [{route: [{destination: {host: a}}]}]",
            &["E VS029 5"],
        )],
    );
}

#[test]
fn delegate_without_a_name_is_taken() {
    for delegate in ["{}", "{name: ''}", "{namespace: other}"] {
        let body = format!("hosts: [b]\nhttp: [{{delegate: {delegate}}}]");
        check("VirtualService", &[(&body, &["W VS301 6"])]);
    }
}
