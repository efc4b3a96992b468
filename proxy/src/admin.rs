//! The admin server: pages that show what this proxy is doing, and three that change it (log level, drain, quit).
//!
//! Runs on the control thread and never serves a request of the data plane. Pages read plain views ([`view`]) through
//! the closures of [`AdminState`], which the composition root fills, so this module knows neither snapshot nor workers.

mod accepts;
mod certs;
mod clusters;
mod config_dump;
mod drain;
mod events;
mod explain;
mod guests;
mod gzip;
mod health;
mod home;
mod hosts;
mod listeners;
mod logging;
mod pages;
mod reply;
mod server;
mod stats;
pub mod view;

use std::fmt;

use serde_json::Value;

pub use explain::Explainer;
pub use hosts::{ADMIN_HOSTS_MAX, AdminHosts};
pub use pages::Offer;
pub use server::{AdminLimits, serve};

use crate::telemetry::{BuildInfo, Exposition, LogControl};
use view::{CertificateView, ClusterView, EventView, ListenerView, QuarantineView, Readiness};

/// Where the admin server listens unless told otherwise: this machine only.
pub const DEFAULT_ADDRESS: std::net::SocketAddr =
    std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 15000);

/// Gives a fresh value each time that a page asks.
pub type Source<T> = Box<dyn Fn() -> T + Send + Sync>;

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
    /// Starts a drain; harmless when one runs already.
    pub drain: Source<()>,
    /// Asks the process to end as it does on SIGTERM.
    pub quit: Source<()>,
    /// Metrics.
    pub stats: Exposition,
    /// Log level.
    pub logging: LogControl,
    /// Names that the admin server goes by.
    pub hosts: AdminHosts,
}

impl fmt::Debug for AdminState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminState")
            .field("build", &self.build)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
