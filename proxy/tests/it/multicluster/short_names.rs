//! Short names of services: resolution in the local cluster, or in the cluster set.

use super::*;

/// Starts a gateway with a VirtualService in ns1 that routes `hosts` to `destination`.
fn proxy(world: &World, hosts: &str, destination: &str, arguments: &[&str]) -> Proxy {
    let start = Start::new();
    let rules =
        format!("- {{route: [{{destination: {{host: {destination}, port: {{number: 80}}}}}}]}}");
    let service = "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: NAME}\n\
                   spec: {ports: [{name: http, port: 80}]}\n";
    let text = documents([
        gateway(&[start.edge()]),
        routes("web", hosts, &rules)
            .replace("name: web", "name: web, namespace: ns1")
            .replace("gateways: [", "gateways: [default/"),
        world.import(),
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {namespace: ns1, name: web}\n\
         spec: {host: web, trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN}}}\n"
            .to_owned(),
        service.replace("NAME", "web"),
        slice(0, "", world.l1.address()),
        service.replace("NAME", "alone"),
        slice(0, "", world.l2.address())
            .replace("name: web", "name: alone")
            .replace("service-name: web", "service-name: alone"),
    ]);
    start
        .args(["--cluster", "c1"])
        .args(arguments.iter().copied())
        .file("mesh.yaml", text)
        .start()
}

const TOGETHER: [&str; 2] = ["--default-domain", "clusterset.local"];

fn only(who: &str) -> BTreeMap<String, usize> {
    BTreeMap::from([(who.to_owned(), 30)])
}

fn all_clusters() -> BTreeMap<String, usize> {
    ["L1", "g2", "g3"].map(|who| (who.to_owned(), 10)).into()
}

#[test]
fn short_destinations_mean_the_local_cluster_by_default() {
    let world = World::new();
    let rows = [
        ("web", "L1"),
        ("web.ns1", "503"),
        ("web.ns1.svc", "503"),
        ("alone", "L2"),
    ];
    for (destination, who) in rows {
        let own = proxy(&world, "['*']", destination, &[]);
        assert_eq!(count(&own, 30), only(who), "{destination}");
        let own = proxy(
            &world,
            "['*']",
            destination,
            &["--default-domain", "cluster.local"],
        );
        assert_eq!(count(&own, 30), only(who), "{destination}");
    }
    for destination in ["web", "web.ns1", "web.ns1.svc"] {
        let together = proxy(&world, "['*']", destination, &TOGETHER);
        assert_eq!(count(&together, 30), all_clusters(), "{destination}");
    }
    // what is served by the local cluster only stays reachable
    let rows = [("alone", "L2"), ("web.ns1.svc.cluster.local", "L1")];
    for (destination, who) in rows {
        let together = proxy(&world, "['*']", destination, &TOGETHER);
        assert_eq!(count(&together, 30), only(who), "{destination}");
    }
}

#[test]
fn short_request_hosts_mean_all_clusters_with_the_flag() {
    let world = World::new();
    let get = |host: &str| format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let hosts = "[web.ns1.svc.clusterset.local]";
    let near = ["--namespace", "ns1"];
    let own = proxy(&world, hosts, "web.ns1.svc.clusterset.local", &near);
    let together = [&TOGETHER[..], &near].concat();
    let together = proxy(&world, hosts, "web", &together);
    for host in ["web", "web.ns1", "web.ns1.svc", "WEB.ns1:80"] {
        assert_eq!(count_of(&own, 30, &get(host)), only("404"), "{host}");
        let found = count_of(&together, 30, &get(host));
        assert_eq!(found, all_clusters(), "{host}");
    }
    for host in ["web.ns2", "alone", "alone.ns1"] {
        assert_eq!(count_of(&together, 30, &get(host)), only("404"), "{host}");
    }
    // a proxy of another namespace does not know whose `web` is meant
    let elsewhere = proxy(&world, hosts, "web", &TOGETHER);
    assert_eq!(count_of(&elsewhere, 30, &get("web")), only("404"));
    assert_eq!(count_of(&elsewhere, 30, &get("web.ns1")), all_clusters());
}
