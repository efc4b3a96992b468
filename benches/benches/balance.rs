//! Endpoint picks by load balancer and number of endpoints, recording of outcomes, and rebuilding of lookup tables.

use std::hint::black_box;
use std::time::Duration;

use benches::clusters::{balance, by_client, cluster, endpoints, policies, report};
use benches::fleet::{Fleet, WEB, named, shared};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use proxy::snapshot::Snapshot;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use traffic::balance::{EndpointIdx, HashAlgorithm, Policy, Simple};
use traffic::cluster::{Cluster, Outcome, PickInput, Spread};
use traffic::registry::{Moment, Visit, exclusion};

/// Returns a function that picks with a different hash each time.
fn picks_of(cluster: &Cluster) -> impl FnMut() -> Option<EndpointIdx> {
    let mut rng = SmallRng::seed_from_u64(1);
    let mut hash = 0_u64;
    move || {
        hash = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let ask = PickInput {
            hash: Some(hash),
            ..PickInput::default()
        };
        black_box(cluster.pick(ask, &mut rng))
    }
}

fn picks(criterion: &mut Criterion) {
    for equal in [true, false] {
        let kind = if equal { "equal" } else { "weighted" };
        let mut group = criterion.benchmark_group(format!("pick/{kind}"));
        for (name, policy) in policies() {
            for count in [10, 1_000, 10_000] {
                let cluster = cluster(balance(policy.clone()), &endpoints(count, equal));
                let mut pick = picks_of(&cluster);
                group.bench_function(BenchmarkId::new(name, count), |bencher| {
                    bencher.iter(&mut pick);
                });
            }
        }
        group.finish();
    }
}

/// Measures picks with session affinity: for clients that have an affinity entry, and for new clients.
fn pinned(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pick/pinned");
    for count in [10, 1_000, 10_000] {
        let mut balance = balance(by_client());
        balance.remember = Some(Duration::from_secs(10_800));
        let cluster = cluster(balance, &endpoints(count, true));
        let mut rng = SmallRng::seed_from_u64(1);
        let mut pick = |client: u64, second: u64| {
            let client = client.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let at = Moment(second * 1_000);
            let stay = cluster.stay(Visit { client, at }).expect("clients stay");
            let ask = PickInput {
                hash: Some(client),
                ..PickInput::default()
            };
            black_box(cluster.pick_for(&stay, ask, &mut rng))
        };
        let mut client = 0_u64;
        group.bench_function(BenchmarkId::new("seen", count), |bencher| {
            bencher.iter(|| {
                client = (client + 1) % 1_000;
                pick(client, 1)
            });
        });
        // each time in the second after the one before
        let mut second = 1;
        group.bench_function(BenchmarkId::new("renewed", count), |bencher| {
            bencher.iter(|| {
                second += 1;
                pick(7, second)
            });
        });
        group.bench_function(BenchmarkId::new("new", count), |bencher| {
            bencher.iter(|| {
                client += 1;
                pick(client, second)
            });
        });
    }
    group.finish();
}

/// Measures picks while three zones share traffic by priority, because some endpoints of the nearest zone are ejected.
fn spilling(criterion: &mut Criterion) {
    let mut balance = balance(Policy::Simple(Simple::LeastRequest));
    balance.spread = Spread::Failover {
        regions: Vec::new(),
        labels: Vec::new(),
    };
    let cluster = cluster(balance, &endpoints(1_000, true));
    for number in (0..1_000).step_by(6) {
        let health = &cluster.endpoint(EndpointIdx(number)).state.health;
        health.exclude(exclusion::UNHEALTHY);
    }
    cluster
        .state
        .ejections
        .stale
        .store(true, std::sync::atomic::Ordering::Relaxed);
    cluster.refresh(Moment(2));
    let mut pick = picks_of(&cluster);
    criterion.bench_function("pick/spilling/1000", |bencher| bencher.iter(&mut pick));
}

