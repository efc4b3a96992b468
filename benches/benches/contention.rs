//! Recording of outcomes by several threads at once for the same endpoints.
//!
//! The time is that of one outcome on each thread: without contention, it is the same with two threads as with one.
//! Threads beyond the number of cores take turns, so four threads on two cores take twice the time.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use benches::clusters::{self, balance, cluster, endpoints};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use traffic::balance::{EndpointIdx, Policy, Simple};
use traffic::cluster::{Cluster, Outcome};
use traffic::registry::Moment;

/// Number of endpoints that all threads report on.
const ENDPOINTS: u32 = 10;

/// Records `count` outcomes for all endpoints in turn. One round in `period` fails; none if `period` is 0.
fn report(cluster: &Cluster, count: u64, period: u64) {
    let (mut endpoint, mut round) = (0, 0);
    for _ in 0..count {
        let failed = period > 0 && round % period == 0;
        let outcome = Outcome::Status(if failed { 503 } else { 200 });
        clusters::report(cluster, EndpointIdx(endpoint), outcome, Moment(1));
        endpoint += 1;
        if endpoint == ENDPOINTS {
            (endpoint, round) = (0, round + 1);
        }
    }
}

/// Returns the longest time that one of several threads took for `count` outcomes.
fn together(cluster: &Cluster, threads: usize, count: u64, period: u64) -> Duration {
    let barrier = Barrier::new(threads);
    let one = || {
        barrier.wait();
        let begin = Instant::now();
        report(cluster, count, period);
        begin.elapsed()
    };
    thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        let times = all.into_iter().map(|thread| thread.join());
        let longest = times
            .map(|time| time.expect("reporting does not panic"))
            .max();
        longest.unwrap_or_default()
    })
}

fn outcomes(criterion: &mut Criterion) {
    let of = endpoints(ENDPOINTS as usize, true);
    for (what, period) in [
        ("successes", 0),
        ("1 of 100 fails", 100),
        ("every other fails", 2),
    ] {
        let mut group = criterion.benchmark_group(format!("outcomes/{what}"));
        for threads in [1, 2, 4] {
            let cluster = cluster(balance(Policy::Simple(Simple::Random)), &of);
            group.bench_function(BenchmarkId::new("threads", threads), |bencher| {
                bencher.iter_custom(|count| together(&cluster, threads, count, period));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, outcomes);
criterion_main!(benches);
