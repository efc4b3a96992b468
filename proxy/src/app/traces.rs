//! Tracing: the exporter, and what workers need.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::exports::resource;
use super::live::{LiveSettings, log_notes};
use super::named_collector::NamedCollector;
use super::provider_transport::ProviderTransport;
use super::settings::Settings;
use crate::exchange::WorkerParts;
use crate::exchange::trace_parts::TraceParts;
use crate::snapshot::Snapshot;
use crate::telemetry::{Exporter, OtlpSignal, Telemetry, Transport, WorkerId};
use traffic::registry::{Buckets, Rate};

/// Tracing of the process.
pub(super) struct Traces {
    exporter: Option<Arc<Exporter>>,
    /// Whether a collector gets all spans, rather than a provider where one is in effect.
    is_fixed: bool,
    live: LiveSettings,
    parts: TraceParts,
}

impl Traces {
    /// Makes the exporter, unless flags turn tracing off. Its thread starts with the first snapshot that needs it.
    pub(super) fn new(
        settings: &Settings,
        live: &LiveSettings,
        telemetry: &Arc<Telemetry>,
    ) -> Self {
        log_notes(settings.trace_notes.iter());
        let Some(traces) = &settings.traces else {
            return Self {
                exporter: None,
                is_fixed: false,
                live: live.clone(),
                parts: TraceParts::default(),
            };
        };
        let name = match &traces.collector {
            Some(collector) => collector.requests.endpoint.to_string(),
            None => "the provider of traces".to_owned(),
        };
        let exporter = Exporter::new(
            OtlpSignal::Traces,
            traces.batching,
            resource(live, None),
            name,
            telemetry,
        );
        let rate = |tokens| {
            let rate = Rate::new(tokens, Duration::from_secs(1));
            Some(Arc::new(Buckets::new(rate)))
        };
        Self {
            exporter: Some(Arc::new(exporter)),
            is_fixed: traces.collector.is_some() && !traces.is_fallback,
            live: live.clone(),
            parts: TraceParts {
                external: rate(traces.external_rate),
                keep: rate(traces.keep_rate),
                own: Arc::clone(&live.attributes),
                ..TraceParts::default()
            },
        }
    }

    /// Returns a function that starts the thread of the exporter, unless it runs. `worker` has the parts for requests to a
    /// provider.
    pub(super) fn starter(
        &self,
        worker: impl Fn() -> WorkerParts + Send + Sync + 'static,
    ) -> impl Fn() + Send + 'static {
        let (exporter, live, is_fixed) = (self.exporter.clone(), self.live.clone(), self.is_fixed);
        let worker = Arc::new(worker);
        move || {
            let Some(exporter) = &exporter else { return };
            let started = exporter.start(|| {
                let (worker, live) = (Arc::clone(&worker), live.clone());
                let find = |snapshot: &Snapshot| snapshot.tracing.as_ref()?.collector.clone();
                Box::new(move || {
                    let named: Rc<dyn Transport> = NamedCollector::new(live);
                    if is_fixed {
                        return named;
                    }
                    ProviderTransport::new(worker(), find, Some(named))
                })
            });
            if let Err(error) = started {
                tracing::error!(%error, "the exporter of traces cannot be started");
            }
        }
    }

    /// The exporter, if tracing is on.
    pub(super) fn exporter(&self) -> Option<&Arc<Exporter>> {
        self.exporter.as_ref()
    }

    /// Makes the parts of each worker.
    pub(super) fn parts(&self) -> impl Fn(WorkerId) -> TraceParts + Clone + Send + use<> {
        let (exporter, parts) = (self.exporter.clone(), self.parts.clone());
        move |worker| TraceParts {
            queue: exporter
                .as_ref()
                .map(|exporter| exporter.queue(worker))
                .unwrap_or_default(),
            ..parts.clone()
        }
    }

    /// Sends what waits, within `wait_max`.
    pub(super) async fn shut_down(&self, wait_max: Duration) {
        if let Some(exporter) = &self.exporter {
            exporter.shut_down(wait_max).await;
        }
    }
}
