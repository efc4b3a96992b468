//! Number of retries that a budget allows, as requests arrive and the rules change.

use crate::compile::tests::world::SERVICE;
use crate::compile::tests::world::World;
use crate::compile::tests::world::load;
use std::sync::Arc;
use traffic::balance::EndpointIdx;
use traffic::cluster::Cluster;
use traffic::registry::Moment;

const NAME: &str = "outbound|80||s.default.svc.cluster.local";

/// The service with this budget, and something about it that another reload may change.
fn put(world: &mut World, budget: &str, weight: u32) -> Arc<Cluster> {
    let rule = format!(
        "DestinationRule default/s {{host: s, trafficPolicy: {{retryBudget: {{{budget}}}}}}}"
    );
    let service = SERVICE.replace(
        "address: 10.0.0.1,",
        &format!("address: 10.0.0.1, weight: {weight},"),
    );
    let route = "VirtualService default/v {hosts: [a.com], gateways: [gw], http: [{route: [{destination: {host: s}}]}]}";
    world.put(&load(&[
        crate::compile::tests::world::GATEWAY,
        &service,
        route,
        &rule,
    ]));
    let id = world.registry.cluster(NAME).id;
    Arc::clone(world.snapshot.cluster(id).unwrap())
}

fn begin(cluster: &Cluster, count: usize, now: Moment) {
    for _ in 0..count {
        cluster.enter(EndpointIdx(0), || now);
    }
}

fn end(cluster: &Cluster, count: usize) {
    for _ in 0..count {
        cluster.endpoint(EndpointIdx(0)).state.leave();
    }
}

#[test]
fn retry_budget_is_a_percentage_of_active_or_interval_requests() {
    for (budget, at_once, after_their_end, after_the_interval) in [
        ("percent: 10, minRetryConcurrency: 2", 20, 2, 2),
        (
            "percent: 10, minRetryConcurrency: 2, budgetInterval: 0s",
            20,
            2,
            2,
        ),
        (
            "percent: 10, minRetryConcurrency: 2, budgetInterval: 10s",
            20,
            20,
            2,
        ),
        ("percent: 0.5, budgetInterval: 10s", 3, 3, 3),
        (
            "percent: 0.5, minRetryConcurrency: 1, budgetInterval: 10s",
            1,
            1,
            1,
        ),
        ("budgetInterval: 10s", 40, 40, 3),
    ] {
        let mut world = World::empty();
        let cluster = put(&mut world, budget, 1);
        let max = |seconds: u64| cluster.retries_max(usize::MAX, || Moment(seconds * 1_000));
        begin(&cluster, 200, Moment(5_000));
        assert_eq!(max(5), at_once, "{budget}");
        end(&cluster, 200);
        assert_eq!(max(14), after_their_end, "{budget}");
        assert_eq!(max(17), after_the_interval, "{budget}");
    }
}

#[test]
fn active_requests_older_than_the_interval_do_not_count() {
    let mut world = World::empty();
    let cluster = put(&mut world, "percent: 50, budgetInterval: 1s", 1);
    begin(&cluster, 100, Moment(1));
    assert_eq!(cluster.retries_max(usize::MAX, || Moment(900)), 50);
    assert_eq!(cluster.retries_max(usize::MAX, || Moment(1_200)), 3);
}

#[test]
fn counts_survive_a_reload_but_not_a_changed_interval() {
    let mut world = World::empty();
    let first = put(&mut world, "percent: 10, budgetInterval: 10s", 1);
    begin(&first, 200, Moment(5_000));
    for (budget, weight, max) in [
        ("percent: 10, budgetInterval: 10s", 2, 20),
        ("percent: 20, budgetInterval: 10s", 2, 40),
        ("percent: 20, budgetInterval: 30s", 2, 3),
    ] {
        let cluster = put(&mut world, budget, weight);
        assert_eq!(
            cluster.retries_max(usize::MAX, || Moment(6_000)),
            max,
            "{budget}"
        );
    }
}
