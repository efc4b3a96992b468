use std::sync::atomic::AtomicBool;

use super::*;

#[test]
fn cells_of_workers_are_summed() {
    let counters = WorkerCounters::new(3);
    counters.increment(WorkerId(0), Counter::UpstreamOpened);
    counters.add(WorkerId(2), Counter::UpstreamOpened, 4);
    counters.increment(WorkerId::CONTROL, Counter::UpstreamOpened);
    assert_eq!(counters.counter(Counter::UpstreamOpened), 6);
    assert_eq!(counters.counter(Counter::UpstreamClosed), 0);
}

#[test]
fn gauge_raised_and_lowered_by_different_workers_returns_to_zero() {
    let counters = WorkerCounters::new(2);
    counters.raise(WorkerId(0), Gauge::PoolIdle);
    counters.raise(WorkerId(0), Gauge::PoolIdle);
    counters.lower(WorkerId(1), Gauge::PoolIdle);
    assert_eq!(counters.gauge(Gauge::PoolIdle), 1);
    counters.lower(WorkerId(1), Gauge::PoolIdle);
    assert_eq!(counters.gauge(Gauge::PoolIdle), 0);
    assert_eq!(counters.gauge(Gauge::UpgradesActive), 0);
}

#[test]
fn local_replies_count_under_each_flag() {
    let counters = WorkerCounters::new(1);
    counters.local_reply(WorkerId(0), ResponseFlags::UF | ResponseFlags::URX);
    counters.local_reply(WorkerId(0), ResponseFlags::UF);
    counters.local_reply(WorkerId(0), ResponseFlags::NONE);
    let replies: Vec<_> = counters.local_replies().collect();
    assert_eq!(replies, [("UF", 2), ("URX", 1), ("-", 1)]);
}

#[test]
fn a_worker_without_its_own_cell_uses_the_shared_cell() {
    let counters = WorkerCounters::new(1);
    std::thread::scope(|scope| {
        for worker in [1, 2, u16::MAX] {
            let counters = &counters;
            scope.spawn(move || {
                for _ in 0..10_000 {
                    counters.increment(WorkerId(worker), Counter::TaskPanics);
                }
            });
        }
    });
    assert_eq!(counters.counter(Counter::TaskPanics), 30_000);
}

#[test]
fn a_counter_never_goes_backwards_while_workers_count() {
    let counters = WorkerCounters::new(2);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers = [0, 1].map(|worker| {
            let counters = &counters;
            scope.spawn(move || {
                for _ in 0..50_000 {
                    counters.increment(WorkerId(worker), Counter::RequestsStarted);
                }
            })
        });
        scope.spawn(|| {
            let mut last = 0;
            while !done.load(Ordering::Relaxed) {
                let now = counters.counter(Counter::RequestsStarted);
                assert!(now >= last, "{now} after {last}");
                last = now;
            }
        });
        for writer in writers {
            writer.join().expect("writer");
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(counters.counter(Counter::RequestsStarted), 100_000);
}
