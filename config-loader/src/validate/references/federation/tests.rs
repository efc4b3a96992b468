use crate::resource::flomesh::ClusterKey;
use crate::{Fleet, RemoteCluster, Severity};

/// Service `web`, which clusters c2 and c3 import and the local cluster serves with two endpoints.
const WORLD: &str = "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: web}\n\
    spec: {ports: [{name: http, port: 80}]}\n\
    ---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
    metadata: {namespace: ns1, name: web-1, labels: {kubernetes.io/service-name: web}}\naddressType: IPv4\n\
    ports: [{name: http, port: 8080}]\nendpoints: [{addresses: [10.0.0.1]}, {addresses: [10.0.0.2]}]\n\
    ---\napiVersion: flomesh.io/v1alpha1\nkind: ServiceImport\nmetadata: {namespace: ns1, name: web}\n\
    spec: {ports: [{name: http, port: 80, endpoints: [\
    {clusterKey: eu/a/b/c2, target: {host: '', ip: 10.2.0.9, port: 80, path: /c2}}, \
    {clusterKey: eu/a/b/c3, target: {host: '', ip: 10.3.0.9, port: 80, path: /c3}}]}]}\n---\n";

/// Returns code, field and message with help of each diagnostic across resources.
fn found(text: &str) -> Vec<String> {
    found_for(Fleet::default(), text)
}

/// Returns the same for a proxy with a known local cluster and remote clusters.
fn found_in(own: &str, told: &[&str], text: &str) -> Vec<String> {
    let key = |key: &str| ClusterKey::parse(key).unwrap();
    let told = told.iter().map(|one| RemoteCluster {
        key: key(one),
        has_gateway: false,
    });
    let fleet = Fleet {
        own: Some(key(own)),
        told: told.collect(),
        mesh: None,
        namespace: None,
        ..Fleet::default()
    };
    found_for(fleet, text)
}

fn found_for(fleet: Fleet, text: &str) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.yaml");
    std::fs::write(&path, format!("{WORLD}{text}")).unwrap();
    let found = crate::load_files(
        &[path],
        crate::LoadOptions {
            fleet,
            ..crate::LoadOptions::default()
        },
    )
    .diagnostics;
    assert!(
        found.iter().all(|one| one.severity != Severity::Error),
        "{found:?}"
    );
    let crossing = found
        .iter()
        .filter(|one| one.code.0.starts_with(['X']) && one.code.0 >= "X293");
    crossing
        .map(|one| {
            let help = one.help.as_deref().unwrap_or("");
            format!("{} {}: {} ({help})", one.code, one.field, one.message)
        })
        .collect()
}

fn object(kind: &str, name: &str, spec: &str) -> String {
    let group = match kind {
        "ServiceEntry" | "DestinationRule" => "networking.istio.io/v1",
        "MultiClusterService" => "networking.karmada.io/v1alpha1",
        "Service" => "v1",
        _ => "flomesh.io/v1alpha1",
    };
    format!(
        "apiVersion: {group}\nkind: {kind}\nmetadata: {{namespace: ns1, name: {name}}}\nspec: {spec}\n---\n"
    )
}

fn policy(spec: &str) -> String {
    object("GlobalTrafficPolicy", "web", spec)
}

fn export(name: &str, spec: &str) -> String {
    object("ServiceExport", name, spec)
}

#[test]
fn a_policy_is_for_a_service_that_is_known() {
    let other = object("GlobalTrafficPolicy", "other", "{lbType: Locality}");
    assert_eq!(
        found(&other),
        [
            "X293 metadata.name: no service `other` is known in `ns1`: this has no effect \
             (a policy has the name and the namespace of a Service, a ServiceImport or a Destination)"
        ]
    );
    assert!(found(&policy("{lbType: Locality}")).is_empty());
}

