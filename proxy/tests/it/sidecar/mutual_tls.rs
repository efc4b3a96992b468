//! Two sidecars with mutual TLS, and clients with plain text.

use std::path::Path;

use super::{Greeter, Sidecar, answering, get, read_line};
use crate::support::eventually;
use crate::support::mesh::documents;
use crate::support::pki::Authority;
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::Raw;
use crate::support::tls::files;

/// Writes the files of a mesh identity into this directory, and returns the flags for them.
pub(super) fn identity(directory: &Path, ca: &Authority, account: &str) -> Vec<String> {
    identity_of(directory, ca, ("cluster.local", account))
}

fn identity_of(
    directory: &Path,
    ca: &Authority,
    (trust_domain, account): (&str, &str),
) -> Vec<String> {
    let id = format!("spiffe://{trust_domain}/ns/default/sa/{account}");
    let pair = ca.server(&[&id, &format!("{account}.test")]);
    let name = |kind: &str| format!("{account}.{kind}");
    let contents = [
        (name("pem"), pair.chain),
        (name("key"), pair.key),
        (name("ca"), ca.pem()),
    ];
    let contents: Vec<(&str, &str)> = contents.iter().map(|(n, text)| (&**n, &**text)).collect();
    files(directory, &contents);
    let path = |kind: &str| directory.join(name(kind)).to_str().unwrap().to_owned();
    [
        ("--workload-cert", path("pem")),
        ("--workload-key", path("key")),
        ("--mesh-ca", path("ca")),
    ]
    .into_iter()
    .flat_map(|(flag, path)| [flag.to_owned(), path])
    .collect()
}

/// Returns a Sidecar that accepts connections to the workload at `app` without capture, and a PeerAuthentication.
pub(super) fn resources(
    (at, app): (std::net::SocketAddr, std::net::SocketAddr),
    protocol: &str,
    mode: &str,
) -> String {
    let (ip, port) = (at.ip(), at.port());
    documents([
        format!(
            "apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {{name: s}}\nspec:\n  ingress:\n  - port: {{number: \
             {port}, protocol: {protocol}, name: own}}\n    bind: {ip}\n    captureMode: NONE\n    defaultEndpoint: {app}\n"
        ),
        format!(
            "apiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: {{name: p}}\nspec:\n  mtls: {{mode: {mode}}}\n"
        ),
    ])
}

/// Starts a sidecar for the workload at `app`; it accepts connections without capture at the returned address.
pub(super) fn server(
    flags: &[String],
    app: std::net::SocketAddr,
    mode: &str,
) -> (Proxy, std::net::SocketAddr) {
    let at = free_address();
    let proxy = Start::new()
        .args(["--mode", "sidecar", "--outbound-listener", "off"])
        .args(["--inbound-listener", "off"])
        .args(flags.iter().cloned())
        .file("mesh.yaml", resources((at, app), "HTTP", mode))
        .start();
    (proxy, at)
}

#[test]
fn sidecar_is_ready_once_its_first_certificate_is_there() {
    let (directory, ca) = (tempfile::tempdir().unwrap(), Authority::new("mesh"));
    let flags = identity(directory.path(), &ca, "late");
    std::fs::remove_file(directory.path().join("late.pem")).unwrap();
    let at = free_address();
    let proxy = Start::new()
        .args(["--mode", "sidecar", "--outbound-listener", "off"])
        .args(["--inbound-listener", "off"])
        .args(flags)
        .file(
            "mesh.yaml",
            resources((at, answering().address), "HTTP", "STRICT"),
        )
        .spawn();
    eventually("it says what it waits for", || {
        let page = proxy.try_page("GET", "/healthz/ready");
        page.is_ok_and(|(status, text)| status == 503 && text.contains("late.pem"))
    });
    identity(directory.path(), &ca, "late");
    eventually("it is ready", || proxy.is_ready());
}

pub(super) fn mutual(host: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: m}}\nspec:\n  host: {host}\n  trafficPolicy: \
         {{tls: {{mode: ISTIO_MUTUAL}}}}\n"
    )
}

