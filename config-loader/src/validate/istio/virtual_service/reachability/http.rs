//! Detection of unreachable `http` rules and blocks. Works on parsed rules, without spans.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound::{Included, Unbounded};
use std::sync::Arc;

use super::conditions::{Conditions, Text};
use crate::resource::istio::{HttpMatch, HttpRule};

/// Index of a rule, or of a block of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) rule: usize,
    /// Index of the block; `None` for the whole rule.
    pub(super) block: Option<usize>,
}

/// Unreachable rule or block.
#[derive(Debug)]
pub(super) struct Finding<'a> {
    pub(super) at: Spot,
    /// Rule or block that matches its requests.
    pub(super) by: Spot,
    pub(super) why: Why<'a>,
}

#[derive(Debug)]
pub(super) enum Why<'a> {
    /// An earlier block of the rule matches everything.
    BlockTaken,
    /// An earlier block has the same conditions.
    BlockRepeated,
    /// An earlier block has a shorter prefix.
    PathHidden {
        what: &'static str,
        path: &'a str,
        prefix: &'a str,
    },
    /// All blocks of the rule repeat earlier ones.
    RuleRepeated,
    /// An earlier rule matches everything.
    RuleTaken,
}

/// Match block with its conditions.
#[derive(Clone)]
pub(super) struct Block<'a> {
    pub(super) spot: Spot,
    uri: Option<Text<'a>>,
    ignore_uri_case: bool,
    others: Conditions<'a>,
}

/// Returns the unreachable rules and blocks.
pub(super) fn find(rules: &[Arc<HttpRule>]) -> Vec<Finding<'_>> {
    let mut found = Vec::new();
    let mut seen = Seen::default();
    let mut all: Option<Spot> = None;
    for (index, rule) in rules.iter().enumerate() {
        let at = Spot {
            rule: index,
            block: None,
        };
        if let Some(by) = all {
            found.push(Finding {
                at,
                by,
                why: Why::RuleTaken,
            });
            continue;
        }
        let blocks = rule.matches.iter().enumerate();
        let blocks: Vec<Block<'_>> = blocks
            .map(|(block, parsed)| Block::new(index, block, parsed))
            .collect();
        let taken = hidden_blocks(at, &blocks, &seen, &mut found);
        if rule.keeps_all() {
            all = if blocks.is_empty() { Some(at) } else { taken };
            for block in blocks {
                seen.add(block);
            }
        }
    }
    found
}

/// Finds the unreachable blocks of one rule. Returns the block that matches everything, if any.
fn hidden_blocks<'a>(
    rule: Spot,
    blocks: &[Block<'a>],
    seen: &Seen<'a>,
    found: &mut Vec<Finding<'a>>,
) -> Option<Spot> {
    let repeated: Option<Vec<Spot>> = blocks.iter().map(|block| seen.same(block)).collect();
    if let Some(first) = repeated.and_then(|spots| spots.first().copied()) {
        found.push(Finding {
            at: rule,
            by: first,
            why: Why::RuleRepeated,
        });
        return None;
    }
    let mut own = Seen::default();
    let mut all: Option<Spot> = None;
    for block in blocks {
        let at = block.spot;
        let finding = |by, why| Finding { at, by, why };
        let hiding = || seen.hiding(block).or_else(|| own.hiding(block));
        if let Some(all) = all {
            found.push(finding(all, Why::BlockTaken));
        } else if let Some(first) = seen.same(block).or_else(|| own.same(block)) {
            found.push(finding(first, Why::BlockRepeated));
        } else if let Some((prefix, first)) = hiding() {
            let (what, path) = match block.uri {
                Some(Text::Exact(path)) => ("path", path),
                Some(Text::Prefix(path)) => ("prefix", path),
                _ => continue,
            };
            found.push(finding(first, Why::PathHidden { what, path, prefix }));
        }
        if all.is_none() && block.takes_everything() {
            all = Some(at);
        }
        // A single block has no later one beside it.
        if blocks.len() > 1 {
            own.add(block.clone());
        }
    }
    all
}

impl<'a> Block<'a> {
    pub(super) fn new(rule: usize, block: usize, parsed: &'a HttpMatch) -> Block<'a> {
        Block {
            spot: Spot {
                rule,
                block: Some(block),
            },
            uri: parsed.uri.as_ref().map(Text::of),
            ignore_uri_case: parsed.ignore_uri_case,
            others: Conditions::but_uri(parsed),
        }
    }

    /// Whether the block matches every request at every proxy.
    pub(super) fn takes_everything(&self) -> bool {
        let any_path = match self.uri {
            None => true,
            Some(Text::Prefix(prefix)) => prefix.is_empty() || prefix == "/",
            Some(Text::Regex(source)) => matches!(source, ".*" | "/.*"),
            Some(Text::Exact(_) | Text::Present) => false,
        };
        any_path && self.others.is_empty()
    }
}

/// Blocks seen so far, by their conditions.
#[derive(Default)]
pub(super) struct Seen<'a> {
    /// URIs by all other conditions.
    by_others: HashMap<Conditions<'a>, Uris<'a>>,
}

/// URIs of blocks with the same other conditions.
#[derive(Default)]
struct Uris<'a> {
    same: HashMap<Option<Text<'a>>, Spot>,
    prefixes: BTreeMap<&'a str, Spot>,
}

impl<'a> Seen<'a> {
    pub(super) fn add(&mut self, block: Block<'a>) {
        let uris = self.by_others.entry(block.others).or_default();
        uris.same.entry(block.uri).or_insert(block.spot);
        if let Some(Text::Prefix(prefix)) = block.uri {
            uris.prefixes.entry(prefix).or_insert(block.spot);
        }
    }

    pub(super) fn same(&self, block: &Block<'a>) -> Option<Spot> {
        let uris = self.by_others.get(&block.others)?;
        uris.same.get(&block.uri).copied()
    }

    /// Returns the prefix of an earlier block that matches all paths of `block` and has no other conditions than it.
    pub(super) fn hiding(&self, block: &Block<'a>) -> Option<(&'a str, Spot)> {
        let (Some(Text::Exact(path)) | Some(Text::Prefix(path))) = block.uri else {
            return None;
        };
        // Paths that differ in case only are not one path, unless the earlier block says so too.
        let unconditional = if block.ignore_uri_case || block.others.is_empty() {
            None
        } else {
            self.by_others.get(&Conditions::default())
        };
        [self.by_others.get(&block.others), unconditional]
            .into_iter()
            .flatten()
            .find_map(|uris| prefix_of(&uris.prefixes, path))
    }
}

/// Returns the key of `prefixes` that is a prefix of `path`, if any.
fn prefix_of<'a>(prefixes: &BTreeMap<&'a str, Spot>, path: &str) -> Option<(&'a str, Spot)> {
    let mut upper = path;
    // Every key that begins a text sorts before it; what lies between shares less and less with it.
    loop {
        let (key, spot) = prefixes
            .range::<str, _>((Unbounded, Included(upper)))
            .next_back()?;
        if path.starts_with(key) {
            return Some((key, *spot));
        }
        let shared = key.chars().zip(path.chars()).take_while(|(a, b)| a == b);
        let shared: usize = shared.map(|(_, b)| b.len_utf8()).sum();
        upper = &path[..shared];
    }
}