#[test]
fn clusters_of_a_policy_serve_its_service() {
    let targets = |keys: &str| policy(&format!("{{lbType: ActiveActive, targets: [{keys}]}}"));
    let known = "{clusterKey: eu/a/b/c2}, {clusterKey: eu/a/b/c3}";
    assert!(found(&targets(known)).is_empty());
    // may be the local cluster
    let own = format!("{known}, {{clusterKey: eu/a/b/home, weight: 0}}");
    assert!(found(&targets(&own)).is_empty());
    assert_eq!(
        found(&targets(&format!("{known}, {{clusterKey: a/b/c/c3}}"))),
        [
            "X294 spec.targets[2].clusterKey: cluster `a/b/c/c3` has no endpoint of `web` \
             (clusters that serve it: eu/a/b/c2, eu/a/b/c3)"
        ]
    );
    assert_eq!(
        found(&targets("{clusterKey: eu/a/x/c9}")),
        [
            "X294 spec.targets[0].clusterKey: no cluster that is named here serves `web`: `eu/a/x/c9` is unknown \
             (did you mean `eu/a/b/c2`?)"
        ]
    );
    // a key that is near, but a target itself, was not meant
    let near = "{clusterKey: eu/a/b/c2}, {clusterKey: eu/a/b/c4}";
    let helps = |keys: &str| found_in("eu/a/b/home", &[], &targets(keys)).join("\n");
    assert!(helps(near).contains("did you mean `eu/a/b/c3`?"));
    let lines = helps(&format!("{near}, {{clusterKey: eu/a/b/c3}}"));
    assert!(
        lines.contains(
            "`eu/a/b/c4` has no endpoint of `web` (clusters that serve it: eu/a/b/c2, eu/a/b/c3)"
        ),
        "{lines}"
    );
    let two = "{clusterKey: eu/a/b/c2}, {clusterKey: x/y/z/one}, {clusterKey: x/y/z/two}";
    let lines = found(&targets(two));
    assert_eq!(lines.len(), 2, "only one can be the local one");
    assert!(
        lines
            .iter()
            .all(|line| line.contains("unless it is the proxy's own"))
    );
}

#[test]
fn who_knows_its_cluster_is_told_of_every_other_that_serves_nothing() {
    let active = |keys: &str| policy(&format!("{{lbType: ActiveActive, targets: [{keys}]}}"));
    let text = active("{clusterKey: eu/a/b/c2}, {clusterKey: eu/a/b/home}");
    assert!(found_in("eu/a/b/home", &[], &text).is_empty());
    assert_eq!(
        found_in("eu/a/b/other", &[], &text),
        [
            "X294 spec.targets[1].clusterKey: cluster `eu/a/b/home` has no endpoint of `web` \
             (clusters that serve it: eu/a/b/c2, eu/a/b/c3)"
        ]
    );
    // what `--clusters` names is known
    assert!(found_in("eu/a/b/other", &["eu/a/b/home"], &text).is_empty());
}

#[test]
fn the_own_cluster_is_no_backup() {
    let backups = |kind: &str| {
        let keys = "{clusterKey: eu/a/b/c2}, {clusterKey: eu/a/b/home}";
        policy(&format!("{{lbType: {kind}, targets: [{keys}]}}"))
    };
    assert_eq!(
        found_in("eu/a/b/home", &[], &backups("FailOver")),
        [
            "X311 spec.targets[1].clusterKey: `eu/a/b/home` is the local cluster, which comes first anyway: the target has no \
             effect (name the clusters that take over from it)"
        ]
    );
    assert!(found_in("eu/a/b/home", &[], &backups("ActiveActive")).is_empty());
    // Where it is not known which one that is, a cluster without endpoints is a mistake all the same.
    assert_eq!(
        found(&backups("FailOver")),
        [
            "X294 spec.targets[1].clusterKey: cluster `eu/a/b/home` has no endpoint of `web` \
             (clusters that serve it: eu/a/b/c2, eu/a/b/c3)"
        ]
    );
    let known = "{lbType: FailOver, targets: [{clusterKey: eu/a/b/c2}, {clusterKey: eu/a/b/c3}]}";
    assert!(found(&policy(known)).is_empty());
}

