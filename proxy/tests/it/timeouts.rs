//! Request and attempt timeouts, as seen by the endpoint and the client.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt, Channel, StreamBody};
use hyper::body::Frame;
use hyper::{Request, Response};

use crate::support::client::{Client, Front, get};
use crate::support::mesh::{documents, gateway, routes, service};
use crate::support::origin::{Back, BodyError, Origin, empty, full};
use crate::support::proxy::{LOOPBACK_IS_INTERNAL, Proxy};

fn proxy(origin: &Origin, settings: &str) -> Proxy {
    Proxy::with_args(&LOOPBACK_IS_INTERNAL, |edge| {
        documents([
            gateway(&[edge]),
            service("web", origin.back, &[(origin.address, "v1")]),
            routes(
                "all",
                "[\"*\"]",
                &format!(
                    "- {{name: all, {settings} route: [{{destination: {{host: web.test}}}}]}}"
                ),
            ),
        ])
    })
}

/// Starts an origin that never answers.
fn silent(back: Back) -> Origin {
    Origin::start(back, |_| std::future::pending())
}

const FOREVER: Duration = Duration::from_secs(10);

#[tokio::test]
async fn per_try_timeout_is_retried_only_with_a_matching_condition() {
    let rows = [
        (
            "connect-failure,refused-stream,unavailable,cancelled",
            1,
            "UT",
        ),
        ("5xx", 3, "UT,URX"),
        ("gateway-error", 3, "UT,URX"),
        ("reset", 3, "UT,URX"),
        ("503,retriable-4xx", 1, "UT"),
    ];
    for back in [Back::H1, Back::H2] {
        for (words, attempts, flags) in rows {
            let origin = silent(back);
            let settings =
                format!("retries: {{attempts: 2, perTryTimeout: 50ms, retryOn: \"{words}\"}},");
            let proxy = proxy(&origin, &settings);
            let mut client = Client::connect(Front::H1, proxy.edge).await;
            let answer = client.get("/").await;
            assert_eq!(answer.status, 504, "{words}");
            assert_eq!(answer.text(), "upstream request timeout");
            assert_eq!(origin.seen().len(), attempts, "{words}");
            let logged = proxy.logged("/");
            assert_eq!(logged["response_flags"], flags);
            assert_eq!(logged["response_code_details"], "upstream_per_try_timeout");
            for seen in origin.seen() {
                let told = seen.header("x-envoy-expected-rq-timeout-ms");
                assert_eq!(told, Some("50"));
            }
        }
    }
}

#[tokio::test]
async fn per_try_timeout_not_below_the_route_timeout_is_ignored() {
    let origin = silent(Back::H1);
    let settings = "timeout: 300ms, retries: {attempts: 2, perTryTimeout: 600ms, retryOn: 5xx},";
    let proxy = proxy(&origin, settings);
    let started = Instant::now();
    let answer = Client::connect(Front::H1, proxy.edge).await.get("/").await;
    assert!(started.elapsed() >= Duration::from_millis(300));
    assert_eq!(answer.status, 504);
    assert_eq!(origin.seen().len(), 1);
    let logged = proxy.logged("/");
    assert_eq!(logged["response_flags"], "UT");
    assert_eq!(logged["response_code_details"], "response_timeout");
}

#[tokio::test]
async fn route_timeout_includes_all_attempts_and_back_off() {
    let origin = silent(Back::H1);
    let settings = "timeout: 400ms, retries: {attempts: 100, perTryTimeout: 150ms, retryOn: 5xx},";
    let proxy = proxy(&origin, settings);
    let started = Instant::now();
    let answer = Client::connect(Front::H1, proxy.edge).await.get("/").await;
    assert_eq!(answer.status, 504);
    assert!(started.elapsed() < FOREVER);
    let logged = proxy.logged("/");
    assert_eq!(logged["response_flags"], "UT");
    let told = origin.seen().into_iter().map(|seen| {
        let told = seen.header("x-envoy-expected-rq-timeout-ms").unwrap();
        told.parse::<u64>().unwrap()
    });
    let told: Vec<_> = told.collect();
    assert!(told.len() >= 2 && told.len() <= 3, "{told:?}");
    assert_eq!(told[0], 150);
    assert!(told.iter().all(|time| *time <= 150), "{told:?}");
    if let [_, _, third] = told[..] {
        assert!(third < 150, "what is left: {told:?}");
    }
}

