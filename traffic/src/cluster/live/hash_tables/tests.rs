//! Tests of when hash tables are built, and that it makes no difference to picks.

use std::sync::Arc;

use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::*;
use crate::balance::{HashKey, HashPolicy};
use crate::cluster::live::Method;
use crate::cluster::locality::Pattern;
use crate::cluster::{Balance, Cluster, PickInput, Spread, by_hand};
use crate::registry::{Moment, Registry, exclusion};

const NAME: &str = "outbound|80||a.test";

const LOCALITIES: [&str; 3] = ["r/a", "r/b", "s/c"];

fn parts(
    registry: &Registry,
    algorithm: HashAlgorithm,
    spread: Spread,
    endpoints: &[(usize, u32)],
) -> Parts {
    let balance = Balance {
        policy: Policy::Hash(HashPolicy {
            key: HashKey::SourceIp,
            algorithm,
        }),
        spread,
        ..Balance::default()
    };
    let numbered: Vec<(u32, &str)> = (1..)
        .zip(endpoints.iter().map(|(locality, _)| LOCALITIES[*locality]))
        .collect();
    let mut parts = by_hand::parts(registry, NAME, balance, &numbered);
    for (endpoint, (_, weight)) in parts.endpoints.iter_mut().zip(endpoints) {
        endpoint.weight = *weight;
    }
    parts
}

fn build(parts: Parts) -> Cluster {
    Cluster::build(parts, Moment(1))
}

fn built(cluster: &Cluster) -> Vec<bool> {
    match &cluster.method {
        Method::Hash(tables) => tables.iter().map(|table| table.is_built()).collect(),
        Method::Simple(_) => Vec::new(),
    }
}

fn pick(cluster: &Cluster, hash: u64, attempt: u32) -> Option<EndpointIdx> {
    let ask = PickInput {
        hash: Some(hash),
        attempt,
        ..PickInput::default()
    };
    cluster.pick(ask, &mut SmallRng::seed_from_u64(hash))
}

const RING: HashAlgorithm = HashAlgorithm::RingHash { size_min: 1024 };

#[test]
fn first_pick_builds_the_table() {
    let registry = Registry::default();
    let cluster = build(parts(&registry, RING, Spread::Flat, &[(0, 1), (0, 1)]));
    assert_eq!(built(&cluster), [false]);
    let shares = cluster.shares();
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    assert_eq!(
        built(&cluster),
        [false],
        "reading the shares keeps no table"
    );
    pick(&cluster, 7, 0);
    assert_eq!(built(&cluster), [true]);
    assert_eq!(cluster.shares(), shares);
}

#[test]
fn table_of_a_changed_cluster_is_built_at_once_if_it_is_in_use() {
    let registry = Registry::default();
    let spread = || Spread::Failover {
        regions: Vec::new(),
        labels: Vec::new(),
    };
    let one = build(parts(&registry, RING, spread(), &[(0, 1), (1, 1)]));
    assert_eq!(built(&one), [false, false]);
    pick(&one, 7, 0);
    assert_eq!(built(&one), [true, false], "failover has no requests yet");
    let two = build(parts(&registry, RING, spread(), &[(0, 1), (0, 1), (1, 1)]));
    assert_eq!(built(&two), [true, true]);
}

#[test]
fn large_table_is_built_at_once() {
    let endpoints = [(0, 1), (0, 10_000)];
    for (algorithm, is_large) in [
        (RING, false),
        (HashAlgorithm::RingHash { size_min: 65_537 }, true),
        (HashAlgorithm::Maglev { size: 65_537 }, false),
        (HashAlgorithm::Maglev { size: 1_000_003 }, true),
    ] {
        let registry = Registry::default();
        let cluster = build(parts(&registry, algorithm, Spread::Flat, &endpoints));
        assert_eq!(built(&cluster), [is_large], "{algorithm:?}");
    }
}

#[test]
fn first_picks_of_several_workers_agree() {
    for algorithm in [RING, HashAlgorithm::Maglev { size: 1009 }] {
        let endpoints: Vec<(usize, u32)> = (1..=20).map(|weight| (0, weight)).collect();
        let registry = Registry::default();
        let cluster = Arc::new(build(parts(&registry, algorithm, Spread::Flat, &endpoints)));
        let ready = Arc::new(std::sync::Barrier::new(4));
        let workers = [(); 4].map(|()| {
            let (cluster, ready) = (Arc::clone(&cluster), Arc::clone(&ready));
            std::thread::spawn(move || {
                ready.wait();
                let hashes = (0..64_u64).map(|key| key.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                hashes
                    .map(|hash| pick(&cluster, hash, 0))
                    .collect::<Vec<_>>()
            })
        });
        let picks = workers.map(|worker| worker.join().unwrap());
        assert!(picks.iter().all(|one| *one == picks[0]), "{algorithm:?}");
    }
}

fn spread(kind: u8) -> Spread {
    let pattern = |text: &str| Pattern(text.split('/').map(Arc::from).collect());
    match kind {
        0 => Spread::Flat,
        1 => Spread::Failover {
            regions: Vec::new(),
            labels: Vec::new(),
        },
        _ => Spread::Distribute(vec![(pattern("r/a"), 70), (pattern("r/b"), 30)]),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn lazy_tables_pick_as_eager_ones(
        endpoints in proptest::collection::vec((0_usize..3, 1_u32..9), 1..12),
        kind in 0_u8..3,
        is_ring in any::<bool>(),
        excluded in proptest::collection::vec(0_usize..12, 0..3),
        asks in proptest::collection::vec((any::<u64>(), 0_u32..4), 1..50),
    ) {
        let algorithm = match is_ring {
            true => HashAlgorithm::RingHash { size_min: 64 },
            false => HashAlgorithm::Maglev { size: 251 },
        };
        let [lazy, eager] = [false, true].map(|is_used| {
            let registry = Registry::default();
            let parts = parts(&registry, algorithm, spread(kind), &endpoints);
            parts.state.hash_tables_used.store(is_used, Ordering::Relaxed);
            for endpoint in excluded.iter().filter_map(|number| parts.endpoints.get(*number)) {
                endpoint.state.health.exclude(exclusion::UNHEALTHY);
            }
            build(parts)
        });
        prop_assert!(built(&eager).iter().all(|built| *built));
        prop_assert!(!built(&lazy).iter().any(|built| *built));
        prop_assert_eq!(lazy.shares(), eager.shares());
        for (hash, attempt) in asks {
            prop_assert_eq!(pick(&lazy, hash, attempt), pick(&eager, hash, attempt));
        }
    }
}
