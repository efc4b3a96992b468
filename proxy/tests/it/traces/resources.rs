//! Telemetry resources that change what is traced, and what goes on.

use super::*;
use crate::sidecar::{Sidecar, service};
use crate::support::mesh::documents;
use crate::support::proxy::free_address;

/// Starts a proxy with a Telemetry whose entry about traces has these fields.
fn telemetry(collector: &Collector, origin: &Origin, fields: &str) -> Proxy {
    telemetry_start(collector, origin, fields).start()
}

/// Returns such a proxy to start.
fn telemetry_start(collector: &Collector, origin: &Origin, fields: &str) -> Start {
    let text = format!(
        "apiVersion: telemetry.istio.io/v1\nkind: Telemetry\n\
         metadata: {{name: all, namespace: istio-system}}\nspec: {{tracing: [{{{fields}}}]}}\n"
    );
    let arguments = [
        "--trace-sampling",
        "0",
        "--trace-propagators",
        "tracecontext,b3",
    ];
    start(collector, &arguments, |edge| everything_to(edge, origin)).file("telemetry.yaml", text)
}

#[tokio::test]
async fn context_does_not_go_on_if_a_resource_says_so() {
    let (collector, origin) = (Collector::start(Back::H1), Origin::named(Back::H1, "hello"));
    let proxy = telemetry(&collector, &origin, "disableContextPropagation: true");
    let parent = parent("01");
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let lines = [
        ("traceparent", &*parent),
        ("tracestate", "a=1"),
        ("b3", "0"),
        ("x-b3-traceid", TRACE),
        ("x-b3-spanid", PARENT),
        ("x-b3-sampled", "1"),
        ("baggage", "k=v"),
    ];
    client.call(with(&lines)).await;
    let spans = collector.wait(2).await;
    assert_eq!(
        (spans[0].trace(), spans[0].parent()),
        (TRACE.to_owned(), PARENT.to_owned())
    );
    let seen = origin.only();
    for (name, _) in &lines[..6] {
        assert_eq!(seen.header(name), None, "{name}");
    }
    assert_eq!(seen.header("baggage"), Some("k=v"));
    assert_eq!(mark(&seen), '9');
}

#[tokio::test]
async fn spans_are_not_reported_if_a_resource_says_so() {
    let (collector, origin) = (Collector::start(Back::H1), Origin::named(Back::H1, "hello"));
    let proxy = telemetry(&collector, &origin, "disableSpanReporting: true");
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    client.call(with(&[("traceparent", &parent("01"))])).await;
    let (trace, span, flags) = context(&origin.only());
    assert_eq!((trace.as_str(), flags.as_str()), (TRACE, "01"));
    assert_ne!(span, PARENT);
    // spans that were made would come before those of a request that may report
    proxy.remove("telemetry.yaml");
    crate::support::until("the change is in effect", async || {
        let request = with(&[("traceparent", &parent("01"))]);
        client.call(request).await;
        !collector.spans().is_empty()
    })
    .await;
    let spans = collector.spans();
    let first = context(&origin.seen()[0]).1;
    assert!(spans.iter().all(|span| span.id() != first));
}

#[tokio::test]
async fn value_of_a_tag_is_cut_to_valid_text_without_credentials() {
    let (collector, origin) = (Collector::start(Back::H1), Origin::named(Back::H1, "hello"));
    let tags = "customTags: {raw: {header: {name: x-raw}}, long: {header: {name: x-long}}, \
                secret: {header: {name: authorization}}}, randomSamplingPercentage: 100";
    let proxy = telemetry(&collector, &origin, tags);
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let mut request = with(&[("authorization", "Bearer x"), ("x-long", &"y".repeat(300))]);
    let raw = hyper::header::HeaderValue::from_bytes(b"a\xff").unwrap();
    request.headers_mut().insert("x-raw", raw);
    assert_eq!(client.call(request).await.status, 200);
    for span in collector.wait(2).await {
        assert_eq!(span.get("raw"), "a\u{fffd}");
        assert_eq!(span.get("long"), "y".repeat(256));
        assert_eq!(span.get("secret"), "[redacted]");
    }
}

#[tokio::test]
async fn tags_of_the_environment_have_the_value_of_the_proxy() {
    let (collector, origin) = (Collector::start(Back::H1), Origin::named(Back::H1, "hello"));
    let tags = "customTags: {region: {environment: {name: REGION, defaultValue: none}}, \
                team: {environment: {name: NO_TEAM, defaultValue: shop}}, \
                absent: {environment: {name: NO_TEAM}}}, randomSamplingPercentage: 100";
    let proxy = telemetry_start(&collector, &origin, tags)
        .env("REGION", "eu")
        .start();
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.call(with(&[])).await.status, 200);
    for span in collector.wait(2).await {
        assert_eq!(
            (span.get("region"), span.get("team")),
            ("eu".into(), "shop".into())
        );
        assert_eq!(span.attribute("absent"), None);
    }
}

