//! Hash tables of a cluster, built when the cluster gets its first request.
//!
//! A table takes 10 to 75 KiB, and in a large mesh most services get no request from one proxy. The first pick builds
//! the table rather than computing its result directly: only a complete Maglev table shows the endpoint of a slot, and
//! a pick from a ring without a table hashes as many names as building it. Both take at most a few milliseconds, once:
//! when the cluster changes later, `compile` builds its new table at once. Larger tables are always built by `compile`.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use crate::balance::hash::Host;
use crate::balance::{EndpointIdx, HashAlgorithm, HashTable, Policy};
use crate::cluster::Endpoint;
use crate::cluster::locality::Group;
use crate::cluster::parts::Parts;

/// Maximum number of entries of a table that a request may build, in 1 to 4 ms. The default size of a Maglev table.
const LAZY_ENTRIES_MAX: u64 = 65_537;

/// Hash table of one priority, built on first use.
#[derive(Debug, Default)]
pub struct LazyTable(OnceLock<HashTable>);

impl LazyTable {
    /// Creates the table of a priority; builds it at once if an earlier version of the cluster had one, or if it is
    /// large.
    pub(super) fn of(parts: &Parts, priority: usize) -> Self {
        let lazy = Self::default();
        if parts.state.hash_tables_used.load(Ordering::Relaxed) || is_large(parts, priority) {
            lazy.build(parts, priority);
        }
        lazy
    }

    /// The table, built by the first pick; `None` if the priority has no endpoints.
    #[inline]
    pub(super) fn get(&self, parts: &Parts, priority: usize) -> Option<&HashTable> {
        match self.0.get() {
            Some(table) => Some(table),
            None => self.build_for_request(parts, priority),
        }
    }

    #[cold]
    fn build_for_request(&self, parts: &Parts, priority: usize) -> Option<&HashTable> {
        parts.state.hash_tables_used.store(true, Ordering::Relaxed);
        self.build(parts, priority)
    }

    /// Builds the table without waiting for another worker that does the same: the tables are equal, and the first one
    /// is kept.
    fn build(&self, parts: &Parts, priority: usize) -> Option<&HashTable> {
        let built = table(parts, priority)?;
        drop(self.0.set(built));
        self.0.get()
    }

    /// Share of the keys of each endpoint, while all are usable. Does not keep a table that it has to build: admin
    /// pages read the shares of all clusters.
    pub(super) fn shares(&self, parts: &Parts, priority: usize) -> Vec<(EndpointIdx, f64)> {
        let built = match self.0.get() {
            Some(_) => None,
            None => table(parts, priority),
        };
        let table = self.0.get().or(built.as_ref());
        table.map_or_else(Vec::new, |table| table.shares().into_iter().collect())
    }

    /// Whether the table is built.
    #[cfg(test)]
    pub(in crate::cluster) fn is_built(&self) -> bool {
        self.0.get().is_some()
    }
}

fn table(parts: &Parts, priority: usize) -> Option<HashTable> {
    let (algorithm, groups) = algorithm(parts, priority)?;
    let indexes = groups.iter().flat_map(|group| &group.indexes);
    let keys = indexes.map(|index| parts.endpoints[*index as usize].hash_key());
    let keys: Vec<String> = keys.collect();
    let weights = weights(groups, &parts.endpoints);
    let hosts: Vec<(EndpointIdx, Host<'_>)> = weights
        .zip(&keys)
        .map(|((endpoint, weight), key)| (endpoint, Host { key, weight }))
        .collect();
    HashTable::build(algorithm, &hosts)
}

fn is_large(parts: &Parts, priority: usize) -> bool {
    let Some((algorithm, groups)) = algorithm(parts, priority) else {
        return false;
    };
    let weights = weights(groups, &parts.endpoints).map(|(_, weight)| weight);
    algorithm.entries(&weights.collect::<Vec<f64>>()) > LAZY_ENTRIES_MAX
}

/// Returns the hash algorithm of a cluster and the groups of a priority; `None` if it does not balance by hash.
fn algorithm(parts: &Parts, priority: usize) -> Option<(HashAlgorithm, &[Group])> {
    let groups = parts.plan.get(priority)?;
    match &parts.balance.policy {
        Policy::Hash(policy) => Some((policy.algorithm, groups)),
        Policy::Simple(_) | Policy::Passthrough => None,
    }
}

/// The endpoints of one priority in the order of the groups, with their weights; if there are several groups, the
/// weight of a group is divided among its endpoints.
fn weights<'a>(
    groups: &'a [Group],
    endpoints: &'a [Endpoint],
) -> impl Iterator<Item = (EndpointIdx, f64)> + 'a {
    groups.iter().flat_map(move |group| {
        let weight = |index: &u32| f64::from(endpoints[*index as usize].weight);
        let sum: f64 = group.indexes.iter().map(weight).sum();
        group.indexes.iter().map(move |index| {
            let weight = match groups {
                [_] => weight(index),
                _ => f64::from(group.weight) * weight(index) / sum,
            };
            (EndpointIdx(*index), weight)
        })
    })
}

#[cfg(test)]
mod tests;
