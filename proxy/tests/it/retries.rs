//! Retries: conditions, targets, attempt counts, and their effect on the response, the log and the metrics.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt, Channel, StreamBody};
use hyper::body::Frame;
use hyper::{HeaderMap, Request, Response};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::support::client::{Answer, Client, Front, get, post};
use crate::support::mesh::{documents, gateway, routes, service};
use crate::support::origin::{Back, Body, BodyError, Origin, RawOrigin, empty, full, read_head};
use crate::support::proxy::{LOOPBACK_IS_INTERNAL, Proxy, Start, free_address};
use crate::support::until;

const RESET: &str = "upstream connect error or disconnect/reset before headers.";

/// Returns a mesh that routes everything to these endpoints in turn, by a rule with these settings.
fn world(edge: SocketAddr, back: Back, endpoints: &[SocketAddr], settings: &str) -> String {
    let endpoints: Vec<_> = endpoints.iter().map(|address| (*address, "v1")).collect();
    documents([
        gateway(&[edge]),
        service("web", back, &endpoints),
        "apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web}
spec: {host: web.test, trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN}}}"
            .to_owned(),
        routes(
            "all",
            "[\"*\"]",
            &format!("- {{name: all, {settings} route: [{{destination: {{host: web.test}}}}]}}"),
        ),
    ])
}

fn proxy(back: Back, endpoints: &[SocketAddr], settings: &str) -> Proxy {
    Proxy::with(|edge| world(edge, back, endpoints, settings))
}

/// Starts an origin that answers the first requests with these statuses, the rest with 200; the body names the attempt.
fn failing(back: Back, statuses: &'static [u16]) -> Origin {
    let count = AtomicUsize::new(0);
    Origin::start(back, move |request| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        let status = statuses.get(number).copied().unwrap_or(200);
        async move {
            drop(request.into_body().collect().await);
            let body = format!("try {}", number + 1);
            let response = Response::builder().status(status).body(full(body));
            response.unwrap()
        }
    })
}

/// Starts an origin that closes the first connections after the request head, then answers 200.
fn breaking(breaks: usize) -> (RawOrigin, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let origin = RawOrigin::start(move |number, mut stream: TcpStream| {
        while !read_head(&mut stream).is_empty() {
            counted.fetch_add(1, Ordering::SeqCst);
            if number < breaks {
                return;
            }
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        }
    });
    (origin, count)
}

fn attempts(origin: &Origin) -> Vec<String> {
    let seen = origin.seen();
    let counts = seen
        .iter()
        .map(|seen| seen.header("x-envoy-attempt-count").unwrap().to_owned());
    counts.collect()
}

async fn fetch(proxy: &Proxy, path: &str) -> Answer {
    Client::connect(Front::H1, proxy.edge).await.get(path).await
}

#[tokio::test]
async fn refused_connection_is_retried_on_another_endpoint_by_default() {
    for back in [Back::H1, Back::H2] {
        let origin = Origin::named(back, "up");
        let proxy = proxy(back, &[free_address(), origin.address], "");
        let mut client = Client::connect(Front::H1, proxy.edge).await;
        for _ in 0..4 {
            let answer = client.get("/").await;
            assert_eq!((answer.status, answer.text()), (200, "up"));
        }
        let tried = attempts(&origin);
        let again = tried.iter().filter(|count| *count == "2").count();
        assert!(
            (2..=4).contains(&again),
            "every other pick at least: {tried:?}"
        );
        assert!(tried.iter().all(|count| count == "1" || count == "2"));
        let reason = [("reason", "connect_failure")];
        let counted = proxy.metric("strait_upstream_retries_total", &reason);
        assert_eq!(counted, again as f64);
        let succeeded = proxy.metric(
            "strait_upstream_retried_requests_total",
            &[("result", "succeeded")],
        );
        assert_eq!(succeeded, again as f64);
        for line in proxy.access_log() {
            assert_eq!(line["response_flags"], "-", "{line}");
            assert_eq!(line["upstream_host"], origin.address.to_string());
        }
    }
}

