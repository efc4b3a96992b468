//! Filters of routes as written.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{BackendObject, LocalReference};
use crate::raw::Field;

/// Filter of an HTTPRoute. `type` names the field that is set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Filter {
    /// Type of the filter.
    #[serde(rename = "type")]
    pub filter_type: Field<String>,
    /// Edits of request headers.
    pub request_header_modifier: Field<HeaderFilter>,
    /// Edits of response headers.
    pub response_header_modifier: Field<HeaderFilter>,
    /// Copies of requests.
    pub request_mirror: Field<MirrorFilter>,
    /// Redirect of the client.
    pub request_redirect: Field<RedirectFilter>,
    /// Rewrite of host and path.
    pub url_rewrite: Field<RewriteFilter>,
    /// CORS policy.
    pub cors: Field<CorsFilter>,
    /// External authorization; experimental.
    pub external_auth: Field<IgnoredAny>,
    /// Filter of another API.
    pub extension_ref: Field<LocalReference>,
}

/// Filter of a GRPCRoute.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GrpcFilter {
    /// Type of the filter.
    #[serde(rename = "type")]
    pub filter_type: Field<String>,
    /// Edits of request headers.
    pub request_header_modifier: Field<HeaderFilter>,
    /// Edits of response headers.
    pub response_header_modifier: Field<HeaderFilter>,
    /// Copies of requests.
    pub request_mirror: Field<MirrorFilter>,
    /// Filter of another API.
    pub extension_ref: Field<LocalReference>,
}

impl From<&Filter> for Filter {
    fn from(raw: &Filter) -> Filter {
        raw.clone()
    }
}

impl From<&GrpcFilter> for Filter {
    fn from(raw: &GrpcFilter) -> Filter {
        Filter {
            filter_type: raw.filter_type.clone(),
            request_header_modifier: raw.request_header_modifier.clone(),
            response_header_modifier: raw.response_header_modifier.clone(),
            request_mirror: raw.request_mirror.clone(),
            extension_ref: raw.extension_ref.clone(),
            ..Filter::default()
        }
    }
}

/// Edits of headers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HeaderFilter {
    /// Headers that are replaced.
    pub set: Field<Vec<Field<HeaderValue>>>,
    /// Headers that get a further value.
    pub add: Field<Vec<Field<HeaderValue>>>,
    /// Headers that are removed.
    pub remove: Field<Vec<Field<String>>>,
}

/// Header and its value, a literal text.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HeaderValue {
    /// Name of the header.
    pub name: Field<String>,
    /// Value of the header.
    pub value: Field<String>,
}

/// Copies of requests.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MirrorFilter {
    /// Backend that gets the copies.
    pub backend_ref: Field<BackendObject>,
    /// Percentage of requests that are copied. Default: all.
    pub percent: Field<i64>,
    /// Fraction of requests that are copied.
    pub fraction: Field<Fraction>,
}

/// Fraction of requests.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Fraction {
    /// Numerator.
    pub numerator: Field<i64>,
    /// Denominator. Default: 100.
    pub denominator: Field<i64>,
}

/// Redirect of the client.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RedirectFilter {
    /// `http` or `https`. Default: the request's.
    pub scheme: Field<String>,
    /// Host. Default: the request's.
    pub hostname: Field<String>,
    /// Path. Default: the request's.
    pub path: Field<PathModifier>,
    /// Port. Default: that of the scheme if there is one, else the listener's.
    pub port: Field<i64>,
    /// Status: 301, 302, 303, 307 or 308. Default: 302.
    pub status_code: Field<i64>,
}

/// Rewrite of host and path.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RewriteFilter {
    /// New host.
    pub hostname: Field<String>,
    /// New path.
    pub path: Field<PathModifier>,
}

/// Change of a path. `type` names the field that is set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PathModifier {
    /// `ReplaceFullPath` or `ReplacePrefixMatch`.
    #[serde(rename = "type")]
    pub modifier_type: Field<String>,
    /// New path.
    pub replace_full_path: Field<String>,
    /// New prefix.
    pub replace_prefix_match: Field<String>,
}

/// CORS policy.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CorsFilter {
    /// Origins that may send requests.
    pub allow_origins: Field<Vec<Field<String>>>,
    /// Whether requests may have credentials.
    pub allow_credentials: Field<bool>,
    /// Methods of requests.
    pub allow_methods: Field<Vec<Field<String>>>,
    /// Headers of requests.
    pub allow_headers: Field<Vec<Field<String>>>,
    /// Response headers that scripts may read.
    pub expose_headers: Field<Vec<Field<String>>>,
    /// Seconds for which a preflight response may be cached. Default: 5.
    pub max_age: Field<i64>,
}
