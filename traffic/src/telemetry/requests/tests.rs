use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::super::labels::{Reporter, Service, Workload};
use super::*;

fn stats(workers: usize) -> RequestStats {
    let labels = RequestLabels {
        reporter: Reporter::Source,
        source: Arc::new(Workload::default()),
        destination: Arc::new(Workload::default()),
        service: Arc::new(Service::default()),
    };
    RequestStats::new(labels, workers, &Arc::default())
}

fn http(code: u16) -> RequestRecord {
    RequestRecord {
        code,
        flags: ResponseFlags::NONE,
        protocol: RequestProtocol::Http,
        grpc_status: None,
        security: Security::Unknown,
        duration: Duration::from_millis(3),
        request_bytes: 10,
        response_bytes: 200,
        request_messages: 0,
        response_messages: 0,
        trace: None,
    }
}

fn grpc(status: Option<u8>) -> RequestRecord {
    RequestRecord {
        protocol: RequestProtocol::Grpc,
        grpc_status: status,
        request_messages: 2,
        response_messages: 3,
        ..http(200)
    }
}

fn counts(stats: &RequestStats) -> Vec<(u16, u64)> {
    let totals = stats.totals().into_iter();
    totals
        .map(|(variant, total)| (variant.code(), total.duration.count()))
        .collect()
}

#[test]
fn variants_round_trip_through_packing() {
    for flags in [
        ResponseFlags::NONE,
        ResponseFlags::LH,
        ResponseFlags::DR | ResponseFlags::UF,
    ] {
        for grpc_status in [None, Some(0), Some(16), Some(255)] {
            for security in [Security::MutualTls, Security::None, Security::Unknown] {
                for protocol in [RequestProtocol::Http, RequestProtocol::Grpc] {
                    for code in [0, 200, 599, u16::MAX] {
                        let record = RequestRecord {
                            code,
                            flags,
                            protocol,
                            grpc_status,
                            security,
                            ..http(0)
                        };
                        let variant = Variant::of(&record);
                        assert_eq!(variant.code(), code);
                        assert_eq!(variant.flags(), flags);
                        assert_eq!(variant.protocol(), protocol);
                        assert_eq!(variant.grpc_status(), grpc_status);
                        assert_eq!(variant.security(), security);
                        assert_ne!(variant, Variant::OVERFLOW);
                        assert_ne!(variant.0, 0);
                    }
                }
            }
        }
    }
}

#[test]
fn requests_are_counted_by_variant_and_summed_over_workers() {
    let stats = stats(2);
    stats.record(WorkerId(0), &http(200));
    stats.record(WorkerId(1), &http(503));
    stats.record(WorkerId(1), &http(200));
    stats.record(WorkerId::CONTROL, &http(200));
    assert_eq!(counts(&stats), [(200, 3), (503, 1)]);

    let (_, total) = &stats.totals()[0];
    assert_eq!(total.request_bytes.count(), 3);
    assert_eq!(
        total
            .request_bytes
            .sum(super::super::histogram::Unit::Bytes),
        30.0
    );
    assert_eq!(
        total
            .response_bytes
            .sum(super::super::histogram::Unit::Bytes),
        600.0
    );
    assert_eq!(
        total
            .duration
            .sum(super::super::histogram::Unit::Microseconds),
        9.0
    );
}

#[test]
fn grpc_statuses_and_messages_are_counted() {
    let stats = stats(1);
    stats.record(WorkerId(0), &grpc(Some(0)));
    stats.record(WorkerId(0), &grpc(Some(14)));
    stats.record(WorkerId(0), &grpc(Some(14)));
    stats.record(WorkerId(0), &grpc(None));
    let totals = stats.totals();
    let seen: Vec<_> = totals
        .iter()
        .map(|(variant, total)| {
            (
                variant.grpc_status(),
                total.request_messages,
                total.response_messages,
            )
        })
        .collect();
    assert_eq!(seen, [(None, 2, 3), (Some(0), 2, 3), (Some(14), 4, 6)]);
}

#[test]
fn messages_of_plain_http_are_not_counted() {
    let stats = stats(1);
    stats.record(
        WorkerId(0),
        &RequestRecord {
            request_messages: 9,
            ..http(200)
        },
    );
    assert_eq!(stats.totals()[0].1.request_messages, 0);
}

#[test]
fn an_unused_handle_holds_no_cells() {
    let stats = stats(4);
    assert!(!stats.is_used());
    assert!(stats.totals().is_empty());
    stats.record(WorkerId(3), &http(200));
    assert!(stats.is_used());
    assert_eq!(
        stats
            .workers
            .iter()
            .filter(|worker| worker.get().is_some())
            .count(),
        1
    );
}

#[test]
fn unknown_codes_share_one_overflow_cell() {
    let stats = stats(1);
    let codes = 2 * VARIANTS_MAX as u16;
    for code in 0..codes {
        stats.record(WorkerId(0), &http(code));
    }
    let totals = stats.totals();
    assert_eq!(totals.len(), VARIANTS_MAX + 1);
    let (last, overflow) = totals.last().expect("the overflow cell sorts last");
    assert_eq!(*last, Variant::OVERFLOW);
    assert_eq!(
        overflow.duration.count(),
        u64::from(codes) - VARIANTS_MAX as u64
    );
    let all: u64 = totals.iter().map(|(_, total)| total.duration.count()).sum();
    assert_eq!(all, u64::from(codes));

    // a variant with a cell of its own keeps it
    stats.record(WorkerId(0), &http(0));
    assert_eq!(counts(&stats)[0], (0, 2));
}

#[test]
fn threads_without_a_worker_share_one_exact_table() {
    let stats = stats(1);
    std::thread::scope(|scope| {
        for thread in 0..4_u16 {
            let stats = &stats;
            scope.spawn(move || {
                for count in 0..4_000 {
                    // each thread records the codes in another order, so that they race for slots
                    stats.record(WorkerId::CONTROL, &http((count + thread * 5) % 20));
                }
            });
        }
    });
    let counts = counts(&stats);
    assert_eq!(counts.len(), 20, "a code has one cell only");
    assert!(counts.iter().all(|(_, count)| *count == 800), "{counts:?}");
}

#[test]
fn counts_never_decrease_during_concurrent_scrapes() {
    const EACH: u64 = 20_000;
    let stats = stats(2);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers = [0, 1].map(|worker| {
            let stats = &stats;
            scope.spawn(move || {
                for count in 0..EACH {
                    stats.record(WorkerId(worker), &http(200 + (count % 30) as u16));
                }
            })
        });
        scope.spawn(|| {
            let mut last = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let now = counts(&stats);
                for (code, before) in &last {
                    let found = now.iter().find(|(other, _)| other == code);
                    assert!(
                        found.is_some_and(|(_, count)| count >= before),
                        "{code} went backwards"
                    );
                }
                last = now;
            }
        });
        for writer in writers {
            writer.join().expect("writer");
        }
        done.store(true, Ordering::Relaxed);
    });
    let counts = counts(&stats);
    assert_eq!(counts.len(), 30);
    assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), 2 * EACH);
}
