//! Clients that stay with their cluster: scenarios 58 to 60. Nothing is remembered: the client's address alone decides, so
//! that the same client finds the same cluster after any time.

use super::*;

const HALVES: &str =
    "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: 50}, {clusterKey: c3, weight: 50}]}";

/// Requests for the host of the cluster set, whose import says this.
fn proxy(world: &World, import: &str, rule: &str) -> Proxy {
    let start = Start::new();
    let setup = Setup {
        local: 0,
        host: "web.ns1.svc.clusterset.local",
        policy: HALVES,
        rule,
        ..Setup::default()
    };
    let sticky = format!("spec: {{{import}, ports: [{{name: http, port: 80, endpoints: [");
    let text = world.mesh(start.edge(), setup).replace(
        "spec: {ports: [{name: http, port: 80, endpoints: [",
        &sticky,
    );
    start
        .args(["--cluster", "c1"])
        .file("mesh.yaml", text)
        .start()
}

const DETECTS: &str =
    "{outlierDetection: {consecutive5xxErrors: 1, interval: 1s, baseEjectionTime: 60s}}";

#[test]
fn scenarios_58_and_59_a_client_stays_with_a_cluster_that_serves() {
    let world = World::new();
    let proxy = proxy(&world, "sessionAffinity: ClientIP", DETECTS);
    let counts = count(&proxy, RUN);
    assert_eq!(counts.len(), 1, "{counts:?}");
    let (home, other) = match counts.contains_key("g2") {
        true => (&world.g2, "g3"),
        false => (&world.g3, "g2"),
    };
    eject(&proxy, &[home]);
    assert_shares(&count(&proxy, RUN), &[(other, 1000)]);
}

#[test]
fn explain_follows_a_key_to_the_cluster_that_it_belongs_to() {
    let world = World::new();
    let proxy = proxy(
        &world,
        "sessionAffinity: None",
        "{loadBalancer: {consistentHash: {httpHeaderName: x-user}}}",
    );
    for user in ["alice", "bob", "carol", "dave", "erin", "frank"] {
        let request = format!("GET / HTTP/1.1\r\nHost: web.example\r\nx-user: {user}\r\n\r\n");
        let counts = count_of(&proxy, 1, &request);
        let site = match counts.contains_key("g2") {
            true => &world.g2,
            false => &world.g3,
        };
        let question = format!(
            "/explain?url=http://web.example:{}/&header=x-user:{user}",
            proxy.edge.port()
        );
        let said = proxy.page(&question);
        let wanted = format!("which leads to {}", site.address());
        assert!(said.contains(&wanted), "{wanted}: {said}");
    }
}

#[test]
fn scenario_60_a_headless_import_has_no_affinity() {
    let world = World::new();
    let import = "type: Headless, sessionAffinity: ClientIP";
    let proxy = proxy(&world, import, "");
    assert_shares(&count(&proxy, RUN), &[("g2", 500), ("g3", 500)]);
    assert!(proxy.stderr().contains("SI012"), "{}", proxy.stderr());
}
