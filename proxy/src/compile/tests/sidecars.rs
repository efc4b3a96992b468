//! Listeners of a sidecar, asked with connections: which listener takes one, and where it leads.

use std::net::SocketAddr;

use crate::compile::tests::world::World;
use crate::compile::tests::world::ask_host;
use crate::snapshot::{Detected, Intake, OpaqueRoutes, Security, Service, TlsBytes};
use traffic::route::{OpaqueHead, RuleIdx};

/// Returns the destination of a captured connection. `says` is what the client sends first: `http HOST`, `tls NAME`, or
/// `bytes`.
pub(super) fn reach(world: &World, intake: Intake, dialed: &str, says: &str) -> String {
    let dialed: SocketAddr = dialed.parse().unwrap();
    let Some(listener) = world.snapshot.captured_listener(intake, dialed) else {
        return "no listener".to_owned();
    };
    let (protocol, name) = says.split_once(' ').unwrap_or((says, ""));
    let head = OpaqueHead {
        sni: (!name.is_empty()).then_some(name),
        destination: Some(dialed.ip()),
        source: None,
    };
    match &listener.service {
        Service::Opaque(routes) => format!("bytes {}", carried(routes, &head)),
        Service::Detected(detected) => match (protocol, &**detected) {
            ("http", Detected { http: Some(_), .. }) => {
                ask_host(world, listener, Security::Plain, name)
            }
            (
                "tls",
                Detected {
                    tls: TlsBytes::ByName(routes),
                    ..
                },
            ) => {
                format!("tls {}", carried(routes, &head))
            }
            (_, detected) => format!("bytes {}", carried(&detected.opaque, &head)),
        },
        other => format!("{other:?}"),
    }
}

fn carried(routes: &OpaqueRoutes, head: &OpaqueHead<'_>) -> String {
    let Some(rule) = routes.table.find(head) else {
        return "closed".to_owned();
    };
    let split = routes.route(rule).split.iter();
    let entries = split.flat_map(|split| split.entries());
    let each = entries.map(|(weight, to)| format!("{weight} {}", to.name));
    each.collect::<Vec<_>>().join(", ")
}

fn check(world: &World, intake: Intake, rows: &[(&str, &str, &str)]) {
    for (dialed, says, expected) in rows {
        assert_eq!(
            &reach(world, intake, dialed, says),
            expected,
            "{dialed} {says}"
        );
    }
}

fn outbound(resources: &[&str], rows: &[(&str, &str, &str)]) {
    check(&World::sidecar(resources), Intake::CapturedOutbound, rows);
}

fn inbound(resources: &[&str], rows: &[(&str, &str, &str)]) {
    check(&World::sidecar(resources), Intake::CapturedInbound, rows);
}

const WEB: &str = "Service default/web {clusterIP: 10.0.0.1, selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}, \
    {name: tcp-db, port: 3306, targetPort: 3306}, {name: https, port: 443}, {name: other, port: 9000}]}";

const API: &str = "Service prod/api {clusterIP: 10.0.0.2, ports: [{name: grpc, port: 80}, {name: tcp, port: 3306}]}";

#[test]
fn services_are_reached_by_host_name_and_address() {
    outbound(
        &[WEB, API],
        &[
            ("10.0.0.1:80", "http web", "1 web.default:80"),
            ("10.0.0.1:80", "http web.default", "1 web.default:80"),
            ("10.0.0.1:80", "http web.default.svc", "1 web.default:80"),
            (
                "10.0.0.1:80",
                "http web.default.svc.cluster.local",
                "1 web.default:80",
            ),
            ("10.0.0.1:80", "http 10.0.0.1", "1 web.default:80"),
            // HTTP services of a port share it: the host decides, not the address
            ("10.0.0.1:80", "http api.prod", "1 api.prod:80"),
            ("10.0.0.2:80", "http api", "1 PassthroughCluster"),
            (
                "10.0.0.1:3306",
                "bytes",
                "bytes 1 outbound|3306||web.default.svc.cluster.local",
            ),
            (
                "10.0.0.2:3306",
                "bytes",
                "bytes 1 outbound|3306||api.prod.svc.cluster.local",
            ),
            ("10.9.9.9:3306", "bytes", "bytes 1 PassthroughCluster"),
            (
                "10.0.0.1:443",
                "tls x.test",
                "tls 1 outbound|443||web.default.svc.cluster.local",
            ),
            ("10.9.9.9:443", "tls x.test", "tls 1 PassthroughCluster"),
            // nothing declared: both
            ("10.0.0.1:9000", "http web", "1 web.default:9000"),
            (
                "10.0.0.1:9000",
                "bytes",
                "bytes 1 outbound|9000||web.default.svc.cluster.local",
            ),
            ("10.9.9.9:80", "http nobody.test", "1 PassthroughCluster"),
            (
                "10.9.9.9:81",
                "http nobody.test",
                "bytes 1 PassthroughCluster",
            ),
        ],
    );
}

