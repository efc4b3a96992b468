//! Compiling on top of the snapshot before: the same answers as afresh, and unchanged parts kept.

use std::fmt::Write;
use std::net::IpAddr;
use std::sync::Arc;

use proptest::prelude::*;

use crate::compile::tests::world::GATEWAY;
use crate::compile::tests::world::SERVICE;
use crate::compile::tests::world::World;
use crate::compile::tests::world::load;
use crate::compile::tests::world::plain;
use crate::identity::{GatewayTls, MemberGateway, MemberSettings};
use crate::snapshot::{Listener, Service, Snapshot, VirtualHost};
use traffic::cluster::{Cluster, EndpointTls};

/// Places that hold one resource or none. A place without one is filled with comments, so that no line moves.
const PLACES: &[&[&str]] = &[
    &[
        GATEWAY,
        "Gateway default/gw {servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*.com']}]}",
        "Gateway default/gw {servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*'], \
         tls: {httpsRedirect: true}}]}",
    ],
    &[
        "",
        "Gateway default/two {servers: [{port: {number: 81, name: http, protocol: HTTP}, hosts: ['*']}, \
         {port: {number: 80, name: more, protocol: HTTP}, hosts: ['*']}]}",
    ],
    &[
        "VirtualService default/a {hosts: [a.com], gateways: [gw], http: [\
         {match: [{uri: {prefix: /x}}], route: [{destination: {host: s, subset: v1}}]}, {delegate: {name: d}}]}",
        "VirtualService default/a {hosts: [a.com, b.org], gateways: [gw, two], http: [{route: [{destination: {host: s}}]}]}",
        "",
    ],
    &[
        "VirtualService default/b {hosts: ['*.com'], gateways: [gw], http: [\
         {match: [{uri: {prefix: /y}}], route: [{destination: {host: t}, weight: 1}, {destination: {host: s}, weight: 2}, \
         {destination: {host: s, subset: v1}, weight: 0}]}, \
         {match: [{gateways: [two]}], redirect: {uri: /two}}]}",
        "VirtualService default/b@2020 {hosts: [a.com], gateways: [two, gw], http: [{match: [{port: 81}], \
         redirect: {uri: /x}}]}",
        "",
    ],
    &[
        "VirtualService default/d {http: [{route: [{destination: {host: t}}]}]}",
        "VirtualService default/d {hosts: [d.com], gateways: [gw], http: [{route: [{destination: {host: t}}]}]}",
        "VirtualService default/d {exportTo: [other], http: [{route: [{destination: {host: t}}]}]}",
        "",
    ],
    &[
        SERVICE,
        "ServiceEntry default/s {hosts: [s.default.svc.cluster.local], resolution: STATIC, \
         ports: [{number: 8080, name: http, protocol: HTTP2}], endpoints: [{address: 10.0.0.9, labels: {version: v1}}]}",
        "ServiceEntry default/s {hosts: [s.default.svc.cluster.local], resolution: STATIC, \
         ports: [{number: 80, name: http, protocol: HTTP}], workloadSelector: {labels: {app: s}}}",
        "",
    ],
    &[
        "ServiceEntry default/t {hosts: [t.default.svc.cluster.local], resolution: DNS, \
         ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: one.test}, {address: two.test, weight: 3}]}",
        "ServiceEntry default/t {hosts: [t.default.svc.cluster.local], exportTo: [other], resolution: DNS, \
         ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: one.test}]}",
        "",
    ],
    &[
        "WorkloadEntry default/w {address: 10.1.0.1, labels: {app: s, version: v1}}",
        "WorkloadEntry default/w {address: 10.1.0.2, labels: {app: s}, weight: 5}",
        "",
    ],
    &[
        "DestinationRule default/s {host: s, subsets: [{name: v1, labels: {version: v1}}]}",
        "DestinationRule default/s {host: '*.local', trafficPolicy: {loadBalancer: {simple: RANDOM}}, subsets: [{name: v1}]}",
        "",
    ],
    &[
        "",
        "DestinationRule istio-system/s {host: t.default.svc.cluster.local, exportTo: ['.'], \
         trafficPolicy: {connectionPool: {tcp: {connectTimeout: 1s}}}}",
    ],
];

/// One change: a place gets another resource, or a name other addresses.
#[derive(Clone, Copy, Debug)]
enum Edit {
    Place(usize, usize),
    Name(&'static str, u8),
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        4 => (0..PLACES.len(), 0..4_usize).prop_map(|(place, choice)| Edit::Place(place, choice)),
        1 => (prop_oneof![Just("one.test"), Just("two.test")], 1..4_u8).prop_map(|(name, byte)| Edit::Name(name, byte)),
    ]
}

