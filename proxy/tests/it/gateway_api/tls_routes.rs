//! TLSRoute: passthrough and termination by SNI. Connections without a destination end before any byte of TLS.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use hyper::Response;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::tcp_routes::speaking;
use super::{Edge, object, route, service};
use crate::support::DEADLINE;
use crate::support::origin::full;
use crate::support::pki::Authority;
use crate::support::tls::{Visitor, credential};
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};

const PASSTHROUGH: &str = "tls: {mode: Passthrough}";
const TERMINATE: &str = "tls: {mode: Terminate, certificateRefs: [{name: cred}]}";

fn listener(name: &str, host: &str, tls: &str) -> String {
    let host = match host {
        "" => String::new(),
        host => format!(", hostname: '{host}'"),
    };
    format!("{{name: {name}, protocol: TLS, port: PORT, {tls}{host}}}")
}

/// Returns a route to listeners of the Gateway, all of them for an empty section.
fn tls_route(name: &str, section: &str, hosts: &str, backends: &str) -> String {
    let section = match section {
        "" => String::new(),
        section => format!(", sectionName: {section}"),
    };
    let spec = format!(
        "parentRefs: [{{name: main{section}}}], hostnames: [{hosts}], rules: [{{backendRefs: [{backends}]}}]"
    );
    object("TLSRoute", &format!("edge/{name}"), &spec)
}

fn to(name: &str) -> String {
    format!("{{name: {name}, port: 80}}")
}

/// TLS services `s1` and `s2`, whose responses are their names, and `plain`, whose server says `plain` without TLS.
struct Secured {
    edge: Edge,
    ca: Authority,
    origins: [TlsOrigin; 2],
}

impl Secured {
    fn start(listeners: &[String], routes: &[String]) -> Self {
        let ca = Authority::new("ca");
        let pair = ca.server(&["*.example.com", "*.org", "*.com"]);
        let origins = ["s1", "s2"].map(|name| {
            TlsOrigin::serving(Speaks::H1, &Terms::new(&pair), move |_| async move {
                Ok(Response::new(full(name)))
            })
        });
        let mut more = vec![
            credential("cred", &pair).replace("name: cred", "name: cred, namespace: edge"),
            service("edge/plain", speaking("plain").address),
        ];
        for (name, origin) in ["s1", "s2"].iter().zip(&origins) {
            more.push(service(&format!("edge/{name}"), origin.address));
        }
        let edge = Edge::start_with(&listeners.join(", "), routes, &more);
        Self { edge, ca, origins }
    }

    fn visitor(&self) -> Visitor {
        Visitor::new(self.edge.proxy.edge, &self.ca)
    }

    /// Returns the name of the service that answers; `closed` if the connection ends before any byte of TLS.
    async fn answer(&self, host: &str) -> String {
        if closed(self.edge.proxy.edge, &self.visitor().hello(host)) {
            return "closed".to_owned();
        }
        self.visitor().get(host).await.unwrap().text().to_owned()
    }
}

/// Whether the proxy ends a connection after the client hello without a byte, and so without an alert.
fn closed(address: SocketAddr, hello: &[u8]) -> bool {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.write_all(hello).unwrap();
    match stream.read(&mut [0; 1]) {
        Ok(read) => read == 0,
        Err(error) => {
            assert_ne!(error.kind(), ErrorKind::WouldBlock, "left waiting");
            true
        }
    }
}

#[tokio::test]
async fn hosts_of_listener_and_route_intersect() {
    for (host, routes, expected) in [
        (
            "abc.example.com",
            [("'*.example.com'", "s1")].as_slice(),
            [
                ("abc.example.com", "s1"),
                ("other.example.com", "closed"),
                ("x.org", "closed"),
            ],
        ),
        (
            "*.example.com",
            &[("abc.example.com", "s1"), ("'*.com'", "s2")],
            [
                ("abc.example.com", "s1"),
                ("other.example.com", "s2"),
                ("x.com", "closed"),
            ],
        ),
        (
            "*.com",
            &[("abc.example.com", "s1"), ("'*.example.com'", "s2")],
            [
                ("abc.example.com", "s1"),
                ("other.example.com", "s2"),
                ("x.com", "closed"),
            ],
        ),
        (
            "",
            &[("abc.example.com", "s1"), ("'*.com'", "s2")],
            [
                ("abc.example.com", "s1"),
                ("other.example.com", "s2"),
                ("x.org", "closed"),
            ],
        ),
    ] {
        let named = routes
            .iter()
            .map(|(hosts, name)| tls_route(name, "", hosts, &to(name)));
        let routes: Vec<String> = named.collect();
        let secured = Secured::start(&[listener("tls", host, PASSTHROUGH)], &routes);
        for (name, expected) in expected {
            assert_eq!(secured.answer(name).await, expected, "{host} {name}");
        }
        let callers = secured.origins[0].callers();
        assert_eq!(callers[0].sni.as_deref(), Some("abc.example.com"));
    }
}

