//! Load distribution between priorities by their health; Envoy's algorithm. Pure.
//!
//! A priority keeps all of its traffic until fewer than 1 / 1.4 of its endpoints are healthy; the excess spills over to
//! the next priority. Below its panic threshold, a priority uses all endpoints, healthy or not.

use smallvec::SmallVec;

/// Traffic that a healthy endpoint may take, in percent of its normal share.
pub const OVERPROVISIONING_PERCENT: u64 = 140;

/// Health of one priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Usable endpoints.
    pub healthy: u32,
    /// All endpoints.
    pub total: u32,
}

impl Health {
    /// The part of its traffic that the priority can take, in percent.
    fn capacity(self) -> u32 {
        let total = u64::from(self.total).max(1);
        let percent = OVERPROVISIONING_PERCENT * u64::from(self.healthy) / total;
        percent.min(100) as u32
    }

    fn is_below(self, percent: u8) -> bool {
        u64::from(self.healthy) * 100 < u64::from(percent) * u64::from(self.total)
    }
}

/// Load of one priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Percent of the traffic; all shares sum to 100.
    pub load: u8,
    /// Whether the priority is in panic mode: all of its endpoints are used, healthy or not.
    pub panic: bool,
}

/// Shares of all priorities, first to last.
pub type Shares = SmallVec<[Share; 4]>;

/// Distributes the load between priorities. `panic_percent` is the percentage of usable endpoints below which a
/// priority enters panic mode; 0 for never.
///
/// Source: DestinationRule `outlierDetection.minHealthPercent`.
pub fn shares(levels: &[Health], panic_percent: u8) -> Shares {
    let capacity = |level: &Health| level.capacity();
    let all = levels.iter().map(capacity).sum::<u32>().min(100);
    let panics = |level: &Health| all < 100 && level.is_below(panic_percent);
    let mut shares: Shares = levels
        .iter()
        .map(|level| Share {
            load: 0,
            panic: panics(level),
        })
        .collect();
    if !shares.is_empty() && shares.iter().all(|share| share.panic) {
        let total: u64 = levels.iter().map(|level| u64::from(level.total)).sum();
        let part = |level: &Health| u64::from(level.total) * 100 / total.max(1);
        fill(&mut shares, levels.iter().map(part));
    } else if all == 0 {
        fill(&mut shares, std::iter::once(100));
    } else {
        let part = |level: &Health| u64::from(level.capacity() * 100 / all);
        fill(&mut shares, levels.iter().map(part));
    }
    shares
}

/// Number of attempts after which the priorities of their endpoints are left out.
const ATTEMPTS_PER_UPDATE: usize = 2;

/// Priorities that the next retry leaves out, given those of the `tried` endpoints in order; none if no other priority
/// has a healthy endpoint. Envoy's `previous_priorities`.
///
/// Source: VirtualService `retries.retryRemoteLocalities`.
pub fn left_out(tried: &[u32], levels: &[Health]) -> SmallVec<[u32; 4]> {
    let mut left_out: SmallVec<[u32; 4]> = SmallVec::new();
    for attempts in tried.chunks_exact(ATTEMPTS_PER_UPDATE) {
        for priority in attempts {
            if !left_out.contains(priority) {
                left_out.push(*priority);
            }
        }
        let mut rest = (0..).zip(levels).filter(|(at, _)| !left_out.contains(at));
        if !rest.any(|(_, level)| level.capacity() > 0) {
            left_out.clear();
        }
    }
    left_out
}

/// Distributes the load between the priorities that are not left out.
pub fn shares_without(left_out: &[u32], levels: &[Health]) -> Shares {
    let levels = (0..).zip(levels).map(|(at, level)| Health {
        healthy: if left_out.contains(&at) {
            0
        } else {
            level.healthy
        },
        total: level.total,
    });
    shares(&levels.collect::<SmallVec<[Health; 4]>>(), 0)
}

