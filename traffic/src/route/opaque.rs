//! Rules for raw TCP connections, by SNI and addresses.
//!
//! Among the rules whose address conditions hold, the one with the most specific SNI pattern wins: exact, then the
//! longest wildcard, then `*` and rules without a pattern; the first of equally specific ones. [`OpaqueTable::scan`]
//! does the same by checking rule after rule; it is the oracle of the property test.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use super::{HostIndex, RuleIdx};
use crate::provenance::Provenance;

/// The properties of a connection that rules match on.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpaqueHead<'a> {
    /// SNI of the client, in lower case and without a trailing dot.
    pub sni: Option<&'a str>,
    /// Address that the client dialed; unknown on a Unix socket.
    pub destination: Option<IpAddr>,
    /// Address of the client; unknown on a Unix socket.
    pub source: Option<IpAddr>,
}

/// All conditions of one match block; each must hold.
#[derive(Clone, Debug, Default)]
pub struct OpaqueConditions {
    /// Names, exact or with a wildcard, one of which must match the SNI; empty for any connection.
    pub sni_hosts: Box<[Arc<str>]>,
    /// Subnets, one of which must contain the address that the client dialed; empty for any address.
    pub destination_subnets: Box<[IpNet]>,
    /// Subnets, one of which must contain the client's address; empty for any address.
    pub source_subnets: Box<[IpNet]>,
}

impl OpaqueConditions {
    /// Whether the address conditions hold for a connection.
    pub fn holds_for_addresses(&self, head: &OpaqueHead<'_>) -> bool {
        has(&self.destination_subnets, head.destination) && has(&self.source_subnets, head.source)
    }

    /// Specificity of the pattern that matches the SNI; `None` if no pattern matches.
    pub fn specificity(&self, head: &OpaqueHead<'_>) -> Option<Specificity> {
        if self.sni_hosts.is_empty() {
            return Some(Specificity::ANY);
        }
        let covering = self.sni_hosts.iter().filter_map(|name| covers(name, head));
        covering.max()
    }
}

fn has(subnets: &[IpNet], address: Option<IpAddr>) -> bool {
    let within = |address: IpAddr| {
        let address = address.to_canonical();
        subnets.iter().any(|subnet| subnet.contains(&address))
    };
    subnets.is_empty() || address.is_some_and(within)
}

/// Order of patterns: exact names above wildcards, longer wildcards above shorter ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Specificity(bool, usize);

impl Specificity {
    const ANY: Self = Self(false, 1);

    fn of(name: &str) -> Self {
        Self(!name.starts_with('*'), name.len())
    }
}

fn covers(name: &str, head: &OpaqueHead<'_>) -> Option<Specificity> {
    let covered = match (name.strip_prefix('*'), head.sni) {
        (Some(""), _) => true,
        (_, None) => false,
        (Some(suffix), Some(sni)) => sni.len() > suffix.len() && sni.ends_with(suffix),
        (None, Some(sni)) => sni == name,
    };
    covered.then(|| Specificity::of(name))
}

/// One ordered entry: conditions and their origin.
#[derive(Clone, Debug)]
pub struct OpaqueRule {
    /// Conditions of the rule. Names are in lower case and without a trailing dot.
    pub conditions: OpaqueConditions,
    /// The match block or rule that this was compiled from.
    pub provenance: Provenance,
}

/// Rules for connections, indexed by SNI.
#[derive(Clone, Debug, Default)]
pub struct OpaqueTable {
    rules: Box<[OpaqueRule]>,
    /// Candidate rules for each name in a rule, most specific first.
    by_sni: HostIndex<Box<[RuleIdx]>>,
    /// Candidate rules for connections without SNI.
    unnamed: Box<[RuleIdx]>,
}

impl OpaqueTable {
    /// Indexes rules, which must be in order.
    pub fn compile(rules: Vec<OpaqueRule>) -> Self {
        let mut by_name: HashMap<&str, Vec<RuleIdx>> = HashMap::new();
        for (rule, number) in rules.iter().zip(0..) {
            if rule.conditions.sni_hosts.is_empty() {
                by_name.entry("*").or_default().push(RuleIdx(number));
            }
            for name in &rule.conditions.sni_hosts {
                let of_name = by_name.entry(name).or_default();
                if of_name.last() != Some(&RuleIdx(number)) {
                    of_name.push(RuleIdx(number));
                }
            }
        }
        let unnamed = by_name.get("*").cloned().unwrap_or_default();
        let mut names: Vec<&str> = by_name.keys().copied().collect();
        names.sort_unstable();
        let indexed = names
            .into_iter()
            .map(|name| (name, candidates(name, &by_name)));
        Self {
            by_sni: HostIndex::new(indexed),
            unnamed: unnamed.into_boxed_slice(),
            rules: rules.into_boxed_slice(),
        }
    }

    /// Finds the rule for a connection.
    pub fn find(&self, head: &OpaqueHead<'_>) -> Option<RuleIdx> {
        let candidates = match head.sni {
            Some(sni) => self.by_sni.find(sni)?,
            None => &self.unnamed,
        };
        let mut candidates = candidates.iter().copied();
        candidates.find(|rule| {
            let conditions = &self.rules[rule.index()].conditions;
            conditions.holds_for_addresses(head)
        })
    }

    /// Finds the same rule as [`find`](Self::find) by checking every rule.
    pub fn scan(&self, head: &OpaqueHead<'_>) -> Option<RuleIdx> {
        let mut best: Option<(Specificity, RuleIdx)> = None;
        for (rule, number) in self.rules.iter().zip(0..) {
            let Some(specificity) = rule.conditions.specificity(head) else {
                continue;
            };
            let better = best.is_none_or(|(known, _)| specificity > known);
            if better && rule.conditions.holds_for_addresses(head) {
                best = Some((specificity, RuleIdx(number)));
            }
        }
        best.map(|(_, rule)| rule)
    }

    /// The rules in order.
    pub fn rules(&self) -> &[OpaqueRule] {
        &self.rules
    }
}

/// Rules of a name and of the wildcards that match it, most specific first, without duplicates.
fn candidates(name: &str, by_name: &HashMap<&str, Vec<RuleIdx>>) -> Box<[RuleIdx]> {
    let mut found: Vec<RuleIdx> = by_name[name].clone();
    let suffixes = name.char_indices().skip(1).map(|(at, _)| &name[at..]);
    for suffix in suffixes.chain(std::iter::once("")) {
        let wildcard = format!("*{suffix}");
        if wildcard == name {
            continue;
        }
        for rule in by_name.get(&*wildcard).into_iter().flatten() {
            if !found.contains(rule) {
                found.push(*rule);
            }
        }
    }
    found.into_boxed_slice()
}

#[cfg(test)]
mod tests;
