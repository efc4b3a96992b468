//! Raw TCP ports, in plain text or inside mesh TLS (PERMISSIVE): detection of the side that speaks first.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustls::{ClientConnection, StreamOwned};
use socket2::SockRef;

use super::mutual_tls::{identity, resources};
use super::{Greeter, read_line};
use crate::support::DEADLINE;
use crate::support::pki::Authority;
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::Raw;
use crate::support::tls::Visitor;

/// Sidecar in PERMISSIVE mode, and its workload.
struct Server {
    proxy: Proxy,
    at: SocketAddr,
    ca: Authority,
    _directory: tempfile::TempDir,
}

impl Server {
    /// Starts the sidecar of a workload whose port declares this protocol; none if it is empty.
    fn start(app: SocketAddr, protocol: &str, more: &[&str]) -> Self {
        let (directory, ca) = (tempfile::tempdir().unwrap(), Authority::new("mesh"));
        let at = free_address();
        let proxy = Start::new()
            .args(["--mode", "sidecar", "--outbound-listener", "off"])
            .args(["--inbound-listener", "off", "--concurrency", "1"])
            .args(identity(directory.path(), &ca, "web"))
            .args(more.iter().copied())
            .file("mesh.yaml", resources((at, app), protocol, "PERMISSIVE"))
            .start();
        Self {
            proxy,
            at,
            ca,
            _directory: directory,
        }
    }

    /// Opens a connection as a mesh client, and sends nothing.
    fn visitor(&self, alpn: &[&str]) -> (ClientConnection, TcpStream) {
        let pair = self
            .ca
            .server(&["spiffe://cluster.local/ns/default/sa/client"]);
        let mut visitor = Visitor::new(self.at, &self.ca).with(&pair);
        visitor.alpn = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        // before it connects: what takes long here must not make its first message late
        let session = visitor.session("web.test");
        (session, Raw::connect(self.at).stream())
    }

    fn counted(&self, reason: &str) -> f64 {
        let labels = [("reason", reason)];
        self.proxy
            .metric("strait_downstream_tls_errors_total", &labels)
    }
}

/// Starts a workload that passes its connections to the test.
fn listening() -> (SocketAddr, Receiver<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, accepted) = channel();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            client.set_read_timeout(Some(DEADLINE)).unwrap();
            if sender.send(client).is_err() {
                return;
            }
        }
    });
    (address, accepted)
}

#[test]
fn late_tls_of_the_mesh_is_decrypted_and_not_handed_to_the_workload() {
    for protocol in ["TCP", "MYSQL", "REDIS"] {
        let (app, accepted) = listening();
        let server = Server::start(app, protocol, &[]);
        let (session, stream) = server.visitor(&["istio"]);
        // the workload is connected before the client speaks, however late that is
        let mut workload = accepted.recv_timeout(DEADLINE).unwrap();
        let mut client = StreamOwned::new(session, stream);
        client.write_all(b"ask\n").unwrap();
        assert_eq!(read_line(&mut workload), "ask\n", "{protocol}");
        workload.write_all(b"answer").unwrap();
        let mut answer = [0; 6];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"answer");
    }
}

#[test]
fn plain_client_that_speaks_first_is_passed_on() {
    let (app, accepted) = listening();
    let server = Server::start(app, "TCP", &[]);
    let mut client = Raw::connect(server.at);
    let mut workload = accepted.recv_timeout(DEADLINE).unwrap();
    client.send("ask\n");
    assert_eq!(read_line(&mut workload), "ask\n");
    // TLS that is not of the mesh is the workload's own
    let (mut session, mut stream) = server.visitor(&["other"]);
    let mut workload = accepted.recv_timeout(DEADLINE).unwrap();
    session.write_tls(&mut stream).unwrap();
    let mut first = [0; 2];
    workload.read_exact(&mut first).unwrap();
    assert_eq!(first, [0x16, 3]);
}

#[test]
fn server_that_speaks_first_is_heard_without_waiting() {
    let db = Greeter::start();
    let server = Server::start(db.address, "MYSQL", &[]);
    let greeted = || {
        let began = Instant::now();
        let mut stream = Raw::connect(server.at).stream();
        assert_eq!(read_line(&mut stream), "greeting\n");
        began.elapsed()
    };
    // the first of an address is waited for, in case that its TLS is on its way
    greeted();
    let shortest = (0..20).map(|_| greeted()).min().unwrap();
    assert!(shortest < Duration::from_millis(50), "{shortest:?}");
}

