//! Several ServiceEntries of one host in one namespace: ports are joined, and endpoints stay at the ports of their entry.

use crate::compile::tests::world::{GATEWAY, World, load};

const ROUTES: &str = "VirtualService default/a {hosts: [a.com], gateways: [gw], http: [\
    {match: [{uri: {exact: /80}}], route: [{destination: {host: x.test, port: {number: 80}}}]}, \
    {match: [{uri: {exact: /81}}], route: [{destination: {host: x.test, port: {number: 81}}}]}, \
    {match: [{uri: {exact: /82}}], route: [{destination: {host: x.test, port: {number: 82}}}]}]}";

/// A ServiceEntry of `x.test`.
fn entry(name: &str, ports: &str, more: &str) -> String {
    format!("ServiceEntry {name} {{hosts: [x.test], ports: [{ports}], {more}}}")
}

/// Endpoints of a port, `dialed` for those of clients, or `unknown`.
fn endpoints(world: &World, port: u16) -> String {
    let name = format!("outbound|{port}||x.test");
    let Some(cluster) = world.snapshot.cluster(world.registry.cluster(&name).id) else {
        return "unknown".to_owned();
    };
    let endpoints = cluster
        .endpoints()
        .iter()
        .map(|one| one.address.to_string());
    let unresolved = cluster.unresolved.iter().map(ToString::to_string);
    let dialed = cluster.dialed.iter().map(|_| "dialed".to_owned());
    let all: Vec<String> = endpoints.chain(unresolved).chain(dialed).collect();
    all.join(" ")
}

/// Compares the endpoints of the ports 80 to 82, whatever the order of the entries.
fn check(entries: &[String], expected: [&str; 3]) {
    let mut world = World::empty();
    for reversed in [false, true] {
        let mut all: Vec<&str> = entries.iter().map(String::as_str).collect();
        if reversed {
            all.reverse();
        }
        world.put(&load(&[&[GATEWAY, ROUTES], &all[..]].concat()));
        let found = [80, 81, 82].map(|port| endpoints(&world, port));
        assert_eq!(found, expected, "{entries:?}");
    }
}

const OLD: &str = "default/old@2020";
const YOUNG: &str = "default/young@2021";

#[test]
fn endpoints_serve_the_ports_of_their_own_entry() {
    let http = "{number: 80, name: http, protocol: HTTP}";
    let at = |address: &str| format!("resolution: STATIC, endpoints: [{{address: {address}}}]");
    let old = entry(OLD, http, &at("10.0.0.1"));
    let same_name = "{number: 81, name: http, protocol: HTTP, targetPort: 8181}";
    let young = entry(YOUNG, same_name, &at("10.0.0.2"));
    check(
        &[old.clone(), young.clone()],
        ["10.0.0.1:80", "10.0.0.2:8181", "unknown"],
    );
    check(&[young], ["unknown", "10.0.0.2:8181", "unknown"]);
    // names of ports are those of the entry
    let other_name =
        "{number: 80, name: web, protocol: HTTP}, {number: 82, name: http, protocol: HTTP}";
    let young =
        "resolution: STATIC, endpoints: [{address: 10.0.0.2, ports: {web: 9000, http: 9002}}]";
    let young = entry(YOUNG, other_name, young);
    check(
        &[old, young],
        ["10.0.0.1:80 10.0.0.2:9000", "unknown", "10.0.0.2:9002"],
    );
}

#[test]
fn resolution_is_that_of_the_entry_with_the_port() {
    let port = |number: u16| format!("{{number: {number}, name: http, protocol: HTTP}}");
    let fixed = "resolution: STATIC, endpoints: [{address: 10.0.0.1}]";
    let entries = [
        entry(OLD, &port(80), fixed),
        entry(YOUNG, &port(81), "resolution: DNS"),
        entry("default/last@2022", &port(82), "resolution: NONE"),
    ];
    check(&entries, ["10.0.0.1:80", "x.test:81", "dialed"]);
}

#[test]
fn workloads_of_a_selector_serve_the_ports_of_their_entry() {
    let port = |number: u16| format!("{{number: {number}, name: http, protocol: HTTP}}");
    let select =
        |app: &str| format!("resolution: STATIC, workloadSelector: {{labels: {{app: {app}}}}}");
    let entries = [
        entry(OLD, &port(80), &select("one")),
        entry(YOUNG, &port(81), &select("two")),
        "WorkloadEntry default/w1 {address: 10.0.0.1, labels: {app: one}}".to_owned(),
        "WorkloadEntry default/w2 {address: 10.0.0.2, labels: {app: two}, ports: {http: 9000}}"
            .to_owned(),
    ];
    check(&entries, ["10.0.0.1:80", "10.0.0.2:9000", "unknown"]);
}

#[test]
fn visibility_is_that_of_the_oldest_entry() {
    let port = |number: u16| format!("{{number: {number}, name: http, protocol: HTTP}}");
    let at = |more: &str| format!("{more}resolution: STATIC, endpoints: [{{address: 10.0.0.1}}]");
    for (old, young, expected) in [
        (
            "",
            "exportTo: [.], ",
            ["10.0.0.1:80", "10.0.0.1:81", "unknown"],
        ),
        ("exportTo: [.], ", "", ["unknown"; 3]),
    ] {
        let entries = [
            entry(OLD, &port(80), &at(old)),
            entry(YOUNG, &port(81), &at(young)),
        ];
        check(&entries, expected);
    }
}
