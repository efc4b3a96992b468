//! Server selection for TLS clients, by SNI and by the host of requests.

use std::io::Write;
use std::net::TcpStream;

use hyper::Request;

use crate::support::client::Front;
use crate::support::mesh::documents;
use crate::support::origin::empty;
use crate::support::pki::Authority;
use crate::support::raw::Raw;
use crate::support::tls::{Edge, Visitor, credential, get, named_gateway, secret, server};
use crate::support::{eventually, until};

#[tokio::test]
async fn request_over_tls_reaches_its_origin() {
    let edge = Edge::simple(&["a.example"]);
    for front in [Front::H1, Front::H2] {
        let mut client = edge.visitor().client(front, "a.example").await.unwrap();
        for _ in 0..3 {
            let answer = client.call(get("a.example", "/x")).await;
            assert_eq!((answer.status, answer.text()), (200, "hello"));
        }
    }
    let seen = edge.origin.seen();
    assert_eq!(seen.len(), 6);
    for request in &seen {
        assert_eq!(request.header("x-forwarded-proto"), Some("https"));
        assert_eq!(request.header("x-forwarded-client-cert"), None);
        assert_eq!(request.host(), "a.example");
    }
    let line = edge.proxy.logged("/x");
    assert_eq!(line["requested_server_name"], "a.example");
    let full = [("result", "full")];
    assert_eq!(
        edge.proxy
            .metric("strait_downstream_tls_handshakes_total", &full),
        2.0
    );
}

#[tokio::test]
async fn large_bodies_pass_both_ways() {
    let edge = Edge::simple(&["a.example"]);
    let body = vec![7_u8; 3 << 20];
    for front in [Front::H1, Front::H2] {
        let mut client = edge.visitor().client(front, "a.example").await.unwrap();
        let request = Request::post("https://a.example/")
            .body(crate::support::origin::full(body.clone()))
            .unwrap();
        let answer = client.call(request).await;
        assert_eq!(answer.status, 200);
        assert!(answer.body == body, "{} bytes", answer.body.len());
    }
}

/// Starts servers for `a.example`, `*.b.example`, `x.b.example` and, with `with_any`, `*`.
fn servers(with_any: bool) -> Edge {
    let ca = Authority::new("ca");
    let pair = ca.server(&[
        "a.example",
        "*.b.example",
        "x.b.example",
        "c.example",
        "*.a.example",
    ]);
    Edge::start(ca, &[credential("cred", &pair)], |edge| {
        let tls = "{mode: SIMPLE, credentialName: cred}";
        let mut servers = vec![
            server(edge, "a", "[a.example]", tls),
            server(edge, "wild", "['*.b.example']", tls),
            server(edge, "exact", "[x.b.example]", tls),
        ];
        if with_any {
            servers.push(server(edge, "any", "['*']", tls));
        }
        servers
    })
}

#[tokio::test]
async fn unknown_or_missing_sni_is_closed_without_a_catch_all_server() {
    let edge = servers(false);
    for (host, expected) in [
        ("a.example", 200),
        ("y.b.example", 200),
        ("x.b.example", 200),
        ("c.example", 0),
    ] {
        assert_eq!(edge.visitor().status(host).await, expected, "{host}");
    }
    edge.turns_away("unknown_sni", 1.0);
    let mut nameless = edge.visitor();
    nameless.sni = false;
    assert_eq!(nameless.status("a.example").await, 0);
    edge.turns_away("no_sni", 1.0);
}

#[tokio::test]
async fn catch_all_server_accepts_clients_without_sni() {
    let edge = servers(true);
    let mut nameless = edge.visitor();
    nameless.sni = false;
    assert_eq!(nameless.status("a.example").await, 200);
    assert_eq!(edge.visitor().status("c.example").await, 200);
}

