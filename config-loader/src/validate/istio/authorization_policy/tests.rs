use traffic::authz::{Attribute, Values};
use traffic::route::{HeaderKey, PathNormalization};

use crate::resource::istio::authorization_policy::{Action, PolicyMode};
use crate::validate::istio::testing::{check_of, load};
use crate::{Fleet, LoadOptions};

fn document(spec: &str) -> String {
    named("own", "", spec)
}

fn named(name: &str, annotations: &str, spec: &str) -> String {
    format!(
        "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\n\
         metadata: {{name: {name}, namespace: ns, annotations: {{{annotations}}}}}\nspec: {spec}\n"
    )
}

/// Returns a policy with one rule that has this source, operation and condition.
fn source(fields: &str) -> String {
    format!("{{action: DENY, rules: [{{from: [{{source: {{{fields}}}}}]}}]}}")
}

fn operation(fields: &str) -> String {
    format!("{{action: DENY, rules: [{{to: [{{operation: {{{fields}}}}}]}}]}}")
}

fn condition(fields: &str) -> String {
    format!("{{action: DENY, rules: [{{when: [{{{fields}}}]}}]}}")
}

#[test]
fn shapes_are_checked() {
    for (spec, expected) in [
        ("{}", vec!["W AZ105 4"]),
        ("{rules: []}", vec!["W AZ105 4"]),
        ("{rules: [{}]}", vec![]),
        ("{action: AUDIT}", vec![]),
        ("{action: DENY}", vec!["E AZ002 4"]),
        ("{action: DENY, rules: []}", vec!["E AZ002 4"]),
        ("{action: deny, rules: [{}]}", vec!["E CM017 4"]),
        ("{action: CUSTOM, rules: [{}]}", vec!["E AZ004 4"]),
        ("{action: CUSTOM, provider: {name: a}, rules: [{}]}", vec![]),
        ("{action: CUSTOM, provider: {name: a}}", vec!["E AZ002 4"]),
        ("{provider: {name: a}, rules: [{}]}", vec!["E AZ005 4"]),
        ("{rules: [null]}", vec!["E CM018 4"]),
        ("{rules: [{from: []}]}", vec!["E AZ001 4"]),
        ("{rules: [{to: []}]}", vec!["E AZ001 4"]),
        ("{rules: [{when: []}]}", vec![]),
        ("{rules: [{from: [{}]}]}", vec!["E AZ001 4"]),
        ("{rules: [{from: [{source: {}}]}]}", vec!["E AZ001 4"]),
        ("{rules: [{to: [{operation: {}}]}]}", vec!["E AZ001 4"]),
        (
            "{rules: [{to: [{operation: {paths: []}}]}]}",
            vec!["E AZ001 4"],
        ),
        ("{rules: [{form: []}]}", vec!["E CM021 4"]),
        (
            "{selector: {matchLabels: {app: a}}, targetRef: {kind: Service, name: a}, rules: [{}]}",
            vec!["E AZ020 4", "W AZ102 4"],
        ),
        (
            "{targetRefs: [{kind: Gateway, group: gateway.networking.k8s.io, name: a}], rules: [{}]}",
            vec!["W AZ102 1"],
        ),
        (
            "{targetRefs: [{kind: Gateway, group: gateway.networking.k8s.io, name: a, namespace: b}], rules: [{}]}",
            vec!["W AZ102 4"],
        ),
        (
            "{targetRefs: [{kind: Pod, name: a}], rules: [{}]}",
            vec!["E AZ021 4"],
        ),
    ] {
        check_of(&document(spec), &expected);
    }
    check_of(&named("deny-all", "", "{}"), &[]);
    let many = |what: &str, count: usize| vec![what; count].join(", ");
    let rules = |count| format!("{{rules: [{}]}}", many("{}", count));
    check_of(&document(&rules(512)), &[]);
    check_of(&document(&rules(513)), &["E AZ003 4"]);
    let sources = |count| {
        let sources = many("{source: {principals: ['*']}}", count);
        format!("{{rules: [{{from: [{sources}]}}]}}")
    };
    check_of(&document(&sources(512)), &[]);
    check_of(&document(&sources(513)), &["E AZ003 4"]);
}

