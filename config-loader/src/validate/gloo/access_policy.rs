//! `appliedAccessPolicies` of a Destination.

use std::sync::Arc;

use traffic::authz::{Attribute, Condition, Pattern, Values};

use super::values::{cluster_ref, generation, list, mesh_ref, texts};
use crate::diagnostic::codes::multicluster::{GD017, GD018, GD019, GD020};
use crate::raw::Field;
use crate::raw::gloo as raw;
use crate::resource::gloo::{
    AccessPolicy, AppliedAccessPolicy, Backing, ClusterRef, KubePort, KubeService, SourceSelector,
};
use crate::resource::port_protocol;
use crate::validate::istio::policy_values;
use crate::validate::{Check, api, scalar};

pub(super) fn access_policies(
    field: &Field<Vec<Field<raw::AppliedAccessPolicy>>>,
    backing: &Backing,
    check: &mut Check<'_>,
) -> Vec<AppliedAccessPolicy> {
    let entries = scalar::items(field, check);
    if let (Backing::External(_), false) = (backing, entries.is_empty()) {
        let message = "access policies of an external service have no effect: it has no workloads";
        let found = check.warning(GD017, field.span(), message);
        found.help("restrict clients where requests leave the mesh, by an AuthorizationPolicy of the egress gateway");
    }
    let policies = entries.into_iter().map(|(entry, raw)| {
        let policy = raw.reference.get().map(mesh_ref).unwrap_or_default();
        let spec = match raw.spec.get() {
            Some(spec) => access_policy(spec, backing, check),
            None => Err("it has no `spec`".to_owned()),
        };
        if let Err(problem) = &spec {
            let (name, namespace) = (&policy.name, &policy.namespace);
            let message = format!("access policy {namespace}/{name} admits no client: {problem}");
            let found = check.warning(GD018, entry.span(), message);
            found.help("correct the AccessPolicy in the management cluster");
        }
        AppliedAccessPolicy {
            policy,
            observed_generation: generation(&raw.observed_generation, check),
            spec,
            line: check.line(entry.span()),
        }
    });
    policies.collect()
}

fn access_policy(
    raw: &raw::AccessPolicySpec,
    backing: &Backing,
    check: &mut Check<'_>,
) -> Result<AccessPolicy, String> {
    let ports = scalar::items(&raw.allowed_ports, check);
    let ports: Vec<u16> = ports
        .into_iter()
        .filter_map(|(entry, _)| api::port(entry, check))
        .collect();
    let ports = (!raw.allowed_ports.get().is_none_or(Vec::is_empty)).then(|| Condition {
        attribute: Attribute::DestinationPort,
        values: Some(Values::Ports(ports.into())),
        not_values: None,
    });
    let texts = [
        (Attribute::Path, &raw.allowed_paths),
        (Attribute::Method, &raw.allowed_methods),
    ];
    let texts = texts.into_iter().filter_map(|(attribute, field)| {
        Some(Condition {
            values: Some(policy_values(&attribute, field, check)?),
            not_values: None,
            attribute,
        })
    });
    let operation: Vec<Condition> = texts.chain(ports).collect();
    if let Backing::Kube(kube) = backing {
        report_other_destination(raw, kube, check);
        report_methods_of_grpc(&raw.allowed_methods, &kube.ports, check);
    }
    let sources = scalar::items(&raw.source_selector, check);
    let sources = sources.into_iter().map(|(_, raw)| source(raw, check));
    let sources: Vec<SourceSelector> = sources.collect();
    // a reference means one account: in a principal, a wildcard would admit others
    let is_name = |part: &Arc<str>| !part.is_empty() && !part.contains('*');
    let mut accounts = sources.iter().flat_map(|source| &source.service_accounts);
    if !accounts.all(|account| is_name(&account.name) && is_name(&account.namespace)) {
        return Err(
            "a service account has no name or no namespace, or a wildcard in it".to_owned(),
        );
    }
    let mut names = sources
        .iter()
        .flat_map(|source| source.namespaces.iter().chain(&source.clusters));
    if names.any(|name| name.is_empty()) {
        return Err("a namespace or cluster is empty".to_owned());
    }
    Ok(AccessPolicy { sources, operation })
}

fn source(raw: &raw::IdentitySelector, check: &mut Check<'_>) -> SourceSelector {
    let mut selector = SourceSelector::default();
    if let Some(matcher) = raw.kube_identity_matcher.get() {
        selector.namespaces = list(scalar::items(&matcher.namespaces, check));
        selector.clusters = list(scalar::items(&matcher.clusters, check));
    }
    if let Some(accounts) = raw.kube_service_account_refs.get() {
        selector.service_accounts = references(&accounts.service_accounts, check);
    }
    selector
}

/// Warns of a `destinationSelector` that does not select the Destination, to which the policy applies all the same.
fn report_other_destination(
    raw: &raw::AccessPolicySpec,
    kube: &KubeService,
    check: &mut Check<'_>,
) {
    let own = &kube.service;
    let is_in = |names: Vec<Arc<str>>, name: &str| {
        names.is_empty() || names.iter().any(|one| **one == *name)
    };
    let selectors = scalar::items(&raw.destination_selector, check);
    let is_selected = selectors.iter().any(|(_, selector)| {
        let by_labels = selector.kube_service_matcher.get().is_some_and(|matcher| {
            let mut labels = texts(&matcher.labels).into_iter();
            is_in(
                list(scalar::items(&matcher.namespaces, check)),
                &own.namespace,
            ) && is_in(list(scalar::items(&matcher.clusters, check)), &own.cluster)
                && labels.all(|(key, value)| kube.labels.get(&key) == Some(&value))
        });
        let named = selector.kube_service_refs.get();
        let named = named.map(|named| references(&named.services, check));
        by_labels || named.is_some_and(|named| named.contains(own))
    });
    if !selectors.is_empty() && !is_selected {
        let message = "the selector of the access policy does not select this Destination, to which the policy applies";
        let found = check.warning(GD019, raw.destination_selector.span(), message);
        found.help("let the management plane write the status again: labels or the policy have changed since");
    }
}

/// Warns of methods that no request of gRPC has, if the service speaks nothing else.
fn report_methods_of_grpc(
    methods: &Field<Vec<Field<String>>>,
    ports: &[KubePort],
    check: &mut Check<'_>,
) {
    let is_grpc = |port: &KubePort| {
        let protocol = port_protocol::named(port.app_protocol.as_deref(), &port.name, "");
        protocol.eq_ignore_ascii_case("grpc")
    };
    let entries = list(scalar::items(methods, check));
    let admits_post = entries.iter().any(|method| {
        let pattern = Pattern::of(method);
        pattern.matches(b"POST", false)
    });
    if !entries.is_empty() && !admits_post && !ports.is_empty() && ports.iter().all(is_grpc) {
        let message = "the service speaks gRPC, whose method is POST: no request is admitted";
        let found = check.warning(GD020, methods.span(), message);
        found.help("add POST to `allowedMethods` of the AccessPolicy, or remove them");
    }
}

fn references(
    field: &Field<Vec<Field<raw::ClusterObjectRef>>>,
    check: &mut Check<'_>,
) -> Vec<ClusterRef> {
    let entries = scalar::items(field, check);
    entries.iter().map(|(_, raw)| cluster_ref(raw)).collect()
}
