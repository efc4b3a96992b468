//! Tests of picks as health changes.

use std::sync::Arc;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::*;
use crate::balance::{HashAlgorithm, HashKey, HashPolicy, Policy};
use crate::cluster::{
    Balance, Cluster, HealthCheck, Outcome, OutlierPolicy, Parts, Probe, Spread, Warmup, by_hand,
    locality,
};
use crate::registry::{CheckResult, EventKind, Registry, Thresholds};

/// A cluster whose endpoints are `10.0.0.N:80` in these localities, for a proxy in `r/a`.
fn cluster(balance: Balance, localities: &[&str]) -> Cluster {
    let numbered = (1..).zip(localities.iter().copied());
    let endpoints: Vec<(u32, &str)> = numbered.collect();
    let registry = Registry::default();
    let parts = by_hand::parts(&registry, "outbound|80||a.test", balance, &endpoints);
    Cluster::build(parts, Moment(1))
}

fn balance(policy: Simple) -> Balance {
    Balance {
        policy: Policy::Simple(policy),
        outlier: Some(OutlierPolicy {
            percent_max: 100,
            ..OutlierPolicy::default()
        }),
        ..Balance::default()
    }
}

fn nearest_first() -> Spread {
    Spread::Failover {
        regions: Vec::new(),
        labels: Vec::new(),
    }
}

/// Number of picks of each endpoint; the last number counts picks without an endpoint.
fn picks(cluster: &Cluster, count: usize) -> Vec<usize> {
    let mut rng = SmallRng::seed_from_u64(11);
    let mut picks = vec![0; cluster.endpoints().len() + 1];
    for _ in 0..count {
        let picked = cluster.pick(PickInput::default(), &mut rng);
        let number = picked.map_or(cluster.endpoints().len(), |picked| picked.0 as usize);
        picks[number] += 1;
    }
    picks
}

fn report(cluster: &Cluster, endpoint: EndpointIdx, outcome: Outcome, now: Moment) {
    if let Some(verdict) = cluster.report(endpoint, outcome) {
        cluster.decide(endpoint, verdict, &cluster.state.ejections.lock(), now);
    }
}

fn fail(cluster: &Cluster, endpoint: u32, now: Moment) {
    for _ in 0..5 {
        report(cluster, EndpointIdx(endpoint), Outcome::Status(500), now);
    }
}

#[test]
fn ejected_endpoint_gets_no_traffic_before_and_after_table_rebuild() {
    for policy in [Simple::RoundRobin, Simple::Random, Simple::LeastRequest] {
        let cluster = cluster(balance(policy), &["", "", ""]);
        assert!(picks(&cluster, 3000)[1] > 800);
        fail(&cluster, 1, Moment(10));
        assert_eq!(picks(&cluster, 3000)[1], 0, "{policy:?}");
        cluster.refresh(Moment(11));
        let after = picks(&cluster, 3000);
        assert_eq!((after[1], after[3]), (0, 0));
        assert!(after[0].abs_diff(1500) < 150, "{after:?}");
    }
}

#[test]
fn t101_endpoint_is_unejected_at_the_first_sweep_after_its_time() {
    let cluster = cluster(balance(Simple::RoundRobin), &["", ""]);
    fail(&cluster, 0, Moment(1000));
    cluster.sweep(&cluster.state.ejections.lock(), Moment(30_000));
    assert_eq!(picks(&cluster, 100), [0, 100, 0]);
    cluster.sweep(&cluster.state.ejections.lock(), Moment(31_000));
    assert_eq!(picks(&cluster, 100), [50, 50, 0]);
    // t102: twice as long
    fail(&cluster, 0, Moment(32_000));
    cluster.sweep(&cluster.state.ejections.lock(), Moment(91_999));
    assert_eq!(picks(&cluster, 100), [0, 100, 0]);
    cluster.sweep(&cluster.state.ejections.lock(), Moment(92_000));
    assert_eq!(picks(&cluster, 100), [50, 50, 0]);
    let names: Vec<&str> = cluster
        .state
        .journal
        .since(0)
        .iter()
        .map(|event| event.what.name())
        .collect();
    assert_eq!(names, ["ejected", "unejected", "ejected", "unejected"]);
}

