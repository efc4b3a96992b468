//! Cost of finding a virtual host and a rule for a request.
//!
//! `route/1` is the minimum cost of a request; the other figures show how it grows with the number of rules.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use traffic::pattern::Pattern;
use traffic::provenance::Provenance;
use traffic::route::{
    Conditions, HeaderKey, HeaderMatch, HostIndex, RequestHead, Rule, RuleIdx, Table, TextMatch,
    UriMatch, normalize_host, normalize_path,
};

fn rule(conditions: Conditions) -> Rule {
    Rule {
        name: "".into(),
        conditions,
        provenance: Provenance {
            object: "VirtualService/default/bench".into(),
            file: "bench.yaml".into(),
            line: 1,
        },
    }
}

fn prefixes(count: usize) -> Table {
    let prefix = |number| {
        rule(Conditions {
            uri: UriMatch::Prefix {
                value: format!("/route-{number:05}").into(),
                ignore_case: false,
            },
            ..Conditions::default()
        })
    };
    Table::compile((0..count).map(prefix).collect())
}

fn header_values(count: usize) -> Table {
    let tenant = |number| {
        rule(Conditions {
            headers: [HeaderMatch {
                key: HeaderKey::Name(HeaderName::from_static("x-tenant")),
                value: TextMatch::Exact(format!("tenant-{number:05}").into()),
            }]
            .into(),
            ..Conditions::default()
        })
    };
    Table::compile((0..count).map(tenant).collect())
}

/// Returns a table of regular expressions that no index can tell apart, so that each must be run.
fn expressions(count: usize) -> Table {
    let expression = |number| {
        let anchored = format!(r"\A(?:/v[0-9]+/service-{number}/.*)\z");
        let regex = regex::bytes::Regex::new(&anchored).expect("a plain expression");
        rule(Conditions {
            uri: UriMatch::Regex(Pattern::new(anchored.into(), Arc::new(regex))),
            ..Conditions::default()
        })
    };
    Table::compile((0..count).map(expression).collect())
}

/// Returns a table of path prefixes, each a prefix of the next, of which only the last rule matches the request.
fn chain(count: usize) -> Table {
    let link = |number: usize| {
        rule(Conditions {
            uri: UriMatch::Prefix {
                value: "/a".repeat(count - number).into(),
                ignore_case: false,
            },
            method: (number + 1 < count).then(|| TextMatch::Exact("PUT".into())),
            ..Conditions::default()
        })
    };
    Table::compile((0..count).map(link).collect())
}

fn usual_headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("host", "a.example.com"),
        ("user-agent", "bench/1.0"),
        ("accept", "*/*"),
        ("x-request-id", "0d7cbd63-6c5b-4c4e-a6a4-0f6b4e4c7d1f"),
        ("x-tenant", "tenant-09999"),
    ] {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    headers
}

fn find(criterion: &mut Criterion, name: &str, table: &Table, path: &str, expected: u32) {
    let headers = usual_headers();
    let method = Method::GET;
    let head = RequestHead {
        is_http2: false,
        method: &method,
        scheme: "http",
        authority: "a.example.com",
        host: "a.example.com",
        path,
        query: None,
        headers: &headers,
        claims: None,
    };
    assert_eq!(table.find(&head), Some(RuleIdx(expected)));
    criterion.bench_function(name, |bencher| {
        bencher.iter(|| table.find(black_box(&head)))
    });
}

fn routes(criterion: &mut Criterion) {
    find(
        criterion,
        "route/1",
        &prefixes(1),
        "/route-00000/index.html",
        0,
    );
    find(
        criterion,
        "route/1k_prefix_last",
        &prefixes(1_000),
        "/route-00999/index.html",
        999,
    );
    find(
        criterion,
        "route/10k",
        &prefixes(10_000),
        "/route-09999/index.html",
        9_999,
    );
    find(
        criterion,
        "route/10k_headers",
        &header_values(10_000),
        "/index.html",
        9_999,
    );
    find(
        criterion,
        "route/100_regex_last",
        &expressions(100),
        "/v1/service-99/x",
        99,
    );
    let deep = "/a".repeat(100);
    find(criterion, "route/100_chain_last", &chain(100), &deep, 99);
}

fn hosts(criterion: &mut Criterion) {
    let exact = (0..5_000).map(|number| format!("host-{number}.example.com"));
    let wildcards = (0..5_000).map(|number| format!("*.zone-{number}.example.com"));
    let patterns = exact.chain(wildcards).chain(["*".to_owned()]);
    let hosts = HostIndex::new(patterns.map(|pattern| (pattern.clone(), pattern)));
    for (name, host, expected) in [
        ("host/10k", "host-4999.example.com", "host-4999.example.com"),
        (
            "host/10k_wildcard",
            "a.b.zone-4999.example.com",
            "*.zone-4999.example.com",
        ),
        ("host/10k_any", "nowhere.example.org", "*"),
    ] {
        assert_eq!(hosts.find(host).map(String::as_str), Some(expected));
        criterion.bench_function(name, |bencher| bencher.iter(|| hosts.find(black_box(host))));
    }
    criterion.bench_function("normalize/host", |bencher| {
        bencher.iter(|| normalize_host(black_box("a.example.com:8080")).len());
    });
    criterion.bench_function("normalize/path", |bencher| {
        let path = black_box("/api/v1/users/12345/profile.json");
        bencher.iter(|| normalize_path(path).map(|path| path.len()));
    });
}

fn compile(criterion: &mut Criterion) {
    let rules = prefixes(5_000).rules().to_vec();
    criterion.bench_function("route/compile_5k", |bencher| {
        bencher.iter_batched(
            || rules.clone(),
            Table::compile,
            criterion::BatchSize::LargeInput,
        );
    });
}

criterion_group!(benches, routes, hosts, compile);
criterion_main!(benches);
