//! Queries over the loaded resources: hosts, workloads, names, and the precedence between conflicting values.
//!
//! The checks of references and the compiler of snapshots both use only these functions, so that `check` and traffic
//! agree about every host.

mod clusters;
mod delegates;
mod describes;
mod differences;
mod exports;

pub mod gateway_api;
pub mod hostname;

mod index;

mod naming;
mod peers;
mod pods;
mod proxy_configs;
mod rules;
mod services;
mod shifts;
pub mod sidecars;
mod slices;
mod source;
pub mod telemetries;
mod view;
mod workload;
mod workload_policies;

/// Maximum number of clusters that share the requests for a service.
pub const POOLS_MAX: usize = 64;

/// Maximum number of rules that one rule is split into for the traffic shifts of its destinations.
pub const SHIFT_VARIANTS_MAX: usize = 64;

pub use clusters::ClusterNames;
pub use delegates::{UnusableDelegate, delegate};
pub use differences::{Change, differences};
pub use exports::{MERGED_CONFLICTS, is_accepted, served_exports};
pub use index::HostIndex;
pub use naming::{DefaultDomain, Naming};
pub use peers::{Accepted, PeerPolicy};
pub use pods::{PodInfo, pod, pod_of, slices_of_changed};
pub use proxy_configs::proxy_configs_of;
pub use rules::{DestinationRules, PossibleClient};
pub use services::{HostEntry, Seen, Services};
pub use shifts::RoutedHosts;
pub use slices::Slices;
pub use source::Source;
pub use view::{Changes, Read, Readers, Reads, Tape, View};
pub use workload::Workload;
pub use workload_policies::{
    ROOT_NAMESPACE, SelectsWorkloads, attached_to, policies_at, policies_of, unscoped,
};
