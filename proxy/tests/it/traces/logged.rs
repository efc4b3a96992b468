//! The trace of a request in the access log.

use super::*;
use crate::support::mesh::{documents, gateway, routes};
use crate::support::until;

#[tokio::test]
async fn log_has_the_trace_and_the_server_span() {
    for (sampling, propagates) in [("100", true), ("100", false), ("0", true)] {
        let (collector, origin) = (Collector::start(Back::H1), Origin::named(Back::H1, "hello"));
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("access.log");
        let mesh = format!(
            "extensionProviders:\n- name: file\n  envoyFileAccessLog: {{path: {}, logFormat: {{text: \"%TRACE_ID% %SPAN_ID%\\n\"}}}}\n",
            log.display()
        );
        let config = directory.path().join("mesh-config.yaml");
        std::fs::write(&config, mesh).unwrap();
        let telemetry = format!(
            "apiVersion: telemetry.istio.io/v1\nkind: Telemetry\n\
             metadata: {{name: all, namespace: istio-system}}\n\
             spec: {{accessLogging: [{{providers: [{{name: file}}]}}], tracing: [{{disableContextPropagation: {}}}]}}\n",
            !propagates
        );
        let arguments = [
            "--trace-sampling",
            sampling,
            "--mesh-config",
            config.to_str().unwrap(),
        ];
        let proxy = start(&collector, &arguments, |edge| everything_to(edge, &origin))
            .file("telemetry.yaml", telemetry)
            .without_log_flags()
            .start();
        let mut client = Client::connect(Front::H1, proxy.edge).await;
        assert_eq!(client.call(with(&[])).await.status, 200);
        let text = || std::fs::read_to_string(&log).unwrap_or_default();
        until("the line", async || text().ends_with('\n')).await;
        let (trace, span) = text()
            .trim()
            .split_once(' ')
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .unwrap();
        if sampling == "100" {
            let spans = collector.wait(2).await;
            assert_eq!(
                (trace, span),
                (spans[0].trace(), spans[0].id()),
                "{propagates}"
            );
        } else {
            assert_eq!(trace, context(&origin.only()).0);
            assert_eq!(span.len(), 16);
        }
    }
}

/// With the same percentage, a request has a line if it has a trace; failures always have one.
#[tokio::test]
async fn sampled_log_has_the_requests_that_are_traced_and_failures() {
    let collector = Collector::start(Back::H1);
    let arguments = ["--trace-sampling", "20", "--access-log-sample", "20"];
    let proxy = start(&collector, &arguments, |edge| {
        documents([
            gateway(&[edge]),
            routes(
                "all",
                "['*']",
                "- {match: [{uri: {prefix: /bad}}], directResponse: {status: 500}}\n- {directResponse: {status: 204}}",
            ),
        ])
    })
    .start();
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    for number in 0..100 {
        assert_eq!(client.get(&format!("/good/{number}")).await.status, 204);
    }
    for number in 0..5 {
        assert_eq!(client.get(&format!("/bad/{number}")).await.status, 500);
    }
    let lines = || {
        let lines = proxy.access_log().into_iter();
        let paths = lines.map(|line| line["path"].as_str().unwrap().to_owned());
        paths.collect::<std::collections::BTreeSet<_>>()
    };
    until("all failures are logged", async || {
        lines()
            .iter()
            .filter(|path| path.starts_with("/bad"))
            .count()
            == 5
    })
    .await;
    let traced = || {
        let spans = collector.spans().into_iter();
        let paths = spans.map(|span| span.get("url.path"));
        let good = paths.filter(|path| path.starts_with("/good"));
        good.collect::<std::collections::BTreeSet<_>>()
    };
    let mut logged = lines();
    logged.retain(|path| path.starts_with("/good"));
    assert!((1..100).contains(&logged.len()), "{logged:?}");
    until("all traced ones are there", async || traced() == logged).await;
}
