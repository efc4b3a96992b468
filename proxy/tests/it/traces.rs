//! Traces: contexts in headers, sampling, spans of requests and attempts, and their export.

mod calls;
mod chain;
mod collector;
mod export;
mod findings;
mod keep;
mod logged;
mod phases;
mod providers;
mod records;
mod resources;
mod sampling;
mod spans;
mod taps;
mod upgrade;
mod zipkin;

use std::net::SocketAddr;

use hyper::Request;

use crate::support::client::{Answer, Client, Front};
use crate::support::mesh::everything_to;
use crate::support::origin::{Back, Body, Origin, Seen, empty};
use crate::support::otlp::{CLIENT, Collector, SERVER, Span};
use crate::support::proxy::{LOOPBACK_IS_INTERNAL, Proxy, Start};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// Returns a `traceparent` with these flags.
fn parent(flags: &str) -> String {
    format!("00-{TRACE}-{PARENT}-{flags}")
}

/// Starts a proxy that exports to a collector, with further arguments.
fn traced(
    collector: &Collector,
    arguments: &[&str],
    mesh: impl FnOnce(SocketAddr) -> String,
) -> Proxy {
    start(collector, arguments, mesh).start()
}

/// Returns a proxy to start, which sends spans soon.
fn start(
    collector: &Collector,
    arguments: &[&str],
    mesh: impl FnOnce(SocketAddr) -> String,
) -> Start {
    let url = collector.url();
    let start = Start::new()
        .args(["--otlp-endpoint", &url])
        .args(arguments.iter().copied())
        .env("OTEL_BSP_SCHEDULE_DELAY", "10");
    let text = mesh(start.edge());
    start.file("mesh.yaml", text)
}

/// A proxy before an origin, with a collector.
struct World {
    collector: Collector,
    origin: Origin,
    proxy: Proxy,
}

impl World {
    fn new(arguments: &[&str]) -> Self {
        let (collector, origin) = (Collector::start(Back::H1), Origin::named(Back::H1, "hello"));
        let proxy = traced(&collector, arguments, |edge| everything_to(edge, &origin));
        Self {
            collector,
            origin,
            proxy,
        }
    }

    async fn get(&self, lines: &[(&str, &str)]) -> Answer {
        let mut client = Client::connect(Front::H1, self.proxy.edge).await;
        client.call(with(lines)).await
    }

    /// Sends a request and returns what the origin got.
    async fn seen(&self, lines: &[(&str, &str)]) -> Seen {
        assert_eq!(self.get(lines).await.status, 200);
        self.origin.seen().pop().unwrap()
    }
}

fn with(lines: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::get("http://a.test/path?q=1");
    for (name, value) in lines {
        request = request.header(*name, *value);
    }
    request.body(empty()).unwrap()
}

/// Returns trace id, span id and flags of the request that an origin got.
fn context(seen: &Seen) -> (String, String, String) {
    let text = seen.header("traceparent").expect("a traceparent");
    let parts: Vec<&str> = text.split('-').collect();
    assert_eq!((parts.len(), parts[0], text.len()), (4, "00", 55), "{text}");
    (
        parts[1].to_owned(),
        parts[2].to_owned(),
        parts[3].to_owned(),
    )
}

fn flags(seen: &Seen) -> String {
    context(seen).2
}

/// Character of the request id that says whether the request is sampled.
fn mark(seen: &Seen) -> char {
    let id = seen.header("x-request-id").unwrap();
    assert_eq!(id.len(), 36, "{id}");
    id.chars().nth(14).unwrap()
}

#[tokio::test]
async fn headers_pass_unchanged_without_tracing() {
    let origin = Origin::named(Back::H1, "hello");
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let parent = parent("01");
    let lines = [
        ("traceparent", &*parent),
        ("tracestate", "a=1"),
        ("b3", "0"),
        ("x-b3-traceid", "1"),
        ("baggage", "k=v"),
    ];
    client.call(with(&lines)).await;
    client.get("/").await;
    let seen = origin.seen();
    for (name, value) in lines {
        assert_eq!(seen[0].header(name), Some(value), "{name}");
    }
    assert_eq!(mark(&seen[0]), '4');
    assert_eq!(seen[1].header("traceparent"), None);
    let page = proxy.page("/stats/prometheus");
    assert!(
        !page.contains("strait_otlp_"),
        "no exporter, no metrics of it"
    );
}

