//! Connection limits (`connectionPool` of DestinationRules), which apply over all workers, on live sockets.

use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hyper::{Response, Version};
use socket2::SockRef;

use crate::support::client::{Client, Front};
use crate::support::mesh::{documents, gateway, routes, service};
use crate::support::origin::{Back, Origin, RawOrigin, full, read_head};
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::{GET, Raw, Reply};
use crate::support::{DEADLINE, eventually};

/// HTTP/1 origin that answers a request once the test permits it, and counts its open connections exactly.
#[derive(Clone)]
struct Gated {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Number of permits to answer a request.
    gate: Mutex<usize>,
    opened: Condvar,
    /// Number of requests that wait for a permit.
    held: AtomicUsize,
    /// Number of accepted connections.
    connections: AtomicUsize,
    /// Sockets of the open connections.
    open: Mutex<Vec<TcpStream>>,
    /// Maximum number of connections that were open at the same time.
    most: AtomicUsize,
}

impl Gated {
    fn start() -> Self {
        let shared = Arc::<Shared>::default();
        let own = Arc::clone(&shared);
        let origin = RawOrigin::start(move |_, stream| own.serve(stream));
        let address = origin.address;
        Self { address, shared }
    }

    /// Starts an origin that answers all requests.
    fn open() -> Self {
        let gated = Self::start();
        gated.let_through(usize::MAX / 2);
        gated
    }

    fn let_through(&self, count: usize) {
        *self.shared.gate.lock().unwrap() += count;
        self.shared.opened.notify_all();
    }

    fn held(&self) -> usize {
        self.shared.held.load(Ordering::SeqCst)
    }

    fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    fn most(&self) -> usize {
        self.shared.most.load(Ordering::SeqCst)
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream) {
        self.connections.fetch_add(1, Ordering::SeqCst);
        {
            let mut open = self.open.lock().unwrap();
            open.retain(is_open);
            open.push(stream.try_clone().unwrap());
            self.most.fetch_max(open.len(), Ordering::SeqCst);
        }
        while !read_head(&mut stream).is_empty() {
            self.held.fetch_add(1, Ordering::SeqCst);
            let gate = self.gate.lock().unwrap();
            let (mut gate, timed_out) = self
                .opened
                .wait_timeout_while(gate, DEADLINE, |gate| *gate == 0)
                .unwrap();
            assert!(!timed_out.timed_out(), "never let through");
            *gate -= 1;
            drop(gate);
            self.held.fetch_sub(1, Ordering::SeqCst);
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
            if stream.write_all(answer).is_err() {
                break;
            }
        }
    }
}

/// Whether the peer has not closed the connection. On one machine, the close arrives before the next connection of the
/// peer.
fn is_open(stream: &TcpStream) -> bool {
    const PEEK_DONT_WAIT: i32 = 0x2 | 0x40;
    let mut byte = [MaybeUninit::uninit()];
    match SockRef::from(stream).recv_with_flags(&mut byte, PEEK_DONT_WAIT) {
        Ok(read) => read > 0,
        Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
    }
}

/// Returns a mesh that routes everything to `a.test`, with this connection pool in flow style and additional fields of
/// the policy and of the rule.
fn mesh(edge: SocketAddr, at: &[SocketAddr], pool: &str, (policy, rule): (&str, &str)) -> String {
    let at: Vec<_> = at.iter().map(|address| (*address, "v1")).collect();
    documents([
        gateway(&[edge]),
        service("a", Back::H1, &at),
        routes(
            "a",
            "['*']",
            &format!("- {{{rule}route: [{{destination: {{host: a.test}}}}]}}"),
        ),
        destination_rule(pool, policy),
    ])
}

fn destination_rule(pool: &str, policy: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: a}}\nspec:\n  \
         host: a.test\n  trafficPolicy: {{{policy}connectionPool: {pool}}}\n"
    )
}

fn proxy(at: &[SocketAddr], pool: &str) -> Proxy {
    Proxy::with(|edge| mesh(edge, at, pool, ("", "")))
}

/// Sends a request on a connection of its own.
fn ask(proxy: &Proxy) -> Raw {
    let mut client = Raw::connect(proxy.edge);
    client.send(GET);
    client
}

