//! Connections to endpoints and from clients.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::Mesh;
use crate::support::DEADLINE;
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

/// Starts a gateway before the origin, which gets these settings of proxies while it runs.
fn with_settings(origin: &Origin, settings: &str) -> Mesh {
    let start = Start::new().args(["--labels", "istio=ingressgateway"]);
    let text = everything_to_address(start.edge(), Back::H1, origin.address);
    let mesh = Mesh::start(start.file("mesh.yaml", text), "{}\n");
    mesh.configure(&format!("defaultConfig: {{{settings}}}\n"));
    mesh
}

#[test]
fn headers_with_underscores_are_treated_as_the_mesh_says() {
    let origin = Origin::named(Back::H1, "hello");
    let request = "GET / HTTP/1.1\r\nHost: a.test\r\nx_a: 1\r\nx-b: 2\r\n\r\n";
    for (action, status, passed) in [
        ("ALLOW", 200, Some("1")),
        ("DROP_HEADER", 200, None),
        ("REJECT_REQUEST", 400, None),
    ] {
        let settings =
            format!("connectionSettings: {{httpHeadersWithUnderscoresAction: {action}}}");
        let mesh = with_settings(&origin, &settings);
        let reply = Raw::connect(mesh.proxy.edge).send(request).reply();
        assert_eq!(reply.status, status, "{action}");
        if status == 200 {
            let seen = origin.seen().pop().unwrap();
            assert_eq!(seen.header("x_a"), passed, "{action}");
            assert_eq!(seen.header("x-b"), Some("2"), "{action}");
        }
    }
    let profile = with_settings(&origin, "connectionSettings: {profile: EDGE}");
    let reply = Raw::connect(profile.proxy.edge).send(request).reply();
    assert_eq!(reply.status, 400);
}

#[test]
fn connections_beyond_the_limit_of_the_mesh_are_closed() {
    let origin = Origin::named(Back::H1, "hello");
    let settings = "connectionSettings: {globalDownstreamConnectionLimit: 1}";
    let mesh = with_settings(&origin, settings);
    let mut first = Raw::connect(mesh.proxy.edge);
    assert_eq!(first.send(GET).reply().status, 200);
    assert!(Raw::connect(mesh.proxy.edge).is_closed());
    let reason = [("reason", "connection_limit")];
    let name = "strait_downstream_connections_rejected_total";
    assert_eq!(mesh.proxy.metric(name, &reason), 1.0);
}

#[test]
fn head_of_a_request_must_arrive_in_the_time_that_the_mesh_says() {
    let origin = Origin::named(Back::H1, "hello");
    let settings = "connectionSettings: {httpRequestHeadersTimeout: 0.3s}";
    let mesh = with_settings(&origin, settings);
    let mut client = Raw::connect(mesh.proxy.edge);
    assert_eq!(client.send("GET / HTTP/1.1\r\n").reply().status, 408);
}

#[test]
fn response_must_end_in_the_time_that_the_mesh_says() {
    let origin = Origin::start(Back::H1, |_| std::future::pending());
    let settings = "connectionSettings: {httpMaxStreamDuration: 0.3s}";
    let mesh = with_settings(&origin, settings);
    assert_eq!(Raw::connect(mesh.proxy.edge).send(GET).reply().status, 504);
}

#[test]
fn idle_connections_and_streams_end_in_the_time_that_the_mesh_says() {
    let origin = Origin::named(Back::H1, "hello");
    let mesh = with_settings(&origin, "connectionSettings: {httpIdleTimeout: 0.3s}");
    let mut client = Raw::connect(mesh.proxy.edge);
    assert_eq!(client.send(GET).reply().status, 200);
    assert!(client.is_closed());
    // a client that does not send the body that it has announced
    let origin = Origin::start(Back::H1, |_| std::future::pending());
    let mesh = with_settings(&origin, "connectionSettings: {httpStreamIdleTimeout: 0.3s}");
    let request = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\n";
    assert!(Raw::connect(mesh.proxy.edge).send(request).is_closed());
}

#[test]
fn http2_clients_get_the_limits_that_the_mesh_says() {
    let origin = Origin::named(Back::H1, "hello");
    let settings = "connectionSettings: {httpMaxConcurrentStreams: 7, http2InitialStreamWindowSize: 70000, \
                    http2InitialConnectionWindowSize: 90000}";
    let mesh = with_settings(&origin, settings);
    let mut client = TcpStream::connect(mesh.proxy.edge).unwrap();
    client.set_read_timeout(Some(DEADLINE)).unwrap();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    client.write_all(preface).unwrap();
    let mut frame = || {
        let mut head = [0; 9];
        client.read_exact(&mut head).unwrap();
        let mut payload = vec![0; usize::from(u16::from_be_bytes([head[1], head[2]]))];
        client.read_exact(&mut payload).unwrap();
        (head[3], payload)
    };
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    let (kind, payload) = frame();
    assert_eq!(kind, 4, "SETTINGS");
    let setting = |id: u8| {
        let mut all = payload.chunks(6);
        all.find(|one| one[1] == id).map(|one| number(&one[2..]))
    };
    assert_eq!((setting(3), setting(4)), (Some(7), Some(70_000)));
    let window = std::iter::repeat_with(frame).find(|(kind, _)| *kind == 8);
    assert_eq!(number(&window.unwrap().1), 90_000 - 65_535);
}

#[test]
fn headers_are_added_or_omitted_as_the_mesh_says() {
    let origin = Origin::named(Back::H1, "hello");
    const ADDED: [&str; 3] = ["x-envoy-attempt-count", "x-request-id", "x-forwarded-port"];
    let settings = "proxyHeaders: {attemptCount: {disabled: true}, envoyDebugHeaders: {disabled: true}, \
                    requestId: {disabled: true}, xForwardedPort: {enabled: true}}";
    for (settings, added, is_timed) in [
        ("proxyHeaders: {}", [true, true, false], true),
        (settings, [false, false, true], false),
    ] {
        let mesh = with_settings(&origin, settings);
        let port = mesh.proxy.edge.port().to_string();
        // with and without a header that makes the proxy look at all of them
        for request in [GET, "GET / HTTP/1.1\r\nHost: a.test\r\nx-a: 1\r\n\r\n"] {
            let reply = Raw::connect(mesh.proxy.edge).send(request).reply();
            assert_eq!(reply.status, 200);
            let is_time = |line: &String| line.starts_with("x-envoy-upstream-service-time");
            let times = reply.headers.iter().any(is_time);
            assert_eq!(times, is_timed, "{settings}");
            let seen = origin.seen().pop().unwrap();
            assert_eq!(ADDED.map(|name| seen.header(name).is_some()), added);
            if added[2] {
                assert_eq!(seen.header("x-forwarded-port"), Some(&*port));
            }
        }
    }
}