#[tokio::test]
async fn request_body_is_retried_whole_after_a_refused_connection() {
    for front in [Front::H1, Front::H2] {
        for back in [Back::H1, Back::H2] {
            let origin = Origin::start(back, |request| async {
                let body = request.into_body().collect().await.unwrap();
                let trailers = body.trailers().cloned().unwrap_or_default();
                let mut response = Response::new(full(body.to_bytes()));
                *response.headers_mut() = trailers;
                response
            });
            let proxy = proxy(back, &[free_address(), origin.address], "");
            let mut client = Client::connect(front, proxy.edge).await;
            let text = "some text that is long enough ".repeat(3_000);
            for _ in 0..2 {
                let answer = client.call(post("/", text.clone())).await;
                assert_eq!(answer.status, 200, "{front:?} {back:?}");
                assert!(answer.text() == text, "{front:?} {back:?}");
            }
            let answer = client
                .call(chunked(&["a", "bc"], Some(("x-end", "1"))))
                .await;
            assert_eq!(answer.text(), "abc");
            assert_eq!(answer.header("x-end"), Some("1"), "{front:?} {back:?}");
            assert!(attempts(&origin).contains(&"2".to_owned()));
        }
    }
}

/// Returns a chunked POST request with a trailer.
fn chunked(pieces: &[&'static str], trailer: Option<(&'static str, &str)>) -> Request<Body> {
    let mut frames: Vec<_> = pieces
        .iter()
        .map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes()))))
        .collect();
    let mut request = Request::post("http://a.test/");
    if let Some((name, value)) = trailer {
        let mut trailers = HeaderMap::new();
        trailers.insert(name, value.parse().unwrap());
        frames.push(Ok(Frame::trailers(trailers)));
        request = request.header("trailer", name).header("te", "trailers");
    }
    let body = StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync();
    request.body(body).unwrap()
}

#[tokio::test]
async fn plain_503_is_not_retried_by_default() {
    let origin = failing(Back::H1, &[503]);
    let proxy = proxy(Back::H1, &[origin.address], "");
    assert_eq!(fetch(&proxy, "/").await.status, 503);
    assert_eq!(attempts(&origin), ["1"]);
    assert_eq!(proxy.logged("/")["response_flags"], "-");
}

#[tokio::test]
async fn plain_503_is_retried_with_retry_on_503() {
    let origin = failing(Back::H1, &[503]);
    let start = Start::new();
    let text = world(start.edge(), Back::H1, &[origin.address], "");
    let proxy = start
        .file("mesh.yaml", text)
        .args(["--compat-retry-503"])
        .start();
    assert_eq!(fetch(&proxy, "/").await.text(), "try 2");
    assert_eq!(attempts(&origin), ["1", "2"]);
}

#[tokio::test]
async fn attempts_zero_turns_retries_off() {
    for settings in ["retries: {},", "retries: {attempts: 0},"] {
        let proxy = proxy(Back::H1, &[free_address()], settings);
        let answer = fetch(&proxy, "/").await;
        assert_eq!(answer.status, 503);
        let reason = "reset reason: remote connection failure";
        assert_eq!(answer.text(), format!("{RESET} {reason}"));
        assert_eq!(proxy.logged("/")["response_flags"], "UF");
        assert_eq!(proxy.metric("strait_upstream_retries_total", &[]), 0.0);
    }
}

#[tokio::test]
async fn last_response_is_forwarded_when_all_attempts_are_used() {
    for back in [Back::H1, Back::H2] {
        let origin = failing(back, &[500, 500, 500, 500]);
        let settings = "retries: {attempts: 2, retryOn: 5xx},";
        let proxy = proxy(back, &[origin.address], settings);
        let answer = fetch(&proxy, "/").await;
        assert_eq!((answer.status, answer.text()), (500, "try 3"));
        assert_eq!(attempts(&origin), ["1", "2", "3"]);
        let logged = proxy.logged("/");
        assert_eq!(logged["response_flags"], "URX");
        assert_eq!(logged["response_code_details"], "via_upstream");
        let exhausted = [("result", "exhausted")];
        let counted = proxy.metric("strait_upstream_retried_requests_total", &exhausted);
        assert_eq!(counted, 1.0);
        let flags = [("response_flags", "URX"), ("response_code", "500")];
        assert_eq!(proxy.metric("istio_requests_total", &flags), 1.0);
        assert_eq!(
            origin.connections(),
            1,
            "what failed was read, and its connection kept"
        );
    }
}

