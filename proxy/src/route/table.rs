//! The index over the rules of a virtual host.
//!
//! Rules hang in a radix tree by their path: exact paths and prefixes by themselves, regular expressions by the literal
//! text that they must begin with. A request walks down the tree along its path and meets every rule whose path can
//! fit, as a few lists in rule order; the lists are merged, and the first rule whose other conditions hold wins. Long
//! lists are split further by the value of a header or query parameter. So the answer is that of [`scan::find`], for
//! the price of the rules that share a path and not of all rules.
//!
//! Expressions with the same literal beginning are tried one after the other, if the path holds the longest other
//! text that they must match. A combined automaton (`RegexSet`) would try them at once, but costs megabytes of lazily
//! built states per worker and an allocation per request.

use super::{RequestHead, Rule, RuleIdx, scan};

mod group;
mod index;
mod literal;

use index::Index;

/// Up to this many rules are scanned: as fast as an index, and hosts with a rule or two are the common case in a mesh.
const SCANNED_MAX: usize = 4;

/// Ordered rules with an index over them; says what [`scan::find`] says. Immutable.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rules: Box<[Rule]>,
    index: Option<Box<Index>>,
    reads_added: bool,
}

impl Table {
    /// Indexes `rules`, whose order is the order of precedence.
    ///
    /// Meant for the thread that compiles: it sorts, counts and parses regular expressions.
    pub fn compile(rules: Vec<Rule>) -> Self {
        let rules = rules.into_boxed_slice();
        let index = (rules.len() > SCANNED_MAX).then(|| Box::new(Index::new(&rules)));
        Self {
            reads_added: rules.iter().any(|rule| rule.conditions.reads_added()),
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

    /// Whether a rule looks at headers that the proxy adds to requests; see [`HeaderKey::is_added`](super::HeaderKey::is_added).
    pub fn reads_added(&self) -> bool {
        self.reads_added
    }

    /// The rules in order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// One rule.
    ///
    /// # Panics
    ///
    /// When `index` comes from another table and is too large for this one.
    pub fn rule(&self, index: RuleIdx) -> &Rule {
        &self.rules[index.index()]
    }
}

#[cfg(test)]
mod tests;
