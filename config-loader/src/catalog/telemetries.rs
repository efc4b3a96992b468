//! Telemetry resources of a workload, and what they say together, as in Istio.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use traffic::filter::Expression;

use super::workload_policies::{SelectsWorkloads, is_attached, is_own_gateway};
use super::{View, Workload};
use crate::resource::gateway_api::KubernetesGateway;
use crate::resource::istio::PolicyTarget;
use crate::resource::istio::telemetry::{
    CustomTag, Metric, MetricsOverride, TagOperation, TrafficSide,
};
use crate::resource::istio::{MeshConfig, ProviderKind, Telemetry};
use crate::resource::{Object, Spec};

/// Telemetries that apply to a workload, the widest first: later ones win.
pub type Telemetries<'s> = Vec<&'s Arc<Object<Telemetry>>>;

impl SelectsWorkloads for Telemetry {
    fn selector(&self) -> &BTreeMap<String, String> {
        &self.scope.selector
    }

    fn targets(&self) -> &[PolicyTarget] {
        &self.scope.targets
    }
}

/// Returns the Telemetries that apply to a workload, and to the listeners of a Gateway of the Gateway API if one is given:
/// the oldest without selector of the root namespace, the oldest of the workload's namespace, and then each that selects
/// the workload or is attached to the Gateway.
pub fn telemetries_of<'s>(
    view: impl Into<View<'s>>,
    workload: Workload<'s>,
    gateway: Option<&'s Object<KubernetesGateway>>,
) -> Telemetries<'s> {
    let view = view.into();
    let (root, own) = (workload.root_namespace, workload.namespace);
    let of_namespace = |namespace: &'s str| by_age(view.in_namespace::<Telemetry>(namespace));
    let widest = |namespace: &'s str| {
        let mut all = of_namespace(namespace).into_iter();
        all.find(|one| one.spec.selects_all())
    };
    let mut applying: Telemetries<'s> = widest(root).into_iter().collect();
    if own != root {
        applying.extend(widest(own));
    }
    let mut namespaces = vec![own];
    if let Some(gateway) = gateway {
        namespaces.extend([root, &*gateway.id.namespace]);
    }
    namespaces.sort_unstable();
    namespaces.dedup();
    let narrow = namespaces.into_iter().flat_map(of_namespace);
    let narrow = narrow.filter(|one| !one.spec.selects_all());
    let narrow = narrow.filter(|one| match one.spec.targets() {
        [] => *one.id.namespace == *own && workload.is_selected_by(one.spec.selector()),
        _ => match gateway {
            Some(gateway) => is_attached(one, gateway, root),
            None => is_own_gateway(one, workload),
        },
    });
    applying.extend(by_age(narrow));
    applying
}

/// Returns objects, the oldest first.
pub fn by_age<'s, T: Spec>(
    objects: impl Iterator<Item = &'s Arc<Object<T>>>,
) -> Vec<&'s Arc<Object<T>>> {
    let mut objects: Vec<_> = objects.collect();
    objects.sort_by(|a, b| a.age().cmp(&b.age()));
    objects
}

/// A log of one side: a provider that exists, and the condition for its lines.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderLog {
    /// Name of the provider.
    pub provider: Arc<str>,
    /// Condition for a line.
    pub filter: Option<Arc<Expression>>,
}

/// Returns the logs of one side, by name; `None` if no provider of logs results, so that the log is that of the mesh.
///
/// Source: Istio's `mergeLogs`. Providers of the last resource that names some are in scope, and of each the last entry
/// counts.
pub fn access_logs(
    telemetries: &[&Arc<Object<Telemetry>>],
    mesh: &MeshConfig,
    side: TrafficSide,
) -> Option<Vec<ProviderLog>> {
    let defaults = &mesh.default_providers.access_logging;
    let mut by_provider: BTreeMap<&Arc<str>, Option<Option<Arc<Expression>>>> = BTreeMap::new();
    let mut resources = telemetries.iter().map(|one| &one.spec.access_logging);
    if resources.all(Vec::is_empty) {
        by_provider.extend(defaults.iter().map(|name| (name, Some(None))));
    }
    let mut filters: BTreeMap<&Arc<str>, &Option<Arc<Expression>>> = BTreeMap::new();
    let mut in_scope: BTreeSet<&Arc<str>> = defaults.iter().collect();
    for telemetry in telemetries {
        let entries = telemetry.spec.access_logging.iter();
        let entries = entries.filter(|entry| entry.mode.includes(side));
        let named = entries.flat_map(|entry| entry.providers.iter().map(move |one| (one, entry)));
        let named: Vec<_> = named.collect();
        filters.extend(named.iter().map(|(name, entry)| (*name, &entry.filter)));
        if !named.is_empty() {
            in_scope = named.into_iter().map(|(name, _)| name).collect();
        }
    }
    let mut providers = defaults;
    for entry in telemetries.iter().flat_map(|one| &one.spec.access_logging) {
        if !entry.providers.is_empty() {
            providers = &entry.providers;
        }
        if !entry.mode.includes(side) {
            continue;
        }
        for name in providers.iter().filter(|name| in_scope.contains(name)) {
            let filter = filters.get(name).copied().cloned().flatten();
            by_provider.insert(name, (!entry.disabled).then_some(filter));
        }
    }
    let is_log = |name: &str| mesh.provider(name).is_some_and(|kind| kind.is_log());
    by_provider.retain(|name, _| is_log(name));
    if by_provider.is_empty() {
        return None;
    }
    let enabled = by_provider.into_iter();
    let enabled = enabled.filter_map(|(name, filter)| {
        Some(ProviderLog {
            provider: Arc::clone(name),
            filter: filter?,
        })
    });
    Some(enabled.collect())
}

