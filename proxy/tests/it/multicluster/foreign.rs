//! Destinations of other clusters and of external hosts: scenarios 71 and 72 for directly reachable workloads, 76 and
//! 77.

use super::*;

const IN_MESH_A: &[&str] = &["--gloo-mesh", "a.gloo-mesh"];

/// Returns a Destination of ns1/web in c2 with these workloads, under its federated host.
fn destination(sites: &[(&Site, &str)]) -> String {
    let workloads = sites
        .iter()
        .map(|(site, version)| (site.address(), *version));
    web_in_c2(&workloads.collect::<Vec<_>>(), true)
}

#[test]
fn scenarios_71_and_72_a_federated_host_routes_to_workloads_of_its_cluster() {
    let world = World::new();
    let (one, two) = (Site::new("P1"), Site::new("P2"));
    let turns = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: global}\n\
                 spec: {host: web.ns1.svc.c2.global, trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN}}}\n";
    let more = format!("{}---\n{turns}", destination(&[(&one, "v1"), (&two, "v2")]));
    let counts = world.run(Setup {
        host: "web.ns1.svc.c2.global",
        more: &more,
        rule: "",
        policy: "{lbType: Locality}",
        arguments: IN_MESH_A,
        ..Setup::default()
    });
    assert_shares(&counts, &[("P1", 500), ("P2", 500)]);
}

#[test]
fn port_of_workloads_is_found_by_name_or_by_number() {
    let world = World::new();
    let (one, two) = (Site::new("P1"), Site::new("P2"));
    let [first, second] = [&one, &two].map(|site| site.address().port());
    let workload = format!("{{port: {first}, name: http, protocol: TCP}}");
    let both = format!("{workload}, {{port: {second}, name: web, protocol: TCP}}");
    for (target, expected) in [
        (String::new(), "P1"),
        (", targetPortName: http".to_owned(), "P1"),
        (", targetPortName: web".to_owned(), "P2"),
        (format!(", targetPortNumber: {first}"), "P1"),
        (format!(", targetPortNumber: {second}"), "P2"),
        (", targetPortName: other".to_owned(), "503"),
        (", targetPortNumber: 80".to_owned(), "503"),
    ] {
        let port = "{port: 80, name: http, protocol: TCP";
        let more = destination(&[(&one, "v1")])
            .replace(port, &format!("{port}{target}"))
            .replace(&workload, &both);
        let proxy = world.proxy(Setup {
            host: "web.ns1.svc.c2.global",
            more: &more,
            rule: "",
            policy: "{lbType: Locality}",
            arguments: IN_MESH_A,
            ..Setup::default()
        });
        let expected = BTreeMap::from([(expected.to_owned(), 10)]);
        assert_eq!(count(&proxy, 10), expected, "{target}");
    }
}

#[test]
fn scenario_71_a_federated_host_is_known_in_the_meshes_that_it_is_federated_to() {
    let site = Site::new("P1");
    let of_c1 = "apiVersion: discovery.mesh.gloo.solo.io/v1\nkind: Destination\nmetadata: {namespace: gloo-mesh, name: own}\n\
                 spec: {mesh: {name: a, namespace: gloo-mesh}, \
                 kubeService: {ref: {name: other, namespace: ns1, clusterName: c1}, ports: [{port: 80}]}}\n\
                 status: {localFqdn: other.ns1.local}\n";
    let plain = destination(&[(&site, "v1")]);
    let with_own = format!("{plain}---\n{of_c1}");
    let run = |more: &str, arguments: &[&str]| {
        let world = World::new();
        let proxy = world.proxy(Setup {
            host: "web.ns1.svc.c2.global",
            more,
            rule: "",
            arguments,
            ..Setup::default()
        });
        count(&proxy, 20)
    };
    let known = BTreeMap::from([("P1".to_owned(), 20)]);
    let unknown = BTreeMap::from([("503".to_owned(), 20)]);
    assert_eq!(run(&plain, IN_MESH_A), known);
    assert_eq!(run(&plain, &["--gloo-mesh", "b.gloo-mesh"]), unknown);
    assert_eq!(run(&plain, &[]), unknown, "in no mesh at all");
    assert_eq!(run(&with_own, &[]), known, "the mesh of its cluster");
    let told = run(&with_own, &["--gloo-mesh", "b.gloo-mesh"]);
    assert_eq!(told, unknown, "what it is told counts first");
    // the cluster that owns it knows it always, and serves it itself
    let own = run(&plain, &["--cluster", "c2"]);
    assert_eq!(own.keys().collect::<Vec<_>>(), ["L1", "L2"]);
}