#[test]
fn tls_of_the_mesh_after_the_greeting_ends_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server::start(listener.local_addr().unwrap(), "TCP", &[]);
    let (mut session, mut stream) = server.visitor(&["istio-peer-exchange", "istio"]);
    let (mut workload, _) = listener.accept().unwrap();
    workload.set_read_timeout(Some(DEADLINE)).unwrap();
    workload.write_all(b"greeting\n").unwrap();
    assert_eq!(read_line(&mut stream), "greeting\n");
    session.write_tls(&mut stream).unwrap();
    let mut rest = Vec::new();
    let _ = workload.read_to_end(&mut rest);
    assert_eq!(rest, b"", "the workload got none of it");
    let _ = stream.read_to_end(&mut rest);
    assert_eq!(rest, b"");
}

#[test]
fn reset_by_the_workload_before_either_side_speaks_is_passed_on() {
    let (app, accepted) = listening();
    let server = Server::start(app, "TCP", &[]);
    std::thread::spawn(move || {
        for workload in accepted {
            let reset_on_close = Some(Duration::ZERO);
            SockRef::from(&workload).set_linger(reset_on_close).unwrap();
        }
    });
    // one so early that the proxy has not noticed the connection is a failure to connect
    crate::support::eventually("the client is reset", || {
        let mut client = Raw::connect(server.at).stream();
        let end = client.read(&mut [0]);
        end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset)
    });
}

/// Delay of a client's first message after a TCP retransmission.
const LATE: Duration = Duration::from_millis(400);

#[test]
fn greeting_waits_for_late_tls_of_a_client_that_spoke_it_before() {
    let db = Greeter::start();
    let server = Server::start(db.address, "MYSQL", &[]);
    let greeted = |late: Duration| {
        let (session, stream) = server.visitor(&["istio"]);
        // the delay itself: nothing can be waited for
        std::thread::sleep(late);
        let mut client = StreamOwned::new(session, stream);
        let mut greeting = [0; 9];
        client
            .read_exact(&mut greeting)
            .is_ok_and(|()| greeting == *b"greeting\n")
    };
    crate::support::eventually("one is in time", || greeted(Duration::ZERO));
    assert!(greeted(LATE));
    // clients of the same address that use plain text do not make it impatient
    let mut plain = Raw::connect(server.at).stream();
    assert_eq!(read_line(&mut plain), "greeting\n");
    plain.write_all(b"auth\n").unwrap();
    assert_eq!(read_line(&mut plain), "auth\n");
    assert!(greeted(LATE));
}

#[test]
fn alpn_of_bytes_on_an_undeclared_port_is_not_waited_for() {
    let db = Greeter::start();
    // so long that only a connection that is not looked into ends in time
    let slow = ["--protocol-detection-timeout", "1h"];
    let server = Server::start(db.address, "''", &slow);
    for alpn in [&["istio"][..], &["istio-peer-exchange", "istio"]] {
        let (session, stream) = server.visitor(alpn);
        let mut client = StreamOwned::new(session, stream);
        let mut greeting = [0; 9];
        client.read_exact(&mut greeting).unwrap();
        assert_eq!(&greeting, b"greeting\n", "{alpn:?}");
    }
    assert_eq!(server.counted("handshake_timeout"), 0.0);
}

#[test]
fn alpn_of_bytes_on_a_port_that_declares_http_carries_requests() {
    for protocol in ["HTTP", "GRPC"] {
        let (app, accepted) = listening();
        let server = Server::start(app, protocol, &[]);
        let (session, stream) = server.visitor(&["istio"]);
        let mut client = StreamOwned::new(session, stream);
        client
            .write_all(b"GET / HTTP/1.1\r\nhost: web\r\n\r\n")
            .unwrap();
        let mut workload = accepted.recv_timeout(DEADLINE).unwrap();
        if protocol == "GRPC" {
            // HTTP/2 to the workload: the request was read
            assert_eq!(read_line(&mut workload), "PRI * HTTP/2.0\r\n");
            continue;
        }
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            head += &read_line(&mut workload);
        }
        let id = "URI=spiffe://cluster.local/ns/default/sa/client";
        assert!(head.contains(id), "{head}");
    }
}
