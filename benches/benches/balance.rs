//! Picks of every balancer by number of endpoints, and building their tables.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use proxy::balance::{Balancer, Simple};
use proxy::registry::{Address, Cursor, EndpointState, Registry};
use rand::SeedableRng;
use rand::rngs::SmallRng;

const POLICIES: [Simple; 3] = [Simple::LeastRequest, Simple::Random, Simple::RoundRobin];

fn states(count: usize) -> Vec<Arc<EndpointState>> {
    let registry = Registry::default();
    let cluster: Arc<str> = "outbound|80||a".into();
    (0..count)
        .map(|index| {
            let [.., a, b] = (index as u32).to_be_bytes();
            registry.endpoint(&cluster, &Address::Ip(([10, 0, a, b], 80).into()))
        })
        .collect()
}

fn weights(count: usize, equal: bool) -> Vec<u32> {
    let of = |index: usize| if equal { 1 } else { 1 + index as u32 % 5 };
    (0..count).map(of).collect()
}

fn picks(criterion: &mut Criterion) {
    for equal in [true, false] {
        let kind = if equal { "equal" } else { "weighted" };
        let mut group = criterion.benchmark_group(format!("pick/{kind}"));
        for policy in POLICIES {
            for count in [10, 1_000, 10_000] {
                let states = states(count);
                let balancer = Balancer::build(policy, &weights(count, equal)).expect("endpoints");
                let (cursor, mut rng) = (Cursor::default(), SmallRng::seed_from_u64(1));
                let id = BenchmarkId::new(policy.name(), count);
                group.bench_function(id, |bencher| {
                    bencher.iter(|| {
                        let state = |index: proxy::balance::EndpointIdx| &*states[index.0 as usize];
                        black_box(balancer.pick(state, &cursor, &mut rng))
                    });
                });
            }
        }
        group.finish();
    }
}

fn builds(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("build/weighted");
    for policy in POLICIES {
        let weights = weights(1_000, false);
        group.bench_function(BenchmarkId::new(policy.name(), 1_000), |bencher| {
            bencher.iter(|| black_box(Balancer::build(policy, black_box(&weights))));
        });
    }
    group.finish();
}

criterion_group!(benches, picks, builds);
criterion_main!(benches);
