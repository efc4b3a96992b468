//! Outcomes differ if, and only if, `compare` says so: random pairs of configurations, asked with random requests.

use std::fmt::Write;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::report::RuleName;
use super::{Side, compare, effect};
use crate::compile::{Inputs, Survey, compile};
use crate::exchange::settings::ExchangeSettings;
use crate::explain::Question;
use crate::identity::Identity;
use crate::runtime::clock;
use crate::snapshot::Snapshot;
use crate::telemetry::StatsRegistry;
use crate::tls::Store;
use traffic::registry::Registry;

/// Number of pairs of configurations, and of requests for each pair.
const PAIRS: u64 = 200;
const REQUESTS: usize = 50;

const PATHS: [&str; 5] = ["/", "/a", "/a/b", "/ab", "/c"];
const METHODS: [&str; 3] = ["GET", "POST", "DELETE"];
const VALUES: [&str; 3] = ["x", "xy", "z"];

const GATEWAY: &str = "
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: default}
spec:
  selector: {app: edge}
  servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*']}]
";

/// A rule that answers with a status.
fn rule(rng: &mut SmallRng) -> String {
    let mut conditions = Vec::new();
    let kind = ["exact", "prefix"][rng.random_range(0..2)];
    if rng.random_bool(0.8) {
        let path = PATHS[rng.random_range(0..PATHS.len())];
        conditions.push(format!("uri: {{{kind}: {path}}}"));
    }
    if rng.random_bool(0.3) {
        let method = METHODS[rng.random_range(0..METHODS.len())];
        conditions.push(format!("method: {{exact: {method}}}"));
    }
    for field in ["headers", "withoutHeaders", "queryParams"] {
        if rng.random_bool(0.2) {
            let value = VALUES[rng.random_range(0..VALUES.len())];
            let kind = match field {
                "queryParams" => "exact",
                _ => ["exact", "prefix"][rng.random_range(0..2)],
            };
            conditions.push(format!("{field}: {{v: {{{kind}: {value}}}}}"));
        }
    }
    let status = rng.random_range(200..206);
    let matches = match conditions.is_empty() {
        true => String::new(),
        false => format!("match: [{{{}}}], ", conditions.join(", ")),
    };
    format!("{{{matches}directResponse: {{status: {status}}}}}")
}

/// Rules for the hosts of the configuration.
fn configuration(rules: &[(usize, String)]) -> String {
    let mut text = GATEWAY.to_owned();
    for (number, host) in ["a.test", "'*.test'"].iter().enumerate() {
        let own = rules.iter().filter(|(of, _)| *of == number);
        let own: Vec<&str> = own.map(|(_, rule)| rule.as_str()).collect();
        if !own.is_empty() {
            _ = write!(
                text,
                "---\napiVersion: networking.istio.io/v1\nkind: VirtualService\n\
                 metadata: {{name: v{number}, namespace: default}}\n\
                 spec: {{hosts: [{host}], gateways: [edge], http: [{}]}}\n",
                own.join(", ")
            );
        }
    }
    text
}

/// Changes some of the rules.
fn changed(rules: &[(usize, String)], rng: &mut SmallRng) -> Vec<(usize, String)> {
    let mut rules = rules.to_vec();
    for _ in 0..rng.random_range(0..3) {
        let at = rng.random_range(0..=rules.len());
        match rng.random_range(0..3) {
            0 => rules.insert(at, (rng.random_range(0..2), rule(rng))),
            1 if at < rules.len() => _ = rules.remove(at),
            2 if at + 1 < rules.len() => rules.swap(at, at + 1),
            _ => {}
        }
    }
    rules
}

fn question(rng: &mut SmallRng) -> Question {
    let host = ["a.test", "b.test", "other"][rng.random_range(0..3)];
    let path = ["/", "/a", "/a/b", "/ab", "/c", "/a/b/c", "/abc", "/d"][rng.random_range(0..8)];
    let method = ["GET", "POST", "DELETE", "PUT"][rng.random_range(0..4)];
    let values = ["x", "xy", "z", "w"];
    let query = match rng.random_bool(0.3) {
        true => format!("?v={}", values[rng.random_range(0..4)]),
        false => String::new(),
    };
    let url = format!("http://{host}:80{path}{query}");
    let mut question = Question::parse(method, &url).unwrap().outcome_only();
    if rng.random_bool(0.5) {
        let line = format!("v: {}", values[rng.random_range(0..4)]);
        question.header(&line).unwrap();
    }
    question
}

