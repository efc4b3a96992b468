use crate::resource::istio::{Bind, CaptureMode, EgressNamespace, LocalEndpoint, Protocol};
use crate::validate::istio::testing::{check, document, load};

fn sidecar(cases: &[(&str, &[&str])]) {
    check("Sidecar", cases);
}

/// Checks cases of fields after the port of one ingress listener, on line 5.
fn ingress(cases: &[(&str, &[&str])]) {
    for (fields, expected) in cases {
        let expected: Vec<String> = expected.iter().map(|code| format!("{code} 5")).collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        sidecar(&[(&format!("ingress: [{{{fields}}}]"), &expected)]);
    }
}

/// Checks cases of `egress` entries, one per line from line 6 on.
fn egress(cases: &[(&[&str], &[&str])]) {
    for (entries, expected) in cases {
        let entries: Vec<String> = entries
            .iter()
            .map(|entry| format!("- {{{entry}}}"))
            .collect();
        sidecar(&[(&format!("egress:\n{}", entries.join("\n")), *expected)]);
    }
}

#[test]
fn an_empty_sidecar_is_rejected() {
    sidecar(&[
        ("workloadSelector: {labels: {app: a}}", &["E SC222 4"]),
        ("ingress: []\negress: []", &["E SC222 4"]),
        ("outboundTrafficPolicy: {}", &[]),
        ("inboundConnectionPool: {tcp: {maxConnections: 1}}", &[]),
        ("inboundConnectionPool: {}", &["E DR137 5"]),
        (
            "inboundConnectionPool: {tcp: {maxConnections: -1}}",
            &["E DR146 5"],
        ),
        (
            "outboundTrafficPolicy: {}\nworkloadSelector: {}",
            &["W CM013 6"],
        ),
        ("ingress: [null]", &["E CM018 5"]),
    ]);
}

#[test]
fn ingress_ports_must_be_valid() {
    ingress(&[
        ("port: {number: 80, protocol: HTTP, name: http}", &[]),
        ("port: {number: 80}", &[]),
        ("bind: 10.0.0.1", &["E SC223"]),
        ("port: {protocol: HTTP}", &["E SC224"]),
        ("port: {number: 0}", &["E CM016"]),
        ("port: {number: 80, protocol: HTPT}", &["E SC225"]),
        ("port: {number: 80, name: h_p}", &["E SC226"]),
        ("port: {number: 80, targetPort: 81}", &["E SC227"]),
        ("port: {number: 80}, bind: 10.0.0.1", &[]),
        ("port: {number: 80}, bind: localhost", &["E SC228"]),
        ("port: {number: 80}, bind: 'unix:///a'", &["E SC228"]),
        ("port: {number: 80}, captureMode: SOMETIMES", &["E CM017"]),
        (
            "port: {number: 80, protocol: HTTP}, connectionPool: {http: {maxRetries: 1}}",
            &[],
        ),
        (
            "port: {number: 80, protocol: TCP}, connectionPool: {http: {maxRetries: 1}}",
            &["W SC235"],
        ),
        (
            "port: {number: 80, protocol: TCP}, connectionPool: {tcp: {maxConnections: 1}}",
            &[],
        ),
    ]);
    sidecar(&[
        (
            "ingress:\n- {port: {number: 80}}\n- {port: {number: 80}}",
            &["E SC229 7"],
        ),
        (
            "ingress:\n- {port: {number: 80}}\n- {port: {number: 81}}",
            &[],
        ),
    ]);
}

#[test]
fn default_endpoints_must_be_local() {
    for (endpoint, code) in [
        ("127.0.0.1:8080", None),
        ("0.0.0.0:8080", None),
        ("[::1]:8080", None),
        ("[::]:8080", None),
        (":8080", None),
        ("unix:///run/a", None),
        ("unix://@a", None),
        ("10.0.0.1:8080", Some("E SC230")),
        ("localhost:8080", Some("E SC230")),
        ("unix://run/a", Some("E SC230")),
        ("127.0.0.1", Some("E SC231")),
        ("127.0.0.1:http", Some("E SC231")),
        ("127.0.0.1:0", Some("E SC231")),
        ("127.0.0.1:65536", Some("E SC231")),
    ] {
        let expected: Vec<&str> = code.into_iter().collect();
        ingress(&[(
            &format!("port: {{number: 80}}, defaultEndpoint: '{endpoint}'"),
            &expected,
        )]);
    }
}

