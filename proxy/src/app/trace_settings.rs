//! Settings of traces and their export.

use std::collections::BTreeMap;
use std::sync::Arc;

use grpc_client::ClientTlsFiles;

use crate::telemetry::{Batching, OtlpSettings};
use traffic::trace::TracingSettings;

/// Settings of traces and their export.
#[derive(Clone, Debug)]
pub struct TraceSettings {
    /// Settings for requests.
    pub tracing: Arc<TracingSettings>,
    /// The collector, and how spans are sent to it; `None` if only a provider of the mesh configuration may be one.
    pub export: Option<OtlpSettings>,
    /// Sizes and times of the exporter.
    pub batching: Batching,
    /// Files for TLS to the collector, read for each connection; without a CA, that of the operating system verifies it.
    pub tls: ClientTlsFiles,
    /// Maximum number of requests per second whose sampling external clients decide.
    pub external_rate: u32,
    /// Maximum number of requests per second that are kept late.
    pub keep_rate: u32,
    /// Name of the service; `None` for one by the workload.
    pub service_name: Option<String>,
    /// Further attributes of the resource.
    pub resource: BTreeMap<String, String>,
}

impl TraceSettings {
    /// The same settings for a proxy with this name, unless the user has given one.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        let given = self.service_name.clone();
        Self {
            service_name: given.or_else(|| Some(name.to_owned())),
            ..self
        }
    }
}
