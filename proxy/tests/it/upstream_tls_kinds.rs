//! TLS to endpoints for all kinds of traffic: TCP, upgrades, mirrors, and mesh TLS.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use http_body_util::BodyExt;

use crate::support::client::{Client, Front, get as request};
use crate::support::mesh::{documents, routes};
use crate::support::pki::{Authority, Leaf};
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::{GET, Raw};
use crate::support::tls::{Visitor, credential, files, gateway, server};
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};
use crate::support::{DEADLINE, eventually};
use crate::upstream_tls::{Files, get, rule, service, start, started};

const SIMPLE: &str = "mode: SIMPLE, caCertificates: '@ca.pem'";

/// Starts a gateway that forwards every connection to `a.test`.
fn carrying(more: &[String]) -> Proxy {
    let start = Start::new();
    let (ip, port) = (start.edge().ip(), start.edge().port());
    let text = documents([
        format!(
            "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{name: tcp}}\nspec:\n  servers:\n  \
             - {{port: {{number: {port}, name: tcp, protocol: TCP}}, bind: {ip}, hosts: ['*']}}\n"
        ),
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: tcp}\nspec:\n  \
         hosts: ['*']\n  gateways: [tcp]\n  tcp:\n  - route: [{destination: {host: a.test, port: {number: 80}}}]\n"
            .to_owned(),
    ]);
    start
        .file("mesh.yaml", text)
        .file("more.yaml", documents(more))
        .start()
}

/// Sends bytes to an echo that sends a greeting first, and reads all of them back.
fn echoed(address: SocketAddr, sent: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let bytes = sent.to_vec();
    let writing = std::thread::spawn(move || {
        writer.write_all(&bytes).unwrap();
        writer.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    writing.join().unwrap();
    all
}

#[test]
fn tcp_over_upstream_tls_supports_half_close() {
    let material = Files::new();
    let origin = TlsOrigin::start(Speaks::Echo, &Terms::new(&material.ca.server(&["b.test"])));
    let tls = "mode: SIMPLE, caCertificates: '@ca.pem', sni: db.test, subjectAltNames: [b.test]";
    let proxy = carrying(&[service(&origin, "TCP", ""), rule(&material.tls(tls))]);
    let sent: Vec<u8> = (0..400_000_u32)
        .map(|number| (number % 251) as u8)
        .collect();
    let all = echoed(proxy.edge, &sent);
    assert_eq!(&all[..8], b"welcome\n");
    assert!(
        all[8..] == sent[..],
        "{} of {} bytes",
        all.len(),
        sent.len()
    );
    let caller = origin.only();
    assert_eq!(
        (caller.sni.as_deref(), caller.alpn.len()),
        (Some("db.test"), 0)
    );
}

#[test]
fn connect_tunnel_is_requested_inside_tls() {
    let material = Files::new();
    let sent: Vec<u8> = (0..100_000_u32)
        .map(|number| (number % 251) as u8)
        .collect();
    let terms = Terms::new(&material.ca.server(&["hop.test"]));
    let connects = TlsOrigin::start(Speaks::H1, &terms);
    let posts = TlsOrigin::serving(Speaks::H1, &terms, |request| async move {
        assert_eq!(request.method(), "POST");
        // answered before the end of the body, which is what a tunnel is
        let body = request.into_body().map_err(Into::into);
        Ok(hyper::Response::new(body.boxed_unsync()))
    });
    for (protocol, hop, greeting) in [("CONNECT", connects, "welcome\n"), ("POST", posts, "")] {
        let tls =
            "mode: SIMPLE, caCertificates: '@ca.pem', sni: hop.test, subjectAltNames: [hop.test]";
        let tunnel =
            format!("{{tunnel: {{protocol: {protocol}, targetHost: db.test, targetPort: 5432}}, ");
        let policy = material.tls(tls).replacen('{', &tunnel, 1);
        let proxy = carrying(&[service(&hop, "TCP", ""), rule(&policy)]);
        let heard = echoed(proxy.edge, &sent);
        let (before, back) = heard.split_at(greeting.len());
        assert_eq!(before, greeting.as_bytes(), "{protocol}");
        assert!(back == sent, "{protocol}: {} bytes came back", back.len());
        let caller = hop.only();
        assert_eq!(caller.sni.as_deref(), Some("hop.test"), "{protocol}");
        assert_eq!(caller.hosts, ["db.test:5432"], "{protocol}");
    }
    // nothing is sent to a hop with an untrusted certificate
    let hop = TlsOrigin::start(
        Speaks::H1,
        &Terms::new(&material.other.server(&["hop.test"])),
    );
    let tls = "mode: SIMPLE, caCertificates: '@ca.pem', sni: hop.test, subjectAltNames: [hop.test]";
    let tunnel = "{tunnel: {targetHost: db.test, targetPort: 5432}, ";
    let policy = material.tls(tls).replacen('{', tunnel, 1);
    let proxy = carrying(&[service(&hop, "TCP", ""), rule(&policy)]);
    assert!(Raw::connect(proxy.edge).is_closed());
    assert!(hop.callers().iter().all(|caller| caller.hosts.is_empty()));
}

#[tokio::test]
async fn h2_upgrade_policy_is_negotiated_by_alpn() {
    let material = Files::new();
    let terms = Terms::new(&material.ca.server(&["a.test"]));
    for (policy, speaks, alpn) in [
        ("UPGRADE", Speaks::H2, &["h2"][..]),
        ("DO_NOT_UPGRADE", Speaks::H1, &[]),
    ] {
        let origin = TlsOrigin::start(speaks, &terms);
        let upgrade = format!("{{connectionPool: {{http: {{h2UpgradePolicy: {policy}}}}}, ");
        let rule_policy = material.tls(SIMPLE).replacen('{', &upgrade, 1);
        let proxy = start(&[service(&origin, "HTTP", ""), rule(&rule_policy)]);
        for front in [Front::H1, Front::H2] {
            let mut client = Client::connect(front, proxy.edge).await;
            let answer = client.call(request("/")).await;
            assert_eq!((answer.status, answer.text()), (200, "hello"), "{policy}");
        }
        for caller in origin.callers() {
            assert_eq!(caller.alpn, alpn, "{policy}");
        }
    }
}

#[test]
fn data_before_a_close_without_close_notify_is_forwarded() {
    const BYTES: usize = 400_000;
    let material = Files::new();
    let terms = Terms::new(&material.ca.server(&["a.test"]));
    let origin = TlsOrigin::start(Speaks::Blunt(BYTES), &terms);
    let proxy = carrying(&[service(&origin, "TCP", ""), rule(&material.tls(SIMPLE))]);
    let mut stream = TcpStream::connect(proxy.edge).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    // nothing is read before the proxy is done with the connection
    eventually("it is logged", || !proxy.access_log().is_empty());
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), BYTES);
    assert_eq!(proxy.access_log()[0]["response_flags"], "UC");
}