/// Tracing of one side.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedTracing {
    /// Name of the provider; `None` for no spans.
    pub provider: Option<Arc<str>>,
    /// Percentage of sampled requests.
    pub sampling: Option<f64>,
    /// Whether no spans are sent.
    pub disables_reporting: bool,
    /// Attributes of spans.
    pub custom_tags: Option<Arc<[CustomTag]>>,
    /// Whether the request id of a client may say that a request is sampled.
    pub uses_request_id: bool,
    /// Whether spans have the attributes `istio.*`.
    pub has_istio_tags: bool,
    /// Whether trace contexts are removed from requests to endpoints.
    pub disables_propagation: bool,
}

/// Returns the tracing of one side; `None` if neither a resource nor a default provider is about it.
pub fn tracing(
    telemetries: &[&Arc<Object<Telemetry>>],
    mesh: &MeshConfig,
    side: TrafficSide,
) -> Option<MergedTracing> {
    let default = mesh.default_providers.tracing.first();
    let mut entries = telemetries
        .iter()
        .flat_map(|one| &one.spec.tracing)
        .peekable();
    if entries.peek().is_none() && default.is_none() {
        return None;
    }
    let mut merged = MergedTracing {
        provider: default.cloned(),
        sampling: None,
        disables_reporting: false,
        custom_tags: None,
        uses_request_id: true,
        has_istio_tags: true,
        disables_propagation: false,
    };
    for entry in entries.filter(|entry| entry.mode.includes(side)) {
        merged.provider = entry.provider.clone().or(merged.provider);
        merged.sampling = entry.sampling.or(merged.sampling);
        merged.custom_tags = entry.custom_tags.clone().or(merged.custom_tags);
        let set = |value: &mut bool, by: Option<bool>| *value = by.unwrap_or(*value);
        set(&mut merged.disables_reporting, entry.disables_reporting);
        set(&mut merged.uses_request_id, entry.uses_request_id);
        set(&mut merged.has_istio_tags, entry.has_istio_tags);
        set(&mut merged.disables_propagation, entry.disables_propagation);
    }
    Some(merged)
}

/// Changes of the metrics of one side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MergedMetrics {
    /// Whether the side has no metrics.
    pub is_off: bool,
    /// Changes of single metrics.
    pub changes: BTreeMap<Metric, MetricChange>,
}

/// Changes of a metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricChange {
    /// Whether the metric is not made.
    pub is_off: bool,
    /// Changes of labels, by name.
    pub tags: BTreeMap<Arc<str>, TagOperation>,
}

/// Returns the changes of the metrics of one side for the provider `prometheus`.
///
/// Source: Istio's `mergeMetrics`. Any override after one that disables all metrics brings them back.
pub fn metrics(
    telemetries: &[&Arc<Object<Telemetry>>],
    mesh: &MeshConfig,
    side: TrafficSide,
) -> MergedMetrics {
    let defaults = &mesh.default_providers.metrics;
    let entries = || telemetries.iter().flat_map(|one| &one.spec.metrics);
    let is_prometheus = |name: &Arc<str>| {
        let kind = mesh.provider(name);
        matches!(kind, Some(ProviderKind::Prometheus))
    };
    let named = entries().rfind(|entry| !entry.providers.is_empty());
    let in_scope = named.map_or(defaults, |entry| &entry.providers);
    let mut merged = MergedMetrics::default();
    let mut providers = defaults;
    for entry in entries() {
        if !entry.providers.is_empty() {
            providers = &entry.providers;
        }
        let mut counted = providers.iter().filter(|name| in_scope.contains(name));
        if !counted.any(is_prometheus) {
            continue;
        }
        let overrides = entry.overrides.iter();
        for one in overrides.filter(|one| one.mode.includes(side)) {
            merged.apply(one);
        }
    }
    if merged.is_off {
        merged.changes.clear();
    }
    merged
}

impl MergedMetrics {
    fn apply(&mut self, change: &MetricsOverride) {
        if change.metric.is_none() && change.disabled == Some(true) {
            self.is_off = true;
            return;
        }
        self.is_off = false;
        let all = Metric::ALL.iter().map(|(metric, ..)| *metric);
        for metric in all.filter(|one| change.metric.is_none_or(|metric| metric == *one)) {
            let known = self.changes.entry(metric).or_default();
            known.is_off = change.disabled.unwrap_or(known.is_off);
            known.tags.extend(change.tags.iter().cloned());
        }
    }
}

#[cfg(test)]
mod tests;
