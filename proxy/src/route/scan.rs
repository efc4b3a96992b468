//! The slow twin of the index: tries rule after rule. What it says is what routing means.

use super::{RequestHead, Rule, RuleIdx};

/// The first rule whose conditions all hold for `head`.
pub fn find(rules: &[Rule], head: &RequestHead<'_>) -> Option<RuleIdx> {
    rules
        .iter()
        .position(|rule| rule.conditions.matches(head))
        .map(|position| RuleIdx(position as u32))
}
