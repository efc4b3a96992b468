//! Members that get the requests, as their endpoints and the configuration change.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::compile::tests::world::GATEWAY;
use crate::compile::tests::world::World;
use crate::compile::tests::world::load;
use crate::snapshot::Snapshot;
use traffic::cluster::{Cluster, PickInput};
use traffic::registry::{Moment, exclusion};

const SERVICE: &str = "Service ns1/web {ports: [{name: http, port: 80}]}";
const POLICY: &str = "GlobalTrafficPolicy ns1/web {lbType: ActiveActive}";
const ROUTE: &str = "VirtualService default/web {hosts: [web.example], gateways: [gw], \
    http: [{route: [{destination: {host: web.ns1.svc.cluster.local}}]}]}";
const IMPORT: &str = "ServiceImport ns1/web {ports: [{name: http, port: 80, endpoints: [\
    {clusterKey: default/default/default/c2, target: {host: '', ip: 10.2.0.1, port: 80, path: ''}}, \
    {clusterKey: default/default/default/c3, target: {host: '', ip: 10.3.0.1, port: 80, path: ''}}]}]}";

fn web(snapshot: &Snapshot) -> &Arc<Cluster> {
    let mut clusters = snapshot.clusters.iter().flatten();
    let name = "outbound|80||web.ns1.svc.cluster.local";
    let found = clusters.find(|cluster| **cluster.name() == *name);
    found.expect("the route names it")
}

/// The gateway that represents `c2` or `c3`, with its cluster.
fn gateway(snapshot: &Snapshot, number: usize) -> &Arc<Cluster> {
    let federation = web(snapshot).federation.as_ref().expect("several members");
    let member = format!("default/default/default/c{number}");
    let mut pools = federation.pools().iter();
    let pool = pools.find(|pool| *pool.member == *member).expect("a pool");
    snapshot.cluster(pool.cluster).expect("its cluster")
}

/// Makes the tables of a cluster again, as the sweeper does after an event.
fn refresh(cluster: &Cluster, now: Moment) {
    cluster.state.ejections.stale.store(true, Ordering::Release);
    cluster.refresh(now);
}

/// Returns how many of ten requests each address gets; the empty address means no endpoint.
fn ten(snapshot: &Snapshot) -> BTreeMap<String, usize> {
    let mut rng = SmallRng::seed_from_u64(1);
    let federation = web(snapshot).federation.as_ref().expect("several members");
    let mut counts = BTreeMap::new();
    for _ in 0..10 {
        let cluster = |id| snapshot.cluster(id);
        let choice =
            federation.choose(snapshot.generation, cluster, PickInput::default(), &mut rng);
        let address = choice.map_or_else(String::new, |choice| {
            let pool = federation.pools()[choice.at].cluster;
            let cluster = snapshot.cluster(pool).expect("a pool is a cluster");
            cluster.endpoint(choice.endpoint).address.to_string()
        });
        *counts.entry(address).or_default() += 1;
    }
    counts
}

fn counts(rows: &[(&str, usize)]) -> BTreeMap<String, usize> {
    let rows = rows
        .iter()
        .map(|(address, count)| ((*address).to_owned(), *count));
    rows.collect()
}

#[test]
fn recovered_cluster_gets_its_share_at_once() {
    let world = World::only(&[GATEWAY, SERVICE, POLICY, ROUTE, IMPORT]);
    let snapshot = &world.snapshot;
    let shared = counts(&[("10.2.0.1:80", 5), ("10.3.0.1:80", 5)]);
    let others = counts(&[("10.3.0.1:80", 10)]);
    let away = gateway(snapshot, 2);
    let health = &away.endpoints()[0].state.health;
    for round in 0..3 {
        health.exclude(exclusion::UNHEALTHY);
        refresh(away, Moment(2 + round));
        assert_eq!(ten(snapshot), others);
        health.admit(exclusion::UNHEALTHY, Moment(2 + round));
        refresh(away, Moment(2 + round));
        assert_eq!(ten(snapshot), shared);
    }
    // the tables are not rebuilt yet, but the endpoint gets no requests
    health.exclude(exclusion::UNHEALTHY);
    assert_eq!(ten(snapshot), others);
}

#[test]
fn cluster_states_belong_to_their_snapshot() {
    let named = IMPORT.replace("host: '', ip: 10.3.0.1", "host: gw.c3.example, ip: ''");
    let resources = load(&[GATEWAY, SERVICE, POLICY, ROUTE, &named]);
    let mut world = World::empty();
    world.put(&resources);
    let before = Arc::clone(&world.snapshot);
    let left = counts(&[("10.2.0.1:80", 10)]);
    assert_eq!(ten(&before), left);
    let address = [10, 3, 0, 9].into();
    world
        .registry
        .set_resolution("gw.c3.example", vec![address]);
    world.put(&resources);
    let federation = |snapshot| web(snapshot).federation.as_ref().map(Arc::as_ptr);
    let now = &world.snapshot;
    assert_eq!(federation(&before), federation(now), "it is kept");
    let shared = counts(&[("10.2.0.1:80", 5), ("10.3.0.9:80", 5)]);
    for _ in 0..3 {
        assert_eq!(ten(now), shared);
        // a request that began before still finds what it knows
        assert_eq!(ten(&before), left);
    }
}
