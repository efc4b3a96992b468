//! From the pools of a service to an endpoint of one of them, in one step.

use std::sync::Arc;

use rand::Rng;

use super::{Chosen, Federation, PoolSet, Shares, first_tier};
use crate::balance::EndpointIdx;
use crate::cluster::{AffinityLookup, Cluster, PickInput};
use crate::registry::{ClusterId, EndpointNumber};

/// Clusters of the pools, as one snapshot has them.
pub struct PoolClusters<F> {
    /// Generation of the snapshot.
    pub generation: u64,
    /// Finds the cluster of a pool.
    pub cluster: F,
}

/// The pool and endpoint for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Position of the pool.
    pub at: usize,
    /// Endpoint in the pool.
    pub endpoint: EndpointIdx,
    /// The previous tier in use, if this choice changed it.
    pub shifted_from: Option<u8>,
}

impl Federation {
    /// The pools with a usable endpoint. `cluster` finds the cluster of a pool.
    #[inline]
    pub fn available<'c>(
        &self,
        cluster: impl Fn(ClusterId) -> Option<&'c Arc<Cluster>>,
    ) -> PoolSet {
        PoolSet::of(&self.pools, |pool| {
            cluster(pool.cluster).is_some_and(|cluster| cluster.is_available())
        })
    }

    /// The pools that may use panic mode: the only available pool, or all pools of the first tier if none is available.
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

    /// Picks a pool and an endpoint in it. Skips a pool that has just lost its last endpoint; if no pool is available,
    /// uses the panic mode of the first tier. `generation` is that of the snapshot in which `cluster` finds pools: the
    /// available pools are determined once for each snapshot, and again when they change.
    #[inline]
    pub fn choose<'c>(
        &self,
        generation: u64,
        cluster: impl Fn(ClusterId) -> Option<&'c Arc<Cluster>>,
        ask: PickInput,
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

    /// Picks an endpoint of another pool, after this one has just lost its last.
    #[cold]
    fn instead_of<'c>(
        &self,
        at: usize,
        cluster: impl Fn(ClusterId) -> Option<&'c Arc<Cluster>>,
        ask: PickInput,
        rng: &mut impl Rng,
    ) -> Option<Choice> {
        let passed = PoolSet::default().with(at);
        let left = self.available(&cluster).without(passed);
        self.choose_among_rest(left, &cluster, ask, rng)
            .or_else(|| self.in_panic(cluster, ask, rng))
    }

    /// Returns the endpoint of the client's affinity entry; otherwise picks one like [`Federation::choose`] and stores
    /// it.
    pub fn choose_for<'c>(
        &self,
        stay: &AffinityLookup<'_>,
        pools: PoolClusters<impl Fn(ClusterId) -> Option<&'c Arc<Cluster>>>,
        ask: PickInput,
        rng: &mut impl Rng,
    ) -> Option<Choice> {
        let PoolClusters {
            generation,
            cluster,
        } = pools;
        let usable = |number| self.affinity_choice(number, generation, &cluster);
        stay.known_or_picked(usable, || {
            let choice = self.choose(generation, &cluster, ask, rng)?;
            let pool = cluster(self.pools.get(choice.at)?.cluster)?;
            Some((choice, pool.endpoint_number(choice.endpoint)))
        })
    }

    /// Returns the endpoint with this number if it is usable and its tier is not later than the tier in use.
    pub fn affinity_choice<'c>(
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
            let endpoint = cluster(pool.cluster)?.affinity_endpoint(number)?;
            Some(Choice {
                at,
                endpoint,
                shifted_from: None,
            })
        })
    }

    /// Returns the pool and the endpoint for a hash, without changing any state.
    pub fn choice_for_hash<'c>(
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
        let ask = PickInput {
            hash: Some(hash),
            ..PickInput::default()
        };
        self.endpoint_of(cluster, chosen, ask, rng)
    }

    /// Picks an endpoint of the pools in `left` when the chosen pool has no usable endpoint although its table says
    /// that it has. Leaves the shares unchanged, since the table follows in a moment.
    #[cold]
    fn choose_among_rest<'c>(
        &self,
        mut left: PoolSet,
        cluster: impl Fn(ClusterId) -> Option<&'c Arc<Cluster>>,
        ask: PickInput,
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

    /// Picks a random endpoint of the pools among `candidates` that are in the earliest tier.
    pub fn choose_among<'c>(
        &self,
        cluster: impl Fn(ClusterId) -> Option<&'c Arc<Cluster>>,
        candidates: PoolSet,
        ask: PickInput,
        rng: &mut impl Rng,
    ) -> Option<Choice> {
        let available = self.available(&cluster);
        let chosen = self.pick_random_pool(available, candidates, rng)?;
        self.endpoint_of(cluster, chosen, ask, rng)
    }

    /// Picks a pool of a later tier and an endpoint in it, for a failover replay.
    pub fn choose_after<'c>(
        &self,
        tier: u8,
        cluster: impl Fn(ClusterId) -> Option<&'c Arc<Cluster>>,
        ask: PickInput,
        rng: &mut impl Rng,
    ) -> Option<Choice> {
        let later = self.available_after(tier, &cluster);
        let chosen = self.pick_later(later, ask.hash)?;
        self.endpoint_of(&cluster, chosen, ask, rng).or_else(|| {
            let passed = PoolSet::default().with(chosen.at);
            self.choose_among_rest(later.without(passed), cluster, ask, rng)
        })
    }

    /// The available pools of later tiers than this one.
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
        ask: PickInput,
        rng: &mut impl Rng,
    ) -> Option<Choice> {
        let pool = self.pools.get(chosen.at)?;
        let ask = PickInput {
            ignore_panic: !chosen.is_last,
            ..ask
        };
        let endpoint = cluster(pool.cluster)?.pick(ask, rng)?;
        Some(Choice {
            at: chosen.at,
            endpoint,
            shifted_from: chosen.shifted_from,
        })
    }

    /// Picks an endpoint of the first tier in panic mode, when no pool has a usable endpoint.
    #[cold]
    fn in_panic<'c>(
        &self,
        cluster: impl Fn(ClusterId) -> Option<&'c Arc<Cluster>>,
        ask: PickInput,
        rng: &mut impl Rng,
    ) -> Option<Choice> {
        let first = first_tier(&self.pools, PoolSet::of(&self.pools, |_| true))?;
        let mut left = PoolSet::of(&self.pools, |pool| pool.tier == first);
        while !left.is_empty() {
            let chosen = self.pick_random_pool(PoolSet::default(), left, rng)?;
            if let Some(choice) = self.endpoint_of(&cluster, chosen, ask, rng) {
                return Some(choice);
            }
            left = left.without(PoolSet::default().with(chosen.at));
        }
        None
    }
}