#[test]
fn t104_first_ejection_needs_another_endpoint_and_the_second_the_cap() {
    let capped = |first_ejection_always| {
        let outlier = OutlierPolicy {
            first_ejection_always,
            ..OutlierPolicy::default()
        };
        let balance = Balance {
            outlier: Some(outlier),
            ..balance(Simple::RoundRobin)
        };
        cluster(balance, &["", "", ""])
    };
    let cluster = capped(true);
    fail(&cluster, 0, Moment(1));
    fail(&cluster, 1, Moment(2));
    assert_eq!(picks(&cluster, 90)[0], 0);
    assert!(picks(&cluster, 90)[1] > 30);
    let events = cluster.state.journal.since(0);
    assert!(matches!(
        events[1].what,
        EventKind::EjectionOverflow { out: (1, 3), .. }
    ));
    let cluster = capped(false);
    fail(&cluster, 0, Moment(1));
    assert_eq!(picks(&cluster, 90), [30, 30, 30, 0]);
}

#[test]
fn t106_t107_all_ejected_gives_no_endpoint_or_panic_mode() {
    for (panic_percent, none) in [(0, 300), (50, 0)] {
        let balance = Balance {
            panic_percent,
            ..balance(Simple::RoundRobin)
        };
        let cluster = cluster(balance, &["", "", ""]);
        for endpoint in 0..3 {
            fail(&cluster, endpoint, Moment(1));
        }
        cluster.refresh(Moment(2));
        let picks = picks(&cluster, 300);
        assert_eq!(picks[3], none);
        assert!(none > 0 || picks[..3] == [100; 3], "{picks:?}");
    }
}

#[test]
fn t109_t110_near_endpoints_are_preferred_and_spill_over() {
    let balance = Balance {
        spread: nearest_first(),
        ..balance(Simple::RoundRobin)
    };
    let zones = ["r/a", "r/a", "r/a", "r/a", "r/b", "r/b"];
    let cluster = cluster(balance, &zones);
    assert_eq!(picks(&cluster, 100), [25, 25, 25, 25, 0, 0, 0]);
    fail(&cluster, 0, Moment(1));
    fail(&cluster, 1, Moment(1));
    cluster.refresh(Moment(2));
    let picks = picks(&cluster, 10_000);
    let far = picks[4] + picks[5];
    // 30 percent; five standard deviations are 229
    assert!(far.abs_diff(3000) < 229, "{picks:?}");
    let shift = cluster.state.journal.since(2);
    assert_eq!(
        shift[0].what.to_string(),
        "priority loads changed from [100, 0] to [70, 30] percent"
    );
    let shares = cluster.shares();
    assert!((shares[2] - 0.35).abs() < 1e-9 && (shares[4] - 0.15).abs() < 1e-9);
}

#[test]
fn t111_distribution_follows_locality_weights() {
    let pattern = |text: &str| locality::Pattern(text.split('/').map(Arc::from).collect());
    let balance = Balance {
        spread: Spread::Distribute(vec![(pattern("r/a"), 80), (pattern("r/b"), 20)]),
        outlier: None,
        ..balance(Simple::Random)
    };
    let cluster = cluster(balance, &["r/a", "r/a", "r/b", "r/c"]);
    let all = picks(&cluster, 10_000);
    assert!(all[2].abs_diff(2000) < 200, "{all:?}");
    assert_eq!((all[3], all[4]), (0, 0));
    for endpoint in 0..3 {
        let health = &cluster.endpoint(EndpointIdx(endpoint)).state.health;
        health.exclude(crate::registry::exclusion::UNHEALTHY);
    }
    assert_eq!(picks(&cluster, 10), [0, 0, 0, 0, 10]);
}

