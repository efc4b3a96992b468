//! gRPC-Web: a port that declares it translates requests to gRPC, like Envoy's filter `grpc_web`.

use std::process::Command;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::{Request, Response};
use tokio::sync::mpsc;

use crate::sidecar::{Sidecar, service as sidecar_service};
use crate::support::DEADLINE;
use crate::support::client::{Answer, Client, Front};
use crate::support::mesh::{documents, everything_to, gateway, routes, service};
use crate::support::origin::{Back, Body, BodyError, Origin, full};
use crate::support::proxy::Proxy;

const BINARY: &str = "application/grpc-web+proto";
const TEXT: &str = "application/grpc-web-text";
const TEXT_PROTO: &str = "application/grpc-web-text+proto";

/// gRPC message `hello`, and the trailers that follow it.
const HELLO: &[u8] = b"\0\0\0\0\x05hello";
const HELLO_TEXT: &[u8] = b"AAAAAAVoZWxsbw==";
const TRAILERS: &[u8] = b"\x80\0\0\0(grpc-status:0\r\ngrpc-message:a b\r\nx-t:1\r\n";
const TRAILERS_TEXT: &[u8] = b"gAAAAChncnBjLXN0YXR1czowDQpncnBjLW1lc3NhZ2U6YSBiDQp4LXQ6MQ0K";

type Frames = mpsc::UnboundedReceiver<Frame<Bytes>>;

fn body(frames: Frames) -> Body {
    let next = |mut frames: Frames| async move {
        let frame = frames.recv().await?;
        Some((Ok::<_, BodyError>(frame), frames))
    };
    StreamBody::new(stream::unfold(frames, next)).boxed_unsync()
}

fn pieces(frames: impl IntoIterator<Item = Frame<Bytes>>) -> Body {
    let (sender, receiver) = mpsc::unbounded_channel();
    frames.into_iter().for_each(|one| sender.send(one).unwrap());
    body(receiver)
}

fn trailers() -> Frame<Bytes> {
    let mut trailers = HeaderMap::new();
    for (name, value) in [("grpc-status", "0"), ("grpc-message", "a b"), ("x-t", "1")] {
        trailers.insert(name, HeaderValue::from_static(value));
    }
    Frame::trailers(trailers)
}

/// Echoes the request body, or answers as the path specifies.
async fn serve(request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let received = request.into_body().collect().await;
    let received = received.map(|body| body.to_bytes()).unwrap_or_default();
    let response = Response::builder().header("content-type", "application/grpc");
    let response = match &*path {
        "/pieces" => {
            // the messages `one`, nothing, and `three!`
            let bytes = b"\0\0\0\0\x03one\0\0\0\0\0\0\0\0\0\x06three!";
            let data = bytes.chunks(4).map(|piece| Frame::data(piece.into()));
            response.body(pieces(data.chain([trailers()])))
        }
        "/status" => response
            .header("grpc-status", "5")
            .header("grpc-message", "no such note")
            .body(full("")),
        "/page" => response
            .status(404)
            .header("content-type", "text/html")
            .body(full("<p>gone ~ 100 %</p>")),
        "/long" => response.status(503).body(full(vec![b'x'; 20_000])),
        "/nothing" => response.status(404).body(full("")),
        "/own" => response
            .header("content-type", "application/grpc-web")
            .body(full([HELLO, TRAILERS].concat())),
        _ => response.body(pieces([Frame::data(received), trailers()])),
    };
    response.unwrap()
}

fn web(resources: &str) -> String {
    resources.replace("protocol: HTTP}, bind", "protocol: GRPC-WEB}, bind")
}

/// Starts a gRPC-Web gateway that routes everything to an origin.
fn proxy(origin: &Origin) -> Proxy {
    Proxy::with(|edge| web(&everything_to(edge, origin)))
}

fn request(path: &str, content_type: &str, accept: &str, body: Body) -> Request<Body> {
    Request::post(format!("http://a.test{path}"))
        .header("content-type", content_type)
        .header("accept", accept)
        .body(body)
        .unwrap()
}

async fn binary(proxy: &Proxy, front: Front, path: &str) -> Answer {
    let mut client = Client::connect(front, proxy.edge).await;
    client.call(request(path, BINARY, "*/*", full(HELLO))).await
}

async fn text(proxy: &Proxy, front: Front, path: &str) -> Answer {
    let mut client = Client::connect(front, proxy.edge).await;
    client
        .call(request(path, TEXT, TEXT, full(HELLO_TEXT)))
        .await
}