#[test]
fn ingress_tls_needs_files() {
    let files = "serverCertificate: /c, privateKey: /k";
    let with = |protocol: &str, tls: &str| {
        format!("port: {{number: 443, protocol: {protocol}}}, tls: {{{tls}}}")
    };
    ingress(&[
        (&with("HTTPS", &format!("mode: SIMPLE, {files}")), &[]),
        (
            &with(
                "TLS",
                &format!("mode: MUTUAL, {files}, caCertificates: /ca"),
            ),
            &[],
        ),
        (
            &with("HTTP", &format!("mode: SIMPLE, {files}")),
            &["E SC232"],
        ),
        (&with("HTTPS", "mode: ISTIO_MUTUAL"), &["E SC233"]),
        (&with("HTTPS", "mode: AUTO_PASSTHROUGH"), &["E SC233"]),
        (&with("TLS", "mode: PASSTHROUGH"), &["W SC313"]),
        (&with("TLS", "minProtocolVersion: TLSV1_2"), &["W SC313"]),
        (
            &with(
                "HTTPS",
                &format!("mode: SIMPLE, {files}, subjectAltNames: [a]"),
            ),
            &["E SC234"],
        ),
        (
            &with(
                "HTTPS",
                &format!("mode: SIMPLE, {files}, httpsRedirect: true"),
            ),
            &["E SC234"],
        ),
        (
            &with("HTTPS", "mode: SIMPLE, credentialName: a"),
            &["E SC234"],
        ),
        (
            &with("HTTPS", "mode: SIMPLE, credentialNames: [a]"),
            &["E SC234"],
        ),
        (&with("HTTPS", "mode: SIMPLE"), &["E GW213"]),
    ]);
}

#[test]
fn conflicting_egress_listeners_are_rejected() {
    let all = "hosts: ['./*']";
    let port = |rest: &str| format!("{all}, port: {{{rest}}}");
    let socket = |capture: &str| {
        format!("{all}, port: {{number: 0}}, bind: 'unix:///run/a', captureMode: {capture}")
    };
    egress(&[
        (&[all], &[]),
        (&[&port("number: 80, protocol: HTTP"), all], &[]),
        (&[all, &port("number: 80, protocol: HTTP")], &["E SC236 6"]),
        (
            &[&port("number: 80"), all, all],
            &["E SC236 7", "E SC237 8"],
        ),
        (&[&port("number: 0")], &["E SC238 6"]),
        (&[&socket("NONE")], &[]),
        (&[&socket("IPTABLES")], &["E SC238 6"]),
        (
            &[&format!("{all}, port: {{number: 80}}, bind: localhost")],
            &["E SC239 6"],
        ),
        (
            &[&format!(
                "{all}, port: {{number: 80}}, bind: 'unix:///run/a'"
            )],
            &["E SC239 6"],
        ),
        (
            &[&format!("{all}, port: {{number: 80}}, bind: 10.0.0.1")],
            &[],
        ),
        (&[&port("number: 80"), &port("number: 80")], &["E SC240 7"]),
        (
            &[
                &format!("{all}, port: {{number: 0}}, bind: 'unix:///run/a'"),
                &format!("{all}, port: {{number: 0}}, bind: 'unix:///run/a'"),
            ],
            &["E SC240 7"],
        ),
        (&[&port("number: 80, protocol: HTPT")], &["E SC225 6"]),
        (&[&port("number: 80, name: h_p")], &["E SC226 6"]),
        (&[&port("number: 80, targetPort: 81")], &["E SC227 6"]),
    ]);
}

#[test]
fn egress_hosts_must_be_qualified() {
    for (hosts, code) in [
        (
            "['./*', 'ns1/a.com', '*/b.com', '~ns2/*', 'ns3/*.c.com']",
            None,
        ),
        ("['~/*']", None),
        ("[]", Some("E SC241")),
        ("[a.com]", Some("E SC242")),
        ("[/a.com]", Some("E SC242")),
        ("[ns/]", Some("E SC242")),
        ("[n_s/a.com]", Some("E SC243")),
        ("['~n_s/a.com']", Some("E SC243")),
        ("[ns/reviews]", Some("E SC244")),
        ("[ns/a_b.com]", Some("E SC244")),
        ("['ns/*foo.com']", Some("E GW203")),
        ("['./a.com', './a.com']", Some("W SC245")),
        ("['*/*', './a.com']", Some("W SC245")),
        ("['*/*', '~ns/*']", None),
    ] {
        let expected: Vec<String> = code.map(|code| format!("{code} 6")).into_iter().collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        egress(&[(&[&format!("hosts: {hosts}")], &expected)]);
    }
    egress(&[(&["port: {number: 80}"], &["E SC241 6"])]);
}