fn outcomes(criterion: &mut Criterion) {
    let cluster = cluster(
        balance(Policy::Simple(Simple::Random)),
        &endpoints(1_000, true),
    );
    let mut number = 0;
    criterion.bench_function("outcome/success", |bencher| {
        bencher.iter(|| {
            number = (number + 1) % 1_000;
            report(
                &cluster,
                EndpointIdx(number),
                Outcome::Status(200),
                Moment(1),
            );
        });
    });
}

fn builds(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("build");
    for (name, policy) in policies() {
        for count in [500, 10_000] {
            let endpoints = endpoints(count, false);
            group.bench_function(BenchmarkId::new(name, count), |bencher| {
                bencher.iter(|| cluster(balance(policy.clone()), black_box(&endpoints)));
            });
        }
    }
    group.finish();
    for (name, algorithm) in [
        ("maglev 65537", HashAlgorithm::Maglev { size: 65_537 }),
        ("ring 1024", HashAlgorithm::RingHash { size_min: 1024 }),
    ] {
        let names: Vec<String> = (0..500)
            .map(|n| format!("10.0.{}.{}:80", n / 250, n % 250))
            .collect();
        let hosts: Vec<_> = (0..)
            .zip(&names)
            .map(|(number, key)| {
                let host = traffic::balance::hash::Host { key, weight: 1.0 };
                (EndpointIdx(number), host)
            })
            .collect();
        let build =
            || traffic::balance::HashTable::build(algorithm, black_box(&hosts)).expect("hosts");
        criterion.bench_function(&format!("table/{name}/500"), |bencher| bencher.iter(build));
    }
}

/// Measures the time to rebuild the lookup tables after one of many endpoints is ejected.
fn ejection(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("refresh/10000");
    for (name, policy) in policies() {
        let cluster = cluster(balance(policy), &endpoints(10_000, false));
        let mut number = 0;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                number = (number + 1) % 10_000;
                let health = &cluster.endpoint(EndpointIdx(number)).state.health;
                health.exclude(exclusion::UNHEALTHY);
                cluster
                    .state
                    .ejections
                    .stale
                    .store(true, std::sync::atomic::Ordering::Relaxed);
                cluster.refresh(Moment(2));
                health.admit(exclusion::UNHEALTHY, Moment(2));
            });
        });
    }
    group.finish();
}

/// Measures the cost of choosing a remote cluster: a pick in a service that several clusters share, next to a pick in
/// one of them.
fn members(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("member");
    for count in [1, 3, 16, 64] {
        let fleet = Fleet::seen_from("c0");
        let weights = (1..=count).map(|n| (format!("c{n}"), 10 + n as u32 % 7));
        let text = shared(&weights.collect::<Vec<_>>());
        let snapshot = fleet.compile(&text, &Snapshot::default(), Moment(1));
        let web = named(&snapshot, WEB).expect("the service");
        let federation = web.federation.as_ref().expect("several members");
        let cluster = |id| snapshot.cluster(id);
        let alone = cluster(federation.pools()[0].cluster).expect("a pool");
        let mut rng = SmallRng::seed_from_u64(1);
        group.bench_function(BenchmarkId::new("alone", count), |bencher| {
            bencher.iter(|| black_box(alone.pick(PickInput::default(), &mut rng)));
        });
        group.bench_function(BenchmarkId::new("by weight", count), |bencher| {
            bencher
                .iter(|| black_box(federation.choose(1, cluster, PickInput::default(), &mut rng)));
        });
        let mut hash = 0_u64;
        group.bench_function(BenchmarkId::new("by key", count), |bencher| {
            bencher.iter(|| {
                hash = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let ask = PickInput {
                    hash: Some(hash),
                    ..PickInput::default()
                };
                black_box(federation.choose(1, cluster, ask, &mut rng))
            });
        });
    }
    group.finish();
}

criterion_group!(
    benches, picks, pinned, members, spilling, outcomes, builds, ejection
);
criterion_main!(benches);
