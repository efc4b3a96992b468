//! Picks for clients that have an affinity entry.

use std::time::Duration;

use rand::Rng;

use super::AffinityLookup;
use crate::balance::EndpointIdx;
use crate::cluster::{Cluster, PickInput};
use crate::registry::{EndpointNumber, Moment, Visit};

impl Cluster {
    /// Lifetime of affinity entries after the client's last request; `None` without session affinity.
    #[inline]
    pub fn affinity_lifetime(&self) -> Option<Duration> {
        self.memory.as_ref().map(|memory| memory.lifetime)
    }

    /// The client's affinity entry; `None` without session affinity, and for a pool of a federation, which has no
    /// table.
    #[inline]
    pub fn stay(&self, visit: Visit) -> Option<AffinityLookup<'_>> {
        let memory = self.memory.as_ref()?;
        Some(AffinityLookup {
            affinity_table: memory.affinity_table.as_ref()?,
            lifetime: memory.lifetime,
            visit,
        })
    }

    /// Number of affinity entries; `None` without session affinity. Reads the whole table.
    pub fn affinity_entries(&self, now: Moment) -> Option<usize> {
        let memory = self.memory.as_ref()?;
        let affinity_table = memory.affinity_table.as_ref()?;
        Some(affinity_table.count(now, memory.lifetime))
    }

    /// Returns the endpoint of the client's affinity entry; otherwise picks one like [`Cluster::pick`] and stores it.
    pub fn pick_for(
        &self,
        stay: &AffinityLookup<'_>,
        ask: PickInput,
        rng: &mut impl Rng,
    ) -> Option<EndpointIdx> {
        stay.known_or_picked(
            |number| self.affinity_endpoint(number),
            || {
                let picked = self.pick(ask, rng)?;
                Some((picked, self.endpoint_number(picked)))
            },
        )
    }

    /// Returns the endpoint with this number if it is usable and its priority has traffic.
    pub fn affinity_endpoint(&self, number: EndpointNumber) -> Option<EndpointIdx> {
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

    /// Whether the priority of an endpoint has a share of the traffic.
    fn has_traffic(&self, endpoint: EndpointIdx) -> bool {
        if self.priorities.is_empty() {
            return true;
        }
        let live = self.live.load();
        let share = live.shares.get(self.priority(endpoint) as usize);
        share.is_some_and(|share| share.load > 0)
    }
}
