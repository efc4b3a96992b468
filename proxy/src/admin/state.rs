//! State that the pages show and change. The composition root fills it in.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::Semaphore;

use super::activity::Activity;
use super::app_probers::AppProbers;
use super::hosts::AdminHosts;
use super::view::{
    CertificateView, ClusterView, EventView, FindingView, ListenerView, QuarantineView, Readiness,
};
use crate::explain::{Explanation, Question};
use crate::telemetry::{BuildInfo, Exposition, LogControl, Taps};

/// Function that returns a fresh value for each request of a page.
pub type Source<T> = Box<dyn Fn() -> T + Send + Sync>;

/// Function that explains a request by the applied configuration.
pub type Explainer = Box<dyn Fn(&Question) -> Explanation + Send + Sync>;

/// Function that returns the clusters of a service, by its host.
pub type ClustersOf = Box<dyn Fn(&str) -> Vec<ClusterView> + Send + Sync>;

/// Maximum number of live pages that are open.
pub(super) const LIVE_PAGES_MAX: usize = 16;

/// Sources of the live page.
pub struct LiveSources {
    /// Counts, with the newest events and the rejected resources.
    pub activity: Source<Activity>,
    /// Clusters of a service, by its host.
    pub clusters_of: ClustersOf,
    /// Permits of pages.
    pub(super) pages: Arc<Semaphore>,
}

impl LiveSources {
    /// Makes the sources of pages, of which only some may be open at once.
    pub fn new(activity: Source<Activity>, clusters_of: ClustersOf) -> Self {
        Self {
            activity,
            clusters_of,
            pages: Arc::new(Semaphore::new(LIVE_PAGES_MAX)),
        }
    }
}

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
    /// Sources of the live page.
    pub live: Arc<LiveSources>,
    /// Health events of endpoints, oldest first.
    pub events: Source<Vec<EventView>>,
    /// Listeners, those included that could not be opened.
    pub listeners: Source<Vec<ListenerView>>,
    /// Resources held at their last good version.
    pub quarantined: Source<Vec<QuarantineView>>,
    /// Findings about the newest configuration.
    pub findings: Source<Vec<FindingView>>,
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
