mod http1;

mod idle;

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use http_body_util::Empty;

use super::*;
use crate::telemetry::{BuildInfo, Counter, Telemetry, WorkerId};
use crate::upstream::{Alternates, Buffers, Client, Protocol, Reach};
use traffic::error::Kind;
use traffic::registry::{Address, ClusterState, EndpointState, Registry};

const CLIENT: Client = Client {
    source: NOWHERE,
    destination: NOWHERE,
};

const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// A pool with an endpoint, and its counters.
struct World {
    pools: Pools,
    telemetry: Arc<Telemetry>,
    cluster: Arc<ClusterState>,
    state: Arc<EndpointState>,
    settings: PoolSettings,
    protocol: Protocol,
    address: Address,
    alternates: Alternates,
}

impl World {
    fn new(address: Address, alternates: Alternates) -> Self {
        let build = BuildInfo {
            version: String::new(),
            revision: String::new(),
        };
        let telemetry = Telemetry::new(1, build);
        let registry = Registry::default();
        let cluster = registry.cluster("outbound|80||a.test");
        Self {
            pools: Pools::new(Counts::new(Arc::clone(&telemetry), WorkerId(0))),
            state: registry.endpoint(&cluster.name, &address),
            cluster,
            telemetry,
            settings: PoolSettings {
                connect_timeout: Duration::from_secs(10),
                ..PoolSettings::default()
            },
            protocol: Protocol::Http1,
            address,
            alternates,
        }
    }

    /// Returns an endpoint whose DNS name has these addresses.
    fn of_name(addresses: &[SocketAddr]) -> Self {
        let alternates = Alternates::SameName(addresses.into());
        Self::new(Address::Ip(addresses[0]), alternates)
    }

    fn target(&self) -> PoolTarget<'_> {
        PoolTarget {
            phases: None,
            client: &CLIENT,
            tls: None,
            reach: Reach {
                address: &self.address,
                alternates: &self.alternates,
            },
            cluster: &self.cluster,
            state: &self.state,
            protocol: self.protocol,
            settings: &self.settings,
        }
    }

    async fn get(&self) -> Result<Response<Incoming>, Failed> {
        tokio::task::LocalSet::new().run_until(self.send()).await
    }

    /// Sends a request; must run within a local set.
    async fn send(&self) -> Result<Response<Incoming>, Failed> {
        self.send_by(ConnectionChoice::Any).await
    }

    async fn send_by(&self, choice: ConnectionChoice) -> Result<Response<Incoming>, Failed> {
        let request = Request::get("http://a.test/").header("host", "a.test");
        let request = request.body(Empty::new()).expect("a request");
        match self.protocol {
            Protocol::Http1 => {
                let (mut parts, body) = request.into_parts();
                let buffer = Rc::new(Buffers::default()).take();
                let mut message = Some(Message::new(buffer, &mut parts, body));
                let sent = self.pools.send_http1(self.target(), &mut message, choice);
                sent.await
            }
            Protocol::Http2 => {
                let target = self.target();
                let mut request = Some(request);
                let sent = self.pools.send_http2(target, &mut request, None, choice);
                sent.await
            }
        }
    }

    fn count(&self, counter: Counter) -> u64 {
        self.telemetry.counters.counter(counter)
    }
}

/// Reads a head and answers it, in a thread.
fn answer_one(mut stream: impl Read + Write + Send + 'static) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
        head.push(byte[0]);
    }
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
}

fn origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || answer_one(stream.expect("a connection")));
        }
    });
    address
}

/// Returns an address that refuses connections: no other test binds to this loopback address.
fn refuses(last: u8) -> SocketAddr {
    let listener = TcpListener::bind(SocketAddr::from(([127, 9, 9, last], 0))).expect("a port");
    listener.local_addr().expect("an address")
}

#[tokio::test]
async fn refused_address_falls_back_to_another_of_the_name() {
    let live = origin();
    let dead = [refuses(1), refuses(2)];
    let world = World::of_name(&[dead[0], dead[1], live]);
    let sent = world.get().await.expect("an answer");
    assert_eq!(sent.status(), 200);
    assert_eq!(sent.body().ends().remote, Address::Ip(live));
    let local = sent.body().ends().local.expect("an address");
    assert!(local.ip().is_loopback() && local != live);
    assert_eq!(world.count(Counter::ConnectRefused), 2);
    assert_eq!(world.count(Counter::UpstreamOpened), 1);
}

#[tokio::test]
async fn unresponsive_address_is_overtaken_by_the_next() {
    // Its accept queue is full, so a further connection hangs.
    let silent = socket2::Socket::new(
        socket2::Domain::IPV4,
        socket2::Type::STREAM,
        Some(socket2::Protocol::TCP),
    )
    .expect("a socket");
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    silent.bind(&any.into()).expect("a port");
    silent.listen(0).expect("to listen");
    let address = silent.local_addr().expect("an address");
    let address = address.as_socket().expect("an IP address");
    let mut held = Vec::new();
    loop {
        let wait = Duration::from_millis(50);
        match std::net::TcpStream::connect_timeout(&address, wait) {
            Ok(stream) if held.len() < 64 => held.push(stream),
            Ok(_) => return, // a kernel without a limit
            Err(_) => break,
        }
    }
    let live = origin();
    let world = World::of_name(&[address, live]);
    let sent = world.get().await.expect("an answer");
    assert_eq!(sent.body().ends().remote, Address::Ip(live));
    assert_eq!(world.count(Counter::ConnectTimeout), 0);
}

