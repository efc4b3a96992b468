//! Compiling with what the compile before has left says what a fresh one says.

use std::collections::BTreeMap;
use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::resource::core::EndpointSlice;
use config_loader::resource::{Name, Object};
use proptest::prelude::*;

use crate::compile::Inputs;
use crate::compile::ServiceCache;
use crate::compile::compile_again;
use crate::compile::service::Service;
use crate::compile::tests::incremental::dump;
use crate::compile::tests::world::GATEWAY;
use crate::compile::tests::world::World;
use crate::compile::tests::world::load;
use crate::snapshot::Snapshot;
use crate::tls::Store;

/// Resources that do not change: services with and without imports, one of which is Headless, and a host of two kinds.
const REST: &[&str] = &[
    GATEWAY,
    "Service ns1/a {ports: [{name: http, port: 80}]}",
    "Service ns1/b {ports: [{name: http, port: 80}]}",
    "Service ns1/c {ports: [{name: http, port: 80}]}",
    "ServiceEntry ns1/b {hosts: [b.ns1.svc.cluster.local], ports: [{number: 81, name: http, protocol: HTTP}], \
     resolution: STATIC, endpoints: [{address: 10.9.9.9}]}",
    "ServiceImport ns1/b {ports: [{name: http, port: 80, endpoints: [\
     {clusterKey: default/default/default/c2, target: {host: '', ip: 10.2.0.1, port: 80, path: /b}}]}], ips: [10.96.0.9]}",
    "ServiceImport ns1/c {type: Headless, ports: [{name: http, port: 80, endpoints: [\
     {clusterKey: default/default/default/c2, target: {host: one.example, ip: 10.2.0.2, port: 80, path: ''}}]}]}",
    "GlobalTrafficPolicy ns1/b {lbType: ActiveActive}",
    "DestinationRule ns1/a {host: a, subsets: [{name: all}]}",
    "VirtualService default/all {hosts: [all.example], gateways: [default/gw], http: [\
     {match: [{uri: {prefix: /a}}], route: [{destination: {host: a.ns1.svc.cluster.local, subset: all}}]}, \
     {match: [{uri: {prefix: /b}}], route: [{destination: {host: b.ns1.svc.cluster.local}}]}, \
     {match: [{uri: {prefix: /cs}}], route: [{destination: {host: b.ns1.svc.clusterset.local}}]}, \
     {match: [{uri: {prefix: /new}}], route: [{destination: {host: d.ns1.svc.cluster.local}}]}, \
     {match: [{uri: {prefix: /g}}], route: [{destination: {host: gone.example}}]}, \
     {match: [{uri: {prefix: /o}}], route: [{destination: {host: other.example}}]}, \
     {match: [{uri: {prefix: /c}}], route: [{destination: {host: c.ns1.svc.clusterset.local}}]}]}",
];

/// One change of the resources.
#[derive(Clone, Debug)]
enum Edit {
    /// A slice comes, or becomes another one: its number, its service, its endpoint, and whether it is of another cluster.
    Slice(u8, char, u8, bool),
    /// A slice goes.
    Gone(u8),
    /// A VirtualService becomes one of [`ROUTES`], or goes.
    Route(usize, Option<usize>),
    /// A DestinationRule becomes one of [`RULES`], or goes.
    Rule(usize, Option<usize>),
    /// A ServiceEntry becomes one of [`ENTRIES`], or goes.
    Entry(usize, Option<usize>),
    /// A Service becomes one of [`SERVICES`], or goes.
    Service(char, Option<usize>),
    /// A WorkloadEntry becomes one of [`WORKLOADS`], or goes.
    Workload(usize, Option<usize>),
    /// A pod becomes one of [`PODS`], or goes: the one behind endpoints of this number.
    Pod(u8, Option<usize>),
    /// The node becomes one of [`NODES`], or goes.
    Node(Option<usize>),
    /// The namespace gets another network.
    Network(u8),
    /// Something else becomes another object, though it says the same.
    Else,
}

