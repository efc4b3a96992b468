//! Remote clusters file of a proxy, and TLS settings per endpoint.

use std::process::Command;

use super::hops::Mesh;
use super::*;
use crate::support::pki::{Authority, Leaf};
use crate::support::tls::files;
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};

/// Returns an import of ns1/web from c2 at this gateway.
pub(super) fn import(at: SocketAddr, host: &str) -> String {
    let (ip, port) = (at.ip(), at.port());
    format!(
        "apiVersion: flomesh.io/v1alpha1\nkind: ServiceImport\nmetadata: {{namespace: ns1, name: web}}\n\
         spec: {{ports: [{{name: http, port: 80, endpoints: [{{clusterKey: default/default/default/c2, \
         target: {{host: '{host}', ip: {ip}, port: {port}, path: /c2}}}}]}}]}}\n"
    )
}

const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: web}\nspec: {ports: [{name: http, port: 80}]}\n";

/// Starts a gateway of c1 that routes every request to ns1/web of the whole cluster set.
pub(super) fn proxy(more: &[String], arguments: &[&str]) -> Proxy {
    let start = Start::new();
    let mut all = vec![
        gateway(&[start.edge()]),
        routes(
            "all",
            "['*']",
            "- {retries: {attempts: 0}, route: [{destination: {host: web.ns1.svc.clusterset.local, port: {number: 80}}}]}",
        ),
        SERVICE.to_owned(),
    ];
    all.extend(more.iter().cloned());
    start
        .args(["--cluster", "c1"])
        .args(arguments.iter().copied())
        .file("mesh.yaml", documents(all))
        .start()
}

#[test]
fn gateways_of_imports_use_the_tls_of_the_remote_clusters_file() {
    let ca = Authority::new("c2");
    let own = ca.issue(Leaf::default());
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    files(
        directory.path(),
        &[
            ("ca.pem", &ca.pem()),
            ("own.pem", &own.chain),
            ("own.key", &own.key),
        ],
    );
    let pair = ca.server(&["gw.c2.example"]);
    let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&pair).for_clients_of(&ca));
    let ask = |sni: &str, mode: &str| {
        let text = format!(
            "clusters:\n- key: default/default/default/c2\n  gateway:\n    host: 10.2.0.9\n    port: 443\n    \
             tls: {{mode: {mode}{sni}, caCertificates: {}}}\n",
            path("ca.pem")
        );
        let pair = format!(
            "MUTUAL, clientCertificate: {}, privateKey: {}",
            path("own.pem"),
            path("own.key")
        );
        std::fs::write(path("clusters.yaml"), text.replace("MUTUAL", &pair)).unwrap();
        let resources = [import(origin.address, "gw.c2.example")];
        let proxy = proxy(&resources, &["--clusters", &path("clusters.yaml")]);
        Raw::connect(proxy.edge).send(GET).reply().status
    };
    assert_eq!(ask("", "MUTUAL"), 200);
    let caller = origin.only();
    assert_eq!(caller.sni.as_deref(), Some("gw.c2.example"));
    assert!(caller.certificate.is_some());
    assert_eq!(caller.hosts, ["web.example"], "the host stays");
    assert_eq!(ask("", "SIMPLE"), 503, "the gateway wants a certificate");
    assert_eq!(ask(", sni: other.example", "MUTUAL"), 503, "not its name");
    assert_ne!(ask("", "DISABLE"), 200, "plain text is no TLS");
}

#[test]
fn workloads_use_mesh_tls_while_gateways_use_plain_text() {
    let mesh = Mesh::new();
    let workload = mesh.workload(Speaks::H1);
    let of_c2 = Site::new("g2");
    let local = slice(0, "", workload.address).replace(
        "{kubernetes.io/service-name: web}",
        "{kubernetes.io/service-name: web, security.istio.io/tlsMode: istio}",
    );
    let resources = [import(of_c2.address(), ""), local];
    let mesh = ["--mesh-certs", mesh.certificates()];
    let counts = count(&proxy(&resources, &mesh), 100);
    assert_eq!(counts.keys().collect::<Vec<_>>(), ["g2", "hello"]);
    let rule = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {namespace: ns1, name: web}\n\
                spec: {host: web, trafficPolicy: {tls: {mode: ISTIO_MUTUAL}, loadBalancer: {simple: ROUND_ROBIN}}}\n";
    let [import, local] = resources;
    let asked = proxy(&[import, local, rule.to_owned()], &mesh);
    assert_shares(&count(&asked, RUN), &[("hello", 500), ("g2", 500)]);
    let page = asked.page("/clusters");
    assert!(page.contains("ISTIO_MUTUAL"), "{page}");
}

