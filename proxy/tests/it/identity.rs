//! Identity of the workload from the CA of an Istio mesh: issued, renewed, rotated and refused, on real sockets.

mod agent;
pub(crate) mod ca;
mod files;
mod revoked;
mod rotation;
mod spire;
mod strait_ca;
mod workload_api;

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use ca::{Behavior, Ca};
use tonic::Code;

use crate::support::eventually;
use crate::support::mesh::{documents, gateway, routes};
use crate::support::origin::{Back, Origin};
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::{GET, Raw, Reply};
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};
use crate::upstream_tls::{rule, service};

const HOUR: Duration = Duration::from_secs(3_600);
const CLIENT: &str = "edge/client";

/// Returns a gateway that routes every request to `a.test`, by these flags.
fn client(flags: &[String], resources: &[String]) -> Start {
    let start = Start::new();
    let text = documents([
        gateway(&[start.edge()]),
        routes(
            "a",
            "['*']",
            "- {name: a, route: [{destination: {host: a.test, port: {number: 80}}}]}",
        ),
    ]);
    start
        .args(flags.iter().cloned())
        .file("mesh.yaml", text)
        .file("more.yaml", documents(resources))
}

/// Returns a sidecar of `shop/cart` that accepts connections to `app` without capture.
fn sidecar(flags: &[String], app: SocketAddr, mode: &str) -> (Start, SocketAddr) {
    let at = free_address();
    let (ip, port) = (at.ip(), at.port());
    let resources = documents([
        format!(
            "apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {{name: s, namespace: shop}}\nspec:\n  ingress:\n  \
             - port: {{number: {port}, protocol: HTTP, name: own}}\n    bind: {ip}\n    captureMode: NONE\n    \
             defaultEndpoint: {app}\n"
        ),
        format!(
            "apiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: {{name: p, namespace: shop}}\nspec:\n  \
             mtls: {{mode: {mode}}}\n"
        ),
    ]);
    let start = Start::new()
        .args(["--mode", "sidecar", "--outbound-listener", "off"])
        .args(["--inbound-listener", "off"])
        .args(flags.iter().cloned())
        .file("mesh.yaml", resources);
    (start, at)
}

/// Returns a service at this address whose endpoints have the identity `shop/cart`, and the rule to use mutual TLS.
fn mutual(at: SocketAddr) -> [String; 2] {
    let (ip, port) = (at.ip(), at.port());
    let entry = format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: a, namespace: shop}}\nspec:\n  \
         hosts: [a.test]\n  resolution: STATIC\n  \
         ports: [{{number: 80, name: web, protocol: HTTP, targetPort: {port}}}]\n  \
         endpoints: [{{address: {ip}, serviceAccount: cart}}]\n"
    );
    let rule = rule("{tls: {mode: ISTIO_MUTUAL}}");
    [
        entry,
        rule.replace("{name: a}", "{name: a, namespace: shop}"),
    ]
}

/// TLS endpoint with a certificate of the mesh, for clients of the mesh.
fn endpoint(ca: &Ca) -> TlsOrigin {
    ca.with(|state| {
        let pair = state
            .authority
            .server(&["spiffe://cluster.local/ns/shop/sa/cart"]);
        let terms = Terms::new(&pair).for_clients_of(&state.authority);
        TlsOrigin::start(Speaks::H1, &terms)
    })
}

fn get(proxy: &Proxy) -> Reply {
    Raw::connect(proxy.edge).send(GET).reply()
}

fn awaits(proxy: &Proxy, text: &str) -> bool {
    let page = proxy.try_page("GET", "/healthz/ready");
    page.is_ok_and(|(status, page)| status == 503 && page.contains(text))
}