#[tokio::test]
async fn last_reset_is_reported_when_all_attempts_are_used() {
    let endpoints = [free_address(), free_address()];
    let proxy = proxy(Back::H1, &endpoints, "retries: {attempts: 2},");
    let answer = fetch(&proxy, "/").await;
    assert_eq!(answer.status, 503);
    let reason = "retried and the latest reset reason: remote connection failure";
    assert_eq!(answer.text(), format!("{RESET} {reason}"));
    let logged = proxy.logged("/");
    assert_eq!(logged["response_flags"], "UF,URX");
    assert_eq!(proxy.metric("strait_upstream_retries_total", &[]), 2.0);
}

#[tokio::test]
async fn each_retry_condition_retries_its_own_responses() {
    let rows: &[(&str, u16, bool)] = &[
        ("5xx", 500, true),
        ("5xx", 404, false),
        ("gateway-error", 502, true),
        ("gateway-error", 500, false),
        ("retriable-4xx", 409, true),
        ("retriable-4xx", 404, false),
        ("503", 503, true),
        ("503", 500, false),
        ("404,reset", 404, true),
        ("retriable-status-codes,418", 418, true),
        ("reset,connect-failure,refused-stream", 503, false),
    ];
    for (words, status, again) in rows {
        let status = *status;
        let count = AtomicUsize::new(0);
        let origin = Origin::start(Back::H1, move |_| {
            let first = count.fetch_add(1, Ordering::SeqCst) == 0;
            let status = if first { status } else { 200 };
            async move { Response::builder().status(status).body(empty()).unwrap() }
        });
        let settings = format!("retries: {{attempts: 1, retryOn: \"{words}\"}},");
        let proxy = proxy(Back::H1, &[origin.address], &settings);
        let expected = if *again { 200 } else { status };
        assert_eq!(
            fetch(&proxy, "/").await.status,
            expected,
            "{words} {status}"
        );
        assert_eq!(
            origin.seen().len(),
            1 + usize::from(*again),
            "{words} {status}"
        );
    }
}

#[tokio::test]
async fn broken_connection_is_retried_only_with_a_matching_condition() {
    let rows = [
        ("", 503, 1),
        ("retries: {attempts: 1, retryOn: reset},", 200, 2),
        ("retries: {attempts: 1, retryOn: 5xx},", 200, 2),
        ("retries: {attempts: 1, retryOn: gateway-error},", 200, 2),
        (
            "retries: {attempts: 1, retryOn: reset-before-request},",
            503,
            1,
        ),
        ("retries: {attempts: 1, retryOn: connect-failure},", 503, 1),
    ];
    for (settings, status, attempts) in rows {
        for body in ["", "a body"] {
            let (origin, count) = breaking(1);
            let proxy = proxy(Back::H1, &[origin.address], settings);
            let mut client = Client::connect(Front::H1, proxy.edge).await;
            let answer = client.call(post("/", body)).await;
            assert_eq!(answer.status, status, "{settings} {body:?}");
            assert_eq!(
                count.load(Ordering::SeqCst),
                attempts,
                "{settings} {body:?}"
            );
        }
    }
}