#[tokio::test]
async fn sampled_request_has_a_server_span_and_one_for_its_attempt() {
    for (front, log) in [(Front::H1, "json"), (Front::H1, "off"), (Front::H2, "off")] {
        let world = World::new(&["--trace-sampling", "100", "--access-log", log]);
        let mut client = Client::connect(front, world.proxy.edge).await;
        assert_eq!(client.call(with(&[])).await.status, 200);
        let spans = world.collector.wait(2).await;
        let [server, attempt] = &spans[..] else {
            unreachable!()
        };
        assert_eq!((server.kind, attempt.kind), (SERVER, CLIENT));
        assert_eq!(server.parent(), "");
        assert_eq!(attempt.parent(), server.id());
        assert_eq!(server.trace(), attempt.trace());
        let seen = world.origin.only();
        let expected = (server.trace(), attempt.id(), "01".to_owned());
        assert_eq!(context(&seen), expected);
        assert_eq!(mark(&seen), '9');
        assert_eq!(
            (server.status.clone(), attempt.status.clone()),
            (None, None)
        );
        assert!(server.start <= attempt.start && attempt.end <= server.end);
        assert_eq!(seen.header("tracestate"), None);
    }
}

#[tokio::test]
async fn request_that_is_not_sampled_has_a_context_and_no_spans() {
    let world = World::new(&["--trace-sampling", "0"]);
    let seen = world.seen(&[]).await;
    assert_eq!((flags(&seen).as_str(), mark(&seen)), ("00", '4'));
    let seen = world.seen(&[("traceparent", &parent("00"))]).await;
    let (trace, span, flags) = context(&seen);
    assert_eq!((trace.as_str(), flags.as_str()), (TRACE, "00"));
    assert_ne!(span, PARENT);
    // spans of a sampled request come after those of the others would have
    world.seen(&[("traceparent", &parent("01"))]).await;
    let spans = world.collector.wait(2).await;
    assert_eq!(
        (spans[0].trace().as_str(), spans[0].parent().as_str()),
        (TRACE, PARENT)
    );
    assert_eq!(spans[0].flags, 0x301);
    assert_eq!(spans[1].flags, 0x101);
}

#[tokio::test]
async fn valid_parents_go_on_and_invalid_ones_do_not() {
    let world = World::new(&["--trace-sampling", "0"]);
    for (sent, expected) in [("03", "03"), ("02", "02"), ("01", "01"), ("ff", "03")] {
        let seen = world.seen(&[("traceparent", &parent(sent))]).await;
        assert_eq!(flags(&seen), expected);
        assert_eq!(context(&seen).0, TRACE);
    }
    for state in [&["a=1,b=2"][..], &["a=1", "b=2"]] {
        let parent = parent("01");
        let mut lines = vec![("traceparent", &*parent)];
        lines.extend(state.iter().map(|state| ("tracestate", *state)));
        let seen = world.seen(&lines).await;
        assert_eq!(seen.header("tracestate"), Some("a=1,b=2"));
    }
    for text in [
        format!("cc-{TRACE}-{PARENT}-01-extra"),
        format!("cc-{TRACE}-{PARENT}-01"),
    ] {
        let seen = world.seen(&[("traceparent", &text)]).await;
        assert_eq!(context(&seen).0, TRACE, "{text}");
    }
    let zeros = "0".repeat(32);
    let rows = [
        "xx".to_owned(),
        format!("00-{zeros}-{PARENT}-01"),
        format!("00-{TRACE}-{}-01", &zeros[..16]),
        format!("00-{}-{PARENT}-01", TRACE.to_uppercase()),
        format!("00-{TRACE}-{PARENT}-0"),
        format!("ff-{TRACE}-{PARENT}-01"),
        format!("00-{TRACE}-{PARENT}-01-x"),
    ];
    let count = rows.len() as f64;
    for text in rows {
        let seen = world
            .seen(&[("traceparent", &text), ("tracestate", "a=1")])
            .await;
        assert_ne!(context(&seen).0, TRACE, "{text}");
        assert_eq!(seen.header("tracestate"), None, "{text}");
    }
    let twice = parent("01");
    let seen = world
        .seen(&[("traceparent", &twice), ("traceparent", &twice)])
        .await;
    assert_ne!(context(&seen).0, TRACE);
    let counted = |result| {
        let labels = [("result", result)];
        world.proxy.metric("strait_trace_contexts_total", &labels)
    };
    assert_eq!(counted("invalid"), count + 1.0);
    assert_eq!(counted("valid"), 8.0);
    let spans = world.collector.wait(14).await;
    let states: Vec<_> = spans.iter().map(|span| span.trace_state.as_str()).collect();
    assert_eq!(
        states.iter().filter(|state| **state == "a=1,b=2").count(),
        4
    );
}