#[test]
fn a_bare_name_is_that_of_one_cluster() {
    let service = object(
        "MultiClusterService",
        "web",
        "{types: [CrossCluster], providerClusters: [{name: c2}, {name: c3}], consumerClusters: [{name: home}]}",
    );
    assert!(found_in("eu/a/b/home", &[], &service).is_empty());
    // another cluster with that name, wherever it is named
    let twice = [
        "X308 spec.providerClusters[0].name: `c2` is the name of 2 clusters, so it names none of them: this entry matches nothing \
         (give one of the clusters another name: `eu/a/b/c2`, `us/a/b/c2`)",
    ];
    assert_eq!(found_in("eu/a/b/home", &["us/a/b/c2"], &service), twice);
    let cluster = "apiVersion: flomesh.io/v1alpha1\nkind: Cluster\nmetadata: {name: c2}\nspec: {region: us, zone: a, group: b}\n---\n";
    let text = format!("{cluster}{service}");
    assert_eq!(found_in("eu/a/b/home", &[], &text), twice);
    let lines = found_in("us/a/b/c2", &["eu/a/b/home"], &service);
    assert_eq!(lines, twice, "one of them is the local cluster");

    let slice = "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {namespace: ns1, name: web-2, labels: \
         {kubernetes.io/service-name: web, multicluster.kubernetes.io/source-cluster: c2}}\naddressType: IPv4\n\
         ports: [{name: http, port: 8080}]\nendpoints: [{addresses: [10.2.0.1]}]\n---\n";
    let destination = "apiVersion: discovery.mesh.gloo.solo.io/v1\nkind: Destination\nmetadata: {namespace: gloo, name: a}\n\
         spec: {kubeService: {ref: {name: web, namespace: ns1, clusterName: c2}, ports: [{port: 80, name: http}]}}\n\
         status: {appliedTrafficPolicies: [{ref: {name: p, namespace: gloo}, spec: {sourceSelector: [{kubeWorkloadMatcher: \
         {clusters: [c2]}}]}}], requiredSubsets: [{trafficPolicyRef: {name: p, namespace: gloo}, trafficShift: {destinations: [\
         {weight: 100, kubeService: {name: web, namespace: ns1, clusterName: c2}}]}}]}\n---\n";
    let text = format!("{cluster}{slice}{destination}");
    let mut fields: Vec<String> = found_in("eu/a/b/home", &[], &text)
        .iter()
        .filter_map(|line| line.strip_prefix("X308 "))
        .map(|line| line.split_once(" (").unwrap().0.to_owned())
        .collect();
    fields.sort();
    let twice = "`c2` is the name of 2 clusters, so it names none of them";
    assert_eq!(
        fields,
        [
            format!("metadata: {twice}: its endpoints are not used"),
            format!("spec.kubeService.ref.clusterName: {twice}: the Destination is not used"),
            format!(
                "status.appliedTrafficPolicies[0].spec.sourceSelector: {twice}: it selects nothing"
            ),
            format!(
                "status.requiredSubsets[0].trafficShift.destinations[0].kubeService.clusterName: {twice}: the shift is not \
                 followed"
            ),
        ]
    );
}

