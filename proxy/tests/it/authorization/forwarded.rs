//! Policies around what happens to a request that they admit: rewrites, trailers, gRPC, and routes that come with them.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Edge, LABELS, from, header, of, policy, to};
use crate::proxy_protocol::{self, V2};
use crate::sidecar::{self, Sidecar};
use crate::support::eventually;
use crate::support::mesh::{documents, everything_to, gateway, routes, service};
use crate::support::origin::{Back, Origin};
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::{GET, Raw};
use crate::unix_listener;

fn set(proxy: &Proxy, policy: &str) {
    let generation = || proxy.metric("strait_config_generation", &[]);
    let before = generation();
    proxy.write("policies.yaml", policy);
    eventually("the policy is in effect", || generation() > before);
}

fn status(proxy: &Proxy, path: &str) -> u16 {
    let request = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n");
    Raw::connect(proxy.edge).send(request).reply().status
}

#[test]
fn path_is_judged_before_it_is_rewritten() {
    let origin = Origin::named(Back::H1, "o");
    let start = Start::new();
    let rule = "- {match: [{uri: {prefix: /a}}], rewrite: {uri: /b}, route: [{destination: {host: web.test}}]}";
    let mesh = documents([
        gateway(&[start.edge()]),
        service("web", Back::H1, &[(origin.address, "v1")]),
        routes("all", "['*']", rule),
    ]);
    let proxy = start
        .args(LABELS)
        .file("mesh.yaml", mesh)
        .file("policies.yaml", "")
        .start();
    set(&proxy, &of("ALLOW", &to("paths: [/a]")));
    assert_eq!(status(&proxy, "/a"), 200);
    assert_eq!(origin.only().path(), "/b");
    set(&proxy, &of("ALLOW", &to("paths: [/b]")));
    assert_eq!(status(&proxy, "/a"), 403);
    assert_eq!(origin.seen().len(), 1);
}

#[test]
fn denied_grpc_call_gets_its_status_and_trailers_are_no_headers() {
    let edge = Edge::start(&[]);
    edge.set(&[of("DENY", &to("paths: ['/p.S/*']"))]);
    let reply = edge.request(
        "POST /p.S/M",
        "a.test",
        "content-type: application/grpc\r\n",
    );
    assert_eq!(reply.status, 200);
    assert!(reply.has("grpc-status: 7"), "{reply:?}");
    assert!(reply.has("grpc-message: RBAC: access denied"), "{reply:?}");

    let origin = Origin::named(Back::H1, "o");
    let start = Start::new();
    let mesh = everything_to(start.edge(), &origin);
    let deny = of("DENY", &header("x-t", "values: ['*']"));
    let proxy = start
        .args(LABELS)
        .file("mesh.yaml", mesh)
        .file("policies.yaml", deny)
        .start();
    let send = |head: &str, trailer: &str| {
        let head =
            format!("POST / HTTP/1.1\r\nHost: a.test\r\ntransfer-encoding: chunked\r\n{head}");
        let request = format!("{head}\r\n1\r\na\r\n0\r\n{trailer}\r\n");
        Raw::connect(proxy.edge).send(request).reply().status
    };
    assert_eq!(send("", "x-t: a\r\n"), 200);
    assert_eq!(send("x-t: a\r\n", ""), 403);
}

