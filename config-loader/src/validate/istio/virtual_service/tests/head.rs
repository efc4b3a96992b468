//! Hosts, gateways, visibility.

use super::{GOOD, service};

#[test]
fn a_delegate_may_only_have_http_rules() {
    let http = format!("http:\n{GOOD}\n");
    let tls = "tls:\n- match: [{sniHosts: [a.com]}]\n  route: [{destination: {host: a}}]";
    let tcp = "tcp:\n- route: [{destination: {host: a}}]";
    service(&[
        (&http, &[]),
        (&format!("{http}gateways: [gw]"), &["E VS021 7"]),
        (&format!("{http}gateways: []"), &[]),
        (&format!("{http}{tls}"), &["E VS022 7"]),
        (&format!("hosts: [a.com]\n{http}{tls}"), &[]),
        (&format!("{http}{tcp}"), &["E VS023 7"]),
        (&format!("hosts: [a.com]\n{http}{tcp}"), &[]),
        ("http: [{delegate: {name: d}}]", &["E VS047 5"]),
        ("hosts: [a.com]\nhttp: [{delegate: {name: d}}]", &[]),
        (
            "hosts: [a.com]\nhttp: [{delegate: {namespace: d}}]",
            &["W VS301 6"],
        ),
    ]);
}

#[test]
fn gateway_names_are_checked() {
    for (gateway, code) in [
        ("mesh", None),
        ("gw", None),
        ("./gw", None),
        ("ns/gw", None),
        ("ns/", Some("E VS024 6")),
        ("/gw", Some("E VS024 6")),
        ("n_s/gw", Some("E VS025 6")),
        ("ns/g_w", Some("E VS026 6")),
        ("ns/a.b", Some("E VS026 6")),
        ("g_w", Some("E VS027 6")),
        ("gw.ns.svc.cluster.local", Some("W VS028 6")),
        ("gw.ns", Some("W VS028 6")),
    ] {
        let expected: Vec<&str> = code.into_iter().collect();
        let top = format!("hosts: [a.com]\ngateways: ['{gateway}']\nhttp:\n{GOOD}");
        service(&[(&top, &expected)]);
        let block = format!(
            "hosts: [a.com]\nhttp: [{{match: [{{gateways: ['{gateway}']}}], route: [{{destination: {{host: a}}}}]}}]"
        );
        service(&[(&block, &expected)]);
    }
}

#[test]
fn hosts_must_be_names_that_do_not_overlap() {
    let http = format!("http:\n{GOOD}");
    for (head, expected) in [
        ("hosts: [a.com]", vec![]),
        ("hosts: [reviews]", vec![]),
        ("hosts: [10.0.0.1, '::1']", vec![]),
        ("hosts: ['*.a.com']", vec![]),
        ("hosts: [a_b.com]", vec!["E VS029 5"]),
        ("hosts: ['a.com:80']", vec!["E VS029 5"]),
        ("hosts: [10.0.0.300]", vec!["E VS029 5"]),
        ("hosts: ['']", vec!["E VS029 5"]),
        ("hosts: ['a.*.com']", vec!["E VS030 5"]),
        ("hosts: ['*']", vec!["E VS031 5"]),
        ("hosts: ['*']\ngateways: [gw]", vec![]),
        ("hosts: ['*']\ngateways: [gw, mesh]", vec!["E VS031 5"]),
        ("hosts: [a.com, A.com]", vec!["E VS032 5"]),
        ("hosts: ['*.a.com', a.com]", vec![]),
        ("hosts: [x.a.com, '*.a.com']", vec!["E VS032 5"]),
        ("hosts: ['*.a.com', x.a.com]", vec!["E VS032 5"]),
        ("hosts: ['*.com', '*.a.com']", vec!["E VS032 5"]),
        ("hosts: ['*foo.com', '*.foo.com']", vec!["E VS032 5"]),
        ("hosts: ['*.a.com', '*.b.com']", vec![]),
        ("hosts: ['*', x.a.com]\ngateways: [gw]", vec!["E VS032 5"]),
        ("hosts: [a.com, null]", vec!["E CM018 5"]),
    ] {
        service(&[(&format!("{head}\n{http}"), &expected)]);
    }
}

#[test]
fn outbound_hosts_need_tls_at_a_gateway() {
    let rules = |host: &str, gateway: &str| {
        format!(
            "hosts: ['{host}']\n{gateway}tls:\n- match: [{{sniHosts: ['{host}']}}]\n  route: [{{destination: {{host: a}}}}]"
        )
    };
    let good = "outbound_.80_._.a.ns.svc.cluster.local";
    service(&[
        (&rules(good, "gateways: [gw]\n"), &[]),
        (&rules(good, ""), &["E VS033 5"]),
        (&rules("outbound_.80_.v1_.a.b", "gateways: [gw]\n"), &[]),
        (
            &rules("outbound_.x_._.a.b", "gateways: [gw]\n"),
            &["E VS033 5", "E VS110 8"],
        ),
        (
            &rules("outbound_.80_._.", "gateways: [gw]\n"),
            &["E VS033 5", "E VS110 8"],
        ),
        (
            &format!("hosts: ['{good}']\ngateways: [gw]\nhttp:\n{GOOD}"),
            &["E VS033 5"],
        ),
    ]);
}

#[test]
fn a_virtual_service_needs_rules() {
    service(&[
        ("hosts: [a.com]", &["E VS034 4"]),
        ("hosts: [a.com]\nhttp: []", &["E VS034 6"]),
        (
            "hosts: [a.com]\ntcp: [{route: [{destination: {host: a}}]}]",
            &[],
        ),
    ]);
}

#[test]
fn jwt_claims_match_only_at_gateways() {
    let rules = |gateways: &str, key: &str| {
        format!(
            "hosts: [a.com]\ngateways: [{gateways}]\nhttp:\n- match: [{{headers: {{'{key}': {{exact: a}}}}}}]\n  route: [{{destination: {{host: a}}}}]"
        )
    };
    service(&[
        (&rules("gw", "@request.auth.claims.a.b"), &[]),
        (&rules("gw", "@request.auth.claims[a.b][c]"), &[]),
        (&rules("", "@request.auth.claims.a"), &["E VS035 8"]),
        (&rules("gw, mesh", "@request.auth.claims.a"), &["E VS035 8"]),
        (&rules("gw", "@request.auth.claims"), &["E VS050 8"]),
        (&rules("gw", "@request.auth.claims[a"), &["E VS050 8"]),
        (&rules("gw", "@request.auth.claims.a..b"), &["E VS050 8"]),
    ]);
}

#[test]
fn export_to_must_name_namespaces() {
    let http = format!("hosts: [a.com]\nhttp:\n{GOOD}\nexportTo: ");
    for (entries, code) in [
        ("['.']", None),
        ("['*']", None),
        ("[a, b]", None),
        ("[a, a]", Some("E CM004 8")),
        ("['.', ns]", Some("E CM004 8")),
        ("[a_b]", Some("E CM005 8")),
        ("['~']", Some("E CM006 8")),
        ("['*', a]", Some("E CM007 8")),
    ] {
        let expected: Vec<&str> = code.into_iter().collect();
        service(&[(&format!("{http}{entries}"), &expected)]);
    }
}
