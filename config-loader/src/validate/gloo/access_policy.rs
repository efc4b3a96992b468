//! `appliedAccessPolicies` of a Destination.

use super::values::{cluster_ref, generation, list, mesh_ref, texts};
use crate::raw::Field;
use crate::raw::gloo as raw;
use crate::resource::gloo::{
    AccessPolicy, AppliedAccessPolicy, ClusterRef, DestinationSelector, SourceSelector,
};
use crate::validate::{Check, api, scalar};

pub(super) fn access_policies(
    field: &Field<Vec<Field<raw::AppliedAccessPolicy>>>,
    check: &mut Check<'_>,
) -> Vec<AppliedAccessPolicy> {
    let mut policies = Vec::new();
    for (_, raw) in scalar::items(field, check) {
        policies.push(AppliedAccessPolicy {
            policy: raw.reference.get().map(mesh_ref).unwrap_or_default(),
            observed_generation: generation(&raw.observed_generation, check),
            spec: raw
                .spec
                .get()
                .map(|spec| access_policy(spec, check))
                .unwrap_or_default(),
        });
    }
    policies
}

fn access_policy(raw: &raw::AccessPolicySpec, check: &mut Check<'_>) -> AccessPolicy {
    let mut policy = AccessPolicy {
        paths: list(scalar::items(&raw.allowed_paths, check)),
        methods: list(scalar::items(&raw.allowed_methods, check)),
        ..AccessPolicy::default()
    };
    for (entry, _) in scalar::items(&raw.allowed_ports, check) {
        policy.ports.extend(api::port(entry, check));
    }
    for (_, raw) in scalar::items(&raw.source_selector, check) {
        let mut selector = SourceSelector::default();
        if let Some(matcher) = raw.kube_identity_matcher.get() {
            selector.namespaces = list(scalar::items(&matcher.namespaces, check));
            selector.clusters = list(scalar::items(&matcher.clusters, check));
        }
        if let Some(accounts) = raw.kube_service_account_refs.get() {
            selector.service_accounts = references(&accounts.service_accounts, check);
        }
        policy.sources.push(selector);
    }
    for (_, raw) in scalar::items(&raw.destination_selector, check) {
        let mut selector = DestinationSelector::default();
        if let Some(matcher) = raw.kube_service_matcher.get() {
            selector.labels = texts(&matcher.labels);
            selector.namespaces = list(scalar::items(&matcher.namespaces, check));
            selector.clusters = list(scalar::items(&matcher.clusters, check));
        }
        if let Some(services) = raw.kube_service_refs.get() {
            selector.services = references(&services.services, check);
        }
        policy.destinations.push(selector);
    }
    policy
}

fn references(
    field: &Field<Vec<Field<raw::ClusterObjectRef>>>,
    check: &mut Check<'_>,
) -> Vec<ClusterRef> {
    let entries = scalar::items(field, check);
    entries.iter().map(|(_, raw)| cluster_ref(raw)).collect()
}
