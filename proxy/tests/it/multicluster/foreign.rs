//! Destinations of other clusters and of hosts outside: scenarios 71 and 72 as far as workloads are reached directly, 76, 77.

use super::*;

/// A Destination of ns1/web in c2 with these workloads, which its federated host stands for.
fn destination(sites: &[(&Site, &str)]) -> String {
    let subsets: Vec<String> = sites
        .iter()
        .map(|(site, version)| {
            let at = site.address();
            format!(
                "{{endpoints: [{{ipAddress: {}, labels: {{version: {version}}}}}], \
                 ports: [{{port: {}, name: http, protocol: TCP}}]}}",
                at.ip(),
                at.port()
            )
        })
        .collect();
    format!(
        "apiVersion: discovery.mesh.gloo.solo.io/v1\nkind: Destination\nmetadata: {{namespace: gloo-mesh, name: web-c2}}\n\
         spec: {{kubeService: {{ref: {{name: web, namespace: ns1, clusterName: c2}}, \
         ports: [{{port: 80, name: http, protocol: TCP}}], endpointSubsets: [{}]}}}}\n\
         status: {{appliedFederation: {{federatedHostname: web.ns1.svc.c2.global, flatNetwork: true}}}}\n",
        subsets.join(", ")
    )
}

#[test]
fn scenarios_71_and_72_a_federated_host_leads_to_the_workloads_of_its_cluster() {
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
        ..Setup::default()
    });
    assert_shares(&counts, &[("P1", 500), ("P2", 500)]);
}

#[test]
fn a_destination_of_another_cluster_waits_for_a_policy() {
    let site = Site::new("P1");
    let more = destination(&[(&site, "v1")]);
    let with = |policy| {
        World::new().run(Setup {
            policy,
            more: &more,
            ..Setup::default()
        })
    };
    assert_shares(&with(""), &[("L1", 500), ("L2", 500)]);
    let c2 = "{lbType: ActiveActive, targets: [{clusterKey: c1, weight: 0}, {clusterKey: c2}]}";
    assert_shares(&with(c2), &[("P1", 1000)]);
}

/// An external service at a host, with these endpoints for its port.
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
fn scenario_76_endpoints_of_an_external_service_share_by_their_own_ports() {
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
fn scenario_77_a_service_of_the_cluster_keeps_its_host() {
    let world = World::new();
    let other = Site::new("E1");
    let proxy = world.proxy(Setup {
        more: &external("web.ns1.svc.cluster.local", &[&other]),
        ..Setup::default()
    });
    assert_shares(&count(&proxy, RUN), &[("L1", 500), ("L2", 500)]);
    assert!(proxy.stderr().contains("X301"), "{}", proxy.stderr());
}
