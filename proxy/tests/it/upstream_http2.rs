//! HTTP/2 connections to origins that allow few streams, change their limit, or send GOAWAY.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use h2::server::SendResponse;
use hyper::{Request, Response};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::support::client::{Answer, Client, Front, get, post};
use crate::support::frames::{HEADERS, PING, RST_STREAM, SETTINGS};
use crate::support::mesh::{documents, everything_to_address, gateway, routes, service};
use crate::support::origin::{Back, Body, RawOrigin};
use crate::support::proxy::Proxy;
use crate::support::{DEADLINE, eventually, until};

const GOAWAY: u8 = 7;
const ACK: u8 = 1;
/// Identifier of the setting SETTINGS_MAX_CONCURRENT_STREAMS.
const MAX_STREAMS: u8 = 3;

/// HTTP/2 origin that announces a maximum number of streams, holds every request until it gets a permit, and counts
/// requests.
struct Narrow {
    address: SocketAddr,
    /// Permits, one per response.
    gate: Arc<Semaphore>,
    connections: Arc<AtomicUsize>,
    /// Number of requests that wait for a permit.
    held: Arc<AtomicUsize>,
    /// Maximum number of waiting requests on one connection.
    most: Arc<AtomicUsize>,
    tasks: JoinSet<()>,
}

impl Narrow {
    async fn start(streams_max: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut this = Self {
            address: listener.local_addr().unwrap(),
            gate: Arc::new(Semaphore::new(0)),
            connections: Arc::default(),
            held: Arc::default(),
            most: Arc::default(),
            tasks: JoinSet::new(),
        };
        let (gate, connections) = (Arc::clone(&this.gate), Arc::clone(&this.connections));
        let (held, most) = (Arc::clone(&this.held), Arc::clone(&this.most));
        this.tasks.spawn(async move {
            let mut tasks = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.fetch_add(1, Ordering::SeqCst);
                let (gate, held, most) = (Arc::clone(&gate), Arc::clone(&held), Arc::clone(&most));
                tasks.spawn(async move {
                    let mut connection = h2::server::Builder::new()
                        .max_concurrent_streams(streams_max)
                        .handshake::<_, bytes::Bytes>(stream)
                        .await
                        .unwrap();
                    let here = Arc::new(AtomicUsize::new(0));
                    let mut streams = JoinSet::new();
                    while let Some(Ok((_, respond))) = connection.accept().await {
                        held.fetch_add(1, Ordering::SeqCst);
                        most.fetch_max(here.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        let here = Arc::clone(&here);
                        streams.spawn(answer(respond, Arc::clone(&gate), here));
                    }
                });
            }
        });
        this
    }

    fn held(&self) -> usize {
        self.held.load(Ordering::SeqCst)
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn answer(
    mut respond: SendResponse<bytes::Bytes>,
    gate: Arc<Semaphore>,
    here: Arc<AtomicUsize>,
) {
    gate.acquire().await.unwrap().forget();
    here.fetch_sub(1, Ordering::SeqCst);
    drop(respond.send_response(Response::new(()), true).unwrap());
}

/// Starts this many POST requests at once.
async fn burst(proxy: &Proxy, count: usize) -> JoinSet<u16> {
    burst_of(proxy, count, || post("/", "x")).await
}

/// Starts this many requests at once on one connection, so that a single worker handles them all.
async fn burst_of(
    proxy: &Proxy,
    count: usize,
    request: impl Fn() -> Request<Body>,
) -> JoinSet<u16> {
    let sender = Client::connect(Front::H2, proxy.edge).await.http2_handle();
    let mut sender = sender.unwrap();
    let mut requests = JoinSet::new();
    for _ in 0..count {
        sender.ready().await.unwrap();
        let response = sender.send_request(request());
        requests.spawn(async move { Answer::read(response.await.unwrap()).await.unwrap().status });
    }
    requests
}

async fn statuses(requests: JoinSet<u16>) -> Vec<u16> {
    let all = tokio::time::timeout(DEADLINE, requests.join_all());
    all.await.expect("every answer in time")
}

#[tokio::test]
async fn burst_opens_connections_by_the_stream_limit() {
    for (limit, connections) in [(1, 12), (5, 3), (100, 1)] {
        let origin = Narrow::start(limit).await;
        let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H2, origin.address));
        let requests = burst(&proxy, 12).await;
        // None of them is answered before all are there.
        until("all are at the origin", async || origin.held() == 12).await;
        origin.gate.add_permits(12);
        assert_eq!(statuses(requests).await, [200; 12]);
        assert_eq!(origin.connections(), connections, "limit {limit}");
        let most = origin.most.load(Ordering::SeqCst);
        assert!(most <= limit as usize, "{most} of {limit} streams");
        assert_eq!(
            proxy.metric("strait_upstream_stale_connection_retries_total", &[]),
            0.0
        );
    }
}

