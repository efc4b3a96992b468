//! Slow start: the weight of a new endpoint grows over time.

use std::fmt;
use std::time::Duration;

/// Slow start of new endpoints.
///
/// Source: DestinationRule `trafficPolicy.loadBalancer.warmup`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Warmup {
    /// Time until an endpoint has its whole weight. At least 1 ms.
    pub duration: Duration,
    /// Minimum part of the weight, 0 to 1. Default: 0.1.
    pub least: f64,
    /// Shape of the growth: 1 is linear, larger values grow faster at first. Above 0. Default: 1.
    pub aggression: f64,
}

/// Warm-up state of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmupState {
    /// Part of the weight that the endpoint has now, below 1.
    pub factor: f64,
    /// Time until the endpoint has its whole weight.
    pub left: Duration,
}

impl fmt::Display for WarmupState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { factor, left } = self;
        write!(f, "{:.0}% of its weight, all in {left:.1?}", factor * 100.0)
    }
}

/// Multiplier that makes fractions of weights integers.
pub const PRECISION: f64 = 1000.0;

/// Number of steps of a warm-up.
const STEPS: u32 = 20;

impl Warmup {
    /// The part of its weight that an endpoint of this age has; `None` if it has all.
    pub fn factor(&self, age: Duration) -> Option<f64> {
        if age >= self.duration {
            return None;
        }
        let age = age.max(Duration::from_millis(1));
        let line = age.as_secs_f64() / self.duration.as_secs_f64();
        Some(line.powf(self.aggression.recip()).clamp(self.least, 1.0))
    }

    /// Warm-up state of an endpoint of this age; `None` if it has its whole weight.
    pub fn warming(&self, age: Duration) -> Option<WarmupState> {
        let left = self.duration.saturating_sub(age);
        self.factor(age).map(|factor| WarmupState { factor, left })
    }

    /// Interval between two rebuilds of the weights: a step of the warm-up, but 50 ms to 5 s.
    pub fn step(&self) -> Duration {
        (self.duration / STEPS).clamp(Duration::from_millis(50), Duration::from_secs(5))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t121_weight_grows_to_its_full_value() {
        let warmup = |least, aggression| Warmup {
            duration: Duration::from_secs(10),
            least,
            aggression,
        };
        for (of, age, factor) in [
            (warmup(0.1, 1.0), 0, Some(0.1)),
            (warmup(0.1, 1.0), 1000, Some(0.1)),
            (warmup(0.1, 1.0), 5000, Some(0.5)),
            (warmup(0.1, 1.0), 9999, Some(0.9999)),
            (warmup(0.1, 1.0), 10_000, None),
            (warmup(0.0, 2.0), 2500, Some(0.5)),
            (warmup(0.0, 0.5), 5000, Some(0.25)),
            (warmup(0.0, 1.0), 0, Some(0.0001)),
        ] {
            let found = of.factor(Duration::from_millis(age));
            let left = of.warming(Duration::from_millis(age)).map(|it| it.left);
            let whole = Duration::from_millis(10_000 - age);
            assert_eq!(left, factor.map(|_| whole), "{of:?} {age}");
            match (found, factor) {
                (Some(found), Some(factor)) => assert!((found - factor).abs() < 1e-9),
                _ => assert_eq!(found, factor, "{of:?} {age}"),
            }
        }
    }
}
