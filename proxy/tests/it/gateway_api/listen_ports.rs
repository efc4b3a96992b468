//! Ports that are opened in place of those of listeners.

use super::{object, path, route, rule, service};
use crate::support::mesh::documents;
use crate::support::origin::{Back, Origin};
use crate::support::proxy::Start;
use crate::support::raw::Raw;

#[test]
fn listener_is_opened_at_another_port_and_redirects_name_its_own() {
    let origin = Origin::named(Back::H1, "a");
    let start = Start::new();
    let edge = start.edge();
    let gateway = format!(
        "gatewayClassName: strait, addresses: [{{value: {}}}], listeners: [{{name: http, protocol: HTTP, port: 81}}]",
        edge.ip()
    );
    let redirect = |path: &str, filter: &str| {
        format!(
            "{{matches: [{{path: {{value: {path}}}}}], filters: [{{type: RequestRedirect, requestRedirect: {{{filter}}}}}]}}"
        )
    };
    let rules = [
        rule(&path("PathPrefix", "/"), "a"),
        redirect("/own", "hostname: other.test"),
        redirect("/scheme", "scheme: https"),
        redirect("/port", "port: 8443"),
    ];
    let mesh = [
        service("edge/a", origin.address),
        object("Gateway", "edge/main", &gateway),
        // the port of a parent is the one that is written
        route("r", "", &rules.join(", ")).replace("{name: main}", "{name: main, port: 81}"),
    ];
    let ports = format!("81:{}", edge.port());
    let proxy = start
        .args(["--listen-ports".to_owned(), ports.clone()])
        .file("mesh.yaml", documents(&mesh))
        .start();
    let send = |target: &str| {
        let text = format!("GET {target} HTTP/1.1\r\nHost: shop.test:81\r\n\r\n");
        Raw::connect(proxy.edge).send(text).reply()
    };
    assert_eq!(send("/").status, 200);
    assert_eq!(origin.only().host(), "shop.test:81");
    for (target, location) in [
        ("/own", "http://other.test:81/own"),
        ("/scheme", "https://shop.test/scheme"),
        ("/port", "http://shop.test:8443/port"),
    ] {
        let reply = send(target);
        assert_eq!(reply.status, 302);
        assert!(
            reply.has(&format!("location: {location}")),
            "{target}: {reply:?}"
        );
    }
    // the URL has the port of the listener, or the one that is opened
    for port in [81, edge.port()] {
        let url = format!("http://shop.test:{port}/own");
        let explained = std::process::Command::new(env!("CARGO_BIN_EXE_strait"))
            .args(["explain", "--listen-ports", &ports, "--config"])
            .arg(proxy.mesh())
            .args(["GET", &url])
            .output()
            .unwrap();
        let explained = String::from_utf8_lossy(&explained.stdout);
        assert!(explained.contains("the URL leads to port"), "{explained}");
        assert!(
            explained.contains("http://other.test:81/own"),
            "{explained}"
        );
    }
}