#[tokio::test]
async fn listeners_of_a_port_are_isolated_by_sni_in_all_modes() {
    let https = "{name: https, protocol: HTTPS, port: PORT, hostname: web.example.com, tls: {certificateRefs: [{name: cred}]}}";
    let listeners = [
        listener("wide", "*.example.com", PASSTHROUGH),
        listener("narrow", "tls.example.com", TERMINATE),
        listener("unused", "empty.example.com", PASSTHROUGH),
        https.to_owned(),
    ];
    let routes = [
        tls_route("wide", "wide", "'*.com'", &to("s1")),
        tls_route("narrow", "narrow", "'*.example.com'", &to("plain")),
        route("web", "", "{backendRefs: [{name: a, port: 80}]}"),
    ];
    let secured = Secured::start(&listeners, &routes);
    for (host, expected) in [
        ("abc.example.com", "s1"),
        ("web.example.com", "a"),
        ("empty.example.com", "closed"),
        ("other.org", "closed"),
    ] {
        assert_eq!(secured.answer(host).await, expected, "{host}");
    }
    let mut visitor = secured.visitor();
    visitor.alpn = vec![b"h2".to_vec()];
    let mut client = visitor.connect("tls.example.com").await.unwrap();
    assert_eq!(
        client.get_ref().1.alpn_protocol(),
        None,
        "the bytes are no HTTP"
    );
    let mut greeting = [0; 5];
    client.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"plain");
    client.write_all(b"PING").await.unwrap();
    client.shutdown().await.unwrap();
    let mut echoed = String::new();
    client.read_to_string(&mut echoed).await.unwrap();
    assert_eq!(echoed, "PING");
    visitor.sni = false;
    assert!(closed(
        secured.edge.proxy.edge,
        &visitor.hello("tls.example.com")
    ));
}

#[tokio::test]
async fn connections_without_a_destination_end_before_tls_in_both_modes() {
    let listeners = [
        listener("pass", "*.example.com", PASSTHROUGH),
        listener("end", "*.org", TERMINATE),
    ];
    let secured = Secured::start(&listeners, &[]);
    let far = service("other/far", secured.origins[0].address);
    let empty = "apiVersion: v1\nkind: Service\nmetadata: {name: empty, namespace: edge}\nspec: {ports: [{name: tcp, port: 80}]}\n";
    let set = |backends: &str, more: &[String]| {
        let route = tls_route("r", "", "'*.example.com', a.org", backends);
        let mut all = vec![route, far.clone(), empty.to_owned()];
        all.extend(more.iter().cloned());
        secured.edge.set(&all);
    };
    let is_closed = |host: &str| closed(secured.edge.proxy.edge, &secured.visitor().hello(host));
    for backends in [
        "{name: none, port: 80}",
        "{name: s1, kind: Pod, port: 80}",
        "{name: s1, port: 80, weight: 0}",
        "{name: far, namespace: other, port: 80}",
        "{name: empty, port: 80}",
    ] {
        set(backends, &[]);
        assert!(is_closed("a.example.com"), "{backends}");
        assert!(is_closed("a.org"), "{backends}");
    }
    let grant = "from: [{group: gateway.networking.k8s.io, kind: TLSRoute, namespace: edge}], to: [{group: '', kind: Service}]";
    let grant = object("ReferenceGrant", "other/g", grant);
    set("{name: far, namespace: other, port: 80}", &[grant]);
    assert_eq!(secured.answer("a.example.com").await, "s1");
    assert!(!is_closed("a.org"));
    assert!(is_closed("b.org"), "the route has no such host");
    set("{name: plain, port: 80}, {name: none, port: 80}", &[]);
    let mut served = 0;
    for _ in 0..60 {
        if is_closed("a.org") {
            continue;
        }
        served += 1;
    }
    assert!((10..50).contains(&served), "{served} of 60");
    for _ in 0..20 {
        // a handshake that begins leads to the backend that was drawn
        if let Ok(mut client) = secured.visitor().connect("a.org").await {
            let mut greeting = [0; 5];
            client.read_exact(&mut greeting).await.unwrap();
            assert_eq!(&greeting, b"plain");
        }
    }
}

#[tokio::test]
async fn backend_tls_policies_do_not_wrap_tls_of_clients() {
    let policy = object(
        "BackendTLSPolicy",
        "edge/p",
        "targetRefs: [{group: '', kind: Service, name: s1}], validation: {hostname: s1.test, wellKnownCACertificates: System}",
    );
    let routes = [tls_route("r", "", "'*.example.com'", &to("s1")), policy];
    let secured = Secured::start(&[listener("tls", "", PASSTHROUGH)], &routes);
    assert_eq!(secured.answer("abc.example.com").await, "s1");
}

#[test]
fn explain_names_the_listener_the_route_and_the_backend() {
    let routes = [tls_route("db", "", "'*.com'", &to("s1"))];
    let secured = Secured::start(&[listener("tls", "*.example.com", PASSTHROUGH)], &routes);
    let explain = |host: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_strait"))
            .args(["explain", "--config"])
            .arg(secured.edge.proxy.mesh())
            .args([
                "GET",
                &format!("https://{host}:{}/", secured.edge.proxy.edge.port()),
            ])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let found = explain("a.example.com");
    for part in [
        "TLSRoute/edge/db",
        "outbound|80||s1.edge.svc",
        "*.example.com",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
    let found = explain("a.org");
    assert!(
        found.contains("no TLS server has the name a.org"),
        "{found}"
    );
}
