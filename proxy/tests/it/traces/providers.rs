//! Providers of the mesh configuration, whose services are in the registry.

use std::io::Write;

use tempfile::NamedTempFile;

use super::zipkin::Receiver;
use super::*;
use crate::support::mesh::{documents, service};
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};
use crate::support::until;
use crate::upstream_tls::Files;

/// A proxy without a collector of its own, whose provider `p` has these fields.
struct Mesh {
    origin: Origin,
    proxy: Proxy,
    config: NamedTempFile,
}

fn config(provider: &str) -> String {
    format!("extensionProviders:\n- {{name: p, {provider}}}\n")
}

impl Mesh {
    /// `collector` is the endpoint of the service `collector.test`, which speaks this; `more` are further resources.
    fn start(provider: &str, collector: SocketAddr, back: Back, more: &str) -> Self {
        let origin = Origin::named(Back::H1, "hello");
        let mut config = NamedTempFile::new().unwrap();
        config
            .write_all(super::providers::config(provider).as_bytes())
            .unwrap();
        let start = Start::new()
            .args(["--mesh-config", config.path().to_str().unwrap()])
            .env("OTEL_BSP_SCHEDULE_DELAY", "10")
            .env("TOKEN", "secret");
        let telemetry = "apiVersion: telemetry.istio.io/v1\nkind: Telemetry\n\
                         metadata: {name: all, namespace: istio-system}\n\
                         spec: {tracing: [{providers: [{name: p}], randomSamplingPercentage: 100}]}";
        let mesh = documents([
            &*everything_to(start.edge(), &origin),
            &service("collector", back, &[(collector, "v1")]),
            telemetry,
            more,
        ]);
        let proxy = start.file("mesh.yaml", mesh).start();
        Self {
            origin,
            proxy,
            config,
        }
    }

    async fn get(&self, lines: &[(&str, &str)]) {
        let mut client = Client::connect(Front::H1, self.proxy.edge).await;
        assert_eq!(client.call(with(lines)).await.status, 200);
    }
}

#[tokio::test]
async fn provider_alone_turns_tracing_on() {
    let rows = [
        (
            Back::H2,
            "opentelemetry: {service: collector.test, port: 80, grpc: {initialMetadata: [{name: x-token, envName: TOKEN}]}}",
            "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        ),
        (
            Back::H1,
            "opentelemetry: {service: default/collector.test, port: 80, http: {path: /in, headers: [{name: x-token, value: secret}]}}",
            "/in",
        ),
    ];
    for (back, provider, path) in rows {
        let collector = Collector::start(back);
        let mesh = Mesh::start(provider, collector.address(), back, "");
        mesh.get(&[]).await;
        let spans = collector.wait(2).await;
        assert_eq!(context(&mesh.origin.only()).1, spans[1].id());
        let received = &collector.received()[0];
        assert_eq!(received.path, path);
        assert_eq!(received.headers["x-token"], "secret");
        let result = [("signal", "traces"), ("result", "ok")];
        // the proxy reads the response after the collector has the spans
        until("the export is counted", async || {
            mesh.proxy.metric("strait_otlp_exports_total", &result) == 1.0
        })
        .await;
    }
}

#[tokio::test]
async fn zipkin_of_the_mesh_reads_and_writes_b3() {
    let receiver = Receiver::start();
    let provider = "zipkin: {service: collector.test, port: 80, enable64bitTraceId: true}";
    let mesh = Mesh::start(provider, receiver.origin.address, Back::H1, "");
    mesh.get(&[]).await;
    let spans = receiver.wait(2).await;
    let id = spans[0]["traceId"].as_str().unwrap().to_owned();
    assert_eq!(id.len(), 16);
    let seen = mesh.origin.only();
    assert_eq!(seen.header("x-b3-traceid"), Some(&*format!("{:0>32}", id)));
    assert_eq!(seen.header("traceparent"), None);
    let lines = [
        ("x-b3-traceid", TRACE),
        ("x-b3-spanid", PARENT),
        ("x-b3-sampled", "1"),
    ];
    mesh.get(&lines).await;
    let spans = receiver.wait(4).await;
    assert!(
        spans
            .iter()
            .any(|span| span["parentId"] == PARENT && span["traceId"] == TRACE)
    );
}

#[tokio::test]
async fn destination_rule_of_the_provider_applies() {
    let material = Files::new();
    let terms = Terms::new(&material.ca.server(&["collector.test"])).for_clients_of(&material.ca);
    let collector = TlsOrigin::start(Speaks::H1, &terms);
    let policy = material.tls(
        "mode: MUTUAL, caCertificates: '@ca.pem', clientCertificate: '@client.pem', privateKey: '@client.key'",
    );
    let rule = format!(
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: c}}\n\
         spec: {{host: collector.test, trafficPolicy: {policy}}}"
    );
    let provider = "opentelemetry: {service: collector.test, port: 80, http: {}}";
    let mesh = Mesh::start(provider, collector.address, Back::H1, &rule);
    mesh.get(&[]).await;
    until("the collector has the spans", async || {
        let callers = collector.callers();
        callers
            .iter()
            .any(|caller| caller.certificate.is_some() && caller.hosts == ["collector.test"])
    })
    .await;
}