#[test]
fn tcp_connection_with_a_failed_upstream_handshake_is_closed() {
    let material = Files::new();
    let origin = TlsOrigin::start(
        Speaks::Echo,
        &Terms::new(&material.other.server(&["b.test"])),
    );
    let proxy = carrying(&[service(&origin, "TCP", ""), rule(&material.tls(SIMPLE))]);
    assert!(Raw::connect(proxy.edge).is_closed());
    eventually("it is logged", || !proxy.access_log().is_empty());
    let line = &proxy.access_log()[0];
    assert_eq!(line["response_flags"], "UF,URX");
    let reason = line["upstream_transport_failure_reason"].as_str().unwrap();
    assert!(reason.starts_with("TLS_error: unknown issuer"), "{reason}");
}

#[test]
fn proxy_protocol_header_is_sent_before_the_tls_handshake() {
    let material = Files::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = Vec::new();
        // the line, and the first bytes of a record of a handshake behind it
        while !bytes.windows(3).any(|window| window == b"\n\x16\x03") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            bytes.push(byte[0]);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let entry = format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: a}}\nspec:\n  hosts: [a.test]\n  resolution: STATIC\n  \
         ports: [{{number: 80, name: web, protocol: HTTP, targetPort: {}}}]\n  endpoints: [{{address: 127.0.0.1}}]\n",
        address.port()
    );
    let policy = material
        .tls(SIMPLE)
        .replacen('{', "{proxyProtocol: {}, ", 1);
    let proxy = start(&[entry, rule(&policy)]);
    let mut client = Raw::connect(proxy.edge);
    client.send(GET);
    let heard = heard.join().unwrap();
    assert!(heard.starts_with("PROXY TCP4 127."), "{heard:?}");
}

