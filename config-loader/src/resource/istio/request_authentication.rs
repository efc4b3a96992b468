//! RequestAuthentication, checked.

use std::sync::Arc;
use std::time::Duration;

use super::PolicyScope;
use crate::span::Line;

/// Checked RequestAuthentication.
#[derive(Clone, Debug, Default)]
pub struct RequestAuthentication {
    /// Workloads that the policy applies to.
    pub scope: PolicyScope,
    /// Accepted tokens, by issuer.
    pub rules: Vec<JwtRule>,
    /// Names of the headers that the rules set, in lower case, also those of rejected rules: clients cannot send them.
    pub outputs: Vec<Arc<str>>,
    /// Whether the policy stands in for a rejected one, and refuses tokens at the default locations.
    pub is_denying: bool,
}

/// Accepted tokens of one issuer.
#[derive(Clone, Debug)]
pub struct JwtRule {
    /// Issuer, audiences, and claims that are lists of words.
    pub accepted: jwt::Rule,
    /// Source of the issuer's keys.
    pub keys: KeySource,
    /// Locations of the token; empty for `Authorization: Bearer` and the query parameter `access_token`.
    pub locations: Vec<TokenLocation>,
    /// Whether the header with the token is forwarded.
    pub forward_original_token: bool,
    /// Header for the payload of a verified token.
    pub payload_header: Option<Arc<str>>,
    /// Headers for claims of a verified token, in lower case, each with the path of its claim.
    pub claim_headers: Vec<(Arc<str>, Vec<Arc<str>>)>,
    /// Source line of the rule.
    pub line: Line,
}

/// Source of an issuer's keys.
#[derive(Clone, Debug)]
pub enum KeySource {
    /// Keys in the resource.
    Inline(Arc<jwt::Keys>),
    /// Key set or OpenID configuration at a URL.
    Remote(RemoteKeys),
}

/// Key set to fetch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RemoteKeys {
    /// URL to fetch.
    pub url: Arc<str>,
    /// Whether the URL has the issuer's OpenID configuration, which names the key set by `jwks_uri`.
    pub is_discovery: bool,
    /// Time limit of one fetch.
    pub timeout: Duration,
}

/// Location of a token in a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TokenLocation {
    /// Header in lower case, and the text before the token.
    Header(Arc<str>, Arc<str>),
    /// Query parameter.
    Param(Arc<str>),
    /// Cookie.
    Cookie(Arc<str>),
}

impl RequestAuthentication {
    /// Whether the policy stands in for a rejected one.
    pub(crate) fn is_stand_in(&self) -> bool {
        self.is_denying
    }

    /// Returns the policy that applies while the object has never been valid: no token is accepted.
    pub(crate) fn stand_in(&self) -> Option<Self> {
        Some(Self {
            scope: self.scope.clone(),
            rules: Vec::new(),
            outputs: self.outputs.clone(),
            is_denying: true,
        })
    }
}
