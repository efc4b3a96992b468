//! Tests of affinity entries, with clusters and times made by hand.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::*;
use crate::balance::{HashAlgorithm, HashKey, HashPolicy, Policy};
use crate::cluster::federation::Pool;
use crate::cluster::{
    Balance, Cluster, Federation, Parts, PickInput, PoolClusters, Replay, Spread, by_hand,
};
use crate::registry::{ClusterId, Moment, Registry, exclusion};

const LIFETIME: Duration = Duration::from_secs(60);

/// Clients that come in each round.
const CLIENTS: u64 = 200;

/// Name of the cluster, or of the one that represents several.
const WEB: &str = "outbound|80||web";

fn balance(spread: Spread) -> Balance {
    Balance {
        policy: Policy::Hash(HashPolicy {
            key: HashKey::SourceIp,
            algorithm: HashAlgorithm::RingHash { size_min: 1024 },
        }),
        spread,
        remember: Some(LIFETIME),
        ..Balance::default()
    }
}

/// The client of this number, who comes at this second.
fn visit(client: u64, second: u64) -> Visit {
    Visit {
        client: (client + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        at: Moment(second * 1000 + 1),
    }
}

fn ask(visit: Visit) -> PickInput {
    PickInput {
        hash: Some(visit.client.rotate_left(17)),
        ..PickInput::default()
    }
}

/// The endpoint address or member of each client.
type Round = BTreeMap<u64, String>;

/// Clients that were sent to `place`.
fn at<'a>(round: &'a Round, place: &str) -> impl Iterator<Item = u64> + use<'a> {
    let place = place.to_owned();
    let here = round.iter().filter(move |(_, at)| **at == place);
    here.map(|(client, _)| *client)
}

/// Ejects or unejects an endpoint and rebuilds the tables.
fn set_health(cluster: &Cluster, address: &str, is_well: bool) {
    let mut endpoints = cluster.endpoints().iter();
    let endpoint = endpoints.find(|one| one.address.to_string() == address);
    let health = &endpoint.expect("an endpoint").state.health;
    let news = match is_well {
        true => health.admit(exclusion::EJECTED, Moment(1)),
        false => health.exclude(exclusion::EJECTED),
    };
    assert!(news);
    cluster.state.ejections.stale.store(true, Ordering::Relaxed);
    cluster.refresh(Moment(1));
}

/// A service of one member, with its current configuration.
struct One {
    registry: Registry,
    cluster: Cluster,
}

impl One {
    fn new(endpoints: &[u32]) -> Self {
        let registry = Registry::default();
        let cluster = build(&registry, Spread::Flat, &flat(endpoints));
        Self { registry, cluster }
    }

    /// Applies a configuration with other endpoints.
    fn reload(&mut self, endpoints: &[u32]) {
        self.cluster = build(&self.registry, Spread::Flat, &flat(endpoints));
        self.registry.sweep();
    }

    fn pick(&self, client: u64, second: u64) -> String {
        let visit = visit(client, second);
        let stay = self.cluster.stay(visit).expect("clients stay");
        let mut rng = SmallRng::seed_from_u64(client);
        let picked = self.cluster.pick_for(&stay, ask(visit), &mut rng);
        let picked = picked.map(|picked| self.cluster.endpoint(picked).address.to_string());
        picked.unwrap_or_else(|| "none".to_owned())
    }

    fn round(&self, second: u64) -> Round {
        let clients = 0..CLIENTS;
        clients
            .map(|client| (client, self.pick(client, second)))
            .collect()
    }
}

fn flat(endpoints: &[u32]) -> Vec<(u32, &'static str)> {
    endpoints.iter().map(|number| (*number, "r/a")).collect()
}

fn build(registry: &Registry, spread: Spread, endpoints: &[(u32, &str)]) -> Cluster {
    let parts = by_hand::parts(registry, WEB, balance(spread), endpoints);
    Cluster::build(parts, Moment(1))
}

