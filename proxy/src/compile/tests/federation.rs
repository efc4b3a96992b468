//! Endpoints that serve the hosts of multi-cluster services, by each kind of resource.

use std::sync::{Arc, LazyLock};

use config_loader::catalog::View;
use config_loader::resource::istio::MeshConfig;
use config_loader::{Diagnostics, ResourceSet, Severity, load_bytes};

use crate::compile::policies::balance::balance;
use crate::compile::service::federation::Viewer;
use crate::compile::service::federation::Wanted;
use crate::compile::service::federation::candidates;
use crate::compile::service::workload::WorkloadHost;
use crate::compile::services::Services;
use crate::identity::{Identity, MeshName};
use traffic::cluster::Spread;

const PLAIN: &str = "web.ns1.svc.cluster.local";
const TOGETHER: &str = "web.ns1.svc.clusterset.local";
const FEDERATED: &str = "web.ns1.svc.c2.global";

fn load(documents: &[String]) -> ResourceSet {
    let text = documents.join("---\n");
    let mut found = Diagnostics::default();
    let set = load_bytes("test.yaml", text.as_bytes(), &mut found);
    let mut errors = found.iter().filter(|one| one.severity == Severity::Error);
    assert!(errors.next().is_none(), "{found:?}\n{text}");
    set
}

/// The services for a proxy of cluster `eu/a/prod/c1` and of mesh `a`.
fn services(documents: &[String]) -> (Services, Identity) {
    let identity = Identity {
        cluster: "eu/a/prod/c1".into(),
        gloo_mesh: Some(MeshName {
            name: "a".into(),
            namespace: "gloo-mesh".into(),
        }),
        ..Identity::default()
    };
    (Services::collect(&load(documents), &identity), identity)
}

/// A view that records nothing.
fn nothing() -> View<'static> {
    static NOTHING: LazyLock<ResourceSet> = LazyLock::new(ResourceSet::default);
    View::from(&*NOTHING)
}

/// The endpoints of the first port of a host, sorted; `unknown` if there is no such host.
fn reached(documents: &[String], host: &str) -> Vec<String> {
    reached_with(documents, host, MeshConfig::default())
}

/// The same, with this mesh configuration.
fn reached_with(documents: &[String], host: &str, mesh_config: MeshConfig) -> Vec<String> {
    let (services, mut identity) = services(documents);
    identity.mesh_config = Arc::new(mesh_config);
    let Some(service) = services.find(nothing(), host) else {
        return vec!["unknown".to_owned()];
    };
    let wanted = Wanted {
        service,
        port: &service.ports[0],
        subset: None,
    };
    let found = candidates(
        wanted,
        Viewer::new(&services.members(nothing()).own, &identity),
    );
    let mut all: Vec<String> = found
        .by_member
        .values()
        .flatten()
        .map(|workload| match &workload.host {
            WorkloadHost::Ip(ip) => ip.to_string(),
            other => format!("{other:?}"),
        })
        .collect();
    all.sort();
    all
}

fn object(version: &str, kind: &str, spec: &str) -> String {
    format!(
        "apiVersion: {version}\nkind: {kind}\nmetadata: {{namespace: ns1, name: web}}\nspec: {spec}\n"
    )
}

/// A ServiceImport with an endpoint for each cluster key.
fn import(endpoints: &[(&str, &str)]) -> String {
    let endpoints: Vec<String> = endpoints
        .iter()
        .map(|(key, ip)| {
            format!("{{clusterKey: {key}, target: {{host: '', ip: {ip}, port: 80, path: ''}}}}")
        })
        .collect();
    let spec = format!(
        "{{sessionAffinity: ClientIP, ports: [{{name: http, port: 80, endpoints: [{}]}}]}}",
        endpoints.join(", ")
    );
    object("flomesh.io/v1alpha1", "ServiceImport", &spec)
}

fn everywhere() -> String {
    object(
        "flomesh.io/v1alpha1",
        "GlobalTrafficPolicy",
        "{lbType: ActiveActive}",
    )
}

fn exposed(clusters: &str) -> String {
    let spec = format!("{{types: [CrossCluster], {clusters}}}");
    object(
        "networking.karmada.io/v1alpha1",
        "MultiClusterService",
        &spec,
    )
}

fn kube() -> String {
    object("v1", "Service", "{ports: [{name: http, port: 80}]}")
}

/// A Destination of ns1/web in a cluster, with a workload.
fn destination(name: &str, (cluster, ip): (&str, &str), status: &str) -> String {
    format!(
        "apiVersion: discovery.mesh.gloo.solo.io/v1\nkind: Destination\nmetadata: {{namespace: gloo-mesh, {name}}}\n\
         spec: {{kubeService: {{ref: {{name: web, namespace: ns1, clusterName: {cluster}}}, \
         ports: [{{port: 80, name: http, protocol: TCP}}], \
         endpointSubsets: [{{endpoints: [{{ipAddress: {ip}}}], ports: [{{port: 80, name: http, protocol: TCP}}]}}]}}}}\n\
         status: {{{status}}}\n"
    )
}

