//! Settings of traffic that DestinationRules and rules get from the mesh configuration.

use std::sync::Arc;

use config_loader::resource::istio::MeshConfig;

use crate::compile::policies::retries;
use crate::compile::tests::world::{GATEWAY, SERVICE, World, load};
use crate::compile::{Inputs, ServiceCache, compile_again};
use crate::identity::Identity;
use crate::tls::Store;
use traffic::cluster::Spread;
use traffic::registry::Moment;

const ROUTE: &str = "VirtualService default/a {hosts: [a.com], gateways: [gw], http: [\
    {route: [{destination: {host: s}}]}]}";

fn mesh(text: &str) -> Arc<MeshConfig> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    Arc::new(config_loader::read_settings(file.path()).unwrap().0)
}

/// Returns connect timeout, keepalive, maximum of connections, errors that eject, and distribution of service `s`.
fn settings(config: &str, rule: &str) -> String {
    let mut world = World::empty();
    world.identity.mesh_config = mesh(config);
    let rule = format!("DestinationRule default/s {{host: s{rule}}}");
    world.put(&load(&[GATEWAY, SERVICE, ROUTE, &rule]));
    let name = "outbound|80||s.default.svc.cluster.local";
    let id = world.registry.cluster(name).id;
    let cluster = world.snapshot.cluster(id).unwrap();
    let keepalive = cluster.pool.tcp_keepalive.map(|probes| {
        let seconds = |time: Option<std::time::Duration>| time.map_or(0, |time| time.as_secs());
        let times = (seconds(probes.time), seconds(probes.interval));
        (times, probes.probes.unwrap_or(0))
    });
    let connections = match cluster.pool.limits.connections {
        u32::MAX => "any".to_owned(),
        max => max.to_string(),
    };
    let outlier = cluster.balance.outlier.as_ref();
    let errors = outlier.map_or(0, |outlier| outlier.server_errors);
    let spread = match &cluster.balance.spread {
        Spread::Flat => "flat",
        Spread::Failover { .. } => "failover",
        Spread::Distribute(_) => "distribute",
        Spread::ZoneAware { .. } => "zones",
    };
    let timeout = cluster.pool.connect_timeout;
    format!("{timeout:?} {keepalive:?} {connections} {errors} {spread}")
}

#[test]
fn rules_replace_the_defaults_of_the_mesh() {
    const POOL: &str = ", trafficPolicy: {connectionPool: {tcp: {maxConnections: 7, connectTimeout: 2s, \
        tcpKeepalive: {interval: 3s}}}}";
    const HTTP: &str = ", trafficPolicy: {connectionPool: {http: {maxRetries: 1}}}";
    const OUTLIER: &str = ", trafficPolicy: {outlierDetection: {consecutive5xxErrors: 4}}";
    const LOCALITY: &str = ", trafficPolicy: {loadBalancer: {localityLbSetting: {enabled: false}}, \
        outlierDetection: {consecutive5xxErrors: 4}}";
    const TIMEOUT: &str = "connectTimeout: 1s";
    const KEEPALIVE: &str = "tcpKeepalive: {time: 9s, probes: 2}";
    const POLICY: &str = "defaultTrafficPolicy: {connectionPool: {tcp: {maxConnections: 5}}, \
        outlierDetection: {consecutive5xxErrors: 6}}";
    const DISTRIBUTE: &str =
        "localityLbSetting: {distribute: [{from: '*', to: {r/*: 60, q/*: 40}}]}";
    for (config, rule, expected) in [
        ("{}", "", "10s None any 0 flat"),
        (TIMEOUT, "", "1s None any 0 flat"),
        (TIMEOUT, HTTP, "1s None any 0 flat"),
        (TIMEOUT, POOL, "2s Some(((0, 3), 0)) 7 0 flat"),
        (KEEPALIVE, "", "10s Some(((9, 0), 2)) any 0 flat"),
        (KEEPALIVE, POOL, "2s Some(((9, 3), 2)) 7 0 flat"),
        (POLICY, "", "10s None 5 6 failover"),
        (POLICY, HTTP, "10s None any 6 failover"),
        (POLICY, OUTLIER, "10s None 5 4 failover"),
        (
            "localityLbSetting: {enabled: false}",
            OUTLIER,
            "10s None any 4 flat",
        ),
        (DISTRIBUTE, OUTLIER, "10s None any 4 distribute"),
        (DISTRIBUTE, LOCALITY, "10s None any 4 flat"),
    ] {
        assert_eq!(settings(config, rule), expected, "{config}; {rule}");
    }
}

