//! Services of type ExternalName, which are aliases of other hosts.

use crate::compile::tests::sidecars::reach;
use crate::compile::tests::world::{GATEWAY, World, load};
use crate::snapshot::Intake;

const TARGET: &str = "Service ns1/web {ports: [{name: http, port: 80}, {name: more, port: 8080}]}";
const OUTSIDE: &str = "ServiceEntry ns1/out {hosts: [out.test], resolution: DNS, ports: [{number: 443, name: http, protocol: HTTP}]}";

fn alias(name: &str, of: &str, more: &str) -> String {
    format!("Service ns1/{name} {{type: ExternalName, externalName: {of}{more}}}")
}

/// Destinations of a route to this port of the alias `a`.
fn leads_to(resources: &[&str], port: &str) -> String {
    let route = format!(
        "VirtualService ns1/r {{hosts: [a.com], gateways: [default/gw], http: [{{route: [{{destination: {{host: a{port}}}}}]}}]}}"
    );
    let world = World::only(&[&[GATEWAY, &route], resources].concat());
    crate::compile::tests::world::ask(&world.snapshot, 80, "a.com/")
}

#[test]
fn destination_is_the_host_behind_the_alias() {
    let of_web = alias("a", "web.ns1.svc.cluster.local", "");
    let with_ports = alias(
        "a",
        "web.ns1.svc.cluster.local",
        ", ports: [{name: http, port: 81}]",
    );
    let (b, c) = (
        alias("a", "b.ns1.svc.cluster.local", ""),
        alias("b", "web.ns1.svc.cluster.local", ""),
    );
    let of_outside = alias("a", "out.test", "");
    let number = |number: u16| format!(", port: {{number: {number}}}");
    for (resources, port, expected) in [
        (&[TARGET, &of_web][..], number(8080), "1 web.ns1:8080"),
        (&[TARGET, &of_web], number(81), "1 web.ns1:81?"),
        (&[TARGET, &of_web], String::new(), "1 web.ns1:80"),
        // the ports of an alias count only where nothing is known of its target
        (&[TARGET, &with_ports], number(81), "1 web.ns1:81?"),
        (&[TARGET, &b, &c], String::new(), "1 web.ns1:80"),
        (&[OUTSIDE, &of_outside], String::new(), "1 out.test:443"),
        (&[&of_outside], String::new(), "1 a.ns1:80"),
        (&[&of_outside], number(4430), "1 a.ns1:4430"),
        (&[&with_ports], String::new(), "1 a.ns1:81"),
        (&[&with_ports], number(82), "1 a.ns1:82?"),
    ] {
        assert_eq!(leads_to(resources, &port), expected, "{resources:?}{port}");
    }
}

#[test]
fn chain_of_aliases_is_bounded() {
    let link = |number: usize, last: usize| match number == last {
        true => alias(&format!("a{number}"), "web.ns1.svc.cluster.local", ""),
        false => alias(
            &format!("a{number}"),
            &format!("a{}.ns1.svc.cluster.local", number + 1),
            "",
        ),
    };
    for (aliases, expected) in [(8, "1 web.ns1:80"), (9, "1 a.ns1:80")] {
        let mut all = vec![
            TARGET.to_owned(),
            alias("a", "a2.ns1.svc.cluster.local", ""),
        ];
        all.extend((2..=aliases).map(|number| link(number, aliases)));
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        assert_eq!(leads_to(&all, ""), expected, "{aliases}");
    }
    let itself = [
        &*alias("a", "b.ns1.svc.cluster.local", ""),
        &alias("b", "a.ns1.svc.cluster.local", ""),
    ];
    assert_eq!(leads_to(&itself, ""), "1 a.ns1:80");
}

#[test]
fn subsets_weights_and_mirrors_go_by_the_target() {
    let rule = "DestinationRule ns1/web {host: web, subsets: [{name: v1}]}";
    let route = "VirtualService ns1/r {hosts: [a.com], gateways: [default/gw], http: [{mirror: {host: a, port: {number: 8080}}, \
                 route: [{destination: {host: a, subset: v1, port: {number: 80}}, weight: 1}, \
                 {destination: {host: a, port: {number: 8080}}, weight: 3}]}]}";
    let of_web = alias("a", "web.ns1.svc.cluster.local", "");
    let world = World::only(&[GATEWAY, route, rule, TARGET, &of_web]);
    world.check(&[("a.com/", "1 web.ns1:80/v1, 3 web.ns1:8080")]);
    let name = "outbound|8080||web.ns1.svc.cluster.local";
    let host = world
        .snapshot
        .listeners
        .values()
        .next()
        .unwrap()
        .all_http()
        .next()
        .unwrap();
    let mirrors = host.virtual_hosts[0].routes[0].mirrors.as_ref().unwrap();
    let copies: Vec<&str> = mirrors
        .entries()
        .map(|(_, one)| &*one.destination.name)
        .collect();
    assert_eq!(copies, [name]);
}

#[test]
fn sidecar_serves_aliases_on_the_ports_of_their_target() {
    let of_web = alias("a", "web.ns1.svc.cluster.local", "");
    let of_dns = alias("d", "nowhere.test", ", ports: [{name: http, port: 8080}]");
    let own = "VirtualService ns1/own {hosts: [a], http: [{directResponse: {status: 200, body: {string: own}}}]}";
    let of_target = "VirtualService ns1/web {hosts: [web], http: [{directResponse: {status: 200, body: {string: web}}}]}";
    let mut world = World::sidecar(&[]);
    for (rules, expected) in [
        (&[][..], "1 web.ns1:80"),
        (&[of_target], "200 web"),
        (&[own, of_target], "200 own"),
        (&[own], "200 own"),
    ] {
        world.put(&load(&[&[TARGET, &*of_web, &of_dns], rules].concat()));
        for name in ["a.ns1.svc.cluster.local", "a.ns1"] {
            let found = reach(
                &world,
                Intake::CapturedOutbound,
                "192.0.2.1:80",
                &format!("http {name}"),
            );
            assert_eq!(found, expected, "{name} {rules:?}");
        }
    }
    world.put(&load(&[TARGET, &of_web, &of_dns]));
    let found = reach(
        &world,
        Intake::CapturedOutbound,
        "192.0.2.1:8080",
        "http d.ns1.svc.cluster.local",
    );
    assert_eq!(found, "1 d.ns1:8080");
}
