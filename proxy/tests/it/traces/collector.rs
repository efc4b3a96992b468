//! The OpenTelemetry Collector as the judge of what is exported.
//!
//! Set `OTELCOL` to a collector with an OTLP receiver and a file exporter; without it, or `otelcol` in `PATH`, the test is
//! skipped.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use hyper::header::HeaderValue;
use proptest::prelude::{Just, any, prop_oneof};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::Value;

use super::*;
use crate::support::eventually;
use crate::support::proxy::free_address;

/// Running collector, ended on drop.
struct Judge {
    child: Child,
    directory: tempfile::TempDir,
    http: SocketAddr,
    grpc: SocketAddr,
}

impl Drop for Judge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Judge {
    #[expect(clippy::print_stderr, reason = "a test that is skipped says why")]
    fn start() -> Option<Self> {
        let binary = std::env::var("OTELCOL").unwrap_or_else(|_| "otelcol".to_owned());
        let directory = tempfile::tempdir().unwrap();
        let (http, grpc) = (free_address(), free_address());
        let file = directory.path().join("traces.json");
        let config = format!(
            "receivers: {{otlp: {{protocols: {{grpc: {{endpoint: \"{grpc}\"}}, http: {{endpoint: \"{http}\"}}}}}}}}\n\
             exporters: {{file: {{path: \"{}\", flush_interval: 50ms}}}}\n\
             service:\n  telemetry: {{metrics: {{level: none}}}}\n  \
             pipelines: {{traces: {{receivers: [otlp], exporters: [file]}}}}\n",
            file.display()
        );
        let path = directory.path().join("collector.yaml");
        std::fs::write(&path, config).unwrap();
        let child = Command::new(&binary)
            .arg("--config")
            .arg(path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = child else {
            eprintln!("skipped: there is no OpenTelemetry Collector ({binary})");
            return None;
        };
        let judge = Self {
            child,
            directory,
            http,
            grpc,
        };
        eventually("the collector listens", || {
            [http, grpc]
                .iter()
                .all(|address| TcpStream::connect(address).is_ok())
        });
        Some(judge)
    }

    /// Returns the spans in the file, as OTLP's JSON.
    fn spans(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.directory.path().join("traces.json"));
        let text = text.unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let mut spans = Vec::new();
        for line in whole.lines() {
            let request: Value = serde_json::from_str(line).unwrap();
            for resource in request["resourceSpans"].as_array().unwrap() {
                for scope in resource["scopeSpans"].as_array().unwrap() {
                    assert_eq!(scope["scope"]["name"], "strait");
                    spans.extend(scope["spans"].as_array().unwrap().clone());
                }
            }
        }
        spans
    }
}

#[tokio::test]
async fn collector_reads_the_spans_of_both_protocols() {
    let Some(judge) = Judge::start() else { return };
    let urls = [
        format!("http://{}", judge.http),
        format!("grpc://{}", judge.grpc),
    ];
    let origin = Origin::named(Back::H1, "hello");
    for (number, url) in urls.iter().enumerate() {
        for compression in ["none", "gzip"] {
            let before = judge.spans().len();
            let start = Start::new()
                .args(["--otlp-endpoint", url, "--otlp-compression", compression])
                .args(["--trace-sampling", "100", "--trace-attributes", "both"])
                .env("OTEL_BSP_SCHEDULE_DELAY", "10");
            let mesh = everything_to(start.edge(), &origin);
            let proxy = start.file("mesh.yaml", mesh).start();
            let mut client = Client::connect(Front::H1, proxy.edge).await;
            client.call(with(&[("traceparent", &parent("01"))])).await;
            eventually("the collector has both spans", || {
                judge.spans().len() == before + 2
            });
            let spans = judge.spans().split_off(before);
            let server = spans.iter().find(|span| span["kind"] == 2).unwrap();
            let attempt = spans.iter().find(|span| span["kind"] == 3).unwrap();
            assert_eq!(server["traceId"], TRACE, "{number}");
            assert_eq!(server["parentSpanId"], PARENT);
            assert_eq!(attempt["parentSpanId"], server["spanId"]);
            let seen = origin.seen().pop().unwrap();
            assert_eq!(attempt["spanId"], context(&seen).1);
            let attributes = server["attributes"].as_array().unwrap();
            let status = attributes
                .iter()
                .find(|one| one["key"] == "http.response.status_code");
            assert_eq!(status.unwrap()["value"]["intValue"], "200");
            assert_eq!(proxy.metric("strait_trace_spans_dropped_total", &[]), 0.0);
        }
    }
}

