//! Load of workers, and the TLS of their clients.

use std::time::Duration;

use super::cells::WorkerId;
use super::members::Tally;

/// Upper bounds of the buckets below `+Inf`, in microseconds.
pub const DELAY_BOUNDS: [u64; 12] = [
    1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000,
];

/// Delays of the timers of workers: counts by bucket, the last one for delays above all bounds, and the sum in
/// microseconds.
pub type DelayTally = Tally<(), { DELAY_BOUNDS.len() + 2 }>;

impl DelayTally {
    /// Counts the delay of a timer.
    pub fn observe(&self, worker: WorkerId, delay: Duration) {
        let micros = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
        self.count(
            worker,
            DELAY_BOUNDS.partition_point(|bound| *bound < micros),
        );
        self.add(worker, DELAY_BOUNDS.len() + 1, micros);
    }
}

/// Version and cipher suite of TLS sessions, by OpenSSL's names; further ones count as `other`.
pub const SUITES: [(&str, &str); 9] = [
    ("TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256"),
    ("TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384"),
    ("TLSv1.2", "ECDHE-ECDSA-CHACHA20-POLY1305"),
    ("TLSv1.2", "ECDHE-RSA-AES128-GCM-SHA256"),
    ("TLSv1.2", "ECDHE-RSA-AES256-GCM-SHA384"),
    ("TLSv1.2", "ECDHE-RSA-CHACHA20-POLY1305"),
    ("TLSv1.3", "TLS_AES_128_GCM_SHA256"),
    ("TLSv1.3", "TLS_AES_256_GCM_SHA384"),
    ("TLSv1.3", "TLS_CHACHA20_POLY1305_SHA256"),
];

/// TLS sessions with clients, by [`SUITES`].
pub type SessionTally = Tally<(), { SUITES.len() + 1 }>;

impl SessionTally {
    /// Counts a session with a cipher suite.
    pub fn began(&self, worker: WorkerId, cipher: &str) {
        let known = SUITES.iter().position(|(_, name)| *name == cipher);
        self.count(worker, known.unwrap_or(SUITES.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_count_in_their_buckets() {
        let tally = DelayTally::new((), 1);
        for micros in [0, 1_000, 1_001, 6_000_000] {
            tally.observe(WorkerId(0), Duration::from_micros(micros));
        }
        let totals = tally.totals();
        assert_eq!(
            (totals[0], totals[1], totals[12], totals[13]),
            (2, 1, 1, 6_002_001)
        );
    }

    #[test]
    fn unknown_suites_count_together() {
        let tally = SessionTally::new((), 1);
        for (_, cipher) in SUITES {
            tally.began(WorkerId(0), cipher);
        }
        tally.began(WorkerId(0), "X");
        assert_eq!(tally.totals(), [1; 10]);
    }
}
