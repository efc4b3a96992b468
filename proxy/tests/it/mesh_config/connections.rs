//! Connections to endpoints and from clients.

use super::Mesh;
use crate::support::mesh::{everything_to_address, with_policy};
use crate::support::origin::{Back, Origin};
use crate::support::proxy::Start;
use crate::support::raw::Raw;

const GET: &str = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";

#[test]
fn requests_go_upstream_as_http2_where_the_mesh_or_a_rule_says_so() {
    // it speaks HTTP/2 alone, and its port declares HTTP/1.1
    let origin = Origin::named(Back::H2, "hello");
    for (rule, mesh_policy, status) in [
        ("", "DO_NOT_UPGRADE", 502),
        ("", "UPGRADE", 200),
        ("{connectionPool: {http: {maxRetries: 3}}}", "UPGRADE", 200),
        (
            "{connectionPool: {http: {h2UpgradePolicy: DO_NOT_UPGRADE}}}",
            "UPGRADE",
            502,
        ),
        (
            "{connectionPool: {http: {h2UpgradePolicy: UPGRADE}}}",
            "DO_NOT_UPGRADE",
            200,
        ),
    ] {
        let start = Start::new().args(["--labels", "istio=ingressgateway"]);
        let text = match rule {
            "" => everything_to_address(start.edge(), Back::H1, origin.address),
            rule => with_policy(start.edge(), origin.address, rule),
        };
        let mesh = Mesh::start(
            start.file("mesh.yaml", text),
            &format!("h2UpgradePolicy: {mesh_policy}\n"),
        );
        let reply = Raw::connect(mesh.proxy.edge).send(GET).reply();
        let passed = reply.status == 200;
        assert_eq!(
            passed,
            status == 200,
            "{rule} {mesh_policy}: {}",
            reply.status
        );
    }
}

#[test]
fn gateways_take_the_proxy_header_where_the_mesh_says_so() {
    let origin = Origin::named(Back::H1, "hello");
    let start = Start::new().args(["--labels", "istio=ingressgateway"]);
    let text = everything_to_address(start.edge(), Back::H1, origin.address);
    let mesh = Mesh::start(start.file("mesh.yaml", text), "{}\n");
    let header = "PROXY TCP4 192.0.2.1 198.51.100.2 5 443\r\n";
    assert_eq!(Raw::connect(mesh.proxy.edge).send(GET).reply().status, 200);
    mesh.configure("defaultConfig: {gatewayTopology: {proxyProtocol: {}}}\n");
    assert!(Raw::connect(mesh.proxy.edge).send(GET).is_closed());
    let mut client = Raw::connect(mesh.proxy.edge);
    assert_eq!(client.send(format!("{header}{GET}")).reply().status, 200);
    let seen = origin.seen().pop().unwrap();
    assert!(
        seen.header("x-forwarded-for")
            .unwrap()
            .ends_with("192.0.2.1")
    );
}
