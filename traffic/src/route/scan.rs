//! Linear scan of the rules, the reference for the index. Its result defines routing.

use super::{RequestHead, Rule, RuleIdx};

/// The first rule whose conditions all hold for `head`.
pub fn find(rules: &[Rule], head: &RequestHead<'_>) -> Option<RuleIdx> {
    rules
        .iter()
        .position(|rule| rule.conditions.matches(head))
        .map(|position| RuleIdx(position as u32))
}
