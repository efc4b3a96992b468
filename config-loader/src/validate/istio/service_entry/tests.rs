use crate::resource::ExportTo;
use crate::resource::istio::{EndpointAddress, Location, Protocol, Resolution};
use crate::validate::istio::testing::{check, document, load};

fn entry(cases: &[(&str, &[&str])]) {
    check("ServiceEntry", cases);
}

/// Checks cases of fields after the host `a.com`, from line 6 on.
fn with_host(cases: &[(&str, &[&str])]) {
    for (fields, expected) in cases {
        entry(&[(&format!("hosts: [a.com]\n{fields}"), *expected)]);
    }
}

#[test]
fn hosts_must_be_dns_names() {
    let many: Vec<String> = (0..257).map(|index| format!("h{index}.com")).collect();
    let (most, more) = (many[..256].join(", "), many.join(", "));
    entry(&[
        (
            "hosts: [a.com, '*.b.com']\nports: [{number: 80, name: http, protocol: HTTP}]",
            &[],
        ),
        ("ports: []", &["E SE250 4"]),
        ("hosts: []", &["E SE250 5"]),
        (&format!("hosts: [{most}]"), &[]),
        (&format!("hosts: [{more}]"), &["E SE250 5"]),
        ("hosts: ['*']", &["E SE251 5"]),
        ("hosts: [a_b.com]", &["E SE252 5"]),
        ("hosts: [10.0.0.1]", &["E SE252 5"]),
        ("hosts: ['*foo.com']", &["W SE301 5"]),
    ]);
}

#[test]
fn addresses_must_be_ip_addresses_or_cidr_blocks() {
    with_host(&[
        ("addresses: [10.0.0.1, 10.1.0.0/16, '2001:db8::/32']", &[]),
        ("addresses: [a.com]", &["E SE253 6"]),
        ("addresses: [10.0.0.0/40]", &["E SE253 6"]),
        ("addresses: [10.1.0.0/16]\nresolution: STATIC", &[]),
        ("addresses: [10.1.0.0/16]\nresolution: DNS", &["E SE254 6"]),
        ("addresses: [10.1.0.0]\nresolution: DNS", &[]),
    ]);
}

#[test]
fn ports_need_unique_names_and_numbers() {
    let http = "number: 80, name: http, protocol: HTTP";
    with_host(&[
        (
            &format!(
                "ports: [{{{http}}}, {{number: 443, name: tls, protocol: TLS, targetPort: 8443}}]\nresolution: DNS"
            ),
            &[],
        ),
        ("ports: [{number: 80, protocol: HTTP}]", &["E SE255 6"]),
        (
            "ports: [{number: 80, name: h_p, protocol: HTTP}]",
            &["E SE255 6"],
        ),
        (
            &format!("ports: [{{{http}}}, {{number: 81, name: http, protocol: HTTP}}]"),
            &["E SE255 6"],
        ),
        (
            &format!("ports: [{{{http}}}, {{number: 80, name: b, protocol: HTTP}}]"),
            &["E SE256 6"],
        ),
        ("ports: [{name: http, protocol: HTTP}]", &["E SE256 6"]),
        (
            "ports: [{number: 0, name: http, protocol: HTTP}]",
            &["E CM016 6"],
        ),
        (
            &format!("ports: [{{{http}, targetPort: 0}}]"),
            &["E CM016 6"],
        ),
        (
            "ports: [{number: 80, name: http, protocol: HTPT}]",
            &["E SE258 6"],
        ),
        ("ports: [{number: 80, name: http}]", &["W SE269 6"]),
        ("ports: [null]", &["E CM018 6"]),
    ]);
}

#[test]
fn endpoints_must_fit_the_resolution() {
    let port = "ports: [{number: 80, name: http, protocol: HTTP}]";
    for (rest, expected) in [
        (
            "endpoints: [{address: 10.0.0.1}]\nworkloadSelector: {labels: {a: b}}\nresolution: STATIC",
            vec!["E SE249 8"],
        ),
        (
            "endpoints: []\nworkloadSelector: {labels: {a: b}}\nresolution: STATIC",
            vec![],
        ),
        (
            "workloadSelector: {}\nresolution: STATIC",
            vec!["W CM013 7"],
        ),
        (
            "workloadSelector: {labels: {'': b}}\nresolution: STATIC",
            vec!["E CM011 7"],
        ),
        (
            "workloadSelector: {labels: {a: '*'}}\nresolution: STATIC",
            vec!["E CM012 7"],
        ),
        ("endpoints: [{address: 10.0.0.1}]", vec!["E SE259 7"]),
        ("endpoints: []", vec![]),
        (
            "endpoints: [{address: 10.0.0.1}]\nresolution: STATIC",
            vec![],
        ),
        (
            "endpoints: [{address: b.com}]\nresolution: STATIC",
            vec!["E SE260 7"],
        ),
        (
            "endpoints: [{address: unix:///run/a}]\nresolution: STATIC",
            vec![],
        ),
        (
            "endpoints: [{address: unix:///run/a, ports: {http: 80}}]\nresolution: STATIC",
            vec!["E SE261 7"],
        ),
        (
            "endpoints: [{address: b.com}, {address: 10.0.0.1}]\nresolution: DNS",
            vec![],
        ),
        (
            "endpoints: [{address: unix:///run/a}]\nresolution: DNS",
            vec!["E SE265 7"],
        ),
        (
            "endpoints: [{address: b.com}, {address: c.com}]\nresolution: DNS_ROUND_ROBIN",
            vec!["E SE264 7"],
        ),
        (
            "endpoints: [{address: b.com}]\nresolution: DNS_ROUND_ROBIN",
            vec![],
        ),
        (
            "endpoints: [{address: b.com, ports: {http: 8080}}]\nresolution: DNS",
            vec![],
        ),
        (
            "endpoints: [{address: b.com, ports: {grpc: 8080}}]\nresolution: DNS",
            vec!["E SE266 7"],
        ),
        (
            "endpoints: [{address: b_c.com}]\nresolution: DNS",
            vec!["E WE271 7"],
        ),
        ("endpoints: [{}]\nresolution: STATIC", vec!["E WE270 7"]),
        ("resolution: SOMEHOW", vec!["E CM017 7"]),
        ("location: SOMEWHERE", vec!["E CM017 7"]),
        ("exportTo: ['~']", vec![]),
        ("exportTo: ['~', a]", vec!["E CM008 7"]),
    ] {
        with_host(&[(&format!("{port}\n{rest}"), &expected)]);
    }
    let two =
        "ports: [{number: 80, name: a, protocol: HTTP}, {number: 81, name: b, protocol: HTTP}]";
    with_host(&[(
        &format!("{two}\nendpoints: [{{address: unix:///run/a}}]\nresolution: STATIC"),
        &["E SE262 6"],
    )]);
}

