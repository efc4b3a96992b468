//! Counts and latency histograms of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use http::HeaderName;

use super::outcome::{FailureClass, Sample};

/// Maximum number of distinct values of the counted header.
pub const DESTINATIONS_MAX: usize = 1_000;

/// Maximum length of such a value, in bytes; longer ones are cut.
const DESTINATION_BYTES_MAX: usize = 200;

/// Key for responses without the counted header.
pub const NO_DESTINATION: &str = "(none)";

/// Key for responses with further values after [`DESTINATIONS_MAX`] of them.
pub const OTHER_DESTINATIONS: &str = "(others)";

/// Maximum of the histograms, in us; longer times are counted as this one.
const MICROS_MAX: u64 = 3_600_000_000;

/// Creates a histogram of times in us, with three significant digits.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, MICROS_MAX, 3).expect("the bounds are in order")
}

fn add(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
}

/// Counts and histograms of a run.
#[derive(Clone, Debug)]
pub struct Record {
    /// Number of completed requests, including failed ones.
    pub requests: u64,
    /// Number of failures by class.
    pub failures: BTreeMap<FailureClass, u64>,
    /// First reason by failure class.
    pub reasons: BTreeMap<FailureClass, String>,
    /// Number of complete responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Number of responses by value of the counted header.
    pub destinations: BTreeMap<String, u64>,
    /// Bytes of all complete bodies.
    pub body_bytes: u64,
    /// Latency in us, from the due time to the end of the response. Requests that timed out are included with the time
    /// that they waited; other failures are not, since a quick error would improve the figures.
    pub latency: Histogram<u64>,
    /// Delays of the generator itself before sending, in us.
    pub late: Histogram<u64>,
    /// Times that requests waited for a free connection, in us.
    pub waited: Histogram<u64>,
    counted: Option<HeaderName>,
}

impl Record {
    /// Creates an empty record. Responses are counted by the value of a header, if one is named.
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

    /// Adds the counts of another thread.
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

    /// Returns the number of failed requests.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Returns the number of requests with the expected response.
    pub fn succeeded(&self) -> u64 {
        self.requests - self.failed()
    }

    /// Returns the header by whose value responses are counted.
    pub fn counted(&self) -> Option<&HeaderName> {
        self.counted.as_ref()
    }
}

/// Whether the latency of a request counts: it succeeded, or it timed out.
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

    /// Creates the sample of a request that `zone` answered after this many us.
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

    /// Creates the sample of a request that failed after this many us.
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
