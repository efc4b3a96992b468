//! The rules of one action, and an index that finds those which a subject can match.
//!
//! Each rule waits under the values of its sources, its operations or one condition, whichever share their values with the
//! fewest other rules. A rule without such values, such as one with negated values only, is always compared.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use super::pattern::Pattern;
use super::rule::{Attribute, Condition, Rule, Values};
use super::subject::Subject;
use crate::route::trie::{Trie, TrieBuilder};

/// Rules of one action, in their order.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    rules: Box<[Arc<Rule>]>,
    texts: Box<[TextIndex]>,
    networks: Box<[NetworkIndex]>,
    /// Rules that are always compared.
    others: Box<[u32]>,
}

/// Rules by the text of one attribute.
#[derive(Clone, Debug)]
struct TextIndex {
    attribute: Attribute,
    forward: Trie,
    backward: Trie,
    /// Rules that wait for a whole text, and rules that wait for a prefix.
    by_prefix: Box<[[Box<[u32]>; 2]]>,
    by_suffix: Box<[Box<[u32]>]>,
}

/// Rules by the address of one attribute.
#[derive(Clone, Debug)]
struct NetworkIndex {
    attribute: Attribute,
    /// Lengths of prefixes, each of IPv4 or IPv6.
    lengths: Box<[(bool, u8)]>,
    rules: HashMap<IpNet, Box<[u32]>>,
}

/// Value under which a rule waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key<'a> {
    Whole(&'a Attribute, &'a str),
    Prefix(&'a Attribute, &'a str),
    Suffix(&'a Attribute, &'a str),
    Network(&'a Attribute, IpNet),
}

impl RuleSet {
    /// Builds the index of rules in their order.
    pub fn new(rules: Vec<Arc<Rule>>) -> Self {
        let (texts, networks, others) = {
            let mut counts = HashMap::new();
            for rule in &rules {
                let conditions = rule.from.iter().chain(&rule.to).flatten().chain(&rule.when);
                for key in conditions.filter_map(keys).flatten() {
                    *counts.entry(key).or_insert(0_u32) += 1;
                }
            }
            let mut waiting: HashMap<Key<'_>, Vec<u32>> = HashMap::new();
            let mut others = Vec::new();
            for (number, rule) in (0..).zip(&rules) {
                match cheapest(rule, &counts) {
                    Some(keys) => keys.into_iter().for_each(|key| {
                        let list = waiting.entry(key).or_default();
                        if list.last() != Some(&number) {
                            list.push(number);
                        }
                    }),
                    None => others.push(number),
                }
            }
            let (texts, networks) = indexes(waiting);
            (texts, networks, others)
        };
        Self {
            rules: rules.into(),
            texts,
            networks,
            others: others.into(),
        }
    }

    /// Returns the first rule that the subject matches.
    pub fn first_match(&self, subject: &Subject<'_>) -> Option<&Rule> {
        let mut best = usize::MAX;
        let mut compare = |list: &[u32]| {
            for &number in list {
                let number = number as usize;
                if number >= best {
                    return;
                }
                if self.rules[number].matches(subject) {
                    best = number;
                }
            }
        };
        for index in &self.texts {
            index.visit(subject, &mut compare);
        }
        for index in &self.networks {
            index.visit(subject, &mut compare);
        }
        compare(&self.others);
        Some(&**self.rules.get(best)?)
    }

    /// Returns all rules, in their order.
    pub fn rules(&self) -> &[Arc<Rule>] {
        &self.rules
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

/// Returns the keys of a condition; `None` if another value than these could match.
fn keys(condition: &Condition) -> Option<Vec<Key<'_>>> {
    let attribute = &condition.attribute;
    match condition.values.as_ref()? {
        Values::Networks(networks) => {
            let keys = networks
                .iter()
                .map(|network| Key::Network(attribute, *network));
            Some(keys.collect())
        }
        Values::Texts(patterns) => {
            let keys = patterns.iter().map(|pattern| match pattern {
                Pattern::Exact(text) => Some(Key::Whole(attribute, text)),
                Pattern::Prefix(text) => Some(Key::Prefix(attribute, text)),
                Pattern::Suffix(text) => Some(Key::Suffix(attribute, text)),
                Pattern::Template(text) => {
                    let (start, _) = text.split_once('{')?;
                    Some(Key::Prefix(attribute, start))
                }
                Pattern::Any | Pattern::Present | Pattern::Glob(_) => None,
            });
            keys.collect()
        }
        Values::Principals(_) | Values::Ports(_) => None,
    }
}

/// Returns the keys under which a rule waits: the ones that the fewest rules share. `None` if it can match without any.
fn cheapest<'a>(rule: &'a Rule, counts: &HashMap<Key<'a>, u32>) -> Option<Vec<Key<'a>>> {
    let cost = |keys: &Vec<Key<'a>>| keys.iter().map(|key| u64::from(counts[key])).sum::<u64>();
    let of_alternative = |conditions: &'a [Condition]| {
        let keys = conditions.iter().filter_map(keys);
        keys.min_by_key(cost)
    };
    let of_group = |group: &'a [Box<[Condition]>]| {
        let keys: Option<Vec<_>> = group.iter().map(|one| of_alternative(one)).collect();
        keys.filter(|_| !group.is_empty()).map(|keys| keys.concat())
    };
    let groups = [
        of_group(&rule.from),
        of_group(&rule.to),
        of_alternative(&rule.when),
    ];
    groups.into_iter().flatten().min_by_key(cost)
}

