//! Mistakes in policies: none of them admits a client.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::{Edge, LABELS, of, policy, to};
use crate::support::mesh::{documents, everything_to_address, gateway, routes};
use crate::support::origin::{Back, RawOrigin, read_head};
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::Raw;
use crate::support::{DEADLINE, eventually};
use crate::tcp;

const REJECTED: [(&str, &str); 1] = [("kind", "AuthorizationPolicy")];

/// Starts a gateway that answers every request with 200, and these files of policies.
fn start(policies: &[(&str, &str)]) -> Start {
    let start = Start::new();
    let rules = "- directResponse: {status: 200, body: {string: served}}";
    let mesh = documents([gateway(&[start.edge()]), routes("all", "['*']", rules)]);
    let start = start.args(LABELS).file("mesh.yaml", mesh);
    let files = policies.iter();
    files.fold(start, |start, (file, text)| start.file(file, text))
}

fn status(proxy: &Proxy, path: &str) -> u16 {
    let request = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n");
    Raw::connect(proxy.edge).send(request).reply().status
}

#[test]
fn second_definition_of_a_policy_denies_what_it_selects_from_the_start() {
    let first = policy(
        "own",
        "action: DENY, rules: [{to: [{operation: {paths: [/a]}}]}]",
    );
    let second = policy(
        "own",
        "action: DENY, rules: [{to: [{operation: {paths: [/b]}}]}]",
    );
    let proxy = start(&[("a.yaml", &first), ("b.yaml", &second)]).start();
    assert_eq!((status(&proxy, "/a"), status(&proxy, "/c")), (403, 403));
    let details = "rbac_access_denied_matched_policy[ns[default]-policy[own(2)]-invalid]";
    assert_eq!(proxy.logged("/c")["response_code_details"], details);
    assert!(proxy.stderr().contains("CM020"), "{}", proxy.stderr());
    proxy.remove("b.yaml");
    eventually("the first one applies", || status(&proxy, "/c") == 200);
    assert_eq!(status(&proxy, "/a"), 403);
    // one that comes later counts for nothing
    let before = proxy.stderr().matches("CM020").count();
    proxy.write("b.yaml", &second);
    eventually("it is reported", || {
        proxy.stderr().matches("CM020").count() > before
    });
    assert_eq!((status(&proxy, "/a"), status(&proxy, "/b")), (403, 200));
}

#[test]
fn policy_whose_workloads_are_unknown_closes_listeners_or_holds_updates() {
    let unread = |namespace: &str| {
        let name = format!("{namespace}/unread");
        policy(
            &name,
            "action: DENY, selector: {matchlabel: {app: a}}, rules: [{}]",
        )
    };
    let deny = |path: &str| of("DENY", &to(&format!("paths: [{path}]")));
    let proxy = start(&[(
        "policies.yaml",
        &documents([unread("istio-system"), deny("/a")]),
    )])
    .spawn();
    eventually("it waits", || {
        let page = proxy.try_page("GET", "/healthz/ready");
        page.is_ok_and(|(_, text)| {
            text.contains("AuthorizationPolicy/istio-system/unread, which was never valid")
        })
    });
    assert!(TcpStream::connect(proxy.edge).is_err());
    proxy.write("policies.yaml", deny("/a"));
    eventually("it is ready", || proxy.is_ready());
    assert_eq!((status(&proxy, "/a"), status(&proxy, "/b")), (403, 200));

    let rejected = || proxy.metric("strait_config_resources_rejected", &REJECTED);
    for namespace in ["istio-system", "Default"] {
        proxy.write("policies.yaml", documents([unread(namespace), deny("/b")]));
        eventually("a policy is rejected", || rejected() == 1.0);
        let statuses = (status(&proxy, "/a"), status(&proxy, "/b"));
        assert_eq!(statuses, (403, 200), "the last configuration: {namespace}");
        assert!(proxy.is_ready());
        proxy.write("policies.yaml", deny("/a"));
        eventually("none is rejected", || rejected() == 0.0);
    }
    proxy.write("policies.yaml", documents([unread("default"), deny("/b")]));
    eventually("its namespace is denied", || status(&proxy, "/c") == 403);
}

#[test]
fn policy_that_loses_its_namespace_stays_and_holds_nothing() {
    let edge = Edge::start(&[]);
    let deny = of("DENY", &to("paths: [/a]"));
    edge.set(std::slice::from_ref(&deny));
    edge.set_rejected(&[deny.replace("namespace: default", "namespace: [default]")]);
    edge.expect("no namespace", &[("/a", 403), ("/b", 200)]);
    edge.set(&[of("DENY", &to("paths: [/b]"))]);
    edge.expect("corrected", &[("/a", 200), ("/b", 403)]);
}

#[test]
fn policy_that_was_never_valid_is_an_error_in_the_log() {
    let bad = policy("own", "action: DENYY, rules: [{}]");
    let proxy = start(&[("policies.yaml", &bad)]).start();
    let log = proxy.has_logged("policies that were never valid deny what they select");
    assert!(log.contains("AuthorizationPolicy/default/own"), "{log}");
}

