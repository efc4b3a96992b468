//! The access log and metrics at a collector.

use super::*;
use crate::support::mesh::{documents, service};
use crate::support::until;

const LOGS: (&str, &str) = ("OTEL_LOGS_EXPORTER", "otlp");

/// Returns a proxy with these arguments that sends log records soon.
fn logging(collector: &Collector, origin: &Origin, arguments: &[&str]) -> Start {
    start(collector, arguments, |edge| everything_to(edge, origin))
        .env(LOGS.0, LOGS.1)
        .env("OTEL_BLRP_SCHEDULE_DELAY", "10")
}

#[tokio::test]
async fn log_records_have_the_request_and_its_trace() {
    for back in [Back::H1, Back::H2] {
        let (collector, origin) = (Collector::start(back), Origin::named(Back::H1, "hello"));
        let proxy = logging(&collector, &origin, &["--trace-sampling", "100"]).start();
        let mut client = Client::connect(Front::H1, proxy.edge).await;
        assert_eq!(
            client
                .call(with(&[("user-agent", "a\"\u{e9}")]))
                .await
                .status,
            200
        );
        let spans = collector.wait(2).await;
        let (records, resource) = collector.records(1).await;
        let record = &records[0];
        assert_eq!(record.trace(), (spans[0].trace(), spans[0].id()));
        assert_eq!((record.flags, record.severity), (spans[0].flags & 0xff, 9));
        assert_eq!(record.time / 1_000_000, spans[0].start / 1_000_000);
        assert!(record.observed >= record.time);
        for (key, value) in [
            ("method", "GET"),
            ("path", "/path?q=1"),
            ("protocol", "HTTP/1.1"),
            ("response_code", "200"),
            ("response_flags", "-"),
            ("authority", "a.test"),
            ("user_agent", "a\\x22\\xC3\\xA9"),
            ("upstream_request_attempt_count", "1"),
        ] {
            assert_eq!(record.get(key), value, "{key}");
        }
        assert!(
            record.body().contains("\"GET /path?q=1 HTTP/1.1\" 200 -"),
            "{}",
            record.body()
        );
        assert!(!record.body().ends_with('\n'));
        assert_eq!(resource["log_name"], "otel_envoy_accesslog");
        assert!(!collector.resource().contains_key("log_name"));
        let sink = [("sink", "otlp")];
        assert_eq!(proxy.metric("strait_access_log_lines_total", &sink), 1.0);
        assert_eq!(
            proxy.metric("strait_access_log_lines_dropped_total", &sink),
            0.0
        );
    }
}

#[tokio::test]
async fn severity_of_a_record_is_by_the_status() {
    let collector = Collector::start(Back::H1);
    let origin = Origin::start(Back::H1, |request: Request<_>| async move {
        let status: u16 = request.uri().path()[1..].parse().unwrap();
        hyper::Response::builder()
            .status(status)
            .body(empty())
            .unwrap()
    });
    let proxy = logging(&collector, &origin, &["--access-log", "off"]).start();
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    for status in [204, 302, 404, 503] {
        assert_eq!(client.get(&format!("/{status}")).await.status, status);
    }
    let (records, _) = collector.records(4).await;
    let severities = records.iter().map(|record| record.severity);
    assert_eq!(severities.collect::<Vec<_>>(), [9, 9, 13, 17]);
}