#[test]
fn weights_leave_somebody_to_serve() {
    let weights = |kind: &str, one: u32, two: u32| {
        policy(&format!(
            "{{lbType: {kind}, targets: [{{clusterKey: eu/a/b/c2, weight: {one}}}, \
             {{clusterKey: eu/a/b/c3, weight: {two}}}]}}"
        ))
    };
    for (kind, message) in [
        (
            "ActiveActive",
            "every weight is 0: only the local cluster serves, if it is not named here",
        ),
        ("FailOver", "every weight is 0: there is no backup"),
    ] {
        let lines = found(&weights(kind, 0, 0));
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0].starts_with(&format!("X295 spec.targets: {message}")),
            "{lines:?}"
        );
        assert!(found(&weights(kind, 100, 0)).is_empty());
    }
    let order = "name: web, annotations: {multicluster.flomesh.io/failover-order: ordered}}";
    let ordered = weights("FailOver", 0, 0).replace("name: web}", order);
    assert!(found(&ordered).is_empty(), "no weight counts there");
}

#[test]
fn caps_of_ejections_do_not_block_failover() {
    let backups = policy("{lbType: FailOver, targets: [{clusterKey: eu/a/b/c2}]}");
    let active = policy("{lbType: ActiveActive, targets: [{clusterKey: eu/a/b/c2}]}");
    let rule = |host: &str, outliers: &str| {
        let spec = format!("{{host: {host}, trafficPolicy: {{outlierDetection: {{{outliers}}}}}}}");
        object("DestinationRule", "web", &spec)
    };
    let capped = "consecutive5xxErrors: 5";
    let free = "consecutive5xxErrors: 5, maxEjectionPercent: 100";
    assert_eq!(
        found(&format!("{backups}{}", rule("web", capped))),
        [
            "X296 spec.trafficPolicy.outlierDetection.maxEjectionPercent: FailoverIneffective: of 2 endpoints in the local \
             cluster at most 10 % are ejected, never all, so that `web.ns1.svc.cluster.local` does not fail over \
             (write 100, or let each failed request be replayed in the next cluster)"
        ]
    );
    let wide = rule("'*.ns1.svc.cluster.local'", capped);
    assert_eq!(found(&format!("{backups}{wide}")).len(), 1);
    assert!(found(&format!("{backups}{}", rule("web", free))).is_empty());
    assert!(found(&format!("{active}{}", rule("web", capped))).is_empty());
    let elsewhere = found(&format!("{backups}{}", rule("'*.other.com'", capped)));
    assert!(
        elsewhere.iter().all(|finding| finding.starts_with("X316")),
        "{elsewhere:?}"
    );
}

#[test]
fn caps_of_ejections_do_not_block_any_tier_that_another_follows() {
    // c2 has two gateways, c3 one and the local cluster no endpoint
    let other = "{name: http, port: 80, endpoints: [\
         {clusterKey: eu/a/b/c2, target: {ip: 10.2.0.1, port: 80}}, {clusterKey: eu/a/b/c2, target: {ip: 10.2.0.2, port: 80}}, \
         {clusterKey: eu/a/b/c3, target: {ip: 10.3.0.1, port: 80}}]}";
    let import = object("ServiceImport", "other", &format!("{{ports: [{other}]}}"));
    let rule = object(
        "DestinationRule",
        "other",
        "{host: other, trafficPolicy: {outlierDetection: {}}}",
    );
    let backups = |annotations: &str, keys: &str| {
        let spec = format!("{{lbType: FailOver, targets: [{keys}]}}");
        object("GlobalTrafficPolicy", "other", &spec)
            .replace("name: other}", &format!("name: other{annotations}}}"))
    };
    let (c2, c3) = ("{clusterKey: eu/a/b/c2}", "{clusterKey: eu/a/b/c3}");
    let ordered = ", annotations: {multicluster.flomesh.io/failover-order: ordered}";
    let lines = |annotations: &str, first: &str, second: &str| {
        let policy = backups(annotations, &format!("{first}, {second}"));
        found(&format!("{import}{rule}{policy}"))
    };
    let expected = "X296 spec.trafficPolicy.outlierDetection.maxEjectionPercent: FailoverIneffective: of 2 endpoints in \
         `eu/a/b/c2` at most 10 % are ejected, never all";
    let said = lines(ordered, c2, c3);
    assert!(said.len() == 1 && said[0].starts_with(expected), "{said:?}");
    assert!(lines(ordered, c3, c2).is_empty(), "c2 is the last");
    assert!(lines("", c2, c3).is_empty(), "one tier of both");
    // both of its endpoints are reached directly, by a mark with the bare name
    let slice = |name: &str| {
        format!(
            "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{namespace: ns1, name: {name}, labels: \
             {{kubernetes.io/service-name: other, multicluster.kubernetes.io/source-cluster: c3}}}}\naddressType: IPv4\n\
             ports: [{{name: http, port: 8080}}]\nendpoints: [{{addresses: [10.3.0.2]}}]\n---\n"
        )
    };
    let policy = backups(ordered, &format!("{c3}, {c2}"));
    let text = format!("{import}{rule}{policy}{}{}", slice("a"), slice("b"));
    let said = found(&text);
    assert!(
        said.len() == 1 && said[0].contains("of 2 endpoints in `eu/a/b/c3`"),
        "{said:?}"
    );
}