/// Specs of ServiceEntries: for hosts that routes name, that other entries or Services have, and with addresses.
const ENTRIES: &[&str] = &[
    "{hosts: [gone.example], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, \
     endpoints: [{address: 10.7.0.1}]}",
    "{hosts: [gone.example, other.example], ports: [{number: 81, name: http, protocol: HTTP}], resolution: STATIC, \
     endpoints: [{address: 10.7.0.2}, {address: 10.7.0.3}]}",
    "{hosts: ['*.example'], ports: [{number: 80, name: http, protocol: HTTP}, {number: 82, name: h2, protocol: HTTP2}], \
     resolution: STATIC, endpoints: [{address: 10.7.0.4}]}",
    "{hosts: [a.ns1.svc.cluster.local], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, \
     endpoints: [{address: 10.7.0.5}]}",
    "{hosts: [gone.example], addresses: [10.8.0.1], ports: [{number: 80, name: http, protocol: HTTP}], \
     resolution: STATIC, endpoints: [{address: 10.7.0.6}]}",
    "{hosts: [b.ns1.svc.clusterset.local], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, \
     endpoints: [{address: 10.7.0.7}]}",
    "{hosts: [gone.example], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, \
     workloadSelector: {labels: {app: one}}}",
    "{hosts: [gone.example, Other.example], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, \
     workloadSelector: {labels: {app: two}}}",
    "{hosts: [gone.example], exportTo: [.], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}",
];

/// Specs of Services.
const SERVICES: &[&str] = &[
    "{ports: [{name: http, port: 80}]}",
    "{ports: [{name: http, port: 80}, {name: more, port: 81}]}",
    "{ports: [{name: http, port: 81}], sessionAffinity: ClientIP}",
    "{ports: [{name: http, port: 80}], selector: {app: one}}",
    "{ports: [{name: http, port: 80}], selector: {app: two, more: 'yes'}}",
];

/// Specs of WorkloadEntries.
const WORKLOADS: &[&str] = &[
    "{address: 10.6.0.1, labels: {app: one}}",
    "{address: 10.6.0.2, labels: {app: one, more: 'yes'}, locality: r/z}",
    "{address: 10.6.0.2, labels: {app: two, more: 'yes'}}",
    "{address: 10.6.0.3, labels: {app: two}, ports: {http: 8080}}",
    "{address: name.example, labels: {app: one}}",
];

/// Labels, spec and status of pods.
const PODS: &[&str] = &[
    "labels: {version: v1, app: one}}\nspec: {nodeName: n1}\nstatus: {podIP: 10.0.0.1}",
    "labels: {version: v2, app: one}}\nspec: {nodeName: n1, serviceAccountName: web}\nstatus: {podIP: 10.0.0.2}",
    "labels: {version: v1, app: two, security.istio.io/tlsMode: istio}}\nstatus: {podIP: 10.0.0.3}",
    "labels: {app: one, topology.istio.io/network: n2}}\nspec: {nodeName: n2}\nstatus: {podIP: 10.0.0.4, \
     conditions: [{type: Ready, status: 'False'}]}",
];

/// Labels of the node `n1`.
const NODES: &[&str] = &[
    "topology.kubernetes.io/region: r1, topology.kubernetes.io/zone: z1",
    "topology.kubernetes.io/region: r2",
];

