//! Requests that are exported although they are not sampled.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hyper::Response;

use super::*;
use crate::support::mesh::{documents, gateway, routes, service};
use crate::support::origin::full;

/// Starts an origin that answers the first requests with 503.
fn failing(count: usize) -> Origin {
    let seen = AtomicUsize::new(0);
    Origin::start(Back::H1, move |_| {
        let failed = seen.fetch_add(1, Ordering::SeqCst) < count;
        async move {
            let status = if failed { 503 } else { 200 };
            Response::builder().status(status).body(full("x")).unwrap()
        }
    })
}

fn mesh(edge: SocketAddr, origin: &Origin, rule: &str) -> String {
    documents([
        gateway(&[edge]),
        service("web", Back::H1, &[(origin.address, "v1")]),
        routes(
            "all",
            "[\"*\"]",
            &format!("- {{{rule} route: [{{destination: {{host: web.test}}}}]}}"),
        ),
    ])
}

#[tokio::test]
async fn failed_request_is_kept() {
    let (collector, origin) = (Collector::start(Back::H1), failing(2));
    let arguments = ["--trace-sampling", "0", "--trace-keep", "errors"];
    let proxy = traced(&collector, &arguments, |edge| {
        mesh(edge, &origin, "retries: {attempts: 0},")
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.call(with(&[])).await.status, 503);
    let spans = collector.wait(2).await;
    assert_eq!(spans[0].get("strait.sampled_by"), "error");
    assert_eq!((spans[0].flags & 1, spans[1].flags & 1), (0, 0));
    let seen = origin.seen();
    assert_eq!(flags(&seen[0]), "00");
    assert_eq!(context(&seen[0]).1, spans[1].id());
    // also if the client said no; its context stays the parent
    assert_eq!(
        client
            .call(with(&[("traceparent", &parent("00"))]))
            .await
            .status,
        503
    );
    let spans = collector.wait(4).await;
    assert!(
        spans
            .iter()
            .any(|span| span.parent() == PARENT && span.trace() == TRACE)
    );
    assert_eq!(client.call(with(&[])).await.status, 200);
    let by_error = [("decision", "sampled"), ("by", "error")];
    assert_eq!(proxy.metric("strait_traces_total", &by_error), 2.0);
}

#[tokio::test]
async fn attempts_after_a_failed_one_are_sampled() {
    let (collector, origin) = (Collector::start(Back::H1), failing(1));
    let arguments = ["--trace-sampling", "0", "--trace-keep", "errors"];
    let proxy = traced(&collector, &arguments, |edge| {
        mesh(edge, &origin, "retries: {attempts: 2, retryOn: 5xx},")
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.call(with(&[])).await.status, 200);
    let spans = collector.wait(3).await;
    assert_eq!(spans[0].get("strait.sampled_by"), "retry");
    let seen = origin.seen();
    assert_eq!((flags(&seen[0]).as_str(), mark(&seen[0])), ("00", '4'));
    assert_eq!((flags(&seen[1]).as_str(), mark(&seen[1])), ("01", '9'));
    assert_eq!(spans[1].flags & 1, 0);
    assert_eq!(spans[2].flags & 1, 1);
}

#[tokio::test]
async fn slow_request_is_kept() {
    let collector = Collector::start(Back::H1);
    let origin = Origin::start(Back::H1, |request| async move {
        if request.uri().path() == "/slow" {
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        Response::new(full("x"))
    });
    let arguments = ["--trace-sampling", "0", "--trace-keep", "slow=300ms"];
    let proxy = traced(&collector, &arguments, |edge| mesh(edge, &origin, ""));
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    client.get("/fast").await;
    client.get("/slow").await;
    let spans = collector.wait(2).await;
    assert_eq!(spans[0].get("url.path"), "/slow");
    assert_eq!(spans[0].get("strait.sampled_by"), "slow");
}

#[tokio::test]
async fn kept_requests_have_a_rate() {
    let (collector, origin) = (Collector::start(Back::H1), failing(1_000));
    let arguments = [
        "--trace-sampling",
        "0",
        "--trace-keep",
        "errors",
        "--trace-keep-rate",
        "10",
    ];
    let proxy = traced(&collector, &arguments, |edge| {
        mesh(edge, &origin, "retries: {attempts: 0},")
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let before = std::time::Instant::now();
    for _ in 0..100 {
        client.get("/").await;
    }
    let seconds = before.elapsed().as_secs() as usize + 1;
    let labels = [("reason", "keep_rate")];
    let dropped = proxy.metric("strait_trace_spans_dropped_total", &labels) as usize;
    let kept = 200 - dropped;
    assert!(
        (20..=20 + 20 * seconds).contains(&kept),
        "{kept} in {seconds} s"
    );
    collector.wait(kept).await;
}