#[tokio::test]
async fn records_go_to_the_provider_that_a_telemetry_names() {
    let (collector, origin) = (Collector::start(Back::H2), Origin::named(Back::H1, "hello"));
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("mesh-config.yaml");
    let provider = |name: &str, format: &str| {
        format!(
            "- name: {name}\n  envoyOtelAls: {{service: default/collector.test, port: 80, logName: {name}{format}}}\n"
        )
    };
    let format = ", logFormat: {text: \"%REQ(:METHOD)% %RESPONSE_CODE%\", labels: {host: \"%REQ(:AUTHORITY)%\", none: \"%REQ(x-none)%\"}}";
    let providers = provider("own", format) + &provider("plain", "");
    std::fs::write(&config, format!("extensionProviders:\n{providers}")).unwrap();
    let telemetry = |names: &str, filter: &str| {
        format!(
            "apiVersion: telemetry.istio.io/v1\nkind: Telemetry\n\
             metadata: {{name: all, namespace: istio-system}}\n\
             spec: {{accessLogging: [{{providers: [{names}], filter: {{expression: \"{filter}\"}}}}]}}\n"
        )
    };
    let start = Start::new()
        .args(["--mesh-config", config.to_str().unwrap()])
        .env("OTEL_BLRP_SCHEDULE_DELAY", "10")
        .without_log_flags();
    let mesh = documents([
        &*everything_to(start.edge(), &origin),
        &service("collector", Back::H2, &[(collector.address(), "v1")]),
    ]);
    let proxy = start
        .file("mesh.yaml", mesh)
        .file(
            "telemetry.yaml",
            telemetry("{name: own}", "request.headers['x-log'] == 'yes'"),
        )
        .start();
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    client.call(with(&[])).await;
    client.call(with(&[("x-log", "yes")])).await;
    let (records, resource) = collector.records(1).await;
    assert_eq!(records[0].body(), "GET 200");
    assert_eq!(
        (records[0].get("host"), records[0].get("none")),
        ("a.test".into(), "-".into())
    );
    assert_eq!(records[0].attributes.len(), 2);
    assert_eq!(resource["log_name"], "own");
    proxy.write(
        "telemetry.yaml",
        telemetry("{name: own}, {name: plain}", "true"),
    );
    until("both providers are in effect", async || {
        client.call(with(&[])).await;
        let page = proxy.page("/stats/prometheus");
        ["otlp:own", "otlp:plain"]
            .iter()
            .all(|sink| page.contains(&format!("strait_access_log_lines_total{{sink=\"{sink}\"}}")))
    })
    .await;
    assert_eq!(
        proxy.metric(
            "strait_access_log_lines_dropped_total",
            &[("sink", "otlp:own")]
        ),
        0.0
    );
}

#[tokio::test]
async fn records_that_wait_are_sent_when_the_proxy_ends() {
    let (collector, origin) = (Collector::start(Back::H1), Origin::named(Back::H1, "hello"));
    let mut proxy = start(&collector, &[], |edge| everything_to(edge, &origin))
        .env(LOGS.0, LOGS.1)
        .env("OTEL_BLRP_SCHEDULE_DELAY", "3600000")
        .start();
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    for _ in 0..20 {
        client.call(with(&[])).await;
    }
    drop(client);
    proxy.signal("TERM");
    collector.records(20).await;
    proxy.wait();
}

#[tokio::test]
async fn pushed_metrics_have_the_values_of_a_scrape() {
    for back in [Back::H1, Back::H2] {
        let (collector, origin) = (Collector::start(back), Origin::named(Back::H1, "hello"));
        let proxy = start(&collector, &["--otlp-metrics"], |edge| {
            everything_to(edge, &origin)
        })
        .env("OTEL_METRIC_EXPORT_INTERVAL", "20")
        .start();
        let mut client = Client::connect(Front::H1, proxy.edge).await;
        for _ in 0..5 {
            client.call(with(&[])).await;
        }
        let counted = || {
            let found = collector.metrics("istio_requests");
            let sums = found.into_iter().filter_map(|one| one.sum);
            sums.flat_map(|one| one.points).collect::<Vec<_>>()
        };
        until("the requests are pushed", async || {
            counted().iter().map(|one| one.value).sum::<f64>() == 5.0
        })
        .await;
        let point = counted().remove(0);
        let code = point
            .attributes
            .iter()
            .find(|one| one.key == "response_code");
        assert!(code.is_some(), "{point:?}");
        assert_eq!(
            proxy.metric("istio_requests_total", &[("response_code", "200")]),
            5.0
        );
        let found = collector.metrics("istio_request_duration_milliseconds");
        let durations = found[0].histogram.as_ref().unwrap();
        assert_eq!(durations.points[0].count, 5);
        assert_eq!(durations.points[0].counts.iter().sum::<u64>(), 5);
        let result = [("signal", "metrics"), ("result", "ok")];
        assert!(proxy.metric("strait_otlp_exports_total", &result) >= 1.0);
        collector.answer(std::iter::repeat_n(
            crate::support::otlp::Answer {
                status: Some(if back == Back::H1 { 400 } else { 3 }),
                ..Default::default()
            },
            10_000,
        ));
        until("a refused push is counted", async || {
            let result = [("signal", "metrics"), ("result", "failed")];
            proxy.metric("strait_otlp_exports_total", &result) >= 1.0
        })
        .await;
        assert!(proxy.page("/").contains("collector answered"));
    }
}