/// Calls `of` with both sides.
fn with_sides<T>(texts: [&str; 2], of: impl FnOnce([&Side<'_>; 2]) -> T) -> T {
    let identity = Identity {
        labels: [("app".to_owned(), "edge".to_owned())].into(),
        ..Identity::default()
    };
    let (registry, stats, store) = (Registry::default(), StatsRegistry::new(1), Store::default());
    let compiled = |text: &str, previous: &Snapshot| {
        let mut found = config_loader::Diagnostics::default();
        let resources = config_loader::load_bytes("mesh.yaml", text.as_bytes(), &mut found);
        let errors = found
            .iter()
            .filter(|one| one.severity == config_loader::Severity::Error);
        assert_eq!(errors.count(), 0, "{found:#?}\n{text}");
        let inputs = Inputs {
            now: registry.journal().at(clock::now()),
            resources: &resources,
            identity: &identity,
            registry: &registry,
            stats: &stats,
            certificates: &store,
        };
        compile(&inputs, previous)
    };
    let old = Arc::new(compiled(texts[0], &Snapshot::default()));
    let new = Arc::new(compiled(texts[1], &old));
    let (settings, nothing) = (
        ExchangeSettings::default(),
        config_loader::ResourceSet::default(),
    );
    let side = |snapshot| Side {
        snapshot,
        settings: &settings,
        survey: Survey::new(&nothing, &identity),
    };
    let (old, new) = (side(old), side(new));
    of([&old, &new])
}

#[test]
fn outcomes_differ_if_and_only_if_a_class_is_reported() {
    let pairs: u64 = std::env::var("PAIRS").map_or(PAIRS, |pairs| pairs.parse().unwrap());
    let mut differing = 0;
    for seed in 0..pairs {
        let rng = &mut SmallRng::seed_from_u64(seed);
        let rules: Vec<_> = (0..rng.random_range(1..7))
            .map(|_| (rng.random_range(0..2), rule(rng)))
            .collect();
        let after = changed(&rules, rng);
        let texts = [configuration(&rules), configuration(&after)];
        with_sides([&texts[0], &texts[1]], |[old, new]| {
            let report = compare(old, new);
            assert!(report.is_empty() || rules != after, "{seed}: {report:#?}");
            for _ in 0..REQUESTS {
                let question = question(rng);
                let answers = [old.explain(&question), new.explain(&question)];
                let changes = effect::changes(&answers[0], &answers[1]);
                if changes.is_empty() {
                    continue;
                }
                differing += 1;
                let names = answers.each_ref().map(RuleName::of);
                let reported = report.requests.iter().find(|one| one.changes == changes);
                let reported = reported.unwrap_or_else(|| {
                    panic!(
                        "{seed}: {question:?}\n{names:?}\n{}\n{}\n{report:#?}",
                        texts[0], texts[1]
                    )
                });
                // of classes with the same difference, the first few have a witness
                let has_all = reported.classes == reported.witnesses.len();
                let mut witnesses = reported.witnesses.iter();
                let is_listed =
                    witnesses.any(|one| [&one.before, &one.after] == [&names[0], &names[1]]);
                assert!(
                    is_listed || !has_all,
                    "{seed}: {question:?}\n{names:?}\n{report:#?}"
                );
            }
        });
    }
    assert!(differing > 100, "{differing}");
}

#[test]
fn witnesses_are_requests_of_their_class() {
    for seed in 1_000..1_050 {
        let rng = &mut SmallRng::seed_from_u64(seed);
        let rules: Vec<_> = (0..6)
            .map(|_| (rng.random_range(0..2), rule(rng)))
            .collect();
        let after = changed(&rules, rng);
        let texts = [configuration(&rules), configuration(&after)];
        with_sides([&texts[0], &texts[1]], |[old, new]| {
            let before = compare(old, new);
            // without a change nothing differs, and everything is decided
            let same = compare(new, new);
            assert!(same.is_empty() && same.sampled == 0, "{same:#?}");
            for entry in &before.requests {
                assert!(!entry.changes.is_empty() && !entry.witnesses.is_empty());
            }
        });
    }
}
