//! TLS of clients outside of the mesh that ends at a sidecar: `ingress[].tls`.

use std::net::SocketAddr;
use std::path::Path;

use tokio::io::AsyncReadExt;

use super::{Greeter, answering, captured, get};
use crate::support::mesh::documents;
use crate::support::pki::Authority;
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::Raw;
use crate::support::tls::{Visitor, files};
use crate::support::until;

/// A sidecar with one ingress listener that has a socket: `tls` below its mode and files, and a PeerAuthentication.
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

/// The settings of `tls` with files in this directory, which are those of `web.test`.
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
