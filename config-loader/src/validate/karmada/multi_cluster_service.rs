//! MultiClusterService: the checks of its API and its webhook.

use std::sync::Arc;

use crate::diagnostic::codes::multicluster::{
    MCS001, MCS002, MCS003, MCS004, MCS005, MCS006, MCS007, MCS008, MCS009,
};
use crate::raw::Field;
use crate::raw::karmada as raw;
use crate::resource::karmada::{Exposure, ExposurePort, MultiClusterService, NamedCluster};
use crate::span::Span;
use crate::validate::{Check, api, api_status, scalar};

const TYPES: [(&str, Exposure); 2] = [
    (Exposure::CrossCluster.as_str(), Exposure::CrossCluster),
    (Exposure::LoadBalancer.as_str(), Exposure::LoadBalancer),
];

/// Largest length of a cluster name, in bytes.
const CLUSTER_NAME_MAX: usize = 48;

/// Checks a MultiClusterService.
pub fn multi_cluster_service(
    raw: &raw::MultiClusterService,
    check: &mut Check<'_>,
) -> MultiClusterService {
    let empty = raw::MultiClusterServiceSpec::default();
    let spec = raw.spec.get().unwrap_or(&empty);
    name(check);
    if !raw.spec.is_set() {
        api::required(check.body(), "spec", "", MCS002, check);
    } else if !spec.types.is_set() && !raw.spec.is_invalid() {
        api::required(raw.spec.span(), "types", "", MCS002, check);
    }
    let exposure = exposure(&spec.types, check);
    let ports = ports(&spec.ports, check);
    let mut conditions = Vec::new();
    let mut ingress = Vec::new();
    if let Some(status) = raw.status.get() {
        conditions = api_status::conditions(&status.conditions, MCS008, check);
        ingress = api_status::ingress(&status.load_balancer, MCS009, check);
    }
    MultiClusterService {
        exposure,
        exposure_line: check.line(spec.types.span()),
        ports,
        providers: providers(spec, check),
        consumers: consumers(spec, check),
        conditions,
        ingress,
    }
}

/// Checks that the name is a Service name: a DNS-1035 label.
fn name(check: &mut Check<'_>) {
    let name = check.name().to_owned();
    let starts_with_letter = name.starts_with(|c: char| c.is_ascii_lowercase());
    if name.is_empty() || (api::is_label(&name) && starts_with_letter) {
        return;
    }
    let rule = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
                character, and end with an alphanumeric character";
    let message = format!("Invalid value: {name:?}: {rule}");
    check.error(MCS001, check.name_span(), message);
}

fn exposure(field: &Field<Vec<Field<String>>>, check: &mut Check<'_>) -> Exposure {
    let mut found: Vec<Exposure> = Vec::new();
    let entries = scalar::items(field, check);
    if entries.is_empty() && field.get().is_some_and(Vec::is_empty) {
        check.error(MCS002, field.span(), "Required value");
    }
    for (entry, text) in &entries {
        if text.is_empty() {
            api::invalid(entry, "must be not empty", MCS002, check);
        }
        let exposure = api::enum_of(entry, &TYPES, check);
        found.extend(exposure.filter(|exposure| !found.contains(exposure)));
    }
    if found.len() > 1 {
        let names: Vec<String> = entries
            .iter()
            .map(|(_, text)| format!("{text:?}"))
            .collect();
        let rule = "MultiClusterService types should not contain more than one type";
        let message = format!("Invalid value: [{}]: {rule}", names.join(", "));
        check.error(MCS003, field.span(), message);
    }
    found.first().copied().unwrap_or_default()
}

fn ports(field: &Field<Vec<Field<raw::ExposurePort>>>, check: &mut Check<'_>) -> Vec<ExposurePort> {
    let mut names: Vec<(&str, Span)> = Vec::new();
    let mut ports = Vec::new();
    for (entry, raw) in scalar::items(field, check) {
        if let Some(name) = raw.name.get().filter(|name| !name.is_empty()) {
            if !api::is_label(name) {
                api::invalid(&raw.name, api::LABEL_RULE, MCS004, check);
            }
            match names.iter().find(|(known, _)| known == name) {
                Some((_, first)) => api::duplicate(name, raw.name.span(), *first, MCS005, check),
                None => names.push((name, raw.name.span())),
            }
        }
        if let Some(port) = api::required_port(&raw.port, entry.span(), "port", MCS002, check) {
            ports.push(ExposurePort {
                port,
                name: api::some_text(&raw.name),
                line: check.line(entry.span()),
            });
        }
    }
    ports
}

/// Returns the clusters of `providerClusters`, or of the field that it replaces.
fn providers(spec: &raw::MultiClusterServiceSpec, check: &mut Check<'_>) -> Vec<NamedCluster> {
    let clusters = clusters(&spec.provider_clusters, "providerClusters", check);
    let old = &spec.service_provision_clusters;
    let old = old_clusters(old, "serviceProvisionClusters", "providerClusters", check);
    if clusters.is_empty() { old } else { clusters }
}

/// Returns the clusters of `consumerClusters`, or of the fields that it replaces.
fn consumers(spec: &raw::MultiClusterServiceSpec, check: &mut Check<'_>) -> Vec<NamedCluster> {
    let successor = "consumerClusters";
    let clusters = clusters(&spec.consumer_clusters, successor, check);
    let old = &spec.service_consumption_clusters;
    let old = old_clusters(old, "serviceConsumptionClusters", successor, check);
    let range = spec.range.get().map_or_else(Vec::new, |range| {
        old_clusters(&range.cluster_names, "range.clusterNames", successor, check)
    });
    [clusters, old, range]
        .into_iter()
        .find(|list| !list.is_empty())
        .unwrap_or_default()
}

fn clusters(
    field: &Field<Vec<Field<raw::ClusterSelector>>>,
    list: &str,
    check: &mut Check<'_>,
) -> Vec<NamedCluster> {
    let mut names = Vec::new();
    for (index, (entry, raw)) in scalar::items(field, check).into_iter().enumerate() {
        if !raw.name.is_set() {
            api::required(entry.span(), "name", "", MCS002, check);
        }
        let path = format!("spec.{list}[{index}].name");
        names.extend(cluster_name(&raw.name, path, check));
    }
    names
}

fn old_clusters(
    field: &Field<Vec<Field<String>>>,
    list: &str,
    successor: &str,
    check: &mut Check<'_>,
) -> Vec<NamedCluster> {
    let entries = scalar::items(field, check);
    if !entries.is_empty() {
        check
            .warning(MCS007, field.span(), "the field is deprecated")
            .help(format!(
                "write `{successor}`, with a `name` for each cluster"
            ));
    }
    let entries = entries.iter().enumerate();
    let names = entries.filter_map(|(index, (entry, _))| {
        cluster_name(entry, format!("spec.{list}[{index}]"), check)
    });
    names.collect()
}

fn cluster_name(
    field: &Field<String>,
    path: String,
    check: &mut Check<'_>,
) -> Option<NamedCluster> {
    let name = field.get()?;
    if name.is_empty() {
        api::invalid(field, "must be not empty", MCS006, check);
        return None;
    }
    if name.len() > CLUSTER_NAME_MAX {
        let why = format!("must be no more than {CLUSTER_NAME_MAX} characters");
        api::invalid(field, why, MCS006, check);
    } else if !api::is_label(name) {
        api::invalid(field, api::LABEL_RULE, MCS006, check);
    }
    Some(NamedCluster {
        name: Arc::from(name.as_str()),
        field: path.into(),
        line: check.line(field.span()),
    })
}

#[cfg(test)]
mod tests;