fn federated(host: &str, mesh: &str) -> String {
    format!(
        "appliedFederation: {{federatedHostname: {host}, flatNetwork: true, \
         federatedToMeshes: [{{name: {mesh}, namespace: gloo-mesh}}]}}"
    )
}

fn in_c2() -> String {
    destination(
        "name: web-c2",
        ("c2", "10.2.0.1"),
        &federated(FEDERATED, "a"),
    )
}

/// The endpoints of that port of a host with their ports, sorted.
fn reached_on(documents: &[String], host: &str, port: u16) -> Vec<String> {
    let (services, identity) = services(documents);
    let service = services.find(nothing(), host).expect("the host is known");
    let port = service.listed_port(port).expect("the service has the port");
    let wanted = Wanted {
        service,
        port,
        subset: None,
    };
    let found = candidates(
        wanted,
        Viewer::new(&services.members(nothing()).own, &identity),
    );
    let all = found.by_member.values().flatten();
    let at = all.map(|workload| match (&workload.host, workload.port(port)) {
        (WorkloadHost::Ip(ip), Some(port)) => format!("{ip}:{port}"),
        other => format!("{other:?}"),
    });
    let mut all: Vec<String> = at.collect();
    all.sort();
    all
}

#[test]
fn cluster_local_host_is_served_by_the_local_cluster_alone() {
    let import = import(&[("eu/a/prod/c1", "10.1.0.1"), ("eu/a/prod/c2", "10.2.0.1")]);
    let documents = [kube(), import, everywhere()];
    let local = |host: &str, is_local| MeshConfig {
        cluster_local: vec![(host.into(), is_local)],
        ..MeshConfig::default()
    };
    for (config, expected) in [
        (MeshConfig::default(), vec!["10.1.0.1", "10.2.0.1"]),
        (local(PLAIN, true), vec!["10.1.0.1"]),
        (local("*.ns1.svc.cluster.local", true), vec!["10.1.0.1"]),
        (local(PLAIN, false), vec!["10.1.0.1", "10.2.0.1"]),
        (local(TOGETHER, true), vec!["10.1.0.1", "10.2.0.1"]),
    ] {
        let shown = format!("{:?}", config.cluster_local);
        assert_eq!(reached_with(&documents, PLAIN, config), expected, "{shown}");
    }
}

#[test]
fn destination_ports_match_service_ports_by_name_then_number() {
    let of = |cluster: &str, ip: &str, ports: &str, targets: &str| {
        let host = FEDERATED.replace("c2", cluster);
        let name = format!("name: web-{cluster}");
        let text = destination(&name, (cluster, ip), &federated(&host, "a"));
        let one = "[{port: 80, name: http, protocol: TCP}]";
        assert_eq!(text.matches(one).count(), 2);
        text.replacen(one, ports, 1).replacen(one, targets, 1)
    };
    let renamed = of(
        "c2",
        "10.2.0.1",
        "[{port: 80, name: web, protocol: TCP}]",
        "[{port: 8001, name: web, protocol: TCP}]",
    );
    let more = of(
        "c3",
        "10.3.0.1",
        "[{port: 8080, name: http, protocol: TCP}, {port: 9090, name: admin, protocol: TCP}]",
        "[{port: 8002, name: http, protocol: TCP}, {port: 8003, name: admin, protocol: TCP}]",
    );
    let all = [kube(), renamed, more, everywhere()];
    assert_eq!(
        reached_on(&all, PLAIN, 80),
        ["10.2.0.1:8001", "10.3.0.1:8002"]
    );
    assert_eq!(reached_on(&all, PLAIN, 9090), ["10.3.0.1:8003"]);
    // under its own host each has the ports that its Destination says
    assert_eq!(
        reached_on(&all, "web.ns1.svc.c3.global", 8080),
        ["10.3.0.1:8002"]
    );
    // without a Service, too
    assert_eq!(reached_on(&all[1..], PLAIN, 9090), ["10.3.0.1:8003"]);
}

