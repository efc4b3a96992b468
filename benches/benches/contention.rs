//! Recording of outcomes by several threads at once for the same endpoints, and counting of requests by the same rate limit.
//!
//! The time is that of one outcome, or one request, on each thread: without contention, it is the same with two threads as with one.
//! Threads beyond the number of cores take turns, so four threads on two cores take twice the time.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use benches::clusters::{self, balance, cluster, endpoints};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use traffic::balance::{EndpointIdx, Policy, Simple};
use traffic::cluster::{Cluster, Outcome};
use traffic::registry::{Buckets, Moment, Rate};

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

/// Returns the longest time that one of several threads took for `work`, which gets the number of its thread.
fn together(threads: usize, work: impl Fn(u64) + Sync) -> Duration {
    let barrier = Barrier::new(threads);
    let one = |number| {
        barrier.wait();
        let begin = Instant::now();
        work(number);
        begin.elapsed()
    };
    thread::scope(|scope| {
        let numbers = 0..threads as u64;
        let all: Vec<_> = numbers
            .map(|number| scope.spawn(move || one(number)))
            .collect();
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
                bencher.iter_custom(|count| together(threads, |_| report(&cluster, count, period)));
            });
        }
        group.finish();
    }
}

/// Clients of a rate limit that counts each by itself.
const CLIENTS: u64 = 1_000;

fn limits(criterion: &mut Criterion) {
    for (what, is_keyed) in [("all requests", false), ("each client", true)] {
        let mut group = criterion.benchmark_group(format!("limits/{what}"));
        for threads in [1, 2, 4] {
            let buckets = Buckets::new(Rate::new(u32::MAX, Duration::from_secs(1)));
            let now = tokio::time::Instant::now();
            let take = |count: u64, number: u64| {
                for request in 0..count {
                    let key = is_keyed.then_some((request + number * CLIENTS / 2) % CLIENTS);
                    let _ = std::hint::black_box(buckets.take(key, 1, now));
                }
            };
            group.bench_function(BenchmarkId::new("threads", threads), |bencher| {
                bencher.iter_custom(|count| together(threads, |number| take(count, number)));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, outcomes, limits);
criterion_main!(benches);