#[test]
fn unknown_destinations_are_refused_if_the_sidecar_says_so() {
    let sidecar = "Sidecar default/s {outboundTrafficPolicy: {mode: REGISTRY_ONLY}}";
    outbound(
        &[WEB, sidecar],
        &[
            ("10.0.0.1:80", "http web", "1 web.default:80"),
            ("10.9.9.9:80", "http nobody.test", "502 "),
            ("10.9.9.9:81", "bytes", "bytes 1 BlackHoleCluster"),
            ("10.9.9.9:443", "tls x.test", "tls 1 BlackHoleCluster"),
        ],
    );
    let proxy = "Sidecar default/s {outboundTrafficPolicy: {mode: ALLOW_ANY, egressProxy: {host: api.prod.svc.cluster.local, \
        port: {number: 3306}}}}";
    outbound(
        &[WEB, API, proxy],
        &[
            ("10.9.9.9:80", "http nobody.test", "1 api.prod:3306"),
            (
                "10.9.9.9:81",
                "bytes",
                "bytes 1 outbound|3306||api.prod.svc.cluster.local",
            ),
        ],
    );
}

#[test]
fn egress_hosts_limit_what_is_known() {
    for (hosts, web, api) in [
        ("'./*'", "1 web.default:80", "1 PassthroughCluster"),
        ("'prod/*'", "1 PassthroughCluster", "1 api.prod:80"),
        (
            "'*/*', '~prod/*'",
            "1 web.default:80",
            "1 PassthroughCluster",
        ),
        ("'~/*'", "1 PassthroughCluster", "1 PassthroughCluster"),
    ] {
        let sidecar = format!("Sidecar default/s {{egress: [{{hosts: [{hosts}]}}]}}");
        outbound(
            &[WEB, API, &sidecar],
            &[
                ("10.0.0.1:80", "http web.default", web),
                ("10.0.0.2:80", "http api.prod", api),
            ],
        );
    }
}

#[test]
fn egress_entry_of_a_port_is_for_the_services_of_the_port() {
    let sidecar = "Sidecar default/s {egress: [{port: {number: 80, protocol: HTTP, name: h}, hosts: ['prod/*']}, {hosts: ['./*']}]}";
    outbound(
        &[WEB, API, sidecar],
        &[
            ("10.0.0.2:80", "http api.prod", "1 api.prod:80"),
            ("10.0.0.1:80", "http web", "1 PassthroughCluster"),
            (
                "10.0.0.1:3306",
                "bytes",
                "bytes 1 outbound|3306||web.default.svc.cluster.local",
            ),
            ("10.0.0.2:3306", "bytes", "bytes 1 PassthroughCluster"),
        ],
    );
}

#[test]
fn sidecar_of_the_workload_then_of_the_namespace_then_of_the_root_namespace_counts() {
    let of = |name: &str, more: &str, host: &str| {
        format!("Sidecar {name} {{{more}egress: [{{hosts: ['*/{host}']}}]}}")
    };
    let root = of("istio-system/root", "", "root.test");
    let namespace = of("default/namespace", "", "namespace.test");
    let workload = of(
        "default/workload",
        "workloadSelector: {labels: {app: web}}, ",
        "workload.test",
    );
    let other = of(
        "default/a",
        "workloadSelector: {labels: {app: other}}, ",
        "other.test",
    );
    let chosen_by_root = of(
        "istio-system/a",
        "workloadSelector: {labels: {app: web}}, ",
        "none.test",
    );
    let entries: Vec<String> = ["root", "namespace", "workload", "other", "none"]
        .iter()
        .map(|name| {
            format!(
                "ServiceEntry default/{name} {{hosts: [{name}.test], resolution: STATIC, ports: [{{number: 80, name: http, \
                 protocol: HTTP}}], endpoints: [{{address: 10.1.1.1}}]}}"
            )
        })
        .collect();
    for (sidecars, known) in [
        (
            vec![&root, &namespace, &workload, &other, &chosen_by_root],
            "workload",
        ),
        (
            vec![&root, &namespace, &other, &chosen_by_root],
            "namespace",
        ),
        (vec![&root, &other, &chosen_by_root], "root"),
    ] {
        let resources: Vec<&str> = entries.iter().chain(sidecars).map(String::as_str).collect();
        let world = World::sidecar(&resources);
        for name in ["root", "namespace", "workload", "other", "none"] {
            let host = format!("http {name}.test");
            let found = reach(&world, Intake::CapturedOutbound, "10.9.9.9:80", &host);
            let expected = match name == known {
                true => format!("1 {name}.test:80"),
                false => "1 PassthroughCluster".to_owned(),
            };
            assert_eq!(found, expected, "{known}");
        }
    }
}

