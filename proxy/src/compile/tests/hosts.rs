//! Hosts, visibility, and several resources on one listener.

use std::net::SocketAddr;

use crate::compile::tests::world::GATEWAY;
use crate::compile::tests::world::SERVICE;
use crate::compile::tests::world::World;
use crate::compile::tests::world::load;
use crate::compile::tests::world::plain;
use crate::snapshot::Snapshot;

/// A VirtualService with one rule for each prefix, which answers with its own name.
fn answering(name: &str, hosts: &str, more: &str, prefixes: &[&str]) -> String {
    let rules: Vec<String> = prefixes
        .iter()
        .map(|prefix| {
            let body = name.split('@').next().unwrap_or_default();
            format!(
                "{{match: [{{uri: {{prefix: '{prefix}'}}}}], directResponse: {{status: 200, body: {{string: {body}}}}}}}"
            )
        })
        .collect();
    let rules = rules.join(", ");
    format!("VirtualService {name} {{hosts: [{hosts}], gateways: [{more}], http: [{rules}]}}")
}

#[test]
fn the_most_specific_host_wins_without_fall_through() {
    let a = answering("default/a", "'*.a.com'", "gw", &["/"]);
    let b = answering("default/b", "x.a.com", "gw", &["/only"]);
    let c = answering("default/c", "'*'", "gw", &["/c"]);
    World::of(&[&a, &b, &c]).check(&[
        ("x.a.com/other", "404"),
        ("x.a.com/only", "200 default/b"),
        ("y.a.com/other", "200 default/a"),
        ("y.x.a.com/", "200 default/a"),
        ("a.com/c", "200 default/c"),
        ("a.com/other", "404"),
    ]);
}

#[test]
fn host_ignores_case_port_and_trailing_dot() {
    let a = answering("default/a", "a.com", "gw", &["/"]);
    World::of(&[&a]).check(&[
        ("A.COM:8080/", "200 default/a"),
        ("a.com./", "200 default/a"),
        ("b.a.com/", "404"),
    ]);
}

#[test]
fn rules_of_one_host_are_merged_by_age_with_catch_alls_last() {
    let old = answering("default/old@2020", "a.com", "gw", &["/x", "/"]);
    let young = answering("default/young@2021", "a.com", "gw", &["/x", "/new"]);
    for resources in [[&*old, &young], [&young, &old]] {
        World::of(&resources).check(&[
            ("a.com/x", "200 default/old"),
            ("a.com/new", "200 default/young"),
            ("a.com/other", "200 default/old"),
        ]);
    }
}

#[test]
fn without_timestamps_age_order_is_by_name() {
    let z = answering("default/z", "a.com", "gw", &["/"]);
    let a = answering("default/a", "a.com", "gw", &["/"]);
    World::of(&[&z, &a]).check(&[("a.com/", "200 default/a")]);
    World::of(&[&a, &z]).check(&[("a.com/", "200 default/a")]);
}

#[test]
fn virtual_service_applies_only_where_exported_and_bound() {
    let rule = "http: [{directResponse: {status: 200, body: {string: x}}}]";
    for (spec, expected) in [
        ("hosts: [a.com], gateways: [default/gw]", "200 x"),
        (
            "hosts: [a.com], gateways: [default/gw], exportTo: ['.']",
            "404",
        ),
        (
            "hosts: [a.com], gateways: [default/gw], exportTo: [istio-system]",
            "200 x",
        ),
        (
            "hosts: [a.com], gateways: [default/gw], exportTo: [other]",
            "404",
        ),
        ("hosts: [a.com], gateways: [gw]", "404"), // app/gw does not exist
        ("hosts: [a.com]", "404"),                 // mesh only
        ("hosts: [a.com], gateways: [mesh]", "404"),
        ("hosts: [a.com], gateways: [mesh, default/gw]", "200 x"),
    ] {
        let service = format!("VirtualService app/a {{{spec}, {rule}}}");
        World::of(&[&service]).check(&[("a.com/", expected)]);
    }
}

/// A Gateway in the namespace `default` with one HTTP server.
fn gateway(name: &str, server: &str) -> String {
    format!(
        "Gateway default/{name} {{servers: [{{port: {{number: 80, name: http, protocol: HTTP}}, {server}}}]}}"
    )
}

