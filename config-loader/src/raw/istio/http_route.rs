//! HTTP rule, as written.

use serde::Deserialize;

use super::{Percent, StringMatch};
use crate::raw::{Field, Map};

/// HTTP rule: an entry of `http`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRoute {
    /// Name of the rule, for access logs and metrics.
    pub name: Field<String>,
    /// Match blocks, of which any must match. Default: every request.
    pub r#match: Field<Vec<Field<HttpMatchRequest>>>,
    /// Weighted destinations.
    pub route: Field<Vec<Field<HttpRouteDestination>>>,
    /// Redirect of the client, instead of `route`.
    pub redirect: Field<HttpRedirect>,
    /// Local reply, instead of `route`.
    pub direct_response: Field<HttpDirectResponse>,
    /// VirtualService whose rules apply, instead of `route`.
    pub delegate: Field<Delegate>,
    /// Rewrite of path and authority.
    pub rewrite: Field<HttpRewrite>,
    /// Timeout of the response, including all attempts. Default: no limit.
    pub timeout: Field<String>,
    /// Retry policy. Default: that of the mesh.
    pub retries: Field<HttpRetry>,
    /// Fault injection.
    pub fault: Field<HttpFaultInjection>,
    /// Destination that receives copies of requests.
    pub mirror: Field<Destination>,
    /// Further destinations that receive copies of requests; not together with `mirror`.
    pub mirrors: Field<Vec<Field<HttpMirrorPolicy>>>,
    /// Deprecated: percentage of requests that `mirror` copies.
    pub mirror_percent: Field<i64>,
    /// Percentage of requests that `mirror` copies. Default: all.
    pub mirror_percentage: Field<Percent>,
    /// CORS policy.
    pub cors_policy: Field<CorsPolicy>,
    /// Header edits of requests and responses.
    pub headers: Field<Headers>,
}

/// Match block of an HTTP rule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpMatchRequest {
    /// Name of the block, appended to the rule's name.
    pub name: Field<String>,
    /// Condition on the path, without the query.
    pub uri: Field<StringMatch>,
    /// Condition on the scheme.
    pub scheme: Field<StringMatch>,
    /// Condition on the method.
    pub method: Field<StringMatch>,
    /// Condition on the authority, with its port if the client sent one.
    pub authority: Field<StringMatch>,
    /// Conditions on headers by name, all of which must hold.
    pub headers: Field<Map<StringMatch>>,
    /// Port of the listener. Default: any.
    pub port: Field<i64>,
    /// Labels that the proxy's workload must have. Ignored with `gateways`.
    pub source_labels: Field<Map<String>>,
    /// Gateways of this match block. Default: those of the VirtualService.
    pub gateways: Field<Vec<Field<String>>>,
    /// Conditions on query parameters by name, all of which must hold.
    pub query_params: Field<Map<StringMatch>>,
    /// Whether an exact or prefix match of `uri` ignores case. Default: false.
    pub ignore_uri_case: Field<bool>,
    /// Conditions on headers by name, none of which may hold.
    pub without_headers: Field<Map<StringMatch>>,
    /// Namespace of the proxy's workload. Ignored with `gateways`.
    pub source_namespace: Field<String>,
    /// Name of the route in metrics.
    pub stat_prefix: Field<String>,
}

/// Weighted destination: an entry of `route`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRouteDestination {
    /// Service and subset that requests are sent to; required.
    pub destination: Field<Destination>,
    /// Share relative to the other destinations. Default: 0; without effect for a single destination.
    pub weight: Field<i64>,
    /// Header edits for requests to this destination.
    pub headers: Field<Headers>,
}

/// Service, or a subset of it, to which requests are sent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Destination {
    /// Host of the service, as a short or full name; required.
    pub host: Field<String>,
    /// Subset of a DestinationRule. Default: all endpoints.
    pub subset: Field<String>,
    /// Port of the service. Default: its only port, else the listener's port.
    pub port: Field<PortSelector>,
}

/// Port by number.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PortSelector {
    /// Port number, 1 to 65535.
    pub number: Field<i64>,
}

/// VirtualService whose rules replace a root rule (`delegate`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Delegate {
    /// Name of the VirtualService; required.
    pub name: Field<String>,
    /// Namespace of the VirtualService. Default: that of the root.
    pub namespace: Field<String>,
}

/// Redirect of the client (`redirect`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRedirect {
    /// New path.
    pub uri: Field<String>,
    /// Replacement of the prefix that the rule matched; not together with `uri`.
    pub prefix_rewrite: Field<String>,
    /// New host. Default: the request's host.
    pub authority: Field<String>,
    /// New port; not together with `derivePort`.
    pub port: Field<i64>,
    /// Source of the port: `FROM_PROTOCOL_DEFAULT` (default: no port) or `FROM_REQUEST_PORT`.
    pub derive_port: Field<String>,
    /// New scheme, `http` or `https`. Default: the request's scheme.
    pub scheme: Field<String>,
    /// HTTP status: 301 (default), 302, 303, 307 or 308.
    pub redirect_code: Field<i64>,
}

