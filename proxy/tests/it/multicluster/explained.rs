//! `explain` on tiers, unavailable endpoints and session affinity.

use super::*;

const BACKUPS: &str = "{lbType: FailOver, targets: [{clusterKey: c2}, {clusterKey: c3}]}";

/// Returns the `/explain` page of the running proxy for a request to web.example.
fn explained(proxy: &Proxy) -> String {
    let port = proxy.edge.port();
    proxy.page(&format!("/explain?url=http://web.example:{port}/"))
}

#[test]
fn explain_shows_which_failures_a_tier_replays_in_the_next() {
    let world = World::new();
    let proxy = world.proxy(Setup {
        local: 1,
        policy: BACKUPS,
        rule: EJECTS_AT_ONCE,
        ..Setup::default()
    });
    let said = explained(&proxy);
    let expected = "if tier 0 fails (no connection or response; 5xx, since GET may be repeated), a request is replayed in \
                    tier 1 (default/default/default/c2, default/default/default/c3), with a body of up to 64 KiB (or --failover-replay-bytes)";
    assert!(said.contains(expected), "{said}");
    // an ejected endpoint takes no replays
    eject(&proxy, &[&world.l1, &world.g2]);
    let said = explained(&proxy);
    assert!(
        said.contains("if tier 1 fails, no request is replayed: it is the last tier"),
        "{said}"
    );
}

#[test]
fn explain_shows_the_outcome_when_all_endpoints_are_ejected() {
    let world = World::new();
    let proxy = world.proxy(Setup {
        local: 1,
        policy: BACKUPS,
        rule: EJECTS_AT_ONCE,
        ..Setup::default()
    });
    assert!(!explained(&proxy).contains("unavailable"));
    eject(&proxy, &[&world.l1, &world.g2, &world.g3]);
    let said = explained(&proxy);
    let expected =
        "unavailable: requests get 503 UH; every endpoint of every cluster is out (all_ejected)";
    assert!(said.contains(expected), "{said}");
    let outcome = "outcome       no healthy upstream: all requests get 503 UH; every endpoint of every cluster is out (all_ejected)\n";
    assert!(said.contains(outcome), "{said}");
}

#[test]
fn explain_names_the_resource_that_hides_remote_clusters() {
    let world = World::new();
    let exposed = |spec: &str| {
        format!(
            "apiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterService\n\
             metadata: {{namespace: ns1, name: web}}\nspec: {spec}\n"
        )
    };
    let said = |spec: &str| {
        let proxy = world.proxy(Setup {
            host: "web.ns1.svc.clusterset.local",
            more: &exposed(spec),
            ..Setup::default()
        });
        explained(&proxy)
    };
    let not_us = "{types: [CrossCluster], consumerClusters: [{name: c2}]}";
    let expected = "no healthy upstream: all requests get 503 NC; there is no web.ns1.svc.clusterset.local for this proxy: \
                    MultiClusterService/ns1/web is for its consumerClusters only, and this is none of them";
    let refused = said(not_us);
    assert!(refused.contains(expected), "{refused}");
    let refused = said("{types: [Unknown]}");
    assert!(
        refused.contains("MultiClusterService/ns1/web is rejected"),
        "{refused}"
    );
    let us = not_us.replace("c2", "c1");
    assert!(!said(&us).contains("no healthy upstream"));
}

#[test]
fn explain_shows_that_remote_requests_stay_local() {
    let world = World::new();
    let sent = |local: usize| {
        let proxy = world.proxy(Setup {
            local,
            policy: "{lbType: ActiveActive}",
            ..Setup::default()
        });
        let port = proxy.edge.port();
        let header = "x-strait-from-cluster:default/default/default/c2";
        let asked = format!("/explain?url=http://web.example:{port}/&header={header}");
        proxy.page(&asked)
    };
    let said = sent(1);
    assert!(
        said.contains("sent by a remote cluster (x-strait-from-cluster)"),
        "{said}"
    );
    let own = format!("100%  {}", world.l1.address());
    assert!(said.contains(&own), "{said}");
    assert!(!said.contains("unavailable"), "{said}");
    let said = sent(0);
    assert!(said.contains("unavailable: requests get 508"), "{said}");
}