fn set_of(choices: &[usize]) -> config_loader::ResourceSet {
    let resources: Vec<&str> = PLACES
        .iter()
        .zip(choices)
        .map(|(place, choice)| place[choice % place.len()])
        .collect();
    load(&resources)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn incremental_compile_equals_a_fresh_one(edits in prop::collection::vec(edit(), 1..12)) {
        let mut world = World::empty();
        let mut choices = vec![0; PLACES.len()];
        world.put(&set_of(&choices));
        for edit in edits {
            match edit {
                Edit::Place(place, choice) => choices[place] = choice,
                Edit::Name(name, byte) => {
                    let address: IpAddr = [10, 2, 0, byte].into();
                    world.registry.set_resolution(name, vec![address]);
                }
            }
            let resources = set_of(&choices);
            world.put(&resources);
            let fresh = world.compile(&resources, &Snapshot::default());
            prop_assert_eq!(dump(&world.snapshot), dump(&fresh), "after {:?}", edit);
        }
    }
}

/// Everything that requests read of a snapshot, as text.
pub(in crate::compile) fn dump(snapshot: &Snapshot) -> String {
    let mut out = String::new();
    for listener in snapshot.listeners.values() {
        let Listener {
            key,
            provenance,
            protocols,
            proxy_protocol,
            skipped,
            service,
            ..
        } = &**listener;
        writeln!(out, "{key:?} {provenance:?} {protocols:?}").unwrap();
        writeln!(out, "{proxy_protocol:?} {skipped:?}").unwrap();
        if !matches!(service, Service::Http(_)) {
            // what a virtual host was rebuilt for is no part of it
            for (number, part) in format!("{service:?}").split("cause: ").enumerate() {
                let rest = part.split_once("fingerprint: ").filter(|_| number > 0);
                write!(out, "{}", rest.map_or(part, |(_, rest)| rest)).unwrap();
            }
            writeln!(out).unwrap();
        }
        for hosts in listener.all_http() {
            let names = hosts.virtual_hosts.iter().map(|host| &host.name);
            let (names, addresses) = (names.collect::<Vec<_>>(), &hosts.addresses);
            writeln!(out, " {names:?} {addresses:?}").unwrap();
            for (pattern, number) in hosts.hosts.iter() {
                let host = &hosts.virtual_hosts[*number as usize];
                writeln!(out, " {pattern} {}", host.name).unwrap();
                let wider = hosts.wider.get(*number as usize);
                writeln!(out, "  {wider:?}").unwrap();
                for (rule, route) in host.table.rules().iter().zip(&*host.routes) {
                    writeln!(out, "  {rule:?}\n  {route:?}").unwrap();
                }
            }
        }
    }
    for cluster in snapshot.clusters.iter().flatten() {
        let (id, name) = (cluster.id(), cluster.name());
        let (policy, pool, protocol) = (&cluster.balance, &cluster.pool, cluster.protocol);
        let (from, unresolved) = (&cluster.sources, &cluster.unresolved);
        writeln!(
            out,
            "{id:?} {name} {policy:?} {pool:?} {protocol:?} {from:?} {unresolved:?}"
        )
        .unwrap();
        let pools = cluster.federation.as_ref().map(|one| one.pools());
        let (absence, check, plan) = (cluster.absence, &cluster.check, &cluster.plan);
        writeln!(out, " {pools:?} {absence:?} {check:?} {plan:?}").unwrap();
        for endpoint in cluster.endpoints() {
            let (address, weight) = (&endpoint.address, endpoint.weight);
            let (locality, labels) = (&endpoint.locality, &endpoint.labels);
            let (node, tls) = (&endpoint.node, &endpoint.tls);
            writeln!(
                out,
                " {address} {weight} {locality:?} {labels:?} {node:?} {tls:?}"
            )
            .unwrap();
            let (member, network, hop) = (&endpoint.member, &endpoint.network, &endpoint.hop);
            let (state, scope) = (endpoint.state.id, &endpoint.scope);
            let counted = Arc::as_ptr(&endpoint.stats);
            let alternates = endpoint.alternates();
            writeln!(out, "  {member:?} {network:?} {hop:?} {alternates:?}").unwrap();
            writeln!(out, "  {state} {scope} {counted:?}").unwrap();
        }
    }
    let (names, missing) = (&snapshot.dns_names, &snapshot.missing);
    writeln!(out, "{names:?} {missing:?}").unwrap();
    out
}