/// Specs of VirtualServices: with the same and other hosts, sharing hosts with each other, with delegates and shared
/// destinations, some of which do not exist.
const ROUTES: &[&str] = &[
    "{hosts: [one.example], gateways: [default/gw], http: [{route: [{destination: {host: a.ns1.svc.cluster.local}}]}]}",
    "{hosts: [one.example], gateways: [default/gw], http: [{match: [{uri: {prefix: /x}}], route: [{destination: \
     {host: b.ns1.svc.cluster.local}, weight: 60}, {destination: {host: gone.example}, weight: 40}]}]}",
    "{hosts: [one.example], gateways: [default/gw], http: [{match: [{uri: {prefix: /d}}], delegate: {name: v0, namespace: ns1}}, \
     {route: [{destination: {host: a.ns1.svc.cluster.local, port: {number: 81}}}]}]}",
    "{hosts: [one.example, '*.two.example'], gateways: [default/gw], http: [{mirror: {host: c.ns1.svc.clusterset.local}, \
     route: [{destination: {host: b.ns1.svc.clusterset.local}}]}]}",
    "{hosts: ['*.example'], gateways: [default/gw], http: [{route: [{destination: {host: a.ns1.svc.cluster.local, subset: v1}}]}]}",
    "{hosts: [b.ns1.svc.cluster.local], gateways: [default/gw], http: [{redirect: {uri: /y}}]}",
    "{hosts: ['*'], gateways: [default/gw], http: [{match: [{uri: {prefix: /z}}], directResponse: {status: 404}}]}",
    "{http: [{match: [{uri: {prefix: /d/e}}], route: [{destination: {host: c.ns1.svc.clusterset.local}}]}]}",
    "{http: [{route: [{destination: {host: b.ns1.svc.cluster.local}}]}]}",
    "{hosts: [gone.example], gateways: [default/gw], http: [{redirect: {uri: /gone}}]}",
];

/// Specs of DestinationRules.
const RULES: &[&str] = &[
    "{host: a.ns1.svc.cluster.local, trafficPolicy: {loadBalancer: {simple: RANDOM}}, \
     subsets: [{name: v1, labels: {version: v1}}]}",
    "{host: '*.ns1.svc.cluster.local', trafficPolicy: {loadBalancer: {simple: LEAST_REQUEST}}}",
    "{host: '*.clusterset.local', trafficPolicy: {loadBalancer: {consistentHash: {httpHeaderName: x}}}}",
    "{host: gone.example, trafficPolicy: {loadBalancer: {simple: RANDOM}}}",
    "{host: b, trafficPolicy: {outlierDetection: {consecutive5xxErrors: 3}}}",
];

fn edit() -> impl Strategy<Value = Edit> {
    let service = prop_oneof![Just('a'), Just('b'), Just('c'), Just('x')];
    prop_oneof![
        6 => (0..4_u8, service, 1..5_u8, any::<bool>())
            .prop_map(|(number, service, at, away)| Edit::Slice(number, service, at, away)),
        2 => (0..4_u8).prop_map(Edit::Gone),
        6 => (0..3_usize, prop::option::weighted(0.9, 0..ROUTES.len()))
            .prop_map(|(number, text)| Edit::Route(number, text)),
        3 => (0..2_usize, prop::option::weighted(0.8, 0..RULES.len()))
            .prop_map(|(number, text)| Edit::Rule(number, text)),
        6 => (0..3_usize, prop::option::weighted(0.7, 0..ENTRIES.len()))
            .prop_map(|(number, text)| Edit::Entry(number, text)),
        4 => (prop_oneof![Just('a'), Just('b'), Just('c'), Just('d')],
            prop::option::weighted(0.7, 0..SERVICES.len()))
            .prop_map(|(name, text)| Edit::Service(name, text)),
        6 => (0..4_usize, prop::option::weighted(0.8, 0..WORKLOADS.len()))
            .prop_map(|(number, text)| Edit::Workload(number, text)),
        1 => Just(Edit::Else),
    ]
}

fn slice(number: u8, service: char, at: u8, away: bool) -> Arc<Object<EndpointSlice>> {
    let labels = match away {
        true => "multicluster.kubernetes.io/source-cluster: c2, ",
        false => "",
    };
    // the node of others is that of their pods
    let node = if at < 3 { ", nodeName: n1" } else { "" };
    // one that names no pod is known by its address
    let pod = match at {
        1 => String::new(),
        at => format!(", targetRef: {{kind: Pod, name: p{at}}}"),
    };
    let text = format!(
        "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{namespace: ns1, name: s{number}, \
         labels: {{{labels}kubernetes.io/service-name: {service}}}}}\naddressType: IPv4\n\
         ports: [{{name: http, port: 8080}}]\nendpoints: [{{addresses: [10.0.0.{at}], hostname: h{at}{node}{pod}}}]\n"
    );
    let mut found = config_loader::Diagnostics::default();
    let set = config_loader::load_bytes("slice.yaml", text.as_bytes(), &mut found);
    let (_, object) = set.endpoint_slices.iter().next().expect("it is good");
    Arc::clone(object)
}

