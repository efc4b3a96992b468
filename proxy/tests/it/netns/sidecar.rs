//! Traffic between two workloads with sidecars, captured by the kernel.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use hyper::Response;

use super::lab::{Lab, Node, WORKLOAD};
use super::pod::{Interception, Sidecar, echo, expect, serve, services, vip};
use crate::support::client::{Answer, Client, Front, get};
use crate::support::mesh::documents;
use crate::support::origin::{Back, Origin, full};
use crate::support::pki::Authority;
use crate::support::raw::{Raw, Reply};
use crate::support::tls::Visitor;

/// Starts an HTTP server of the workload at a node.
fn web(node: &Node, port: u16, back: Back) -> Origin {
    Origin::start_on(node.listen(port), back, |_| async {
        Response::new(full("web"))
    })
}

/// Sends a request as the workload at a node.
fn request(node: &Node, to: SocketAddr, host: &str) -> Reply {
    let mut raw = node.inside_as(WORKLOAD, || Raw::connect(to));
    let text = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    raw.send(text).reply()
}

/// Opens a connection as the workload at a node.
fn connect(node: &Node, to: SocketAddr) -> TcpStream {
    node.connect(WORKLOAD, to).unwrap()
}

async fn http2(node: &Node, to: SocketAddr) -> Client {
    let stream = connect(node, to);
    stream.set_nonblocking(true).unwrap();
    let stream = tokio::net::TcpStream::from_std(stream).unwrap();
    Client::over(Front::H2, stream).await.unwrap()
}

fn outbound_policy(mode: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {{name: default, namespace: default}}\nspec:\n  \
         outboundTrafficPolicy: {{mode: {mode}}}\n"
    )
}

#[test]
fn requests_pass_both_sidecars() {
    let Some(lab) = Lab::new(2) else {
        return;
    };
    let [client, server] = lab.nodes();
    let mesh = services(server);
    let origin = web(server, 8080, Back::H1);
    let here = Sidecar::start(client, "client", &mesh, &[]);
    let there = Sidecar::start(server, "web", &mesh, &[]);
    for (index, host) in ["web", "web6"].into_iter().enumerate() {
        let reply = request(client, vip(index, 80), host);
        assert_eq!((reply.status, &*reply.body), (200, &b"web"[..]), "{host}");
    }
    assert_eq!(origin.seen().len(), 2);
    let sent = here.metric("istio_requests_total", &["reporter=\"source\""]);
    let received = there.metric("istio_requests_total", &["reporter=\"destination\""]);
    assert_eq!((sent, received), (2.0, 2.0));
}

#[tokio::test]
async fn http2_and_grpc_pass_both_sidecars() {
    let Some(lab) = Lab::new(2) else {
        return;
    };
    let [client, server] = lab.nodes();
    let mesh = services(server);
    let mut backend = Command::new(env!("CARGO_BIN_EXE_strait"));
    backend.args(["backend", "--listen", "[::]:8081"]);
    let mut backend = server.spawn(WORKLOAD, backend);
    let _here = Sidecar::start(client, "client", &mesh, &[]);
    let _there = Sidecar::start(server, "web", &mesh, &[]);
    for (index, host) in ["web", "web6"].into_iter().enumerate() {
        let mut connection = http2(client, vip(index, 81)).await;
        let mut call = get("/");
        *call.uri_mut() = format!("http://{host}:81/").parse().unwrap();
        let answer: Answer = connection.call(call).await;
        assert_eq!(answer.status, 200, "{host}: {}", answer.text());
        let mut call = get("/");
        *call.uri_mut() = format!("http://{host}:81/shop.Cart/Get").parse().unwrap();
        let grpc = "application/grpc".parse().unwrap();
        call.headers_mut().insert("content-type", grpc);
        let answer = connection.call(call).await;
        let status = answer
            .trailers
            .as_ref()
            .and_then(|all| all.get("grpc-status"));
        assert_eq!(
            status.map(|status| status.as_bytes()),
            Some(&b"0"[..]),
            "{host}"
        );
    }
    backend.kill().unwrap();
    backend.wait().unwrap();
}

