//! From the pools of a service to an endpoint of one of them: what a request asks, in one step.

use std::sync::Arc;

use rand::Rng;

use super::{Chosen, Federation, PoolSet, Shares, first_tier};
use crate::balance::EndpointIdx;
use crate::cluster::{Ask, Cluster, Stay};
use crate::registry::{ClusterId, EndpointNumber};

/// An endpoint of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Position of the pool.
    pub at: usize,
    /// The endpoint in it.
    pub endpoint: EndpointIdx,
    /// The tier that was in use until now, where this choice brought another one into use.
    pub shifted_from: Option<u8>,
}

impl Federation {
    /// The pools that have an endpoint that may be used. `cluster` finds a pool's endpoints.
    #[inline]
    pub fn available<'c>(
        &self,
        cluster: impl Fn(ClusterId) -> Option<&'c Arc<Cluster>>,
    ) -> PoolSet {
        PoolSet::of(&self.pools, |pool| {
            cluster(pool.cluster).is_some_and(|cluster| cluster.is_available())
        })
    }

    /// The pools that may panic while these are available: the only one, or those of the first tier where there is none.
    pub fn last_resorts(&self, available: PoolSet) -> impl Iterator<Item = ClusterId> {
        let all = PoolSet::of(&self.pools, |_| true);
        let last = match available.len() {
            0 => first_tier(&self.pools, all)
                .map(|first| PoolSet::of(&self.pools, |pool| pool.tier == first)),
            1 => Some(available),
            _ => None,
        };
        let last = last.unwrap_or_default();
        let pools = self.pools.iter().enumerate();
        pools
            .filter(move |(at, _)| last.has(*at))
            .map(|(_, pool)| pool.cluster)
    }

    /// Picks a pool and an endpoint of it. A pool whose last endpoint has just gone is passed over; where none has any,
    /// those of the first tier are used if they panic. `generation` is that of the snapshot in which `cluster` finds pools:
    /// the available pools are determined once for each, and again when they change.
    #[inline]
    pub fn choose<'c>(
        &self,
        generation: u64,
        cluster: impl Fn(ClusterId) -> Option<&'c Arc<Cluster>>,
        ask: Ask,
        rng: &mut impl Rng,
    ) -> Option<Choice> {
        let version = self.version(generation);
        let known = self.pick_known(version, ask.hash);
        let chosen = known.or_else(|| {
            let available = self.available(&cluster);
            self.pick_as_of(version, available, ask.hash)
        });
        let Some(chosen) = chosen else {
            return self.in_panic(cluster, ask, rng);
        };
        let choice = self.endpoint_of(&cluster, chosen, ask, rng);
        choice.or_else(|| self.instead_of(chosen.at, cluster, ask, rng))
    }

    /// An endpoint of another pool than the one that has just lost its last.
    #[cold]
    fn instead_of<'c>(
        &self,
        at: usize,
        cluster: impl Fn(ClusterId) -> Option<&'c Arc<Cluster>>,
        ask: Ask,
        rng: &mut impl Rng,
    ) -> Option<Choice> {
        let passed = PoolSet::default().with(at);
        let left = self.available(&cluster).without(passed);
        self.beside(left, &cluster, ask, rng)
            .or_else(|| self.in_panic(cluster, ask, rng))
    }

    /// The endpoint that its client stays with, or one as [`Federation::choose`] finds it, with which it then stays.
    pub fn choose_for<'c>(
        &self,
        stay: &Stay<'_>,
        (generation, cluster): (u64, impl Fn(ClusterId) -> Option<&'c Arc<Cluster>>),
        ask: Ask,
        rng: &mut impl Rng,
    ) -> Option<Choice> {
        let standing = |number| self.standing(number, generation, &cluster);
        stay.settle(standing, || {
            let choice = self.choose(generation, &cluster, ask, rng)?;
            let pool = cluster(self.pools.get(choice.at)?.cluster)?;
            Some((choice, pool.endpoint_number(choice.endpoint)))
        })
    }

    /// The endpoint with this number, if it may be used and is of no later tier than the one in use.
    pub fn standing<'c>(
        &self,
        number: EndpointNumber,
        generation: u64,
        cluster: impl Fn(ClusterId) -> Option<&'c Arc<Cluster>>,
    ) -> Option<Choice> {
        let known = self.known_tier(self.version(generation));
        let tier = known.or_else(|| first_tier(&self.pools, self.available(&cluster)))?;
        let pools = self.pools.iter().enumerate();
        let mut pools = pools.filter(|(_, pool)| pool.tier <= tier);
        pools.find_map(|(at, pool)| {
            let endpoint = cluster(pool.cluster)?.standing(number)?;
            Some(Choice {
                at,
                endpoint,
                shifted_from: None,
            })
        })
    }

    /// The pool and the endpoint that a hash leads to; changes nothing.
    pub fn led_to<'c>(
        &self,
        cluster: impl Fn(ClusterId) -> Option<&'c Arc<Cluster>>,
        hash: u64,
        rng: &mut impl Rng,
    ) -> Option<Choice> {
        let available = self.available(&cluster);
        if available.is_empty() {
            return None;
        }
        let chosen = Chosen {
            at: Shares::of(&self.pools, available).of_key(hash),
            is_last: available.len() == 1,
            shifted_from: None,
        };
        let ask = Ask {
            hash: Some(hash),
            ..Ask::default()
        };
        self.endpoint_of(cluster, chosen, ask, rng)
    }

    /// Picks an endpoint of these pools while the tables of others are behind what has just happened. Shares are left as
    /// they are: the tables will be right in a moment.
    #[cold]
    fn beside<'c>(
        &self,
        mut left: PoolSet,
        cluster: impl Fn(ClusterId) -> Option<&'c Arc<Cluster>>,
        ask: Ask,
        rng: &mut impl Rng,
    ) -> Option<Choice> {
        while let Some(tier) = first_tier(&self.pools, left) {
            let at = match ask.hash {
                Some(hash) => Shares::of(&self.pools, left).of_key(hash),
                None => self.draw(left, tier, rng)?,
            };
            let chosen = Chosen {
                at,
                is_last: left.len() == 1,
                shifted_from: None,
            };
            if let Some(choice) = self.endpoint_of(&cluster, chosen, ask, rng) {
                return Some(choice);
            }
            left = left.without(PoolSet::default().with(at));
        }
        None
    }

    /// Picks an endpoint by chance among `candidates`, those of the first of their tiers.
    pub fn choose_among<'c>(
        &self,
        cluster: impl Fn(ClusterId) -> Option<&'c Arc<Cluster>>,
        candidates: PoolSet,
        ask: Ask,
        rng: &mut impl Rng,
    ) -> Option<Choice> {
        let available = self.available(&cluster);
        let chosen = self.another(available, candidates, rng)?;
        self.endpoint_of(cluster, chosen, ask, rng)
    }

    /// Picks a pool of a later tier than this one, and an endpoint of it, for a request that this one has failed.
    pub fn choose_after<'c>(
        &self,
        tier: u8,
        cluster: impl Fn(ClusterId) -> Option<&'c Arc<Cluster>>,
        ask: Ask,
        rng: &mut impl Rng,
    ) -> Option<Choice> {
        let later = self.available_after(tier, &cluster);
        let chosen = self.pick_later(later, ask.hash)?;
        self.endpoint_of(&cluster, chosen, ask, rng).or_else(|| {
            let passed = PoolSet::default().with(chosen.at);
            self.beside(later.without(passed), cluster, ask, rng)
        })
    }

    /// The available pools of tiers after this one.
    pub fn available_after<'c>(
        &self,
        tier: u8,
        cluster: impl Fn(ClusterId) -> Option<&'c Arc<Cluster>>,
    ) -> PoolSet {
        let after = self.after(tier);
        match after.is_empty() {
            true => after,
            false => after.and(self.available(cluster)),
        }
    }

    fn endpoint_of<'c>(
        &self,
        cluster: impl Fn(ClusterId) -> Option<&'c Arc<Cluster>>,
        chosen: Chosen,
        ask: Ask,
        rng: &mut impl Rng,
    ) -> Option<Choice> {
        let pool = self.pools.get(chosen.at)?;
        let ask = Ask {
            calm: !chosen.is_last,
            ..ask
        };
        let endpoint = cluster(pool.cluster)?.pick(ask, rng)?;
        Some(Choice {
            at: chosen.at,
            endpoint,
            shifted_from: chosen.shifted_from,
        })
    }

    /// Where no pool has an endpoint that may be used: those of the first tier, if they panic.
    #[cold]
    fn in_panic<'c>(
        &self,
        cluster: impl Fn(ClusterId) -> Option<&'c Arc<Cluster>>,
        ask: Ask,
        rng: &mut impl Rng,
    ) -> Option<Choice> {
        let first = first_tier(&self.pools, PoolSet::of(&self.pools, |_| true))?;
        let mut left = PoolSet::of(&self.pools, |pool| pool.tier == first);
        while !left.is_empty() {
            let chosen = self.another(PoolSet::default(), left, rng)?;
            if let Some(choice) = self.endpoint_of(&cluster, chosen, ask, rng) {
                return Some(choice);
            }
            left = left.without(PoolSet::default().with(chosen.at));
        }
        None
    }
}
