//! A service with endpoints in several Kubernetes clusters ("members"): tiers, shares and the choice of a pool.
//!
//! The endpoints of each member form a cluster of their own, a *pool*, so that balancing, ejections and their limits,
//! panic mode and connection limits apply per member. Pools are ordered in *tiers*: the first tier with an available
//! pool takes all traffic, and its available pools share it by weight. Shares are rebuilt when the availability of a
//! pool changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, Guard};
use rand::Rng;

use super::Split;
use crate::balance::RoundRobin;
use crate::registry::{AvailabilityChanges, ClusterId, Cursor};
use crate::telemetry::{ReplayCause, ShiftReason, StatsRegistry, WorkerId};

mod choose;

mod counts;

mod pool;

pub use choose::{Choice, PoolClusters};
use counts::Counts;
pub use pool::Pool;

/// Failed requests that are replayed in the next tier of clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Replay {
    /// None.
    Off,
    /// Requests that are safe to process twice. The default.
    #[default]
    Safe,
    /// Every request without a response, or with a status above 499, as in FSM.
    Fsm,
}

/// Maximum number of pools of one service; the rest is left out, and a log line says so.
pub const POOLS_MAX: usize = 64;

/// The reason why a service has no endpoints for this proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Absence {
    /// Only clusters serve it that exclude clients in the local cluster (MultiClusterService, or `clusterLocal` of the mesh).
    ConsumerExcluded,
    /// Every cluster that serves it has weight 0.
    Drained,
    /// The policy names no cluster that serves it.
    NoMatchingCluster,
    /// No cluster serves this port.
    PortNotExported,
    /// No endpoint has the labels of the subset.
    SubsetEmpty,
    /// Only remote clusters serve it, and no GlobalTrafficPolicy admits them.
    WithoutPolicy,
}

impl Absence {
    /// The name in log lines and in `explain`.
    pub fn as_str(self) -> &'static str {
        match self {
            Absence::ConsumerExcluded => "consumer_excluded",
            Absence::Drained => "drained",
            Absence::NoMatchingCluster => "no_matching_cluster",
            Absence::PortNotExported => "port_not_exported",
            Absence::SubsetEmpty => "subset_empty",
            Absence::WithoutPolicy => "no_policy",
        }
    }

    /// The response code details of a request for the service.
    pub fn details(self) -> &'static str {
        match self {
            Absence::ConsumerExcluded => "no_healthy_upstream{consumer_excluded}",
            Absence::Drained => "no_healthy_upstream{drained}",
            Absence::NoMatchingCluster => "no_healthy_upstream{no_matching_cluster}",
            Absence::PortNotExported => "no_healthy_upstream{port_not_exported}",
            Absence::SubsetEmpty => "no_healthy_upstream{subset_empty}",
            Absence::WithoutPolicy => "no_healthy_upstream{no_policy}",
        }
    }
}

/// A set of pools, by position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolSet(u64);

impl PoolSet {
    /// The pools for which `is_in` holds.
    #[inline]
    pub fn of(pools: &[Pool], is_in: impl Fn(&Pool) -> bool) -> Self {
        let bits = pools
            .iter()
            .enumerate()
            .map(|(at, pool)| u64::from(is_in(pool)) << at);
        Self(bits.fold(0, |all, bit| all | bit))
    }

    /// Whether the set contains the pool.
    pub fn has(self, at: usize) -> bool {
        self.0 >> at & 1 == 1
    }

    /// The set with this pool added.
    #[must_use]
    pub fn with(self, at: usize) -> Self {
        Self(self.0 | 1 << at)
    }

    /// The pools that are also in `other`.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The pools that are not in `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether the set has no pools.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Number of pools in the set.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }
}

/// The pools of a service, and the choice between them.
#[derive(Debug)]
pub struct Federation {
    pools: Box<[Pool]>,
    turns: Arc<RotationCursors>,
    /// Outcomes after which a request is sent to the next tier.
    pub replay: Replay,
    first: ArcSwap<Shares>,
    later: ArcSwap<Shares>,
    /// Counter of availability changes of clusters; a new value makes the known availability stale.
    flips: Arc<AvailabilityChanges>,
    /// Request metrics; `None` in unit tests of the shares.
    counts: Option<Counts>,
}

