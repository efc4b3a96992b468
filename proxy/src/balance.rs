//! Balancers: build tables when configuration changes, pick by lookup.
//!
//! `build` sees the whole endpoint set and makes flat tables; `pick` allocates nothing, takes no lock and returns an
//! index. Random numbers and the shared cursor are passed in, so that every pick can be replayed. A pick never fails:
//! a balancer is only built for a set that is not empty.

mod least_request;
mod random;
mod round_robin;
mod weights;

use rand::Rng;

pub use least_request::LeastRequest;
pub use random::Random;
pub use round_robin::{RoundRobin, SCHEDULE_LEN_MAX};
pub use weights::Weights;

use crate::registry::{Cursor, EndpointState};

/// Number of an endpoint within its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointIdx(pub u32);

/// Which balancer a policy asks for.
///
/// Source: DestinationRule `trafficPolicy.loadBalancer.simple`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Two random choices, the one with fewer active requests for its weight. The default.
    #[default]
    LeastRequest,
    /// Any endpoint, in proportion to its weight.
    Random,
    /// In turn, in proportion to weight, interleaved smoothly.
    RoundRobin,
}

impl Policy {
    /// The name that configuration uses.
    pub fn name(self) -> &'static str {
        match self {
            Policy::LeastRequest => "LEAST_REQUEST",
            Policy::Random => "RANDOM",
            Policy::RoundRobin => "ROUND_ROBIN",
        }
    }
}

/// A balancer over a fixed, non-empty endpoint set.
#[derive(Debug)]
pub enum Balancer {
    /// See [`LeastRequest`].
    LeastRequest(LeastRequest),
    /// See [`Random`].
    Random(Random),
    /// See [`RoundRobin`].
    RoundRobin(RoundRobin),
}

impl Balancer {
    /// Makes the tables for endpoints of these weights; `None` for an empty set.
    pub fn build(policy: Policy, weights: &[u32]) -> Option<Self> {
        if weights.is_empty() {
            return None;
        }
        Some(match policy {
            Policy::LeastRequest => Balancer::LeastRequest(LeastRequest::build(weights)),
            Policy::Random => Balancer::Random(Random::build(weights)),
            Policy::RoundRobin => Balancer::RoundRobin(RoundRobin::build(weights)),
        })
    }

    /// Picks one endpoint. `state` gives the live state of an index.
    pub fn pick<'a>(
        &self,
        state: impl Fn(EndpointIdx) -> &'a EndpointState,
        cursor: &Cursor,
        rng: &mut impl Rng,
    ) -> EndpointIdx {
        match self {
            Balancer::LeastRequest(balancer) => balancer.pick(state, rng),
            Balancer::Random(balancer) => balancer.pick(rng),
            Balancer::RoundRobin(balancer) => balancer.pick(cursor),
        }
    }

    /// Share of picks that each endpoint gets while all of them are equally busy; sums to 1.
    pub fn shares(weights: &[u32]) -> Vec<f64> {
        let total: f64 = weights.iter().map(|&weight| f64::from(weight.max(1))).sum();
        weights
            .iter()
            .map(|&weight| f64::from(weight.max(1)) / total)
            .collect()
    }
}

#[cfg(test)]
mod tests;