#[tokio::test]
async fn failure_of_all_addresses_is_one_failed_connection() {
    let world = World::of_name(&[refuses(3), refuses(4)]);
    let failed = world.get().await.err().expect("no answer");
    assert_eq!(failed.error.kind(), Kind::ConnectFailed);
    assert_eq!(world.count(Counter::ConnectRefused), 2);
}

#[tokio::test]
async fn name_without_addresses_is_a_failed_connection() {
    let registry = Registry::default();
    registry.set_resolution("a.test", Vec::new());
    let alternates = Alternates::Name {
        resolution: registry.resolution("a.test").expect("the name"),
        port: 80,
    };
    let address = Address::Name {
        name: "a.test".into(),
        port: 80,
    };
    let world = World::new(address, alternates);
    let failed = world.get().await.err().expect("no answer");
    assert_eq!(failed.error.kind(), Kind::ConnectFailed);
}

#[tokio::test]
async fn abstract_unix_sockets_are_supported() {
    let name = format!("strait-test-{}", std::process::id());
    let at = std::os::unix::net::SocketAddr::from_abstract_name(&name).expect("a name");
    let listener = UnixListener::bind_addr(&at).expect("a socket");
    std::thread::spawn(move || answer_one(listener.accept().expect("a connection").0));
    let path = format!("@{name}");
    let world = World::new(Address::Unix(Path::new(&path).into()), Alternates::None);
    let sent = world.get().await.expect("an answer");
    assert_eq!(sent.status(), 200);
    assert_eq!(sent.body().ends().local, None);
}

/// Starts an HTTP/2 origin that allows one stream at a time and answers when the test permits.
async fn one_by_one(gate: Rc<tokio::sync::Semaphore>) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::task::spawn_local(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let gate = Rc::clone(&gate);
            tokio::task::spawn_local(async move {
                let mut builder = h2::server::Builder::new();
                builder.max_concurrent_streams(1);
                let handshake = builder.handshake::<_, Bytes>(stream).await;
                let mut connection = handshake.expect("HTTP/2");
                while let Some(Ok((_, mut respond))) = connection.accept().await {
                    let gate = Rc::clone(&gate);
                    tokio::task::spawn_local(async move {
                        gate.acquire().await.expect("an open gate").forget();
                        drop(respond.send_response(Response::new(()), true));
                    });
                }
            });
        }
    });
    address
}

#[tokio::test]
async fn queue_for_streams_is_bounded() {
    let world = World {
        protocol: Protocol::Http2,
        ..World::of_name(&[silent()])
    };
    let requests = (0..WAITING_REQUESTS_MAX + 10).map(|_| Box::pin(world.send()));
    let mut requests: Vec<_> = requests.collect();
    let mut overflowed = 0;
    let poll_all = std::future::poll_fn(|cx| {
        for request in &mut requests {
            if let std::task::Poll::Ready(result) = request.as_mut().poll(cx) {
                let failed = result.err().expect("no answer");
                assert_eq!(failed.error.kind(), Kind::Overflow);
                overflowed += 1;
            }
        }
        std::task::Poll::Ready(())
    });
    tokio::task::LocalSet::new().run_until(poll_all).await;
    assert_eq!(overflowed, 10);
}

/// Starts an origin that accepts connections and never answers.
fn silent() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || listener.incoming().collect::<Vec<_>>());
    address
}

#[tokio::test]
async fn cancelled_request_does_not_block_the_queue() {
    let run = async {
        let gate = Rc::new(tokio::sync::Semaphore::new(0));
        let world = World {
            protocol: Protocol::Http2,
            ..World::of_name(&[one_by_one(Rc::clone(&gate)).await])
        };
        let mut first = Box::pin(world.send());
        let mut left = Box::pin(world.send());
        let last = world.send();
        // All three wait, and then the middle one is dropped.
        for request in [&mut first, &mut left] {
            let once = std::future::poll_fn(|cx| {
                assert!(request.as_mut().poll(cx).is_pending());
                std::task::Poll::Ready(())
            });
            once.await;
        }
        drop(left);
        gate.add_permits(2);
        let (first, last) = tokio::join!(first, last);
        assert_eq!(first.expect("an answer").status(), 200);
        assert_eq!(last.expect("an answer").status(), 200);
        assert!(world.count(Counter::UpstreamOpened) <= 2);
    };
    tokio::task::LocalSet::new().run_until(run).await;
}

#[tokio::test]
async fn retry_uses_a_newer_http2_connection() {
    // The first connection closes at its second request; the second one answers.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let run = async {
        listener.set_nonblocking(true).expect("a socket");
        let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
        tokio::task::spawn_local(async move {
            for connection in 0.. {
                let (stream, _) = listener.accept().await.expect("a connection");
                let handshake = h2::server::handshake(stream).await;
                let mut h2 = handshake.expect("HTTP/2");
                let mut number = 0;
                while let Some(Ok((_, mut respond))) = h2.accept().await {
                    number += 1;
                    if connection == 0 && number == 2 {
                        break; // closes it
                    }
                    drop(respond.send_response(Response::new(()), true));
                }
            }
        });
        let world = World {
            protocol: Protocol::Http2,
            ..World::of_name(&[address])
        };
        assert_eq!(world.send().await.expect("an answer").status(), 200);
        let failed = world.send().await.err().expect("no answer");
        assert!(failed.reused);
        assert_eq!(failed.error.kind(), Kind::UpstreamClosed);
        let sent = world.send_by(ConnectionChoice::Fresh).await;
        assert_eq!(sent.expect("an answer").status(), 200);
        assert_eq!(world.count(Counter::UpstreamOpened), 2);
    };
    tokio::task::LocalSet::new().run_until(run).await;
}
