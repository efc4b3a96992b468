use std::sync::Arc;

use crate::resource::core::{AddressType, Conditions, EndpointSlice, Host, Protocol};
use crate::validate::testing;

const HEAD: &str = "apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: ns1, labels: {kubernetes.io/service-name: web}}
";

/// Returns an EndpointSlice with the fields `body`, from line 4 on.
fn around(body: &str) -> String {
    format!("{HEAD}{body}\n")
}

/// Returns an IPv4 slice with one endpoint, on line 6, and a port.
fn endpoint(body: &str) -> String {
    around(&format!(
        "addressType: IPv4\nendpoints:\n- {{{body}}}\nports: [{{port: 80}}]"
    ))
}

fn slice(yaml: &str) -> Arc<EndpointSlice> {
    let (set, found) = testing::load(yaml);
    assert_eq!(found, Vec::<String>::new());
    let object = set
        .endpoint_slices
        .values()
        .next()
        .expect("the slice is good");
    assert_eq!(object.service_name(), Some("web"));
    Arc::clone(&object.spec)
}

#[test]
fn every_field_of_a_slice_is_read() {
    let slice = slice(&around(
        "addressType: IPv6
endpoints:
- addresses: ['fd00::1', 'fd00::2']
  conditions: {ready: false, serving: true, terminating: true}
  hostname: web-0
  nodeName: node.a
  zone: eu-1a
  targetRef: {kind: Pod, namespace: ns1, name: web-0, uid: x, apiVersion: v1, resourceVersion: '7', fieldPath: a}
  deprecatedTopology: {kubernetes.io/hostname: node.a}
  hints: {forZones: [{name: eu-1a}], forNodes: [{name: node.a}]}
ports:
- {name: http, port: 8080, protocol: TCP, appProtocol: http2}
- {name: all, port: null}",
    ));
    assert_eq!(slice.address_type, AddressType::Ipv6);
    let [endpoint] = &slice.endpoints[..] else {
        panic!("{:?}", slice.endpoints)
    };
    assert_eq!(endpoint.address.to_string(), "fd00::1");
    let conditions = Conditions {
        ready: false,
        serving: true,
        terminating: true,
    };
    assert_eq!(endpoint.conditions, conditions);
    assert_eq!(endpoint.node_name.as_deref(), Some("node.a"));
    assert_eq!(endpoint.zone.as_deref(), Some("eu-1a"));
    assert_eq!(endpoint.line.0, 5);
    let [http, all] = &slice.ports[..] else {
        panic!("{:?}", slice.ports)
    };
    assert_eq!(
        (http.port, http.app_protocol.as_deref()),
        (Some(8080), Some("http2"))
    );
    assert_eq!((all.port, all.protocol), (None, Protocol::Tcp));
}

#[test]
fn endpoints_have_the_workload_of_their_pod() {
    let slice = slice(&around(
        "addressType: IPv4
endpoints:
- {addresses: [10.0.0.1], targetRef: {kind: Pod, namespace: ns2, name: web-v1-6b746f74dc-9rlmh}}
- {addresses: [10.0.0.2], targetRef: {kind: Pod, name: web-v2-0}}
- {addresses: [10.0.0.3], targetRef: {kind: Pod, namespace: ns2, name: web-v1-6b746f74dc-x2b7k}}
- {addresses: [10.0.0.4], targetRef: {kind: Node, name: node-0}}
- {addresses: [10.0.0.5], targetRef: {kind: Pod}}
- {addresses: [10.0.0.6]}
ports: [{port: 80}]",
    ));
    let slice_namespace = "ns1";
    let owners = slice.endpoints.iter().map(|endpoint| {
        let (namespace, name) = endpoint.owner_from(slice_namespace)?;
        Some((name, namespace))
    });
    let expected = [
        Some(("web-v1", "ns2")),
        Some(("web-v2", "ns1")),
        Some(("web-v1", "ns2")),
        None,
        None,
        None,
    ];
    assert_eq!(owners.collect::<Vec<_>>(), expected);
    let pod = slice.endpoints[1].pod_from("ns1");
    assert_eq!(pod, Some(("ns1", "web-v2-0")));
}

#[test]
fn missing_conditions_have_the_kubernetes_defaults() {
    for (written, ready, serving) in [
        ("addresses: [10.0.0.1]", true, true),
        ("addresses: [10.0.0.1], conditions: {}", true, true),
        (
            "addresses: [10.0.0.1], conditions: {ready: null}",
            true,
            true,
        ),
        (
            "addresses: [10.0.0.1], conditions: {ready: false}",
            false,
            false,
        ),
        (
            "addresses: [10.0.0.1], conditions: {ready: false, serving: true}",
            false,
            true,
        ),
    ] {
        let slice = slice(&endpoint(written));
        let conditions = slice.endpoints[0].conditions;
        assert_eq!(
            (conditions.ready, conditions.serving),
            (ready, serving),
            "{written}"
        );
    }
}

#[test]
fn deprecated_topology_labels_set_the_zone() {
    let body = "addresses: [10.0.0.1], deprecatedTopology: {topology.kubernetes.io/zone: eu-1b}";
    assert_eq!(
        slice(&endpoint(body)).endpoints[0].zone.as_deref(),
        Some("eu-1b")
    );
}

#[test]
fn fqdn_slices_have_names_as_addresses() {
    let slice = slice(&around(
        "addressType: FQDN\nendpoints: [{addresses: [a.example.com]}]",
    ));
    assert_eq!(
        slice.endpoints[0].address,
        Host::Dns("a.example.com".into())
    );
}

