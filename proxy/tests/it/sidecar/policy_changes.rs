//! Open connections when a new security policy forbids them.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hyper::ext::Protocol;
use hyper_util::rt::TokioIo;
use rustls::StreamOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::mutual_tls::{identity, mutual, resources};
use super::{Greeter, Sidecar, answering, get, read_line};
use crate::support::client::{Client, Front, get as request};
use crate::support::origin::{RawOrigin, empty, read_head};
use crate::support::pki::Authority;
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::Raw;
use crate::support::tls::Visitor;
use crate::support::{DEADLINE, eventually, until};

/// Sidecar of the workload at `app`, which accepts connections without capture at an address of its own.
struct Server {
    proxy: Proxy,
    at: SocketAddr,
    app: SocketAddr,
    protocol: &'static str,
    directory: tempfile::TempDir,
    ca: Authority,
}

impl Server {
    fn start(app: SocketAddr, protocol: &'static str, mode: &str, more: &[&str]) -> Self {
        let (directory, ca) = (tempfile::tempdir().unwrap(), Authority::new("mesh"));
        let at = free_address();
        let proxy = Start::new()
            .args(["--mode", "sidecar", "--outbound-listener", "off"])
            .args(["--inbound-listener", "off"])
            .args(identity(directory.path(), &ca, "web"))
            .args(more.iter().copied())
            .file("mesh.yaml", resources((at, app), protocol, mode))
            .start();
        Self {
            proxy,
            at,
            app,
            protocol,
            directory,
            ca,
        }
    }

    fn switch(&self, mode: &str) {
        let resources = resources((self.at, self.app), self.protocol, mode);
        self.proxy.write("mesh.yaml", resources);
    }

    /// Starts the sidecar of a client that connects to it with mesh TLS.
    fn client(&self, port_name: &str) -> Sidecar {
        let flags = identity(self.directory.path(), &self.ca, "client");
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let resources = [
            super::service("api", "10.96.0.1", (port_name, 80), self.at),
            mutual("api.default.svc.cluster.local"),
        ];
        Sidecar::start(&flags, resources)
    }
}

/// Whether bytes are echoed on a connection.
fn echoes(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.write_all(b"ask\n").is_ok() && stream.read_exact(&mut [0; 4]).is_ok()
}

/// Whether the peer closes or resets a connection without sending another byte.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    match stream.read(&mut [0]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

#[test]
fn plaintext_http1_is_told_to_close_once_the_policy_is_strict() {
    let app = answering();
    let server = Server::start(app.address, "HTTP", "PERMISSIVE", &[]);
    let (mut idle, mut busy) = (Raw::connect(server.at), Raw::connect(server.at));
    assert_eq!(get(&mut idle, "web").status, 200);
    server.switch("STRICT");
    eventually("the client is told", || {
        get(&mut busy, "web").has("connection: close")
    });
    assert!(busy.is_closed());
    assert!(idle.is_closed());
    let before = app.seen().len();
    assert!(
        Raw::connect(server.at)
            .send("GET / HTTP/1.1\r\nHost: web\r\n\r\n")
            .is_closed()
    );
    assert_eq!(app.seen().len(), before);
}

/// Clients that send requests while the policy changes.
const BUSY: usize = 48;

#[test]
fn no_plaintext_reply_after_the_switch_keeps_the_connection() {
    for mode in ["PERMISSIVE", "DISABLE"] {
        let app = answering();
        let server = Server::start(app.address, "HTTP", mode, &[]);
        let clients = (0..BUSY).map(|_| {
            let mut client = Raw::connect(server.at);
            assert_eq!(get(&mut client, "web").status, 200);
            std::thread::spawn(move || {
                loop {
                    client.send("GET / HTTP/1.1\r\nHost: web\r\n\r\n");
                    match client.try_reply() {
                        Ok(Some(reply))
                            if reply.status == 200 && !reply.has("connection: close") => {}
                        // without a reply the connection was idle
                        last => return last.ok().flatten(),
                    }
                }
            })
        });
        let clients: Vec<_> = clients.collect();
        server.switch("STRICT");
        let last = clients.into_iter().filter_map(|one| one.join().unwrap());
        for reply in last {
            assert!(reply.has("connection: close"), "{mode}: {reply:?}");
        }
    }
}

