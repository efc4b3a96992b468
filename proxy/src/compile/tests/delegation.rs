//! Delegates: whose rules count, how match blocks are merged, what is dropped.

use crate::compile::tests::world::World;
use crate::compile::tests::world::ask;
use crate::compile::tests::world::plain;

/// A root that delegates with these match blocks, and a delegate with one rule with these.
fn merged(root: &str, delegate: &str) -> World {
    let list = |blocks: &str| match blocks {
        "" => String::new(),
        blocks => format!("match: [{blocks}], "),
    };
    let root = format!(
        "VirtualService default/root {{hosts: [a.com], gateways: [gw], \
         http: [{{{}delegate: {{name: d}}}}, {{match: [{{uri: {{prefix: /}}}}], directResponse: {{status: 200}}}}]}}",
        list(root)
    );
    let delegate = format!(
        "VirtualService default/d {{http: [{{{}route: [{{destination: {{host: s}}}}]}}]}}",
        list(delegate)
    );
    World::of(&[&root, &delegate])
}

const TAKEN: &str = "1 s.default:80";
const PASSED: &str = "200 ";

#[test]
fn match_blocks_of_root_and_delegate_must_both_hold() {
    for (root, delegate, request, taken) in [
        ("", "", "a.com/", true),
        ("{uri: {prefix: /a}}", "", "a.com/a", true),
        ("{uri: {prefix: /a}}", "", "a.com/b", false),
        ("", "{uri: {prefix: /a}}", "a.com/a", true),
        ("", "{uri: {prefix: /a}}", "a.com/b", false),
        (
            "{uri: {prefix: /a}}",
            "{uri: {prefix: /a/b}}",
            "a.com/a/b",
            true,
        ),
        (
            "{uri: {prefix: /a}}",
            "{uri: {prefix: /a/b}}",
            "a.com/a/c",
            false,
        ),
        (
            "{uri: {prefix: /a}}",
            "{uri: {exact: /a/b}}",
            "a.com/a/b",
            true,
        ),
        (
            "{uri: {prefix: /a}}",
            "{headers: {h: {exact: x}}}",
            "a.com/a | h: x",
            true,
        ),
        (
            "{uri: {prefix: /a}}",
            "{headers: {h: {exact: x}}}",
            "a.com/b | h: x",
            false,
        ),
        (
            "{uri: {prefix: /a}}",
            "{headers: {h: {exact: x}}}",
            "a.com/a",
            false,
        ),
        (
            "{headers: {g: {}}}",
            "{headers: {h: {}}}",
            "a.com/ | g: 1 | h: 1",
            true,
        ),
        (
            "{headers: {g: {}}}",
            "{headers: {h: {}}}",
            "a.com/ | h: 1",
            false,
        ),
        (
            "{method: {exact: GET}}",
            "{queryParams: {q: {exact: x}}}",
            "a.com/?q=x",
            true,
        ),
        (
            "{method: {exact: GET}}",
            "{queryParams: {q: {exact: x}}}",
            "POST a.com/?q=x",
            false,
        ),
        (
            "{uri: {prefix: /a}}, {uri: {prefix: /b}}",
            "{headers: {h: {}}}",
            "a.com/b | h: 1",
            true,
        ),
        (
            "{uri: {prefix: /a}}, {uri: {prefix: /b}}",
            "{uri: {prefix: /a/x}}, {uri: {prefix: /b/x}}",
            "a.com/b/x",
            true,
        ),
        ("{port: 80}", "{uri: {prefix: /a}}", "a.com/a", true),
        (
            "{sourceNamespace: istio-system}",
            "{sourceNamespace: istio-system}",
            "a.com/",
            true,
        ),
        (
            "{sourceLabels: {app: edge}}",
            "{sourceLabels: {istio: ingressgateway}}",
            "a.com/",
            true,
        ),
    ] {
        let got = ask(&merged(root, delegate).snapshot, 80, request);
        let expected = if taken { TAKEN } else { PASSED };
        assert_eq!(got, expected, "root {root}, delegate {delegate}: {request}");
    }
}

