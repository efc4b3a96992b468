//! Tests of planned writes for given cluster states.

use super::*;

const GROUP: &str = "multicluster.flomesh.io";

fn key(name: &str) -> ClusterKey {
    ClusterKey::parse(&format!("default/default/default/{name}")).unwrap()
}

/// Returns a listed cluster with these objects, keyed by kind and name.
fn cluster(name: &str, objects: &[Value]) -> Cluster {
    let mut cluster = Cluster::new(key(name));
    cluster.is_listed = true;
    change(&mut cluster, objects);
    cluster
}

fn change(cluster: &mut Cluster, objects: &[Value]) {
    let changes = objects.iter().map(|object| {
        let name = format!("{}/{}", object["kind"], object["metadata"]["name"]);
        (name.into(), Some(object.clone()))
    });
    cluster.take_in(changes.collect());
}

fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "ns1"},
        "spec": {"ports": [{"name": "http", "port": 80}]},
    })
}

fn export() -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "ServiceExport",
        "metadata": {"name": "web", "namespace": "ns1", "generation": 3, "resourceVersion": "7"},
        "spec": {"rules": [{"portNumber": 80, "path": "/web", "pathType": "Prefix"}]},
    })
}

/// Returns a managed import with the endpoints of these clusters.
fn import(clusters: &[&str]) -> Value {
    let endpoints: Vec<Value> = clusters
        .iter()
        .map(|cluster| {
            json!({
                "clusterKey": key(cluster).as_str(),
                "target": {"host": "", "ip": "10.0.0.9", "port": 80, "path": "/web"},
            })
        })
        .collect();
    json!({
        "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "ServiceImport",
        "metadata": {
            "name": "web", "namespace": "ns1", "uid": "u1", "resourceVersion": "5",
            "labels": {OWNER_LABEL: MANAGER},
        },
        "spec": {"ports": [{"name": "http", "port": 80, "endpoints": endpoints}]},
    })
}