/// Local reply (`directResponse`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpDirectResponse {
    /// HTTP status, 200 to 599; required.
    pub status: Field<i64>,
    /// Body of the response. Default: empty.
    pub body: Field<HttpBody>,
}

/// `directResponse.body`: exactly one field is set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpBody {
    /// Body as text.
    pub string: Field<String>,
    /// Body as base64.
    pub bytes: Field<String>,
}

/// Rewrite of path and authority (`rewrite`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRewrite {
    /// Replacement of the part of the path that the rule's `uri` matched.
    pub uri: Field<String>,
    /// New authority.
    pub authority: Field<String>,
    /// Path rewrite by a regular expression; not together with `uri`.
    pub uri_regex_rewrite: Field<RegexRewrite>,
}

/// Path rewrite by a regular expression (`uriRegexRewrite`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RegexRewrite {
    /// Regular expression to replace, RE2 dialect, not anchored.
    pub r#match: Field<String>,
    /// Replacement; `\1` to `\9` insert groups.
    pub rewrite: Field<String>,
}

/// Retry policy (`retries`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRetry {
    /// Maximum number of retries; 0 turns retries off.
    pub attempts: Field<i64>,
    /// Timeout of one attempt. Default: the rule's timeout.
    pub per_try_timeout: Field<String>,
    /// Retry conditions, separated by commas. Default: `connect-failure,refused-stream,unavailable,cancelled`.
    pub retry_on: Field<String>,
    /// Whether retries avoid the localities of earlier attempts. Default: false.
    pub retry_remote_localities: Field<bool>,
    /// Whether retries avoid endpoints of earlier attempts. Default: true, but not with a consistent hash.
    pub retry_ignore_previous_hosts: Field<bool>,
    /// Base interval of the backoff between attempts. Default: 25 ms.
    pub backoff: Field<String>,
}

/// Fault injection (`fault`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpFaultInjection {
    /// Delay of requests.
    pub delay: Field<Delay>,
    /// Error response instead of forwarding.
    pub abort: Field<Abort>,
}

/// Injected delay (`fault.delay`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Delay {
    /// Deprecated: percentage of requests that are delayed, 0 to 100.
    pub percent: Field<i64>,
    /// Length of the delay, at least 1 ms.
    pub fixed_delay: Field<String>,
    /// Exponential delay; not supported, rejected.
    pub exponential_delay: Field<String>,
    /// Percentage of requests that are delayed. Default: 0.
    pub percentage: Field<Percent>,
}

/// Injected error response (`fault.abort`). One of the statuses is set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Abort {
    /// HTTP status, 200 to 599.
    pub http_status: Field<i64>,
    /// Name of a gRPC status, such as `UNAVAILABLE`.
    pub grpc_status: Field<String>,
    /// HTTP/2 error; not supported, rejected.
    pub http2_error: Field<String>,
    /// Percentage of requests that are aborted. Default: 0.
    pub percentage: Field<Percent>,
}

/// Mirror destination: an entry of `mirrors`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpMirrorPolicy {
    /// Service that receives copies of requests; required.
    pub destination: Field<Destination>,
    /// Percentage of requests that are copied. Default: all.
    pub percentage: Field<Percent>,
}

/// CORS policy (`corsPolicy`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CorsPolicy {
    /// Deprecated: exact origins that are allowed; ignored with `allowOrigins`.
    pub allow_origin: Field<Vec<Field<String>>>,
    /// Allowed origins, of which any must match. An exact `*` allows all.
    pub allow_origins: Field<Vec<Field<StringMatch>>>,
    /// Allowed methods; `*` for the requested method.
    pub allow_methods: Field<Vec<Field<String>>>,
    /// Allowed request headers; `*` for the requested headers.
    pub allow_headers: Field<Vec<Field<String>>>,
    /// Response headers that scripts may read.
    pub expose_headers: Field<Vec<Field<String>>>,
    /// Time that a client may cache a preflight response, whole seconds. Default: header not sent.
    pub max_age: Field<String>,
    /// Whether requests may include credentials. Default: false.
    pub allow_credentials: Field<bool>,
    /// Preflight requests of other origins: `FORWARD` (default) sends them upstream, `IGNORE` replies here.
    pub unmatched_preflights: Field<String>,
}

/// Header edits of requests and responses (`headers`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Headers {
    /// Edits of the request headers.
    pub request: Field<HeaderOperations>,
    /// Edits of the response headers.
    pub response: Field<HeaderOperations>,
}

/// Header edits of one message.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HeaderOperations {
    /// Headers to set, replacing those of the same name.
    pub set: Field<Map<String>>,
    /// Headers to append.
    pub add: Field<Map<String>>,
    /// Headers to remove, before any are set.
    pub remove: Field<Vec<Field<String>>>,
}