/// Operators have their final values, whatever the access log does.
#[tokio::test]
async fn tags_with_operators_have_the_values_of_the_end() {
    let origin = Origin::named(Back::H1, "hello");
    let tags = "customTags: {end: {formatter: {value: 'status %RESPONSE_CODE% of %REQ(x-a)%'}}, \
                sent: {formatter: {value: '%BYTES_SENT%'}}, none: {formatter: {value: '%REQ(x-none)%'}}, \
                secret: {formatter: {value: '%REQ(cookie)%'}}, fixed: {literal: {value: f}}}, \
                randomSamplingPercentage: 100";
    for log in ["off", "json", "%PROTOCOL%"] {
        let collector = Collector::start(Back::H1);
        let start = telemetry_start(&collector, &origin, tags);
        let proxy = start.args(["--access-log", log]).start();
        let mut client = Client::connect(Front::H1, proxy.edge).await;
        let lines = [("x-a", "one"), ("cookie", "c=d")];
        assert_eq!(client.call(with(&lines)).await.status, 200);
        for span in collector.wait(2).await {
            assert_eq!(span.get("end"), "status 200 of one", "{log}");
            assert_eq!(span.get("sent"), "5", "{log}");
            assert_eq!(span.get("fixed"), "f", "{log}");
            assert_eq!(span.get("secret"), "[redacted]", "{log}");
            assert_eq!(span.attribute("none"), None, "{log}");
        }
    }
}

#[tokio::test]
async fn connections_that_are_not_taken_apart_have_no_spans() {
    let (collector, origin) = (Collector::start(Back::H1), Origin::named(Back::H1, "hello"));
    let raw = free_address();
    let bytes = format!(
        "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{name: raw}}\n\
         spec: {{selector: {{istio: ingressgateway}}, servers: [{{port: {{number: {}, name: tcp, protocol: TCP}}, bind: {}, \
         hosts: ['*']}}]}}\n---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: raw}}\n\
         spec: {{hosts: ['*'], gateways: [raw], tcp: [{{route: [{{destination: {{host: web.test}}}}]}}]}}\n",
        raw.port(),
        raw.ip()
    );
    let proxy = traced(&collector, &["--trace-sampling", "100"], |edge| {
        documents([everything_to(edge, &origin), bytes])
    });
    let mut client = Client::connect(Front::H1, raw).await;
    client.call(with(&[])).await;
    drop(client);
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    client.call(with(&[])).await;
    let spans = collector.wait(2).await;
    let [through_bytes, request] = &*origin.seen() else {
        panic!("two requests")
    };
    assert_eq!(through_bytes.header("traceparent"), None);
    let trace = context(request).0;
    assert!(spans.iter().all(|span| span.trace() == trace), "{spans:?}");
}

#[tokio::test]
async fn entry_of_one_side_of_a_sidecar_is_of_that_side_alone() {
    let collector = Collector::start(Back::H1);
    let (app, api) = (
        Origin::named(Back::H1, "app"),
        Origin::named(Back::H1, "api"),
    );
    let telemetry = "apiVersion: telemetry.istio.io/v1\nkind: Telemetry\nmetadata: {name: all, namespace: istio-system}\n\
                     spec: {tracing: [{match: {mode: SERVER}, randomSamplingPercentage: 100}, \
                     {match: {mode: CLIENT}, disableSpanReporting: true, randomSamplingPercentage: 100}]}\n";
    let url = collector.url();
    let sidecar = Sidecar::start(
        &["--otlp-endpoint", &url],
        [
            service("web", "10.96.0.1", ("http", 80), app.address),
            service("api", "10.96.0.2", ("http", 80), api.address),
            telemetry.to_owned(),
        ],
    );
    let get = "GET / HTTP/1.1\r\nHost: api\r\n\r\n";
    let outbound = &mut sidecar.leaves("10.96.0.2:80");
    assert_eq!(outbound.send(get).reply().status, 200);
    let inbound = &mut sidecar.arrives(&app.address.to_string());
    assert_eq!(inbound.send(get).reply().status, 200);
    let spans = collector.wait(2).await;
    let (arrived, left) = (context(&app.only()), context(&api.only()));
    assert!(
        spans.iter().all(|span| span.trace() == arrived.0),
        "{spans:?}"
    );
    // the trace that is not reported goes on
    assert_eq!(left.2, "01");
}