/// Objects of the core group.
fn core(text: &str) -> ResourceSet {
    let mut found = config_loader::Diagnostics::default();
    config_loader::load_bytes(
        "core.yaml",
        format!("apiVersion: v1\n{text}\n").as_bytes(),
        &mut found,
    )
}

fn name(number: u8) -> Name {
    Name::new("ns1", format!("s{number}"))
}

fn apply(edit: &Edit, set: &mut ResourceSet) {
    match edit {
        Edit::Slice(number, service, at, away) => {
            let slice = slice(*number, *service, *at, *away);
            set.endpoint_slices.insert(name(*number), slice);
        }
        Edit::Gone(number) => set.endpoint_slices.remove(&name(*number)),
        Edit::Route(number, Some(text)) => {
            let object = format!("VirtualService ns1/v{number} {}", ROUTES[*text]);
            let loaded = load(&[&object]).virtual_services;
            let (name, object) = loaded.iter().next().expect("it is good");
            set.virtual_services
                .insert(name.clone(), Arc::clone(object));
        }
        Edit::Route(number, None) => {
            let name = Name::new("ns1", format!("v{number}"));
            set.virtual_services.remove(&name);
        }
        Edit::Rule(number, Some(text)) => {
            let object = format!("DestinationRule ns1/r{number} {}", RULES[*text]);
            let loaded = load(&[&object]).destination_rules;
            let (name, object) = loaded.iter().next().expect("it is good");
            set.destination_rules
                .insert(name.clone(), Arc::clone(object));
        }
        Edit::Rule(number, None) => {
            let name = Name::new("ns1", format!("r{number}"));
            set.destination_rules.remove(&name);
        }
        Edit::Entry(number, text) => {
            // two namespaces, so that one is near to the proxy
            let namespace = ["default", "ns1", "ns2"][*number];
            set.service_entries
                .remove(&Name::new(namespace, format!("e{number}")));
            if let Some(text) = text {
                let object = format!("ServiceEntry {namespace}/e{number} {}", ENTRIES[*text]);
                let loaded = load(&[&object]).service_entries;
                let (name, object) = loaded.iter().next().expect("it is good");
                set.service_entries.insert(name.clone(), Arc::clone(object));
            }
        }
        Edit::Service(name, text) => {
            set.services.remove(&Name::new("ns1", name.to_string()));
            if let Some(text) = text {
                let loaded = load(&[&format!("Service ns1/{name} {}", SERVICES[*text])]).services;
                let (name, object) = loaded.iter().next().expect("it is good");
                set.services.insert(name.clone(), Arc::clone(object));
            }
        }
        Edit::Workload(number, text) => {
            // the last one is of another namespace
            let namespace = ["ns1", "ns1", "default", "ns2"][*number];
            let name = Name::new(namespace, format!("w{number}"));
            set.workload_entries.remove(&name);
            if let Some(text) = text {
                let object = format!("WorkloadEntry {namespace}/w{number} {}", WORKLOADS[*text]);
                let loaded = load(&[&object]).workload_entries;
                let object = loaded.values().next().expect("it is good");
                set.workload_entries.insert(name, Arc::clone(object));
            }
        }
        Edit::Pod(number, text) => {
            let name = Name::new("ns1", format!("p{number}"));
            set.pods.remove(&name);
            if let Some(text) = text {
                let start = format!("kind: Pod\nmetadata: {{name: p{number}, namespace: ns1, ");
                let pod = core(&(start + PODS[*text])).pods;
                let object = pod.values().next().expect("it is good");
                set.pods.insert(name, Arc::clone(object));
            }
        }
        Edit::Node(text) => {
            let labels = text.map(|text| NODES[text]);
            let node = format!(
                "kind: Node\nmetadata: {{name: n1, labels: {{{}}}}}",
                labels.unwrap_or_default()
            );
            set.nodes = labels.map_or_else(Default::default, |_| core(&node).nodes);
        }
        Edit::Network(number) => {
            let label = format!("topology.istio.io/network: net{number}");
            set.namespaces = core(&format!(
                "kind: Namespace\nmetadata: {{name: ns1, labels: {{{label}}}}}"
            ))
            .namespaces;
        }
        Edit::Else => set.service_imports = load(REST).service_imports,
    }
}

