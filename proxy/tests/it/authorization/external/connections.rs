//! Providers and connections of other protocols than HTTP: raw TCP, and upgrades.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use super::grpc::{CheckResponse, Provider, Status};
use super::*;
use crate::sidecar::{self, Sidecar};
use crate::support::DEADLINE;
use crate::support::origin::RawOrigin;
use crate::tcp::{mesh, service as opaque, to as destination};

#[test]
fn provider_is_asked_about_raw_tcp() {
    let origin = RawOrigin::start(|_, mut stream| {
        let _ = stream.write_all(b"hello");
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    });
    let allowed = || CheckResponse::default();
    let denied = || CheckResponse {
        status: Some(Status { code: 7 }),
        ..CheckResponse::default()
    };
    let providers = [
        Provider::start(move |_| allowed()),
        Provider::start(move |_| denied()),
    ];
    let closed = crate::support::proxy::free_address();
    let [yes, no] = providers.each_ref().map(|provider| provider.server.address);
    for (kind, at, fields, expected, termination) in [
        ("envoyExtAuthzGrpc", yes, "", "hello", ""),
        ("envoyExtAuthzGrpc", no, "", "", "ext_authz_close"),
        ("envoyExtAuthzGrpc", closed, "", "", "ext_authz_close"),
        ("envoyExtAuthzGrpc", closed, "failOpen: true", "hello", ""),
        // as in Istio, a provider over HTTP has no effect on connections
        ("envoyExtAuthzHttp", no, "", "hello", ""),
    ] {
        let start = Start::new();
        let config = NamedTempFile::new().unwrap();
        fs::write(config.path(), provider(kind, fields)).unwrap();
        let text = documents([
            mesh(start.edge(), &destination("a.test", 1)),
            opaque("a.test", &[origin.address]),
            service("authz", Back::H2, &[(at, "v1")]),
            ask(""),
        ]);
        let proxy = start
            .args(["--mesh-config", config.path().to_str().unwrap()])
            .file("mesh.yaml", text)
            .start();
        let mut stream = TcpStream::connect(proxy.edge).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut said = String::new();
        let _ = stream.read_to_string(&mut said);
        assert_eq!(said, expected, "{kind} {fields}");
        if !termination.is_empty() {
            let line = || proxy.access_log().pop();
            eventually("the connection is logged", || line().is_some());
            let reason = "connection_termination_details";
            assert_eq!(line().unwrap()[reason], termination, "{kind} {fields}");
        }
    }
    let asked = providers[0].asked.lock().unwrap();
    let attributes = asked[0].attributes.as_ref().unwrap();
    assert!(attributes.request.is_none() && attributes.source.is_some());
}

#[test]
fn upgrade_is_checked_without_a_body() {
    let provider = answering(200);
    let body = "includeRequestBodyInCheck: {maxRequestBytes: 8}";
    let edge = Edge::http(body, &provider);
    let headers = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
        sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let text = format!("GET /chat HTTP/1.1\r\nHost: a.test\r\n{headers}\r\nbytes of the tunnel");
    let reply = Raw::connect(edge.proxy.edge).send(text).reply();
    // the origin does not speak the protocol
    assert_eq!(reply.status, 200);
    let seen = provider.only();
    assert_eq!(seen.header("x-envoy-auth-partial-body"), None);
    assert_eq!(seen.header("content-length"), Some("0"));
}

#[test]
fn upgrade_with_a_body_is_checked_like_any_request() {
    let provider = answering(200);
    let body = "failOpen: true, includeRequestBodyInCheck: {maxRequestBytes: 8}";
    let edge = Edge::http(body, &provider);
    for framing in [
        "content-length: 9\r\n\r\n123456789",
        "transfer-encoding: chunked\r\n\r\n9\r\n123456789\r\n0\r\n\r\n",
    ] {
        let text = format!(
            "POST /chat HTTP/1.1\r\nHost: a.test\r\nconnection: upgrade\r\nupgrade: x\r\n{framing}"
        );
        let reply = Raw::connect(edge.proxy.edge).send(text).reply();
        assert_eq!(reply.status, 413, "{framing}");
    }
    assert!(provider.seen().is_empty() && edge.origin.seen().is_empty());
}

#[test]
fn provider_over_http_closes_other_bytes_on_a_port_whose_protocol_is_detected() {
    let origin = RawOrigin::start(|_, mut stream| {
        let _ = stream.write_all(b"hello");
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    });
    let allows = answering(200);
    let config = NamedTempFile::new().unwrap();
    fs::write(
        config.path(),
        provider("envoyExtAuthzHttp", "failOpen: true"),
    )
    .unwrap();
    for (port, policy, expected) in [
        ("other", String::new(), "hello"),
        ("other", ask(""), ""),
        ("tcp", ask(""), "hello"),
    ] {
        let own = sidecar::service("web", "10.96.0.3", (port, 7000), origin.address);
        let of_provider = service("authz", Back::H1, &[(allows.address, "v1")]);
        let flags = ["--mesh-config", config.path().to_str().unwrap()];
        let sidecar = Sidecar::start(&flags, [own, of_provider, policy.clone()]);
        let mut client = sidecar.arrives(&origin.address.to_string());
        client.send("no request\n");
        let mut stream = client.stream();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let _ = stream.shutdown(Shutdown::Write);
        let mut said = String::new();
        let _ = stream.read_to_string(&mut said);
        assert_eq!(said, expected, "{port} {policy}");
    }
    assert!(allows.seen().is_empty());
}
