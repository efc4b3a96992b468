//! The alert rules and the Grafana dashboard in `deploy/`, checked by `promtool` where it is installed (Debian package
//! `prometheus`).

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::client::{Client, Front};
use crate::support::eventually;
use crate::support::mesh::{documents, gateway, routes};
use crate::support::proxy::Proxy;
use crate::support::raw::Raw;

fn deploy(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../deploy")
        .join(file)
}

/// Runs `promtool` and checks that it succeeds. Prints a message instead if `promtool` is not installed.
#[track_caller]
#[allow(
    clippy::print_stderr,
    reason = "the reason of a skipped test is printed"
)]
fn promtool(arguments: &[&str], file: &Path) {
    match Command::new("promtool").args(arguments).arg(file).output() {
        Err(error) => eprintln!("skipped: promtool cannot be run: {error}"),
        Ok(output) => {
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8_lossy(&text);
            assert!(output.status.success(), "{}:\n{text}", file.display());
        }
    }
}

/// Returns the metrics page in OpenMetrics.
fn open_metrics(proxy: &Proxy) -> String {
    page_as(proxy, "application/openmetrics-text")
}

/// Returns the metrics page in a format, without HTTP/1.1 chunk framing.
fn page_as(proxy: &Proxy, format: &str) -> String {
    let mut stream = TcpStream::connect(proxy.admin).unwrap();
    write!(stream, "GET /metrics HTTP/1.0\r\naccept: {format}\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(format), "{head}");
    body.to_owned()
}

/// Parses the page with the reference implementation of OpenMetrics. Prints a message instead if it is not installed
/// (`pip install prometheus_client`).
#[allow(
    clippy::print_stderr,
    reason = "the reason of a skipped test is printed"
)]
fn read_by_python(page: &str) {
    let python = |program: &str| {
        let mut child = Command::new("python3")
            .args(["-c", program])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        // One that ends before it reads says why.
        let _ = child
            .stdin
            .take()
            .map(|mut input| input.write_all(page.as_bytes()));
        child.wait_with_output()
    };
    let import =
        "from prometheus_client.openmetrics.parser import text_string_to_metric_families as read";
    match python(import) {
        Ok(output) if output.status.success() => {}
        Ok(_) => return eprintln!("skipped: python3 has no prometheus_client"),
        Err(error) => return eprintln!("skipped: python3 cannot be run: {error}"),
    }
    let program = format!("import sys\n{import}\nprint(len(list(read(sys.stdin.read()))))");
    let output = python(&program).unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}\n{page}");
    let families: usize = String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .unwrap();
    assert!(families > 40, "{families}");
}

#[tokio::test]
async fn page_of_metrics_is_valid_in_both_formats() {
    let proxy = Proxy::with(|edge| {
        documents([
            gateway(&[edge]),
            routes("all", "['*']", "- directResponse: {status: 204}"),
        ])
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.get("/").await.status, 204);
    // a change, whose propagation is measured
    proxy.write(
        "mesh.yaml",
        documents([
            gateway(&[proxy.edge]),
            routes("all", "['*']", "- directResponse: {status: 202}"),
        ]),
    );
    let count = "strait_config_propagation_seconds_count{source=\"files\"} ";
    let measured = || {
        let page = open_metrics(&proxy);
        page.lines()
            .any(|line| line.strip_prefix(count).is_some_and(|count| count != "0"))
    };
    eventually("the change is measured", measured);
    let page = open_metrics(&proxy);
    let bounds = page.lines().filter(|line| line.contains("_bucket{"));
    for line in bounds {
        let (_, rest) = line.split_once("le=\"").unwrap();
        let (bound, _) = rest.split_once('"').unwrap();
        let is_number = bound
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        assert!(is_number || bound == "+Inf", "{line}");
    }
    let build = page
        .lines()
        .find(|line| line.starts_with("strait_build_info{"));
    assert!(
        build.is_some_and(|line| !line.contains("unknown")),
        "{build:?}"
    );
    read_by_python(&page);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("metrics");
    for format in ["text/plain", "application/openmetrics-text"] {
        fs::write(&file, page_as(&proxy, format)).unwrap();
        promtool_reads(&file);
    }
}

/// Files with rules, each with a file of tests.
const RULES: [&str; 2] = ["prometheus-alerts", "prometheus-rules"];

#[test]
fn rules_are_valid() {
    for file in RULES {
        promtool(&["check", "rules"], &deploy(&format!("{file}.yaml")));
    }
}

/// Runs `promtool` like [`promtool`], with metrics from a file as its standard input.
#[allow(
    clippy::print_stderr,
    reason = "the reason of a skipped test is printed"
)]
fn promtool_reads(file: &Path) {
    let input = fs::File::open(file).unwrap();
    match Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(input)
        .output()
    {
        Err(error) => eprintln!("skipped: promtool cannot be run: {error}"),
        Ok(output) => {
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8_lossy(&text);
            // 3 is advice about names
            assert!(matches!(output.status.code(), Some(0 | 3)), "{text}");
        }
    }
}

