//! Scenarios through the shipping code: conservation, determinism, and what failures lead to.

use std::fmt::Write;
use std::sync::Arc;

use config_loader::{ResourceSet, Scenario, SettingsFile};

use super::{Inputs, Report, run};
use crate::compile::Survey;
use crate::exchange::settings::ExchangeSettings;
use crate::explain::{Question, explain};
use crate::identity::Identity;
use crate::snapshot::Snapshot;

const EDGE: &str = "
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*']}]
";

/// A rule with these fields, and a service of three endpoints in two zones with this policy.
fn zones(rule: &str, policy: &str) -> String {
    let policy = match policy {
        "" => "loadBalancer: {simple: ROUND_ROBIN}",
        policy => policy,
    };
    format!(
        "{EDGE}---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{name: a}}
spec:
  hosts: [a.test]
  gateways: [edge]
  http: [{{{rule}route: [{{destination: {{host: a.test}}}}]}}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {{name: a}}
spec:
  hosts: [a.test]
  resolution: STATIC
  ports: [{{number: 80, name: http, protocol: HTTP}}]
  endpoints:
  - {{address: 10.0.0.1, locality: r/z1}}
  - {{address: 10.0.0.2, locality: r/z1}}
  - {{address: 10.0.0.3, locality: r/z2}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {{name: a, annotations: {{strait.io/health-check: none}}}}
spec: {{host: a.test, trafficPolicy: {{{policy}}}}}
"
    )
}

/// Three clusters that share requests, and eject endpoints after five errors.
fn clusters(kind: &str) -> String {
    let mut gateways = String::new();
    let mut targets = String::new();
    for (number, weight) in [(1, 50), (2, 30), (3, 20)] {
        let key = format!("r/z/g/c{number}");
        _ = writeln!(
            gateways,
            "    - {{clusterKey: {key}, target: {{host: '', ip: 10.1.0.{number}, port: 80, path: ''}}}}"
        );
        _ = writeln!(targets, "  - {{clusterKey: {key}, weight: {weight}}}");
    }
    format!(
        "{EDGE}---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{name: a}}
spec:
  hosts: [a.test]
  gateways: [edge]
  http: [{{timeout: 1s, route: [{{destination: {{host: a.default.svc.cluster.local, port: {{number: 80}}}}}}]}}]
---
apiVersion: v1
kind: Service
metadata: {{name: a}}
spec: {{ports: [{{name: http, port: 80}}]}}
---
apiVersion: flomesh.io/v1alpha1
kind: ServiceImport
metadata: {{name: a}}
spec:
  ports:
  - name: http
    port: 80
    endpoints:
{gateways}---
apiVersion: flomesh.io/v1alpha1
kind: GlobalTrafficPolicy
metadata: {{name: a, annotations: {{multicluster.flomesh.io/failover-order: ordered}}}}
spec:
  lbType: {kind}
  targets:
{targets}---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {{name: a}}
spec:
  host: a.default.svc.cluster.local
  trafficPolicy:
    outlierDetection: {{consecutive5xxErrors: 5, interval: 1s, baseEjectionTime: 2s, maxEjectionPercent: 100}}
"
    )
}

fn load(text: &str) -> Arc<ResourceSet> {
    let mut found = config_loader::Diagnostics::default();
    let set = config_loader::load_bytes("mesh.yaml", text.as_bytes(), &mut found);
    assert!(!found.has_errors(), "{found:?}");
    Arc::new(set)
}

fn identity() -> Identity {
    Identity {
        cluster: "r/z/g/edge".to_owned(),
        locality: "r/z1".to_owned(),
        ..Identity::default()
    }
}

/// Plays a scenario on configurations: the first one, and that of each event.
fn play(mesh: &[&str], scenario: &str, seed: u64) -> Report {
    let scenario = Scenario::parse(&"s.yaml".into(), scenario);
    let (scenario, _) = scenario.unwrap_or_else(|found| panic!("{found:?}"));
    let mut sets = mesh.iter().map(|text| load(text));
    let resources = sets.next().unwrap();
    let later: Vec<_> = scenario
        .events
        .iter()
        .map(|event| match &event.action {
            config_loader::EventAction::Config(_) => sets.next(),
            _ => None,
        })
        .collect();
    let question = Question::parse(&scenario.load.method, &scenario.load.url).unwrap();
    let inputs = Inputs {
        scenario: &scenario,
        question: &question,
        identity: &identity(),
        resources: &resources,
        later: &later,
        seed,
    };
    run(&inputs).unwrap_or_else(|unknown| panic!("{unknown:?}"))
}

const LOAD: &str = "
interval: 1s
load: {url: 'http://a.test/', rate: 500/s, for: 10s, proxies: 2, workers: 2}
endpoints: {latency: {p50: 2ms, p99: 10ms}, concurrency: 20}
";

fn has(report: &Report, text: &str) -> bool {
    report.events.iter().any(|event| event.text.contains(text))
}

const OUTLIERS: &str = "outlierDetection: {consecutive5xxErrors: 5, interval: 1s, baseEjectionTime: 2s, maxEjectionPercent: 100}";

#[test]
fn every_request_ends_once_whatever_happens() {
    let rule =
        "timeout: 500ms, retries: {attempts: 2, perTryTimeout: 100ms, retryOn: '5xx,reset'}, ";
    let limits = "connectionPool: {tcp: {maxConnections: 6}, http: {http1MaxPendingRequests: 20, http2MaxRequests: 15}}";
    let mesh = zones(rule, &format!("{OUTLIERS}, {limits}"));
    let events = [
        "errors: 40%",
        "stop: true",
        "hang: true",
        "latency: x20",
        "restore: true",
        "rate: 3000/s",
    ];
    for seed in 0..12_usize {
        let mut scenario = format!("{LOAD}events:\n");
        for at in 1..9_usize {
            let event = events[(seed * 7 + at * (seed + 3)) % events.len()];
            let target = ["", "zone: z1, ", "endpoint: '10.0.0.2:80', "][(seed + at) % 3];
            let target = if event.starts_with("rate") {
                ""
            } else {
                target
            };
            _ = writeln!(scenario, "- {{at: {at}s, {target}{event}}}");
        }
        let report = play(&[&mesh], &scenario, seed as u64);
        let sum = |figure: fn(&super::Row) -> u64| report.rows.iter().map(figure).sum::<u64>();
        assert_eq!(sum(|row| row.requests), report.total.requests, "{scenario}");
        assert_eq!(sum(|row| row.failed), report.total.failed);
        assert!(report.total.requests > 4_500, "{}", report.total.requests);
        // at most one attempt and two retries
        assert!(report.total.attempts_per_request <= 3.0);
        // no request outlives its timeout, but for the width of a bucket
        assert!(report.total.p99_ms < 540.0, "{}", report.total.p99_ms);
    }
}

#[test]
fn same_seed_gives_the_same_bytes() {
    let mesh = clusters("ActiveActive");
    let scenario = format!(
        "{LOAD}events:\n- {{at: 2s, cluster: c1, errors: 50%}}\n- {{at: 5s, cluster: c2, stop: true}}\n"
    );
    let json = |seed| serde_json::to_string(&play(&[&mesh], &scenario, seed)).unwrap();
    assert_eq!(json(7), json(7));
    assert_ne!(json(7), json(8));
}

#[test]
fn shares_of_clusters_are_those_that_explain_says() {
    let mesh = clusters("ActiveActive");
    let report = play(&[&mesh], LOAD, 1);
    let (resources, identity) = (load(&mesh), identity());
    let store = crate::tls::Store::default();
    let registry = traffic::registry::Registry::default();
    let stats = crate::telemetry::StatsRegistry::new(1);
    let inputs = crate::compile::Inputs {
        now: registry.journal().at(crate::runtime::clock::now()),
        resources: &resources,
        identity: &identity,
        registry: &registry,
        stats: &stats,
        certificates: &store,
    };
    let snapshot = Arc::new(crate::compile::compile(&inputs, &Snapshot::default()));
    let question = Question::parse("GET", "http://a.test/").unwrap();
    let survey = Survey::new(&resources, &identity);
    let answer = explain(&question, &snapshot, &ExchangeSettings::default(), &survey);
    let members = &answer.destinations[0]
        .cluster
        .as_ref()
        .unwrap()
        .member_clusters;
    assert_eq!(members.len(), 3);
    for member in members {
        let name = member.cluster_key.rsplit('/').next().unwrap();
        let at = report.clusters.iter().position(|one| one == name).unwrap();
        let (said, seen) = (100.0 * member.share, report.total.shares[at]);
        assert!((said - seen).abs() < 1.0, "{name}: {said} and {seen}");
    }
}

#[test]
fn failing_cluster_is_left_without_a_failed_request() {
    for event in ["errors: 100%", "stop: true"] {
        let scenario = format!(
            "{LOAD}events:\n- {{at: 2s, cluster: c1, {event}}}\nexpect:\n- {{failed: 0}}\n- {{share: {{c2: 100%}}, within: 1s, after: 2s, to: 4s}}\n- {{ejected: 1}}\n"
        );
        let report = play(&[&clusters("FailOver")], &scenario, 1);
        assert!(report.passed(), "{event}: {:?}", report.expectations);
        assert!(has(&report, "consecutive"), "{:?}", report.events);
        assert!(has(&report, "tier 2 is in use after tier 1: ejected"));
        let extra = report.total.attempts_per_request - 1.0;
        assert!(extra > 0.0 && extra < 0.02, "{extra}");
    }
    // without outlier detection or tiers every request of the cluster fails
    let scenario = format!("{LOAD}events:\n- {{at: 0s, errors: 100%}}\n");
    let report = play(&[&zones("", "")], &scenario, 1);
    assert_eq!(report.total.failed, report.total.requests);
}

#[test]
fn ejection_cap_keeps_failing_endpoints() {
    let policy =
        "outlierDetection: {consecutive5xxErrors: 5, interval: 1s, maxEjectionPercent: 34}";
    let scenario = format!("{LOAD}events:\n- {{at: 1s, errors: 100%, status: 500}}\n");
    let report = play(&[&zones("", policy)], &scenario, 1);
    assert!(
        has(&report, "maxEjectionPercent allows no more"),
        "{:?}",
        report.events
    );
    assert_eq!(
        report.total.ejected, 1,
        "one in three, and the same at both proxies is not asked"
    );
}

#[test]
fn limits_refuse_what_exceeds_them() {
    let busy = LOAD
        .replace("p50: 2ms", "p50: 40ms")
        .replace("p99: 10ms", "p99: 40ms");
    let requests = zones("", "connectionPool: {http: {http2MaxRequests: 2}}");
    let report = play(&[&requests], &busy, 1);
    assert!(report.total.overflow > 1_000, "{}", report.total.overflow);
    assert_eq!(report.total.failed, report.total.overflow);
    assert!(has(&report, "http2MaxRequests"));
    let pending = "connectionPool: {tcp: {maxConnections: 3}, http: {http1MaxPendingRequests: 1}}";
    let report = play(&[&zones("", pending)], &busy, 1);
    assert!(
        has(&report, "http1MaxPendingRequests"),
        "{:?}",
        report.events
    );
    // with room in the queue, requests wait in place of failing
    let queue = "connectionPool: {tcp: {maxConnections: 12}}";
    let report = play(&[&zones("", queue)], &busy, 1);
    assert_eq!((report.total.failed, report.total.overflow), (0, 0));
    assert!(report.total.p99_ms > 42.0, "{}", report.total.p99_ms);
}

#[test]
fn hanging_endpoint_fails_requests_after_their_timeout() {
    let scenario = format!("{LOAD}events:\n- {{at: 5s, endpoint: '10.0.0.1:80', hang: true}}\n");
    let report = play(&[&zones("timeout: 300ms, ", "")], &scenario, 1);
    assert!(report.total.failed > 500, "{}", report.total.failed);
    let last = report.rows.last().unwrap();
    assert!((last.p99_ms / 300.0 - 1.0).abs() < 0.08, "{}", last.p99_ms);
    let rule = "timeout: 300ms, retries: {attempts: 2, perTryTimeout: 50ms, retryOn: 5xx}, ";
    let report = play(&[&zones(rule, OUTLIERS)], &scenario, 1);
    assert_eq!(report.total.failed, 0, "{:?}", report.events);
}

#[test]
fn health_checks_exclude_an_endpoint_that_fails_them() {
    let mesh = zones("", "").replace(
        "strait.io/health-check: none",
        "strait.io/health-check: http, strait.io/health-check-interval: 500ms, strait.io/health-check-unhealthy-threshold: '2'",
    );
    let scenario = format!(
        "{LOAD}events:\n- {{at: 3s, endpoint: '10.0.0.1:80', errors: 100%}}\n- {{at: 6s, restore: true}}\nexpect:\n- {{failed: '>0', from: 3s, to: 4s}}\n- {{failed: 0, from: 5s}}\n"
    );
    let report = play(&[&mesh], &scenario, 1);
    assert!(report.passed(), "{:?}", report.expectations);
    assert!(has(&report, "fails its health checks") && has(&report, "passes its health checks"));
}

#[test]
fn configuration_changes_in_the_middle() {
    let (before, after) = (
        zones("", ""),
        zones("", "").replace("hosts: [a.test]\n  gateways", "hosts: [b.test]\n  gateways"),
    );
    let scenario = format!(
        "{LOAD}events:\n- {{at: 5s, config: next}}\nexpect:\n- {{failed: 0, to: 5s}}\n- {{failed: 100%, from: 5s}}\n- {{failed: '<1%'}}\n"
    );
    let report = play(&[&before, &after], &scenario, 1);
    let passed: Vec<bool> = report.expectations.iter().map(|one| one.passed).collect();
    assert_eq!(passed, [true, true, false], "{:?}", report.expectations);
    assert!(!report.passed());
}

#[test]
fn waiting_at_an_endpoint_counts_as_latency() {
    // 3 endpoints serve 1 request of 10 ms each: 300 requests per second at most
    let scenario = "
interval: 1s
load: {url: 'http://a.test/', rate: 200/s, for: 10s}
endpoints: {latency: {p50: 10ms, p99: 10ms}, concurrency: 1}
events: [{at: 5s, rate: 400/s}]
";
    let report = play(&[&zones("", "")], scenario, 1);
    let (before, after) = (&report.rows[4], &report.rows[9]);
    assert!(before.p50_ms < 40.0, "{}", before.p50_ms);
    assert!(after.p50_ms > 500.0, "{}", after.p50_ms);
    assert_eq!(report.total.failed, 0);
}