fn assert_translated(answer: &Answer, content_type: &str, body: &[u8]) {
    assert_eq!((answer.status, &*answer.body), (200, body));
    assert_eq!(answer.header("content-type"), Some(content_type));
    assert_eq!(answer.header("content-length"), None);
    assert_eq!(answer.trailers, None);
}

#[tokio::test]
async fn unary_call_is_translated_both_ways() {
    let origin = Origin::start(Back::H2, serve);
    let proxy = proxy(&origin);
    let bytes = [HELLO, TRAILERS].concat();
    let characters = [HELLO_TEXT, TRAILERS_TEXT].concat();
    for front in [Front::H1, Front::H2] {
        for content_type in ["application/grpc-web", BINARY, TEXT, TEXT_PROTO] {
            for accept in ["*/*", TEXT, TEXT_PROTO] {
                let sent = if content_type.contains("text") {
                    HELLO_TEXT
                } else {
                    HELLO
                };
                let mut client = Client::connect(front, proxy.edge).await;
                let answer = client
                    .call(request("/", content_type, accept, full(sent)))
                    .await;
                match accept {
                    "*/*" => assert_translated(&answer, BINARY, &bytes),
                    _ => assert_translated(&answer, TEXT_PROTO, &characters),
                }
            }
        }
    }
    let seen = origin.seen();
    assert_eq!(seen.len(), 24);
    for seen in seen {
        assert_eq!(seen.header("content-type"), Some("application/grpc"));
        assert_eq!(seen.header("te"), Some("trailers"));
        assert_eq!(seen.header("grpc-accept-encoding"), Some("identity"));
        assert_eq!(seen.header("content-length"), None);
    }
    let labels = [("request_protocol", "grpc"), ("grpc_response_status", "0")];
    assert_eq!(proxy.metric("istio_requests_total", &labels), 24.0);
    assert_eq!(proxy.metric("istio_request_messages_total", &[]), 24.0);
}

#[tokio::test]
async fn text_in_any_pieces_is_decoded_and_encoded() {
    let origin = Origin::start(Back::H2, serve);
    let proxy = proxy(&origin);
    for front in [Front::H1, Front::H2] {
        for length in [1, 3, 7, 100] {
            // each message is encoded by itself, with padding in the middle
            let sent = [HELLO_TEXT, HELLO_TEXT].concat();
            let data = sent.chunks(length);
            let data = data.map(|piece| Frame::data(Bytes::copy_from_slice(piece)));
            let mut client = Client::connect(front, proxy.edge).await;
            let answer = client.call(request("/", TEXT, "*/*", pieces(data))).await;
            assert_translated(&answer, BINARY, &[HELLO, HELLO, TRAILERS].concat());
        }
        let answer = text(&proxy, front, "/pieces").await;
        let expected = [b"AAAAAANvbmU=AAAAAAA=AAAAAAZ0aHJlZSE=", TRAILERS_TEXT].concat();
        assert_translated(&answer, TEXT_PROTO, &expected);
    }
}

#[tokio::test]
async fn stream_of_the_server_flows_message_by_message() {
    for front in [Front::H1, Front::H2] {
        for (accept, first, end) in [("*/*", HELLO, TRAILERS), (TEXT, HELLO_TEXT, TRAILERS_TEXT)] {
            let (sender, receiver) = mpsc::unbounded_channel();
            let receiver = std::cell::Cell::new(Some(receiver));
            let origin = Origin::start(Back::H2, move |_| {
                let frames = body(receiver.take().unwrap());
                async move {
                    let response = Response::builder();
                    let response = response.header("content-type", "application/grpc");
                    response.body(frames).unwrap()
                }
            });
            let proxy = proxy(&origin);
            let mut client = Client::connect(front, proxy.edge).await;
            let sent = request("/", BINARY, accept, full(HELLO));
            let mut response = client.send(sent).await.unwrap();
            for _ in 0..3 {
                sender.send(Frame::data(HELLO.into())).unwrap();
                let frame = tokio::time::timeout(DEADLINE, response.frame()).await;
                let data = frame.unwrap().unwrap().unwrap().into_data().unwrap();
                assert_eq!(data, first);
            }
            sender.send(trailers()).unwrap();
            let rest = Answer::read(response).await.unwrap();
            assert_eq!(rest.body, end);
        }
    }
}

#[tokio::test]
async fn status_in_the_head_stays_there() {
    let origin = Origin::start(Back::H2, serve);
    let proxy = proxy(&origin);
    for front in [Front::H1, Front::H2] {
        let answer = binary(&proxy, front, "/status").await;
        assert_eq!((answer.status, answer.text()), (200, ""));
        assert_eq!(answer.header("content-type"), Some(BINARY));
        assert_eq!(answer.header("grpc-status"), Some("5"));
        assert_eq!(answer.header("grpc-message"), Some("no such note"));
        let answer = text(&proxy, front, "/status").await;
        assert_eq!(answer.header("content-type"), Some(TEXT_PROTO));
    }
}

