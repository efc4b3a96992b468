use std::time::Duration;

use super::super::labels::{RequestLabels, Service, Workload};
use super::super::requests::{RequestProtocol, RequestRecord, Security};
use super::*;
use crate::telemetry::ResponseFlags;

const WORKER: WorkerId = WorkerId(0);

fn base() -> Arc<RequestStats> {
    let labels = RequestLabels {
        reporter: Reporter::Source,
        source: Arc::new(Workload::default()),
        destination: Arc::new(Workload::default()),
        service: Arc::new(Service::default()),
    };
    Arc::new(RequestStats::new(labels, 1, &Arc::default()))
}

fn names() -> Arc<TagNames> {
    Arc::new(TagNames::new(vec!["request.host".into()]))
}

fn count(table: &mut TagTable, base: &Arc<RequestStats>, now: Instant, value: &str) {
    let record = RequestRecord {
        code: 200,
        flags: ResponseFlags::NONE,
        protocol: RequestProtocol::Http,
        grpc_status: None,
        security: Security::Unknown,
        duration: Duration::ZERO,
        request_bytes: 0,
        response_bytes: 0,
        request_messages: 0,
        response_messages: 0,
        trace: None,
    };
    let print = |_: usize, out: &mut Vec<u8>| {
        let is_there = value != "-";
        if is_there {
            out.extend_from_slice(value.as_bytes());
        }
        is_there
    };
    let found = table.find(base, &names(), now, print);
    found.record(WORKER, &record);
}

/// Requests by value, sorted.
fn counts(base: &RequestStats) -> Vec<(String, u64)> {
    let count = |stats: &Arc<RequestStats>| {
        let value = stats.values().unwrap().value("request.host").to_owned();
        let totals = stats.totals();
        let count = totals.iter().map(|(_, total)| total.duration.count()).sum();
        (value, count)
    };
    let mut counts: Vec<_> = base.all_tagged().iter().map(count).collect();
    counts.sort_unstable();
    counts
}

fn table(guard: &Arc<TagGuard>, limit: usize) -> TagTable {
    TagTable::new(Arc::clone(guard), WORKER, limit)
}

fn owned(counts: &[(&str, u64)]) -> Vec<(String, u64)> {
    let owned = counts
        .iter()
        .map(|(value, count)| ((*value).to_owned(), *count));
    owned.collect()
}

#[test]
fn values_beyond_the_limit_are_other_and_the_sum_is_kept() {
    let (guard, base, now) = (Arc::new(TagGuard::new(1)), base(), Instant::now());
    let mut table = table(&guard, 2);
    for value in ["a", "b", "c", "a", "d", "c"] {
        // new values of each second
        let now = now + Duration::from_secs(value.as_bytes()[0].into());
        count(&mut table, &base, now, value);
    }
    assert_eq!(counts(&base), owned(&[("a", 2), ("b", 1), ("other", 3)]));
    assert_eq!(guard.overflowed(Reporter::Source), 3);
    assert_eq!(guard.overflowed(Reporter::Destination), 0);
}

#[test]
fn value_that_is_not_used_makes_room_for_a_new_one_only() {
    let (guard, base, start) = (Arc::new(TagGuard::new(1)), base(), Instant::now());
    let mut table = table(&guard, 2);
    count(&mut table, &base, start, "a");
    count(&mut table, &base, start, "b");
    let later = start + RETENTION - Duration::from_secs(1);
    count(&mut table, &base, later, "b");
    count(&mut table, &base, later, "c");
    let expected = owned(&[("a", 1), ("b", 2), ("other", 1)]);
    assert_eq!(counts(&base), expected, "a stays for the whole time");
    let after = start + RETENTION;
    assert_eq!(counts(&base), expected);
    count(&mut table, &base, after, "c");
    assert_eq!(counts(&base), owned(&[("b", 2), ("c", 1), ("other", 1)]));
    // the worker does not count on in what was let go
    count(&mut table, &base, after + RETENTION, "a");
    assert_eq!(counts(&base), owned(&[("a", 1), ("other", 1)]));
}

#[test]
fn workers_share_values_and_label_sets_have_their_own() {
    let guard = Arc::new(TagGuard::new(2));
    let (now, first, second) = (Instant::now(), base(), base());
    for _ in 0..2 {
        let mut table = table(&guard, 1);
        count(&mut table, &first, now, "a");
        count(&mut table, &second, now + Duration::from_secs(1), "a");
    }
    assert_eq!(counts(&first), owned(&[("a", 2)]));
    assert_eq!(counts(&second), owned(&[("a", 2)]));
}

#[test]
fn lookups_of_new_values_are_limited_per_second() {
    let (guard, base, now) = (Arc::new(TagGuard::new(1)), base(), Instant::now());
    let mut table = table(&guard, 200);
    // another worker has most of the places
    for number in 0..300_u32 {
        count(&mut table, &base, now, &number.to_string());
    }
    assert_eq!(counts(&base).len(), 201);
    assert_eq!(table.left, 0);
    count(&mut table, &base, now + Duration::from_secs(1), "new");
    assert_eq!(table.left, NEW_PER_SECOND - 1);
}

#[test]
fn values_are_short_and_printable() {
    let (guard, base, now) = (Arc::new(TagGuard::new(1)), base(), Instant::now());
    let mut table = table(&guard, 10);
    count(&mut table, &base, now, "-");
    count(&mut table, &base, now, "a\r\nb");
    count(&mut table, &base, now, &"x".repeat(500));
    table.find(&base, &names(), now, |_, out| {
        out.extend_from_slice(b"\xffz");
        true
    });
    let values: Vec<String> = counts(&base).into_iter().map(|(value, _)| value).collect();
    assert_eq!(values, ["_z", "a__b", "unknown", &"x".repeat(128)]);
}

#[test]
fn label_sets_of_the_process_are_limited() {
    let (guard, now) = (Arc::new(TagGuard::new(1)), Instant::now());
    let mut table = table(&guard, 10);
    guard.stats.store(STATS_MAX, Ordering::Relaxed);
    let base = base();
    count(&mut table, &base, now, "a");
    assert_eq!(counts(&base), owned(&[("other", 1)]));
    drop((base, table));
    assert_eq!(guard.stats.load(Ordering::Relaxed), STATS_MAX);
}
