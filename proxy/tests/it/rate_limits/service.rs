//! Limits that a service counts for all proxies; the test scripts the service.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::{HeaderMap, Request, Response};
use prost::Message;

use super::{ALL, hourly, policy};
use crate::support::eventually;
use crate::support::mesh::{documents, everything_to, service};
use crate::support::origin::{Back, Body, Origin};
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::{Raw, Reply};

#[derive(Clone, PartialEq, Message)]
struct RateLimitRequest {
    #[prost(string, tag = "1")]
    domain: String,
    #[prost(message, repeated, tag = "2")]
    descriptors: Vec<Descriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct Descriptor {
    #[prost(message, repeated, tag = "1")]
    entries: Vec<Pair>,
    #[prost(message, optional, tag = "2")]
    limit: Option<Limit>,
    #[prost(message, optional, tag = "3")]
    hits: Option<Number>,
}

#[derive(Clone, PartialEq, Message)]
struct Pair {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct Limit {
    #[prost(uint32, tag = "1")]
    requests: u32,
    #[prost(int32, tag = "2")]
    unit: i32,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct Number {
    #[prost(uint64, tag = "1")]
    value: u64,
}

#[derive(Clone, PartialEq, Message)]
struct RateLimitResponse {
    #[prost(int32, tag = "1")]
    overall: i32,
    #[prost(message, repeated, tag = "2")]
    statuses: Vec<Status>,
    #[prost(message, repeated, tag = "3")]
    response_headers: Vec<Pair>,
    #[prost(message, repeated, tag = "4")]
    request_headers: Vec<Pair>,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(message, optional, tag = "2")]
    limit: Option<Limit>,
    #[prost(uint32, tag = "3")]
    left: u32,
    #[prost(message, optional, tag = "4")]
    reset: Option<Seconds>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct Seconds {
    #[prost(int64, tag = "1")]
    seconds: i64,
}

fn pair(key: &str, value: &str) -> Pair {
    Pair {
        key: key.to_owned(),
        value: value.to_owned(),
    }
}

fn status(code: i32) -> Status {
    let (requests, unit) = (7, 2);
    Status {
        code,
        limit: Some(Limit { requests, unit }),
        left: 0,
        reset: Some(Seconds { seconds: 30 }),
    }
}

/// Service that answers with these codes of the descriptors, and what it was asked.
struct Service {
    origin: Origin,
    asked: Arc<Mutex<Vec<RateLimitRequest>>>,
}

fn answer(message: &impl Message) -> Response<Body> {
    let message = message.encode_to_vec();
    let mut framed = BytesMut::new();
    framed.put_u8(0);
    framed.put_u32(message.len() as u32);
    framed.put_slice(&message);
    let trailers = HeaderMap::from_iter([("grpc-status".parse().unwrap(), "0".parse().unwrap())]);
    let frames = [Frame::data(framed.freeze()), Frame::trailers(trailers)];
    let frames = frames.map(Ok::<_, std::convert::Infallible>);
    let body = StreamBody::new(futures_util::stream::iter(frames));
    Response::new(body.map_err(|never| match never {}).boxed_unsync())
}

impl Service {
    fn start(codes: Vec<i32>, pause: Duration) -> Self {
        let asked: Arc<Mutex<Vec<RateLimitRequest>>> = Arc::default();
        let log = Arc::clone(&asked);
        let origin = Origin::start(Back::H2, move |request: Request<Incoming>| {
            let (log, codes) = (Arc::clone(&log), codes.clone());
            async move {
                assert_eq!(
                    request.uri().path(),
                    "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
                );
                let body: Bytes = request.into_body().collect().await.unwrap().to_bytes();
                log.lock()
                    .unwrap()
                    .push(RateLimitRequest::decode(&body[5..]).unwrap());
                tokio::time::sleep(pause).await;
                let overall = codes.iter().copied().max().unwrap_or(1);
                answer(&RateLimitResponse {
                    overall,
                    statuses: codes.into_iter().map(status).collect(),
                    response_headers: vec![pair("x-of-service", "r")],
                    request_headers: vec![pair("x-counted", "yes")],
                })
            }
        });
        Self { origin, asked }
    }
}

struct Edge {
    proxy: Proxy,
    origin: Origin,
}

impl Edge {
    fn start(service_at: std::net::SocketAddr, arguments: &[&str], rules: &[&str]) -> Self {
        let origin = Origin::named(Back::H1, "served");
        let start = Start::new();
        // the service may take longer than by default while other tests run
        let timeout = match arguments {
            ["--rate-limit-timeout", ..] => &[][..],
            _ => &["--rate-limit-timeout", "10s"],
        };
        let timeout = timeout.iter().copied();
        let rules = rules.join("}, {");
        let limits = format!("rateLimit: {{global: {{rules: [{{{rules}}}]}}}}");
        let mesh = documents([
            everything_to(start.edge(), &origin),
            service("ratelimit", Back::H2, &[(service_at, "v1")]),
            policy("own", ALL, &limits),
        ]);
        let proxy = start
            .args(["--labels", "istio=ingressgateway"])
            .args(["--rate-limit-service", "ratelimit.test:80"])
            .args(timeout)
            .args(arguments.iter().copied())
            .file("mesh.yaml", mesh)
            .start();
        Self { proxy, origin }
    }