#[test]
fn virtual_services_of_the_mesh_route_requests_of_the_workload() {
    let rule = |name: &str, more: &str, host: &str, body: &str| {
        format!(
            "VirtualService {name} {{hosts: [{host}], {more}http: [{{directResponse: {{status: 200, body: {{string: {body}}}}}}}]}}"
        )
    };
    let mesh = rule("default/mesh@2020", "", "web", "mesh");
    let later = rule("default/later@2021", "", "web, later.test", "later");
    let gateway = rule("default/a@2019", "gateways: [gw], ", "web", "gateway");
    let hidden = rule(
        "prod/hidden@2018",
        "exportTo: ['.'], ",
        "web.default.svc.cluster.local",
        "hidden",
    );
    let wild = rule("default/wild@2017", "", "'*.svc.cluster.local'", "wild");
    outbound(
        &[WEB, API, &mesh, &later, &gateway, &hidden, &wild],
        &[
            ("10.0.0.1:80", "http web", "200 mesh"),
            // one VirtualService has the whole host; another host of the later one stays
            ("10.0.0.1:80", "http later.test", "200 later"),
            ("10.0.0.1:80", "http api.prod", "200 wild"),
            // a host that no service has is served on the ports of the services of its VirtualService
            ("10.0.0.1:9000", "http later.test", "200 later"),
            ("10.0.0.1:9000", "http web", "200 mesh"),
        ],
    );
}

#[test]
fn rules_for_connections_of_the_mesh_are_for_the_addresses_of_their_service() {
    let tcp = "VirtualService default/t {hosts: [web], tcp: [{match: [{port: 3306, sourceLabels: {app: other}}], route: \
        [{destination: {host: nobody}}]}, {match: [{port: 3306}], route: [{destination: {host: api.prod.svc.cluster.local, port: \
        {number: 3306}}}]}]}";
    let tls = "VirtualService default/l {hosts: ['x.test'], tls: [{match: [{port: 443, sniHosts: [x.test]}], route: [{destination: \
        {host: api.prod.svc.cluster.local, port: {number: 80}}}]}]}";
    let outside = "ServiceEntry default/x {hosts: [x.test, y.test], resolution: NONE, ports: [{number: 443, name: tls, protocol: TLS}]}";
    outbound(
        &[WEB, API, tcp, tls, outside],
        &[
            (
                "10.0.0.1:3306",
                "bytes",
                "bytes 1 outbound|3306||api.prod.svc.cluster.local",
            ),
            (
                "10.0.0.2:3306",
                "bytes",
                "bytes 1 outbound|3306||api.prod.svc.cluster.local",
            ),
            ("10.9.9.9:3306", "bytes", "bytes 1 PassthroughCluster"),
            (
                "10.9.9.9:443",
                "tls x.test",
                "tls 1 outbound|80||api.prod.svc.cluster.local",
            ),
            ("10.9.9.9:443", "tls y.test", "tls 1 outbound|443||y.test"),
            ("10.9.9.9:443", "tls z.test", "tls 1 PassthroughCluster"),
        ],
    );
}

#[test]
fn endpoints_of_headless_services_are_dialed_themselves() {
    let db = "Service default/db {clusterIP: None, ports: [{name: tcp, port: 5432}]}";
    let slice = "EndpointSlice default/db-1 {addressType: IPv4, ports: [{name: tcp, port: 5432}], endpoints: [{addresses: [10.5.0.1]}, \
        {addresses: [10.5.0.2]}]}";
    outbound(
        &[db, slice],
        &[
            (
                "10.5.0.1:5432",
                "bytes",
                "bytes 1 outbound|5432||db.default.svc.cluster.local",
            ),
            ("10.5.0.3:5432", "bytes", "bytes 1 PassthroughCluster"),
        ],
    );
}

#[test]
fn inbound_listeners_follow_from_the_services_of_the_workload() {
    let other = "Service default/other {clusterIP: 10.0.0.7, selector: {app: other}, ports: [{name: http, port: 80, targetPort: 7777}]}";
    inbound(
        &[WEB, other],
        &[
            ("10.3.0.1:8080", "http any.test", "1 inbound|8080||"),
            ("10.3.0.1:3306", "bytes", "bytes 1 inbound|3306||"),
            (
                "10.3.0.1:7777",
                "http any.test",
                "1 InboundPassthroughCluster",
            ),
            (
                "10.3.0.1:7777",
                "bytes",
                "bytes 1 InboundPassthroughCluster",
            ),
        ],
    );
}

