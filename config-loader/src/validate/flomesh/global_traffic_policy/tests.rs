use crate::resource::flomesh::{ClusterBalancing, GlobalTrafficPolicy};
use crate::validate::testing;

/// Returns a GlobalTrafficPolicy with the spec `spec`, from line 5 on.
fn around(spec: &str) -> String {
    let spec = spec.replace('\n', "\n  ");
    format!(
        "apiVersion: flomesh.io/v1alpha1\nkind: GlobalTrafficPolicy\nmetadata: {{name: web}}\nspec:\n  {spec}\n"
    )
}

fn policy(yaml: &str) -> GlobalTrafficPolicy {
    let (set, found) = testing::load(yaml);
    assert_eq!(found, Vec::<String>::new());
    let object = set
        .global_traffic_policies
        .values()
        .next()
        .expect("the policy is good");
    GlobalTrafficPolicy::clone(&object.spec)
}

#[test]
fn every_field_of_a_policy_is_read() {
    let yaml = around(
        "lbType: ActiveActive\ntargets:\n- {clusterKey: a/b/c/d, weight: 0}\n- {clusterKey: a/b/c/e}",
    );
    for yaml in [
        yaml.clone() + "status: {}\n",
        yaml.clone() + "status: {conditions: []}\n",
        yaml.replace("flomesh.io", "multicluster.flomesh.io"),
    ] {
        let policy = policy(&yaml);
        assert_eq!(policy.balancing, ClusterBalancing::ActiveActive);
        let targets: Vec<(&str, u32, u32)> = policy
            .targets
            .iter()
            .map(|target| (target.cluster.name(), target.weight, target.line.0))
            .collect();
        assert_eq!(targets, [("d", 0, 6), ("e", 100, 7)]);
    }
}

#[test]
fn scenario_42_all_errors_of_a_policy_are_reported_at_once() {
    let targets = "[{clusterKey: c2}, {clusterKey: a/b/c/d, weight: -1}, {clusterKey: a/b/c/d}]";
    let (set, found) = testing::load(&around(&format!("lbType: foo\ntargets: {targets}")));
    assert!(set.global_traffic_policies.is_empty());
    let says = [
        "spec.lbType: Unsupported value: \"foo\": supported values: \"ActiveActive\", \"FailOver\", \"Locality\"",
        "spec.targets[0].clusterKey: Invalid value: \"c2\": must be in the form <region>/<zone>/<group>/<cluster>",
        "spec.targets[1].weight: Invalid value: -1: must be greater than or equal to 0",
        "spec.targets[2].clusterKey: Duplicate value: \"a/b/c/d\"",
    ];
    for text in says {
        let told = found.iter().filter(|found| found.ends_with(text)).count();
        assert_eq!(told, 1, "{text}\n{found:#?}");
    }
    assert_eq!(found.len(), says.len());
}

#[test]
fn locality_is_the_default() {
    for yaml in [around("{}"), around("lbType: ''"), around("lbType: null")] {
        assert_eq!(policy(&yaml).balancing, ClusterBalancing::Locality);
    }
    let head = around("{}").replace("spec:\n  {}\n", "");
    assert_eq!(policy(&head).balancing, ClusterBalancing::Locality);
}

