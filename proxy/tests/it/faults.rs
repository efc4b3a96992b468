//! Fault injection by rules, on live sockets.

use std::time::{Duration, Instant};

use hyper::Request;

use crate::support::client::{Answer, Client, Front, get};
use crate::support::mesh::{documents, gateway, routes, service};
use crate::support::origin::{Back, Origin, empty};
use crate::support::proxy::Proxy;
use crate::support::until;

/// Starts a proxy whose only rule has this fault, and other fields in block style.
fn with_fault(origin: &Origin, fault: &str, more: &str) -> Proxy {
    Proxy::with(|edge| {
        let rule = format!(
            "- name: faulty\n  fault: {fault}\n  {more}\n  route: [{{destination: {{host: web.test}}}}]"
        );
        documents([
            gateway(&[edge]),
            service("web", origin.back, &[(origin.address, "v1")]),
            routes("all", "[\"*\"]", &rule),
        ])
    })
}

async fn one(proxy: &Proxy, request: Request<crate::support::origin::Body>) -> Answer {
    let mut client = Client::connect(Front::H2, proxy.edge).await;
    client.call(request).await
}

fn grpc(path: &str) -> Request<crate::support::origin::Body> {
    let mut request = get(path);
    let content_type = "application/grpc".parse().unwrap();
    request.headers_mut().insert("content-type", content_type);
    request
}

#[tokio::test]
async fn abort_replies_without_an_upstream_request() {
    let origin = Origin::named(Back::H1, "up");
    let abort = "{abort: {httpStatus: 418, percentage: {value: 100}}}";
    let headers = "headers: {response: {set: {x-edited: \"yes\"}}}";
    let proxy = with_fault(&origin, abort, headers);
    for front in [Front::H1, Front::H2] {
        let mut client = Client::connect(front, proxy.edge).await;
        let answer = client.get("/aborted").await;
        assert_eq!((answer.status, answer.text()), (418, "fault filter abort"));
        assert_eq!(answer.header("content-type"), Some("text/plain"));
        assert_eq!(answer.header("x-edited"), Some("yes"));
    }
    assert_eq!(origin.seen().len(), 0);
    let line = proxy.logged("/aborted");
    assert_eq!(line["response_flags"], "FI");
    assert_eq!(line["response_code_details"], "fault_filter_abort");
    let aborts = proxy.metric("strait_faults_injected_total", &[("fault", "abort")]);
    assert_eq!(aborts, 2.0);
}

#[tokio::test]
async fn abort_without_percentage_aborts_nothing() {
    let origin = Origin::named(Back::H1, "up");
    let proxy = with_fault(&origin, "{abort: {httpStatus: 503}}", "");
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    for _ in 0..1000 {
        assert_eq!(client.get("/").await.status, 200);
    }
}

#[tokio::test]
async fn abort_percentage_50_aborts_about_half() {
    let origin = Origin::named(Back::H1, "up");
    let abort = "{abort: {httpStatus: 503, percentage: {value: 50}}}";
    let proxy = with_fault(&origin, abort, "");
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let mut aborted = 0_u32;
    for _ in 0..1000 {
        aborted += u32::from(client.get("/").await.status == 503);
    }
    // four standard deviations are 63
    assert!(aborted.abs_diff(500) < 64, "{aborted}");
}

#[tokio::test]
async fn grpc_status_abort_applies_to_grpc_clients_only() {
    let origin = Origin::named(Back::H1, "up");
    let abort = "{abort: {grpcStatus: UNAVAILABLE, percentage: {value: 100}}}";
    let proxy = with_fault(&origin, abort, "");
    let plain = one(&proxy, get("/plain")).await;
    assert_eq!((plain.status, plain.text()), (200, "fault filter abort"));
    assert_eq!(plain.header("content-type"), Some("text/plain"));
    assert_eq!(plain.header("grpc-status"), None);
    let told = one(&proxy, grpc("/grpc")).await;
    assert_eq!(told.status, 200);
    assert_eq!(told.header("content-type"), Some("application/grpc"));
    assert_eq!(told.header("grpc-status"), Some("14"));
    assert_eq!(told.header("grpc-message"), Some("fault filter abort"));
    assert!(told.body.is_empty());
}

