//! The PROXY protocol: received from load balancers in front of the proxy, and sent to endpoints.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc;

use crate::support::DEADLINE;
use crate::support::mesh::documents;
use crate::support::origin::{RawOrigin, read_head};
use crate::support::proxy::Proxy;
use crate::support::raw::Raw;

pub(crate) fn http(edge: SocketAddr, annotation: &str) -> String {
    let (ip, port) = (edge.ip(), edge.port());
    documents([
        format!(
            "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata:\n  name: edge\n  annotations: \
             {{strait.io/proxy-protocol: {annotation}}}\nspec:\n  servers:\n  \
             - {{port: {{number: {port}, name: http, protocol: HTTP}}, bind: {ip}, hosts: ['*']}}\n"
        ),
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: all}\nspec:\n  hosts: ['*']\n  \
         gateways: [edge]\n  http: [{directResponse: {status: 200}}]\n"
            .to_owned(),
    ])
}

pub(crate) const V2: &[u8] =
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x01\xc6\x33\x64\x02\0\x05\x01\xbb";

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n")
}

#[test]
fn proxy_protocol_header_sets_client_and_local_address() {
    let proxy = Proxy::with(|edge| http(edge, "require"));
    let v1 = b"PROXY TCP4 192.0.2.1 198.51.100.2 5 443\r\n";
    for (path, header) in [("/v1", &v1[..]), ("/v2", V2)] {
        let mut client = Raw::connect(proxy.edge);
        let whole = [header, get(path).as_bytes()].concat();
        assert_eq!(client.send(whole).reply().status, 200);
        // and once more on the same connection, without it
        assert_eq!(client.send(get(path)).reply().status, 200);
        let logged = proxy.logged(path);
        assert_eq!(logged["downstream_remote_address"], "192.0.2.1:5");
        assert_eq!(logged["downstream_local_address"], "198.51.100.2:443");
    }
    let mut pieces = Raw::connect(proxy.edge);
    for byte in b"PROXY UNKNOWN\r\n" {
        pieces.send([*byte]);
    }
    assert_eq!(pieces.send(get("/unknown")).reply().status, 200);
    let logged = proxy.logged("/unknown");
    let remote = logged["downstream_remote_address"].as_str().unwrap();
    assert!(remote.starts_with("127."), "{remote}");
}

#[test]
fn connection_without_a_required_header_is_closed_and_counted() {
    let proxy = Proxy::with(|edge| http(edge, "require"));
    for bytes in [
        get("/").as_bytes(),
        b"PROXY TCP5 x\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.4 0 99999\r\n",
    ] {
        assert!(Raw::connect(proxy.edge).send(bytes).is_closed());
    }
    let reason = [("reason", "proxy_protocol")];
    let count = proxy.metric("strait_downstream_protocol_errors_total", &reason);
    assert_eq!(count, 3.0);
}

#[test]
fn optional_header_may_be_missing() {
    let proxy = Proxy::with(|edge| http(edge, "accept"));
    assert_eq!(
        Raw::connect(proxy.edge)
            .send(get("/without"))
            .reply()
            .status,
        200
    );
    let whole = [V2, get("/with").as_bytes()].concat();
    assert_eq!(Raw::connect(proxy.edge).send(whole).reply().status, 200);
    assert_eq!(
        proxy.logged("/with")["downstream_remote_address"],
        "192.0.2.1:5"
    );
}

#[test]
fn tcp_endpoint_gets_a_proxy_protocol_header() {
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let origin = RawOrigin::start(move |_, mut stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        tell.lock().unwrap().send(all).unwrap();
    });
    for (version, starts) in [
        ("V1", &b"PROXY TCP4 127."[..]),
        ("V2", b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"),
    ] {
        let proxy = Proxy::with(|edge| {
            let (ip, port, at) = (edge.ip(), edge.port(), origin.address);
            documents([
                format!(
                    "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{name: tcp}}\nspec:\n  servers:\n  \
                     - {{port: {{number: {port}, name: tcp, protocol: TCP}}, bind: {ip}, hosts: ['*']}}\n"
                ),
                "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: tcp}\nspec:\n  \
                 hosts: ['*']\n  gateways: [tcp]\n  tcp: [{route: [{destination: {host: a.test}}]}]\n"
                    .to_owned(),
                format!(
                    "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: a}}\nspec:\n  \
                     hosts: [a.test]\n  resolution: STATIC\n  ports: [{{number: 1, name: tcp, protocol: TCP}}]\n  \
                     endpoints: [{{address: {}, ports: {{tcp: {}}}}}]\n",
                    at.ip(),
                    at.port()
                ),
                format!(
                    "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: a}}\nspec:\n  \
                     host: a.test\n  trafficPolicy: {{proxyProtocol: {{version: {version}}}}}\n"
                ),
            ])
        });
        let mut client = TcpStream::connect(proxy.edge).unwrap();
        let local = client.local_addr().unwrap();
        client.write_all(b"hello").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let all = told.recv_timeout(DEADLINE).unwrap();
        assert!(
            all.starts_with(starts) && all.ends_with(b"hello"),
            "{:?}",
            all.escape_ascii()
        );
        if version == "V1" {
            let (edge, port) = (proxy.edge, local.port());
            let line = format!(
                "PROXY TCP4 {} {} {port} {}\r\nhello",
                local.ip(),
                edge.ip(),
                edge.port()
            );
            assert_eq!(all, line.as_bytes());
        }
    }
}

/// Starts a proxy that sends PROXY protocol headers to this endpoint.
fn telling(endpoint: SocketAddr) -> Proxy {
    Proxy::with(|edge| {
        documents([
            http(edge, "'off'").replace(
                "directResponse: {status: 200}",
                "route: [{destination: {host: a.test}}]",
            ),
            format!(
                "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: a}}\nspec:\n  \
                 hosts: [a.test]\n  resolution: STATIC\n  ports: [{{number: 1, name: http, protocol: HTTP}}]\n  \
                 endpoints: [{{address: {}, ports: {{http: {}}}}}]\n",
                endpoint.ip(),
                endpoint.port()
            ),
            "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: a}\nspec:\n  \
             host: a.test\n  trafficPolicy: {proxyProtocol: {}}\n"
                .to_owned(),
        ])
    })
}

#[test]
fn http_endpoint_gets_a_proxy_protocol_header_per_connection() {
    let origin = RawOrigin::start(|number, mut stream| {
        let mut told = String::new();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        reader.read_line(&mut told).unwrap();
        let body = format!("{number} {}", told.trim_end());
        while !read_head(&mut reader).is_empty() {
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}"
            )
            .unwrap();
        }
    });
    let proxy = telling(origin.address);
    let ask = |client: &mut Raw| client.send(get("/")).reply().body;
    let (mut one, mut two) = (Raw::connect(proxy.edge), Raw::connect(proxy.edge));
    for _ in 0..2 {
        for (number, client) in [&mut one, &mut two].into_iter().enumerate() {
            let (ip, edge) = (client.local().ip(), proxy.edge);
            let (from, to) = (client.local().port(), edge.port());
            let told = format!("{number} PROXY TCP4 {ip} {} {from} {to}", edge.ip());
            assert_eq!(ask(client), told.as_bytes());
        }
    }
}