#[tokio::test]
async fn policy_limits_streams_and_requests_per_connection() {
    for pool in ["maxConcurrentStreams: 5", "maxRequestsPerConnection: 5"] {
        let origin = Narrow::start(100).await;
        let proxy = Proxy::with(|edge| {
            let rule = format!(
                "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: web}}\n\
                 spec: {{host: web.test, trafficPolicy: {{connectionPool: {{http: {{{pool}}}}}}}}}"
            );
            let mesh = everything_to_address(edge, Back::H2, origin.address);
            format!("{mesh}---\n{rule}\n")
        });
        let requests = burst(&proxy, 12).await;
        until("all are at the origin", async || origin.held() == 12).await;
        origin.gate.add_permits(12);
        assert_eq!(statuses(requests).await, [200; 12]);
        assert_eq!(origin.connections(), 3, "{pool}");
        let most = origin.most.load(Ordering::SeqCst);
        assert!(most <= 5, "{most} of 5 streams");
    }
}

#[tokio::test]
async fn completed_stream_makes_room_for_the_next_request() {
    let origin = Narrow::start(3).await;
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H2, origin.address));
    let first = burst(&proxy, 3).await;
    until("three are at the origin", async || origin.held() == 3).await;
    origin.gate.add_permits(3);
    assert_eq!(statuses(first).await, [200; 3]);
    let second = burst(&proxy, 3).await;
    until("the others as well", async || origin.held() == 6).await;
    origin.gate.add_permits(3);
    assert_eq!(statuses(second).await, [200; 3]);
    // Two connections of the client may be with two workers.
    assert!(origin.connections() <= 2, "{}", origin.connections());
}

/// Writes a frame.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Reads a frame: type, flags and stream; `None` at the end.
fn read_frame(stream: &mut impl Read) -> Option<(u8, u8, u32)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; length as usize];
    stream.read_exact(&mut payload).ok()?;
    let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
    Some((head[3], head[4], id))
}

/// Reads the preface of a client.
fn read_preface(stream: &mut impl Read) -> bool {
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).is_ok() && preface.starts_with(b"PRI * HTTP/2.0")
}

/// Header block with only `:status: 200`.
const OK: &[u8] = &[0x88];

