//! Session affinity: a client stays with its endpoint when other endpoints or weights change.
//!
//! The first pick uses the hash of the client, so that all proxies pick alike; later picks use its affinity entry. An
//! entry is replaced when its endpoint is gone, is unavailable, belongs to a cluster without a share, or when an endpoint
//! of an earlier cluster tier or an earlier priority is available again.

mod picks;

use std::sync::Arc;
use std::time::Duration;

use super::Endpoint;
use super::locality::Plan;
use crate::balance::EndpointIdx;
use crate::registry::{AffinityEntry, AffinityTable, EndpointNumber, Visit};

/// Session affinity of one cluster.
#[derive(Debug)]
pub(super) struct AffinitySettings {
    /// Lifetime of an entry after the client's last request.
    lifetime: Duration,
    /// The entries. Of a service in several Kubernetes clusters, the cluster that represents all of them has the table.
    affinity_table: Option<Arc<AffinityTable>>,
    /// The endpoints that may have traffic, by their numbers in affinity entries.
    numbers: Box<[(EndpointNumber, EndpointIdx)]>,
}

impl AffinitySettings {
    pub(super) fn build(
        lifetime: Duration,
        affinity_table: Option<Arc<AffinityTable>>,
        plan: &Plan,
        endpoints: &[Endpoint],
    ) -> Box<Self> {
        let indexes = plan
            .iter()
            .flatten()
            .flat_map(|group| group.indexes.iter().copied());
        let numbers = indexes.filter_map(|index| {
            let number = EndpointNumber::of(endpoints[index as usize].state.id)?;
            Some((number, EndpointIdx(index)))
        });
        let mut numbers: Vec<_> = numbers.collect();
        numbers.sort_unstable_by_key(|(number, _)| *number);
        Box::new(Self {
            lifetime,
            affinity_table,
            numbers: numbers.into(),
        })
    }
}

/// A client's access to its affinity entry in one cluster.
#[derive(Clone, Copy, Debug)]
pub struct AffinityLookup<'a> {
    affinity_table: &'a AffinityTable,
    lifetime: Duration,
    visit: Visit,
}

impl AffinityLookup<'_> {
    /// Returns the endpoint of the client's entry if `usable` finds it usable; else the endpoint that `pick` picks,
    /// and stores that one in the entry if it has a number.
    #[inline]
    pub fn known_or_picked<T>(
        &self,
        usable: impl FnOnce(EndpointNumber) -> Option<T>,
        pick: impl FnOnce() -> Option<(T, Option<EndpointNumber>)>,
    ) -> Option<T> {
        let entry = self.entry();
        if let Some(entry) = entry
            && let Some(found) = usable(entry.endpoint())
        {
            self.affinity_table.renew(self.visit, entry);
            return Some(found);
        }
        let (picked, number) = pick()?;
        if let Some(number) = number {
            self.affinity_table
                .put(self.visit, self.lifetime, number, entry);
        }
        Some(picked)
    }

    /// The client's entry, whether its endpoint is usable or not.
    pub fn entry(&self) -> Option<AffinityEntry> {
        self.affinity_table.find(self.visit, self.lifetime)
    }

    /// Remaining lifetime of the entry if the client sends no other request.
    pub fn left(&self, entry: AffinityEntry) -> Duration {
        self.affinity_table.left(self.visit, self.lifetime, entry)
    }
}

#[cfg(test)]
mod tests;
