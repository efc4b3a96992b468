//! Common pitfalls of Gateway, on live sockets: several servers on one port, names that several servers share, and
//! servers that need no VirtualService.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::support::mesh::{documents, routes, service};
use crate::support::origin::{Back, Origin, RawOrigin};
use crate::support::pki::{Authority, Pair};
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::Raw;
use crate::support::tls::{Visitor, credential, server};
use crate::support::{DEADLINE, eventually};

/// Returns a document that was created on this day.
fn of_day(day: u32, document: &str) -> String {
    let created = format!("metadata: {{creationTimestamp: '2024-01-{day:02}T00:00:00Z', ");
    document.replacen("metadata: {", &created, 1)
}

/// Returns a Gateway with these servers.
fn gateway(name: &str, servers: &[String]) -> String {
    crate::support::tls::named_gateway(name, servers)
}

/// Returns a server without TLS; `more` follows the hosts.
fn plain(at: SocketAddr, name: &str, protocol: &str, hosts: &str, more: &str) -> String {
    let (ip, port) = (at.ip(), at.port());
    format!(
        "  - {{port: {{number: {port}, name: {name}, protocol: {protocol}}}, bind: {ip}, hosts: [{hosts}]{more}}}\n"
    )
}

/// Returns a VirtualService at a Gateway that answers with its name.
fn says(name: &str, gateway: &str, host: &str) -> String {
    let rule = format!("- directResponse: {{status: 200, body: {{string: {name}}}}}");
    routes(name, &format!("[{host}]"), &rule).replace("[edge]", &format!("[{gateway}]"))
}

/// Returns the status, and the body or the `location`, of the response to `GET HOST/PATH`.
fn ask(at: SocketAddr, target: &str) -> String {
    ask_on(&mut Raw::connect(at), target)
}

/// Sends a request like [`ask`], on an existing connection.
fn ask_on(client: &mut Raw, target: &str) -> String {
    let (host, path) = target.split_once('/').unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let reply = client.send(request).reply();
    let mut words = vec![reply.status.to_string()];
    let mut headers = reply.headers.iter();
    let location = headers.find_map(|line| line.strip_prefix("location: "));
    words.extend(location.map(str::to_owned));
    words.push(String::from_utf8_lossy(&reply.body).into_owned());
    words.join(" ").trim_end().to_owned()
}

#[test]
fn t49_https_redirect_works_with_and_without_a_virtual_service() {
    let proxy = Proxy::with(|edge| {
        let redirecting = ", tls: {httpsRedirect: true}";
        documents([
            gateway(
                "edge",
                &[plain(edge, "a", "HTTP", "a.com, b.com", redirecting)],
            ),
            says("b", "edge", "b.com"),
        ])
    });
    for (target, expected) in [
        ("a.com/p", "301 https://a.com/p"),
        ("a.com/p?q=1", "301 https://a.com/p?q=1"),
        ("a.com:80/", "301 https://a.com/"),
        ("a.com:8080/", "301 https://a.com:8080/"),
        ("b.com/p", "301 https://b.com/p"),
        ("c.com/p", "404"),
    ] {
        assert_eq!(ask(proxy.edge, target), expected, "{target}");
    }
}

/// Returns the leaf certificate of a chain.
fn leaf(pair: &Pair) -> Vec<u8> {
    let mut chain = CertificateDer::pem_slice_iter(pair.chain.as_bytes());
    chain.next().unwrap().unwrap().to_vec()
}

#[tokio::test]
async fn t125_server_with_the_exact_name_wins_over_the_wildcard_in_any_order() {
    let ca = Authority::new("ca");
    let names = ["*.a.example", "x.a.example"];
    let [wild, exact] = [ca.server(&names), ca.server(&names)];
    for exact_first in [true, false] {
        let start = Start::new();
        let edge = start.edge();
        let tls = |name: &str| format!("{{mode: SIMPLE, credentialName: {name}}}");
        let mut servers = [
            server(edge, "wild", "['*.a.example']", &tls("wild")),
            server(edge, "exact", "[x.a.example]", &tls("exact")),
        ];
        if exact_first {
            servers.reverse();
        }
        let text = documents([
            gateway("edge", &servers),
            credential("wild", &wild),
            credential("exact", &exact),
            says("any", "edge", "'*'"),
        ]);
        let proxy = start.file("mesh.yaml", text).start();
        let visitor = Visitor::new(proxy.edge, &ca);
        for (host, expected) in [
            ("x.a.example", &exact),
            ("X.A.example", &exact),
            ("y.a.example", &wild),
        ] {
            let shown = visitor.certificate(host).await.unwrap();
            assert!(shown == leaf(expected), "{host}, exact: {exact_first}");
        }
    }
}