#[test]
fn http_inside_mutual_tls_is_told_to_close_once_it_is_disabled() {
    let app = answering();
    let server = Server::start(app.address, "HTTP", "STRICT", &[]);
    let pair = server
        .ca
        .server(&["spiffe://cluster.local/ns/default/sa/client"]);
    let mut visitor = Visitor::new(server.at, &server.ca).with(&pair);
    visitor.alpn = vec![b"istio-http/1.1".to_vec(), b"istio".to_vec()];
    let session = visitor.session("web.test");
    let mut client = StreamOwned::new(session, Raw::connect(server.at).stream());
    client.sock.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut head_of_reply = || {
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: web\r\n\r\n")
            .unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            client.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        String::from_utf8(head).unwrap()
    };
    assert!(!head_of_reply().contains("connection: close"));
    server.switch("DISABLE");
    eventually("the client is told", || {
        let head = head_of_reply();
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        head.contains("connection: close")
    });
    assert!(!matches!(client.read(&mut [0]), Ok(1..)));
}

#[tokio::test]
async fn plaintext_http2_gets_goaway_once_the_policy_is_strict() {
    let app = answering();
    let server = Server::start(app.address, "HTTP", "PERMISSIVE", &[]);
    let mut client = Client::connect(Front::H2, server.at).await;
    assert_eq!(client.call(request("/")).await.status, 200);
    server.switch("STRICT");
    until("the connection ends", async || {
        client.try_call(request("/")).await.is_err()
    })
    .await;
}

#[test]
fn plaintext_bytes_end_after_the_policy_drain_and_mutual_tls_goes_on() {
    let db = Greeter::start();
    let server = Server::start(
        db.address,
        "TCP",
        "PERMISSIVE",
        &["--policy-drain", "200ms"],
    );
    let client = server.client("tcp");
    let mut encrypted = client.leaves("10.96.0.1:80").stream();
    assert_eq!(read_line(&mut encrypted), "greeting\n");
    let mut plain = Raw::connect(server.at).stream();
    assert_eq!(read_line(&mut plain), "greeting\n");
    assert!(echoes(&mut plain));
    server.switch("STRICT");
    assert!(is_closed(&mut plain));
    assert!(echoes(&mut encrypted));
}

#[test]
fn plaintext_bytes_have_the_policy_drain_to_finish() {
    let db = Greeter::start();
    let server = Server::start(db.address, "TCP", "PERMISSIVE", &["--policy-drain", "1h"]);
    let mut plain = Raw::connect(server.at).stream();
    assert_eq!(read_line(&mut plain), "greeting\n");
    server.switch("STRICT");
    eventually("plain text is refused", || {
        Raw::connect(server.at)
            .send("query\n")
            .try_read(1)
            .is_none()
    });
    assert!(echoes(&mut plain));
}

