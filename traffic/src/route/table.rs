//! The index over the rules of a virtual host.
//!
//! Rules are nodes of a radix tree by their path: exact paths and prefixes by themselves, regular expressions by their
//! literal prefix. A request descends the tree along its path and collects every rule whose path may match, as a few
//! lists in rule order; the lists are merged, and the first rule whose other conditions hold wins. Long lists are split
//! further by the value of a header or query parameter. The result equals that of [`scan::find`], but only rules with a
//! common path are checked.
//!
//! Expressions with the same literal prefix are tried one after the other, if the path contains the longest other text
//! that they require. A combined automaton (`RegexSet`) would try them at once, but costs megabytes of lazily built
//! states per worker and an allocation per request.

use std::sync::Arc;

use super::{RequestHead, Rule, RuleIdx, scan};

mod group;
mod index;
mod literal;

use index::Index;

/// Maximum number of rules that are scanned without an index: as fast, and hosts with a rule or two are common in a
/// mesh.
const SCANNED_MAX: usize = 4;

/// Ordered rules with an index; returns the same results as [`scan::find`]. Immutable; clones share the rules.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rules: Arc<[Rule]>,
    index: Option<Arc<Index>>,
    reads_added: bool,
    reads_claims: bool,
}

impl Table {
    /// Indexes `rules`, in order of precedence.
    ///
    /// Runs on the control thread: it sorts, counts and parses regular expressions.
    pub fn compile(rules: Vec<Rule>) -> Self {
        let rules: Arc<[Rule]> = rules.into();
        let index = (rules.len() > SCANNED_MAX).then(|| Arc::new(Index::new(&rules)));
        Self {
            reads_added: rules.iter().any(|rule| rule.conditions.reads_added()),
            reads_claims: rules.iter().any(|rule| rule.conditions.reads_claims()),
            rules,
            index,
        }
    }

    /// The first rule whose conditions all hold for `head`. Allocates nothing.
    pub fn find(&self, head: &RequestHead<'_>) -> Option<RuleIdx> {
        match &self.index {
            Some(index) => index.find(&self.rules, head),
            None => scan::find(&self.rules, head),
        }
    }

    /// Whether a rule matches on headers that the proxy adds; see [`HeaderKey::is_added`](super::HeaderKey::is_added).
    pub fn reads_added(&self) -> bool {
        self.reads_added
    }

    /// Whether a rule matches on claims of the verified token.
    pub fn reads_claims(&self) -> bool {
        self.reads_claims
    }

    /// The rules in order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// One rule.
    ///
    /// # Panics
    ///
    /// If `index` is of another table and too large for this one.
    pub fn rule(&self, index: RuleIdx) -> &Rule {
        &self.rules[index.index()]
    }
}

#[cfg(test)]
mod tests;
