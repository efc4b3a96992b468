//! PeerAuthentication at a sidecar: clients with plain text, mesh TLS, or both.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

use crate::support::mesh::{documents, gateway, routes};
use crate::support::origin::{Back, Origin};
use crate::support::pki::Authority;
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::{GET, Raw, Reply};
use crate::support::tls::files;
use crate::support::{DEADLINE, eventually};

const SERVER: &str = "spiffe://cluster.local/ns/shop/sa/cart";
pub(crate) const CLIENT: &str = "spiffe://cluster.local/ns/edge/sa/gateway";

/// Workload with its sidecar, and a gateway that routes requests to it.
pub(crate) struct Pair {
    pub(crate) sidecar: Proxy,
    gateway: Proxy,
    pub(crate) workload: Origin,
    _files: tempfile::TempDir,
}

/// Returns a PeerAuthentication for the workload with these fields in flow style.
fn policy(fields: &str) -> String {
    format!(
        "apiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: {{name: cart, namespace: shop}}\n\
         spec: {{selector: {{matchLabels: {{app: cart}}}}, {fields}}}\n"
    )
}

fn mode(mode: &str) -> String {
    policy(&format!("mtls: {{mode: {mode}}}"))
}

/// Returns the flags for the identity of `name`, with files of a directory.
fn identity(directory: &Path, name: &str, namespace: &str) -> Vec<String> {
    let file = |name: String| directory.join(name).to_str().unwrap().to_owned();
    let flags = [
        ("--workload-cert", file(format!("{name}.pem"))),
        ("--workload-key", file(format!("{name}.key"))),
        ("--mesh-ca", file("ca.pem".to_owned())),
        ("--namespace", namespace.to_owned()),
    ];
    let each = flags.into_iter();
    each.flat_map(|(flag, value)| [flag.to_owned(), value])
        .collect()
}

/// Returns a Sidecar that accepts connections at one address for the workload at another.
fn ingress(inbound: SocketAddr, workload: SocketAddr) -> String {
    let (ip, port) = (inbound.ip(), inbound.port());
    format!(
        "apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {{name: cart, namespace: shop}}\nspec:\n  \
         ingress:\n  - port: {{number: {port}, name: http, protocol: HTTP}}\n    bind: {ip}\n    captureMode: NONE\n    \
         defaultEndpoint: {workload}\n"
    )
}

/// Returns the service of the workload, for clients.
fn service(inbound: SocketAddr) -> String {
    let (ip, port) = (inbound.ip(), inbound.port());
    format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: cart, namespace: shop}}\nspec:\n  \
         hosts: [cart.test]\n  location: MESH_INTERNAL\n  resolution: STATIC\n  \
         ports: [{{number: 80, name: web, protocol: HTTP, targetPort: {port}}}]\n  \
         endpoints: [{{address: {ip}, serviceAccount: cart}}]\n"
    )
}

impl Pair {
    /// Starts a pair with a client of this identity, and this policy of the workload.
    pub(crate) fn start(client: &str, policy: &str) -> Self {
        Self::start_with(client, [&[], &[]], policy)
    }

    /// Starts a pair with additional flags of the client and of the sidecar.
    pub(crate) fn start_with(
        client: &str,
        [flags, of_sidecar]: [&[&str]; 2],
        policy: &str,
    ) -> Self {
        let files_of_both = tempfile::tempdir().unwrap();
        let ca = Authority::new("mesh");
        let path = files_of_both.path();
        files(path, &[("ca.pem", &ca.pem())]);
        for (name, id) in [("server", SERVER), ("client", client)] {
            let pair = ca.server(&[id]);
            let [chain, key] = ["pem", "key"].map(|kind| format!("{name}.{kind}"));
            files(path, &[(&*chain, &pair.chain), (&*key, &pair.key)]);
        }
        let workload = Origin::named(Back::H1, "cart");
        let start = Start::new();
        let inbound = start.edge();
        let sidecar = start
            .args(identity(path, "server", "shop"))
            .args(["--mode", "sidecar", "--labels", "app=cart"])
            .args(["--outbound-listener", "off", "--inbound-listener", "off"])
            .args(of_sidecar.iter().copied())
            .file("mesh.yaml", ingress(inbound, workload.address))
            .file("policy.yaml", policy)
            .start();
        let start = Start::new();
        let edge = start.edge();
        let entry = service(inbound);
        let routes = routes(
            "cart",
            "['*']",
            "- {route: [{destination: {host: cart.test}}]}",
        );
        let gateway = start
            .args(identity(path, "client", "edge"))
            .args(flags.iter().copied())
            .file("mesh.yaml", documents([gateway(&[edge]), routes, entry]))
            .start();
        Self {
            sidecar,
            gateway,
            workload,
            _files: files_of_both,
        }
    }

    /// Sends a request over TLS between the workloads.
    pub(crate) fn over_tls(&self) -> Reply {
        self.send_over_tls(GET)
    }

    pub(crate) fn send_over_tls(&self, request: &str) -> Reply {
        Raw::connect(self.gateway.edge).send(request).reply()
    }

