//! Tests of distributions under fixed seeds, and of exact rotations.

mod envoy;

use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::*;
use crate::registry::{Address, Registry};

fn states(count: usize) -> Vec<Arc<EndpointState>> {
    let registry = Registry::default();
    let cluster: Arc<str> = "outbound|80||a".into();
    (0..count)
        .map(|index| {
            let address = Address::Ip(([10, 0, 0, index as u8 + 1], 80).into());
            registry.endpoint(&cluster, &address)
        })
        .collect()
}

fn counts(policy: Simple, weights: &[u32], picks: usize) -> Vec<usize> {
    let states = states(weights.len());
    let balancer = Balancer::build(policy, weights).unwrap();
    let cursor = Cursor::default();
    let mut rng = SmallRng::seed_from_u64(7);
    let mut counts = vec![0; weights.len()];
    for _ in 0..picks {
        let picked = balancer.pick(|index| &states[index.0 as usize], &cursor, &mut rng);
        counts[picked.0 as usize] += 1;
    }
    counts
}

/// Pearson's chi-square against the shares of the weights.
fn chi_square(counts: &[usize], weights: &[u32]) -> f64 {
    let total: usize = counts.iter().sum();
    let balancer = Balancer::build(Simple::Random, weights).unwrap();
    let shares = balancer.shares();
    counts
        .iter()
        .zip(shares)
        .map(|(&count, share)| {
            let expected = share * total as f64;
            (count as f64 - expected).powi(2) / expected
        })
        .sum()
}

#[test]
fn no_balancer_is_built_for_an_empty_set() {
    assert!(Balancer::build(Simple::Random, &[]).is_none());
}

#[test]
fn round_robin_is_exact_over_a_cycle() {
    assert_eq!(counts(Simple::RoundRobin, &[1, 1, 1], 300), [100, 100, 100]);
    assert_eq!(counts(Simple::RoundRobin, &[1, 2, 4], 700), [100, 200, 400]);
    assert_eq!(
        counts(Simple::RoundRobin, &[100, 300], 4_000),
        [1_000, 3_000]
    );
    assert_eq!(counts(Simple::RoundRobin, &[0, 3], 400), [100, 300]);
}

#[test]
fn round_robin_spreads_the_turns_of_a_heavy_endpoint() {
    let RoundRobin::Schedule(schedule) = RoundRobin::build(&[3, 1]) else {
        panic!("unequal weights need a schedule")
    };
    assert_eq!(schedule.iter().filter(|&&index| index == 1).count(), 1);
    assert_ne!(
        schedule[0], 1,
        "the light endpoint's turn lies in the middle"
    );
    assert_ne!(schedule[3], 1);
}

#[test]
fn round_robin_schedule_stays_bounded() {
    let RoundRobin::Schedule(schedule) = RoundRobin::build(&[u32::MAX, u32::MAX - 1, 1]) else {
        panic!("unequal weights need a schedule")
    };
    assert!(schedule.len() <= SCHEDULE_LEN_MAX + 3);
    assert!(schedule.contains(&2), "the lightest endpoint keeps a turn");
}

#[test]
fn random_and_idle_least_request_follow_the_weights() {
    // 99.9th percentiles of chi-square for 1 and 2 degrees of freedom: 10.8 and 13.8
    for policy in [Simple::Random, Simple::LeastRequest] {
        assert!(
            chi_square(&counts(policy, &[1, 1, 1], 30_000), &[1, 1, 1]) < 13.8,
            "{policy:?}"
        );
        assert!(
            chi_square(&counts(policy, &[3, 1], 30_000), &[3, 1]) < 10.8,
            "{policy:?}"
        );
        assert!(
            chi_square(&counts(policy, &[1, 20, 5], 30_000), &[1, 20, 5]) < 13.8,
            "{policy:?}"
        );
    }
}

#[test]
fn least_request_avoids_the_busy_endpoint() {
    let states = states(2);
    for _ in 0..10 {
        states[0].enter();
    }
    let balancer = Balancer::build(Simple::LeastRequest, &[1, 1]).unwrap();
    let mut rng = SmallRng::seed_from_u64(1);
    let cursor = Cursor::default();
    let busy = (0..10_000)
        .filter(|_| {
            balancer
                .pick(|index| &states[index.0 as usize], &cursor, &mut rng)
                .0
                == 0
        })
        .count();
    // only when both draws hit it
    assert!((2_300..2_700).contains(&busy), "{busy}");
}

#[test]
fn least_request_weighs_active_requests() {
    let states = states(2);
    for _ in 0..3 {
        states[0].enter();
    }
    states[1].enter();
    // 3 active at weight 4 is less busy than 1 active at weight 1
    let balancer = LeastRequest::build(&[4, 1]);
    let mut rng = SmallRng::seed_from_u64(1);
    let light = (0..10_000)
        .filter(|_| balancer.pick(|index| &states[index.0 as usize], &mut rng).0 == 1)
        .count();
    // the light endpoint only when both draws hit it: 0.2 * 0.2
    assert!((320..480).contains(&light), "{light}");
}

#[test]
fn shares_follow_the_weights() {
    for policy in [Simple::LeastRequest, Simple::Random, Simple::RoundRobin] {
        for weights in [&[1, 1, 1][..], &[1, 2, 4], &[7, 0, 3, 9]] {
            let sum: u32 = weights.iter().map(|weight| (*weight).max(1)).sum();
            let shares = Balancer::build(policy, weights).unwrap().shares();
            for (share, weight) in shares.iter().zip(weights) {
                let wanted = f64::from((*weight).max(1)) / f64::from(sum);
                assert!(
                    (share - wanted).abs() < 1e-6,
                    "{policy:?} {weights:?} {shares:?}"
                );
            }
        }
    }
}