/// Fills the loads in order up to 100 percent; a rounding remainder goes to the first priority with load.
fn fill(shares: &mut Shares, parts: impl Iterator<Item = u64>) {
    let mut left = 100_u8;
    for (share, part) in shares.iter_mut().zip(parts) {
        share.load = u8::try_from(part).unwrap_or(left).min(left);
        left -= share.load;
    }
    let first = shares.iter().position(|share| share.load > 0).unwrap_or(0);
    if let Some(first) = shares.get_mut(first) {
        first.load += left;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(levels: &[(u32, u32)], panic_percent: u8) -> Vec<(u8, bool)> {
        let levels: Vec<Health> = levels
            .iter()
            .map(|&(healthy, total)| Health { healthy, total })
            .collect();
        let shares = shares(&levels, panic_percent);
        shares
            .iter()
            .map(|share| (share.load, share.panic))
            .collect()
    }

    #[test]
    fn traffic_spills_over_as_endpoints_fail() {
        for (first, second, loads) in [
            (100, 0, [100, 0]),
            (72, 100, [100, 0]),
            (71, 100, [99, 1]),
            (50, 100, [70, 30]),
            (25, 100, [35, 65]),
            (0, 100, [0, 100]),
            (25, 25, [50, 50]),
        ] {
            let loads = loads.map(|load| (load, false));
            assert_eq!(
                of(&[(first, 100), (second, 100)], 0),
                loads,
                "{first} {second}"
            );
        }
        // rounding leaves one percent, which the first gets
        let third = of(&[(10, 100), (10, 100), (10, 100)], 0);
        assert_eq!(third, [(34, false), (33, false), (33, false)]);
    }

    #[test]
    fn panic_mode_needs_a_threshold_and_too_little_capacity() {
        // 80 percent of one priority can take everything
        assert_eq!(of(&[(8, 10)], 90), [(100, false)]);
        assert_eq!(of(&[(7, 10)], 90), [(100, true)]);
        assert_eq!(of(&[(7, 10)], 70), [(100, false)]);
        assert_eq!(of(&[(0, 4)], 0), [(100, false)]);
        assert_eq!(of(&[(0, 4)], 50), [(100, true)]);
        // one panics, the other does not
        assert_eq!(of(&[(1, 10), (3, 10)], 20), [(25, true), (75, false)]);
        // all do: shared by their sizes
        assert_eq!(of(&[(0, 30), (0, 10)], 1), [(75, true), (25, true)]);
        assert_eq!(of(&[(0, 10), (0, 10)], 0), [(100, false), (0, false)]);
        assert!(of(&[], 50).is_empty());
    }

    #[test]
    fn tried_priorities_are_skipped_after_every_two_attempts() {
        let rows: &[(&[u32], &[u32], &[u32])] = &[
            (&[], &[2, 2, 2], &[]),
            (&[0], &[2, 2, 2], &[]),
            (&[0, 0], &[2, 2, 2], &[0]),
            (&[0, 1], &[2, 2, 2], &[0, 1]),
            (&[0, 0, 1], &[2, 2, 2], &[0]),
            (&[0, 0, 1, 1], &[2, 2, 2], &[0, 1]),
            (&[0, 0, 1, 1, 2, 2], &[2, 2, 2], &[]),
            (&[0, 0, 1, 1, 2, 2, 0, 0], &[2, 2, 2], &[0]),
            (&[0, 0], &[2], &[]),
            (&[0, 0, 0, 0], &[2], &[]),
            // the rest cannot take a request
            (&[0, 0], &[2, 0], &[]),
            (&[0, 0], &[2, 0, 1], &[0]),
            (&[0, 0, 2, 2], &[2, 0, 1], &[]),
        ];
        for (tried, healthy, expected) in rows {
            let level = |healthy: &u32| Health {
                healthy: *healthy,
                total: 2,
            };
            let levels: Vec<Health> = healthy.iter().map(level).collect();
            let found = left_out(tried, &levels);
            assert_eq!(found.as_slice(), *expected, "{tried:?} {healthy:?}");
        }
    }

    #[test]
    fn skipped_priorities_get_no_traffic() {
        let levels = [(2, 2), (1, 4), (1, 4)].map(|(healthy, total)| Health { healthy, total });
        let loads = |left_out: &[u32]| {
            let shares = shares_without(left_out, &levels);
            shares.iter().map(|share| share.load).collect::<Vec<u8>>()
        };
        assert_eq!(loads(&[]), [100, 0, 0]);
        assert_eq!(loads(&[0]), [0, 50, 50]);
        assert_eq!(loads(&[0, 1]), [0, 0, 100]);
    }

    proptest! {
        #[test]
        fn shares_add_up_to_the_total(
            levels in proptest::collection::vec((0_u32..50, 1_u32..50), 1..6),
            panic_percent in 0_u8..=100,
        ) {
            let levels: Vec<(u32, u32)> =
                levels.iter().map(|&(healthy, total)| (healthy.min(total), total)).collect();
            let shares = of(&levels, panic_percent);
            let sum: u32 = shares.iter().map(|(load, _)| u32::from(*load)).sum();
            prop_assert_eq!(sum, 100);
            let any = levels.iter().any(|(healthy, _)| *healthy > 0);
            for ((healthy, total), (load, panic)) in levels.iter().zip(&shares) {
                // traffic only goes where it can be served, if it can be served anywhere
                let serves = *healthy * 140 / *total > 0 || *panic;
                let none_serves = levels.iter().all(|(healthy, total)| *healthy * 140 / *total == 0);
                prop_assert!(*load == 0 || serves || !any || none_serves);
            }
        }
    }
}