    fn request(&self, headers: &str) -> Reply {
        let text = format!("GET / HTTP/1.1\r\nHost: a.test\r\n{headers}\r\n");
        Raw::connect(self.proxy.edge).send(text).reply()
    }

    fn counted(&self, result: &str) -> f64 {
        self.proxy
            .metric("strait_rate_limit_total", &[("result", result)])
    }
}

#[test]
fn service_is_told_of_all_rules_that_select_a_request() {
    let service = Service::start(vec![1, 1], Duration::ZERO);
    let user = "{headers: [{name: x-user, type: Distinct}, {name: x-a, value: b, invert: true}]}";
    let rules = [
        hourly(10, "{path: {value: /elsewhere}}"),
        format!(
            "{}, cost: {{request: {{from: Number, number: 3}}}}",
            hourly(10, user)
        ),
        format!(
            "{}, shared: true",
            hourly(5, "{sourceCIDR: {type: Distinct, value: 127.0.0.0/8}}")
        ),
    ];
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let edge = Edge::start(
        service.origin.address,
        &["--rate-limit-domain", "shop"],
        &rules,
    );
    let reply = edge.request("x-user: ann\r\n");
    assert_eq!(reply.status, 200);
    assert!(reply.has("x-of-service: r"), "{reply:?}");
    assert_eq!(edge.origin.only().header("x-counted"), Some("yes"));
    let asked = service.asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].domain, "shop");
    let texts = |descriptor: &Descriptor| -> Vec<String> {
        let entries = descriptor.entries.iter();
        entries
            .map(|entry| format!("{}={}", entry.key, entry.value))
            .collect()
    };
    let [of_user, of_address] = &asked[0].descriptors[..] else {
        panic!("{asked:?}");
    };
    let target = "VirtualService/default/all";
    assert_eq!(
        texts(of_user),
        [
            &*format!("{target}={target}"),
            "rule-1-match-0=ann",
            "rule-1-match-1=rule-1-match-1"
        ]
    );
    assert_eq!(
        of_user.limit.map(|limit| (limit.requests, limit.unit)),
        Some((10, 3))
    );
    assert_eq!(of_user.hits.map(|hits| hits.value), Some(3));
    assert_eq!(
        texts(of_address),
        [
            "default/own=default/own",
            "masked_remote_address=127.0.0.0/8",
            "remote_address=127.0.0.1"
        ]
    );
    assert_eq!(of_address.hits, None);
    assert_eq!(edge.counted("service_allowed"), 1.0);
}

#[test]
fn service_refuses_requests() {
    let service = Service::start(vec![1, 2], Duration::ZERO);
    let edge = Edge::start(
        service.origin.address,
        &[],
        &[&hourly(10, ""), &hourly(10, "{path: {value: /}}")],
    );
    let reply = edge.request("");
    assert_eq!((reply.status, &*reply.body), (429, &b""[..]));
    for line in [
        "x-envoy-ratelimited: true",
        "x-of-service: r",
        "x-ratelimit-limit: 7",
        "x-ratelimit-remaining: 0",
        "x-ratelimit-reset: 30",
        "retry-after: 30",
    ] {
        assert!(reply.has(line), "{line} {reply:?}");
    }
    assert!(edge.origin.seen().is_empty());
    assert_eq!(edge.counted("service_denied"), 1.0);
    let line = edge.proxy.logged("/");
    assert_eq!(line["response_flags"], "RL");
    assert_eq!(line["response_code_details"], "request_rate_limited");
    let grpc = edge.request("content-type: application/grpc\r\n");
    assert!(grpc.has("grpc-status: 14"), "{grpc:?}");
}

#[test]
fn rule_in_shadow_mode_refuses_nothing() {
    let service = Service::start(vec![2], Duration::ZERO);
    let shadow = format!("{}, shadowMode: true", hourly(10, ""));
    let edge = Edge::start(service.origin.address, &[], &[&shadow]);
    assert_eq!(edge.request("").status, 200);
    assert_eq!(edge.counted("shadow_denied"), 1.0);
}

#[test]
fn service_that_fails_lets_requests_pass_unless_the_proxy_fails_closed() {
    let unused = crate::support::proxy::free_address();
    let slow = Service::start(vec![2], Duration::from_secs(10));
    for (at, timeout) in [(unused, "10s"), (slow.origin.address, "20ms")] {
        let timeout = ["--rate-limit-timeout", timeout];
        let edge = Edge::start(at, &timeout, &[&hourly(1, "")]);
        let begun = std::time::Instant::now();
        assert_eq!(edge.request("").status, 200);
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "the call has a time limit"
        );
        assert_eq!(edge.counted("failure_allowed"), 1.0);
        let closed = [&timeout[..], &["--rate-limit-fail-closed"]].concat();
        let edge = Edge::start(at, &closed, &[&hourly(1, "")]);
        assert_eq!(edge.request("").status, 500);
        assert_eq!(edge.counted("failure_denied"), 1.0);
        let line = edge.proxy.logged("/");
        assert_eq!(line["response_flags"], "RLSE");
        assert_eq!(line["response_code_details"], "rate_limiter_error");
    }
}

