//! What is counted during a run.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use http::HeaderName;

use super::outcome::{FailureClass, Sample};

/// Values of the counted header that have a count of their own.
pub const DESTINATIONS_MAX: usize = 1_000;

/// Bytes of such a value that are kept.
const DESTINATION_BYTES_MAX: usize = 200;

/// Where responses without the header are counted.
pub const NO_DESTINATION: &str = "(none)";

/// Where responses are counted after [`DESTINATIONS_MAX`] values.
pub const OTHER_DESTINATIONS: &str = "(others)";

/// The longest time that is told from longer ones, in us.
const MICROS_MAX: u64 = 3_600_000_000;

/// Times with three significant digits, in us.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, MICROS_MAX, 3).expect("the bounds are in order")
}

fn add(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
}

/// Everything that was counted.
#[derive(Clone, Debug)]
pub struct Record {
    /// Requests with an outcome.
    pub requests: u64,
    /// Failures by class.
    pub failures: BTreeMap<FailureClass, u64>,
    /// For each class the first reason that was seen.
    pub reasons: BTreeMap<FailureClass, String>,
    /// Complete responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Responses by the value of the counted header.
    pub destinations: BTreeMap<String, u64>,
    /// Bytes of complete bodies.
    pub body_bytes: u64,
    /// From the due time to the end of the response. Requests that timed out are in it with the time that they
    /// waited; other failures are not, since a quick error would make the figures look better.
    pub latency: Histogram<u64>,
    /// How late this program was by itself.
    pub late: Histogram<u64>,
    /// How long requests waited for a free connection.
    pub waited: Histogram<u64>,
    counted: Option<HeaderName>,
}

impl Record {
    /// An empty record. Responses are counted by the value of a header, if one is named.
    pub fn new(counted: Option<HeaderName>) -> Self {
        Self {
            requests: 0,
            failures: BTreeMap::new(),
            reasons: BTreeMap::new(),
            statuses: BTreeMap::new(),
            destinations: BTreeMap::new(),
            body_bytes: 0,
            latency: histogram(),
            late: histogram(),
            waited: histogram(),
            counted,
        }
    }

    /// Counts the outcome of a request.
    pub fn add(&mut self, sample: &Sample) {
        self.requests += 1;
        add(&mut self.late, sample.late);
        add(&mut self.waited, sample.waited);
        if let Some(fault) = &sample.fault {
            *self.failures.entry(fault.class).or_default() += 1;
            self.reasons
                .entry(fault.class)
                .or_insert_with(|| fault.reason.clone());
        }
        if has_latency(sample) {
            add(&mut self.latency, sample.latency);
        }
        let Some(reply) = &sample.reply else { return };
        *self.statuses.entry(reply.status.as_u16()).or_default() += 1;
        self.body_bytes += reply.body_bytes;
        if let Some(name) = &self.counted {
            let value = reply.headers.get(name).map(|value| value.as_bytes());
            count(&mut self.destinations, value, 1);
        }
    }

    /// Adds what another thread counted.
    pub fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.body_bytes += other.body_bytes;
        for (class, count) in &other.failures {
            *self.failures.entry(*class).or_default() += count;
        }
        for (class, reason) in &other.reasons {
            self.reasons.entry(*class).or_insert_with(|| reason.clone());
        }
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        for (value, more) in &other.destinations {
            count(&mut self.destinations, Some(value.as_bytes()), *more);
        }
        for (own, others) in [
            (&mut self.latency, &other.latency),
            (&mut self.late, &other.late),
            (&mut self.waited, &other.waited),
        ] {
            own.add(others)
                .expect("all histograms have the same bounds");
        }
    }

    /// Requests that failed.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Requests with the response that was expected.
    pub fn succeeded(&self) -> u64 {
        self.requests - self.failed()
    }

    /// The header by whose value responses are counted.
    pub fn counted(&self) -> Option<&HeaderName> {
        self.counted.as_ref()
    }
}