fn again(
    world: &World,
    set: &ResourceSet,
    previous: &Snapshot,
    service_cache: &mut ServiceCache,
) -> Snapshot {
    let inputs = Inputs {
        resources: set,
        identity: &world.identity,
        registry: &world.registry,
        stats: &world.stats,
        certificates: &Store::default(),
        now: traffic::registry::Moment(1),
    };
    compile_again(&inputs, previous, service_cache)
}

/// Changes of WorkloadEntries and of the services that select them.
fn workload_edit() -> impl Strategy<Value = Edit> {
    let entry = (0..2_usize, 6..8_usize);
    let service = prop_oneof![Just('a'), Just('b'), Just('d')];
    prop_oneof![
        6 => (0..4_usize, prop::option::weighted(0.8, 0..WORKLOADS.len()))
            .prop_map(|(number, text)| Edit::Workload(number, text)),
        2 => entry.prop_map(|(number, text)| Edit::Entry(number, Some(text))),
        2 => (service, 3..5_usize).prop_map(|(name, text)| Edit::Service(name, Some(text))),
        1 => edit(),
    ]
}

/// Changes of pods and nodes, and of what they are behind.
fn pod_edit() -> impl Strategy<Value = Edit> {
    let entry = (0..2_usize, 6..8_usize);
    let service = prop_oneof![Just('a'), Just('b'), Just('c')];
    prop_oneof![
        6 => (1..5_u8, prop::option::weighted(0.8, 0..PODS.len()))
            .prop_map(|(number, text)| Edit::Pod(number, text)),
        2 => prop::option::weighted(0.7, 0..NODES.len()).prop_map(Edit::Node),
        1 => (0..2_u8).prop_map(Edit::Network),
        4 => (0..4_u8, service, 1..5_u8, any::<bool>())
            .prop_map(|(number, service, at, away)| Edit::Slice(number, service, at, away)),
        2 => entry.prop_map(|(number, text)| Edit::Entry(number, Some(text))),
        1 => (0..2_usize, prop::option::weighted(0.8, 0..RULES.len()))
            .prop_map(|(number, text)| Edit::Rule(number, text)),
        1 => edit(),
    ]
}

