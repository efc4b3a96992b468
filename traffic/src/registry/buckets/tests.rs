use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;

/// Returns the time after this number of seconds.
fn at(seconds: u64) -> Instant {
    thread_local!(static START: Instant = Instant::now());
    START.with(|start| *start + Duration::from_secs(seconds))
}

fn wait(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

#[test]
fn bucket_is_refilled_continuously() {
    let rate = Rate::new(2, Duration::from_secs(1));
    let bucket = Bucket::default();
    let denied = |left, nanos| {
        Err(Exhausted {
            left,
            wait: wait(nanos),
        })
    };
    let cases = [
        (0, 1, Ok(())),
        (0, 1, Ok(())),
        (0, 1, denied(0, SECOND / 2)),
        (SECOND / 4, 1, denied(0, SECOND / 4)),
        (SECOND / 2, 1, Ok(())),
        (SECOND / 2, 1, denied(0, SECOND / 2)),
        (SECOND, 2, denied(1, SECOND / 2)),
        (SECOND, 0, Ok(())),
        (SECOND, 1, Ok(())),
        (SECOND, 0, denied(0, SECOND / 2)),
        // full again, and not more than full
        (10 * SECOND, 2, Ok(())),
        (10 * SECOND, 1, denied(0, SECOND / 2)),
        (20 * SECOND, 3, denied(2, SECOND / 2)),
    ];
    for (now, cost, expected) in cases {
        let now = 1_000 * SECOND + now;
        let result = bucket.take(rate, cost, now).map(drop);
        assert_eq!(result, expected, "{cost} at {now}");
    }
}

#[test]
fn limit_of_nothing_passes_nothing() {
    let bucket = Bucket::default();
    let rate = Rate::new(0, Duration::from_secs(1));
    let expected = Exhausted {
        left: 0,
        wait: wait(SECOND),
    };
    assert_eq!(bucket.take(rate, 1, 5).map(drop), Err(expected));
    assert_eq!(bucket.take(rate, 0, 5).map(drop), Err(expected));
}

#[test]
fn largest_limits_do_not_overflow() {
    for unit in [Duration::from_secs(1), Duration::from_secs(365 * 24 * 3600)] {
        for tokens in [1, u32::MAX] {
            let (rate, bucket) = (Rate::new(tokens, unit), Bucket::default());
            let now = 100 * 365 * 24 * 3600 * SECOND;
            assert!(bucket.take(rate, tokens, now).is_ok());
            assert!(bucket.take(rate, 1, now).is_err());
            assert!(bucket.take(rate, u32::MAX, now).is_err());
        }
    }
}

#[test]
fn tokens_are_put_back() {
    let buckets = Buckets::new(Rate::new(1, Duration::from_secs(1)));
    for key in [None, Some(7)] {
        let taken = buckets.take(key, 1, at(1)).0.expect("it is full");
        assert!(buckets.take(key, 1, at(1)).0.is_err());
        buckets.put_back(key, taken);
        let taken = buckets.take(key, 1, at(1)).0.expect("it was put back");
        // others took some since
        let _ = buckets.take(key, 1, at(2)).0.expect("it is full again");
        buckets.put_back(key, taken);
        assert!(buckets.take(key, 1, at(2)).0.is_err());
    }
}

#[test]
fn keys_have_buckets_of_their_own() {
    let buckets = Buckets::new(Rate::new(1, Duration::from_secs(1)));
    for key in 0..3 {
        assert!(buckets.take(Some(key), 1, at(1)).0.is_ok());
        assert!(buckets.take(Some(key), 1, at(1)).0.is_err());
    }
    assert_eq!(buckets.keys(), 3);
}

#[test]
fn keys_beyond_the_maximum_share_a_bucket() {
    let buckets = Buckets::new(Rate::new(2, Duration::from_secs(1)));
    let most = BUCKETS_MAX as u64;
    for key in 0..most {
        assert!(buckets.take(Some(key), 1, at(1)).0.is_ok());
    }
    let results: Vec<_> = (most..most + 3)
        .map(|key| buckets.take(Some(key), 1, at(1)))
        .map(|(result, is_shared)| (result.is_ok(), is_shared))
        .collect();
    assert_eq!(results, [(true, true), (true, true), (false, true)]);
    // known keys keep theirs
    assert!(buckets.take(Some(1), 1, at(1)).0.is_ok());
    assert_eq!(buckets.keys(), BUCKETS_MAX);
    // full buckets make room
    let later = at(2);
    let (result, is_shared) = buckets.take(Some(most), 1, later);
    assert!(result.is_ok() && !is_shared);
    assert!(buckets.keys() < BUCKETS_MAX);
}

proptest! {
    /// In each stretch of time, a bucket yields at most what it holds and what flows in.
    #[test]
    fn rate_is_never_exceeded(
        tokens in 1_u32..20,
        steps in proptest::collection::vec((0_u64..SECOND / 4, 0_u32..4), 1..200),
    ) {
        let (rate, bucket) = (Rate::new(tokens, Duration::from_secs(1)), Bucket::default());
        let mut now = SECOND;
        let mut taken: Vec<(u64, u64)> = Vec::new();
        for (pause, cost) in steps {
            now += pause;
            if bucket.take(rate, cost, now).is_ok() {
                taken.push((now, cost.into()));
            }
        }
        for (first, (from, _)) in taken.iter().enumerate() {
            let mut sum = 0;
            for (at, cost) in &taken[first..] {
                sum += cost;
                let flown = (at - from) * u64::from(tokens) / SECOND;
                prop_assert!(sum <= u64::from(tokens) + flown + 1, "{sum} from {from} to {at}");
            }
        }
    }

    /// Without idle time nothing is lost: what is denied is denied because the tokens were taken.
    #[test]
    fn tokens_are_conserved(
        costs in proptest::collection::vec((1_u32..4, any::<bool>()), 1..100),
    ) {
        let (rate, bucket) = (Rate::new(50, Duration::from_secs(1)), Bucket::default());
        let mut spent = 0;
        for (cost, puts_back) in costs {
            match bucket.take(rate, cost, SECOND) {
                Ok(taken) if puts_back => bucket.put_back(taken),
                Ok(_) => spent += cost,
                Err(exhausted) => {
                    prop_assert!(spent + cost > 50);
                    prop_assert_eq!(exhausted.left, u64::from(50 - spent));
                }
            }
        }
        prop_assert!(spent <= 50);
    }
}