#[test]
fn addresses_of_a_proxy_header_and_of_unix_sockets() {
    let source = |field: &str| of("ALLOW", &from(&format!("{field}: [192.0.2.1]")));
    for field in ["ipBlocks", "remoteIpBlocks"] {
        let proxy = Start::new();
        let mesh = proxy_protocol::http(proxy.edge(), "accept");
        let proxy = proxy
            .file("mesh.yaml", mesh)
            .file("policies.yaml", source(field))
            .start();
        let with = [V2, GET.as_bytes()].concat();
        assert_eq!(Raw::connect(proxy.edge).send(with).reply().status, 200);
        assert_eq!(status(&proxy, "/"), 403, "{field}");
    }
    let edge = Edge::start(&[]);
    edge.set(&[source("ipBlocks")]);
    let with = [V2, GET.as_bytes()].concat();
    let reply = Raw::connect(edge.proxy.edge).send(with).try_reply();
    assert!(reply.ok().flatten().is_none_or(|reply| reply.status == 400));

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("edge.sock");
    let mesh = unix_listener::mesh(&format!("unix://{}", path.display()));
    let start = Start::new().file("mesh.yaml", mesh);
    let proxy = start
        .file(
            "policies.yaml",
            of("DENY", &from("notIpBlocks: [10.0.0.0/8]")),
        )
        .start();
    let get = || {
        let stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
        unix_listener::get(stream)
    };
    assert!(get().starts_with("HTTP/1.1 403 "));
    set(&proxy, &of("ALLOW", &from("ipBlocks: [127.0.0.1]")));
    assert!(get().starts_with("HTTP/1.1 200 "));
}

/// Sends requests from a thread until `done`, and returns the statuses of other ones than these.
fn others_than(proxy: &Proxy, paths: &[&str], known: &[u16], work: impl FnOnce()) -> Vec<u16> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sent = scope.spawn(|| {
            let mut others = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let statuses = paths.iter().map(|path| status(proxy, path));
                others.extend(statuses.filter(|status| !known.contains(status)));
            }
            others
        });
        work();
        done.store(true, Ordering::Relaxed);
        sent.join().unwrap()
    })
}

#[test]
fn route_never_serves_without_the_policy_that_comes_with_it() {
    let edge = Edge::start(&[]);
    let old = routes("all", "['*']", "- directResponse: {status: 204}");
    let new = routes("all", "['*']", "- directResponse: {status: 201}");
    let deny = of("DENY", &to("paths: [/new]"));
    let both = documents([gateway(&[edge.proxy.edge]), new, deny]);
    let neither = documents([gateway(&[edge.proxy.edge]), old]);
    let generation = || edge.proxy.metric("strait_config_generation", &[]);
    let write = |text: &str| {
        let before = generation();
        edge.proxy.write("mesh.yaml", text);
        eventually("it is in effect", || generation() > before);
    };
    write(&neither);
    let others = others_than(&edge.proxy, &["/new"], &[204, 403], || {
        for _ in 0..5 {
            write(&both);
            write(&neither);
        }
    });
    assert_eq!(others, [0; 0]);
}

#[test]
fn policies_that_change_together_are_never_seen_apart() {
    let edge = Edge::start(&[]);
    let both = |one: &str, other: &str| {
        [("one", one), ("other", other)].map(|(name, path)| {
            let rule = format!("rules: [{{{}}}]", to(&format!("paths: [{path}]")));
            policy(name, &format!("action: DENY, {rule}"))
        })
    };
    edge.set(&both("/x", "/y"));
    let others = others_than(&edge.proxy, &["/x", "/y"], &[403], || {
        for _ in 0..10 {
            edge.set(&both("/y", "/x"));
            edge.set(&both("/x", "/y"));
        }
    });
    assert_eq!(others, [0; 0]);
}

#[test]
fn sidecar_judges_inbound_traffic_only() {
    let origin = Origin::named(Back::H1, "o");
    let resources = [
        sidecar::service("cart", "10.0.0.9", ("http", 80), origin.address),
        of("DENY", &from("ipBlocks: [0.0.0.0/0]")),
    ];
    let proxy = Sidecar::start(&[], resources);
    let status = |mut connection: Raw| {
        let request = "GET / HTTP/1.1\r\nHost: cart.default.svc.cluster.local\r\n\r\n";
        connection.send(request).reply().status
    };
    assert_eq!(status(proxy.leaves("10.0.0.9:80")), 200);
    assert_eq!(status(proxy.arrives(&origin.address.to_string())), 403);
}