#[test]
fn global_limit_without_a_service_is_reported() {
    let origin = Origin::named(Back::H1, "served");
    let start = Start::new();
    let limits = format!("rateLimit: {{global: {{rules: [{{{}}}]}}}}", hourly(0, ""));
    let mesh = documents([
        everything_to(start.edge(), &origin),
        policy("own", ALL, &limits),
    ]);
    let proxy = start
        .args(["--labels", "istio=ingressgateway"])
        .file("mesh.yaml", mesh)
        .start();
    assert_eq!(
        Raw::connect(proxy.edge)
            .send(crate::support::raw::GET)
            .reply()
            .status,
        200
    );
    eventually("the log names the flag", || {
        proxy.stderr().contains("--rate-limit-service")
    });
}

#[test]
fn service_can_be_a_provider_of_the_mesh_configuration() {
    let service_here = Service::start(vec![2], Duration::ZERO);
    let origin = Origin::named(Back::H1, "served");
    let start = Start::new();
    let limits = format!("rateLimit: {{global: {{rules: [{{{}}}]}}}}", hourly(1, ""));
    let mesh = documents([
        everything_to(start.edge(), &origin),
        service(
            "ratelimit",
            Back::H2,
            &[(service_here.origin.address, "v1")],
        ),
        policy("own", ALL, &limits),
    ]);
    let config = tempfile::NamedTempFile::new().unwrap();
    let provider =
        "{service: ratelimit.test, port: 80, timeout: 10s, domain: shop, failOpen: false}";
    let provider = format!("extensionProviders: [{{name: l, envoyRateLimitGrpc: {provider}}}]\n");
    std::fs::write(config.path(), &provider).unwrap();
    let proxy = start
        .args(["--labels", "istio=ingressgateway"])
        .args(["--mesh-config", config.path().to_str().unwrap()])
        .file("mesh.yaml", mesh)
        .start();
    let status = || {
        let mut client = Raw::connect(proxy.edge);
        client.send(crate::support::raw::GET).reply().status
    };
    assert_eq!(status(), 429);
    assert_eq!(service_here.asked.lock().unwrap()[0].domain, "shop");
    let generation = || proxy.metric("strait_config_generation", &[]);
    let before = generation();
    let changed = provider.replace("domain: shop", "domain: other");
    std::fs::write(config.path(), changed).unwrap();
    eventually("the change is in effect", || generation() > before);
    assert_eq!(status(), 429);
    let domain = |asked: &RateLimitRequest| asked.domain.clone();
    let last = service_here.asked.lock().unwrap().last().map(domain);
    assert_eq!(last.as_deref(), Some("other"));
    drop(service_here);
    eventually("the proxy fails closed", || status() == 500);
}