#[test]
fn raw_tcp_and_servers_that_speak_first_pass_both_sidecars() {
    let Some(lab) = Lab::new(2) else {
        return;
    };
    let [client, server] = lab.nodes();
    let mesh = services(server);
    serve(server.listen(5001), echo);
    serve(server.listen(3307), |mut stream| {
        stream.write_all(b"J\0\0\0\n8.0.36\0").unwrap();
        echo(stream);
    });
    // protocol detection must not wait for the client on a port that declares its protocol
    let never = ["--protocol-detection-timeout", "1h"];
    let _here = Sidecar::start(client, "client", &mesh, &never);
    let _there = Sidecar::start(server, "web", &mesh, &never);
    for index in [0, 1] {
        let mut tcp = connect(client, vip(index, 5000));
        tcp.write_all(b"\0bytes").unwrap();
        expect(&mut tcp, b"\0bytes");
        let mut mysql = connect(client, vip(index, 3306));
        expect(&mut mysql, b"J\0\0\0\n8.0.36\0");
        mysql.write_all(b"login").unwrap();
        expect(&mut mysql, b"login");
    }
}

#[test]
fn undeclared_port_of_a_server_that_speaks_first_waits_for_the_detection_timeout_only() {
    let Some(lab) = Lab::new(2) else {
        return;
    };
    let [client, server] = lab.nodes();
    let mesh = services(server);
    serve(server.listen(7001), |mut stream| {
        stream.write_all(b"220 ready\r\n").unwrap();
        echo(stream);
    });
    let soon = ["--protocol-detection-timeout", "100ms"];
    let here = Sidecar::start(client, "client", &mesh, &soon);
    let _there = Sidecar::start(server, "web", &mesh, &soon);
    let mut smtp = connect(client, vip(0, 7000));
    expect(&mut smtp, b"220 ready\r\n");
    assert!(here.metric("strait_protocol_detection_timeouts_total", &[]) >= 1.0);
}

#[test]
fn tls_of_the_workload_is_passed_through() {
    let Some(lab) = Lab::new(2) else {
        return;
    };
    let [client, server] = lab.nodes();
    let mesh = services(server);
    serve(server.listen(8443), echo);
    let _here = Sidecar::start(client, "client", &mesh, &[]);
    let _there = Sidecar::start(server, "web", &mesh, &[]);
    let authority = Authority::new("workloads");
    for (index, host) in ["web", "web6"].into_iter().enumerate() {
        let to = vip(index, 443);
        let hello = Visitor::new(to, &authority).hello(host);
        let mut tls = connect(client, to);
        tls.write_all(&hello).unwrap();
        expect(&mut tls, &hello);
    }
}

#[test]
fn headless_service_is_reached_at_the_address_of_its_endpoint() {
    let Some(lab) = Lab::new(2) else {
        return;
    };
    let [client, server] = lab.nodes();
    let mesh = services(server);
    let _origin = web(server, 8080, Back::H1);
    serve(server.listen(5001), echo);
    let here = Sidecar::start(client, "client", &mesh, &[]);
    let _there = Sidecar::start(server, "web", &mesh, &[]);
    let [to, _] = server.addresses(8080);
    assert_eq!(request(client, to, "db").status, 200);
    let [to, _] = server.addresses(5001);
    let mut tcp = connect(client, to);
    tcp.write_all(b"bytes").unwrap();
    expect(&mut tcp, b"bytes");
    drop(here);
}