    /// Sends a plain text request that claims another workload's identity; returns the response, empty if the
    /// connection is closed.
    pub(crate) fn in_plain_text(&self) -> String {
        let mut stream = TcpStream::connect(self.sidecar.edge).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let claim = "x-forwarded-client-cert: URI=spiffe://cluster.local/ns/bank/sa/admin";
        let request = GET.replacen(
            "\r\n\r\n",
            &format!("\r\nconnection: close\r\n{claim}\r\n\r\n"),
            1,
        );
        let mut text = String::new();
        // a connection that was closed early may be reset
        let _ = stream.write_all(request.as_bytes());
        let _ = stream.read_to_string(&mut text);
        text
    }

    fn accepts_plain_text(&self) -> bool {
        self.in_plain_text().starts_with("HTTP/1.1 200")
    }
}

#[test]
fn explain_names_a_rejected_policy() {
    let pair = Pair::start(CLIENT, &mode("SECURE"));
    assert_eq!(pair.in_plain_text(), "");
    let (admin, url) = (
        pair.sidecar.admin.to_string(),
        format!("http://{}/", pair.sidecar.edge),
    );
    let output = Command::new(env!("CARGO_BIN_EXE_strait"))
        .args(["explain", "--admin", &admin, "GET", &url])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let said = "PeerAuthentication/shop/cart is rejected and was never valid: until it is corrected, it counts as STRICT";
    assert!(text.contains(said), "{text}");
    let takes_tls = text.contains("takes mutual TLS of the mesh only");
    assert!(
        text.contains("outcome       forwarded") && takes_tls,
        "{text}"
    );
}

#[test]
fn strict_workload_takes_tls_of_the_mesh_only() {
    let pair = Pair::start(CLIENT, &mode("STRICT"));
    assert_eq!(pair.over_tls().status, 200);
    assert_eq!(pair.in_plain_text(), "");
    let seen = pair.workload.only();
    let element = seen.header("x-forwarded-client-cert").unwrap();
    assert!(
        element.starts_with(&format!("By={SERVER};Hash=")),
        "{element}"
    );
    assert!(element.ends_with(&format!("URI={CLIENT}")), "{element}");
    let labels = [
        ("reporter", "destination"),
        ("connection_security_policy", "mutual_tls"),
        ("source_principal", CLIENT),
        ("source_workload_namespace", "edge"),
        ("destination_principal", SERVER),
    ];
    assert_eq!(pair.sidecar.metric("istio_requests_total", &labels), 1.0);
    let refused = [("reason", "plaintext")];
    let name = "strait_downstream_connections_rejected_total";
    assert_eq!(pair.sidecar.metric(name, &refused), 1.0);
}

#[test]
fn permissive_workload_takes_both_and_counts_plain_text_by_source() {
    let pair = Pair::start(CLIENT, "");
    assert_eq!(pair.over_tls().status, 200);
    let name = "strait_inbound_plaintext_connections_total";
    assert_eq!(pair.sidecar.metric(name, &[]), 0.0);
    assert!(pair.accepts_plain_text());
    let source = [
        ("source_address", "127.0.0.1"),
        ("source_workload", "unknown"),
    ];
    assert_eq!(pair.sidecar.metric(name, &source), 1.0);
    let seen = pair.workload.seen();
    assert_eq!(seen[1].header("x-forwarded-client-cert"), None);
    let labels = [
        ("reporter", "destination"),
        ("connection_security_policy", "none"),
    ];
    assert_eq!(pair.sidecar.metric("istio_requests_total", &labels), 1.0);
}

#[test]
fn changed_mode_is_followed_and_a_port_has_its_own() {
    let pair = Pair::start(CLIENT, &mode("STRICT"));
    assert_eq!(pair.in_plain_text(), "");
    pair.sidecar.write("policy.yaml", mode("PERMISSIVE"));
    eventually("plain text is accepted", || pair.accepts_plain_text());
    assert_eq!(pair.over_tls().status, 200);
    let port = pair.sidecar.edge.port();
    let of_port =
        format!("mtls: {{mode: PERMISSIVE}}, portLevelMtls: {{{port}: {{mode: STRICT}}}}");
    pair.sidecar.write("policy.yaml", policy(&of_port));
    eventually("plain text is refused", || !pair.accepts_plain_text());
}

#[test]
fn workload_that_disables_mesh_tls_takes_plain_text_only() {
    let pair = Pair::start(CLIENT, &mode("DISABLE"));
    assert_eq!(pair.over_tls().status, 503);
    assert!(pair.accepts_plain_text());
    let name = "strait_inbound_plaintext_connections_total";
    assert_eq!(pair.sidecar.metric(name, &[]), 0.0);
}

#[test]
fn client_of_another_trust_domain_is_refused() {
    let own = "spiffe://else.example/ns/edge/sa/gateway";
    let pair = Pair::start_with(
        own,
        [
            &[
                "--trust-domain",
                "else.example",
                "--trust-domain-aliases",
                "cluster.local",
            ],
            &[],
        ],
        &mode("STRICT"),
    );
    assert_eq!(pair.over_tls().status, 503);
    assert!(pair.workload.seen().is_empty());
    let rejected = [("reason", "client_certificate_rejected")];
    assert!(
        pair.sidecar
            .metric("strait_downstream_tls_errors_total", &rejected)
            >= 1.0
    );
}
