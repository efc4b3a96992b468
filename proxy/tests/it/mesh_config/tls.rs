//! TLS of the mesh: `enableAutoMtls`, `meshMTLS`, `tlsDefaults` and `caCertificates`.

use std::path::Path;

use rustls::version::{TLS12, TLS13};

use super::Mesh;
use crate::support::eventually;
use crate::support::mesh::{documents, everything_to, gateway, routes};
use crate::support::origin::{Back, Origin};
use crate::support::pki::Authority;
use crate::support::proxy::Start;
use crate::support::tls::{Visitor, credential, files, server};
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};
use crate::upstream_tls::{get, rule};
use crate::workload_identity::Workload;

const OWN: &str = "spiffe://cluster.local/ns/shop/sa/edge";
const WEB: &str = "spiffe://cluster.local/ns/shop/sa/web";

/// Returns a service of the mesh with this endpoint.
fn service(origin: &TlsOrigin) -> String {
    let port = origin.address.port();
    format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: a}}\nspec:\n  \
         hosts: [a.test]\n  location: MESH_INTERNAL\n  resolution: STATIC\n  \
         ports: [{{number: 80, name: web, protocol: HTTP, targetPort: {port}}}]\n  \
         endpoints: [{{address: 127.0.0.1, labels: {{security.istio.io/tlsMode: istio}}}}]\n"
    )
}

/// Starts a gateway of the mesh that routes requests to `a.test`.
fn start(workload: &Workload, resources: &[String], config: &str) -> Mesh {
    let start = Start::new();
    let route = "- {name: a, route: [{destination: {host: a.test, port: {number: 80}}}]}";
    let text = documents([gateway(&[start.edge()]), routes("a", "['*']", route)]);
    let start = start
        .args(workload.flags())
        .args(["--labels", "istio=ingressgateway"])
        .file("mesh.yaml", text)
        .file("more.yaml", documents(resources));
    Mesh::start(start, config)
}

/// Returns a mesh configuration that trusts an authority.
fn trusting(authority: &Authority) -> String {
    let pem = authority.pem();
    let pem: String = pem.lines().map(|line| format!("    {line}\n")).collect();
    format!("caCertificates:\n- pem: |\n{pem}")
}

#[test]
fn automatic_mutual_tls_is_switched_off_and_on() {
    let workload = Workload::of(OWN);
    let origin = workload.endpoint(WEB);
    let mesh = start(&workload, &[service(&origin)], "{}\n");
    for (config, served) in [
        ("", true),
        ("enableAutoMtls: false\n", false),
        ("enableAutoMtls: true\n", true),
    ] {
        if !config.is_empty() {
            mesh.configure(config);
        }
        assert_eq!(get(&mesh.proxy).status == 200, served, "{config}");
    }
}

#[test]
fn authorities_of_the_mesh_configuration_are_trusted_beside_those_of_the_mesh() {
    let (workload, other) = (Workload::of(OWN), Authority::new("other"));
    let terms = Terms::new(&other.server(&[WEB])).for_clients_of(&workload.ca);
    let origin = TlsOrigin::start(Speaks::H1, &terms);
    let mesh = start(&workload, &[service(&origin)], "{}\n");
    assert_eq!(get(&mesh.proxy).status, 503);
    mesh.configure(&trusting(&other));
    assert_eq!(get(&mesh.proxy).status, 200);
    mesh.configure("{}\n");
    assert_eq!(get(&mesh.proxy).status, 503);
}

#[test]
fn endpoints_get_the_versions_of_the_mesh() {
    let workload = Workload::of(OWN);
    let pair = workload.ca.server(&[WEB]);
    let old = Terms::new(&pair)
        .for_clients_of(&workload.ca)
        .speaking(&TLS12);
    let origin = TlsOrigin::start(Speaks::H1, &old);
    const NEW: &str = "{minProtocolVersion: TLSV1_3}";
    let simple = rule("{tls: {mode: SIMPLE, insecureSkipVerify: true}}");
    let plain = TlsOrigin::start(Speaks::H1, &Terms::new(&pair).speaking(&TLS12));
    for (resources, [of_mesh, of_others]) in [
        (vec![service(&origin)], [503, 200]),
        (vec![service(&plain), simple], [200, 503]),
    ] {
        let mesh = start(&workload, &resources, "{}\n");
        assert_eq!(get(&mesh.proxy).status, 200);
        mesh.configure(&format!("meshMTLS: {NEW}\n"));
        assert_eq!(get(&mesh.proxy).status, of_mesh);
        mesh.configure(&format!("tlsDefaults: {NEW}\n"));
        assert_eq!(get(&mesh.proxy).status, of_others);
    }
}

