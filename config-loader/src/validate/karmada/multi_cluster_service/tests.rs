use std::sync::Arc;

use crate::resource::core::IngressMode;
use crate::resource::karmada::{Exposure, MultiClusterService, NamedCluster};
use crate::validate::testing;

/// Returns a MultiClusterService with the spec `spec`, from line 5 on.
fn around(spec: &str) -> String {
    let spec = spec.replace('\n', "\n  ");
    format!(
        "apiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterService\nmetadata: {{name: web}}\nspec:\n  {spec}\n"
    )
}

/// Returns a MultiClusterService of type CrossCluster, and `rest` from line 6 on.
fn cross_cluster(rest: &str) -> String {
    around(&format!("types: [CrossCluster]\n{rest}"))
}

fn service(set: &crate::ResourceSet) -> Arc<MultiClusterService> {
    let object = set
        .multi_cluster_services
        .values()
        .next()
        .expect("the service is good");
    Arc::clone(&object.spec)
}

#[test]
fn every_field_of_a_service_is_read() {
    let yaml = cross_cluster(
        "ports: [{name: http, port: 80}]
providerClusters: [{name: c2}]
consumerClusters: [{name: c1}, {name: c3}]
range: {clusterNames: []}
serviceProvisionClusters: []
serviceConsumptionClusters: []",
    ) + "status:
  conditions:
  - {type: ServiceApplied, status: 'True', reason: ServiceAppliedSucceed, message: '', lastTransitionTime: 2024-01-01T00:00:00Z}
  loadBalancer:
    ingress:
    - {ip: 192.0.2.1, ipMode: Proxy, ports: [{port: 80, protocol: TCP, error: Failed}]}
    - {hostname: lb.example.com, ports: [{port: 80, protocol: TCP}]}
";
    let (set, found) = testing::load(&yaml);
    assert_eq!(found, Vec::<String>::new());
    let service = service(&set);
    assert_eq!(service.exposure, Exposure::CrossCluster);
    let port = &service.ports[0];
    assert_eq!(
        (port.port, port.name.as_deref(), port.line.0),
        (80, Some("http"), 5)
    );
    assert_eq!((service.providers.len(), service.consumers.len()), (1, 2));
    assert_eq!(service.conditions.len(), 1);
    let [ip, name] = &service.ingress[..] else {
        panic!("{:?}", service.ingress)
    };
    assert_eq!(
        (ip.host.to_string().as_str(), ip.mode),
        ("192.0.2.1", IngressMode::Proxy)
    );
    assert_eq!(ip.ports[0].error.as_deref(), Some("Failed"));
    assert_eq!(
        (name.host.to_string().as_str(), name.mode),
        ("lb.example.com", IngressMode::Vip)
    );
}

#[test]
fn deprecated_fields_replace_missing_successors() {
    for (fields, providers, consumers, deprecated) in [
        (
            "serviceProvisionClusters: [a]",
            "a",
            "",
            vec!["serviceProvisionClusters"],
        ),
        (
            "serviceConsumptionClusters: [a]",
            "",
            "a",
            vec!["serviceConsumptionClusters"],
        ),
        (
            "range: {clusterNames: [a]}",
            "",
            "a",
            vec!["range.clusterNames"],
        ),
        (
            "serviceProvisionClusters: [a], providerClusters: [{name: b}]",
            "b",
            "",
            vec!["serviceProvisionClusters"],
        ),
        (
            "range: {clusterNames: [a]}, serviceConsumptionClusters: [b]",
            "",
            "b",
            vec!["range.clusterNames", "serviceConsumptionClusters"],
        ),
        (
            "range: {clusterNames: [a]}, consumerClusters: [{name: c}]",
            "",
            "c",
            vec!["range.clusterNames"],
        ),
    ] {
        let (set, found) = testing::load(&around(&format!("{{types: [CrossCluster], {fields}}}")));
        let expected: Vec<String> = deprecated
            .iter()
            .map(|field| format!("W MCS007 5 spec.{field}: the field is deprecated"))
            .collect();
        assert_eq!(found, expected, "{fields}");
        let service = service(&set);
        let names = |named: &[NamedCluster]| {
            let names: Vec<&str> = named.iter().map(|named| &*named.name).collect();
            names.join(",")
        };
        assert_eq!(names(&service.providers), providers, "{fields}");
        assert_eq!(names(&service.consumers), consumers, "{fields}");
    }
}