#[test]
fn values_are_checked() {
    for (spec, expected) in [
        (source("principals: [cluster.local/ns/a/sa/b]"), vec![]),
        (source("principals: ['']"), vec!["E AZ013 4"]),
        (
            source("principals: ['spiffe://a/ns/b/sa/c']"),
            vec!["W AZ108 4"],
        ),
        (source("principals: [a/b]"), vec!["W AZ108 4"]),
        (source("principals: ['*/sa/b', '*']"), vec![]),
        (
            source("principals: [cluster.local/ns/A/sa/b]"),
            vec!["W AZ108 4"],
        ),
        (source("principals: ['CLUSTER.local/*']"), vec!["W AZ108 4"]),
        (
            operation("hosts: ['a.test', 'a.test:80', 'a.test.', '[::1]', '[::1]:80', 'a.test:*']"),
            vec![],
        ),
        (
            operation("hosts: ['a..test', 'a.test:http', 'http://a.test']"),
            vec!["W AZ112 4", "W AZ112 4", "W AZ112 4"],
        ),
        (source("principals: ['*b*']"), vec!["W AZ016 4"]),
        (source("namespaces: ['a*b*c']"), vec![]),
        (source("serviceAccounts: [a, b/c]"), vec![]),
        (source("serviceAccounts: ['a/*']"), vec!["E AZ014 4"]),
        (source("serviceAccounts: [a/b/c]"), vec!["E AZ014 4"]),
        (
            source("serviceAccounts: [a], principals: ['*']"),
            vec!["E AZ006 4"],
        ),
        (
            source("notServiceAccounts: [a], namespaces: ['*']"),
            vec!["E AZ006 4"],
        ),
        (source("trustDomains: ['a*', '*b', '*']"), vec![]),
        (source("trustDomains: ['a*b']"), vec!["E AZ014 4"]),
        (source("trustDomains: [a/b]"), vec!["E AZ014 4"]),
        (source("ipBlocks: [10.0.0.0/8, '::1', 10.1.2.3]"), vec![]),
        (source("ipBlocks: [10.0.0.1/8]"), vec!["W AZ131 4"]),
        (source("remoteIpBlocks: [10.0.0.0/33]"), vec!["E AZ011 4"]),
        (operation("hosts: [a.test, '*.b.test']"), vec![]),
        (operation("ports: ['80', '0080', '0', '65535']"), vec![]),
        (operation("ports: ['65536']"), vec!["E AZ012 4"]),
        (operation("ports: ['+80']"), vec!["E AZ012 4"]),
        (operation("methods: [GET]"), vec![]),
        (operation("methods: [get]"), vec!["W AZ113 4"]),
        (
            operation(
                "paths: [/a, /a*, '*.txt', '*', '/a/{*}/b', '/c/{**}', '/f/{**}/', '/f/{**}/a']",
            ),
            vec![],
        ),
        (operation("paths: [a]"), vec!["W AZ110 4"]),
        (operation("paths: [/a%2Fb]"), vec![]),
        (operation("paths: ['/x?y']"), vec!["W AZ110 4"]),
        (operation("paths: ['/x/{*}.txt']"), vec!["E AZ015 4"]),
        (operation("paths: ['/{**}/a/{*}']"), vec!["E AZ015 4"]),
        (operation("paths: ['/*/{*}']"), vec!["E AZ015 4"]),
        (operation("paths: ['/a//{*}']"), vec!["E AZ015 4"]),
        (operation("paths: ['{*}']"), vec!["E AZ015 4"]),
        (condition("key: source.ip, values: [10.0.0.0/8]"), vec![]),
        (condition("key: source.ip"), vec!["E AZ008 4"]),
        (condition("values: [a]"), vec!["E AZ008 4"]),
        (
            condition("key: source.ipp, values: [10.0.0.0/8]"),
            vec!["E AZ009 4"],
        ),
        (
            condition("key: destination.user, values: [a]"),
            vec!["E AZ009 4"],
        ),
        (
            condition("key: 'request.headers[x-a]', values: [a]"),
            vec![],
        ),
        (
            condition("key: 'request.headers[:port]', values: [a]"),
            vec!["E AZ010 4"],
        ),
        (
            condition("key: 'request.headers[x a]', values: [a]"),
            vec!["E AZ010 4"],
        ),
        (
            condition("key: request.headers, values: [a]"),
            vec!["E AZ010 4"],
        ),
        (
            condition("key: 'request.headers[:path]', values: [a]"),
            vec!["W AZ115 4"],
        ),
        (
            condition("key: 'request.auth.claims[a][b.c]', values: [a]"),
            vec![],
        ),
        (
            condition("key: 'request.auth.claims[a]b]', values: [a]"),
            vec!["E AZ010 4"],
        ),
        (
            condition("key: 'experimental.envoy.filters.a[b]', notValues: [a]"),
            vec!["W AZ130 4"],
        ),
    ] {
        check_of(&document(&spec), &expected);
    }
    let custom = |rule: &str| format!("{{action: CUSTOM, provider: {{name: a}}, rules: [{rule}]}}");
    for (rule, expected) in [
        ("{from: [{source: {ipBlocks: [10.0.0.1]}}]}", vec![]),
        (
            "{from: [{source: {notNamespaces: [a]}}]}",
            vec!["E AZ007 4"],
        ),
        (
            "{when: [{key: request.auth.principal, values: [a]}]}",
            vec!["E AZ007 4"],
        ),
    ] {
        check_of(&document(&custom(rule)), &expected);
    }
}

