//! Connections without requests: raw TCP at a gateway.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use super::{from, header, of, to};
use crate::support::mesh::documents;
use crate::support::origin::RawOrigin;
use crate::support::proxy::Start;
use crate::support::{DEADLINE, eventually};
use crate::tcp::{lines, mesh, service, to as destination};

#[test]
fn conditions_on_requests_are_left_out_for_connections() {
    let origin = RawOrigin::start(|_, mut stream| {
        // speaks first
        let _ = stream.write_all(b"hello");
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    });
    let start = Start::new();
    let edge = start.edge();
    let proxy = start
        .file(
            "mesh.yaml",
            documents([
                mesh(edge, &destination("a.test", 1)),
                service("a.test", &[origin.address]),
            ]),
        )
        .file("policies.yaml", "")
        .start();
    let says = || {
        let mut stream = TcpStream::connect(proxy.edge).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut said = String::new();
        let _ = stream.read_to_string(&mut said);
        said
    };
    assert_eq!(says(), "hello");
    let port = edge.port();
    let generation = || proxy.metric("strait_config_generation", &[]);
    for (policy, is_denied) in [
        (of("DENY", &to("methods: [POST]")), true),
        (of("DENY", &to("methods: [POST], ports: ['80']")), false),
        (
            of("DENY", &to(&format!("methods: [POST], ports: ['{port}']"))),
            true,
        ),
        (
            of(
                "DENY",
                &format!("{}, {}", from("ipBlocks: [10.0.0.1]"), to("paths: [/a]")),
            ),
            false,
        ),
        (
            of(
                "DENY",
                "from: [{source: {requestPrincipals: ['*']}}, {source: {ipBlocks: [10.0.0.1]}}]",
            ),
            true,
        ),
        (of("ALLOW", &to("methods: [GET]")), true),
        (of("ALLOW", &header("x", "notValues: ['*']")), true),
        (of("ALLOW", &from("ipBlocks: [127.0.0.1]")), false),
        (of("ALLOW", &from("ipBlocks: [10.0.0.1]")), true),
        (
            of(
                "DENY",
                &from("notRequestPrincipals: ['*'], namespaces: [foo]"),
            ),
            false,
        ),
        (of("AUDIT", &to("methods: [POST]")), false),
    ] {
        let before = generation();
        proxy.write("policies.yaml", &policy);
        eventually("the policy is in effect", || generation() > before);
        let before = proxy.access_log().len();
        assert_eq!(says(), if is_denied { "" } else { "hello" }, "{policy}");
        if is_denied {
            let lines = lines(&proxy, before + 1);
            let details = lines[before]["connection_termination_details"]
                .as_str()
                .unwrap_or_default();
            let name = "rbac_access_denied_matched_policy[";
            assert!(details.starts_with(name), "{policy} {details}");
            assert_eq!(lines[before]["response_flags"], "-", "{policy}");
        }
    }
    assert!(
        proxy.metric(
            "strait_authz_decisions_total",
            &[("result", "denied"), ("transport", "tcp")]
        ) > 0.0
    );
}