#[test]
fn retries_of_the_mesh_replace_the_default() {
    let retries = |config: &str| {
        let identity = Identity {
            mesh_config: mesh(config),
            ..Identity::default()
        };
        retries::of_mesh(&identity).map(|policy| (policy.attempts, policy.implied))
    };
    assert_eq!(retries("{}"), Some((2, true)));
    let five = "defaultHttpRetryPolicy: {attempts: 5, retryOn: '503'}";
    assert_eq!(retries(five), Some((5, true)));
    assert_eq!(retries("defaultHttpRetryPolicy: {attempts: 0}"), None);
}

#[test]
fn change_of_the_mesh_rebuilds_parts_that_read_it_only() {
    let (mut world, mut cache) = (World::empty(), ServiceCache::default());
    let (set, certificates) = (load(&[GATEWAY, SERVICE, ROUTE]), Store::default());
    let mut compiled = |world: &mut World, config: &str| {
        world.identity.mesh_config = mesh(config);
        let inputs = Inputs {
            resources: &set,
            identity: &world.identity,
            registry: &world.registry,
            stats: &world.stats,
            certificates: &certificates,
            now: Moment(1),
        };
        let snapshot = Arc::new(compile_again(&inputs, &world.snapshot, &mut cache));
        let before = std::mem::replace(&mut world.snapshot, snapshot);
        let id = world
            .registry
            .cluster("outbound|80||s.default.svc.cluster.local")
            .id;
        let [before, now] = [&before, &world.snapshot];
        let clusters = [before, now].map(|one| one.cluster(id).map(Arc::as_ptr));
        let listeners = [before, now].map(|one| one.listeners.values().next().map(Arc::as_ptr));
        [clusters[0] == clusters[1], listeners[0] == listeners[1]]
    };
    compiled(&mut world, "{}");
    let provider = "extensionProviders: [{name: p, envoyExtAuthzGrpc: {service: a.test, port: 1}}]";
    for config in [
        provider,
        "pathNormalization: {normalization: MERGE_SLASHES}",
        "discoverySelectors: [{matchLabels: {a: b}}]",
    ] {
        assert_eq!(compiled(&mut world, config), [true; 2], "{config}");
    }
    assert_eq!(world.snapshot.path_normalization, Default::default());
    let [cluster, _] = compiled(&mut world, "connectTimeout: 1s");
    assert!(!cluster);
    let [_, listener] = compiled(&mut world, "defaultHttpRetryPolicy: {attempts: 5}");
    assert!(!listener);
}

#[test]
fn traffic_to_a_workload_goes_to_its_loopback_address_where_the_mesh_says_so() {
    let own = "Service default/web {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]}";
    let endpoints = |config: &str| {
        let mut world = World::sidecar(&[]);
        world.identity.mesh_config = mesh(config);
        world.put(&load(&[own]));
        let id = world.registry.cluster("inbound|8080||").id;
        let cluster = world.snapshot.cluster(id).unwrap();
        let endpoints = cluster.endpoints().iter();
        let endpoints: Vec<_> = endpoints.map(|one| one.address.to_string()).collect();
        (endpoints, cluster.dialed.is_some())
    };
    assert_eq!(endpoints("{}\n"), (vec![], true));
    let localhost = "inboundTrafficPolicy: {mode: LOCALHOST}\n";
    assert_eq!(
        endpoints(localhost),
        (vec!["127.0.0.1:8080".to_owned()], false)
    );
}