#[test]
fn hosts_are_the_intersection_of_service_and_server() {
    for (server, host, request, expected) in [
        ("'*'", "a.com", "a.com/", "200 x"),
        ("'*.a.com'", "x.a.com", "x.a.com/", "200 x"),
        ("'*.a.com'", "x.a.com", "y.a.com/", "404"),
        ("x.a.com", "'*.a.com'", "x.a.com/", "200 x"),
        ("x.a.com", "'*.a.com'", "y.a.com/", "404"),
        ("x.a.com", "'*'", "x.a.com/", "200 x"),
        ("x.a.com", "'*'", "b.com/", "404"),
        ("'*.a.com'", "a.com", "a.com/", "404"),
        ("'*.a.com'", "'*.com'", "x.a.com/", "200 x"),
        ("'*.a.com'", "'*.com'", "x.b.com/", "404"),
        ("default/a.com", "a.com", "a.com/", "200 x"),
        ("./a.com", "a.com", "a.com/", "200 x"),
        ("'*/a.com'", "a.com", "a.com/", "200 x"),
        ("team1/a.com", "a.com", "a.com/", "404"),
        ("A.com", "a.COM", "a.com/", "200 x"),
    ] {
        let gateway = gateway("gw", &format!("hosts: [{server}]"));
        let service = format!(
            "VirtualService default/x {{hosts: [{host}], gateways: [gw], \
             http: [{{directResponse: {{status: 200, body: {{string: x}}}}}}]}}"
        );
        let world = World::only(&[&gateway, &service]);
        assert_eq!(
            crate::compile::tests::world::ask(&world.snapshot, 80, request),
            expected,
            "server {server}, service {host}, {request}"
        );
    }
}

#[test]
fn gateways_are_selected_by_the_labels_of_the_proxy() {
    let with = |selector: &str| {
        format!(
            "Gateway default/gw {{selector: {{{selector}}}, \
             servers: [{{port: {{number: 80, name: http, protocol: HTTP}}, hosts: ['*']}}]}}"
        )
    };
    let a = answering("default/a", "a.com", "gw", &["/"]);
    for (selector, expected) in [
        ("", "200 default/a"),
        ("istio: ingressgateway", "200 default/a"),
        ("istio: ingressgateway, app: edge", "200 default/a"),
        ("istio: egressgateway", "closed"),
        ("istio: ingressgateway, tier: x", "closed"),
    ] {
        World::only(&[&with(selector), &a]).check(&[("a.com/", expected)]);
    }
}

#[test]
fn servers_of_several_gateways_share_a_port() {
    let one = gateway("one", "hosts: [a.com]");
    let two = gateway("two", "hosts: [b.com, a.com]");
    let a = answering("default/a", "'*'", "one", &["/a"]);
    let b = answering("default/b", "'*'", "two", &["/b"]);
    let both = answering("default/every", "'*'", "one, two", &["/every"]);
    World::only(&[&one, &two, &a, &b, &both]).check(&[
        ("a.com/a", "200 default/a"),
        ("a.com/b", "200 default/b"),
        ("b.com/b", "200 default/b"),
        ("b.com/a", "404"),
        ("a.com/every", "200 default/every"),
        ("b.com/every", "200 default/every"),
        ("c.com/every", "404"),
    ]);
}

#[test]
fn each_port_and_bind_is_a_listener() {
    let gateway = "Gateway default/gw {servers: [\
        {port: {number: 80, name: a, protocol: HTTP}, hosts: [a.com]},\
        {port: {number: 81, name: b, protocol: HTTP2}, hosts: [b.com], bind: 127.0.0.1},\
        {port: {number: 82, name: c, protocol: TCP}, hosts: ['*']}]}";
    let a = answering("default/a", "'*'", "gw", &["/"]);
    let world = World::only(&[gateway, &a]);
    world.check_at(80, &[("a.com/", "200 default/a"), ("b.com/", "404")]);
    world.check_at(81, &[("b.com/", "200 default/a"), ("a.com/", "404")]);
    world.check_at(82, &[("b.com/", "404")]); // no HTTP here
    let addresses: Vec<String> = world
        .snapshot
        .listeners
        .keys()
        .map(|key| key.address.to_string())
        .collect();
    assert_eq!(addresses, ["127.0.0.1:81", "[::]:80", "[::]:82"]);
}