#[test]
fn every_field_of_a_policy_is_read() {
    let (set, found) = load(&named(
        "own",
        "istio.io/dry-run: 'true'",
        "{selector: {matchLabels: {app: a}}, action: CUSTOM, provider: {name: p}, rules: [{\
         from: [{source: {ipBlocks: ['::ffff:10.0.0.0/104'], notIpBlocks: [10.0.0.1]}}],\
         to: [{operation: {ports: ['080']}}, {operation: {notPaths: [/a]}}],\
         when: [{key: 'request.headers[X-A]', values: [a], notValues: [b]}]}]}",
    ));
    assert!(found.is_empty(), "{found:#?}");
    let policy = &set
        .authorization_policies
        .values()
        .next()
        .expect("it is good")
        .spec;
    assert_eq!(policy.scope.selector["app"], "a");
    assert_eq!(policy.action, Action::Custom("p".into()));
    assert_eq!(policy.mode, PolicyMode::DryRun);
    let rule = &policy.rules[0];
    let [source] = &rule.from[0][..] else {
        panic!("one field")
    };
    assert!(
        matches!(&source.values, Some(Values::Networks(all)) if all[0].to_string() == "10.0.0.0/8")
    );
    assert!(source.not_values.is_some());
    assert_eq!(rule.to.len(), 2);
    assert!(matches!(&rule.to[0][0].values, Some(Values::Ports(all)) if all[..] == [80]));
    assert!(rule.to[1][0].values.is_none() && rule.to[1][0].not_values.is_some());
    let header = HeaderKey::parse("x-a").unwrap();
    assert_eq!(rule.when[0].attribute, Attribute::Header(header));
}

