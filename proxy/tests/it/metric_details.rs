//! Metrics by rule and by phase of attempts, and exemplars.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::client::{Client, Front};
use crate::support::mesh::{documents, everything_to, gateway, routes, with_policy};
use crate::support::origin::{Back, Origin, RawOrigin, full};
use crate::support::otlp::Collector;
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::Raw;
use crate::support::{eventually, until};

const RULES: &str = "strait_rule_requests_total";

/// Returns this many rules, each for a path of its own.
fn rules(count: usize) -> String {
    let rule = |number| {
        format!("- {{match: [{{uri: {{exact: /r{number}}}}}], directResponse: {{status: 204}}}}\n")
    };
    (0..count).map(rule).collect()
}

fn mesh(edge: SocketAddr, rules: &str) -> String {
    documents([gateway(&[edge]), routes("all", "['*']", rules)])
}

/// Requests by rule.
fn by_rule(proxy: &Proxy) -> Vec<(String, u64)> {
    let page = proxy.page("/stats/prometheus");
    let of_name = page.lines().filter_map(|line| {
        let rest = line.strip_prefix(RULES)?.split_once("rule=\"")?.1;
        let (rule, rest) = rest.split_once('"')?;
        let (_, count) = rest.rsplit_once(' ')?;
        Some((rule.to_owned(), count.parse().unwrap()))
    });
    of_name.collect()
}

#[test]
fn rules_beyond_the_limit_are_other_and_the_sum_is_that_of_requests() {
    const COUNT: usize = 1500;
    let proxy = Proxy::with(|edge| mesh(edge, &rules(COUNT)));
    let mut client = Raw::connect(proxy.edge);
    for number in 0..COUNT {
        let reply = client.send(format!("GET /r{number} HTTP/1.1\r\nHost: a.test\r\n\r\n"));
        assert_eq!(reply.reply().status, 204);
    }
    let sum = || by_rule(&proxy).iter().map(|(_, count)| count).sum::<u64>();
    eventually("all are counted", || sum() == COUNT as u64);
    let counted = by_rule(&proxy);
    assert_eq!(counted.len(), 1001);
    let of = |rule: &str| {
        counted
            .iter()
            .find(|(name, _)| name == rule)
            .map(|(_, count)| *count)
    };
    assert_eq!(of("VirtualService/default/all[999]"), Some(1));
    assert_eq!(of("VirtualService/default/all[1000]"), None);
    assert_eq!(of("other"), Some(500));
    let overflow = proxy.metric("strait_metric_label_overflow_total", &[("metric", RULES)]);
    assert_eq!(overflow, 500.0);
}

#[test]
fn counter_of_a_rule_goes_on_after_it_was_removed_and_added_again() {
    let named = "- {name: cart, match: [{uri: {exact: /cart}}], directResponse: {status: 404}}\n";
    let both = format!("{named}{}", rules(1));
    let proxy = Proxy::with(|edge| mesh(edge, &both));
    let get = |path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n");
        Raw::connect(proxy.edge).send(request).reply();
    };
    let change = |rules: &str| {
        let generation = || proxy.metric("strait_config_generation", &[]);
        let before = generation();
        proxy.write("mesh.yaml", mesh(proxy.edge, rules));
        eventually("the change is in effect", || generation() > before);
    };
    let labels = [
        ("rule", "VirtualService/default/all[cart]"),
        ("response_code_class", "4xx"),
    ];
    let count = || proxy.metric(RULES, &labels);
    get("/cart");
    eventually("it is counted", || count() == 1.0);
    change(&rules(1));
    assert_eq!(count(), 1.0);
    change(&both);
    get("/cart");
    eventually("it goes on", || count() == 2.0);
}

#[test]
fn rules_are_not_counted_when_that_is_off() {
    let start = Start::new().args(["--rule-metrics", "off"]);
    let mesh = mesh(start.edge(), &rules(1));
    let proxy = start.file("mesh.yaml", mesh).start();
    Raw::connect(proxy.edge)
        .send("GET /r0 HTTP/1.1\r\nHost: a.test\r\n\r\n")
        .reply();
    eventually("it is counted", || {
        proxy.metric("istio_requests_total", &[]) == 1.0
    });
    assert!(by_rule(&proxy).is_empty());
}