/// Destination without a sidecar, which no resource names. Port 80 is a port of the mesh, so the Host may be unknown
/// there.
#[test]
fn unknown_destinations_pass_or_are_refused() {
    let Some(lab) = Lab::new(3) else {
        return;
    };
    let [client, server, outside] = lab.nodes();
    let origin = web(outside, 80, Back::H1);
    serve(outside.listen(5001), echo);
    let destinations = || {
        let http = outside.addresses(80).into_iter();
        http.zip(outside.addresses(5001))
    };
    let allowing = Sidecar::start(client, "client", &services(server), &[]);
    for (http, tcp) in destinations() {
        assert_eq!(request(client, http, "outside.test").status, 200);
        let mut raw = connect(client, tcp);
        raw.write_all(b"\0bytes").unwrap();
        expect(&mut raw, b"\0bytes");
    }
    assert_eq!(origin.seen().len(), 2);
    drop(allowing);
    let mesh = documents([services(server), outbound_policy("REGISTRY_ONLY")]);
    let _refusing = Sidecar::start(client, "client", &mesh, &[]);
    for (http, tcp) in destinations() {
        assert_eq!(request(client, http, "outside.test").status, 502);
        let mut raw = connect(client, tcp);
        let _ = raw.write_all(b"\0bytes");
        let mut byte = [0];
        assert!(!matches!(raw.read(&mut byte), Ok(1..)), "closed");
    }
    assert_eq!(origin.seen().len(), 2);
}

/// Certificate files of two workloads.
struct Certificates(tempfile::TempDir);

impl Certificates {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::set_permissions(root, fs::Permissions::from_mode(0o755)).unwrap();
        let authority = Authority::new("mesh");
        fs::write(root.join("ca.pem"), authority.pem()).unwrap();
        for account in ["web", "client"] {
            let id = format!("spiffe://cluster.local/ns/default/sa/{account}");
            let pair = authority.server(&[&id]);
            fs::write(root.join(format!("{account}.pem")), &pair.chain).unwrap();
            fs::write(root.join(format!("{account}.key")), &pair.key).unwrap();
        }
        Self(directory)
    }

    fn flags(&self, account: &str) -> [String; 6] {
        let path = |name: String| self.0.path().join(name).to_str().unwrap().to_owned();
        [
            "--workload-cert".to_owned(),
            path(format!("{account}.pem")),
            "--workload-key".to_owned(),
            path(format!("{account}.key")),
            "--mesh-ca".to_owned(),
            path("ca.pem".to_owned()),
        ]
    }
}

fn peer_authentication(mode: &str) -> String {
    format!(
        "apiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: {{name: default, namespace: default}}\nspec:\n  \
         mtls: {{mode: {mode}}}\n"
    )
}

fn mutual(host: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: {host}, namespace: default}}\nspec:\n  \
         host: {host}\n  trafficPolicy: {{tls: {{mode: ISTIO_MUTUAL}}}}\n"
    )
}

/// The client has a sidecar that speaks mesh TLS; the node outside of the mesh has none.
#[test]
fn strict_refuses_plain_text_and_permissive_takes_both() {
    let Some(lab) = Lab::new(3) else {
        return;
    };
    let [client, server, outside] = lab.nodes();
    let _origin = web(server, 8080, Back::H1);
    serve(server.listen(5001), echo);
    let certificates = Certificates::new();
    for (mode, takes_plain_text) in [("STRICT", false), ("PERMISSIVE", true)] {
        let rules = ["web", "web6"].map(mutual);
        let mesh = [
            vec![services(server), peer_authentication(mode)],
            rules.to_vec(),
        ];
        let mesh = documents(mesh.concat());
        let flags = certificates.flags("client");
        let here = Sidecar::start(
            client,
            "client",
            &mesh,
            &flags.each_ref().map(String::as_str),
        );
        let flags = certificates.flags("web");
        let there = Sidecar::start(server, "web", &mesh, &flags.each_ref().map(String::as_str));
        for (index, host) in ["web", "web6"].into_iter().enumerate() {
            assert_eq!(request(client, vip(index, 80), host).status, 200, "{mode}");
            let mut tcp = connect(client, vip(index, 5000));
            tcp.write_all(b"\0bytes").unwrap();
            expect(&mut tcp, b"\0bytes");
        }
        let secured = [
            "reporter=\"destination\"",
            "connection_security_policy=\"mutual_tls\"",
        ];
        assert_eq!(
            there.metric("istio_requests_total", &secured),
            2.0,
            "{mode}"
        );
        for to in server.addresses(8080) {
            let mut plain = connect(outside, to);
            let _ = plain.write_all(b"GET / HTTP/1.1\r\nHost: web\r\n\r\n");
            let mut start = [0; 12];
            let answered = plain.read_exact(&mut start).is_ok() && start == *b"HTTP/1.1 200";
            assert_eq!(answered, takes_plain_text, "{mode}");
        }
        drop((here, there));
    }
}

