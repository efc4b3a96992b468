//! Limits of a run, and whether its figures can be trusted.

use std::time::Duration;

use super::percentiles::millis;
use super::quantity::FailureLimit;
use super::record::Record;

/// Minimum delay of the generator itself that is reported, in us.
const LATE_MICROS_MIN: u64 = 100;

/// Minimum delay that is reported, as a fraction of the measured latency: one in this many.
const LATE_PART: u64 = 4;

/// Limit with its measured value.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Name of the flag that set it, without dashes.
    pub name: &'static str,
    /// Limit, as text.
    pub limit: String,
    /// Measured value, as text.
    pub measured: String,
    /// Whether the limit is met.
    pub met: bool,
}

/// Compares a record with the limits that were set.
pub fn checks(
    record: &Record,
    max_p99: Option<Duration>,
    max_failures: Option<FailureLimit>,
) -> Vec<Check> {
    let p99 = max_p99.map(|limit| {
        let measured = record.latency.value_at_quantile(0.99);
        let some = !record.latency.is_empty();
        Check {
            name: "max_p99",
            limit: format!("{limit:?}"),
            measured: if some {
                format!("{} ms", millis(measured))
            } else {
                "nothing".to_owned()
            },
            // Without one response nothing shows that the limit holds.
            met: some && u128::from(measured) <= limit.as_micros(),
        }
    });
    let failures = max_failures.map(|limit| Check {
        name: "max_failures",
        limit: limit.to_string(),
        measured: record.failed().to_string(),
        met: limit.allows(record.failed(), record.requests),
    });
    p99.into_iter().chain(failures).collect()
}

/// Returns a warning if much of the latency is the generator's own delay, which must not be blamed on the proxy.
pub fn lateness(record: &Record) -> Option<String> {
    let late = record.late.value_at_quantile(0.99);
    let latency = record.latency.value_at_quantile(0.99);
    if late < LATE_MICROS_MIN || late * LATE_PART < latency {
        return None;
    }
    Some(format!(
        "the generator fell behind: 1 in 100 requests was sent {} ms late or later, and the p99 of {} ms includes \
         that; use more --threads, a lower --rate, or a machine with less other work",
        millis(late),
        millis(latency)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::outcome::{FailureClass, Sample};
    use crate::load::record::tests::{answered, failed};

    fn record(samples: &[Sample]) -> Record {
        let mut record = Record::new(None);
        samples.iter().for_each(|sample| record.add(sample));
        record
    }

    #[test]
    fn limits_hold_or_are_broken() {
        let mut samples: Vec<_> = (0..99).map(|_| answered(1_000, "a")).collect();
        samples.push(failed(1, FailureClass::Reset, "closed"));
        let record = record(&samples);
        let met = |max_p99, max_failures| {
            let checks = checks(&record, max_p99, max_failures);
            checks
                .iter()
                .map(|check| (check.name, check.met))
                .collect::<Vec<_>>()
        };
        let micros = Duration::from_micros;
        assert_eq!(met(None, None), []);
        assert_eq!(met(Some(micros(1_001)), None), [("max_p99", true)]);
        assert_eq!(met(Some(micros(999)), None), [("max_p99", false)]);
        assert_eq!(
            met(None, Some(FailureLimit::Count(0))),
            [("max_failures", false)]
        );
        assert_eq!(
            met(None, Some(FailureLimit::Share(0.01))),
            [("max_failures", true)]
        );
    }

    #[test]
    fn nothing_answered_breaks_the_limit_of_latency() {
        let checks = checks(&record(&[]), Some(Duration::from_secs(1)), None);
        assert!(!checks[0].met);
    }

    #[test]
    fn lateness_is_told_where_it_shows_in_the_latency() {
        let late = |late, latency| {
            let late = Duration::from_micros(late);
            lateness(&record(&[Sample {
                late,
                ..answered(latency, "a")
            }]))
        };
        assert_eq!(late(10, 20), None);
        assert_eq!(late(200, 5_000), None);
        let told = late(200, 700).unwrap();
        assert!(told.contains("0.2 ms late"), "{told}");
    }
}
