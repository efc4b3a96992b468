//! Taps beside the export of spans: the one changes nothing of the other.

use super::*;
use crate::taps::Tap;

/// Shape of a span: everything but ids and times.
fn shape(span: &Span) -> String {
    let attributes = span.attributes.iter().map(|one| one.key.clone());
    let mut keys: Vec<String> = attributes.filter(|key| !key.ends_with("_ms")).collect();
    keys.sort();
    format!("{} {} {keys:?}", span.name, span.kind)
}

#[tokio::test]
async fn tap_shows_phases_of_requests_that_are_not_sampled_and_exports_none() {
    let world = World::new(&["--trace-sampling", "0"]);
    let mut tap = Tap::open(&world.proxy, &["-o", "json", "--max", "3"]);
    for _ in 0..2 {
        world.get(&[]).await;
        let request = tap.request();
        let attempt = &request.attempts[0];
        assert_eq!(attempt.status, Some(200));
        assert!(attempt.first_byte_ms.unwrap() > 0.0);
        assert_eq!(request.trace_id.map(|id| id.len()), Some(32));
    }
    // that of the client is exported, and comes alone
    world.get(&[("traceparent", &parent("01"))]).await;
    assert_eq!(tap.request().trace_id.as_deref(), Some(TRACE));
    let spans = world.collector.wait(2).await;
    assert!(spans.iter().all(|span| span.trace() == TRACE), "{spans:?}");
    assert_eq!(spans.len(), 2);
}

#[tokio::test]
async fn tap_leaves_exported_spans_as_they_are() {
    let world = World::new(&["--trace-sampling", "100", "--trace-events"]);
    world.get(&[]).await;
    world.get(&[]).await;
    let before = world.collector.wait(4).await;
    let mut tap = Tap::open(&world.proxy, &["-o", "json"]);
    let answer = world.get(&[]).await;
    let request = tap.request();
    assert_eq!(request.attempts.len(), 1);
    let spans = world.collector.wait(6).await;
    // servers come first: the last one of each kind is compared with the one before
    for (last, expected) in [(&spans[2], &before[1]), (&spans[5], &before[3])] {
        assert_eq!(shape(last), shape(expected));
    }
    assert_eq!(request.trace_id, Some(spans[2].trace()));
    assert_eq!(answer.header("x-request-id"), None);
}

#[tokio::test]
async fn tap_begins_no_trace() {
    let origin = Origin::named(Back::H1, "hello");
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    let mut tap = Tap::open(&proxy, &["-o", "json"]);
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let answer = client.call(with(&[("x-envoy-force-trace", "true")])).await;
    assert_eq!(answer.header("x-request-id"), None);
    assert_eq!(tap.request().trace_id, None);
    assert_eq!(origin.only().header("traceparent"), None);
}
