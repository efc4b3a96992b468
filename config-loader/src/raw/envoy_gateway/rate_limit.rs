//! Limits on requests as written.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::raw::Field;

/// Limits on requests.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RateLimit {
    /// `Global` or `Local`; deprecated: the fields of that name say so.
    #[serde(rename = "type")]
    pub kind: Field<IgnoredAny>,
    /// Limits that the rate limit service counts for all proxies.
    pub global: Field<Rules>,
    /// Limits of each proxy.
    pub local: Field<Rules>,
}

/// Rules of limits.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rules {
    /// Rules; each that selects a request counts it.
    pub rules: Field<Vec<Field<Rule>>>,
}

/// Limit, and the requests that it counts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// Conditions on requests; all must hold. Default: every request.
    pub client_selectors: Field<Vec<Field<SelectCondition>>>,
    /// Requests per unit of time.
    pub limit: Field<LimitValue>,
    /// Number by which a request counts. Default: 1.
    pub cost: Field<Cost>,
    /// Whether all targets share the limit. Default: each has its own.
    pub shared: Field<bool>,
    /// Whether requests are counted and never refused. Default: false.
    pub shadow_mode: Field<bool>,
}

/// Requests per unit of time.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LimitValue {
    /// Number of requests.
    pub requests: Field<i64>,
    /// `Second`, `Minute`, `Hour`, `Day`, `Week`, `Month` or `Year`.
    pub unit: Field<String>,
}

/// Number by which a request counts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cost {
    /// Number that is counted before the request is forwarded.
    pub request: Field<CostSource>,
    /// Number that is counted after the response.
    pub response: Field<IgnoredAny>,
}

/// Source of a cost.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CostSource {
    /// `Number` or `Metadata`.
    pub from: Field<String>,
    /// Number; 0 to check the limit only.
    pub number: Field<i64>,
    /// Metadata of the request with the number.
    pub metadata: Field<IgnoredAny>,
}

/// Conditions on requests; all must hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SelectCondition {
    /// Headers; all must match.
    pub headers: Field<Vec<Field<HeaderMatch>>>,
    /// Methods; one must match.
    pub methods: Field<Vec<Field<MethodMatch>>>,
    /// Path, without its query.
    pub path: Field<PathMatch>,
    /// Query parameters; all must match.
    pub query_params: Field<Vec<Field<HeaderMatch>>>,
    /// Address of the client.
    #[serde(rename = "sourceCIDR")]
    pub source_cidr: Field<SourceMatch>,
}

/// Condition on a header or a query parameter.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HeaderMatch {
    /// `Exact`, `RegularExpression`, or `Distinct` for a limit of each value. Default: `Exact`.
    #[serde(rename = "type")]
    pub kind: Field<String>,
    /// Name of the header or parameter.
    pub name: Field<String>,
    /// Value; not with `Distinct`.
    pub value: Field<String>,
    /// Whether the condition must not hold. Default: false.
    pub invert: Field<bool>,
}

/// Condition on the method.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MethodMatch {
    /// Method.
    pub value: Field<String>,
    /// Whether it must be another one. Default: false.
    pub invert: Field<bool>,
}

/// Condition on the path.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PathMatch {
    /// `Exact`, `PathPrefix` or `RegularExpression`. Default: `PathPrefix`, whole segments.
    #[serde(rename = "type")]
    pub kind: Field<String>,
    /// Path. Default: `/`.
    pub value: Field<String>,
    /// Whether the condition must not hold. Default: false.
    pub invert: Field<bool>,
}

/// Condition on the address of the client.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceMatch {
    /// `Exact` for one limit, `Distinct` for a limit of each address. Default: `Exact`.
    #[serde(rename = "type")]
    pub kind: Field<String>,
    /// Block of addresses, such as `10.0.0.0/8`.
    pub value: Field<String>,
}
