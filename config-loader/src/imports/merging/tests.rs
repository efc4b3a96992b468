//! Tests of merging exports into imports.

use super::*;
use crate::clusters::{ClusterSettings, GatewaySettings};
use crate::imports::{conflicts, object};
use crate::load_bytes;
use crate::resource::core::SessionAffinity;

const SERVICE: &str = "Service ns1/web {ports: [{name: http, port: 80}]}";

/// Returns the key of the cluster with this name.
fn key(name: &str) -> ClusterKey {
    ClusterKey::parse(&format!("default/default/default/{name}")).unwrap()
}

/// Creates a cluster with resources, each written as `Kind namespace/name[@YEAR] spec`.
fn source(name: &str, resources: &[&str]) -> Source {
    let mut text = String::new();
    for resource in resources {
        let mut words = resource.splitn(3, ' ');
        let mut word = || words.next().expect("kind, name and spec");
        let (kind, id, spec) = (word(), word(), word());
        let (id, year) = id.split_once('@').unwrap_or((id, ""));
        let (namespace, id) = id.split_once('/').unwrap();
        let created = match year {
            "" => String::new(),
            year => format!(", creationTimestamp: '{year}-01-01T00:00:00Z'"),
        };
        let (kind, version) = match kind {
            "Service" => (kind, "v1"),
            "Export" => ("ServiceExport", "flomesh.io/v1alpha1"),
            "Export.multicluster" => ("ServiceExport", "multicluster.flomesh.io/v1alpha1"),
            kind => (kind, "multicluster.flomesh.io/v1alpha1"),
        };
        text.push_str(&format!(
            "---\napiVersion: {version}\nkind: {kind}\nmetadata: {{namespace: {namespace}, name: {id}{created}}}\n{spec}\n",
            spec = match spec.starts_with("status") {
                true => spec.to_owned(),
                false => format!("spec: {spec}"),
            }
        ));
    }
    let mut found = crate::Diagnostics::default();
    let file = format!("{name}.yaml");
    let resources = Arc::new(load_bytes(&file, text.as_bytes(), &mut found));
    assert!(!found.has_errors(), "{found:?}");
    Source {
        cluster: key(name),
        resources,
    }
}

/// Creates an entry of the remote clusters file.
fn told(name: &str, host: &str, port: u16) -> ClusterSettings {
    ClusterSettings {
        key: key(name),
        network: "".into(),
        locality: "".into(),
        trust_domain: None,
        gateway: Some(GatewaySettings {
            host: host.into(),
            port,
            tls: None,
        }),
    }
}

/// Returns the imports of `importer` as lines, and the diagnostics. The gateway of `cN` is 10.N.0.9:80.
fn import(importer: &str, sources: &[Source]) -> (Vec<String>, Vec<String>) {
    let gateway = |number: u8| told(&format!("c{number}"), &format!("10.{number}.0.9"), 80);
    let told: Vec<ClusterSettings> = (1..5).map(gateway).collect();
    let imported = imports(&Importing {
        importer: &key(importer),
        sources,
        told: &told,
    });
    shown(&imported)
}

fn shown(imported: &Imported) -> (Vec<String>, Vec<String>) {
    let mut lines = Vec::new();
    for import in &imported.imports {
        for port in &import.spec.ports {
            let endpoints = port.endpoints.iter().map(|endpoint| {
                let target = &endpoint.target;
                format!(
                    "{} {}:{}{}",
                    endpoint.cluster.name(),
                    target.address,
                    target.port,
                    target.path_prefix
                )
            });
            let endpoints: Vec<String> = endpoints.collect();
            lines.push(format!(
                "{} {}:{} {}",
                import.name,
                port.name,
                port.port,
                endpoints.join(", ")
            ));
        }
    }
    let found = imported.differences.iter().chain(&imported.found);
    let found = found.map(|one| format!("{} {} {}", one.code, one.location.file, one.message));
    (lines, found.collect())
}

fn export(path: &str) -> String {
    format!("Export ns1/web {{rules: [{{portNumber: 80, path: {path}, pathType: Prefix}}]}}")
}

#[test]
fn scenario_56_clusters_that_are_not_targets_get_no_import() {
    let with = |targets: &str| {
        let export =
            export("/c1/web").replace("{rules", &format!("{{targetClusters: [{targets}], rules"));
        let sources = [source("c1", &[SERVICE, &export])];
        let of = |importer| import(importer, &sources);
        (of("c2"), of("c3"))
    };
    let line = vec!["ns1/web http:80 c1 10.1.0.9:80/c1/web".to_owned()];
    let none: Vec<String> = Vec::new();
    let (c2, c3) = with("default/default/default/c2");
    assert_eq!((c2, c3), ((line.clone(), vec![]), (none.clone(), vec![])));
    let (c2, c3) = with("default/default/default/c2, default/default/default/c3");
    assert_eq!((c2, c3), ((line.clone(), vec![]), (line.clone(), vec![])));
    // a list that is empty is none
    let (c2, c3) = with("");
    assert_eq!((c2, c3), ((line.clone(), vec![]), (line, vec![])));
}

