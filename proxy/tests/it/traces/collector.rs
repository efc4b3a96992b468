//! The OpenTelemetry Collector as the judge of what is exported.
//!
//! Set `OTELCOL` to a collector with an OTLP receiver and a file exporter; without it, or `otelcol` in `PATH`, the test is
//! skipped.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

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
