//! Servers beside each other on one address, and where connections go that are not plain HTTP.

use crate::compile::tests::world::SERVICE;
use crate::compile::tests::world::World;
use crate::compile::tests::world::ask_host;
use crate::snapshot::{Handling, Listener, OpaqueRoutes, Security, Service, Then};
use traffic::route::OpaqueHead;

/// A Gateway in the namespace `default` with these servers, each `NAME PORT PROTOCOL MODE HOSTS`.
fn gateway(name: &str, servers: &[&str]) -> String {
    let servers: Vec<String> = servers.iter().map(|server| one_server(server)).collect();
    format!(
        "Gateway default/{name} {{servers: [{}]}}",
        servers.join(", ")
    )
}

fn one_server(text: &str) -> String {
    let words: Vec<&str> = text.splitn(5, ' ').collect();
    let [name, port, protocol, mode, hosts] = words[..] else {
        panic!("five words: {text}")
    };
    let tls = match mode {
        "-" => String::new(),
        "SIMPLE" => ", tls: {mode: SIMPLE, credentialName: c}".to_owned(),
        mode => format!(", tls: {{mode: {mode}}}"),
    };
    format!(
        "{{port: {{number: {port}, name: {name}, protocol: {protocol}}}, hosts: [{hosts}]{tls}}}"
    )
}

/// A VirtualService in the namespace `default` at the Gateway `gw`.
fn service(name: &str, hosts: &str, rules: &str) -> String {
    format!("VirtualService default/{name} {{hosts: [{hosts}], gateways: [gw], {rules}}}")
}

const TO_S: &str = "route: [{destination: {host: s}}]";

fn listener(world: &World, port: u16) -> &Listener {
    let mut listeners = world.snapshot.listeners.values();
    let found = listeners.find(|listener| listener.key.address.port() == port);
    found.expect("a listener has the port")
}

/// Returns the destination of a connection: `closed`, or the destinations as `WEIGHT NAME`.
fn carried(routes: &OpaqueRoutes, head: &OpaqueHead<'_>) -> String {
    let Some(rule) = routes.table.find(head) else {
        return "closed".to_owned();
    };
    let split = routes.route(rule).split.iter();
    let entries = split.flat_map(|split| split.entries());
    let each = entries.map(|(weight, to)| format!("{weight} {}", to.name));
    each.collect::<Vec<_>>().join(", ")
}

/// Returns the result of a connection with this SNI, empty for none: as [`carried`], or for HTTP inside of TLS the
/// answer to a request for `host`.
fn connect(world: &World, port: u16, sni: &str, host: &str) -> String {
    let listener = listener(world, port);
    let sni = (!sni.is_empty()).then_some(sni);
    let head = OpaqueHead {
        sni,
        ..OpaqueHead::default()
    };
    match &listener.service {
        Service::Captured(_) | Service::Detected(_) | Service::HttpProxy => {
            panic!("a gateway has none")
        }
        Service::Http(_) => ask_host(world, listener, Security::Plain, host),
        Service::Opaque(routes) => carried(routes, &head),
        Service::Tls(chains) => match chains.find(sni).map(|chain| &chain.handling) {
            None => "closed".to_owned(),
            Some(Handling::AutoPassthrough(routes) | Handling::Passthrough(routes)) => {
                carried(routes, &head)
            }
            Some(Handling::Terminate { then, .. }) => match then {
                Then::Http(_) => ask_host(world, listener, Security::Tls(sni), host),
                Then::Opaque(routes) => carried(routes, &head),
            },
        },
    }
}

fn skipped(world: &World, port: u16) -> usize {
    listener(world, port).skipped.len()
}