#[tokio::test]
async fn other_responses_become_a_status() {
    let origin = Origin::start(Back::H2, serve);
    let proxy = proxy(&origin);
    for front in [Front::H1, Front::H2] {
        let answer = binary(&proxy, front, "/page").await;
        assert_eq!((answer.status, answer.text()), (404, ""));
        assert_eq!(answer.header("content-type"), Some(BINARY));
        assert_eq!(answer.header("grpc-status"), Some("12"));
        let message = answer.header("grpc-message");
        assert_eq!(message, Some("<p>gone %7E 100 %25</p>"));
        let answer = binary(&proxy, front, "/nothing").await;
        assert_eq!((answer.status, answer.text()), (404, ""));
        assert_eq!(answer.header("content-type"), Some(BINARY));
        assert_eq!(answer.header("grpc-status"), None);
        let answer = binary(&proxy, front, "/own").await;
        assert_translated(&answer, BINARY, &[HELLO, TRAILERS].concat());
    }
    // a client of HTTP/2 takes no head of this length
    let answer = text(&proxy, Front::H1, "/long").await;
    assert_eq!(answer.header("grpc-status"), Some("14"));
    assert_eq!(answer.header("grpc-message").unwrap().len(), 16 * 1024);
}

#[tokio::test]
async fn local_replies_become_a_status() {
    let rules = "\
- match: [{uri: {exact: /direct}}]
  directResponse: {status: 418, body: {string: teapot}}
- match: [{uri: {exact: /fault}}]
  fault: {abort: {grpcStatus: RESOURCE_EXHAUSTED, percentage: {value: 100}}}
  route: [{destination: {host: web.test}}]
- match: [{uri: {exact: /empty}}]
  route: [{destination: {host: web.test}}]
";
    let proxy = Proxy::with(|edge| {
        documents([
            web(&gateway(&[edge])),
            service("web", Back::H2, &[]),
            routes("all", "[\"*\"]", rules),
        ])
    });
    for front in [Front::H1, Front::H2] {
        for (path, status, grpc, message) in [
            ("/direct", 418, "2", "teapot"),
            ("/fault", 200, "2", "fault filter abort"),
            ("/empty", 503, "14", "no healthy upstream"),
        ] {
            let answer = text(&proxy, front, path).await;
            assert_eq!((answer.status, answer.text()), (status, ""), "{path}");
            assert_eq!(answer.header("content-type"), Some(TEXT_PROTO));
            assert_eq!(answer.header("grpc-status"), Some(grpc), "{path}");
            assert_eq!(answer.header("grpc-message"), Some(message));
        }
    }
}

#[tokio::test]
async fn reply_without_a_route_has_the_content_type() {
    let resources = |edge| {
        let rule = "- match: [{uri: {exact: /known}}]\n  directResponse: {status: 200}";
        documents([gateway(&[edge]), routes("all", "[a.test]", rule)])
    };
    let web_proxy = Proxy::with(|edge| web(&resources(edge)));
    let plain_proxy = Proxy::with(resources);
    for front in [Front::H1, Front::H2] {
        for (proxy, expected) in [(&web_proxy, Some(TEXT_PROTO)), (&plain_proxy, None)] {
            for host in ["a.test", "unknown.test"] {
                let mut client = Client::connect(front, proxy.edge).await;
                let mut request = request("/", TEXT, TEXT, full(HELLO_TEXT));
                *request.uri_mut() = format!("http://{host}/").parse().unwrap();
                let answer = client.call(request).await;
                assert_eq!((answer.status, answer.text()), (404, ""), "{host}");
                assert_eq!(answer.header("content-type"), expected, "{host}");
            }
        }
    }
}