/// Seconds of a phase of attempts at `web.test`, and their number.
fn phase(proxy: &Proxy, phase: &str) -> [f64; 2] {
    let labels = [("destination_service", "web.test"), ("phase", phase)];
    ["sum", "count"]
        .map(|part| proxy.metric(&format!("strait_upstream_phase_seconds_{part}"), &labels))
}

#[tokio::test]
async fn connect_that_takes_long_is_a_phase_of_its_service() {
    let silent = RawOrigin::start(|_, _stream| std::thread::park());
    let policy = "{tls: {mode: SIMPLE, insecureSkipVerify: true}, \
                  connectionPool: {tcp: {connectTimeout: 200ms}}}";
    let proxy = Proxy::with(|edge| with_policy(edge, silent.address, policy));
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.get("/").await.status, 503);
    // the default of two retries
    until("all attempts are counted", async || {
        phase(&proxy, "connect")[1] == 3.0
    })
    .await;
    let [seconds, _] = phase(&proxy, "connect");
    assert!((0.6..6.0).contains(&seconds), "{seconds}");
    for other in ["wait", "first_byte", "body"] {
        assert_eq!(phase(&proxy, other), [0.0, 0.0], "{other}");
    }
}

#[tokio::test]
async fn wait_in_the_queue_of_a_limit_is_a_phase() {
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let held = std::sync::Arc::clone(&gate);
    let origin = Origin::start(Back::H1, move |_| {
        let held = std::sync::Arc::clone(&held);
        async move {
            held.acquire().await.unwrap().forget();
            hyper::Response::new(full("x"))
        }
    });
    let policy = "{connectionPool: {tcp: {maxConnections: 1}}}";
    let proxy = Proxy::with(|edge| with_policy(edge, origin.address, policy));
    let get = || {
        let edge = proxy.edge;
        tokio::spawn(async move { Client::connect(Front::H1, edge).await.get("/").await.status })
    };
    let first = get();
    until("the first is at the origin", async || {
        origin.connections() == 1
    })
    .await;
    let second = get();
    until("the second waits", async || {
        proxy.metric(
            "strait_upstream_overflows_total",
            &[("limit", "connections")],
        ) > 0.0
    })
    .await;
    gate.add_permits(2);
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (200, 200));
    until("both are counted", async || phase(&proxy, "body")[1] == 2.0).await;
    assert_eq!(phase(&proxy, "first_byte")[1], 2.0);
    let [waited, _] = phase(&proxy, "wait");
    assert!(waited > 0.0);
    assert_eq!(phase(&proxy, "tls"), [0.0, 0.0]);
}

#[tokio::test]
async fn destination_has_its_endpoints_and_limits() {
    let origin = Origin::start(Back::H1, |request| async move {
        let status = request
            .uri()
            .path()
            .trim_matches('/')
            .parse()
            .unwrap_or(200);
        let response = hyper::Response::builder().status(status);
        response.body(full("x")).unwrap()
    });
    let policy = "{connectionPool: {tcp: {maxConnections: 7}}, outlierDetection: {consecutive5xxErrors: 1, \
                  maxEjectionPercent: 100, baseEjectionTime: 600s}}";
    let proxy = Proxy::with(|edge| with_policy(edge, origin.address, policy));
    let state = |name: &str, label: &str, value: &str| {
        let labels = [
            ("destination_service", "web.test"),
            ("port", "80"),
            (label, value),
        ];
        proxy.metric(&format!("strait_destination_{name}"), &labels)
    };
    assert!(
        !proxy
            .page("/metrics")
            .contains("strait_destination_endpoints{")
    );
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.get("/200").await.status, 200);
    let states = || ["available", "ejected"].map(|one| state("endpoints", "state", one));
    assert_eq!(states(), [1.0, 0.0]);
    assert_eq!(state("limit", "limit", "connections"), 7.0);
    assert_eq!(state("in_use", "limit", "connections"), 1.0);
    assert_eq!(client.get("/500").await.status, 500);
    until("it is ejected", async || states() == [0.0, 1.0]).await;
    let address = origin.address.to_string();
    let out = || state("endpoint_unavailable", "endpoint", &address);
    assert_eq!(out(), 1.0);
    assert_eq!(state("endpoint_unavailable", "state", "ejected"), 1.0);
}

