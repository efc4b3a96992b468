//! A service that several Kubernetes clusters ("members") serve: whose endpoints a request goes to.
//!
//! Each member's endpoints are a cluster of their own, a *pool*, so that balancing, ejections and their caps, panic and
//! limits are each member's own business. Pools stand in *tiers*: the first tier that has an available pool takes all
//! traffic, and its available pools share it by weight. What is available changes with the health of endpoints; the
//! shares are rebuilt when it has.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use rand::Rng;

use super::Split;
use crate::balance::RoundRobin;
use crate::identity::Replay;
use crate::registry::{ClusterId, Cursor, Flips};
use crate::telemetry::{ReplayCause, ShiftReason, StatsRegistry, WorkerId};

mod choose;

mod counts;

mod pool;

pub use choose::Choice;
use counts::Counts;
pub use pool::Pool;

/// Most pools that one service may have; those beyond are left out, and the log says so.
pub const POOLS_MAX: usize = 64;

/// Why a service has no endpoints for this proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Absence {
    /// The only clusters that serve it are not for clients in this one (MultiClusterService).
    ConsumerExcluded,
    /// Every cluster that serves it has weight 0.
    Drained,
    /// No cluster that the policy names serves it.
    NoMatchingCluster,
    /// No cluster serves this port.
    PortNotExported,
    /// The subset's labels select nothing.
    SubsetEmpty,
    /// Only other clusters serve it, which wait for a GlobalTrafficPolicy.
    WithoutPolicy,
}

impl Absence {
    /// The word that log lines and explanations have for it.
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

    /// What the access log says of a request for it.
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
    /// Those for which `is_in` holds.
    #[inline]
    pub fn of(pools: &[Pool], is_in: impl Fn(&Pool) -> bool) -> Self {
        let bits = pools
            .iter()
            .enumerate()
            .map(|(at, pool)| u64::from(is_in(pool)) << at);
        Self(bits.fold(0, |all, bit| all | bit))
    }

    /// Whether that one is among them.
    pub fn has(self, at: usize) -> bool {
        self.0 >> at & 1 == 1
    }

    /// With one more.
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

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many there are.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }
}

/// The pools of a service, and who of them is asked.
#[derive(Debug)]
pub struct Federation {
    pools: Box<[Pool]>,
    turns: Arc<Turns>,
    /// Whether a request that its tier fails is sent to the next tier.
    pub replay: Replay,
    first: ArcSwap<Shares>,
    later: ArcSwap<Shares>,
    /// What tells that other pools may be available than were.
    flips: Arc<Flips>,
    /// Where it is counted what becomes of requests; nowhere in tests of the arithmetic.
    counts: Option<Counts>,
}

/// Whose turn it is, among the pools of first attempts and among those of replays, each by itself: taken from one
/// rotation, a request's replay would always follow its own first try. All workers share them, so that shares are exact
/// over the process. Outlive changes of the policy, so that frequent changes favor no pool.
#[derive(Debug, Default)]
pub struct Turns {
    first: Cursor,
    later: Cursor,
}

impl Turns {
    /// Both start with this turn, which may be any.
    pub fn starting_at(turn: u32) -> Self {
        Self {
            first: Cursor::starting_at(turn),
            later: Cursor::starting_at(turn),
        }
    }
}

/// Of what no [`Federation::version`] comes to.
const NEVER: u64 = u64::MAX;

/// Who shares the traffic while the same pools are available.
#[derive(Debug)]
struct Shares {
    available: PoolSet,
    /// As of when these are known to be available; [`NEVER`] if not yet.
    known: AtomicU64,
    /// The tier in use; none before the first request.
    tier: Option<u8>,
    /// Its available pools.
    members: Box<[u8]>,
    turns: RoundRobin,
    /// All pools of that tier, available or not: where keys are at home.
    homes: Option<Split<u8>>,
    /// The available ones, for keys whose home is not.
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
            // the upper bits, which are better mixed
            let point = (u128::from(point) * u128::from(split.total())) >> 64;
            Some(usize::from(*split.at(point as u64)))
        };
        let point = mix(hash);
        let home = at(&self.homes, point).filter(|home| self.available.has(*home));
        home.or_else(|| at(&self.refuges, mix(point)))
            .unwrap_or_default()
    }

    /// No tier in use, until the first request determines which pools are available.
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

/// The pools of a tier among these, by weight.
fn split(pools: &[Pool], among: PoolSet, tier: u8) -> Option<Split<u8>> {
    let all = in_tier(pools, among, tier);
    Split::build(all.map(|at| (pools[at].weight, at as u8)).collect())
}

fn in_tier(pools: &[Pool], among: PoolSet, tier: u8) -> impl Iterator<Item = usize> {
    let all = pools.iter().enumerate();
    all.filter(move |(at, pool)| pool.tier == tier && among.has(*at))
        .map(|(at, _)| at)
}

/// The pool that a request goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Its position.
    pub at: usize,
    /// Whether no other may be used now: then, and only then, it may panic.
    pub is_last: bool,
    /// The tier that was in use until this pick, where it brought another one into use.
    pub shifted_from: Option<u8>,
}

