//! Tunnels through another proxy, on live sockets.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use crate::support::mesh::documents;
use crate::support::origin::{RawOrigin, read_head};
use crate::support::proxy::Proxy;
use crate::support::raw::Raw;
use crate::support::{DEADLINE, eventually};

/// Proxy that gives its own response to every request, then echoes.
struct Hop {
    origin: RawOrigin,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Hop {
    fn new(answer: &'static str) -> Self {
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&heads);
        let origin = RawOrigin::start(move |_, mut stream| {
            let head = read_head(&mut stream);
            let chunked = head.contains("chunked");
            seen.lock().unwrap().push(head);
            stream.write_all(answer.as_bytes()).unwrap();
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                let bytes = &buffer[..count];
                stream.write_all(bytes).unwrap();
                if chunked && bytes.ends_with(b"\r\n0\r\n\r\n") {
                    break;
                }
            }
            let _ = stream.shutdown(Shutdown::Write);
        });
        Self { origin, heads }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn service(name: &str, at: SocketAddr) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: {name}}}\nspec:\n  hosts: [{name}.test]\n  resolution: STATIC\n  \
         ports: [{{number: 80, name: tcp, protocol: TCP}}]\n  endpoints: [{{address: {}, ports: {{tcp: {}}}, labels: {{v: one}}}}]\n",
        at.ip(),
        at.port()
    )
}

fn rule(name: &str, policy: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: {name}}}\nspec:\n  host: {name}.test\n  {policy}\n"
    )
}

/// Starts a gateway that forwards connections to these destinations.
fn carrying(route: &str, more: &[String]) -> Proxy {
    Proxy::with(|edge| {
        let (ip, port) = (edge.ip(), edge.port());
        let mut all = vec![
            format!(
                "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{name: tcp}}\nspec:\n  servers:\n  \
                 - {{port: {{number: {port}, name: tcp, protocol: TCP}}, bind: {ip}, hosts: ['*']}}\n"
            ),
            format!(
                "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: tcp}}\nspec:\n  \
                 hosts: ['*']\n  gateways: [tcp]\n  tcp:\n  - route: {route}\n"
            ),
        ];
        all.extend_from_slice(more);
        documents(all)
    })
}

const TO_A: &str = "[{destination: {host: a.test, port: {number: 80}}}]";

fn through(proxy: &Proxy, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(proxy.edge).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.write_all(bytes).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    all
}

#[test]
fn connect_tunnel_carries_raw_bytes() {
    for (answer, before) in [
        ("HTTP/1.1 200 OK\r\n\r\n", ""),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
            "",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nahead of you",
            "ahead of you",
        ),
    ] {
        let hop = Hop::new(answer);
        let policy = "trafficPolicy: {tunnel: {targetHost: db.test, targetPort: 5432}}";
        let proxy = carrying(TO_A, &[service("a", hop.origin.address), rule("a", policy)]);
        let heard = through(&proxy, b"some bytes");
        assert_eq!(
            String::from_utf8(heard).unwrap(),
            format!("{before}some bytes")
        );
        assert_eq!(
            hop.heads(),
            ["CONNECT db.test:5432 HTTP/1.1\r\nhost: db.test:5432\r\n\r\n"]
        );
    }
}

#[test]
fn post_tunnel_carries_bytes_in_bodies() {
    let hop = Hop::new("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
    let policy =
        "trafficPolicy: {tunnel: {protocol: POST, targetHost: '2001:db8::1', targetPort: 5432}}";
    let proxy = carrying(TO_A, &[service("a", hop.origin.address), rule("a", policy)]);
    let sent: Vec<u8> = (0..100_000_u32)
        .map(|number| (number % 251) as u8)
        .collect();
    let heard = through(&proxy, &sent);
    assert!(heard == sent, "{} of {} bytes", heard.len(), sent.len());
    let head = &hop.heads()[0];
    assert!(
        head.starts_with("POST / HTTP/1.1\r\nhost: [2001:db8::1]:5432\r\n"),
        "{head}"
    );
}

#[test]
fn unsuccessful_connect_response_closes_the_connection() {
    for answer in [
        "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n",
        "nonsense\r\n\r\n",
    ] {
        let hop = Hop::new(answer);
        let policy = "trafficPolicy: {tunnel: {targetHost: db.test, targetPort: 5432}}";
        let proxy = carrying(TO_A, &[service("a", hop.origin.address), rule("a", policy)]);
        assert!(Raw::connect(proxy.edge).send("bytes").is_closed());
        eventually("it is logged", || !proxy.access_log().is_empty());
        assert_eq!(
            proxy.access_log()[0]["response_flags"],
            "UF,URX",
            "{answer}"
        );
    }
}

#[test]
fn tunnel_settings_come_from_the_first_destination() {
    let tunnel = |host: &str| format!("{{tunnel: {{targetHost: {host}, targetPort: 1}}}}");
    let subset =
        |own: &str| format!("subsets: [{{name: one, labels: {{v: one}}, trafficPolicy: {own}}}]");
    let with =
        |own: &str, of_subset: &str| format!("trafficPolicy: {own}\n  {}", subset(of_subset));
    let plain = "{loadBalancer: {simple: RANDOM}}";
    let one = "[{destination: {host: a.test, port: {number: 80}, subset: one}}]";
    let two = "[{destination: {host: a.test, port: {number: 80}, subset: one}, weight: 100}, {destination: {host: b.test, port: {number: 80}}, weight: 0}]";
    let rows = [
        (one, with(&tunnel("whole"), &tunnel("part")), Some("part:1")),
        (one, with(&tunnel("whole"), plain), None),
        (
            two,
            with(&tunnel("whole"), &tunnel("part")),
            Some("whole:1"),
        ),
        (two, with(plain, &tunnel("part")), None),
        (
            TO_A,
            with(&tunnel("whole"), &tunnel("part")),
            Some("whole:1"),
        ),
    ];
    for (route, policy, expected) in rows {
        let hop = Hop::new("HTTP/1.1 200 OK\r\n\r\n");
        let more = [
            service("a", hop.origin.address),
            service("b", hop.origin.address),
            rule("a", &policy),
        ];
        let proxy = carrying(route, &more);
        let heard = through(&proxy, b"GET / HTTP/1.1\r\n\r\n");
        let head = hop.heads().remove(0);
        match expected {
            Some(target) => assert!(head.starts_with(&format!("CONNECT {target} ")), "{head}"),
            None => {
                assert!(head.starts_with("GET "), "{head}");
                assert!(heard.starts_with(b"HTTP/1.1 200"));
            }
        }
    }
}