#[test]
fn connections_of_a_removed_listener_map_to_its_replacement() {
    let on = |bind: &str| {
        let gateway = format!(
            "Gateway default/gw {{servers: [{{port: {{number: 80, name: a, protocol: HTTP}}, hosts: ['*']{bind}}}]}}"
        );
        World::only(&[&gateway]).snapshot
    };
    let serves = |snapshot: &Snapshot, accepted: &str, local: &str| {
        let accepted: SocketAddr = accepted.parse().unwrap();
        let local = local.parse().unwrap();
        snapshot.listener(&accepted.into(), local).is_some()
    };
    let all = on("");
    assert!(serves(&all, "127.0.0.1:80", "127.0.0.1:80"));
    assert!(!serves(&all, "127.0.0.1:81", "127.0.0.1:81"));
    let one = on(", bind: 127.0.0.1");
    assert!(serves(&one, "[::]:80", "127.0.0.1:80"));
    assert!(!serves(&one, "[::]:80", "127.0.0.2:80"));
    // A PROXY header may speak of another port.
    assert!(!serves(&one, "[::]:81", "127.0.0.1:80"));
}

#[test]
fn https_redirect_applies_to_all_hosts_of_its_server_only() {
    let redirecting = gateway(
        "one",
        "hosts: ['*.a.com', c.com], tls: {httpsRedirect: true}",
    );
    let plain = gateway("two", "hosts: [b.com, z.a.com]");
    let a = answering("default/a", "x.a.com, b.com", "one", &["/"]);
    let b = answering("default/b", "b.com, z.a.com", "two", &["/"]);
    World::only(&[&redirecting, &plain, &a, &b]).check(&[
        ("x.a.com/p?q", "301 https://x.a.com/p?q"),
        ("y.a.com:80/", "301 https://y.a.com/"),
        ("y.a.com:8080/", "301 https://y.a.com:8080/"),
        ("c.com/", "301 https://c.com/"),
        ("b.com/", "200 default/b"),
        ("z.a.com/", "200 default/b"), // bound by a server that does not redirect
        ("d.com/", "404"),
    ]);
}

#[test]
fn server_without_virtual_services_has_no_routes() {
    World::of(&[]).check(&[("a.com/", "404")]);
}

#[test]
fn rules_for_a_service_apply_to_its_clusterset_host_unless_named() {
    let import = "ServiceImport default/web {ports: [{port: 80, endpoints: []}]}";
    let own = answering("default/own", "web", "gw", &["/"]);
    World::of(&[import, &own]).check(&[
        ("web.default.svc.cluster.local/", "200 default/own"),
        ("web.default.svc.clusterset.local/", "200 default/own"),
    ]);
    let together = answering(
        "default/set",
        "web.default.svc.clusterset.local",
        "gw",
        &["/"],
    );
    World::of(&[import, &own, &together]).check(&[
        ("web.default.svc.cluster.local/", "200 default/own"),
        ("web.default.svc.clusterset.local/", "200 default/set"),
    ]);
    // nothing is imported, so that there is no such host
    World::of(&[&own]).check(&[("web.default.svc.clusterset.local/", "404")]);
}

#[test]
fn oldest_service_with_an_address_owns_it() {
    let import = |name: &str, more: &str| {
        format!(
            "ServiceImport default/{name} {{ips: [10.96.9.9], {more} ports: [{{port: 80, endpoints: []}}]}}"
        )
    };
    let (young, old) = (import("a@2022", ""), import("b@2021", ""));
    let headless = import("c@2020", "type: Headless,");
    let routes =
        ["a", "b", "c"].map(|name| answering(&format!("default/{name}"), name, "gw", &["/"]));
    let [a, b, c] = &routes;
    World::of(&[&young, &old, &headless, a, b, c]).check(&[("10.96.9.9/", "200 default/b")]);
    World::of(&[&young, &headless, a, b, c]).check(&[("10.96.9.9:80/", "200 default/a")]);
    World::of(&[&headless, a, b, c]).check(&[("10.96.9.9/", "404")]);
    let own = answering("default/own", "10.96.9.9", "gw", &["/"]);
    World::of(&[&young, a, &own]).check(&[("10.96.9.9/", "200 default/own")]);
    // it represents the service among clusters
    let set = answering(
        "default/set",
        "a.default.svc.clusterset.local",
        "gw",
        &["/"],
    );
    World::of(&[&young, &set]).check(&[("10.96.9.9/", "200 default/set")]);
    World::of(&[&young, a, &set]).check(&[("10.96.9.9/", "200 default/set")]);
    World::of(&[&young, &set, &own]).check(&[("10.96.9.9/", "200 default/own")]);
}

