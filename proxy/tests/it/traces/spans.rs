//! Spans of requests and attempts: names, attributes, status, and which there are.

use std::io::Write;

use http_body_util::BodyExt;
use hyper::Response;

use super::*;
use crate::support::eventually;
use crate::support::mesh::{documents, gateway, routes, service};
use crate::support::origin::{RawOrigin, full, read_head};
use crate::support::proxy::free_address;
use crate::support::raw::Raw;

pub const ALL: [&str; 2] = ["--trace-sampling", "100"];

/// Returns a mesh with these rules, and the service `web` at these endpoints, in turn.
pub fn mesh(edge: SocketAddr, endpoints: &[SocketAddr], rules: &str) -> String {
    let endpoints: Vec<_> = endpoints.iter().map(|address| (*address, "v1")).collect();
    documents([
        gateway(&[edge]),
        service("web", Back::H1, &endpoints),
        "apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web}
spec: {host: web.test, trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN}}}"
            .to_owned(),
        routes("all", "[\"*\"]", rules),
    ])
}

const WEB: &str = "route: [{destination: {host: web.test}}]";

/// Starts an origin that answers with these statuses in turn, then with 200.
fn answering(statuses: &'static [u16]) -> Origin {
    let count = std::sync::atomic::AtomicUsize::new(0);
    Origin::start(Back::H1, move |request| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async move {
            drop(request.into_body().collect().await);
            let status = statuses.get(number).copied().unwrap_or(200);
            Response::builder().status(status).body(full("x")).unwrap()
        }
    })
}

