//! Two prefix trees over the paths, one case-sensitive and one not, and the search for the rule of a request.

use std::collections::BTreeMap;

use memchr::memmem::Finder;
use smallvec::SmallVec;

use super::group::{Candidate, Group, Groups, Open};
use super::literal::Literals;
use crate::route::method::MethodSet;
use crate::route::trie::{Trie, TrieBuilder};
use crate::route::{RequestHead, Rule, RuleIdx, UriMatch};

/// The rules of a table by their paths.
#[derive(Clone, Debug)]
pub(super) struct Index {
    /// Trie of paths as written; its values are positions in `places`.
    sensitive: Trie,
    /// Trie of lower-cased paths; its values are positions in `places`.
    insensitive: Trie,
    places: Box<[NodeCandidates]>,
    groups: Groups,
    /// Texts that a path must contain for a regular expression to match.
    inners: Box<[Finder<'static>]>,
}

/// Candidates at one node of a tree.
#[derive(Clone, Debug)]
struct NodeCandidates {
    /// Candidates for the path that ends at this node.
    exact: Group,
    /// Candidates for every path that begins with that of this node.
    prefix: Group,
}

impl Index {
    pub(super) fn new(rules: &[Rule]) -> Self {
        let mut sensitive = Paths::default();
        let mut insensitive = Paths::default();
        let mut inners = Vec::new();
        for (number, rule) in rules.iter().enumerate() {
            let (number, uri) = (number as u32, &rule.conditions.uri);
            let paths = if ignores_case(uri) {
                &mut insensitive
            } else {
                &mut sensitive
            };
            let settled = Candidate::path_matched(number, rule);
            match uri {
                UriMatch::Any => paths.at(b"").prefix.push(settled),
                UriMatch::Exact { value, .. } => paths.at(&key(value, uri)).exact.push(settled),
                UriMatch::Prefix { value, .. } => paths.at(&key(value, uri)).prefix.push(settled),
                UriMatch::Segments(value) => {
                    let below = [value.as_bytes(), b"/"].concat();
                    paths.at(&below).prefix.push(settled);
                    paths.at(value.as_bytes()).exact.push(settled);
                }
                UriMatch::Call(_) => {
                    let candidate = Candidate::path_unchecked(number, rule);
                    paths.at(b"/").prefix.push(candidate);
                }
                UriMatch::Regex(wanted) => {
                    let literals = Literals::of(wanted.compiled().as_str());
                    let mut candidate = Candidate::path_unchecked(number, rule);
                    if let Some(inner) = literals.inner {
                        candidate.inner = inners.len() as u32;
                        inners.push(Finder::new(&inner).into_owned());
                    }
                    paths.at(&literals.prefix).prefix.push(candidate);
                }
            }
        }
        let mut groups = Groups::default();
        let mut places = Vec::new();
        let sensitive = sensitive.build(rules, &mut places, &mut groups);
        let insensitive = insensitive.build(rules, &mut places, &mut groups);
        groups.shrink();
        Self {
            sensitive,
            insensitive,
            places: places.into(),
            groups,
            inners: inners.into(),
        }
    }