/// Path, and bytes of a header that is an attribute.
fn random_request() -> impl Strategy<Value = (String, Vec<u8>)> {
    let byte = prop_oneof![
        Just(0xc3),
        Just(b'"'),
        Just(b'\\'),
        0x21_u8..=0x7e,
        0x80_u8..
    ];
    let path = "/[a-zA-Z0-9_~!$&'()*+,;=:@/-]{0,400}";
    (path, proptest::collection::vec(byte, 1..400))
}

/// A text as an attribute has it: at most 256 bytes, and whole characters.
fn cut(text: &str) -> &str {
    let ends = text.char_indices().map(|(at, one)| at + one.len_utf8());
    let end = ends.take_while(|end| *end <= 256).last();
    &text[..end.unwrap_or_default()]
}

fn text<'a>(span: &'a Value, key: &str) -> Option<&'a str> {
    let mut all = span["attributes"].as_array()?.iter();
    all.find(|one| one["key"] == key)?["value"]["stringValue"].as_str()
}

#[tokio::test]
async fn collector_reads_what_random_requests_had() {
    let Some(judge) = Judge::start() else { return };
    let origin = Origin::named(Back::H1, "hello");
    let mesh = "apiVersion: telemetry.istio.io/v1\nkind: Telemetry\n\
                metadata: {name: all, namespace: istio-system}\n\
                spec: {tracing: [{customTags: {raw: {header: {name: x-raw}}}}]}\n";
    let start = Start::new()
        .args(["--otlp-endpoint", &format!("grpc://{}", judge.grpc)])
        .args(["--trace-sampling", "100"])
        .env("OTEL_BSP_SCHEDULE_DELAY", "10");
    let rules = everything_to(start.edge(), &origin);
    let proxy = start
        .file("mesh.yaml", rules)
        .file("telemetry.yaml", mesh)
        .start();
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let (mut random, mut expected) = (TestRunner::default(), Vec::new());
    for number in 0..100 {
        let (path, raw) = random_request().new_tree(&mut random).unwrap().current();
        let seed = any::<u64>().new_tree(&mut random).unwrap().current();
        let trace = format!("{:016x}{:016x}", number + 1, seed);
        let mut request = with(&[("traceparent", &format!("00-{trace}-{PARENT}-01"))]);
        *request.uri_mut() = format!("http://a.test{path}").parse().unwrap();
        let value = HeaderValue::from_bytes(&raw).unwrap();
        request.headers_mut().insert("x-raw", value);
        assert_eq!(client.call(request).await.status, 200, "{path}");
        let text = String::from_utf8_lossy(&raw).into_owned();
        expected.push((trace, cut(&path).to_owned(), cut(&text).to_owned()));
    }
    eventually("the collector has all spans", || {
        judge.spans().len() == 2 * expected.len()
    });
    let spans = judge.spans();
    for (trace, path, raw) in expected {
        let of_trace: Vec<&Value> = spans
            .iter()
            .filter(|one| one["traceId"] == *trace)
            .collect();
        assert_eq!(of_trace.len(), 2, "{trace}");
        let is_raw = |span: &&Value| text(span, "raw") == Some(&raw);
        assert!(of_trace.iter().all(is_raw), "{raw}: {of_trace:?}");
        let server = of_trace.iter().find(|span| span["kind"] == 2).unwrap();
        assert_eq!(text(server, "url.path"), Some(&*path));
    }
}