#[test]
fn scenario_96_first_path_prefix_of_a_port_is_used() {
    let of = |rules: &str| {
        let export = format!("Export ns1/web {{rules: [{rules}]}}");
        import("c3", &[source("c1", &[SERVICE, &export])]).0
    };
    let exact = "{portNumber: 80, path: /exact, pathType: Exact}";
    let (one, two) = (
        "{portNumber: 80, path: /one/, pathType: Prefix}",
        "{portNumber: 80, path: /two, pathType: Prefix}",
    );
    let rules = [exact, one, two].join(", ");
    assert_eq!(of(&rules), ["ns1/web http:80 c1 10.1.0.9:80/one"]);
    assert!(of(exact).is_empty());
    let root = "{portNumber: 80, path: /, pathType: Prefix}";
    assert_eq!(of(root), ["ns1/web http:80 c1 10.1.0.9:80"]);
}

#[test]
fn ports_are_merged_with_their_exporting_clusters() {
    let both = "{portNumber: 80, path: /web, pathType: Prefix}, {portNumber: 8080, path: /admin, pathType: Prefix}";
    let sources = [
        source(
            "c2",
            &[
                "Service ns1/web {ports: [{name: http, port: 80}, {name: admin, port: 8080}, {name: dns, port: 53, protocol: UDP}]}",
                &format!("Export ns1/web {{rules: [{both}]}}"),
            ],
        ),
        source("c1", &[SERVICE, &export("/c1/web")]),
        source("c3", &[SERVICE, &export("/c3/web")]),
    ];
    let (lines, found) = import("c3", &sources);
    assert_eq!(
        lines,
        [
            "ns1/web http:80 c1 10.1.0.9:80/c1/web, c2 10.2.0.9:80/web",
            "ns1/web admin:8080 c2 10.2.0.9:80/admin",
        ],
        "nothing of the local cluster"
    );
    let [conflict] = &*found else {
        panic!("{found:?}")
    };
    assert!(
        conflict.starts_with(
            "IM001 c2.yaml Conflict=True: Service `web` of cluster `default/default/default/c2`"
        ),
        "{conflict}"
    );
    // whatever the order of the arguments
    let mut turned = sources.to_vec();
    turned.reverse();
    assert_eq!(import("c3", &turned).0, lines);
}

#[test]
fn unnamed_ports_are_merged_by_number() {
    let bare = "Service ns1/web {ports: [{port: 80}]}";
    let more = "Service ns1/web {ports: [{name: http, port: 80}, {name: port-80, port: 81}]}";
    let all = "Export ns1/web@2020 {rules: [{portNumber: 80, path: /a, pathType: Prefix}, \
               {portNumber: 81, path: /b, pathType: Prefix}]}";
    let only = [source("c1", &[bare, &export("/c1/web")])];
    assert_eq!(import("c3", &only).0, ["ns1/web :80 c1 10.1.0.9:80/c1/web"]);
    let both = [
        source("c1", &[bare, &export("/c1/web")]),
        source("c2", &[more, all]),
    ];
    assert_eq!(
        import("c3", &both).0,
        [
            "ns1/web port-80-0:80 c1 10.1.0.9:80/c1/web, c2 10.2.0.9:80/a",
            "ns1/web port-80:81 c2 10.2.0.9:80/b",
        ]
    );
}

#[test]
fn newer_conflicting_export_is_reported_and_the_older_is_used() {
    let older = "Export ns1/web@2020 {serviceAccountName: web, rules: [{portNumber: 80, path: /c2, pathType: Prefix}]}";
    let younger = "Export ns1/web@2021 {serviceAccountName: other, rules: [{portNumber: 8080, path: /c1, pathType: Prefix}, \
                   {portNumber: 80, path: /c1b, pathType: Prefix}]}";
    let sources = [
        source(
            "c1",
            &[
                "Service ns1/web {type: NodePort, ports: [{name: http, port: 8080}, {name: more, port: 80}]}",
                younger,
            ],
        ),
        source(
            "c2",
            &[
                "Service ns1/web {sessionAffinity: ClientIP, ports: [{name: http, port: 80}]}",
                older,
            ],
        ),
    ];
    let (lines, found) = import("c3", &sources);
    assert_eq!(
        lines,
        ["ns1/web http:80 c1 10.1.0.9:80/c1, c2 10.2.0.9:80/c2"]
    );
    let found: Vec<&str> = found.iter().map(|one| &**one).collect();
    let [conflict, no_place, account] = found[..] else {
        panic!("{found:?}")
    };
    assert!(conflict.ends_with("its type is NodePort here, ClusterIP there"));
    assert!(no_place.starts_with("IM001 c1.yaml port 80 of cluster"));
    assert!(account.ends_with("an older export says `web`, which counts for all clusters"));
    let imported = imports(&Importing {
        importer: &key("c2"),
        sources: &sources[1..],
        told: &[],
    });
    assert_eq!(shown(&imported), (vec![], vec![]), "its own");
}