#[test]
fn labels_of_clusters_order_nothing_within_one() {
    let active = policy("{lbType: ActiveActive, targets: [{clusterKey: eu/a/b/c2}]}");
    let rule = |host: &str, labels: &str| {
        let setting = format!("localityLbSetting: {{failoverPriority: [{labels}]}}");
        let spec = format!(
            "{{host: {host}, trafficPolicy: {{outlierDetection: {{maxEjectionPercent: 100}}, loadBalancer: {{{setting}}}}}}}"
        );
        object("DestinationRule", "web", &spec)
    };
    let both = "topology.istio.io/cluster, topology.kubernetes.io/region";
    let expected = "X312 spec.trafficPolicy.loadBalancer.localityLbSetting.failoverPriority: `topology.istio.io/cluster` is \
         skipped: GlobalTrafficPolicy web says which cluster serves `web.ns1.svc.cluster.local`";
    let said = found(&format!("{active}{}", rule("web", both)));
    assert!(said.len() == 1 && said[0].starts_with(expected), "{said:?}");
    let network = "\"topology.istio.io/network=n1\"";
    let said = found(&format!(
        "{active}{}",
        rule("web.ns1.svc.clusterset.local", network)
    ));
    assert!(
        said.len() == 1 && said[0].contains("`topology.istio.io/network` is skipped"),
        "{said:?}"
    );
    assert!(found(&rule("web", both)).is_empty(), "no policy");
    let region = rule("web", "topology.kubernetes.io/region");
    assert!(found(&format!("{active}{region}")).is_empty());
}

#[test]
fn imports_have_endpoints() {
    let import = |endpoints: &str| {
        let spec = format!("{{ports: [{{name: http, port: 80, endpoints: [{endpoints}]}}]}}");
        object("ServiceImport", "other", &spec)
    };
    let target = "target: {host: gw.example, ip: '', port: 80, path: ''}";
    assert_eq!(
        found(&import("")),
        [
            "X297 spec.ports: the import has no endpoints: no other cluster serves it \
             (write endpoints of its ports, with the cluster and its gateway)"
        ]
    );
    assert!(found(&import(&format!("{{clusterKey: a/b/c/d, {target}}}"))).is_empty());
}

#[test]
fn paths_of_imports_are_for_ports_that_have_some() {
    let import = |port: &str, path: &str| {
        let target = format!("{{host: gw.example, ip: '', port: 80, path: {path}}}");
        let spec = format!(
            "{{ports: [{{{port}, endpoints: [{{clusterKey: a/b/c/d, target: {target}}}]}}]}}"
        );
        object("ServiceImport", "other", &spec)
    };
    let expected = [
        "X307 spec.ports[0].endpoints[0].target.path: PathNotApplicable: the port carries `tcp`, which has no paths to put `/d/other` in \
         front of: the endpoint is not used (leave out the path, or say `appProtocol: http` if that is what the port carries)",
    ];
    assert_eq!(
        found(&import("name: tcp-db, port: 80", "/d/other")),
        expected
    );
    assert_eq!(
        found(&import("name: a, appProtocol: tcp, port: 80", "/d/other")),
        expected
    );
    assert!(found(&import("name: tcp-db, port: 80", "''")).is_empty());
    assert!(found(&import("name: grpc, port: 80", "/d/other")).is_empty());
    // the Service knows better
    let service = object("Service", "other", "{ports: [{name: tcp, port: 80}]}");
    let import = import("name: http, port: 80", "/d/other");
    assert_eq!(found(&format!("{import}{service}")), expected);
}

