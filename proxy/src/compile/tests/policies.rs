//! DestinationRule that applies, and its settings for a port and a subset.

use std::sync::Arc;
use std::time::Duration;

use config_loader::Name;
use config_loader::resource::istio::{
    Algorithm, ConnectionPool, DestinationRule, LoadBalancer, PortPolicy,
};

use crate::compile::tests::world::GATEWAY;
use crate::compile::tests::world::World;
use crate::compile::tests::world::load;

const SERVICE: &str = "VirtualService default/a {hosts: [a.com], gateways: [gw], http: [\
    {match: [{uri: {prefix: /v1}}], route: [{destination: {host: s, subset: v1}}]}, \
    {match: [{uri: {prefix: /v2}}], route: [{destination: {host: s, subset: v2}}]}, \
    {route: [{destination: {host: s}}]}]}";

/// `BALANCER CONNECT_TIMEOUT` of a cluster of service `s`, or `unknown`.
fn policy(world: &World, subset: &str) -> String {
    let name = format!("outbound|80|{subset}|s.default.svc.cluster.local");
    let id = world.registry.cluster(&name).id;
    match world.snapshot.cluster(id) {
        None => "unknown".to_owned(),
        Some(cluster) => {
            let timeout = cluster.pool.connect_timeout;
            format!("{} {timeout:?}", cluster.balance.policy.name())
        }
    }
}

fn check(rules: &[&str], expected: &[(&str, &str)]) {
    let world = World::of(&[&[SERVICE][..], rules].concat());
    for (subset, expected) in expected {
        assert_eq!(
            &policy(&world, subset),
            expected,
            "subset {subset:?} of {rules:?}"
        );
    }
}

/// Compiles rules after one of them has been amended.
fn check_amended(
    rules: &[&str],
    name: (&str, &str),
    amend: impl Fn(&mut DestinationRule),
    expected: &[(&str, &str)],
) {
    let mut set = load(
        &[
            &[GATEWAY, crate::compile::tests::world::SERVICE, SERVICE],
            rules,
        ]
        .concat(),
    );
    let name = Name {
        namespace: name.0.into(),
        name: name.1.into(),
    };
    let mut object = (**set.destination_rules.get(&name).unwrap()).clone();
    amend(Arc::make_mut(&mut object.spec));
    set.destination_rules.insert(name, Arc::new(object));
    let mut world = World::empty();
    world.put(&set);
    for (subset, expected) in expected {
        assert_eq!(&policy(&world, subset), expected, "subset {subset:?}");
    }
}

/// Settings of port 80 alone.
fn for_port(algorithm: Option<Algorithm>, connect_timeout: Option<u64>) -> Vec<PortPolicy> {
    let balancer = |algorithm| LoadBalancer {
        algorithm,
        ..LoadBalancer::default()
    };
    let pool = |seconds| {
        let mut pool = ConnectionPool::default();
        pool.tcp.connect_timeout = Some(Duration::from_secs(seconds));
        pool
    };
    vec![PortPolicy {
        port: 80,
        load_balancer: algorithm.map(|algorithm| Box::new(balancer(algorithm))),
        connection_pool: connect_timeout.map(|seconds| Box::new(pool(seconds))),
        ..PortPolicy::default()
    }]
}

#[test]
fn without_a_rule_the_defaults_apply() {
    check(&[], &[("", "LEAST_REQUEST 10s"), ("v1", "unknown")]);
}

#[test]
fn subset_and_port_blocks_replace_whole_blocks() {
    let rule = "DestinationRule default/s {host: s, trafficPolicy: {loadBalancer: {simple: RANDOM}, \
        connectionPool: {tcp: {connectTimeout: 1s}}}, subsets: [\
        {name: v1, labels: {version: v1}, trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN}}}, \
        {name: v2, labels: {version: v2}, trafficPolicy: {connectionPool: {http: {maxRetries: 3}}}}]}";
    check(
        &[rule],
        &[
            ("", "RANDOM 1s"),
            ("v1", "ROUND_ROBIN 1s"),
            ("v2", "RANDOM 10s"), // inside a block nothing is merged
        ],
    );
}

#[test]
fn port_settings_replace_those_of_the_rule_with_defaults() {
    let rule = "DestinationRule default/s {host: s, trafficPolicy: {loadBalancer: {simple: RANDOM}, \
        connectionPool: {tcp: {connectTimeout: 1s}}}, subsets: [\
        {name: v1, trafficPolicy: {connectionPool: {tcp: {connectTimeout: 2s}}}}, {name: v2}]}";
    let amend = |rule: &mut DestinationRule| {
        rule.traffic_policy.ports = for_port(Some(Algorithm::RoundRobin), None);
        rule.subsets[1].traffic_policy.ports = for_port(None, Some(3));
    };
    let expected = [
        ("", "ROUND_ROBIN 10s"),
        ("v1", "ROUND_ROBIN 2s"),
        ("v2", "LEAST_REQUEST 3s"),
    ];
    check_amended(&[rule], ("default", "s"), amend, &expected);
}

