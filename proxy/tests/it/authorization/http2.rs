//! Policies over HTTP/2: the same decisions, for each request by its own authority.

use hyper::{Method, Request};

use super::paths::{ADMIN_PATHS, deny_admin};
use super::{Edge, of, to};
use crate::path_corpus::{REFUSED, by_http2};
use crate::support::client::{Client, Front, get};
use crate::support::origin::empty;
use crate::support::pki::Authority;
use crate::support::tls::{self, credential, server};

#[test]
fn denied_path_is_denied_over_http2_as_well() {
    let edge = Edge::start(&[]);
    edge.set(&[deny_admin()]);
    let rows = ADMIN_PATHS.iter();
    let plain = rows.filter(|(path, _)| path.starts_with(['/', '\\']));
    for (path, status) in plain {
        let expected = match status {
            200 => "served",
            403 => "RBAC: access denied",
            _ => REFUSED,
        };
        assert_eq!(
            by_http2(edge.proxy.edge, path.as_bytes()),
            expected,
            "{path}"
        );
    }
}

#[tokio::test]
async fn methods_and_authorities_are_those_of_the_stream() {
    let edge = Edge::start(&[]);
    let mut client = Client::connect(Front::H2, edge.proxy.edge).await;
    let of_method = |name: &[u8]| {
        let mut request = get("/");
        *request.method_mut() = Method::from_bytes(name).unwrap();
        request
    };
    edge.set(&[of("ALLOW", &to("methods: [GET]"))]);
    for (name, status) in [("GET", 200), ("HEAD", 403), ("get", 403)] {
        let answer = client.call(of_method(name.as_bytes())).await;
        assert_eq!(answer.status, status, "{name}");
    }
    // a host header beside the authority is never the host of the request
    let both = || {
        let request = Request::get("http://a.test/").header("host", "b.test");
        request.body(empty()).unwrap()
    };
    edge.set(&[of("DENY", &to("hosts: [b.test]"))]);
    assert_ne!(client.call(both()).await.status, 403);
    edge.set(&[of("ALLOW", &to("hosts: [b.test]"))]);
    assert_ne!(client.call(both()).await.status, 200);
}

#[tokio::test]
async fn policy_changes_apply_to_the_next_stream_of_a_connection() {
    let edge = Edge::start(&[]);
    let mut client = Client::connect(Front::H2, edge.proxy.edge).await;
    assert_eq!(client.get("/a").await.status, 200);
    edge.set(&[of("DENY", &to("paths: [/a]"))]);
    assert_eq!(client.get("/a").await.status, 403);
    assert_eq!(client.get("/b").await.status, 200);
    edge.set(&[]);
    assert_eq!(client.get("/a").await.status, 200);
}

#[tokio::test]
async fn coalesced_request_is_judged_by_its_own_authority() {
    let ca = Authority::new("ca");
    let pair = ca.server(&["a.test", "b.test"]);
    let deny = of("DENY", &to("hosts: [b.test]"));
    let edge = tls::Edge::start(ca, &[credential("cred", &pair), deny], |edge| {
        let tls = "{mode: SIMPLE, credentialName: cred}";
        vec![server(edge, "https", "['*']", tls)]
    });
    let mut client = edge.visitor().client(Front::H2, "a.test").await.unwrap();
    for (host, status) in [("a.test", 200), ("b.test", 403), ("a.test", 200)] {
        assert_eq!(
            client.call(tls::get(host, "/")).await.status,
            status,
            "{host}"
        );
    }
}