#[test]
fn ingress_replaces_the_listeners_of_services() {
    let sidecar = "Sidecar default/s {ingress: [{port: {number: 8080, protocol: HTTP, name: h}, defaultEndpoint: '127.0.0.1:9999'}]}";
    let world = World::sidecar(&[WEB, sidecar]);
    check(
        &world,
        Intake::CapturedInbound,
        &[
            ("10.3.0.1:8080", "http any.test", "1 inbound|8080||"),
            (
                "10.3.0.1:3306",
                "bytes",
                "bytes 1 InboundPassthroughCluster",
            ),
        ],
    );
    let clusters = world.snapshot.clusters.iter().flatten();
    let mut own = clusters.filter(|cluster| &**cluster.name() == "inbound|8080||");
    let endpoints = own.next().expect("a cluster").endpoints();
    assert_eq!(endpoints[0].address.to_string(), "127.0.0.1:9999");
}

#[test]
fn listeners_without_capture_have_sockets() {
    let sidecar = "Sidecar default/s {ingress: [{port: {number: 8080, protocol: HTTP, name: h}, captureMode: NONE, defaultEndpoint: \
        '127.0.0.1:9999'}], egress: [{port: {number: 80, protocol: HTTP, name: e}, captureMode: NONE, hosts: ['*/*']}, {port: {number: 0, \
        protocol: HTTP, name: u}, bind: 'unix:///run/e.sock', captureMode: NONE, hosts: ['*/*']}]}";
    let world = World::sidecar(&[WEB, sidecar]);
    let sockets: Vec<String> = world.snapshot.sockets().map(ToString::to_string).collect();
    let expected = [
        "127.0.0.1:80",
        "[::]:8080",
        "[::]:15001",
        "[::]:15006",
        "unix:///run/e.sock",
    ];
    assert_eq!(sockets, expected);
}

#[test]
fn second_compile_keeps_every_listener() {
    let sidecar = "Sidecar default/s {egress: [{hosts: ['*/*']}]}";
    let mut world = World::sidecar(&[WEB, API, sidecar]);
    let before = std::sync::Arc::clone(&world.snapshot);
    world.put(&crate::compile::tests::world::load(&[WEB, API, sidecar]));
    for (key, listener) in &before.listeners {
        let now = &world.snapshot.listeners[key];
        assert!(std::sync::Arc::ptr_eq(listener, now), "{key}");
    }
}

#[test]
fn private_virtual_service_comes_before_older_public_ones() {
    let says = |name: &str, export: &str, text: &str| {
        format!(
            "VirtualService {name} {{hosts: [a.test], exportTo: [{export}], http: [{{directResponse: {{status: 200, body: {{string: {text}}}}}}}]}}"
        )
    };
    let public = says("default/public@2020", "'*'", "public");
    let some = says("other/some@2021", "default", "some");
    let private = says("default/private@2022", ".", "private");
    let hidden = says("other/hidden@2019", ".", "hidden");
    for (all, expected) in [
        (&[&public, &some, &private, &hidden][..], "200 private"),
        (&[&public, &some, &hidden], "200 some"),
        (&[&public, &hidden], "200 public"),
    ] {
        let all: Vec<&str> = all.iter().map(|one| one.as_str()).collect();
        let world = World::sidecar(&all);
        let found = reach(
            &world,
            Intake::CapturedOutbound,
            "192.0.2.1:80",
            "http a.test",
        );
        assert_eq!(found, expected, "{all:?}");
    }
}

#[test]
fn virtual_service_without_a_rule_here_leaves_the_service_its_own_route() {
    let service = "Service default/s {ports: [{name: http, port: 80}]}";
    let elsewhere = "VirtualService default/s {hosts: [s], http: [{match: [{port: 81}], directResponse: {status: 200}}]}";
    let wide = "VirtualService default/w {hosts: ['*.default.svc.cluster.local'], http: [{directResponse: {status: 200}}]}";
    let world = World::sidecar(&[service, elsewhere, wide]);
    check(
        &world,
        Intake::CapturedOutbound,
        &[("192.0.2.1:80", "http s", "1 s.default:80")],
    );
}

/// Whether a consistent hash decides about `retryIgnorePreviousHosts`.
#[test]
fn retries_of_a_service_that_no_virtual_service_routes_avoid_tried_endpoints() {
    let rule =
        "VirtualService default/web {hosts: [web], http: [{route: [{destination: {host: web}}]}]}";
    for (resources, expected) in [(&[WEB][..], Some(true)), (&[WEB, rule], None)] {
        let world = World::sidecar(resources);
        let dialed = "10.0.0.1:80".parse().unwrap();
        let listener = world
            .snapshot
            .captured_listener(Intake::CapturedOutbound, dialed);
        let hosts = listener.unwrap().http(Security::Plain).unwrap();
        let host = hosts.find("web.default.svc.cluster.local").unwrap();
        let retry = host.route(RuleIdx(0)).filters.retry.as_ref();
        assert_eq!(retry.unwrap().avoid_tried, expected, "{resources:?}");
    }
}
