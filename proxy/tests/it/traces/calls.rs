//! Spans of calls of services that decide about a request, and of requests that get no further than their head.

use std::io::Write;

use super::*;
use crate::support::mesh::{documents, service};
use crate::support::raw::Raw;

/// Returns a mesh in which a provider over HTTP is asked about everything.
fn asking(edge: SocketAddr, origin: &Origin, provider: &Origin) -> String {
    documents([
        everything_to(edge, origin),
        service("authz", Back::H1, &[(provider.address, "v1")]),
        "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: ask}\n\
         spec: {action: CUSTOM, provider: {name: p}, rules: [{}]}"
            .to_owned(),
    ])
}

#[tokio::test]
async fn call_of_a_provider_is_a_span_of_the_request() {
    let (collector, origin) = (Collector::start(Back::H1), Origin::named(Back::H1, "hello"));
    for (status, expected, error) in [(200, 200, ""), (403, 403, "403")] {
        let provider = Origin::start(Back::H1, move |_| async move {
            let response = hyper::Response::builder().status(status);
            response.body(empty()).unwrap()
        });
        let mut config = tempfile::NamedTempFile::new().unwrap();
        let providers = "extensionProviders:\n- {name: p, envoyExtAuthzHttp: {service: authz.test, port: 80}}\n";
        config.write_all(providers.as_bytes()).unwrap();
        let arguments = [
            "--trace-sampling",
            "100",
            "--mesh-config",
            config.path().to_str().unwrap(),
        ];
        let before = collector.spans().len();
        let proxy = traced(&collector, &arguments, |edge| {
            asking(edge, &origin, &provider)
        });
        let mut client = Client::connect(Front::H1, proxy.edge).await;
        assert_eq!(client.call(with(&[])).await.status, expected);
        let count = if status == 200 { 3 } else { 2 };
        collector.wait(before + count).await;
        let spans = collector.spans().split_off(before);
        let server = spans.iter().find(|span| span.kind == SERVER).unwrap();
        let of_provider = |span: &&Span| span.get("upstream_cluster") == "outbound|80||authz.test";
        let call = spans.iter().find(of_provider).unwrap();
        assert_eq!((call.kind, call.parent()), (CLIENT, server.id()));
        assert_eq!((&*call.name, call.error()), ("GET", error.to_owned()));
        assert_eq!(call.get("http.response.status_code"), status.to_string());
        let seen = provider.only();
        assert_eq!(context(&seen), (server.trace(), call.id(), "01".to_owned()));
        assert!(server.start <= call.start && call.end <= server.end);
    }
}

#[tokio::test]
async fn refused_request_has_a_span_if_its_client_has_sampled_it() {
    let world = World::new(&["--trace-sampling", "100"]);
    let refused = |lines: &str| {
        let request = format!("GET /path HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n{lines}\r\n");
        assert_eq!(
            Raw::connect(world.proxy.edge).send(request).reply().status,
            400
        );
    };
    refused("");
    refused(&format!("traceparent: {}\r\n", parent("00")));
    refused(&format!("traceparent: {}\r\n", parent("01")));
    let spans = world.collector.wait(1).await;
    let span = &spans[0];
    assert_eq!(
        (span.kind, span.trace(), span.parent()),
        (SERVER, TRACE.to_owned(), PARENT.to_owned())
    );
    assert_eq!(span.get("http.response.status_code"), "400");
    assert_eq!(span.get("response_flags"), "DPE");
    assert_eq!(
        (span.error(), span.get("url.path")),
        (String::new(), "/path".to_owned())
    );
}