/// Reads replies on one thread each, so that they may arrive in any order.
fn replies(clients: Vec<Raw>) -> Vec<JoinHandle<Reply>> {
    let read = |mut client: Raw| std::thread::spawn(move || client.reply());
    clients.into_iter().map(read).collect()
}

fn statuses(replies: Vec<JoinHandle<Reply>>) -> Vec<u16> {
    let statuses = replies.into_iter().map(|one| one.join().unwrap().status);
    let mut statuses: Vec<u16> = statuses.collect();
    statuses.sort_unstable();
    statuses
}

/// Returns a number from the `/clusters` page.
fn now(proxy: &Proxy, what: &str) -> String {
    let page = proxy.page("/clusters");
    let prefix = format!("outbound|80||a.test::{what}::");
    let mut lines = page.lines();
    let value = lines.find_map(|line| line.strip_prefix(&prefix));
    value
        .unwrap_or_else(|| panic!("no {what} in {page}"))
        .to_owned()
}

fn overflows(proxy: &Proxy, limit: &str) -> f64 {
    proxy.metric("strait_upstream_overflows_total", &[("limit", limit)])
}

fn finished(replies: &[JoinHandle<Reply>]) -> usize {
    replies.iter().filter(|one| one.is_finished()).count()
}

#[test]
fn t113_with_one_connection_and_one_pending_the_third_request_overflows() {
    let origin = Gated::start();
    let pool = "{tcp: {maxConnections: 1}, http: {http1MaxPendingRequests: 1}}";
    let proxy = proxy(&[origin.address], pool);
    let replies = replies((0..3).map(|_| ask(&proxy)).collect());
    eventually("one is refused", || finished(&replies) == 1);
    eventually("one is at the origin", || origin.held() == 1);
    assert_eq!(now(&proxy, "connections"), "1/1");
    assert_eq!(now(&proxy, "pending_requests"), "1/1");
    origin.let_through(2);
    let mut replies: Vec<Reply> = replies.into_iter().map(|one| one.join().unwrap()).collect();
    replies.sort_by_key(|reply| reply.status);
    assert_eq!([replies[0].status, replies[1].status], [200; 2]);
    let refused = &replies[2];
    assert_eq!(refused.status, 503);
    assert!(refused.has("x-envoy-overloaded: true"), "{refused:?}");
    assert_eq!(
        String::from_utf8_lossy(&refused.body),
        "upstream connect error or disconnect/reset before headers. reset reason: overflow"
    );
    assert_eq!(
        (
            overflows(&proxy, "pending_requests"),
            overflows(&proxy, "connections")
        ),
        (1.0, 2.0)
    );
    eventually("the log has it", || {
        let mut lines = proxy.access_log().into_iter();
        lines.any(|line| line["response_flags"] == "UO" && line["response_code"] == 503)
    });
    assert_eq!(origin.most(), 1);
    assert_eq!(now(&proxy, "pending_requests"), "0/1");
}

/// Sends a request for a path on a connection of its own.
fn ask_for(proxy: &Proxy, path: &str) -> Raw {
    let mut client = Raw::connect(proxy.edge);
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n"));
    client
}