fn check(edits: &[Edit]) -> Result<(), TestCaseError> {
    let world = World::empty();
    let mut service_cache = ServiceCache::default();
    let mut set = load(REST);
    let mut snapshot = again(&world, &set, &Snapshot::default(), &mut service_cache);
    for edit in edits {
        apply(edit, &mut set);
        snapshot = again(&world, &set, &snapshot, &mut service_cache);
        let fresh = world.compile(&set, &Snapshot::default());
        prop_assert_eq!(dump(&snapshot), dump(&fresh), "after {:?}", edit);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn cached_compile_equals_uncached_compile(edits in prop::collection::vec(edit(), 1..20)) {
        check(&edits)?;
    }

    #[test]
    fn cached_compile_follows_pods(edits in prop::collection::vec(pod_edit(), 1..20)) {
        check(&edits)?;
    }

    #[test]
    fn cached_compile_follows_workloads(edits in prop::collection::vec(workload_edit(), 1..20)) {
        check(&edits)?;
    }
}

#[test]
fn cluster_names_the_resource_that_rebuilt_it() {
    let world = World::empty();
    let (mut service_cache, mut set) = (ServiceCache::default(), load(REST));
    let mut snapshot = again(&world, &set, &Snapshot::default(), &mut service_cache);
    let id = world
        .registry
        .cluster("outbound|80|all|a.ns1.svc.cluster.local")
        .id;
    let edits = [
        (Edit::Slice(0, 'a', 2, false), "EndpointSlice/ns1/s0"),
        (Edit::Pod(2, Some(0)), "Pod/ns1/p2"),
        (Edit::Rule(0, Some(0)), "DestinationRule/ns1/r0"),
        // what it did not read changes nothing
        (Edit::Slice(1, 'b', 1, false), "DestinationRule/ns1/r0"),
    ];
    for (edit, cause) in edits {
        apply(&edit, &mut set);
        snapshot = again(&world, &set, &snapshot, &mut service_cache);
        let cluster = snapshot.cluster(id).unwrap();
        assert_eq!(cluster.cause.as_deref(), Some(cause), "{edit:?}");
    }
}

#[test]
fn virtual_host_names_the_resource_that_rebuilt_it() {
    let world = World::empty();
    let (mut service_cache, mut set) = (ServiceCache::default(), load(REST));
    apply(&Edit::Route(0, Some(2)), &mut set);
    let mut snapshot = again(&world, &set, &Snapshot::default(), &mut service_cache);
    let edits = [
        // a delegate, the ports of a destination without one, and the rules themselves
        (Edit::Route(0, Some(1)), "VirtualService/ns1/v0"),
        (Edit::Service('b', Some(2)), "Service/ns1/b"),
        (Edit::Slice(0, 'b', 2, false), "Service/ns1/b"),
        (Edit::Rule(0, Some(0)), "Service/ns1/b"),
        (Edit::Entry(0, Some(1)), "ServiceEntry/default/e0"),
        (Edit::Route(0, Some(2)), "VirtualService/ns1/v0"),
        (Edit::Route(1, Some(9)), "VirtualService/ns1/v0"),
    ];
    for (edit, cause) in edits {
        apply(&edit, &mut set);
        snapshot = again(&world, &set, &snapshot, &mut service_cache);
        let listener = snapshot.listeners.values().next().unwrap();
        let host = listener.all_http().next().unwrap();
        let host = host.named("one.example").unwrap();
        assert_eq!(host.cause.as_deref(), Some(cause), "{edit:?}");
    }
}

#[test]
fn virtual_host_follows_the_addresses_of_its_service() {
    let route = Edit::Route(0, Some(ROUTES.len() - 1));
    let entries = [0, 4, 0].map(|entry| Edit::Entry(1, Some(entry)));
    check(&[&[route][..], &entries].concat()).unwrap();
}

#[test]
fn new_service_is_found() {
    let edits = [Some(0), None, Some(1)].map(|text| Edit::Service('d', text));
    check(&edits).unwrap();
}

/// Hosts of services that are the very same as before.
fn kept(
    before: &BTreeMap<String, Arc<Service>>,
    after: &BTreeMap<String, Arc<Service>>,
) -> Vec<String> {
    let same = |(host, service): &(&String, &Arc<Service>)| {
        let now = after.get(*host);
        now.is_some_and(|now| Arc::ptr_eq(now, service))
    };
    let same = before.iter().filter(same);
    same.map(|(host, _)| host.clone()).collect()
}

#[test]
fn changed_endpoints_recompile_only_their_service() {
    let world = World::empty();
    let mut service_cache = ServiceCache::default();
    let mut set = load(REST);
    for (number, service) in (0..).zip(['a', 'b', 'c']) {
        apply(&Edit::Slice(number, service, 1, false), &mut set);
    }
    again(&world, &set, &Snapshot::default(), &mut service_cache);
    let before = service_cache.by_host();
    apply(&Edit::Slice(0, 'a', 2, false), &mut set);
    again(&world, &set, &Snapshot::default(), &mut service_cache);
    let after = service_cache.by_host();
    let others = before
        .keys()
        .filter(|host| *host != "a.ns1.svc.cluster.local");
    assert_eq!(kept(&before, &after), others.cloned().collect::<Vec<_>>());
    assert!(before.len() > 4);
    apply(&Edit::Else, &mut set);
    again(&world, &set, &Snapshot::default(), &mut service_cache);
    // imports have been read for services that have some, and for which services there are
    let hosts = after.keys();
    let others = hosts.filter(|host| !host.starts_with("b.") && !host.contains("c.ns1"));
    let others: Vec<_> = others.cloned().collect();
    assert_eq!(kept(&after, &service_cache.by_host()), others);
}

#[test]
fn changed_workload_recompiles_only_services_that_select_it() {
    let world = World::empty();
    let mut service_cache = ServiceCache::default();
    let mut set = load(REST);
    let edits = [
        Edit::Entry(0, Some(6)),
        Edit::Entry(1, Some(7)),
        Edit::Service('d', Some(3)),
        Edit::Workload(0, Some(0)),
        Edit::Workload(2, Some(0)),
    ];
    for edit in &edits {
        apply(edit, &mut set);
    }
    again(&world, &set, &Snapshot::default(), &mut service_cache);
    let changed = |edit: Edit, set: &mut ResourceSet, cache: &mut ServiceCache| {
        let before = cache.by_host();
        apply(&edit, set);
        again(&world, set, &Snapshot::default(), cache);
        let kept = kept(&before, &cache.by_host());
        let mut hosts = before.into_keys();
        let changed: Vec<String> = hosts.by_ref().filter(|host| !kept.contains(host)).collect();
        changed
    };
    // workloads of the namespace of the proxy, of another one, and one that other services select from now on
    let of_own = changed(Edit::Workload(2, Some(1)), &mut set, &mut service_cache);
    assert_eq!(of_own, ["gone.example"]);
    let of_service = changed(Edit::Workload(0, Some(1)), &mut set, &mut service_cache);
    assert_eq!(of_service, ["d.ns1.svc.cluster.local"]);
    let of_both = changed(Edit::Workload(0, Some(2)), &mut set, &mut service_cache);
    assert_eq!(of_both, ["d.ns1.svc.cluster.local", "other.example"]);
    let of_none = changed(Edit::Workload(3, Some(2)), &mut set, &mut service_cache);
    assert!(of_none.is_empty(), "{of_none:?}");
}

#[test]
fn changed_pod_recompiles_only_services_that_lead_to_it() {
    let world = World::empty();
    let mut service_cache = ServiceCache::default();
    let mut set = load(REST);
    for edit in [
        Edit::Slice(0, 'a', 2, false),
        Edit::Slice(1, 'b', 3, false),
        Edit::Entry(0, Some(6)),
        Edit::Pod(2, Some(0)),
        Edit::Pod(3, Some(0)),
    ] {
        apply(&edit, &mut set);
    }
    again(&world, &set, &Snapshot::default(), &mut service_cache);
    let mut changed = |edit: Edit| {
        let before = service_cache.by_host();
        apply(&edit, &mut set);
        again(&world, &set, &Snapshot::default(), &mut service_cache);
        let kept = kept(&before, &service_cache.by_host());
        let hosts = before.into_keys().filter(|host| !kept.contains(host));
        hosts.collect::<Vec<String>>()
    };
    assert_eq!(changed(Edit::Pod(2, Some(1))), ["a.ns1.svc.cluster.local"]);
    assert_eq!(changed(Edit::Pod(4, Some(1))), [""; 0]);
    let of_node = changed(Edit::Node(Some(0)));
    let expected = [
        "a.ns1.svc.cluster.local",
        "b.ns1.svc.cluster.local",
        "b.ns1.svc.clusterset.local",
    ];
    let missing = expected
        .iter()
        .find(|host| !of_node.iter().any(|of| of == *host));
    assert_eq!(missing, None, "{of_node:?}");
    assert!(
        !of_node.iter().any(|host| host.starts_with('c')),
        "{of_node:?}"
    );
}
