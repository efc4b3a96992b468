//! Exemplars: for each bucket of a histogram of durations the newest request whose trace is sampled.
//!
//! One worker writes a slot, scrapes read it: a number that is odd during a write tells a reader to skip the slot.

use std::time::Duration;

use super::histogram::BUCKET_BOUNDS;
use crate::sync::{AtomicU64, Ordering, fence};

/// Number of slots: one per bucket.
const SLOTS: usize = BUCKET_BOUNDS.len() + 1;

/// Trace of a request, and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedRequest {
    /// Trace id.
    pub trace_id: [u8; 16],
    /// Id of the request's span.
    pub span_id: [u8; 8],
    /// End of the request, in milliseconds since 1970.
    pub ended_millis: u64,
}

/// Request as the example of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exemplar {
    /// The request's trace.
    pub request: TracedRequest,
    /// Duration of the request.
    pub duration: Duration,
}

/// Exemplars by bucket.
pub type ExemplarTotal = [Option<Exemplar>; SLOTS];

/// Exemplars of one worker in one label set.
#[derive(Debug, Default)]
pub(super) struct Exemplars {
    slots: [Slot; SLOTS],
}

#[derive(Debug, Default)]
struct Slot {
    /// Number of writes that began or ended; 0 for an empty slot.
    version: AtomicU64,
    words: [AtomicU64; 5],
}

impl Exemplars {
    /// Replaces the exemplar of a bucket, into which the duration falls. Only one thread may call this.
    pub(super) fn set(&self, bucket: usize, request: &TracedRequest, duration: Duration) {
        self.slots[bucket].write(request, duration);
    }

    /// Adds the exemplars that are newer than those of a total.
    pub(super) fn add_to(&self, total: &mut ExemplarTotal) {
        for (slot, newest) in self.slots.iter().zip(total) {
            add(newest, slot.read());
        }
    }
}

impl Slot {
    fn write(&self, request: &TracedRequest, duration: Duration) {
        let trace = u128::from_be_bytes(request.trace_id);
        let words = [
            (trace >> 64) as u64,
            trace as u64,
            u64::from_be_bytes(request.span_id),
            u64::try_from(duration.as_micros()).unwrap_or(u64::MAX),
            request.ended_millis,
        ];
        let version = self.version.load(Ordering::Relaxed);
        self.version
            .store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        for (word, value) in self.words.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
        self.version
            .store(version.wrapping_add(2), Ordering::Release);
    }

    /// The exemplar; `None` if there is none, or it is being replaced.
    fn read(&self) -> Option<Exemplar> {
        let version = self.version.load(Ordering::Acquire);
        if version == 0 || !version.is_multiple_of(2) {
            return None;
        }
        let words = [0, 1, 2, 3, 4].map(|index: usize| self.words[index].load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        if self.version.load(Ordering::Relaxed) != version {
            return None;
        }
        let [high, low, span, micros, ended_millis] = words;
        let trace = u128::from(high) << 64 | u128::from(low);
        Some(Exemplar {
            request: TracedRequest {
                trace_id: trace.to_be_bytes(),
                span_id: span.to_be_bytes(),
                ended_millis,
            },
            duration: Duration::from_micros(micros),
        })
    }
}

/// Replaces an exemplar by a newer one.
pub(super) fn add(newest: &mut Option<Exemplar>, other: Option<Exemplar>) {
    let ended = |one: &Option<Exemplar>| one.map(|one| one.request.ended_millis);
    if ended(&other) > ended(newest) {
        *newest = other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(number: u64) -> TracedRequest {
        TracedRequest {
            trace_id: (u128::from(number) << 64 | u128::from(number)).to_be_bytes(),
            span_id: number.to_be_bytes(),
            ended_millis: number,
        }
    }

    #[test]
    fn newest_request_of_each_bucket_is_kept() {
        let (first, second) = (Exemplars::default(), Exemplars::default());
        let [short, long] = [1, 90].map(Duration::from_millis);
        first.set(1, &request(1), short);
        first.set(1, &request(2), short);
        second.set(6, &request(3), long);
        second.set(1, &request(1), short);
        let mut total = ExemplarTotal::default();
        first.add_to(&mut total);
        second.add_to(&mut total);
        let known: Vec<Exemplar> = total.into_iter().flatten().collect();
        let expected = [(2, short), (3, long)].map(|(number, duration)| Exemplar {
            request: request(number),
            duration,
        });
        assert_eq!(known, expected);
    }
}

#[cfg(all(test, feature = "models"))]
mod models {
    use std::sync::Arc;

    use super::*;

    fn request(number: u64) -> TracedRequest {
        TracedRequest {
            trace_id: u128::from(number).to_be_bytes(),
            span_id: number.to_be_bytes(),
            ended_millis: number,
        }
    }

    #[test]
    fn scrape_never_sees_half_of_a_request() {
        loom::model(|| {
            let slot = Arc::new(Slot::default());
            slot.write(&request(1), Duration::ZERO);
            let writer = Arc::clone(&slot);
            let writer = loom::thread::spawn(move || writer.write(&request(2), Duration::ZERO));
            let reader = Arc::clone(&slot);
            let reader = loom::thread::spawn(move || {
                if let Some(found) = reader.read() {
                    assert_eq!(found.request, request(found.request.ended_millis));
                }
            });
            writer.join().unwrap();
            reader.join().unwrap();
            assert_eq!(slot.read().map(|found| found.request), Some(request(2)));
        });
    }
}