/// Rotation cursors, one for first attempts and one for failover replays: with a single cursor, the replay of a request
/// would always follow its own first attempt. All workers share them, so that shares are exact across the process. They
/// outlive changes of the policy, so that frequent changes favor no pool.
#[derive(Debug, Default)]
pub struct RotationCursors {
    first: Cursor,
    later: Cursor,
}

impl RotationCursors {
    /// Starts both cursors at this turn.
    pub fn starting_at(turn: u32) -> Self {
        Self {
            first: Cursor::starting_at(turn),
            later: Cursor::starting_at(turn),
        }
    }
}

/// A value that [`Federation::version`] never returns.
const NEVER: u64 = u64::MAX;

/// Traffic shares of pools for one set of available pools.
#[derive(Debug)]
struct Shares {
    available: PoolSet,
    /// The version for which `available` is known to be right; [`NEVER`] before the first request.
    known: AtomicU64,
    /// The tier in use; none before the first request.
    tier: Option<u8>,
    /// Its available pools.
    members: Box<[u8]>,
    turns: RoundRobin,
    /// All pools of the tier, available or not; the hash of a key first chooses one of these.
    homes: Option<Split<u8>>,
    /// The available pools of the tier, for keys whose first choice is unavailable.
    refuges: Option<Split<u8>>,
}

impl Shares {
    fn of(pools: &[Pool], available: PoolSet) -> Self {
        let tier = first_tier(pools, available);
        let first = in_tier(pools, available, tier.unwrap_or_default());
        let members: Box<[u8]> = first.map(|at| at as u8).collect();
        let weights: Vec<u32> = members
            .iter()
            .map(|at| pools[usize::from(*at)].weight)
            .collect();
        let refuges = weights.iter().copied().zip(members.iter().copied());
        let all = PoolSet::of(pools, |_| true);
        Self {
            available,
            known: AtomicU64::new(NEVER),
            tier,
            turns: RoundRobin::build(&weights),
            homes: tier.and_then(|tier| split(pools, all, tier)),
            refuges: Split::build(refuges.collect()),
            members,
        }
    }

    /// The pool of a key: hashed among all pools of the tier, and if that one is unavailable, among the available ones,
    /// so that only the keys of an unavailable pool move.
    fn of_key(&self, hash: u64) -> usize {
        let at = |split: &Option<Split<u8>>, point: u64| {
            let split = split.as_ref()?;
            // the upper bits of the hash, which are better mixed
            let point = (u128::from(point) * u128::from(split.total())) >> 64;
            Some(usize::from(*split.at(point as u64)))
        };
        let point = mix(hash);
        let home = at(&self.homes, point).filter(|home| self.available.has(*home));
        home.or_else(|| at(&self.refuges, mix(point)))
            .unwrap_or_default()
    }

    /// Shares without an available pool, until the first request determines which are available.
    fn unused(tier: Option<u8>) -> Self {
        let none = Self::of(&[], PoolSet::default());
        Self { tier, ..none }
    }
}

fn first_tier(pools: &[Pool], available: PoolSet) -> Option<u8> {
    let all = pools.iter().enumerate();
    all.filter(|(at, _)| available.has(*at))
        .map(|(_, pool)| pool.tier)
        .min()
}

/// The pools of a tier that are in `among`, by weight.
fn split(pools: &[Pool], among: PoolSet, tier: u8) -> Option<Split<u8>> {
    let all = in_tier(pools, among, tier);
    Split::build(all.map(|at| (pools[at].weight, at as u8)).collect())
}

fn in_tier(pools: &[Pool], among: PoolSet, tier: u8) -> impl Iterator<Item = usize> {
    let all = pools.iter().enumerate();
    all.filter(move |(at, pool)| pool.tier == tier && among.has(*at))
        .map(|(at, _)| at)
}

/// The pool for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Position of the pool.
    pub at: usize,
    /// Whether no other pool is available; only then may the pool use panic mode.
    pub is_last: bool,
    /// The previous tier in use, if this pick changed it.
    pub shifted_from: Option<u8>,
}