    pub(super) fn find(&self, rules: &[Rule], head: &RequestHead<'_>) -> Option<RuleIdx> {
        let path = head.path.as_bytes();
        let mut search = Search {
            rules,
            inners: &self.inners,
            head,
            method: MethodSet::of(head.method),
            lists: SmallVec::new(),
            best: u32::MAX,
        };
        let mut visit = |place: u32, whole: bool| {
            let place = &self.places[place as usize];
            self.groups
                .lists(&place.prefix, head, |list| search.push(list));
            if whole {
                self.groups
                    .lists(&place.exact, head, |list| search.push(list));
            }
        };
        self.sensitive.walk(path, &mut visit);
        self.insensitive.walk_ignoring_case(path, &mut visit);
        search.try_lists();
        (search.best != u32::MAX).then_some(RuleIdx(search.best))
    }
}

/// Whether a rule belongs to the case-insensitive tree: it ignores case, and its path has letters.
fn ignores_case(uri: &UriMatch) -> bool {
    match uri {
        UriMatch::Exact { value, ignore_case } | UriMatch::Prefix { value, ignore_case } => {
            *ignore_case && value.bytes().any(|byte| byte.is_ascii_alphabetic())
        }
        UriMatch::Any | UriMatch::Call(_) | UriMatch::Regex(_) | UriMatch::Segments(_) => false,
    }
}

fn key(value: &str, uri: &UriMatch) -> Vec<u8> {
    if ignores_case(uri) {
        value.to_ascii_lowercase().into_bytes()
    } else {
        value.as_bytes().to_vec()
    }
}

/// Candidates of one tree by path, while the index is built.
#[derive(Default)]
struct Paths(BTreeMap<Box<[u8]>, Collected>);

#[derive(Default)]
struct Collected {
    exact: Vec<Candidate>,
    prefix: Vec<Candidate>,
}

impl Paths {
    fn at(&mut self, key: &[u8]) -> &mut Collected {
        self.0.entry(key.into()).or_default()
    }

    fn build(self, rules: &[Rule], places: &mut Vec<NodeCandidates>, groups: &mut Groups) -> Trie {
        let mut trie = TrieBuilder::default();
        for (key, collected) in self.0 {
            trie.insert(key, places.len() as u32);
            places.push(NodeCandidates {
                exact: groups.add(rules, collected.exact),
                prefix: groups.add(rules, collected.prefix),
            });
        }
        trie.build()
    }
}

/// Maximum number of lists that are merged at a time; more lists are checked in several rounds.
const LISTS_MERGED: usize = 12;

/// Candidate lists for a request, and the best rule so far.
struct Search<'s> {
    rules: &'s [Rule],
    inners: &'s [Finder<'static>],
    head: &'s RequestHead<'s>,
    method: MethodSet,
    lists: SmallVec<[&'s [Candidate]; LISTS_MERGED]>,
    /// Lowest number of a matching rule; `u32::MAX` if none.
    best: u32,
}

impl<'s> Search<'s> {
    fn push(&mut self, mut list: &'s [Candidate]) {
        // most lists have one candidate, often with another method: then there is nothing to merge
        while let Some((first, rest)) = list.split_first()
            && !first.methods.intersects(self.method)
        {
            list = rest;
        }
        if list.first().is_none_or(|first| first.rule >= self.best) {
            return;
        }
        if self.lists.len() == LISTS_MERGED {
            self.try_lists();
        }
        self.lists.push(list);
    }

    /// Checks the candidates of all lists in rule order, as long as they precede the best rule.
    fn try_lists(&mut self) {
        while let Some(candidate) = self.next() {
            if self.accepts(candidate) {
                self.best = candidate.rule;
                break;
            }
        }
        self.lists.clear();
    }

    /// Removes and returns the candidate with the lowest number; `None` if no candidate precedes the best rule.
    fn next(&mut self) -> Option<Candidate> {
        let mut lowest = self.best;
        let mut found = None;
        for (position, list) in self.lists.iter().enumerate() {
            if let Some(first) = list.first()
                && first.rule < lowest
            {
                (lowest, found) = (first.rule, Some(position));
            }
        }
        let (first, rest) = self.lists[found?].split_first()?;
        self.lists[found?] = rest;
        Some(*first)
    }

    fn accepts(&self, candidate: Candidate) -> bool {
        if !candidate.methods.intersects(self.method) {
            return false;
        }
        let conditions = || &self.rules[candidate.rule as usize].conditions;
        match candidate.open {
            Open::All => self.may_hold(candidate.inner) && conditions().matches(self.head),
            Open::BeyondUri => conditions().matches_beyond_uri(self.head),
            Open::Nothing => true,
        }
    }

    /// Whether the path contains the text with this number; true if there is no such text.
    fn may_hold(&self, inner: u32) -> bool {
        let inner = self.inners.get(inner as usize);
        inner.is_none_or(|inner| inner.find(self.head.path.as_bytes()).is_some())
    }
}
