//! Admin server: pages that show the state of this proxy, and three that change it (log level, drain, quit).
//!
//! Runs on the control thread and never serves a request of the data plane. Pages read plain views ([`view`]) through
//! the closures of [`AdminState`], which the composition root fills, so this module knows neither snapshot nor workers.

mod accepts;
pub mod activity;
mod app_probers;
mod certs;
mod cluster_views;
mod clusters;
mod config_dump;
mod drain;
mod dump;
mod events;
mod explain;
mod findings;
mod guests;
mod gzip;
mod health;
mod home;
mod hosts;
mod listeners;
mod live;
mod logging;
mod page;
mod pages;
mod reply;
mod server;
mod state;
mod stats;
mod tap;
mod ui;
pub mod view;

pub use app_probers::AppProbers;
pub use cluster_views::{clusters as cluster_views, clusters_of, service_states};
pub use dump::{DumpedResources, dump};
pub use events::views as event_views;
pub use hosts::{ADMIN_HOSTS_MAX, AdminHosts};
pub use page::PageSet;
pub use server::{AdminLimits, serve};
pub use state::{AdminState, ClustersOf, Explainer, LiveSources, Source};

/// Default address of the admin server: this machine only.
pub const DEFAULT_ADDRESS: std::net::SocketAddr =
    std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 15000);

#[cfg(test)]
mod tests;
