//! Labels of Istio's metrics with values of requests, by Telemetry resources.

use std::io::Read;
use std::net::TcpStream;

use crate::support::eventually;
use crate::support::mesh::{documents, gateway, routes};
use crate::support::origin::RawOrigin;
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::Raw;
use crate::tcp;

/// Telemetry of the mesh with these overrides of metrics.
fn telemetry(overrides: &str) -> String {
    format!(
        "apiVersion: telemetry.istio.io/v1\nkind: Telemetry\nmetadata: {{name: mesh, namespace: istio-system}}\n\
         spec: {{metrics: [{{providers: [{{name: prometheus}}], overrides: [{overrides}]}}]}}\n"
    )
}

fn start(start: Start, overrides: &str) -> Proxy {
    let mesh = documents([
        gateway(&[start.edge()]),
        routes("all", "['*']", "- directResponse: {status: 204}"),
    ]);
    let start = start.file("mesh.yaml", mesh);
    start.file("telemetry.yaml", telemetry(overrides)).start()
}

/// Sends requests on one connection, and reads their responses.
fn send(proxy: &Proxy, requests: impl IntoIterator<Item = String>) {
    let mut client = Raw::connect(proxy.edge);
    for request in requests {
        client.send(request).reply();
    }
}

/// Series of a metric: value of a label, and count.
fn series(proxy: &Proxy, name: &str, label: &str) -> Vec<(String, u64)> {
    let page = proxy.page("/stats/prometheus");
    let of_name = page.lines().filter_map(|line| {
        let labels = line.strip_prefix(name)?.strip_prefix('{')?;
        let (labels, count) = labels.rsplit_once("} ")?;
        let (_, value) = labels.split_once(&format!("{label}=\""))?;
        let (value, _) = value.split_once('"')?;
        Some((value.to_owned(), count.parse().unwrap()))
    });
    let mut series: Vec<_> = of_name.collect();
    series.sort_unstable();
    series
}

#[test]
fn hosts_beyond_the_limit_are_other_and_the_sum_is_that_of_requests() {
    let start_with = Start::new().args(["--metric-series-max", "1000"]);
    let overrides =
        "{match: {metric: REQUEST_COUNT}, tagOverrides: {request_host: {value: request.host}}}";
    let proxy = start(start_with, overrides);
    let request = |host: usize| format!("GET / HTTP/1.1\r\nHost: h{host}.test\r\n\r\n");
    send(&proxy, (0..5000).chain(0..100).map(request));
    let name = "istio_requests_total";
    let count = || -> u64 {
        series(&proxy, name, "request_host")
            .iter()
            .map(|(_, count)| count)
            .sum()
    };
    eventually("all are counted", || count() == 5100);
    let counted = series(&proxy, name, "request_host");
    assert_eq!(counted.len(), 1001);
    let other = counted.iter().find(|(host, _)| host == "other").unwrap().1;
    let known = counted
        .iter()
        .find(|(host, _)| host == "h7.test")
        .unwrap()
        .1;
    assert_eq!((other, known), (4000, 2));
    let overflow = "strait_metric_label_overflow_total";
    assert_eq!(proxy.metric(overflow, &[("metric", name)]), 4000.0);
    // other families have no such label, and one series for all
    let durations = "istio_request_duration_milliseconds_count";
    assert_eq!(
        series(&proxy, durations, "response_code"),
        [("204".to_owned(), 5100)]
    );
}

#[test]
fn labels_have_values_of_the_request_its_headers_and_its_connection() {
    let overrides = "{tagOverrides: {destination_port: {value: string(destination.port)}, \
                     team: {value: \"request.headers['x-team']\"}, kind: {value: \"response.code < 300 ? 'good' : 'bad'\"}}}";
    let proxy = start(Start::new(), overrides);
    let request = |team: &str| format!("GET / HTTP/1.1\r\nHost: a.test\r\n{team}\r\n");
    send(
        &proxy,
        ["X-Team: shop\r\n", "", "x-team: a\"b\r\n"].map(request),
    );
    let bytes = "istio_response_bytes_count";
    let teams = || series(&proxy, bytes, "team");
    let expected = [("a\\", 1), ("shop", 1), ("unknown", 1)];
    let expected = expected.map(|(team, count)| (team.to_owned(), count));
    eventually("all are counted", || teams() == expected);
    let port = proxy.edge.port().to_string();
    for name in ["istio_requests_total", bytes] {
        let ports = series(&proxy, name, "destination_port");
        assert!(ports.iter().all(|(value, _)| *value == port), "{ports:?}");
        let kinds = series(&proxy, name, "kind");
        assert!(kinds.iter().all(|(value, _)| value == "good"), "{kinds:?}");
        assert_eq!(ports.len(), 3);
    }
}

#[test]
fn connections_have_labels_with_their_own_values() {
    let origin = RawOrigin::start(|_, mut stream| drop(stream.read(&mut [0; 1])));
    let overrides = "{match: {metric: TCP_OPENED_CONNECTIONS}, tagOverrides: {port: {value: string(destination.port)}, \
                     host: {value: request.host}}}";
    let start = Start::new();
    let mesh = tcp::mesh(start.edge(), &tcp::to("a.test", 1));
    let mesh = documents([mesh, tcp::service("a.test", &[origin.address])]);
    let start = start.file("mesh.yaml", mesh);
    let proxy = start.file("telemetry.yaml", telemetry(overrides)).start();
    for _ in 0..2 {
        drop(TcpStream::connect(proxy.edge).unwrap());
    }
    let opened = "istio_tcp_connections_opened_total";
    let expected = [(proxy.edge.port().to_string(), 2)];
    eventually("both are counted", || {
        series(&proxy, opened, "port") == expected
    });
    assert_eq!(series(&proxy, opened, "host"), [("unknown".to_owned(), 2)]);
    let closed = "istio_tcp_connections_closed_total";
    eventually("both are closed", || proxy.metric(closed, &[]) == 2.0);
    assert!(series(&proxy, closed, "port").is_empty());
}

#[test]
fn expression_beyond_the_subset_keeps_the_last_good_version() {
    let label = |value: &str| {
        format!(
            "{{match: {{metric: REQUEST_COUNT}}, tagOverrides: {{team: {{value: \"{value}\"}}}}}}"
        )
    };
    let proxy = start(Start::new(), &label("request.headers['x-team']"));
    let refused = label("request.headers['x'].exists(h, h)");
    proxy.write("telemetry.yaml", telemetry(&refused));
    proxy.has_logged("TL015");
    assert_eq!(
        proxy.metric("strait_config_resources_rejected", &[("kind", "Telemetry")]),
        1.0
    );
    let request = "GET / HTTP/1.1\r\nHost: a.test\r\nX-Team: shop\r\n\r\n";
    send(&proxy, [request.to_owned()]);
    let expected = [("shop".to_owned(), 1)];
    eventually("it is counted", || {
        series(&proxy, "istio_requests_total", "team") == expected
    });
}