#[test]
fn alerts_fire_for_their_metrics_only() {
    for file in RULES {
        promtool(&["test", "rules"], &deploy(&format!("{file}.test.yaml")));
    }
}

#[test]
fn every_alert_has_a_test_that_fires_it() {
    let read = |end: &str| {
        let read = |file: &&str| fs::read_to_string(deploy(&format!("{file}{end}"))).unwrap();
        RULES.iter().map(read).collect::<String>()
    };
    let (rules, tests) = (read(".yaml"), read(".test.yaml"));
    let alerts = rules.lines().filter_map(|line| line.split_once("alert: "));
    let alerts: Vec<&str> = alerts.map(|(_, name)| name.trim()).collect();
    assert!(alerts.len() > 10, "{alerts:?}");
    for alert in alerts {
        let fires = format!("alertname: {alert}\n    exp_alerts:");
        assert!(tests.contains(&fires), "{alert}");
    }
}

/// Metrics that the Mesh, Service and Workload dashboards of Istio 1.28 ask for, and the labels that they select and group by.
#[test]
fn metrics_of_the_dashboards_of_istio_exist() {
    let page = include_str!("../../../docs/metrics.md");
    for name in [
        "istio_build",
        "istio_request_bytes",
        "istio_request_duration_milliseconds",
        "istio_requests_total",
        "istio_response_bytes",
        "istio_tcp_connections_closed_total",
        "istio_tcp_connections_opened_total",
        "istio_tcp_received_bytes_total",
        "istio_tcp_sent_bytes_total",
        "process_virtual_memory_bytes",
    ] {
        assert!(page.contains(&format!("| `{name}` |")), "{name}");
    }
    let proxy = Proxy::with(|edge| {
        documents([
            gateway(&[edge]),
            routes("all", "['*']", "- directResponse: {status: 204}"),
        ])
    });
    Raw::connect(proxy.edge)
        .send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        .reply();
    let requests = "istio_requests_total";
    eventually("it is counted", || proxy.metric(requests, &[]) == 1.0);
    let page = proxy.page("/metrics");
    let line = page
        .lines()
        .find(|line| line.starts_with("istio_requests_total{"));
    for label in [
        "connection_security_policy",
        "destination_service",
        "destination_workload",
        "destination_workload_namespace",
        "reporter",
        "response_code",
        "source_workload",
        "source_workload_namespace",
    ] {
        assert!(line.unwrap().contains(&format!("{label}=\"")), "{label}");
    }
    assert!(page.contains("istio_build{component=\"proxy\",tag=\""));
}

/// Promtool only checks rules, so each query is converted to a rule.
#[test]
fn dashboard_queries_are_valid_promql() {
    let dashboard = fs::read_to_string(deploy("grafana-dashboard.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array());
    let queries = targets
        .flatten()
        .map(|target| target["expr"].as_str().unwrap());
    let mut rules = "groups:\n- name: dashboard\n  rules:\n".to_owned();
    for (number, query) in queries.enumerate() {
        let query = query.replace("$__rate_interval", "5m");
        let query = serde_json::to_string(&query).unwrap();
        rules += &format!("  - {{record: 'query:{number}', expr: {query}}}\n");
    }
    assert!(rules.lines().count() > 15, "{rules}");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("dashboard.yaml");
    fs::write(&file, rules).unwrap();
    promtool(&["check", "rules"], &file);
}
