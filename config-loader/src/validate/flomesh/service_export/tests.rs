use std::sync::Arc;

use super::braced;
use crate::resource::core::ConditionStatus;
use crate::resource::flomesh::{Algorithm, PathType, ServiceAccount, ServiceExport};
use crate::validate::testing;

/// Returns a ServiceExport with the spec `spec`, from line 5 on.
fn around(spec: &str) -> String {
    let spec = spec.replace('\n', "\n  ");
    format!(
        "apiVersion: flomesh.io/v1alpha1\nkind: ServiceExport\nmetadata: {{name: web}}\nspec:\n  {spec}\n"
    )
}

/// Returns a ServiceExport with one rule, and `rest` from line 6 on.
fn with_rule(rest: &str) -> String {
    around(&format!(
        "rules: [{{portNumber: 80, path: /web, pathType: Prefix}}]\n{rest}"
    ))
}

fn export(yaml: &str) -> Arc<ServiceExport> {
    let (set, found) = testing::load(yaml);
    assert_eq!(found, Vec::<String>::new());
    let object = set
        .service_exports
        .values()
        .next()
        .expect("the export is good");
    Arc::clone(&object.spec)
}

#[test]
fn every_field_of_an_export_is_read() {
    let yaml = with_rule(
        "pathRewrite: {from: '^/web/(.*)', to: '/$1x'}
sessionSticky: true
loadBalancer: HashingLoadBalancer
targetClusters: [a/b/c/d]
serviceAccountName: '*'",
    ) + "status:\n  conditions:\n  - {type: Valid, status: 'True', reason: Success, message: fine, lastTransitionTime: \
         2024-01-01T00:00:00Z, observedGeneration: 2}\n";
    let export = export(&yaml);
    let rule = &export.rules[0];
    assert_eq!(
        (rule.port, &*rule.path, rule.path_type, rule.line.0),
        (80, "/web", PathType::Prefix, 4)
    );
    let rewrite = export.path_rewrite.as_ref().expect("a rewrite");
    let rewritten = rewrite
        .from
        .regex
        .replace(b"/web/a/b", rewrite.to.as_bytes());
    assert_eq!(&*rewritten, b"/a/bx");
    assert!(export.session_sticky);
    assert_eq!(export.algorithm, Algorithm::Hashing);
    assert_eq!(export.target_clusters[0].name(), "d");
    assert_eq!(export.service_account, Some(ServiceAccount::Any));
    let condition = &export.conditions[0];
    assert_eq!(
        (condition.status, condition.observed_generation),
        (ConditionStatus::True, Some(2))
    );
}

#[test]
fn both_spellings_of_an_algorithm_are_accepted() {
    for (name, algorithm) in [
        ("RoundRobinLoadBalancer", Algorithm::RoundRobin),
        ("round-robin", Algorithm::RoundRobin),
        ("HashingLoadBalancer", Algorithm::Hashing),
        ("hashing", Algorithm::Hashing),
        ("LeastWorkLoadBalancer", Algorithm::LeastWork),
        ("least-work", Algorithm::LeastWork),
        ("''", Algorithm::RoundRobin),
    ] {
        assert_eq!(
            export(&with_rule(&format!("loadBalancer: {name}"))).algorithm,
            algorithm
        );
    }
}

#[test]
fn rewrite_groups_are_translated() {
    for (to, expected) in [
        ("/", "/"),
        ("/$1", "/${1}"),
        ("/$1x", "/${1}x"),
        ("/${1}x", "/${1}x"),
        ("/$12/$3", "/${12}/${3}"),
        ("/$a", "/$$a"),
        ("/${a}", "/$${a}"),
        ("/$$1", "/$$1"),
        ("/$", "/$$"),
    ] {
        assert_eq!(braced(to), expected);
    }
}

