//! Times of the phases of attempts.

use std::time::Duration;

use super::cells::WorkerId;
use super::members::Tally;

/// Phase of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamPhase {
    /// Wait for a connection.
    Wait,
    /// Connecting.
    Connect,
    /// TLS handshake.
    Tls,
    /// From the last byte of the request to the first one of the response.
    FirstByte,
    /// From the first byte of the response to its last one.
    Body,
}

impl UpstreamPhase {
    /// All phases, in the order of their numbers.
    pub const ALL: [Self; 5] = [
        Self::Wait,
        Self::Connect,
        Self::Tls,
        Self::FirstByte,
        Self::Body,
    ];

    /// The value of the label `phase`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::FirstByte => "first_byte",
            Self::Body => "body",
        }
    }

    /// Numbers of the counters of the phase: one per bucket, the last for times above all bounds.
    pub fn buckets(self) -> std::ops::Range<usize> {
        let first = self as usize * COUNTERS;
        first..first + COUNTERS - 1
    }

    /// Number of the counter with the sum of the phase's times, in microseconds.
    pub fn sum(self) -> usize {
        self.buckets().end
    }
}

/// Upper bounds of the buckets below `+Inf`, in microseconds.
pub const PHASE_BOUNDS: [u64; 17] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000,
];

/// Counters of one phase: its buckets, and the sum.
const COUNTERS: usize = PHASE_BOUNDS.len() + 2;

/// Number of counters of all phases.
pub const PHASE_COUNTERS: usize = UpstreamPhase::ALL.len() * COUNTERS;

/// Times of phases.
pub type PhaseTally = Tally<(), PHASE_COUNTERS>;

impl PhaseTally {
    /// Counts the time of a phase.
    pub fn observe(&self, worker: WorkerId, phase: UpstreamPhase, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = PHASE_BOUNDS.partition_point(|bound| *bound < micros);
        self.count(worker, phase.buckets().start + bucket);
        self.add(worker, phase.sum(), micros);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_has_its_own_counters() {
        let tally = PhaseTally::new((), 1);
        for (number, phase) in UpstreamPhase::ALL.into_iter().enumerate() {
            assert_eq!(phase as usize, number);
            for micros in [100, 101, 40_000_000] {
                tally.observe(WorkerId(0), phase, Duration::from_micros(micros));
            }
        }
        let totals = tally.totals();
        for phase in UpstreamPhase::ALL {
            let buckets = &totals[phase.buckets()];
            assert_eq!((buckets[0], buckets[1], buckets[17]), (1, 1, 1));
            assert_eq!(buckets.iter().sum::<u64>(), 3);
            assert_eq!(totals[phase.sum()], 40_000_201);
        }
    }
}
