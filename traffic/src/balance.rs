//! Balancers: build tables when configuration changes, pick by lookup.
//!
//! `build` reads the whole endpoint set and makes flat tables; `pick` allocates nothing, takes no lock and returns an
//! index. Random numbers and the shared cursor are arguments, so that every pick can be replayed. A pick never fails:
//! balancers are only built for sets that are not empty.

mod endpoint_idx;
pub mod hash;
mod key;
mod least_request;
mod maglev;
mod random;
mod ring_hash;
mod round_robin;
mod weights;

use std::collections::BTreeMap;

use rand::Rng;

pub use endpoint_idx::EndpointIdx;
pub use key::{CookieKey, HashKey, Source, client_hash, combined, of_address};
pub use least_request::LeastRequest;
pub use maglev::Maglev;
pub use random::Random;
pub use ring_hash::{RING_SIZE_MAX, RingHash};
pub use round_robin::{RoundRobin, SCHEDULE_LEN_MAX};
pub use weights::Weights;

use crate::registry::{Cursor, EndpointState};

/// Load balancing policy.
///
/// Source: DestinationRule `trafficPolicy.loadBalancer`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Round robin, least request, or random.
    Simple(Simple),
    /// Hash of a part of the request.
    Hash(HashPolicy),
    /// No balancing: the address that the client dialed.
    Passthrough,
}

impl Default for Policy {
    fn default() -> Self {
        Policy::Simple(Simple::default())
    }
}

impl Policy {
    /// The name that configuration uses.
    pub fn name(&self) -> &'static str {
        match self {
            Policy::Simple(simple) => simple.name(),
            Policy::Hash(policy) => match policy.algorithm {
                HashAlgorithm::RingHash { .. } => "ringHash",
                HashAlgorithm::Maglev { .. } => "maglev",
            },
            Policy::Passthrough => "PASSTHROUGH",
        }
    }
}

/// Balancers that use no property of a request.
///
/// Source: DestinationRule `trafficPolicy.loadBalancer.simple`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Simple {
    /// Picks the one of two random endpoints with fewer active requests for its weight. The default.
    #[default]
    LeastRequest,
    /// A random endpoint, in proportion to weight.
    Random,
    /// Round robin, in proportion to weight, smoothly interleaved.
    RoundRobin,
}

impl Simple {
    /// The name that configuration uses.
    pub fn name(self) -> &'static str {
        match self {
            Simple::LeastRequest => "LEAST_REQUEST",
            Simple::Random => "RANDOM",
            Simple::RoundRobin => "ROUND_ROBIN",
        }
    }

    /// Whether the balancer supports slow start.
    pub fn warms_up(self) -> bool {
        matches!(self, Simple::LeastRequest | Simple::RoundRobin)
    }
}

/// A hash policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HashPolicy {
    /// The part of a request that is hashed.
    pub key: HashKey,
    /// The algorithm that finds an endpoint for a hash.
    pub algorithm: HashAlgorithm,
}

/// Algorithms that find an endpoint for a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HashAlgorithm {
    /// A ring of at least this many entries. Default: 1024; maximum: [`RING_SIZE_MAX`].
    RingHash {
        /// Minimum number of entries.
        size_min: u64,
    },
    /// A table with this many slots, a prime of at least 3. Default: 65537.
    Maglev {
        /// Number of slots.
        size: u64,
    },
}

impl HashAlgorithm {
    /// Number of entries or slots for hosts of these weights.
    pub fn entries(self, weights: &[f64]) -> u64 {
        match self {
            HashAlgorithm::RingHash { size_min } => {
                let sum: f64 = weights.iter().sum();
                let lightest = weights.iter().copied().reduce(f64::min);
                lightest.map_or(0, |lightest| {
                    ring_hash::scale(lightest / sum, size_min).ceil() as u64
                })
            }
            HashAlgorithm::Maglev { size } => size,
        }
    }
}

/// A table that finds endpoints by a hash.
#[derive(Debug)]
pub enum HashTable {
    /// See [`RingHash`].
    RingHash(RingHash),
    /// See [`Maglev`].
    Maglev(Maglev),
}

impl HashTable {
    /// Builds the table; `None` for no hosts.
    pub fn build(
        algorithm: HashAlgorithm,
        hosts: &[(EndpointIdx, hash::Host<'_>)],
    ) -> Option<Self> {
        match algorithm {
            HashAlgorithm::RingHash { size_min } => {
                RingHash::build(hosts, size_min).map(HashTable::RingHash)
            }
            HashAlgorithm::Maglev { size } => Maglev::build(hosts, size).map(HashTable::Maglev),
        }
    }

    /// The endpoint of a hash, skipping unavailable endpoints. `attempt` is the number of earlier attempts. `None` if
    /// the search limit is reached.
    #[inline]
    pub fn pick(
        &self,
        hash: u64,
        attempt: u32,
        usable: impl Fn(EndpointIdx) -> bool,
    ) -> Option<EndpointIdx> {
        match self {
            HashTable::RingHash(ring) => ring.pick(hash, attempt, usable),
            HashTable::Maglev(table) => table.pick(hash, attempt, usable),
        }
    }

    /// Share of the keys of each endpoint, while all are usable.
    pub fn shares(&self) -> BTreeMap<EndpointIdx, f64> {
        match self {
            HashTable::RingHash(ring) => ring.shares(),
            HashTable::Maglev(table) => table.shares(),
        }
    }

    /// Memory size in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            HashTable::RingHash(ring) => ring.bytes(),
            HashTable::Maglev(table) => table.bytes(),
        }
    }

    /// Number of entries or slots.
    pub fn len(&self) -> usize {
        match self {
            HashTable::RingHash(ring) => ring.len(),
            HashTable::Maglev(table) => table.len(),
        }
    }

    /// Always false: tables of no hosts are not built.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
    /// Builds the tables for endpoints of these weights; `None` for an empty set.
    pub fn build(policy: Simple, weights: &[u32]) -> Option<Self> {
        if weights.is_empty() {
            return None;
        }
        Some(match policy {
            Simple::LeastRequest => Balancer::LeastRequest(LeastRequest::build(weights)),
            Simple::Random => Balancer::Random(Random::build(weights)),
            Simple::RoundRobin => Balancer::RoundRobin(RoundRobin::build(weights)),
        })
    }

    /// Picks one endpoint. `state` returns the runtime state of an endpoint.
    #[inline]
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

    /// Share of picks of each endpoint while all are equally busy; sums to 1.
    pub fn shares(&self) -> Vec<f64> {
        match self {
            Balancer::LeastRequest(balancer) => balancer.shares(),
            Balancer::Random(balancer) => balancer.shares(),
            Balancer::RoundRobin(balancer) => balancer.shares(),
        }
    }
}

#[cfg(test)]
mod tests;
