//! Matching: hosts, paths, headers and query to a rule; pure decisions.
//!
//! A virtual host is chosen by [`HostIndex`], a rule by [`Table`]. Rules are ordered: the first one whose conditions
//! all hold wins, whatever index finds it. [`scan::find`] says the same by trying rule after rule; it is the oracle of
//! the property tests, and [`explain`] uses the same matchers to say why a rule lost.
//! Uses nothing of this crate but [`Provenance`]; holds no lock, clock or global.

use std::sync::Arc;

use crate::provenance::Provenance;

mod byte_map;
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
mod trie;

pub use head::RequestHead;
pub use header::{HeaderKey, HeaderMatch};
pub use host::{HostIndex, normalize_host};
pub use opaque::{OpaqueConditions, OpaqueHead, OpaqueRule, OpaqueTable};
pub use path::{UriMatch, normalize_path};
pub use query::QueryMatch;
pub use table::Table;
pub use text::TextMatch;

/// Position of a rule in its [`Table`]; the order of the rules is the order of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleIdx(pub u32);

impl RuleIdx {
    /// The number as an index into a slice that runs along the rules.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One ordered entry of a virtual host: a name, what must hold, and where it was written.
///
/// What the rule does to a request is kept beside the table, under the same [`RuleIdx`].
#[derive(Clone, Debug)]
pub struct Rule {
    /// Name for logs and explanations; empty when the resource gives none.
    pub name: Arc<str>,
    /// What must hold for the rule to win.
    pub conditions: Conditions,
    /// The match block or rule that this was made from.
    pub provenance: Provenance,
}

/// Everything that one match block asks of a request; all parts must hold. The default holds for every request.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// Condition on the path.
    pub uri: UriMatch,
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
    /// What a policy asks on top of what its rule asks; must hold, too.
    pub of_policy: Option<Box<Conditions>>,
}

impl Conditions {
    /// Whether all conditions hold for `head`.
    pub fn matches(&self, head: &RequestHead<'_>) -> bool {
        self.uri.matches(head.path.as_bytes()) && self.matches_beyond_uri(head)
    }

    /// Whether everything but `uri` holds for `head`.
    pub fn matches_beyond_uri(&self, head: &RequestHead<'_>) -> bool {
        // every field is named, so that a new condition is not forgotten
        let Self {
            uri: _,
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
        holds(method, head.method.as_str())
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
        let mut keys = self.headers.iter().chain(&self.without_headers);
        keys.any(|condition| condition.key.is_added())
            || self
                .of_policy
                .as_ref()
                .is_some_and(|more| more.reads_added())
    }

    /// The same, asking for what a policy asks, too.
    pub fn and(mut self, of_policy: Conditions) -> Self {
        let all = match self.of_policy.take() {
            Some(before) => before.and(of_policy),
            None => of_policy,
        };
        self.of_policy = Some(Box::new(all));
        self
    }

    /// Whether nothing but `uri` is asked for.
    pub fn only_uri(&self) -> bool {
        self.of_policy.is_none() && self.rule_asks_only_uri()
    }

    fn rule_asks_only_uri(&self) -> bool {
        let Self {
            uri: _,
            scheme,
            method,
            authority,
            headers,
            without_headers,
            query,
            of_policy: _,
        } = self;
        scheme.is_none()
            && method.is_none()
            && authority.is_none()
            && headers.is_empty()
            && without_headers.is_empty()
            && query.is_empty()
    }

    /// Whether this is a catch-all: rules behind it are never reached; see [`UriMatch::is_catch_all`].
    pub fn is_catch_all(&self) -> bool {
        self.only_uri() && self.uri.is_catch_all()
    }

    /// Whether this goes last when several resources are merged: a catch-all, for whichever of its requests.
    pub fn goes_last(&self) -> bool {
        self.rule_asks_only_uri() && self.uri.is_catch_all()
    }
}

#[cfg(test)]
mod tests;
