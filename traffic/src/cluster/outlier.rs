//! Outlier detection: when an endpoint is ejected, for how long, and when it returns. Envoy's algorithm on the shared
//! state of endpoints; time is an argument.
//!
//! Source: DestinationRule `trafficPolicy.outlierDetection`.

use std::time::Duration;

use crate::registry::{Cause, Health, Moment, exclusion};

/// The outlier detection policy of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OutlierPolicy {
    /// Consecutive 5xx responses; 0 to disable. Default: 5.
    pub server_errors: u32,
    /// Consecutive 502, 503 or 504 responses; 0 to disable. Default: 0.
    pub gateway_errors: u32,
    /// Consecutive failures to get a response; 0 to disable. Counted only with `split`. Default: 5.
    pub local_errors: u32,
    /// Whether failures to get a response are counted separately from responses. Default: false.
    pub split: bool,
    /// Interval of the sweeps that uneject endpoints. Default: 10 s.
    pub interval: Duration,
    /// Time of the first ejection. Default: 30 s.
    pub base_time: Duration,
    /// Maximum percentage of ejected endpoints. Default: 10.
    pub percent_max: u8,
    /// Whether one endpoint may be ejected regardless of `percent_max` while another is usable. Default: true, but
    /// false with `--outlier-first-ejection=cap`.
    pub first_ejection_always: bool,
    /// Statuses that count in place of all 5xx, sorted; empty for all 5xx.
    pub statuses: Box<[u16]>,
}

/// Maximum ejection time, unless `base_time` is longer.
const TIME_MAX: Duration = Duration::from_secs(300);

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A response with this status; for a gRPC response without a body, the HTTP status that its gRPC status maps to.
    Status(u16),
    /// The connection failed or broke.
    Failed,
    /// No response within the timeout.
    TimedOut,
    /// A raw TCP connection was established.
    Connected,
}

/// Consecutive errors that are enough for an ejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Kind of the errors.
    pub cause: Cause,
    /// Number of the errors.
    pub errors: u32,
    /// Whether the last error was a failure to get a response.
    pub unanswered: bool,
}

impl OutlierPolicy {
    /// Counts an outcome. Returns a verdict when consecutive errors are enough, and restarts the count.
    #[inline]
    pub fn count(&self, health: &Health, outcome: Outcome) -> Option<Verdict> {
        let local = matches!(outcome, Outcome::Failed | Outcome::TimedOut);
        if self.split {
            if local {
                return enough(&health.local_errors, self.local_errors, Cause::LocalErrors);
            }
            health.local_errors.reset();
        }
        let status = match outcome {
            Outcome::Status(status) => status,
            Outcome::Failed => 503,
            Outcome::TimedOut => 504,
            Outcome::Connected if self.split => return None,
            Outcome::Connected => 200,
        };
        if !self.is_error(status) {
            health.server_errors.reset();
            health.gateway_errors.reset();
            return None;
        }
        let gateway = if matches!(status, 502..=504) {
            enough(
                &health.gateway_errors,
                self.gateway_errors,
                Cause::GatewayErrors,
            )
        } else {
            health.gateway_errors.reset();
            None
        };
        let server = enough(
            &health.server_errors,
            self.server_errors,
            Cause::ServerErrors,
        );
        let verdict = gateway.or(server)?;
        Some(Verdict {
            unanswered: local,
            ..verdict
        })
    }

    fn is_error(&self, status: u16) -> bool {
        match &*self.statuses {
            [] => status >= 500,
            statuses => statuses.binary_search(&status).is_ok(),
        }
    }

    /// Whether `maxEjectionPercent` allows one more ejection: `out` of `all` endpoints are ejected; `others` is whether
    /// an endpoint other than this one is usable.
    pub fn allows(&self, out: u32, all: u32, others: bool) -> bool {
        let percent = 100 * (u64::from(out) + 1);
        percent <= u64::from(self.percent_max) * u64::from(all)
            || (self.first_ejection_always && out == 0 && others)
    }

    fn time_max(&self) -> Duration {
        self.base_time.max(TIME_MAX)
    }

