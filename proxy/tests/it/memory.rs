//! Memory used by slow peers, and released afterwards.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use bytes::Bytes;
use hyper::Response;

use crate::support::client::{Client, Front, get};
use crate::support::eventually;
use crate::support::mesh::everything_to;
use crate::support::origin::{Back, Origin, full};
use crate::support::proxy::{Proxy, Start};

/// Size of a body that far exceeds the sockets' and windows' buffers, in bytes.
const LARGE: usize = 16 << 20;

/// Number of concurrent peers of a kind.
const PEERS: usize = 100;

/// Number of equal memory readings in a row after which memory counts as settled.
const STEADY_LOOKS: u32 = 40;

/// Starts an origin and a proxy before it. The origin sends a large body for `/large`, reads no body and never answers
/// for `/hangs`, and answers other requests immediately.
fn before(back: Back) -> (Origin, Proxy) {
    let large = Bytes::from(vec![b'x'; LARGE]);
    let origin = Origin::start(back, move |request| {
        let large = large.clone();
        async move {
            match request.uri().path() {
                "/large" => Response::new(full(large)),
                "/hangs" => std::future::pending().await,
                _ => Response::new(full("quick")),
            }
        }
    });
    let start = Start::new().args(["--concurrency", "1"]);
    let mesh = everything_to(start.edge(), &origin);
    let proxy = start.file("mesh.yaml", mesh).start();
    (origin, proxy)
}

/// Starts a client that sends this head, then writes a body for as long as the proxy accepts it, and reads nothing.
fn peer(edge: SocketAddr, head: &str) -> TcpStream {
    let mut stream = TcpStream::connect(edge).expect("connected");
    stream.write_all(head.as_bytes()).expect("written");
    stream.set_nonblocking(true).expect("an open socket");
    stream
}

/// Returns the resident memory in KiB once it has settled, while `push` is called repeatedly.
fn steady_kib(proxy: &Proxy, mut push: impl FnMut()) -> u64 {
    let (mut last, mut looks) = (0, 0);
    eventually("memory stays as it is", || {
        push();
        let now = proxy.resident_kib();
        looks = if now == last { looks + 1 } else { 0 };
        last = now;
        looks == STEADY_LOOKS
    });
    last
}

/// Checks that peers that send this head, and a body if it has one, use at most `kib_each`.
///
/// Waits for the limit to be met: freed memory counts as resident until the allocator returns it.
fn peers_use_at_most(kib_each: u64, back: Back, head: &str) {
    let (_origin, proxy) = before(back);
    let quick = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let piece = vec![0; 64 * 1024];
    // what the first requests bring up is not theirs
    let mut first: Vec<_> = (0..PEERS).map(|_| peer(proxy.edge, quick)).collect();
    for stream in &mut first {
        stream.set_nonblocking(false).expect("an open socket");
        stream.read_exact(&mut [0; 16]).expect("an answer");
    }
    drop(first);
    let before = steady_kib(&proxy, || {});
    let mut peers: Vec<_> = (0..PEERS).map(|_| peer(proxy.edge, head)).collect();
    let sends = head.starts_with("POST");
    let after = steady_kib(&proxy, || {
        for stream in peers.iter_mut().filter(|_| sends) {
            while matches!(stream.write(&piece), Ok(1..)) {}
        }
    });
    assert!(after > before, "{before} KiB, then {after}");
    let most = before + kib_each * PEERS as u64;
    let what = format!("{back:?}: {after} KiB become {most} or fewer");
    eventually(&what, || proxy.resident_kib() <= most);
}

const DOWNLOAD: &str = "GET /large HTTP/1.1\r\nHost: a\r\n\r\n";
const UPLOAD: &str = "POST /hangs HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n";

/// Opens connections that have made one request each.
fn idle(proxy: &Proxy, count: usize) -> Vec<TcpStream> {
    let connect = |_| {
        let mut stream = TcpStream::connect(proxy.edge).expect("connected");
        let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        stream.write_all(request).expect("written");
        stream.read_exact(&mut [0; 16]).expect("an answer");
        stream
    };
    (0..count).map(connect).collect()
}

/// Maximum memory of an idle connection, in bytes; about 830 bytes are live.
const IDLE_BYTES_MAX: u64 = 1100;

#[test]
fn idle_connection_uses_little_memory() {
    let (_origin, proxy) = before(Back::H1);
    // what the first connections bring up is not theirs
    let _first = idle(&proxy, 200);
    let before = steady_kib(&proxy, || {});
    let idle = idle(&proxy, 2_000);
    let after = steady_kib(&proxy, || {});
    let most = before + IDLE_BYTES_MAX * idle.len() as u64 / 1024;
    let what = format!("{before} KiB, then {after}, become {most} or fewer");
    eventually(&what, || proxy.resident_kib() <= most);
}

#[test]
fn slow_reader_uses_little_memory() {
    for back in [Back::H1, Back::H2] {
        peers_use_at_most(160, back, DOWNLOAD);
    }
}

#[test]
fn unread_upload_uses_little_memory() {
    for back in [Back::H1, Back::H2] {
        peers_use_at_most(128, back, UPLOAD);
    }
}

#[tokio::test]
async fn paused_body_resumes_and_arrives_whole() {
    for back in [Back::H1, Back::H2] {
        let (_origin, proxy) = before(back);
        let mut client = Client::connect(Front::H1, proxy.edge).await;
        for _ in 0..2 {
            let answer = client.call(get("/large")).await;
            assert_eq!(answer.body.len(), LARGE, "{back:?}");
            assert!(answer.body.iter().all(|byte| *byte == b'x'), "{back:?}");
        }
    }
}

#[test]
fn memory_of_hung_requests_is_returned() {
    let (_origin, proxy) = before(Back::H1);
    let before = steady_kib(&proxy, || {});
    let filling = "x".repeat(20_000);
    let head = format!("GET /hangs HTTP/1.1\r\nHost: a\r\nX-Filling: {filling}\r\n\r\n");
    let hung: Vec<_> = (0..1_000).map(|_| peer(proxy.edge, &head)).collect();
    eventually("all hang", || {
        proxy.metric("strait_requests_active", &[]) >= 1_000.0
    });
    let peak = proxy.resident_kib();
    assert!(peak > before + 40_000, "{before} KiB, then {peak}");
    drop(hung);
    let wanted = before + (peak - before) / 4;
    eventually("the memory is returned", || proxy.resident_kib() <= wanted);
}