#[test]
fn delegate_rule_that_conflicts_is_dropped() {
    for (root, delegate, request) in [
        ("{uri: {prefix: /a}}", "{uri: {prefix: /c}}", "a.com/c"),
        ("{uri: {prefix: /a/b}}", "{uri: {prefix: /a}}", "a.com/a/b"),
        ("{uri: {exact: /a}}", "{uri: {exact: /b}}", "a.com/a"),
        ("{uri: {exact: /a}}", "{uri: {prefix: /a}}", "a.com/a"),
        ("{uri: {regex: '/a.*'}}", "{uri: {prefix: /a}}", "a.com/a"),
        (
            "{headers: {h: {exact: a}}}",
            "{headers: {h: {exact: b}}}",
            "a.com/ | h: a",
        ),
        ("{port: 80}", "{port: 81}", "a.com/"),
        (
            "{sourceLabels: {app: edge}}",
            "{sourceLabels: {app: x}}",
            "a.com/",
        ),
        (
            "{sourceNamespace: istio-system}",
            "{uri: {prefix: /a}}",
            "a.com/a",
        ),
        ("{gateways: [gw]}", "{gateways: [mesh]}", "a.com/"),
        // one block of the delegate without a partner takes the whole rule with it
        (
            "{uri: {prefix: /a}}",
            "{uri: {prefix: /a/b}}, {uri: {prefix: /c}}",
            "a.com/a/b",
        ),
    ] {
        let got = ask(&merged(root, delegate).snapshot, 80, request);
        assert_eq!(got, PASSED, "root {root}, delegate {delegate}: {request}");
    }
}

#[test]
fn missing_delegate_skips_only_its_root_rule() {
    let root = "VirtualService default/root {hosts: [a.com], gateways: [gw], http: [\
        {match: [{uri: {prefix: /a}}], delegate: {name: d, namespace: team}}, \
        {match: [{uri: {prefix: /b}}], route: [{destination: {host: s}}]}]}";
    let rule = "http: [{route: [{destination: {host: s.default.svc.cluster.local}}]}]";
    for (delegate, lends) in [
        (format!("VirtualService team/d {{{rule}}}"), true),
        (
            format!("VirtualService team/d {{exportTo: [default], {rule}}}"),
            true,
        ),
        (
            format!("VirtualService team/d {{exportTo: ['.'], {rule}}}"),
            false,
        ),
        (format!("VirtualService other/d {{{rule}}}"), false),
        (
            format!("VirtualService team/d {{hosts: [x.com], {rule}}}"),
            false,
        ),
    ] {
        let expected = if lends { TAKEN } else { "404" };
        let world = World::of(&[root, &delegate]);
        assert_eq!(ask(&world.snapshot, 80, "a.com/a"), expected, "{delegate}");
        world.check(&[("a.com/b", TAKEN)]);
    }
}

#[test]
fn short_names_in_a_delegate_get_its_namespace() {
    let root = "VirtualService default/root {hosts: [a.com], gateways: [gw], http: [\
        {delegate: {name: d, namespace: team}}]}";
    let delegate = "VirtualService team/d {http: [{route: [{destination: {host: s}}]}]}";
    World::of(&[root, delegate]).check(&[("a.com/", "1 s.team:80?")]);
}

#[test]
fn settings_of_the_delegate_replace_those_of_the_root() {
    let root = "VirtualService default/root {hosts: [a.com], gateways: [gw], http: [\
        {match: [{uri: {prefix: /a}}], timeout: 5s, rewrite: {uri: /root}, delegate: {name: d}}]}";
    let delegate = "VirtualService default/d {http: [\
        {match: [{uri: {prefix: /a/1}}], route: [{destination: {host: s}}]}, \
        {timeout: 1s, rewrite: {uri: /own}, route: [{destination: {host: s}}]}]}";
    let world = World::of(&[root, delegate]);
    world.check(&[
        ("a.com/a/1", "1 s.default:80 -> /root"),
        ("a.com/a/2", "1 s.default:80 -> /own/2"),
    ]);
    let listener = world.snapshot.listeners.values().next().unwrap();
    let routes = &plain(listener).find("a.com").unwrap().routes;
    let timeouts: Vec<_> = routes
        .iter()
        .map(|route| route.filters.timeout.unwrap().as_secs())
        .collect();
    assert_eq!(timeouts, [5, 1]);
}

#[test]
fn delegates_serve_no_hosts() {
    let delegate = "VirtualService default/d {http: [{route: [{destination: {host: s}}]}]}";
    World::of(&[delegate]).check(&[("d/", "404"), ("a.com/", "404")]);
}
