//! TLS of clients outside of the mesh, terminated at a sidecar: `ingress[].tls`.

use std::net::SocketAddr;
use std::path::Path;

use base64::Engine as _;
use rustls::crypto::aws_lc_rs::cipher_suite as suite;
use rustls::version::{TLS12, TLS13};
use tokio::io::AsyncReadExt;

use super::{Greeter, answering, captured, get};
use crate::support::mesh::documents;
use crate::support::pki::{Authority, Pair};
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::Raw;
use crate::support::tls::{Visitor, files};
use crate::support::until;

/// Starts a sidecar with one ingress listener that has a socket, with these fields of `tls`, and a PeerAuthentication.
fn sidecar(
    (at, app): (SocketAddr, SocketAddr),
    protocol: &str,
    tls: &str,
    policy: &str,
    flags: &[String],
) -> Proxy {
    let (ip, port) = (at.ip(), at.port());
    let resources = [
        format!(
            "apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {{name: s}}\nspec:\n  ingress:\n  - port: {{number: \
             {port}, protocol: {protocol}, name: own}}\n    bind: {ip}\n    captureMode: NONE\n    defaultEndpoint: {app}\n    \
             tls: {tls}\n"
        ),
        format!(
            "apiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: {{name: p}}\nspec:\n  mtls: {{mode: \
             {policy}}}\n"
        ),
    ];
    Start::new()
        .args(["--mode", "sidecar", "--outbound-listener", "off"])
        .args(["--inbound-listener", "off"])
        .args(flags.iter().cloned())
        .file("mesh.yaml", documents(resources))
        .start()
}

/// Returns the `tls` settings with the files of `web.test` in this directory.
fn settings(directory: &Path, ca: &Authority, mode: &str) -> String {
    let pair = ca.server(&["web.test"]);
    let contents = [
        ("web.pem", &*pair.chain),
        ("web.key", &*pair.key),
        ("ca.pem", &*ca.pem()),
    ];
    let paths = files(directory, &contents);
    let [chain, key, authorities] = [0, 1, 2].map(|index| paths[index].display());
    format!(
        "{{mode: {mode}, serverCertificate: {chain}, privateKey: {key}, caCertificates: {authorities}}}"
    )
}

#[tokio::test]
async fn ingress_tls_ends_at_the_sidecar_where_mutual_tls_is_off() {
    let directory = tempfile::tempdir().unwrap();
    let (ca, app, at) = (Authority::new("ca"), answering(), free_address());
    let tls = settings(directory.path(), &ca, "SIMPLE");
    let _proxy = sidecar((at, app.address), "HTTPS", &tls, "DISABLE", &[]);
    let visitor = Visitor::new(at, &ca);
    assert_eq!(visitor.status("web.test").await, 200);
    assert_eq!(app.only().header("x-forwarded-proto"), Some("https"));
    // plain text never replaces it
    assert!(
        Raw::connect(at)
            .send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .is_closed()
    );
    assert_eq!(app.seen().len(), 1);
    // a new certificate is used without a restart
    let next = ca.server(&["web.test", "more.test"]);
    let before = visitor.certificate("web.test").await.unwrap();
    files(
        directory.path(),
        &[("web.pem", &next.chain), ("web.key", &next.key)],
    );
    assert_ne!(before, next.der);
    until("the new certificate is used", async || {
        visitor.certificate("web.test").await.unwrap() == next.der
    })
    .await;
}

#[tokio::test]
async fn mutual_ingress_tls_wants_a_certificate_of_the_client() {
    let directory = tempfile::tempdir().unwrap();
    let (ca, app, at) = (Authority::new("ca"), answering(), free_address());
    let tls = settings(directory.path(), &ca, "MUTUAL");
    let _proxy = sidecar((at, app.address), "HTTPS", &tls, "DISABLE", &[]);
    let visitor = Visitor::new(at, &ca);
    assert_eq!(visitor.status("web.test").await, 0);
    let foreign = Authority::new("other").server(&["client.test"]);
    assert_eq!(visitor.clone().with(&foreign).status("web.test").await, 0);
    let own = ca.server(&["client.test"]);
    assert_eq!(visitor.with(&own).status("web.test").await, 200);
    assert_eq!(app.seen().len(), 1);
}

#[tokio::test]
async fn ingress_tls_of_protocol_tls_carries_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let (ca, app, at) = (Authority::new("ca"), Greeter::start(), free_address());
    let tls = settings(directory.path(), &ca, "SIMPLE");
    let _proxy = sidecar((at, app.address), "TLS", &tls, "DISABLE", &[]);
    let mut inside = Visitor::new(at, &ca).connect("any.test").await;
    assert!(inside.is_err(), "the certificate is for web.test");
    inside = Visitor::new(at, &ca).connect("web.test").await;
    let mut greeting = [0; 9];
    inside.unwrap().read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"greeting\n");
}

#[tokio::test]
async fn mutual_tls_of_the_mesh_comes_before_ingress_tls() {
    let directory = tempfile::tempdir().unwrap();
    let (ca, app, at) = (Authority::new("ca"), answering(), free_address());
    let tls = settings(directory.path(), &ca, "SIMPLE");
    let flags = super::mutual_tls::identity(directory.path(), &ca, "web");
    let _proxy = sidecar((at, app.address), "HTTPS", &tls, "STRICT", &flags);
    let visitor = Visitor::new(at, &ca);
    assert_eq!(visitor.status("web.test").await, 0);
    assert_eq!(app.seen().len(), 0);
}