/// Keys of one attribute, with the rules that wait under each.
type Waiting<'a> = Vec<(Key<'a>, Box<[u32]>)>;

/// Builds an index for each attribute.
fn indexes(waiting: HashMap<Key<'_>, Vec<u32>>) -> (Box<[TextIndex]>, Box<[NetworkIndex]>) {
    let mut texts: HashMap<&Attribute, Waiting<'_>> = HashMap::new();
    let mut networks: HashMap<&Attribute, HashMap<IpNet, Box<[u32]>>> = HashMap::new();
    for (key, rules) in waiting {
        match key {
            Key::Network(attribute, network) => {
                networks
                    .entry(attribute)
                    .or_default()
                    .insert(network, rules.into());
            }
            Key::Whole(attribute, _) | Key::Prefix(attribute, _) | Key::Suffix(attribute, _) => {
                texts
                    .entry(attribute)
                    .or_default()
                    .push((key, rules.into()));
            }
        }
    }
    let texts = texts
        .into_iter()
        .map(|(attribute, keys)| TextIndex::new(attribute, keys));
    let networks = networks.into_iter().map(|(attribute, rules)| {
        let lengths = rules
            .keys()
            .map(|network| (network.addr().is_ipv4(), network.prefix_len()));
        let mut lengths: Vec<_> = lengths.collect();
        lengths.sort_unstable();
        lengths.dedup();
        NetworkIndex {
            attribute: attribute.clone(),
            lengths: lengths.into(),
            rules,
        }
    });
    (texts.collect(), networks.collect())
}

impl TextIndex {
    fn new(attribute: &Attribute, keys: Waiting<'_>) -> Self {
        let (mut forward, mut backward) = (TrieBuilder::default(), TrieBuilder::default());
        let mut by_prefix: Vec<[Box<[u32]>; 2]> = Vec::new();
        let mut by_suffix = Vec::new();
        for (key, rules) in keys {
            let (text, is_prefix) = match key {
                Key::Whole(_, text) => (text, false),
                Key::Prefix(_, text) => (text, true),
                Key::Suffix(_, text) => {
                    let reversed = text.bytes().rev().collect();
                    backward.insert(reversed, by_suffix.len() as u32);
                    by_suffix.push(rules);
                    continue;
                }
                Key::Network(..) => continue,
            };
            let place = forward.insert(text.as_bytes().into(), by_prefix.len() as u32) as usize;
            if place == by_prefix.len() {
                by_prefix.push(Default::default());
            }
            by_prefix[place][usize::from(is_prefix)] = rules;
        }
        Self {
            attribute: attribute.clone(),
            forward: forward.build(),
            backward: backward.build(),
            by_prefix: by_prefix.into(),
            by_suffix: by_suffix.into(),
        }
    }

    /// Visits the lists of rules whose values the subject has.
    fn visit(&self, subject: &Subject<'_>, compare: &mut impl FnMut(&[u32])) {
        let folds = self.attribute.folds();
        let mut each = |text: &[u8]| {
            let visit = |place: u32, is_whole: bool| {
                let [whole, prefix] = &self.by_prefix[place as usize];
                compare(prefix);
                if is_whole {
                    compare(whole);
                }
            };
            match folds {
                true => self.forward.walk_ignoring_case(text, visit),
                false => self.forward.walk(text, visit),
            }
            if !self.by_suffix.is_empty() {
                let lower = folds.then(|| text.to_ascii_lowercase());
                let text = lower.as_deref().unwrap_or(text);
                self.backward
                    .walk_backwards(text, |place| compare(&self.by_suffix[place as usize]));
            }
            false
        };
        self.attribute.any_text(subject, &mut each);
        if let Some(host) = self.attribute.bare_host(subject) {
            each(host.as_bytes());
        }
    }
}

impl NetworkIndex {
    fn visit(&self, subject: &Subject<'_>, compare: &mut impl FnMut(&[u32])) {
        let Some(address) = self.attribute.address(subject) else {
            return;
        };
        for &(is_v4, length) in &self.lengths {
            if is_v4 == address.is_ipv4()
                && let Some(rules) = covering(address, length).and_then(|net| self.rules.get(&net))
            {
                compare(rules);
            }
        }
    }
}

/// Returns the network of an address with a prefix of this length.
fn covering(address: IpAddr, length: u8) -> Option<IpNet> {
    IpNet::new(address, length)
        .ok()
        .map(|network| network.trunc())
}
