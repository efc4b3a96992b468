//! Endpoints of a service, by the kinds of resources that describe it.

use crate::compile::tests::world::GATEWAY;
use crate::compile::tests::world::World;
use crate::compile::tests::world::load;
use crate::upstream::Reach;
use traffic::cluster::Endpoint;

/// Asks for the service `w` of the namespace `default` at this port; `ADDRESS*WEIGHT` of each endpoint, or `unknown`.
fn endpoints(resources: &[&str], port: u16) -> Vec<String> {
    endpoints_of("w.default.svc.cluster.local", resources, port)
}

fn endpoints_of(host: &str, resources: &[&str], port: u16) -> Vec<String> {
    let service = format!(
        "VirtualService default/a {{hosts: [a.com], gateways: [gw], http: [\
         {{route: [{{destination: {{host: {host}, port: {{number: {port}}}}}}}]}}]}}"
    );
    let world = World::only(&[&[GATEWAY, &service][..], resources].concat());
    let name = format!("outbound|{port}||{host}");
    match world.snapshot.cluster(world.registry.cluster(&name).id) {
        None => vec!["unknown".to_owned()],
        Some(cluster) => {
            let endpoints = cluster.endpoints().iter();
            endpoints
                .map(|one| format!("{}*{}", one.address, one.weight))
                .chain(cluster.unresolved.iter().map(ToString::to_string))
                .collect()
        }
    }
}

fn check(rows: &[(&[&str], u16, &[&str])]) {
    for (resources, port, expected) in rows {
        assert_eq!(
            endpoints(resources, *port),
            *expected,
            "port {port} of {resources:?}"
        );
    }
}

/// A ServiceEntry for `w` with a port 80 and further fields.
fn entry(name: &str, more: &str) -> String {
    format!(
        "ServiceEntry {name} {{hosts: [w.default.svc.cluster.local], \
         ports: [{{number: 80, name: http, protocol: HTTP}}, {{number: 81, name: alt, protocol: HTTP, targetPort: 8081}}], \
         {more}}}"
    )
}

#[test]
fn service_entry_has_its_endpoints_with_their_ports() {
    let own = entry(
        "default/w",
        "resolution: STATIC, endpoints: [{address: 10.0.0.1, ports: {http: 9000}}, {address: 10.0.0.2, weight: 5}]",
    );
    check(&[
        (&[&own], 80, &["10.0.0.1:9000*1", "10.0.0.2:80*5"]),
        (&[&own], 81, &["10.0.0.1:8081*1", "10.0.0.2:8081*5"]),
        (&[&own], 82, &["unknown"]),
        (&[], 80, &["unknown"]),
    ]);
}

#[test]
fn weight_zero_counts_as_one() {
    let own = entry(
        "default/w",
        "resolution: STATIC, endpoints: [{address: 10.0.0.1, weight: 0}]",
    );
    check(&[(&[&own], 80, &["10.0.0.1:80*1"])]);
}

#[test]
fn entries_for_one_host_in_one_namespace_are_merged() {
    let one = entry(
        "default/one",
        "resolution: STATIC, endpoints: [{address: 10.0.0.1}]",
    );
    let two = entry(
        "default/two",
        "resolution: STATIC, endpoints: [{address: 10.0.0.2}]",
    );
    check(&[(&[&one, &two], 80, &["10.0.0.1:80*1", "10.0.0.2:80*1"])]);
}

#[test]
fn entry_of_the_local_namespace_wins_then_the_oldest() {
    let old = entry(
        "ns1/w@2020",
        "resolution: STATIC, endpoints: [{address: 10.0.0.1}]",
    );
    let young = entry(
        "ns2/w@2021",
        "resolution: STATIC, endpoints: [{address: 10.0.0.2}]",
    );
    let own = entry(
        "istio-system/w@2022",
        "resolution: STATIC, endpoints: [{address: 10.0.0.3}]",
    );
    check(&[
        (&[&young, &old], 80, &["10.0.0.1:80*1"]),
        (&[&young, &old, &own], 80, &["10.0.0.3:80*1"]),
    ]);
}