#[test]
fn upgraded_connection_stays_inside_tls() {
    let material = Files::new();
    let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&material.ca.server(&["a.test"])));
    let proxy = start(&[service(&origin, "HTTP", ""), rule(&material.tls(SIMPLE))]);
    let mut client = Raw::connect(proxy.edge);
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
    assert_eq!(client.reply().status, 101);
    assert_eq!(client.read(8), b"welcome\n");
    assert_eq!(client.send("ping").read(4), b"ping");
}

#[test]
fn mirrored_requests_use_upstream_tls() {
    let material = Files::new();
    let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&material.ca.server(&["a.test"])));
    let main = crate::support::origin::Origin::named(crate::support::origin::Back::H1, "main");
    let http = "- name: all\n  route: [{destination: {host: web.test}}]\n  mirror: {host: a.test}";
    let proxy = Proxy::with(|edge| {
        documents([
            crate::support::mesh::gateway(&[edge]),
            routes("all", "['*']", http),
            crate::support::mesh::service("web", main.back, &[(main.address, "v1")]),
            service(&origin, "HTTP", ""),
            rule(&material.tls(SIMPLE)),
        ])
    });
    assert_eq!(get(&proxy).status, 200);
    eventually("the copy comes", || {
        origin
            .callers()
            .iter()
            .any(|caller| !caller.hosts.is_empty())
    });
    assert_eq!(origin.only().sni.as_deref(), Some("a.test"));
}

#[tokio::test]
async fn gateway_terminates_tls_and_originates_new_tls() {
    let material = Files::new();
    let front = Authority::new("front");
    let origin = TlsOrigin::start(Speaks::H2, &Terms::new(&material.ca.server(&["a.test"])));
    let start = Start::new();
    let edge = start.edge();
    let tls = "{mode: SIMPLE, credentialName: cred}";
    let text = documents([
        gateway(&[server(edge, "https", "['*']", tls)]),
        credential("cred", &front.server(&["a.test"])),
        routes(
            "all",
            "['*']",
            "- {name: all, route: [{destination: {host: a.test, port: {number: 80}}}]}",
        ),
        service(&origin, "HTTP2", ""),
        rule(&material.tls(SIMPLE)),
    ]);
    let proxy = start.file("mesh.yaml", text).start();
    let visitor = Visitor::new(proxy.edge, &front);
    for front in [Front::H1, Front::H2] {
        let mut client = visitor.client(front, "a.test").await.unwrap();
        let answer = client.call(crate::support::tls::get("a.test", "/")).await;
        assert_eq!((answer.status, answer.text()), (200, "hello"));
    }
}

/// Writes the mesh identity of a proxy, issued by this authority, into a directory.
fn mesh_identity(directory: &std::path::Path, ca: &Authority) -> Vec<u8> {
    let own = ca.issue(Leaf {
        names: &["spiffe://cluster.local/ns/default/sa/edge"],
        ..Leaf::default()
    });
    files(
        directory,
        &[
            ("cert-chain.pem", &own.chain),
            ("key.pem", &own.key),
            ("root-cert.pem", &ca.pem()),
        ],
    );
    own.der
}

