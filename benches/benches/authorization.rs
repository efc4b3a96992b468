//! Cost of a decision by AuthorizationPolicies, and of building their index.
//!
//! `decide/NONE/POLICIESxRULES`: no rule matches, which is the most work. The figures for 1,000 policies of 50 rules say
//! whether the index finds the few rules that can match.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use http::{HeaderMap, Method};
use traffic::authz::{
    Attribute, Condition, Pattern, Peer, Policies, Policy, Rule, RuleSet, Subject, Values,
};
use traffic::provenance::Provenance;
use traffic::route::RequestHead;
use traffic::telemetry::{PolicyLabels, PolicyTally};

fn condition(attribute: Attribute, values: Values) -> Condition {
    Condition {
        attribute,
        values: Some(values),
        not_values: None,
    }
}

fn texts(attribute: Attribute, text: String) -> Condition {
    let values = Values::Texts([Pattern::of(&text)].into());
    condition(attribute, values)
}

/// Returns a condition of one of five sorts, with a value of its own.
fn distinct(number: usize) -> Condition {
    match number % 5 {
        0 => texts(Attribute::Path, format!("/denied/{number}")),
        1 => texts(Attribute::Path, format!("/denied/{number}/*")),
        2 => texts(
            Attribute::Host { is_bare: true },
            format!("host-{number}.test"),
        ),
        3 => texts(
            Attribute::Principal,
            format!("cluster.local/ns/n{number}/sa/a"),
        ),
        _ => {
            let address = [10, 1, (number >> 8) as u8, number as u8];
            let network = ipnet::IpNet::from(std::net::IpAddr::from(address));
            condition(Attribute::SourceIp, Values::Networks([network].into()))
        }
    }
}

/// Returns the rules of DENY policies: a method, and a value of its own.
fn rules(policies: usize, rules_each: usize) -> Vec<Arc<Rule>> {
    let policy = |number: usize| {
        let labels = PolicyLabels {
            namespace: "bench".into(),
            name: format!("policy-{number}").into(),
            action: "DENY",
            is_dry_run: false,
        };
        Arc::new(Policy {
            namespace: "bench".into(),
            name: Arc::clone(&labels.name),
            provenance: Provenance {
                object: "AuthorizationPolicy/bench/a".into(),
                file: "bench.yaml".into(),
                line: 1,
            },
            matches: Arc::new(PolicyTally::new(labels, 1)),
        })
    };
    let rules = (0..policies).flat_map(|number| {
        let policy = policy(number);
        (0..rules_each).map(move |rule| {
            let method = texts(Attribute::Method, "GET".to_owned());
            Arc::new(Rule {
                policy: Arc::clone(&policy),
                name: format!("ns[bench]-policy[{number}]-rule[{rule}]").into(),
                line: 1,
                from: Box::default(),
                to: [[method, distinct(number * rules_each + rule)].into()].into(),
                when: Box::default(),
            })
        })
    });
    rules.collect()
}

fn decide(criterion: &mut Criterion) {
    let headers = HeaderMap::new();
    let head = RequestHead {
        is_http2: false,
        method: &Method::GET,
        scheme: "http",
        authority: "shop.test",
        host: "shop.test",
        path: "/cart/items/17",
        query: None,
        headers: &headers,
        claims: None,
    };
    let subject = Subject {
        peer: Peer::parse("spiffe://cluster.local/ns/web/sa/web"),
        source_ip: [10, 0, 0, 1].into(),
        remote_ip: [10, 0, 0, 1].into(),
        destination: ([10, 0, 0, 2], 80).into(),
        sni: "",
        request: Some(head),
        claims: None,
    };
    for (policies, rules_each) in [(1, 1), (10, 1), (100, 1), (1_000, 1), (1_000, 50)] {
        let set = RuleSet::new(rules(policies, rules_each));
        let policies_of = Policies {
            deny: set,
            ..Policies::default()
        };
        let name = format!("authorization/decide/{policies}x{rules_each}");
        criterion.bench_function(&name, |bencher| {
            bencher.iter(|| policies_of.decide(black_box(&subject)).is_allowed());
        });
    }
}

fn build(criterion: &mut Criterion) {
    let rules = rules(1_000, 50);
    criterion.bench_function("authorization/build/1000x50", |bencher| {
        bencher.iter_batched(|| rules.clone(), RuleSet::new, BatchSize::PerIteration);
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = decide, build
}
criterion_main!(benches);