#[test]
fn policies_are_checked() {
    let two = "targets: [{clusterKey: a/b/c/d}, {clusterKey: a/b/c/e}]";
    let cases: &[(&str, &[&str])] = &[
        (
            "lbType: RoundRobin\nTWO",
            &[
                "E CM017 5 spec.lbType: Unsupported value: \"RoundRobin\": supported values: \"ActiveActive\", \
               \"FailOver\", \"Locality\"",
            ],
        ),
        (
            "lbType: Locality\nTWO",
            &[
                "E GTP003 6 spec.targets: Invalid value: 2: Locality keeps traffic in exactly one cluster, at most one \
               target is allowed",
            ],
        ),
        (
            "TWO",
            &[
                "E GTP003 5 spec.targets: Invalid value: 2: Locality keeps traffic in exactly one cluster, at most one \
               target is allowed",
            ],
        ),
        (
            "lbType: Locality\ntargets: [{clusterKey: a/b/c/d}]",
            &[
                "W GTP007 6 spec.targets: the target has no effect: Locality keeps traffic in the local cluster",
            ],
        ),
        ("lbType: ActiveActive\nTWO", &[]),
        ("lbType: ActiveActive", &[]),
        (
            "lbType: FailOver",
            &[
                "E GTP004 4 spec.targets: Required value: at least one backup cluster is required for FailOver",
            ],
        ),
        (
            "lbType: FailOver\ntargets: []",
            &[
                "E GTP004 6 spec.targets: Required value: at least one backup cluster is required for FailOver",
            ],
        ),
        ("lbType: FailOver\ntargets: [{clusterKey: a/b/c/d}]", &[]),
        (
            "lbType: FailOver\ntargets: [{}]",
            &["E GTP001 6 spec.targets[0].clusterKey: Required value"],
        ),
        (
            "lbType: FailOver\ntargets: [{clusterKey: cluster-1}]",
            &[
                "E GTP001 6 spec.targets[0].clusterKey: Invalid value: \"cluster-1\": must be in the form \
               <region>/<zone>/<group>/<cluster>",
            ],
        ),
        (
            "lbType: FailOver\ntargets:\n- {clusterKey: a/b/c/d}\n- {clusterKey: a/b/c/d}",
            &["E GTP002 8 spec.targets[1].clusterKey: Duplicate value: \"a/b/c/d\""],
        ),
        (
            "lbType: FailOver\ntargets:\n- {clusterKey: a/b/c/d}\n- {clusterKey: a/b/c/D}",
            &[],
        ),
        (
            "lbType: ActiveActive\ntargets: [{clusterKey: a/b/c/d, weight: -1}]",
            &[
                "E GTP005 6 spec.targets[0].weight: Invalid value: -1: must be greater than or equal to 0",
            ],
        ),
        (
            "lbType: FailOver\ntargets: [{clusterKey: a/b/c/d, weight: -1}]",
            &[
                "E GTP005 6 spec.targets[0].weight: Invalid value: -1: must be greater than or equal to 0",
            ],
        ),
        (
            "lbType: ActiveActive\ntargets: [{clusterKey: a/b/c/d, weight: 0}]",
            &[],
        ),
        (
            "lbType: ActiveActive\ntargets: [{clusterKey: a/b/c/d, weight: null}]",
            &[],
        ),
        (
            "lbType: ActiveActive\ntargets: [{clusterKey: a/b/c/d, weight: 4294967295}, {clusterKey: a/b/c/e, weight: 1}]",
            &[
                "E GTP006 6 spec.targets: Invalid value: 4294967296: sum of weights must not exceed 4294967295",
            ],
        ),
        (
            "lbType: ActiveActive\ntargets: [{clusterKey: a/b/c/d, weight: 4294967295}]",
            &[],
        ),
        (
            "lbType: ActiveActive\ntargets: [{clusterKey: a/b/c/d, weight: 5000000000}]",
            &[
                "E GTP006 6 spec.targets[0].weight: Invalid value: 5000000000: sum of weights must not exceed 4294967295",
            ],
        ),
        (
            "lbTyp: FailOver",
            &["E CM021 5 spec.lbTyp: unknown field `lbTyp`"],
        ),
    ];
    for (body, expected) in cases {
        testing::check(
            |body| around(&body.replace("TWO", two)),
            &[(body, expected)],
        );
    }
    let (_, found) = testing::load(&around(
        "lbType: Locality\ntargets: [{clusterKey: a/b/c/d, weight: 1}]",
    ));
    assert_eq!(found.len(), 2);
    assert_eq!(
        found[1],
        "W GTP007 6 spec.targets[0].weight: the weight has no effect: Locality keeps traffic in the local cluster"
    );
}

#[test]
fn failover_order_is_reported_as_parsed() {
    let ordered = |balancing: &str, order: &str| {
        let backups = match balancing {
            "Locality" => "",
            _ => ", targets: [{clusterKey: a/b/c/d}]",
        };
        let (set, found) = testing::load(&format!(
            "apiVersion: flomesh.io/v1alpha1\nkind: GlobalTrafficPolicy\nmetadata:\n  name: web\n  annotations:\n    \
             multicluster.flomesh.io/failover-order: {order}\nspec: {{lbType: {balancing}{backups}}}\n"
        ));
        let mut policies = set.global_traffic_policies.values();
        (policies.next().unwrap().spec.is_ordered, found)
    };
    assert_eq!(ordered("FailOver", "ordered"), (true, vec![]));
    let at = "W GTP009 6 metadata.annotations[\"multicluster.flomesh.io/failover-order\"]:";
    for wrong in ["orderd", "Ordered", "random", "\"\""] {
        let (is_ordered, found) = ordered("FailOver", wrong);
        let wrong = wrong.trim_matches('"');
        let expected = format!("{at} {wrong:?} is no order: backups share by weight");
        assert_eq!((is_ordered, found), (false, vec![expected]), "{wrong}");
    }
    for balancing in ["Locality", "ActiveActive"] {
        let (_, found) = ordered(balancing, "ordered");
        let expected = format!(
            "{at} the annotation has no effect: {balancing} has no backups to put in order"
        );
        assert_eq!(found, [expected]);
    }
}
