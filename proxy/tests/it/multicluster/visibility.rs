//! Visibility of endpoints between clusters: scenarios 61 to 69.

use super::*;

fn exposed(spec: &str) -> String {
    format!(
        "apiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterService\n\
         metadata: {{namespace: ns1, name: web}}\nspec: {spec}\n"
    )
}

/// Runs the local cluster with two workloads, and c2 with three workloads that are reached directly.
fn run(spec: &str, setup: Setup<'_>) -> BTreeMap<String, usize> {
    let world = World::new();
    let remote = ["P1", "P2", "P3"].map(Site::new);
    let mut more = vec![exposed(spec)];
    for (number, site) in remote.iter().enumerate() {
        more.push(slice(number, "c2", site.address()));
    }
    let more = documents(more);
    world.run(Setup {
        more: more.trim_start_matches("---\n"),
        ..setup
    })
}

#[test]
fn scenarios_61_to_63_and_68_only_providers_serve_and_only_consumers_use() {
    let only_c2 =
        "{types: [CrossCluster], providerClusters: [{name: c2}], consumerClusters: [{name: c1}]}";
    let thirds: &[(&str, usize)] = &[("P1", 333), ("P2", 333), ("P3", 333)];
    assert_shares(&run(only_c2, Setup::default()), thirds);
    let karmada = Setup {
        arguments: &["--local-when-not-provider"],
        ..Setup::default()
    };
    let fifths: &[(&str, usize)] = &[
        ("L1", 200),
        ("L2", 200),
        ("P1", 200),
        ("P2", 200),
        ("P3", 200),
    ];
    assert_shares(&run(only_c2, karmada), fifths);
    assert_shares(&run("{types: [CrossCluster]}", Setup::default()), fifths);
    let deprecated = "{types: [CrossCluster], serviceProvisionClusters: [c2]}";
    assert_shares(&run(deprecated, Setup::default()), thirds);
}

#[test]
fn older_consumer_fields_apply_without_the_newer_ones() {
    let used: &[&str] = &["L1", "L2", "P1", "P2", "P3"];
    let own: &[&str] = &["L1", "L2"];
    for (consumers, expected) in [
        ("serviceConsumptionClusters: [c1]", used),
        ("serviceConsumptionClusters: [c2]", own),
        ("range: {clusterNames: [c2, c1]}", used),
        ("range: {clusterNames: [c2]}", own),
        (
            "serviceConsumptionClusters: [c1], range: {clusterNames: [c2]}",
            used,
        ),
        (
            "serviceConsumptionClusters: [c2], range: {clusterNames: [c1]}",
            own,
        ),
        (
            "consumerClusters: [{name: c1}], serviceConsumptionClusters: [c2]",
            used,
        ),
        (
            "consumerClusters: [{name: c2}], range: {clusterNames: [c1]}",
            own,
        ),
    ] {
        let counts = run(
            &format!("{{types: [CrossCluster], {consumers}}}"),
            Setup::default(),
        );
        assert!(counts.keys().eq(expected), "{consumers}: {counts:?}");
    }
}

#[test]
fn scenarios_64_and_65_a_policy_never_adds_clusters() {
    let not_us = "{types: [CrossCluster], consumerClusters: [{name: c2}]}";
    let half = Setup {
        policy: "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: 50}]}",
        ..Setup::default()
    };
    assert_shares(&run(not_us, half), &[("L1", 500), ("L2", 500)]);
    let without_local = Setup { local: 0, ..half };
    assert_shares(&run(not_us, without_local), &[("503", 1000)]);
    let cluster_set = Setup {
        host: "web.ns1.svc.clusterset.local",
        ..half
    };
    assert_shares(&run(not_us, cluster_set), &[("503", 1000)]);
}

#[test]
fn scenario_67_a_policy_selects_among_the_providers() {
    let world = World::new();
    let both = "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: 50}, {clusterKey: c3, weight: 50}]}";
    let counts = world.run(Setup {
        local: 0,
        policy: both,
        more: &exposed("{types: [CrossCluster], providerClusters: [{name: c2}]}"),
        ..Setup::default()
    });
    assert_shares(&counts, &[("g2", 1000)]);
}

#[test]
fn scenario_70_changed_types_apply_after_the_object_is_recreated() {
    let world = World::new();
    let remote = Site::new("P1");
    let proxy = world.proxy(Setup {
        local: 1,
        more: &slice(0, "c2", remote.address()),
        ..Setup::default()
    });
    let turns = |names: &[&str]| {
        let counts = count(&proxy, 20);
        counts.keys().eq(names)
    };
    // a gateway may use all providers with LoadBalancer; with CrossCluster it has to be among the consumers
    let not_us = |kind: &str| {
        exposed(&format!(
            "{{types: [{kind}], consumerClusters: [{{name: c2}}]}}"
        ))
    };
    proxy.write("exposed.yaml", not_us("CrossCluster"));
    eventually("it is exposed to c2", || turns(&["L1"]));
    proxy.write("exposed.yaml", not_us("LoadBalancer"));
    let told = "MCS010 spec.types: Invalid value: [\"LoadBalancer\"]: MultiClusterService types are immutable";
    eventually("the change is refused", || proxy.stderr().contains(told));
    assert!(turns(&["L1"]));
    let kind = [("kind", "MultiClusterService")];
    eventually("it is counted", || {
        proxy.metric("strait_config_resources_rejected", &kind) > 0.0
    });
    let page = proxy.page("/");
    assert!(page.contains("types are immutable"), "{page}");
    proxy.remove("exposed.yaml");
    eventually("nothing is exposed or hidden", || turns(&["L1", "P1"]));
    proxy.write("exposed.yaml", not_us("CrossCluster"));
    eventually("it is exposed to c2 again", || turns(&["L1"]));
    proxy.remove("exposed.yaml");
    eventually("it is gone", || turns(&["L1", "P1"]));
    proxy.write("exposed.yaml", not_us("LoadBalancer"));
    eventually("it is taken", || {
        proxy.metric("strait_config_resources_rejected", &kind) == 0.0
    });
    assert!(turns(&["L1", "P1"]));
}
