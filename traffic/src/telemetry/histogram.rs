//! Histograms, by default with the buckets of Istio and Envoy.
//!
//! Uses the single-writer update of cells. The count is the sum of the buckets, so that a scrape never sees them
//! disagree.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::cells::{Writers, bump};

/// Upper bounds of the buckets below `+Inf`: milliseconds for durations, bytes for sizes.
pub const BUCKET_BOUNDS: [f64; 19] = [
    0.5,
    1.0,
    5.0,
    10.0,
    25.0,
    50.0,
    100.0,
    250.0,
    500.0,
    1_000.0,
    2_500.0,
    5_000.0,
    10_000.0,
    30_000.0,
    60_000.0,
    300_000.0,
    600_000.0,
    1_800_000.0,
    3_600_000.0,
];

const BUCKETS: usize = BUCKET_BOUNDS.len() + 1;

/// Unit of a histogram's integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes; exposed as bytes.
    Bytes,
    /// Microseconds; exposed as milliseconds. Finer than Envoy, which drops the fraction, so that requests below a
    /// millisecond have a sum and the 0.5 ms bucket is used.
    Microseconds,
}

/// One histogram of one worker.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum: AtomicU64,
}

impl Histogram {
    /// Adds a number of bytes.
    pub fn observe_bytes(&self, bytes: u64, writers: Writers) {
        bump(&self.buckets[BYTES.bucket(bytes)], 1, writers);
        bump(&self.sum, bytes, writers);
    }

    /// Adds a duration.
    pub fn observe_duration(&self, duration: Duration, bounds: &DurationBounds, writers: Writers) {
        bump(&self.buckets[bounds.bucket(duration)], 1, writers);
        bump(&self.sum, micros(duration), writers);
    }

    /// Adds this histogram to a total.
    pub fn add_to(&self, total: &mut HistogramTotal) {
        for (bucket, sum) in self.buckets.iter().zip(&mut total.buckets) {
            *sum += bucket.load(Ordering::Relaxed);
        }
        total.sum = total.sum.wrapping_add(self.sum.load(Ordering::Relaxed));
    }
}

/// Buckets of durations.
#[derive(Debug)]
pub struct DurationBounds {
    /// Upper bounds below `+Inf`, in milliseconds.
    millis: Box<[f64]>,
    micros: Buckets,
}

impl DurationBounds {
    /// Makes buckets with these upper bounds in milliseconds; `None` unless they are 1 to 19 rising numbers above 0.
    pub fn new(millis: &[f64]) -> Option<Self> {
        let is_rising = millis.windows(2).all(|pair| pair[0] < pair[1]);
        let are_positive = millis.iter().all(|bound| bound.is_finite() && *bound > 0.0);
        if millis.is_empty() || millis.len() >= BUCKETS || !is_rising || !are_positive {
            return None;
        }
        // no duration is above the bounds that are left over
        let mut micros = [u64::MAX; BUCKETS - 1];
        for (bound, millis) in micros.iter_mut().zip(millis) {
            *bound = (millis * 1_000.0) as u64;
        }
        Some(Self {
            millis: millis.into(),
            micros: Buckets::of(micros),
        })
    }

    /// Upper bounds below `+Inf`, in milliseconds.
    pub fn millis(&self) -> &[f64] {
        &self.millis
    }

    /// Returns the number of the bucket of a duration.
    pub(super) fn bucket(&self, duration: Duration) -> usize {
        self.micros.bucket(micros(duration))
    }
}

impl Default for DurationBounds {
    fn default() -> Self {
        Self::new(&BUCKET_BOUNDS).expect("the default bounds rise")
    }
}

/// Returns a duration in microseconds; 64 bits of them last for half a million years.
fn micros(duration: Duration) -> u64 {
    duration.as_secs() * 1_000_000 + u64::from(duration.subsec_micros())
}

/// Histograms of several workers added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistogramTotal {
    buckets: [u64; BUCKETS],
    sum: u64,
}

impl HistogramTotal {
    /// Number of observed values.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Sum of the values in the unit of exposition.
    pub fn sum(&self, unit: Unit) -> f64 {
        match unit {
            Unit::Bytes => self.sum as f64,
            Unit::Microseconds => self.sum as f64 / 1_000.0,
        }
    }

    /// Adds the values of another one.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *count += more;
        }
        self.sum += other.sum;
    }

    /// Upper bounds with the number of values up to each bound, without `+Inf`.
    pub fn cumulative(&self, bounds: &[f64]) -> impl Iterator<Item = (f64, u64)> {
        let mut below = 0;
        bounds.iter().zip(&self.buckets).map(move |(bound, count)| {
            below += count;
            (*bound, below)
        })
    }
}

/// Lookup of buckets: the bit length of a value gives the first candidate, and few bounds lie between two powers of
/// two.
#[derive(Debug)]
struct Buckets {
    /// Largest integer of each bucket.
    bounds: [u64; BUCKETS - 1],
    /// First candidate by bit length: the bucket of the smallest value with that length.
    first: [u8; 65],
}

static BYTES: Buckets = Buckets::of_bytes();