#[test]
fn ambiguous_cluster_name_adds_no_endpoints() {
    let with = |clusters: &str, host| {
        let import = import(&[
            ("eu/a/prod/c2", "10.2.0.1"),
            ("eu/a/prod/c3", "10.3.0.1"),
            ("us/a/prod/c3", "10.3.0.2"),
        ]);
        reached(&[import, everywhere(), exposed(clusters)], host)
    };
    let all = ["10.2.0.1", "10.3.0.1", "10.3.0.2"];
    let nothing: [&str; 0] = [];
    assert_eq!(with("providerClusters: []", PLAIN), all);
    assert_eq!(with("providerClusters: [{name: c2}]", PLAIN), ["10.2.0.1"]);
    assert_eq!(with("providerClusters: [{name: c3}]", PLAIN), nothing);
    let some = "providerClusters: [{name: c2}, {name: c3}, {name: c9}]";
    assert_eq!(with(some, PLAIN), ["10.2.0.1"]);
    assert_eq!(with("consumerClusters: [{name: c1}]", PLAIN), all);
    // another cluster with the name of the proxy's own
    let twins = [
        import(&[("eu/a/prod/c2", "10.2.0.1"), ("us/a/prod/c1", "10.1.0.1")]),
        everywhere(),
        exposed("consumerClusters: [{name: c1}]"),
    ];
    assert_eq!(reached(&twins, PLAIN), nothing);
    assert_eq!(reached(&twins, TOGETHER), ["unknown"]);
}

#[test]
fn visibility_applies_to_federated_hosts_too() {
    let with = |clusters: &str| reached(&[in_c2(), kube(), exposed(clusters)], FEDERATED);
    let nothing: [&str; 0] = [];
    assert_eq!(reached(&[in_c2()], FEDERATED), ["10.2.0.1"]);
    assert_eq!(with("consumerClusters: [{name: c1}]"), ["10.2.0.1"]);
    assert_eq!(with("consumerClusters: [{name: c2}]"), nothing);
    assert_eq!(with("providerClusters: [{name: c2}]"), ["10.2.0.1"]);
    assert_eq!(with("providerClusters: [{name: c1}]"), nothing);
    assert_eq!(with("ports: [{port: 81}]"), nothing);
}

#[test]
fn local_hosts_are_hidden_if_the_cluster_is_no_provider() {
    let status = federated("web.ns1.svc.c1.global", "a");
    let status = format!("localFqdn: web.local.example, {status}");
    let own = destination("name: web-c1", ("c1", "10.1.0.1"), &status);
    let rows = [
        (None, &["10.1.0.1"][..]),
        (
            Some("providerClusters: [{name: c1}, {name: c2}]"),
            &["10.1.0.1"],
        ),
        (Some("providerClusters: [{name: c2}]"), &[]),
    ];
    for (clusters, expected) in rows {
        let mut documents = vec![kube(), own.clone(), in_c2()];
        documents.extend(clusters.map(exposed));
        for host in ["web.local.example", "web.ns1.svc.c1.global", PLAIN] {
            assert_eq!(reached(&documents, host), expected, "{clusters:?} {host}");
        }
    }
}

#[test]
fn cluster_services_keep_their_hosts() {
    let entry = format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{namespace: ns1, name: e}}\n\
         spec: {{hosts: [{PLAIN}, {TOGETHER}, {FEDERATED}, other.example], resolution: STATIC, \
         ports: [{{number: 90, name: http, protocol: HTTP}}, {{number: 80, name: more, protocol: HTTP}}], \
         endpoints: [{{address: 10.9.0.9}}]}}\n"
    );
    let outside = format!(
        "apiVersion: discovery.mesh.gloo.solo.io/v1\nkind: Destination\nmetadata: {{namespace: gloo-mesh, name: a}}\n\
         spec: {{externalService: {{name: e, hosts: [{PLAIN}, {TOGETHER}, {FEDERATED}, other.example], \
         ports: [{{number: 80, name: web, protocol: HTTP}}], endpoints: [{{address: 10.9.0.9}}]}}}}\n"
    );
    let of_c3 = || import(&[("eu/a/prod/c3", "10.3.0.1")]);
    let other = ["10.9.0.9"];
    let nothing: [&str; 0] = [];
    for claims in [entry, outside] {
        let with = |documents: &[String], host| {
            let all = [std::slice::from_ref(&claims), documents].concat();
            assert_eq!(reached(&all, "other.example"), other);
            reached(&all, host)
        };
        assert_eq!(with(&[], PLAIN), other, "no other cluster has it");
        assert_eq!(with(&[of_c3()], PLAIN), nothing, "it waits for a policy");
        assert_eq!(with(&[of_c3(), everywhere()], PLAIN), ["10.3.0.1"]);
        assert_eq!(with(&[of_c3()], TOGETHER), ["10.3.0.1"]);
        assert_eq!(with(&[of_c3()], FEDERATED), other);
        assert_eq!(with(&[in_c2()], PLAIN), nothing, "it waits for a policy");
        assert_eq!(with(&[in_c2(), everywhere()], PLAIN), ["10.2.0.1"]);
        assert_eq!(with(&[in_c2()], FEDERATED), ["10.2.0.1"]);
        let own = destination("name: web-c1", ("c1", "10.1.0.1"), "");
        assert_eq!(with(&[own], PLAIN), ["10.1.0.1"]);
    }
}