#[tokio::test]
async fn one_stream_is_opened_before_the_settings_are_known() {
    let heads = Arc::<AtomicUsize>::default();
    let before = Arc::<AtomicUsize>::default();
    let (seen, seen_before) = (Arc::clone(&heads), Arc::clone(&before));
    let (settle, settled) = watch::channel(false);
    let origin = RawOrigin::start(move |number, mut stream| {
        assert!(number == 0, "one connection");
        read_preface(&mut stream);
        let mut writer = stream.try_clone().unwrap();
        let settled = settled.clone();
        std::thread::spawn(move || {
            eventually("the test has sent all", || *settled.borrow());
            writer.write_all(&frame(PING, 0, 0, &[0; 8])).unwrap();
        });
        while let Some((kind, flags, _)) = read_frame(&mut stream) {
            match (kind, flags) {
                (HEADERS, _) => drop(heads.fetch_add(1, Ordering::SeqCst)),
                // Whatever was sent until then is here.
                (PING, ACK) => {
                    before.store(heads.load(Ordering::SeqCst), Ordering::SeqCst);
                    let limit = [0, MAX_STREAMS, 0, 0, 0, 4];
                    let settings = frame(SETTINGS, 0, 0, &limit);
                    stream.write_all(&settings).unwrap();
                }
                _ => (),
            }
        }
    });
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H2, origin.address));
    let requests = burst(&proxy, 4).await;
    until(
        "one is there, and the others are in the proxy",
        async || {
            let active = proxy.metric("strait_requests_active", &[]);
            active == 4.0 && seen.load(Ordering::SeqCst) > 0
        },
    )
    .await;
    settle.send_replace(true);
    until("the others are there", async || {
        seen.load(Ordering::SeqCst) == 4
    })
    .await;
    assert_eq!(seen_before.load(Ordering::SeqCst), 1);
    drop(requests);
}

/// Starts an origin that answers the first of three streams of its first connection, then sends a GOAWAY for the
/// others. Later connections answer normally. Counts requests.
fn leaves_after_one() -> (RawOrigin, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let origin = RawOrigin::start(move |number, mut stream| {
        if !read_preface(&mut stream) {
            return;
        }
        stream.write_all(&frame(SETTINGS, 0, 0, &[])).unwrap();
        let mut open = Vec::new();
        while let Some((kind, _, id)) = read_frame(&mut stream) {
            if kind != HEADERS {
                continue;
            }
            count.fetch_add(1, Ordering::SeqCst);
            open.push(id);
            if number > 0 {
                stream.write_all(&frame(HEADERS, 5, id, OK)).unwrap();
            } else if open.len() == 3 {
                let last = open[0].to_be_bytes();
                let gone = [last, [0; 4]].concat();
                stream.write_all(&frame(GOAWAY, 0, 0, &gone)).unwrap();
                stream.write_all(&frame(HEADERS, 5, open[0], OK)).unwrap();
            }
        }
    });
    (origin, requests)
}

#[tokio::test]
async fn streams_unprocessed_at_goaway_are_retried() {
    let (origin, posts) = leaves_after_one();
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H2, origin.address));
    let mut answers = statuses(burst(&proxy, 3).await).await;
    answers.sort_unstable();
    assert_eq!(answers, [200, 200, 200]);
    assert_eq!(posts.load(Ordering::SeqCst), 5);
    let refused = [("reason", "refused_stream")];
    assert_eq!(proxy.metric("strait_upstream_retries_total", &refused), 2.0);
    // The connection that leaves gets no further stream.
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.call(post("/", "x")).await.status, 200);
}

#[tokio::test]
async fn gets_unprocessed_at_goaway_are_retried() {
    let (origin, gets) = leaves_after_one();
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H2, origin.address));
    let requests = burst_of(&proxy, 3, || get("/")).await;
    assert_eq!(statuses(requests).await, [200; 3]);
    // The one that was processed once, the others twice.
    assert_eq!(gets.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn refused_get_is_retried_and_a_reset_get_is_not() {
    const REFUSED: u32 = 7;
    const CANCEL: u32 = 8;
    for (reason, status, sent) in [(REFUSED, 200, 3), (CANCEL, 503, 2)] {
        let gets = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&gets);
        let origin = RawOrigin::start(move |_, mut stream| {
            if !read_preface(&mut stream) {
                return;
            }
            stream.write_all(&frame(SETTINGS, 0, 0, &[])).unwrap();
            while let Some((kind, _, id)) = read_frame(&mut stream) {
                if kind != HEADERS {
                    continue;
                }
                // The second one is not answered.
                let answer = match count.fetch_add(1, Ordering::SeqCst) {
                    1 => frame(RST_STREAM, 0, id, &reason.to_be_bytes()),
                    _ => frame(HEADERS, 5, id, OK),
                };
                stream.write_all(&answer).unwrap();
            }
        });
        let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H2, origin.address));
        let mut client = Client::connect(Front::H1, proxy.edge).await;
        assert_eq!(client.call(get("/")).await.status, 200);
        assert_eq!(client.call(get("/")).await.status, status);
        assert_eq!(gets.load(Ordering::SeqCst), sent);
    }
}