impl Buckets {
    const fn of_bytes() -> Self {
        let mut bounds = [0; BUCKETS - 1];
        let mut index = 0;
        while index < bounds.len() {
            // truncation is right: the integers up to 0.5 are those up to 0
            bounds[index] = BUCKET_BOUNDS[index] as u64;
            index += 1;
        }
        Self::of(bounds)
    }

    const fn of(bounds: [u64; BUCKETS - 1]) -> Self {
        let mut first = [0; 65];
        let mut bits = 1;
        while bits < first.len() {
            let smallest = 1_u64 << (bits - 1);
            let mut bucket = first[bits - 1];
            while (bucket as usize) < bounds.len() && bounds[bucket as usize] < smallest {
                bucket += 1;
            }
            first[bits] = bucket;
            bits += 1;
        }
        Self { bounds, first }
    }

    /// The first bucket whose bound is at least `value`; the last one is `+Inf`.
    fn bucket(&self, value: u64) -> usize {
        let bits = (u64::BITS - value.leading_zeros()) as usize;
        let mut bucket = usize::from(self.first[bits]);
        while self.bounds.get(bucket).is_some_and(|bound| *bound < value) {
            bucket += 1;
        }
        bucket
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition of the exposition format: the first bound that is not below the value.
    fn slow_bucket(value: f64) -> usize {
        BUCKET_BOUNDS
            .iter()
            .position(|bound| value <= *bound)
            .unwrap_or(BUCKETS - 1)
    }

    #[test]
    fn values_at_and_around_each_bound_fall_into_the_right_bucket() {
        for bound in BYTES.bounds {
            for value in [bound.saturating_sub(1), bound, bound + 1] {
                assert_eq!(
                    BYTES.bucket(value),
                    slow_bucket(value as f64),
                    "{value} bytes"
                );
            }
        }
        let durations = DurationBounds::default();
        for bound in durations.micros.bounds {
            for value in [bound - 1, bound, bound + 1] {
                let expected = slow_bucket(value as f64 / 1_000.0);
                let bucket = durations.bucket(Duration::from_micros(value));
                assert_eq!(bucket, expected, "{value} microseconds");
            }
        }
        assert_eq!(BYTES.bucket(0), 0);
        assert_eq!(BYTES.bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn totals_are_cumulative_and_include_values_above_the_last_bound() {
        let histogram = Histogram::default();
        for micros in [400, 500, 501, 1_000, 4_999_000, 7_200_000_000] {
            let duration = Duration::from_micros(micros);
            histogram.observe_duration(duration, &DurationBounds::default(), Writers::One);
        }
        let mut total = HistogramTotal::default();
        histogram.add_to(&mut total);
        let cumulative: Vec<_> = total.cumulative(&BUCKET_BOUNDS).collect();
        assert_eq!(cumulative[0], (0.5, 2));
        assert_eq!(cumulative[1], (1.0, 4));
        assert_eq!(cumulative[10], (2_500.0, 4));
        assert_eq!(cumulative[11], (5_000.0, 5));
        assert_eq!(cumulative.last(), Some(&(3_600_000.0, 5)));
        assert_eq!(total.count(), 6);
        assert!((total.sum(Unit::Microseconds) - 7_205_001.401).abs() < 1e-6);
    }

    #[test]
    fn bounds_of_durations_may_be_others() {
        let bounds = DurationBounds::new(&[2.0, 40.0]).unwrap();
        let histogram = Histogram::default();
        for millis in [1, 2, 3, 41, 4_000_000] {
            histogram.observe_duration(Duration::from_millis(millis), &bounds, Writers::One);
        }
        let mut total = HistogramTotal::default();
        histogram.add_to(&mut total);
        let cumulative: Vec<_> = total.cumulative(bounds.millis()).collect();
        assert_eq!(cumulative, [(2.0, 2), (40.0, 3)]);
        assert_eq!(total.count(), 5);
        for wrong in [&[][..], &[0.0], &[2.0, 1.0], &[f64::NAN], &[1.0; 2]] {
            assert!(DurationBounds::new(wrong).is_none(), "{wrong:?}");
        }
        let many: Vec<f64> = (1..=20).map(f64::from).collect();
        assert!(DurationBounds::new(&many[..19]).is_some());
        assert!(DurationBounds::new(&many).is_none());
    }

    #[test]
    fn buckets_of_workers_are_summed() {
        let (one, two) = (Histogram::default(), Histogram::default());
        one.observe_bytes(0, Writers::One);
        two.observe_bytes(7, Writers::Many);
        let mut total = HistogramTotal::default();
        one.add_to(&mut total);
        two.add_to(&mut total);
        assert_eq!(total.count(), 2);
        assert_eq!(total.sum(Unit::Bytes), 7.0);
        assert_eq!(total.cumulative(&BUCKET_BOUNDS).nth(2), Some((5.0, 1)));
    }

    proptest! {
        #[test]
        fn buckets_agree_with_the_definition(value in 0_u64..5_000_000_000) {
            prop_assert_eq!(BYTES.bucket(value), slow_bucket(value as f64));
            let bucket = DurationBounds::default().bucket(Duration::from_micros(value));
            prop_assert_eq!(bucket, slow_bucket(value as f64 / 1_000.0));
        }
    }
}