#[test]
fn a_local_name_is_known_in_its_own_cluster_only() {
    let site = Site::new("P1");
    let more = destination(&[(&site, "v1")]).replace(
        "{appliedFederation:",
        "{localFqdn: web.ns1.local, appliedFederation:",
    );
    let run = |cluster: &str| {
        let world = World::new();
        let proxy = world.proxy(Setup {
            local: 0,
            host: "web.ns1.local",
            more: &more,
            rule: "",
            arguments: &["--cluster", cluster, "--gloo-mesh", "a.gloo-mesh"],
            ..Setup::default()
        });
        count(&proxy, 20)
    };
    assert_eq!(run("c2"), BTreeMap::from([("P1".to_owned(), 20)]));
    assert_eq!(run("c3"), BTreeMap::from([("503".to_owned(), 20)]));
}

#[test]
fn a_destination_of_a_remote_cluster_needs_a_policy() {
    let site = Site::new("P1");
    let more = destination(&[(&site, "v1")]);
    let with = |policy| {
        World::new().run(Setup {
            policy,
            more: &more,
            arguments: IN_MESH_A,
            ..Setup::default()
        })
    };
    assert_shares(&with(""), &[("L1", 500), ("L2", 500)]);
    let c2 = "{lbType: ActiveActive, targets: [{clusterKey: c1, weight: 0}, {clusterKey: c2}]}";
    assert_shares(&with(c2), &[("P1", 1000)]);
}

#[test]
fn destinations_of_one_service_are_merged() {
    let world = World::new();
    let (one, two, other) = (Site::new("P1"), Site::new("P2"), Site::new("P3"));
    let first = destination(&[(&one, "v1")]).replace(
        "ports: [{port: 80, name: http, protocol: TCP}],",
        "region: eu-west, ports: [{port: 80, name: http, protocol: TCP}],",
    );
    let second = destination(&[(&one, "v1"), (&two, "v2")])
        .replace("name: web-c2", "name: web-c2-more")
        .replace("kubeService: {", "kubeService: {region: us-east, ");
    // the younger one of another service has nothing under this host
    let third = destination(&[(&other, "v1")])
        .replace("name: web-c2", "name: web-c3")
        .replace("clusterName: c2", "clusterName: c3");
    let turns = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: global}\n\
                 spec: {host: web.ns1.svc.c2.global, trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN}}}\n";
    let more = documents([first, second, third, turns.to_owned()]);
    let with = |cluster: &'static [&'static str]| {
        world.proxy(Setup {
            local: 0,
            host: "web.ns1.svc.c2.global",
            more: more.trim_start_matches("---\n"),
            rule: "",
            arguments: cluster,
            ..Setup::default()
        })
    };
    let proxy = with(IN_MESH_A);
    assert_shares(&count(&proxy, RUN), &[("P1", 500), ("P2", 500)]);
    let clusters = proxy.page("/clusters");
    assert!(clusters.contains("eu-west"), "{clusters}");
    assert!(
        !clusters.contains("us-east"),
        "the oldest says where: {clusters}"
    );
    let log = proxy.has_logged("X306");
    assert_eq!(log.matches("X306").count(), 1, "{log}");
    // in the local cluster, too, which knows of no other endpoint
    let own = with(&["--cluster", "c2"]);
    assert_shares(&count(&own, RUN), &[("P1", 500), ("P2", 500)]);
}

/// Returns an external service at a host, with these endpoints for its port.
fn external(host: &str, sites: &[&Site]) -> String {
    let endpoints: Vec<String> = sites
        .iter()
        .map(|site| {
            let at = site.address();
            format!("{{address: {}, ports: {{web: {}}}}}", at.ip(), at.port())
        })
        .collect();
    format!(
        "apiVersion: discovery.mesh.gloo.solo.io/v1\nkind: Destination\nmetadata: {{namespace: gloo-mesh, name: ext}}\n\
         spec: {{externalService: {{name: ext, hosts: [{host}], ports: [{{number: 80, name: web, protocol: HTTP}}], \
         endpoints: [{}]}}}}\n",
        endpoints.join(", ")
    )
}

#[test]
fn scenario_76_endpoints_of_an_external_service_use_their_own_ports() {
    let world = World::new();
    let (one, two) = (Site::new("E1"), Site::new("E2"));
    let turns = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: ext}\n\
                 spec: {host: api.ext.com, trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN}}}\n";
    let more = documents([external("api.ext.com", &[&one, &two]), turns.to_owned()]);
    let counts = world.run(Setup {
        host: "api.ext.com",
        more: more.trim_start_matches("---\n"),
        ..Setup::default()
    });
    assert_shares(&counts, &[("E1", 500), ("E2", 500)]);
}

#[test]
fn scenario_77_a_local_service_keeps_its_host() {
    let world = World::new();
    let other = Site::new("E1");
    let proxy = world.proxy(Setup {
        more: &external("web.ns1.svc.cluster.local", &[&other]),
        ..Setup::default()
    });
    assert_shares(&count(&proxy, RUN), &[("L1", 500), ("L2", 500)]);
    proxy.has_logged("X301");
}
