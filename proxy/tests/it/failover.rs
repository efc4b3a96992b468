//! Origin failures: replies to clients, log entries, metrics, and retried requests.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use hyper::{Request, Response};

use crate::support::client::{Answer, Client, Front, get, post};
use crate::support::mesh::{documents, everything_to_address, gateway, routes, service, subsets};
use crate::support::origin::{Back, Origin, RawOrigin, empty, full, read_head};
use crate::support::proxy::{Proxy, free_address};
use crate::support::raw::Raw;
use crate::support::{DEADLINE, until};

/// Row of the table of local replies.
struct Row {
    host: &'static str,
    status: u16,
    flag: &'static str,
    /// End of the response body; empty for an empty body.
    body: &'static str,
    details: &'static str,
    grpc: &'static str,
}

const RESET: &str = "upstream connect error or disconnect/reset before headers. reset reason: ";

const ROWS: &[Row] = &[
    Row {
        host: "unknown.test",
        status: 404,
        flag: "NR",
        body: "",
        details: "route_not_found",
        grpc: "12",
    },
    Row {
        host: "no-subset.test",
        status: 503,
        flag: "NC",
        body: "",
        details: "cluster_not_found",
        grpc: "14",
    },
    Row {
        host: "no-service.test",
        status: 503,
        flag: "NC",
        body: "",
        details: "cluster_not_found",
        grpc: "14",
    },
    Row {
        host: "empty.test",
        status: 503,
        flag: "UH",
        body: "no healthy upstream",
        details: "no_healthy_upstream",
        grpc: "14",
    },
    Row {
        host: "refused.test",
        status: 503,
        flag: "UF",
        body: "remote connection failure",
        details: "upstream_reset_before_response_started{remote_connection_failure}",
        grpc: "14",
    },
    Row {
        host: "closes.test",
        status: 503,
        flag: "UC",
        body: "connection termination",
        details: "upstream_reset_before_response_started{connection_termination}",
        grpc: "14",
    },
    Row {
        host: "malformed.test",
        status: 502,
        flag: "UPE",
        body: "protocol error",
        details: "upstream_reset_before_response_started{protocol_error}",
        grpc: "14",
    },
    Row {
        host: "slow.test",
        status: 504,
        flag: "UT",
        body: "upstream request timeout",
        details: "response_timeout",
        grpc: "14",
    },
];

/// Returns a route of one host to a service of the same name.
fn to_service(name: &str, more: &str) -> String {
    routes(
        name,
        &format!("[{name}.test]"),
        &format!(
            "- {{name: {name}, retries: {{}}, route: [{{destination: {{host: {name}.test{more}}}}}]}}"
        ),
    )
}

