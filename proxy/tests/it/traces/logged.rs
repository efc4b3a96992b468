//! The trace of a request in the access log.

use super::*;
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