#[tokio::test]
async fn b3_goes_on_in_the_form_that_came() {
    let world = World::new(&[
        "--trace-propagators",
        "tracecontext,b3",
        "--trace-sampling",
        "0",
    ]);
    let single = format!("{TRACE}-{PARENT}-1");
    let seen = world.seen(&[("b3", &single)]).await;
    let (trace, span, flags) = context(&seen);
    assert_eq!((trace.as_str(), flags.as_str()), (TRACE, "01"));
    let spans = world.collector.wait(2).await;
    assert_eq!(
        (spans[0].parent(), spans[1].id()),
        (PARENT.to_owned(), span.clone())
    );
    let expected = format!("{TRACE}-{span}-1-{}", spans[0].id());
    assert_eq!(seen.header("b3"), Some(&*expected));
    let lines = [
        ("x-b3-traceid", &TRACE[16..]),
        ("x-b3-spanid", PARENT),
        ("x-b3-sampled", "0"),
        ("x-b3-parentspanid", PARENT),
    ];
    let seen = world.seen(&lines).await;
    let (trace, span, flags) = context(&seen);
    assert_eq!(trace, format!("{}{}", "0".repeat(16), &TRACE[16..]));
    assert_eq!(flags, "00");
    assert_eq!(seen.header("x-b3-spanid"), Some(&*span));
    assert_eq!(seen.header("x-b3-sampled"), Some("0"));
    assert_eq!(seen.header("b3"), None);
    let seen = world.seen(&[]).await;
    assert!(seen.header("b3").unwrap().starts_with(&context(&seen).0));
    let other = format!("{}-{PARENT}-1", "1".repeat(32));
    let seen = world
        .seen(&[("traceparent", &parent("00")), ("b3", &other)])
        .await;
    assert_eq!(context(&seen).0, TRACE);
    assert!(seen.header("b3").unwrap().starts_with(TRACE));
    let conflicts = [("result", "conflict")];
    let conflicts = world
        .proxy
        .metric("strait_trace_contexts_total", &conflicts);
    assert_eq!(conflicts, 1.0);
}

#[tokio::test]
async fn other_formats_pass_unchanged() {
    let world = World::new(&["--trace-sampling", "100"]);
    let lines = [
        ("b3", "0"),
        ("x-b3-traceid", TRACE),
        ("x-b3-sampled", "0"),
        ("x-datadog-trace-id", "1"),
        ("x-amzn-trace-id", "Root=1"),
        ("sw8", "1-x"),
        ("grpc-trace-bin", "AAAA"),
        ("baggage", "k=v"),
    ];
    let seen = world.seen(&lines).await;
    for (name, value) in lines {
        assert_eq!(seen.header(name), Some(value), "{name}");
    }
    assert_eq!(flags(&seen), "01");
}

#[tokio::test]
async fn requests_at_the_same_time_have_traces_of_their_own() {
    let world = World::new(&["--trace-sampling", "100"]);
    let client = Client::connect(Front::H2, world.proxy.edge).await;
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let mut sender = client.http2_handle().unwrap();
        requests.spawn(async move {
            sender.ready().await.unwrap();
            sender.send_request(with(&[])).await.unwrap().status()
        });
    }
    while let Some(status) = requests.join_next().await {
        assert_eq!(status.unwrap(), 200);
    }
    let spans = world.collector.wait(200).await;
    let mut ids = std::collections::HashSet::new();
    for attempt in spans.iter().filter(|span| span.kind == CLIENT) {
        let server = spans
            .iter()
            .find(|span| span.id() == attempt.parent())
            .unwrap();
        assert_eq!(server.trace(), attempt.trace());
        assert!(ids.insert(server.trace()));
        assert!(
            world
                .origin
                .seen()
                .iter()
                .any(|seen| context(seen).1 == attempt.id())
        );
    }
    assert_eq!(ids.len(), 100);
}