fn failing_world() -> Proxy {
    let refused = free_address();
    let closes = RawOrigin::start(|_, mut stream| {
        read_head(&mut stream);
    });
    let malformed = RawOrigin::start(|_, mut stream| {
        read_head(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 yes\r\n\r\n");
    });
    let slow = RawOrigin::start(|_, mut stream| {
        read_head(&mut stream);
        // Until the other side gives up.
        read_head(&mut stream);
    });
    Proxy::with(|edge| {
        let one = |name: &str, address: SocketAddr| service(name, Back::H1, &[(address, "v1")]);
        documents([
            gateway(&[edge]),
            one("no-subset", refused),
            subsets("no-subset", &["v1"]),
            to_service("no-subset", ", subset: v9"),
            to_service("no-service", ""),
            service("empty", Back::H1, &[]),
            to_service("empty", ""),
            one("refused", refused),
            to_service("refused", ""),
            one("closes", closes.address),
            to_service("closes", ""),
            one("malformed", malformed.address),
            to_service("malformed", ""),
            one("slow", slow.address),
            routes(
                "slow",
                "[slow.test]",
                "- {name: slow, timeout: 100ms, route: [{destination: {host: slow.test}}]}",
            ),
        ])
    })
}

#[tokio::test]
async fn each_failure_has_its_status_response_flag_and_counter() {
    let proxy = failing_world();
    for front in [Front::H1, Front::H2] {
        let mut client = Client::connect(front, proxy.edge).await;
        for row in ROWS {
            let path = format!("/{front:?}/{}", row.host);
            let request = Request::get(format!("http://{}{path}", row.host));
            let answer = client.call(request.body(empty()).unwrap()).await;
            assert_eq!(answer.status, row.status, "{}", row.host);
            check_body(row, &answer);
            assert_eq!(answer.header("server"), Some("istio-envoy"));
            let logged = proxy.logged(&path);
            assert_eq!(logged["response_code"], row.status);
            assert_eq!(logged["response_flags"], row.flag, "{logged}");
            assert_eq!(logged["response_code_details"], row.details);
            assert_eq!(logged["bytes_sent"], answer.body.len());
        }
    }
    for row in ROWS {
        let counted = |labels: &[(&str, &str)]| proxy.metric("istio_requests_total", labels);
        let status = row.status.to_string();
        let same = ROWS.iter().filter(|other| other.flag == row.flag).count();
        let labels = [("response_flags", row.flag), ("response_code", &status)];
        assert_eq!(counted(&labels), (2 * same) as f64, "{}", row.flag);
    }
    assert_eq!(
        proxy.metric("strait_upstream_stale_connection_retries_total", &[]),
        0.0
    );
}

fn check_body(row: &Row, answer: &Answer) {
    let text = answer.text();
    let kind = answer.header("content-type");
    assert_eq!(kind, (!row.body.is_empty()).then_some("text/plain"));
    if row.body.is_empty() {
        assert_eq!(text, "", "{}", row.host);
    } else if row.details.contains('{') {
        assert_eq!(text, format!("{RESET}{}", row.body));
    } else {
        assert_eq!(text, row.body);
    }
}

#[tokio::test]
async fn local_replies_to_grpc_clients_have_a_grpc_status() {
    let proxy = failing_world();
    let mut client = Client::connect(Front::H2, proxy.edge).await;
    for row in ROWS {
        let request = Request::post(format!("http://{}/pkg.S/{}", row.host, row.host))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(empty())
            .unwrap();
        let answer = client.call(request).await;
        assert_eq!((answer.status, answer.text()), (200, ""), "{}", row.host);
        assert_eq!(answer.header("content-type"), Some("application/grpc"));
        assert_eq!(answer.header("grpc-status"), Some(row.grpc), "{}", row.host);
        let message = answer.header("grpc-message").unwrap_or_default();
        assert!(message.ends_with(row.body), "{message}");
        let logged = proxy.logged(&format!("/pkg.S/{}", row.host));
        assert_eq!(logged["response_code"], 200);
        assert_eq!(logged["response_flags"], row.flag);
    }
}

#[tokio::test]
async fn head_request_gets_a_local_reply_without_a_body() {
    let proxy = failing_world();
    for front in [Front::H1, Front::H2] {
        let mut client = Client::connect(front, proxy.edge).await;
        for _ in 0..2 {
            let request = Request::head("http://empty.test/").body(empty());
            let answer = client.call(request.unwrap()).await;
            assert_eq!((answer.status, answer.text()), (503, ""));
            assert_eq!(answer.header("content-type"), Some("text/plain"));
            assert_eq!(answer.header("content-length"), Some("19"));
        }
    }
}

#[tokio::test]
async fn request_timeout_starts_at_the_end_of_the_request() {
    let origin = Origin::start(Back::H1, |request| async move {
        if request.uri().path() == "/never" {
            std::future::pending::<()>().await;
        }
        let body = http_body_util::BodyExt::collect(request.into_body()).await;
        Response::new(full(body.unwrap().to_bytes()))
    });
    let proxy = Proxy::with(|edge| {
        documents([
            gateway(&[edge]),
            service("web", Back::H1, &[(origin.address, "v1")]),
            routes(
                "all",
                "[\"*\"]",
                "- {timeout: 300ms, route: [{destination: {host: web.test}}]}",
            ),
        ])
    });
    let mut client = Raw::connect(proxy.edge);
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab");
    until("the origin has the head", async || origin.seen().len() == 1).await;
    // A whole request that begins later has had its time when this one goes on.
    let mut other = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(other.get("/never").await.status, 504);
    let reply = client.send("cd").reply();
    assert_eq!((reply.status, &reply.body[..]), (200, &b"abcd"[..]));
}

#[tokio::test]
async fn truncated_response_is_not_completed() {
    let origin = RawOrigin::start(|_, mut stream| {
        read_head(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
    });
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H1, origin.address));
    for front in [Front::H1, Front::H2] {
        let path = format!("/{front:?}");
        let mut client = Client::connect(front, proxy.edge).await;
        assert!(client.try_call(get(&path)).await.is_err());
        let logged = proxy.logged(&path);
        assert_eq!(logged["response_code"], 200);
        assert_eq!(logged["response_flags"], "UC", "{logged}");
    }
}