#[test]
fn per_try_timeout_starts_with_the_connection_and_request_timeout_before_it() {
    const PER_TRY: Duration = Duration::from_millis(300);
    let origin = Gated::start();
    let to = "route: [{destination: {host: a.test}}]";
    let rules = format!(
        "- {{match: [{{uri: {{prefix: /attempt}}}}], retries: {{attempts: 1, retryOn: 5xx, perTryTimeout: 300ms}}, {to}}}\n\
         - {{match: [{{uri: {{prefix: /whole}}}}], timeout: 300ms, {to}}}\n\
         - {{{to}}}"
    );
    let proxy = Proxy::with(|edge| {
        documents([
            gateway(&[edge]),
            service("a", Back::H1, &[(origin.address, "v1")]),
            routes("a", "['*']", &rules),
            destination_rule(
                "{tcp: {maxConnections: 1}, http: {http1MaxPendingRequests: 9}}",
                "",
            ),
        ])
    });
    let mut first = ask(&proxy);
    eventually("it is at the origin", || origin.held() == 1);
    let began = Instant::now();
    let mut waits = ask_for(&proxy, "/attempt");
    let mut leaves = ask_for(&proxy, "/whole");
    eventually("both wait", || now(&proxy, "pending_requests") == "2/9");
    let left = leaves.reply();
    assert_eq!(left.status, 504);
    assert_eq!(left.body, b"upstream request timeout");
    eventually("a try would be over", || began.elapsed() > PER_TRY * 2);
    assert_eq!(now(&proxy, "pending_requests"), "1/9");
    origin.let_through(2);
    assert_eq!(first.reply().status, 200);
    assert_eq!(waits.reply().status, 200);
    assert_eq!(proxy.metric("strait_upstream_retries_total", &[]), 0.0);
    // once it has its connection, its time runs
    let mut cut = ask_for(&proxy, "/attempt");
    assert_eq!(cut.reply().status, 504);
    assert_eq!(proxy.metric("strait_upstream_retries_total", &[]), 1.0);
    origin.let_through(9);
}

#[test]
fn t114_t115_overflow_is_not_retried_and_does_not_count_for_outlier_detection() {
    let origin = Gated::start();
    let pool = "{http: {http2MaxRequests: 1}}";
    let policy = "outlierDetection: {consecutive5xxErrors: 1, consecutiveGatewayErrors: 1, maxEjectionPercent: 100}, ";
    let rule = "retries: {attempts: 3, retryOn: '5xx'}, ";
    let proxy = Proxy::with(|edge| mesh(edge, &[origin.address], pool, (policy, rule)));
    let first = replies(vec![ask(&proxy)]);
    eventually("it is at the origin", || origin.held() == 1);
    let refused = replies((0..20).map(|_| ask(&proxy)).collect());
    assert_eq!(statuses(refused), [503; 20]);
    assert_eq!(overflows(&proxy, "requests"), 20.0);
    assert_eq!(proxy.metric("strait_upstream_retries_total", &[]), 0.0);
    assert_eq!(proxy.metric("strait_outlier_ejections_total", &[]), 0.0);
    // no connection was opened for refused requests
    // one for each worker that the clients came to
    assert!(origin.connections() <= 2);
    origin.let_through(2);
    assert_eq!(statuses(first), [200]);
    eventually("the next request is accepted", || {
        ask(&proxy).reply().status == 200
    });
}

#[test]
fn t116_connection_is_closed_after_max_requests_per_connection() {
    for (max, connections) in [(1, 6), (2, 3), (3, 2)] {
        let origin = Gated::open();
        let pool = format!("{{http: {{maxRequestsPerConnection: {max}}}}}");
        let proxy = proxy(&[origin.address], &pool);
        let mut client = Raw::connect(proxy.edge);
        for _ in 0..6 {
            assert_eq!(client.send(GET).reply().status, 200);
        }
        assert_eq!(origin.connections(), connections, "{max}");
    }
}

#[test]
fn connection_past_its_idle_timeout_is_not_reused() {
    const IDLE: Duration = Duration::from_millis(100);
    for back in [Back::H1, Back::H2] {
        for pool in [
            "{http: {idleTimeout: 100ms}}",
            "{tcp: {idleTimeout: 100ms}}",
            "{tcp: {idleTimeout: 1h}, http: {idleTimeout: 100ms}}",
        ] {
            let origin = Origin::named(back, "up");
            let proxy = Proxy::with(|edge| {
                documents([
                    gateway(&[edge]),
                    service("a", back, &[(origin.address, "v1")]),
                    routes("a", "['*']", "- {route: [{destination: {host: a.test}}]}"),
                    destination_rule(pool, ""),
                ])
            });
            let mut client = Raw::connect(proxy.edge);
            // the sweep, once a second, cannot have closed all of them
            for connections in 1..=6 {
                assert_eq!(client.send(GET).reply().status, 200);
                assert_eq!(origin.connections(), connections, "{back:?} {pool}");
                let answered = Instant::now();
                eventually("it is idle for too long", || answered.elapsed() >= IDLE);
            }
        }
    }
}

