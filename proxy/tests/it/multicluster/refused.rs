//! Invalid configuration never widens routing: scenarios 35, 38, 39 and 42. The texts of the findings are tested next
//! to the rules.

use super::*;

/// Returns the number of a hundred requests that each site answers under this policy.
fn with_policy(local: usize, spec: &str) -> BTreeMap<String, usize> {
    let world = World::new();
    let proxy = world.proxy(Setup {
        local,
        policy: spec,
        ..Setup::default()
    });
    count(&proxy, 100)
}

fn of(counts: &[(&str, usize)]) -> BTreeMap<String, usize> {
    let counts = counts.iter();
    counts
        .map(|(who, count)| ((*who).to_owned(), *count))
        .collect()
}

#[test]
fn scenario_35_a_failover_policy_without_targets_is_rejected() {
    let counts = with_policy(2, "{lbType: FailOver}");
    assert_eq!(counts, of(&[("L1", 50), ("L2", 50)]));
    let counts = with_policy(0, "{lbType: FailOver}");
    assert_eq!(counts, of(&[("503", 100)]));
}

#[test]
fn scenario_38_targets_of_a_locality_policy_get_no_traffic() {
    let spec = "{lbType: Locality, targets: [{clusterKey: c2}]}";
    let counts = with_policy(0, spec);
    assert_eq!(counts, of(&[("503", 100)]));
}

#[test]
fn scenarios_39_and_42_a_policy_with_errors_is_rejected() {
    for spec in [
        "{lbType: Locality, targets: [{clusterKey: c2}, {clusterKey: c3}]}",
        "{lbType: ActiveActive, targets: [{clusterKey: bare}, {clusterKey: c2}]}",
        "{lbType: ActiveActive, targets: [{clusterKey: c2}, {clusterKey: c2}]}",
        "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: -1}]}",
        "{lbType: foo, targets: [{clusterKey: c2}]}",
    ] {
        let counts = with_policy(0, spec);
        assert_eq!(counts, of(&[("503", 100)]), "{spec}");
    }
}

/// Returns the responses to a hundred requests by answering site, with equal slices of c2 and c3 and these documents.
fn among_slices(world: &World, host: &str, more: &[String]) -> BTreeMap<String, usize> {
    let mut all = vec![
        slice(1, "c2", world.g2.address()),
        slice(2, "c3", world.g3.address()),
    ];
    all.extend(more.iter().cloned());
    let more = documents(all);
    let proxy = world.proxy(Setup {
        host,
        more: more.trim_start_matches("---\n"),
        ..Setup::default()
    });
    count(&proxy, 100)
}

#[test]
fn a_policy_that_was_never_valid_keeps_traffic_local() {
    let world = World::new();
    let exposed = |spec: &str| {
        format!(
            "apiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterService\n\
             metadata: {{namespace: ns1, name: web}}\nspec: {spec}\n"
        )
    };
    let plain = "web.ns1.svc.cluster.local";
    let own = of(&[("L1", 50), ("L2", 50)]);
    let together = among_slices(&world, plain, &[]);
    assert!(
        together.contains_key("g2"),
        "without a policy: {together:?}"
    );
    for refused in [
        policy(
            "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: 0}, {clusterKey: c3, weight: -1}]}",
        ),
        policy("{lbType: Locality, targets: [{clusterKey: c2}, {clusterKey: c3}]}"),
        exposed("{types: [CrossCluster], providerClusters: [{name: C2!}]}"),
        exposed("{types: []}"),
        exposed("{types: [CrossCluster], providerCluster: [{name: c2}]}"),
    ] {
        let counts = among_slices(&world, plain, std::slice::from_ref(&refused));
        assert_eq!(counts, own, "{refused}");
    }
    let refused = [policy(
        "{lbType: Locality, targets: [{clusterKey: c2}, {clusterKey: c3}]}",
    )];
    let counts = among_slices(&world, "web.ns1.svc.clusterset.local", &refused);
    assert_eq!(counts, own);
}