#[test]
fn settings_of_another_port_change_nothing() {
    let rule = "DestinationRule default/s {host: s, trafficPolicy: {loadBalancer: {simple: RANDOM}, \
        portLevelSettings: [{port: {number: 81}, loadBalancer: {simple: ROUND_ROBIN}}]}}";
    check(&[rule], &[("", "RANDOM 10s")]);
}

/// A DestinationRule that only sets a balancer.
fn rule(name: &str, host: &str, more: &str, balancer: &str) -> String {
    format!(
        "DestinationRule {name} {{host: '{host}', {more} trafficPolicy: {{loadBalancer: {{simple: {balancer}}}}}}}"
    )
}

#[test]
fn only_the_most_specific_host_of_the_first_namespace_applies() {
    let full = "s.default.svc.cluster.local";
    let own = rule("istio-system/own", full, "", "ROUND_ROBIN");
    let private = rule("istio-system/own", full, "exportTo: ['.'],", "ROUND_ROBIN");
    let service = rule("default/svc", full, "", "RANDOM");
    let hidden = rule("default/svc", full, "exportTo: ['.'],", "RANDOM");
    let wide = rule("default/wide", "*.local", "", "PASSTHROUGH");
    let elsewhere = rule("other/x", full, "", "ROUND_ROBIN");
    for (rules, expected) in [
        (vec![&service], "RANDOM 10s"),
        (vec![&hidden], "LEAST_REQUEST 10s"),
        (vec![&elsewhere], "LEAST_REQUEST 10s"),
        (vec![&own], "ROUND_ROBIN 10s"),
        // a client in the root namespace prefers only what is private to it
        (vec![&own, &service], "RANDOM 10s"),
        (vec![&private, &service], "ROUND_ROBIN 10s"),
        (vec![&wide, &service], "RANDOM 10s"),
    ] {
        let rules: Vec<&str> = rules.into_iter().map(String::as_str).collect();
        check(&rules, &[("", expected)]);
    }
}

#[test]
fn a_less_specific_rule_fills_no_gaps() {
    let wide = rule("default/wide", "*.default.svc.cluster.local", "", "RANDOM");
    let exact =
        "DestinationRule default/exact {host: s, subsets: [{name: v1, labels: {version: v1}}]}";
    check(
        &[&wide, exact],
        &[("", "LEAST_REQUEST 10s"), ("v1", "LEAST_REQUEST 10s")],
    );
    check(&[&wide], &[("", "RANDOM 10s")]);
}

#[test]
fn rules_for_one_host_are_merged_oldest_first() {
    let old =
        "DestinationRule default/old@2020 {host: s, subsets: [{name: v1, labels: {version: v1}}]}";
    let young = "DestinationRule default/young@2021 {host: s, trafficPolicy: {loadBalancer: {simple: RANDOM}}, \
        subsets: [{name: v1, trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN}}}, {name: v2}]}";
    for rules in [[old, young], [young, old]] {
        check(
            &rules,
            &[
                ("", "RANDOM 10s"),
                ("v1", "RANDOM 10s"),
                ("v2", "RANDOM 10s"),
            ],
        );
    }
}

#[test]
fn rules_with_wider_visibility_are_not_merged() {
    let rule = |name: &str, seen: &str, balancer: &str, subset: &str| {
        format!(
            "DestinationRule default/{name} {{host: s, exportTo: {seen}, trafficPolicy: {{loadBalancer: \
             {{simple: {balancer}}}}}, subsets: [{{name: {subset}}}]}}"
        )
    };
    let ours = rule("a@2020", "[istio-system]", "RANDOM", "v1");
    let more = rule("c@2022", "[istio-system]", "ROUND_ROBIN", "v2");
    let all = |name, subset| rule(name, "['*']", "ROUND_ROBIN", subset);
    for (rules, base, v1, v2) in [
        (
            [&ours, &all("b@2021", "x"), &more],
            "RANDOM 10s",
            "RANDOM 10s",
            "RANDOM 10s",
        ),
        (
            [&ours, &all("b@2021", "v2"), &all("c@2022", "x")],
            "RANDOM 10s",
            "RANDOM 10s",
            "unknown",
        ),
        (
            [&ours, &all("b@2019", "x"), &more],
            "ROUND_ROBIN 10s",
            "unknown",
            "unknown",
        ),
    ] {
        let rules = rules.map(String::as_str);
        check(&rules, &[("", base), ("v1", v1), ("v2", v2)]);
    }
}

