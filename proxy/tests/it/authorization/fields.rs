//! Hosts, methods, headers and addresses that policies compare.

use super::{Edge, from, header, of, table, to};

/// Status of a request with this host.
fn host(edge: &Edge, host: &str) -> u16 {
    edge.request("/", host, "").status
}

fn with(edge: &Edge, headers: &str) -> u16 {
    edge.request("/", "a.test", headers).status
}

#[test]
fn hosts_are_compared_as_sent_and_denied_ones_also_without_port_and_dot() {
    let edge = Edge::start(&[]);
    let exact = Edge::start(&["--authz-hosts", "exact"]);
    for (policy, rows) in [
        (
            of("ALLOW", &to("hosts: [shop.test]")),
            vec![
                ("SHOP.test", 200, 200),
                ("shop.test:80", 403, 403),
                ("shop.test.", 403, 403),
                ("shop.test:", 403, 403),
            ],
        ),
        (
            of("DENY", &to("hosts: [secret.test]")),
            vec![
                ("secret.test", 403, 403),
                ("SECRET.test", 403, 403),
                ("secret.test:80", 403, 200),
                ("secret.test.", 403, 200),
                ("secret.test.:443", 403, 200),
                ("other.test", 200, 200),
            ],
        ),
        (
            of("DENY", &to("notHosts: [shop.test]")),
            vec![
                ("shop.test", 200, 200),
                ("shop.test:80", 403, 403),
                ("other.test", 403, 403),
            ],
        ),
        (
            of("DENY", &to("hosts: ['secret.test:*']")),
            vec![("secret.test", 200, 200), ("secret.test:80", 403, 403)],
        ),
        (
            of("ALLOW", &to("hosts: ['*.cart.test']")),
            vec![("a.cart.test", 200, 200), ("cart.test", 403, 403)],
        ),
    ] {
        for edge in [&edge, &exact] {
            edge.set(std::slice::from_ref(&policy));
        }
        for (name, bare, as_sent) in rows {
            assert_eq!(host(&edge, name), bare, "{policy} {name}");
            assert_eq!(host(&exact, name), as_sent, "{policy} {name} exact");
        }
    }
}

#[test]
fn methods_are_compared_with_their_case() {
    let edge = Edge::start(&[]);
    let rows: [(String, &[(&str, u16)]); 3] = [
        (
            of("ALLOW", &to("methods: [GET]")),
            &[("GET /", 200), ("PUT /", 403), ("POST /", 403)],
        ),
        (
            of("DENY", &to("notMethods: [GET, HEAD]")),
            &[("GET /", 200), ("PATCH /", 403), ("POST /", 403)],
        ),
        (
            of("DENY", &to("methods: [POST]")),
            &[("GET /", 200), ("POST /", 403)],
        ),
    ];
    table(&edge, &rows);
    assert_eq!(with(&edge, "x-http-method-override: POST\r\n"), 200);
}

#[test]
fn headers_are_compared_line_by_line() {
    let edge = Edge::start(&[]);
    for (policy, rows) in [
        (
            of("ALLOW", &header("x-role", "values: [admin]")),
            vec![
                ("x-role: admin\r\nx-role: other\r\n", 200),
                ("x-role: other\r\nx-role: admin\r\n", 200),
                ("x-role: other, admin\r\n", 403),
                ("X-ROLE: admin\r\n", 200),
                ("x_role: admin\r\n", 403),
                ("x-role: admin \r\n", 200),
                ("", 403),
            ],
        ),
        (
            of("DENY", &header("x-block", "values: ['yes']")),
            vec![
                ("x-block: no\r\nx-block: yes\r\n", 403),
                ("x-block: no\r\n", 200),
                ("", 200),
            ],
        ),
        (
            of("ALLOW", &header("x-block", "notValues: ['yes']")),
            vec![("x-block: other\r\nx-block: yes\r\n", 403), ("", 200)],
        ),
        (
            of("ALLOW", &header("x", "values: ['*']")),
            vec![("x:\r\n", 200), ("", 403)],
        ),
        (
            of("DENY", &header("x", "notValues: ['*']")),
            vec![("x:\r\n", 200), ("", 403)],
        ),
        (
            of("DENY", &header("x-role", "notValues: ['*']")),
            vec![
                ("Connection: x-role\r\nx-role: a\r\n", 403),
                ("x-role: a\r\n", 200),
            ],
        ),
        (
            of("DENY", &header("x-forwarded-client-cert", "values: ['*']")),
            vec![(
                "x-forwarded-client-cert: URI=spiffe://cluster.local/ns/a/sa/b\r\n",
                200,
            )],
        ),
    ] {
        edge.set(std::slice::from_ref(&policy));
        for (headers, status) in rows {
            assert_eq!(with(&edge, headers), status, "{policy} {headers}");
        }
    }
    edge.set(&[of("ALLOW", &header(":path", "values: ['/p*']"))]);
    edge.expect("path with query", &[("/p?q", 200), ("/q", 403)]);
}

