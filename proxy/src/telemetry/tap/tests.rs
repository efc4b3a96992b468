use std::task::Waker;

use http::HeaderMap;

use super::*;

fn head<'a>(headers: &'a HeaderMap, path: &'a str) -> TapHead<'a> {
    TapHead {
        authority: "a.test",
        path,
        method: "GET",
        headers,
        listener: &"0.0.0.0:80",
        port: 80,
    }
}

fn open(taps: &Taps, condition: &[&str], rate: &str) -> TapReader {
    let filter = TapFilter::parse(condition.iter().copied()).unwrap();
    taps.open(filter, tap_rate(rate).unwrap()).unwrap()
}

fn find(taps: &Taps, path: &str) -> (TapSet, u64) {
    taps.open_taps().load().find(&head(&HeaderMap::new(), path))
}

/// Offers a request to all taps that may show it.
fn offer(taps: &Taps, path: &str) -> Vec<Option<TapResult>> {
    let open = taps.open_taps().load_full();
    let (set, _) = open.find(&head(&HeaderMap::new(), path));
    let request = Arc::new(TappedRequest::default());
    open.of(set).map(|tap| tap.offer(&request)).collect()
}

#[test]
fn requests_go_to_the_taps_whose_filter_they_match() {
    let taps = Taps::default();
    assert!(taps.open_taps().load().is_empty());
    let all = open(&taps, &[], "50/s");
    let cart = open(&taps, &["path=/cart*"], "50/s");
    assert_eq!(offer(&taps, "/cart"), [Some(TapResult::Sent); 2]);
    assert_eq!(offer(&taps, "/"), [Some(TapResult::Sent)]);
    assert_eq!((all.counts().sent, cart.counts().sent), (2, 1));
    drop(all);
    assert!(find(&taps, "/").0.is_empty());
    drop(cart);
    assert!(taps.open_taps().load().is_empty());
}

#[test]
fn rate_is_taken_from_matching_requests_only() {
    let taps = Taps::default();
    let by_head = open(&taps, &["path=/cart"], "1/m");
    assert_eq!(offer(&taps, "/other"), []);
    assert_eq!(offer(&taps, "/cart"), [Some(TapResult::Sent)]);
    assert_eq!(find(&taps, "/cart"), (TapSet::default(), 1));
    assert_eq!((by_head.counts().sent, by_head.counts().over_rate), (1, 1));
    drop(by_head);
    let by_end = open(&taps, &["endpoint=none"], "1/m");
    assert_eq!(offer(&taps, "/cart"), [None]);
    assert_eq!(by_end.counts(), TapCounts::default());
    drop(by_end);
    let by_end = open(&taps, &["status=200"], "1/m");
    assert_eq!(offer(&taps, "/"), [Some(TapResult::Sent)]);
    assert_eq!(offer(&taps, "/"), [Some(TapResult::OverRate)]);
    assert_eq!(by_end.counts().over_rate, 1);
}

#[test]
fn slow_reader_costs_counted_drops_and_keeps_the_oldest() {
    let taps = Taps::default();
    let mut reader = open(&taps, &[], "10000/s");
    for _ in 0..TAP_QUEUE_MAX {
        assert_eq!(offer(&taps, "/"), [Some(TapResult::Sent)]);
    }
    assert_eq!(offer(&taps, "/"), [Some(TapResult::Dropped)]);
    assert_eq!(reader.counts().dropped, 1);
    let (mut requests, mut cx) = (Vec::new(), Context::from_waker(Waker::noop()));
    let taken = reader.poll(&mut cx, &mut requests, 10);
    assert_eq!((taken, requests.len()), (Poll::Ready(10), 10));
    assert_eq!(offer(&taps, "/"), [Some(TapResult::Sent)]);
}

#[test]
fn number_of_taps_is_limited() {
    let taps = Taps::default();
    let mut readers: Vec<_> = (0..TAPS_MAX).map(|_| open(&taps, &[], "1/s")).collect();
    let another = || taps.open(TapFilter::default(), tap_rate("1").unwrap());
    assert!(matches!(another(), Err(TooManyTaps)));
    readers.remove(3);
    let last = another().unwrap();
    assert_eq!(offer(&taps, "/").len(), TAPS_MAX);
    drop((readers, last));
    assert!(taps.open_taps().load().is_empty());
}

#[test]
fn request_that_outlives_a_tap_is_shown_to_the_others_only() {
    let taps = Taps::default();
    let (first, second) = (open(&taps, &[], "50/s"), open(&taps, &[], "50/s"));
    let open = taps.open_taps().load_full();
    let (set, _) = open.find(&head(&HeaderMap::new(), "/"));
    drop(first);
    let request = Arc::new(TappedRequest::default());
    let results: Vec<_> = open.of(set).map(|tap| tap.offer(&request)).collect();
    assert_eq!(results, [Some(TapResult::Closed), Some(TapResult::Sent)]);
    assert_eq!(second.counts().sent, 1);
}

#[test]
fn rates_are_per_second_or_minute() {
    for (text, tokens, seconds) in [("50/s", 50, 1), ("600/m", 600, 60), ("7", 7, 1)] {
        let rate = tap_rate(text).unwrap();
        assert_eq!(
            (rate.tokens, rate.unit.as_secs()),
            (tokens, seconds),
            "{text}"
        );
    }
    for wrong in ["", "0", "-1", "10001/s", "5/h", "x/s", "600001/m"] {
        assert!(tap_rate(wrong).is_err(), "{wrong}");
    }
}