fn by_hash(algorithm: HashAlgorithm, endpoints: usize) -> Cluster {
    let policy = HashPolicy {
        key: HashKey::SourceIp,
        algorithm,
    };
    let balance = Balance {
        policy: Policy::Hash(policy),
        ..balance(Simple::Random)
    };
    cluster(balance, &vec![""; endpoints])
}

/// The endpoint of each of 20,000 keys.
fn of_keys(cluster: &Cluster) -> Vec<u32> {
    let mut rng = SmallRng::seed_from_u64(1);
    (0..20_000_u64)
        .map(|key| {
            let hash = Some(crate::balance::hash::xx_hash(&key.to_le_bytes()));
            let ask = PickInput {
                hash,
                ..PickInput::default()
            };
            cluster.pick(ask, &mut rng).unwrap().0
        })
        .collect()
}

#[test]
fn ejection_moves_only_the_keys_of_the_ejected_endpoint() {
    for algorithm in [
        HashAlgorithm::RingHash { size_min: 1024 },
        HashAlgorithm::Maglev { size: 65_537 },
    ] {
        let cluster = by_hash(algorithm, 10);
        let before = of_keys(&cluster);
        fail(&cluster, 3, Moment(1));
        cluster.refresh(Moment(2));
        let after = of_keys(&cluster);
        let mut moved = [0; 10];
        for (before, after) in before.iter().zip(&after) {
            assert_ne!(*after, 3, "{algorithm:?}");
            match before {
                3 => moved[*after as usize] += 1,
                _ => assert_eq!(before, after, "{algorithm:?}"),
            }
        }
        // they go to all of the others
        assert!(
            moved.iter().filter(|count| **count > 0).count() >= 8,
            "{moved:?}"
        );
    }
}

#[test]
fn removed_endpoint_moves_few_other_keys() {
    for (algorithm, most) in [
        (HashAlgorithm::RingHash { size_min: 1024 }, 0.10),
        (HashAlgorithm::Maglev { size: 65_537 }, 0.05),
    ] {
        // the last one leaves, so that the others keep their numbers
        let (before, after) = (
            of_keys(&by_hash(algorithm, 10)),
            of_keys(&by_hash(algorithm, 9)),
        );
        let stayed = before
            .iter()
            .zip(&after)
            .filter(|(before, _)| **before != 9);
        let moved = stayed
            .clone()
            .filter(|(before, after)| before != after)
            .count();
        let share = moved as f64 / stayed.count() as f64;
        assert!(share < most, "{algorithm:?} {share}");
    }
}

#[test]
fn new_endpoint_warms_up() {
    let balance = Balance {
        warmup: Some(Warmup {
            duration: Duration::from_secs(10),
            least: 0.1,
            aggression: 1.0,
        }),
        ..balance(Simple::RoundRobin)
    };
    let cluster = cluster(balance, &["", ""]);
    // both began together
    assert_eq!(picks(&cluster, 1000), [500, 500, 0]);
    cluster.refresh(Moment(20_000));
    fail(&cluster, 1, Moment(21_000));
    cluster.sweep(&cluster.state.ejections.lock(), Moment(52_000));
    assert_eq!(picks(&cluster, 1100), [1000, 100, 0]);
    cluster.refresh(Moment(57_000));
    assert_eq!(picks(&cluster, 1500), [1000, 500, 0]);
    cluster.refresh(Moment(62_000));
    assert_eq!(picks(&cluster, 1000), [500, 500, 0]);
}

fn zone_aware(policy: Simple) -> Balance {
    Balance {
        spread: Spread::ZoneAware {
            size_min: 4,
            regions: Vec::new(),
            labels: Vec::new(),
        },
        ..balance(policy)
    }
}