#[test]
fn rejected_policy_denies_what_it_selects() {
    let selected = |text: &str| {
        let (set, _) = load(text);
        let policy = set.authorization_policies.values().next()?.spec.clone();
        assert_eq!(
            (policy.mode, &policy.action),
            (PolicyMode::Denying, &Action::Deny)
        );
        Some(
            policy
                .scope
                .selector
                .get("app")
                .cloned()
                .unwrap_or_default(),
        )
    };
    let one = "selector: {matchLabels: {app: a}}";
    for (spec, expected) in [
        (
            format!(
                "{{{one}, action: DENY, rules: [{{to: [{{operation: {{paht: [/admin]}}}}]}}]}}"
            ),
            Some("a"),
        ),
        (format!("{{{one}, action: deny, rules: [{{}}]}}"), Some("a")),
        (format!("{{{one}, action: 5, rules: [{{}}]}}"), Some("a")),
        (format!("{{{one}, action: DENY}}"), Some("a")),
        (
            format!("{{{one}, action: AUDIT, rules: [{{from: []}}]}}"),
            None,
        ),
        (
            "{selector: {matchlabel: {app: a}}, rules: [{}]}".into(),
            Some(""),
        ),
        (
            "{selector: {matchLabels: {app: '*'}}, rules: [{}]}".into(),
            Some(""),
        ),
        (
            "{selector: {matchLabels: {app: a, x: yes}}, rules: [{}]}".into(),
            Some(""),
        ),
        (
            "{selector: {matchLabels: {app: 7}}, rules: [{}]}".into(),
            Some(""),
        ),
        ("{selector: 5, rules: [{}]}".into(), Some("")),
        ("5".into(), Some("")),
    ] {
        assert_eq!(selected(&document(&spec)).as_deref(), expected, "{spec}");
    }
    let unnamed = named("own", "", "{rules: [{}]}");
    for name in ["name: y", "name: 123", "name:", "nam: own"] {
        let text = unnamed.replace("name: own", name);
        assert_eq!(selected(&text).as_deref(), Some(""), "{name}");
    }
    let of_old_version = document("{rules: [{}]}").replace("/v1", "/v1alpha1");
    assert_eq!(selected(&of_old_version).as_deref(), Some(""));
    let dry = named("own", "istio.io/dry-run: 'true'", "{action: DENY}");
    assert_eq!(selected(&dry), None);
    check_of(
        &named("own", "istio.io/dry-run: 'yes'", "{rules: [{}]}"),
        &["W AZ121 3"],
    );
}

#[test]
fn paths_are_checked_by_how_the_proxy_normalizes_them() {
    use PathNormalization::{Base, DecodeAndMergeSlashes, MergeSlashes, None};
    for (field, action, expected) in [
        ("paths: [/a]", "DENY", ["", "", "", "AZ132"]),
        ("notPaths: [/a]", "ALLOW", ["", "", "", "AZ132"]),
        ("paths: [/a]", "ALLOW", [""; 4]),
        ("methods: [GET]", "DENY", [""; 4]),
        ("paths: ['/a//b*']", "ALLOW", ["", "AZ110", "AZ110", ""]),
        ("paths: [/a%2Fb]", "ALLOW", ["", "", "AZ110", ""]),
        ("paths: [/a%5cb]", "ALLOW", ["", "", "AZ110", ""]),
        ("paths: [/a/../b]", "ALLOW", ["AZ110", "AZ110", "AZ110", ""]),
        ("paths: [/%61]", "ALLOW", ["AZ110", "AZ110", "AZ110", ""]),
        ("paths: [a]", "ALLOW", ["AZ110"; 4]),
    ] {
        let rules = format!("rules: [{{to: [{{operation: {{{field}}}}}]}}]");
        let text = document(&format!("{{action: {action}, {rules}}}"));
        let modes = [Base, MergeSlashes, DecodeAndMergeSlashes, None];
        for (path_normalization, expected) in modes.into_iter().zip(expected) {
            let fleet = Fleet {
                path_normalization,
                ..Fleet::default()
            };
            let options = LoadOptions {
                fleet,
                text: Some(("a.yaml".into(), text.clone().into_bytes().into())),
                ..LoadOptions::default()
            };
            let loaded = crate::load_files(&[], options);
            let codes: Vec<&str> = loaded.diagnostics.iter().map(|one| one.code.0).collect();
            assert_eq!(codes.join(" "), expected, "{field} {path_normalization:?}");
        }
    }
}
