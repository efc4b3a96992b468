//! Number of bytes of bodies that a worker holds for a purpose, with its gauge.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use crate::telemetry::{Gauge, Telemetry, WorkerId};

/// Number of held bytes.
#[derive(Default)]
pub struct HeldBytes {
    bytes: Cell<usize>,
    gauge: Option<(Arc<Telemetry>, WorkerId, Gauge)>,
}

impl fmt::Debug for HeldBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes.fmt(f)
    }
}

impl HeldBytes {
    /// Returns zero bytes that a gauge shows.
    pub fn shown(telemetry: &Arc<Telemetry>, worker: WorkerId, gauge: Gauge) -> Self {
        Self {
            bytes: Cell::default(),
            gauge: Some((Arc::clone(telemetry), worker, gauge)),
        }
    }

    /// The number.
    pub fn get(&self) -> usize {
        self.bytes.get()
    }

    /// Changes the number.
    pub fn set(&self, bytes: usize) {
        let before = self.bytes.replace(bytes);
        if let Some((telemetry, worker, gauge)) = &self.gauge {
            let by = bytes.wrapping_sub(before).cast_signed();
            telemetry.counters.shift(*worker, *gauge, by as i64);
        }
    }
}
