//! Settings of traces and their export.

use std::sync::Arc;

use super::export_settings::CollectorSettings;
use crate::telemetry::Batching;
use traffic::trace::TracingSettings;

/// Settings of traces and their export.
#[derive(Clone, Debug)]
pub struct TraceSettings {
    /// Settings for requests.
    pub tracing: Arc<TracingSettings>,
    /// The collector; `None` if only a provider of the mesh configuration may be one.
    pub collector: Option<CollectorSettings>,
    /// Whether a provider of the mesh configuration gets the spans instead, where one is in effect.
    pub is_fallback: bool,
    /// Sizes and times of the exporter.
    pub batching: Batching,
    /// Maximum number of requests per second whose sampling external clients decide.
    pub external_rate: u32,
    /// Maximum number of requests per second that are kept late.
    pub keep_rate: u32,
}