#[tokio::test]
async fn provider_that_comes_later_gets_spans_from_then_on() {
    let collector = Collector::start(Back::H1);
    let mut mesh = Mesh::start("prometheus: {}", collector.address(), Back::H1, "");
    mesh.get(&[]).await;
    assert_eq!(mesh.origin.only().header("traceparent"), None);
    assert!(
        !mesh
            .proxy
            .page("/stats/prometheus")
            .contains("strait_otlp_")
    );
    let provider = "opentelemetry: {service: collector.test, port: 80, http: {}}";
    let generation = mesh.proxy.metric("strait_config_generation", &[]);
    std::fs::write(mesh.config.path(), config(provider)).unwrap();
    mesh.config.flush().unwrap();
    until("the provider is in effect", async || {
        mesh.proxy.metric("strait_config_generation", &[]) > generation
    })
    .await;
    mesh.get(&[]).await;
    collector.wait(2).await;
}

/// Traces of `tracing.zipkin.address` of the settings of proxies, with a variable in it.
#[tokio::test]
async fn address_of_zipkin_gets_spans_until_a_provider_does() {
    let (receiver, collector) = (Receiver::start(), Collector::start(Back::H1));
    let origin = Origin::named(Back::H1, "hello");
    let mut config = NamedTempFile::new().unwrap();
    let at = receiver.origin.address;
    let text = format!(
        "defaultConfig: {{tracing: {{sampling: 100, zipkin: {{address: '$(HOST_IP):{}'}}}}}}\n{}",
        at.port(),
        super::providers::config("opentelemetry: {service: collector.test, port: 80, http: {}}")
    );
    config.write_all(text.as_bytes()).unwrap();
    let start = Start::new()
        .args(["--mesh-config", config.path().to_str().unwrap()])
        .env("OTEL_BSP_SCHEDULE_DELAY", "10")
        .env("HOST_IP", &at.ip().to_string());
    let services = [
        everything_to(start.edge(), &origin),
        service("collector", Back::H1, &[(collector.address(), "v1")]),
    ];
    let mesh = documents(&services);
    let proxy = start.file("mesh.yaml", &mesh).start();
    let get = async || {
        let mut client = Client::connect(Front::H1, proxy.edge).await;
        assert_eq!(client.call(with(&[])).await.status, 200);
    };
    get().await;
    let spans = receiver.wait(2).await;
    let seen = origin.only();
    assert_eq!(seen.header("x-b3-traceid"), spans[0]["traceId"].as_str());
    let generation = || proxy.metric("strait_config_generation", &[]);
    let (before, other) = (generation(), Receiver::start());
    let [from, to] = [at, other.origin.address].map(|address| address.port().to_string());
    std::fs::write(config.path(), text.replace(&from, &to)).unwrap();
    until("the other address is in effect", async || {
        generation() > before
    })
    .await;
    get().await;
    other.wait(2).await;
    let telemetry = "apiVersion: telemetry.istio.io/v1\nkind: Telemetry\n\
                     metadata: {name: all, namespace: istio-system}\n\
                     spec: {tracing: [{providers: [{name: p}], randomSamplingPercentage: 100}]}";
    let before = generation();
    proxy.write("mesh.yaml", documents([&*mesh, telemetry]));
    until("the provider is in effect", async || generation() > before).await;
    get().await;
    collector.wait(2).await;
    receiver.wait(2).await;
    other.wait(2).await;
}
