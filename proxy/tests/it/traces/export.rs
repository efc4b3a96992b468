//! Export to a collector: protocols, retries, TLS, headers, resource, and the end of the process.

use std::time::{Duration, Instant};

use super::*;
use crate::support::otlp::Answer;
use crate::support::pki::Authority;
use crate::support::proxy::free_address;
use crate::support::tls::files;
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};
use crate::support::{eventually, until};

const ALL: [&str; 2] = ["--trace-sampling", "100"];

/// Returns a proxy before an origin that sends everything to a collector.
fn world(collector: &Collector, arguments: &[&str]) -> (Origin, Proxy) {
    let origin = Origin::named(Back::H1, "hello");
    let arguments = [&ALL[..], arguments].concat();
    let proxy = traced(collector, &arguments, |edge| everything_to(edge, &origin));
    (origin, proxy)
}

async fn get(proxy: &Proxy) {
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.get("/").await.status, 200);
}

fn refusing(status: u16) -> Answer {
    Answer {
        status: Some(status),
        ..Answer::default()
    }
}

fn dropped(proxy: &Proxy, reason: &str) -> f64 {
    proxy.metric("strait_trace_spans_dropped_total", &[("reason", reason)])
}

/// Returns the number of requests to the collector with a result.
fn exports(proxy: &Proxy, result: &str) -> f64 {
    let labels = [("signal", "traces"), ("result", result)];
    proxy.metric("strait_otlp_exports_total", &labels)
}

#[tokio::test]
async fn spans_go_over_both_protocols() {
    for back in [Back::H1, Back::H2] {
        for compression in ["none", "gzip"] {
            let collector = Collector::start(back);
            let arguments = [
                "--otlp-compression",
                compression,
                "--otlp-header",
                "x-tenant=t1",
            ];
            let (_origin, proxy) = world(&collector, &arguments);
            get(&proxy).await;
            collector.wait(2).await;
            let received = collector.received().remove(0);
            assert_eq!(received.headers["x-tenant"], "t1");
            let path = match back {
                Back::H1 => "/v1/traces",
                Back::H2 => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            };
            assert_eq!(received.path, path);
            let spans = &received.export().resource_spans[0];
            let scope = spans.scope_spans[0].scope.as_ref().unwrap();
            assert_eq!(scope.name, "strait");
            assert!(spans.schema_url.ends_with("/1.44.0"));
            eventually("the export is counted", || exports(&proxy, "ok") >= 1.0);
            assert_eq!(proxy.metric("strait_trace_spans_exported_total", &[]), 2.0);
            assert!(proxy.metric("strait_otlp_last_success_timestamp_seconds", &[]) > 0.0);
            // the exports themselves are no requests
            assert_eq!(proxy.metric("istio_requests_total", &[]), 1.0);
        }
    }
}

#[tokio::test]
async fn resource_is_that_of_the_workload_and_the_variables() {
    let collector = Collector::start(Back::H1);
    let origin = Origin::named(Back::H1, "hello");
    let arguments = [&ALL[..], &["--locality", "r1/z1/s1", "--namespace", "shop"]].concat();
    let proxy = start(&collector, &arguments, |edge| {
        everything_to(edge, &origin).replace("metadata: {name", "metadata: {namespace: shop, name")
    })
    .env("OTEL_RESOURCE_ATTRIBUTES", "team=a%2Cb")
    .env("POD_NAME", "edge-1")
    .env("CONTAINER_NAME", "main")
    .start();
    get(&proxy).await;
    collector.wait(2).await;
    let resource = collector.resource();
    for (key, value) in [
        ("service.name", "istio-proxy.shop"),
        ("service.namespace", "shop"),
        ("service.instance.id", "shop.edge-1.main"),
        ("k8s.pod.name", "edge-1"),
        ("cloud.region", "r1"),
        ("cloud.availability_zone", "z1"),
        ("telemetry.sdk.name", "strait"),
        ("team", "a,b"),
    ] {
        assert_eq!(resource.get(key).map(String::as_str), Some(value), "{key}");
    }
}