/// Whether the latency of a request counts: it succeeded, or it waited without a response.
pub fn has_latency(sample: &Sample) -> bool {
    let class = sample.fault.as_ref().map(|fault| fault.class);
    matches!(
        class,
        None | Some(FailureClass::Timeout | FailureClass::NotSent)
    )
}

fn count(destinations: &mut BTreeMap<String, u64>, value: Option<&[u8]>, more: u64) {
    let value = value.map(|value| &value[..value.len().min(DESTINATION_BYTES_MAX)]);
    let value = value.map_or(NO_DESTINATION.into(), String::from_utf8_lossy);
    if let Some(count) = destinations.get_mut(&*value) {
        *count += more;
    } else if destinations.len() < DESTINATIONS_MAX {
        destinations.insert(value.into_owned(), more);
    } else {
        *destinations
            .entry(OTHER_DESTINATIONS.to_owned())
            .or_default() += more;
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::load::outcome::{Fault, Reply};
    use http::{HeaderMap, StatusCode};

    /// A request that was answered after this many us, by this zone.
    pub(crate) fn answered(micros: u64, zone: &str) -> Sample {
        let mut headers = HeaderMap::new();
        headers.insert("x-zone", zone.parse().unwrap());
        Sample {
            due: Duration::ZERO,
            late: Duration::from_micros(10),
            waited: Duration::ZERO,
            latency: Duration::from_micros(micros),
            reply: Some(Reply {
                status: StatusCode::OK,
                headers,
                trailers: None,
                body_bytes: 128,
                prefix: [0; 5],
            }),
            fault: None,
        }
    }

    /// A request that failed after this many us.
    pub(crate) fn failed(micros: u64, class: FailureClass, reason: &str) -> Sample {
        Sample {
            reply: None,
            fault: Some(Fault::new(class, reason)),
            ..answered(micros, "a")
        }
    }

    fn record(samples: &[Sample]) -> Record {
        let mut record = Record::new(Some(HeaderName::from_static("x-zone")));
        samples.iter().for_each(|sample| record.add(sample));
        record
    }

    #[test]
    fn quick_failure_has_no_latency_and_a_timeout_has() {
        let record = record(&[
            answered(300, "a"),
            failed(5, FailureClass::Connect, "refused"),
            failed(2_000_000, FailureClass::Timeout, "late"),
        ]);
        assert_eq!(
            (record.requests, record.succeeded(), record.failed()),
            (3, 1, 2)
        );
        assert_eq!(record.latency.len(), 2);
        assert_eq!(record.latency.min(), 300);
        assert!(record.latency.max() >= 2_000_000);
        assert_eq!(record.late.len(), 3);
    }

    #[test]
    fn records_of_threads_add_up() {
        let mut one = record(&[answered(100, "a"), failed(1, FailureClass::Reset, "first")]);
        let two = record(&[
            answered(200, "a"),
            answered(300, "b"),
            failed(1, FailureClass::Reset, "second"),
        ]);
        one.merge(&two);
        assert_eq!(
            one.destinations,
            [("a".to_owned(), 2), ("b".to_owned(), 1)].into()
        );
        assert_eq!(one.failures, [(FailureClass::Reset, 2)].into());
        assert_eq!(one.reasons[&FailureClass::Reset], "first");
        assert_eq!((one.latency.len(), one.body_bytes), (3, 3 * 128));
        assert_eq!(one.statuses, [(200, 3)].into());
    }

    #[test]
    fn response_without_the_counted_header_is_counted_apart() {
        let mut sample = answered(1, "a");
        sample.reply.as_mut().unwrap().headers.clear();
        assert_eq!(
            record(&[sample]).destinations,
            [(NO_DESTINATION.to_owned(), 1)].into()
        );
    }

    #[test]
    fn destinations_are_limited() {
        let names = (0..=DESTINATIONS_MAX).map(|number| number.to_string());
        let samples: Vec<_> = names.map(|name| answered(1, &name)).collect();
        let record = record(&samples);
        assert_eq!(record.destinations[OTHER_DESTINATIONS], 1);
        assert_eq!(
            record.destinations.values().sum::<u64>(),
            samples.len() as u64
        );
    }
}