#[test]
fn deletion_of_all_policies_is_logged_and_held_if_wanted() {
    for holds in [false, true] {
        let edge = Edge::start(if holds {
            &["--authz-keep-on-empty"]
        } else {
            &[]
        });
        let all = [
            of("DENY", &to("paths: [/a]")),
            of("AUDIT", &to("paths: [/a]")),
        ];
        edge.set(&all);
        edge.proxy.write("policies.yaml", "");
        let log = edge
            .proxy
            .has_logged("all policies of a source are deleted");
        assert!(log.contains("source=files"), "{log}");
        assert!(log.contains("count=2"), "{log}");
        assert_eq!(log.contains("they stay in effect for 60 s"), holds);
        if holds {
            edge.expect("held", &[("/a", 403)]);
            // a policy of the source releases the others
            edge.set(&[of("DENY", &to("paths: [/b]"))]);
            edge.expect("another one", &[("/a", 200), ("/b", 403)]);
        } else {
            eventually("the deletion applies", || status(&edge.proxy, "/a") == 200);
        }
    }
}

#[test]
fn decisions_are_timed_where_policies_apply() {
    let edge = Edge::start(&[]);
    edge.expect("no policy", &[("/a", 200)]);
    let name = "strait_authz_eval_seconds";
    assert!(!edge.proxy.page("/stats/prometheus").contains(name));
    edge.set(&[of("DENY", &to("paths: [/a]"))]);
    edge.expect("DENY", &[("/a", 403), ("/b", 200)]);
    let text = edge.proxy.page("/stats/prometheus");
    let buckets = text
        .lines()
        .filter(|line| line.starts_with("strait_authz_eval_seconds_bucket"));
    assert_eq!(buckets.count(), 12, "{text}");
    assert!(text.contains("strait_authz_eval_seconds_count"), "{text}");
}

/// Answers with what it gets.
fn echo(mut stream: TcpStream) {
    let mut bytes = [0; 64];
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        if stream.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}

/// Whether a stream still echoes; `false` once it is closed.
fn echoes(stream: &mut TcpStream) -> bool {
    let mut answer = [0; 4];
    stream.write_all(b"ping").is_ok()
        && stream.read_exact(&mut answer).is_ok()
        && answer == *b"ping"
}

#[test]
fn open_connections_that_a_new_policy_denies_are_closed_if_wanted() {
    for rechecks in [false, true] {
        let origin = RawOrigin::start(|_, stream| echo(stream));
        let start = Start::new();
        let mesh = [
            tcp::mesh(start.edge(), &tcp::to("a.test", 1)),
            tcp::service("a.test", &[origin.address]),
        ];
        let flags: &[&str] = if rechecks {
            &["--authz-recheck-tcp"]
        } else {
            &[]
        };
        let proxy = start
            .args(flags.iter().copied())
            .file("mesh.yaml", documents(mesh))
            .file("policies.yaml", "")
            .start();
        let mut stream = TcpStream::connect(proxy.edge).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        assert!(echoes(&mut stream));
        let generation = || proxy.metric("strait_config_generation", &[]);
        let set = |policy: String| {
            let before = generation();
            proxy.write("policies.yaml", policy);
            eventually("the policy is in effect", || generation() > before);
        };
        set(of("DENY", &super::from("ipBlocks: [10.0.0.1]")));
        assert!(echoes(&mut stream), "it is not denied");
        set(of("DENY", &super::from("ipBlocks: [127.0.0.1]")));
        if !rechecks {
            assert!(echoes(&mut stream), "it was admitted when it opened");
            continue;
        }
        eventually("it is closed", || !echoes(&mut stream));
        let details = "rbac_access_denied_matched_policy[ns[default]-policy[deny]-rule[0]]";
        let line = &tcp::lines(&proxy, 1)[0];
        assert_eq!(line["connection_termination_details"], details);
        assert_eq!(line["response_flags"], "-");
    }
}

#[test]
fn open_tunnels_that_a_new_policy_denies_are_closed_if_wanted() {
    for rechecks in [false, true] {
        let origin = RawOrigin::start(|_, mut stream| {
            read_head(&mut stream);
            let head = "HTTP/1.1 101 S\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
            let _ = stream.write_all(head.as_bytes());
            echo(stream);
        });
        let start = Start::new();
        let mesh = everything_to_address(start.edge(), Back::H1, origin.address);
        let flags: &[&str] = if rechecks {
            &["--authz-recheck-tcp"]
        } else {
            &[]
        };
        let proxy = start
            .args(flags.iter().copied())
            .file("mesh.yaml", mesh)
            .file("policies.yaml", "")
            .start();
        let open = |path: &str| {
            let mut client = Raw::connect(proxy.edge);
            let head = format!(
                "GET {path} HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
            );
            assert_eq!(client.send(head).reply().status, 101);
            client.stream()
        };
        let (mut denied, mut admitted) = (open("/a"), open("/b"));
        assert!(echoes(&mut denied) && echoes(&mut admitted));
        let generation = || proxy.metric("strait_config_generation", &[]);
        let before = generation();
        proxy.write("policies.yaml", of("DENY", &to("paths: [/a]")));
        eventually("the policy is in effect", || generation() > before);
        if rechecks {
            eventually("it is closed", || !echoes(&mut denied));
            let details = "rbac_access_denied_matched_policy[ns[default]-policy[deny]-rule[0]]";
            assert_eq!(proxy.logged("/a")["response_code_details"], details);
        } else {
            assert!(echoes(&mut denied));
        }
        assert!(echoes(&mut admitted));
    }
}
