//! A pure function from a resource set to a snapshot.
//!
//! Reads no clock and does no I/O; live state comes from the registry by identity. It does all the work that a request
//! should not do: names are completed, VirtualServices and delegates merged, policies chosen, match tables and
//! balancers built. Parts of the snapshot before are kept by `Arc` where nothing that they follow from has changed.

mod balance;

pub mod certificates;

mod chains;
mod changes;

pub mod client_tls;

mod clusters;

mod delegates;
mod early;

mod exports;

mod federation;

mod hosts;

pub mod imports;

mod listeners;

mod members;

mod service_cache;

mod opaque;

mod policies;

mod retries;

mod rules;

mod service;

mod services;

pub mod survey;

mod workload;

use std::collections::BTreeMap;
use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::resource::istio::Pattern as RawPattern;

use crate::identity::Identity;
use crate::pattern::Pattern;
use crate::registry::Moment;
use crate::registry::Registry;
use crate::snapshot::Snapshot;
use crate::telemetry::StatsRegistry;
use crate::tls::Store;
use clusters::{Built, Clusters};
use policies::Policies;
pub use service_cache::ServiceCache;
pub use survey::Survey;

/// Everything that a snapshot follows from.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The resources in effect.
    pub resources: &'a ResourceSet,
    /// Who this proxy is.
    pub identity: &'a Identity,
    /// Live state by identity.
    pub registry: &'a Registry,
    /// Statistics by labels.
    pub stats: &'a StatsRegistry,
    /// Certificates by where they come from.
    pub certificates: &'a Store,
    /// The time, for endpoints that are new.
    pub now: Moment,
}

/// Compiles a snapshot. With `previous` from the same registry, what did not change is taken from there; the result is
/// the same as that of a fresh compile.
pub fn compile(inputs: &Inputs<'_>, previous: &Snapshot) -> Snapshot {
    compile_again(inputs, previous, &mut ServiceCache::default())
}

/// Compiles a snapshot as [`compile`] does, with the help of what the last compile left in `service_cache`. `previous` is
/// the snapshot that that compile made.
pub fn compile_again(
    inputs: &Inputs<'_>,
    previous: &Snapshot,
    service_cache: &mut ServiceCache,
) -> Snapshot {
    let (resources, identity) = (inputs.resources, inputs.identity);
    let certificates = inputs.certificates.revision();
    let (services, changes) = service_cache.services(inputs, previous);
    let policies = Policies::new(resources, identity);
    let mut clusters = Clusters::new(inputs, &services, &policies, (previous, &changes));
    let listeners = listeners::compile(inputs, &mut clusters, previous);
    let Built {
        clusters,
        without_port,
        dns_names,
    } = clusters.finish();
    service_cache.keep(inputs, certificates, services);
    Snapshot {
        generation: 0,
        listeners,
        clusters,
        without_port,
        dns_names,
        retired: BTreeMap::new(),
    }
}

/// A regular expression as requests use it.
fn pattern(raw: &RawPattern) -> Pattern {
    Pattern::new(Arc::clone(&raw.source), Arc::clone(&raw.regex))
}

#[cfg(test)]
mod tests;
