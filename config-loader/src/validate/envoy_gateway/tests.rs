use crate::resource::envoy_gateway::backend_traffic_policy::{Target, TargetKind};
use crate::span::Line;
use crate::validate::testing;

const TARGET: &str = "targetRefs: [{group: networking.istio.io, kind: Gateway, name: edge}]";

fn document(spec: &str) -> String {
    format!(
        "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\nmetadata: {{name: own, namespace: ns}}\n\
         spec:\n  {spec}\n"
    )
}

/// Returns severity and code of the diagnostics about the policy itself.
fn found(spec: &str) -> Vec<String> {
    let (_, found) = testing::load(&document(spec));
    let own = found.into_iter().filter(|found| !found.contains("RL102"));
    own.map(|found| found.split(' ').take(2).collect::<Vec<_>>().join(" "))
        .collect()
}

#[test]
fn targets_are_checked() {
    let istio = "group: networking.istio.io";
    for (spec, expected) in [
        (TARGET.to_owned(), vec![]),
        (
            format!("targetRef: {{{istio}, kind: Gateway, name: a}}"),
            vec![],
        ),
        ("targetRefs: [{kind: Service, name: a}]".to_owned(), vec![]),
        (
            format!("targetRefs: [{{{istio}, kind: VirtualService, name: a, sectionName: b}}]"),
            vec![],
        ),
        ("{}".to_owned(), vec!["E RL002"]),
        ("targetRefs: []".to_owned(), vec!["E RL002"]),
        (
            format!("targetRef: {{{istio}, kind: Gateway, name: a}}\n  {TARGET}"),
            vec!["E RL002"],
        ),
        (
            format!("targetRefs: [{{{istio}, kind: Gateway}}]"),
            vec!["E RL001"],
        ),
        (
            format!("targetRefs: [{{{istio}, kind: Sidecar, name: a}}]"),
            vec!["E RL001"],
        ),
        (
            "targetRefs: [{kind: Gateway, name: a}]".to_owned(),
            vec!["E RL001"],
        ),
        (
            format!("targetRefs: [{{{istio}, kind: Gateway, name: a, sectionName: b}}]"),
            vec!["E RL001"],
        ),
        (
            "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: a}]".to_owned(),
            vec!["W RL101"],
        ),
        ("targetSelectors: [{kind: Gateway}]".to_owned(), vec![]),
        (format!("{TARGET}\n  retry: {{numRetries: 2}}"), vec![]),
        (format!("{TARGET}\n  retries: 1"), vec!["E CM021"]),
    ] {
        assert_eq!(found(&spec), expected, "{spec}");
    }
}

