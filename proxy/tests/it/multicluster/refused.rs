//! What is written wrong never widens routing: scenarios 35, 38, 39, 42. The texts of the findings have tests of their
//! own, next to the rules.

use super::*;

/// Who answers a hundred requests under this policy.
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
fn scenario_35_a_failover_without_backups_is_not_loaded() {
    let counts = with_policy(2, "{lbType: FailOver}");
    assert_eq!(counts, of(&[("L1", 50), ("L2", 50)]));
    let counts = with_policy(0, "{lbType: FailOver}");
    assert_eq!(counts, of(&[("503", 100)]));
}

#[test]
fn scenario_38_the_target_of_locality_gets_nothing() {
    let spec = "{lbType: Locality, targets: [{clusterKey: c2}]}";
    let counts = with_policy(0, spec);
    assert_eq!(counts, of(&[("503", 100)]));
}

#[test]
fn scenarios_39_and_42_a_policy_with_errors_is_not_loaded() {
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