#[tokio::test]
async fn attributes_are_those_of_the_semantic_conventions() {
    let (collector, origin) = (Collector::start(Back::H1), Origin::named(Back::H1, "hello"));
    let rules = format!(
        "- {{name: cart, match: [{{uri: {{prefix: /path}}}}], rewrite: {{uri: /in, authority: in.test}}, {WEB}}}"
    );
    let arguments = [&ALL[..], &["--trace-query"]].concat();
    let proxy = traced(&collector, &arguments, |edge| {
        mesh(edge, &[origin.address], &rules)
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let mut request = with(&[("user-agent", "curl/1")]);
    *request.uri_mut() = "http://a.test:8080/path/x?token=x&sig=abc".parse().unwrap();
    client.call(request).await;
    let spans = collector.wait(2).await;
    let [server, attempt] = &spans[..] else {
        unreachable!()
    };
    assert_eq!((&*server.name, &*attempt.name), ("GET /path*", "GET"));
    let id = origin.only().header("x-request-id").unwrap().to_owned();
    for (key, value) in [
        ("http.request.method", "GET"),
        ("url.path", "/path/x"),
        ("url.query", "token=x&sig=REDACTED"),
        ("url.scheme", "http"),
        ("http.route", "/path*"),
        ("http.response.status_code", "200"),
        ("server.address", "a.test"),
        ("server.port", "8080"),
        ("client.address", "127.0.0.1"),
        ("network.peer.address", "127.0.0.1"),
        ("network.protocol.version", "1.1"),
        ("user_agent.original", "curl/1"),
        ("upstream_cluster", "outbound|80||web.test"),
        ("response_flags", "-"),
        ("guid:x-request-id", &id),
        ("component", "proxy"),
        ("request_size", "0"),
        ("response_size", "5"),
        ("strait.response_code_details", "via_upstream"),
        ("istio.canonical_service", "unknown"),
        ("istio.canonical_revision", "latest"),
        ("istio.namespace", "default"),
    ] {
        assert_eq!(server.get(key), value, "{key}");
    }
    assert!(
        server
            .get("strait.rule")
            .starts_with("VirtualService/default/all (")
    );
    assert!(server.get("node_id").starts_with("router~"));
    for (key, value) in [
        ("http.request.method", "GET"),
        ("url.full", "http://in.test/in/x?token=x&sig=REDACTED"),
        ("network.protocol.version", "1.1"),
        ("http.response.status_code", "200"),
        ("server.address", "in.test"),
        ("network.peer.address", "127.0.0.1"),
        ("network.peer.port", &origin.address.port().to_string()),
        ("upstream_cluster", "outbound|80||web.test"),
    ] {
        assert_eq!(attempt.get(key), value, "{key}");
    }
    for key in [
        "http.request.resend_count",
        "strait.retry.reason",
        "strait.attempts",
        "error.type",
    ] {
        assert_eq!(attempt.attribute(key), None, "{key}");
        assert_eq!(server.attribute(key), None, "{key}");
    }
    assert_eq!(server.attribute("http.method"), None);
}

#[tokio::test]
async fn names_of_envoy_and_istio_are_written_if_they_are_wanted() {
    for (form, has_semconv, has_envoy) in [("envoy", false, true), ("both", true, true)] {
        let world = World::new(&[
            "--trace-sampling",
            "100",
            "--trace-attributes",
            form,
            "--trace-names",
            "istio",
        ]);
        world.get(&[]).await;
        let spans = world.collector.wait(2).await;
        assert_eq!(spans[0].name, "web.test:80/*");
        assert_eq!(spans[1].name, "router outbound|80||web.test egress");
        for span in &spans {
            let has = |key: &str| span.attribute(key).is_some();
            assert_eq!(has("http.request.method"), has_semconv);
            assert_eq!(has("http.response.status_code"), has_semconv);
            assert_eq!(has("http.method"), has_envoy);
            assert_eq!(span.get("http.status_code"), "200");
        }
        assert_eq!(spans[0].get("http.url"), "http://a.test/path");
    }
}

#[tokio::test]
async fn query_is_left_out_and_long_paths_are_cut() {
    let world = World::new(&ALL);
    let mut client = Client::connect(Front::H1, world.proxy.edge).await;
    client
        .get(&format!("/{}?secret=1", "x".repeat(4_000)))
        .await;
    let spans = world.collector.wait(2).await;
    assert_eq!(spans[0].get("url.path").len(), 256);
    assert_eq!(spans[0].attribute("url.query"), None);
    assert_eq!(spans[1].get("url.full").len(), 256);
}

#[tokio::test]
async fn each_attempt_has_a_span() {
    let (collector, origin) = (Collector::start(Back::H1), answering(&[503, 503]));
    let rules = format!("- {{retries: {{attempts: 2, retryOn: 5xx}}, {WEB}}}");
    let proxy = traced(&collector, &ALL, |edge| {
        mesh(edge, &[origin.address], &rules)
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.get("/").await.status, 200);
    let spans = collector.wait(4).await;
    assert_eq!(spans[0].error(), "");
    assert_eq!(spans[0].get("strait.attempts"), "3");
    let seen = origin.seen();
    for (number, (span, seen)) in spans[1..].iter().zip(&seen).enumerate() {
        let is_last = number == 2;
        assert_eq!(span.error(), if is_last { "" } else { "503" });
        let resends = (number > 0).then(|| number.to_string());
        assert_eq!(span.attribute("http.request.resend_count"), resends);
        let reason = (number > 0).then(|| "status".to_owned());
        assert_eq!(span.attribute("strait.retry.reason"), reason);
        assert_eq!(context(seen).1, span.id());
        assert_eq!(span.parent(), spans[0].id());
        assert!(spans[0].start <= span.start && span.end <= spans[0].end);
    }
}

#[tokio::test]
async fn attempt_with_a_body_is_traced_as_well() {
    let (collector, origin) = (Collector::start(Back::H1), answering(&[503]));
    let rules = format!("- {{retries: {{attempts: 2, retryOn: 5xx}}, {WEB}}}");
    let proxy = traced(&collector, &ALL, |edge| {
        mesh(edge, &[origin.address], &rules)
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let post = crate::support::client::post("/", "body");
    assert_eq!(client.call(post).await.status, 200);
    let spans = collector.wait(3).await;
    for (span, seen) in spans[1..].iter().zip(origin.seen()) {
        assert_eq!(context(&seen).1, span.id());
    }
}

#[tokio::test]
async fn url_of_an_attempt_in_another_cluster_has_the_path_of_its_gateway() {
    let (collector, origin) = (Collector::start(Back::H1), Origin::named(Back::H1, "hello"));
    let (ip, port) = (origin.address.ip(), origin.address.port());
    let proxy = traced(&collector, &ALL, |edge| {
        documents([
            gateway(&[edge]),
            routes(
                "web",
                "['*']",
                "- {route: [{destination: {host: web.ns1.svc.cluster.local, port: {number: 80}}}]}",
            ),
            format!(
                "apiVersion: flomesh.io/v1alpha1\nkind: ServiceImport\nmetadata: {{namespace: ns1, name: web}}\n\
                 spec: {{ports: [{{name: http, port: 80, endpoints: [{{clusterKey: default/default/default/c2, \
                 target: {{host: '', ip: {ip}, port: {port}, path: /c2/web}}}}]}}]}}\n"
            ),
            "apiVersion: flomesh.io/v1alpha1\nkind: GlobalTrafficPolicy\nmetadata: {namespace: ns1, name: web}\n\
             spec: {lbType: ActiveActive, targets: [{clusterKey: default/default/default/c2}]}\n"
                .to_owned(),
        ])
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.get("/cart").await.status, 200);
    let spans = collector.wait(2).await;
    let attempt = spans.iter().find(|span| span.kind == CLIENT).unwrap();
    let url = attempt.get("url.full");
    assert!(url.ends_with("/c2/web/cart"), "{url}");
    assert_eq!(origin.only().path(), "/c2/web/cart");
}

#[tokio::test]
async fn attempt_without_a_connection_has_its_reason() {
    let (collector, origin) = (Collector::start(Back::H1), Origin::named(Back::H1, "hello"));
    let dead = free_address();
    let rules = format!("- {{retries: {{attempts: 2, retryOn: connect-failure}}, {WEB}}}");
    let proxy = traced(&collector, &ALL, |edge| {
        mesh(edge, &[dead, origin.address], &rules)
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    // one of two in turn is the dead one
    client.get("/").await;
    client.get("/").await;
    let spans = collector.wait(5).await;
    let failed: Vec<_> = spans.iter().filter(|span| span.is_error()).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(
        (failed[0].kind, failed[0].error()),
        (CLIENT, "connect_failed".to_owned())
    );
    assert_eq!(failed[0].attribute("network.peer.address"), None);
    let endpoint = failed[0].attribute("strait.destination.endpoint");
    assert_eq!(endpoint, Some(dead.to_string()));
    assert_eq!(failed[0].attribute("http.response.status_code"), None);
}

#[tokio::test]
async fn request_whose_attempts_all_fail_is_an_error() {
    let collector = Collector::start(Back::H1);
    let origin = answering(&[503, 503, 503]);
    let rules = format!(
        "- {{match: [{{uri: {{prefix: /dead}}}}], route: [{{destination: {{host: dead.test}}}}]}}\n- {{retries: {{attempts: 2, retryOn: 5xx}}, {WEB}}}"
    );
    let dead = free_address();
    let proxy = traced(&collector, &ALL, |edge| {
        documents([
            mesh(edge, &[origin.address], &rules),
            service("dead", Back::H1, &[(dead, "v1")]),
        ])
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.get("/").await.status, 503);
    let spans = collector.wait(4).await;
    assert_eq!(spans[0].error(), "503");
    assert_eq!(spans[0].get("response_flags"), "URX");
    assert_eq!(client.get("/dead").await.status, 503);
    eventually("spans of both", || {
        collector
            .spans()
            .iter()
            .filter(|span| span.kind == SERVER)
            .count()
            == 2
    });
    let spans = collector.spans();
    let is_dead = |span: &&Span| span.get("url.path") == "/dead";
    let server = spans.iter().find(is_dead).unwrap();
    assert_eq!(server.error(), "connect_failed");
    assert!(server.get("response_flags").contains("UF"));
}

#[tokio::test]
async fn timeouts_have_their_words() {
    let collector = Collector::start(Back::H1);
    let silent = RawOrigin::start(|_, mut stream| {
        read_head(&mut stream);
        std::thread::park();
    });
    let rules = format!(
        "- {{match: [{{uri: {{prefix: /attempt}}}}], retries: {{attempts: 1, perTryTimeout: 50ms, retryOn: 5xx}}, {WEB}}}\n\
         - {{timeout: 50ms, {WEB}}}"
    );
    let proxy = traced(&collector, &ALL, |edge| {
        mesh(edge, &[silent.address], &rules)
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.get("/").await.status, 504);
    let spans = collector.wait(2).await;
    assert_eq!(spans[0].error(), "request_timeout");
    assert_eq!(spans[1].error(), "request_timeout");
    assert_eq!(client.get("/attempt").await.status, 504);
    let spans = collector.wait(5).await;
    let words: Vec<_> = spans.iter().map(Span::error).collect();
    assert_eq!(
        words
            .iter()
            .filter(|word| *word == "attempt_timeout")
            .count(),
        2,
        "{words:?}"
    );
}

#[tokio::test]
async fn replies_of_the_proxy_have_a_server_span_only() {
    let collector = Collector::start(Back::H1);
    let rules = "\
- {match: [{uri: {exact: /direct}}], directResponse: {status: 200}}
- {match: [{uri: {exact: /redirect}}], redirect: {uri: /x}}
- {match: [{uri: {exact: /fault}}], fault: {abort: {httpStatus: 500, percentage: {value: 100}}}, route: [{destination: {host: web.test}}]}";
    let proxy = traced(&collector, &ALL, |edge| {
        mesh(edge, &[free_address()], rules)
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    for (number, (path, status, error, flags)) in [
        ("/direct", 200, "", "-"),
        ("/redirect", 301, "", "-"),
        ("/fault", 500, "fault_abort", "FI"),
        ("/none", 404, "", "NR"),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(client.get(path).await.status, status);
        let spans = collector.wait(number + 1).await;
        let span = spans
            .iter()
            .find(|span| span.get("url.path") == path)
            .unwrap();
        assert_eq!((span.kind, &*span.error()), (SERVER, error), "{path}");
        assert_eq!(span.get("response_flags"), flags);
        assert_eq!(span.get("http.response.status_code"), status.to_string());
    }
}

#[tokio::test]
async fn error_of_the_client_is_one_of_the_attempt_only() {
    let (collector, origin) = (Collector::start(Back::H1), answering(&[404]));
    let rules = format!("- {{{WEB}}}");
    let proxy = traced(&collector, &ALL, |edge| {
        mesh(edge, &[origin.address], &rules)
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.get("/").await.status, 404);
    let spans = collector.wait(2).await;
    assert_eq!((&*spans[0].error(), &*spans[1].error()), ("", "404"));
    assert_eq!(spans[0].name, "GET");
}

#[tokio::test]
async fn client_that_leaves_is_no_error_of_the_endpoint() {
    let collector = Collector::start(Back::H1);
    let (tell, told) = std::sync::mpsc::channel();
    let tell = std::sync::Mutex::new(tell);
    let silent = RawOrigin::start(move |_, mut stream| {
        read_head(&mut stream);
        tell.lock().unwrap().send(()).unwrap();
        std::thread::park();
    });
    let rules = format!("- {{{WEB}}}");
    let proxy = traced(&collector, &ALL, |edge| {
        mesh(edge, &[silent.address], &rules)
    });
    let mut client = Raw::connect(proxy.edge);
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    told.recv_timeout(crate::support::DEADLINE).unwrap();
    drop(client);
    let spans = collector.wait(2).await;
    assert_eq!(
        (&*spans[0].error(), &*spans[1].error()),
        ("client_disconnect", "")
    );
    assert_eq!(spans[0].attribute("http.response.status_code"), None);
}

#[tokio::test]
async fn response_that_breaks_off_is_an_error_of_both() {
    let collector = Collector::start(Back::H1);
    let breaking = RawOrigin::start(|_, mut stream| {
        read_head(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf");
    });
    let rules = format!("- {{{WEB}}}");
    let proxy = traced(&collector, &ALL, |edge| {
        mesh(edge, &[breaking.address], &rules)
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert!(client.try_call(with(&[])).await.is_err());
    let spans = collector.wait(2).await;
    for span in &spans {
        assert_eq!(span.error(), "response_broken_off");
        assert_eq!(span.get("http.response.status_code"), "200");
    }
}

#[tokio::test]
async fn pooled_connection_that_was_closed_is_an_event() {
    let collector = Collector::start(Back::H1);
    let origin = RawOrigin::start(|number, mut stream| {
        while !read_head(&mut stream).is_empty() {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
            if number == 0 {
                // the second request is read, and then the connection ends
                read_head(&mut stream);
                return;
            }
        }
    });
    let rules = format!("- {{{WEB}}}");
    let arguments = [&ALL[..], &["--concurrency", "1"]].concat();
    let proxy = traced(&collector, &arguments, |edge| {
        mesh(edge, &[origin.address], &rules)
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.get("/").await.status, 200);
    collector.wait(2).await;
    assert_eq!(client.get("/again").await.status, 200);
    let spans = collector.wait(4).await;
    let names = spans.iter().flat_map(|span| &span.events);
    let names: Vec<_> = names.map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["strait.stale_connection"]);
    assert!(
        spans
            .iter()
            .all(|span| span.attribute("strait.attempts").is_none())
    );
}

#[tokio::test]
async fn mirror_has_a_span_with_a_link() {
    let (collector, origin) = (Collector::start(Back::H1), Origin::named(Back::H1, "hello"));
    let shadow = answering(&[500]);
    let rules = format!("- {{mirror: {{host: shadow.test}}, {WEB}}}");
    let proxy = traced(&collector, &ALL, |edge| {
        let shadow = service("shadow", Back::H1, &[(shadow.address, "v1")]);
        documents([mesh(edge, &[origin.address], &rules), shadow])
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    client.get("/x").await;
    let spans = collector.wait(3).await;
    let find = |is_mirror: bool| {
        let mut clients = spans[1..].iter();
        clients
            .find(|span| span.attribute("strait.mirror").is_some() == is_mirror)
            .unwrap()
    };
    let (attempt, mirror) = (find(false), find(true));
    assert_eq!((mirror.name.as_str(), mirror.kind), ("mirror GET", CLIENT));
    assert_eq!(mirror.parent(), spans[0].id());
    assert_eq!(mirror.links[0].span_id, attempt.span_id);
    assert!(mirror.is_error() && !spans[0].is_error() && !attempt.is_error());
    let seen = shadow.only();
    assert_eq!(
        context(&seen),
        (spans[0].trace(), mirror.id(), "01".to_owned())
    );
    assert_eq!(context(&origin.only()).1, attempt.id());
}

#[tokio::test]
async fn status_of_grpc_decides() {
    for (code, server, attempt) in [
        ("14", "UNAVAILABLE", "UNAVAILABLE"),
        ("5", "", "NOT_FOUND"),
        ("0", "", ""),
    ] {
        for in_trailers in [true, false] {
            let collector = Collector::start(Back::H1);
            let origin = Origin::start(Back::H2, move |_| async move {
                let mut trailers = hyper::HeaderMap::new();
                trailers.insert("grpc-status", code.parse().unwrap());
                let response = Response::builder().header("content-type", "application/grpc");
                if !in_trailers {
                    return response.header("grpc-status", code).body(empty()).unwrap();
                }
                let frames = [
                    hyper::body::Frame::data("\0\0\0\0\0".into()),
                    hyper::body::Frame::trailers(trailers),
                ];
                let frames = futures_util::stream::iter(frames.map(Ok));
                let body = http_body_util::StreamBody::new(frames).boxed_unsync();
                response.body(body).unwrap()
            });
            let rules = format!(
                "- {{match: [{{uri: {{exact: /shop.Cart/Get}}}}], retries: {{attempts: 0}}, {WEB}}}"
            );
            let proxy = traced(&collector, &ALL, |edge| {
                documents([
                    gateway(&[edge]),
                    service("web", Back::H2, &[(origin.address, "v1")]),
                    routes("all", "[\"*\"]", &rules),
                ])
            });
            let mut client = Client::connect(Front::H2, proxy.edge).await;
            let mut request = crate::support::client::post("/shop.Cart/Get", "");
            request
                .headers_mut()
                .insert("content-type", "application/grpc".parse().unwrap());
            client.call(request).await;
            let spans = collector.wait(2).await;
            assert_eq!(
                (&*spans[0].error(), &*spans[1].error()),
                (server, attempt),
                "{code} {in_trailers}"
            );
            for span in &spans {
                assert_eq!(span.name, "shop.Cart/Get");
                assert_eq!(span.get("rpc.system.name"), "grpc");
                assert_eq!(span.get("rpc.method"), "shop.Cart/Get");
            }
            let name = if code == "0" { "OK" } else { attempt };
            assert_eq!(spans[0].get("rpc.status_code"), name);
        }
    }
}

#[tokio::test]
async fn span_of_a_tunnel_lasts_as_long_as_the_tunnel() {
    let collector = Collector::start(Back::H1);
    let origin = RawOrigin::start(|_, mut stream| {
        read_head(&mut stream);
        let _ = stream.write_all(
            b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
        );
        // until the client has had enough
        let mut rest = Vec::new();
        let _ = std::io::Read::read_to_end(&mut stream, &mut rest);
    });
    let rules = format!(
        "- {{match: [{{uri: {{exact: /none}}}}], directResponse: {{status: 200}}}}\n- {{{WEB}}}"
    );
    let proxy = traced(&collector, &ALL, |edge| {
        mesh(edge, &[origin.address], &rules)
    });
    let mut client = Raw::connect(proxy.edge);
    client.send(
        "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    assert_eq!(client.reply().status, 101);
    // another request ends while the tunnel is open
    let before = std::time::SystemTime::now();
    Client::connect(Front::H1, proxy.edge)
        .await
        .get("/none")
        .await;
    drop(client);
    eventually("the tunnel has ended", || {
        collector
            .spans()
            .iter()
            .any(|span| span.attribute("strait.tunnel").is_some())
    });
    let spans = collector.spans();
    let server = spans
        .iter()
        .find(|span| span.attribute("strait.tunnel").is_some())
        .unwrap();
    let before = before
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_nanos() as u64;
    assert!(server.start <= before && before <= server.end);
}
