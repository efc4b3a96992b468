//! What the pages show and do, filled by the composition root.

use std::fmt;

use serde_json::Value;

use super::app_probers::AppProbers;
use super::hosts::AdminHosts;
use super::view::{
    CertificateView, ClusterView, EventView, ListenerView, QuarantineView, Readiness,
};
use crate::explain::{Explanation, Question};
use crate::telemetry::{BuildInfo, Exposition, LogControl};

/// Gives a fresh value each time that a page asks.
pub type Source<T> = Box<dyn Fn() -> T + Send + Sync>;

/// Explains a request by the applied configuration.
pub type Explainer = Box<dyn Fn(&Question) -> Explanation + Send + Sync>;

/// Everything that the pages show and do.
pub struct AdminState {
    /// What is running.
    pub build: BuildInfo,
    /// Whether traffic should come here.
    pub readiness: Source<Readiness>,
    /// Certificates, without their keys.
    pub certificates: Source<Vec<CertificateView>>,
    /// Clusters with their endpoints.
    pub clusters: Source<Vec<ClusterView>>,
    /// What happened to the health of endpoints, oldest first.
    pub events: Source<Vec<EventView>>,
    /// Listeners, those included that could not be opened.
    pub listeners: Source<Vec<ListenerView>>,
    /// Resources held at their last good version.
    pub quarantined: Source<Vec<QuarantineView>>,
    /// The applied configuration. Secrets should be left out of it; what looks like one is blanked again.
    pub dump: Source<Value>,
    /// Why a request would go where it goes.
    pub explain: Explainer,
    /// Tells clients to go elsewhere; harmless when a drain runs already.
    pub announce: Source<()>,
    /// Starts a drain; harmless when one runs already.
    pub drain: Source<()>,
    /// Asks the process to end as it does on SIGTERM.
    pub quit: Source<()>,
    /// Metrics.
    pub stats: Exposition,
    /// Log level.
    pub logging: LogControl,
    /// Probes of the workload's containers.
    pub app_probers: AppProbers,
    /// Host names that the admin server accepts.
    pub hosts: AdminHosts,
}

impl fmt::Debug for AdminState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminState")
            .field("build", &self.build)
            .finish_non_exhaustive()
    }
}