#[test]
fn oldest_export_sets_affinity_service_account_and_api_group() {
    let older = "Export.multicluster ns1/web@2020 {serviceAccountName: '*', rules: [{portNumber: 80, path: /c2, pathType: Prefix}]}";
    let sources = [
        source("c1", &[SERVICE, &export("/c1").replace("web", "web@2021")]),
        source(
            "c2",
            &[
                "Service ns1/web {sessionAffinity: ClientIP, ports: [{name: http, port: 80, appProtocol: http2}]}",
                older,
            ],
        ),
    ];
    let told = told("c2", "gw.c2.example", 443);
    let imported = imports(&Importing {
        importer: &key("c3"),
        sources: &sources,
        told: &[told],
    });
    let [import] = &*imported.imports else {
        panic!("{imported:?}")
    };
    assert_eq!(import.group, "multicluster.flomesh.io");
    let spec = &import.spec;
    assert_eq!(spec.service_account, Some(ServiceAccount::Any));
    assert!(matches!(
        spec.session_affinity,
        SessionAffinity::ClientIp { .. }
    ));
    let [port] = &*spec.ports else {
        panic!("{spec:?}")
    };
    assert_eq!(port.app_protocol.as_deref(), Some("http2"));
    let target = &port.endpoints[0].target;
    assert_eq!(target.server_name.as_deref(), Some("gw.c2.example"));
    assert_eq!(target.address, Host::Dns("gw.c2.example".into()));
}

#[test]
fn gateways_come_from_cluster_objects_without_a_clusters_file() {
    let cluster = "Cluster x/c1 {region: default, gatewayHost: gw.c1.example, gatewayPort: 8443}";
    let other = "Service ns1/more {ports: [{port: 80}]}";
    let other_export = "Export ns1/more {rules: [{portNumber: 80, path: /more, pathType: Prefix}]}";
    let sources = [
        source("c1", &[SERVICE, &export("/c1/web"), other, other_export]),
        source("c3", &[cluster]),
    ];
    let imports = |sources: &[Source]| {
        shown(&imports(&Importing {
            importer: &key("c3"),
            sources,
            told: &[],
        }))
    };
    assert_eq!(
        imports(&sources).0,
        [
            "ns1/more :80 c1 gw.c1.example:8443/more",
            "ns1/web http:80 c1 gw.c1.example:8443/c1/web",
        ]
    );
    let (lines, found) = imports(&sources[..1]);
    assert!(lines.is_empty());
    assert_eq!(
        found,
        [
            "IM002 c1.yaml no gateway of cluster `default/default/default/c1` is known: other clusters cannot reach its exports"
        ],
        "once for all of its exports"
    );
    let imported = super::imports(&Importing {
        importer: &key("c3"),
        sources: &sources[..1],
        told: &[],
    });
    let missing = imported.without_gateway.iter();
    let missing: Vec<_> = missing
        .map(|(name, cluster)| format!("{name} {}", cluster.name()))
        .collect();
    assert_eq!(missing, ["ns1/more c1", "ns1/web c1"]);
}

#[test]
fn exports_without_a_gateway_are_not_imported() {
    let none = |resources: &[&str]| {
        let (lines, found) = import("c3", &[source("c1", resources)]);
        assert!(lines.is_empty(), "{lines:?}");
        found
    };
    let web = export("/c1/web");
    assert!(none(&[&web]).is_empty(), "no Service: the loader says so");
    let external =
        "Service ns1/web {type: ExternalName, externalName: web.example, ports: [{port: 80}]}";
    assert!(none(&[external, &web]).is_empty());
    assert!(none(&["Service ns1/web {ports: [{name: http, port: 81}]}", &web]).is_empty());
    assert!(none(&["Service ns1/web {ports: [{port: 80, protocol: UDP}]}", &web]).is_empty());
    let condition = "{type: Conflict, status: 'True', reason: Conflict, message: x, lastTransitionTime: '2024-01-01T00:00:00Z'}";
    let refused = format!("{web}\nstatus: {{conditions: [{condition}]}}");
    let found = none(&[SERVICE, &refused]);
    assert!(found[0].starts_with("IM003 c1.yaml"), "{found:?}");
    // of two exports with one path the younger has no routes
    let sources = [source(
        "c1",
        &[
            SERVICE,
            "Service ns1/more {ports: [{port: 80}]}",
            &web,
            "Export ns1/more@2021 {rules: [{portNumber: 80, path: /c1/web, pathType: Prefix}]}",
        ],
    )];
    assert_eq!(
        import("c3", &sources).0,
        ["ns1/web http:80 c1 10.1.0.9:80/c1/web"]
    );
}