/// Metrics page in OpenMetrics.
fn open_metrics(proxy: &Proxy) -> String {
    let mut stream = TcpStream::connect(proxy.admin).unwrap();
    write!(
        stream,
        "GET /metrics HTTP/1.0\r\naccept: application/openmetrics-text\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Sends one request that is sampled. Returns the proxy and the trace id that the collector has.
async fn sampled(collector: &Collector, arguments: &[&str]) -> (Proxy, String) {
    let origin = Origin::named(Back::H1, "hello");
    let start = Start::new()
        .args([
            "--otlp-endpoint",
            &collector.url(),
            "--trace-sampling",
            "100",
        ])
        .args(arguments.iter().copied())
        .env("OTEL_BSP_SCHEDULE_DELAY", "10");
    let mesh = everything_to(start.edge(), &origin);
    let proxy = start.file("mesh.yaml", mesh).start();
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.get("/").await.status, 200);
    let spans = collector.wait(2).await;
    let trace = spans[0].trace_id.iter().map(|byte| format!("{byte:02x}"));
    (proxy, trace.collect())
}

#[tokio::test]
async fn sampled_request_is_an_exemplar_in_open_metrics_only() {
    let collector = Collector::start(Back::H1);
    let (proxy, trace) = sampled(&collector, &[]).await;
    let page = open_metrics(&proxy);
    let lines: Vec<_> = page.lines().filter(|line| line.contains(" # {")).collect();
    let [line] = lines[..] else {
        panic!("{lines:?}")
    };
    assert!(
        line.starts_with("istio_request_duration_milliseconds_bucket{"),
        "{line}"
    );
    assert!(
        line.contains(&format!(" # {{trace_id=\"{trace}\",span_id=\"")),
        "{line}"
    );
    assert!(!proxy.page("/metrics").contains(" # {"));
}

#[tokio::test]
async fn exemplars_can_be_off() {
    let collector = Collector::start(Back::H1);
    let (proxy, _) = sampled(&collector, &["--exemplars", "off"]).await;
    assert!(!open_metrics(&proxy).contains(" # {"));
}

/// Prometheus that runs for a test.
struct Prometheus {
    child: Child,
    address: SocketAddr,
    _files: tempfile::TempDir,
}

impl Prometheus {
    /// Starts a server that scrapes a proxy; `None` if there is no program: `PROMETHEUS` names it, else it is searched in
    /// `PATH`.
    fn scraping(proxy: &Proxy) -> Option<Self> {
        let files = tempfile::tempdir().unwrap();
        let config = files.path().join("prometheus.yaml");
        let text = format!(
            "scrape_configs:\n- {{job_name: strait, scrape_interval: 200ms, scrape_timeout: 200ms, \
             static_configs: [{{targets: ['{}']}}]}}\n",
            proxy.admin
        );
        fs::write(&config, text).unwrap();
        let address = free_address();
        let program = std::env::var("PROMETHEUS").unwrap_or("prometheus".to_owned());
        let child = Command::new(program)
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                files.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .arg("--enable-feature=exemplar-storage")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        Some(Self {
            child,
            address,
            _files: files,
        })
    }

    /// Answer of the API; empty while the server does not answer.
    fn get(&self, path: &str) -> String {
        let asked = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(self.address)?;
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            Ok(text)
        };
        asked().unwrap_or_default()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
#[allow(
    clippy::print_stderr,
    reason = "the reason of a skipped test is printed"
)]
async fn prometheus_returns_the_trace_of_an_exemplar() {
    let collector = Collector::start(Back::H1);
    let (proxy, trace) = sampled(&collector, &[]).await;
    let Some(prometheus) = Prometheus::scraping(&proxy) else {
        return eprintln!("skipped: prometheus cannot be run");
    };
    let query = "query=istio_request_duration_milliseconds_bucket&start=0&end=4102444800";
    let path = format!("/api/v1/query_exemplars?{query}");
    until("the exemplar is there", async || {
        prometheus.get(&path).contains(&trace)
    })
    .await;
}