#[tokio::test]
async fn host_of_another_server_gets_421_on_http2_and_404_on_http1() {
    let edge = servers(false);
    for (front, host, expected) in [
        (Front::H2, "a.example", 200),
        (Front::H2, "x.b.example", 421),
        (Front::H2, "c.example", 404),
        (Front::H1, "a.example", 200),
        (Front::H1, "x.b.example", 404),
        (Front::H1, "c.example", 404),
    ] {
        let mut client = edge.visitor().client(front, "a.example").await.unwrap();
        let answer = client.call(get(host, "/")).await;
        assert_eq!((answer.status, host), (expected, host), "{front:?}");
    }
}

#[tokio::test]
async fn host_of_a_more_specific_server_gets_421_on_http2_and_its_wildcard_on_http1() {
    let edge = servers(false);
    for (front, expected) in [(Front::H2, 421), (Front::H1, 200)] {
        let mut client = edge.visitor().client(front, "y.b.example").await.unwrap();
        let answer = client.call(get("x.b.example", "/")).await;
        assert_eq!(answer.status, expected, "{front:?}");
    }
}

#[tokio::test]
async fn certificate_of_a_server_is_not_avoided_by_another_sni() {
    let (ca, other) = (Authority::new("ca"), Authority::new("other"));
    let pair = ca.server(&["*.b.example", "elsewhere.example"]);
    let with_ca = |name: &str, authority: &Authority| {
        let pem = authority.pem();
        let values = [
            ("tls.crt", &*pair.chain),
            ("tls.key", &*pair.key),
            ("ca.crt", &*pem),
        ];
        secret(name, &values)
    };
    let secrets = [
        credential("cred", &pair),
        with_ca("one", &ca),
        with_ca("two", &other),
    ];
    let edge = Edge::start(Authority::new("unused"), &secrets, |edge| {
        let simple = "{mode: SIMPLE, credentialName: cred}";
        let mutual = |name| format!("{{mode: MUTUAL, credentialName: {name}}}");
        vec![
            server(edge, "wild", "['*.b.example']", simple),
            server(edge, "any", "['*']", simple),
            server(edge, "admin", "[admin.b.example]", &mutual("one")),
            server(edge, "alike", "[alike.b.example]", &mutual("one")),
            server(edge, "other", "[other.b.example]", &mutual("two")),
            server(
                edge,
                "maybe",
                "[maybe.b.example]",
                "{mode: OPTIONAL_MUTUAL, credentialName: one}",
            ),
            server(edge, "passed", "[passed.b.example]", "{mode: PASSTHROUGH}"),
        ]
    });
    let plain = Visitor::new(edge.proxy.edge, &ca);
    let known = plain.clone().with(&ca.server(&["client"]));
    let mut nameless = plain.clone();
    nameless.sni = false;
    for (visitor, sni, host, expected) in [
        (&plain, "x.b.example", "x.b.example", 200),
        (&plain, "x.b.example", "admin.b.example", 421),
        (&plain, "x.b.example", "ADMIN.B.example:8443", 421),
        (&plain, "x.b.example", "other.b.example", 421),
        (&plain, "x.b.example", "maybe.b.example", 421),
        (&plain, "x.b.example", "passed.b.example", 421),
        (&plain, "elsewhere.example", "admin.b.example", 421),
        (&nameless, "x.b.example", "admin.b.example", 421),
        (&known, "admin.b.example", "admin.b.example", 200),
        (&known, "admin.b.example", "other.b.example", 421),
    ] {
        for front in [Front::H1, Front::H2] {
            let mut client = visitor.client(front, sni).await.unwrap();
            let answer = client.call(get(host, "/")).await;
            assert_eq!((answer.status, host), (expected, host), "{front:?} {sni}");
        }
    }
    // the same is asked of clients of both
    let mut client = known.client(Front::H1, "admin.b.example").await.unwrap();
    assert_eq!(client.call(get("alike.b.example", "/")).await.status, 404);
    assert_eq!(edge.origin.seen().len(), 4);
}

