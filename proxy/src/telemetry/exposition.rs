//! Prometheus text exposition of all metrics.
//!
//! Reads the cells while workers keep counting. Families with few series are encoded by the `prometheus` crate. The
//! request metrics have 24 labels on each of 83 lines per label set, tens of megabytes in a large mesh, so they are
//! written label set by label set during the transfer, and never occupy the control thread for long.

mod destinations;
mod exemplars;
mod families;
mod format;
mod labels;
mod process;
mod propagation;
mod requests;
mod tcp;
mod traces;
mod workers;

use std::fmt;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use super::Telemetry;
use super::access_log::AccessLog;
use super::log::LogControl;
use super::otlp::{Exporter, OtlpTotals};
pub use format::TextFormat;
use requests::RequestText;
use traffic::telemetry::ServiceStates;

/// Content of `/stats/prometheus` and `/metrics`.
pub struct Exposition {
    telemetry: Arc<Telemetry>,
    access_log: Arc<AccessLog>,
    log: Option<LogControl>,
    exporter: Option<Arc<Exporter>>,
    /// Counts of requests with metrics.
    push: Option<Arc<OtlpTotals>>,
    services: Box<dyn Fn() -> ServiceStates + Send + Sync>,
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
            exporter: None,
            push: None,
            services: Box::new(ServiceStates::default),
        }
    }

    /// Adds the number of lines that the process log drops, and the exporter of spans.
    #[must_use]
    pub fn with_logs(self, log: LogControl, exporter: Option<Arc<Exporter>>) -> Self {
        Self {
            log: Some(log),
            exporter,
            ..self
        }
    }

    /// Adds counts of requests with metrics to a collector.
    #[must_use]
    pub fn with_push(self, push: Option<Arc<OtlpTotals>>) -> Self {
        Self { push, ..self }
    }

    /// Exporters of spans and log records.
    fn exporters(&self) -> Vec<Arc<Exporter>> {
        let traces = self.exporter.iter().cloned();
        traces.chain(self.access_log.exporters()).collect()
    }

    /// Reason why an export failed the last time, with the collector; `None` if none did.
    pub fn export_problem(&self) -> Option<String> {
        let exporters = self.exporters();
        let mut problems = exporters.iter().filter_map(|exporter| {
            let problem = exporter.totals().problem()?;
            Some(format!("{}: {problem}", exporter.name()))
        });
        let of_push = || self.push.as_ref()?.problem();
        problems.next().or_else(of_push)
    }

    /// Adds the state of destinations, and of clusters in services with several clusters.
    #[must_use]
    pub fn with_services(
        mut self,
        services: impl Fn() -> ServiceStates + Send + Sync + 'static,
    ) -> Self {
        self.services = Box::new(services);
        self
    }

    /// The exposed metrics.
    pub fn telemetry(&self) -> &Arc<Telemetry> {
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
        let exporters = self.exporters();
        let exporters = exporters.iter().filter(|one| one.is_started());
        let signals = traces::Signals::of(exporters, self.push.as_deref());
        let services = (self.services)();
        let families = families::control(&self.telemetry)
            .chain(families::identity(&self.telemetry, SystemTime::now()))
            .chain(families::access_log(&self.access_log.totals()))
            .chain(self.log.iter().map(|log| families::log(log.dropped())))
            .chain(std::iter::once(traces::decisions(&self.telemetry)))
            .chain(signals.families())
            .chain(propagation::families(&self.telemetry.propagation))
            .chain(families::workers(&self.telemetry.counters))
            .chain(families::connections(stats))
            .chain(std::iter::once(families::routes(stats)))
            .chain(std::iter::once(families::plaintext(&self.telemetry)))
            .chain(destinations::families(stats))
            .chain(std::iter::once(families::label_overflow(&self.telemetry)))
            .chain(families::cluster_attempts(stats))
            .chain(families::authorization(&self.telemetry))
            .chain(families::cluster_shares(&services.members))
            .chain(destinations::states(&services.destinations))
            .chain(destinations::events(&services.destinations))
            .chain(workers::families(&self.telemetry))
            .chain(process::families());
        for family in families {
            // the encoder rejects families without a series, and Prometheus does not need them
            if !family.get_metric().is_empty() {
                format.append_family(&mut text, family)?;
            }
        }
        let mut handles = stats.all_request_stats();
        let tagged = handles.iter().flat_map(|handle| handle.all_tagged());
        let tagged: Vec<_> = tagged.collect();
        handles.extend(tagged);
        let (rules, bounds) = (stats.rules(), Arc::clone(stats.bounds()));
        let tcp = tcp::text(&handles, &rules, format);
        let end = format.end().to_vec();
        Ok([text, tcp]
            .into_iter()
            .chain(RequestText::new(handles, rules, bounds, format))
            .chain([end])
            .filter(|text| !text.is_empty()))
    }
}

#[cfg(test)]
mod tests;