#[test]
fn slice_labels_name_service_and_source_cluster() {
    for (metadata, service, source) in [
        (
            "labels: {kubernetes.io/service-name: web}",
            Some("web"),
            None,
        ),
        (
            "labels: {multicluster.kubernetes.io/service-name: web, multicluster.kubernetes.io/source-cluster: c2}",
            Some("web"),
            Some("c2"),
        ),
        (
            "labels: {kubernetes.io/service-name: web}, annotations: {endpointslice.karmada.io/provision-cluster: c3}",
            Some("web"),
            Some("c3"),
        ),
        (
            "labels: {kubernetes.io/service-name: web, multicluster.flomesh.io/source-cluster: c4}",
            Some("web"),
            Some("c4"),
        ),
    ] {
        let yaml = format!(
            "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: a, {metadata}}}\naddressType: IPv4\n\
             endpoints: []\n"
        );
        let (set, found) = testing::load(&yaml);
        assert_eq!(found, Vec::<String>::new());
        let object = set
            .endpoint_slices
            .values()
            .next()
            .expect("the slice is good");
        assert_eq!(
            (object.service_name(), object.source_cluster()),
            (service, source)
        );
    }
    let (_, found) = testing::load(
        "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: a}\naddressType: IPv4\nendpoints: []\n",
    );
    assert_eq!(
        found,
        ["W EPS008 3 metadata.name: the slice belongs to no service"]
    );
}

#[test]
fn addresses_are_checked() {
    let found = |body: &str| testing::load(&endpoint(body)).1;
    let address = "E EPS003 6 endpoints[0].addresses[0]: Invalid value:";
    assert_eq!(
        found("addresses: ['fd00::1']"),
        [format!(
            "{address} \"fd00::1\": must be a valid IPv4 address"
        )]
    );
    assert_eq!(
        found("addresses: [a.b]"),
        [format!("{address} \"a.b\": must be a valid IPv4 address")]
    );
    assert_eq!(
        found("addresses: [10.0.0.256]"),
        [format!(
            "{address} \"10.0.0.256\": must be a valid IPv4 address"
        )]
    );
    assert_eq!(found("addresses: [127.0.0.1]"), Vec::<String>::new());
    let missing =
        "E EPS002 6 endpoints[0].addresses: Required value: must contain at least 1 address";
    assert_eq!(found("addresses: []"), [missing]);
    assert_eq!(found("zone: a"), [missing]);
    testing::check(
        around,
        &[
            (
                "addressType: IPv6\nendpoints: [{addresses: [10.0.0.1]}]",
                &[
                    "E EPS003 5 endpoints[0].addresses[0]: Invalid value: \"10.0.0.1\": must be a valid IPv6 address",
                ],
            ),
            (
                "addressType: FQDN\nendpoints: [{addresses: [10.0.0.1]}]",
                &[
                    "E EPS003 5 endpoints[0].addresses[0]: Invalid value: \"10.0.0.1\": must be a fully qualified domain name",
                ],
            ),
            ("endpoints: []", &["E EPS001 1 addressType: Required value"]),
            (
                "addressType: IP\nendpoints: [{addresses: [10.0.0.1]}]",
                &[
                    "E CM017 4 addressType: Unsupported value: \"IP\": supported values: \"FQDN\", \"IPv4\", \"IPv6\"",
                ],
            ),
        ],
    );
}

#[test]
fn host_names_and_hints_are_checked() {
    let found = |body: &str| testing::load(&endpoint(&format!("addresses: [10.0.0.1], {body}"))).1;
    assert_eq!(found("hostname: web-0"), Vec::<String>::new());
    assert!(
        found("hostname: Web.0")[0]
            .starts_with("E EPS004 6 endpoints[0].hostname: Invalid value: \"Web.0\": a lower")
    );
    assert_eq!(
        found("hints: {forZones: [{}]}"),
        ["E EPS001 6 endpoints[0].hints.forZones[0].name: Required value"]
    );
}

#[test]
fn ports_are_checked() {
    testing::check(
        |ports| {
            around(&format!(
                "addressType: IPv4\nendpoints: []\nports:\n{ports}"
            ))
        },
        &[
            (
                "- {port: 0}",
                &[
                    "E CM016 7 ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                ],
            ),
            ("- {port: 1}", &[]),
            (
                "- {port: 1, name: a}\n- {port: 2, name: a}",
                &["E EPS006 8 ports[1].name: Duplicate value: \"a\""],
            ),
            (
                "- {port: 1}\n- {port: 2}",
                &["E EPS006 8 ports[1]: Duplicate value: \"\""],
            ),
            ("- {port: 1}\n- {port: 2, name: a}", &[]),
            (
                "- {port: 1, protocol: HTTP}",
                &[
                    "E CM017 7 ports[0].protocol: Unsupported value: \"HTTP\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
                ],
            ),
            (
                "- {port: 1, appProtocol: a b}",
                &[
                    "E EPS007 7 ports[0].appProtocol: Invalid value: \"a b\": must be a name, or a domain, a slash and a name",
                ],
            ),
            ("- null", &["E CM018 7 ports[0]: entry 0 is null"]),
        ],
    );
    let (_, found) = testing::load(&around(
        "addressType: IPv4\nendpoints: []\nports: [{name: A_b}]",
    ));
    assert!(found[0].starts_with(
        "E EPS005 6 ports[0].name: Invalid value: \"A_b\": a lowercase RFC 1123 label"
    ));
}
