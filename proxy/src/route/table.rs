//! The index over the rules of a virtual host.

use super::{RequestHead, Rule, RuleIdx, scan};

/// Ordered rules with an index over them; says what [`scan::find`] says.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rules: Box<[Rule]>,
}

impl Table {
    /// Indexes `rules`, whose order is the order of precedence.
    pub fn compile(rules: Vec<Rule>) -> Self {
        Self {
            rules: rules.into(),
        }
    }

    /// The first rule whose conditions all hold for `head`.
    pub fn find(&self, head: &RequestHead<'_>) -> Option<RuleIdx> {
        scan::find(&self.rules, head)
    }

    /// The rules in order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// One rule.
    pub fn rule(&self, index: RuleIdx) -> &Rule {
        &self.rules[index.index()]
    }
}