#[test]
fn rejected_answers_leave_the_proxy_waiting_and_then_the_last_good_identity() {
    let ca = Ca::start(HOUR);
    ca.answers(Behavior::OneElement);
    let origin = endpoint(&ca);
    let resources = [
        service(&origin, "HTTP", ""),
        rule("{tls: {mode: ISTIO_MUTUAL}}"),
    ];
    let proxy = client(&ca.flags("edge", "client"), &resources).spawn();
    for (behavior, code, text) in [
        (
            Behavior::OneElement,
            "TLS002",
            "the CA answered 1 certificates",
        ),
        (
            Behavior::AlienName,
            "TLS015",
            "not for spiffe://cluster.local/ns/edge/sa/client",
        ),
        (Behavior::OtherKey, "TLS004", "the key does not belong"),
        (Behavior::Expired, "TLS005", "expired at 2020-09-13"),
        (Behavior::Huge, "ID001", "message length too large"),
        (
            Behavior::Fails(Code::Unavailable),
            "ID001",
            "as asked, [token]",
        ),
    ] {
        ca.answers(behavior);
        let log = proxy.has_logged(text);
        let line = log.lines().find(|line| line.contains(text)).unwrap();
        assert!(line.contains(code), "{line}");
        assert!(awaits(&proxy, "the certificate of the workload"));
        assert!(TcpStream::connect(proxy.edge).is_err(), "{behavior:?}");
    }
    // in that order, so that the delay has not grown to a minute: the first good answer has a short life
    ca.with(|state| (state.behavior, state.life) = (Behavior::Signs, Duration::from_secs(9)));
    eventually("it is ready", || proxy.is_ready());
    assert_eq!(get(&proxy).status, 200);
    ca.answers(Behavior::AlienName);
    proxy.has_logged("the last good one stays in effect");
    assert_eq!(get(&proxy).status, 200);
    assert!(proxy.page("/certs").contains("ns/bank/sa/admin"));
    assert!(proxy.metric("strait_identity_renewals_total", &[("result", "failed")]) >= 6.0);
    assert!(!proxy.stderr().contains(CLIENT), "the token is in the log");
}

#[test]
fn ca_that_does_not_answer_is_asked_again_after_ten_seconds() {
    let ca = Ca::start(HOUR);
    ca.answers(Behavior::Never);
    let proxy = client(&ca.flags("edge", "client"), &[]).spawn();
    eventually("the CA is asked", || !ca.received(CLIENT).is_empty());
    ca.answers(Behavior::Signs);
    eventually("it is ready", || proxy.is_ready());
    let log = proxy.has_logged("no answer within 10s");
    assert!(log.contains("ID001"), "{log}");
    let [first, second] = &ca.received(CLIENT)[..] else {
        panic!("two requests");
    };
    assert!(second.at - first.at >= Duration::from_secs(10));
}

#[test]
fn token_is_read_for_each_request() {
    let ca = Ca::start(HOUR);
    let flags = ca.flags("edge", "client");
    std::fs::remove_file(ca.file("client.token")).unwrap();
    let proxy = client(&flags, &[]).spawn();
    let log = proxy.has_logged("client.token: there is no such file");
    assert!(log.contains("ID001"), "{log}");
    assert!(awaits(&proxy, "client.token"));
    assert!(
        ca.with(|state| state.received.is_empty()),
        "no anonymous request"
    );

    ca.write("client.token", "expired");
    let log = proxy.has_logged("ID002");
    assert!(
        log.contains("Unauthenticated, no workload: [token]"),
        "{log}"
    );
    ca.write("client.token", CLIENT);
    eventually("it is ready", || proxy.is_ready());
    let asked = &ca.received(CLIENT)[0];
    let refused = ca.received("expired").last().unwrap().at;
    assert!(asked.at - refused < Duration::from_secs(15));
    assert_eq!(
        (asked.cluster.as_deref(), asked.validity),
        (Some("Kubernetes"), 86_400)
    );
    assert_eq!(
        proxy.metric("strait_identity_renewals_total", &[("result", "succeeded")]),
        1.0
    );
    for page in ["/certs", "/config_dump", "/stats/prometheus"] {
        let text = proxy.page(page);
        assert!(
            !text.contains(CLIENT) && !text.contains("PRIVATE KEY"),
            "{page}"
        );
    }
    let left = proxy.metric("strait_identity_expiry_seconds", &[]);
    assert!((3_000.0..=3_600.0).contains(&left), "{left}");
}

