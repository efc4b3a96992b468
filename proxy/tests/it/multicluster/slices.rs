//! EndpointSlices copied from other clusters: their source cluster, and the hosts that they serve.

use super::*;

/// Starts a gateway of c1 that routes everything to `host`, with these documents.
fn proxy_to(host: &str, more: &[String], arguments: &[&str]) -> Proxy {
    let start = Start::new();
    let route = format!(
        "- {{retries: {{attempts: 0}}, route: [{{destination: {{host: {host}, port: {{number: 80}}}}}}]}}"
    );
    let mut all = vec![gateway(&[start.edge()]), routes("all", "['*']", &route)];
    all.extend(more.iter().cloned());
    start
        .args(["--cluster", "c1"])
        .args(arguments.iter().copied())
        .file("mesh.yaml", documents(all))
        .start()
}

const NATIVE: &str = "web.ns1.svc.cluster.local";
const TOGETHER: &str = "web.ns1.svc.clusterset.local";

fn service() -> String {
    "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: web}\nspec: {ports: [{name: http, port: 80}]}\n"
        .to_owned()
}

/// Returns an import whose endpoints come from slices.
fn import(kind: &str) -> String {
    format!(
        "apiVersion: flomesh.io/v1alpha1\nkind: ServiceImport\nmetadata: {{namespace: ns1, name: web}}\n\
         spec: {{type: {kind}, ports: [{{name: http, port: 80, endpoints: []}}]}}\n"
    )
}

fn all(who: &str) -> BTreeMap<String, usize> {
    BTreeMap::from([(who.to_owned(), 20)])
}

#[test]
fn slices_of_other_clusters_serve_an_import_without_a_service() {
    let world = World::new();
    // what has no mark would be the local cluster's, which has no such service
    let slices = [
        slice(0, "c2", world.g2.address()),
        slice(1, "", world.l1.address()),
    ];
    for kind in ["ClusterSetIP", "Headless"] {
        for host in [TOGETHER, NATIVE] {
            let more = [&slices[..], &[import(kind)]].concat();
            let proxy = proxy_to(host, &more, &[]);
            assert_eq!(count(&proxy, 20), all("g2"), "{kind} {host}");
        }
    }
}

#[test]
fn consumer_clusters_have_the_clusterset_host() {
    let world = World::new();
    let exposed = |spec: &str| {
        format!(
            "apiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterService\n\
             metadata: {{namespace: ns1, name: web}}\nspec: {spec}\n"
        )
    };
    let of_c2 = slice(0, "c2", world.g2.address());
    let rows = [
        (
            "{types: [CrossCluster], providerClusters: [{name: c2}]}",
            "g2",
        ),
        (
            "{types: [CrossCluster], consumerClusters: [{name: c9}]}",
            "503",
        ),
    ];
    for (spec, who) in rows {
        let more = [service(), of_c2.clone(), exposed(spec)];
        let proxy = proxy_to(TOGETHER, &more, &[]);
        assert_eq!(count(&proxy, 20), all(who), "{spec}");
    }
}

#[test]
fn endpoints_of_slices_are_in_the_network_of_their_cluster() {
    let world = World::new();
    let rule = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {namespace: ns1, name: web}\n\
        spec: {host: web, subsets: [{name: near, labels: {topology.istio.io/network: n1}}, \
        {name: far, labels: {topology.istio.io/network: n2}}]}\n";
    let told = "clusters: [{key: default/default/default/c2, network: n2}]\n";
    for (subset, who) in [("near", "L1"), ("far", "g2")] {
        let start = Start::new();
        let route = format!("- {{route: [{{destination: {{host: {NATIVE}, subset: {subset}}}}}]}}");
        let text = documents([
            gateway(&[start.edge()]),
            routes("all", "['*']", &route),
            service(),
            slice(0, "", world.l1.address()),
            slice(0, "c2", world.g2.address()),
            rule.to_owned(),
        ]);
        let directory = tempfile::tempdir().unwrap();
        let clusters = directory.path().join("clusters.yaml");
        std::fs::write(&clusters, told).unwrap();
        let proxy = start
            .args(["--cluster", "c1", "--network", "n1", "--clusters"])
            .args([clusters.to_str().unwrap()])
            .file("mesh.yaml", text)
            .start();
        assert_eq!(count(&proxy, 20), all(who), "{subset}");
    }
}

#[test]
fn log_has_the_cluster_of_the_endpoint() {
    let world = World::new();
    let proxy = world.proxy(Setup {
        local: 1,
        policy: "{lbType: ActiveActive, targets: [{clusterKey: c2}]}",
        ..Setup::default()
    });
    count(&proxy, 2);
    eventually("both are logged", || proxy.access_log().len() == 2);
    let name = "outbound|80||web.ns1.svc.cluster.local";
    let log = proxy.access_log();
    let mut named: Vec<&str> = log
        .iter()
        .map(|line| line["upstream_cluster"].as_str().unwrap())
        .collect();
    named.sort_unstable();
    assert_eq!(named, [name, &format!("{name}@default/default/default/c2")]);
}

#[test]
fn endpoints_of_two_clusters_at_one_address_belong_to_both() {
    let world = World::new();
    let turns = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {namespace: ns1, name: web}\n\
        spec: {host: web, trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN}}}\n";
    let more = [
        service(),
        turns.to_owned(),
        slice(0, "", world.l1.address()),
        // copied twice by one cluster, it is one
        slice(0, "c2", world.g2.address()),
        slice(1, "c2", world.g2.address()),
        slice(0, "c3", world.g2.address()),
    ];
    let shares = [("L1", 10), ("g2", 20)].map(|(who, count)| (who.to_owned(), count));
    assert_eq!(count(&proxy_to(NATIVE, &more, &[]), 30), shares.into());
}