#[test]
fn t127_older_of_an_http_and_a_tcp_server_keeps_the_port() {
    let origin = RawOrigin::start(|_, mut stream| {
        std::io::Write::write_all(&mut stream, b"bytes").unwrap();
    });
    for http_first in [true, false] {
        let (http, tcp) = if http_first { (1, 2) } else { (2, 1) };
        let proxy = Proxy::with(|edge| {
            documents([
                of_day(
                    http,
                    &gateway("web", &[plain(edge, "web", "HTTP", "'*'", "")]),
                ),
                of_day(
                    tcp,
                    &gateway("raw", &[plain(edge, "raw", "TCP", "'*'", "")]),
                ),
                says("web", "web", "'*'"),
                carry("raw", "raw", "raw.test"),
                tcp_service("raw.test", origin.address),
            ])
        });
        if http_first {
            assert_eq!(ask(proxy.edge, "a.com/"), "200 web");
        } else {
            assert_eq!(bytes_from(proxy.edge), "bytes");
        }
        let (owner, late) = if http_first {
            ("web", "TCP")
        } else {
            ("raw", "HTTP")
        };
        let taken = format!("is taken by Gateway/default/{owner}");
        let log = proxy.has_logged(&taken);
        let warned = log.lines().any(|line| {
            line.contains("X282")
                && line.contains(&taken)
                && line.contains(&format!("it speaks {late}"))
        });
        assert!(warned, "{log}");
    }
}

#[test]
fn t128_two_gateways_share_a_port_for_http() {
    let proxy = Proxy::with(|edge| {
        documents([
            of_day(1, &gateway("one", &[plain(edge, "a", "HTTP", "a.com", "")])),
            of_day(2, &gateway("two", &[plain(edge, "b", "HTTP", "b.com", "")])),
            says("a", "one", "a.com"),
            says("b", "two", "b.com"),
            says("stray", "one", "c.com"),
        ])
    });
    for (target, expected) in [
        ("a.com/", "200 a"),
        ("b.com/", "200 b"),
        ("c.com/", "404"),
        ("d.com/", "404"),
    ] {
        assert_eq!(ask(proxy.edge, target), expected, "{target}");
    }
    assert!(!proxy.stderr().contains("X282"), "{}", proxy.stderr());
}

/// Returns a VirtualService at a Gateway that forwards all connections to a service.
fn carry(name: &str, gateway: &str, host: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: to-{name}}}\nspec:\n  \
         hosts: ['*']\n  gateways: [{gateway}]\n  tcp: [{{route: [{{destination: {{host: {host}}}}}]}}]\n"
    )
}

/// Returns a service with one port that is not HTTP.
fn tcp_service(host: &str, at: SocketAddr) -> String {
    let name = host.trim_end_matches(".test");
    let text = service(name, Back::H1, &[(at, "v1")]);
    text.replace("protocol: HTTP", "protocol: TCP")
}

/// Returns all bytes that a client receives without sending any.
fn bytes_from(at: SocketAddr) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn t133_oldest_virtual_service_owns_a_tcp_port_in_any_file_order() {
    let origin = |word: &'static [u8]| {
        RawOrigin::start(move |_, mut stream| {
            std::io::Write::write_all(&mut stream, word).unwrap();
        })
    };
    let (old, young) = (origin(b"old"), origin(b"young"));
    let start = Start::new();
    let edge = start.edge();
    let text = documents([
        gateway("edge", &[plain(edge, "raw", "TCP", "'*'", "")]),
        of_day(2, &carry("young", "edge", "young.test")),
        of_day(1, &carry("old", "edge", "old.test")),
        tcp_service("old.test", old.address),
        tcp_service("young.test", young.address),
    ]);
    let proxy = start.file("mesh.yaml", text).start();
    for _ in 0..3 {
        assert_eq!(bytes_from(proxy.edge), "old");
    }
}

#[tokio::test]
async fn t150_zero_retry_attempts_do_not_move_to_another_endpoint() {
    let origin = Origin::named(Back::H1, "up");
    for settings in ["retries: {}", "retries: {attempts: 0}"] {
        let proxy = Proxy::with(|edge| {
            let rule = format!("- {settings}\n  route: [{{destination: {{host: web.test}}}}]");
            let balanced = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: web}\n\
                 spec: {host: web.test, trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN}}}";
            documents([
                gateway("edge", &[plain(edge, "a", "HTTP", "'*'", "")]),
                service(
                    "web",
                    Back::H1,
                    &[(free_address(), "v1"), (origin.address, "v1")],
                ),
                balanced.to_owned(),
                routes("all", "['*']", &rule),
            ])
        });
        let mut client = Raw::connect(proxy.edge);
        let mut failed = 0;
        for _ in 0..4 {
            let outcome = ask_on(&mut client, "a.com/");
            assert!(
                outcome.starts_with("503") || outcome == "200 up",
                "{outcome}"
            );
            failed += usize::from(outcome.starts_with("503"));
        }
        assert_eq!(failed, 2, "every other one: {settings}");
        eventually("all are logged", || proxy.access_log().len() == 4);
        let log = proxy.access_log();
        let flags = log.iter().filter(|line| line["response_flags"] == "UF");
        assert_eq!(flags.count(), 2, "{log:?}");
        assert_eq!(proxy.metric("strait_upstream_retries_total", &[]), 0.0);
    }
}
