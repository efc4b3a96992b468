//! Session affinity: a client stays with its endpoint when other endpoints or weights change.
//!
//! The first pick uses the hash of the client, so that all proxies pick alike; later picks use its affinity entry. An entry
//! is replaced when its endpoint is gone, is unavailable, belongs to a cluster without a share, or when an endpoint of an
//! earlier cluster tier or an earlier priority is available again.

use std::sync::Arc;
use std::time::Duration;

use rand::Rng;

use super::locality::Plan;
use super::{Ask, Cluster, Endpoint};
use crate::balance::EndpointIdx;
use crate::registry::{AffinityEntry, AffinityTable, EndpointNumber, Moment, Visit};

/// Session affinity of one cluster.
#[derive(Debug)]
pub(super) struct AffinitySettings {
    /// How long an entry lives after the client's last request.
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
        let members = plan
            .iter()
            .flatten()
            .flat_map(|group| group.members.iter().copied());
        let numbers = members.filter_map(|member| {
            let number = EndpointNumber::of(endpoints[member as usize].state.id)?;
            Some((number, EndpointIdx(member)))
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

/// Where a client stays.
#[derive(Clone, Copy, Debug)]
pub struct Stay<'a> {
    affinity_table: &'a AffinityTable,
    lifetime: Duration,
    visit: Visit,
}

impl Stay<'_> {
    /// The endpoint of the client's entry, if `standing` finds it usable; else the endpoint that `pick` picks, which is
    /// stored if it has a number.
    #[inline]
    pub fn settle<T>(
        &self,
        standing: impl FnOnce(EndpointNumber) -> Option<T>,
        pick: impl FnOnce() -> Option<(T, Option<EndpointNumber>)>,
    ) -> Option<T> {
        let entry = self.entry();
        if let Some(entry) = entry
            && let Some(found) = standing(entry.endpoint())
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

    /// How much longer the client is remembered without another request.
    pub fn left(&self, entry: AffinityEntry) -> Duration {
        self.affinity_table.left(self.visit, self.lifetime, entry)
    }
}

impl Cluster {
    /// How long clients are remembered after their last request, if they are.
    #[inline]
    pub fn remembers(&self) -> Option<Duration> {
        self.memory.as_ref().map(|memory| memory.lifetime)
    }

    /// Where a client stays; nowhere if clients are not remembered.
    #[inline]
    pub fn stay(&self, visit: Visit) -> Option<Stay<'_>> {
        let memory = self.memory.as_ref()?;
        Some(Stay {
            affinity_table: memory.affinity_table.as_ref()?,
            lifetime: memory.lifetime,
            visit,
        })
    }

    /// How many clients are remembered; none if they are not. Looks at all of them.
    pub fn affinity_entries(&self, now: Moment) -> Option<usize> {
        let memory = self.memory.as_ref()?;
        let affinity_table = memory.affinity_table.as_ref()?;
        Some(affinity_table.count(now, memory.lifetime))
    }

    /// The endpoint that its client stays with, or one as [`Cluster::pick`] finds it, with which it then stays.
    pub fn pick_for(&self, stay: &Stay<'_>, ask: Ask, rng: &mut impl Rng) -> Option<EndpointIdx> {
        stay.settle(
            |number| self.standing(number),
            || {
                let picked = self.pick(ask, rng)?;
                Some((picked, self.endpoint_number(picked)))
            },
        )
    }

    /// The endpoint with this number, if it may be used and its priority has traffic.
    pub fn standing(&self, number: EndpointNumber) -> Option<EndpointIdx> {
        let numbers = &self.memory.as_ref()?.numbers;
        let at = numbers.binary_search_by_key(&number, |(number, _)| *number);
        let (_, endpoint) = numbers[at.ok()?];
        let is_usable = self.endpoint(endpoint).state.health.is_usable();
        (is_usable && self.has_traffic(endpoint)).then_some(endpoint)
    }

    /// The number of an endpoint in affinity entries; none for an endpoint that is used only in panic mode.
    pub fn endpoint_number(&self, endpoint: EndpointIdx) -> Option<EndpointNumber> {
        let state = &self.endpoint(endpoint).state;
        let number = EndpointNumber::of(state.id);
        number.filter(|_| state.health.is_usable())
    }

    /// Whether the priority of an endpoint has a part of the traffic.
    fn has_traffic(&self, endpoint: EndpointIdx) -> bool {
        if self.priorities.is_empty() {
            return true;
        }
        let live = self.live.load();
        let share = live.shares.get(self.priority(endpoint) as usize);
        share.is_some_and(|share| share.load > 0)
    }
}

#[cfg(test)]
mod tests;
