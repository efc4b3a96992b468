//! Compiles a resource set into a snapshot, as a pure function.
//!
//! Reads no clock and does no I/O; live state comes from the registry by identity. It does all the work that a request
//! should not do: names are completed, route sources and delegates merged, policies chosen, match tables and
//! balancers built. Parts of the previous snapshot are kept by `Arc` if their inputs have not changed.
//!
//! Each step reads the results of the steps before it, and no later ones: `route_source` (resources that route, in
//! one form), `applies` (resources that apply to this proxy) and `members` (Kubernetes clusters), `service` (one
//! service) and `services` (all of them), `policies` (settings of DestinationRules), `clusters`, `rules` (rules of
//! route sources) and `listeners`. `update` keeps state from one compile for the next. `survey` applies the same
//! functions for `strait explain`.

mod applies;
mod authentication;
mod authorization;

pub mod certificates;

mod clusters;
mod conditions;

mod inputs;
mod listeners;
mod members;

pub mod own_pod;

pub mod peers;
pub mod policies;

mod provenance;
mod providers;
mod route_source;
mod rules;
pub mod security;
mod service;
mod services;

pub mod survey;

mod telemetry;
mod tracing;

mod update;

use crate::snapshot::{Logging, Retired, Snapshot, Tracing};
pub(crate) use applies::{telemetries, workload};
use clusters::{Built, Clusters};
use config_loader::catalog::{Tape, View};
pub use inputs::Inputs;
pub use listeners::lacks_export_listener;
use policies::Policies;
pub use providers::{unknown_provider, unknown_providers};
use security::SecurityPolicies;
pub use survey::{Collected, Survey};
pub use telemetry::unknown_telemetry_providers;
pub use tracing::is_traced;
pub use update::service_cache::ServiceCache;
use update::service_cache::{CachedServices, Start};

/// Compiles a snapshot. Unchanged parts are taken from `previous`, which must be of the same registry; the result is
/// the same as that of a fresh compile.
pub fn compile(inputs: &Inputs<'_>, previous: &Snapshot) -> Snapshot {
    compile_again(inputs, previous, &mut ServiceCache::default())
}

/// Compiles a snapshot as [`compile`] does, with the services that the last compile left in `service_cache`. `previous`
/// must be the snapshot of that compile.
pub fn compile_again(
    inputs: &Inputs<'_>,
    previous: &Snapshot,
    service_cache: &mut ServiceCache,
) -> Snapshot {
    let tape = Tape::default();
    let Start {
        services,
        routes,
        clusters,
        hosts,
        changes,
        rules,
    } = service_cache.start(inputs, &tape);
    let view = View::new(inputs.resources, &tape);
    let policies = Policies::new(view, inputs.identity, services.destination_rules());
    let mut clusters = Clusters::new(clusters::Sources {
        inputs,
        services: &services,
        policies: &policies,
        previous,
        changes: &changes,
        tape: &tape,
        reads: clusters,
        host_reads: hosts,
    });
    let mut security = SecurityPolicies::new(inputs, rules, services.members(view), previous);
    let listeners = listeners::compile(inputs, &routes, &mut security, &mut clusters, previous);
    let (policies, kept) = security.finish();
    let asked = providers::asked(&kept.rules, (&policies, &listeners), inputs, &mut clusters);
    let (tracing, logging) = receivers(inputs, &mut clusters, previous);
    let Built {
        clusters,
        missing,
        dns_names,
        reads,
        host_reads,
    } = clusters.finish();
    let policy_counts = kept.rules.counts();
    service_cache.keep(CachedServices {
        resources: inputs.resources.clone(),
        identity: inputs.identity.of_parts(),
        certificates: inputs.certificates.revision(),
        services,
        routes,
        rules: kept,
        clusters: reads,
        hosts: host_reads,
    });
    Snapshot {
        generation: 0,
        has_attached_policies: listeners.values().any(|one| one.policies.is_some()),
        listeners,
        policies,
        policy_counts,
        providers: asked.providers,
        rate_limit_service: asked.rate_limit_service,
        key_set_services: asked.key_set_services,
        tracing,
        logging,
        metrics: telemetry::metric_changes(inputs),
        node: telemetry::node(inputs.identity, previous),
        hides_unrouted: inputs.identity.mesh_config.hides_unrouted,
        path_normalization: inputs.identity.path_normalization(),
        clusters,
        missing,
        dns_names,
        retired: Retired::default(),
    }
}

/// Returns what is traced and logged, and the services that receive it.
fn receivers(
    inputs: &Inputs<'_>,
    clusters: &mut Clusters<'_>,
    previous: &Snapshot,
) -> (Option<Box<Tracing>>, Option<Box<Logging>>) {
    let tracing = tracing::tracing(inputs, clusters);
    (tracing, telemetry::logging(inputs, clusters, previous))
}

#[cfg(test)]
mod tests;