#[test]
fn entry_is_visible_only_where_exported() {
    for (export, seen) in [
        ("'*'", true),
        ("istio-system", true),
        (".", false),
        ("other", false),
        ("'~'", false),
    ] {
        let more =
            format!("exportTo: [{export}], resolution: STATIC, endpoints: [{{address: 10.0.0.1}}]");
        let expected = if seen { "10.0.0.1:80*1" } else { "unknown" };
        check(&[(&[&entry("default/w", &more)], 80, &[expected])]);
    }
}

#[test]
fn selector_matches_workloads_of_its_namespace() {
    let selecting = entry(
        "default/w",
        "resolution: STATIC, workloadSelector: {labels: {app: w}}",
    );
    let workload = |name: &str, address: &str, label: &str| {
        format!(
            "WorkloadEntry {name} {{address: {address}, labels: {{app: {label}}}, ports: {{alt: 9001}}}}"
        )
    };
    let (own, other) = (
        workload("default/a", "10.0.0.1", "w"),
        workload("default/b", "10.0.0.2", "x"),
    );
    let elsewhere = workload("ns/c", "10.0.0.3", "w");
    let resources: &[&str] = &[&selecting, &own, &other, &elsewhere];
    check(&[
        (resources, 80, &["10.0.0.1:80*1"]),
        (resources, 81, &["10.0.0.1:9001*1"]),
    ]);
}

#[test]
fn names_wait_to_be_resolved() {
    let own = "ServiceEntry default/e {hosts: [e.test], resolution: DNS, \
        ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}]}";
    assert_eq!(endpoints_of("e.test", &[own], 80), ["e.test:8080"]);
    let listed = "ServiceEntry default/e {hosts: [e.test], resolution: DNS, \
        ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: one.test, ports: {http: 81}}]}";
    assert_eq!(endpoints_of("e.test", &[listed], 80), ["one.test:81"]);
}

#[test]
fn wildcard_entry_serves_hosts_without_their_own_entry() {
    let wide = "ServiceEntry default/e {hosts: ['*.e.test'], resolution: STATIC, \
        ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.0.0.1}]}";
    assert_eq!(endpoints_of("a.e.test", &[wide], 80), ["10.0.0.1:80*1"]);
    assert_eq!(endpoints_of("b.a.e.test", &[wide], 80), ["10.0.0.1:80*1"]);
    assert_eq!(endpoints_of("e.test", &[wide], 80), ["unknown"]);
}

const KUBE: &str =
    "Service default/w {ports: [{name: http, port: 80, targetPort: 8080}, {name: grpc, port: 81}]}";

fn slice(name: &str, ports: &str, endpoints: &str) -> String {
    format!(
        "EndpointSlice default/{name} {{addressType: IPv4, ports: [{ports}], endpoints: [{endpoints}]}}"
    )
}

#[test]
fn service_has_the_ready_endpoints_of_its_slices() {
    let one = slice(
        "w-1",
        "{name: http, port: 9080}, {name: grpc, port: 9081}",
        "{addresses: [10.0.0.1]}, {addresses: [10.0.0.2], conditions: {ready: false}}",
    );
    let two = slice(
        "w-2",
        "{name: http, port: 9090}",
        "{addresses: [10.0.0.3], conditions: {ready: true}}",
    );
    let other = slice("x-1", "{name: http, port: 9080}", "{addresses: [10.0.0.9]}");
    let resources: &[&str] = &[KUBE, &one, &two, &other];
    check(&[
        (resources, 80, &["10.0.0.1:9080*1", "10.0.0.3:9090*1"]),
        // the second slice does not serve this port
        (resources, 81, &["10.0.0.1:9081*1"]),
        (resources, 82, &["unknown"]),
        (&[KUBE], 80, &[]),
    ]);
}

#[test]
fn slice_without_ports_uses_the_service_ports() {
    let bare = slice("w-1", "", "{addresses: [10.0.0.1]}");
    check(&[(&[KUBE, &bare], 80, &["10.0.0.1:8080*1"])]);
}

#[test]
fn service_wins_over_an_entry_for_its_host() {
    let own = entry(
        "default/w",
        "resolution: STATIC, endpoints: [{address: 10.0.0.7}]",
    );
    let slice = slice("w-1", "{name: http, port: 9080}", "{addresses: [10.0.0.1]}");
    check(&[(&[&own, KUBE, &slice], 80, &["10.0.0.1:9080*1"])]);
}

#[test]
fn external_name_is_resolved() {
    let external = "Service default/w {type: ExternalName, externalName: out.test, ports: [{name: http, port: 80}]}";
    check(&[(&[external], 80, &["out.test:80"])]);
}

