//! Traces: spans of attempts in several clusters.

use super::*;
use crate::support::otlp::Collector;

#[tokio::test]
async fn replay_has_a_span_with_its_cluster_and_tier() {
    let (world, collector) = (World::new(), Collector::start(Back::H1));
    let url = collector.url();
    world.l1.answers(503);
    let proxy = world.proxy(Setup {
        local: 1,
        policy: "{lbType: FailOver, targets: [{clusterKey: c2}]}",
        arguments: &["--otlp-endpoint", &url, "--trace-sampling", "100"],
        ..Setup::default()
    });
    count(&proxy, 1);
    let spans = collector.wait(3).await;
    let attempts = spans[1..].iter().map(|span| {
        [
            "strait.destination.cluster",
            "strait.destination.tier",
            "strait.failover.reason",
            "error.type",
        ]
        .map(|key| span.get(key))
    });
    let expected = [
        ["default/default/default/c1", "0", "", "503"],
        ["default/default/default/c2", "1", "status", ""],
    ];
    assert_eq!(attempts.collect::<Vec<_>>(), expected);
    let sent = world.g2.origin.only();
    let parent = sent.header("traceparent").unwrap();
    assert!(parent.contains(&spans[2].id()), "{parent}");
}