#[tokio::test]
async fn port_in_the_host_header_is_ignored() {
    let edge = servers(false);
    let mut client = edge.visitor().client(Front::H1, "a.example").await.unwrap();
    assert_eq!(client.call(get("a.example:8443", "/")).await.status, 200);
}

#[tokio::test]
async fn plain_http_on_a_tls_port_is_closed() {
    let edge = Edge::simple(&["a.example"]);
    let mut client = Raw::connect(edge.proxy.edge);
    client.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    assert!(client.is_closed());
    edge.turns_away("not_tls", 1.0);
}

#[tokio::test]
async fn missing_credential_of_one_server_does_not_affect_others() {
    let ca = Authority::new("ca");
    let pair = ca.server(&["a.example", "b.example"]);
    let edge = Edge::start(ca, &[credential("cred", &pair)], |edge| {
        vec![
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
                "{mode: SIMPLE, credentialName: lost}",
            ),
        ]
    });
    assert_eq!(edge.visitor().status("a.example").await, 200);
    assert_eq!(edge.visitor().status("b.example").await, 0);
    edge.turns_away("no_server_certificate", 1.0);
    let log = edge.proxy.has_logged("secret default/lost");
    assert!(log.contains("TLS001"), "{log}");

    edge.proxy.write("lost.yaml", credential("lost", &pair));
    until("the secret is in effect", async || {
        edge.visitor().status("b.example").await == 200
    })
    .await;
}

#[tokio::test]
async fn newer_server_with_a_used_host_is_left_out() {
    let ca = Authority::new("ca");
    let pair = ca.server(&["a.example", "b.example"]);
    let edge = Edge::start(ca, &[credential("cred", &pair)], |edge| {
        vec![server(
            edge,
            "a",
            "[a.example]",
            "{mode: SIMPLE, credentialName: cred}",
        )]
    });
    let young = server(
        edge.proxy.edge,
        "young",
        "[b.example, a.example]",
        "{mode: SIMPLE, credentialName: cred}",
    );
    edge.proxy
        .write("young.yaml", documents([named_gateway("young", &[young])]));
    eventually("the second gateway is loaded", || {
        edge.proxy.page("/config_dump").contains("default/young")
    });
    assert_eq!(edge.visitor().status("a.example").await, 200);
    assert_eq!(edge.visitor().status("b.example").await, 0);
}

#[tokio::test]
async fn malformed_client_hellos_are_closed_and_counted() {
    let edge = Edge::simple(&["a.example"]);
    for (bytes, reason) in [
        (
            &b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\xff"[..],
            "malformed_client_hello",
        ),
        (b"\x15\x03\x01\x00\x02\x02\x28", "not_tls"),
    ] {
        let mut client = Raw::connect(edge.proxy.edge);
        client.send(bytes);
        assert!(client.is_closed(), "{reason}");
        edge.turns_away(reason, 1.0);
    }
    let mut stream = TcpStream::connect(edge.proxy.edge).unwrap();
    stream.write_all(b"\x16\x03\x01\x00").unwrap();
    drop(stream);
    eventually("it is counted", || {
        edge.turned_away("client_hello_incomplete") == 1.0
    });
    assert_eq!(edge.visitor().status("a.example").await, 200);
}

#[tokio::test]
async fn http_server_redirects_to_https() {
    let ca = Authority::new("ca");
    let pair = ca.server(&["a.example"]);
    let plain = crate::support::proxy::free_address();
    let edge = Edge::start(ca, &[credential("cred", &pair)], |edge| {
        let (ip, port) = (plain.ip(), plain.port());
        vec![
            server(
                edge,
                "https",
                "[a.example]",
                "{mode: SIMPLE, credentialName: cred}",
            ),
            format!(
                "  - {{port: {{number: {port}, name: http, protocol: HTTP}}, bind: {ip}, hosts: [a.example], tls: {{httpsRedirect: true}}}}\n"
            ),
        ]
    });
    let mut client = Raw::connect(plain);
    let reply = client
        .send("GET /x?y HTTP/1.1\r\nHost: a.example\r\n\r\n")
        .reply();
    assert_eq!(reply.status, 301);
    assert!(reply.has("location: https://a.example/x?y"), "{reply:?}");
    assert_eq!(edge.visitor().status("a.example").await, 200);
}