#[test]
fn rule_with_a_matching_selector_replaces_others() {
    let plain = "DestinationRule istio-system/plain@2020 {host: s.default.svc.cluster.local, exportTo: ['.'], \
        trafficPolicy: {loadBalancer: {simple: RANDOM}}, subsets: [{name: v1}]}";
    for (namespace, label, expected) in [
        ("istio-system", "edge", ["ROUND_ROBIN 10s", "unknown"]),
        ("istio-system", "other", ["RANDOM 10s", "RANDOM 10s"]),
        ("default", "edge", ["RANDOM 10s", "RANDOM 10s"]),
    ] {
        let selecting = format!(
            "DestinationRule {namespace}/chosen@2021 {{host: s.default.svc.cluster.local, \
             trafficPolicy: {{loadBalancer: {{simple: ROUND_ROBIN}}}}}}"
        );
        let amend = |rule: &mut DestinationRule| {
            let selector = [("app".to_owned(), label.to_owned())];
            rule.workload_selector = Some(selector.into());
        };
        let expected = [("", expected[0]), ("v1", expected[1])];
        check_amended(
            &[plain, &selecting],
            (namespace, "chosen"),
            amend,
            &expected,
        );
    }
}

#[test]
fn subset_has_the_endpoints_with_its_labels() {
    let rule = "DestinationRule default/s {host: s, subsets: [\
        {name: v1, labels: {version: v1}}, {name: v2, labels: {version: v9}}]}";
    let world = World::of(&[SERVICE, rule]);
    let endpoints = |subset: &str| -> Vec<String> {
        let name = format!("outbound|80|{subset}|s.default.svc.cluster.local");
        let cluster = world.snapshot.cluster(world.registry.cluster(&name).id);
        let endpoints = cluster.unwrap().endpoints().iter();
        endpoints.map(|one| one.address.to_string()).collect()
    };
    assert_eq!(endpoints(""), ["10.0.0.1:80", "10.0.0.2:80"]);
    assert_eq!(endpoints("v1"), ["10.0.0.1:80"]);
    assert!(endpoints("v2").is_empty());
}

#[test]
fn connection_pool_sets_limits_and_zero_sets_none() {
    use crate::pool::{HttpVersionPolicy, PoolSettings};
    type Row = (&'static str, fn(&mut PoolSettings));
    let rows: [Row; 12] = [
        ("tcp: {maxConnections: 3}", |s| s.limits.connections = 3),
        ("tcp: {maxConnections: 0}", |_| ()),
        ("http: {http1MaxPendingRequests: 4}", |s| {
            s.limits.pending = 4
        }),
        ("http: {http1MaxPendingRequests: 0}", |_| ()),
        ("http: {http2MaxRequests: 5}", |s| s.limits.requests = 5),
        ("http: {http2MaxRequests: 0}", |_| ()),
        ("http: {maxRequestsPerConnection: 1}", |s| {
            s.requests_per_connection_max = Some(1);
        }),
        (
            "http: {maxRequestsPerConnection: 0, maxConcurrentStreams: 0}",
            |_| (),
        ),
        ("http: {maxConcurrentStreams: 7}", |s| {
            s.streams_max = Some(7)
        }),
        ("tcp: {maxConnectionDuration: 2s}", |s| {
            s.connection_duration_max = Some(Duration::from_secs(2));
        }),
        ("http: {h2UpgradePolicy: UPGRADE}", |s| {
            s.speaks = HttpVersionPolicy::Http2
        }),
        ("http: {useClientProtocol: true}", |s| {
            s.speaks = HttpVersionPolicy::AsClient
        }),
    ];
    for (text, amend) in rows {
        let rule = format!(
            "DestinationRule default/s {{host: s, trafficPolicy: {{connectionPool: {{{text}}}}}}}"
        );
        let world = World::of(&[SERVICE, &rule]);
        let name = "outbound|80||s.default.svc.cluster.local";
        let id = world.registry.cluster(name).id;
        let found = &world.snapshot.cluster(id).expect("the cluster").pool;
        let mut expected = PoolSettings {
            // as soon as there is a block, it has a time of its own
            tcp_idle_timeout: found.tcp_idle_timeout,
            ..PoolSettings::default()
        };
        amend(&mut expected);
        assert_eq!(*found, expected, "{text}");
    }
}

#[test]
fn t93_subset_with_its_own_block_inherits_no_limit() {
    let rule = "DestinationRule default/s {host: s, \
        trafficPolicy: {connectionPool: {tcp: {maxConnections: 1}}}, subsets: [\
        {name: v1, labels: {version: v1}, \
        trafficPolicy: {connectionPool: {http: {maxRetries: 3}}}}, \
        {name: v2, labels: {version: v2}}]}";
    let world = World::of(&[SERVICE, rule]);
    for (subset, max) in [("", 1), ("v1", u32::MAX), ("v2", 1)] {
        let name = format!("outbound|80|{subset}|s.default.svc.cluster.local");
        let id = world.registry.cluster(&name).id;
        let cluster = world.snapshot.cluster(id).expect("the cluster");
        assert_eq!(cluster.pool.limits.connections, max, "{subset}");
    }
}