#[tokio::test]
async fn client_disconnect_is_logged_and_cancels_the_upstream_request() {
    let (tell, told) = mpsc::channel();
    let tell = std::sync::Mutex::new(tell);
    let origin = RawOrigin::start(move |_, mut stream| {
        let head = read_head(&mut stream);
        let _ = tell.lock().unwrap().send(head);
        let closed = read_head(&mut stream);
        let _ = tell.lock().unwrap().send(closed);
    });
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H1, origin.address));
    let mut client = Raw::connect(proxy.edge);
    client.send("GET /left HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(
        told.recv_timeout(DEADLINE)
            .unwrap()
            .starts_with("GET /left")
    );
    drop(client);
    assert_eq!(told.recv_timeout(DEADLINE).unwrap(), "");
    let logged = proxy.logged("/left");
    assert_eq!(logged["response_code"], 0);
    assert_eq!(logged["response_flags"], "DC", "{logged}");
}

/// Starts an origin that answers one request per connection, keeps the connection open, and closes it when the next
/// request arrives. Counts requests by method.
fn closes_on_reuse() -> (RawOrigin, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (gets, posts) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (of_get, of_post) = (Arc::clone(&gets), Arc::clone(&posts));
    let origin = RawOrigin::start(move |_, mut stream| {
        let count = |head: &str| {
            if head.starts_with("POST") {
                of_post.fetch_add(1, Ordering::SeqCst);
            } else if !head.is_empty() {
                of_get.fetch_add(1, Ordering::SeqCst);
            }
        };
        let head = read_head(&mut stream);
        count(&head);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        // The head of the next request is read whole, so it was written whole; then the connection ends.
        count(&read_head(&mut stream));
    });
    (origin, gets, posts)
}

#[tokio::test]
async fn get_on_a_closing_connection_is_retried() {
    let (origin, gets, _) = closes_on_reuse();
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H1, origin.address));
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    for _ in 0..3 {
        assert_eq!(client.get("/").await.status, 200);
    }
    // The second and the third met a connection that closed, and were answered on a new one.
    assert_eq!(gets.load(Ordering::SeqCst), 5);
    assert_eq!(
        proxy.metric("strait_upstream_stale_connection_retries_total", &[]),
        2.0
    );
    let ok = [("response_code", "200"), ("response_flags", "-")];
    assert_eq!(proxy.metric("istio_requests_total", &ok), 3.0);
}

#[tokio::test]
async fn post_that_was_written_is_never_sent_twice() {
    let (origin, _, posts) = closes_on_reuse();
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H1, origin.address));
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.get("/").await.status, 200);
    let answer = client.call(post("/pay", "money")).await;
    assert_eq!(answer.status, 503);
    assert_eq!(posts.load(Ordering::SeqCst), 1);
    assert_eq!(proxy.logged("/pay")["response_flags"], "UC");
    // Without a body neither: the method alone forbids it.
    assert_eq!(client.get("/").await.status, 200);
    assert_eq!(client.call(post("/pay-again", "")).await.status, 503);
    assert_eq!(posts.load(Ordering::SeqCst), 2);
    assert_eq!(
        proxy.metric("strait_upstream_stale_connection_retries_total", &[]),
        0.0
    );
}

#[tokio::test]
async fn connections_closed_while_idle_fail_no_request() {
    let origin_connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&origin_connections);
    let origin = RawOrigin::start(move |_, mut stream| {
        count.fetch_add(1, Ordering::SeqCst);
        if !read_head(&mut stream).is_empty() {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H1, origin.address));
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    for _ in 0..5 {
        assert_eq!(client.call(post("/", "x")).await.status, 200);
        // Seen to be closed before the next request asks for it; otherwise it is a race that a POST may lose.
        until("the end is seen", async || {
            proxy.metric("strait_upstream_connections_active", &[]) == 0.0
        })
        .await;
    }
    assert_eq!(origin_connections.load(Ordering::SeqCst), 5);
    assert_eq!(
        proxy.metric("strait_upstream_stale_connection_retries_total", &[]),
        0.0
    );
}