#[test]
fn clients_keep_their_endpoint_when_others_are_added() {
    let mut one = One::new(&[1, 2]);
    let before = one.round(10);
    one.reload(&[1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(one.round(20), before);
    let unseen: Vec<String> = (CLIENTS..2 * CLIENTS)
        .map(|client| one.pick(client, 20))
        .collect();
    let new = unseen
        .iter()
        .filter(|at| !before.values().any(|known| known == *at));
    assert!(new.count() > 100, "others are spread over all: {unseen:?}");
}

#[test]
fn only_clients_of_a_removed_endpoint_move_and_only_once() {
    let mut one = One::new(&[1, 2, 3]);
    let before = one.round(10);
    one.reload(&[1, 3]);
    let moved = one.round(20);
    for (client, place) in &before {
        let stayed = moved[client] == *place;
        assert_eq!(stayed, place != "10.0.0.2:80", "{client} {place}");
    }
    one.reload(&[1, 2, 3]);
    assert_eq!(one.round(30), moved, "no client goes back");
}

#[test]
fn only_clients_of_an_ejected_endpoint_move_and_only_once() {
    let one = One::new(&[1, 2, 3]);
    let before = one.round(10);
    set_health(&one.cluster, "10.0.0.2:80", false);
    let moved = one.round(20);
    for (client, place) in &before {
        let stayed = moved[client] == *place;
        assert_eq!(stayed, place != "10.0.0.2:80", "{client} {place}");
    }
    set_health(&one.cluster, "10.0.0.2:80", true);
    assert_eq!(one.round(30), moved, "no client goes back");
}

#[test]
fn client_without_requests_during_an_ejection_keeps_its_endpoint() {
    let one = One::new(&[1, 2, 3]);
    let before = one.round(10);
    set_health(&one.cluster, "10.0.0.2:80", false);
    set_health(&one.cluster, "10.0.0.2:80", true);
    assert_eq!(one.round(30), before);
}

#[test]
fn expired_affinity_entry_is_replaced_by_the_hash() {
    let one = One::new(&[1, 2, 3]);
    let home = one.round(0);
    set_health(&one.cluster, "10.0.0.2:80", false);
    let moved = one.round(10);
    set_health(&one.cluster, "10.0.0.2:80", true);
    // a client that returns within the lifetime keeps its endpoint
    for second in [70, 130, 190] {
        assert_eq!(one.round(second), moved, "after {second} s");
    }
    assert_eq!(one.round(251), home);
}

#[test]
fn endpoint_picked_in_panic_mode_is_not_remembered() {
    let mut balance = balance(Spread::Flat);
    balance.panic_percent = 100;
    let registry = Registry::default();
    let parts = by_hand::parts(&registry, WEB, balance, &flat(&[1, 2]));
    let cluster = Cluster::build(parts, Moment(1));
    let one = One { registry, cluster };
    let before = one.round(10);
    set_health(&one.cluster, "10.0.0.1:80", false);
    set_health(&one.cluster, "10.0.0.2:80", false);
    let in_panic = one.round(20);
    assert!(in_panic.values().all(|place| place != "none"));
    set_health(&one.cluster, "10.0.0.1:80", true);
    set_health(&one.cluster, "10.0.0.2:80", true);
    assert_eq!(one.round(30), before);
}

#[test]
fn clients_return_to_a_higher_priority() {
    let nearest_first = || Spread::Failover {
        regions: Vec::new(),
        labels: Vec::new(),
    };
    let registry = Registry::default();
    let near_and_far = [(1, "r/a"), (2, "r/b"), (3, "r/b")];
    let cluster = build(&registry, nearest_first(), &near_and_far);
    let one = One { registry, cluster };
    let is_near = |round: &Round| round.values().all(|place| place == "10.0.0.1:80");
    assert!(is_near(&one.round(10)));
    set_health(&one.cluster, "10.0.0.1:80", false);
    let far = one.round(20);
    assert_eq!(at(&far, "10.0.0.1:80").count(), 0);
    // clients of the far locality stay there while the near one is out
    assert_eq!(one.round(25), far);
    set_health(&one.cluster, "10.0.0.1:80", true);
    assert!(is_near(&one.round(30)));
}

#[test]
fn clients_leave_a_locality_without_a_share() {
    use crate::cluster::locality::Pattern;
    let to = |zones: &[&str]| {
        let pattern = |zone: &&str| (Pattern(vec!["r".into(), (*zone).into()]), 50);
        Spread::Distribute(zones.iter().map(pattern).collect())
    };
    let registry = Registry::default();
    let endpoints = [(1, "r/a"), (2, "r/b"), (3, "r/c")];
    let mut one = One {
        cluster: build(&registry, to(&["a", "b"]), &endpoints),
        registry,
    };
    let before = one.round(10);
    assert!(at(&before, "10.0.0.2:80").count() > 0);
    one.cluster = build(&one.registry, to(&["a", "c"]), &endpoints);
    let after = one.round(20);
    assert_eq!(at(&after, "10.0.0.2:80").count(), 0);
    for client in at(&before, "10.0.0.1:80") {
        assert_eq!(after[&client], "10.0.0.1:80");
    }
}

#[test]
fn affinity_entries_are_dropped_when_affinity_is_turned_off() {
    let mut one = One::new(&[1, 2]);
    one.round(10);
    assert_eq!(
        one.cluster.affinity_entries(Moment(11_000)),
        Some(CLIENTS as usize)
    );
    let forgetful = Balance {
        remember: None,
        ..balance(Spread::Flat)
    };
    let parts = by_hand::parts(&one.registry, WEB, forgetful, &flat(&[1, 2]));
    one.cluster = Cluster::build(parts, Moment(1));
    assert!(one.cluster.stay(visit(0, 20)).is_none());
    assert_eq!(one.cluster.affinity_entries(Moment(20_000)), None);
    one.registry.sweep();
    one.reload(&[1, 2]);
    assert_eq!(one.cluster.affinity_entries(Moment(20_000)), Some(0));
}

/// A service that several members serve, with its current configuration.
struct Several {
    registry: Registry,
    base: Cluster,
    pools: BTreeMap<ClusterId, Arc<Cluster>>,
}

/// A member: its name, its tier, its weight, its endpoints.
type Member<'a> = (&'a str, u8, u32, &'a [u32]);

impl Several {
    fn new(members: &[Member<'_>]) -> Self {
        let registry = Registry::default();
        let (base, pools) = shared(&registry, members);
        Self {
            registry,
            base,
            pools,
        }
    }

    fn reload(&mut self, members: &[Member<'_>]) {
        (self.base, self.pools) = shared(&self.registry, members);
        self.registry.sweep();
    }

    fn pool(&self, name: &str) -> &Cluster {
        let id = self.registry.cluster(&format!("{WEB}@{name}")).id;
        &self.pools[&id]
    }

    fn pick(&self, client: u64, second: u64) -> String {
        let visit = visit(client, second);
        let stay = self.base.stay(visit).expect("clients stay");
        let federation = self.base.federation.as_ref().expect("several members");
        let pools = PoolClusters {
            generation: 1,
            cluster: |id| self.pools.get(&id),
        };
        let mut rng = SmallRng::seed_from_u64(client);
        match federation.choose_for(&stay, pools, ask(visit), &mut rng) {
            None => "none".to_owned(),
            Some(choice) => {
                let pool = &federation.pools()[choice.at];
                let endpoint = self.pools[&pool.cluster].endpoint(choice.endpoint);
                format!("{} {}", pool.member, endpoint.address)
            }
        }
    }

    fn round(&self, second: u64) -> Round {
        let clients = 0..CLIENTS;
        clients
            .map(|client| (client, self.pick(client, second)))
            .collect()
    }
}

fn shared(
    registry: &Registry,
    members: &[Member<'_>],
) -> (Cluster, BTreeMap<ClusterId, Arc<Cluster>>) {
    let mut clusters = BTreeMap::new();
    let mut pools = Vec::new();
    for (name, tier, weight, endpoints) in members {
        let cluster = format!("{WEB}@{name}");
        let parts = by_hand::parts(registry, &cluster, balance(Spread::Flat), &flat(endpoints));
        let parts = Parts {
            is_pool: true,
            ..parts
        };
        let cluster = Arc::new(Cluster::build(parts, Moment(1)));
        assert!(
            cluster.stay(visit(0, 0)).is_none(),
            "the service has the entries"
        );
        pools.push(Pool {
            member: (*name).into(),
            cluster: cluster.id(),
            tier: *tier,
            weight: *weight,
        });
        clusters.insert(cluster.id(), cluster);
    }
    let federation = Federation::build(pools, Replay::Safe, Arc::default());
    let federation = federation.following(&registry.cluster(WEB).flips);
    let parts = Parts {
        is_pool: true,
        federation: Some(Arc::new(federation)),
        ..by_hand::parts(registry, WEB, balance(Spread::Flat), &[])
    };
    (Cluster::build(parts, Moment(1)), clusters)
}

fn in_member(round: &Round, name: &str) -> usize {
    let prefix = format!("{name} ");
    round.values().filter(|at| at.starts_with(&prefix)).count()
}

#[test]
fn clients_keep_their_cluster_when_weights_change() {
    let mut several = Several::new(&[("c2", 0, 50, &[1, 2]), ("c3", 0, 50, &[1, 2])]);
    let before = several.round(10);
    let (two, three) = (in_member(&before, "c2"), in_member(&before, "c3"));
    assert!(two > 70 && three > 70, "{two} {three}");
    several.reload(&[
        ("c2", 0, 1, &[1, 2]),
        ("c3", 0, 99, &[1, 2, 3]),
        ("c4", 0, 900, &[1]),
    ]);
    assert_eq!(several.round(20), before);
    let unseen = (CLIENTS..2 * CLIENTS).map(|client| several.pick(client, 20));
    let in_new = unseen.filter(|at| at.starts_with("c4")).count();
    assert!(in_new > 160, "others go by the weights: {in_new}");
}

#[test]
fn clients_of_a_cluster_without_a_share_move_once() {
    let both: &[Member<'_>] = &[("c2", 0, 50, &[1]), ("c3", 0, 50, &[1])];
    let mut several = Several::new(both);
    let before = several.round(10);
    // one with weight 0 is no pool any more
    several.reload(&both[1..]);
    let moved = several.round(20);
    assert_eq!(in_member(&moved, "c3") as u64, CLIENTS);
    several.reload(both);
    assert_eq!(several.round(30), moved, "no client goes back");
    assert_ne!(before, moved);
}

#[test]
fn clients_of_an_ejected_gateway_move_once() {
    let several = Several::new(&[("c2", 0, 50, &[1]), ("c3", 0, 50, &[2])]);
    let before = several.round(10);
    assert!(in_member(&before, "c2") > 0);
    set_health(several.pool("c2"), "10.0.0.1:80", false);
    let moved = several.round(20);
    assert_eq!(in_member(&moved, "c3") as u64, CLIENTS);
    set_health(several.pool("c2"), "10.0.0.1:80", true);
    assert_eq!(several.round(30), moved, "no client goes back");
    assert_eq!(several.round(100), before, "but after idle times");
}

#[test]
fn clients_return_to_an_earlier_tier() {
    let several = Several::new(&[
        ("c1", 0, 100, &[1]),
        ("c2", 1, 50, &[2]),
        ("c3", 1, 50, &[3]),
    ]);
    assert_eq!(in_member(&several.round(10), "c1") as u64, CLIENTS);
    set_health(several.pool("c1"), "10.0.0.1:80", false);
    let backup = several.round(20);
    assert_eq!(in_member(&backup, "c1"), 0);
    set_health(several.pool("c2"), "10.0.0.2:80", false);
    let moved = several.round(25);
    set_health(several.pool("c2"), "10.0.0.2:80", true);
    assert_eq!(
        several.round(26),
        moved,
        "within a tier no client goes back"
    );
    set_health(several.pool("c1"), "10.0.0.1:80", true);
    assert_eq!(in_member(&several.round(30), "c1") as u64, CLIENTS);
}
