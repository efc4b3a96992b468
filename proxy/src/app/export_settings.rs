//! Settings of telemetry that is sent to collectors.

use std::collections::BTreeMap;
use std::time::Duration;

use grpc_client::ClientTlsFiles;

use crate::telemetry::{Batching, OtlpSettings, RecordFormat};

/// Collector of one signal.
#[derive(Clone, Debug)]
pub struct CollectorSettings {
    /// Address and form of requests.
    pub requests: OtlpSettings,
    /// Files for TLS to the collector, read for each connection; without a CA, that of the operating system verifies it.
    pub tls: ClientTlsFiles,
}

/// Settings of log records and metrics, and what all signals share.
#[derive(Clone, Debug, Default)]
pub struct ExportSettings {
    /// Whether nothing is exported, whatever resources say.
    pub is_off: bool,
    /// Collector of the access log of flags, with the form of records.
    pub logs: Option<(CollectorSettings, RecordFormat)>,
    /// Collector of metrics, with the interval of requests.
    pub metrics: Option<(CollectorSettings, Duration)>,
    /// Sizes and times of log records.
    pub batching: Batching,
    /// Name of the service; `None` for one by the workload.
    pub service_name: Option<String>,
    /// Further attributes of the resource.
    pub resource: BTreeMap<String, String>,
    /// Attributes by annotations of the pod, where `resource` has none of the name.
    pub annotated: BTreeMap<String, String>,
}

impl ExportSettings {
    /// The same settings for a proxy with this name, unless the user has given one.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.service_name.get_or_insert_with(|| name.to_owned());
        self
    }
}