#[test]
fn two_sidecars_speak_mutual_tls_and_the_workload_learns_who_its_client_is() {
    let directory = tempfile::tempdir().unwrap();
    let ca = Authority::new("mesh");
    let app = answering();
    let flags = identity(directory.path(), &ca, "web");
    let (server_proxy, at) = server(&flags, app.address, "STRICT");
    let flags = identity(directory.path(), &ca, "client");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let resources = [
        super::service("api", "10.96.0.1", ("http", 80), at),
        mutual("api.default.svc.cluster.local"),
    ];
    let client = Sidecar::start(&flags, resources);
    let mut connection = client.leaves("10.96.0.1:80");
    let request = "GET / HTTP/1.1\r\nHost: api\r\nx-forwarded-client-cert: URI=spiffe://cluster.local/ns/other/sa/admin\r\n\r\n";
    assert_eq!(connection.send(request).reply().status, 200);
    let seen = app.seen();
    let shown = seen[0].header("x-forwarded-client-cert").unwrap();
    assert!(
        shown.contains("URI=spiffe://cluster.local/ns/default/sa/client"),
        "{shown}"
    );
    assert!(!shown.contains("admin"), "{shown}");
    let keys = shown.split(';').filter_map(|pair| pair.split('=').next());
    let keys: Vec<&str> = keys.collect();
    assert_eq!(keys, ["By", "Hash", "Subject", "URI", "DNS"], "{shown}");
    let logged = server_proxy.logged("/");
    let client_id = "spiffe://cluster.local/ns/default/sa/client";
    assert_eq!(logged["downstream_peer_uri_san"], client_id);
    let page = server_proxy.page("/listeners");
    for fact in [
        "::mutual_tls::STRICT",
        "::mutual_tls_source::PeerAuthentication/default/",
        "::mutual_tls_certificate::true",
    ] {
        assert!(page.contains(fact), "{fact}: {page}");
    }
    // plain text is refused, and counted
    let mut plain = Raw::connect(at);
    assert!(
        plain
            .send("GET / HTTP/1.1\r\nHost: api\r\n\r\n")
            .is_closed()
    );
    let reason = [("reason", "plaintext")];
    let refused = server_proxy.metric("strait_downstream_connections_rejected_total", &reason);
    assert_eq!(refused, 1.0);
}

#[test]
fn permissive_port_takes_plain_text_whose_claims_are_not_believed() {
    let directory = tempfile::tempdir().unwrap();
    let ca = Authority::new("mesh");
    let app = answering();
    let flags = identity(directory.path(), &ca, "web");
    let (_server, at) = server(&flags, app.address, "PERMISSIVE");
    let mut plain = Raw::connect(at);
    let request = "GET / HTTP/1.1\r\nHost: api\r\nx-forwarded-client-cert: URI=spiffe://cluster.local/ns/other/sa/admin\r\n\r\n";
    assert_eq!(plain.send(request).reply().status, 200);
    assert_eq!(app.seen()[0].header("x-forwarded-client-cert"), None);
    let flags = identity(directory.path(), &ca, "client");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let resources = [
        super::service("api", "10.96.0.1", ("http", 80), at),
        mutual("api.default.svc.cluster.local"),
    ];
    let client = Sidecar::start(&flags, resources);
    assert_eq!(get(&mut client.leaves("10.96.0.1:80"), "api").status, 200);
    assert!(app.seen()[1].header("x-forwarded-client-cert").is_some());
}

#[test]
fn workload_of_another_authority_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let app = answering();
    let flags = identity(directory.path(), &Authority::new("mesh"), "web");
    let (_server, at) = server(&flags, app.address, "STRICT");
    let flags = identity(directory.path(), &Authority::new("other"), "client");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let resources = [
        super::service("api", "10.96.0.1", ("http", 80), at),
        mutual("api.default.svc.cluster.local"),
    ];
    let client = Sidecar::start(&flags, resources);
    assert_eq!(get(&mut client.leaves("10.96.0.1:80"), "api").status, 503);
    assert_eq!(app.seen().len(), 0);
}

