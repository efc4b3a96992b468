//! Scope of resources: `discoverySelectors` and `default*ExportTo`.

use std::fs;

use super::Mesh;
use crate::support::mesh::{documents, gateway};
use crate::support::proxy::Start;
use crate::support::raw::Raw;

const NAMESPACE: &str =
    "apiVersion: v1\nkind: Namespace\nmetadata: {name: other, labels: {env: test}}\n";

/// Starts a gateway of the namespace `default`, with routes in the namespace `other`.
fn start(config: &str) -> Mesh {
    let start = Start::new();
    let routes = "apiVersion: networking.istio.io/v1\nkind: VirtualService\n\
        metadata: {name: all, namespace: other}\n\
        spec: {hosts: ['*'], gateways: [default/edge], http: [{directResponse: {status: 200}}]}\n";
    let edge = gateway(&[start.edge()]);
    let text = documents([edge, routes.to_owned(), NAMESPACE.to_owned()]);
    let start = start
        .args(["--labels", "istio=ingressgateway"])
        .file("mesh.yaml", text);
    Mesh::start(start, config)
}

fn status(mesh: &Mesh) -> u16 {
    let request = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    Raw::connect(mesh.proxy.edge).send(request).reply().status
}

#[test]
fn objects_of_other_namespaces_have_no_effect() {
    let mesh = start("{}\n");
    assert_eq!(status(&mesh), 200);
    mesh.configure("discoverySelectors: [{matchLabels: {env: prod}}]\n");
    assert_eq!(status(&mesh), 404);
    mesh.configure("discoverySelectors: [{matchLabels: {env: test}}]\n");
    assert_eq!(status(&mesh), 200);
}

#[test]
fn change_of_default_exports_waits_for_a_restart() {
    const PRIVATE: &str = "defaultVirtualServiceExportTo: ['.']\n";
    let mesh = start(PRIVATE);
    assert_eq!(status(&mesh), 404);
    fs::write(mesh.config.path(), "{}\n").unwrap();
    mesh.proxy.has_logged("MC102");
    assert_eq!(status(&mesh), 404);
    assert_eq!(status(&start("{}\n")), 200);
}