#[tokio::test]
async fn servers_without_settings_of_their_own_get_those_of_the_mesh() {
    let workload = Workload::of(OWN);
    let pair = workload.ca.server(&["a.example", "b.example"]);
    let start = Start::new();
    let edge = start.edge();
    let servers = [
        server(
            edge,
            "a",
            "[a.example]",
            "{mode: SIMPLE, credentialName: cred}",
        ),
        server(
            edge,
            "b",
            "[b.example]",
            "{mode: SIMPLE, credentialName: cred, minProtocolVersion: TLSV1_2}",
        ),
    ];
    let reply = "- directResponse: {status: 200}";
    let text = documents([
        crate::support::tls::gateway(&servers),
        routes("all", "['*']", reply),
        credential("cred", &pair),
    ]);
    let start = start
        .args(["--labels", "istio=ingressgateway"])
        .file("mesh.yaml", text);
    let mesh = Mesh::start(start, "{}\n");
    let visitor = Visitor::new(edge, &workload.ca);
    for (config, expected) in [
        ("", [200, 200, 200]),
        (
            "tlsDefaults: {minProtocolVersion: TLSV1_3}\n",
            [0, 200, 200],
        ),
        ("meshMTLS: {minProtocolVersion: TLSV1_3}\n", [200, 200, 200]),
    ] {
        if !config.is_empty() {
            mesh.configure(config);
        }
        let old = visitor.clone().speaking(&TLS12);
        let new = visitor.clone().speaking(&TLS13);
        let found = [
            old.status("a.example").await,
            old.status("b.example").await,
            new.status("a.example").await,
        ];
        assert_eq!(found, expected, "{config}");
    }
}

/// The proxy stays in its trust domain, and workloads of another one become its own.
#[test]
fn aliases_of_the_trust_domain_follow_the_mesh() {
    let workload = Workload::of(OWN);
    let origin = workload.endpoint("spiffe://old.example/ns/shop/sa/web");
    let account = "{address: 127.0.0.1, serviceAccount: web, ";
    let entry = service(&origin)
        .replace("{address: 127.0.0.1, ", account)
        .replace("{name: a}", "{name: a, namespace: shop}");
    let mesh = start(&workload, &[entry], "{}\n");
    assert_eq!(get(&mesh.proxy).status, 503);
    mesh.configure("trustDomainAliases: [old.example]\n");
    assert_eq!(get(&mesh.proxy).status, 200);
    mesh.configure("{}\n");
    assert_eq!(get(&mesh.proxy).status, 503);
}

#[test]
fn trust_in_the_collector_follows_the_mesh() {
    let (ca, other) = (Authority::new("ca"), Authority::new("other"));
    let directory = tempfile::tempdir().unwrap();
    let paths = files(
        directory.path(),
        &[("ca.pem", &*ca.pem()), ("other.pem", &other.pem())],
    );
    let collector = TlsOrigin::start(Speaks::H1, &Terms::new(&ca.server(&["localhost"])));
    let (url, start) = (
        format!("https://localhost:{}", collector.address.port()),
        Start::new(),
    );
    let mesh = everything_to(start.edge(), &Origin::named(Back::H1, "hello"));
    let start = start
        .file("mesh.yaml", mesh)
        .args(["--otlp-endpoint", &url, "--trace-sampling", "100"])
        .env("OTEL_BSP_SCHEDULE_DELAY", "10");
    let config = |trusted: &Path| {
        let trusted = trusted.display();
        format!(
            "defaultConfig: {{tracing: {{tlsSettings: {{mode: SIMPLE, caCertificates: {trusted}}}}}}}\n"
        )
    };
    let mesh = Mesh::start(start, &config(&paths[1]));
    let exports = |result| {
        let labels = [("signal", "traces"), ("result", result)];
        mesh.proxy.metric("strait_otlp_exports_total", &labels)
    };
    get(&mesh.proxy);
    eventually("the export has failed", || exports("retried") >= 1.0);
    assert_eq!(exports("ok"), 0.0);
    mesh.configure(&config(&paths[0]));
    get(&mesh.proxy);
    eventually("spans are exported", || exports("ok") >= 1.0);
}