/// Returns the planned writes (cluster number, change, endpoints of an import) and the problems. The gateway of each
/// cluster but c9 is 10.0.0.9:80.
fn planned(clusters: &[Cluster]) -> (Vec<String>, Vec<String>) {
    let mut told = String::from("clusters:\n");
    for cluster in clusters.iter().filter(|cluster| cluster.key.name() != "c9") {
        let key = &cluster.key;
        told.push_str(&format!(
            "- key: {key}\n  gateway: {{host: 10.0.0.9, port: 80}}\n"
        ));
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("clusters.yaml");
    std::fs::write(&file, told).unwrap();
    let told: Vec<_> = config_loader::read_settings(&file).unwrap().0;
    let plan = plan(clusters, &told, "t1");
    let writes = plan.writes.iter().map(|write| {
        let what = match &write.change {
            Change::Create(object) => format!("create {}", owners(object)),
            Change::Update(object) => {
                let revision = &object["metadata"]["resourceVersion"];
                format!("update {revision} {}", owners(object))
            }
            Change::Delete { uid, revision } => format!("delete {uid} {revision}"),
            Change::Conditions {
                revision,
                conditions,
            } => {
                let shown = conditions.iter().map(|one| {
                    format!("{}={}/{}", one["type"], one["status"], one["reason"]).replace('"', "")
                });
                let shown: Vec<String> = shown.collect();
                format!("conditions {revision} {}", shown.join(" "))
            }
        };
        format!("{} {what}", clusters[write.target.cluster].key.name())
    });
    let found = plan.findings.iter().map(|found| format!("{found:?}"));
    (writes.collect(), found.collect())
}

fn owners(object: &Value) -> String {
    let endpoints = object["spec"]["ports"][0]["endpoints"].as_array().unwrap();
    let keys = endpoints.iter().map(|endpoint| {
        let key = endpoint["clusterKey"].as_str().unwrap();
        key.rsplit('/').next().unwrap()
    });
    keys.collect::<Vec<_>>().join(",")
}

/// Returns the planned writes of imports, without those of export conditions.
fn imports(clusters: &[Cluster]) -> Vec<String> {
    let (mut writes, found) = planned(clusters);
    assert!(found.is_empty(), "{found:?}");
    writes.retain(|write| !write.contains(" conditions "));
    writes
}

#[test]
fn only_differences_are_written() {
    let exporting = || cluster("c1", &[service(), export()]);
    let made = [exporting(), cluster("c2", &[])];
    assert_eq!(imports(&made), ["c2 create c1"]);
    let there = [exporting(), cluster("c2", &[import(&["c1"])])];
    assert_eq!(imports(&there), [""; 0]);
    let stale = [exporting(), cluster("c2", &[import(&["c1", "c3"])])];
    assert_eq!(imports(&stale), [r#"c2 update "5" c1"#]);
    let left = [
        cluster("c1", &[service()]),
        cluster("c2", &[import(&["c1"])]),
    ];
    assert_eq!(imports(&left), ["c2 delete u1 5"]);
    let own = [cluster("c1", &[service(), export(), import(&["c1"])])];
    assert_eq!(imports(&own), ["c1 delete u1 5"], "its own");
}

#[test]
fn conditions_are_written_when_they_differ() {
    let mut clusters = [cluster("c1", &[service(), export()]), cluster("c2", &[])];
    let (writes, _) = planned(&clusters);
    let expected = "c1 conditions 7 Valid=True/Success Conflict=False/NoConflicts";
    assert!(writes.contains(&expected.to_owned()), "{writes:?}");
    let mut told = export();
    told["metadata"]["resourceVersion"] = json!("8");
    let condition = |name: &str, reason: &str, (status, message): (&str, &str)| {
        json!({
            "type": name, "status": status, "reason": reason, "message": message, "lastTransitionTime": "t0",
            "observedGeneration": 3,
        })
    };
    let conditions = [
        condition("Valid", "Success", ("True", "")),
        condition(
            "Conflict",
            "NoConflicts",
            ("False", "no older ServiceExport differs"),
        ),
        condition("Accepted", "Accepted", ("True", "")),
    ];
    told["status"] = json!({"conditions": conditions});
    change(&mut clusters[0], &[told]);
    let (writes, _) = planned(&clusters);
    assert_eq!(
        writes,
        ["c2 create c1"],
        "the same conditions are not written"
    );
    let alone = [cluster("c1", &[export()])];
    let expected = "c1 conditions 7 Valid=False/Failed Conflict=False/NoConflicts";
    assert_eq!(planned(&alone).0, [expected], "no Service");
}

#[test]
fn cluster_that_was_not_listed_keeps_its_endpoints_and_every_import() {
    let unlisted = Cluster::new(key("c3"));
    let clusters = [
        cluster("c1", &[service()]),
        cluster("c2", &[import(&["c1", "c3"])]),
        unlisted,
    ];
    assert_eq!(imports(&clusters), [r#"c2 update "5" c3"#]);
    let clusters = [
        cluster("c1", &[service()]),
        cluster("c2", &[import(&["c1"])]),
        Cluster::new(key("c3")),
    ];
    let (writes, found) = planned(&clusters);
    assert_eq!(writes, [""; 0]);
    assert!(found[0].contains("is not deleted yet"), "{found:?}");
    let clusters = [
        cluster("c1", &[service(), export()]),
        Cluster::new(key("c2")),
        cluster("c3", &[import(&["c2"])]),
    ];
    assert_eq!(imports(&clusters), [r#"c3 update "5" c1,c2"#]);
}

#[test]
fn conflict_is_not_resolved_before_all_clusters_were_listed() {
    let mut conflicting = export();
    conflicting["status"]["conditions"] = json!([{
        "type": "Conflict", "status": "True", "reason": "PortConflict", "message": "m", "lastTransitionTime": "t0",
        "observedGeneration": 3,
    }]);
    let with = |older| {
        let (writes, _) = planned(&[older, cluster("c2", &[service(), conflicting.clone()])]);
        let of_c2 = writes
            .into_iter()
            .filter(|write| write.starts_with("c2 conditions"));
        of_c2.collect::<Vec<_>>()
    };
    let kept = "c2 conditions 7 Conflict=True/PortConflict Valid=True/Success";
    assert_eq!(with(Cluster::new(key("c1"))), [kept]);
    let over = "c2 conditions 7 Conflict=False/NoConflicts Valid=True/Success";
    assert_eq!(with(cluster("c1", &[])), [over]);
}

#[test]
fn cluster_without_a_gateway_keeps_the_endpoints_of_what_it_exports() {
    let exporting = [
        cluster("c9", &[service(), export()]),
        cluster("c2", &[import(&["c9"])]),
    ];
    let (writes, found) = planned(&exporting);
    assert!(
        writes.iter().all(|write| write.contains("conditions")),
        "{writes:?}"
    );
    assert!(found[0].contains("no gateway of cluster"), "{found:?}");
    let left = [
        cluster("c9", &[service()]),
        cluster("c2", &[import(&["c9"])]),
    ];
    assert_eq!(imports(&left), ["c2 delete u1 5"]);
}

#[test]
fn export_with_an_error_keeps_its_endpoints() {
    let mut broken = export();
    broken["spec"]["rules"][0]["path"] = json!("web");
    let clusters = [
        cluster("c1", &[service(), broken]),
        cluster("c2", &[import(&["c1"])]),
    ];
    let (writes, _) = planned(&clusters);
    let conditions = "c1 conditions 7 Valid=False/Failed Conflict=False/NoConflicts";
    assert_eq!(writes, [conditions]);
}

#[test]
fn import_of_somebody_else_is_reported_and_not_written() {
    let mut foreign = import(&[]);
    foreign["metadata"]["labels"] = json!({OWNER_LABEL: "helm"});
    let clusters = [
        cluster("c1", &[service(), export()]),
        cluster("c2", &[foreign.clone()]),
    ];
    let (writes, found) = planned(&clusters);
    assert!(
        writes.iter().all(|write| write.contains("conditions")),
        "{writes:?}"
    );
    assert!(
        found[0].contains("was not written by `strait control`"),
        "{found:?}"
    );
    let unused = [cluster("c1", &[]), cluster("c2", &[foreign])];
    assert_eq!(imports(&unused), [""; 0], "no cluster exports it");
}

#[test]
fn imports_are_written_in_a_group_that_the_cluster_serves() {
    let with = |groups: &[&'static str]| {
        let mut importing = cluster("c2", &[]);
        importing.groups = Some(groups.iter().copied().collect());
        let clusters = [cluster("c1", &[service(), export()]), importing];
        let plan = plan(&clusters, &gateway(), "t1");
        let paths = plan.writes.iter().map(|write| write.target.path.clone());
        let paths = paths.filter(|path| path.contains("serviceimports"));
        (paths.collect::<Vec<_>>(), plan.findings.len())
    };
    let path = |group: &str| {
        vec![format!(
            "/apis/{group}/v1alpha1/namespaces/ns1/serviceimports/web"
        )]
    };
    assert_eq!(with(&["flomesh.io", GROUP]), (path(GROUP), 0));
    assert_eq!(with(&["flomesh.io"]), (path("flomesh.io"), 0));
    assert_eq!(with(&[]), (vec![], 1));
}

fn gateway() -> Vec<ClusterSettings> {
    let file = tempfile::NamedTempFile::new().unwrap();
    let key = key("c1");
    let text = format!("clusters:\n- key: {key}\n  gateway: {{host: 10.0.0.9, port: 80}}\n");
    std::fs::write(file.path(), text).unwrap();
    config_loader::read_settings(file.path()).unwrap().0
}
