use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::*;

fn pools(rows: &[(u8, u32)]) -> Vec<Pool> {
    rows.iter()
        .enumerate()
        .map(|(at, (tier, weight))| Pool {
            member: format!("default/default/default/c{at}").into(),
            cluster: ClusterId(at as u32),
            tier: *tier,
            weight: *weight,
        })
        .collect()
}

fn federation(rows: &[(u8, u32)]) -> Federation {
    Federation::build(pools(rows), Replay::Safe, Arc::default())
}

fn set(of: &[usize]) -> PoolSet {
    of.iter().fold(PoolSet::default(), |all, at| all.with(*at))
}

/// Number of picks of each pool in `picks` turns.
fn counts(federation: &Federation, available: PoolSet, picks: usize) -> Vec<usize> {
    let mut counts = vec![0; federation.pools().len()];
    for _ in 0..picks {
        if let Some(chosen) = federation.pick(available, None) {
            counts[chosen.at] += 1;
        }
    }
    counts
}

#[test]
fn available_pools_of_the_first_tier_share_by_weight() {
    type Row<'a> = (&'a [(u8, u32)], &'a [usize], &'a [usize]);
    let rows: &[Row<'_>] = &[
        (&[(0, 80), (0, 20)], &[0, 1], &[800, 200]),
        (&[(0, 100), (0, 80), (0, 20)], &[0, 1, 2], &[500, 400, 100]),
        (&[(0, 80), (0, 20)], &[1], &[0, 1000]),
        (&[(0, 50), (0, 30), (0, 20)], &[1, 2], &[0, 600, 400]),
        (&[(0, 1), (1, 100), (1, 100)], &[0, 1, 2], &[1000, 0, 0]),
        (&[(0, 1), (1, 100), (1, 100)], &[1, 2], &[0, 500, 500]),
        (&[(0, 1), (1, 75), (2, 25)], &[2], &[0, 0, 1000]),
        (&[(0, 3), (0, 1)], &[], &[0, 0]),
    ];
    for (weights, available, expected) in rows {
        let federation = federation(weights);
        let counted = counts(&federation, set(available), 1000);
        assert_eq!(counted, *expected, "{weights:?} {available:?}");
    }
}

#[test]
fn any_window_of_one_cycle_is_exact() {
    let federation = federation(&[(0, 50), (0, 30), (0, 20)]);
    let all = set(&[0, 1, 2]);
    let picks: Vec<usize> = (0..40)
        .filter_map(|_| Some(federation.pick(all, None)?.at))
        .collect();
    for window in picks.windows(10) {
        let count = |pool| window.iter().filter(|at| **at == pool).count();
        assert_eq!([count(0), count(1), count(2)], [5, 3, 2], "{window:?}");
    }
}

#[test]
fn replays_split_a_later_tier_exactly_independent_of_first_attempts() {
    let federation = federation(&[(0, 1), (0, 1), (1, 75), (1, 25)]);
    let mut counts = [0; 4];
    for _ in 0..400 {
        counts[federation.pick(set(&[0, 1, 2, 3]), None).unwrap().at] += 1;
        counts[federation.pick_later(set(&[2, 3]), None).unwrap().at] += 1;
    }
    assert_eq!(counts, [200, 200, 300, 100]);
    assert_eq!(federation.pick_later(set(&[]), None), None);
}

#[test]
fn only_the_last_available_pool_enters_panic_mode() {
    let federation = federation(&[(0, 1), (1, 1)]);
    let is_last = |available| federation.pick(available, None).map(|pick| pick.is_last);
    assert_eq!(is_last(set(&[0, 1])), Some(false));
    assert_eq!(is_last(set(&[0])), Some(true));
    assert_eq!(is_last(set(&[])), None);
    let mut rng = SmallRng::seed_from_u64(1);
    let in_panic = federation.pick_random_pool(set(&[]), set(&[0, 1]), &mut rng);
    assert_eq!(
        in_panic,
        Some(Chosen {
            at: 0,
            is_last: true,
            shifted_from: None,
        })
    );
}

