//! Lifetime of session affinity, by the resource that sets it.

use crate::compile::tests::world::GATEWAY;
use crate::compile::tests::world::World;

const NATIVE: &str = "outbound|80||w.default.svc.cluster.local";
const CLUSTER_SET: &str = "outbound|80||w.default.svc.clusterset.local";
const EXPORTED: &str = "exported|80||w.default.svc.cluster.local";

/// Returns the hash key of a cluster, else its balancer; and the lifetime of affinity entries in seconds.
fn settings(cluster: &str, resources: &[&str]) -> String {
    let destination = |host: &str| {
        format!(
            "{{route: [{{destination: {{host: w.default.svc.{host}, port: {{number: 80}}}}}}]}}"
        )
    };
    let routes = format!(
        "VirtualService default/a {{hosts: [a.com], gateways: [gw], http: [{}, {}]}}",
        destination("cluster.local").replace("{route", "{match: [{uri: {exact: /}}], route"),
        destination("clusterset.local")
    );
    let world = World::only(&[&[GATEWAY, &routes][..], resources].concat());
    let cluster = world.registry.cluster(cluster).id;
    let cluster = world.snapshot.cluster(cluster).expect("it is known");
    let balance = &cluster.balance;
    assert_eq!(balance.remember, cluster.affinity_lifetime());
    let by = match cluster.hash_key() {
        Some(key) => key.to_string(),
        None => balance.policy.name().to_owned(),
    };
    match cluster.affinity_lifetime() {
        Some(lifetime) => format!("{by} {}", lifetime.as_secs()),
        None => by,
    }
}

fn service(more: &str) -> String {
    format!("Service default/w {{ports: [{{name: http, port: 80}}]{more}}}")
}

fn import(more: &str) -> String {
    format!(
        "ServiceImport default/w {{ports: [{{name: http, port: 80, endpoints: [{{clusterKey: r/z/g/c2, \
         target: {{host: '', ip: 10.0.0.1, port: 80, path: ''}}}}]}}]{more}}}"
    )
}

fn export(more: &str) -> String {
    format!(
        "ServiceExport default/w {{rules: [{{portNumber: 80, path: /w, pathType: Prefix}}], {more}}}"
    )
}

fn rule(balancer: &str) -> String {
    format!("DestinationRule default/w {{host: w, trafficPolicy: {{loadBalancer: {balancer}}}}}")
}

const STICKY: &str = ", sessionAffinity: ClientIP";
const FIVE: &str =
    ", sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 5}}";

#[test]
fn affinity_lifetime_comes_from_the_service() {
    let keyed = rule("{consistentHash: {httpHeaderName: x-user}}");
    let simple = rule("{simple: ROUND_ROBIN}");
    let near = rule("{localityLbSetting: {enabled: false}}");
    let unsaid = rule("{simple: UNSPECIFIED}");
    for (service, rule, expected) in [
        (service(""), "", "LEAST_REQUEST"),
        (service(STICKY), "", "client address 10800"),
        (service(FIVE), "", "client address 5"),
        (service(FIVE), &*keyed, "header x-user"),
        (service(FIVE), &*simple, "client address 5"),
        (service(FIVE), &*near, "client address 5"),
        (service(FIVE), &*unsaid, "client address 5"),
        (service(""), &*near, "LEAST_REQUEST"),
        (service(""), &*unsaid, "LEAST_REQUEST"),
    ] {
        let resources = [&*service, rule];
        let resources = &resources[..1 + usize::from(!rule.is_empty())];
        assert_eq!(settings(NATIVE, resources), expected, "{resources:?}");
    }
}

#[test]
fn import_sets_affinity_of_the_clusterset_host_and_service_of_its_own() {
    let headless = format!(", type: Headless{FIVE}");
    let keyed = rule("{consistentHash: {httpHeaderName: x-user}}");
    for (resources, native, cluster_set) in [
        (
            vec![service(""), import(FIVE)],
            "LEAST_REQUEST",
            "client address 5",
        ),
        (
            vec![service(FIVE), import("")],
            "client address 5",
            "LEAST_REQUEST",
        ),
        (
            vec![service(FIVE), import(STICKY)],
            "client address 5",
            "client address 10800",
        ),
        (
            vec![service(STICKY), import(&headless)],
            "client address 10800",
            "LEAST_REQUEST",
        ),
        // there is nothing else that could say it
        (vec![import(FIVE)], "client address 5", "client address 5"),
        (
            vec![service(""), import(FIVE), keyed],
            "header x-user",
            "header x-user",
        ),
    ] {
        let resources: Vec<&str> = resources.iter().map(String::as_str).collect();
        assert_eq!(settings(NATIVE, &resources), native, "{resources:?}");
        assert_eq!(
            settings(CLUSTER_SET, &resources),
            cluster_set,
            "{resources:?}"
        );
    }
}

#[test]
fn export_sets_affinity_for_requests_of_remote_clusters() {
    let keyed = rule("{consistentHash: {httpHeaderName: x-user}}");
    let simple = rule("{simple: ROUND_ROBIN}");
    let sticky = "sessionSticky: true";
    for (export, more, expected) in [
        (sticky, "", "client address 3600"),
        (sticky, &*simple, "client address 3600"),
        (sticky, &*keyed, "header x-user"),
        ("loadBalancer: HashingLoadBalancer", "", "client address"),
        ("loadBalancer: LeastWorkLoadBalancer", "", "LEAST_REQUEST"),
        (
            "loadBalancer: LeastWorkLoadBalancer",
            &*keyed,
            "header x-user",
        ),
        (
            "loadBalancer: RoundRobinLoadBalancer",
            "",
            "client address 5",
        ),
    ] {
        let (service, export) = (service(FIVE), self::export(export));
        let resources = [&*service, &*export, more];
        let resources = &resources[..2 + usize::from(!more.is_empty())];
        assert_eq!(settings(EXPORTED, resources), expected, "{resources:?}");
        let native = settings(NATIVE, resources);
        assert_ne!(native, "client address 3600", "{resources:?}");
    }
}
