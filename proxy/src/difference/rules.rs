//! Rules of a host before and after a change, and which of them differ in their conditions or their place.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::snapshot::{HttpHosts, Listener, Route, Security, Service, Snapshot, VirtualHost};
use traffic::route::{RequestHead, Rule, explain};

/// Rules that are tried for a host: those of its virtual host, then those of wider ones.
pub(super) struct HostRules<'s> {
    hosts: Vec<&'s Arc<VirtualHost>>,
}

impl<'s> HostRules<'s> {
    /// Returns the rules for a host on a listener; none if it does not serve the host.
    pub(super) fn of(listener: &'s Listener, host: &str) -> Self {
        let security = match &listener.service {
            Service::Tls(_) => Security::Tls(Some(host)),
            _ => Security::Plain,
        };
        let hosts: Option<&Arc<HttpHosts>> = listener.http(security);
        let first = hosts.and_then(|hosts| hosts.find(host));
        let wider = hosts.into_iter().flat_map(|hosts| hosts.wider(host));
        Self {
            hosts: first
                .into_iter()
                .chain(wider.filter(|_| first.is_some()))
                .collect(),
        }
    }

    /// All rules in order.
    pub(super) fn rules(&self) -> impl Iterator<Item = &'s Rule> {
        self.hosts.iter().flat_map(|host| host.table.rules())
    }

    /// Returns the position of the rule that a request gets.
    pub(super) fn find(&self, head: &RequestHead<'_>) -> Option<usize> {
        let mut before = 0;
        for host in &self.hosts {
            if let Some(rule) = host.table.find(head) {
                return Some(before + rule.index());
            }
            before += host.table.rules().len();
        }
        None
    }

    fn routes(&self) -> impl Iterator<Item = &'s Route> {
        self.hosts.iter().flat_map(|host| host.routes.iter())
    }

    /// Whether both are the same rules with the same clusters.
    pub(super) fn is_same(&self, own: &Snapshot, other: &HostRules<'_>, others: &Snapshot) -> bool {
        let mut pairs = self.hosts.iter().zip(&other.hosts);
        let same_hosts = self.hosts.len() == other.hosts.len()
            && pairs.all(|(one, other)| Arc::ptr_eq(one, other));
        same_hosts
            && self.routes().flat_map(Route::clusters).all(|(_, cluster)| {
                match (own.cluster(cluster), others.cluster(cluster)) {
                    (Some(before), Some(after)) => Arc::ptr_eq(before, after),
                    (before, after) => before.is_none() && after.is_none(),
                }
            })
    }
}

/// Rules that both have in the same order, and the rules that only one has or that are in another place.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Alignment {
    /// Positions of rules with the same conditions before and after.
    pub pairs: Vec<(usize, usize)>,
    /// Positions of the other rules before.
    pub old: Vec<usize>,
    /// Positions of the other rules after.
    pub new: Vec<usize>,
}

/// Aligns the rules of both.
pub(super) fn align(old: &HostRules<'_>, new: &HostRules<'_>) -> Alignment {
    let keys = |rules: &HostRules<'_>| -> Vec<Vec<(String, String)>> {
        rules.rules().map(explain::conditions).collect()
    };
    aligned(&keys(old), &keys(new))
}

fn aligned<K: Ord>(old: &[K], new: &[K]) -> Alignment {
    let mut places: BTreeMap<&K, VecDeque<usize>> = BTreeMap::new();
    for (at, key) in new.iter().enumerate() {
        places.entry(key).or_default().push_back(at);
    }
    let mut matched = Vec::new();
    for (before, key) in old.iter().enumerate() {
        if let Some(after) = places.get_mut(key).and_then(VecDeque::pop_front) {
            matched.push((before, after));
        }
    }
    let pairs = increasing(&matched);
    let rest = |all: usize, of: fn(&(usize, usize)) -> usize| {
        let mut kept = pairs
            .iter()
            .map(of)
            .collect::<Vec<_>>()
            .into_iter()
            .peekable();
        (0..all)
            .filter(|at| kept.next_if_eq(at).is_none())
            .collect()
    };
    Alignment {
        old: rest(old.len(), |pair| pair.0),
        new: rest(new.len(), |pair| pair.1),
        pairs,
    }
}

/// Returns the longest part of the pairs, which are in the order of the first, whose second ones increase.
fn increasing(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // by length, the pair with the smallest second one that ends so many; and the pair before each
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, (_, value)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < *value);
        before.push(length.checked_sub(1).map(|length| ends[length]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut found: Vec<_> = std::iter::successors(ends.last().copied(), |at| before[*at])
        .map(|at| pairs[at])
        .collect();
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moved_added_and_removed_rules_are_told_from_those_that_stay() {
        let found = aligned(&["a", "b", "c", "d"], &["b", "x", "c", "a"]);
        assert_eq!(found.pairs, [(1, 0), (2, 2)]);
        assert_eq!((found.old, found.new), (vec![0, 3], vec![1, 3]));
        let twice = aligned(&["a", "a"], &["a", "a", "a"]);
        assert_eq!(twice.pairs, [(0, 0), (1, 1)]);
        assert_eq!((twice.old, twice.new), (vec![], vec![2]));
        assert_eq!(aligned::<u8>(&[], &[]), Alignment::default());
    }
}