/// The endpoints of `w` in a world where its only name has these addresses.
fn of_name(world: &mut World, resolution: &str, answer: &[&str]) -> Vec<Endpoint> {
    let service = "VirtualService default/a {hosts: [a.com], gateways: [gw], http: [\
                   {route: [{destination: {host: w.default.svc.cluster.local, port: {number: 80}}}]}]}";
    let fields = format!("resolution: {resolution}, endpoints: [{{address: n.test}}]");
    let ips = answer.iter().map(|ip| ip.parse().expect("an IP address"));
    world.registry.set_resolution("n.test", ips.collect());
    world.put(&load(&[GATEWAY, service, &entry("default/w", &fields)]));
    let name = "outbound|80||w.default.svc.cluster.local";
    let cluster = world.snapshot.cluster(world.registry.cluster(name).id);
    cluster.expect("the cluster").endpoints().to_vec()
}

fn candidates(endpoint: &Endpoint) -> Vec<String> {
    let reach = Reach {
        address: &endpoint.address,
        alternates: endpoint.alternates(),
    };
    reach.candidates().iter().map(ToString::to_string).collect()
}

#[test]
fn addresses_of_a_name_are_alternates_of_each_other() {
    let endpoints = of_name(&mut World::empty(), "DNS", &["10.0.0.2", "10.0.0.1"]);
    let tried: Vec<_> = endpoints.iter().map(candidates).collect();
    let expected = [
        ["10.0.0.1:80", "10.0.0.2:80"],
        ["10.0.0.2:80", "10.0.0.1:80"],
    ];
    assert_eq!(tried, expected);
}

#[test]
fn dns_round_robin_is_one_endpoint_for_changing_addresses() {
    let mut world = World::empty();
    let before = of_name(&mut world, "DNS_ROUND_ROBIN", &["10.0.0.2", "10.0.0.1"]);
    assert_eq!(before.len(), 1);
    assert_eq!(before[0].address.to_string(), "n.test:80");
    assert_eq!(candidates(&before[0]), ["10.0.0.2:80", "10.0.0.1:80"]);
    let after = of_name(&mut world, "DNS_ROUND_ROBIN", &["10.0.0.3"]);
    assert_eq!(candidates(&after[0]), ["10.0.0.3:80"]);
    assert!(std::sync::Arc::ptr_eq(&before[0].state, &after[0].state));
}

#[test]
fn imports_of_both_api_groups_are_merged() {
    let import = |kind: &str, endpoints: &[(&str, &str)]| {
        let endpoint = |(name, ip): &(&str, &str)| {
            format!("{{clusterKey: a/b/c/{name}, target: {{ip: {ip}, port: 9080}}}}")
        };
        let endpoints: Vec<String> = endpoints.iter().map(endpoint).collect();
        format!(
            "{kind} default/i {{ports: [{{name: http, port: 80, endpoints: [{}]}}]}}",
            endpoints.join(", ")
        )
    };
    let old = import("ServiceImport", &[("c1", "10.0.0.1"), ("c2", "10.0.0.2")]);
    let new = import(
        "ServiceImport.multicluster",
        &[("c2", "10.0.0.2"), ("c3", "10.0.0.3")],
    );
    let route = "VirtualService default/a {hosts: [a.com], gateways: [gw], http: [\
                 {route: [{destination: {host: i.default.svc.clusterset.local}}]}]}";
    let endpoints = |imports: &[&str]| -> Vec<String> {
        let world = World::only(&[&[GATEWAY, route][..], imports].concat());
        let name = "outbound|80||i.default.svc.clusterset.local";
        let cluster = world.snapshot.cluster(world.registry.cluster(name).id);
        let endpoints = cluster.expect("the cluster").endpoints().iter();
        let mut texts: Vec<String> = endpoints.map(|one| one.address.to_string()).collect();
        texts.sort();
        texts
    };
    assert_eq!(endpoints(&[&old]), ["10.0.0.1:9080", "10.0.0.2:9080"]);
    let all = ["10.0.0.1:9080", "10.0.0.2:9080", "10.0.0.3:9080"];
    assert_eq!(endpoints(&[&old, &new]), all);
    assert_eq!(endpoints(&[&new, &old]), all);
}

