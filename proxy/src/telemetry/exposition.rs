//! The Prometheus text of everything that is counted.
//!
//! Reads the cells and encodes with the `prometheus` crate, one family after the other, so that only one of them is in
//! memory at a time. Runs on the control thread; workers go on counting meanwhile.

mod families;

use std::sync::Arc;
use std::time::Instant;

use prometheus::{Encoder, TEXT_FORMAT, TextEncoder};

use super::Telemetry;
use super::access_log::AccessLog;

/// Content type of [`Exposition::text`].
pub const CONTENT_TYPE: &str = TEXT_FORMAT;

/// What `/stats/prometheus` answers.
#[derive(Debug)]
pub struct Exposition {
    telemetry: Arc<Telemetry>,
    access_log: Arc<AccessLog>,
}

impl Exposition {
    /// Exposes these counters.
    pub fn new(telemetry: Arc<Telemetry>, access_log: Arc<AccessLog>) -> Self {
        Self {
            telemetry,
            access_log,
        }
    }

    /// The text of now. Lets go of statistics that nothing has used for [`super::RETENTION`] first.
    ///
    /// # Errors
    ///
    /// When the encoder refuses a family, which would be a mistake in this module.
    pub fn text(&self) -> Result<Vec<u8>, prometheus::Error> {
        self.telemetry.stats.sweep(Instant::now());
        let encoder = TextEncoder::new();
        let mut text = Vec::new();
        let families = families::control(&self.telemetry)
            .chain(families::access_log(self.access_log.totals()))
            .chain(families::workers(&self.telemetry.counters))
            .chain(families::connections(&self.telemetry.stats))
            .chain(families::requests(&self.telemetry.stats));
        for family in families {
            // The encoder refuses families without a series; Prometheus does without them.
            if !family.get_metric().is_empty() {
                encoder.encode(&[family], &mut text)?;
            }
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests;