#[test]
fn addresses_are_those_of_the_peer_and_of_the_client_by_trusted_hops() {
    let edge = Edge::start(&[]);
    let trusting = Edge::start(&["--trusted-hops", "1"]);
    let forwarded = |list: &str| format!("x-forwarded-for: {list}\r\n");
    for (policy, rows) in [
        (
            of("ALLOW", &from("ipBlocks: [127.0.0.0/8]")),
            vec![("203.0.113.7", 200, 200)],
        ),
        (
            // bits beyond the prefix do not count
            of("ALLOW", &from("ipBlocks: [127.9.9.9/8]")),
            vec![("203.0.113.7", 200, 200)],
        ),
        (
            of("DENY", &from("notIpBlocks: [127.0.0.0/8]")),
            vec![("203.0.113.7", 200, 200)],
        ),
        (
            of("DENY", &from("notIpBlocks: [203.0.113.7]")),
            vec![("203.0.113.7", 403, 403)],
        ),
        (
            of("ALLOW", &from("ipBlocks: [203.0.113.7]")),
            vec![("203.0.113.7", 403, 403)],
        ),
        (
            of("ALLOW", &from("remoteIpBlocks: [203.0.113.7]")),
            vec![
                ("203.0.113.7", 403, 200),
                ("203.0.113.7, 8.8.8.8", 403, 403),
                ("8.8.8.8, 203.0.113.7", 403, 200),
                ("8.8.8.8\r\nx-forwarded-for: 203.0.113.7", 403, 200),
                ("203.0.113.7\r\nx-forwarded-for: 8.8.8.8", 403, 403),
                ("203.0.113.7:99", 403, 403),
                ("[2001:db8::1]", 403, 403),
                ("unknown", 403, 403),
            ],
        ),
        (
            of("DENY", &from("notRemoteIpBlocks: [127.0.0.1]")),
            vec![("203.0.113.7", 200, 403), ("unknown", 200, 200)],
        ),
        (
            of("DENY", &from("notPrincipals: ['*']")),
            vec![("", 403, 403)],
        ),
        (
            of("ALLOW", &from("principals: ['*']")),
            vec![("", 403, 403)],
        ),
        (
            of(
                "ALLOW",
                "when: [{key: connection.sni, notValues: [a.test]}]",
            ),
            vec![("", 200, 200)],
        ),
    ] {
        for edge in [&edge, &trusting] {
            edge.set(std::slice::from_ref(&policy));
        }
        for (list, plain, trusted) in rows {
            assert_eq!(with(&edge, &forwarded(list)), plain, "{policy} {list}");
            assert_eq!(
                with(&trusting, &forwarded(list)),
                trusted,
                "{policy} {list} trusted"
            );
        }
    }
    let (ip, port) = (edge.proxy.edge.ip(), edge.proxy.edge.port());
    let destination = format!("when: [{{key: destination.ip, values: [{ip}]}}]");
    edge.set(&[of("ALLOW", &destination)]);
    assert_eq!(with(&edge, ""), 200);
    edge.set(&[of("DENY", &destination)]);
    assert_eq!(with(&edge, ""), 403);
    edge.set(&[of("ALLOW", &to(&format!("ports: ['{port}']")))]);
    assert_eq!(with(&edge, ""), 200);
    edge.set(&[of("DENY", &to(&format!("notPorts: ['{port}']")))]);
    assert_eq!(with(&edge, ""), 200);
}