#[test]
fn exports_can_be_served_and_reached() {
    let rule = |port: u16, kind: &str| {
        format!("{{rules: [{{portNumber: {port}, path: /c1/web, pathType: {kind}}}]}}")
    };
    assert!(found(&export("web", &rule(80, "Prefix"))).is_empty());
    assert_eq!(
        found(&export("web", &rule(80, "Exact"))),
        [
            "X298 spec.rules[0].pathType: ExactNotImportable: Exact cannot be reached through an import \
             (an import adds its path to the whole path of a request: write Prefix)"
        ]
    );
    assert_eq!(
        found(&export("web", &rule(81, "Prefix"))),
        ["X299 spec.rules[0].portNumber: Service `web` has no port 81 (its ports are 80)"]
    );
    assert_eq!(
        found(&export("none", &rule(80, "Prefix"))),
        [
            "X299 metadata.name: Valid=False: there is no Service `none`: nothing is exported \
             (an export has the name and the namespace of its Service)"
        ]
    );
    let external = object(
        "Service",
        "far",
        "{type: ExternalName, externalName: far.example}",
    );
    let far = export("far", &rule(80, "Prefix"));
    assert_eq!(
        found(&format!("{external}{far}")),
        [
            "X299 metadata.name: Valid=False: Service `far` is an ExternalName: nothing is exported \
             (export a Service that has endpoints of its own)"
        ]
    );
}

#[test]
fn a_path_belongs_to_one_export() {
    let second = object("Service", "other", "{ports: [{name: http, port: 80}]}");
    let rule = |path: &str, kind: &str| {
        format!("{{rules: [{{portNumber: 80, path: {path}, pathType: {kind}}}]}}")
    };
    let first = export("web", &rule("/c1", "Prefix"));
    let same = export("other", &rule("/c1", "Prefix"));
    let longer = export("other", &rule("/c1/other", "Prefix"));
    assert!(found(&format!("{second}{first}{longer}")).is_empty());
    // of one age the first by name has it
    assert_eq!(
        found(&format!("{second}{first}{same}")),
        [
            "X300 spec.rules[0].path: Valid=False: Prefix `/c1` is exported by ServiceExport/ns1/other already: this export is not \
             served (give each export a path of its own, such as /CLUSTER/SERVICE)"
        ]
    );
}

