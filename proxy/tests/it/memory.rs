//! What a peer that does not keep up may cost, and what is left of it afterwards.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use bytes::Bytes;
use hyper::Response;

use crate::support::client::{Client, Front, get};
use crate::support::eventually;
use crate::support::mesh::everything_to;
use crate::support::origin::{Back, Origin, full};
use crate::support::proxy::{Proxy, Start};

/// Far more than sockets and windows on the way hold.
const LARGE: usize = 16 << 20;

/// Peers of a kind, at the same time.
const PEERS: usize = 100;

/// The same KiB at so many looks in a row: nothing moves any more.
const STEADY_LOOKS: u32 = 40;

/// An origin that sends a large body for `/large`, reads nothing of a body and never answers for `/hangs`, and is quick
/// otherwise; and a proxy before it.
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

/// A client that sends this, then goes on writing a body for as long as anybody takes it, and reads nothing.
fn peer(edge: SocketAddr, head: &str) -> TcpStream {
    let mut stream = TcpStream::connect(edge).expect("connected");
    stream.write_all(head.as_bytes()).expect("written");
    stream.set_nonblocking(true).expect("an open socket");
    stream
}

/// KiB that the process has once nothing moves any more, while `push` goes on.
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

/// Peers that send this head, and a body after it if there is one, use at most `kib_each`.
///
/// The bound is waited for: what was freed meanwhile is a part of the resident memory until the allocator returns it.
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

/// Connections that made one request each.
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

/// Of about 830 bytes that are live.
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