#[tokio::test]
async fn request_body_is_streamed_while_it_is_buffered_for_retries() {
    let (send, mut arrived) = mpsc::unbounded_channel();
    let count = AtomicUsize::new(0);
    let origin = Origin::start(Back::H1, move |request| {
        let first = count.fetch_add(1, Ordering::SeqCst) == 0;
        let send = send.clone();
        async move {
            let mut body = request.into_body();
            let mut text = Vec::new();
            while let Some(frame) = body.frame().await {
                let Ok(data) = frame.unwrap().into_data() else {
                    continue;
                };
                text.extend_from_slice(&data);
                send.send(text.len()).unwrap();
                if first {
                    return Response::builder().status(503).body(empty()).unwrap();
                }
            }
            Response::new(full(text))
        }
    });
    let settings = "retries: {attempts: 1, retryOn: 5xx},";
    let proxy = proxy(Back::H1, &[origin.address], settings);
    let (mut pieces, body) = Channel::<Bytes, BodyError>::new(2);
    let request = Request::post("http://a.test/").body(body.boxed_unsync());
    let mut client = Client::connect(Front::H2, proxy.edge)
        .await
        .http2_handle()
        .unwrap();
    let answer = client.send_request(request.unwrap());
    let answer = tokio::spawn(answer);
    pieces.send_data("first ".into()).await.unwrap();
    assert_eq!(
        arrived.recv().await,
        Some(6),
        "it arrives before the request is whole"
    );
    assert_eq!(
        arrived.recv().await,
        Some(6),
        "and again, though the response came early"
    );
    pieces.send_data("second".into()).await.unwrap();
    drop(pieces);
    let answer = Answer::read(answer.await.unwrap().unwrap()).await.unwrap();
    assert_eq!((answer.status, answer.text()), (200, "first second"));
    assert_eq!(attempts(&origin), ["1", "2"]);
}

#[tokio::test]
async fn body_above_the_buffer_limit_is_sent_once() {
    for length in [true, false] {
        let origin = failing(Back::H1, &[503]);
        let start = Start::new();
        let settings = "retries: {attempts: 1, retryOn: 5xx},";
        let text = world(start.edge(), Back::H1, &[origin.address], settings);
        let proxy = start
            .file("mesh.yaml", text)
            .args(["--retry-body-bytes", "1000"])
            .start();
        let mut client = Client::connect(Front::H1, proxy.edge).await;
        let answer = client.call(sized(1_001, length)).await;
        assert_eq!((answer.status, answer.text()), (503, "try 1"));
        assert_eq!(client.call(sized(1_000, length)).await.status, 200);
        let lost = [("result", "body_not_buffered")];
        let counted = proxy.metric("strait_upstream_retried_requests_total", &lost);
        assert_eq!(counted, 1.0);
        assert_eq!(attempts(&origin), ["1", "1"]);
    }
}

/// Returns a POST request with this many bytes, with or without a content length.
fn sized(bytes: usize, length: bool) -> Request<Body> {
    let text: &'static str = "x".repeat(bytes).leak();
    if length {
        post("/", text)
    } else {
        chunked(&[text], None)
    }
}

#[tokio::test]
async fn total_memory_of_buffered_bodies_is_limited() {
    let origin = failing(Back::H1, &[503, 200, 503]);
    let start = Start::new();
    let settings = "retries: {attempts: 1, retryOn: 5xx},";
    let text = world(start.edge(), Back::H1, &[origin.address], settings);
    // two workers
    let proxy = start
        .file("mesh.yaml", text)
        .args(["--retry-body-bytes-total", "4000"])
        .start();
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.call(sized(1_500, true)).await.text(), "try 2");
    assert_eq!(client.call(sized(2_500, true)).await.text(), "try 3");
    assert_eq!(client.call(sized(1_500, true)).await.status, 200);
}

#[tokio::test]
async fn refused_stream_is_retried_by_default() {
    let (address, attempts) = refusing(1).await;
    let proxy = proxy(Back::H2, &[address], "");
    let mut client = Client::connect(Front::H2, proxy.edge).await;
    assert_eq!(client.call(post("/", "a body")).await.status, 200);
    assert_eq!(attempts.load(Ordering::SeqCst), 2);
    let reason = [("reason", "refused_stream")];
    assert_eq!(proxy.metric("strait_upstream_retries_total", &reason), 1.0);
}

/// Starts an HTTP/2 origin that refuses the first streams.
async fn refusing(refusals: usize) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&attempts);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let counted = Arc::clone(&counted);
            tokio::spawn(async move {
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    if counted.fetch_add(1, Ordering::SeqCst) < refusals {
                        respond.send_reset(h2::Reason::REFUSED_STREAM);
                    } else {
                        drop(request);
                        respond
                            .send_response(Response::new(()), true)
                            .map(drop)
                            .unwrap();
                    }
                }
            });
        }
    });
    (address, attempts)
}