#[test]
fn a_key_leaves_its_pool_only_while_the_pool_is_unavailable() {
    let federation = federation(&[(0, 50), (0, 30), (0, 20)]);
    let at = |available, key| federation.pick(available, Some(key)).unwrap().at;
    let (all, two) = (set(&[0, 1, 2]), set(&[0, 2]));
    let mut counts = [0_u32; 3];
    for key in (0..10_000_u64).map(|key| key.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
        let home = at(all, key);
        counts[home] += 1;
        assert_eq!(at(all, key), home);
        if home != 1 {
            assert_eq!(at(two, key), home, "a key that need not move stays");
        }
    }
    for (count, share) in counts.into_iter().zip([5000.0, 3000.0, 2000.0]) {
        assert!((f64::from(count) - share).abs() < 200.0, "{counts:?}");
    }
}

#[test]
fn tier_shift_is_reported_once_and_not_for_the_initial_tier() {
    let federation = federation(&[(0, 1), (1, 1)]);
    let (all, backup) = (set(&[0, 1]), set(&[1]));
    let shifted = |available| federation.pick(available, None).unwrap().shifted_from;
    let told = [all, backup, backup, all, all].map(shifted);
    assert_eq!(told, [None, Some(0), None, Some(1), None]);
    // the same policy continues the rotation
    let same = Federation::build(pools(&[(0, 1), (1, 2)]), Replay::Safe, Arc::default());
    let same = same.after_change(&federation);
    assert_eq!(same.pick(backup, None).unwrap().shifted_from, Some(0));
    // another policy restarts the rotation
    let other = Federation::build(pools(&[(0, 1), (0, 2)]), Replay::Safe, Arc::default());
    let other = other.after_change(&same);
    assert_eq!(other.pick(all, None).unwrap().shifted_from, None);
}

proptest! {
    #[test]
    fn pick_is_an_available_pool_of_the_first_available_tier(
        rows in prop::collection::vec((0_u8..4, 1_u32..1000), 1..12),
        bits in any::<u16>(),
        hash in any::<Option<u64>>(),
        seed in any::<u64>(),
    ) {
        let federation = federation(&rows);
        let available = PoolSet::of(federation.pools(), |pool| bits >> pool.cluster.0 & 1 == 1);
        let mut rng = SmallRng::seed_from_u64(seed);
        let picked = federation.pick(available, hash);
        let other = federation.pick_random_pool(available, available, &mut rng);
        prop_assert_eq!(picked.is_none(), available.is_empty());
        prop_assert_eq!(other.is_none(), available.is_empty());
        for chosen in picked.into_iter().chain(other) {
            prop_assert!(available.has(chosen.at));
            let tier = federation.pools()[chosen.at].tier;
            prop_assert_eq!(Some(tier), first_tier(federation.pools(), available));
        }
        let sum: f64 = federation.shares(available).iter().sum();
        prop_assert!((sum - f64::from(u8::from(!available.is_empty()))).abs() < 1e-9);
    }
}

#[test]
fn rotation_is_exact_from_any_start() {
    let rows = [(0, 5), (0, 2), (0, 1)];
    let all = set(&[0, 1, 2]);
    let mut firsts = std::collections::BTreeSet::new();
    for turn in [0, 1, 3, 7, u32::MAX - 3] {
        let turns = Arc::new(RotationCursors::starting_at(turn));
        let federation = Federation::build(pools(&rows), Replay::Safe, turns);
        firsts.insert(federation.pick(all, None).unwrap().at);
        // whatever eight picks come one after the other
        for _ in 0..5 {
            assert_eq!(counts(&federation, all, 8), [5, 2, 1], "{turn}");
            federation.pick(all, None);
        }
    }
    assert!(firsts.len() > 1, "{firsts:?}");
}