#[test]
fn expired_identity_is_not_used_and_nothing_is_sent_in_plain_text() {
    let ca = Ca::start(Duration::from_secs(6));
    let origin = endpoint(&ca);
    let resources = [
        service(&origin, "HTTP", ""),
        rule("{tls: {mode: ISTIO_MUTUAL}}"),
    ];
    let proxy = client(&ca.flags("edge", "client"), &resources).start();
    let app = Origin::named(Back::H1, "cart");
    let (server, at) = sidecar(&ca.flags("shop", "cart"), app.address, "STRICT");
    let server = server.start();
    let peer = client(&ca.flags("edge", "peer"), &mutual(at)).start();
    assert_eq!(get(&proxy).status, 200);
    assert_eq!(get(&peer).status, 200);
    assert_eq!(app.connections(), 1);

    ca.answers(Behavior::Fails(Code::Unavailable));
    for one in [&proxy, &server, &peer] {
        eventually("it is not ready", || awaits(one, "expired at"));
    }
    let before = origin.callers().len();
    assert_eq!(get(&proxy).status, 503);
    assert_eq!(get(&peer).status, 503);
    // a plain-text request would be a handshake that fails
    assert_eq!((origin.callers().len(), origin.failed()), (before, 0));
    assert!(
        Raw::connect(at).send(GET).is_closed(),
        "STRICT refuses plain text"
    );
    assert_eq!(proxy.metric("strait_identity_expiry_seconds", &[]), 0.0);
    proxy.has_logged("ID003");

    ca.answers(Behavior::Signs);
    for one in [&proxy, &server, &peer] {
        eventually("it is ready again", || one.is_ready());
    }
    assert_eq!(get(&proxy).status, 200);
    assert_eq!(get(&peer).status, 200);
}

#[test]
fn no_listener_opens_before_the_first_identity() {
    let ca = Ca::start(HOUR);
    ca.answers(Behavior::Fails(Code::Unavailable));
    let app = Origin::named(Back::H1, "cart");
    let proxies = ["STRICT", "PERMISSIVE"].map(|mode| {
        let (start, at) = sidecar(&ca.flags("shop", "cart"), app.address, mode);
        (start.spawn(), at)
    });
    let edge = client(&ca.flags("edge", "client"), &mutual(proxies[0].1)).spawn();
    let all = [
        (&proxies[0].0, proxies[0].1),
        (&proxies[1].0, proxies[1].1),
        (&edge, edge.edge),
    ];
    for (proxy, address) in &all {
        proxy.has_logged("ID001");
        assert!(awaits(proxy, "as asked"));
        assert!(TcpStream::connect(address).is_err());
    }
    ca.answers(Behavior::Signs);
    for (proxy, address) in &all {
        eventually("it is ready", || proxy.is_ready());
        TcpStream::connect(address).unwrap();
    }
    assert_eq!(get(&edge).status, 200);
    assert!(Raw::connect(proxies[0].1).send(GET).is_closed());
    assert_eq!(Raw::connect(proxies[1].1).send(GET).reply().status, 200);
}

#[test]
fn workload_has_one_source_of_its_identity() {
    let ca = Ca::start(HOUR);
    let flags = ca.flags("edge", "client");
    for more in [["--identity", "files"], ["--workload-cert", "own.pem"]] {
        let mut proxy = client(&flags, &[]).args(more).spawn();
        assert_eq!(proxy.wait().code(), Some(2), "{more:?}");
    }
    // files of another workload, which count without the flag
    let other = ca.with(|state| {
        state
            .authority
            .server(&["spiffe://cluster.local/ns/bank/sa/x"])
    });
    ca.write("tls.crt", &other.chain);
    ca.write("tls.key", &other.key);
    ca.write("ca.crt", &ca.with(|state| state.authority.pem()));
    let directory = ca.directory.path().to_str().unwrap();
    let beside = ["--mesh-certs", directory];
    let proxy = client(&flags, &[]).args(beside).start();
    let certs = proxy.page("/certs");
    assert!(
        certs.contains("spiffe://cluster.local/ns/edge/sa/client"),
        "{certs}"
    );
    assert!(!certs.contains("ns/bank"), "{certs}");
}