#[test]
fn rules_are_checked() {
    let rule =
        |fields: &str| format!("{TARGET}\n  rateLimit: {{local: {{rules: [{{{fields}}}]}}}}");
    let limit = "limit: {requests: 10, unit: Second}";
    let one = |selector: &str| rule(&format!("clientSelectors: [{{{selector}}}], {limit}"));
    let header = |fields: &str| one(&format!("headers: [{{{fields}}}]"));
    let many = vec![format!("{{{limit}}}"); 17].join(", ");
    for (spec, expected) in [
        (rule(limit), vec![]),
        (rule("limit: {requests: 1, unit: Week}"), vec!["W RL104"]),
        (
            format!(
                "{TARGET}\n  rateLimit: {{global: {{rules: [{{limit: {{requests: 1, unit: Year}}}}]}}}}"
            ),
            vec![],
        ),
        (rule("{}".trim_matches(['{', '}'])), vec!["E RL003"]),
        (rule("limit: {requests: 1}"), vec!["E RL003"]),
        (rule("limit: {requests: -1, unit: Second}"), vec!["E RL003"]),
        (
            rule("limit: {requests: 1, unit: Fortnight}"),
            vec!["E CM017"],
        ),
        (
            rule(&format!(
                "{limit}, cost: {{request: {{from: Number, number: 10}}}}"
            )),
            vec![],
        ),
        (
            rule(&format!(
                "{limit}, cost: {{request: {{from: Number, number: 11}}}}"
            )),
            vec!["W RL108"],
        ),
        (
            rule(&format!(
                "{limit}, cost: {{request: {{from: Number, number: -1}}}}"
            )),
            vec!["E RL010"],
        ),
        (
            rule(&format!("{limit}, cost: {{request: {{from: Header}}}}")),
            vec!["E CM017"],
        ),
        (one(""), vec!["E RL004"]),
        (one("methods: [{value: GET}]"), vec![]),
        (one("methods: []"), vec!["E RL004"]),
        (one("methods: [{}]"), vec!["E RL012"]),
        (one("methods: [{value: G T}]"), vec!["E RL012"]),
        (one("methods: [{value: get}]"), vec!["W RL109"]),
        (one("methods: [{value: PROPFIND}]"), vec![]),
        (header("name: x-a, value: a"), vec![]),
        (
            header("name: x-a, type: RegularExpression, value: 'a+'"),
            vec![],
        ),
        (
            header("name: x-a, type: RegularExpression, value: '(?=a)'"),
            vec!["E RL011"],
        ),
        (
            header("name: x-a, type: RegularExpression, value: ''"),
            vec!["E RL011"],
        ),
        (header("name: x-a"), vec!["E RL005"]),
        (header("name: 'x a', value: a"), vec!["E RL005"]),
        (
            header("name: x-a, type: Distinct, value: a"),
            vec!["E RL005"],
        ),
        (
            header("name: x-a, type: Distinct, invert: true"),
            vec!["E RL005"],
        ),
        (header("name: x-a, type: Prefix, value: a"), vec!["E CM017"]),
        (one("queryParams: [{name: q, value: a}]"), vec![]),
        (one("queryParams: [{value: a}]"), vec!["E RL005"]),
        (one("path: {value: /a}"), vec![]),
        (one("path: {}"), vec![]),
        (one("path: {value: a}"), vec!["E RL007"]),
        (one("path: {value: '/a?b'}"), vec!["E RL007"]),
        (one("path: {value: /a%2Fb}"), vec![]),
        (one("path: {value: /%61}"), vec!["W RL109"]),
        (one("path: {type: Exact, value: /a/../b}"), vec!["W RL109"]),
        (one("path: {type: Exact, value: /ä}"), vec!["W RL109"]),
        (one("path: {value: /a%00}"), vec!["W RL109"]),
        (
            one("path: {type: RegularExpression, value: '/%61'}"),
            vec![],
        ),
        (
            one("path: {type: RegularExpression, value: '['}"),
            vec!["E RL011"],
        ),
        (one("sourceCIDR: {value: 10.0.0.0/8}"), vec![]),
        (one("sourceCIDR: {value: 10.0.0.1}"), vec![]),
        (one("sourceCIDR: {value: ten}"), vec!["E RL006"]),
        (one("sourceCIDR: {type: Distinct}"), vec!["E RL006"]),
        (
            one("sourceCIDR: {value: 1.0.0.0/8}}, {sourceCIDR: {value: 2.0.0.0/8}"),
            vec!["E RL006"],
        ),
        (
            format!("{TARGET}\n  rateLimit: {{local: {{rules: [{many}]}}}}"),
            vec!["E RL008"],
        ),
    ] {
        assert_eq!(found(&spec), expected, "{spec}");
    }
}

#[test]
fn limit_of_bodies_is_a_quantity() {
    for (limit, expected) in [
        ("10", Some(10)),
        ("'10'", Some(10)),
        ("1k", Some(1000)),
        ("2Ki", Some(2048)),
        ("3M", Some(3_000_000)),
        ("1Mi", Some(1 << 20)),
        ("1Gi", Some(1 << 30)),
        ("0", None),
        ("-1", None),
        ("Mi", None),
        ("1.5Mi", None),
        ("1mi", None),
        ("1K", None),
        ("99999Ei", None),
        ("true", None),
    ] {
        let text = document(&format!("{TARGET}\n  requestBuffer: {{limit: {limit}}}"));
        let (set, found) = testing::load(&text);
        let policies = set.backend_traffic_policies.values().next();
        let bytes = policies
            .and_then(|policy| policy.spec.body_max)
            .map(|(bytes, _)| bytes);
        assert_eq!(bytes, expected, "{limit} {found:?}");
    }
    assert_eq!(
        found(&format!("{TARGET}\n  requestBuffer: {{}}")),
        ["E RL009"]
    );
}

#[test]
fn target_is_read() {
    let spec =
        "targetRefs: [{group: networking.istio.io, kind: VirtualService, name: a, sectionName: b}]";
    let (set, _) = testing::load(&document(spec));
    let policy = set
        .backend_traffic_policies
        .values()
        .next()
        .expect("it is good");
    let expected = Target {
        kind: TargetKind::VirtualService,
        name: "a".into(),
        section: Some("b".into()),
        line: Line(4),
    };
    assert_eq!(policy.spec.targets, [expected]);
}
