//! Rules of older VirtualServices for a host, and the blocks of a newer one that they make unreachable.

use super::http::{Block, Seen, Spot};
use crate::resource::istio::HttpRule;

/// Rules added so far, numbered by the caller.
#[derive(Default)]
pub(crate) struct Earlier<'a> {
    seen: Seen<'a>,
    /// First rule that matches everything. Such rules are moved behind all others.
    all: Option<Spot>,
}

/// Rule and block that match all requests of another block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hidden {
    /// Number of the rule.
    pub(crate) rule: usize,
    /// Index of the block; `None` for a rule without blocks.
    pub(crate) block: Option<usize>,
}

impl<'a> Earlier<'a> {
    /// Returns the unreachable blocks of a newer rule, by index. The index is `None` for a rule without blocks.
    pub(crate) fn hidden(&self, rule: &'a HttpRule) -> Vec<(Option<usize>, Hidden)> {
        let hidden = |spot: Spot| Hidden {
            rule: spot.rule,
            block: spot.block,
        };
        if rule.matches.is_empty() {
            return self.all.map(|by| (None, hidden(by))).into_iter().collect();
        }
        let blocks = rule.matches.iter().enumerate();
        let blocks = blocks.filter_map(|(at, parsed)| {
            let block = Block::new(0, at, parsed);
            let by = if block.takes_everything() {
                self.all
            } else {
                let shorter = || Some(self.seen.hiding(&block)?.1);
                self.seen.same(&block).or_else(shorter)
            };
            Some((Some(at), hidden(by?)))
        });
        blocks.collect()
    }

    /// Adds a rule.
    pub(crate) fn add(&mut self, number: usize, rule: &'a HttpRule) {
        if !rule.keeps_all() {
            return;
        }
        if rule.matches.is_empty() {
            self.all.get_or_insert(Spot {
                rule: number,
                block: None,
            });
        }
        for (at, parsed) in rule.matches.iter().enumerate() {
            let block = Block::new(number, at, parsed);
            if block.takes_everything() {
                self.all.get_or_insert(block.spot);
            } else {
                self.seen.add(block);
            }
        }
    }
}
