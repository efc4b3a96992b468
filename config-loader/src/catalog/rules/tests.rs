//! Tests of the DestinationRules that apply to a host, also for partly known clients.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::diagnostic::Diagnostics;
use crate::load_bytes;

/// Writes a rule `NAMESPACE/NAME` with this age and additional fields of `spec`.
fn rule(id: &str, age: u8, host: &str, spec: &str) -> String {
    let (namespace, name) = id.split_once('/').unwrap();
    format!(
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\n\
         metadata: {{name: {name}, namespace: {namespace}, creationTimestamp: '20{age:02}-01-01T00:00:00Z'}}\n\
         spec: {{host: '{host}'{spec}}}\n"
    )
}

fn set(documents: &[String]) -> ResourceSet {
    let mut found = Diagnostics::default();
    let set = load_bytes("a.yaml", documents.join("---\n").as_bytes(), &mut found);
    assert!(!found.has_errors(), "{documents:?}");
    set
}

fn index(set: &ResourceSet) -> DestinationRules {
    let mut index = DestinationRules::new(&Arc::from(hostname::DOMAIN));
    index.update(&ResourceSet::default(), set);
    index
}

fn names(rules: &[&Rule]) -> String {
    let names = rules.iter().map(|rule| &*rule.id.name);
    names.collect::<Vec<_>>().join(" ")
}

const WEB: &str = "web.shop.svc.cluster.local";

const SELECTOR: &str = ", workloadSelector: {matchLabels: {app: front}}";

fn of(documents: &[String], namespace: &str, app: &str) -> String {
    let labels = BTreeMap::from([("app".to_owned(), app.to_owned())]);
    let client = Workload {
        namespace,
        labels: &labels,
        root_namespace: "istio-system",
    };
    names(&index(&set(documents)).applying(WEB, "shop", client))
}

#[test]
fn rules_of_the_client_namespace_come_before_those_of_the_service_and_of_the_root() {
    let rules = [
        rule("front/of-client", 3, "*.local", ""),
        rule("shop/of-service", 2, WEB, ""),
        rule("shop/wide", 1, "*.cluster.local", ""),
        rule("istio-system/of-root", 1, WEB, ""),
        rule("istio-system/private", 4, "*.local", ", exportTo: ['.']"),
        rule("other/of-another", 1, WEB, ""),
    ];
    for (namespace, expected) in [
        ("front", "of-client"),
        ("shop", "of-service"),
        ("elsewhere", "of-service"),
        ("istio-system", "private"),
    ] {
        assert_eq!(of(&rules, namespace, "x"), expected, "{namespace}");
    }
    assert_eq!(of(&rules[3..], "elsewhere", "x"), "of-root");
    assert_eq!(of(&rules[5..], "elsewhere", "x"), "");
}

#[test]
fn oldest_rule_is_merged_with_those_that_the_same_clients_see() {
    let rules = [
        rule("shop/c", 3, "web", ""),
        rule("shop/a", 2, "web", ""),
        rule("shop/b", 1, "web", ", exportTo: [shop]"),
        rule("shop/d", 4, "web", SELECTOR),
    ];
    assert_eq!(of(&rules, "elsewhere", "x"), "a c");
    assert_eq!(of(&rules, "shop", "x"), "b");
    assert_eq!(of(&rules, "shop", "front"), "d");
}

#[test]
fn unknown_client_may_get_the_most_specific_rules_of_any_namespace() {
    let rules = [
        rule("front/of-client", 3, "*.local", ""),
        rule("shop/narrow", 2, WEB, SELECTOR),
        rule("shop/middle", 2, "*.svc.cluster.local", ""),
        rule("shop/wide", 1, "*.local", ""),
        rule("istio-system/of-root", 1, "*", ""),
    ];
    let index = index(&set(&rules));
    let may = |namespace, service| {
        let client = PossibleClient {
            namespace,
            root_namespace: "istio-system",
        };
        names(&index.may_apply(WEB, service, client))
    };
    assert_eq!(may(None, Some("shop")), "of-client of-root narrow middle");
    assert_eq!(may(Some("front"), Some("shop")), "of-client");
    assert_eq!(may(Some("shop"), Some("shop")), "narrow middle");
    assert_eq!(may(Some("elsewhere"), Some("shop")), "middle");
    assert_eq!(may(Some("elsewhere"), Some("ops")), "of-root");
}

/// Generates rules in a few namespaces, for hosts that cover each other.
fn documents() -> impl Strategy<Value = Vec<String>> {
    let one = (0..3_usize, 0..3_u8, 0..4_usize, 0..3_usize);
    proptest::collection::vec(one, 0..8).prop_map(|rules| {
        let rules = rules.into_iter().enumerate();
        rules
            .map(|(number, (namespace, age, host, more))| {
                let namespace = ["shop", "front", "istio-system"][namespace];
                let host = [WEB, "*.svc.cluster.local", "*.local", "*"][host];
                let more = ["", ", exportTo: ['.']", SELECTOR][more];
                rule(&format!("{namespace}/r{number}"), age, host, more)
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn rules_that_apply_are_among_those_that_may(
        before in documents(),
        now in documents(),
        namespace in 0..4_usize,
        app in 0..2_usize,
    ) {
        let namespace = ["shop", "front", "istio-system", "elsewhere"][namespace];
        let labels = BTreeMap::from([("app".to_owned(), ["front", "x"][app].to_owned())]);
        let root_namespace = "istio-system";
        let (before, now) = (set(&before), set(&now));
        let mut rules = index(&before);
        rules.update(&before, &now);
        let client = Workload { namespace, labels: &labels, root_namespace };
        let applying = names(&rules.applying(WEB, "shop", client));
        prop_assert_eq!(&applying, &names(&index(&now).applying(WEB, "shop", client)));
        for namespace in [Some(namespace), None] {
            let client = PossibleClient { namespace, root_namespace };
            let may = names(&rules.may_apply(WEB, Some("shop"), client));
            let known: Vec<&str> = may.split(' ').collect();
            prop_assert!(applying.split(' ').all(|rule| rule.is_empty() || known.contains(&rule)), "{applying} {may}");
        }
    }
}