#[test]
fn first_protocol_of_an_address_is_used() {
    for (first, second, used) in [
        ("a 80 HTTP - '*'", "b 80 HTTP2 - '*'", 2),
        ("a 80 HTTP - '*'", "b 80 TCP - '*'", 1),
        ("a 80 TCP - '*'", "b 80 HTTP - '*'", 1),
        ("a 80 TCP - a.com", "b 80 MONGO - b.com", 1),
        ("a 80 HTTP - '*'", "b 80 TLS PASSTHROUGH b.com", 1),
        ("a 80 TLS PASSTHROUGH a.com", "b 80 HTTP - '*'", 1),
        ("a 80 TLS PASSTHROUGH a.com", "b 80 TCP - '*'", 1),
        ("a 80 TLS PASSTHROUGH a.com", "b 80 HTTPS SIMPLE b.com", 2),
        (
            "a 80 TLS PASSTHROUGH a.com",
            "b 80 HTTPS SIMPLE b.com, A.com",
            1,
        ),
        ("a 80 TLS PASSTHROUGH '*.com'", "b 80 HTTPS SIMPLE a.com", 2),
        ("a 80 HTTP - '*'", "b 80 UDP - '*'", 1),
    ] {
        let old = gateway("gw@2020", &[first]);
        let young = gateway("gx@2021", &[second]);
        for resources in [[&*old, &young], [&young, &old]] {
            let world = World::only(&resources);
            assert_eq!(
                listener(&world, 80).provenance.len(),
                used,
                "{first}, {second}"
            );
            assert_eq!(skipped(&world, 80), 2 - used, "{first}, {second}");
        }
    }
}

#[test]
fn newer_server_with_a_repeated_host_is_skipped() {
    let world = World::only(&[
        &gateway("gw@2020", &["a 443 TLS PASSTHROUGH a.com"]),
        &gateway(
            "gx@2021",
            &[
                "b 443 TLS PASSTHROUGH b.com, a.com",
                "c 443 TLS PASSTHROUGH c.com",
            ],
        ),
        SERVICE,
        &format!(
            "VirtualService default/v {{hosts: ['*'], gateways: [gw, gx], \
             tls: [{{match: [{{sniHosts: ['*.com']}}], {TO_S}}}]}}"
        ),
    ]);
    let to_s = "1 outbound|80||s.default.svc.cluster.local";
    for (sni, expected) in [("a.com", to_s), ("b.com", "closed"), ("c.com", to_s)] {
        assert_eq!(connect(&world, 443, sni, ""), expected, "{sni}");
    }
    assert!(listener(&world, 443).skipped[0].reason.contains("a.com"));
}

#[test]
fn unsupported_server_opens_no_listener() {
    let world = World::only(&[&gateway("gw", &["u 53 UDP - '*'"])]);
    assert!(world.snapshot.listeners.is_empty());
}

#[test]
fn tls_requests_reach_the_hosts_of_their_server_only() {
    let body = |text: &str| {
        format!("http: [{{directResponse: {{status: 200, body: {{string: {text}}}}}}}]")
    };
    let world = World::only(&[
        &gateway(
            "gw",
            &[
                "a 443 HTTPS SIMPLE a.com",
                "b 443 HTTPS SIMPLE b.com",
                "w 443 HTTPS SIMPLE '*.w.com'",
                "x 443 HTTPS SIMPLE x.w.com",
                "p 80 HTTP - '*'",
            ],
        ),
        &service("a", "a.com", &body("a")),
        &service("b", "b.com", &body("b")),
        &service("w", "'*.w.com'", &body("w")),
    ]);
    for (sni, host, expected) in [
        ("a.com", "a.com", "200 a"),
        ("b.com", "b.com", "200 b"),
        ("a.com", "b.com", "404"),
        ("y.w.com", "y.w.com", "200 w"),
        ("y.w.com", "z.w.com", "200 w"),
        ("x.w.com", "x.w.com", "200 w"),
        ("x.w.com", "y.w.com", "404"), // the exact server wins, and knows no other host
        ("c.com", "a.com", "closed"),
        ("", "a.com", "closed"),
    ] {
        assert_eq!(connect(&world, 443, sni, host), expected, "{sni} {host}");
    }
    assert_eq!(connect(&world, 80, "", "a.com"), "200 a");
}

