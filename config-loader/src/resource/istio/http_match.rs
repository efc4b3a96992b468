//! What an HTTP rule is for.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{GatewayRef, StringMatch};
use crate::span::Line;

/// A match block: all of it must hold. None and empty hold for every request.
#[derive(Clone, Debug, Default)]
pub struct HttpMatch {
    /// Its name, appended to the rule's; empty if it has none.
    pub name: Arc<str>,
    /// The path without query, normalised. Never [`StringMatch::Present`].
    pub uri: Option<StringMatch>,
    /// Whether letter case does not count in an exact or prefix `uri`.
    pub ignore_uri_case: bool,
    /// The scheme. Never [`StringMatch::Present`].
    pub scheme: Option<StringMatch>,
    /// The method. Never [`StringMatch::Present`].
    pub method: Option<StringMatch>,
    /// The authority, with its port if the client sent one. Never [`StringMatch::Present`].
    pub authority: Option<StringMatch>,
    /// Headers that must match.
    pub headers: Vec<HeaderMatch>,
    /// Headers of which none may match. A missing header is an empty text, except for [`StringMatch::Present`].
    pub without_headers: Vec<HeaderMatch>,
    /// Query parameters that must match.
    pub query_params: Vec<QueryMatch>,
    /// The listener's port.
    pub port: Option<u16>,
    /// Labels of the proxy's workload. Not looked at when `gateways` is not empty.
    pub source_labels: BTreeMap<String, String>,
    /// The namespace of the proxy's workload. Not looked at when `gateways` is not empty.
    pub source_namespace: Option<Arc<str>>,
    /// In place of the VirtualService's own; empty for those.
    pub gateways: Vec<GatewayRef>,
    /// Where each of `gateways` was written.
    pub gateway_lines: Vec<Line>,
    /// Names the route in metrics; empty if not written.
    pub stat_prefix: Arc<str>,
    /// Where it was written.
    pub line: Line,
}

/// A header and what it must be.
#[derive(Clone, Debug)]
pub struct HeaderMatch {
    /// Which header.
    pub key: HeaderKey,
    /// What it must be.
    pub value: StringMatch,
    /// Where it was written.
    pub line: Line,
}

/// What a key of `headers` names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HeaderKey {
    /// A claim of a validated JWT: the path to it.
    Claim(Vec<Arc<str>>),
    /// A header, in lower case, or `:authority`, `:method`, `:path` (with query) or `:scheme`.
    Named(Arc<str>),
}

/// A query parameter and what it must be: its first occurrence, as the client encoded it.
#[derive(Clone, Debug)]
pub struct QueryMatch {
    /// Its name; letter case counts.
    pub name: Arc<str>,
    /// What it must be.
    pub value: StringMatch,
    /// Where it was written.
    pub line: Line,
}
