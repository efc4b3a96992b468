//! HTTPRoute of the Gateway API with a service of several clusters as its backend.

use super::*;

const IMPORT: &str = "{group: flomesh.io, kind: ServiceImport, name: web, port: 80}";

/// Starts a gateway in c1 with a route to these backends, workloads of the local cluster, and further documents.
fn routed(world: &World, backends: &str, local: &[&str], more: &[String]) -> Proxy {
    let start = Start::new();
    let edge = start.edge();
    let (ip, port) = (edge.ip(), edge.port());
    let object = |kind: &str, spec: &str| {
        format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: {kind}\nmetadata: {{name: web, namespace: ns1}}\nspec: {spec}\n"
        )
    };
    let listener = format!("{{name: http, protocol: HTTP, port: {port}}}");
    let mut mesh = vec![
        object(
            "Gateway",
            &format!(
                "{{gatewayClassName: strait, addresses: [{{value: {ip}}}], listeners: [{listener}]}}"
            ),
        ),
        object(
            "HTTPRoute",
            &format!("{{parentRefs: [{{name: web}}], rules: [{{backendRefs: [{backends}]}}]}}"),
        ),
        world.import(),
    ];
    let sites = world.sites(local);
    let slices = sites.iter().enumerate();
    mesh.extend(slices.map(|(number, site)| slice(number, "", site.address())));
    mesh.extend(more.iter().cloned());
    start
        .args(["--cluster", "c1"])
        .file("mesh.yaml", documents(&mesh))
        .start()
}

fn service() -> String {
    "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: web}\n\
     spec: {ports: [{name: http, port: 80}]}\n"
        .to_owned()
}

fn destination_rule(policy: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\n\
         metadata: {{namespace: ns1, name: web}}\nspec: {{host: web, trafficPolicy: {policy}}}\n"
    )
}

#[test]
fn global_traffic_policy_applies_to_backends_of_an_http_route() {
    let world = World::new();
    let policy = policy(
        "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: 80}, {clusterKey: c3, weight: 20}]}",
    );
    let proxy = routed(&world, IMPORT, &[], &[policy]);
    assert_shares(&count(&proxy, RUN), &[("g2", 800), ("g3", 200)]);
}

#[test]
fn service_of_a_route_fails_over_to_other_clusters() {
    let world = World::new();
    let spec = "{lbType: FailOver, targets: [{clusterKey: c2}, {clusterKey: c3}]}";
    let more = [service(), policy(spec)];
    let backend = "{name: web, port: 80}";
    let proxy = routed(&world, backend, &["L1"], &more);
    assert_shares(&count(&proxy, RUN), &[("L1", 1000)]);
    let proxy = routed(&world, backend, &[], &more);
    assert_shares(&count(&proxy, RUN), &[("g2", 500), ("g3", 500)]);
}

#[test]
fn service_and_the_import_of_the_same_name_share_by_weight() {
    let world = World::new();
    let import = IMPORT.replace('}', ", weight: 10}");
    let backends = format!("{{name: web, port: 80, weight: 90}}, {import}");
    let proxy = routed(&world, &backends, &["L1"], &[service()]);
    let counts = count(&proxy, RUN);
    let of = |name: &str| counts.get(name).copied().unwrap_or_default();
    assert_eq!(of("L1") + of("g2") + of("g3"), RUN, "{counts:?}");
    assert!(of("L1") >= 900 - TOLERANCE, "{counts:?}");
}

#[test]
fn destination_rule_ejects_and_orders_endpoints_of_a_route() {
    let world = World::new();
    let more = [service(), destination_rule(EJECTS_AT_ONCE)];
    let proxy = routed(&world, "{name: web, port: 80}", &["L1", "L2"], &more);
    assert_shares(&count(&proxy, RUN), &[("L1", 500), ("L2", 500)]);
    eject(&proxy, &[&world.l1]);
    assert_shares(&count(&proxy, RUN), &[("L2", 1000)]);
}
