//! Phases of an attempt, as attributes and as events.

use std::time::{Duration, Instant};

use super::spans::{ALL, mesh};
use super::*;
use crate::support::mesh::with_policy;
use crate::support::origin::{RawOrigin, full};
use crate::support::pki::Authority;
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};
use crate::support::until;

const WITH_EVENTS: [&str; 5] = [
    "--trace-sampling",
    "100",
    "--trace-events",
    "--concurrency",
    "1",
];

/// Returns the names of the events, whose times are in order and within the span.
fn events(span: &Span) -> Vec<String> {
    let times: Vec<_> = span.events.iter().map(|event| event.time).collect();
    assert!(times.is_sorted(), "{times:?}");
    let within = |time: &u64| (span.start..=span.end).contains(time);
    assert!(times.iter().all(within), "{span:?}");
    let attributes = |event: &crate::support::otlp::Event| {
        let shown = event.attributes.iter();
        let shown = shown.map(|one| format!(" {}={}", one.key, event.get(&one.key)));
        shown.collect::<String>()
    };
    let names = span.events.iter();
    let names = names.map(|event| event.name.replace("strait.", "") + &attributes(event));
    names.collect()
}

fn milliseconds(span: &Span, phase: &str) -> f64 {
    span.get(phase).parse().unwrap_or(0.0)
}

#[tokio::test]
async fn steps_of_an_attempt_are_events() {
    let world = World::new(&WITH_EVENTS);
    world.get(&[]).await;
    let first = world.collector.wait(2).await;
    let expected = [
        "connection reused=false",
        "connected",
        "request_sent",
        "first_byte",
    ];
    assert_eq!(events(&first[1]), expected);
    assert!(first[0].events.is_empty());
    world.get(&[]).await;
    let spans = world.collector.wait(4).await;
    let expected = ["connection reused=true", "request_sent", "first_byte"];
    assert_eq!(events(&spans[3]), expected);
}

#[tokio::test]
async fn handshake_is_an_event() {
    let (collector, ca) = (Collector::start(Back::H1), Authority::new("ca"));
    let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&ca.server(&["web.test"])));
    let policy = "{tls: {mode: SIMPLE, insecureSkipVerify: true}}";
    let proxy = traced(&collector, &WITH_EVENTS, |edge| {
        with_policy(edge, origin.address, policy)
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.get("/").await.status, 200);
    let spans = collector.wait(2).await;
    let expected = [
        "connection reused=false",
        "connected",
        "tls_done resumed=false",
        "request_sent",
        "first_byte",
    ];
    assert_eq!(events(&spans[1]), expected);
}

#[tokio::test]
async fn time_without_a_connection_is_that_of_the_connect() {
    let collector = Collector::start(Back::H1);
    let silent = RawOrigin::start(|_, _stream| std::thread::park());
    let policy = "{tls: {mode: SIMPLE, insecureSkipVerify: true}, \
                  connectionPool: {tcp: {connectTimeout: 50ms}}}";
    let proxy = traced(&collector, &ALL, |edge| {
        with_policy(edge, silent.address, policy)
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.get("/").await.status, 503);
    let spans = collector.wait(4).await;
    for span in &spans[1..] {
        assert_eq!(span.error(), "connect_timeout");
        assert!(milliseconds(span, "strait.connect_ms") >= 49.0, "{span:?}");
        for phase in ["strait.wait_ms", "strait.tls_ms", "strait.first_byte_ms"] {
            assert_eq!(span.attribute(phase), None, "{phase}");
        }
        assert!(span.events.is_empty());
    }
}

#[tokio::test]
async fn time_in_the_queue_and_time_of_the_endpoint_are_phases() {
    const HELD: Duration = Duration::from_millis(20);
    let collector = Collector::start(Back::H1);
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
    let proxy = traced(&collector, &ALL, |edge| {
        with_policy(edge, origin.address, policy)
    });
    let get = |path: &'static str| {
        let edge = proxy.edge;
        tokio::spawn(async move {
            Client::connect(Front::H1, edge)
                .await
                .get(path)
                .await
                .status
        })
    };
    let first = get("/first");
    until("the first is at the origin", async || {
        origin.connections() == 1
    })
    .await;
    let second = get("/second");
    until("the second waits", async || {
        let labels = [("limit", "connections")];
        proxy.metric("strait_upstream_overflows_total", &labels) > 0.0
    })
    .await;
    let waiting = Instant::now();
    until("both have taken a while", async || waiting.elapsed() > HELD).await;
    gate.add_permits(2);
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (200, 200));
    let spans = collector.wait(4).await;
    let attempt = |path: &str| {
        let mut attempts = spans.iter().filter(|span| span.kind == CLIENT);
        let found = attempts.find(|span| span.get("url.full").ends_with(path));
        found.unwrap()
    };
    let held = HELD.as_millis() as f64;
    let (first, second) = (attempt("/first"), attempt("/second"));
    assert!(milliseconds(first, "strait.first_byte_ms") >= held);
    assert_eq!(first.attribute("strait.wait_ms"), None);
    assert!(milliseconds(second, "strait.wait_ms") >= held);
}

#[tokio::test]
async fn fast_attempt_has_no_events_unless_they_are_wanted() {
    let (collector, origin) = (Collector::start(Back::H1), Origin::named(Back::H1, "hello"));
    let rules = "- {route: [{destination: {host: web.test}}]}";
    let proxy = traced(&collector, &ALL, |edge| {
        mesh(edge, &[origin.address], rules)
    });
    Client::connect(Front::H1, proxy.edge).await.get("/").await;
    let spans = collector.wait(2).await;
    assert!(spans.iter().all(|span| span.events.is_empty()));
}