impl Federation {
    /// Of these pools, [`POOLS_MAX`] at most.
    pub fn build(mut pools: Vec<Pool>, replay: Replay, turns: Arc<Turns>) -> Self {
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

    /// Goes on from the one that was in effect before: its tier in use changes also when a cluster lost its last
    /// endpoint by a change of configuration. Where the policy gives clusters other tiers, there is nothing to compare.
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

    /// Looks at its pools again whenever something is noted there.
    #[must_use]
    pub fn following(mut self, flips: &Arc<Flips>) -> Self {
        self.flips = Arc::clone(flips);
        self
    }

    /// What was found out about its pools holds as long as this stays the same. `generation` is that of the snapshot in
    /// which they are looked up.
    #[inline]
    fn version(&self, generation: u64) -> u64 {
        // it takes 2^32 of either to come round to the same
        generation << 32 | self.flips.count() & u64::from(u32::MAX)
    }

    /// Counts what becomes of requests, under the host of the service and the name of the cluster that the proxy is in.
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

    /// Counts a try that was sent to a pool and got this status; 0 for none.
    #[inline]
    pub fn count_try(&self, worker: WorkerId, at: usize, code: u16) {
        if let Some(counts) = &self.counts {
            counts.tried(worker, at, code);
        }
    }

    /// Counts a request that one pool failed and another one takes.
    pub fn count_replay(&self, worker: WorkerId, from: usize, to: usize, cause: ReplayCause) {
        if let Some(counts) = &self.counts {
            counts.replayed(worker, from, to, cause);
        }
    }

    /// Counts that another tier came into use.
    pub fn count_shift(&self, worker: WorkerId, reason: ShiftReason) {
        if let Some(counts) = &self.counts {
            counts.shifted(worker, reason);
        }
    }

    /// The pools.
    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// Whose turn it is.
    pub fn turns(&self) -> &Arc<Turns> {
        &self.turns
    }

    /// Picks a pool: of the first tier that has an available one, in turn by weight, or by the hash of a key, which
    /// stays with its pool while that is available. `None` when none is available.
    #[inline]
    pub fn pick(&self, available: PoolSet, hash: Option<u64>) -> Option<Chosen> {
        self.pick_as_of(NEVER, available, hash)
    }

    /// As [`Federation::pick`]; until this version is over, these are known to be available.
    fn pick_as_of(&self, version: u64, available: PoolSet, hash: Option<u64>) -> Option<Chosen> {
        if available.is_empty() {
            return None;
        }
        let is_last = available.len() == 1;
        let asked = (&self.first, &self.turns.first);
        let (at, shifted_from) = self.by_turn(asked, (version, available), hash);
        Some(Chosen {
            at,
            is_last,
            shifted_from,
        })
    }

    /// As [`Federation::pick`], if the available pools of this version are known.
    #[inline]
    fn pick_known(&self, version: u64, hash: Option<u64>) -> Option<Chosen> {
        let now = self.first.load();
        (now.known.load(Ordering::Acquire) == version).then(|| Chosen {
            at: self.of_shares(&now, &self.turns.first, hash),
            is_last: now.available.len() == 1,
            shifted_from: None,
        })
    }

    /// The tier in use, if the available pools of this version are known.
    fn known_tier(&self, version: u64) -> Option<u8> {
        let now = self.first.load();
        let is_known = now.known.load(Ordering::Acquire) == version;
        now.tier.filter(|_| is_known)
    }

    /// Picks a pool for a request that its tier has failed: of the first tier among `later`, as [`Federation::pick`]
    /// does.
    pub fn pick_later(&self, later: PoolSet, hash: Option<u64>) -> Option<Chosen> {
        if later.is_empty() {
            return None;
        }
        let asked = (&self.later, &self.turns.later);
        let (at, _) = self.by_turn(asked, (NEVER, later), hash);
        Some(Chosen {
            at,
            // the tier that failed it has endpoints, too
            is_last: false,
            shifted_from: None,
        })
    }

    #[inline]
    fn by_turn(
        &self,
        (shares, turns): (&ArcSwap<Shares>, &Cursor),
        (version, available): (u64, PoolSet),
        hash: Option<u64>,
    ) -> (usize, Option<u8>) {
        let now = shares.load();
        if now.available == available {
            now.known.store(version, Ordering::Release);
            return (self.of_shares(&now, turns, hash), None);
        }
        let (renewed, shifted_from) = self.renew(shares, available);
        renewed.known.store(version, Ordering::Release);
        (self.of_shares(&renewed, turns, hash), shifted_from)
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

    /// Another pool for a request that was tried: by chance among `candidates`, those of the first of their tiers.
    pub fn another(
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

    /// A pool of a tier among these, by chance and weight.
    fn draw(&self, among: PoolSet, tier: u8, rng: &mut impl Rng) -> Option<usize> {
        let split = split(&self.pools, among, tier)?;
        Some(usize::from(*split.pick(rng)))
    }

    /// The part of the traffic that each pool has while these are available, in the order of the pools.
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

    /// Pools of tiers after this one.
    pub fn after(&self, tier: u8) -> PoolSet {
        PoolSet::of(&self.pools, |pool| pool.tier > tier)
    }

    /// The number of an endpoint's pool.
    pub fn position(&self, cluster: ClusterId) -> Option<usize> {
        self.pools.iter().position(|pool| pool.cluster == cluster)
    }
}

/// Spreads the bits of a hash, so that the choice of a pool tells nothing about the choice within it (the finaliser of
/// SplitMix64).
fn mix(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests;
