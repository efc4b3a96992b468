//! Request matching: from host, path, headers and query to a rule; pure decisions.
//!
//! [`HostIndex`] selects a virtual host, [`Table`] a rule. Rules are ordered: the first one whose conditions all hold
//! wins, whatever index finds it. [`scan::find`] does the same by checking rule after rule; it is the oracle of the
//! property tests. [`explain`] uses the same matchers to report why a rule did not match. Holds no lock,
//! clock or global.

use std::sync::Arc;

use crate::provenance::Provenance;

mod byte_map;
mod call;
pub mod explain;
mod head;
pub mod header;
pub mod host;
pub mod method;
pub mod opaque;
pub mod path;
pub mod query;
pub mod scan;
pub mod table;
pub mod text;
pub(crate) mod trie;

pub use call::CallMatch;
pub use head::RequestHead;
pub use header::{HeaderKey, HeaderMatch};
pub use host::{HostIndex, normalize_host};
pub use opaque::{OpaqueConditions, OpaqueHead, OpaqueRule, OpaqueTable};
pub use path::{PathNormalization, UriMatch, normalize_path};
pub use query::QueryMatch;
pub use table::Table;
pub use text::TextMatch;

/// Position of a rule in its [`Table`]; the order of the rules is the order of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleIdx(pub u32);

impl RuleIdx {
    /// The number as an index into a slice with one element per rule.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One ordered entry of a virtual host: a name, conditions, and its origin.
///
/// The actions of the rule are stored next to the table, under the same [`RuleIdx`].
#[derive(Clone, Debug)]
pub struct Rule {
    /// Name for logs and explanations; empty if the resource has none.
    pub name: Arc<str>,
    /// Conditions of the rule.
    pub conditions: Conditions,
    /// The match block or rule that this was compiled from.
    pub provenance: Provenance,
}

/// All conditions of one match block; each must hold. The default matches every request.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// Condition on the path.
    pub uri: UriMatch,
    /// Whether only requests of HTTP/2 match.
    ///
    /// Source: GRPCRoute.
    pub is_http2: bool,
    /// Condition on the scheme.
    pub scheme: Option<TextMatch>,
    /// Condition on the method.
    pub method: Option<TextMatch>,
    /// Condition on the authority as sent, port included.
    pub authority: Option<TextMatch>,
    /// Header conditions; all must hold.
    pub headers: Box<[HeaderMatch]>,
    /// Header conditions of which none may hold; see [`HeaderMatch::is_absent`].
    pub without_headers: Box<[HeaderMatch]>,
    /// Query parameter conditions; all must hold.
    pub query: Box<[QueryMatch]>,
    /// Additional conditions of a traffic policy; all must hold.
    pub of_policy: Option<Box<Conditions>>,
}

impl Conditions {
    /// Whether all conditions hold for `head`.
    pub fn matches(&self, head: &RequestHead<'_>) -> bool {
        self.uri.matches(head.path.as_bytes()) && self.matches_beyond_uri(head)
    }

    /// Whether all conditions except `uri` hold for `head`.
    pub fn matches_beyond_uri(&self, head: &RequestHead<'_>) -> bool {
        // every field is named, so that a new condition is not forgotten
        let Self {
            uri: _,
            is_http2,
            scheme,
            method,
            authority,
            headers,
            without_headers,
            query,
            of_policy,
        } = self;
        let holds = |wanted: &Option<TextMatch>, got: &str| {
            wanted.as_ref().is_none_or(|w| w.matches(got.as_bytes()))
        };
        (head.is_http2 || !is_http2)
            && holds(method, head.method.as_str())
            && holds(scheme, head.scheme)
            && holds(authority, head.authority)
            && headers.iter().all(|wanted| wanted.matches(head))
            && without_headers
                .iter()
                .all(|unwanted| unwanted.is_absent(head))
            && query.iter().all(|wanted| wanted.matches(head.query))
            && of_policy.as_ref().is_none_or(|more| more.matches(head))
    }

    /// Whether a condition is on a header that the proxy adds to requests.
    pub fn reads_added(&self) -> bool {
        self.reads(HeaderKey::is_added)
    }

    /// Whether a condition is on a claim of the verified token.
    pub fn reads_claims(&self) -> bool {
        self.reads(|key| matches!(key, HeaderKey::Claim(..)))
    }

    fn reads(&self, is_meant: fn(&HeaderKey) -> bool) -> bool {
        let mut keys = self.headers.iter().chain(&self.without_headers);
        keys.any(|condition| is_meant(&condition.key))
            || (self.of_policy.as_ref()).is_some_and(|more| more.reads(is_meant))
    }

    /// Adds the conditions of a traffic policy.
    pub fn and(mut self, of_policy: Conditions) -> Self {
        let all = match self.of_policy.take() {
            Some(before) => before.and(of_policy),
            None => of_policy,
        };
        self.of_policy = Some(Box::new(all));
        self
    }

    /// Whether there is no condition except `uri`.
    pub fn only_uri(&self) -> bool {
        self.of_policy.is_none() && self.rule_asks_only_uri()
    }

    fn rule_asks_only_uri(&self) -> bool {
        let Self {
            uri: _,
            is_http2,
            scheme,
            method,
            authority,
            headers,
            without_headers,
            query,
            of_policy: _,
        } = self;
        !is_http2
            && scheme.is_none()
            && method.is_none()
            && authority.is_none()
            && headers.is_empty()
            && without_headers.is_empty()
            && query.is_empty()
    }

    /// Whether the conditions match every request, so that later rules are never reached; see
    /// [`UriMatch::is_catch_all`].
    pub fn is_catch_all(&self) -> bool {
        self.only_uri() && self.uri.is_catch_all()
    }

    /// Whether the rule goes last when several resources are merged: a catch-all, apart from the conditions of a
    /// policy.
    pub fn goes_last(&self) -> bool {
        self.rule_asks_only_uri() && self.uri.is_catch_all()
    }
}

#[cfg(test)]
mod tests;
