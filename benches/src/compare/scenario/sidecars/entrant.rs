//! The entrants of the comparison of sidecars, and what each turn of theirs gave.

use std::time::Duration;

use super::load::Measured;
use super::pair::Pair;

/// What the scenario is called.
pub(super) const TITLE: &str = "A pair of sidecars";

/// An entrant: a pair, or the upstream without proxies.
pub(super) struct Entrant {
    pub(super) label: String,
    pub(super) pair: Option<Pair>,
    pub(super) flat_out: Vec<Turn>,
    pub(super) steady: Vec<Turn>,
    /// Resident memory of the larger one of the two after the load, in KiB.
    pub(super) kib: Option<u64>,
}

/// What one turn gave.
pub(super) struct Turn {
    pub(super) measured: Measured,
    /// CPU time of both proxies.
    pub(super) cpu: Duration,
    pub(super) elapsed: Duration,
}

impl Turn {
    /// CPU time per request, in us.
    pub(super) fn cpu_each(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.measured.requests.max(1) as f64
    }

    pub(super) fn per_second(&self) -> f64 {
        self.measured.requests as f64 / self.elapsed.as_secs_f64()
    }
}
