//! Spans when another process takes over the sockets.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::Semaphore;

use super::*;
use crate::support::origin::full;
use crate::support::until;

#[tokio::test]
async fn takeover_loses_and_doubles_no_span() {
    const EACH: usize = 10;
    let collector = Collector::start(Back::H1);
    let gate = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&gate);
    let origin = Origin::start(Back::H1, move |request| {
        let held = Arc::clone(&held);
        async move {
            if request.uri().path() == "/held" {
                held.acquire().await.unwrap().forget();
            }
            hyper::Response::new(full("x"))
        }
    });
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("takeover");
    let build = |other: Option<&Proxy>| {
        let url = collector.url();
        let start = match other {
            Some(other) => Start::new().instead_of(other),
            None => Start::new(),
        };
        let start = start
            .args(["--otlp-endpoint", &url, "--trace-sampling", "100"])
            .args(["--takeover", path.to_str().unwrap()])
            .env("OTEL_BSP_SCHEDULE_DELAY", "10");
        let mesh = everything_to(start.edge(), &origin);
        start.file("mesh.yaml", mesh)
    };
    let mut old = build(None).start();
    let edge = old.edge;
    let get = async |path: &str| {
        Client::connect(Front::H1, edge)
            .await
            .get(path)
            .await
            .status
    };
    for _ in 0..EACH {
        assert_eq!(get("/").await, 200);
    }
    let pending = tokio::spawn(async move {
        Client::connect(Front::H1, edge)
            .await
            .get("/held")
            .await
            .status
    });
    until("the request is at the origin", async || {
        origin.seen().iter().any(|seen| seen.path() == "/held")
    })
    .await;
    let next = build(Some(&old)).spawn();
    until("the next process serves", async || next.is_ready()).await;
    for _ in 0..EACH {
        assert_eq!(get("/").await, 200);
    }
    gate.add_permits(1);
    assert_eq!(pending.await.unwrap(), 200);
    assert_eq!(old.wait().code(), Some(0), "{}", old.stderr());
    let spans = collector.wait(2 * (2 * EACH + 1)).await;
    let ids: HashSet<_> = spans.iter().map(Span::id).collect();
    assert_eq!(ids.len(), spans.len());
    assert!(spans.iter().any(|span| span.get("url.path") == "/held"));
}
