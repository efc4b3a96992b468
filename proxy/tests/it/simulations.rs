//! `strait simulate`: its command line, and its agreement with proxies on live sockets.

use std::net::SocketAddr;
use std::process::Command;

use serde_json::Value;

use crate::balancing::Named;
use crate::support::eventually;
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::Raw;
use crate::support::tls::files;

/// Output of `strait simulate` in a directory with these files, and its exit code.
fn simulate(all: &[(&str, &str)], flags: &[&str]) -> (String, Option<i32>) {
    let directory = tempfile::tempdir().unwrap();
    files(directory.path(), all);
    let output = Command::new(env!("CARGO_BIN_EXE_strait"))
        .current_dir(directory.path())
        .arg("simulate")
        .args(flags)
        .output()
        .unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (text, output.status.code())
}

/// Two clusters in tiers, and ejection after five errors.
fn mesh(edge: SocketAddr, clusters: [SocketAddr; 2]) -> String {
    let gateway = |number: usize| {
        let at = clusters[number - 1];
        format!(
            "{{clusterKey: r/z/g/c{number}, target: {{host: '', ip: {}, port: {}, path: ''}}}}",
            at.ip(),
            at.port()
        )
    };
    format!(
        "{}---
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
  - {{name: http, port: 80, endpoints: [{}, {}]}}
---
apiVersion: flomesh.io/v1alpha1
kind: GlobalTrafficPolicy
metadata: {{name: a, annotations: {{multicluster.flomesh.io/failover-order: ordered}}}}
spec: {{lbType: FailOver, targets: [{{clusterKey: r/z/g/c1}}, {{clusterKey: r/z/g/c2}}]}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {{name: a}}
spec:
  host: a.default.svc.cluster.local
  trafficPolicy:
    outlierDetection: {{consecutive5xxErrors: 5, interval: 1h, baseEjectionTime: 1h, maxEjectionPercent: 100}}
",
        route(edge),
        gateway(1),
        gateway(2)
    )
}

fn route(edge: SocketAddr) -> String {
    format!(
        "apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {{name: edge}}
spec:
  servers:
  - {{port: {{number: {}, name: http, protocol: HTTP}}, bind: {}, hosts: ['*']}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{name: a}}
spec:
  hosts: ['*']
  gateways: [edge]
  http: [{{route: [{{destination: {{host: a.default.svc.cluster.local, port: {{number: 80}}}}}}]}}]
",
        edge.port(),
        edge.ip()
    )
}

/// Kind and description of each event of endpoints.
fn told(events: &Value) -> Vec<(String, String)> {
    let text = |event: &Value, field: &str| event[field].as_str().unwrap().to_owned();
    let all = events.as_array().unwrap().iter();
    let all = all.filter(|event| event["kind"] != "scenario");
    all.map(|event| {
        let field = if event["text"].is_null() {
            "message"
        } else {
            "text"
        };
        (text(event, "kind"), text(event, field))
    })
    .collect()
}

/// Statuses of requests that are sent one after the other.
fn ask(proxy: &Proxy, count: usize) -> Vec<u16> {
    let mut client = Raw::connect(proxy.edge);
    (0..count)
        .map(|_| {
            let reply = client
                .send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
                .reply();
            reply.status
        })
        .collect()
}

/// Compares a proxy whose first cluster fails with its simulation: the same failed requests, attempts in the first cluster,
/// and events in the same words.
fn agrees(proxy: &Proxy, mesh: &str, event: &str, requests: usize, of_first: usize) {
    eventually("the tier has shifted", || {
        proxy.page("/events").contains("tier_shifted")
    });
    let live: Value = serde_json::from_str(&proxy.page("/events?format=json")).unwrap();
    let live = told(live.get("events").unwrap_or(&live));
    // one request at a time, as the client of the test
    let scenario = format!(
        "load: {{url: 'http://a.test:{}/', rate: 10/s, for: 60s}}\n\
         endpoints: {{latency: {{p50: 1ms, p99: 1ms}}}}\n\
         events: [{{at: 0s, cluster: c1, {event}}}]\n\
         expect: [{{failed: 0}}, {{share: {{c2: 100%}}}}]\n",
        proxy.edge.port()
    );
    let all = [("mesh.yaml", mesh), ("s.scenario.yaml", &*scenario)];
    let (text, code) = simulate(&all, &["s.scenario.yaml", "-o", "json"]);
    assert_eq!(code, Some(0), "{text}");
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(told(&report["events"]), live, "{text}");
    let total = &report["total"];
    let attempts =
        total["attempts_per_request"].as_f64().unwrap() * total["requests"].as_f64().unwrap();
    let extra = attempts.round() as u64 - total["requests"].as_u64().unwrap();
    assert_eq!(extra as usize, of_first, "of {requests} requests");
}

#[test]
fn cluster_that_answers_503_is_left_as_simulated() {
    let (first, second) = (Named::new("c1"), Named::new("c2"));
    first.answers(503);
    let start = Start::new();
    let text = mesh(start.edge(), [first.origin.address, second.origin.address]);
    let proxy = start
        .file("mesh.yaml", &text)
        .args(["--cluster", "r/z/g/edge"])
        .start();
    assert_eq!(ask(&proxy, 30), [200; 30]);
    agrees(&proxy, &text, "errors: 100%", 30, first.origin.seen().len());
}

#[test]
fn cluster_that_refuses_connections_is_left_as_simulated() {
    let second = Named::new("c2");
    let start = Start::new();
    let text = mesh(start.edge(), [free_address(), second.origin.address]);
    let proxy = start
        .file("mesh.yaml", &text)
        .args(["--cluster", "r/z/g/edge"])
        .start();
    assert_eq!(ask(&proxy, 30), [200; 30]);
    agrees(&proxy, &text, "stop: true", 30, 5);
}

#[test]
fn failed_expectation_is_exit_code_1() {
    let at = SocketAddr::from(([127, 0, 0, 1], 80));
    let text = mesh(at, [at, SocketAddr::from(([127, 0, 0, 2], 80))]);
    let scenario =
        "load: {url: 'http://a.test/', rate: 100/s, for: 5s}\nexpect: [{share: {c2: 100%}}]\n";
    let all = [("mesh.yaml", &*text), ("s.scenario.yaml", scenario)];
    let (output, code) = simulate(&all, &["s.scenario.yaml"]);
    assert_eq!(code, Some(1), "{output}");
    assert!(
        output.contains("FAIL  share of c2 about 100% from 0.0s to 5.0s: 0.00%"),
        "{output}"
    );
    assert!(output.contains("s.scenario.yaml:2"), "{output}");
    let wrong = scenario.replace(
        "expect:",
        "events: [{at: 1s, cluster: c9, stop: true}]\nexpect:",
    );
    let (output, code) = simulate(
        &[("mesh.yaml", &text), ("s.scenario.yaml", &wrong)],
        &["s.scenario.yaml"],
    );
    assert_eq!(code, Some(1), "{output}");
    assert!(
        output
            .contains("s.scenario.yaml:2:10: the requests reach no cluster c9: did you mean `c1`?"),
        "{output}"
    );
}

#[test]
fn page_has_charts_and_no_scripts() {
    let at = SocketAddr::from(([127, 0, 0, 1], 80));
    let text = mesh(at, [at, SocketAddr::from(([127, 0, 0, 2], 80))]);
    let scenario = "load: {url: 'http://a.test/?a&b', rate: 100/s, for: 5s}\nevents: [{at: 1s, cluster: c1, stop: true}]\n";
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    let flags = ["s.scenario.yaml", "--html", page.to_str().unwrap()];
    let (output, code) = simulate(
        &[("mesh.yaml", &text), ("s.scenario.yaml", scenario)],
        &flags,
    );
    assert_eq!(code, Some(0), "{output}");
    let page = std::fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("<svg").count(), 5);
    for part in [
        "prefers-color-scheme:dark",
        "refuses connections",
        "/?a&amp;b",
        "</html>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    for part in ["<script", "http-equiv", "src=", "href=", "NaN"] {
        assert!(!page.contains(part), "{part}: {page}");
    }
}

#[test]
fn schema_has_every_field() {
    let (text, code) = simulate(&[], &["--schema"]);
    assert_eq!(code, Some(0), "{text}");
    let schema: Value = serde_json::from_str(&text).unwrap();
    let fields = |of: &Value| of["properties"].as_object().unwrap().len();
    // a field that the reader does not know is an error of its tests
    assert_eq!(fields(&schema), 7);
    assert_eq!(fields(&schema["$defs"]["event"]), 13);
    assert_eq!(fields(&schema["$defs"]["expect"]), 11);
    assert!(schema["properties"]["as"]["properties"]["labels"].is_object());
}

/// Example of the documentation, with the output that the page shows.
#[test]
fn documented_example_prints_what_its_page_shows() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap();
    let page = std::fs::read_to_string(root.join("docs/simulate.md")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_strait"))
        .current_dir(root)
        .args([
            "simulate",
            "examples/clusters-failover/outage.scenario.yaml",
        ])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(page.contains(text.trim_end()), "{text}");
    let scenario = root.join("examples/clusters-failover/outage.scenario.yaml");
    let scenario = std::fs::read_to_string(scenario).unwrap();
    assert!(
        page.contains(scenario.trim_end()),
        "the page shows another scenario"
    );
}