#[test]
fn client_that_speaks_only_after_the_switch_is_refused() {
    let heard = Arc::<Mutex<Vec<u8>>>::default();
    let connections = Arc::<AtomicUsize>::default();
    let (list, count) = (Arc::clone(&heard), Arc::clone(&connections));
    let app = RawOrigin::start(move |_, mut stream| {
        count.fetch_add(1, Ordering::Relaxed);
        let mut bytes = [0; 64];
        while let Ok(read @ 1..) = stream.read(&mut bytes) {
            list.lock().unwrap().extend(&bytes[..read]);
            if stream.write_all(&bytes[..read]).is_err() {
                return;
            }
        }
    });
    let server = Server::start(app.address, "TCP", "PERMISSIVE", &["--policy-drain", "1h"]);
    assert!(echoes(&mut Raw::connect(server.at).stream()));
    let mut silent = Raw::connect(server.at).stream();
    // the proxy has connected the workload for it
    eventually("both are connected", || {
        connections.load(Ordering::Relaxed) == 2
    });
    server.switch("STRICT");
    eventually("plain text is refused", || {
        Raw::connect(server.at).send("new\n").try_read(1).is_none()
    });
    let _ = silent.write_all(b"late\n");
    assert!(is_closed(&mut silent));
    let heard = String::from_utf8(heard.lock().unwrap().clone()).unwrap();
    assert!(!heard.contains("late"), "{heard}");
}

#[test]
fn mutual_tls_ends_once_it_is_disabled() {
    let db = Greeter::start();
    let server = Server::start(db.address, "TCP", "STRICT", &["--policy-drain", "200ms"]);
    let client = server.client("tcp");
    let mut encrypted = client.leaves("10.96.0.1:80").stream();
    assert_eq!(read_line(&mut encrypted), "greeting\n");
    server.switch("DISABLE");
    assert!(is_closed(&mut encrypted));
}

/// Starts a workload that switches protocols, echoes, and never closes; the list keeps its connections open.
fn switching() -> (RawOrigin, Arc<Mutex<Vec<TcpStream>>>) {
    let kept = Arc::<Mutex<Vec<TcpStream>>>::default();
    let list = Arc::clone(&kept);
    let origin = RawOrigin::start(move |_, mut stream| {
        list.lock().unwrap().push(stream.try_clone().unwrap());
        read_head(&mut stream);
        let switched =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        stream.write_all(switched.as_bytes()).unwrap();
        let mut rest = [0; 64];
        while let Ok(read @ 1..) = stream.read(&mut rest) {
            stream.write_all(&rest[..read]).unwrap();
        }
    });
    (origin, kept)
}

#[test]
fn upgraded_plaintext_connection_ends_after_the_policy_drain() {
    for is_half_closed in [false, true] {
        let (app, _kept) = switching();
        let more = ["--policy-drain", "200ms"];
        let server = Server::start(app.address, "HTTP", "PERMISSIVE", &more);
        let mut client = Raw::connect(server.at);
        client.send(
            "GET / HTTP/1.1\r\nHost: web\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        );
        assert_eq!(client.reply().status, 101);
        client.send("ping");
        assert_eq!(client.read(4), b"ping");
        if is_half_closed {
            client.finish();
        }
        server.switch("STRICT");
        assert!(client.is_closed(), "half-closed: {is_half_closed}");
    }
}

#[tokio::test]
async fn upgraded_plaintext_stream_ends_after_the_policy_drain() {
    for is_half_closed in [false, true] {
        let (app, _kept) = switching();
        let more = ["--policy-drain", "200ms"];
        let server = Server::start(app.address, "HTTP", "PERMISSIVE", &more);
        let client = Client::connect(Front::H2, server.at).await;
        let mut sender = client.http2_handle().unwrap();
        let mut request = hyper::Request::connect("http://web/")
            .header("sec-websocket-version", "13")
            .body(empty())
            .unwrap();
        let protocol = Protocol::from_static("websocket");
        request.extensions_mut().insert(protocol);
        sender.ready().await.unwrap();
        let response = sender.send_request(request).await.unwrap();
        let mut io = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
        io.write_all(b"ping").await.unwrap();
        io.read_exact(&mut [0; 4]).await.unwrap();
        if is_half_closed {
            io.shutdown().await.unwrap();
        }
        server.switch("STRICT");
        let what = format!("the tunnel ends, half-closed: {is_half_closed}");
        until(&what, async || {
            server.proxy.metric("strait_upgrades_active", &[]) == 0.0
        })
        .await;
    }
}
