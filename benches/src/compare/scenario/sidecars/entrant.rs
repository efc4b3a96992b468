//! Entrants of the sidecar comparison, and the results of their turns.

use std::time::Duration;

use super::load::Measured;
use super::pair::Pair;

/// Title of the scenario.
pub(super) const TITLE: &str = "A pair of sidecars";

/// Entrant: a pair of sidecars, or the upstream without proxies.
pub(super) struct Entrant {
    pub(super) label: String,
    pub(super) pair: Option<Pair>,
    pub(super) flat_out: Vec<Turn>,
    pub(super) steady: Vec<Turn>,
    /// Resident memory of the larger process of the pair after the load, in KiB.
    pub(super) kib: Option<u64>,
}

/// Result of one turn.
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