#[tokio::test]
async fn invalid_base64_is_answered_with_400() {
    let origin = Origin::start(Back::H2, serve);
    let proxy = proxy(&origin);
    for front in [Front::H1, Front::H2] {
        for (path, sent, details) in [
            ("/a", "****", "grpc_base_64_decode_failed"),
            ("/b", "QR==", "grpc_base_64_decode_failed"),
            ("/c", "QUJD=QUJ", "grpc_base_64_decode_failed"),
            ("/d", "QUJDRA", "grpc_base_64_decode_failed_bad_size"),
        ] {
            let data = sent.as_bytes().chunks(3);
            let data = data.map(|piece| Frame::data(Bytes::copy_from_slice(piece)));
            let mut client = Client::connect(front, proxy.edge).await;
            let answer = client.call(request(path, TEXT, "*/*", pieces(data))).await;
            assert_eq!((answer.status, answer.text()), (400, ""), "{sent}");
            assert_eq!(answer.header("content-type"), Some(BINARY));
            assert_eq!(answer.header("grpc-status"), Some("13"));
            let message = Some("Bad gRPC-web request, invalid base64 data.");
            assert_eq!(answer.header("grpc-message"), message);
            let logged = proxy.logged(path);
            assert_eq!(logged["response_code_details"], details, "{sent}");
        }
    }
}

#[tokio::test]
async fn text_is_decoded_beside_a_limit_of_the_body() {
    let origin = Origin::start(Back::H1, serve);
    let limit = |bytes: usize| {
        format!(
            "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\nmetadata: {{name: own}}\n\
             spec:\n  targetRefs: [{{group: networking.istio.io, kind: VirtualService, name: all}}]\n  \
             requestBuffer: {{limit: {bytes}}}\n"
        )
    };
    for (most, details) in [
        (HELLO.len(), "via_upstream"),
        (HELLO.len() - 1, "request_payload_too_large"),
    ] {
        let proxy = Proxy::with(|edge| {
            let mesh = web(&everything_to(edge, &origin));
            documents(&[mesh, limit(most)])
        });
        let answer = text(&proxy, Front::H1, "/").await;
        let is_served = answer.body.starts_with(HELLO_TEXT);
        assert_eq!(is_served, details == "via_upstream", "{answer:?}");
        assert_eq!(proxy.logged("/")["response_code_details"], details);
        // the limit does not take the place of the decoder
        let mut client = Client::connect(Front::H1, proxy.edge).await;
        let frame = Frame::data(Bytes::from_static(b"****"));
        client
            .call(request("/bad", TEXT, "*/*", pieces([frame])))
            .await;
        let logged = proxy.logged("/bad");
        assert_eq!(
            logged["response_code_details"],
            "grpc_base_64_decode_failed"
        );
    }
}

#[tokio::test]
async fn only_grpc_web_on_its_ports_is_translated() {
    let origin = Origin::start(Back::H2, serve);
    let web_proxy = proxy(&origin);
    let plain_proxy = Proxy::with(|edge| everything_to(edge, &origin));
    for (proxy, content_type) in [
        (&web_proxy, "application/grpc"),
        (&web_proxy, "application/grpc-web+json"),
        (&web_proxy, "application/grpc-web; charset=utf-8"),
        (&web_proxy, "text/plain"),
        (&plain_proxy, BINARY),
        (&plain_proxy, TEXT),
    ] {
        let mut client = Client::connect(Front::H2, proxy.edge).await;
        let answer = client
            .call(request("/", content_type, "*/*", full(HELLO_TEXT)))
            .await;
        assert_eq!(answer.body, HELLO_TEXT, "{content_type}");
        assert_eq!(answer.header("content-type"), Some("application/grpc"));
        assert_eq!(answer.trailers.unwrap()["grpc-status"], "0");
        let seen = origin.seen().pop().unwrap();
        assert_eq!(seen.header("content-type"), Some(content_type));
        assert_eq!(seen.header("grpc-accept-encoding"), None);
    }
}

#[test]
fn explain_says_where_grpc_web_is_translated() {
    let origin = Origin::named(Back::H2, "hello");
    let declared = |resources: String| resources.replace("protocol: HTTP2}", "protocol: GRPC-WEB}");
    let proxies = [
        Proxy::with(|edge| web(&everything_to(edge, &origin))),
        Proxy::with(|edge| declared(everything_to(edge, &origin))),
        Proxy::with(|edge| everything_to(edge, &origin)),
    ];
    let told = [
        "requests of gRPC-Web are translated into gRPC",
        "gRPC-Web: passed on as it is, since the listener does not declare it",
    ];
    for (proxy, expected) in proxies
        .iter()
        .zip([[true, false], [false, true], [false, false]])
    {
        let (admin, url) = (proxy.admin.to_string(), format!("http://{}/", proxy.edge));
        let output = Command::new(env!("CARGO_BIN_EXE_strait"))
            .args(["explain", "--admin", &admin, "GET", &url])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(told.map(|said| text.contains(said)), expected, "{text}");
    }
}