#[test]
fn connections_to_an_address_route_to_its_current_service() {
    let import = |more: &str| {
        format!("ServiceImport default/a {{{more} ports: [{{port: 80, endpoints: []}}]}}")
    };
    let (with, without) = (import("ips: ['::ffff:10.96.9.9'],"), import(""));
    let own = answering("default/own", "10.96.9.9, 10.96.9.8", "gw", &["/"]);
    let at = |world: &World, address: &str| {
        let listener = world.snapshot.listeners.values().next().unwrap();
        let found = plain(listener).at(address.parse().unwrap());
        found.map(|host| host.name.to_string())
    };
    let mut world = World::of(&[&with, &own]);
    let found = Some("10.96.9.9".to_owned());
    assert_eq!(at(&world, "10.96.9.9"), found);
    assert_eq!(at(&world, "10.96.9.8"), None, "not that of a service");
    // routes stay as they are when it comes and goes
    for (import, expected) in [(&without, None), (&with, found)] {
        world.put(&load(&[GATEWAY, SERVICE, import, &own]));
        assert_eq!(at(&world, "10.96.9.9"), expected);
    }
}

#[test]
fn virtual_service_without_a_rule_here_makes_no_virtual_host() {
    let wide = answering("default/wide", "'*.com'", "gw", &["/"]);
    let rule = |text: &str| {
        format!("VirtualService default/a {{hosts: [a.com], gateways: [gw], http: [{text}]}}")
    };
    let delegate =
        "VirtualService default/d {http: [{match: [{port: 81}], directResponse: {status: 200}}]}";
    for (narrow, expected) in [
        (
            "{match: [{port: 81}], directResponse: {status: 200}}",
            "200 default/wide",
        ),
        (
            "{match: [{gateways: [other]}], directResponse: {status: 200}}",
            "200 default/wide",
        ),
        (
            "{match: [{sourceLabels: {a: b}}], directResponse: {status: 200}}",
            "200 default/wide",
        ),
        (
            "{match: [{sourceNamespace: other}], directResponse: {status: 200}}",
            "200 default/wide",
        ),
        ("{delegate: {name: d}}", "200 default/wide"),
        (
            "{match: [{port: 80, uri: {prefix: /x}}], directResponse: {status: 200}}",
            "404",
        ),
        (
            "{match: [{headers: {'@request.auth.claims.sub': {exact: a}}}], directResponse: {status: 200}}",
            "404",
        ),
    ] {
        let narrow = rule(narrow);
        World::of(&[&wide, &narrow, delegate])
            .check(&[("a.com/", expected), ("b.com/", "200 default/wide")]);
    }
}

#[test]
fn routes_follow_servers_and_private_virtual_services_come_first() {
    let gateways = "Gateway default/gw {servers: [{port: {number: 80, name: one, protocol: HTTP}, hosts: ['a.com']}, \
                    {port: {number: 80, name: two, protocol: HTTP}, hosts: ['*.com']}]}";
    let second = "Gateway default/second@2021 {servers: [{port: {number: 80, name: one, protocol: HTTP}, hosts: ['*']}]}";
    let of_second = answering(
        "default/of-second@2001",
        "a.com",
        "second",
        &["/x", "/second"],
    );
    let of_first = answering("default/of-first@2020", "a.com", "gw", &["/x", "/first"]);
    let of_both = answering(
        "default/of-both@2022",
        "a.com",
        "second, gw",
        &["/x", "/both", "/first"],
    );
    let world = World::only(&[gateways, second, &of_second, &of_first, &of_both]);
    world.check(&[
        ("a.com/x", "200 default/of-first"),
        ("a.com/first", "200 default/of-first"),
        ("a.com/both", "200 default/of-both"),
        ("a.com/second", "200 default/of-second"),
    ]);
    let private = answering(
        "istio-system/private@2030",
        "a.com",
        "default/gw",
        &["/x", "/"],
    );
    let private = private.replace("{hosts:", "{exportTo: [.], hosts:");
    World::only(&[gateways, second, &of_second, &of_first, &private]).check(&[
        ("a.com/x", "200 istio-system/private"),
        ("a.com/first", "200 default/of-first"),
    ]);
}