fn virtual_host(world: &World, name: &str) -> Arc<VirtualHost> {
    let listener = world.snapshot.listeners.values().next().unwrap();
    Arc::clone(plain(listener).find(name).unwrap())
}

fn cluster(world: &World, host: &str) -> Arc<Cluster> {
    let name = format!("outbound|80||{host}.default.svc.cluster.local");
    let id = world.registry.cluster(&name).id;
    Arc::clone(world.snapshot.cluster(id).unwrap())
}

const A: &str = "VirtualService default/a {hosts: [a.com], gateways: [gw], http: [{route: [{destination: {host: s}}]}]}";
const B: &str = "VirtualService default/b {hosts: [b.com], gateways: [gw], http: [{route: [{destination: {host: t}}]}]}";
const T: &str = "ServiceEntry default/t {hosts: [t.default.svc.cluster.local], resolution: STATIC, \
    ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.0.1.1}]}";

#[test]
fn unchanged_resources_keep_all_parts() {
    let mut world = World::of(&[A, B, T]);
    let before = Arc::clone(&world.snapshot);
    world.put(&load(&[GATEWAY, SERVICE, A, B, T]));
    let kept = before
        .listeners
        .values()
        .zip(world.snapshot.listeners.values());
    assert!(kept.into_iter().all(|(a, b)| Arc::ptr_eq(a, b)));
    let clusters = before.clusters.iter().zip(&world.snapshot.clusters);
    for (a, b) in clusters {
        assert!(Arc::ptr_eq(a.as_ref().unwrap(), b.as_ref().unwrap()));
    }
}

#[test]
fn changed_route_keeps_other_hosts_and_all_clusters() {
    let mut world = World::of(&[A, B, T]);
    let (a, b) = (virtual_host(&world, "a.com"), virtual_host(&world, "b.com"));
    let (s, t) = (cluster(&world, "s"), cluster(&world, "t"));
    world.put(&load(&[
        GATEWAY,
        SERVICE,
        &A.replace("route:", "timeout: 1s, route:"),
        B,
        T,
    ]));
    assert!(!Arc::ptr_eq(&a, &virtual_host(&world, "a.com")));
    assert!(Arc::ptr_eq(&b, &virtual_host(&world, "b.com")));
    assert!(Arc::ptr_eq(&s, &cluster(&world, "s")));
    assert!(Arc::ptr_eq(&t, &cluster(&world, "t")));
}

#[test]
fn changed_endpoints_keep_routes_and_other_clusters() {
    let mut world = World::of(&[A, B, T]);
    let listener = Arc::clone(world.snapshot.listeners.values().next().unwrap());
    let (s, t) = (cluster(&world, "s"), cluster(&world, "t"));
    world.put(&load(&[
        GATEWAY,
        SERVICE,
        A,
        B,
        &T.replace("10.0.1.1", "10.0.1.2"),
    ]));
    let now = world.snapshot.listeners.values().next().unwrap();
    assert!(Arc::ptr_eq(&listener, now));
    assert!(Arc::ptr_eq(&s, &cluster(&world, "s")));
    assert!(!Arc::ptr_eq(&t, &cluster(&world, "t")));
}

#[test]
fn cluster_id_and_endpoint_state_survive_changes() {
    let mut world = World::of(&[A, B, T]);
    let before = cluster(&world, "s");
    world.put(&load(&[
        GATEWAY,
        &SERVICE.replace("10.0.0.2", "10.0.0.3"),
        A,
        B,
        T,
    ]));
    let after = cluster(&world, "s");
    assert_eq!(before.id(), after.id());
    let state = |cluster: &Cluster| Arc::clone(&cluster.endpoints()[0].state);
    assert!(Arc::ptr_eq(&state(&before), &state(&after)));
}

#[test]
fn resolved_name_changes_only_its_cluster() {
    let dns = T.replace("STATIC", "DNS").replace("10.0.1.1", "one.test");
    let mut world = World::of(&[A, B, &dns]);
    let resources = load(&[GATEWAY, SERVICE, A, B, &dns]);
    let listener = Arc::clone(world.snapshot.listeners.values().next().unwrap());
    let (s, t) = (cluster(&world, "s"), cluster(&world, "t"));
    assert_eq!(*t.unresolved, ["one.test:80".into()]);
    world
        .registry
        .set_resolution("one.test", vec![[10, 9, 9, 9].into()]);
    world.put(&resources);
    let now = world.snapshot.listeners.values().next().unwrap();
    assert!(Arc::ptr_eq(&listener, now));
    assert!(Arc::ptr_eq(&s, &cluster(&world, "s")));
    let t = cluster(&world, "t");
    assert_eq!(t.endpoints()[0].address.to_string(), "10.9.9.9:80");
    assert!(t.unresolved.is_empty());
}