#[tokio::test]
async fn name_of_the_service_is_the_first_that_is_given() {
    let conventions = "extensionProviders: [{name: p, opentelemetry: {service: c.test, port: 80, \
                       serviceAttributeEnrichment: OTEL_SEMANTIC_CONVENTIONS}}]";
    let instance = "app.kubernetes.io/instance=blue,app=shop";
    let name = ("OTEL_SERVICE_NAME", "variable");
    let attribute = ("OTEL_RESOURCE_ATTRIBUTES", "service.name=attribute");
    let workload = ("ISTIO_META_WORKLOAD_NAME", "web");
    for (flag, variables, labels, config, expected) in [
        ("flag", &[name, attribute][..], instance, "{}", "flag"),
        ("", &[name, attribute], instance, "{}", "variable"),
        ("", &[attribute], instance, "{}", "attribute"),
        ("", &[workload], instance, conventions, "blue"),
        ("", &[workload], "app=shop", conventions, "web"),
        ("", &[("POD_NAME", "web-1")], "", conventions, "web-1"),
        ("", &[], "", conventions, "unknown_service"),
        (
            "",
            &[],
            "app=shop",
            "defaultConfig: {serviceCluster: own}",
            "own",
        ),
        (
            "",
            &[],
            "app=shop",
            "defaultConfig: {serviceCluster: istio-proxy}",
            "shop.default",
        ),
        (
            "",
            &[],
            "app=shop",
            "defaultConfig: {tracingServiceName: CANONICAL_NAME_ONLY}",
            "shop",
        ),
        (
            "",
            &[],
            "service.istio.io/canonical-name=c,app=shop",
            "defaultConfig: {tracingServiceName: CANONICAL_NAME_AND_NAMESPACE}",
            "c.default",
        ),
        ("", &[workload], "", "{}", "web.default"),
        ("", &[], "", "{}", "istio-proxy.default"),
    ] {
        let (collector, origin) = (Collector::start(Back::H1), Origin::named(Back::H1, "o"));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("{config}\n")).unwrap();
        let labels = format!("istio=ingressgateway,{labels}");
        let arguments = [
            "--trace-sampling",
            "100",
            "--trace-service-name",
            flag,
            "--labels",
            labels.trim_end_matches(','),
            "--mesh-config",
            file.path().to_str().unwrap(),
        ];
        let arguments = arguments.into_iter().enumerate();
        let is_left_out = |at: usize| flag.is_empty() && (2..4).contains(&at);
        let arguments: Vec<&str> = arguments
            .filter_map(|(at, text)| (!is_left_out(at)).then_some(text))
            .collect();
        let start = start(&collector, &arguments, |edge| everything_to(edge, &origin));
        // those of this machine
        let start = start.env("POD_NAME", "").env("CONTAINER_NAME", "");
        let start = variables
            .iter()
            .fold(start, |start, (name, value)| start.env(name, value));
        let proxy = start.start();
        get(&proxy).await;
        collector.wait(2).await;
        assert_eq!(
            collector.resource()["service.name"],
            expected,
            "{flag} {variables:?} {labels} {config}"
        );
    }
}

#[tokio::test]
async fn batch_is_sent_again_when_the_collector_says_so() {
    let unavailable = Answer {
        status: Some(503),
        headers: vec![("retry-after", "1")],
        ..Answer::default()
    };
    let collector = Collector::start(Back::H1);
    collector.answer([unavailable]);
    let (_origin, proxy) = world(&collector, &[]);
    get(&proxy).await;
    until("the first time", async || collector.received().len() == 1).await;
    let first = Instant::now();
    until("the second time", async || collector.received().len() == 2).await;
    // the clocks of both differ by what a loaded machine takes
    assert!(first.elapsed() > Duration::from_millis(900));
    let received = collector.received();
    assert_eq!(received[0].export(), received[1].export());
    eventually("both are counted", || exports(&proxy, "ok") == 1.0);
    assert_eq!(exports(&proxy, "retried"), 1.0);
    assert_eq!(proxy.metric("strait_trace_spans_exported_total", &[]), 2.0);
    assert_eq!(collector.received().len(), 2);
}