#[test]
fn captured_connections_have_ingress_tls_too() {
    use std::io::Write;

    let directory = tempfile::tempdir().unwrap();
    let (ca, app, inbound) = (Authority::new("ca"), answering(), free_address());
    let tls = settings(directory.path(), &ca, "SIMPLE");
    let resource = format!(
        "apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {{name: s}}\nspec:\n  ingress:\n  - port: {{number: 8443, \
         protocol: HTTPS, name: own}}\n    defaultEndpoint: {}\n    tls: {tls}\n",
        app.address
    );
    let _proxy = Start::new()
        .args(["--mode", "sidecar", "--outbound-listener", "off"])
        .args(["--original-destination", "proxy-header"])
        .args(["--inbound-listener", &inbound.to_string()])
        .file("mesh.yaml", resource)
        .start();
    let mut stream = captured(inbound, "10.3.0.1:8443").stream();
    let mut session = Visitor::new(inbound, &ca).session("web.test");
    let mut inside = rustls::Stream::new(&mut session, &mut stream);
    inside
        .write_all(b"GET / HTTP/1.1\r\nHost: web.test\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut line = [0; 12];
    std::io::Read::read_exact(&mut inside, &mut line).unwrap();
    assert_eq!(&line, b"HTTP/1.1 200");
    // other ports of the workload are as they were
    let other = app.address.to_string();
    assert_eq!(get(&mut captured(inbound, &other), "web").status, 200);
}

/// Returns the status for a client without a certificate, and with each of these.
async fn statuses(visitor: &Visitor, pairs: [&Pair; 3]) -> [u16; 4] {
    let mut all = [visitor.status("web.test").await, 0, 0, 0];
    for (status, pair) in all[1..].iter_mut().zip(pairs) {
        *status = visitor.clone().with(pair).status("web.test").await;
    }
    all
}

#[tokio::test]
async fn certificates_of_clients_are_checked_as_ingress_tls_says() {
    use proxy::tls::digest::sha256;

    let directory = tempfile::tempdir().unwrap();
    let (ca, app) = (Authority::new("ca"), answering());
    let tls = settings(directory.path(), &ca, "MUTUAL");
    let (known, other) = (ca.server(&["known.test"]), ca.server(&["other.test"]));
    let stranger = Authority::new("elsewhere").server(&["known.test"]);
    let crl = files(directory.path(), &[("ca.crl", &ca.revoke(&[&other]))]);
    let digits = sha256(&known.der).map(|byte| format!("{byte:02X}"));
    let key = base64::engine::general_purpose::STANDARD.encode(sha256(&other.spki));
    for (more, expected) in [
        (format!("caCrl: {}", crl[0].display()), [0, 200, 0, 0]),
        (
            format!("verifyCertificateHash: ['{}']", digits.join(":")),
            [0, 200, 0, 0],
        ),
        (format!("verifyCertificateSpki: ['{key}']"), [0, 0, 200, 0]),
        ("insecureSkipVerify: true".to_owned(), [0, 200, 200, 200]),
    ] {
        let at = free_address();
        let tls = tls.replace('}', &format!(", {more}}}"));
        let _proxy = sidecar((at, app.address), "HTTPS", &tls, "DISABLE", &[]);
        let visitor = Visitor::new(at, &ca);
        let found = statuses(&visitor, [&known, &other, &stranger]).await;
        assert_eq!(found, expected, "{more}");
    }
}

#[tokio::test]
async fn versions_and_algorithms_follow_ingress_tls() {
    let directory = tempfile::tempdir().unwrap();
    let (ca, app) = (Authority::new("ca"), answering());
    let tls = settings(directory.path(), &ca, "SIMPLE");
    let suites = [
        suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    ];
    // statuses with TLS 1.2 and each of two suites, and with TLS 1.3
    for (more, expected) in [
        ("minProtocolVersion: TLSV1_3", [0, 0, 200]),
        ("maxProtocolVersion: TLSV1_2", [200, 200, 0]),
        (
            "cipherSuites: [ECDHE-ECDSA-AES256-GCM-SHA384]",
            [0, 200, 200],
        ),
    ] {
        let at = free_address();
        let tls = tls.replace('}', &format!(", {more}}}"));
        let _proxy = sidecar((at, app.address), "HTTPS", &tls, "DISABLE", &[]);
        let visitor = Visitor::new(at, &ca);
        let mut found = Vec::new();
        for suite in suites {
            let mut visitor = visitor.clone().speaking(&TLS12);
            visitor.suites = vec![suite];
            found.push(visitor.status("web.test").await);
        }
        found.push(visitor.speaking(&TLS13).status("web.test").await);
        assert_eq!(found, expected, "{more}");
    }
}

#[tokio::test]
async fn key_exchange_follows_ingress_tls() {
    let directory = tempfile::tempdir().unwrap();
    let (ca, app) = (Authority::new("ca"), answering());
    let tls = settings(directory.path(), &ca, "SIMPLE");
    for (curve, group) in [
        ("P-256", rustls::NamedGroup::secp256r1),
        ("P-384", rustls::NamedGroup::secp384r1),
    ] {
        let at = free_address();
        let tls = tls.replace('}', &format!(", ecdhCurves: [{curve}]}}"));
        let _proxy = sidecar((at, app.address), "HTTPS", &tls, "DISABLE", &[]);
        let stream = Visitor::new(at, &ca).connect("web.test").await.unwrap();
        let agreed = stream.get_ref().1.negotiated_key_exchange_group();
        assert_eq!(agreed.unwrap().name(), group);
    }
}