#[test]
fn changed_remote_clusters_file_recompiles_affected_parts() {
    let import = "ServiceImport default/w {ports: [{name: http, port: 80, endpoints: [\
                  {clusterKey: eu/a/b/c2, target: {host: gw.example, ip: 10.0.2.1, port: 80, path: /c2}}]}]}";
    let service = "Service default/w {ports: [{name: http, port: 80}]}";
    let route = "VirtualService default/w {hosts: [w.com], gateways: [gw], http: [{route: [\
                 {destination: {host: w.default.svc.clusterset.local}}]}]}";
    let mut world = World::of(&[import, service, route]);
    let resources = load(&[GATEWAY, SERVICE, import, service, route]);
    let told = |network: &str, locality: &str, tls: Option<GatewayTls>| MemberSettings {
        key: "eu/a/b/c2".to_owned(),
        network: network.to_owned(),
        locality: locality.to_owned(),
        trust_domain: None,
        gateway: Some(MemberGateway {
            host: "10.0.2.9".to_owned(),
            port: 443,
            tls,
        }),
    };
    let tls = GatewayTls {
        server_name: Some("c2.example".into()),
        authorities: Some("ca.pem".into()),
        ..GatewayTls::default()
    };
    let endpoint = |world: &World| {
        let id = world
            .registry
            .cluster("outbound|80||w.default.svc.clusterset.local")
            .id;
        let cluster = world.snapshot.cluster(id).unwrap();
        let endpoint = &cluster.endpoints()[0];
        let (network, locality) = (endpoint.network.to_string(), endpoint.locality.to_string());
        let has_own_tls = matches!(endpoint.tls, EndpointTls::Own(_));
        (network, locality, has_own_tls)
    };
    let said = |network: &str, locality: &str, tls| (network.to_owned(), locality.to_owned(), tls);
    for (members, expected) in [
        (vec![], said("", "eu/a", false)),
        (vec![told("n2", "", None)], said("n2", "eu/a", false)),
        (
            vec![told("n2", "us/b/c", None)],
            said("n2", "us/b/c", false),
        ),
        (vec![told("", "", Some(tls))], said("", "eu/a", true)),
        (vec![told("", "", None)], said("", "eu/a", false)),
    ] {
        world.identity.members = members;
        world.put(&resources);
        assert_eq!(endpoint(&world), expected);
        let fresh = world.compile(&resources, &Snapshot::default());
        assert_eq!(dump(&world.snapshot), dump(&fresh));
    }
}

#[test]
fn exported_routes_are_on_every_http_server_and_reused() {
    let gateway = "Gateway default/gw {servers: [\
        {port: {number: 443, name: one, protocol: HTTPS}, hosts: [a.com], tls: {mode: SIMPLE, credentialName: c}}, \
        {port: {number: 443, name: two, protocol: HTTPS}, hosts: [b.com], tls: {mode: MUTUAL, credentialName: c}}, \
        {port: {number: 9000, name: tcp, protocol: TCP}, hosts: ['*']}]}";
    let service = "Service default/w {ports: [{name: http, port: 80}]}";
    let export = "ServiceExport default/w {rules: [{portNumber: 80, path: /w, pathType: Prefix}]}";
    let exported = |world: &World| {
        let listeners = world.snapshot.listeners.values();
        let hosts = listeners.flat_map(|listener| listener.all_http());
        let exports = hosts.filter_map(|hosts| hosts.exports.clone());
        exports.collect::<Vec<_>>()
    };
    let mut world = World::only(&[gateway, service, export, T]);
    let before = exported(&world);
    assert_eq!(before.len(), 2);
    world.put(&load(&[gateway, service, export, SERVICE]));
    let after = exported(&world);
    let kept = before.iter().zip(&after);
    assert!(after.len() == 2 && kept.into_iter().all(|(a, b)| Arc::ptr_eq(a, b)));
    world.put(&load(&[gateway, service]));
    assert!(exported(&world).is_empty());
}