#[tokio::test]
async fn https_redirect_of_an_https_server_has_no_effect() {
    let ca = Authority::new("ca");
    let pair = ca.server(&["a.example"]);
    let edge = Edge::start(ca, &[credential("cred", &pair)], |edge| {
        let tls = "{mode: SIMPLE, credentialName: cred, httpsRedirect: true}";
        vec![server(edge, "https", "[a.example]", tls)]
    });
    assert_eq!(edge.visitor().status("a.example").await, 200);
    // whatever the client claims to have spoken
    let mut client = edge.visitor().client(Front::H1, "a.example").await.unwrap();
    let mut request = get("a.example", "/");
    let claim = "http".parse().unwrap();
    request.headers_mut().insert("x-forwarded-proto", claim);
    assert_eq!(client.call(request).await.status, 200);
}

#[tokio::test]
async fn drain_closes_tls_connections_gracefully() {
    let edge = Edge::simple(&["a.example"]);
    let mut client = edge.visitor().client(Front::H1, "a.example").await.unwrap();
    let mut streams = edge.visitor().client(Front::H2, "a.example").await.unwrap();
    assert_eq!(client.call(get("a.example", "/")).await.status, 200);
    assert_eq!(streams.call(get("a.example", "/")).await.status, 200);
    let mut proxy = edge.proxy;
    proxy.signal("TERM");
    let ended = tokio::time::timeout(crate::support::DEADLINE, async {
        drop(client.ended.await);
        drop(streams.ended.await);
    });
    ended.await.expect("both connections end");
    assert!(proxy.wait().success());
    drop(Request::new(empty()));
}

#[tokio::test]
async fn stalled_handshake_times_out() {
    let ca = Authority::new("ca");
    let pair = ca.server(&["a.example"]);
    let edge = Edge::start_with(
        ca,
        &[credential("cred", &pair)],
        |edge| {
            vec![server(
                edge,
                "https",
                "['*']",
                "{mode: SIMPLE, credentialName: cred}",
            )]
        },
        |start| start.args(["--tls-handshake-timeout", "300ms"]),
    );
    // A head of a record and nothing more; a whole hello and nothing more.
    let mut begun = Raw::connect(edge.proxy.edge);
    begun.send(b"\x16\x03\x01\x02");
    let mut greeted = Raw::connect(edge.proxy.edge);
    greeted.send(edge.visitor().hello("a.example"));
    assert!(begun.is_closed());
    eventually("both are counted", || {
        edge.turned_away("client_hello_timeout") + edge.turned_away("handshake_timeout") == 2.0
    });
    edge.turns_away("handshake_timeout", 1.0);
    assert_eq!(edge.visitor().status("a.example").await, 200);
}

#[tokio::test]
async fn fragmented_client_hello_is_accepted_and_a_huge_one_is_not() {
    let edge = Edge::simple(&["a.example"]);
    let hello = edge.visitor().hello("a.example");
    let mut client = Raw::connect(edge.proxy.edge);
    for byte in hello.chunks(1) {
        client.send(byte);
    }
    // A handshake record: the server's answer.
    assert_eq!(client.read(1), [0x16]);

    let mut client = Raw::connect(edge.proxy.edge);
    // Every record holds one byte of a message that is to be 60,000 bytes long.
    client.send(b"\x16\x03\x01\x00\x04\x01\x00\xea\x60");
    for _ in 0..4_000 {
        client.send(b"\x16\x03\x01\x00\x01\x00");
    }
    assert!(client.is_closed());
    edge.turns_away("client_hello_too_large", 1.0);
}