#[test]
fn istio_mutual_presents_and_verifies_mesh_identities() {
    let ca = Authority::new("mesh");
    let directory = tempfile::tempdir().unwrap();
    let own = mesh_identity(directory.path(), &ca);
    let of =
        |account: &str| ca.server(&[&format!("spiffe://cluster.local/ns/default/sa/{account}")]);
    let with = |start: Start| start.args(["--mesh-certs", directory.path().to_str().unwrap()]);
    let says = |more: &str| format!("endpoints: [{{address: 127.0.0.1, {more}}}]");
    let istio = "labels: {security.istio.io/tlsMode: istio}";
    let off = "serviceAccount: web, labels: {security.istio.io/tlsMode: disabled}";
    let rows = [
        // the rule asks for it
        ("{tls: {mode: ISTIO_MUTUAL}}", "labels: {a: b}", "any", true),
        (
            "{tls: {mode: ISTIO_MUTUAL}}",
            "serviceAccount: web",
            "web",
            true,
        ),
        (
            "{tls: {mode: ISTIO_MUTUAL}}",
            "serviceAccount: web",
            "other",
            false,
        ),
        (
            "{tls: {mode: ISTIO_MUTUAL, subjectAltNames: ['spiffe://cluster.local/ns/default/sa/x']}}",
            istio,
            "x",
            true,
        ),
        // neither side negotiates it, and the endpoint speaks it
        (
            "{connectionPool: {tcp: {connectTimeout: 5s}}}",
            "serviceAccount: web",
            "web",
            true,
        ),
        (
            "{connectionPool: {tcp: {connectTimeout: 5s}}}",
            istio,
            "any",
            true,
        ),
        (
            "{connectionPool: {tcp: {connectTimeout: 5s}}}",
            istio,
            "",
            false,
        ),
        (
            "{connectionPool: {tcp: {connectTimeout: 5s}}}",
            off,
            "web",
            false,
        ),
        (
            "{connectionPool: {tcp: {connectTimeout: 5s}}}",
            "labels: {a: b}",
            "web",
            false,
        ),
        ("{tls: {mode: DISABLE}}", istio, "web", false),
    ];
    for (policy, endpoint, account, expected) in rows {
        let pair = match account {
            "" => Authority::new("mesh").server(&["a.test"]),
            account => of(account),
        };
        let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&pair).for_clients_of(&ca));
        let entry = service(&origin, "HTTP", "location: MESH_INTERNAL");
        let entry = entry.replace("endpoints: [{address: 127.0.0.1}]", &says(endpoint));
        let proxy = started(&[entry, rule(policy)], with);
        let reply = get(&proxy);
        assert_eq!(
            reply.status == 200,
            expected,
            "{policy} {endpoint} {account}"
        );
        if expected {
            let caller = origin.only();
            assert_eq!(caller.sni.as_deref(), Some("outbound_.80_._.a.test"));
            assert_eq!(caller.alpn, ["istio-http/1.1", "istio", "http/1.1"]);
            assert_eq!(caller.certificate.as_ref(), Some(&own));
            let page = proxy.page("/clusters");
            assert!(page.contains("::tls::ISTIO_MUTUAL"), "{page}");
        }
    }
}

#[test]
fn external_service_gets_no_automatic_mutual_tls() {
    let ca = Authority::new("mesh");
    let directory = tempfile::tempdir().unwrap();
    mesh_identity(directory.path(), &ca);
    let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&ca.server(&["a.test"])));
    let entry = service(&origin, "HTTP", "").replace(
        "{address: 127.0.0.1}",
        "{address: 127.0.0.1, serviceAccount: web}",
    );
    let proxy = started(&[entry], |start| {
        start.args(["--mesh-certs", directory.path().to_str().unwrap()])
    });
    assert_ne!(get(&proxy).status, 200);
    assert!(origin.callers().is_empty());
}

#[test]
fn failed_handshake_is_retried_on_another_endpoint() {
    let material = Files::new();
    let good = TlsOrigin::start(Speaks::H1, &Terms::new(&material.ca.server(&["a.test"])));
    let bad = TlsOrigin::start(Speaks::H1, &Terms::new(&material.other.server(&["a.test"])));
    let entry = format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: a}}\nspec:\n  hosts: [a.test]\n  resolution: STATIC\n  \
         ports: [{{number: 80, name: web, protocol: HTTP}}]\n  endpoints: [{{address: 127.0.0.1, ports: {{web: {}}}}}, {{address: 127.0.0.1, ports: {{web: {}}}}}]\n",
        good.address.port(),
        bad.address.port()
    );
    let detect = "outlierDetection: {consecutive5xxErrors: 2, baseEjectionTime: 60s, maxEjectionPercent: 100}";
    let policy = material.tls(SIMPLE).replacen(
        '{',
        &format!("{{loadBalancer: {{simple: ROUND_ROBIN}}, {detect}, "),
        1,
    );
    let proxy = start(&[entry, rule(&policy)]);
    for _ in 0..20 {
        assert_eq!(get(&proxy).status, 200);
    }
    assert!((1..=4).contains(&bad.failed()), "{}", bad.failed());
    let count = proxy.metric(
        "strait_upstream_tls_handshakes_total",
        &[("result", "failed")],
    );
    assert!(count >= 1.0);
    assert!(proxy.page("/clusters").contains("ejected for"));
}