#[test]
fn catch_all_server_accepts_clients_without_sni() {
    let world = World::only(&[
        &gateway("gw", &["a 443 HTTPS SIMPLE '*'"]),
        &service("a", "a.com", "http: [{directResponse: {status: 200}}]"),
    ]);
    assert_eq!(connect(&world, 443, "", "a.com"), "200 ");
    assert_eq!(connect(&world, 443, "q.com", "a.com"), "200 ");
}

#[test]
fn passthrough_routes_by_sni_and_static_conditions() {
    let rule = |more: &str| format!("{{match: [{{sniHosts: [x.com]{more}}}], {TO_S}}}");
    for (more, expected) in [
        ("", true),
        (", port: 443", true),
        (", port: 444", false),
        (", gateways: [gw]", true),
        (", gateways: [other]", false),
        (", sourceLabels: {app: edge}", true),
        (", sourceLabels: {app: x}", false),
        (", gateways: [gw], sourceLabels: {app: x}", false), // all of them count
        (", sourceNamespace: istio-system", true),
        (", sourceNamespace: x", false),
    ] {
        let world = World::only(&[
            &gateway("gw", &["a 443 TLS PASSTHROUGH '*'"]),
            SERVICE,
            &service("v", "'*.com'", &format!("tls: [{}]", rule(more))),
        ]);
        let found = connect(&world, 443, "x.com", "") != "closed";
        assert_eq!(found, expected, "{more}");
        assert_eq!(connect(&world, 443, "y.com", ""), "closed");
        assert_eq!(connect(&world, 443, "", ""), "closed");
    }
}

#[test]
fn tcp_rule_serves_passthrough_without_a_tls_rule() {
    let gateway = gateway("gw", &["a 443 HTTPS PASSTHROUGH '*'"]);
    let tcp = format!("tcp: [{{{TO_S}}}]");
    let both = format!("tls: [{{match: [{{sniHosts: [a.com]}}], {TO_S}}}], {tcp}");
    let to_s = "1 outbound|80||s.default.svc.cluster.local";
    for (rules, a, other) in [(&tcp, to_s, to_s), (&both, to_s, "closed")] {
        let world = World::only(&[&gateway, SERVICE, &service("v", "a.com, b.com", rules)]);
        assert_eq!(connect(&world, 443, "a.com", ""), a);
        assert_eq!(connect(&world, 443, "b.com", ""), other);
    }
}

#[test]
fn tcp_port_uses_the_first_matching_rule_of_the_oldest_service() {
    let to =
        |host: &str| format!("route: [{{destination: {{host: {host}, port: {{number: 1}}}}}}]");
    let rule = |matches: &str, host: &str| format!("{{match: [{matches}], {}}}", to(host));
    let rows: [(&[String], &str); 5] = [
        (&[rule("{port: 9000}", "a")], "a"),
        (&[rule("{port: 9001}", "a"), rule("{port: 9000}", "b")], "b"),
        (
            &[rule("{gateways: [x]}", "a"), rule("{gateways: [gw]}", "b")],
            "b",
        ),
        // labels and subnets do not count at a gateway
        (
            &[
                rule("{sourceLabels: {nope: one}}", "a"),
                rule("{port: 9000}", "b"),
            ],
            "a",
        ),
        (&[rule("{destinationSubnets: [10.0.0.0/8]}", "a")], "a"),
    ];
    for (rules, expected) in rows {
        let rules = format!("tcp: [{}]", rules.join(", "));
        let world = World::only(&[
            &gateway("gw", &["a 9000 TCP - '*'"]),
            &service("v@2020", "'*.com'", &rules),
            &service("w@2021", "'*.org'", &format!("tcp: [{{{}}}]", to("young"))),
        ]);
        let expected = format!("1 outbound|1||{expected}.default.svc.cluster.local");
        assert_eq!(connect(&world, 9000, "", ""), expected, "{rules}");
    }
    let unbound = World::only(&[&gateway("gw", &["a 9000 REDIS - '*'"])]);
    assert_eq!(connect(&unbound, 9000, "", ""), "closed");
}