#[test]
fn limits_hold_exactly_over_all_workers_and_leak_nothing() {
    let origin = Gated::start();
    let pool =
        "{tcp: {maxConnections: 2}, http: {http1MaxPendingRequests: 5, http2MaxRequests: 2}}";
    let proxy = proxy(&[origin.address], pool);
    for round in 0..5 {
        let replies = replies((0..30).map(|_| ask(&proxy)).collect());
        eventually("all others are refused", || finished(&replies) == 23);
        eventually("two are at the origin", || origin.held() == 2);
        assert_eq!(now(&proxy, "pending_requests"), "5/5", "{round}");
        assert_eq!(now(&proxy, "requests"), "2/2", "{round}");
        origin.let_through(7);
        let mut expected = vec![200; 7];
        expected.extend([503; 23]);
        assert_eq!(statuses(replies), expected, "{round}");
        eventually("nothing is in progress", || {
            now(&proxy, "pending_requests") == "0/5" && now(&proxy, "requests") == "0/2"
        });
    }
    assert_eq!(origin.most(), 2);
    assert_eq!(overflows(&proxy, "pending_requests"), 115.0);
    assert_eq!(overflows(&proxy, "requests"), 0.0);
}

/// Runs many clients at once, each with several requests.
fn storm(proxy: &Proxy, clients: usize, requests: usize) {
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let mut client = Raw::connect(proxy.edge);
                for _ in 0..requests {
                    assert_eq!(client.send(GET).reply().status, 200);
                }
            });
        }
    });
}

#[test]
fn all_requests_complete_with_few_connections() {
    for (max, origins) in [(1, 1), (3, 1), (3, 2)] {
        let origins: Vec<Gated> = (0..origins).map(|_| Gated::open()).collect();
        let at: Vec<SocketAddr> = origins.iter().map(|origin| origin.address).collect();
        let proxy = proxy(&at, &format!("{{tcp: {{maxConnections: {max}}}}}"));
        storm(&proxy, 24, 40);
        for origin in &origins {
            assert!(origin.most() <= max, "{} of {max}", origin.most());
        }
        // requests queued on another worker do not get every second connection
        let made: usize = origins.iter().map(Gated::connections).sum();
        assert!(made < 24 * 40 / 4, "{made} connections");
        // an endpoint that has none may have one in any case; one too many goes when its request has ended
        eventually("no more are left than there may be", || {
            let shown = now(&proxy, "connections");
            let open: usize = shown.split('/').next().unwrap().parse().unwrap();
            open <= max
        });
    }
}

#[test]
fn idle_connection_of_another_worker_makes_room_for_a_queued_request() {
    let origin = Gated::open();
    let proxy = proxy(&[origin.address], "{tcp: {maxConnections: 1}}");
    let begun = std::time::Instant::now();
    // one after the other, on connections that both workers have
    for _ in 0..40 {
        assert_eq!(ask(&proxy).reply().status, 200);
    }
    assert!(origin.connections() > 1, "only one worker was asked");
    assert_eq!(origin.most(), 1);
    // workers look by themselves once a second: about 20 of these requests would wait for that
    assert!(begun.elapsed() < DEADLINE / 4, "no worker was woken");
}

#[test]
fn cancelled_pending_request_does_not_block_the_queue() {
    let origin = Gated::start();
    let pool = "{tcp: {maxConnections: 1}, http: {http1MaxPendingRequests: 2}}";
    let proxy = proxy(&[origin.address], pool);
    let first = replies(vec![ask(&proxy)]);
    eventually("it is at the origin", || origin.held() == 1);
    let leaves = ask(&proxy);
    eventually("one waits", || now(&proxy, "pending_requests") == "1/2");
    let stays = replies(vec![ask(&proxy)]);
    eventually("two wait", || now(&proxy, "pending_requests") == "2/2");
    drop(leaves);
    eventually("one is gone", || now(&proxy, "pending_requests") == "1/2");
    origin.let_through(2);
    assert_eq!(statuses(first), [200]);
    assert_eq!(statuses(stays), [200]);
}