#[test]
fn types_are_checked() {
    testing::check(
        around,
        &[
            ("ports: []", &["E MCS002 4 spec.types: Required value"]),
            ("types: []", &["E MCS002 5 spec.types: Required value"]),
            (
                "types: [X]",
                &[
                    "E CM017 5 spec.types[0]: Unsupported value: \"X\": supported values: \"CrossCluster\", \"LoadBalancer\"",
                ],
            ),
            (
                "types: [CrossCluster, LoadBalancer]",
                &[
                    "E MCS003 5 spec.types: Invalid value: [\"CrossCluster\", \"LoadBalancer\"]: MultiClusterService types \
                   should not contain more than one type",
                ],
            ),
            ("types: [CrossCluster, CrossCluster]", &[]),
            ("types: [LoadBalancer]", &[]),
        ],
    );
    let yaml = around("{}").replace("spec:\n  {}\n", "");
    assert_eq!(testing::load(&yaml).1, ["E MCS002 1 spec: Required value"]);
}

#[test]
fn names_are_checked() {
    let rule = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
                character, and end with an alphanumeric character";
    for name in ["1web", "a.b"] {
        let (_, found) = testing::load(
            &cross_cluster("ports: []").replace("name: web", &format!("name: {name}")),
        );
        assert_eq!(
            found,
            [format!(
                "E MCS001 3 metadata.name: Invalid value: {name:?}: {rule}"
            )]
        );
    }
}

#[test]
fn ports_and_clusters_are_checked() {
    let long = "a".repeat(49);
    let too_long = format!(
        "E MCS006 6 spec.providerClusters[0].name: Invalid value: {long:?}: must be no more than 48 characters"
    );
    testing::check(
        cross_cluster,
        &[
            (
                "ports: [{name: a}]",
                &["E MCS002 6 spec.ports[0].port: Required value"],
            ),
            (
                "ports: [{port: 65536}]",
                &[
                    "E CM016 6 spec.ports[0].port: Invalid value: 65536: must be between 1 and 65535, inclusive",
                ],
            ),
            ("ports: [{port: 65535}]", &[]),
            (
                "ports: [{name: a, port: 80}, {name: a, port: 81}]",
                &["E MCS005 6 spec.ports[1].name: Duplicate value: \"a\""],
            ),
            ("ports: [{name: a, port: 80}, {name: b, port: 81}]", &[]),
            (
                "providerClusters: [{}]",
                &["E MCS002 6 spec.providerClusters[0].name: Required value"],
            ),
            (
                "providerClusters: [{name: ''}]",
                &[
                    "E MCS006 6 spec.providerClusters[0].name: Invalid value: \"\": must be not empty",
                ],
            ),
            (
                &format!("providerClusters: [{{name: {long}}}]"),
                &[&too_long],
            ),
            (
                &format!("consumerClusters: [{{name: {}}}]", &long[1..]),
                &[],
            ),
        ],
    );
    for (field, path) in [
        (
            "ports: [{name: A_b, port: 80}]",
            "MCS004 6 spec.ports[0].name",
        ),
        (
            "consumerClusters: [{name: A_b}]",
            "MCS006 6 spec.consumerClusters[0].name",
        ),
    ] {
        let (_, found) = testing::load(&cross_cluster(field));
        assert!(found[0].starts_with(&format!(
            "E {path}: Invalid value: \"A_b\": a lowercase RFC 1123 label"
        )));
    }
}

#[test]
fn the_status_is_checked() {
    testing::check(
        |status| cross_cluster("ports: []") + "status: " + status + "\n",
        &[
            (
                "{loadBalancer: {ingress: [{ip: lb.example.com}]}}",
                &[
                    "E MCS009 7 status.loadBalancer.ingress[0].ip: Invalid value: \"lb.example.com\": must be a valid IP \
                   address",
                ],
            ),
            (
                "{conditions: [{type: A, status: 'True', reason: B, message: ''}]}",
                &["E MCS008 7 status.conditions[0].lastTransitionTime: Required value"],
            ),
        ],
    );
}

#[test]
fn a_condition_of_an_older_generation_is_a_warning() {
    let condition = |observed: u8| {
        let yaml = cross_cluster("")
            + &format!(
                "status:\n  conditions: [{{type: A, status: 'True', reason: B, message: '', observedGeneration: {observed}, \
             lastTransitionTime: 2024-01-01T00:00:00Z}}]\n"
            );
        testing::load(&yaml.replace("name: web}", "name: web, generation: 3}")).1
    };
    let stale = "W CM035 8 status.conditions[0].observedGeneration: stale: this is about generation 2 of the object, which \
                 is at 3; it is used all the same";
    assert_eq!(condition(2), [stale]);
    assert_eq!(condition(3), [""; 0]);
}
