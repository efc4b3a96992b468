//! Entries about metrics.

use std::sync::Arc;

use traffic::filter::Needs;
use traffic::telemetry::names::label;

use super::entries::{mode, providers};
use super::tracing::credential;
use crate::diagnostic::codes::istio::{TL005, TL008, TL009, TL021, TL022};
use crate::raw::istio::telemetry::{
    MetricSelector, Metrics as Raw, MetricsOverride as RawOverride, TagOverride,
};
use crate::raw::{Field, Map};
use crate::resource::istio::telemetry::{Metric, Metrics, MetricsOverride, TagOperation};
use crate::span::Span;
use crate::validate::istio::expression::expression;
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

/// Returns the entries about metrics.
pub(super) fn metrics(field: &Field<Vec<Field<Raw>>>, check: &mut Check<'_>) -> Vec<Metrics> {
    let mut entries = Vec::new();
    for (_, raw) in scalar::items(field, check) {
        let mut overrides = Vec::new();
        for (entry, raw) in scalar::items(&raw.overrides, check) {
            let line = check.line(entry.span());
            overrides
                .extend(metrics_override(raw, check).map(|one| MetricsOverride { line, ..one }));
        }
        scalar::duration(&raw.reporting_interval, check);
        entries.push(Metrics {
            providers: providers(&raw.providers, check),
            overrides,
        });
    }
    entries
}

/// Returns an override; `None` if its metric does not exist.
fn metrics_override(raw: &RawOverride, check: &mut Check<'_>) -> Option<MetricsOverride> {
    let all = MetricSelector::default();
    let selector = raw.matched.get().unwrap_or(&all);
    let metric = metric(selector, check);
    let mut tags = Vec::new();
    for (name, key, value) in raw.tag_overrides.get().into_iter().flat_map(Map::iter) {
        if let Some(raw) = value.get() {
            let operation = tag(name, key.span(), raw, check);
            tags.extend(operation.map(|one| (Arc::from(name), one)));
        }
    }
    Some(MetricsOverride {
        mode: mode(&selector.mode, check),
        metric: metric?,
        disabled: raw.disabled.get().copied(),
        tags,
        ..MetricsOverride::default()
    })
}

/// Returns the metric of a selector, `Some(None)` for all metrics; `None` if there is none with its name.
fn metric(raw: &MetricSelector, check: &mut Check<'_>) -> Option<Option<Metric>> {
    shared::exclude(
        [
            ("metric", shared::text_span(&raw.metric)),
            ("customMetric", shared::text_span(&raw.custom_metric)),
        ],
        TL005,
        "keep the one that is meant",
        check,
    );
    if let Some(name) = shared::text(&raw.custom_metric) {
        let found = Metric::ALL.iter().find(|(_, _, known)| *known == name);
        if found.is_none() {
            let message = format!("there is no metric `{name}`");
            let found = check.warning(TL008, raw.custom_metric.span(), message);
            found.help("write the name of a metric without `istio_`, such as `requests_total`");
        }
        return found.map(|(metric, ..)| Some(*metric));
    }
    let names: Vec<(&str, Option<Metric>)> = Metric::ALL
        .iter()
        .map(|(metric, name, _)| (*name, Some(*metric)))
        .chain([("ALL_METRICS", None)])
        .collect();
    match raw.metric.get() {
        Some(_) => scalar::enum_of(&raw.metric, &names, check),
        None => Some(None),
    }
}

/// Labels of Istio's metrics.
fn labels() -> impl Iterator<Item = &'static str> {
    let workloads = label::SOURCE.into_iter().chain(label::DESTINATION);
    workloads.chain([
        label::REPORTER,
        label::DESTINATION_SERVICE,
        label::DESTINATION_SERVICE_NAME,
        label::DESTINATION_SERVICE_NAMESPACE,
        label::REQUEST_PROTOCOL,
        label::RESPONSE_CODE,
        label::GRPC_RESPONSE_STATUS,
        label::RESPONSE_FLAGS,
        label::CONNECTION_SECURITY_POLICY,
    ])
}

fn tag(name: &str, key: Span, raw: &TagOverride, check: &mut Check<'_>) -> Option<TagOperation> {
    let mut bytes = name.bytes();
    let starts = bytes
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let is_name = starts && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_name || name == "le" || name.starts_with("__") {
        let found = check.error(TL005, key, format!("`{name}` cannot be a label"));
        found.help(
            "write letters, digits and `_`; `le` and names with `__` are those of Prometheus",
        );
        return None;
    }
    let operations = [("UPSERT", false), ("REMOVE", true)];
    let is_removed = scalar::enum_of(&raw.operation, &operations, check).unwrap_or(false);
    match (is_removed, shared::text(&raw.value)) {
        (true, None) => {
            if !labels().any(|known| known == name) {
                let found = check.warning(TL009, key, format!("no metric has a label `{name}`"));
                found.help("docs/metrics.md lists the labels");
            }
            Some(TagOperation::Remove)
        }
        (true, Some(_)) => {
            let found = check.error(
                TL005,
                raw.value.span(),
                "a label that is removed has no value",
            );
            found.help("remove `value`, or write `operation: UPSERT`");
            None
        }
        (false, None) => {
            let found = check.error(TL005, key, format!("label `{name}` has no value"));
            found.help("write an expression, such as `value: request.host`");
            None
        }
        (false, Some(_)) => {
            let value = expression(&raw.value, "the label is `unknown`", check)?;
            let mut needs = Needs::default();
            value.add_needs(&mut needs);
            if let Some(name) = credential(&needs) {
                let message = format!("`{name}` has credentials: the label is left out");
                let found = check.warning(TL021, raw.value.span(), message);
                found.help("remove the label");
                return None;
            }
            for attribute in value.unbounded() {
                let message = format!(
                    "`{attribute}` has almost as many values as there are requests: most are counted as `other`"
                );
                let found = check.warning(TL022, raw.value.span(), message);
                found.help("read the value from the access log or from traces");
            }
            Some(TagOperation::Upsert(value))
        }
    }
}