    /// Ejection time for this multiplier.
    pub fn time(&self, multiplier: u32) -> Duration {
        self.base_time
            .saturating_mul(multiplier)
            .min(self.time_max())
    }

    /// Ejects an endpoint and returns the ejection time; `None` if it is ejected already.
    pub fn eject(&self, health: &Health, now: Moment) -> Option<Duration> {
        if !health.exclude(exclusion::EJECTED) {
            return None;
        }
        let multiplier = health.multiplier();
        let limit = self.time_max() + self.base_time;
        let multiplier = match self.base_time.saturating_mul(multiplier) < limit {
            true => multiplier.saturating_add(1),
            false => multiplier,
        };
        health.set_multiplier(multiplier);
        health.ejected(now);
        Some(self.time(multiplier))
    }

    /// Checks one endpoint, every `interval`: unejects it after its ejection time and returns how long it was ejected;
    /// lowers the multiplier of an endpoint that has been healthy for an interval.
    pub fn sweep(&self, health: &Health, now: Moment) -> Option<Duration> {
        let multiplier = health.multiplier();
        if !health.is_ejected() {
            if multiplier > 0 && now.since(health.returned_at()) >= self.interval {
                health.set_multiplier(multiplier - 1);
            }
            return None;
        }
        let out_for = now.since(health.ejected_at());
        if out_for < self.time(multiplier) {
            return None;
        }
        health.forget_errors();
        health.returned(now);
        health.admit(exclusion::EJECTED, now);
        Some(out_for)
    }
}

#[inline]
fn enough(streak: &crate::registry::Streak, max: u32, cause: Cause) -> Option<Verdict> {
    if max == 0 {
        return None;
    }
    let errors = streak.add();
    if errors < max {
        return None;
    }
    streak.reset();
    Some(Verdict {
        cause,
        errors,
        unanswered: false,
    })
}