#[test]
fn hosts_of_services_are_not_those_of_others() {
    let entry = |host: &str| {
        let spec = format!(
            "{{hosts: [{host}], resolution: STATIC, ports: [{{number: 80, name: http, protocol: HTTP}}], \
             endpoints: [{{address: 10.0.0.9}}]}}"
        );
        object("ServiceEntry", "entry", &spec)
    };
    assert!(found(&entry("api.example")).is_empty());
    assert_eq!(
        found(&entry("web.ns1.svc.clusterset.local")),
        [
            "X301 spec.hosts[0]: HostShadowed: `web.ns1.svc.clusterset.local` is not used: ServiceImport/ns1/web has that host \
             (remove the host here, or the ServiceImport)"
        ]
    );
    // a service that only an import or a Destination describes has its hosts, too
    let import = object(
        "ServiceImport",
        "far",
        "{ports: [{port: 80, endpoints: [\
         {clusterKey: eu/a/b/c2, target: {ip: 10.2.0.9, port: 80}}]}]}",
    );
    let said = found(&format!("{import}{}", entry("far.ns1.svc.cluster.local")));
    assert!(
        said[0].contains("ServiceImport/ns1/far has that host"),
        "{said:?}"
    );
    let destination = "apiVersion: discovery.mesh.gloo.solo.io/v1\nkind: Destination\nmetadata: {namespace: gloo, name: d}\n\
         spec: {kubeService: {ref: {name: d, namespace: ns1, clusterName: c2}, ports: [{port: 80, name: http}]}}\n\
         status: {localFqdn: d.local, appliedFederation: {federatedHostname: d.global, flatNetwork: true, \
         federatedToMeshes: [{name: a, namespace: gloo}]}}\n---\n";
    for host in ["d.ns1.svc.cluster.local", "d.global", "D.local"] {
        let said = found(&format!("{destination}{}", entry(host)));
        let expected = format!(
            "X301 spec.hosts[0]: HostShadowed: `{host}` is not used: Destination/gloo/d has that host"
        );
        assert!(said[0].starts_with(&expected), "{said:?}");
    }
    // of another cluster, and for no other: it is unknown here
    let alone = destination.replace("{name: a, namespace: gloo}", "");
    let text = format!("{alone}{}", entry("d.global"));
    assert!(found_in("eu/a/b/c1", &[], &text).is_empty());
    assert_eq!(
        found_in("eu/a/b/c2", &[], &text).len(),
        1,
        "the local cluster"
    );
    assert_eq!(
        found(&entry("web.ns1.svc.cluster.local")),
        [
            "X301 spec.hosts[0]: HostShadowed: `web.ns1.svc.cluster.local` is not used: Service/ns1/web has that host \
             (remove the host here, or the Service)"
        ]
    );
}

#[test]
fn an_address_belongs_to_one_import() {
    let import = |name: &str, ip: &str| {
        let spec = format!(
            "{{ips: [{ip}], ports: [{{port: 80, endpoints: [\
             {{clusterKey: eu/a/b/c2, target: {{ip: 10.2.0.9, port: 80}}}}]}}]}}"
        );
        object("ServiceImport", name, &spec)
    };
    assert!(found(&(import("a", "10.96.0.1") + &import("b", "10.96.0.2"))).is_empty());
    assert_eq!(
        found(&(import("a", "10.96.0.1") + &import("b", "10.96.0.1"))),
        [
            "X302 spec.ips[0]: 10.96.0.1 is not used: it is the address of ServiceImport/ns1/a \
             (give each service an address of its own)"
        ]
    );
}

#[test]
fn endpoints_of_upstreams_imports_are_in_slices() {
    let import = "apiVersion: multicluster.x-k8s.io/v1alpha1\nkind: ServiceImport\nmetadata: {namespace: ns1, name: api}\n\
        spec: {type: ClusterSetIP, ports: [{name: http, port: 80}]}\n---\n";
    let slice = "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {namespace: ns1, name: api-c2, \
        labels: {multicluster.kubernetes.io/service-name: api, multicluster.kubernetes.io/source-cluster: c2}}\n\
        addressType: IPv4\nports: [{name: http, port: 8080}]\nendpoints: [{addresses: [10.2.0.1]}]\n---\n";
    let policy = object(
        "GlobalTrafficPolicy",
        "api",
        "{lbType: ActiveActive, targets: [{clusterKey: eu/a/b/c2}]}",
    );
    assert_eq!(found(&format!("{import}{slice}{policy}")), [""; 0]);
    assert_eq!(
        found(import),
        [
            "X297 spec.ports: the import has no endpoints: no other cluster serves it (an import of this API has its \
             endpoints from EndpointSlices with the labels `multicluster.kubernetes.io/service-name` and \
             `multicluster.kubernetes.io/source-cluster`)"
        ]
    );
}