#[test]
fn younger_export_that_differs_conflicts_with_the_oldest_that_meets_it() {
    let at = |year: &str, rest: &str| {
        let rule = "rules: [{portNumber: 80, path: /web, pathType: Prefix}]";
        format!("Export ns1/web@{year} {{{rest}{rule}}}")
    };
    let bare = "Service ns1/web {ports: [{port: 80}]}";
    let found = |second: [&str; 2], third: [&str; 2]| {
        let sources = [
            source("c1", &[SERVICE, &at("2020", "serviceAccountName: web, ")]),
            source("c2", &second),
            source("c3", &third),
        ];
        let shown = conflicts(&sources).into_iter().map(|one| {
            assert!(crate::catalog::MERGED_CONFLICTS.contains(&one.reason));
            format!("{} {}: {}", one.cluster.name(), one.reason, one.message)
        });
        shown.collect::<Vec<_>>()
    };
    let same = at("2021", "");
    assert_eq!(found([SERVICE, &same], [SERVICE, &same]), [""; 0]);
    let older = "the older ServiceExport ns1/web of cluster `default/default/default/c1` wins";
    assert_eq!(
        found(
            [bare, &same],
            [SERVICE, &at("2022", "serviceAccountName: web2, ")]
        ),
        [
            format!("c2 PortConflict: {older}: its ports are 80/TCP here, http 80/TCP there"),
            format!(
                "c3 ServiceAccountConflict: {older}: its service account is `web2` here, `web` there"
            ),
        ]
    );
    // c2 and c3 are exported to no cluster that imports c1's, but c1 itself has c3's
    let only = |name: &str| format!("targetClusters: [default/default/default/{name}], ");
    let (other, own) = (at("2021", &only("c9")), at("2021", &only("c1")));
    let first = at("2020", &only("c3"));
    let sources = [
        source("c1", &[SERVICE, &first]),
        source("c2", &[bare, &other]),
        source("c3", &[bare, &own]),
    ];
    let clusters: Vec<_> = conflicts(&sources)
        .into_iter()
        .map(|one| one.cluster)
        .collect();
    assert_eq!(clusters, [key("c3")]);
    let node_port = "Service ns1/web {type: NodePort, ports: [{name: http, port: 80}]}";
    let years = [
        source("c1", &[SERVICE, &at("2023", "")]),
        source("c2", &[node_port, &same]),
    ];
    let [conflict] = &*conflicts(&years) else {
        panic!("one conflict")
    };
    assert_eq!(
        (&conflict.cluster, conflict.reason),
        (&key("c1"), "TypeConflict"),
        "the younger"
    );
}

#[test]
fn object_says_what_the_import_says() {
    let affine =
        "Service ns1/web {sessionAffinity: ClientIP, ports: [{port: 80, appProtocol: http2}]}";
    let export = export("/c1/web").replace("{rules", "{serviceAccountName: '*', rules");
    let imported = imports(&Importing {
        importer: &key("c3"),
        sources: &[source("c1", &[affine, &export])],
        told: &[told("c1", "gw.c1.example", 443)],
    });
    let expected = serde_json::json!({
        "apiVersion": "flomesh.io/v1alpha1", "kind": "ServiceImport",
        "metadata": {"name": "web", "namespace": "ns1"},
        "spec": {
            "type": "ClusterSetIP", "sessionAffinity": "ClientIP", "serviceAccountName": "*",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
            "ports": [{
                "port": 80, "protocol": "TCP", "appProtocol": "http2",
                "endpoints": [{
                    "clusterKey": "default/default/default/c1",
                    "target": {"host": "gw.c1.example", "ip": "", "port": 443, "path": "/c1/web"},
                }],
            }],
        },
    });
    assert_eq!(object(&imported.imports[0]), expected);
    let mut found = crate::Diagnostics::default();
    load_bytes("import.json", expected.to_string().as_bytes(), &mut found);
    assert!(found.is_empty(), "{found:?}");
}