/// Addresses of the endpoints that a destination's host leads to; none for a host that there is not.
fn led_to(resources: &[&str], host: &str) -> Option<Vec<String>> {
    let route = format!(
        "VirtualService default/a {{hosts: [a.com], gateways: [gw], http: [\
         {{route: [{{destination: {{host: {host}, port: {{number: 80}}}}}}]}}]}}"
    );
    let world = World::only(&[&[GATEWAY, &*route][..], resources].concat());
    let id = world.registry.cluster(&format!("outbound|80||{host}")).id;
    let endpoints = world.snapshot.cluster(id)?.endpoints().iter();
    Some(endpoints.map(|one| one.address.to_string()).collect())
}

#[test]
fn endpoints_of_a_headless_import_have_their_own_hosts() {
    let import = |more: &str| {
        format!(
            "ServiceImport default/i {{{more} ports: [{{name: http, port: 80, endpoints: [\
             {{clusterKey: a/b/c/c1, target: {{host: one.c1.test, ip: 10.0.0.1, port: 9080}}}}, \
             {{clusterKey: a/b/c/c1, target: {{host: two.c1.test, ip: 10.0.0.2, port: 9080}}}}, \
             {{clusterKey: a/b/c/c2, target: {{host: one.c2.test, ip: 10.0.0.3, port: 9080}}}}]}}]}}"
        )
    };
    let headless = import("type: Headless,");
    let to = |name: &str, import: &str| {
        led_to(&[import], &format!("{name}i.default.svc.clusterset.local"))
    };
    let one = |address: &str| Some(vec![address.to_owned()]);
    assert_eq!(to("one.c1.", &headless), one("10.0.0.1:9080"));
    assert_eq!(to("two.c1.", &headless), one("10.0.0.2:9080"));
    assert_eq!(to("one.c2.", &headless), one("10.0.0.3:9080"));
    assert_eq!(to("two.c2.", &headless), None);
    assert_eq!(to("", &headless).map(|all| all.len()), Some(3));
    assert_eq!(to("one.c1.", &import("")), None);
}

#[test]
fn named_endpoints_of_a_headless_import_have_their_own_hosts() {
    let import = |more: &str| {
        format!(
            "ServiceImport default/i {{{more} ports: [{{name: http, port: 80, endpoints: [\
             {{clusterKey: default/default/default/c2, target: {{host: one.gw.test, ip: 10.9.0.1, port: 9080}}}}]}}]}}"
        )
    };
    let slice = |name: &str, endpoints: &str| {
        format!(
            "{name} {{addressType: IPv4, ports: [{{name: http, port: 8080}}], endpoints: [{endpoints}]}}"
        )
    };
    let own = slice(
        "EndpointSlice default/i-own",
        "{hostname: one, addresses: [10.0.0.1]}, {addresses: [10.0.0.2]}, \
         {hostname: late, conditions: {ready: false}, addresses: [10.0.0.3]}",
    );
    let of_c2 = slice(
        "EndpointSlice.c2 default/i-c2",
        "{hostname: one, addresses: [10.2.0.1]}, {hostname: two, addresses: [10.2.0.2]}",
    );
    let again = slice(
        "EndpointSlice.c2 default/i-more",
        "{hostname: two, addresses: [10.2.0.3]}",
    );
    let service = "Service default/i {clusterIP: None, ports: [{name: http, port: 80}]}";
    let headless = import("type: Headless,");
    let to = |name: &str, import: &str, more: &str| {
        let resources = [import, more, &own, &of_c2, &again];
        led_to(&resources, &format!("{name}i.default.svc.clusterset.local"))
    };
    let all = |addresses: &[&str]| Some(addresses.iter().map(|&one| one.to_owned()).collect());
    for more in [service, ""] {
        assert_eq!(to("one.local.", &headless, more), all(&["10.0.0.1:8080"]));
        // what is known of the workload itself counts before what an import says
        assert_eq!(to("one.c2.", &headless, more), all(&["10.2.0.1:8080"]));
        let two = all(&["10.2.0.2:8080", "10.2.0.3:8080"]);
        assert_eq!(to("two.c2.", &headless, more), two);
        assert_eq!(to("two.local.", &headless, more), None);
        assert_eq!(to("late.local.", &headless, more), None);
        assert_eq!(to("two.c2.", &import(""), more), None);
    }
}
