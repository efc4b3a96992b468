//! Precedence of objects of one age: the first by name, then by namespace, wherever each was written.

use crate::compile::tests::world::GATEWAY;
use crate::compile::tests::world::SERVICE;
use crate::compile::tests::world::World;
use crate::compile::tests::world::ask;

/// Compiles these on top of the rest, in this order and the other way round, and checks the result.
fn either_way(rest: &[&str], pair: [&str; 2], found: impl Fn(&World) -> String, expected: &str) {
    for pair in [pair, [pair[1], pair[0]]] {
        let world = World::only(&[rest, &pair[..]].concat());
        assert_eq!(found(&world), expected, "{pair:?}");
    }
}

/// The ways in which names and ages tie: the first of each pair counts.
const TIES: [[&str; 2]; 4] = [
    ["default/a", "default/b"],
    ["zz/a", "aa/b"],
    ["aa/x", "zz/x"],
    ["aa/x@2024", "aa/z@2024"],
];

#[test]
fn virtual_services_of_one_age_are_ordered_by_name() {
    for tie in TIES {
        let [first, second] = tie.map(|name| {
            format!(
                "VirtualService {name} {{hosts: [a.com], gateways: [default/gw], \
                 http: [{{directResponse: {{status: 200, body: {{string: {}}}}}}}]}}",
                name.replace(['/', '@'], "-")
            )
        });
        let expected = format!("200 {}", tie[0].replace(['/', '@'], "-"));
        let found = |world: &World| ask(&world.snapshot, 80, "a.com/");
        either_way(&[GATEWAY], [&first, &second], found, &expected);
    }
}

#[test]
fn servers_of_gateways_of_one_age_are_ordered_by_name() {
    for [http, tcp] in TIES {
        let server = |name: &str, protocol: &str| {
            format!(
                "Gateway {name} {{servers: [{{port: {{number: 80, name: p, protocol: {protocol}}}, hosts: ['*']}}]}}"
            )
        };
        let bare = http.split('@').next().unwrap();
        let answers = format!(
            "VirtualService default/v {{hosts: [a.com], gateways: [{bare}], \
             http: [{{directResponse: {{status: 200, body: {{string: http}}}}}}]}}"
        );
        let found = |world: &World| ask(&world.snapshot, 80, "a.com/");
        let pair = [server(http, "HTTP"), server(tcp, "TCP")];
        either_way(&[&answers], [&pair[0], &pair[1]], found, "200 http");
    }
}

/// The first endpoint and the balancer of the service `s`.
fn cluster(world: &World) -> String {
    let name = "outbound|80||s.default.svc.cluster.local";
    let id = world.registry.cluster(name).id;
    let cluster = world.snapshot.cluster(id).expect("it is routed to");
    let balancer = cluster.balance.policy.name();
    format!("{} {balancer}", cluster.endpoints()[0].address)
}

const ROUTE: &str = "VirtualService default/v {hosts: [a.com], gateways: [gw], http: [{route: [{destination: {host: s}}]}]}";

#[test]
fn destination_rules_of_one_age_are_ordered_by_name() {
    for tie in [
        ["default/a", "default/b"],
        ["default/x@2024", "default/z@2024"],
    ] {
        let rule = |name, balancer| {
            format!(
                "DestinationRule {name} {{host: s, trafficPolicy: {{loadBalancer: {{simple: {balancer}}}}}}}"
            )
        };
        let pair = [rule(tie[0], "RANDOM"), rule(tie[1], "ROUND_ROBIN")];
        let rest = [GATEWAY, SERVICE, ROUTE];
        either_way(&rest, [&pair[0], &pair[1]], cluster, "10.0.0.1:80 RANDOM");
    }
}

#[test]
fn service_entries_of_one_age_are_ordered_by_name() {
    for tie in TIES {
        let entry = |name, target| {
            format!(
                "ServiceEntry {name} {{hosts: [s.default.svc.cluster.local], resolution: STATIC, \
                 ports: [{{number: 80, name: p, protocol: HTTP, targetPort: {target}}}], endpoints: [{{address: 10.0.0.1}}]}}"
            )
        };
        let pair = [entry(tie[0], 807), entry(tie[1], 808)];
        let found = |world: &World| cluster(world).split(' ').next().unwrap().to_owned();
        // of those of one namespace the ports are the oldest's
        either_way(
            &[GATEWAY, ROUTE],
            [&pair[0], &pair[1]],
            found,
            "10.0.0.1:807",
        );
    }
}
