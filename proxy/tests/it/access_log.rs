//! Access log entries of connections, times, and requests without a response.

use std::io::Write;
use std::rc::Rc;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::{Request, Response};
use proxy::exchange::record::log::Unserved;
use proxy::exchange::{Connection, DownstreamBody};
use serde_json::Value;

use crate::support::client::{Client, Front, get};
use crate::support::downstream::{Downstream, settings};
use crate::support::mesh::{documents, everything_to, everything_to_address, gateway};
use crate::support::mesh::{routes, service};
use crate::support::origin::{Back, Origin, RawOrigin, full, read_head};
use crate::support::proxy::Proxy;
use crate::support::raw::Raw;
use crate::support::{DEADLINE, eventually};

#[tokio::test]
async fn both_ends_of_the_upstream_connection_are_logged() {
    let (tell, told) = mpsc::channel();
    let tell = Arc::new(Mutex::new(tell));
    let origin = RawOrigin::start(move |_, mut stream| {
        let peer = stream.peer_addr().unwrap();
        while !read_head(&mut stream).is_empty() {
            tell.lock().unwrap().send(peer.to_string()).unwrap();
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H1, origin.address));
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    // On a new connection, and on the same one again.
    for path in ["/new", "/pooled"] {
        client.get(path).await;
        let logged = proxy.logged(path);
        let peer = told.recv_timeout(DEADLINE).unwrap();
        assert_eq!(logged["upstream_local_address"], peer);
        assert_eq!(logged["upstream_host"], origin.address.to_string());
    }
}

#[tokio::test]
async fn log_has_the_authority_sent_upstream_and_the_path_of_the_client() {
    for back in [Back::H1, Back::H2] {
        let origin = Origin::named(back, "hello");
        let rule = "\
- rewrite: {uri: /inside/, authority: inside.test}
  headers: {request: {set: {user-agent: strait-test}}}
  route: [{destination: {host: web.test}}]";
        let proxy = Proxy::with(|edge| {
            documents([
                gateway(&[edge]),
                service("web", back, &[(origin.address, "v1")]),
                routes("all", "[\"*\"]", rule),
            ])
        });
        for front in [Front::H1, Front::H2] {
            let path = format!("/{front:?}");
            let mut client = Client::connect(front, proxy.edge).await;
            assert_eq!(client.get(&path).await.status, 200);
            let logged = proxy.logged(&path);
            assert_eq!(logged["authority"], "inside.test");
            assert_eq!(logged["user_agent"], "strait-test");
        }
        assert_eq!(origin.seen()[0].path(), "/inside/H1");
    }
}

/// Returns the only line of the log.
fn only_line(proxy: &Proxy) -> Value {
    let mut lines = Vec::new();
    eventually("there is a line", || {
        lines = proxy.access_log();
        !lines.is_empty()
    });
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines.remove(0)
}

/// Refused request; expected status, flags and details; method and path if they could be parsed.
type Refused<'a> = (
    &'a str,
    u16,
    &'static str,
    &'static str,
    Option<(&'static str, &'static str)>,
);

#[test]
fn requests_with_an_invalid_head_are_logged() {
    let long = format!(
        "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
        "x".repeat(70_000)
    );
    let many = format!(
        "GET / HTTP/1.1\r\nHost: a\r\n{}\r\n",
        "X: y\r\n".repeat(101)
    );
    let rows: &[Refused<'_>] = &[
        (
            "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            400,
            "DPE",
            "http1.codec_error",
            None,
        ),
        (
            "GET / HTTP/1.2\r\nHost: a\r\n\r\n",
            400,
            "DPE",
            "http1.codec_error",
            None,
        ),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
            "DPE",
            "http1.codec_error",
            None,
        ),
        (&long, 431, "DPE", "http1.headers_too_large", None),
        (&many, 431, "DPE", "http1.headers_too_large", None),
        (
            "GET /x HTTP/1.1\r\n\r\n",
            400,
            "-",
            "missing_host_header",
            Some(("GET", "/x")),
        ),
        (
            "GET /two HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            400,
            "DPE",
            "http1.codec_error",
            Some(("GET", "/two")),
        ),
        (
            "PUT http://u@a/y HTTP/1.1\r\nHost: a\r\n\r\n",
            400,
            "DPE",
            "http1.invalid_url",
            Some(("PUT", "/y")),
        ),
        (
            "GET /z HTTP/1.0\r\n\r\n",
            426,
            "-",
            "low_version",
            Some(("GET", "/z")),
        ),
    ];
    let origin = Origin::named(Back::H1, "hello");
    for (request, status, flags, details, head) in rows {
        let start = crate::support::proxy::Start::new();
        let mesh = everything_to(start.edge(), &origin);
        let start = start.file("mesh.yaml", mesh).args(["--http10=refuse"]);
        let proxy = start.start();
        let shown = &request[..request.len().min(60)];
        let reply = Raw::connect(proxy.edge).send(request).reply();
        assert_eq!(reply.status, *status, "{shown:?}");
        let line = only_line(&proxy);
        assert_eq!(line["response_code"], *status, "{shown:?} {line}");
        assert_eq!(line["response_flags"], *flags, "{shown:?} {line}");
        assert_eq!(line["response_code_details"], *details, "{shown:?} {line}");
        assert_eq!(line["method"].as_str(), head.map(|head| head.0), "{line}");
        assert_eq!(line["path"].as_str(), head.map(|head| head.1), "{line}");
        assert_eq!(line["downstream_local_address"], proxy.edge.to_string());
        let code = status.to_string();
        let labels = [("response_code", &*code), ("response_flags", flags)];
        assert_eq!(proxy.metric("istio_requests_total", &labels), 1.0);
    }
    assert!(origin.seen().is_empty());
}