/// Serves HTTP/2: the second request gets 503, the third is refused. Records the attempt counts of all.
async fn refuses_the_third(listener: TcpListener, counts: Arc<Mutex<Vec<String>>>) {
    let mut tasks = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let counts = Arc::clone(&counts);
        tasks.spawn(async move {
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                let count = &request.headers()["x-envoy-attempt-count"];
                let mut counts = counts.lock().unwrap();
                counts.push(count.to_str().unwrap().to_owned());
                let status = match counts.len() {
                    2 => 503,
                    3 => {
                        respond.send_reset(h2::Reason::REFUSED_STREAM);
                        continue;
                    }
                    _ => 200,
                };
                let head = Response::builder().status(status).body(()).unwrap();
                let _: Result<h2::SendStream<bytes::Bytes>, _> = respond.send_response(head, true);
            }
        });
    }
}

#[tokio::test]
async fn retry_that_is_sent_again_has_the_headers_of_its_attempt() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let counts = Arc::<Mutex<Vec<String>>>::default();
    let mut tasks = JoinSet::new();
    tasks.spawn(refuses_the_third(listener, Arc::clone(&counts)));
    let rule = "- {retries: {attempts: 1, retryOn: 5xx}, route: [{destination: {host: web.test}}]}";
    let proxy = Proxy::with(|edge| {
        documents([
            gateway(&[edge]),
            service("web", Back::H2, &[(address, "v1")]),
            routes("all", "[\"*\"]", rule),
        ])
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    for _ in 0..2 {
        assert_eq!(client.call(get("/")).await.status, 200);
    }
    assert_eq!(*counts.lock().unwrap(), ["1", "1", "2", "2"]);
}

#[tokio::test]
async fn pending_requests_fail_when_the_connection_fails() {
    // Takes the connection and says nothing that HTTP/2 would say.
    let origin = RawOrigin::start(|_, mut stream| {
        read_preface(&mut stream);
    });
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H2, origin.address));
    let answers = statuses(burst(&proxy, 5).await).await;
    assert_eq!(answers, [503; 5]);
}

/// Starts an HTTP/2 origin that closes each connection gracefully with its tenth request.
async fn leaves_after_ten(listener: TcpListener) {
    let mut tasks = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tasks.spawn(async move {
            let mut connection = h2::server::handshake(stream).await.unwrap();
            let mut number = 0;
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                number += 1;
                if number == 10 {
                    connection.graceful_shutdown();
                }
                let _: Result<h2::SendStream<bytes::Bytes>, _> =
                    respond.send_response(Response::new(()), true);
            }
        });
    }
}

#[tokio::test]
async fn connection_churn_fails_no_request() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H2, address));
    let test = async {
        let mut clients = JoinSet::new();
        for _ in 0..16 {
            let edge = proxy.edge;
            clients.spawn(async move {
                let mut client = Client::connect(Front::H1, edge).await;
                for number in 0..40 {
                    let answer = match number % 2 {
                        0 => client.get("/").await,
                        _ => client.call(post("/", "x")).await,
                    };
                    assert_eq!(answer.status, 200, "{number}: {}", answer.text());
                }
            });
        }
        clients.join_all().await;
    };
    tokio::select! {
        () = test => (),
        () = leaves_after_ten(listener) => unreachable!(),
    }
    assert!(proxy.metric("strait_upstream_connections_opened_total", &[]) > 10.0);
}