#[test]
fn outbound_traffic_policy_egress_proxy_is_checked() {
    let with = |policy: &str| format!("outboundTrafficPolicy: {{{policy}}}");
    let proxy = "egressProxy: {host: egress.ns.svc.cluster.local, port: {number: 443}}";
    sidecar(&[
        (&with("mode: ALLOW_ANY"), &[]),
        (&with("mode: SOMETIMES"), &["E CM017 5"]),
        (&with(&format!("mode: ALLOW_ANY, {proxy}")), &["W SC301 5"]),
        (
            &with(&format!("mode: REGISTRY_ONLY, {proxy}")),
            &["E SC246 5", "W SC301 5"],
        ),
        (&with(proxy), &["E SC246 5", "W SC301 5"]),
        (
            &with("mode: ALLOW_ANY, egressProxy: {host: '*.a.com', port: {number: 443}}"),
            &["W SC301 5", "E SC247 5"],
        ),
        (
            &with("mode: ALLOW_ANY, egressProxy: {port: {number: 443}}"),
            &["E SC247 5", "W SC301 5"],
        ),
        (
            &with("mode: ALLOW_ANY, egressProxy: {host: a.com}"),
            &["E SC248 5", "W SC301 5"],
        ),
    ]);
}

#[test]
fn every_field_of_a_sidecar_is_read() {
    let (set, found) = load(&document(
        "Sidecar",
        "workloadSelector: {labels: {app: a}}
ingress:
- port: {number: 9080, protocol: HTTP, name: web}
  bind: 10.0.0.1
  captureMode: NONE
  defaultEndpoint: 127.0.0.1:8080
  connectionPool: {http: {maxRetries: 1}}
egress:
- port: {number: 80, protocol: HTTP, name: out}
  bind: 127.0.0.1
  captureMode: IPTABLES
  hosts: ['./a.com', '~other/*']
outboundTrafficPolicy:
  mode: ALLOW_ANY
  egressProxy: {host: b.com, subset: v1, port: {number: 443}}
inboundConnectionPool: {tcp: {maxConnections: 5}}",
    ));
    let codes: Vec<&str> = found.iter().map(|found| found.code.0).collect();
    assert_eq!(codes, ["SC301"], "{found:#?}");
    let sidecar = &set.sidecars.values().next().expect("it is good").spec;
    assert_eq!(
        sidecar.workload_selector.as_ref().expect("labels")["app"],
        "a"
    );
    let ingress = &sidecar.ingress[0];
    assert_eq!(
        (ingress.port.number, ingress.port.protocol),
        (9080, Protocol::Http)
    );
    assert_eq!(ingress.bind, Bind::Ip([10, 0, 0, 1].into()));
    assert_eq!(ingress.capture, CaptureMode::None);
    assert_eq!(
        ingress.default_endpoint,
        Some(LocalEndpoint::Loopback([127, 0, 0, 1].into(), 8080))
    );
    assert!(ingress.connection_pool.is_some());
    let egress = &sidecar.egress.as_ref().expect("listeners")[0];
    assert_eq!(egress.port.as_ref().map(|port| port.number), Some(80));
    assert_eq!(egress.capture, CaptureMode::Iptables);
    assert_eq!(egress.hosts[0].namespace, EgressNamespace::Own);
    assert_eq!(
        egress.hosts[1].namespace,
        EgressNamespace::Without("other".into())
    );
    let outbound = sidecar.outbound.as_ref().expect("a policy");
    assert!(outbound.allow_any);
    let proxy = outbound.egress_proxy.as_ref().expect("a proxy");
    assert_eq!(
        (&*proxy.host, proxy.subset.as_deref(), proxy.port),
        ("b.com", Some("v1"), Some(443))
    );
    assert!(sidecar.inbound_connection_pool.is_some());
}
