//! HTTP rule, as written.

use serde::Deserialize;

use super::{Percent, StringMatch};
use crate::raw::{Field, Map};

/// An entry of `http`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRoute {
    /// `name`
    pub name: Field<String>,
    /// `match`
    pub r#match: Field<Vec<Field<HttpMatchRequest>>>,
    /// `route`
    pub route: Field<Vec<Field<HttpRouteDestination>>>,
    /// `redirect`
    pub redirect: Field<HttpRedirect>,
    /// `directResponse`
    pub direct_response: Field<HttpDirectResponse>,
    /// `delegate`
    pub delegate: Field<Delegate>,
    /// `rewrite`
    pub rewrite: Field<HttpRewrite>,
    /// `timeout`
    pub timeout: Field<String>,
    /// `retries`
    pub retries: Field<HttpRetry>,
    /// `fault`
    pub fault: Field<HttpFaultInjection>,
    /// `mirror`
    pub mirror: Field<Destination>,
    /// `mirrors`
    pub mirrors: Field<Vec<Field<HttpMirrorPolicy>>>,
    /// `mirrorPercent`
    pub mirror_percent: Field<i64>,
    /// `mirrorPercentage`
    pub mirror_percentage: Field<Percent>,
    /// `corsPolicy`
    pub cors_policy: Field<CorsPolicy>,
    /// `headers`
    pub headers: Field<Headers>,
}

/// Match block of an HTTP rule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpMatchRequest {
    /// `name`
    pub name: Field<String>,
    /// `uri`
    pub uri: Field<StringMatch>,
    /// `scheme`
    pub scheme: Field<StringMatch>,
    /// `method`
    pub method: Field<StringMatch>,
    /// `authority`
    pub authority: Field<StringMatch>,
    /// `headers`
    pub headers: Field<Map<StringMatch>>,
    /// `port`
    pub port: Field<i64>,
    /// `sourceLabels`
    pub source_labels: Field<Map<String>>,
    /// `gateways`
    pub gateways: Field<Vec<Field<String>>>,
    /// `queryParams`
    pub query_params: Field<Map<StringMatch>>,
    /// `ignoreUriCase`
    pub ignore_uri_case: Field<bool>,
    /// `withoutHeaders`
    pub without_headers: Field<Map<StringMatch>>,
    /// `sourceNamespace`
    pub source_namespace: Field<String>,
    /// `statPrefix`
    pub stat_prefix: Field<String>,
}

/// An entry of `route`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRouteDestination {
    /// `destination`
    pub destination: Field<Destination>,
    /// `weight`
    pub weight: Field<i64>,
    /// `headers`
    pub headers: Field<Headers>,
}

/// Service, or a subset of it, to which requests are sent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Destination {
    /// `host`
    pub host: Field<String>,
    /// `subset`
    pub subset: Field<String>,
    /// `port`
    pub port: Field<PortSelector>,
}

/// Port by number.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PortSelector {
    /// `number`
    pub number: Field<i64>,
}

/// `delegate`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Delegate {
    /// `name`
    pub name: Field<String>,
    /// `namespace`
    pub namespace: Field<String>,
}

/// `redirect`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRedirect {
    /// `uri`
    pub uri: Field<String>,
    /// `prefixRewrite`
    pub prefix_rewrite: Field<String>,
    /// `authority`
    pub authority: Field<String>,
    /// `port`
    pub port: Field<i64>,
    /// `derivePort`
    pub derive_port: Field<String>,
    /// `scheme`
    pub scheme: Field<String>,
    /// `redirectCode`
    pub redirect_code: Field<i64>,
}

/// `directResponse`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpDirectResponse {
    /// `status`
    pub status: Field<i64>,
    /// `body`
    pub body: Field<HttpBody>,
}

/// `directResponse.body`: exactly one field is set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpBody {
    /// `string`
    pub string: Field<String>,
    /// `bytes`
    pub bytes: Field<String>,
}

/// `rewrite`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRewrite {
    /// `uri`
    pub uri: Field<String>,
    /// `authority`
    pub authority: Field<String>,
    /// `uriRegexRewrite`
    pub uri_regex_rewrite: Field<RegexRewrite>,
}

/// `uriRegexRewrite`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RegexRewrite {
    /// `match`
    pub r#match: Field<String>,
    /// `rewrite`
    pub rewrite: Field<String>,
}

/// `retries`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRetry {
    /// `attempts`
    pub attempts: Field<i64>,
    /// `perTryTimeout`
    pub per_try_timeout: Field<String>,
    /// `retryOn`
    pub retry_on: Field<String>,
    /// `retryRemoteLocalities`
    pub retry_remote_localities: Field<bool>,
    /// `retryIgnorePreviousHosts`
    pub retry_ignore_previous_hosts: Field<bool>,
    /// `backoff`
    pub backoff: Field<String>,
}

/// `fault`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpFaultInjection {
    /// `delay`
    pub delay: Field<Delay>,
    /// `abort`
    pub abort: Field<Abort>,
}

/// `fault.delay`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Delay {
    /// `percent`
    pub percent: Field<i64>,
    /// `fixedDelay`
    pub fixed_delay: Field<String>,
    /// `exponentialDelay`
    pub exponential_delay: Field<String>,
    /// `percentage`
    pub percentage: Field<Percent>,
}

/// `fault.abort`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Abort {
    /// `httpStatus`
    pub http_status: Field<i64>,
    /// `grpcStatus`
    pub grpc_status: Field<String>,
    /// `http2Error`
    pub http2_error: Field<String>,
    /// `percentage`
    pub percentage: Field<Percent>,
}

/// An entry of `mirrors`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpMirrorPolicy {
    /// `destination`
    pub destination: Field<Destination>,
    /// `percentage`
    pub percentage: Field<Percent>,
}

/// `corsPolicy`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CorsPolicy {
    /// `allowOrigin`
    pub allow_origin: Field<Vec<Field<String>>>,
    /// `allowOrigins`
    pub allow_origins: Field<Vec<Field<StringMatch>>>,
    /// `allowMethods`
    pub allow_methods: Field<Vec<Field<String>>>,
    /// `allowHeaders`
    pub allow_headers: Field<Vec<Field<String>>>,
    /// `exposeHeaders`
    pub expose_headers: Field<Vec<Field<String>>>,
    /// `maxAge`
    pub max_age: Field<String>,
    /// `allowCredentials`
    pub allow_credentials: Field<bool>,
    /// `unmatchedPreflights`
    pub unmatched_preflights: Field<String>,
}

/// `headers`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Headers {
    /// `request`
    pub request: Field<HeaderOperations>,
    /// `response`
    pub response: Field<HeaderOperations>,
}

/// Header edits of one message.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HeaderOperations {
    /// `set`
    pub set: Field<Map<String>>,
    /// `add`
    pub add: Field<Map<String>>,
    /// `remove`
    pub remove: Field<Vec<Field<String>>>,
}
