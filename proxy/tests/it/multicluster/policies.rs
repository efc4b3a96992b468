//! GlobalTrafficPolicy combined with other policies: scenarios 44 to 46, 66, 69, 78, 80, 84, 86, 93.

use super::*;

const HALVES: &str =
    "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: 50}, {clusterKey: c3, weight: 50}]}";

fn setup<'a>(local: usize, policy: &'a str) -> Setup<'a> {
    Setup {
        local,
        policy,
        ..Setup::default()
    }
}

/// Starts a proxy with the mesh of a scenario after text replacements.
fn changed(world: &World, setup: Setup<'_>, changes: &[(&str, &str)]) -> Proxy {
    let start = Start::new();
    let mut text = world.mesh(start.edge(), setup);
    for (from, to) in changes {
        assert!(text.contains(from), "{from} is not in\n{text}");
        text = text.replace(from, to);
    }
    start
        .args(["--cluster", "c1"])
        .file("mesh.yaml", text)
        .start()
}

fn paths(world: &World, proxy: &Proxy, path: &str) -> Vec<String> {
    let mut client = Raw::connect(proxy.edge);
    let request = format!("GET {path} HTTP/1.1\r\nHost: web.example\r\n\r\n");
    (0..4).for_each(|_| assert_eq!(ask(&mut client, &request).status, 200));
    let mut paths = [world.g2.paths(), world.g3.paths()].concat();
    paths.dedup();
    paths
}

#[test]
fn scenario_44_the_newer_of_two_api_groups_is_used() {
    let only = |cluster: &str, group: &str| {
        let spec = format!("{{lbType: ActiveActive, targets: [{{clusterKey: {cluster}}}]}}");
        policy(&spec).replace("flomesh.io/v1alpha1", &format!("{group}/v1alpha1"))
    };
    let newer = only("c2", "multicluster.flomesh.io");
    let older = only("c3", "flomesh.io");
    let both = documents([newer.as_str(), &older]);
    let turned = documents([older.as_str(), &newer]);
    for more in [newer.as_str(), &both, &turned] {
        let world = World::new();
        let counts = world.run(Setup {
            more: more.trim_start_matches("---\n"),
            ..setup(0, "")
        });
        assert_shares(&counts, &[("g2", 1000)]);
    }
}

#[test]
fn scenario_45_the_path_prefix_is_prepended_and_the_host_kept() {
    let world = World::new();
    let slash = [("path: /c2/web", "path: /c2/web/")];
    let only = "{lbType: ActiveActive, targets: [{clusterKey: c2}]}";
    let proxy = changed(&world, setup(0, only), &slash);
    assert_eq!(paths(&world, &proxy, "/a?x=1"), ["/c2/web/a?x=1"]);
    let seen = world.g2.origin.seen();
    assert!(seen.iter().all(|seen| seen.host() == "web.example"));
}

#[test]
fn scenario_46_without_a_prefix_the_path_is_unchanged() {
    let world = World::new();
    let bare = [("path: /c2/web", "path: ''"), ("path: /c3/web", "path: /")];
    let proxy = changed(&world, setup(0, HALVES), &bare);
    assert_eq!(paths(&world, &proxy, "/a?x=1"), ["/a?x=1"]);
}

#[test]
fn scenario_66_unexposed_ports_stay_local() {
    let world = World::new();
    let remote = Site::new("P1");
    let both = |text: String, at: SocketAddr| {
        let port = format!("{{name: http, port: {}}}", at.port());
        text.replace(&port, &format!("{port}, {}", port.replace("http", "alt")))
    };
    let exposed = "apiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterService\n\
                   metadata: {namespace: ns1, name: web}\n\
                   spec: {types: [CrossCluster], ports: [{name: http, port: 80}]}\n";
    let slices = [
        both(slice(0, "", world.l1.address()), world.l1.address()),
        both(slice(0, "c2", remote.address()), remote.address()),
        exposed.to_owned(),
    ];
    let more = documents(slices);
    let with_more = Setup {
        more: more.trim_start_matches("---\n"),
        ..setup(0, "")
    };
    let two = "{ports: [{name: http, port: 80}, {name: alt, port: 8080}]}";
    let ports = ("{ports: [{name: http, port: 80}]}", two);
    let proxy = changed(&world, with_more, &[ports]);
    assert_shares(&count(&proxy, RUN), &[("L1", 500), ("P1", 500)]);
    let other = ("port: {number: 80}", "port: {number: 8080}");
    let proxy = changed(&world, with_more, &[ports, other]);
    assert_shares(&count(&proxy, RUN), &[("L1", 1000)]);
}

#[test]
fn scenario_69_an_edge_gateway_uses_every_provider() {
    let world = World::new();
    let exposed = "apiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterService\n\
                   metadata: {namespace: ns1, name: web}\n\
                   spec: {types: [LoadBalancer], consumerClusters: [{name: c7}]}\n";
    let counts = world.run(Setup {
        more: exposed,
        ..setup(2, "{lbType: ActiveActive}")
    });
    let thirds: &[(&str, usize)] = &[("L1", 167), ("L2", 167), ("g2", 333), ("g3", 333)];
    assert_shares(&counts, thirds);
}

