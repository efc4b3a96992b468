//! Picks for clients that have an affinity entry.

use std::time::Duration;

use rand::Rng;

use super::Stay;
use crate::balance::EndpointIdx;
use crate::cluster::{Ask, Cluster};
use crate::registry::{EndpointNumber, Moment, Visit};

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