impl Federation {
    /// Builds the federation of at most [`POOLS_MAX`] pools; drops the rest.
    pub fn build(mut pools: Vec<Pool>, replay: Replay, turns: Arc<RotationCursors>) -> Self {
        pools.truncate(POOLS_MAX);
        Self {
            pools: pools.into(),
            turns,
            replay,
            first: ArcSwap::from_pointee(Shares::unused(None)),
            later: ArcSwap::from_pointee(Shares::unused(None)),
            flips: Arc::default(),
            counts: None,
        }
    }

    /// Takes over the tier in use from the previous configuration, so that a tier shift is noticed also if a change of
    /// configuration removed the last endpoint of a cluster. Skipped if a cluster has moved to another tier.
    #[must_use]
    pub fn after_change(mut self, before: &Federation) -> Self {
        let is_elsewhere = |pool: &Pool| {
            let mut was = before.pools.iter();
            was.any(|was| was.member == pool.member && was.tier != pool.tier)
        };
        if !self.pools.iter().any(is_elsewhere) {
            let tier = before.first.load().tier;
            self.first = ArcSwap::from_pointee(Shares::unused(tier));
        }
        self
    }

    /// Determines the available pools again whenever `flips` counts a change.
    #[must_use]
    pub fn following(mut self, flips: &Arc<AvailabilityChanges>) -> Self {
        self.flips = Arc::clone(flips);
        self
    }

    /// Number that changes when the availability of pools may have changed. `generation` is that of the snapshot in
    /// which the pools are looked up.
    #[inline]
    fn version(&self, generation: u64) -> u64 {
        // repeats only after 2^32 changes of either
        generation << 32 | self.flips.count() & u64::from(u32::MAX)
    }

    /// Enables request metrics, labeled with the host of the service and the name of the local cluster.
    #[must_use]
    pub fn counting(
        mut self,
        service: &Arc<str>,
        source: &Arc<str>,
        stats: &StatsRegistry,
    ) -> Self {
        self.counts = Some(Counts::new(service, source, &self.pools, stats));
        self
    }

    /// Counts an attempt in a pool with its status; 0 for no response.
    #[inline]
    pub fn count_try(&self, worker: WorkerId, at: usize, code: u16) {
        if let Some(counts) = &self.counts {
            counts.tried(worker, at, code);
        }
    }

    /// Counts a failover replay from one pool to another.
    pub fn count_replay(&self, worker: WorkerId, from: usize, to: usize, cause: ReplayCause) {
        if let Some(counts) = &self.counts {
            counts.replayed(worker, from, to, cause);
        }
    }

    /// Counts a change of the tier in use.
    pub fn count_shift(&self, worker: WorkerId, reason: ShiftReason) {
        if let Some(counts) = &self.counts {
            counts.shifted(worker, reason);
        }
    }

    /// All pools.
    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// The rotation cursors, to carry over to the next configuration.
    pub fn turns(&self) -> &Arc<RotationCursors> {
        &self.turns
    }

    /// Picks a pool of the first tier with an available one: in rotation by weight, or by the hash of a key, which
    /// keeps its pool while that is available. `None` if no pool is available.
    #[inline]
    pub fn pick(&self, available: PoolSet, hash: Option<u64>) -> Option<Chosen> {
        self.pick_as_of(NEVER, available, hash)
    }

    /// Picks like [`Federation::pick`], and records that `available` is right for this version.
    fn pick_as_of(&self, version: u64, available: PoolSet, hash: Option<u64>) -> Option<Chosen> {
        if available.is_empty() {
            return None;
        }
        let is_last = available.len() == 1;
        let (now, shifted_from) = self.shares_of(&self.first, available);
        now.known.store(version, Ordering::Release);
        Some(Chosen {
            at: self.of_shares(&now, &self.turns.first, hash),
            is_last,
            shifted_from,
        })
    }