#[test]
fn terminated_tls_is_routed_by_weighted_tcp_rules() {
    let rules = "tcp: [{route: [{destination: {host: s, subset: v1}, weight: 3}, \
        {destination: {host: s, subset: v2}, weight: 1}]}]";
    let world = World::only(&[
        &gateway("gw", &["a 443 TLS SIMPLE a.com"]),
        SERVICE,
        &service("v", "a.com", rules),
    ]);
    assert_eq!(
        connect(&world, 443, "a.com", ""),
        "3 outbound|80|v1|s.default.svc.cluster.local, 1 outbound|80|v2|s.default.svc.cluster.local"
    );
}

#[test]
fn auto_passthrough_routes_mesh_clusters_matching_its_hosts() {
    let inside = SERVICE.replace("{hosts", "{location: MESH_INTERNAL, hosts");
    let outside = "ServiceEntry default/e {hosts: [e.local], resolution: STATIC, \
        ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.0.0.9}]}";
    let subsets =
        "DestinationRule default/s {host: s, subsets: [{name: v1, labels: {version: v1}}]}";
    let world = World::only(&[
        &gateway("gw", &["a 15443 TLS AUTO_PASSTHROUGH '*.local'"]),
        &inside,
        outside,
        subsets,
    ]);
    for (sni, expected) in [
        (
            "outbound_.80_._.s.default.svc.cluster.local",
            "1 passthrough|80||s.default.svc.cluster.local",
        ),
        (
            "outbound_.80_.v1_.s.default.svc.cluster.local",
            "1 passthrough|80|v1|s.default.svc.cluster.local",
        ),
        ("outbound_.80_.v9_.s.default.svc.cluster.local", "closed"),
        ("outbound_.81_._.s.default.svc.cluster.local", "closed"),
        ("outbound_.80_._.e.local", "closed"), // no part of the mesh
        ("s.default.svc.cluster.local", "closed"),
        ("outbound_.80_._.q.com", "closed"),
    ] {
        assert_eq!(connect(&world, 15443, sni, ""), expected, "{sni}");
    }
    let narrow = World::only(&[
        &gateway("gw", &["a 15443 TLS AUTO_PASSTHROUGH '*.other.local'"]),
        &inside,
    ]);
    let sni = "outbound_.80_._.s.default.svc.cluster.local";
    assert_eq!(connect(&narrow, 15443, sni, ""), "closed");
}

#[test]
fn unchanged_parts_are_reused() {
    let resources = [
        gateway(
            "gw",
            &[
                "a 443 TLS PASSTHROUGH a.com",
                "b 443 HTTPS SIMPLE b.com",
                "t 9000 TCP - '*'",
            ],
        ),
        SERVICE.to_owned(),
        service(
            "v",
            "a.com, b.com",
            &format!(
                "tls: [{{match: [{{sniHosts: [a.com]}}], {TO_S}}}], tcp: [{{{TO_S}}}], http: [{{{TO_S}}}]"
            ),
        ),
    ];
    let texts: Vec<&str> = resources.iter().map(String::as_str).collect();
    let mut world = World::only(&texts);
    let before = std::sync::Arc::clone(&world.snapshot);
    world.put(&crate::compile::tests::world::load(&texts));
    for (old, new) in before
        .listeners
        .values()
        .zip(world.snapshot.listeners.values())
    {
        assert!(std::sync::Arc::ptr_eq(old, new), "{:?}", old.key);
    }
    let changed = [
        texts[0].to_owned(),
        texts[1].to_owned(),
        texts[2].replace("sniHosts: [a.com]", "sniHosts: [a.com], port: 443"),
    ];
    let changed: Vec<&str> = changed.iter().map(String::as_str).collect();
    world.put(&crate::compile::tests::world::load(&changed));
    let kept = |port| {
        std::ptr::eq(
            before
                .listeners
                .values()
                .find(|l| l.key.address.port() == port)
                .unwrap()
                .as_ref(),
            listener(&world, port),
        )
    };
    assert!(!kept(443), "provenance of its rule is another");
    assert_eq!(
        connect(&world, 443, "a.com", ""),
        "1 outbound|80||s.default.svc.cluster.local"
    );
}