#[tokio::test]
async fn refused_batch_is_not_sent_again() {
    // INVALID_ARGUMENT, RESOURCE_EXHAUSTED without a delay
    for (back, status) in [
        (Back::H1, 400),
        (Back::H1, 500),
        (Back::H2, 3),
        (Back::H2, 8),
    ] {
        let collector = Collector::start(back);
        collector.answer([refusing(status)]);
        let (_origin, proxy) = world(&collector, &[]);
        get(&proxy).await;
        eventually("the spans are dropped", || {
            dropped(&proxy, "rejected") == 2.0
        });
        assert_eq!(exports(&proxy, "failed"), 1.0);
        proxy.has_logged("trace spans cannot be exported");
        get(&proxy).await;
        until("the next batch", async || collector.received().len() == 2).await;
        assert_ne!(
            collector.received()[0].export(),
            collector.received()[1].export()
        );
    }
}

#[tokio::test]
async fn unavailable_grpc_collector_gets_the_batch_again() {
    let collector = Collector::start(Back::H2);
    collector.answer([refusing(14)]);
    let (_origin, proxy) = world(&collector, &[]);
    get(&proxy).await;
    until("the second time", async || collector.received().len() == 2).await;
    let received = collector.received();
    assert_eq!(received[0].export(), received[1].export());
    eventually("both are counted", || exports(&proxy, "ok") == 1.0);
}

#[tokio::test]
async fn partial_success_is_counted_and_not_repeated() {
    for back in [Back::H1, Back::H2] {
        let collector = Collector::start(back);
        // one rejected span, and a message
        let body = b"\x0a\x07\x08\x01\x12\x03old".to_vec();
        collector.answer([Answer {
            body,
            ..Answer::default()
        }]);
        let (_origin, proxy) = world(&collector, &[]);
        get(&proxy).await;
        eventually("the rejected span is counted", || {
            dropped(&proxy, "rejected") == 1.0
        });
        assert_eq!(proxy.metric("strait_trace_spans_exported_total", &[]), 1.0);
        assert_eq!(exports(&proxy, "partial"), 1.0);
        proxy.has_logged("rejected 1 trace spans: old");
        assert_eq!(collector.received().len(), 1);
    }
}

#[tokio::test]
async fn collector_that_starts_later_gets_what_waits() {
    let address = free_address();
    let origin = Origin::named(Back::H1, "hello");
    let url = format!("http://{address}");
    let start = Start::new()
        .args(ALL)
        .args(["--otlp-endpoint", &url])
        .env("OTEL_BSP_SCHEDULE_DELAY", "10");
    let mesh = everything_to(start.edge(), &origin);
    let proxy = start.file("mesh.yaml", mesh).start();
    get(&proxy).await;
    eventually("an export has failed", || exports(&proxy, "retried") >= 1.0);
    assert!(proxy.metric("strait_otlp_queue_bytes", &[]) > 0.0);
    let collector = Collector::start_on(std::net::TcpListener::bind(address).unwrap(), Back::H1);
    collector.wait(2).await;
}