#[tokio::test]
async fn http_status_abort_becomes_a_grpc_status_for_grpc_clients() {
    let origin = Origin::named(Back::H1, "up");
    let abort = "{abort: {httpStatus: 503, percentage: {value: 100}}}";
    let proxy = with_fault(&origin, abort, "");
    let told = one(&proxy, grpc("/grpc")).await;
    assert_eq!(told.status, 200);
    assert_eq!(told.header("grpc-status"), Some("14"));
    assert_eq!(told.header("grpc-message"), Some("fault filter abort"));
}

#[tokio::test]
async fn fault_delay_does_not_count_towards_the_timeout() {
    let origin = Origin::named(Back::H1, "up");
    let delay = "{delay: {fixedDelay: 200ms, percentage: {value: 100}}}";
    let proxy = with_fault(&origin, delay, "timeout: 100ms");
    let began = Instant::now();
    let answer = one(&proxy, get("/late")).await;
    assert_eq!((answer.status, answer.text()), (200, "up"));
    assert!(began.elapsed() >= Duration::from_millis(200));
    let upstream = answer.header("x-envoy-upstream-service-time").unwrap();
    assert!(upstream.parse::<u32>().unwrap() < 200, "{upstream}");
    let line = proxy.logged("/late");
    assert_eq!(line["response_flags"], "DI");
    assert!(line["duration"].as_u64().unwrap() >= 200, "{line}");
}

#[tokio::test]
async fn percent_of_a_delay_is_followed() {
    let origin = Origin::named(Back::H1, "up");
    for (percent, delays) in [(100, 1.0), (0, 0.0)] {
        let delay = format!("{{delay: {{fixedDelay: 10ms, percent: {percent}}}}}");
        let proxy = with_fault(&origin, &delay, "");
        assert_eq!(one(&proxy, get("/")).await.status, 200);
        let found = proxy.metric("strait_faults_injected_total", &[("fault", "delay")]);
        assert_eq!(found, delays, "{percent}");
    }
}

#[tokio::test]
async fn delay_comes_before_abort() {
    let origin = Origin::named(Back::H1, "up");
    let both = "{delay: {fixedDelay: 100ms, percentage: {value: 100}}, \
                abort: {httpStatus: 500, percentage: {value: 100}}}";
    let proxy = with_fault(&origin, both, "");
    let began = Instant::now();
    let answer = one(&proxy, get("/both")).await;
    assert_eq!(answer.status, 500);
    assert!(began.elapsed() >= Duration::from_millis(100));
    assert_eq!(proxy.logged("/both")["response_flags"], "DI,FI");
}

#[tokio::test]
async fn fault_delay_ends_with_a_client_disconnect() {
    let origin = Origin::named(Back::H1, "up");
    let delay = "{delay: {fixedDelay: 1h, percentage: {value: 100}}}";
    let proxy = with_fault(&origin, delay, "");
    let held = || proxy.metric("strait_fault_delays_active", &[]);
    for (front, path) in [(Front::H1, "/left-h1"), (Front::H2, "/left-h2")] {
        let mut client = Client::connect(front, proxy.edge).await;
        let call = tokio::spawn(async move {
            let _ = client.try_call(get(path)).await;
        });
        until("the request is held back", async || held() == 1.0).await;
        call.abort();
        until("nothing is held back", async || held() == 0.0).await;
    }
    assert_eq!(origin.seen().len(), 0);
}

#[tokio::test]
async fn abort_comes_before_cors() {
    let origin = Origin::named(Back::H1, "up");
    let abort = "{abort: {httpStatus: 503, percentage: {value: 100}}}";
    let cors = "corsPolicy: {allowOrigins: [{exact: \"*\"}], allowMethods: [GET]}";
    let proxy = with_fault(&origin, abort, cors);
    let preflight = Request::options("http://a.test/")
        .header("origin", "http://o")
        .header("access-control-request-method", "GET")
        .body(empty())
        .unwrap();
    let answer = one(&proxy, preflight).await;
    assert_eq!((answer.status, answer.text()), (503, "fault filter abort"));
    assert_eq!(answer.header("access-control-allow-origin"), None);
}