#[test]
fn metrics_of_connections_name_the_identities_of_both_workloads() {
    let directory = tempfile::tempdir().unwrap();
    let ca = Authority::new("mesh");
    let db = Greeter::start();
    let at = free_address();
    let (ip, port) = (at.ip(), at.port());
    let ingress = format!(
        "apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {{name: s}}\nspec:\n  ingress:\n  - port: {{number: \
         {port}, protocol: TCP, name: tcp}}\n    bind: {ip}\n    captureMode: NONE\n    defaultEndpoint: {}\n",
        db.address
    );
    let server = Start::new()
        .args(["--mode", "sidecar", "--outbound-listener", "off"])
        .args(["--inbound-listener", "off"])
        .args(identity(directory.path(), &ca, "db"))
        .file("mesh.yaml", ingress)
        .start();
    let flags = identity(directory.path(), &ca, "client");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let resources = [
        super::service("db", "10.96.0.2", ("tcp", 3306), at),
        mutual("db.default.svc.cluster.local"),
    ];
    let client = Sidecar::start(&flags, resources);
    let mut stream = client.leaves("10.96.0.2:3306").stream();
    assert_eq!(read_line(&mut stream), "greeting\n");
    let labels = [
        ("reporter", "destination"),
        (
            "source_principal",
            "spiffe://cluster.local/ns/default/sa/client",
        ),
        (
            "destination_principal",
            "spiffe://cluster.local/ns/default/sa/db",
        ),
        ("connection_security_policy", "mutual_tls"),
    ];
    let opened = "istio_tcp_connections_opened_total";
    assert_eq!(server.metric(opened, &labels), 1.0);
    // a client in plain text has no identity
    let mut plain = Raw::connect(at).stream();
    assert_eq!(read_line(&mut plain), "greeting\n");
    let labels = [
        ("source_principal", "unknown"),
        ("connection_security_policy", "none"),
    ];
    assert_eq!(server.metric(opened, &labels), 1.0);
}

#[test]
fn client_certificate_itself_is_forwarded_on_request() {
    let (directory, ca) = (tempfile::tempdir().unwrap(), Authority::new("mesh"));
    let app = answering();
    let mut flags = identity(directory.path(), &ca, "web");
    flags.push("--forward-client-certificate".to_owned());
    let (_server, at) = server(&flags, app.address, "STRICT");
    let flags = identity(directory.path(), &ca, "client");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let resources = [
        super::service("api", "10.96.0.1", ("http", 80), at),
        mutual("api.default.svc.cluster.local"),
    ];
    let client = Sidecar::start(&flags, resources);
    assert_eq!(get(&mut client.leaves("10.96.0.1:80"), "api").status, 200);
    let seen = app.seen();
    let shown = seen[0].header("x-forwarded-client-cert").unwrap();
    assert!(
        shown.contains(";Cert=\"-----BEGIN%20CERTIFICATE"),
        "{shown}"
    );
}

#[test]
fn server_of_a_foreign_trust_domain_is_refused_where_no_account_is_known() {
    let (directory, ca) = (tempfile::tempdir().unwrap(), Authority::new("mesh"));
    let app = answering();
    let mut flags = identity_of(directory.path(), &ca, ("cluster.local.evil", "web"));
    flags.extend(["--trust-domain", "cluster.local.evil"].map(str::to_owned));
    flags.extend(["--trust-domain-aliases", "cluster.local"].map(str::to_owned));
    let (_server, at) = server(&flags, app.address, "STRICT");
    let flags = identity(directory.path(), &ca, "client");
    let alias = ["--trust-domain-aliases", "other.test,cluster.local.evil"];
    for (more, expected) in [(&[][..], 503), (&alias[..], 200)] {
        let flags = flags.iter().map(String::as_str).chain(more.iter().copied());
        let flags: Vec<&str> = flags.collect();
        let resources = [
            super::service("api", "10.96.0.1", ("http", 80), at),
            mutual("api.default.svc.cluster.local"),
        ];
        let client = Sidecar::start(&flags, resources);
        let reply = get(&mut client.leaves("10.96.0.1:80"), "api");
        assert_eq!(reply.status, expected, "{more:?}");
    }
    assert_eq!(app.seen().len(), 1);
}