#[test]
fn workloads_of_an_import_must_have_its_service_account() {
    let mesh = Mesh::new();
    let workload = mesh.workload(Speaks::H1);
    let of_c2 = slice(0, "c2", workload.address);
    let rule = |more: &str| {
        format!(
            "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{namespace: ns1, name: web}}\n\
             spec: {{host: web, trafficPolicy: {{tls: {{mode: ISTIO_MUTUAL{more}}}}}}}\n"
        )
    };
    let ask = |account: &str, more: &str| {
        let account = match account {
            "" => String::new(),
            name => format!("serviceAccountName: '{name}', "),
        };
        let import = format!(
            "apiVersion: flomesh.io/v1alpha1\nkind: ServiceImport\nmetadata: {{namespace: ns1, name: web}}\n\
             spec: {{{account}ports: [{{name: http, port: 80, endpoints: []}}]}}\n"
        );
        let resources = [import, of_c2.clone(), rule(more)];
        let proxy = proxy(&resources, &["--mesh-certs", mesh.certificates()]);
        Raw::connect(proxy.edge).send(GET).reply().status
    };
    assert_eq!(ask("web", ""), 200);
    assert_eq!(ask("other", ""), 503, "somebody else");
    assert_eq!(
        (ask("", ""), ask("*", "")),
        (200, 200),
        "any certificate is accepted"
    );
    let names =
        |name: &str| format!(", subjectAltNames: ['spiffe://cluster.local/ns/ns1/sa/{name}']");
    assert_eq!(ask("other", &names("web")), 200, "a rule counts first");
    assert_eq!(ask("web", &names("other")), 503);
}

#[test]
fn an_invalid_remote_clusters_file_is_rejected_with_a_location() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(at("mesh.yaml"), SERVICE).unwrap();
    let check = |text: &str| {
        std::fs::write(at("told"), text).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_strait"))
            .args([
                "check",
                "--config",
                &at("mesh.yaml"),
                "--clusters",
                &at("told"),
            ])
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (code, _) = check("clusters: [{key: a/b/c/d, gateway: {host: gw.example, port: 80}}]\n");
    assert_eq!(code, Some(0));
    let (code, told) = check("clusters:\n- key: a/b/c/d\n  gatewey: {}\n");
    assert_eq!(code, Some(2), "{told}");
    assert!(
        told.contains("told:3:3") && told.contains("CM021"),
        "{told}"
    );
}

#[test]
fn gateways_of_imports_get_their_own_sni_with_a_tls_rule() {
    let ca = Authority::new("c2");
    let directory = tempfile::tempdir().unwrap();
    files(directory.path(), &[("ca.pem", &ca.pem())]);
    let pair = ca.server(&["gw.c2.example"]);
    let origin = TlsOrigin::start(Speaks::H1, &Terms::new(&pair));
    let rule = format!(
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{namespace: ns1, name: web}}\n\
         spec: {{host: web, trafficPolicy: {{tls: {{mode: SIMPLE, caCertificates: {}/ca.pem}}}}}}\n",
        directory.path().display()
    );
    let ask = |host: &str| {
        let resources = [import(origin.address, host), rule.clone()];
        let proxy = proxy(&resources, &[]);
        Raw::connect(proxy.edge).send(GET).reply().status
    };
    assert_eq!(ask("gw.c2.example"), 200);
    assert_eq!(origin.only().sni.as_deref(), Some("gw.c2.example"));
    assert_eq!(ask("gw.c3.example"), 503, "the certificate is for another");
}

#[test]
fn check_knows_the_local_and_remote_clusters() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let backups = policy(
        "{lbType: FailOver, targets: [{clusterKey: c1}, {clusterKey: c2}, {clusterKey: c3}]}",
    );
    let of_c2 = "apiVersion: flomesh.io/v1alpha1\nkind: ServiceImport\nmetadata: {namespace: ns1, name: web}\n\
                 spec: {ports: [{name: http, port: 80, endpoints: [{clusterKey: default/default/default/c2, \
                 target: {ip: 10.2.0.9, port: 80}}]}]}\n";
    let mesh = documents([SERVICE.to_owned(), of_c2.to_owned(), backups]);
    std::fs::write(at("mesh.yaml"), mesh).unwrap();
    std::fs::write(
        at("told"),
        "clusters: [{key: default/default/default/c3}]\n",
    )
    .unwrap();
    let check = |more: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_strait"))
            .args(["check", "--config", &at("mesh.yaml")])
            .args(more)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        (said.contains("X294"), said.contains("X311"))
    };
    let (cluster, told) = (["--cluster", "c1"], ["--clusters", &at("told")]);
    assert_eq!(check(&[]), (true, false));
    assert_eq!(check(&cluster), (true, true), "c3 is not known");
    let both = [cluster, told].concat();
    assert_eq!(check(&both), (false, true));
}

#[test]
fn the_log_has_diagnostics_for_the_local_cluster() {
    let backups = policy("{lbType: FailOver, targets: [{clusterKey: c1}, {clusterKey: c2}]}");
    let of_c2 = "apiVersion: flomesh.io/v1alpha1\nkind: ServiceImport\nmetadata: {namespace: ns1, name: web}\n\
                 spec: {ports: [{name: http, port: 80, endpoints: [{clusterKey: default/default/default/c2, \
                 target: {ip: 10.2.0.9, port: 80}}]}]}\n";
    let start = Start::new();
    let edge = gateway(&[start.edge()]);
    let mesh = documents([edge, SERVICE.to_owned(), of_c2.to_owned(), backups]);
    let proxy = start
        .args(["--cluster", "c1"])
        .file("mesh.yaml", mesh)
        .start();
    proxy.has_logged("X311");
}
