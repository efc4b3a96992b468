//! Rules of HTTPRoute and GRPCRoute as written.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Filter, FilteredBackend, GrpcFilter};
use crate::raw::Field;

/// Rule of an HTTPRoute.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRule {
    /// Name of the rule.
    pub name: Field<String>,
    /// Matches, of which one must hold. Default: every request.
    pub matches: Field<Vec<Field<HttpMatch>>>,
    /// Filters.
    pub filters: Field<Vec<Field<Filter>>>,
    /// Backends, by weight.
    pub backend_refs: Field<Vec<Field<FilteredBackend<Filter>>>>,
    /// Limits of the time.
    pub timeouts: Field<Timeouts>,
    /// Retries; experimental.
    pub retry: Field<Retry>,
    /// Session affinity; experimental.
    pub session_persistence: Field<IgnoredAny>,
}

/// Match of an HTTPRoute. All conditions must hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpMatch {
    /// Path. Default: the prefix `/`.
    pub path: Field<PathMatch>,
    /// Headers.
    pub headers: Field<Vec<Field<KeyMatch>>>,
    /// Query parameters.
    pub query_params: Field<Vec<Field<KeyMatch>>>,
    /// Method.
    pub method: Field<String>,
}

/// Condition on a path.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PathMatch {
    /// `Exact`, `PathPrefix` or `RegularExpression`. Default: `PathPrefix`.
    #[serde(rename = "type")]
    pub match_type: Field<String>,
    /// Value. Default: `/`.
    pub value: Field<String>,
}

/// Condition on a header or a query parameter.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KeyMatch {
    /// `Exact` or `RegularExpression`. Default: `Exact`.
    #[serde(rename = "type")]
    pub match_type: Field<String>,
    /// Name.
    pub name: Field<String>,
    /// Value.
    pub value: Field<String>,
}

/// Limits of the time of a request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Timeouts {
    /// All attempts. Default: no limit.
    pub request: Field<String>,
    /// Each attempt. Default: no limit.
    pub backend_request: Field<String>,
}

/// Retries.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Retry {
    /// Statuses that are retried.
    pub codes: Field<Vec<Field<i64>>>,
    /// Attempts after the first one. Default: 2.
    pub attempts: Field<i64>,
    /// Least pause before each retry.
    pub backoff: Field<String>,
}

/// Rule of a GRPCRoute.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GrpcRule {
    /// Name of the rule.
    pub name: Field<String>,
    /// Matches, of which one must hold. Default: every request.
    pub matches: Field<Vec<Field<GrpcMatch>>>,
    /// Filters.
    pub filters: Field<Vec<Field<GrpcFilter>>>,
    /// Backends, by weight.
    pub backend_refs: Field<Vec<Field<FilteredBackend<GrpcFilter>>>>,
    /// Session affinity; experimental.
    pub session_persistence: Field<IgnoredAny>,
}

/// Match of a GRPCRoute. All conditions must hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GrpcMatch {
    /// Service and method.
    pub method: Field<GrpcMethod>,
    /// Request metadata.
    pub headers: Field<Vec<Field<KeyMatch>>>,
}

/// Condition on service and method.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GrpcMethod {
    /// `Exact` or `RegularExpression`. Default: `Exact`.
    #[serde(rename = "type")]
    pub match_type: Field<String>,
    /// Service. Default: all services.
    pub service: Field<String>,
    /// Method. Default: all methods.
    pub method: Field<String>,
}
