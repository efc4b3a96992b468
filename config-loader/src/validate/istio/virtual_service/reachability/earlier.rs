//! Rules of older VirtualServices for a host, and which blocks of a younger one they leave nothing for.

use super::http::{Block, Seen, Spot};
use crate::resource::istio::HttpRule;

/// Rules so far, numbered by the caller.
#[derive(Default)]
pub(crate) struct Earlier<'a> {
    seen: Seen<'a>,
    /// The first rule that matches everything; such rules are moved behind all others.
    all: Option<Spot>,
}

/// What takes the requests of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hidden {
    /// Its rule, by the caller's number.
    pub(crate) rule: usize,
    /// Its block; none for a rule without any.
    pub(crate) block: Option<usize>,
}

impl<'a> Earlier<'a> {
    /// The blocks of a younger rule that are never reached, each by its place; none represents a rule without blocks.
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