#[tokio::test]
async fn requests_never_wait_for_a_collector_that_stalls() {
    // accepts connections and reads nothing
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let origin = Origin::named(Back::H1, "hello");
    let start = Start::new()
        .args(ALL)
        .args(["--otlp-endpoint", &url, "--access-log", "off"])
        .env("OTEL_BSP_SCHEDULE_DELAY", "10")
        .env("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "10")
        .env("OTEL_BSP_MAX_QUEUE_SIZE", "20");
    let mesh = everything_to(start.edge(), &origin);
    let mut proxy = start.file("mesh.yaml", mesh).start();
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    // 400 spans: more than 4 batches and all buffers hold
    for _ in 0..200 {
        assert_eq!(client.get("/").await.status, 200);
    }
    let lost = dropped(&proxy, "queue");
    assert!(lost > 0.0 && lost % 2.0 == 0.0, "{lost}");
    drop(client);
    let before = Instant::now();
    proxy.signal("TERM");
    proxy.wait();
    assert!(before.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn spans_are_sent_before_the_process_ends() {
    let collector = Collector::start(Back::H1);
    let origin = Origin::named(Back::H1, "hello");
    let start = Start::new()
        .args(ALL)
        .args(["--otlp-endpoint", &collector.url()])
        .env("OTEL_BSP_SCHEDULE_DELAY", "3600000");
    let mesh = everything_to(start.edge(), &origin);
    let mut proxy = start.file("mesh.yaml", mesh).start();
    for _ in 0..25 {
        get(&proxy).await;
    }
    proxy.signal("TERM");
    assert!(proxy.wait().success());
    collector.wait(50).await;
}

#[tokio::test]
async fn credentials_of_the_collector_are_in_no_page_and_no_log() {
    let collector = Collector::start(Back::H1);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "authorization=Bearer geheim\n").unwrap();
    let path = file.path().to_str().unwrap();
    let (_origin, proxy) = world(
        &collector,
        &["--otlp-headers-file", path, "--log-level", "trace"],
    );
    get(&proxy).await;
    collector.wait(2).await;
    assert_eq!(
        collector.received()[0].headers["authorization"],
        "Bearer geheim"
    );
    for page in ["/config_dump", "/", "/stats/prometheus"] {
        assert!(!proxy.page(page).contains("geheim"), "{page}");
    }
    assert!(!proxy.stderr().contains("geheim"));
}

#[tokio::test]
async fn endpoint_variable_alone_turns_nothing_on() {
    let collector = Collector::start(Back::H1);
    let origin = Origin::named(Back::H1, "hello");
    for (exporter, is_on) in [("", false), ("otlp", true)] {
        let start = Start::new()
            .args(ALL)
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url())
            .env("OTEL_TRACES_EXPORTER", exporter)
            .env("OTEL_BSP_SCHEDULE_DELAY", "10");
        let mesh = everything_to(start.edge(), &origin);
        let proxy = start.file("mesh.yaml", mesh).start();
        get(&proxy).await;
        let seen = origin.seen().pop().unwrap();
        assert_eq!(seen.header("traceparent").is_some(), is_on);
        collector.wait(if is_on { 2 } else { 0 }).await;
    }
}

#[tokio::test]
async fn collector_is_verified_and_may_ask_for_a_certificate() {
    let (ca, other) = (Authority::new("ca"), Authority::new("other"));
    let client = ca.server(&["proxy.test"]);
    let directory = tempfile::tempdir().unwrap();
    let all = [
        ("ca.pem", &*ca.pem()),
        ("other.pem", &other.pem()),
        ("client.pem", &client.chain),
        ("client.key", &client.key),
    ];
    let paths = files(directory.path(), &all);
    let path = |at: usize| paths[at].to_str().unwrap();
    let terms = Terms::new(&ca.server(&["localhost"]));
    let collector = TlsOrigin::start(Speaks::H1, &terms.clone().for_clients_of(&ca));
    let url = format!("https://localhost:{}", collector.address.port());
    let origin = Origin::named(Back::H1, "hello");
    let proxy = |arguments: &[&str]| {
        let start = Start::new()
            .args(ALL)
            .args(["--otlp-endpoint", &url])
            .args(arguments.iter().copied())
            .env("OTEL_BSP_SCHEDULE_DELAY", "10");
        let mesh = everything_to(start.edge(), &origin);
        start.file("mesh.yaml", mesh).start()
    };
    let certificate = ["--otlp-cert", path(2), "--otlp-key", path(3)];
    let trusting = proxy(&[&["--otlp-ca", path(0)][..], &certificate].concat());
    get(&trusting).await;
    eventually("the spans are exported", || exports(&trusting, "ok") == 1.0);
    assert!(collector.callers()[0].certificate.is_some());
    for arguments in [&["--otlp-ca", path(0)][..], &["--otlp-ca", path(1)]] {
        let failing = proxy(arguments);
        get(&failing).await;
        eventually("the export has failed", || {
            exports(&failing, "retried") >= 1.0
        });
        assert_eq!(exports(&failing, "ok"), 0.0);
        assert!(
            failing
                .page("/")
                .contains("Traces cannot be exported to https://localhost:")
        );
        failing.has_logged("trace spans cannot be exported");
    }
    assert_eq!(
        collector
            .callers()
            .iter()
            .map(|caller| caller.hosts.len())
            .sum::<usize>(),
        1
    );
}