#[tokio::test]
async fn grpc_status_is_retried_in_headers_and_not_in_trailers() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let origin = Origin::start(Back::H2, move |request| {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        let in_headers = request.uri().path() == "/headers";
        async move {
            let response = Response::builder().header("content-type", "application/grpc");
            if number > 0 {
                return response.header("grpc-status", "0").body(empty()).unwrap();
            }
            if in_headers {
                return response.header("grpc-status", "14").body(empty()).unwrap();
            }
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", "14".parse().unwrap());
            let frames = [
                Ok(Frame::data(Bytes::from_static(&[0, 0, 0, 0, 0]))),
                Ok(Frame::trailers(trailers)),
            ];
            let body = StreamBody::new(futures_util::stream::iter(frames));
            response.body(body.boxed_unsync()).unwrap()
        }
    });
    // the default policy has `unavailable`
    let proxy = proxy(Back::H2, &[origin.address], "");
    let mut client = Client::connect(Front::H2, proxy.edge).await;
    let call = |path: &str| {
        Request::post(format!("http://a.test{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(full("\0\0\0\0\0"))
            .unwrap()
    };
    let answer = client.call(call("/trailers")).await;
    assert_eq!(answer.trailers.unwrap()["grpc-status"], "14");
    assert_eq!(count.swap(0, Ordering::SeqCst), 1, "not tried again");
    let answer = client.call(call("/headers")).await;
    assert_eq!(answer.header("grpc-status"), Some("0"));
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn retry_headers_work_for_trusted_clients_only() {
    let origin = failing(Back::H1, &[418, 418, 418, 418]);
    let mesh = |edge| world(edge, Back::H1, &[origin.address], "retries: {},");
    let proxy = Proxy::with_args(&LOOPBACK_IS_INTERNAL, mesh);
    let by_default = Proxy::with(mesh);
    let ask = |trusted: bool| {
        let mut request = get("/");
        for (name, value) in [
            ("x-envoy-retry-on", "retriable-status-codes"),
            ("x-envoy-retriable-status-codes", "418"),
            ("x-envoy-max-retries", "1"),
        ] {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        if !trusted {
            let address = "198.51.100.1".parse().unwrap();
            request.headers_mut().insert("x-forwarded-for", address);
        }
        request
    };
    // No address is trusted by default, that of this very host neither.
    let mut client = Client::connect(Front::H1, by_default.edge).await;
    assert_eq!(client.call(ask(true)).await.text(), "try 1");
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.call(ask(false)).await.text(), "try 2");
    assert_eq!(client.call(ask(true)).await.text(), "try 4");
    assert_eq!(client.call(ask(true)).await.text(), "try 5");
    for seen in origin.seen() {
        let names = seen.headers.keys().map(|name| name.as_str());
        let controls = names.filter(|name| name.contains("retr"));
        assert_eq!(controls.count(), 0, "{seen:?}");
    }
}

#[tokio::test]
async fn retries_beyond_the_budget_are_not_made() {
    const REQUESTS: usize = 80;
    let origin = Origin::start(Back::H2, |_| async {
        Response::builder().status(503).body(empty()).unwrap()
    });
    // back-off longer than the test
    let settings = "retries: {attempts: 1, retryOn: \"503\", backoff: 10000s},";
    let proxy = proxy(Back::H2, &[origin.address], settings);
    let sender = Client::connect(Front::H2, proxy.edge).await.http2_handle();
    let mut sender = sender.unwrap();
    let mut answers = JoinSet::new();
    for number in 0..REQUESTS {
        sender.ready().await.unwrap();
        answers.spawn(sender.send_request(get(&format!("/{number}"))));
    }
    for _ in 64..REQUESTS {
        let answer = answers.join_next().await.unwrap().unwrap().unwrap();
        assert_eq!(answer.status(), 503);
    }
    let over = [("result", "overflow")];
    let name = "strait_upstream_retried_requests_total";
    until("the rest waits for its next try", async || {
        proxy.metric(name, &over) == (REQUESTS - 64) as f64
    })
    .await;
    until("the log has them all", async || {
        proxy.access_log().len() == REQUESTS - 64
    })
    .await;
    for line in proxy.access_log() {
        assert_eq!(line["response_flags"], "UO", "{line}");
        assert_eq!(line["response_code_details"], "via_upstream");
    }
    assert_eq!(origin.seen().len(), REQUESTS);
    answers.abort_all();
    drop((answers, sender));
    until(
        "requests of clients that left are no longer active",
        async || proxy.metric("strait_requests_active", &[]) == 0.0,
    )
    .await;
}

#[tokio::test]
async fn retry_budget_counts_completed_requests_of_its_interval() {
    let budget = "retryBudget: {percent: 10, minRetryConcurrency: 1";
    retries_overflow(&format!("{budget}}}"), 1).await;
    retries_overflow(&format!("{budget}, budgetInterval: 3600s}}"), 3).await;
}

#[tokio::test]
async fn max_retries_limits_the_retries_at_one_time() {
    for allowed in [1, 4] {
        let policy = format!("connectionPool: {{http: {{maxRetries: {allowed}}}}}");
        retries_overflow(&policy, allowed).await;
    }
}

/// Checks that `allowed` of eight failed requests are retried at the same time under this policy, after 30 other
/// requests have completed.
async fn retries_overflow(policy: &str, allowed: usize) {
    const OVER: usize = 30;
    const FAILING: usize = 8;
    let origin = Origin::start(Back::H2, |request| async move {
        let status = match request.uri().path() {
            "/well" => 200,
            _ => 503,
        };
        Response::builder().status(status).body(empty()).unwrap()
    });
    // back-off longer than the test
    let settings = "retries: {attempts: 1, retryOn: \"503\", backoff: 10000s},";
    let proxy = Proxy::with(|edge| {
        let world = world(edge, Back::H2, &[origin.address], settings);
        world.replace("loadBalancer: {simple: ROUND_ROBIN}", policy)
    });
    let mut client = Client::connect(Front::H2, proxy.edge).await;
    for _ in 0..OVER {
        assert_eq!(client.call(get("/well")).await.status, 200);
    }
    let mut sender = client.http2_handle().unwrap();
    let mut answers = JoinSet::new();
    for _ in 0..FAILING {
        sender.ready().await.unwrap();
        answers.spawn(sender.send_request(get("/fails")));
    }
    for _ in allowed..FAILING {
        let answer = answers.join_next().await.unwrap().unwrap().unwrap();
        assert_eq!(answer.status(), 503);
    }
    let over = [("result", "overflow")];
    let name = "strait_upstream_retried_requests_total";
    until("the other retries are refused", async || {
        proxy.metric(name, &over) == (FAILING - allowed) as f64
    })
    .await;
    let busy = proxy.metric("strait_requests_active", &[]);
    assert_eq!(busy, allowed as f64, "{policy}");
    let page = proxy.page("/clusters");
    let says = format!("::retries::{allowed}/{allowed}\n");
    assert!(page.contains(&says), "{page}");
    answers.abort_all();
}

#[tokio::test]
async fn client_disconnect_ends_retries() {
    let origin = failing(Back::H1, &[503; 100]);
    let settings = "retries: {attempts: 50, retryOn: 5xx, backoff: 10000s},";
    let proxy = proxy(Back::H1, &[origin.address], settings);
    let mut sender = Client::connect(Front::H2, proxy.edge)
        .await
        .http2_handle()
        .unwrap();
    sender.ready().await.unwrap();
    let asked = tokio::spawn(sender.send_request(get("/left")));
    until("the first try is over", async || origin.seen().len() == 1).await;
    asked.abort();
    // a stream that is reset is noticed only while the test's own tasks run
    until("the log has the line", async || {
        proxy.access_log().len() == 1
    })
    .await;
    let logged = proxy.logged("/left");
    assert_eq!(logged["response_flags"], "DC");
    assert_eq!(origin.seen().len(), 1);
}

#[tokio::test]
async fn request_timeout_ends_the_back_off() {
    let origin = failing(Back::H1, &[503; 100]);
    // any one of the pauses is longer than the test
    let settings = "timeout: 300ms, retries: {attempts: 50, retryOn: 5xx, backoff: 10000s},";
    let proxy = proxy(Back::H1, &[origin.address], settings);
    let answer = Client::connect(Front::H1, proxy.edge).await.get("/").await;
    assert_eq!(
        (answer.status, answer.text()),
        (504, "upstream request timeout")
    );
}