    /// Picks like [`Federation::pick`] if the availability is known for this version.
    #[inline]
    fn pick_known(&self, version: u64, hash: Option<u64>) -> Option<Chosen> {
        let now = self.first.load();
        (now.known.load(Ordering::Acquire) == version).then(|| Chosen {
            at: self.of_shares(&now, &self.turns.first, hash),
            is_last: now.available.len() == 1,
            shifted_from: None,
        })
    }

    /// The tier in use, if the availability is known for this version.
    fn known_tier(&self, version: u64) -> Option<u8> {
        let now = self.first.load();
        let is_known = now.known.load(Ordering::Acquire) == version;
        now.tier.filter(|_| is_known)
    }

    /// Picks a pool for a failover replay: of the first tier among `later`, like [`Federation::pick`].
    pub fn pick_later(&self, later: PoolSet, hash: Option<u64>) -> Option<Chosen> {
        if later.is_empty() {
            return None;
        }
        let (now, _) = self.shares_of(&self.later, later);
        Some(Chosen {
            at: self.of_shares(&now, &self.turns.later, hash),
            // the tier that failed the request has endpoints, too
            is_last: false,
            shifted_from: None,
        })
    }

    /// The shares while these pools are available, and the previous tier in use if that changes it.
    #[inline]
    fn shares_of(
        &self,
        shares: &ArcSwap<Shares>,
        available: PoolSet,
    ) -> (Guard<Arc<Shares>>, Option<u8>) {
        let now = shares.load();
        if now.available == available {
            return (now, None);
        }
        let (renewed, shifted_from) = self.renew(shares, available);
        (Guard::from_inner(renewed), shifted_from)
    }

    #[inline]
    fn of_shares(&self, shares: &Shares, turns: &Cursor, hash: Option<u64>) -> usize {
        match (&*shares.members, hash) {
            ([only], _) => usize::from(*only),
            (members, None) => usize::from(members[shares.turns.pick(turns).0 as usize]),
            (_, Some(hash)) => shares.of_key(hash),
        }
    }

    #[cold]
    fn renew(&self, shares: &ArcSwap<Shares>, available: PoolSet) -> (Arc<Shares>, Option<u8>) {
        let renewed = Arc::new(Shares::of(&self.pools, available));
        // each change is seen by the one thread that brought it about
        let before = shares.swap(Arc::clone(&renewed)).tier;
        let shifted_from = before.filter(|_| before != renewed.tier);
        (renewed, shifted_from)
    }

    /// Picks a random pool, by weight, of the first tier among `candidates`.
    pub fn pick_random_pool(
        &self,
        available: PoolSet,
        candidates: PoolSet,
        rng: &mut impl Rng,
    ) -> Option<Chosen> {
        let tier = first_tier(&self.pools, candidates)?;
        let at = self.draw(candidates, tier, rng)?;
        let is_last = available.len() <= 1;
        Some(Chosen {
            at,
            is_last,
            shifted_from: None,
        })
    }

    /// Draws a random pool of a tier among these, by weight.
    fn draw(&self, among: PoolSet, tier: u8, rng: &mut impl Rng) -> Option<usize> {
        let split = split(&self.pools, among, tier)?;
        Some(usize::from(*split.pick(rng)))
    }

    /// Share of the traffic of each pool while these are available, in the order of the pools.
    pub fn shares(&self, available: PoolSet) -> Vec<f64> {
        let mut parts = vec![0.0; self.pools.len()];
        if let Some(tier) = first_tier(&self.pools, available) {
            let weight = |at: usize| f64::from(self.pools[at].weight);
            let sum: f64 = in_tier(&self.pools, available, tier).map(weight).sum();
            for at in in_tier(&self.pools, available, tier) {
                parts[at] = weight(at) / sum;
            }
        }
        parts
    }

    /// Pools of later tiers than this one.
    pub fn after(&self, tier: u8) -> PoolSet {
        PoolSet::of(&self.pools, |pool| pool.tier > tier)
    }

    /// Position of the pool with this cluster.
    pub fn position(&self, cluster: ClusterId) -> Option<usize> {
        self.pools.iter().position(|pool| pool.cluster == cluster)
    }
}

/// Mixes the bits of a hash (the finalizer of SplitMix64), so that the choice of a pool does not determine the choice
/// within it.
fn mix(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests;