#[test]
fn request_timeout_includes_the_time_in_the_queue() {
    let origin = Gated::start();
    let pool = "{tcp: {maxConnections: 1}, http: {http1MaxPendingRequests: 9}}";
    let rule = "match: [{uri: {exact: /short}}], timeout: 0.2s, route: [{destination: {host: a.test}}]}\n- {";
    let proxy = Proxy::with(|edge| mesh(edge, &[origin.address], pool, ("", rule)));
    let first = replies(vec![ask(&proxy)]);
    eventually("it is at the origin", || origin.held() == 1);
    let mut client = Raw::connect(proxy.edge);
    let reply = client.send(GET.replace("GET /", "GET /short")).reply();
    assert_eq!(reply.status, 504);
    eventually("it waits no longer", || {
        now(&proxy, "pending_requests") == "0/9"
    });
    origin.let_through(1);
    assert_eq!(statuses(first), [200]);
}

#[test]
fn raising_the_limit_serves_pending_requests() {
    let origin = Gated::start();
    let proxy = proxy(&[origin.address], "{tcp: {maxConnections: 1}}");
    let replies = replies((0..3).map(|_| ask(&proxy)).collect());
    eventually("one is at the origin", || origin.held() == 1);
    let text = mesh(
        proxy.edge,
        &[origin.address],
        "{tcp: {maxConnections: 3}}",
        ("", ""),
    );
    proxy.write("mesh.yaml", text);
    eventually("all are at the origin", || origin.held() == 3);
    assert_eq!(now(&proxy, "connections"), "3/3");
    origin.let_through(3);
    assert_eq!(statuses(replies), [200; 3]);
    let text = mesh(
        proxy.edge,
        &[origin.address],
        "{tcp: {maxConnections: 1}}",
        ("", ""),
    );
    proxy.write("mesh.yaml", text);
    eventually("those too many are closed", || {
        now(&proxy, "connections") == "1/1"
    });
}

#[test]
fn connection_is_not_used_past_max_connection_duration() {
    let origin = Gated::open();
    let proxy = proxy(&[origin.address], "{tcp: {maxConnectionDuration: 0.3s}}");
    let mut client = Raw::connect(proxy.edge);
    assert_eq!(client.send(GET).reply().status, 200);
    assert_eq!(origin.connections(), 1);
    eventually("another connection is made", || {
        assert_eq!(client.send(GET).reply().status, 200);
        origin.connections() == 2
    });
    eventually("without a request it is closed", || {
        now(&proxy, "connections") == "0"
    });
}

/// Returns a TCP listener in front of an origin, with this connection pool.
fn tcp(edge: SocketAddr, at: SocketAddr, pool: &str) -> String {
    let (ip, port) = (edge.ip(), edge.port());
    let (to, to_port) = (at.ip(), at.port());
    documents([
        format!(
            "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{name: tcp}}\nspec:\n  servers:\n  \
             - {{port: {{number: {port}, name: tcp, protocol: TCP}}, bind: {ip}, hosts: ['*']}}\n"
        ),
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: tcp}\nspec:\n  hosts: ['*']\n  \
         gateways: [tcp]\n  tcp:\n  - route: [{destination: {host: a.test, port: {number: 80}}}]\n"
            .to_owned(),
        format!(
            "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: a}}\nspec:\n  hosts: [a.test]\n  \
             resolution: STATIC\n  ports: [{{number: 80, name: tcp, protocol: TCP}}]\n  \
             endpoints: [{{address: {to}, ports: {{tcp: {to_port}}}}}]\n"
        ),
        destination_rule(pool, ""),
    ])
}

/// Echoes every byte.
fn echo() -> RawOrigin {
    RawOrigin::start(|_, mut stream| {
        let mut byte = [0];
        while matches!(stream.read(&mut byte), Ok(1)) && stream.write_all(&byte).is_ok() {}
    })
}

fn is_carried(client: &mut Raw) -> bool {
    client.send("x");
    client.try_read(1).is_some_and(|byte| byte == b"x")
}