#[test]
fn zones_share_by_available_endpoints() {
    for policy in [Simple::Random, Simple::RoundRobin, Simple::LeastRequest] {
        let zones = ["r/a", "r/a", "r/a", "r/b", "r/b", "r/b"];
        let cluster = cluster(zone_aware(policy), &zones);
        let all = picks(&cluster, 3_000);
        assert_eq!(all[..3].iter().sum::<usize>(), 3_000, "{all:?}");
        // one of four in the local zone, for half of the clients: half of the traffic stays
        fail(&cluster, 0, Moment(1));
        fail(&cluster, 1, Moment(1));
        cluster.refresh(Moment(2));
        let all = picks(&cluster, 10_000);
        assert!(all[2].abs_diff(5_000) < 250, "{all:?}");
        // too few for zones to matter
        fail(&cluster, 3, Moment(3));
        cluster.refresh(Moment(4));
        let all = picks(&cluster, 9_000);
        assert!(all[2] < 4_000 && all[4] > 2_000, "{all:?}");
    }
}

/// A cluster with health checks and this number of endpoints.
fn checked_cluster(endpoints: usize) -> Cluster {
    let mut cluster = cluster(balance(Simple::RoundRobin), &vec![""; endpoints]);
    cluster.parts.check = Some(Arc::new(HealthCheck {
        probe: Probe::Tcp,
        port: None,
        interval: Duration::from_secs(1),
        timeout: Duration::from_secs(1),
        thresholds: Thresholds {
            healthy: 2,
            unhealthy: 2,
        },
    }));
    cluster
}

fn result(passed: bool, said: &str) -> CheckResult {
    let said = said.into();
    CheckResult { passed, said }
}

#[test]
fn endpoint_gets_no_traffic_while_it_fails_health_checks() {
    let cluster = checked_cluster(3);
    let check = |endpoint, passed, at| {
        cluster.record_check(EndpointIdx(endpoint), result(passed, "said"), Moment(at));
        cluster.refresh(Moment(at));
    };
    (0..3).for_each(|endpoint| check(endpoint, true, 1));
    check(1, false, 2);
    assert_eq!(picks(&cluster, 9), [3, 3, 3, 0]);
    check(1, false, 3);
    assert_eq!(
        (picks(&cluster, 8), cluster.unhealthy()),
        (vec![4, 0, 4, 0], 1)
    );
    let out = cluster
        .endpoint(EndpointIdx(1))
        .exclusion_reason(None, Moment(4));
    assert_eq!(out.unwrap(), "fails its health checks");
    // an ejection apart from is another reason
    fail(&cluster, 1, Moment(5));
    check(1, true, 6);
    check(1, true, 7);
    assert_eq!(cluster.unhealthy(), 0);
    assert_eq!(picks(&cluster, 8), [4, 0, 4, 0]);
    let events = cluster.state.journal.since(0);
    let events: Vec<&str> = events.iter().map(|event| event.what.name()).collect();
    assert_eq!(events, ["unhealthy", "ejected", "healthy"]);
}

#[test]
fn new_endpoint_gets_no_traffic_before_its_first_check_beside_healthy_ones() {
    let cluster = checked_cluster(3);
    let usable = |cluster: &Cluster| {
        let health = |endpoint: &Endpoint| endpoint.state.health.is_usable();
        cluster.endpoints().iter().map(health).collect::<Vec<_>>()
    };
    // without any health check result all take part
    cluster.exclude_unchecked();
    assert_eq!(usable(&cluster), [true; 3]);
    cluster.record_check(EndpointIdx(0), result(false, "no"), Moment(1));
    cluster.exclude_unchecked();
    assert_eq!(usable(&cluster), [false, true, true]);
    cluster.record_check(EndpointIdx(1), result(true, "yes"), Moment(2));
    cluster.exclude_unchecked();
    assert_eq!(usable(&cluster), [false, true, false]);
    let out = cluster
        .endpoint(EndpointIdx(2))
        .exclusion_reason(None, Moment(3));
    assert_eq!(out.unwrap(), "waits for its first health check");
    cluster.record_check(EndpointIdx(2), result(true, "yes"), Moment(4));
    assert_eq!(usable(&cluster), [false, true, true]);
}

