//! State that the pages show and change. The composition root fills it in.

use std::fmt;

use serde_json::Value;

use super::activity::Activity;
use super::app_probers::AppProbers;
use super::hosts::AdminHosts;
use super::view::{
    CertificateView, ClusterView, EventView, ListenerView, QuarantineView, Readiness,
};
use crate::explain::{Explanation, Question};
use crate::telemetry::{BuildInfo, Exposition, LogControl, Taps};

/// Function that returns a fresh value for each request of a page.
pub type Source<T> = Box<dyn Fn() -> T + Send + Sync>;

/// Function that explains a request by the applied configuration.
pub type Explainer = Box<dyn Fn(&Question) -> Explanation + Send + Sync>;

/// Data and actions of all pages.
pub struct AdminState {
    /// Version and revision of the running binary.
    pub build: BuildInfo,
    /// Readiness for traffic.
    pub readiness: Source<Readiness>,
    /// Certificates, without their keys.
    pub certificates: Source<Vec<CertificateView>>,
    /// Clusters with their endpoints.
    pub clusters: Source<Vec<ClusterView>>,
    /// Counts since the start of the process.
    pub activity: Source<Activity>,
    /// Health events of endpoints, oldest first.
    pub events: Source<Vec<EventView>>,
    /// Listeners, those included that could not be opened.
    pub listeners: Source<Vec<ListenerView>>,
    /// Resources held at their last good version.
    pub quarantined: Source<Vec<QuarantineView>>,
    /// Applied configuration. Secrets should be left out of it; anything that looks like one is redacted again.
    pub dump: Source<Value>,
    /// Explains how the proxy would route a request.
    pub explain: Explainer,
    /// Announces the drain: tells clients to use another proxy. No effect during a drain.
    pub announce: Source<()>,
    /// Starts a drain. No effect during a drain.
    pub drain: Source<()>,
    /// Ends the process as SIGTERM does.
    pub quit: Source<()>,
    /// Metrics.
    pub stats: Exposition,
    /// Whether metrics are compressed for clients that accept it.
    pub compresses: Source<bool>,
    /// Log level.
    pub logging: LogControl,
    /// Probes of the workload's containers.
    pub app_probers: AppProbers,
    /// Readers of finished requests.
    pub taps: Taps,
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
