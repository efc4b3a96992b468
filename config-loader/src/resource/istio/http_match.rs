//! Match conditions of HTTP rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{GatewayRef, StringMatch};
use crate::span::Line;

/// Match block. All conditions must match; `None` and empty ones match every request.
#[derive(Clone, Debug, Default)]
pub struct HttpMatch {
    /// Name of the block, appended to the rule's name; may be empty.
    pub name: Arc<str>,
    /// Path without query, normalized. Never [`StringMatch::Present`].
    pub uri: Option<StringMatch>,
    /// Whether an exact or prefix match of `uri` ignores case.
    pub ignore_uri_case: bool,
    /// Scheme of the request. Never [`StringMatch::Present`].
    pub scheme: Option<StringMatch>,
    /// Method of the request. Never [`StringMatch::Present`].
    pub method: Option<StringMatch>,
    /// Authority, with its port if the client sent one. Never [`StringMatch::Present`].
    pub authority: Option<StringMatch>,
    /// Headers, all of which must match.
    pub headers: Vec<HeaderMatch>,
    /// Headers, none of which may match. A missing header matches like an empty one, except for
    /// [`StringMatch::Present`].
    pub without_headers: Vec<HeaderMatch>,
    /// Query parameters, all of which must match.
    pub query_params: Vec<QueryMatch>,
    /// Port of the listener.
    pub port: Option<u16>,
    /// Labels of the proxy's workload. Ignored if `gateways` is not empty.
    pub source_labels: BTreeMap<String, String>,
    /// Namespace of the proxy's workload. Ignored if `gateways` is not empty.
    pub source_namespace: Option<Arc<str>>,
    /// Gateways of this match block; empty for those of the VirtualService.
    pub gateways: Vec<GatewayRef>,
    /// Source line of each entry of `gateways`.
    pub gateway_lines: Vec<Line>,
    /// Name of the route in metrics; may be empty.
    pub stat_prefix: Arc<str>,
    /// Source line within the document.
    pub line: Line,
}

/// Match condition of a header.
#[derive(Clone, Debug)]
pub struct HeaderMatch {
    /// Header or JWT claim to match.
    pub key: HeaderKey,
    /// Required value.
    pub value: StringMatch,
    /// Source line within the document.
    pub line: Line,
}

/// Key of a header match.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HeaderKey {
    /// Claim of a validated JWT, by its path.
    Claim(Vec<Arc<str>>),
    /// Header name in lower case, or `:authority`, `:method`, `:path` (with query) or `:scheme`.
    Named(Arc<str>),
}

/// Match condition of a query parameter. Only its first occurrence counts, without decoding.
#[derive(Clone, Debug)]
pub struct QueryMatch {
    /// Name of the parameter, case-sensitive.
    pub name: Arc<str>,
    /// Required value.
    pub value: StringMatch,
    /// Source line within the document.
    pub line: Line,
}