#[tokio::test]
async fn endless_response_is_cut_off_at_the_timeout() {
    for settings in [
        "timeout: 100ms,",
        "retries: {attempts: 2, perTryTimeout: 100ms, retryOn: 5xx},",
    ] {
        let origin = Origin::start(Back::H1, |_| async {
            let first = stream::iter([Ok(Frame::data(Bytes::from_static(b"some")))]);
            let body = first.chain(stream::pending());
            Response::new(StreamBody::new(body).boxed_unsync())
        });
        let proxy = proxy(&origin, settings);
        let mut client = Client::connect(Front::H2, proxy.edge).await;
        assert!(
            client.try_call(get("/")).await.is_err(),
            "the stream is reset"
        );
        let logged = proxy.logged("/");
        assert_eq!(logged["response_code"], 200);
        assert_eq!(logged["response_flags"], "UT");
        assert_eq!(origin.seen().len(), 1);
    }
}

#[tokio::test]
async fn slow_upload_does_not_count_towards_the_timeout() {
    let origin = Origin::start(Back::H1, |request| async {
        if request.uri().path() == "/silent" {
            return std::future::pending().await;
        }
        let body = request.into_body().collect().await.unwrap();
        Response::new(full(body.to_bytes()))
    });
    let settings = "timeout: 200ms, retries: {attempts: 1, perTryTimeout: 100ms, retryOn: 5xx},";
    let proxy = proxy(&origin, settings);
    let (mut pieces, body) = Channel::<Bytes, BodyError>::new(1);
    let request = Request::post("http://a.test/").body(body.boxed_unsync());
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let answer = tokio::spawn(async move { client.call(request.unwrap()).await });
    pieces.send_data("slow ".into()).await.unwrap();
    // until a request that began later has used up all of its time
    let mut other = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(other.get("/silent").await.status, 504);
    assert!(!answer.is_finished());
    pieces.send_data("upload".into()).await.unwrap();
    drop(pieces);
    let answer = answer.await.unwrap();
    assert_eq!((answer.status, answer.text()), (200, "slow upload"));
}

#[tokio::test]
async fn timeout_headers_of_trusted_clients_apply() {
    /// Settings of the rule, headers of the client, expected status, and the expected timeout header at the upstream.
    type Row = (
        &'static str,
        [(&'static str, &'static str); 1],
        u16,
        &'static str,
    );
    let rows: &[Row] = &[
        (
            "timeout: 100s,",
            [("x-envoy-upstream-rq-timeout-ms", "50")],
            504,
            "50",
        ),
        (
            "timeout: 50ms,",
            [("x-envoy-upstream-rq-timeout-alt-response", "1")],
            204,
            "50",
        ),
        (
            "timeout: 100s,",
            [("x-envoy-upstream-rq-per-try-timeout-ms", "70")],
            504,
            "70",
        ),
        (
            "timeout: 60ms,",
            [("x-envoy-upstream-rq-per-try-timeout-ms", "70")],
            504,
            "60",
        ),
    ];
    for (settings, headers, status, told) in rows {
        let origin = silent(Back::H1);
        let proxy = proxy(&origin, settings);
        let mut request = Request::get("http://a.test/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut client = Client::connect(Front::H1, proxy.edge).await;
        let answer = client.call(request.body(empty()).unwrap()).await;
        assert_eq!(answer.status, *status, "{headers:?}");
        assert_eq!(answer.body.is_empty(), *status == 204);
        assert_eq!(proxy.logged("/")["response_flags"], "UT");
        let seen = origin.only();
        assert_eq!(seen.header("x-envoy-expected-rq-timeout-ms"), Some(*told));
        for (name, _) in headers {
            assert_eq!(seen.header(name), None);
        }
    }
}

#[tokio::test]
async fn grpc_timeout_is_limited_by_the_route_timeout() {
    // route, client, what the upstream is told
    let rows = [
        ("", Some("60m"), "60m"),
        ("timeout: 70ms,", None, "70m"),
        ("timeout: 80ms,", Some("10S"), "80m"),
        ("timeout: 10s,", Some("90m"), "90m"),
    ];
    for (settings, client, told) in rows {
        let origin = silent(Back::H2);
        let proxy = proxy(&origin, settings);
        let mut request = Request::post("http://a.test/")
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        if let Some(client) = client {
            request = request.header("grpc-timeout", client);
        }
        let mut client = Client::connect(Front::H2, proxy.edge).await;
        let answer = client.call(request.body(empty()).unwrap()).await;
        assert_eq!(answer.header("grpc-status"), Some("14"));
        let seen = origin.only();
        assert_eq!(seen.header("grpc-timeout"), Some(told));
        let millis = told.strip_suffix('m');
        assert_eq!(seen.header("x-envoy-expected-rq-timeout-ms"), millis);
    }
}