#[tokio::test]
async fn endpoint_that_restarts_is_used_again() {
    let address = free_address();
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H1, address));
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.get("/").await.status, 503);
    let listener = std::net::TcpListener::bind(address).unwrap();
    let origin = Origin::start_on(listener, Back::H1, |_| async { Response::new(full("up")) });
    assert_eq!(client.get("/").await.text(), "up");
    drop(origin);
    until("it is gone", async || client.get("/").await.status == 503).await;
}

/// Starts an HTTP/2 origin that answers each stream, by its number, as a closure decides; the closure may request a
/// GOAWAY.
async fn serve_streams(
    listener: tokio::net::TcpListener,
    answer: impl Fn(usize, &mut h2::server::SendResponse<bytes::Bytes>, &mut bool),
) {
    let mut number = 0;
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let mut connection = h2::server::handshake(stream).await.unwrap();
        let mut leaving = false;
        while let Some(Ok((_, mut respond))) = connection.accept().await {
            answer(number, &mut respond, &mut leaving);
            number += 1;
            if leaving {
                connection.graceful_shutdown();
            }
        }
    }
}

#[tokio::test]
async fn reset_streams_have_distinct_details() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let proxy = Proxy::with(|edge| {
        let mesh = everything_to_address(edge, Back::H2, address);
        mesh.replace("{name: all, ", "{name: all, retries: {}, ")
    });
    let test = async {
        let mut client = Client::connect(Front::H1, proxy.edge).await;
        let answer = client.call(post("/cancel", "x")).await;
        assert_eq!(answer.status, 503);
        assert_eq!(answer.text(), format!("{RESET}remote reset"));
        assert_eq!(proxy.logged("/cancel")["response_flags"], "UR");
        let answer = client.call(post("/refused", "x")).await;
        assert_eq!(answer.status, 503);
        assert_eq!(answer.text(), format!("{RESET}remote refused stream reset"));
        assert_eq!(proxy.logged("/refused")["response_flags"], "UR");
        assert_eq!(client.get("/").await.status, 200);
    };
    let serve = serve_streams(listener, |number, respond, _| match number {
        0 => respond.send_reset(h2::Reason::CANCEL),
        1 => respond.send_reset(h2::Reason::REFUSED_STREAM),
        _ => drop(respond.send_response(Response::new(()), true).unwrap()),
    });
    tokio::select! {
        () = test => (),
        () = serve => unreachable!(),
    }
}

#[tokio::test]
async fn goaway_of_an_endpoint_fails_no_request() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H2, address));
    let test = async {
        let mut client = Client::connect(Front::H1, proxy.edge).await;
        for number in 0..20 {
            let answer = client.get(&format!("/{number}")).await;
            assert_eq!(answer.status, 200, "{number}");
        }
    };
    // Every connection carries two requests; with the second the peer announces that it leaves.
    let serve = serve_streams(listener, |number, respond, leaving| {
        *leaving = number % 2 == 1;
        drop(respond.send_response(Response::new(()), true).unwrap());
    });
    tokio::select! {
        () = test => (),
        () = serve => unreachable!(),
    }
}

#[tokio::test]
async fn grpc_timeout_of_the_client_applies() {
    let slow = Origin::start(Back::H2, |_| std::future::pending());
    let proxy = Proxy::with(|edge| crate::support::mesh::everything_to(edge, &slow));
    let mut client = Client::connect(Front::H2, proxy.edge).await;
    let request = Request::post("http://a.test/pkg.S/Slow")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-timeout", "80m")
        .body(empty())
        .unwrap();
    let answer = client.call(request).await;
    assert_eq!(
        (answer.status, answer.header("grpc-status")),
        (200, Some("14"))
    );
    assert_eq!(
        answer.header("grpc-message"),
        Some("upstream request timeout")
    );
    let head = slow.only();
    assert_eq!(head.header("grpc-timeout"), Some("80m"));
    assert_eq!(head.header("x-envoy-expected-rq-timeout-ms"), Some("80"));
    assert_eq!(proxy.logged("/pkg.S/Slow")["response_flags"], "UT");
}