#[tokio::test]
async fn upstream_service_time_starts_at_the_end_of_the_request() {
    const PAUSE: Duration = Duration::from_millis(400);
    let origin = Origin::start(Back::H1, |request| async move {
        let early = request.uri().path() == "/early";
        if request.uri().path() == "/slow" {
            tokio::time::sleep(PAUSE).await;
        }
        if !early {
            request.into_body().collect().await.unwrap();
        }
        Response::new(full("ok"))
    });
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    let mut raw = Raw::connect(proxy.edge);
    raw.send("POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab");
    std::thread::park_timeout(PAUSE);
    assert_eq!(raw.send("cd").reply().status, 200);
    let logged = proxy.logged("/upload");
    let (service, whole) = (&logged["upstream_service_time"], &logged["duration"]);
    assert!(service.as_u64().unwrap() < 300, "{logged}");
    assert!(whole.as_u64().unwrap() >= 350, "{logged}");

    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let answer = client.call(get("/slow")).await;
    let took: u64 = answer
        .header("x-envoy-upstream-service-time")
        .unwrap()
        .parse()
        .unwrap();
    assert!(took >= 350, "{took}");

    // A response that does not wait for the request has no such time.
    let mut raw = Raw::connect(proxy.edge);
    raw.send("POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab");
    let reply = raw.reply();
    let has = |name: &str| reply.headers.iter().any(|line| line.starts_with(name));
    assert!(!has("x-envoy-upstream-service-time"), "{reply:?}");
    drop(raw);
    assert!(proxy.logged("/early")["upstream_service_time"].is_null());
}

/// Handler that answers nothing and records refused requests.
struct Noting(Arc<Mutex<Vec<(u16, String, Duration)>>>);

impl proxy::codec::Handler for Noting {
    type Body = http_body_util::Empty<bytes::Bytes>;
    type Future = std::future::Pending<Response<Self::Body>>;

    fn answer(&self, _: &Rc<Connection>, _: Request<DownstreamBody>) -> Self::Future {
        std::future::pending()
    }

    fn refused(&self, _: &Connection, unserved: &Unserved<'_>) {
        let noted = (
            unserved.code,
            unserved.details.to_owned(),
            unserved.duration,
        );
        self.0.lock().unwrap().push(noted);
    }
}

#[test]
fn slow_request_heads_are_logged_with_their_duration() {
    let mut settings = settings();
    settings.codec.http1.head_timeout = Duration::from_millis(200);
    let noted = Arc::<Mutex<Vec<_>>>::default();
    let make = Arc::clone(&noted);
    let downstream = Downstream::start(&settings, move || Noting(Arc::clone(&make)));
    let mut client = Raw::connect(downstream.address());
    let reply = client.send("GET / HTTP/1.1\r\nHost: a\r\n").reply();
    assert_eq!(reply.status, 408);
    let expected = (
        408,
        "request_header_timeout".to_owned(),
        Duration::from_millis(200),
    );
    assert_eq!(*noted.lock().unwrap(), [expected]);
}

#[tokio::test]
async fn invalid_http2_heads_are_logged_with_distinct_details() {
    let noted = Arc::<Mutex<Vec<_>>>::default();
    let make = Arc::clone(&noted);
    let downstream = Downstream::start(&settings(), move || Noting(Arc::clone(&make)));
    let mut client = Client::connect(Front::H2, downstream.address()).await;
    let mut request = get("/");
    let headers = request.headers_mut();
    headers.insert("host", "b.test".parse().unwrap());
    assert_eq!(client.call(request).await.status, 400);
    let expected = "http2.violation.of.messaging.rule".to_owned();
    let noted = noted.lock().unwrap();
    assert_eq!(*noted, [(400, expected, Duration::ZERO)]);
}

#[test]
fn local_reply_is_logged_with_request_id_and_client_address() {
    let proxy = Proxy::with(|edge| {
        documents([
            gateway(&[edge]),
            routes("all", "[a.test]", "- {directResponse: {status: 200}}"),
        ])
    });
    let mut client = Raw::connect(proxy.edge);
    let ip = client.local().ip().to_string();
    for (path, host, headers, chain) in [
        ("/here", "a.test", "", ip.clone()),
        ("/nowhere", "b.test", "", ip.clone()),
        (
            "/behind",
            "a.test",
            "x-forwarded-for: 192.0.2.1\r\n",
            format!("192.0.2.1,{ip}"),
        ),
    ] {
        client
            .send(format!(
                "GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n"
            ))
            .reply();
        let logged = proxy.logged(path);
        assert_eq!(logged["x_forwarded_for"], chain, "{path}");
        assert_eq!(logged["request_id"].as_str().unwrap().len(), 36, "{path}");
    }
    // of an external client, as that of a request that is forwarded
    client
        .send("GET /own HTTP/1.1\r\nHost: a.test\r\nx-request-id: mine\r\n\r\n")
        .reply();
    let id = proxy.logged("/own")["request_id"].clone();
    assert_eq!(id.as_str().unwrap().len(), 36);
}
