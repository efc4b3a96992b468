//! Clients that stay with the endpoint that they were sent to, whatever becomes of other endpoints and of weights.
//!
//! The first time the hash of a client decides, so that proxies agree as far as they can; from then on its pin does. A pin
//! does not hold, and is replaced, once its endpoint is not there any more, may not be used, is of a cluster without a
//! share, or stands behind others that may be used again: of an earlier tier of clusters, or an earlier priority.

use std::sync::Arc;
use std::time::Duration;

use rand::Rng;

use super::locality::Plan;
use super::{Ask, Cluster, Endpoint};
use crate::balance::EndpointIdx;
use crate::registry::{Moment, Pin, PinNumber, Pins, Visit};

/// What a cluster knows of clients that stay.
#[derive(Debug)]
pub(super) struct Memory {
    /// How long they are remembered after their last request.
    lifetime: Duration,
    /// Where they stay. Of a service that several members serve, the cluster that stands for them all has it.
    pins: Option<Arc<Pins>>,
    /// The endpoints that may have traffic, by the numbers that pins know them by.
    numbers: Box<[(PinNumber, EndpointIdx)]>,
}

impl Memory {
    pub(super) fn build(
        lifetime: Duration,
        pins: Option<Arc<Pins>>,
        plan: &Plan,
        endpoints: &[Endpoint],
    ) -> Box<Self> {
        let members = plan
            .iter()
            .flatten()
            .flat_map(|group| group.members.iter().copied());
        let numbers = members.filter_map(|member| {
            let number = PinNumber::of(endpoints[member as usize].state.id)?;
            Some((number, EndpointIdx(member)))
        });
        let mut numbers: Vec<_> = numbers.collect();
        numbers.sort_unstable_by_key(|(number, _)| *number);
        Box::new(Self {
            lifetime,
            pins,
            numbers: numbers.into(),
        })
    }
}

/// Where a client stays.
#[derive(Clone, Copy, Debug)]
pub struct Stay<'a> {
    pins: &'a Pins,
    lifetime: Duration,
    visit: Visit,
}

impl Stay<'_> {
    /// The endpoint of the client's pin, if `standing` finds that it may be used; else what `pick` picks, with which it then
    /// stays if that has a number.
    #[inline]
    pub fn settle<T>(
        &self,
        standing: impl FnOnce(PinNumber) -> Option<T>,
        pick: impl FnOnce() -> Option<(T, Option<PinNumber>)>,
    ) -> Option<T> {
        let pin = self.pin();
        if let Some(pin) = pin
            && let Some(found) = standing(pin.endpoint())
        {
            self.pins.renew(self.visit, pin);
            return Some(found);
        }
        let (picked, number) = pick()?;
        if let Some(number) = number {
            self.pins.put(self.visit, self.lifetime, number, pin);
        }
        Some(picked)
    }

    /// The client's pin, whether its endpoint may be used or not.
    pub fn pin(&self) -> Option<Pin> {
        self.pins.find(self.visit, self.lifetime)
    }

    /// How much longer the client is remembered without another request.
    pub fn left(&self, pin: Pin) -> Duration {
        self.pins.left(self.visit, self.lifetime, pin)
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
            pins: memory.pins.as_ref()?,
            lifetime: memory.lifetime,
            visit,
        })
    }

    /// How many clients are remembered; none if they are not. Looks at all of them.
    pub fn pins(&self, now: Moment) -> Option<usize> {
        let memory = self.memory.as_ref()?;
        let pins = memory.pins.as_ref()?;
        Some(pins.count(now, memory.lifetime))
    }

    /// The endpoint that its client stays with, or one as [`Cluster::pick`] finds it, with which it then stays.
    pub fn pick_for(&self, stay: &Stay<'_>, ask: Ask, rng: &mut impl Rng) -> Option<EndpointIdx> {
        stay.settle(
            |number| self.standing(number),
            || {
                let picked = self.pick(ask, rng)?;
                Some((picked, self.pin_number(picked)))
            },
        )
    }

    /// The endpoint with this number, if it may be used and its priority has traffic.
    pub fn standing(&self, number: PinNumber) -> Option<EndpointIdx> {
        let numbers = &self.memory.as_ref()?.numbers;
        let at = numbers.binary_search_by_key(&number, |(number, _)| *number);
        let (_, endpoint) = numbers[at.ok()?];
        let is_usable = self.endpoint(endpoint).state.health.is_usable();
        (is_usable && self.has_traffic(endpoint)).then_some(endpoint)
    }

    /// The number by which pins know an endpoint; none of one that is used only because all others are no better.
    pub fn pin_number(&self, endpoint: EndpointIdx) -> Option<PinNumber> {
        let state = &self.endpoint(endpoint).state;
        let number = PinNumber::of(state.id);
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
