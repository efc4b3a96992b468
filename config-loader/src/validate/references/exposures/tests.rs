use crate::Fleet;
use crate::resource::flomesh::ClusterKey;

/// Service `web` with two ports, and an import of it from c2 with a third.
const WORLD: &str = "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: web}\n\
    spec: {ports: [{name: http, port: 80}, {name: admin, port: 8080}]}\n\
    ---\napiVersion: flomesh.io/v1alpha1\nkind: ServiceImport\nmetadata: {namespace: ns1, name: web}\n\
    spec: {ports: [{name: grpc, port: 90, endpoints: [\
    {clusterKey: eu/a/b/c2, target: {host: '', ip: 10.2.0.9, port: 80, path: /c2}}]}]}\n---\n";

/// Returns the diagnostics about a MultiClusterService, for a proxy that may know its cluster.
fn found(own: Option<&str>, fields: &str) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.yaml");
    let text = format!(
        "{WORLD}apiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterService\nmetadata: {{namespace: ns1, name: web}}\n\
         spec: {{types: [CrossCluster], {fields}}}\n"
    );
    std::fs::write(&path, text).unwrap();
    let fleet = Fleet {
        own: own.and_then(ClusterKey::parse),
        ..Fleet::default()
    };
    let loaded = crate::load_files(
        &[path],
        crate::LoadOptions {
            fleet,
            ..crate::LoadOptions::default()
        },
    );
    let said = loaded.diagnostics.iter().map(|one| {
        let help = one.help.as_deref().unwrap_or_default();
        format!("{} {}: {} ({help})", one.code, one.field, one.message)
    });
    said.filter(|one| one.starts_with("X3")).collect()
}

#[test]
fn clusters_that_are_named_are_known() {
    let own = Some("eu/a/b/home");
    let lists = "providerClusters: [{name: c2}, {name: home}], consumerClusters: [{name: home}]";
    assert!(found(own, lists).is_empty());
    assert!(
        found(None, lists).is_empty(),
        "one may be the local cluster"
    );
    assert_eq!(
        found(own, "providerClusters: [{name: c3}]"),
        [
            "X309 spec.providerClusters[0].name: unknown cluster `c3`; this entry matches nothing (did you mean `c2`?)"
        ]
    );
    assert_eq!(
        found(own, "consumerClusters: [{name: home}, {name: paris}]"),
        [
            "X309 spec.consumerClusters[1].name: unknown cluster `paris`; this entry matches nothing \
             (name it in the file of --clusters, by --cluster, or by a Cluster)"
        ]
    );
    let two = "consumerClusters: [{name: home}, {name: paris}]";
    assert_eq!(found(None, two).len(), 2, "only one can be the local one");
    let old = found(own, "serviceProvisionClusters: [paris]");
    assert!(
        old[0].starts_with("X309 spec.serviceProvisionClusters[0]: "),
        "{old:?}"
    );
}

#[test]
fn ports_that_are_exposed_are_those_of_the_service() {
    for fits in [
        "{port: 80}",
        "{port: 80, name: http}",
        "{port: 90, name: grpc}",
    ] {
        assert!(
            found(None, &format!("ports: [{fits}]")).is_empty(),
            "{fits}"
        );
    }
    assert_eq!(
        found(None, "ports: [{port: 80}, {port: 81}]"),
        [
            "X310 spec.ports[1]: `web` has no port 81: this exposes nothing (its ports are 80 http, 90 grpc, 8080 admin)"
        ]
    );
    assert_eq!(
        found(None, "ports: [{port: 80, name: htp}]"),
        [
            "X310 spec.ports[0]: `web` has no port 80 htp: this exposes nothing (its ports are 80 http, 90 grpc, 8080 admin)"
        ]
    );
}