impl Default for OutlierPolicy {
    fn default() -> Self {
        Self {
            server_errors: 5,
            gateway_errors: 0,
            local_errors: 5,
            split: false,
            interval: Duration::from_secs(10),
            base_time: Duration::from_secs(30),
            percent_max: 10,
            first_ejection_always: true,
            statuses: Box::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: Outcome = Outcome::Status(200);
    const FAIL: Outcome = Outcome::Status(500);
    const GATE: Outcome = Outcome::Status(503);

    /// The causes of the verdicts, by the number of the outcome.
    fn verdicts(policy: &OutlierPolicy, outcomes: &[Outcome]) -> Vec<(usize, Cause)> {
        let health = Health::default();
        let outcomes = outcomes.iter().enumerate();
        outcomes
            .filter_map(|(number, outcome)| {
                let verdict = policy.count(&health, *outcome)?;
                Some((number, verdict.cause))
            })
            .collect()
    }

    #[test]
    fn consecutive_errors_are_counted_by_kind() {
        use Cause::{GatewayErrors, LocalErrors, ServerErrors};
        let three = OutlierPolicy {
            server_errors: 3,
            ..OutlierPolicy::default()
        };
        assert_eq!(verdicts(&three, &[FAIL, GATE, FAIL]), [(2, ServerErrors)]);
        // what connects or times out is as 503 and 504
        let local = [Outcome::Failed, Outcome::TimedOut, FAIL];
        assert_eq!(verdicts(&three, &local), [(2, ServerErrors)]);
        // t103: a success starts again
        assert_eq!(verdicts(&three, &[FAIL, FAIL, OK, FAIL, FAIL]), []);
        let twice = [FAIL, FAIL, FAIL, FAIL, FAIL, FAIL];
        assert_eq!(
            verdicts(&three, &twice),
            [(2, ServerErrors), (5, ServerErrors)]
        );
        // t105
        let gateway = OutlierPolicy {
            gateway_errors: 2,
            ..OutlierPolicy::default()
        };
        let outcomes = [FAIL, FAIL, FAIL, FAIL, OK, GATE, GATE];
        assert_eq!(verdicts(&gateway, &outcomes), [(6, GatewayErrors)]);
        assert_eq!(verdicts(&gateway, &[GATE, FAIL, GATE]), []);
        let split = OutlierPolicy {
            server_errors: 2,
            local_errors: 2,
            split: true,
            ..OutlierPolicy::default()
        };
        let outcomes = [
            Outcome::Failed,
            FAIL,
            Outcome::Failed,
            Outcome::TimedOut,
            FAIL,
        ];
        assert_eq!(
            verdicts(&split, &outcomes),
            [(3, LocalErrors), (4, ServerErrors)]
        );
        let connected = [Outcome::Failed, Outcome::Connected, Outcome::Failed];
        assert_eq!(verdicts(&split, &connected), []);
        let some = OutlierPolicy {
            server_errors: 1,
            statuses: [404, 500].into(),
            ..OutlierPolicy::default()
        };
        let outcomes = [GATE, Outcome::Status(404), OK];
        assert_eq!(verdicts(&some, &outcomes), [(1, ServerErrors)]);
        let off = OutlierPolicy {
            server_errors: 0,
            ..OutlierPolicy::default()
        };
        assert_eq!(verdicts(&off, &[FAIL; 100]), []);
    }

    #[test]
    fn max_ejection_percent_applies_except_to_the_first_ejection() {
        let policy = OutlierPolicy::default();
        for (out, all, others, allowed) in [
            (0, 10, true, true),
            (0, 10, false, true),
            (0, 3, true, true),
            (0, 3, false, false),
            (1, 3, true, false),
            (1, 10, true, false),
            (1, 20, true, true),
        ] {
            assert_eq!(
                policy.allows(out, all, others),
                allowed,
                "{out} {all} {others}"
            );
        }
        let cap = OutlierPolicy {
            first_ejection_always: false,
            ..policy
        };
        assert!(!cap.allows(0, 3, true));
    }

    #[test]
    fn ejection_resets_the_error_counts() {
        let policy = OutlierPolicy {
            server_errors: 3,
            gateway_errors: 3,
            local_errors: 3,
            split: true,
            ..OutlierPolicy::default()
        };
        for outcome in [FAIL, GATE, Outcome::Failed] {
            let health = Health::default();
            let count = || policy.count(&health, outcome).is_some();
            assert_eq!([count(), count(), count()], [false, false, true]);
            policy.eject(&health, Moment(1)).unwrap();
            // requests that were in progress when it was ejected
            assert_eq!([count(), count()], [false, false]);
            policy.sweep(&health, Moment(60_000)).unwrap();
            let counted = [count(), count(), count()];
            assert_eq!(counted, [false, false, true], "{outcome:?}");
        }
    }

    #[test]
    fn ejection_time_grows_with_each_ejection_and_shrinks_afterwards() {
        let policy = OutlierPolicy::default();
        let health = Health::default();
        let seconds = |seconds: u64| Moment(1 + seconds * 1000);
        assert_eq!(
            policy.eject(&health, seconds(0)),
            Some(Duration::from_secs(30))
        );
        assert_eq!(policy.eject(&health, seconds(1)), None);
        assert_eq!(policy.sweep(&health, seconds(20)), None);
        assert_eq!(
            policy.sweep(&health, seconds(30)),
            Some(Duration::from_secs(30))
        );
        assert!(health.is_usable());
        // not yet forgiven
        assert_eq!(policy.sweep(&health, seconds(35)), None);
        assert_eq!(
            policy.eject(&health, seconds(36)),
            Some(Duration::from_secs(60))
        );
        assert_eq!(policy.sweep(&health, seconds(90)), None);
        assert_eq!(
            policy.sweep(&health, seconds(100)),
            Some(Duration::from_secs(64))
        );
        policy.sweep(&health, seconds(110));
        policy.sweep(&health, seconds(120));
        assert_eq!(health.multiplier(), 0);
        // not for ever longer
        for round in 0..20 {
            let time = policy.eject(&health, seconds(1000 * round)).unwrap();
            assert!(time <= Duration::from_secs(300), "{time:?}");
            policy.sweep(&health, seconds(1000 * round + 400)).unwrap();
        }
        assert_eq!(health.multiplier(), 11);
    }
}
