//! Telemetry as written.

use serde::Deserialize;

use super::{LabelSelector, PolicyTargetReference};
use crate::raw::{Field, Map};

/// Telemetry as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Telemetry {
    /// Workloads in the resource's namespace. Default: the whole namespace, or the mesh in the root namespace.
    pub selector: Field<LabelSelector>,
    /// Object that the resource is attached to; the older form of `targetRefs`.
    pub target_ref: Field<PolicyTargetReference>,
    /// Objects that the resource is attached to, at most 16; not beside `selector`.
    pub target_refs: Field<Vec<Field<PolicyTargetReference>>>,
    /// Traces.
    pub tracing: Field<Vec<Field<Tracing>>>,
    /// Metrics.
    pub metrics: Field<Vec<Field<Metrics>>>,
    /// Access logs.
    pub access_logging: Field<Vec<Field<AccessLogging>>>,
}

/// Traffic that an entry is about: an entry of `tracing` or `accessLogging`, `match`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModeSelector {
    /// Side of the traffic: `CLIENT_AND_SERVER` (default), `CLIENT` or `SERVER`.
    pub mode: Field<String>,
}

/// Provider of the mesh configuration.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderRef {
    /// Name of the provider in `extensionProviders` of the mesh configuration.
    pub name: Field<String>,
}

/// Entry of `tracing`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tracing {
    /// Traffic that the entry is about. Default: all.
    #[serde(rename = "match")]
    pub matched: Field<ModeSelector>,
    /// Receiver of spans; the first one counts. Default: that of the mesh configuration.
    pub providers: Field<Vec<Field<ProviderRef>>>,
    /// Share of requests without an earlier decision that are sampled, in percent.
    pub random_sampling_percentage: Field<f64>,
    /// Whether no spans are sent. Trace contexts are propagated anyway. Default: false.
    pub disable_span_reporting: Field<bool>,
    /// Attributes of spans, by name; they replace those of wider resources.
    pub custom_tags: Field<Map<CustomTag>>,
    /// Whether the request id of a client may say that a request is sampled. Default: true.
    pub use_request_id_for_trace_sampling: Field<bool>,
    /// Whether spans have the attributes `istio.*`. Default: true.
    pub enable_istio_tags: Field<bool>,
    /// Whether trace contexts are removed from requests to endpoints. Default: false.
    pub disable_context_propagation: Field<bool>,
}

/// Attribute of spans: one of its fields.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CustomTag {
    /// Fixed text.
    pub literal: Field<Literal>,
    /// Variable of the proxy's environment.
    pub environment: Field<NamedValue>,
    /// Header of the request.
    pub header: Field<NamedValue>,
    /// Operators of the access log.
    pub formatter: Field<Literal>,
}

/// Value of a tag.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Literal {
    /// The value. Required.
    pub value: Field<String>,
}

/// Named source of a tag.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NamedValue {
    /// Name of the variable or header. Required.
    pub name: Field<String>,
    /// Value without it. Default: no attribute.
    pub default_value: Field<String>,
}

/// Entry of `metrics`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metrics {
    /// Receivers of metrics; `prometheus` has an effect. Default: those of the mesh configuration.
    pub providers: Field<Vec<Field<ProviderRef>>>,
    /// Changes of metrics, in order.
    pub overrides: Field<Vec<Field<MetricsOverride>>>,
    /// Interval of TCP byte counters, which are exact at each scrape.
    pub reporting_interval: Field<String>,
}

/// Change of metrics: an entry of `overrides`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricsOverride {
    /// Metrics and traffic that are changed. Default: all.
    #[serde(rename = "match")]
    pub matched: Field<MetricSelector>,
    /// Whether the metrics are not made.
    pub disabled: Field<bool>,
    /// Labels, by name.
    pub tag_overrides: Field<Map<TagOverride>>,
}

/// Metrics and traffic that an override is about.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricSelector {
    /// Metric: `ALL_METRICS` (default), or one such as `REQUEST_COUNT`.
    pub metric: Field<String>,
    /// Metric by its name in Prometheus without `istio_`.
    pub custom_metric: Field<String>,
    /// Side of the traffic: `CLIENT_AND_SERVER` (default), `CLIENT` or `SERVER`.
    pub mode: Field<String>,
}

/// Change of a label.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TagOverride {
    /// Change: `UPSERT` (default) or `REMOVE`.
    pub operation: Field<String>,
    /// Expression over attributes, whose value the label has; with `UPSERT` alone.
    pub value: Field<String>,
}

/// Entry of `accessLogging`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AccessLogging {
    /// Traffic that the entry is about. Default: all.
    #[serde(rename = "match")]
    pub matched: Field<ModeSelector>,
    /// Receivers of lines. Default: those of the mesh configuration.
    pub providers: Field<Vec<Field<ProviderRef>>>,
    /// Whether there are no lines for these providers. Default: false.
    pub disabled: Field<bool>,
    /// Condition for a line.
    pub filter: Field<Filter>,
}

/// Condition for a line.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Filter {
    /// Expression over attributes, which is true for requests to log.
    pub expression: Field<String>,
}