#[test]
fn rules_are_checked() {
    testing::check(
        around,
        &[
            (
                "sessionSticky: true",
                &["E SX001 4 spec.rules: Required value: at least one rule is required"],
            ),
            (
                "rules: []",
                &["E SX001 5 spec.rules: Required value: at least one rule is required"],
            ),
            (
                "rules:\n- {path: /, pathType: Exact}",
                &["E SX001 6 spec.rules[0].portNumber: Required value"],
            ),
            (
                "rules:\n- {portNumber: 0, path: /, pathType: Exact}",
                &[
                    "E CM016 6 spec.rules[0].portNumber: Invalid value: 0: must be between 1 and 65535, inclusive",
                ],
            ),
            (
                "rules:\n- {portNumber: 80, pathType: Exact}",
                &["E SX001 6 spec.rules[0].path: Required value"],
            ),
            (
                "rules:\n- {portNumber: 80, path: web, pathType: Exact}",
                &["E SX002 6 spec.rules[0].path: Invalid value: \"web\": must start with '/'"],
            ),
            (
                "rules:\n- {portNumber: 80, path: '/web#a', pathType: Exact}",
                &[
                    "E SX002 6 spec.rules[0].path: Invalid value: \"/web#a\": must not contain '?', '#', spaces or control characters: percent-encode them",
                ],
            ),
            (
                "rules:\n- {portNumber: 80, path: /}",
                &["E SX001 6 spec.rules[0].pathType: Required value"],
            ),
            (
                "rules:\n- {portNumber: 80, path: /, pathType: ImplementationSpecific}",
                &[
                    "E CM017 6 spec.rules[0].pathType: Unsupported value: \"ImplementationSpecific\": supported values: \
                   \"Exact\", \"Prefix\"",
                ],
            ),
            (
                "rules:\n- {portNumber: 80, path: /web, pathType: Prefix}\n- {portNumber: 81, path: /web, pathType: Prefix}",
                &["E SX003 7 spec.rules[1]: Duplicate value: \"Prefix /web\""],
            ),
            (
                "rules:\n- {portNumber: 80, path: /web, pathType: Prefix}\n- {portNumber: 81, path: /web, pathType: Exact}",
                &[],
            ),
        ],
    );
    let yaml = around("{}").replace("spec:\n  {}\n", "");
    assert_eq!(testing::load(&yaml).1, ["E SX001 1 spec: Required value"]);
}

#[test]
fn the_rest_is_checked() {
    testing::check(
        with_rule,
        &[
            (
                "loadBalancer: Random",
                &[
                    "E CM017 6 spec.loadBalancer: Unsupported value: \"Random\": supported values: \"HashingLoadBalancer\", \
                   \"LeastWorkLoadBalancer\", \"RoundRobinLoadBalancer\"",
                ],
            ),
            (
                "pathRewrite: {from: '(', to: /}",
                &[
                    "E SX004 6 spec.pathRewrite.from: Invalid value: \"(\": invalid regular expression: `(` is not closed; \
                   add `)`, or write `\\(` for the character",
                ],
            ),
            (
                "pathRewrite: {from: '(?=a)', to: /}",
                &[
                    "E SX004 6 spec.pathRewrite.from: Invalid value: \"(?=a)\": invalid regular expression: look-around is not supported",
                ],
            ),
            (
                "pathRewrite: {from: '^/a'}",
                &["W SX006 6 spec.pathRewrite: the rewrite has no effect without `to`"],
            ),
            (
                "pathRewrite: {to: /}",
                &["W SX006 6 spec.pathRewrite: the rewrite has no effect without `from`"],
            ),
            ("pathRewrite: {}", &[]),
            (
                "pathRewrite: {from: '^/(a)', to: '/$2'}",
                &["W SX007 6 spec.pathRewrite.to: `$2` means nothing: `from` has 1 groups"],
            ),
            ("pathRewrite: {from: '^/(a)', to: '/$1$0'}", &[]),
            (
                "targetClusters: [c1]",
                &[
                    "E SX005 6 spec.targetClusters[0]: Invalid value: \"c1\": must be in the form \
                   <region>/<zone>/<group>/<cluster>",
                ],
            ),
            (
                "serviceAccountName: A b",
                &[
                    "E SX008 6 spec.serviceAccountName: Invalid value: \"A b\": must be `*` or the name of a ServiceAccount",
                ],
            ),
        ],
    );
    let long = "a".repeat(2000);
    let (_, found) = testing::load(&with_rule(&format!("pathRewrite: {{from: {long}, to: /}}")));
    assert!(found[0].ends_with("invalid regular expression: longer than 1024 bytes"));
    let (_, found) = testing::load(
        &(with_rule("{}").replace("  {}\n", "") + "status: {conditions: [{type: A}]}\n"),
    );
    assert_eq!(found.len(), 4);
    assert_eq!(
        found[0],
        "E SX009 6 status.conditions[0].status: Required value"
    );
}
