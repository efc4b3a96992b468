//! Prometheus text exposition of all metrics.
//!
//! Reads the cells while workers keep counting. Families with few series are encoded by the `prometheus` crate. The
//! request metrics have 24 labels on each of 83 lines per label set, tens of megabytes in a large mesh, so they are
//! written label set by label set during the transfer, and never occupy the control thread for long.

mod families;
mod format;
mod process;
mod propagation;
mod requests;
mod tcp;

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use super::Telemetry;
use super::access_log::AccessLog;
use super::log::LogControl;
pub use format::TextFormat;
use requests::RequestText;
use traffic::telemetry::members::MemberState;

/// Content of `/stats/prometheus` and `/metrics`.
pub struct Exposition {
    telemetry: Arc<Telemetry>,
    access_log: Arc<AccessLog>,
    log: Option<LogControl>,
    members: Box<dyn Fn() -> Vec<MemberState> + Send + Sync>,
}

impl fmt::Debug for Exposition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exposition").finish_non_exhaustive()
    }
}

impl Exposition {
    /// Creates the exposition of these metrics.
    pub fn new(telemetry: Arc<Telemetry>, access_log: Arc<AccessLog>) -> Self {
        Self {
            telemetry,
            access_log,
            log: None,
            members: Box::new(Vec::new),
        }
    }

    /// Adds the number of lines that this log drops.
    #[must_use]
    pub fn with_log(mut self, log: LogControl) -> Self {
        self.log = Some(log);
        self
    }

    /// Adds the shares and endpoints of clusters in services with several clusters.
    #[must_use]
    pub fn with_members(
        mut self,
        members: impl Fn() -> Vec<MemberState> + Send + Sync + 'static,
    ) -> Self {
        self.members = Box::new(members);
        self
    }

    /// The exposed metrics.
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// Returns the current text in chunks of moderate size. First drops statistics that were unused for
    /// [`super::RETENTION`].
    ///
    /// # Errors
    ///
    /// If the encoder rejects a family, which would be a bug in this module.
    pub fn chunks(
        &self,
        format: TextFormat,
    ) -> Result<impl Iterator<Item = Vec<u8>> + Send + use<>, prometheus::Error> {
        let stats = &self.telemetry.stats;
        stats.sweep(Instant::now());
        let mut text = Vec::new();
        let families = families::control(&self.telemetry)
            .chain(families::access_log(self.access_log.totals()))
            .chain(self.log.iter().map(|log| families::log(log.dropped())))
            .chain(propagation::families(&self.telemetry.propagation))
            .chain(families::workers(&self.telemetry.counters))
            .chain(families::connections(stats))
            .chain(std::iter::once(families::routes(stats)))
            .chain(std::iter::once(families::plaintext(&self.telemetry)))
            .chain(families::cluster_attempts(stats))
            .chain(families::authorization(&self.telemetry))
            .chain(families::cluster_shares(&(self.members)()))
            .chain(process::families());
        for family in families {
            // the encoder rejects families without a series, and Prometheus does not need them
            if !family.get_metric().is_empty() {
                format.append_family(&mut text, family)?;
            }
        }
        let handles = stats.all_request_stats();
        let tcp = tcp::text(&handles, format);
        let end = format.end().to_vec();
        Ok([text, tcp]
            .into_iter()
            .chain(RequestText::new(handles, format))
            .chain([end])
            .filter(|text| !text.is_empty()))
    }
}

#[cfg(test)]
mod tests;