#[test]
fn clusters_of_a_service_are_merged_from_all_resources() {
    let own = destination("name: web-c1", ("c1", "10.1.0.1"), "");
    let of_c3 = import(&[("eu/a/prod/c3", "10.3.0.1")]);
    let documents = [own, in_c2(), of_c3];
    let all = ["10.1.0.1", "10.2.0.1", "10.3.0.1"];
    assert_eq!(reached(&documents, PLAIN), ["10.1.0.1"]);
    assert_eq!(reached(&documents, TOGETHER), all);
    assert_eq!(reached(&documents, FEDERATED), ["10.2.0.1"]);
    let shared = [&documents[..], &[everywhere()]].concat();
    assert_eq!(reached(&shared, PLAIN), all);
    // where there is no Service, the import says for both hosts who stays
    let (services, _) = services(&documents);
    assert!(services.find(nothing(), PLAIN).unwrap().affinity.is_some());
}

#[test]
fn local_name_equal_to_the_host_changes_nothing() {
    let status = format!("localFqdn: {PLAIN}");
    let own = destination("name: web-c1", ("c1", "10.1.0.1"), &status);
    let of_c3 = import(&[("eu/a/prod/c3", "10.3.0.1")]);
    let documents = [own, kube(), of_c3, everywhere()];
    assert_eq!(reached(&documents, PLAIN), ["10.1.0.1", "10.3.0.1"]);
    // nor does it add endpoints that wait for a policy
    assert_eq!(reached(&documents[..3], PLAIN), ["10.1.0.1"]);
}

#[test]
fn shifts_route_to_hosts_visible_to_the_proxy() {
    let shift = "requiredSubsets: [{trafficPolicyRef: {name: p, namespace: gloo-mesh}, trafficShift: \
                 {destinations: [{weight: 100, kubeService: {name: web, namespace: ns1, clusterName: c2}}]}}]";
    let target = |others: &[String]| {
        let own = destination("name: web-c1", ("c1", "10.1.0.1"), shift);
        let (services, _) = services(&[&[own], others].concat());
        let service = services.find(nothing(), PLAIN).unwrap();
        let parts = service.shifts.iter().flat_map(|shift| &shift.parts);
        let hosts: Vec<String> = parts.map(|part| part.host.to_string()).collect();
        assert!(
            hosts
                .iter()
                .all(|host| services.find(nothing(), host).is_some())
        );
        hosts
    };
    let of = |name: &str, host: &str, mesh: &str| {
        destination(name, ("c2", "10.2.0.1"), &federated(host, mesh))
    };
    let nothing: [&str; 0] = [];
    assert_eq!(target(&[in_c2()]), [FEDERATED]);
    assert_eq!(target(&[of("name: x", "x.global", "b")]), nothing);
    let both = [
        of("name: a", "a.global", "b"),
        of("name: b", "B.global", "a"),
    ];
    assert_eq!(target(&both), ["b.global"]);
    let aged = [
        of(
            "name: a, creationTimestamp: '2021-01-01T00:00:00Z'",
            "a.global",
            "a",
        ),
        of(
            "name: b, creationTimestamp: '2020-01-01T00:00:00Z'",
            "b.global",
            "a",
        ),
    ];
    assert_eq!(target(&aged), ["b.global"], "the oldest says");
}

#[test]
fn cluster_labels_are_ignored_when_a_policy_picks_the_cluster() {
    let keys = |policy: &[String], labels: &str| -> Option<Vec<String>> {
        let setting = format!("localityLbSetting: {{failoverPriority: [{labels}]}}");
        let spec = format!("{{host: web, trafficPolicy: {{loadBalancer: {{{setting}}}}}}}");
        let rule = object("networking.istio.io/v1", "DestinationRule", &spec);
        let documents = [&[kube(), rule], policy].concat();
        let (services, identity) = services(&documents);
        let set = load(&documents);
        let rule = set.destination_rules.values().next().unwrap();
        let balancer = rule.spec.traffic_policy.load_balancer.as_deref();
        let service = services.find(nothing(), PLAIN).unwrap();
        match balance(balancer, None, service, 80, &identity).spread {
            Spread::Failover { labels, .. } => {
                Some(labels.iter().map(|label| label.key.to_string()).collect())
            }
            _ => None,
        }
    };
    let region = "topology.kubernetes.io/region".to_owned();
    let (cluster, network) = (
        "topology.istio.io/cluster".to_owned(),
        "topology.istio.io/network".to_owned(),
    );
    let three = format!("{network}, {cluster}, {region}");
    let all = vec![network, cluster, region.clone()];
    assert_eq!(keys(&[], &three), Some(all));
    assert_eq!(keys(&[everywhere()], &three), Some(vec![region]));
    // with none left all endpoints of a cluster are alike
    assert_eq!(keys(&[everywhere()], "topology.istio.io/cluster"), None);
}