#[tokio::test]
async fn host_is_translated_if_a_server_of_grpc_web_has_it() {
    let origin = Origin::start(Back::H2, serve);
    let proxy = Proxy::with(|edge| {
        let own = |name: &str| gateway(&[edge]).replace("\"*\"", &format!("{name}.test"));
        let other = own("b").replace("name: edge", "name: other");
        let rule = "- route: [{destination: {host: web.test}}]";
        let routes = routes("all", "[a.test, b.test]", rule);
        documents([
            other,
            web(&own("a")),
            service("web", Back::H2, &[(origin.address, "v1")]),
            routes.replace("[edge]", "[edge, other]"),
        ])
    });
    let mut client = Client::connect(Front::H2, proxy.edge).await;
    for (host, expected) in [("a.test", BINARY), ("b.test", "application/grpc")] {
        let mut request = request("/", BINARY, "*/*", full(HELLO));
        *request.uri_mut() = format!("http://{host}/").parse().unwrap();
        let answer = client.call(request).await;
        assert_eq!(answer.header("content-type"), Some(expected), "{host}");
    }
}

#[tokio::test]
async fn retried_request_is_decoded_once() {
    let count = std::cell::Cell::new(0);
    let origin = Origin::start(Back::H2, move |request| {
        count.set(count.get() + 1);
        let is_first = count.get() % 2 == 1;
        async move {
            let mut response = serve(request).await;
            if is_first {
                *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
            }
            response
        }
    });
    let proxy = Proxy::with(|edge| {
        let rule =
            "- retries: {attempts: 2, retryOn: 5xx}\n  route: [{destination: {host: web.test}}]";
        documents([
            web(&gateway(&[edge])),
            service("web", Back::H2, &[(origin.address, "v1")]),
            routes("all", "[\"*\"]", rule),
        ])
    });
    for front in [Front::H1, Front::H2] {
        let answer = text(&proxy, front, "/").await;
        let expected = [HELLO_TEXT, TRAILERS_TEXT].concat();
        assert_translated(&answer, TEXT_PROTO, &expected);
    }
    assert_eq!(origin.seen().len(), 4);
}

#[tokio::test]
async fn cors_exposes_what_the_rule_says() {
    let origin = Origin::start(Back::H2, serve);
    let proxy = Proxy::with(|edge| {
        let rule = "\
- corsPolicy: {allowOrigins: [{exact: http://x.test}], exposeHeaders: [grpc-status]}
  route: [{destination: {host: web.test}}]";
        documents([
            web(&gateway(&[edge])),
            service("web", Back::H2, &[(origin.address, "v1")]),
            routes("all", "[\"*\"]", rule),
        ])
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let mut request = request("/", BINARY, "*/*", full(HELLO));
    let from = HeaderValue::from_static("http://x.test");
    request.headers_mut().insert("origin", from);
    let answer = client.call(request).await;
    assert_translated(&answer, BINARY, &[HELLO, TRAILERS].concat());
    let exposed = answer.header("access-control-expose-headers");
    assert_eq!(exposed, Some("grpc-status"));
}

/// POST request with `HELLO` over HTTP/1.1.
fn raw(host: &str) -> Vec<u8> {
    let head = format!(
        "POST / HTTP/1.1\r\nHost: {host}\r\ncontent-type: {BINARY}\r\ncontent-length: {}\r\n\r\n",
        HELLO.len()
    );
    [head.as_bytes(), HELLO].concat()
}

#[test]
fn sidecar_translates_on_ports_of_grpc_web() {
    let origin = Origin::start(Back::H2, serve);
    let own = origin.address;
    let sidecar = Sidecar::start(
        &[],
        [
            sidecar_service("notes", "10.0.0.1", ("grpc-web", 80), own),
            sidecar_service("other", "10.0.0.2", ("http2", 80), own),
            sidecar_service("web", "10.0.0.3", ("grpc-web-x", 90), own),
        ],
    );
    let dialed = own.to_string();
    for (mut connection, host, expected) in [
        (sidecar.leaves("10.0.0.1:80"), "notes", BINARY),
        (sidecar.leaves("10.0.0.2:80"), "other", "application/grpc"),
        (sidecar.arrives(&dialed), "web", BINARY),
    ] {
        let reply = connection.send(raw(host)).reply();
        assert_eq!(reply.status, 200, "{host}");
        let expected = format!("content-type: {expected}");
        assert!(reply.has(&expected), "{host}: {:?}", reply.headers);
    }
    let seen = origin.seen();
    let types: Vec<_> = seen
        .iter()
        .map(|seen| seen.header("content-type"))
        .collect();
    let (grpc, web) = (Some("application/grpc"), Some(BINARY));
    assert_eq!(types, [grpc, web, grpc]);
}
