//! Fault injection: a delay, an abort, or both.
//!
//! Each is drawn independently for each request; `exchange` waits and replies.

use std::time::Duration;

use http::StatusCode;
use rand::{Rng, RngExt};

/// The whole in units of a [`Share`].
const WHOLE: u32 = 1_000_000;

/// A share of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    per_million: u32,
}

/// Fault injection of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fault {
    /// Delay, and the share of delayed requests.
    pub delay: Option<(Duration, Share)>,
    /// Reply of aborted requests, and their share.
    pub abort: Option<(Abort, Share)>,
}

/// The reply to an aborted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abort {
    /// HTTP status; a gRPC client gets the gRPC status that it maps to, unless `grpc` is set.
    pub status: StatusCode,
    /// Configured gRPC status.
    pub grpc: Option<u8>,
}

/// The faults of one request, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// Time to wait first.
    pub delay: Option<Duration>,
    /// Reply to send in place of forwarding.
    pub abort: Option<Abort>,
}

impl Share {
    /// Share in parts per million, at most all.
    pub fn per_million(per_million: u32) -> Self {
        Self {
            per_million: per_million.min(WHOLE),
        }
    }

    /// Whether the share is 0.
    pub fn is_none(self) -> bool {
        self.per_million == 0
    }

    /// Whether the share covers every request.
    pub fn is_all(self) -> bool {
        self.per_million == WHOLE
    }

    /// The share in percent.
    pub fn percent(self) -> f64 {
        f64::from(self.per_million) / 10_000.0
    }

    fn hits(self, rng: &mut impl Rng) -> bool {
        rng.random_range(0..WHOLE) < self.per_million
    }
}

impl Fault {
    /// Whether no request can be affected.
    pub fn is_empty(&self) -> bool {
        let never = |share: Option<Share>| share.is_none_or(Share::is_none);
        never(self.delay.map(|(_, share)| share)) && never(self.abort.map(|(_, share)| share))
    }

    /// Draws the faults of a request.
    pub fn plan(&self, rng: &mut impl Rng) -> FaultPlan {
        let delay = self.delay.filter(|(_, share)| share.hits(rng));
        let abort = self.abort.filter(|(_, share)| share.hits(rng));
        FaultPlan {
            delay: delay.map(|(time, _)| time),
            abort: abort.map(|(abort, _)| abort),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use super::*;

    const DELAY: Duration = Duration::from_millis(200);
    const ABORT: Abort = Abort {
        status: StatusCode::SERVICE_UNAVAILABLE,
        grpc: None,
    };

    fn fault(delay: u32, abort: u32) -> Fault {
        Fault {
            delay: Some((DELAY, Share::per_million(delay))),
            abort: Some((ABORT, Share::per_million(abort))),
        }
    }

    /// Numbers of delayed requests, aborted requests, and both, out of `requests`.
    fn hits(fault: &Fault, requests: u32) -> (u32, u32, u32) {
        let mut rng = SmallRng::seed_from_u64(7);
        let mut hits = (0, 0, 0);
        for _ in 0..requests {
            let plan = fault.plan(&mut rng);
            hits.0 += u32::from(plan.delay.is_some());
            hits.1 += u32::from(plan.abort.is_some());
            hits.2 += u32::from(plan.delay.is_some() && plan.abort.is_some());
        }
        hits
    }

    #[test]
    fn percentage_100_hits_all_requests_and_0_hits_none() {
        assert_eq!(hits(&fault(WHOLE, WHOLE), 1000), (1000, 1000, 1000));
        assert_eq!(hits(&fault(WHOLE, 0), 1000), (1000, 0, 0));
        assert_eq!(hits(&fault(0, WHOLE), 1000), (0, 1000, 0));
        assert_eq!(hits(&fault(0, 0), 1000), (0, 0, 0));
    }

    #[test]
    fn delay_and_abort_are_sampled_independently() {
        let (delayed, aborted, both) = hits(&fault(WHOLE / 2, WHOLE / 2), 100_000);
        for (count, expected) in [(delayed, 50_000), (aborted, 50_000), (both, 25_000)] {
            // three standard deviations are under 475
            assert!(count.abs_diff(expected) < 475, "{count} of {expected}");
        }
    }

    #[test]
    fn a_ten_thousandth_of_a_percent_is_one_in_a_million() {
        let share = Share::per_million(1);
        let (delayed, ..) = hits(
            &Fault {
                delay: Some((DELAY, share)),
                abort: None,
            },
            10_000_000,
        );
        assert!((1..=25).contains(&delayed), "{delayed}");
        assert_eq!(share.percent(), 0.0001);
    }

    #[test]
    fn fault_with_percentage_zero_is_dropped() {
        assert!(Fault::default().is_empty());
        assert!(fault(0, 0).is_empty());
        assert!(!fault(1, 0).is_empty());
        assert!(!fault(0, 1).is_empty());
    }

    #[test]
    fn same_seed_gives_the_same_plans() {
        let plans = |seed| {
            let mut rng = SmallRng::seed_from_u64(seed);
            let fault = fault(WHOLE / 3, WHOLE / 3);
            (0..100).map(|_| fault.plan(&mut rng)).collect::<Vec<_>>()
        };
        assert_eq!(plans(1), plans(1));
        assert_ne!(plans(1), plans(2));
    }
}