#[test]
fn workload_that_calls_itself_through_its_service_gets_an_answer() {
    let Some(lab) = Lab::new(1) else {
        return;
    };
    let [node] = lab.nodes();
    let origin = web(node, 8080, Back::H1);
    let modes = [Interception::Redirect, Interception::Transparent];
    for (interception, seen) in modes.into_iter().zip([2, 4]) {
        let sidecar = Sidecar::start_with(node, "web", &services(node), &[], interception);
        for (index, host) in ["web", "web6"].into_iter().enumerate() {
            assert_eq!(request(node, vip(index, 80), host).status, 200, "{host}");
        }
        assert_eq!(origin.seen().len(), seen);
        let received = sidecar.metric("istio_requests_total", &["reporter=\"destination\""]);
        assert_eq!(received, 2.0);
    }
}

#[test]
fn inbound_port_without_a_service_reaches_the_workload() {
    let Some(lab) = Lab::new(2) else {
        return;
    };
    let [client, server] = lab.nodes();
    serve(server.listen(6000), echo);
    let _there = Sidecar::start(server, "web", &services(server), &[]);
    for to in server.addresses(6000) {
        let mut tcp = connect(client, to);
        tcp.write_all(b"\0bytes").unwrap();
        expect(&mut tcp, b"\0bytes");
    }
}

#[test]
fn connections_to_the_ports_of_the_proxy_are_closed() {
    let Some(lab) = Lab::new(2) else {
        return;
    };
    let [client, server] = lab.nodes();
    let sidecar = Sidecar::start(server, "web", &services(server), &[]);
    for port in [15_001, 15_006] {
        for to in server.addresses(port) {
            let mut raw = connect(client, to);
            let _ = raw.write_all(b"GET / HTTP/1.1\r\nHost: web\r\n\r\n");
            let mut byte = [0];
            assert!(!matches!(raw.read(&mut byte), Ok(1..)), "{to}");
        }
    }
    assert_eq!(sidecar.metric("istio_requests_total", &[]), 0.0);
}

/// Client addresses as seen by the server's workload.
#[test]
fn workload_sees_the_address_of_the_client_only_under_transparent_interception() {
    let Some(lab) = Lab::new(3) else {
        return;
    };
    let [client, server, other] = lab.nodes();
    let mesh = services(server);
    for (port, tells) in [(8080, http_peer as fn(TcpStream)), (5001, raw_peer)] {
        serve(server.listen(port), tells);
    }
    for (interception, keeps) in [
        (Interception::Redirect, false),
        (Interception::Transparent, true),
    ] {
        let _there = Sidecar::start_with(server, "web", &mesh, &[], interception);
        for from in [client, other] {
            for (http, tcp) in server
                .addresses(8080)
                .into_iter()
                .zip(server.addresses(5001))
            {
                let own = from.ip_like(http).to_string();
                let reply = request(from, http, "web");
                let peer = String::from_utf8(reply.body).unwrap();
                assert_eq!(peer == own, keeps, "{peer}");
                let mut raw = connect(from, tcp);
                raw.write_all(b"\0").unwrap();
                raw.shutdown(std::net::Shutdown::Write).unwrap();
                let mut peer = String::new();
                raw.read_to_string(&mut peer).unwrap();
                assert_eq!(peer == own, keeps, "{peer}");
            }
        }
    }
}

fn peer(stream: &TcpStream) -> String {
    stream.peer_addr().unwrap().ip().to_canonical().to_string()
}

fn http_peer(mut stream: TcpStream) {
    while !crate::support::origin::read_head(&mut stream).is_empty() {
        let peer = peer(&stream);
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{peer}",
            peer.len()
        );
        if stream.write_all(head.as_bytes()).is_err() {
            return;
        }
    }
}

fn raw_peer(mut stream: TcpStream) {
    let mut byte = [0];
    if stream.read(&mut byte).is_ok() {
        let _ = stream.write_all(peer(&stream).as_bytes());
    }
}