#[test]
fn without_health_checks_no_endpoint_is_unhealthy() {
    let mut cluster = checked_cluster(2);
    cluster.record_check(EndpointIdx(0), result(false, "no"), Moment(1));
    cluster.adopt(Moment(2));
    assert_eq!(picks(&cluster, 4), [0, 4, 0]);
    cluster.parts.check = None;
    cluster.adopt(Moment(3));
    assert_eq!(picks(&cluster, 4), [2, 2, 0]);
    let last = cluster.state.journal.since(0).pop().unwrap();
    assert_eq!(last.what.to_string(), "no longer health-checked");
    assert!(
        cluster
            .endpoint(EndpointIdx(0))
            .check_results(Moment(4))
            .is_none()
    );
}

#[test]
fn expired_ejection_is_reported_as_expired() {
    let cluster = cluster(balance(Simple::Random), &["r/a", "r/a"]);
    let outlier = cluster.balance.outlier.as_ref();
    let out = |policy, now| {
        cluster
            .endpoint(EndpointIdx(0))
            .exclusion_reason(policy, now)
    };
    assert_eq!(out(outlier, Moment(1)), None);
    fail(&cluster, 0, Moment(1));
    let said = |text: &str| Some(format!("ejected {text} after 5xx responses, once so far"));
    assert_eq!(out(outlier, Moment(1)), said("for 30s more"));
    assert_eq!(out(outlier, Moment(60_000)), said("until the next sweep"));
    assert_eq!(out(None, Moment(1)), said("until the next sweep"));
}

#[test]
fn panic_mode_applies_only_to_requests_without_another_pool() {
    let balance = Balance {
        panic_percent: 80,
        ..balance(Simple::RoundRobin)
    };
    let endpoints = [(1, ""), (2, ""), (3, "")];
    let parts = by_hand::parts(
        &Registry::default(),
        "outbound|80||a.test@c2",
        balance,
        &endpoints,
    );
    let parts = Parts {
        is_pool: true,
        ..parts
    };
    let cluster = Cluster::build(parts, Moment(1));
    fail(&cluster, 0, Moment(2));
    cluster.refresh(Moment(3));
    let picks = |ignore_panic| {
        let mut rng = SmallRng::seed_from_u64(11);
        let ask = PickInput {
            ignore_panic,
            ..PickInput::default()
        };
        let mut picks = [0; 3];
        for _ in 0..300 {
            picks[cluster.pick(ask, &mut rng).unwrap().0 as usize] += 1;
        }
        picks
    };
    // evenly among the remaining endpoints, too
    assert_eq!(picks(true), [0, 150, 150]);
    assert_eq!(picks(false), [100, 100, 100]);
    let live = cluster.live();
    assert!(!live.panics() && live.tables_for(true).panics());
    assert_eq!(cluster.shares(), [0.0, 0.5, 0.5]);
    let events = cluster.state.journal.since(0);
    let names: Vec<&str> = events.iter().map(|event| event.what.name()).collect();
    assert_eq!(names, ["ejected"], "whether it panics is told elsewhere");
}

#[test]
fn ejection_reports_whether_there_was_a_response() {
    for (outcome, told) in [
        (
            Outcome::Status(503),
            "ejected for 30s after 5 consecutive 5xx; 1 of 2 endpoints are ejected",
        ),
        (
            Outcome::Failed,
            "ejected for 30s after 5 consecutive failures (the last got no response); 1 of 2 endpoints are ejected",
        ),
    ] {
        let cluster = cluster(balance(Simple::RoundRobin), &["", ""]);
        for _ in 0..5 {
            report(&cluster, EndpointIdx(0), outcome, Moment(1));
        }
        let events = cluster.state.journal.since(0);
        assert_eq!(events[0].what.to_string(), told);
    }
}
