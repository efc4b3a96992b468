//! Metrics and admin pages of services that several clusters serve.

use super::*;

const HOST: (&str, &str) = ("destination_service", "web.ns1.svc.cluster.local");

const REQUESTS: &str = "istio_requests_total";
const ATTEMPTS: &str = "strait_cluster_attempts_total";
const REPLAYS: &str = "strait_failover_replays_total";
const SHIFTS: &str = "strait_cluster_tier_shifts_total";
const SHARE: &str = "strait_cluster_share";
const AVAILABLE: &str = "strait_cluster_endpoints_available";

const BACKUP: &str = "{lbType: FailOver, targets: [{clusterKey: c2}]}";

/// Returns the value of one series of the service for a cluster.
fn of(proxy: &Proxy, name: &str, cluster: &str) -> f64 {
    proxy.metric(name, &[HOST, ("destination_cluster", cluster)])
}

#[test]
fn requests_and_shares_have_the_destination_cluster_label() {
    let world = World::new();
    let proxy = world.proxy(Setup {
        policy: "{lbType: ActiveActive, targets: [{clusterKey: c1, weight: 50}, {clusterKey: c2, weight: 30}, \
                 {clusterKey: c3, weight: 20}]}",
        ..Setup::default()
    });
    count(&proxy, 100);
    for (cluster, share, endpoints) in [("c1", 50.0, 2.0), ("c2", 30.0, 1.0), ("c3", 20.0, 1.0)] {
        let labels = [
            HOST,
            ("source_cluster", "c1"),
            ("destination_cluster", cluster),
            ("response_code", "200"),
        ];
        assert_eq!(proxy.metric(REQUESTS, &labels), share, "{cluster}");
        let attempts = [HOST, ("destination_cluster", cluster), ("tier", "0")];
        assert_eq!(proxy.metric(ATTEMPTS, &attempts), share, "{cluster}");
        assert_eq!(of(&proxy, SHARE, cluster), share / 100.0, "{cluster}");
        assert_eq!(of(&proxy, AVAILABLE, cluster), endpoints, "{cluster}");
    }
    assert_eq!(
        proxy.metric(SHIFTS, &[HOST]),
        0.0,
        "one tier, and never another"
    );
}

#[test]
fn replay_metrics_have_clusters_and_cause() {
    let world = World::new();
    let proxy = world.proxy(Setup {
        policy: BACKUP,
        ..Setup::default()
    });
    world.l1.answers(503);
    world.l2.answers(503);
    count(&proxy, 50);
    let status = [
        HOST,
        ("from_cluster", "c1"),
        ("to_cluster", "c2"),
        ("reason", "status"),
    ];
    assert_eq!(proxy.metric(REPLAYS, &status), 50.0);
    assert_eq!(
        proxy.metric(REPLAYS, &[]),
        50.0,
        "no others: {}",
        proxy.page("/clusters")
    );
    for (cluster, tier, class) in [("c1", "0", "5xx"), ("c2", "1", "2xx")] {
        let way = [("source_cluster", "c1"), ("destination_cluster", cluster)];
        let attempts = [way[0], way[1], ("tier", tier)];
        assert_eq!(proxy.metric(ATTEMPTS, &attempts), 50.0, "{cluster}");
        let got = [way[0], way[1], ("response_code_class", class)];
        assert_eq!(proxy.metric(ATTEMPTS, &got), 50.0, "{cluster}");
    }
    // clients had their answers from c2, and that is where they count
    let served = [("destination_cluster", "c2"), ("response_code", "200")];
    assert_eq!(proxy.metric(REQUESTS, &served), 50.0);
    // the local cluster is not out: nothing has shifted
    assert_eq!(proxy.metric(SHIFTS, &[]), 0.0);
}

#[test]
fn tier_shift_metrics_have_the_reason() {
    let world = World::new();
    let setup = Setup {
        policy: BACKUP,
        rule: "{loadBalancer: {simple: ROUND_ROBIN}, outlierDetection: {consecutive5xxErrors: 1, interval: 100ms, \
               baseEjectionTime: 100ms, maxEjectionPercent: 100}}",
        ..Setup::default()
    };
    let proxy = world.proxy(setup);
    count(&proxy, 2);
    world.l1.answers(503);
    world.l2.answers(503);
    let because = |reason| proxy.metric(SHIFTS, &[HOST, ("reason", reason)]);
    eventually("requests go to c2 at once", || {
        count(&proxy, 3);
        because("ejected") >= 1.0
    });
    world.l1.answers(200);
    world.l2.answers(200);
    eventually("they come back", || {
        count(&proxy, 1);
        because("recovered") >= because("ejected")
    });
    assert_eq!(because("recovered"), because("ejected"));

    // the local cluster loses its workloads by a change of configuration
    let without = Setup { local: 0, ..setup };
    proxy.write("mesh.yaml", world.mesh(proxy.edge, without));
    eventually("c2 has all", || of(&proxy, SHARE, "c2") == 1.0);
    count(&proxy, 10);
    assert_eq!(because("no_endpoints"), 1.0);
}

#[test]
fn an_ejected_cluster_has_no_share_and_no_available_endpoints() {
    let world = World::new();
    let proxy = world.proxy(Setup {
        local: 0,
        policy: "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: 80}, {clusterKey: c3, weight: 20}]}",
        rule: EJECTS_AT_ONCE,
        ..Setup::default()
    });
    eject(&proxy, &[&world.g2]);
    let shown = |cluster| (of(&proxy, SHARE, cluster), of(&proxy, AVAILABLE, cluster));
    assert_eq!(shown("c2"), (0.0, 0.0));
    assert_eq!(shown("c3"), (1.0, 1.0));
}