#[test]
fn tcp_connection_above_max_connections_is_closed() {
    let origin = echo();
    let proxy = Proxy::with(|edge| tcp(edge, origin.address, "{tcp: {maxConnections: 2}}"));
    let mut held: Vec<Raw> = (0..2).map(|_| Raw::connect(proxy.edge)).collect();
    assert!(held.iter_mut().all(is_carried));
    for _ in 0..10 {
        assert!(Raw::connect(proxy.edge).is_closed());
    }
    eventually("the log has them", || {
        let lines = proxy.access_log().into_iter();
        lines.filter(|line| line["response_flags"] == "UO").count() == 10
    });
    assert_eq!(overflows(&proxy, "connections"), 10.0);
    held.pop();
    eventually("there is room again", || {
        is_carried(&mut Raw::connect(proxy.edge))
    });
}

#[test]
fn tcp_connection_ends_at_max_connection_duration() {
    let origin = echo();
    let pool = "{tcp: {maxConnectionDuration: 0.3s}}";
    let proxy = Proxy::with(|edge| tcp(edge, origin.address, pool));
    let mut client = Raw::connect(proxy.edge);
    assert!(is_carried(&mut client));
    eventually("it is closed", || !is_carried(&mut client));
    eventually("the log says why", || {
        let mut lines = proxy.access_log().into_iter();
        lines.any(|line| {
            line["response_flags"] == "DT"
                && line["connection_termination_details"] == "max_duration_timeout"
        })
    });
}

#[tokio::test]
async fn t119_h2_upgrade_policy_upgrades_requests_to_http2() {
    let origin = Origin::named(Back::H2, "two");
    let proxy = proxy(&[origin.address], "{http: {h2UpgradePolicy: UPGRADE}}");
    for front in [Front::H1, Front::H2] {
        let mut client = Client::connect(front, proxy.edge).await;
        assert_eq!(client.get("/").await.text(), "two");
    }
    assert!(
        origin
            .seen()
            .iter()
            .all(|seen| seen.version == Version::HTTP_2)
    );
    // a rule that says so is believed, as in Istio, whatever the port declares
    let own = Proxy::with(|edge| {
        let pool = "{http: {h2UpgradePolicy: UPGRADE}}";
        let mesh = mesh(edge, &[origin.address], pool, ("", ""));
        mesh.replace("name: web, protocol: HTTP}", "name: web, protocol: TCP}")
    });
    let mut client = Client::connect(Front::H1, own.edge).await;
    assert_eq!(client.get("/").await.text(), "two");
    let plain = Origin::named(Back::H1, "one");
    let pool = "{http: {h2UpgradePolicy: DO_NOT_UPGRADE}}";
    let proxy = self::proxy(&[plain.address], pool);
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.get("/").await.text(), "one");
}

#[tokio::test]
async fn use_client_protocol_keeps_the_protocol_of_the_client() {
    for (front, back) in [(Front::H1, Back::H1), (Front::H2, Back::H2)] {
        let origin = Origin::start(back, |_| async { Response::new(full("ok")) });
        let proxy = proxy(&[origin.address], "{http: {useClientProtocol: true}}");
        let mut client = Client::connect(front, proxy.edge).await;
        assert_eq!(client.get("/").await.text(), "ok", "{front:?}");
    }
}

#[tokio::test]
async fn shared_http2_connection_is_released_for_other_workers() {
    let origin = Origin::named(Back::H2, "ok");
    let start = Start::new();
    let at = [(origin.address, "v1")];
    let text = documents([
        gateway(&[start.edge()]),
        service("a", Back::H2, &at),
        routes("a", "['*']", "- {route: [{destination: {host: a.test}}]}"),
        destination_rule("{tcp: {maxConnections: 1}}", ""),
    ]);
    let proxy = start.file("mesh.yaml", text).start();
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let edge = proxy.edge;
        clients.spawn(async move {
            let mut client = Client::connect(Front::H2, edge).await;
            for _ in 0..40 {
                assert_eq!(client.get("/").await.status, 200);
            }
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    assert_eq!(now(&proxy, "connections"), "1/1");
    let made = origin.connections();
    assert!(made < 16 * 40 / 8, "{made} connections");
}