/// The client uses its sidecar as an HTTP proxy, by the short name.
#[test]
fn scenario_69_a_sidecar_uses_its_own_cluster_only() {
    let world = World::new();
    let exposed = |kind: &str| {
        format!(
            "apiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterService\n\
             metadata: {{namespace: ns1, name: web}}\nspec: {{types: [{kind}]}}\n"
        )
    };
    let thirds: &[(&str, usize)] = &[("L1", 167), ("L2", 167), ("g2", 333), ("g3", 333)];
    for (kind, shares) in [
        ("LoadBalancer", &[("L1", 500), ("L2", 500)][..]),
        ("CrossCluster", thirds),
    ] {
        let start = Start::new();
        let listener = start.edge();
        let more = exposed(kind);
        let mesh = Setup {
            more: &more,
            ..setup(2, "{lbType: ActiveActive}")
        };
        let proxy = start
            .args(["--cluster", "c1", "--mode", "sidecar", "--namespace", "ns1"])
            .args(["--outbound-listener", "off", "--inbound-listener", "off"])
            .args(["--http-proxy-listener", &listener.to_string()])
            .file("mesh.yaml", world.mesh(listener, mesh))
            .start();
        let request = "GET http://web/ HTTP/1.1\r\nHost: web\r\n\r\n";
        assert_shares(&count_of(&proxy, RUN, request), shares);
    }
}

#[test]
fn scenario_78_route_weights_apply_before_cluster_weights() {
    let world = World::new();
    let canary = Site::new("canary");
    let at = canary.address();
    let entry = format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: canary}}\n\
         spec: {{hosts: [canary.example], resolution: STATIC, ports: [{{number: 80, name: http, protocol: HTTP}}], \
         endpoints: [{{address: {}, ports: {{http: {}}}}}]}}\n",
        at.ip(),
        at.port()
    );
    let split = (
        "route: [{destination: {host: web.ns1.svc.cluster.local, port: {number: 80}}}]",
        "route: [{weight: 90, destination: {host: web.ns1.svc.cluster.local, port: {number: 80}}}, \
         {weight: 10, destination: {host: canary.example}}]",
    );
    let with_canary = Setup {
        more: &entry,
        ..setup(0, HALVES)
    };
    let proxy = changed(&world, with_canary, &[split]);
    let shares: &[(&str, usize)] = &[("g2", 450), ("g3", 450), ("canary", 100)];
    assert_shares(&count(&proxy, RUN), shares);
}

#[test]
fn scenario_80_gateways_have_locality_labels_only() {
    let with = |labels: &str| {
        let world = World::new();
        let rule = format!(
            "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{namespace: ns1, name: web}}\n\
             spec: {{host: web, subsets: [{{name: one, labels: {{{labels}}}}}]}}\n"
        );
        let with_rule = Setup {
            rule: "",
            more: &rule,
            ..setup(0, "{lbType: ActiveActive, targets: [{clusterKey: c2}]}")
        };
        let subset = (
            "port: {number: 80}}}]",
            "port: {number: 80}, subset: one}}]",
        );
        let proxy = changed(&world, with_rule, &[subset]);
        let counts = count(&proxy, RUN);
        (counts, proxy.logged("/")["response_code_details"].clone())
    };
    let (counts, details) = with("version: v1");
    assert_shares(&counts, &[("503", 1000)]);
    assert_eq!(details, "no_healthy_upstream{subset_empty}");
    let (counts, _) = with("topology.istio.io/cluster: c2");
    assert_shares(&counts, &[("g2", 1000)]);
}

#[test]
fn scenario_84_tcp_ports_exclude_gateways_with_a_path_prefix() {
    let world = World::new();
    let opaque = ("{name: http, port", "{name: tcp, port");
    let proxy = changed(&world, setup(2, "{lbType: ActiveActive}"), &[opaque]);
    assert_shares(&count(&proxy, RUN), &[("L1", 500), ("L2", 500)]);
}

#[test]
fn scenario_86_a_port_is_served_only_by_clusters_that_have_it() {
    let world = World::new();
    let at = world.g3.address();
    let alt = format!(
        "spec: {{ports: [{{name: alt, port: 8080, endpoints: [{{clusterKey: default/default/default/c3, \
         target: {{host: '', ip: {}, port: {}, path: /c3/web}}}}]}}, {{name: http, port: 80, endpoints: [",
        at.ip(),
        at.port()
    );
    let import = ("spec: {ports: [{name: http, port: 80, endpoints: [", &*alt);
    let other = ("port: {number: 80}", "port: {number: 8080}");
    let proxy = changed(&world, setup(0, HALVES), &[import, other]);
    assert_shares(&count(&proxy, RUN), &[("g3", 1000)]);
}

#[test]
fn scenario_93_an_import_address_routes_to_its_service() {
    let shares = "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: 80}, {clusterKey: c3, weight: 20}]}";
    let ports = "spec: {ports: [{name: http, port: 80, endpoints: [";
    let with = |more: &str| ports.replacen("spec: {", &format!("spec: {{{more}, "), 1);
    let own_host = "hosts: [web.ns1.svc.cluster.local]\n  gateways: [edge]\n  http";
    let counts = |import: &str| {
        let world = World::new();
        let changes = [
            (ports, import),
            ("hosts: ['*']\n  gateways: [edge]\n  http", own_host),
        ];
        let proxy = changed(&world, setup(0, shares), &changes);
        count_of(&proxy, RUN, "GET / HTTP/1.1\r\nHost: 10.96.9.9\r\n\r\n")
    };
    let counted = counts(&with("ips: [10.96.9.9]"));
    assert_shares(&counted, &[("g2", 800), ("g3", 200)]);
    let counted = counts(&with("type: Headless, ips: [10.96.9.9]"));
    assert_shares(&counted, &[("404", 1000)]);
}
