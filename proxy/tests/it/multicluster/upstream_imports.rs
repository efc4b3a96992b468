//! ServiceImports of the upstream API (KEP-1645), alone and combined with those of flomesh: endpoints come from slices
//! that name their cluster.

use super::*;

const TOGETHER: &str = "web.ns1.svc.clusterset.local";

/// Returns an import of the upstream API with these fields in its spec.
fn import(spec: &str) -> String {
    format!(
        "apiVersion: multicluster.x-k8s.io/v1alpha1\nkind: ServiceImport\nmetadata: {{namespace: ns1, name: web}}\n\
         spec: {{ports: [{{name: http, port: 80}}], {spec}}}\n"
    )
}

/// DestinationRule for round robin.
const TURNS: &str = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {namespace: ns1, name: web}\n\
    spec: {host: web, trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN}}}\n";

/// Returns a slice as implementations of KEP-1645 copy it from a cluster.
fn copied(cluster: &str, at: SocketAddr) -> String {
    format!(
        "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{namespace: ns1, name: imported-{cluster}, \
         labels: {{multicluster.kubernetes.io/service-name: web, multicluster.kubernetes.io/source-cluster: {cluster}}}}}\n\
         addressType: IPv4\nports: [{{name: http, port: {}}}]\n\
         endpoints: [{{addresses: [{}], hostname: {cluster}-0, conditions: {{ready: true}}}}]\n",
        at.port(),
        at.ip()
    )
}

/// Starts a gateway of c1 that routes everything to `host`, with these documents.
fn proxy_to(host: &str, more: &[String]) -> Proxy {
    let start = Start::new();
    let route = format!(
        "- {{retries: {{attempts: 0}}, route: [{{destination: {{host: {host}, port: {{number: 80}}}}}}]}}"
    );
    let mut all = vec![gateway(&[start.edge()]), routes("all", "['*']", &route)];
    all.push(TURNS.to_owned());
    all.extend(more.iter().cloned());
    start
        .args(["--cluster", "c1"])
        .file("mesh.yaml", documents(all))
        .start()
}

fn counts(all: &[(&str, usize)]) -> BTreeMap<String, usize> {
    all.iter()
        .map(|(who, count)| ((*who).to_owned(), *count))
        .collect()
}

#[test]
fn endpoint_slices_serve_an_upstream_service_import() {
    let world = World::new();
    let mut documents = vec![
        copied("c2", world.g2.address()),
        copied("c3", world.g3.address()),
        import("type: ClusterSetIP"),
    ];
    let both = counts(&[("g2", 20), ("g3", 20)]);
    assert_eq!(count(&proxy_to(TOGETHER, &documents), 40), both);
    let one = counts(&[("g2", 40)]);
    documents[2] = import("type: ClusterSetIP, sessionAffinity: ClientIP");
    let proxy = proxy_to(TOGETHER, &documents);
    let found = count(&proxy, 40);
    assert!(
        [one, counts(&[("g3", 40)])].contains(&found),
        "a client stays: {found:?}"
    );
    documents[2] = import("type: Headless");
    let single = format!("c3-0.c3.{TOGETHER}");
    let proxy = proxy_to(&single, &documents);
    assert_eq!(count(&proxy, 20), counts(&[("g3", 20)]));
    documents.truncate(2);
    let proxy = proxy_to(TOGETHER, &documents);
    assert_eq!(count(&proxy, 20), counts(&[("503", 20)]));
}

#[test]
fn both_kinds_of_service_import_serve_one_service() {
    // of c2 the workloads, and its gateway is not needed; of c3 the gateway
    let rows = [
        (false, true, [("g2", 500), ("g3", 500)], "/c2/web/"),
        (true, true, [("g2", 500), ("g3", 500)], "/"),
        (true, false, [("g2", 1000), ("g3", 0)], "/"),
    ];
    for (upstream, flomesh, shares, path) in rows {
        let world = World::new();
        let mut documents = Vec::new();
        if upstream {
            documents.push(copied("c2", world.g2.address()));
            documents.push(import("type: ClusterSetIP"));
        }
        if flomesh {
            documents.push(world.import());
        }
        let proxy = proxy_to(TOGETHER, &documents);
        assert_shares(&count(&proxy, RUN), &shares);
        let paths = world.g2.paths();
        assert!(paths.iter().all(|seen| seen == path), "{path} {paths:?}");
    }
}

#[test]
fn an_address_of_an_upstream_service_import_routes_to_its_service() {
    let world = World::new();
    let start = Start::new();
    let host = "web.ns1.svc.cluster.local";
    let route =
        format!("- {{route: [{{destination: {{host: {TOGETHER}, port: {{number: 80}}}}}}]}}");
    let text = documents([
        gateway(&[start.edge()]),
        routes("web", &format!("[{host}]"), &route),
        TURNS.to_owned(),
        copied("c2", world.g2.address()),
        import("type: ClusterSetIP, ips: [240.1.2.3, 'fd00::7']"),
        world
            .import()
            .replacen("spec: {", "spec: {ips: [240.9.9.9], ", 1),
    ]);
    let proxy = start
        .args(["--cluster", "c1"])
        .file("mesh.yaml", text)
        .start();
    for address in ["240.1.2.3", "[fd00::7]", "240.9.9.9"] {
        let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n");
        let found = count_of(&proxy, 20, &request);
        assert_eq!(found, counts(&[("g2", 10), ("g3", 10)]), "{address}");
    }
}