#[test]
fn dns_resolution_needs_resolvable_names() {
    entry(&[
        ("hosts: ['*.a.com']\nresolution: DNS", &["E SE263 5"]),
        (
            "hosts: ['*.a.com']\nresolution: DNS\nendpoints: [{address: b.com}]",
            &[],
        ),
        ("hosts: ['*.a.com']\nresolution: NONE", &[]),
        (
            "hosts: ['*.a.com']\nresolution: DNS_ROUND_ROBIN",
            &["E SE263 5"],
        ),
    ]);
    let dynamic =
        |host: &str, rest: &str| format!("hosts: ['{host}']\nresolution: DYNAMIC_DNS\n{rest}");
    let port = |protocol: &str| format!("ports: [{{number: 80, name: a, protocol: {protocol}}}]");
    entry(&[
        (&dynamic("*.a.com", &port("HTTP")), &[]),
        (&dynamic("*.a.com", &port("TLS")), &[]),
        (
            &dynamic(
                "*.a.com",
                &format!("{}\naddresses: [10.0.0.1]", port("TCP")),
            ),
            &["E SE267 7", "E SE267 8"],
        ),
        (&dynamic("a.com", &port("HTTP")), &["E SE267 5"]),
        (
            &dynamic("*.a.com", "endpoints: [{address: b.com}]"),
            &["E SE267 7"],
        ),
    ]);
}

#[test]
fn tcp_ports_need_distinct_addresses() {
    let port = |protocol: &str| format!("ports: [{{number: 80, name: a, protocol: {protocol}}}]");
    let two = |rest: &str| format!("hosts: [a.com, b.com]\n{rest}");
    entry(&[
        (
            &two(&format!("{}\nresolution: DNS", port("TCP"))),
            &["E SE268 6"],
        ),
        (&two(&format!("{}\nresolution: DNS", port("HTTPS"))), &[]),
        (
            &two(&format!("{}\naddresses: [10.0.0.1]", port("TCP"))),
            &[],
        ),
    ]);
    with_host(&[
        (&port("TCP"), &["W SE269 6"]),
        (&format!("{}\naddresses: [10.0.0.1]", port("TCP")), &[]),
        (
            &format!("{}\naddresses: [10.0.0.300]", port("TCP")),
            &["E SE253 7"],
        ),
        (&port("HTTP"), &[]),
    ]);
}

#[test]
fn every_field_of_a_service_entry_is_read() {
    let (set, found) = load(&document(
        "ServiceEntry",
        "hosts: [a.com]
addresses: [10.0.0.0/24]
ports:
- {number: 443, name: https, protocol: HTTPS, targetPort: 8443}
location: MESH_INTERNAL
resolution: STATIC
endpoints:
- {address: 10.0.0.1, weight: 3, ports: {https: 9443}}
exportTo: [., b]
subjectAltNames: [c.com]",
    ));
    assert!(found.is_empty(), "{found:#?}");
    let entry = &set
        .service_entries
        .values()
        .next()
        .expect("it is good")
        .spec;
    assert_eq!(
        (&*entry.hosts[0].value, entry.hosts[0].line.0),
        ("a.com", 4)
    );
    assert_eq!(entry.addresses[0].to_string(), "10.0.0.0/24");
    let port = entry.port(443).expect("a port");
    assert_eq!(
        (port.protocol, port.target_port),
        (Protocol::Https, Some(8443))
    );
    assert_eq!(
        (entry.location, entry.resolution),
        (Location::MeshInternal, Resolution::Static)
    );
    assert_eq!(
        entry.endpoints[0].address,
        EndpointAddress::Ip([10, 0, 0, 1].into())
    );
    assert_eq!(
        (entry.endpoints[0].weight, entry.endpoints[0].ports["https"]),
        (3, 9443)
    );
    assert_eq!(
        entry.export_to,
        ExportTo::Namespaces(vec!["b".into(), "ns".into()])
    );
    assert_eq!(&*entry.subject_alt_names[0], "c.com");
}
